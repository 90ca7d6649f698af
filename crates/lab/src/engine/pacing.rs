//! What slows a job down on purpose: rates, pauses, syncs.

mod backlog;
mod rates;
mod replaying;
mod thinking;

pub(super) use backlog::{Backlog, Step};
pub(super) use replaying::{Due, Replaying};
pub(super) use thinking::Pause;

use super::traits::Sync;
use crate::workload::request_source::{Kind, Request};
use model::plan::{JobPlan, RangeSync};
use model::unit::Hertz;
use rates::{Least, Rates};
use thinking::Thinking;

/// The state of these options.
pub(super) struct Pacing {
    /// A request that waits for its time.
    pub held: Option<Request>,
    /// The trace that says what is issued when, if the job replays one.
    pub replaying: Option<Replaying>,
    /// What is read back while the job writes.
    pub backlog: Option<Backlog>,
    /// The longest latencies that do not end the job, in ticks.
    pub most: [u64; 3],
    /// Whether there are any.
    pub has_most: bool,
    rates: Rates,
    /// `None` if the job does not end for being slow.
    least: Option<Least>,
    thinking: Thinking,
    /// What a pause delays is due later.
    ignores_thinking: bool,
    sync_every: [(u32, What); 3],
    range: Option<RangeSync>,
    writes: u64,
    /// The number of writes for which the last sync was due; `None` in a pass without one.
    synced_at: Option<u64>,
    /// Per file, what was written since its last sync.
    dirty: Vec<Written>,
    /// The sync that is under way.
    what: What,
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

/// A kind of sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// fsync.
    All,
    /// fdatasync.
    Data,
    /// sync_file_range.
    Range,
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    begin: u64,
    end: u64,
}

impl Written {
    const NOTHING: Self = Self { begin: u64::MAX, end: 0 };

    fn is_some(self) -> bool {
        self.begin < self.end
    }
}

impl Pacing {
    /// The options of a job with this number of files.
    pub fn new(plan: &JobPlan, clock: Hertz, files: usize) -> Self {
        let most = plan.latency.most.all().map(|most| if most.0 == 0 { u64::MAX } else { clock.ticks(*most).0 });
        Self {
            held: None,
            replaying: None,
            backlog: Backlog::new(plan),
            most,
            has_most: most.iter().any(|most| *most < u64::MAX),
            rates: Rates::new(plan, clock),
            least: Least::new(plan, clock),
            thinking: Thinking::new(plan, clock),
            ignores_thinking: plan.pace.ignores_thinking,
            sync_every: [
                (plan.fsync_every, What::All),
                (plan.fdatasync_every, What::Data),
                (plan.files.syncing.range.map_or(0, |range| range.every), What::Range),
            ],
            range: plan.files.syncing.range,
            what: What::All,
            writes: 0,
            synced_at: None,
            dirty: vec![Written::NOTHING; files],
            to_sync: Vec::with_capacity(files.max(1)),
            last_written: 0,
            last_was_sync: false,
            // As in fio, a job that does not write has nothing to sync.
            end_sync: plan.end_fsync && plan.access.writes(),
            end_sync_due: false,
            close_sync: plan.files.syncing.on_close && plan.access.writes(),
            close_sync_due: false,
        }
    }

    /// Whether any of them is in force.
    pub fn is_in_force(&self) -> bool {
        self.thinking.is_in_force()
            || self.rates.is_in_force()
            || self.least.is_some()
            || self.backlog.is_some()
            || self.has_most
            || self.sync_every.iter().any(|(every, _)| *every > 0)
            || self.end_sync
            || self.close_sync
    }

    /// The job begins.
    pub fn begin(&mut self, now: u64) {
        self.rates.begin(now);
        self.thinking.begin(now);
        if let Some(replaying) = &mut self.replaying {
            replaying.begin(now);
        }
        if let Some(least) = &mut self.least {
            least.begin(now);
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

    /// The pause between I/Os, if one runs.
    pub fn pause(&mut self, now: u64) -> Option<Pause> {
        let pause = self.thinking.pause(now)?;
        // Each pause begins once.
        if self.ignores_thinking && pause.end == now.saturating_add(self.thinking.length()) {
            self.rates.delay(self.thinking.length());
        }
        Some(pause)
    }

    /// When the next request of each direction is due.
    pub fn due(&self) -> [u64; 3] {
        self.rates.due()
    }

    /// Why the job has to end, if it was slower than its least rate.
    pub fn too_slow(&mut self, now: u64) -> Option<String> {
        self.least.as_mut()?.missed(now)
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
        if self.to_sync.is_empty() && self.what != What::Range {
            self.to_sync.push(self.last_written);
        }
        true
    }

    /// A file is to be synced now, everything or its data.
    pub fn sync_one(&mut self, file: u32, what: What) {
        self.what = what;
        self.to_sync.clear();
        self.to_sync.push(file);
    }

    /// Whether all files are to be synced at the end, once. As in fio, nothing is left to sync after a sync.
    pub fn last_sync(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.end_sync_due) && !self.last_was_sync;
        if is_due {
            self.what = What::All;
            self.list_to_sync(|_| true);
        }
        is_due
    }

    /// Whether all files are to be synced because they are closed at the end, once.
    pub fn close_sync(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.close_sync_due);
        if is_due {
            self.what = What::All;
            self.list_to_sync(|_| true);
        }
        is_due
    }

