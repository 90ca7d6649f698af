//! Completes every I/O at once: what is left is the generator's own cost.

use super::traits::{Perform, Sync};
use super::{Ready, Setup, ready};
use crate::error::Result;
use crate::workload::request_source::Request;

struct Null;

pub(super) fn open(setup: &Setup) -> Result<Ready> {
    Ok(ready(Null, setup.plan.depth.in_flight))
}

impl Perform for Null {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        // The request must be made, though nobody needs it: else the floor would lack its cost.
        std::hint::black_box(request).length.cast_signed()
    }

    fn sync(&mut self, _: Sync) -> std::io::Result<()> {
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}
