//! Conditions are part of the result: where reads came from, and separate regimes.

use super::iotoll::{Folder, items, number, warns};
use super::machine::skip;
use rustix::fs::Advice;
use serde_json::Value;
use std::fs::File;

const MIB: usize = 1 << 20;
/// A measurement of some reads of a file `F`.
const READS: &str = "--name=a --rw=randread --bs=4k --filename=F --size=16m --number_ios=2000";

/// A folder with a file `F` that is on the disk and in memory. `None` if files are only in memory.
fn with_synced_file(mib: usize) -> Option<Folder> {
    let folder = Folder::with_file("F", mib * MIB);
    let file = File::open(folder.path("F")).unwrap();
    file.sync_all().unwrap();
    let before = storage_read();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    folder.read("F");
    if storage_read().zip(before).is_none_or(|(after, before)| after - before < (mib * MIB) as u64 / 2) {
        skip("the build folder is not on storage, or the kernel does not account reads from it");
        return None;
    }
    Some(folder)
}

/// The first result of `measure` that is as `wanted`. A kernel that reclaims memory evicts some pages of a file in
/// use now and then, and the measurement says so; it does not do so each time.
#[track_caller]
fn without_eviction(measure: impl Fn() -> Value, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut others = Vec::new();
    for _ in 0..8 {
        let found = measure();
        if wanted(&found) {
            return found;
        }
        others.push(found["page_cache"].clone());
        others.extend(found["phases"].as_array().into_iter().flatten().map(|phase| phase["page_cache"].clone()));
    }
    panic!("never found: {others:?}");
}

fn storage_read() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

fn cache(found: &Value, phase: usize) -> &Value {
    &found["phases"][phase]["page_cache"]
}

#[test]
fn the_sheet_shows_whether_reads_came_from_memory_or_disk() {
    let Some(folder) = with_synced_file(16) else { return };
    let read_warm = || {
        folder.read("F");
        folder.measured(&format!("run {READS} --invalidate=0 --number_ios=20000"))
    };
    let warm = without_eviction(read_warm, |found| cache(found, 0)["state"] == "warm");
    assert!(number(&cache(&warm, 0)["resident_before_fraction"]) > 0.99);
    assert_eq!(cache(&warm, 0)["dropped"], false);
    // fio's default drops the file first.
    let cold = folder.measured(&format!("run {READS}"));
    let found = cache(&cold, 0);
    assert_eq!((&found["state"], &found["dropped"]), (&"cold".into(), &true.into()), "{found}");
    assert_eq!(number(&found["resident_before_fraction"]), 0.0, "{found}");
    assert!(number(&found["reads_from_storage_fraction"]) > 0.9, "{found}");
    let direct = folder.measured(&format!("run {READS} --direct=1"));
    assert_eq!(cache(&direct, 0)["state"], "bypassed");
    // The figures begin with it, behind the caveats.
    let text = folder.iotoll(&format!("run {READS} --background 200ms --no-save --quiet")).run().stdout;
    let first: Vec<&str> = text.lines().skip_while(|line| !line.contains(" IOPS ")).take(3).collect();
    assert!(first.iter().any(|line| line.trim_start().starts_with("page cache: cold, ")), "{text}");
}

/// The second phase drops its file when it starts, not before the first one has read it.
#[test]
fn a_later_phase_does_not_empty_the_cache_under_an_earlier_one() {
    let Some(folder) = with_synced_file(16) else { return };
    let job = "[global]\nfilename=F\nsize=16m\nbs=4k\nrw=randread\n[warm]\ninvalidate=0\nnumber_ios=20000\n[cold]\nnumber_ios=2000\nstonewall\n";
    folder.write("two.fio", job);
    let found = folder.measured("run two.fio");
    // A kernel that reclaims memory may take some of the pages; a file that was dropped has none.
    let resident = |phase: usize| number(&cache(&found, phase)["resident_before_fraction"]);
    assert!(resident(0) > 0.5 && resident(1) < 0.1, "{} {}", cache(&found, 0), cache(&found, 1));
    assert_eq!(cache(&found, 1)["state"], "cold");
}

#[track_caller]
fn compared(folder: &Folder, words: &str) -> Value {
    let words = format!("compare --meters thread --budget 2s --no-save --quiet --format json {words}");
    folder.iotoll(&words).run().found()
}

