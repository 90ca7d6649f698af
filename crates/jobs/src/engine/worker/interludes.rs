//! What the loop does between requests, if the job asks for it: pauses and syncs.

use super::super::pacing::{Backlog, Replaying, Step};
use super::super::traits::Sync;
use super::Worker;
use super::around::Next;
use crate::workload::replay::{Replay, What};
use lab::error::{Error, Result};
use model::plan::JobPlan;
use std::io;
use std::sync::Arc;
use sys::clock::ticks;

impl Worker {
    /// Syncs the files that are due, and counts each call.
    #[cold]
    pub(super) fn sync(&mut self, mut call: impl FnMut(u32, Sync) -> io::Result<bool>) -> Result<()> {
        while let Some((file, what)) = self.pacing.next_to_sync() {
            if call(file, what).map_err(|error| Error::job(&self.job, "fsync", error))? {
                self.tally.count_sync(ticks());
            }
        }
        Ok(())
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

    pub(super) fn next_paced(&mut self, now: u64) -> Next {
        if let Some(replaying) = &mut self.pacing.replaying {
            return match replaying.step(now) {
                None => self.complete(),
                Some(Err(end)) => self.pause(end, now),
                Some(Ok(What::Io(request))) => Next::Issue(request),
                Some(Ok(What::Sync(file, what))) => {
                    self.pacing.sync_one(file, what);
                    Next::Sync
                }
            };
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
        pacing.note_issued(&request);
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
