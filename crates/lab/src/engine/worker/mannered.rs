//! The next step of a job that is slowed down, syncs, or reads back what it wrote.

use super::{Next, Rest, Worker};
use crate::engine::pacing::{Backlog, Pause, Step};
use sys::clock::ticks;

impl Worker {
    /// A pause, or until the job's time is over, as in fio.
    fn pause(&self, pause: Pause, now: u64) -> Next {
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

    pub(super) fn next_mannered(&mut self, now: u64) -> Next {
        if self.manners.held.is_none() {
            match self.manners.backlog.as_mut().and_then(Backlog::step) {
                Some(Step::Settle) => return Next::Settle,
                Some(Step::Read(request)) => return Next::Issue(request),
                None => {}
            }
            // As in fio, a sync that is due when the last byte is issued waits for the next pass.
            let within = self.sure > 0 || self.ios_left > 0 && !self.source.is_spent();
            if within && let Some(what) = self.manners.due_sync() {
                return Next::Sync(what);
            }
            if !self.has_more() {
                return self.complete();
            }
            if let Some(what) = self.manners.due_sync() {
                return Next::Sync(what);
            }
            if let Some(pause) = self.manners.pause(now) {
                return self.pause(pause, now);
            }
        }
        if let Some(why) = self.manners.too_slow(now) {
            return Next::Fail(why);
        }
        let manners = &mut self.manners;
        let due = manners.due();
        let request = match manners.held.take() {
            Some(request) => request,
            None => {
                // As in fio: if a direction is ahead of its rate, the other one is next, if it is due earlier.
                self.source.draw_or(|kind, other| due[kind as usize] > now && due[other as usize] < due[kind as usize])
            }
        };
        let end = due[request.kind as usize];
        if end > now {
            manners.held = Some(request);
            return self.pause(Pause { busy_until: 0, end }, now);
        }
        manners.note_issued(&request);
        if self.sure > 0 {
            self.sure -= 1;
        } else {
            // The ramp ended while this request waited for its time.
            self.ios_left = self.ios_left.saturating_sub(1);
            self.drawn = self.drawn.wrapping_add(1);
        }
        Next::Issue(request)
    }
}
