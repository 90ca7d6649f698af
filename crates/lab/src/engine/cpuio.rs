//! Uses a CPU for a time that each I/O stands for, and no storage; the pace of the job leaves the CPU idle between them.

use super::traits::{Perform, Sync};
use super::{OpenEngine, Setup};
use crate::error::Result;
use crate::workload::permutation::split_mix;
use crate::workload::request_source::Request;
use sys::burner::Burner;
use sys::clock::ticks;

/// Numbers that are sorted: as many as fit into a first cache.
const NUMBERS: usize = 4096;

struct Cpuio {
    burner: Burner,
    /// Ticks of an I/O.
    chunk: u64,
    /// `cpumode=qsort`.
    numbers: Option<Vec<u64>>,
    seed: u64,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let cpu = setup.plan.cpu;
    let chunk = setup.clock.ticks(cpu.chunk).0;
    let numbers = cpu.sorts.then(|| vec![0; NUMBERS]);
    let mut engine = Cpuio { burner: Burner::uncalibrated(chunk), chunk, numbers, seed: 1 };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Cpuio {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Self { burner, chunk, numbers, seed } = self;
        match numbers {
            None => burner.burn(),
            Some(numbers) => {
                let begin = ticks();
                while ticks().saturating_sub(begin) < *chunk {
                    numbers.fill_with(|| split_mix(seed));
                    std::hint::black_box(&mut *numbers).sort_unstable();
                }
            }
        }
        std::hint::black_box(request);
        0
    }

    fn sync(&mut self, _: u32, _: Sync) -> std::io::Result<bool> {
        Ok(true)
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}
