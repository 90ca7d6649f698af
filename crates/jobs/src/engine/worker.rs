//! The measured loop: one thread, one job copy.
//!
//! Two loops, because a synchronous engine needs neither slots nor batches: [`Worker::run_direct`] for engines that
//! perform a request at once, [`Worker::run_queued`] for engines that have several in flight. Both are compiled
//! separately for each engine, so nothing in them is called through a pointer.

mod interludes;
mod observed;

pub use super::control::{Control, STOP_SIGNAL};
use super::pacing::Pacing;
use super::tally::{LiveCounters, Tally};
use super::{Immediate, Perform, Queue};
use crate::io_log::IoLog;
use crate::thread_usage;
use crate::workload::payload::Payload;
use crate::workload::request_source::{Kind, Request, RequestSource};
use interludes::Injection;
use lab::error::Result;
use model::ThreadUsage;
use model::plan::{Depth, JobPlan};
use model::unit::{Hertz, Nanos};
pub use observed::Written;
use std::sync::Arc;
use std::time::Duration;
use sys::burner::Burner;
use sys::clock::{own_thread_nanos, ticks};

/// One copy of a job, ready to run.
pub struct Worker {
    job: String,
    source: RequestSource,
    depth: Depth,
    live: Arc<LiveCounters>,
    control: Arc<Control>,
    clock: Hertz,
    at_start: Option<AtStart>,
    limits: Limits,
    injection: Injection,
    /// Ticks burnt for each I/O, here or by the engine; known after calibration.
    pub burnt_ticks: Option<f64>,
    /// Whether any of [`Pacing`] is in force; the common case checks only this flag.
    paced: bool,
    pacing: Pacing,
    /// What is written, and whether it is read back right, if the job says so.
    payload: Option<Box<Payload>>,
    /// Its log, if the job has one.
    log: Option<Box<IoLog>>,
    /// The source before its first request, to read back what was written.
    first: Option<Box<RequestSource>>,
    /// Requests drawn, or sure to be. It may wrap in a job that only time ends.
    drawn: u64,
    /// All requests of the job were issued.
    complete: bool,
    /// CPU time of this thread when counting started.
    pub thread_begin: Nanos,
    /// Whether to read `usage_begin`. Guests do not: their instructions are counted, and reading would be among them.
    pub reads_usage: bool,
    /// What the kernel had counted for this thread when counting started.
    pub usage_begin: Option<ThreadUsage>,
    pub tally: Tally,
    /// System calls of the engine since counting started; known at the end.
    pub syscalls: Option<u64>,
    syscalls_before: Option<u64>,
}

/// What a job may still issue, and how long.
struct Limits {
    start_delay: Duration,
    /// Requests that can be issued without another look here.
    sure: u64,
    /// Requests that are left beyond those.
    ios_left: u64,
    /// `number_ios`; as in fio, those of the ramp do not count.
    most_ios: u64,
    ramp_ticks: u64,
    runtime_ticks: u64,
    /// The end of the ramp, then the end of the run.
    alarm: u64,
    ramping: bool,
}

/// What to do when the engine is ready.
type AtStart = Box<dyn FnOnce() + Send>;

/// One I/O in flight.
#[derive(Clone, Copy)]
struct InFlight {
    request: Request,
    stamp: u64,
}

/// The next step of the loop.
enum Next {
    Issue(Request),
    /// Wait for this time, with nothing in flight.
    Pause(Duration),
    /// Sync the files that are due, with nothing in flight.
    Sync,
    /// Go on when nothing is in flight.
    Settle,
    /// The ramp has ended: start counting.
    Count,
    Done,
}

/// A step of a queue that is being filled.
enum Staged {
    Issue(Request),
    /// Look for the next step.
    Again,
    /// This has to wait until nothing is in flight.
    Interlude(Next),
}

