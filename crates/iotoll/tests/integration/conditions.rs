//! Conditions are a part of the answer: where reads came from, and that two regimes are not one.

use super::iotoll::{Folder, number};
use super::machine::skip;
use rustix::fs::Advice;
use serde_json::Value;
use std::fs::File;

const MIB: usize = 1 << 20;
/// A measurement of some reads of a file `F`.
const READS: &str = "--name=a --rw=randread --bs=4k --filename=F --size=16m --number_ios=2000";

/// A folder with a file `F` that is on the disk, and in memory too. `None` where files are in memory alone.
fn with_synced_file(test: &str, mib: usize) -> Option<Folder> {
    let folder = Folder::with_file("F", mib * MIB);
    let file = File::open(folder.path("F")).unwrap();
    file.sync_all().unwrap();
    let before = storage_read();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    folder.read("F");
    if storage_read().zip(before).is_none_or(|(after, before)| after - before < (mib * MIB) as u64 / 2) {
        skip(test, "no storage under the build folder that pages can be dropped to, or no accounting of what it reads");
        return None;
    }
    Some(folder)
}

fn storage_read() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

fn cache(found: &Value, phase: usize) -> &Value {
    &found["phases"][phase]["page_cache"]
}

#[test]
fn a_sheet_says_whether_reads_came_from_memory_or_from_the_disk() {
    let Some(folder) = with_synced_file("a_sheet_says_whether_reads_came_from_memory_or_from_the_disk", 16) else {
        return;
    };
    // So many that a page which the kernel takes back meanwhile is no part of them to speak of.
    let warm = folder.measured(&format!("run {READS} --invalidate=0 --number_ios=20000"));
    assert_eq!(cache(&warm, 0)["state"], "warm", "{}", cache(&warm, 0));
    assert_eq!(cache(&warm, 0)["dropped"], false);
    // fio's default drops the file first.
    let cold = folder.measured(&format!("run {READS}"));
    let found = cache(&cold, 0);
    assert_eq!((&found["state"], &found["dropped"]), (&"cold".into(), &true.into()), "{found}");
    assert_eq!(number(&found["resident_before_fraction"]), 0.0, "{found}");
    assert!(number(&found["reads_from_storage_fraction"]) > 0.9, "{found}");
    let direct = folder.measured(&format!("run {READS} --direct=1"));
    assert_eq!(cache(&direct, 0)["state"], "bypassed");
    // What people read first says so too.
    let text = folder.iotoll(&format!("run {READS} --background 200ms --no-save --quiet")).run().stdout;
    let first: Vec<&str> = text.lines().take(8).collect();
    assert!(first.iter().any(|line| line.trim_start().starts_with("page cache: cold, ")), "{text}");
}

/// The second phase drops its file when it begins, and not before the first one has read it.
#[test]
fn a_later_phase_does_not_empty_the_cache_under_an_earlier_one() {
    let Some(folder) = with_synced_file("a_later_phase_does_not_empty_the_cache_under_an_earlier_one", 16) else {
        return;
    };
    let job = "[global]\nfilename=F\nsize=16m\nbs=4k\nrw=randread\n[warm]\ninvalidate=0\nnumber_ios=20000\n[cold]\nnumber_ios=2000\nstonewall\n";
    folder.write("two.fio", job);
    let found = folder.measured("run two.fio");
    assert_eq!((&cache(&found, 0)["state"], &cache(&found, 1)["state"]), (&"warm".into(), &"cold".into()));
}

/// A slow job, and from the first second on a fast one beside it: whatever the disk, the rate steps.
#[test]
fn a_phase_whose_rate_steps_has_no_mean() {
    let folder = Folder::new();
    let job = "[global]\nioengine=spin\nsize=1m\ntime_based\n[slow]\nspin_cycles=5000000\nruntime=3\n\
               [fast]\nspin_cycles=2000\nstartdelay=1\nruntime=2\n";
    folder.write("step.fio", job);
    let found = folder.measured("run step.fio");
    let phase = &found["phases"][0];
    let regimes = phase["regimes"].as_array().unwrap();
    assert!(regimes.len() >= 2, "{phase}");
    assert!(number(&regimes[0]["iops"]) * 10.0 < number(&regimes[regimes.len() - 1]["iops"]), "{regimes:?}");
    assert!(phase["cycles_per_io"].is_null() && phase["by_meter"].as_object().unwrap().values().all(Value::is_null));
    let codes: Vec<&str> =
        found["warnings"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"two_regimes"), "{codes:?}");
    for (format, words) in [("table", "no single mean"), ("mail", "no single mean")] {
        let text =
            folder.iotoll(&format!("run step.fio --background 200ms --no-save --quiet --format {format}")).run().stdout;
        assert!(text.contains(words), "{format}: {text}");
    }
}

#[track_caller]
fn compared(folder: &Folder, words: &str) -> Value {
    let words = format!("compare --budget 3s --no-save --quiet --format json {words}");
    let ended = folder.iotoll(&words).run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words}\n{}", ended.stdout);
    ended.json()
}

const COMPARED: &str = "--rw=randread --bs=4k --filename=F --size=32m --candidate iodepth=2";

