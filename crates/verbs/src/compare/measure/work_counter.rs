//! What a sliced command has done so far, by each counter of `model::experiment::work_counter`.
//!
//! Task accounting (/proc/PID/io) counts the system calls that read and write, and sendfile twice; it knows nothing of
//! io_uring and libaio. Rings of io_uring show their completions in /proc/PID/fdinfo. Counters of the machine (a block
//! device, an interface, a probe) count only while the command is awake.

mod tcp_sockets;
mod udp_sockets;

use crate::compare::record::CommandReading;
use lab::canary;
use lab::command::Counter;
use lab::error::{Error, Result};
use lab::proc_files::of_lines;
use model::experiment::WorkCounter;
use model::experiment::work_counter::{self, COUNTERS_BY_PREFERENCE, Counted};
use model::unit::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::clock::{monotonic_nanos, process_nanos};
use sys::perf::TaskTracepoint;
use tcp_sockets::TcpSockets;
use udp_sockets::UdpSockets;

/// Where a count comes from.
pub(super) enum Source {
    /// One of [`COUNTERS_BY_PREFERENCE`], by its place.
    Own(usize),
    /// Of the machine.
    Kernel(Counter),
}

impl Source {
    /// It counts system calls.
    fn is_system_calls(&self) -> bool {
        self.is_row(work_counter::SYSTEM_CALLS)
    }

    /// It counts datagrams of a network namespace.
    fn is_datagrams(&self) -> bool {
        self.is_row("udp")
    }

    fn is_row(&self, name: &str) -> bool {
        let Self::Own(place) = self else { return false };
        COUNTERS_BY_PREFERENCE.get(*place).is_some_and(|row| row.name == name)
    }

    /// Time that a count takes in the counted program, in nanoseconds, if counting is not free. Measured here, on the cheapest
    /// system call.
    pub fn nanos_per_count(&self) -> Option<f64> {
        /// One pair may fall into a change of the CPU's speed.
        const PAIRS: usize = 9;
        if !self.is_system_calls() {
            return None;
        }
        let this_thread = u32::try_from(rustix::thread::gettid().as_raw_pid()).ok()?;
        let mut differences = Vec::new();
        for _ in 0..PAIRS {
            let free = canary::null_system_call_nanos();
            let counter = TaskTracepoint::open(this_thread, "raw_syscalls", "sys_enter").ok()?;
            differences.push(canary::null_system_call_nanos() - free);
            drop(counter);
        }
        Some(canary::median(&mut differences).max(0.0))
    }
}

/// A counter that the user named.
///
/// # Errors
/// When this machine does not have it.
pub(super) fn named(name: &str) -> Result<(Source, WorkCounter)> {
    let refused = |why: String| Error::Refused(format!("--count {name}: {why}"));
    let counter = |counts, what: &str| WorkCounter {
        name: name.to_owned(),
        counts,
        what: what.to_owned(),
        reason: work_counter::NAMED.to_owned(),
        nanos_per_count: None,
    };
    if let Some(place) = COUNTERS_BY_PREFERENCE.iter().position(|row| row.name == name) {
        let row = work_counter::find(name).ok_or_else(|| refused("is no counter".to_owned()))?;
        return Ok((Source::Own(place), counter(row.counts, row.what)));
    }
    let kernel: Counter = name.parse().map_err(|why| Error::Refused(format!("--count {why}")))?;
    kernel.read().map_err(refused)?;
    let what = match &kernel {
        Counter::Block(_) => "completed I/Os of the device, of all processes",
        Counter::Net(_) => "packets of the interface, of all processes",
        Counter::Probe(_) => "the probe, of the whole machine",
    };
    let what = format!("{what}{}", kernel.remark());
    Ok((Source::Kernel(kernel), counter(Counted::Ios, &what)))
}