impl Worker {
    /// A worker for one copy of `plan` that issues all of `source` (unless its time ends first).
    pub fn new(
        plan: &JobPlan,
        source: RequestSource,
        live: Arc<LiveCounters>,
        control: Arc<Control>,
        clock: Hertz,
    ) -> Self {
        let pacing = Pacing::new(plan, clock, source.files());
        Self {
            job: plan.name.clone(),
            source,
            depth: plan.depth,
            live,
            control,
            clock,
            at_start: None,
            limits: Limits {
                start_delay: plan.together.start_delay.duration(),
                sure: 0,
                ios_left: 0,
                // As in fio, a loop of the job ends after number_ios; time_based repeats it until its time is up.
                most_ios: match plan.duration.number_ios {
                    Some(ios) if !plan.duration.time_based => ios.saturating_mul(plan.duration.loops.max(1).into()),
                    _ => u64::MAX,
                },
                ramp_ticks: clock.ticks(plan.duration.ramp).0,
                runtime_ticks: clock.ticks(plan.duration.runtime).0,
                alarm: u64::MAX,
                ramping: false,
            },
            injection: Injection {
                burner: Some(clock.ticks(plan.inject.time).0).filter(|ticks| *ticks > 0).map(Burner::uncalibrated),
                every: clock.ticks(plan.inject.every).0,
                due: 0,
            },
            burnt_ticks: None,
            paced: pacing.is_in_force(),
            pacing,
            payload: None,
            log: None,
            first: None,
            drawn: 0,
            complete: false,
            thread_begin: Nanos(0),
            reads_usage: false,
            usage_begin: None,
            tally: Tally::new(ticks()),
            syscalls: None,
            syscalls_before: None,
        }
    }

    /// The next run of the engine does this number of I/Os, whatever the job's own limits are.
    pub fn limit_to(&mut self, ios: u64) {
        self.source.make_endless();
        self.limits.most_ios = ios;
        (self.limits.ramp_ticks, self.limits.runtime_ticks, self.limits.start_delay) = (0, 0, Duration::ZERO);
    }

    /// Sets what to do when the engine is ready, before the first I/O: wait for the other workers.
    pub fn at_start(&mut self, action: impl FnOnce() + Send + 'static) {
        self.at_start = Some(Box::new(action));
    }

    /// Measures how long the busy work takes in this thread, if there is any and it is not known yet. Takes some
    /// milliseconds.
    pub fn calibrate(&mut self) {
        if let (Some(burner), None) = (self.injection.burner, self.burnt_ticks) {
            let calibrated = Burner::calibrated(burner.asked_ticks());
            (self.injection.burner, self.burnt_ticks) = (Some(calibrated.burner), Some(calibrated.burnt_ticks));
        }
    }

    /// Waits for `startdelay`, then starts the clocks of ramp and runtime.
    fn begin(&mut self) -> u64 {
        self.calibrate();
        if let Some(action) = self.at_start.take() {
            action();
        }
        self.control.pause(self.limits.start_delay);
        let now = ticks();
        self.begin_counting(now);
        (self.limits.ios_left, self.limits.sure) = (self.limits.most_ios, 0);
        self.limits.ramping = self.limits.ramp_ticks > 0;
        self.limits.alarm = if self.limits.ramping { now + self.limits.ramp_ticks } else { self.deadline(now) };
        self.pacing.begin(now);
        self.injection.due = now.saturating_add(self.injection.every);
        now
    }

    fn since_counting(&self, syscalls: Option<u64>) -> Option<u64> {
        syscalls.map(|syscalls| syscalls.saturating_sub(self.syscalls_before.unwrap_or(0)))
    }

    fn begin_counting(&mut self, now: u64) {
        self.tally.restart(now);
        if self.reads_usage {
            self.usage_begin = thread_usage::own();
        }
        self.thread_begin = Nanos(own_thread_nanos());
    }

    fn deadline(&self, begin: u64) -> u64 {
        if self.limits.runtime_ticks == 0 { u64::MAX } else { begin.saturating_add(self.limits.runtime_ticks) }
    }

    /// Runs with an engine that performs each request at once. The loop of a job without observers is compiled for each engine; that of an
    /// observed job calls its engine through a pointer, and is compiled once.
    ///
    /// # Errors
    /// The first request that fails ends the job.
    pub fn run_direct<E: Perform>(&mut self, engine: &mut E) -> Result<()> {
        let outcome = if self.is_observed() {
            self.depth = Depth { in_flight: 1, low: None, submit: 1, complete_min: 1, complete_max: 1 };
            self.observed(&mut Immediate::new(engine, 1), true)
        } else {
            self.direct_loop(engine)
        };
        self.syscalls = self.since_counting(engine.syscalls());
        outcome
    }

    /// Runs with an engine that has several requests in flight, compiled as for [`Self::run_direct`].
    ///
    /// # Errors
    /// The first request that fails ends the job, after the I/Os in flight.
    pub fn run_queued<E: Queue>(&mut self, engine: &mut E) -> Result<()> {
        let outcome = if self.is_observed() { self.observed(engine, false) } else { self.queued_loop(engine) };
        self.syscalls = self.since_counting(engine.syscalls());
        outcome
    }

