//! perf events of one CPU: hardware counters, and samples of what runs.
//!
//! Every event belongs to a CPU, not to a task: iotoll charges the whole machine, including interrupts, kernel threads,
//! and servers. The kernel allows that only to root, to processes with CAP_PERFMON, or with `perf_event_paranoid` below
//! 1; an event that cannot be opened reports the reason and a fix ([`why_unavailable`]).

mod hardware_counter;
mod stack_sampler;
mod tracepoint;

pub use hardware_counter::{Hardware, HardwareCounter};
pub use stack_sampler::{
    DEFAULT_PERIOD_NANOS, Forked, Mapped, Named, Sample, SampleEvent, StackSampler, UserRegisters,
};
pub use tracepoint::{TaskTracepoint, available_tracepoints};

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct perf_event_attr` of include/uapi/linux/perf_event.h, up to its fourth version (PERF_ATTR_SIZE_VER3, 96
/// bytes, Linux 3.7): nothing newer is needed.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    /// A bit field in the header; bit 0 is the lowest on the supported little-endian machines.
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
}

const ATTRIBUTES_SIZE: u32 = 96;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_SIZE as usize);

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const FORMAT_TOTAL_TIME_ENABLED: u64 = 1 << 0;
const FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const FLAG_DISABLED: u64 = 1 << 0;
/// Mappings of files, in the second form, which has the protection.
const FLAG_MMAP: u64 = 1 << 8;
const FLAG_MMAP2: u64 = 1 << 23;
/// Names of tasks, with a mark where a program was started.
const FLAG_COMM: u64 = 1 << 9;
const FLAG_COMM_EXEC: u64 = 1 << 24;
/// Processes and threads that begin.
const FLAG_TASK: u64 = 1 << 13;
const FLAG_EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const OPEN_CLOEXEC: libc::c_ulong = 1 << 3;

/// Opens an event that counts everything that runs on `cpu`.
fn open_on_cpu(attributes: Attributes, cpu: u32) -> io::Result<OwnedFd> {
    const ANY_TASK: libc::pid_t = -1;
    let cpu = libc::c_int::try_from(cpu).map_err(|_| described(io::Error::from_raw_os_error(libc::ENODEV)))?;
    open_event(attributes, ANY_TASK, cpu)
}

/// Opens an event of a task, or of all (−1), on a CPU, or on all (−1).
fn open_event(mut attributes: Attributes, task: libc::pid_t, cpu: libc::c_int) -> io::Result<OwnedFd> {
    const NO_GROUP: libc::c_int = -1;
    attributes.size = ATTRIBUTES_SIZE;
    // SAFETY: `attributes` is a live structure of the size that it states; the kernel reads it, and writes at most its
    // size field, only during the call.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw mut attributes, task, cpu, NO_GROUP, OPEN_CLOEXEC) };
    match libc::c_int::try_from(fd) {
        // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(described(io::Error::last_os_error())),
    }
}

/// Calls an ioctl without argument on a perf event.
fn control(fd: &OwnedFd, request: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the descriptor stays open while `fd` is borrowed, and the request accesses no memory.
    let status = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, 0) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The same error with its meaning for perf events in the text.
fn described(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(errno) => io::Error::new(error.kind(), why_unavailable(errno)),
        None => error,
    }
}

/// The meaning of an `errno` from opening a perf event on a CPU, and a fix.
pub fn why_unavailable(errno: i32) -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    explain(errno, paranoid.as_deref().map(str::trim))
}

const NO_COUNTER: &str = "this machine has no hardware cycle counter; in a virtual machine only \
                          the host can provide one (QEMU `-cpu host,pmu=on`; on a cloud a metal instance)";
const NO_MEMORY: &str = "no memory for the sample buffer: raise `sysctl kernel.perf_event_mlock_kb`, or \
                         run as root";

fn explain(errno: i32, paranoid: Option<&str>) -> String {
    match errno {
        libc::EACCES | libc::EPERM => {
            let paranoid = paranoid.unwrap_or("unreadable");
            format!(
                "the kernel refuses perf events of a whole CPU to this user (perf_event_paranoid is \
                 {paranoid}, 0 or less is needed): run as root, or give CAP_PERFMON, or \
                 `sysctl kernel.perf_event_paranoid=0`; in a container the seccomp profile must allow \
                 perf_event_open as well"
            )
        }
        libc::ENOENT | libc::EOPNOTSUPP => NO_COUNTER.to_owned(),
        libc::ENOSYS => "the kernel was built without perf events (CONFIG_PERF_EVENTS)".to_owned(),
        libc::ENODEV => "there is no such CPU, or it is offline".to_owned(),
        libc::EMFILE | libc::ENFILE => "too many files are open (one per CPU is needed): raise `ulimit -n`".to_owned(),
        libc::ENOMEM => NO_MEMORY.to_owned(),
        libc::EBUSY => "another program uses the hardware counters exclusively: stop it".to_owned(),
        _ => {
            let paranoid = paranoid.unwrap_or("unreadable");
            format!(
                "cannot open perf events: {} (perf_event_paranoid is {paranoid})",
                io::Error::from_raw_os_error(errno)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_sysctl_its_value_and_the_fix() {
        let text = explain(libc::EACCES, Some("2"));
        assert!(text.contains("perf_event_paranoid is 2"), "{text}");
        assert!(text.contains("sysctl kernel.perf_event_paranoid=0"), "{text}");
    }

    #[test]
    fn an_unexpected_error_is_reported_as_text() {
        let text = explain(libc::EIO, None);
        assert!(text.contains("Input/output error"), "{text}");
    }

    #[test]
    fn a_missing_cpu_is_reported_as_such() {
        let error = HardwareCounter::open_cpu(u32::MAX, Hardware::Cycles).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("there is no such CPU, or it is offline"));
    }
}
