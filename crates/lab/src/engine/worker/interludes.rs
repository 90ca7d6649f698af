//! What the loop does between requests, if the job asks for it: pauses, syncs, and files that are opened and closed.

use super::super::files_in_loop::FilesInLoop;
use super::super::pacing::{Backlog, Due, Pause, Replaying, Step, What};
use super::super::traits::Sync;
use super::Worker;
use super::step::{Next, Rest};
use crate::error::{Error, Result};
use crate::workload::replay::Replay;
use crate::workload::request_source::Request;
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
            let place = self.files.as_ref().map_or(Some(file), |files| files.place_of(file));
            // One that is closed was synced, if the job wants that.
            let Some(place) = place else { continue };
            if call(place, what).map_err(|error| Error::job(&self.job, "fsync", error))? {
                self.ledger.count_sync(ticks());
            }
        }
        Ok(())
    }

    /// Opens a file in the place of one that is done.
    #[cold]
    pub(super) fn open_file(&mut self, file: u32, replace: impl FnOnce(u32, File) -> io::Result<File>) -> Result<()> {
        let Some(files) = &mut self.files else { return Ok(()) };
        if let Some(closed) = files.open(file, |file| self.source.serves(file), replace)? {
            self.pacing.note_closed(closed);
            self.ledger.count_sync(ticks());
        }
        Ok(())
    }

    /// Whether a file can be opened while I/Os of the one before it are in flight: the kernel holds that.
    pub(super) fn opens_at_once(&self) -> bool {
        self.files.as_ref().is_some_and(|files| !files.syncs_on_close())
    }

    /// A full device ends a job that is to fill it.
    #[cold]
    pub(super) fn filled(&self, error: Error) -> Result<()> {
        if self.fills && error.is_no_room() { Ok(()) } else { Err(error) }
    }

    /// A read of a backlog: its file is open, because it was written there.
    fn place(&self, request: Request) -> Next {
        let place = self.files.as_ref().map_or(Some(request.file), |files| files.place_of(request.file));
        Next::Issue(Request { file: place.unwrap_or(request.file), ..request })
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
    pub(super) fn pause(&self, pause: Pause, now: u64) -> Next {
        let ticks = pause.end.min(self.alarm).saturating_sub(now);
        let duration = self.clock.nanos(model::unit::Ticks(ticks)).duration();
        Next::Pause(Rest { busy_until: pause.busy_until.min(self.alarm), duration })
    }

    #[cold]
    pub(super) fn rest(&self, rest: &Rest, now: u64) {
        while ticks() < rest.busy_until && !self.control.stopped() {
            std::hint::spin_loop();
        }
        let spun = self.clock.nanos(model::unit::Ticks(rest.busy_until.saturating_sub(now))).duration();
        self.control.pause(rest.duration.saturating_sub(spun));
    }

    /// Goes through this trace instead of drawing requests.
    pub(crate) fn replay(&mut self, plan: &JobPlan, replay: Arc<Replay>) {
        self.pacing.replaying = Some(Replaying::new(replay, &plan.replay, self.clock));
        self.paced = true;
    }

    fn next_replayed(&mut self, due: Due, now: u64) -> Next {
        match due {
            Due::Wait(end) => return self.pause(Pause { busy_until: 0, end }, now),
            Due::Issue(request) => return Next::Issue(request),
            Due::Sync(file) => self.pacing.sync_one(file, What::All),
            Due::DataSync(file) => self.pacing.sync_one(file, What::Data),
            Due::Done => return self.complete(),
        }
        Next::Sync
    }

    pub(super) fn next_paced(&mut self, now: u64) -> Next {
        if let Err(error) = self.within_limits() {
            return Next::Fail(Box::new(error));
        }
        if let Some(replaying) = &mut self.pacing.replaying {
            let due = replaying.step(now);
            return self.next_replayed(due, now);
        }
        if self.pacing.held.is_none() {
            match self.pacing.backlog.as_mut().and_then(Backlog::step) {
                Some(Step::Settle) => return Next::Settle,
                Some(Step::Read(request)) => return self.place(request),
                None => {}
            }
            // As in fio, a sync that is due when the last byte is issued waits for the next pass.
            let within = self.sure > 0 || self.ios_left > 0 && !self.source.is_spent();
            if within && self.pacing.due_sync() {
                return Next::Sync;
            }
            if !self.has_more() {
                return self.complete();
            }
            if std::mem::take(&mut self.pass_began)
                && let Some(Err(error)) = self.files.as_mut().map(|files| files.begin_pass())
            {
                return Next::Fail(Box::new(error));
            }
            if self.pacing.due_sync() {
                return Next::Sync;
            }
            if let Some(pause) = self.pacing.pause(now) {
                return self.pause(pause, now);
            }
        }
        if let Some(why) = self.pacing.too_slow(now) {
            return Next::Fail(Box::new(self.too_slow(why)));
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
            return self.pause(Pause { busy_until: 0, end }, now);
        }
        let place = self.files.as_ref().map_or(Some(request.file), |files| files.place_of(request.file));
        let Some(place) = place else {
            pacing.held = Some(request);
            return Next::Open(request.file);
        };
        self.pacing.note_issued(&request);
        if self.sure > 0 {
            self.sure -= 1;
        } else {
            // The ramp ended while this request waited for its time.
            self.ios_left = self.ios_left.saturating_sub(1);
            self.drawn = self.drawn.wrapping_add(1);
        }
        Next::Issue(Request { file: place, ..request })
    }
}
