//! In a control group with a limit, as in a container: caveats say what the limit did, in the kernel's own figures.

use super::iotoll::{Folder, eventually, number};
use super::machine::{is_root, skip};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A control group below that of the test, removed at the end.
struct Group(PathBuf);

impl Group {
    /// One of version 1 with this controller. Version 2 has controllers only where no process is beside them, so that a test cannot make one.
    fn new(controller: &str) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("iotoll-test-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let group = Self::folder(controller).map(|folder| folder.join(name));
        let group = group.filter(|group| is_root() && fs::create_dir(group).is_ok());
        if group.is_none() {
            skip(&format!("making a control group takes root and controller {controller} of cgroup version 1"));
        }
        group.map(Self)
    }

    /// The folder of our own group.
    fn folder(controller: &str) -> Option<PathBuf> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let fields = |line: &str| line.splitn(3, ':').map(str::to_owned).collect::<Vec<_>>();
        let group = groups.lines().map(fields).find(|fields| fields[1].split(',').any(|name| name == controller))?;
        let mounts = fs::read_to_string("/proc/mounts").ok()?;
        let mounts = mounts.lines().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let is_it = |mount: &Vec<String>| mount[2] == "cgroup" && mount[3].split(',').any(|name| name == controller);
        let mount = mounts.into_iter().find(is_it)?;
        Some(PathBuf::from(&mount[1]).join(group[2].trim_start_matches('/')))
    }

    /// Sets a limit; whether the kernel takes it.
    fn limit(&self, file: &str, value: &str) -> bool {
        fs::write(self.0.join(file), value).is_ok()
    }

    /// A quota of 0.3 CPUs.
    fn with_quota(self) -> Self {
        assert!(self.limit("cpu.cfs_period_us", "100000") && self.limit("cpu.cfs_quota_us", "30000"));
        self
    }

    /// A number in a file of it.
    fn counted(&self, file: &str, key: &str) -> u64 {
        let text = fs::read_to_string(self.0.join(file)).unwrap();
        let rest = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("no {key} in {text}"));
        rest.trim().parse().unwrap()
    }

    /// A shell script that enters it and becomes another program.
    fn enter(&self) -> String {
        format!("echo $$ >{}/cgroup.procs && exec \"$@\"", self.0.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process may still be ending.
        let gone = eventually(|| fs::remove_dir(&self.0).is_ok());
        assert!(gone || std::thread::panicking(), "{} stays", self.0.display());
    }
}

/// The message of the only caveat of this code, which contains these words.
#[track_caller]
fn message(finding: &Value, code: &str, words: &[&str]) -> String {
    let warnings = finding["warnings"].as_array().unwrap();
    let mut found = warnings.iter().filter(|warning| warning["code"] == code).map(|warning| &warning["message"]);
    let message = found.next().unwrap_or_else(|| panic!("no {code} in {warnings:?}")).as_str().unwrap().to_owned();
    assert_eq!(found.next(), None);
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    message
}

/// The number before this word.
#[track_caller]
fn before(message: &str, word: &str) -> f64 {
    let text = message.split(word).next().and_then(|text| text.split_whitespace().next_back());
    text.and_then(|text| text.replace(',', "").parse().ok())
        .unwrap_or_else(|| panic!("no number before {word} in {message}"))
}

/// Periods in which a quota stopped the load.
#[track_caller]
fn stops(message: &str) -> f64 {
    before(message.split("the load in ").nth(1).unwrap(), " of ")
}

