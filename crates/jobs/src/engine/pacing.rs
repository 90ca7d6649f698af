//! What slows a job down on purpose: rates, pauses, syncs.

use super::Sync;
use crate::workload::ROOM_AT_FIRST;
use crate::workload::replay::{self, Replay};
use crate::workload::request_source::{Kind, Request};
use model::plan::{JobPlan, ReplayPlan};
use model::unit::{Hertz, Nanos};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The state of these options.
pub(super) struct Pacing {
    /// A request that waits for its time.
    pub held: Option<Request>,
    /// The trace that says what is issued when, if the job replays one.
    pub replaying: Option<Replaying>,
    /// What is read back while the job writes.
    pub backlog: Option<Backlog>,
    rates: Rates,
    thinking: Thinking,
    sync_every: [(u32, Sync); 2],
    writes: u64,
    /// The number of writes for which the last sync was due; `None` in a pass without one.
    synced_at: Option<u64>,
    /// Per file, whether something was written since its last sync.
    dirty: Vec<bool>,
    /// The sync that is under way.
    what: Sync,
    /// The files that are still to sync, the first one last. It has room for all, because the measured loop does not allocate.
    to_sync: Vec<u32>,
    /// The file that was written last.
    last_written: u32,
    /// Nothing was issued since the last sync.
    last_was_sync: bool,
    /// The job ends with a sync.
    end_sync: bool,
    /// That sync is still to come.
    end_sync_due: bool,
    /// Files are synced when they are closed.
    close_sync: bool,
    /// Those that are closed at the end are still to sync.
    close_sync_due: bool,
}

impl Pacing {
    /// The options of a job with this number of files.
    pub fn new(plan: &JobPlan, clock: Hertz, files: usize) -> Self {
        Self {
            held: None,
            replaying: None,
            backlog: Backlog::new(plan),
            rates: Rates::new(plan, clock),
            thinking: Thinking::new(plan, clock),
            sync_every: [(plan.sync.every, Sync::All), (plan.sync.data_every, Sync::Data)],
            what: Sync::All,
            writes: 0,
            synced_at: None,
            dirty: vec![false; files],
            to_sync: Vec::with_capacity(files.max(1)),
            last_written: 0,
            last_was_sync: false,
            // As in fio, a job that does not write has nothing to sync.
            end_sync: plan.sync.at_end && plan.access.writes(),
            end_sync_due: false,
            close_sync: plan.sync.on_close && plan.access.writes(),
            close_sync_due: false,
        }
    }

    /// Whether any of them is in force.
    pub fn is_in_force(&self) -> bool {
        self.thinking.is_in_force()
            || self.rates.is_in_force()
            || self.backlog.is_some()
            || self.sync_every.iter().any(|(every, _)| *every > 0)
            || self.end_sync
            || self.close_sync
    }

    /// The job begins.
    pub fn begin(&mut self, now: u64) {
        self.rates.begin(now);
        self.thinking.begin();
        if let Some(replaying) = &mut self.replaying {
            replaying.begin(now);
        }
        self.last_was_sync = false;
        self.end_sync_due = self.end_sync;
        // As in fio, one sync serves for both.
        self.close_sync_due = self.close_sync && !self.end_sync;
    }

    /// A pass over the files begins.
    pub fn begin_pass(&mut self) {
        self.synced_at = None;
    }

    /// The ramp is over; as in fio, syncs are counted from here on.
    pub fn count_anew(&mut self) {
        (self.writes, self.synced_at) = (0, None);
    }

    /// The end of the pause between I/Os, if one runs.
    pub fn pause(&mut self, now: u64) -> Option<u64> {
        self.thinking.pause(now)
    }

    /// When the next request of each direction is due.
    pub fn due(&self) -> [u64; 3] {
        self.rates.due()
    }

