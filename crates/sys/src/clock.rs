//! Clocks: the time-stamp counter for timestamps in the measured loop, the kernel's clocks for everything else.

use std::io;

/// Reads the time-stamp counter, in ticks. Not serialising: neighbouring instructions may move across it by some tens
/// of cycles, which is less than the shortest timed event (one I/O).
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: RDTSC has no operands and accesses no memory; Linux leaves it enabled in user mode (this process never
    // disables it with PR_SET_TSC).
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads the virtual counter register, which Linux leaves readable in user mode.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        monotonic_nanos()
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_nanos() -> u64 {
    nanos(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// CPU time of the calling thread, in nanoseconds.
pub fn own_thread_nanos() -> u64 {
    nanos(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
}

/// CPU time of all threads of a process, including ended ones, in nanoseconds; `None` if there is no such process.
pub fn process_nanos(process: u32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: writes a clock id to `clock`, which is valid for it.
    let known = unsafe { libc::clock_getcpuclockid(process.try_into().ok()?, &mut clock) } == 0;
    if known { read(clock).ok() } else { None }
}

fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to fill; the clock of what has ended is an error.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

fn nanos(time: rustix::time::Timespec) -> u64 {
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// One instant on both clocks, to convert between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub nanos: u64,
    /// Time-stamp counter.
    pub ticks: u64,
}

impl Instant {
    /// The current instant. Of several attempts, keeps the one whose two tick readings are closest, so that an
    /// interrupt between the clocks does not matter.
    pub fn now() -> Self {
        let attempt = || {
            let before = ticks();
            let nanos = monotonic_nanos();
            let after = ticks();
            (after.saturating_sub(before), Self { nanos, ticks: before + after.saturating_sub(before) / 2 })
        };
        let first = attempt();
        (0..7).map(|_| attempt()).fold(first, |best, next| if next.0 < best.0 { next } else { best }).1
    }

    /// Ticks per second between two instants. Accurate to about 100 ns ÷ the time between them: 10 ppm after 10 ms.
    pub fn hertz_since(self, earlier: Self) -> Option<f64> {
        let nanos = self.nanos.checked_sub(earlier.nanos).filter(|nanos| *nanos > 0)?;
        Some(self.ticks.saturating_sub(earlier.ticks) as f64 * 1e9 / nanos as f64)
    }
}

/// The CPU clock of another thread of this process.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock {
    id: libc::clockid_t,
}

impl ThreadClock {
    /// The calling thread's clock, for other threads to read.
    pub fn of_caller() -> Self {
        Self::of_thread(crate::schedule::thread_id().unsigned_abs())
    }

    /// The clock of the thread of this process with this kernel id.
    pub fn of_thread(thread: u32) -> Self {
        // The kernel's encoding of a per-thread scheduler clock: (~tid << 3) | CPUCLOCK_PERTHREAD_MASK
        // (4) | CPUCLOCK_SCHED (2), include/linux/posix-timers.h. pthread_getcpuclockid does the same.
        Self { id: (!thread.cast_signed() << 3) | 6 }
    }

    /// CPU time so far in nanoseconds; an error if the thread has ended.
    pub fn nanos(self) -> io::Result<u64> {
        read(self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_clock_read_by_another_thread_advances_with_its_work() {
        let (send, receive) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            send.send(ThreadClock::of_caller()).unwrap();
            let begin = own_thread_nanos();
            while own_thread_nanos() - begin < 20_000_000 {}
            std::thread::park_timeout(std::time::Duration::from_millis(200));
        });
        let clock = receive.recv().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        while clock.nanos().unwrap() < 20_000_000 {
            std::thread::yield_now();
        }
        worker.thread().unpark();
        worker.join().unwrap();
        // A thread may be joined shortly before the kernel removes its clock.
        let joined = std::time::Instant::now();
        while clock.nanos().is_ok() {
            assert!(joined.elapsed().as_secs() < 20, "the clock of an ended thread is still readable");
            std::thread::yield_now();
        }
    }

    #[test]
    fn ticks_have_a_rate() {
        let begin = Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(10));
        let hertz = Instant::now().hertz_since(begin).unwrap();
        assert!((1e6..1e11).contains(&hertz), "{hertz}");
    }
}
