//! What the loop does between requests if the job asks for it: busy work, pauses and syncs; and how it fails.

use super::super::Sync;
use super::super::pacing::{Backlog, Replaying, Step};
use super::{Next, Worker};
use crate::workload::replay::{Replay, What};
use crate::workload::request_source::Request;
use lab::error::{Error, Result};
use model::injected::Injected;
use model::plan::JobPlan;
use model::unit::Hertz;
use std::io;
use std::sync::Arc;
use sys::burner::Burner;
use sys::clock::ticks;

/// Busy work before each I/O, or before the first in each period.
pub(super) struct Injection {
    pub burner: Option<Burner>,
    /// Ticks from one such work to the next; 0 before each I/O.
    pub every: u64,
    /// When the next is due.
    pub due: u64,
}

impl Injection {
    #[inline(always)]
    pub fn inject(&mut self) {
        if let Some(burner) = self.burner
            && (self.every == 0 || self.is_due())
        {
            burner.burn();
        }
    }

    /// Whether busy work is due now. The times are multiples of the period from the start, so that the period is exact
    /// however late each is.
    fn is_due(&mut self) -> bool {
        let now = ticks();
        let due = now >= self.due;
        if due {
            let missed = now.saturating_sub(self.due) / self.every.max(1);
            self.due = self.due.saturating_add((missed + 1).saturating_mul(self.every));
        }
        due
    }
}

impl Worker {
    /// The busy work added to each I/O; `None` if it is added once in a time.
    pub fn injected(&self, plan: &JobPlan, clock: Hertz) -> Option<Injected> {
        if self.injection.every > 0 {
            return None;
        }
        Some(Injected { asked: plan.inject.time.as_f64(), burnt: self.burnt_ticks? * 1e9 / clock.0 })
    }

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

    #[cold]
    pub(super) fn hand_over_failed(&self, error: io::Error) -> Error {
        Error::job(&self.job, "submitting I/O", error)
    }

    /// An I/O moved nothing, or failed: that ends the job.
    #[cold]
    pub(super) fn failed(&self, request: &Request, result: i32) -> Error {
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
}