    /// The sync that is due now, of the files written since their last one ([`Self::next_to_sync`]). fio syncs once more where
    /// a pass begins anew; that is a sync of the file written last.
    pub fn due_sync(&mut self) -> bool {
        if self.writes == 0 || self.synced_at == Some(self.writes) {
            return false;
        }
        let due = |every: u32| every > 0 && self.writes.is_multiple_of(every.into());
        let Some((_, what)) = self.sync_every.iter().find(|(every, _)| due(*every)) else { return false };
        self.what = *what;
        self.synced_at = Some(self.writes);
        self.last_was_sync = true;
        self.list_to_sync(|dirty| dirty);
        if self.to_sync.is_empty() {
            self.to_sync.push(self.last_written);
        }
        true
    }

    /// A file is to be synced now, everything or its data.
    pub fn sync_one(&mut self, file: u32, what: Sync) {
        self.what = what;
        self.to_sync.clear();
        self.to_sync.push(file);
    }

    /// Whether all files are to be synced at the end, once. As in fio, nothing is left to sync after a sync.
    pub fn last_sync(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.end_sync_due) && !self.last_was_sync;
        if is_due {
            self.what = Sync::All;
            self.list_to_sync(|_| true);
        }
        is_due
    }

    /// Whether all files are to be synced because they are closed at the end, once.
    pub fn close_sync(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.close_sync_due);
        if is_due {
            self.what = Sync::All;
            self.list_to_sync(|_| true);
        }
        is_due
    }

    fn list_to_sync(&mut self, belongs: impl Fn(bool) -> bool) {
        let files = (0..).zip(&self.dirty).filter(|(_, dirty)| belongs(**dirty)).map(|(file, _)| file);
        self.to_sync.clear();
        self.to_sync.extend(files);
        self.to_sync.reverse();
    }

    /// The next file of the sync that is due, and the call; it counts as synced.
    pub fn next_to_sync(&mut self) -> Option<(u32, Sync)> {
        let file = self.to_sync.pop()?;
        if let Some(dirty) = self.dirty.get_mut(file as usize) {
            *dirty = false;
        }
        Some((file, self.what))
    }

    pub fn note_issued(&mut self, request: &Request) {
        if request.kind == Kind::Write {
            self.writes += 1;
            self.last_written = request.file;
            if let Some(backlog) = &mut self.backlog {
                backlog.note_written(request);
            }
            if let Some(dirty) = self.dirty.get_mut(request.file as usize) {
                *dirty = true;
            }
        }
        self.last_was_sync = false;
        self.rates.note_issued(request);
        self.thinking.note_issued();
    }
}

/// The writes that were not read back yet.
pub struct Backlog {
    writes: VecDeque<Request>,
    most: usize,
    /// Of a batch that has begun, the blocks that are still to be read.
    left: usize,
    /// Whether nothing must be in flight before the next step: a block is read after it was written, and written again
    /// after it was read.
    settles: bool,
    /// Tells the payload which reads are these.
    due: Arc<AtomicU64>,
}

/// The next step of a batch.
pub enum Step {
    /// Wait until nothing is in flight.
    Settle,
    Read(Request),
}

impl Backlog {
    /// `None` if the job reads back when it has written everything, or not at all.
    pub fn new(plan: &JobPlan) -> Option<Self> {
        if !plan.verify.reads_between() || !plan.access.writes() {
            return None;
        }
        let most = plan.verify.backlog as usize;
        let writes = VecDeque::with_capacity(most.saturating_add(1).min(ROOM_AT_FIRST));
        Some(Self { writes, most, left: 0, settles: false, due: Arc::default() })
    }

    /// The counter of the payload that checks what is read.
    pub fn tell(&mut self, due: Arc<AtomicU64>) {
        self.due = due;
    }

    pub fn note_written(&mut self, request: &Request) {
        self.writes.push_back(*request);
    }

