//! The measured loop: one thread, one job copy.
//!
//! Two loops, because a synchronous engine needs neither slots nor batches: [`Worker::run_direct`] for
//! engines that perform a request at once, [`Worker::run_queued`] for engines that have several in
//! flight. Both are compiled anew for each engine, so nothing in them is called through a pointer.

use super::ledger::{Ledger, LiveCounters};
use super::traits::{Perform, Queue, Sync};
use crate::error::{Error, Result};
use crate::workload::request_source::{Kind, Request, RequestSource};
use model::injected::Injected;
use model::plan::{Depth, InjectAt, JobPlan};
use model::unit::{Hertz, Nanos};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::burner::Burner;
use sys::clock::ticks;
use sys::shared_words::SharedWords;

/// What a phase's workers share: whether to go on.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    /// Where another process says it.
    shared: Option<Arc<SharedWords>>,
}

/// The signal of shared memory that asks to end.
pub const STOP_SIGNAL: usize = 1;

impl Control {
    /// Workers that another process asks to end.
    pub fn shared(words: Arc<SharedWords>) -> Self {
        Self { stop: AtomicBool::new(false), shared: Some(words) }
    }

    /// Asks every worker to end after what it has in flight.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether workers were asked to end.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        match &self.shared {
            None => self.stop.load(Ordering::Relaxed),
            Some(words) => words.signals().get(STOP_SIGNAL).is_some_and(|stop| stop.load(Ordering::Relaxed) != 0),
        }
    }

    /// Sleeps until `duration` has passed or the workers were asked to end.
    fn pause(&self, duration: Duration) {
        /// Longest time that a stop goes unnoticed.
        const GLANCE: Duration = Duration::from_millis(50);
        let mut left = duration;
        while !left.is_zero() && !self.stopped() {
            let nap = left.min(GLANCE);
            std::thread::sleep(nap);
            left -= nap;
        }
    }
}

/// What the loop does next.
enum Next {
    Issue(Request),
    /// Nothing before this time has passed, and nothing may be in flight meanwhile.
    Pause(Duration),
    /// Make durable what was written, with nothing in flight.
    Sync(Sync),
    /// The ramp has ended; what the engine did until now does not count.
    Count,
    Done,
}

/// One copy of a job, ready to run.
pub struct Worker {
    job: String,
    source: RequestSource,
    depth: Depth,
    live: Arc<LiveCounters>,
    control: Arc<Control>,
    clock: Hertz,
    start_delay: Duration,
    at_start: Option<Box<dyn FnOnce() + Send>>,
    bytes_left: u64,
    ios_left: u64,
    ramp_ticks: u64,
    runtime_ticks: u64,
    /// The end of the ramp, then that of the run.
    alarm: u64,
    ramping: bool,
    /// Busy work before each I/O.
    inject: Option<Burner>,
    /// What is burnt for each I/O, here or by the engine, in ticks; known once it was calibrated.
    pub burnt_ticks: Option<f64>,
    /// Whether anything of [`Manners`] is in force; the common case asks this one flag only.
    mannered: bool,
    manners: Manners,
    /// CPU time of this thread when counting began.
    pub thread_begin: Nanos,
    /// What came of it.
    pub ledger: Ledger,
    /// System calls that the engine made since counting began; known when it ends.
    pub syscalls: Option<u64>,
    syscalls_before: Option<u64>,
}

/// What slows a job down on purpose.
struct Manners {
    held: Option<Request>,
    think: Duration,
    thought: bool,
    /// Ticks between requests of a kind; 0 for no limit.
    interval: [u64; 3],
    due: [u64; 3],
    sync_every: [(u32, Sync); 2],
    writes: u64,
    synced_at: u64,
    /// The job ends with a sync.
    end_sync: bool,
    /// And that is still to come.
    end_sync_due: bool,
}

/// One I/O in flight.
#[derive(Clone, Copy)]
struct InFlight {
    request: Request,
    stamp: u64,
}

