//! Goes through a trace in its order, at its times.

use crate::workload::replay::{Replay, Step, What};
use crate::workload::request_source::Request;
use model::plan::ReplayPlan;
use model::unit::{Hertz, Nanos};
use std::sync::Arc;

/// A trace that is replayed.
pub(crate) struct Replaying {
    replay: Arc<Replay>,
    next: usize,
    begin: u64,
    /// Ticks of a microsecond of the trace; 0 if times do not matter.
    scale: f64,
}

/// What is due.
pub(crate) enum Due {
    /// Nothing until then.
    Wait(u64),
    Issue(Request),
    /// Of a file, everything.
    Sync(u32),
    /// Of a file, its data.
    DataSync(u32),
    Done,
}

impl Replaying {
    pub fn new(replay: Arc<Replay>, plan: &ReplayPlan, clock: Hertz) -> Self {
        let micro = clock.ticks(Nanos(1_000_000_000)).0 as f64 / 1e6;
        let scale = if plan.no_stall { 0.0 } else { micro * 100.0 / f64::from(plan.time_scale.max(1)) };
        Self { replay, next: 0, begin: 0, scale }
    }

    /// The first step is due now.
    pub fn begin(&mut self, now: u64) {
        (self.next, self.begin) = (0, now);
    }

    /// The next step, if it is due.
    pub fn step(&mut self, now: u64) -> Due {
        let Some(Step { at, what }) = self.replay.steps.get(self.next) else { return Due::Done };
        let due = self.begin.saturating_add((*at as f64 * self.scale) as u64);
        if due > now {
            return Due::Wait(due);
        }
        self.next += 1;
        match *what {
            What::Io(request) => Due::Issue(request),
            What::Sync(file) => Due::Sync(file),
            What::DataSync(file) => Due::DataSync(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_due_at_the_times_of_the_trace() {
        let text = b"fio version 3 iolog\n0 a add\n100 a read 0 1\n1100 a sync 0 0\n";
        let replay = Arc::new(Replay::parse(text, &ReplayPlan::default()).unwrap());
        let replaying = |plan| {
            let mut replaying = Replaying::new(replay.clone(), &plan, Hertz(1e9));
            replaying.begin(5_000);
            replaying
        };
        let mut timed = replaying(ReplayPlan { time_scale: 200, ..ReplayPlan::default() });
        assert!(matches!(timed.step(5_000), Due::Issue(Request { length: 1, .. })));
        assert!(matches!(timed.step(6_000), Due::Wait(505_000)));
        assert!(matches!(timed.step(505_000), Due::Sync(0)));
        assert!(matches!(timed.step(505_000), Due::Done));
        let mut fast = replaying(ReplayPlan { no_stall: true, ..ReplayPlan::default() });
        assert!(matches!((fast.step(5_000), fast.step(5_000)), (Due::Issue(_), Due::Sync(0))));
    }
}