    /// The next step of a batch, if one is due or has begun.
    pub fn step(&mut self) -> Option<Step> {
        if self.left == 0 && self.writes.len() >= self.most && !self.settles {
            (self.left, self.settles) = (self.writes.len(), true);
        }
        if std::mem::take(&mut self.settles) {
            return Some(Step::Settle);
        }
        self.left = self.left.checked_sub(1)?;
        let read = self.writes.pop_front()?;
        self.settles = self.left == 0;
        self.due.fetch_add(1, Relaxed);
        Some(Step::Read(Request { kind: Kind::Read, ..read }))
    }

    /// What was not read back when the job has written everything.
    pub fn rest(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.writes).into()
    }
}

/// The rates of a job: the schedule of each direction. It does not slip: what is late is caught up.
pub(super) struct Rates {
    /// Ticks of a request, and of each of its bytes; both 0 means no limit.
    per_io: [f64; 3],
    per_byte: [f64; 3],
    /// Ticks from the begin to the next request.
    scheduled: [f64; 3],
    begin: u64,
}

impl Rates {
    pub fn new(plan: &JobPlan, clock: Hertz) -> Self {
        let ticks = |rate: u64| if rate == 0 { 0.0 } else { clock.0 / rate as f64 };
        Self {
            per_io: plan.pace.ios.each().map(ticks),
            per_byte: plan.pace.bytes.each().map(|bytes| ticks(bytes.0)),
            scheduled: [0.0; 3],
            begin: 0,
        }
    }

    pub fn is_in_force(&self) -> bool {
        self.per_io.iter().chain(&self.per_byte).any(|ticks| *ticks > 0.0)
    }

    pub fn begin(&mut self, now: u64) {
        (self.begin, self.scheduled) = (now, [0.0; 3]);
    }

    /// When the next request of each direction is due.
    pub fn due(&self) -> [u64; 3] {
        self.scheduled.map(|ticks| self.begin.saturating_add(ticks as u64))
    }

    /// A request is issued.
    pub fn note_issued(&mut self, request: &Request) {
        let kind = request.kind as usize;
        let (Some(scheduled), Some(per_io), Some(per_byte)) =
            (self.scheduled.get_mut(kind), self.per_io.get(kind), self.per_byte.get(kind))
        else {
            return;
        };
        *scheduled += per_io + per_byte * f64::from(request.length);
    }
}

/// A trace that is replayed.
pub(crate) struct Replaying {
    replay: Arc<Replay>,
    next: usize,
    begin: u64,
    /// Ticks of a microsecond of the trace; 0 if times do not matter.
    scale: f64,
}

impl Replaying {
    pub fn new(replay: Arc<Replay>, plan: &ReplayPlan, clock: Hertz) -> Self {
        let micro = clock.ticks(Nanos(1_000_000_000)).0 as f64 / 1e6;
        let scale = if plan.no_stall { 0.0 } else { micro };
        Self { replay, next: 0, begin: 0, scale }
    }

    /// The first step is due now.
    pub fn begin(&mut self, now: u64) {
        (self.next, self.begin) = (0, now);
    }

    /// The next step, or when it is due; `None` behind the last.
    pub fn step(&mut self, now: u64) -> Option<Result<replay::What, u64>> {
        let replay::Step { at, what } = self.replay.steps.get(self.next)?;
        let due = self.begin.saturating_add((*at as f64 * self.scale) as u64);
        if due > now {
            return Some(Err(due));
        }
        self.next += 1;
        Some(Ok(*what))
    }
}

pub(super) struct Thinking {
    ticks: u64,
    /// I/Os from one pause to the next.
    blocks: u64,
    /// I/Os since the last pause.
    issued: u64,
    /// The end of the pause that runs.
    end: Option<u64>,
}

impl Thinking {
    pub fn new(plan: &JobPlan, clock: Hertz) -> Self {
        let ticks = clock.ticks(plan.pace.think_time).0;
        Self { ticks, blocks: plan.pace.think_blocks.into(), issued: 0, end: None }
    }

    pub fn is_in_force(&self) -> bool {
        self.ticks > 0
    }

