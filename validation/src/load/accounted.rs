//! Loads whose CPU time is known from clocks of the kernel that the exact accounts do not use. Each writes what these clocks say to a file.

mod truth;

use super::{argument, bare_pread, udp_loopback};
use anyhow::Context;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sys::process::How;
use truth::{Clocks, Threads, Truth};

/// Steps, or system calls, between two looks at a clock.
const BETWEEN_LOOKS: u64 = 100_000;
/// Bytes of a read by a worker, which takes much longer than the worker's wake-up.
const LARGE: &str = "1048576";
/// How often threads are read: they end with their program.
const LOOK_EVERY: Duration = Duration::from_millis(10);

fn seconds(arguments: &[&str]) -> anyhow::Result<Duration> {
    Ok(Duration::try_from_secs_f64(argument(arguments, 0)?)?)
}

/// `SECONDS FILE`: computes.
pub fn spin(arguments: &[&str]) -> anyhow::Result<()> {
    let (before, length, begin) = (Clocks::now()?, seconds(arguments)?, Instant::now());
    let mut value: u64 = 1;
    while begin.elapsed() < length {
        for _ in 0..BETWEEN_LOOKS {
            value = black_box(value).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
    }
    Truth::since(&before)?.write(arguments)
}

/// `SECONDS FILE`: asks for its parent.
pub fn system_calls(arguments: &[&str]) -> anyhow::Result<()> {
    let (before, length, begin) = (Clocks::now()?, seconds(arguments)?, Instant::now());
    while begin.elapsed() < length {
        for _ in 0..BETWEEN_LOOKS {
            black_box(rustix::process::getppid());
        }
    }
    Truth::since(&before)?.write(arguments)
}

/// `DATAGRAMS FILE`: sends over loopback. Both threads on one CPU: the scheduler charges what an idle CPU does between the wake-up of a task
/// and its first instruction to the task, and no account does.
pub fn datagrams(arguments: &[&str]) -> anyhow::Result<()> {
    let before = Clocks::now()?;
    sys::schedule::pin_to(&sys::schedule::allowed_cpus()?.last().copied().into_iter().collect::<Vec<_>>())?;
    udp_loopback::run(arguments)?;
    Truth::since(&before)?.write(arguments)
}

/// `SECONDS FILE MICROS`: sleeps until a timer expires, again and again.
pub fn timers(arguments: &[&str]) -> anyhow::Result<()> {
    let length = seconds(arguments)?;
    let every: u32 = argument(arguments, 2)?;
    let period = Timespec { tv_sec: 0, tv_nsec: i64::from(every) * 1000 };
    let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let (before, begin) = (Clocks::now()?, Instant::now());
    let times = Itimerspec { it_interval: period, it_value: period };
    rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
    let mut expired = 0;
    while begin.elapsed() < length {
        let mut count = [0; 8];
        rustix::io::read(&timer, &mut count)?;
        expired += u64::from_ne_bytes(count);
    }
    Truth { expired, ..Truth::since(&before)? }.write(arguments)
}

/// `SECONDS FILE WORD…`: a program whose I/O io_uring's workers do.
pub fn ring_workers(arguments: &[&str]) -> anyhow::Result<()> {
    let program = arguments.get(2..).unwrap_or_default();
    let (name, words) = program.split_first().context("a program and its words")?;
    let before = Clocks::now()?;
    let child = Command::new(name).args(words).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let (process, over) = (child.id(), AtomicBool::new(false));
    // The kernel tells the whole process's time when it ends, and that of its other threads only while it runs; they have little.
    let (ended, others) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut others = Threads::default();
            while !over.load(Ordering::Relaxed) {
                others.read_of(process, |name| !name.starts_with("iou-"));
                std::thread::sleep(LOOK_EVERY);
            }
            others.nanos()
        });
        let ended = sys::process::wait(child);
        over.store(true, Ordering::Relaxed);
        (ended, reading.join())
    });
    let (ended, others) = (ended?, others.ok().context("the reader panicked")?);
    anyhow::ensure!(ended.how == How::Status(0), "{name}: {:?}", ended.how);
    let truth = Truth::since(&before)?;
    let own_nanos = truth.own_nanos + ended.cpu_nanos;
    Truth { own_nanos, workers_nanos: ended.cpu_nanos.saturating_sub(others), ..truth }.write(arguments)
}

/// `SECONDS FILE DEVICE`: reads a device whose I/O the kernel's workers do.
pub fn kernel_workers(arguments: &[&str]) -> anyhow::Result<()> {
    let [length, _, device, ..] = arguments else { anyhow::bail!("the device is missing") };
    let mut workers = Threads::default();
    let is_worker = |name: &str| name.starts_with("kworker/");
    workers.read_all(is_worker);
    let (before, earlier) = (Clocks::now()?, workers.nanos());
    bare_pread::run(&[device, length, LARGE, "direct"])?;
    workers.read_all(is_worker);
    Truth { workers_nanos: workers.nanos().saturating_sub(earlier), ..Truth::since(&before)? }.write(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_of_a_load_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("truth");
        let file = path.to_str().unwrap();
        let read = || serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(&path).unwrap()).unwrap();
        timers(&["0.05", file, "1000"]).unwrap();
        let truth = read();
        assert!(truth["expired"].as_u64() >= Some(20), "{truth:?}");
        spin(&["0.05", file]).unwrap();
        assert!(read()["own_nanos"].as_u64() >= truth["own_nanos"].as_u64());
        assert!(kernel_workers(&["0.05", file]).is_err());
    }
}
