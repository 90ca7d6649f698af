//! Times five small operations, so that a record shows when the machine changed speed.
//!
//! Each figure is the median of several short batches, so that a batch that an interrupt or another task disturbed does
//! not count. Compare a figure only with itself: before and after, and from run to run on one host. The batch sizes are
//! part of its meaning and are stated with each. All five together take some 8 ms on an idle machine and are cut short
//! before 25 ms on a busy one, because they run twice in each measurement.

use model::reading::Reading;
use model::record::Canaries;
use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

/// Batches per median; odd, so that the median is one of them.
const BATCHES: usize = 9;
/// Time limit of one canary. Most need a tenth of it.
const BUDGET: Duration = Duration::from_micros(4_500);

/// Runs all five.
pub fn run() -> Canaries {
    let cpus = sys::schedule::allowed_cpus();
    Canaries {
        null_system_call_nanos: null_system_call_nanos(),
        context_switch_nanos: Reading::from(cpu(&cpus, 0).and_then(|cpu| hand_over_nanos(cpu, cpu))),
        wake_up_nanos: Reading::from(cpu(&cpus, 1).and_then(|there| hand_over_nanos(cpu(&cpus, 0)?, there))),
        clock_read_nanos: clock_read_nanos(),
        memcpy_gigabytes_per_second: memcpy_gigabytes_per_second(),
    }
}

/// The CPU at this place among those that this process may use.
fn cpu(cpus: &io::Result<Vec<u32>>, place: usize) -> io::Result<u32> {
    let cpus = cpus.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let missing = match place {
        0 => "the kernel lists no CPU for this process",
        _ => {
            "a wake-up across CPUs needs two CPUs, and this process may use only one: allow it more (taskset, \
             cpuset)"
        }
    };
    cpus.get(place).copied().ok_or_else(|| io::Error::other(missing))
}

/// getppid is the cheapest call that the C library does not answer itself: kernel entry and exit, mitigations included.
/// 200 calls a batch.
pub fn null_system_call_nanos() -> f64 {
    const CALLS: u32 = 200;
    median_nanos(CALLS, || {
        for _ in 0..CALLS {
            black_box(std::os::unix::process::parent_id());
        }
    })
}

/// CLOCK_MONOTONIC through the vDSO where the clock source allows it. 500 readings a batch.
fn clock_read_nanos() -> f64 {
    const READINGS: u32 = 500;
    median_nanos(READINGS, || {
        for _ in 0..READINGS {
            black_box(Instant::now());
        }
    })
}

/// Bytes copied, each counted once, from one 16 KiB block to another. The blocks fit into the first cache levels, so
/// this shows the speed of the core, not of the memory. 64 copies a batch.
///
/// The blocks are at fixed places in their pages, half a page apart. The allocator's choice would differ from run to
/// run, and so would the number of loads that wait for a store to the same page offset.
fn memcpy_gigabytes_per_second() -> f64 {
    const COPIES: u32 = 64;
    const BLOCK_BYTES: usize = 16 << 10;
    const PAGE_BYTES: usize = 4 << 10;
    let mut memory = vec![1u8; 2 * BLOCK_BYTES + 2 * PAGE_BYTES];
    let first = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
    let (from, to) = memory.split_at_mut(first + BLOCK_BYTES);
    let blocks = from.last_chunk::<BLOCK_BYTES>().zip(to.get_mut(PAGE_BYTES / 2..));
    let Some((from, to)) = blocks.and_then(|(from, to)| Some((from, to.first_chunk_mut::<BLOCK_BYTES>()?))) else {
        return f64::NAN;
    };
    let nanos = median_nanos(COPIES, || {
        for _ in 0..COPIES {
            to.copy_from_slice(black_box(from));
            black_box(&mut *to);
        }
    });
    BLOCK_BYTES as f64 / nanos
}