/// The page cache of each of the `arms` is warm.
fn all_warm(found: &Value, arms: usize) -> bool {
    let cases = found["page_cache"].as_array().unwrap();
    cases.len() == arms && cases.iter().all(|case| case["state"] == "warm")
}

const COMPARED: &str = "--rw=randread --bs=4k --filename=F --size=32m --candidate iodepth=2";

/// An arm that writes with O_DIRECT evicts cached pages, which are read in again before the next slice.
#[test]
fn warm_files_stay_warm_beside_an_arm_that_writes_with_o_direct() {
    let Some(folder) = with_synced_file(32) else { return };
    let arms = "--baseline rw=randread --candidate 'rw=randwrite direct=1'";
    let compare = || compared(&folder, &format!("--bs=4k --filename=F --size=32m {arms}"));
    let found = without_eviction(compare, |found| found["page_cache"][0]["state"] == "warm");
    assert_eq!(found["page_cache"][1]["state"], "bypassed");
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
        assert!(!file.exists(), "the file that iotoll laid out is removed");
        return;
    }
    skip("no tmpfs that can be written at /dev/shm");
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    /// A slow job, and after the first second a fast one beside it: the rate steps on any disk.
    #[test]
    fn a_phase_whose_rate_steps_has_no_mean() {
        let folder = Folder::new();
        let job = "[global]\nioengine=spin\nsize=1m\ntime_based\n[slow]\nspin_cycles=5000000\nruntime=3\n\
               [fast]\nspin_cycles=2000\nstartdelay=1\nruntime=2\n";
        folder.write("step.fio", job);
        let found = folder.costed("run step.fio");
        let phase = &found["phases"][0];
        let regimes = phase["regimes"].as_array().unwrap();
        assert!(regimes.len() >= 2, "{phase}");
        assert!(number(&regimes[0]["iops"]) * 10.0 < number(&regimes[regimes.len() - 1]["iops"]), "{regimes:?}");
        let by_meter = phase["by_meter"].as_object().unwrap();
        assert!(phase["cycles_per_io"].is_null() && by_meter.values().all(Value::is_null), "{phase}");
        assert!(warns(&found, "two_regimes", &[]), "{}", found["warnings"]);
        for format in ["table", "mail"] {
            let words = format!("run step.fio --background 200ms --no-save --quiet --format {format}");
            let text = folder.iotoll(&words).run().stdout;
            assert!(text.contains("no single mean"), "{format}: {text}");
        }
    }

    #[test]
    fn a_comparison_keeps_files_warm_by_default() {
        let Some(folder) = with_synced_file(32) else { return };
        let drop_pages =
            || rustix::fs::fadvise(File::open(folder.path("F")).unwrap(), 0, None, Advice::DontNeed).unwrap();
        let read_warm = || {
            drop_pages();
            compared(&folder, COMPARED)
        };
        let warm = without_eviction(read_warm, |found| all_warm(found, 2));
        assert_eq!(warm["cache"]["condition"], "warm", "{}", warm["cache"]);
        assert!(number(&warm["cache"]["resident_before_fraction"]) > 0.99, "{}", warm["cache"]);
        let cold = compared(&folder, &format!("{COMPARED} --cache cold"));
        assert_eq!(cold["cache"]["condition"], "cold");
        let parts = |found: &Value| -> Vec<f64> {
            items(&found["page_cache"]).map(|case| number(&case["reads_from_storage_fraction"])).collect()
        };
        assert!(parts(&cold).iter().all(|part| *part > 0.8), "{}", cold["page_cache"]);
        drop_pages();
        // fio's option decides, and is reported: reads bring the file into memory.
        let dropped = compared(&folder, &format!("{COMPARED} --invalidate=1"));
        assert_eq!(dropped["cache"]["condition"], "dropped_once");
        assert_eq!(compared(&folder, &format!("{COMPARED} --invalidate=0"))["cache"]["condition"], "as_is");
        let arms = "--baseline invalidate=0 --candidate invalidate=1";
        let by_arm = compared(&folder, &format!("--rw=randread --bs=4k --filename=F --size=32m {arms}"));
        assert_eq!(by_arm["cache"]["condition"], "by_arm");
        let parts = parts(&by_arm);
        assert!(parts[0] < 0.1 && parts[1] > 0.8, "{parts:?}");
    }
}