impl Worker {
    /// A worker for one copy of `plan` that is to move `budget_bytes` (unless its time ends first).
    pub fn new(
        plan: &JobPlan,
        source: RequestSource,
        budget_bytes: u64,
        live: Arc<LiveCounters>,
        control: Arc<Control>,
        clock: Hertz,
    ) -> Self {
        let interval = |rate: u64| if rate == 0 { 0 } else { (clock.0 / rate as f64) as u64 };
        let manners = Manners {
            think: plan.think_time.duration(),
            thought: true,
            interval: [interval(plan.rates.read), interval(plan.rates.write), interval(plan.rates.trim)],
            sync_every: [(plan.fsync_every, Sync::All), (plan.fdatasync_every, Sync::Data)],
            end_sync: plan.end_fsync,
            end_sync_due: false,
            held: None,
            due: [0; 3],
            writes: 0,
            synced_at: 0,
        };
        let mannered = plan.think_time > Nanos(0)
            || manners.interval != [0; 3]
            || plan.fsync_every + plan.fdatasync_every > 0
            || plan.end_fsync;
        Self {
            job: plan.name.clone(),
            source,
            depth: plan.depth,
            live,
            control,
            clock,
            start_delay: plan.start_delay.duration(),
            at_start: None,
            bytes_left: if plan.duration.time_based { u64::MAX } else { budget_bytes },
            // As in fio, a round of the loop ends after number_ios; time_based starts over until its time is up.
            ios_left: match plan.duration.number_ios {
                Some(ios) if !plan.duration.time_based => ios.saturating_mul(plan.duration.loops.max(1).into()),
                _ => u64::MAX,
            },
            ramp_ticks: clock.ticks(plan.duration.ramp).0,
            runtime_ticks: clock.ticks(plan.duration.runtime).0,
            alarm: u64::MAX,
            ramping: false,
            // Elsewhere somebody else does it.
            inject: Some(clock.ticks(plan.inject).0)
                .filter(|ticks| *ticks > 0 && plan.inject_at == InjectAt::Submit)
                .map(Burner::uncalibrated),
            burnt_ticks: None,
            mannered,
            manners,
            thread_begin: Nanos(0),
            ledger: Ledger::new(ticks()),
            syscalls: None,
            syscalls_before: None,
        }
    }

    /// What to do when the engine is ready, before the first I/O: waiting for the others.
    pub fn at_start(&mut self, action: impl FnOnce() + Send + 'static) {
        self.at_start = Some(Box::new(action));
    }

    /// Measures what busy work takes in this thread, if there is any and it was not done yet. Takes some milliseconds.
    pub fn calibrate(&mut self) {
        if let (Some(burner), None) = (self.inject, self.burnt_ticks) {
            let calibrated = Burner::calibrated(burner.asked_ticks());
            (self.inject, self.burnt_ticks) = (Some(calibrated.burner), Some(calibrated.burnt_ticks));
        }
    }

    /// The busy work that was added to each I/O.
    pub fn injected(&self, plan: &JobPlan, clock: Hertz) -> Option<Injected> {
        Some(Injected { asked: plan.inject.as_f64(), burnt: self.burnt_ticks? * 1e9 / clock.0 })
    }

    /// Waits out `startdelay`, then starts the clocks of ramp and runtime.
    fn begin(&mut self) -> u64 {
        self.calibrate();
        if let Some(action) = self.at_start.take() {
            action();
        }
        self.control.pause(self.start_delay);
        let now = ticks();
        self.begin_counting(now);
        self.ramping = self.ramp_ticks > 0;
        self.alarm = if self.ramping { now + self.ramp_ticks } else { self.deadline(now) };
        self.manners.due = [now; 3];
        self.manners.end_sync_due = self.manners.end_sync;
        now
    }

    fn since_counting(&self, syscalls: Option<u64>) -> Option<u64> {
        syscalls.map(|syscalls| syscalls.saturating_sub(self.syscalls_before.unwrap_or(0)))
    }

    fn begin_counting(&mut self, now: u64) {
        self.ledger.restart(now);
        self.thread_begin = Nanos(sys::clock::own_thread_nanos());
    }

    fn deadline(&self, begin: u64) -> u64 {
        if self.runtime_ticks == 0 { u64::MAX } else { begin.saturating_add(self.runtime_ticks) }
    }

    /// Runs with an engine that performs each request at once.
    ///
    /// # Errors
    /// The first request that fails ends the job.
    pub fn run_direct<E: Perform>(&mut self, engine: &mut E) -> Result<()> {
        let outcome = self.direct_loop(engine);
        self.syscalls = self.since_counting(engine.syscalls());
        outcome
    }