#[test]
fn a_comparison_of_cached_reads_is_one_unless_it_is_told_otherwise() {
    let Some(folder) = with_synced_file("a_comparison_of_cached_reads_is_one_unless_it_is_told_otherwise", 32) else {
        return;
    };
    let drop_pages = || rustix::fs::fadvise(File::open(folder.path("F")).unwrap(), 0, None, Advice::DontNeed).unwrap();
    drop_pages();
    let warm = compared(&folder, COMPARED);
    assert_eq!(warm["cache"]["condition"], "warm", "{}", warm["cache"]);
    assert_eq!(number(&warm["cache"]["resident_before_fraction"]), 1.0);
    for case in warm["page_cache"].as_array().unwrap() {
        assert_eq!(case["state"], "warm", "{case}");
    }
    let cold = compared(&folder, &format!("{COMPARED} --cache cold"));
    assert_eq!(cold["cache"]["condition"], "cold");
    for case in cold["page_cache"].as_array().unwrap() {
        assert!(number(&case["reads_from_storage_fraction"]) > 0.8, "{case}");
    }
    drop_pages();
    // fio's word decides, and is said: read by read the file comes into memory.
    let dropped = compared(&folder, &format!("{COMPARED} --invalidate=1"));
    assert_eq!(dropped["cache"]["condition"], "dropped_once");
    assert_eq!(compared(&folder, &format!("{COMPARED} --invalidate=0"))["cache"]["condition"], "as_is");
    let by_arm = compared(
        &folder,
        "--rw=randread --bs=4k --filename=F --size=32m --baseline invalidate=0 --candidate invalidate=1",
    );
    assert_eq!(by_arm["cache"]["condition"], "by_arm");
    let parts: Vec<f64> = by_arm["page_cache"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| number(&case["reads_from_storage_fraction"]))
        .collect();
    assert!(parts[0] < 0.1 && parts[1] > 0.8, "{parts:?}");
}

/// An arm that writes past the cache takes pages out of it, which are read in again before they are read.
#[test]
fn warm_files_stay_warm_beside_an_arm_that_writes_past_the_cache() {
    let test = "warm_files_stay_warm_beside_an_arm_that_writes_past_the_cache";
    let Some(folder) = with_synced_file(test, 32) else { return };
    let ended = folder
        .iotoll("compare --budget 3s --no-save --quiet --format json --bs=4k --filename=F --size=32m")
        .word_list("--baseline rw=randread --candidate")
        .word("rw=randwrite direct=1")
        .run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    let found = ended.json();
    let cases = found["page_cache"].as_array().unwrap();
    assert_eq!((&cases[0]["state"], &cases[1]["state"]), (&"warm".into(), &"bypassed".into()), "{cases:?}");
}

#[test]
fn commands_are_prepared_before_each_execution_and_cleaned_up_after() {
    let folder = Folder::new();
    let ended = folder
        .iotoll("compare --budget 1s --no-save --quiet --format json --baseline-cmd true --candidate-cmd /usr/bin/true")
        .word_list("--setup")
        .word("echo setup >>log")
        .word_list("--prepare")
        .word("echo prepare >>log")
        .word_list("--cleanup")
        .word("echo cleanup >>log")
        .run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let log = String::from_utf8(folder.read("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let rounds = ended.json()["rounds"].as_u64().unwrap() as usize;
    assert_eq!((lines.first(), lines.last()), (Some(&"setup"), Some(&"cleanup")));
    assert_eq!(lines.iter().filter(|line| **line == "prepare").count(), 2 * rounds);
    assert_eq!(lines.len(), 2 * rounds + 2);
    let cost = folder
        .iotoll("cost --background 200ms --no-save --quiet --repeat 3 --format json")
        .word_list("--prepare")
        .word("echo again >>cost.log")
        .word_list("-- true")
        .run();
    assert_eq!(cost.code, Some(0), "{cost:?}");
    assert_eq!(folder.read("cost.log"), b"again\nagain\nagain\n");
    let broken = folder
        .iotoll("compare --no-save --quiet --baseline-cmd true --candidate-cmd /usr/bin/true --cleanup")
        .word("echo gone >cleaned")
        .word_list("--prepare")
        .word("echo no disk >&2; exit 3")
        .run();
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.stderr.contains("prepare") && broken.stderr.contains("no disk"), "{broken:?}");
    assert_eq!(folder.read("cleaned"), b"gone\n");
}

#[test]
fn conditions_that_cannot_be_had_are_refused() {
    let folder = Folder::with_file("F", MIB);
    for (words, said) in [
        ("--rw=randread --filename=F --invalidate=0 --cache warm --aa", "both say what the page cache holds"),
        ("--rw=randread --filename=F --prepare true --aa", "jobs have none"),
        ("--cache warm --aa -- true", "a command opens files of its own"),
        ("--rw=randread --filename=F --cache hot --aa", "expected warm, cold or as-is"),
        ("--rw=randread --filename=F --direct=1 --cache warm --aa", "no job uses the page cache"),
        ("--ioengine=null --size=1m --cache as-is --aa", "no job uses the page cache"),
    ] {
        folder.iotoll(&format!("compare --no-save {words}")).run().refused(2, &[said]);
    }
}

#[test]
fn a_file_system_in_memory_has_no_cold_files() {
    /// TMPFS_MAGIC of linux/magic.h.
    const TMPFS: i64 = 0x0102_1994;
    if rustix::fs::statfs("/dev/shm").is_ok_and(|found| found.f_type == TMPFS)
        && let Ok(folder) = tempfile::tempdir_in("/dev/shm")
    {
        let file = folder.path().join("F");
        let words = format!("--rw=randread --filename={} --size=1m --aa", file.display());
        let refused = Folder::new().iotoll(&format!("compare --no-save --cache cold {words}")).run();
        refused.refused(2, &["--cache cold", "tmpfs"]);
        assert!(!file.exists(), "the file that iotoll laid out is gone");
        return;
    }
    skip("a_file_system_in_memory_has_no_cold_files", "no tmpfs that can be written at /dev/shm");
}