#[test]
fn a_quota_of_the_cpu_is_told_in_the_kernels_figures() {
    let Some(group) = Group::new("cpu").map(Group::with_quota) else { return };
    let folder = Folder::with_file("data", 1 << 20);
    let enter = group.enter();
    let within = |words: &str| {
        let ended = folder.iotoll(words).under(&["sh", "-c", &enter, "sh"]).run().done();
        let words = ["a CPU quota of 0.30 CPUs (cgroup /", "cpu.cfs_quota_us"];
        let message = message(&ended.json(), "cpu_limited", &words);
        let (stops, periods) = (stops(&message), before(&message, " periods"));
        // iotoll was stopped too while it prepared, studied and printed.
        let (all_stops, all_periods) =
            (group.counted("cpu.stat", "nr_throttled "), group.counted("cpu.stat", "nr_periods "));
        assert!(stops >= 5.0 && stops <= all_stops as f64, "{stops} of {all_stops}: {message}");
        assert!(stops <= periods && periods <= all_periods as f64, "{periods} of {all_periods}: {message}");
        let stopped = group.counted("cpu.stat", "throttled_time ") as f64 / 1e9;
        let told = before(&message, " s added up");
        assert!(told > 0.1 && told <= stopped + 0.1, "{told} of {stopped} s: {message}");
        message
    };
    let job = "--quiet --no-save --format json --name=r --filename=data --rw=randread --ioengine=psync --invalidate=0";
    let run = within(&format!("run --background 200ms {job} --runtime=2s --time_based"));
    assert!(run.contains(" windows: rates and latencies there are the quota's"), "{run}");
    let compared = within(&format!("compare --budget 2s {job} --candidate ioengine=mmap"));
    assert!(compared.contains(" slices: "), "{compared}");
    let doctor = folder.iotoll("doctor --full").under(&["sh", "-c", &enter, "sh"]).run();
    assert!(doctor.stdout.contains("a CPU quota of 0.30 CPUs"), "{doctor:?}");
}

/// Nothing else is in its group, so the kernel's counts are the command's.
#[test]
fn a_quota_of_a_measured_command_in_another_group_is_found() {
    let Some(group) = Group::new("cpu").map(Group::with_quota) else { return };
    let folder = Folder::new();
    let command =
        ["--", "sh", "-c", &group.enter(), "sh", "timeout", "3", "dd", "if=/dev/zero", "of=/dev/null", "bs=64k"];
    let cost = folder.iotoll("cost --background 200ms --quiet --no-save --format json --ios 1000");
    let ended = command.iter().fold(cost, |cost, word| cost.word(*word)).run();
    let message = message(&ended.json(), "cpu_limited", &[]);
    let stops = stops(&message);
    let all = group.counted("cpu.stat", "nr_throttled ") as f64;
    // It was in its group before the end of the first window, but not much.
    assert!(stops >= all - 5.0 && stops <= all && stops > 10.0, "{stops} of {all}: {message}");
}

#[test]
fn a_limit_of_memory_is_told_with_how_often_it_was_reached() {
    let Some(group) = Group::new("memory") else { return };
    assert!(group.limit("memory.limit_in_bytes", "96M"));
    let folder = Folder::with_file("data", 256 << 20);
    // Dirty pages would stay in memory, at this test's expense.
    fs::File::open(folder.path("data")).unwrap().sync_all().unwrap();
    let words = "run --background 200ms --quiet --no-save --format json --name=r --filename=data --rw=read --bs=64k --ioengine=psync";
    let ended = folder.iotoll(words).under(&["sh", "-c", &group.enter(), "sh"]).run().done();
    let words = ["a memory limit of 96 MiB (cgroup /", "memory.limit_in_bytes"];
    let message = message(&ended.json(), "memory_limited", &words);
    let (told, all) = (before(&message, " times"), group.counted("memory.failcnt", ""));
    assert!(told >= 10.0 && told <= all as f64, "{told} of {all}: {message}");
}

#[test]
fn a_limit_of_io_is_told_with_the_part_of_it_that_was_used() {
    let Some(group) = Group::new("blkio") else { return };
    let folder = Folder::with_file("data", 16 << 20);
    let device = fs::metadata(folder.path("data")).unwrap().dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    if !group.limit("blkio.throttle.read_iops_device", &format!("{device} 100")) {
        return skip("the test's files are not on one block device that can be limited");
    }
    let words = "run --background 200ms --quiet --no-save --format json --name=r --filename=data --rw=randread --ioengine=psync --direct=1 \
                 --runtime=3s --time_based";
    let ended = folder.iotoll(words).under(&["sh", "-c", &group.enter(), "sh"]).run().done();
    let message = message(&ended.json(), "io_limited", &[]);
    assert!(message.starts_with("an I/O limit of 100 reads per second from "), "{message}");
    let percent = before(&message, " % of it");
    let iops = number(&ended.json()["jobs"][0]["read"]["iops"]);
    assert!((80.0..=120.0).contains(&percent) && (percent - iops).abs() < 20.0, "{iops}/s: {message}");
}
