//! Reads what limits of control groups did to a load: processes enter, at each boundary their limits with their counters leave.
//!
//! Only groups that have a limit are read: where none has one, a reading opens no file and makes no system call.

use crate::control_groups::{self, ControlGroup};
use crate::sysroot::Sysroot;
use model::group_limit::{Counted, GroupLimit, Resource};
use model::unit::Nanos;
use std::fs::File;
use std::io::{Read, Seek};

/// From this many bytes on, a limit of memory is none: without one, version 1 shows the highest number of whole pages.
const UNLIMITED: f64 = (1_u64 << 62) as f64;

/// The limits of the groups of several processes.
#[derive(Default)]
pub struct GroupLimits {
    watched: Vec<Watched>,
    /// The process that was asked about last.
    latest: Option<u32>,
}

/// A limit whose counters are read again and again.
struct Watched {
    limit: GroupLimit,
    file: File,
    counters: Counters,
}

/// Where the counters are in the text of their file.
enum Counters {
    /// In `cpu.stat`.
    Cpu,
    /// The word that begins so, in the line that begins so; 0 without such a line, because the kernel leaves devices out of which nothing
    /// was read or written.
    Word { line: String, word: &'static str },
}

impl GroupLimits {
    /// Those of this process.
    pub fn own() -> Self {
        Self { watched: found(&Sysroot::at("/".as_ref()), "self"), latest: None }
    }

    /// Adds those of another process, if it is in other groups.
    pub fn follow(&mut self, process: u32) {
        if self.latest.replace(process) != Some(process) {
            self.add(found(&Sysroot::at("/".as_ref()), &process.to_string()));
        }
    }

    fn add(&mut self, found: Vec<Watched>) {
        for watched in found {
            if !self.watched.iter().any(|known| known.limit.is_same(&watched.limit)) {
                self.watched.push(watched);
            }
        }
    }