    pub fn begin(&mut self) {
        (self.issued, self.end) = (0, None);
    }

    pub fn note_issued(&mut self) {
        self.issued += 1;
    }

    /// The end of the pause that runs now or is due now.
    pub fn pause(&mut self, now: u64) -> Option<u64> {
        if self.ticks == 0 || self.end.is_none() && self.issued < self.blocks {
            return None;
        }
        let end = *self.end.get_or_insert(now.saturating_add(self.ticks));
        if now < end {
            return Some(end);
        }
        self.begin();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Access, Each, Pace, SyncPlan, Verify, VerifyMethod};
    use model::unit::Bytes;

    fn write(file: u32) -> Request {
        Request { kind: Kind::Write, file, offset: 0, length: 512 }
    }

    const CLOCK: Hertz = Hertz(1e9);

    /// That of a job with this many files, which has begun.
    fn pacing(access: Access, sync: SyncPlan, files: usize) -> Pacing {
        let mut pacing = Pacing::new(&JobPlan { access, sync, ..JobPlan::default() }, CLOCK, files);
        pacing.begin(0);
        pacing
    }

    #[test]
    fn a_sync_covers_the_files_that_were_written_since_theirs() {
        let sync = SyncPlan { every: 2, at_end: true, ..SyncPlan::default() };
        let mut pacing = pacing(Access::Write, sync, 3);
        assert!(!pacing.due_sync());
        pacing.note_issued(&write(0));
        assert!(!pacing.due_sync());
        pacing.note_issued(&write(2));
        let files = |pacing: &mut Pacing| {
            std::iter::from_fn(|| pacing.next_to_sync())
                .map(|(file, call)| (file, call == Sync::All))
                .collect::<Vec<_>>()
        };
        assert_eq!((pacing.due_sync(), files(&mut pacing)), (true, vec![(0, true), (2, true)]));
        assert!(!pacing.due_sync(), "once");
        pacing.begin_pass();
        assert_eq!((pacing.due_sync(), files(&mut pacing)), (true, vec![(2, true)]), "as fio does in a new pass");
        assert!(!pacing.last_sync(), "the last step was a sync");
        pacing.begin(0);
        pacing.note_issued(&write(1));
        assert_eq!((pacing.last_sync(), files(&mut pacing)), (true, vec![(0, true), (1, true), (2, true)]));
        assert!(!pacing.last_sync());
    }

    #[test]
    fn a_job_that_only_reads_has_nothing_to_sync() {
        let mut pacing = pacing(Access::Read, SyncPlan { at_end: true, ..SyncPlan::default() }, 1);
        assert!(!pacing.last_sync() && !pacing.is_in_force());
    }

    #[test]
    fn files_are_synced_once_when_they_are_closed() {
        let written = |at_end| {
            let mut pacing = pacing(Access::Write, SyncPlan { at_end, on_close: true, ..SyncPlan::default() }, 2);
            pacing.note_issued(&write(0));
            pacing
        };
        let mut pacing = written(true);
        assert!(pacing.last_sync() && !pacing.close_sync(), "one sync serves for both");
        let mut pacing = written(false);
        assert!(!pacing.last_sync() && pacing.close_sync());
        assert_eq!(std::iter::from_fn(|| pacing.next_to_sync()).count(), 2);
        assert!(!pacing.close_sync());
    }

    fn backlog(most: u32) -> Backlog {
        let verify = Verify { method: Some(VerifyMethod::Md5), backlog: most, ..Verify::default() };
        Backlog::new(&JobPlan { access: Access::Write, verify, ..JobPlan::default() }).unwrap()
    }