    fn direct_loop<E: Perform>(&mut self, engine: &mut E) -> Result<()> {
        /// One I/O in this many gets a stamp of its own, to measure how late the shared one is.
        const STAMP_CHECK: u64 = 1024;
        // The completion of one I/O is the submission of the next: one stamp serves for both.
        let mut stamp = self.begin();
        let mut until_check = STAMP_CHECK;
        loop {
            let request = if self.issues_at_once(stamp) {
                self.draw()
            } else {
                match self.next(stamp) {
                    Next::Issue(request) => request,
                    Next::Pause(pause) => {
                        self.control.pause(pause);
                        stamp = ticks();
                        continue;
                    }
                    Next::Sync => {
                        self.sync(|file, what| engine.sync(file, what))?;
                        stamp = ticks();
                        continue;
                    }
                    Next::Count => {
                        self.syscalls_before = engine.syscalls();
                        continue;
                    }
                    // An engine that performs each I/O at once has none in flight here.
                    Next::Settle => continue,
                    Next::Done => {
                        self.tally.end_ticks = ticks();
                        return Ok(());
                    }
                }
            };
            until_check -= 1;
            if until_check == 0 {
                until_check = STAMP_CHECK;
                let late = ticks().saturating_sub(stamp);
                self.tally.note_stamp_error(late, late, 1);
            }
            self.injection.inject();
            let result = engine.perform(&request);
            let now = ticks();
            let moved = self.count(&request, result, now.saturating_sub(stamp))?;
            self.live.add(1, moved);
            self.tally.end_ticks = now;
            stamp = now;
        }
    }

    /// The handle to stop it.
    pub fn control(&self) -> Arc<Control> {
        self.control.clone()
    }

    fn queued_loop<E: Queue>(&mut self, engine: &mut E) -> Result<()> {
        let depth = self.depth.in_flight;
        let low = self.depth.low.unwrap_or(depth);
        // Whether the queue is being filled, not drained to its low mark. Most jobs have none.
        let drains = low < depth;
        let mut filling = true;
        let nothing = InFlight { request: Request { kind: Kind::Read, file: 0, offset: 0, length: 0 }, stamp: 0 };
        let mut table = vec![nothing; depth as usize];
        let mut free: Vec<u32> = (0..depth).rev().collect();
        let mut stamp = self.begin();
        engine.count_from(stamp);
        let mut looked = stamp;
        // A step that has to wait until nothing is in flight. It is kept across iterations, because a wait may return
        // before everything is done.
        let mut interlude = None;
        loop {
            let mut staged = 0;
            while filling
                && interlude.is_none()
                && let Some(&slot) = free.last()
            {
                let request = if self.issues_at_once(stamp) {
                    self.draw()
                } else {
                    match self.next_staged(engine, stamp)? {
                        Staged::Issue(request) => request,
                        Staged::Again => continue,
                        Staged::Interlude(next) => {
                            interlude = Some(next);
                            continue;
                        }
                    }
                };
                free.pop();
                self.injection.inject();
                engine.stage(slot, &request).map_err(|error| self.hand_over_failed(error))?;
                if let Some(entry) = table.get_mut(slot as usize) {
                    *entry = InFlight { request, stamp };
                }
                staged += 1;
                // The wait itself submits the last batch.
                if staged >= self.depth.submit && !free.is_empty() {
                    engine.submit().map_err(|error| self.hand_over_failed(error))?;
                    staged = 0;
                    stamp = ticks();
                }
            }
            let in_flight = depth - free.len() as u32;
            if drains && in_flight == depth {
                filling = false;
            }
            if in_flight > 0 {
                // Before a pause, a sync or the end, wait for everything in flight.
                let least = if interlude.is_some() { in_flight } else { self.depth.complete_min.min(in_flight) };
                let most = if interlude.is_some() { in_flight } else { self.depth.complete_max };
                engine.wait(least, most).map_err(|error| self.hand_over_failed(error))?;
                let now = ticks();
                self.reap(engine, most, now, looked, &mut table, &mut free)?;
                (stamp, looked) = (now, now);
            }
            if drains && depth - free.len() as u32 <= low {
                filling = true;
            }
            if in_flight > 0 && free.len() < depth as usize {
                continue;
            }
            match interlude.take() {
                Some(Next::Pause(pause)) => self.control.pause(pause),
                Some(Next::Sync) => self.sync(|file, what| engine.sync(file, what))?,
                Some(Next::Done) => {
                    self.tally.end_ticks = ticks();
                    return Ok(());
                }
                Some(Next::Issue(_) | Next::Count | Next::Settle) | None => continue,
            }
            stamp = ticks();
            looked = stamp;
        }
    }