    /// All of them, with their counters. Those of a group that is gone are not read again.
    pub fn read(&mut self) -> Vec<GroupLimit> {
        self.watched.retain_mut(|watched| watched.read().is_some());
        self.watched.iter().map(|watched| watched.limit.clone()).collect()
    }
}

/// The limits that a process has below `root`.
pub(crate) fn of(root: &Sysroot, process: &str) -> Vec<GroupLimit> {
    found(root, process).into_iter().map(|watched| watched.limit).collect()
}

impl Watched {
    fn read(&mut self) -> Option<()> {
        let mut text = String::new();
        self.file.rewind().ok()?;
        self.file.read_to_string(&mut text).ok()?;
        let of = |line: &str| value(&text, line, "");
        self.limit.counted = match &self.counters {
            Counters::Cpu => Counted {
                count: of("nr_throttled ")?,
                periods: Some(of("nr_periods ")?),
                // Nanoseconds in version 1, microseconds in version 2.
                throttled_nanos: Some(
                    of("throttled_usec ").map(Nanos::from_micros).or_else(|| of("throttled_time ").map(Nanos))?,
                ),
            },
            Counters::Word { line, word } => {
                Counted { count: value(&text, line, word).unwrap_or(0), ..Counted::default() }
            }
        };
        Some(())
    }
}

/// The number in the word that begins with `word`, in the rest of the line that begins with `line`.
fn value(text: &str, line: &str, word: &str) -> Option<u64> {
    let rest = text.lines().find_map(|text| text.strip_prefix(line))?;
    rest.split_whitespace().find_map(|found| found.strip_prefix(word))?.parse().ok()
}

fn found(root: &Sysroot, process: &str) -> Vec<Watched> {
    let each = |controller, of: fn(&Sysroot, &ControlGroup) -> Vec<Watched>| {
        control_groups::of(root, process, controller).into_iter().flat_map(|group| of(root, &group)).collect::<Vec<_>>()
    };
    let mut found =
        [each("cpu", cpu), each("memory", memory), each("blkio", io)].into_iter().flatten().collect::<Vec<_>>();
    found.retain_mut(|watched| watched.read().is_some());
    found
}

/// A limit of a group, whose counters are in the file `counted_in`.
fn watched(
    root: &Sysroot,
    group: &ControlGroup,
    (file, resource, most): (&str, Resource, f64),
    (counted_in, counters): (&str, Counters),
) -> Option<Watched> {
    let (name, file) = (group.name.clone(), file.to_owned());
    let limit = GroupLimit { group: name, file, resource, device: None, most, counted: Counted::default() };
    Some(Watched { limit, file: root.open(&group.file(counted_in))?, counters })
}

fn cpu(root: &Sysroot, group: &ControlGroup) -> Vec<Watched> {
    let two = || {
        let text = group.text(root, "cpu.max")?;
        let (quota, period) = text.split_once(' ')?;
        Some(("cpu.max", quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?))
    };
    let one = || {
        let number = |file| group.text(root, file)?.parse::<f64>().ok();
        Some(("cpu.cfs_quota_us", number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?))
    };
    let limit = two().or_else(one).filter(|(_, quota, period)| *quota > 0.0 && *period > 0.0);
    let limit = limit.map(|(file, quota, period)| (file, Resource::Cpu, quota / period));
    limit.and_then(|limit| watched(root, group, limit, ("cpu.stat", Counters::Cpu))).into_iter().collect()
}

fn memory(root: &Sysroot, group: &ControlGroup) -> Vec<Watched> {
    // The events of the group itself, not of those below it, where the kernel tells them apart.
    let events = if root.has(&group.file("memory.events.local")) { "memory.events.local" } else { "memory.events" };
    let files = [
        ("memory.max", events, "max "),
        ("memory.high", events, "high "),
        ("memory.limit_in_bytes", "memory.failcnt", ""),
    ];
    let limit = |(file, counted_in, line): (&str, &str, &str)| {
        let most = group.text(root, file)?.parse::<f64>().ok().filter(|most| *most < UNLIMITED)?;
        let counters = Counters::Word { line: line.to_owned(), word: "" };
        watched(root, group, (file, Resource::Memory, most), (counted_in, counters))
    };
    files.into_iter().filter_map(limit).collect()
}

fn io(root: &Sysroot, group: &ControlGroup) -> Vec<Watched> {
    use Resource::{BytesRead, BytesWritten, Reads, Writes};
    // `8:16 rbps=1048576 wbps=max riops=max wiops=max`
    let two = [
        (BytesRead, "rbps=", "rbytes="),
        (BytesWritten, "wbps=", "wbytes="),
        (Reads, "riops=", "rios="),
        (Writes, "wiops=", "wios="),
    ];
    let two = two.map(|(resource, limit, word)| ("io.max", limit, resource, ("io.stat", "", word)));
    // `8:16 1048576`, and `8:16 Read 4096`.
    let (bytes, ios) = ("blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced");
    let one = [
        ("blkio.throttle.read_bps_device", "", BytesRead, (bytes, "Read ", "")),
        ("blkio.throttle.write_bps_device", "", BytesWritten, (bytes, "Write ", "")),
        ("blkio.throttle.read_iops_device", "", Reads, (ios, "Read ", "")),
        ("blkio.throttle.write_iops_device", "", Writes, (ios, "Write ", "")),
    ];
    let mut found = Vec::new();
    for (file, prefix, resource, (counted_in, line, word)) in two.into_iter().chain(one) {
        for text in group.text(root, file).unwrap_or_default().lines() {
            let Some((number, limits)) = text.split_once(' ') else { continue };
            let most = limits.split(' ').find_map(|limit| limit.strip_prefix(prefix)?.parse::<f64>().ok());
            let counters = Counters::Word { line: format!("{number} {line}"), word };
            let limit = most.and_then(|most| watched(root, group, (file, resource, most), (counted_in, counters)));
            found.extend(
                limit.map(|it| Watched { limit: GroupLimit { device: Some(device(root, number)), ..it.limit }, ..it }),
            );
        }
    }
    found
}

/// The name of a device; its numbers if the kernel does not say it.
fn device(root: &Sysroot, number: &str) -> String {
    let uevent = root.text(&format!("sys/dev/block/{number}/uevent")).unwrap_or_default();
    uevent.lines().find_map(|line| line.strip_prefix("DEVNAME=")).unwrap_or(number).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_groups::tests::{VERSION_1, VERSION_2, machine};

    /// Each limit in words, with its counters.
    fn told(limits: &[GroupLimit]) -> Vec<(String, Counted)> {
        limits.iter().map(|limit| (limit.words(), limit.counted)).collect()
    }

    fn expected(expected: &[(&str, u64)]) -> Vec<(String, Counted)> {
        let of = |&(words, count): &(&str, u64)| {
            let (periods, throttled_nanos) = (Some(58), Some(Nanos::from_millis(2400)));
            let is_cpu = words.contains("CPU");
            let cpu = Counted { count, periods, throttled_nanos };
            (words.to_owned(), if is_cpu { cpu } else { Counted { count, ..Counted::default() } })
        };
        expected.iter().map(of).collect()
    }

    #[test]
    fn limits_of_version_1_are_found_on_every_level() {
        let files = [
            ("sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "30000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.stat", "nr_periods 58\nnr_throttled 41\nthrottled_time 2400000000\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "67108864\n"),
            ("sys/fs/cgroup/memory/job/memory.failcnt", "1234\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.failcnt", "0\n"),
            ("sys/fs/cgroup/blkio/job/blkio.throttle.read_iops_device", "254:0 1000\n"),
            ("sys/fs/cgroup/blkio/job/blkio.throttle.write_bps_device", "7:1 4096\n"),
            ("sys/fs/cgroup/blkio/job/blkio.throttle.io_serviced", "254:0 Read 77\n254:0 Write 5\nTotal 82\n"),
            ("sys/fs/cgroup/blkio/job/blkio.throttle.io_service_bytes", "254:0 Read 4096\n"),
            ("sys/dev/block/254:0/uevent", "MAJOR=254\nMINOR=0\nDEVNAME=vda\nDEVTYPE=disk\n"),
        ];
        let (_folder, root) = machine(&[&VERSION_1, &files]);
        let limits = [
            ("a CPU quota of 0.30 CPUs (cgroup /job, cpu.cfs_quota_us)", 41),
            ("a memory limit of 64 MiB (cgroup /job, memory.limit_in_bytes)", 1234),
            ("an I/O limit of 4,096 bytes per second written to 7:1 (cgroup /job, blkio.throttle.write_bps_device)", 0),
            ("an I/O limit of 1,000 reads per second from vda (cgroup /job, blkio.throttle.read_iops_device)", 77),
        ];
        assert_eq!(told(&of(&root, "self")), expected(&limits));
        assert_eq!(of(&root, "7"), [], "no such process");
    }

    #[test]
    fn limits_of_version_2_are_found_and_read_again_until_their_group_is_gone() {
        let files = [
            ("sys/fs/cgroup/job/step/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/job/cpu.max", "30000 100000\n"),
            ("sys/fs/cgroup/job/cpu.stat", "usage_usec 9\nnr_periods 58\nnr_throttled 41\nthrottled_usec 2400000\n"),
            ("sys/fs/cgroup/job/memory.max", "max\n"),
            ("sys/fs/cgroup/job/memory.high", "67108864\n"),
            ("sys/fs/cgroup/job/memory.events", "low 0\nhigh 99\nmax 99\n"),
            ("sys/fs/cgroup/job/memory.events.local", "low 0\nhigh 12\nmax 3\noom 0\n"),
            ("sys/fs/cgroup/job/io.max", "254:0 rbps=max wbps=1048576 riops=100 wiops=max\n"),
            ("sys/fs/cgroup/job/io.stat", "7:1 rios=3\n254:0 rbytes=1 wbytes=5242880 rios=77 wios=2 dbytes=0 dios=0\n"),
        ];
        let (machine, root) = machine(&[&VERSION_2, &files]);
        let limits = [
            ("a CPU quota of 0.30 CPUs (cgroup /slice/job, cpu.max)", 41),
            ("a memory limit of 64 MiB (cgroup /slice/job, memory.high)", 12),
            ("an I/O limit of 1,048,576 bytes per second written to 254:0 (cgroup /slice/job, io.max)", 5_242_880),
            ("an I/O limit of 100 reads per second from 254:0 (cgroup /slice/job, io.max)", 77),
        ];
        let mut found = GroupLimits { watched: found(&root, "self"), latest: None };
        assert_eq!(told(&found.read()), expected(&limits));
        found.add(super::found(&root, "self"));
        machine.write("sys/fs/cgroup/job/memory.events.local", "low 0\nhigh 15\nmax 3\n");
        assert_eq!(found.read().iter().map(|limit| limit.counted.count).collect::<Vec<_>>(), [41, 15, 5_242_880, 77]);
        // As the files of a group that was removed, it has no text any more.
        machine.write("sys/fs/cgroup/job/cpu.stat", "");
        assert_eq!(found.read().len(), 3);
    }

    #[test]
    fn without_a_limit_nothing_is_read() {
        let (_folder, root) = machine(&[&VERSION_2, &[("sys/fs/cgroup/job/memory.max", "max\n")]]);
        assert_eq!(of(&root, "self"), []);
        assert_eq!(of(&machine(&[]).1, "self"), []);
    }
}