    fn list_to_sync(&mut self, belongs: impl Fn(bool) -> bool) {
        let files = (0..).zip(&self.dirty).filter(|(_, dirty)| belongs(dirty.is_some())).map(|(file, _)| file);
        self.to_sync.clear();
        self.to_sync.extend(files);
        self.to_sync.reverse();
    }

    /// The next file of the sync that is due, and the call; it counts as synced.
    pub fn next_to_sync(&mut self) -> Option<(u32, Sync)> {
        let file = self.to_sync.pop()?;
        let written = self.dirty.get_mut(file as usize);
        let written = written.map_or(Written::NOTHING, |dirty| std::mem::replace(dirty, Written::NOTHING));
        let call = match (self.what, self.range) {
            (What::Data, _) => Sync::Data,
            (What::Range, Some(range)) => Sync::Range {
                offset: written.begin,
                length: written.end.saturating_sub(written.begin),
                flags: u32::from(range.wait_before) | u32::from(range.write) << 1 | u32::from(range.wait_after) << 2,
            },
            _ => Sync::All,
        };
        Some((file, call))
    }

    /// A file was synced and closed.
    pub fn note_closed(&mut self, file: u32) {
        if let Some(dirty) = self.dirty.get_mut(file as usize) {
            *dirty = Written::NOTHING;
        }
    }

    pub fn note_issued(&mut self, request: &Request) {
        if request.kind == Kind::Write {
            self.writes += 1;
            self.last_written = request.file;
            if let Some(backlog) = &mut self.backlog {
                backlog.note_written(request);
            }
            if let Some(dirty) = self.dirty.get_mut(request.file as usize) {
                dirty.begin = dirty.begin.min(request.offset);
                dirty.end = dirty.end.max(request.offset.saturating_add(request.length.into()));
            }
        }
        self.last_was_sync = false;
        self.rates.note_issued(request);
        self.thinking.note_issued();
        if let Some(least) = &mut self.least {
            least.note_issued(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: u32) -> Request {
        Request { kind: Kind::Write, file, offset: 0, length: 512 }
    }

    #[test]
    fn a_sync_covers_the_files_that_were_written_since_theirs() {
        let plan =
            JobPlan { access: model::plan::Access::Write, fsync_every: 2, end_fsync: true, ..JobPlan::default() };
        let mut pacing = Pacing::new(&plan, Hertz(1e9), 3);
        pacing.begin(0);
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
        let plan = JobPlan { end_fsync: true, ..JobPlan::default() };
        let mut pacing = Pacing::new(&plan, Hertz(1e9), 1);
        pacing.begin(0);
        assert!(!pacing.last_sync() && !pacing.is_in_force());
    }

    #[test]
    fn a_range_covers_what_was_written_since_the_last_sync() {
        let mut plan = JobPlan { access: model::plan::Access::Write, ..JobPlan::default() };
        plan.files.syncing.range = Some(RangeSync { wait_before: true, write: true, wait_after: false, every: 2 });
        let mut pacing = Pacing::new(&plan, Hertz(1e9), 2);
        pacing.begin(0);
        for offset in [4096, 512] {
            pacing.note_issued(&Request { offset, ..write(1) });
        }
        let range = Sync::Range { offset: 512, length: 4096, flags: 3 };
        assert!(pacing.due_sync());
        assert_eq!((pacing.next_to_sync(), pacing.next_to_sync()), (Some((1, range)), None));
    }

    #[test]
    fn files_are_synced_once_when_they_are_closed() {
        let mut plan = JobPlan { access: model::plan::Access::Write, end_fsync: true, ..JobPlan::default() };
        plan.files.syncing.on_close = true;
        let mut pacing = Pacing::new(&plan, Hertz(1e9), 2);
        pacing.begin(0);
        pacing.note_issued(&write(0));
        assert!(pacing.last_sync() && !pacing.close_sync(), "one sync serves for both");
        plan.end_fsync = false;
        let mut pacing = Pacing::new(&plan, Hertz(1e9), 2);
        pacing.begin(0);
        pacing.note_issued(&write(0));
        assert!(!pacing.last_sync() && pacing.close_sync());
        assert_eq!(std::iter::from_fn(|| pacing.next_to_sync()).count(), 2);
        assert!(!pacing.close_sync());
    }
}