    /// The steps of eight writes: the offsets of the reads, and `-` where nothing is in flight.
    fn steps(mut backlog: Backlog) -> String {
        let mut text = String::new();
        for offset in 0..8 {
            backlog.note_written(&Request { kind: Kind::Write, file: 0, offset, length: 1 });
            text += "w";
            while let Some(step) = backlog.step() {
                match step {
                    Step::Settle => text += "-",
                    Step::Read(request) => text += &request.offset.to_string(),
                }
            }
        }
        let rest: Vec<String> = backlog.rest().iter().map(|request| request.offset.to_string()).collect();
        format!("{text} {}", rest.concat())
    }

    /// As strace shows of fio 3.33.
    #[test]
    fn batches_are_read_in_the_order_of_their_writes() {
        assert_eq!(steps(backlog(4)), "wwww-0123-wwww-4567- ");
        assert_eq!(steps(backlog(3)), "www-012-www-345-ww 67");
    }

    fn request(kind: Kind, length: u32) -> Request {
        Request { kind, file: 0, offset: 0, length }
    }

    #[test]
    fn bytes_and_ios_are_due_at_their_rates_without_drift() {
        let of = |pace| Rates::new(&JobPlan { pace, ..JobPlan::default() }, CLOCK);
        let mut rates = of(Pace { bytes: Each { read: Bytes(3_000_000), ..Each::default() }, ..Pace::default() });
        rates.begin(100);
        assert_eq!(rates.due(), [100; 3]);
        (0..3000).for_each(|_| rates.note_issued(&request(Kind::Read, 1000)));
        // A third of a millisecond each, a million of them: one second.
        assert_eq!(rates.due(), [1_000_000_100, 100, 100]);
        let mut rates = of(Pace { ios: Each { read: 3, ..Each::default() }, ..Pace::default() });
        (0..3).for_each(|_| rates.note_issued(&request(Kind::Read, 1000)));
        assert_eq!(rates.due()[0], 1_000_000_000);
    }

    #[test]
    fn steps_are_due_at_the_times_of_the_trace() {
        let text = b"fio version 3 iolog\n0 a add\n100 a read 0 1\n1100 a sync 0 0\n";
        let replay = Arc::new(Replay::parse(text, &ReplayPlan::default()).unwrap());
        let replaying = |plan| {
            let mut replaying = Replaying::new(replay.clone(), &plan, CLOCK);
            replaying.begin(5_000);
            replaying
        };
        let mut timed = replaying(ReplayPlan::default());
        let sync = Some(Ok(replay::What::Sync(0, Sync::All)));
        assert!(matches!(timed.step(5_000), Some(Ok(replay::What::Io(Request { length: 1, .. })))));
        assert_eq!(timed.step(6_000), Some(Err(1_005_000)));
        assert_eq!((timed.step(1_005_000), timed.step(1_005_000)), (sync, None));
        let mut fast = replaying(ReplayPlan { no_stall: true, ..ReplayPlan::default() });
        assert!(matches!((fast.step(5_000), fast.step(5_000)), (Some(Ok(replay::What::Io(_))), next) if next == sync));
    }

    fn thinking(think_blocks: u32) -> Thinking {
        let pace = Pace { think_time: Nanos(100), think_blocks, ..Pace::default() };
        Thinking::new(&JobPlan { pace, ..JobPlan::default() }, CLOCK)
    }

    #[test]
    fn a_pause_ends_once() {
        let mut thinking = thinking(1);
        assert_eq!(thinking.pause(7), None, "not before the first I/O");
        thinking.note_issued();
        assert_eq!((thinking.pause(10), thinking.pause(60)), (Some(110), Some(110)));
        assert_eq!((thinking.pause(110), thinking.pause(111)), (None, None));
    }

    #[test]
    fn a_pause_comes_after_its_ios() {
        let mut blocks = thinking(3);
        let pauses: Vec<bool> = (1..=7)
            .map(|now| {
                blocks.note_issued();
                let pauses = blocks.pause(now * 1000).is_some();
                // The pause is over.
                assert_eq!(blocks.pause(now * 1000 + 100), None);
                pauses
            })
            .collect();
        assert_eq!(pauses, [false, false, true, false, false, true, false]);
    }
}
