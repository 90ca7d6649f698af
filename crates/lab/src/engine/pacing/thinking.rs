//! Pauses between I/Os: `thinktime` and what goes with it.

use model::plan::JobPlan;
use model::unit::Hertz;

/// A pause: busy for its first part, asleep for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Pause {
    /// Until this tick the CPU is kept busy.
    pub busy_until: u64,
    pub end: u64,
}

pub(super) struct Thinking {
    ticks: u64,
    spin_ticks: u64,
    /// I/Os from one pause to the next; `u64::MAX` if their number does not matter.
    blocks: u64,
    /// The longest time from one pause to the next.
    io_ticks: u64,
    /// I/Os since the last pause.
    issued: u64,
    /// When the last pause ended.
    resumed: u64,
    /// The pause that runs.
    pause: Option<Pause>,
}

impl Thinking {
    pub fn new(plan: &JobPlan, clock: Hertz) -> Self {
        let pace = &plan.pace;
        let io_ticks = clock.ticks(pace.think_io_time).0;
        let by_time = if io_ticks > 0 { u64::MAX } else { 1 };
        let ticks = clock.ticks(plan.think_time).0;
        Self {
            ticks,
            // As in fio, a pause that is shorter than its busy part is busy throughout.
            spin_ticks: clock.ticks(pace.think_spin).0.min(ticks),
            blocks: pace.think_blocks.map_or(by_time, u64::from),
            io_ticks,
            issued: 0,
            resumed: 0,
            pause: None,
        }
    }

    pub fn is_in_force(&self) -> bool {
        self.ticks > 0
    }

    pub fn begin(&mut self, now: u64) {
        (self.issued, self.resumed, self.pause) = (0, now, None);
    }

    pub fn note_issued(&mut self) {
        self.issued += 1;
    }

    /// The pause that runs now or is due now.
    pub fn pause(&mut self, now: u64) -> Option<Pause> {
        if self.ticks == 0 || self.issued == 0 {
            return None;
        }
        let by_time = self.io_ticks > 0 && now.saturating_sub(self.resumed) >= self.io_ticks;
        if self.pause.is_none() && self.issued < self.blocks && !by_time {
            return None;
        }
        let begun = Pause { busy_until: now.saturating_add(self.spin_ticks), end: now.saturating_add(self.ticks) };
        let pause = *self.pause.get_or_insert(begun);
        if now < pause.end {
            return Some(pause);
        }
        self.begin(now);
        None
    }

    /// The length of each pause.
    pub fn length(&self) -> u64 {
        self.ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Pace;
    use model::unit::Nanos;

    fn thinking(pace: Pace) -> Thinking {
        let plan = JobPlan { think_time: Nanos(100), pace, ..JobPlan::default() };
        Thinking::new(&plan, Hertz(1e9))
    }

    #[test]
    fn a_pause_ends_once() {
        let mut thinking = thinking(Pace { think_spin: Nanos(500), ..Pace::default() });
        assert_eq!(thinking.pause(7), None, "not before the first I/O");
        thinking.note_issued();
        let pause = Some(Pause { busy_until: 110, end: 110 });
        assert_eq!((thinking.pause(10), thinking.pause(60)), (pause, pause));
        assert_eq!((thinking.pause(110), thinking.pause(111)), (None, None));
    }

    #[test]
    fn a_pause_comes_after_its_ios_or_its_time() {
        let mut blocks = thinking(Pace { think_blocks: Some(3), ..Pace::default() });
        blocks.begin(0);
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
        let mut time = thinking(Pace { think_io_time: Nanos(1000), ..Pace::default() });
        time.begin(0);
        (0..50).for_each(|_| time.note_issued());
        assert_eq!(time.pause(999), None);
        assert_eq!(time.pause(1000), Some(Pause { busy_until: 1000, end: 1100 }));
        assert_eq!(time.pause(1100), None);
        time.note_issued();
        assert_eq!((time.pause(2099), time.pause(2100).is_some()), (None, true));
        let mut both = thinking(Pace { think_io_time: Nanos(1000), think_blocks: Some(2), ..Pace::default() });
        both.begin(0);
        both.note_issued();
        assert!(both.pause(10).is_none());
        both.note_issued();
        assert!(both.pause(10).is_some(), "whichever comes first");
    }
}
