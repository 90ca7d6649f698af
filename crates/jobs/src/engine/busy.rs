//! Engines without I/O. At a depth of several, they show the overhead floor of a queue.

use super::{Immediate, OpenEngine, Perform};
use crate::worker_pool::JobCopy;
use crate::workload::request_source::Request;
use lab::error::Result;
use sys::burner::Burner;

/// Completes every I/O at once: only the cost of the load generator is left.
pub(super) fn null(copy: &JobCopy) -> Result<OpenEngine> {
    ready(copy, || {})
}

/// Burns a fixed number of TSC cycles for each I/O: a known cost that every meter must find.
pub(super) fn spin(copy: &JobCopy) -> Result<OpenEngine> {
    // Calibrated, so that the known cost is the real cost.
    let burner = Burner::calibrated(copy.plan.own.spin_cycles).burner;
    ready(copy, move || burner.burn())
}

/// Executes a fixed number of dependent instructions for each I/O. Unlike `spin`, which waits for the clock, it takes
/// longer on a slower CPU, so it shows how much a meter disturbs.
pub(super) fn work(copy: &JobCopy) -> Result<OpenEngine> {
    let (steps, mut state) = (copy.plan.own.work_steps, 1_u64);
    ready(copy, move || {
        for _ in 0..steps {
            // Each step needs the previous one. The black box keeps the compiler from folding them.
            state = std::hint::black_box(state.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
    })
}

fn ready(copy: &JobCopy, work: impl FnMut() + 'static) -> Result<OpenEngine> {
    let (mut engine, depth) = (Busy(work), copy.plan.depth.in_flight);
    if depth <= 1 {
        return Ok(Box::new(move |worker| worker.run_direct(&mut engine)));
    }
    Ok(Box::new(move |worker| worker.run_queued(&mut Immediate::new(&mut engine, depth))))
}

struct Busy<W>(W);

impl<W: FnMut()> Perform for Busy<W> {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        (self.0)();
        // Make the compiler build the request, because the floor includes that cost.
        std::hint::black_box(request).length.cast_signed()
    }
}
