//! What the loop does between requests, if the job asks for it: pauses, syncs, and files that are opened and closed.

use super::super::files_in_loop::FilesInLoop;
use super::super::pacing::{Backlog, Due, Replaying, Step};
use super::super::traits::Sync;
use super::Worker;
use super::around::Next;
use crate::error::{Error, Result};
use crate::workload::replay::Replay;
use crate::workload::target::Target;
use model::plan::JobPlan;
use std::fs::File;
use std::io;
use std::sync::Arc;
use sys::clock::ticks;

impl Worker {
    /// The loop opens these files.
    pub(crate) fn open_in_loop(&mut self, plan: &JobPlan, targets: &[Target]) {
        self.files = Some(Box::new(FilesInLoop::new(plan, targets.to_vec())));
        self.paced = true;
    }

    /// Those of the engine, and of the files that the loop opens.
    pub(super) fn syscalls_so_far(&self, engine: Option<u64>) -> Option<u64> {
        engine.map(|calls| calls + self.files.as_ref().map_or(0, |files| files.calls))
    }

    /// Syncs the files that are due, and counts each call.
    #[cold]
    pub(super) fn sync(&mut self, mut call: impl FnMut(u32, Sync) -> io::Result<bool>) -> Result<()> {
        while let Some((file, what)) = self.pacing.next_to_sync() {
            // One that the loop has not opened in this pass was synced, if the job wants that.
            if !self.is_open(file) {
                continue;
            }
            if call(file, what).map_err(|error| Error::job(&self.job, "fsync", error))? {
                self.tally.count_sync(ticks());
            }
        }
        Ok(())
    }

    /// Whether a file is open: all are before the loop, unless it opens them.
    fn is_open(&self, file: u32) -> bool {
        self.files.as_ref().is_none_or(|files| files.is_open(file))
    }

    /// Opens a file in the loop.
    #[cold]
    pub(super) fn open_file(&mut self, file: u32, replace: impl FnOnce(u32, File) -> io::Result<File>) -> Result<()> {
        let Some(files) = &mut self.files else { return Ok(()) };
        if files.open(file, replace)? {
            self.pacing.note_closed(file);
            self.tally.count_sync(ticks());
        }
        Ok(())
    }

    /// Whether a file can be opened while I/Os of the one before it are in flight: the kernel holds that.
    pub(super) fn opens_at_once(&self) -> bool {
        self.files.as_ref().is_some_and(|files| !files.syncs_on_close())
    }

    /// All requests were issued.
    #[cold]
    pub(super) fn complete(&mut self) -> Next {
        self.complete = true;
        self.finish()
    }

    #[cold]
    pub(super) fn finish(&mut self) -> Next {
        if self.pacing.last_sync() || self.pacing.close_sync() { Next::Sync } else { Next::Done }
    }

    /// A pause, or until the job's time is over, as in fio.
    pub(super) fn pause(&self, end: u64, now: u64) -> Next {
        let ticks = end.min(self.limits.alarm).saturating_sub(now);
        Next::Pause(self.clock.nanos(model::unit::Ticks(ticks)).duration())
    }

    /// Goes through this trace instead of drawing requests.
    pub(crate) fn replay(&mut self, plan: &JobPlan, replay: Arc<Replay>) {
        self.pacing.replaying = Some(Replaying::new(replay, &plan.replay, self.clock));
        self.paced = true;
    }

    fn next_replayed(&mut self, due: Due, now: u64) -> Next {
        match due {
            Due::Wait(end) => return self.pause(end, now),
            Due::Issue(request) => return Next::Issue(request),
            Due::Sync(file, what) => self.pacing.sync_one(file, what),
            Due::Done => return self.complete(),
        }
        Next::Sync
    }

    pub(super) fn next_paced(&mut self, now: u64) -> Next {
        if let Some(replaying) = &mut self.pacing.replaying {
            let due = replaying.step(now);
            return self.next_replayed(due, now);
        }
        if self.pacing.held.is_none() {
            match self.pacing.backlog.as_mut().and_then(Backlog::step) {
                Some(Step::Settle) => return Next::Settle,
                Some(Step::Read(request)) => return Next::Issue(request),
                None => {}
            }
            // As in fio, a sync that is due when the last byte is issued waits for the next pass.
            let within = self.limits.sure > 0 || self.limits.ios_left > 0 && !self.source.is_spent();
            if within && self.pacing.due_sync() {
                return Next::Sync;
            }
            if !self.has_more() {
                return self.complete();
            }
            if std::mem::take(&mut self.pass_began)
                && let Some(files) = &mut self.files
            {
                files.begin_pass();
            }
            if self.pacing.due_sync() {
                return Next::Sync;
            }
            if let Some(end) = self.pacing.pause(now) {
                return self.pause(end, now);
            }
        }
        let pacing = &mut self.pacing;
        let due = pacing.due();
        let request = match pacing.held.take() {
            Some(request) => request,
            None => {
                // As in fio: if a direction is ahead of its rate, the other one is next, if it is due earlier.
                self.source.draw_or(|kind, other| due[kind as usize] > now && due[other as usize] < due[kind as usize])
            }
        };
        let end = due[request.kind as usize];
        if end > now {
            pacing.held = Some(request);
            return self.pause(end, now);
        }
        if !self.is_open(request.file) {
            self.pacing.held = Some(request);
            return Next::Open(request.file);
        }
        self.pacing.note_issued(&request);
        if self.limits.sure > 0 {
            self.limits.sure -= 1;
        } else {
            // The ramp ended while this request waited for its time.
            self.limits.ios_left = self.limits.ios_left.saturating_sub(1);
            self.drawn = self.drawn.wrapping_add(1);
        }
        Next::Issue(request)
    }
}