/// The kernel shows nothing of a ring while a task submits to it (io_uring_show_fdinfo only tries the lock). A reading is tried
/// again at once this many times, because a submission takes microseconds, and then at intervals.
const IMMEDIATE_TRIES: u32 = 8;
const RING_INTERVAL: Duration = Duration::from_micros(50);
/// After this time the reading is not taken.
const RING_TIMEOUT: Duration = Duration::from_millis(5);

/// Completions of a ring of io_uring. The kernel's counter has 32 bits.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    last: u32,
    total: u64,
    /// Its descriptor is closed, or something else has its number. What it did still counts.
    closed: bool,
}

/// Reads what one command has done.
#[derive(Default)]
pub(super) struct WorkReader {
    rings: BTreeMap<PathBuf, Ring>,
    sockets: TcpSockets,
    datagrams: UdpSockets,
    system_calls: Option<TaskTracepoint>,
    /// Highest reading of each counter: what an ended process did is lost until its parent has waited for it.
    highest: BTreeMap<usize, u64>,
    /// Of a counter of the machine: its count while the command was awake, and its value when the command woke up.
    awake: u64,
    woke: Option<u64>,
}

fn cpu_nanos(processes: &[u32]) -> Option<Nanos> {
    processes.iter().map(|process| process_nanos(*process).map(Nanos)).sum()
}

/// Sums of /proc/PID/io over processes.
#[derive(Clone, Copy, Debug, Default)]
struct TaskIo {
    read: u64,
    written: u64,
    calls: u64,
    from_storage: u64,
    to_storage: u64,
}

impl WorkReader {
    /// Starts the counters that have to be opened before the command starts, in its first process: all of them for a
    /// rehearsal (`None`), otherwise the chosen one. A counter of system calls slows every system call of the machine.
    pub fn begin(&mut self, process: u32, chosen: Option<&Source>) {
        if chosen.is_none_or(Source::is_system_calls) {
            self.system_calls = TaskTracepoint::open(process, "raw_syscalls", "sys_enter").ok();
        }
    }

    /// Every counter of [`COUNTERS_BY_PREFERENCE`]; `None` where this machine has none.
    pub fn all(&mut self, processes: &[u32]) -> Vec<Option<u64>> {
        self.look_around(processes);
        let io = task_io(processes);
        self.datagrams.count();
        (0..COUNTERS_BY_PREFERENCE.len()).map(|place| self.own(place, io.as_ref())).collect()
    }

    /// Looks for new rings and sockets, which takes longer than a reading.
    pub fn look_around(&mut self, processes: &[u32]) {
        self.sockets.find(processes);
        self.datagrams.find(processes);
        for process in processes {
            let folder = PathBuf::from(format!("/proc/{process}"));
            let open = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
            for ring in open.filter(|file| is_ring_of_io_uring(&file.path())) {
                self.rings.entry(folder.join("fdinfo").join(ring.file_name())).or_default();
            }
        }
    }

    /// Whether a socket was found, of any kind.
    pub fn has_sockets(&self) -> bool {
        self.sockets.any()
    }

    /// Counters of the machine, or of a network namespace, start to count for this command. Without a source, all of the
    /// namespace's.
    pub fn wake(&mut self, source: Option<&mut Source>) {
        if source.as_deref().is_none_or(Source::is_datagrams) {
            self.datagrams.wake();
        }
        self.woke = source.and_then(|source| of_machine(source));
    }

    /// They do not count for this command any more.
    pub fn sleep(&mut self, source: Option<&mut Source>) {
        if source.as_deref().is_none_or(Source::is_datagrams) {
            self.datagrams.sleep();
        }
        if let Some(source) = source {
            self.awake = self.count_awake(source).unwrap_or(self.awake);
        }
        self.woke = None;
    }

    /// Why sockets of the command are not counted: they are in a network namespace that iotoll may not enter.
    pub fn out_of_reach(&self) -> Option<String> {
        self.sockets.out_of_reach()
    }