    fn direct_loop<E: Perform>(&mut self, engine: &mut E) -> Result<()> {
        /// One I/O in this many gets a stamp of its own, to see how late the shared one is.
        const STAMP_CHECK: u64 = 1024;
        // The completion of one I/O is the submission of the next: one stamp serves both.
        let mut stamp = self.begin();
        let mut until_check = STAMP_CHECK;
        loop {
            let request = if self.issues_at_once(stamp) {
                self.draw()
            } else {
                match self.next(stamp) {
                    Next::Issue(request) => request,
                    Next::Pause(duration) => {
                        self.control.pause(duration);
                        stamp = ticks();
                        continue;
                    }
                    Next::Sync(what) => {
                        engine.sync(what).map_err(|error| Error::job(&self.job, "fsync", error))?;
                        stamp = ticks();
                        self.ledger.count_sync(stamp);
                        continue;
                    }
                    Next::Count => {
                        self.syscalls_before = engine.syscalls();
                        continue;
                    }
                    Next::Done => return Ok(()),
                }
            };
            until_check -= 1;
            if until_check == 0 {
                until_check = STAMP_CHECK;
                let late = ticks().saturating_sub(stamp);
                self.ledger.note_stamp_error(late, late, 1);
            }
            self.inject();
            let result = engine.perform(&request);
            let now = ticks();
            let moved = self.count(&request, result, now.saturating_sub(stamp))?;
            self.live.add(1, moved);
            self.ledger.end_ticks = now;
            stamp = now;
        }
    }

    /// What tells it to stop.
    pub fn control(&self) -> Arc<Control> {
        self.control.clone()
    }

    /// Runs with an engine that has several requests in flight.
    ///
    /// # Errors
    /// The first request that fails ends the job, after what is in flight.
    pub fn run_queued<E: Queue>(&mut self, engine: &mut E) -> Result<()> {
        let outcome = self.queued_loop(engine);
        self.syscalls = self.since_counting(engine.syscalls());
        outcome
    }

    fn queued_loop<E: Queue>(&mut self, engine: &mut E) -> Result<()> {
        let depth = self.depth.in_flight;
        let nothing = InFlight { request: Request { kind: Kind::Read, file: 0, offset: 0, length: 0 }, stamp: 0 };
        let mut table = vec![nothing; depth as usize];
        let mut free: Vec<u32> = (0..depth).rev().collect();
        let mut stamp = self.begin();
        let mut looked = stamp;
        // What was drawn but has to wait for what is in flight. It outlives a turn, because a wait may return
        // before everything is done, and it would not be drawn again.
        let mut interlude = None;
        loop {
            let mut staged = 0;
            while interlude.is_none()
                && let Some(&slot) = free.last()
            {
                let request = if self.issues_at_once(stamp) {
                    self.draw()
                } else {
                    match self.next(stamp) {
                        Next::Issue(request) => request,
                        Next::Count => {
                            self.syscalls_before = engine.syscalls();
                            continue;
                        }
                        other => {
                            interlude = Some(other);
                            continue;
                        }
                    }
                };
                free.pop();
                self.inject();
                engine.stage(slot, &request).map_err(|error| self.hand_over_failed(error))?;
                if let Some(entry) = table.get_mut(slot as usize) {
                    *entry = InFlight { request, stamp };
                }
                staged += 1;
                // The last batch before a wait is handed over by the wait itself.
                if staged >= self.depth.submit && !free.is_empty() {
                    engine.submit().map_err(|error| self.hand_over_failed(error))?;
                    staged = 0;
                    stamp = ticks();
                }
            }
            let in_flight = depth - free.len() as u32;
            if in_flight > 0 {
                // Before a pause, a sync or the end everything in flight is waited for.
                let least = if interlude.is_some() { in_flight } else { self.depth.complete_min.min(in_flight) };
                let most = if interlude.is_some() { in_flight } else { self.depth.complete_max };
                engine.wait(least, most).map_err(|error| self.hand_over_failed(error))?;
                let now = ticks();
                self.reap(engine, most, now, looked, &mut table, &mut free)?;
                (stamp, looked) = (now, now);
            }
            if in_flight > 0 && free.len() < depth as usize {
                continue;
            }
            match interlude.take() {
                Some(Next::Pause(duration)) => self.control.pause(duration),
                Some(Next::Sync(what)) => {
                    engine.sync(what).map_err(|error| Error::job(&self.job, "fsync", error))?;
                    self.ledger.count_sync(ticks());
                }
                Some(Next::Done) => return Ok(()),
                Some(Next::Issue(_) | Next::Count) | None => continue,
            }
            stamp = ticks();
            looked = stamp;
        }
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
        // An I/O may have completed at any time since it was submitted or since completions were last
        // looked at, whichever is later: that is how late its stamp can be.
        let since_look = now.saturating_sub(looked);
        engine.reap(most, |slot, result, stages| {
            let Some(entry) = table.get(slot as usize) else { return };
            free.push(slot);
            let latency = now.saturating_sub(entry.stamp);
            if let Some(stages) = stages.filter(|_| result > 0) {
                self.ledger.count_stages(entry.stamp, stages, now);
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
            self.ledger.note_stamp_error(late, latest, count);
            self.ledger.end_ticks = now;
        }
        failure.map_or(Ok(()), Err)
    }

    #[cold]
    fn hand_over_failed(&self, error: io::Error) -> Error {
        Error::job(&self.job, "handing over I/O", error)
    }

    /// Counts one result; the bytes that it moved.
    #[inline(always)]
    fn count(&mut self, request: &Request, result: i32, latency: u64) -> Result<u64> {
        if result <= 0 {
            return Err(self.request_failed(request, result));
        }
        let moved = result.unsigned_abs();
        self.ledger.count(request.kind, request.length, moved, latency);
        Ok(u64::from(moved))
    }

    #[cold]
    fn request_failed(&self, request: &Request, result: i32) -> Error {
        let verb = ["read", "write", "trim"][request.kind as usize];
        let what = format!("{verb} of {} bytes at offset {} of file {}", request.length, request.offset, request.file);
        let error = match result {
            0 => io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "nothing was moved: the file ends before (was it truncated?)",
            ),
            error => io::Error::from_raw_os_error(-error),
        };
        Error::job(&self.job, what, error)
    }

    #[inline(always)]
    fn inject(&self) {
        if let Some(burner) = self.inject {
            burner.burn();
        }
    }

    /// Whether nothing stands before the next request: the common case, which [`draw`](Self::draw) is for. It is apart from
    /// [`next`](Self::next), because a request that may come either way goes through memory, in other pieces than it is read in.
    #[inline(always)]
    fn issues_at_once(&self, now: u64) -> bool {
        now < self.alarm && !self.control.stopped() && self.ios_left > 0 && self.bytes_left > 0 && !self.mannered
    }

    #[inline(always)]
    fn draw(&mut self) -> Request {
        let request = self.source.draw();
        self.ios_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(request.length));
        request
    }

