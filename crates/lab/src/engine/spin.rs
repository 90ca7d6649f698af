//! Burns a fixed number of TSC cycles for each I/O: a known cost that every meter must find.

use super::traits::{Perform, Sync};
use super::{OpenEngine, Setup, ready};
use crate::error::Result;
use crate::workload::request_source::Request;
use sys::burner::Burner;

struct Spin {
    burner: Burner,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    // Calibrated, so that the known cost is the real cost.
    let burner = Burner::calibrated(setup.plan.own.spin_cycles).burner;
    Ok(ready(Spin { burner }, setup.plan.depth.in_flight))
}

impl Perform for Spin {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        self.burner.burn();
        std::hint::black_box(request).length.cast_signed()
    }

    fn sync(&mut self, _: u32, _: Sync) -> std::io::Result<bool> {
        Ok(true)
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}
