//! Burns a stated number of TSC cycles for each I/O: a cost that every meter must find.

use super::{Ready, Setup, ready};
use crate::error::Result;
use crate::workload::request_source::Request;
use crate::workload::worker::{Perform, Sync};
use sys::clock::burn;

struct Spin {
    target_ticks: u64,
}

pub(super) fn open(setup: &Setup) -> Result<Ready> {
    let target_ticks = setup.plan.spin_cycles.saturating_sub(overhead_ticks());
    Ok(ready(Spin { target_ticks }, setup.plan.depth.in_flight))
}

/// By how much a burn is longer than it was asked to be: a reading of the clock, and half a turn of the
/// loop. Taken off the target, so that the cost known is the cost paid. The smallest of several batches,
/// because interrupts only ever add.
fn overhead_ticks() -> u64 {
    const BATCHES: u64 = 50;
    const BURNS: u64 = 100;
    const ASKED: u64 = 1000;
    let batch = |_| {
        let begin = sys::clock::ticks();
        (0..BURNS).for_each(|_| burn(ASKED));
        sys::clock::ticks().saturating_sub(begin) / BURNS
    };
    (0..BATCHES).map(batch).min().unwrap_or(ASKED).saturating_sub(ASKED)
}

impl Perform for Spin {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        burn(self.target_ticks);
        std::hint::black_box(request).length.cast_signed()
    }

    fn sync(&mut self, _: Sync) -> std::io::Result<()> {
        Ok(())
    }

    fn crossings(&self) -> Option<u64> {
        None
    }
}