    #[inline(never)]
    fn next(&mut self, now: u64) -> Next {
        if now >= self.alarm {
            return self.alarm(now);
        }
        if self.control.stopped() || self.ios_left == 0 || self.bytes_left == 0 {
            return self.finish();
        }
        if self.mannered { self.next_mannered(now) } else { Next::Issue(self.draw()) }
    }

    /// The ramp's end starts the counting, the runtime's end ends the job.
    #[cold]
    fn alarm(&mut self, now: u64) -> Next {
        if !std::mem::take(&mut self.ramping) {
            return self.finish();
        }
        self.begin_counting(now);
        self.alarm = self.deadline(now);
        Next::Count
    }

    #[cold]
    fn finish(&mut self) -> Next {
        if std::mem::take(&mut self.manners.end_sync_due) { Next::Sync(Sync::All) } else { Next::Done }
    }

    fn next_mannered(&mut self, now: u64) -> Next {
        let manners = &mut self.manners;
        if manners.held.is_none() {
            if manners.writes != manners.synced_at {
                let due = |every: u32| every > 0 && manners.writes.is_multiple_of(every.into());
                if let Some(&(_, what)) = manners.sync_every.iter().find(|(every, _)| due(*every)) {
                    manners.synced_at = manners.writes;
                    return Next::Sync(what);
                }
            }
            if !std::mem::replace(&mut manners.thought, true) {
                return Next::Pause(manners.think);
            }
        }
        let request = match manners.held.take() {
            Some(request) => request,
            None => {
                let due = manners.due;
                // As fio does it: where a direction is ahead of its rate, the other one's turn comes, if that is earlier.
                self.source.draw_or(|kind, other| due[kind as usize] > now && due[other as usize] < due[kind as usize])
            }
        };
        let kind = request.kind as usize;
        if manners.interval[kind] > 0 {
            let early = manners.due[kind].saturating_sub(now);
            if early > 0 {
                manners.held = Some(request);
                return Next::Pause(self.clock.nanos(model::unit::Ticks(early)).duration());
            }
            manners.due[kind] += manners.interval[kind];
        }
        manners.writes += u64::from(request.kind == Kind::Write);
        manners.thought = manners.think.is_zero();
        self.ios_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(request.length));
        Next::Issue(request)
    }
}