    fn count_awake(&self, source: &Source) -> Option<u64> {
        let since = match self.woke {
            Some(woke) => of_machine(source)?.saturating_sub(woke),
            None => 0,
        };
        Some(self.awake + since)
    }

    /// The chosen counter, and what task accounting tells.
    pub fn read(&mut self, processes: &[u32], source: &mut Source) -> CommandReading {
        let io = task_io(processes);
        if source.is_datagrams() {
            self.datagrams.count();
        }
        let (count, is_task) = match source {
            Source::Own(place) => (
                self.own(*place, io.as_ref()),
                COUNTERS_BY_PREFERENCE.get(*place).is_some_and(|row| work_counter::is_of_system_calls(row.name)),
            ),
            Source::Kernel(_) => (self.count_awake(source), false),
        };
        CommandReading {
            // After the count, because a ring may have to be waited for.
            at_nanos: Nanos(monotonic_nanos()),
            count,
            calls: io.filter(|_| is_task).map(|io| io.calls),
            segments: self.sockets.segments(),
            thread_nanos: cpu_nanos(processes),
            read_bytes: io.map(|io| Bytes(io.read)),
            storage_read: io.map(|io| Bytes(io.from_storage)),
        }
    }

    fn own(&mut self, place: usize, io: Option<&TaskIo>) -> Option<u64> {
        let count = match COUNTERS_BY_PREFERENCE.get(place)?.name {
            "io_uring" => self.completions()?,
            "task:both" => io?.read.saturating_add(io?.written),
            "task:read" => io?.read,
            "task:write" => io?.written,
            "task:storage" => io?.from_storage.saturating_add(io?.to_storage),
            "tcp" => self.sockets.moved()?,
            "udp" => self.datagrams.datagrams()?,
            work_counter::SYSTEM_CALLS => self.system_calls.as_ref()?.read().ok()?,
            _ => return None,
        };
        let highest = self.highest.entry(place).or_default();
        *highest = count.max(*highest);
        Some(*highest)
    }

