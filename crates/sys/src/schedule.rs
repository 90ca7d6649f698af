//! Affinity and scheduling class of threads, and the CPUs of the machine.

use rustix::thread::CpuSet;
use std::io;

/// The kernel's id of the calling thread.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// The CPUs that the calling thread may run on, ascending.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    Ok(cpus_of(&rustix::thread::sched_getaffinity(None)?))
}

/// The CPUs that a process's first thread may run on, ascending.
pub fn allowed_cpus_of(process: u32) -> io::Result<Vec<u32>> {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    let process = process.ok_or(io::ErrorKind::NotFound)?;
    Ok(cpus_of(&rustix::thread::sched_getaffinity(Some(process))?))
}

fn cpus_of(set: &CpuSet) -> Vec<u32> {
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// The CPU that the calling thread runs on; it may move at any time.
pub fn current_cpu() -> Option<u32> {
    u32::try_from(rustix::thread::sched_getcpu()).ok()
}

/// The CPUs that are online, ascending, whether or not the caller may run on them.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    listed_cpus("/sys/devices/system/cpu/online")
}

/// The CPUs that may ever be online, ascending.
pub fn possible_cpus() -> io::Result<Vec<u32>> {
    listed_cpus("/sys/devices/system/cpu/possible")
}

fn listed_cpus(path: &str) -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string(path)?;
    parse_cpu_list(text.trim()).ok_or_else(|| io::Error::other(format!("cannot parse {path}: '{}'", text.trim())))
}

/// Parses the kernel's list format: `0-3,8`.
fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(cpus)
}

/// Pins the calling thread to these CPUs.
pub fn pin_to(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        let index = usize::try_from(cpu).ok().filter(|index| *index < CpuSet::MAX_CPU);
        set.set(index.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("no CPU {cpu}")))?);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The real-time priority of [`Class::Watching`].
pub const WATCHING: u8 = 98;

/// A scheduling class for the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// SCHED_FIFO at its lowest priority: preempts every ordinary thread. Requires CAP_SYS_NICE or an RLIMIT_RTPRIO.
    /// Threads and processes that it starts are ordinary again.
    RealTime,
    /// The same at a priority above those of loads and of threaded interrupts, for threads that run for some milliseconds at a time. The
    /// kernel's own watchdogs are above it.
    Watching,
    /// SCHED_OTHER, the default class.
    Ordinary,
    /// SCHED_IDLE: runs only if nothing else wants the CPU.
    Idle,
}

/// Sets the scheduling class of the calling thread.
pub fn set_class(class: Class) -> io::Result<()> {
    set_class_of(0, class)
}

/// Sets the scheduling class of the calling thread until what it returns is dropped; `None` if the class is not allowed.
#[must_use = "the thread is ordinary again when it is dropped"]
pub fn within_class(class: Class) -> Option<OrdinaryAgain> {
    set_class(class).ok().map(|()| OrdinaryAgain)
}

/// Makes the thread that drops it ordinary.
pub struct OrdinaryAgain;

impl Drop for OrdinaryAgain {
    fn drop(&mut self) {
        // Lowering the priority is always allowed.
        let _ = set_class(Class::Ordinary);
    }
}

/// Sets the scheduling class of a thread; 0 is the calling one.
pub fn set_class_of(thread: i32, class: Class) -> io::Result<()> {
    let (policy, priority) = match class {
        Class::RealTime => (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1),
        Class::Watching => (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, WATCHING.into()),
        Class::Ordinary => (libc::SCHED_OTHER, 0),
        Class::Idle => (libc::SCHED_IDLE, 0),
    };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: `parameters` is a valid structure for the call.
    if unsafe { libc::sched_setscheduler(thread, policy, &parameters) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_use_the_kernel_format() {
        assert_eq!(parse_cpu_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpu_list("x"), None);
        let (online, possible) = (online_cpus().unwrap(), possible_cpus().unwrap());
        assert!(!online.is_empty());
        assert!(online.iter().all(|cpu| possible.contains(cpu)));
    }

    #[test]
    fn the_kernel_reports_the_pinned_cpus() {
        std::thread::spawn(|| {
            let first = *allowed_cpus().unwrap().first().unwrap();
            pin_to(&[first]).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [first]);
            assert_eq!(current_cpu(), Some(first));
            assert_eq!(allowed_cpus_of(thread_id().unsigned_abs()).unwrap(), [first]);
            assert!(pin_to(&[u32::MAX]).is_err());
            set_class(Class::Idle).unwrap();
            set_class_of(thread_id(), Class::Ordinary).unwrap();
            assert!(set_class_of(i32::MAX, Class::Idle).is_err());
        })
        .join()
        .unwrap();
    }
}
