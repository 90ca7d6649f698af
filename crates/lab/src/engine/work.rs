//! Executes a fixed number of dependent instructions for each I/O. Unlike `spin`, which waits for the clock, it takes
//! longer on a slower CPU, so it shows how much a meter disturbs.

use super::traits::{Perform, Sync};
use super::{OpenEngine, Setup, ready};
use crate::error::Result;
use crate::workload::request_source::Request;

struct Work {
    steps: u64,
    state: u64,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    Ok(ready(Work { steps: setup.plan.own.work_steps, state: 1 }, setup.plan.depth.in_flight))
}

impl Perform for Work {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        for _ in 0..self.steps {
            // Each step needs the previous one. The black box keeps the compiler from folding them.
            self.state = std::hint::black_box(self.state.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        std::hint::black_box(request).length.cast_signed()
    }

    fn sync(&mut self, _: u32, _: Sync) -> std::io::Result<bool> {
        Ok(true)
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}