    /// Completions of all rings; `None` if there is no ring, or one could not be read.
    fn completions(&mut self) -> Option<u64> {
        let begun = Instant::now();
        for (path, ring) in self.rings.iter_mut().filter(|(_, ring)| !ring.closed) {
            match ring_tail(path, begun) {
                RingReading::Tail(tail) => {
                    ring.total += u64::from(tail.wrapping_sub(ring.last));
                    ring.last = tail;
                }
                RingReading::Closed => ring.closed = true,
                RingReading::Busy => return None,
            }
        }
        (!self.rings.is_empty()).then(|| self.rings.values().map(|ring| ring.total).sum())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RingReading {
    Tail(u32),
    /// It is not there any more.
    Closed,
    /// A task kept submitting to it.
    Busy,
}

/// Reads a ring between two submissions; `begun` is when the reading of all rings began.
fn ring_tail(path: &Path, begun: Instant) -> RingReading {
    let mut tries = 0;
    loop {
        let Ok(text) = fs::read_to_string(path) else { return RingReading::Closed };
        if let Some(tail) = tail(&text) {
            return RingReading::Tail(tail);
        }
        if !is_ring_of_io_uring(&descriptor(path)) {
            return RingReading::Closed;
        }
        if begun.elapsed() > RING_TIMEOUT {
            return RingReading::Busy;
        }
        tries += 1;
        if tries >= IMMEDIATE_TRIES {
            std::thread::sleep(RING_INTERVAL);
        }
    }
}

/// /proc/PID/fd/N of /proc/PID/fdinfo/N.
fn descriptor(fdinfo: &Path) -> PathBuf {
    let process = fdinfo.parent().and_then(Path::parent).unwrap_or(fdinfo);
    process.join("fd").join(fdinfo.file_name().unwrap_or_default())
}

fn is_ring_of_io_uring(descriptor: &Path) -> bool {
    fs::read_link(descriptor).is_ok_and(|target| target.as_os_str() == "anon_inode:[io_uring]")
}

/// Counts between two readings; `None` if one could not be taken.
pub(super) fn counted(from: CommandReading, to: CommandReading) -> Option<u64> {
    Some(to.count?.saturating_sub(from.count?))
}

/// The value of a counter of the machine.
fn of_machine(source: &Source) -> Option<u64> {
    match source {
        Source::Own(_) => None,
        Source::Kernel(counter) => counter.read().ok().map(|done| done.ios),
    }
}

/// The entries ever added to a completion queue: `CqTail` of an io_uring's fdinfo.
fn tail(text: &str) -> Option<u32> {
    of_lines(text, "CqTail")?.try_into().ok()
}

/// `None` if no process shows its accounting.
fn task_io(processes: &[u32]) -> Option<TaskIo> {
    let texts = processes.iter().filter_map(|process| fs::read_to_string(format!("/proc/{process}/io")).ok());
    texts.map(|text| parse_task_io(&text)).reduce(|sum, more| TaskIo {
        read: sum.read.saturating_add(more.read),
        written: sum.written.saturating_add(more.written),
        calls: sum.calls.saturating_add(more.calls),
        from_storage: sum.from_storage.saturating_add(more.from_storage),
        to_storage: sum.to_storage.saturating_add(more.to_storage),
    })
}

/// proc_pid_io(5).
fn parse_task_io(text: &str) -> TaskIo {
    let of = |name: &str| of_lines(text, name).unwrap_or(0);
    TaskIo {
        read: of("rchar"),
        written: of("wchar"),
        calls: of("syscr").saturating_add(of("syscw")),
        from_storage: of("read_bytes"),
        to_storage: of("write_bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_accounting_is_parsed() {
        let io = parse_task_io("rchar: 7\nwchar: 8\nsyscr: 1\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 8192\n");
        assert_eq!((io.read, io.written, io.calls, io.from_storage, io.to_storage), (7, 8, 3, 4096, 8192));
    }

    #[test]
    fn a_ring_of_io_uring_shows_its_completions() {
        assert_eq!(tail("pos:\t0\nCqHead:\t112604\nCqTail:\t112608\n"), Some(112_608));
        assert_eq!(tail("pos:\t0\n"), None);
    }

    #[test]
    fn a_descriptor_that_is_no_ring_is_not_waited_for() {
        let file = fs::File::open("/dev/null").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        let fdinfo = PathBuf::from(format!("/proc/self/fdinfo/{number}"));
        assert_eq!(ring_tail(&fdinfo, Instant::now()), RingReading::Closed);
        let mut reader = WorkReader::default();
        reader.rings.insert(fdinfo, Ring { last: 7, total: 7, closed: false });
        assert_eq!((reader.completions(), reader.completions()), (Some(7), Some(7)));
    }

    #[test]
    fn own_reads_are_counted() {
        let own = [std::process::id()];
        let mut reader = WorkReader::default();
        let mut source = Source::Own(COUNTERS_BY_PREFERENCE.iter().position(|row| row.name == "task:read").unwrap());
        let before = reader.read(&own, &mut source);
        // A kernel without task accounting.
        let Some(read) = before.read_bytes else { return };
        assert_eq!(before.count, Some(read.0));
        fs::read("/proc/self/maps").unwrap();
        let after = reader.read(&own, &mut source);
        assert!(after.count > before.count && after.calls > before.calls && after.thread_nanos > before.thread_nanos);
    }

    #[test]
    fn a_counter_of_the_machine_counts_only_awake() {
        let (mut source, counter) = named("net:lo").unwrap();
        assert_eq!(counter.counts, Counted::Ios);
        let mut reader = WorkReader::default();
        reader.wake(Some(&mut source));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let send = || socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        send();
        reader.sleep(Some(&mut source));
        let awake = reader.read(&[], &mut source).count.unwrap();
        assert!(awake >= 2, "sent and received: {awake}");
        send();
        assert_eq!(reader.read(&[], &mut source).count, Some(awake));
    }
}