    /// The next step of a queue that is being filled, if it is not simply a request. A function of its own, so that the loop of the common case
    /// stays small: it keeps its values in registers.
    #[inline(never)]
    fn next_staged<E: Queue>(&mut self, engine: &mut E, stamp: u64) -> Result<Staged> {
        Ok(match self.next(stamp) {
            Next::Issue(request) => Staged::Issue(request),
            Next::Count => {
                engine.count_from(stamp);
                self.syscalls_before = engine.syscalls();
                Staged::Again
            }
            other => Staged::Interlude(other),
        })
    }

    #[inline(always)]
    fn reap<E: Queue>(
        &mut self,
        engine: &mut E,
        most: u32,
        now: u64,
        looked: u64,
        table: &mut [InFlight],
        free: &mut Vec<u32>,
    ) -> Result<()> {
        let (mut count, mut bytes, mut late, mut latest) = (0, 0, 0, 0);
        let mut failure = None;
        // An I/O may have completed at any time since its submission or since the last look at completions, whichever
        // is later: its stamp can be late by that much.
        let since_look = now.saturating_sub(looked);
        engine.reap(most, &mut |slot, result, stages| {
            let Some(entry) = table.get(slot as usize) else { return };
            free.push(slot);
            let latency = now.saturating_sub(entry.stamp);
            if let Some(stages) = stages.filter(|_| result > 0) {
                self.tally.count_stages(entry.stamp, stages, now);
            }
            match self.count(&entry.request, result, latency) {
                Ok(moved) => {
                    let error = latency.min(since_look);
                    late += error;
                    latest = error.max(latest);
                    count += 1;
                    bytes += moved;
                }
                Err(error) => failure = failure.take().or(Some(error)),
            }
        });
        self.live.add(count, bytes);
        if count > 0 {
            // A wait for a single I/O returns when it completes, so nothing shares its stamp.
            if self.depth.in_flight > 1 {
                self.tally.note_stamp_error(late, latest, count);
            }
            self.tally.end_ticks = now;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Counts one result, and returns the bytes that it moved.
    #[inline(always)]
    fn count(&mut self, request: &Request, result: i32, latency: u64) -> Result<u64> {
        /// Results from −4095 on are errors; those below are lengths above 2 GiB.
        const LARGEST: u32 = u32::MAX - 4095;
        let moved = result.cast_unsigned();
        if moved.wrapping_sub(1) >= LARGEST {
            return Err(self.failed(request, result));
        }
        self.tally.count(request.kind, request.length, moved, latency);
        Ok(u64::from(moved))
    }

    /// Whether the next request can be issued at once: the common case, which uses [`draw`](Self::draw). It is separate
    /// from [`next`](Self::next), because a request that comes from two branches would go through memory, written and
    /// read in pieces of different size.
    #[inline(always)]
    fn issues_at_once(&self, now: u64) -> bool {
        now < self.limits.alarm && !self.control.stopped() && self.limits.sure > 0 && !self.paced
    }

    #[inline(always)]
    fn draw(&mut self) -> Request {
        self.limits.sure -= 1;
        self.source.draw()
    }

    /// Whether another request follows; may begin another pass.
    fn has_more(&mut self) -> bool {
        if self.limits.sure > 0 {
            return true;
        }
        if self.limits.ios_left == 0 {
            return false;
        }
        let passes = self.source.passes();
        self.limits.sure = self.source.following().min(self.limits.ios_left);
        self.limits.ios_left -= self.limits.sure;
        self.drawn = self.drawn.wrapping_add(self.limits.sure);
        if self.source.passes() != passes {
            self.pacing.begin_pass();
        }
        self.limits.sure > 0
    }

    #[inline(never)]
    fn next(&mut self, now: u64) -> Next {
        if now >= self.limits.alarm {
            return self.alarm(now);
        }
        if self.control.stopped() {
            return self.finish();
        }
        if self.paced {
            return self.next_paced(now);
        }
        if self.has_more() { Next::Issue(self.draw()) } else { self.complete() }
    }

    /// The end of the ramp starts the counting, the end of the runtime ends the job.
    #[cold]
    fn alarm(&mut self, now: u64) -> Next {
        if !std::mem::take(&mut self.limits.ramping) {
            return self.finish();
        }
        self.begin_counting(now);
        self.drawn = self.drawn.wrapping_sub(self.limits.sure);
        (self.limits.ios_left, self.limits.sure) = (self.limits.most_ios, 0);
        self.pacing.count_anew();
        self.limits.alarm = self.deadline(now);
        Next::Count
    }

    /// All requests were issued.
    #[cold]
    fn complete(&mut self) -> Next {
        self.complete = true;
        self.finish()
    }

    #[cold]
    fn finish(&mut self) -> Next {
        if self.pacing.last_sync() || self.pacing.close_sync() { Next::Sync } else { Next::Done }
    }
}