/// Median over the batches of the time of one operation; a batch has `operations`.
fn median_nanos(operations: u32, mut batch: impl FnMut()) -> f64 {
    // Brings code and data into the caches; its time is not used.
    batch();
    let mut nanos = [0.0; BATCHES];
    for slot in &mut nanos {
        let begin = Instant::now();
        batch();
        *slot = begin.elapsed().as_nanos() as f64 / f64::from(operations);
    }
    median(&mut nanos)
}

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Half of the time in which a byte goes to another thread through a pipe and back: one write, one thread switch, one
/// read. 8 round trips a batch.
///
/// On one CPU the two threads take turns, and the switch is between them. On two CPUs the waiting thread leaves its CPU
/// idle, so that a wake-up includes the interrupt to the other CPU and its exit from the idle state, in a guest through
/// the hypervisor.
fn hand_over_nanos(here: u32, there: u32) -> io::Result<f64> {
    let (ping_end, ping) = io::pipe()?;
    let (pong_end, pong) = io::pipe()?;
    // Each thread owns its ends of the pipes: a thread that fails closes its ends, and the other sees end of file.
    thread::scope(|scope| {
        let echo = thread::Builder::new().spawn_scoped(scope, move || echo(there, ping_end, pong))?;
        let timed = thread::Builder::new().spawn_scoped(scope, move || round_trips(here, ping, pong_end))?;
        let nanos = timed.join().unwrap_or_else(|_| Err(io::Error::other("the timing thread panicked")));
        let echoed = echo.join().unwrap_or_else(|_| Err(io::Error::other("the echoing thread panicked")));
        // If the echo failed, the error of the other thread is only a consequence.
        echoed.and(nanos).map(|round_trip| round_trip / 2.0)
    })
}

fn echo(cpu: u32, mut from: PipeReader, mut to: PipeWriter) -> io::Result<()> {
    sys::schedule::pin_to(&[cpu])?;
    let mut byte = [0u8];
    while from.read(&mut byte)? == byte.len() {
        to.write_all(&byte)?;
    }
    Ok(())
}

/// Median time of a round trip over as many batches as fit into the budget.
fn round_trips(cpu: u32, mut to: PipeWriter, mut from: PipeReader) -> io::Result<f64> {
    const TRIPS: u32 = 8;
    sys::schedule::pin_to(&[cpu])?;
    let deadline = Instant::now() + BUDGET;
    let mut batch = || -> io::Result<(f64, ControlFlow<()>)> {
        let begin = Instant::now();
        for done in 1..=TRIPS {
            to.write_all(&[0])?;
            from.read_exact(&mut [0])?;
            // On a busy machine a single trip can take many time slices. The check reads the clock once, a hundredth of
            // a trip.
            let now = Instant::now();
            if now >= deadline {
                return Ok(((now - begin).as_nanos() as f64 / f64::from(done), ControlFlow::Break(())));
            }
        }
        Ok((begin.elapsed().as_nanos() as f64 / f64::from(TRIPS), ControlFlow::Continue(())))
    };
    // The first batch starts the other thread; it counts only if there is no time for a second one.
    let (first, mut flow) = batch()?;
    let mut nanos = Vec::with_capacity(BATCHES);
    while flow.is_continue() && nanos.len() < BATCHES {
        let (value, next) = batch()?;
        nanos.push(value);
        flow = next;
    }
    Ok(if nanos.is_empty() { first } else { median(&mut nanos) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_canary_gives_a_sensible_figure_or_a_reason() {
        let canaries = run();
        assert!((10.0..1e5).contains(&canaries.null_system_call_nanos), "{canaries:?}");
        assert!((1.0..1e5).contains(&canaries.clock_read_nanos), "{canaries:?}");
        assert!((0.1..1e3).contains(&canaries.memcpy_gigabytes_per_second), "{canaries:?}");
        for reading in [&canaries.context_switch_nanos, &canaries.wake_up_nanos] {
            match reading {
                Reading::Taken(nanos) => assert!((100.0..1e8).contains(nanos), "{canaries:?}"),
                Reading::Unavailable(reason) => assert!(reason.contains("CPU"), "{reason}"),
            }
        }
    }

    #[test]
    fn the_caller_s_affinity_is_unchanged() {
        let before = sys::schedule::allowed_cpus().unwrap();
        run();
        assert_eq!(sys::schedule::allowed_cpus().unwrap(), before);
    }

    #[test]
    fn an_absent_cpu_is_an_error_and_no_deadlock() {
        let cpu = sys::schedule::allowed_cpus().unwrap()[0];
        assert!(hand_over_nanos(cpu, 1_000_000).is_err());
        assert!(hand_over_nanos(1_000_000, cpu).is_err());
    }

    #[test]
    fn one_cpu_has_no_wake_up_across_cpus() {
        assert!(cpu(&Ok(vec![3]), 1).unwrap_err().to_string().contains("needs two"));
        assert!(cpu(&Ok(Vec::new()), 0).is_err());
    }

    #[test]
    fn the_median_ignores_a_disturbed_batch() {
        assert_eq!(median(&mut [1.0, 9e9, 2.0]), 2.0);
        assert!(median(&mut []).is_nan());
    }
}
