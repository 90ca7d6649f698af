//! How much a job does: passes over its files, until its bytes are moved. The rules are fio's.

use super::target::Span;
use model::plan::{Access, JobPlan, Order, Queue, Size};

/// The bytes that a job still has to move.
#[derive(Clone, Debug)]
pub struct Amount {
    /// Bytes of a whole pass, if bytes end it.
    pass: u64,
    /// Bytes of the pass that runs; fewer than a whole pass where the job ends within it.
    here: u64,
    /// Bytes of the passes before it.
    before: u64,
    /// The job ends at this number of bytes, even within a pass.
    most: u64,
    /// With `io_size`, passes are added to those of `loops` until this is moved …
    least: u64,
    /// … or less than this is missing: the largest block.
    block: u64,
    /// Passes that `loops` still asks for.
    passes_left: u64,
    /// `time_based`: only time ends the job.
    endless: bool,
}

impl Amount {
    /// The amount of a copy of a job that uses these parts of its files.
    pub fn new(plan: &JobPlan, spans: &[Span]) -> Self {
        let sum = |percent: u8| spans.iter().fold(0, |sum: u64, span| sum.saturating_add(share(span.length, percent)));
        // A percentage of io_size makes the passes themselves shorter.
        let (size, io_size) = match plan.duration.io_size {
            None => (sum(100), None),
            Some(Size::Percent(percent)) => (sum(percent), None),
            Some(Size::Bytes(bytes)) => (sum(100), Some(bytes.0)),
        };
        // `size` limits what a pass over files of their own size moves.
        let size = match (plan.files.each, plan.target.size) {
            (Some(_), Some(Size::Bytes(most))) => size.min(most.0),
            _ => size,
        };
        // Each block is moved twice.
        let times = if plan.access == Access::TrimWrite { 2 } else { 1 };
        let free = plan.order == Order::Random && plan.sets_no_random_map() && plan.access.writes();
        // fio counts the bytes of a pass only for engines that queue; with others, a pass ends where its files do.
        let pass = match (plan.engine.queue(), free) {
            (Queue::Deep, true) => size.max(io_size.unwrap_or(0)).saturating_mul(times),
            (Queue::Deep, false) => size.saturating_mul(times),
            _ => u64::MAX,
        };
        let loops = u64::from(plan.duration.loops.max(1));
        let moved = io_size.unwrap_or(size).saturating_mul(times);
        let mut amount = Self {
            pass,
            here: 0,
            before: 0,
            most: moved.saturating_mul(loops),
            least: if io_size.is_some() { moved } else { 0 },
            block: plan.buffer_bytes(),
            passes_left: loops - 1,
            endless: plan.duration.time_based,
        };
        amount.begin_pass();
        amount
    }

    /// Bytes after which the pass that runs is over.
    #[inline(always)]
    pub fn of_this_pass(&self) -> u64 {
        self.here
    }

    /// Only time, or a number of I/Os, ends the job.
    pub fn is_endless(&self) -> bool {
        self.endless
    }

    /// From now on only time, or a number of I/Os, ends the job.
    pub fn make_endless(&mut self) {
        self.endless = true;
        self.here = u64::MAX;
    }

    /// A pass ended after `moved` bytes: whether another one begins.
    pub fn begins_another(&mut self, moved: u64) -> bool {
        self.before = self.before.saturating_add(moved);
        let begins = if moved == 0 {
            // A pass without a single I/O would repeat forever.
            false
        } else if self.endless {
            true
        } else if self.passes_left > 0 {
            self.passes_left -= 1;
            true
        } else {
            self.least.saturating_sub(self.before) >= self.block
        };
        self.begin_pass();
        begins
    }

    fn begin_pass(&mut self) {
        self.here = if self.endless { u64::MAX } else { self.pass.min(self.most.saturating_sub(self.before)) };
    }
}

/// This percentage of `bytes`, rounded down.
pub(super) fn share(bytes: u64, percent: u8) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Duration, EngineKind};
    use model::unit::Bytes;

    const KIB: u64 = 1 << 10;

    /// The lengths of the passes of a job over a file of 64 KiB that fills each pass.
    fn passes(duration: Duration, access: Access) -> Vec<u64> {
        let plan = JobPlan { access, duration, engine: EngineKind::Libaio, ..JobPlan::default() };
        let mut amount = Amount::new(&plan, &[Span { begin: 0, length: 64 * KIB, beyond: 0 }]);
        let mut passes = Vec::new();
        loop {
            let here = amount.of_this_pass();
            if here > 0 {
                passes.push(here / KIB);
            }
            if !amount.begins_another(here.next_multiple_of(4 * KIB)) {
                return passes;
            }
        }
    }

    fn duration(io_size: Option<Size>, loops: u32) -> Duration {
        Duration { io_size, loops, ..Duration::default() }
    }

    #[test]
    fn the_passes_are_those_of_fio() {
        let bytes = |kib: u64| Some(Size::Bytes(Bytes(kib * KIB)));
        assert_eq!(passes(duration(None, 1), Access::Read), [64]);
        assert_eq!(passes(duration(None, 3), Access::Read), [64, 64, 64]);
        assert_eq!(passes(duration(bytes(160), 1), Access::Read), [64, 64, 32]);
        assert_eq!(passes(duration(bytes(160), 2), Access::Read), [64, 64, 64]);
        assert_eq!(passes(duration(bytes(160), 3), Access::Read), [64, 64, 64], "not three times 160");
        assert_eq!(passes(duration(bytes(20), 2), Access::Read), [40]);
        assert_eq!(passes(duration(Some(Size::Percent(25)), 2), Access::Read), [16, 16]);
        assert_eq!(passes(duration(None, 1), Access::TrimWrite), [128], "each block is trimmed and written");
    }

    #[test]
    fn a_pass_without_io_is_the_last() {
        let plan = JobPlan { duration: duration(Some(Size::Bytes(Bytes(1 << 30))), 1), ..JobPlan::default() };
        let mut amount = Amount::new(&plan, &[Span { begin: 0, length: 64 * KIB, beyond: 0 }]);
        assert!(amount.begins_another(4 * KIB));
        assert!(!amount.begins_another(0));
    }
}
