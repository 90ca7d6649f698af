//! Time: how long a job runs, how fast, when it starts, what it waits for. Bounds are wide.

use super::iotoll::{Folder, at_once, number, whole};
use serde_json::Value;

/// A job of engine `null` with these options.
#[track_caller]
fn null(options: &str) -> Value {
    Folder::new().measured(&format!("run --name=n --ioengine=null --size=1t {options}"))["jobs"][0].clone()
}

#[test]
fn runtime_ends_a_job() {
    let seconds = number(&null("--runtime=300ms")["wall_seconds"]);
    assert!((0.29..5.0).contains(&seconds), "{seconds}");
}

#[test]
fn time_based_starts_over() {
    let folder = Folder::with_file("data", 64 << 10);
    let options = "run --name=n --filename=data --rw=read --runtime=300ms";
    assert_eq!(whole(&folder.measured(options)["jobs"][0]["ios"]), 16);
    let job = folder.measured(&format!("{options} --time_based"))["jobs"][0].clone();
    assert!(whole(&job["ios"]) > 1000 && number(&job["wall_seconds"]) >= 0.29, "{job}");
}

#[test]
fn a_ramp_does_not_count() {
    // 2 seconds at 100 I/Os a second, of which the first does not count.
    let job = null("--rate_iops=100 --ramp_time=1 --runtime=1 --time_based");
    let (ios, seconds) = (whole(&job["ios"]), number(&job["wall_seconds"]));
    assert!((50..=130).contains(&ios) && (0.8..3.0).contains(&seconds), "{ios} I/Os in {seconds} s");
}

#[test]
fn a_rate_is_kept() {
    let folder = Folder::with_file("data", 1 << 20);
    at_once(["psync", "libaio", "io_uring"], |engine| {
        let options = "run --name=r --filename=data --rw=randread --rate_iops=200 --runtime=1 --time_based";
        let job = folder.measured(&format!("{options} --ioengine={engine}"))["jobs"][0].clone();
        let ios = whole(&job["ios"]);
        assert!((150..=250).contains(&ios), "{engine}: {ios}");
    });
}

#[test]
fn a_rate_is_kept_for_each_direction() {
    let job = null("--rw=randrw --rate_iops=300,100 --runtime=1 --time_based");
    let (reads, writes) = (whole(&job["read"]["ios"]), whole(&job["write"]["ios"]));
    assert!(reads <= 350 && writes <= 150 && reads + writes >= 80, "{reads} reads, {writes} writes");
}

/// As in fio, a direction that is ahead of its rate does not delay the other one.
#[test]
fn the_rarer_direction_reaches_its_rate_too() {
    let job = null("--rw=randrw --rwmixread=95 --rate_iops=200 --runtime=2 --time_based");
    let (reads, writes) = (whole(&job["read"]["ios"]), whole(&job["write"]["ios"]));
    assert!(reads <= 450 && writes <= 450 && writes * 2 >= reads, "{reads} reads, {writes} writes");
    let alone = null("--rw=randrw --rwmixread=100 --rate_iops=200 --runtime=500ms --time_based");
    assert_eq!(whole(&alone["write"]["ios"]), 0);
}

#[test]
fn a_start_is_delayed() {
    let begun = std::time::Instant::now();
    let job = null("--number_ios=10 --startdelay=2");
    assert!(begun.elapsed().as_secs_f64() > 2.3, "{:?}", begun.elapsed());
    assert!(number(&job["wall_seconds"]) < 1.0, "the delay is not part of the job: {job}");
}

#[test]
fn thinking_takes_time() {
    // Between 20 I/Os there are 19 pauses of 10 ms.
    let seconds = number(&null("--number_ios=20 --thinktime=10000")["wall_seconds"]);
    assert!((0.18..5.0).contains(&seconds), "{seconds}");
    assert!(number(&null("--number_ios=20")["wall_seconds"]) < 0.1);
}

#[test]
fn injected_work_takes_time() {
    let mean = |options: &str| number(&null(&format!("--number_ios=2000 {options}"))["latency_ns"]["mean"]);
    let (plain, injected) = (mean(""), mean("--inject_ns=20000"));
    // A core whose sibling falls idle after the calibration does the same work in little more than half the time.
    assert!(injected - plain > 8_000.0, "{plain} and {injected} ns");
}

#[test]
fn spinning_costs_what_it_says() {
    let folder = Folder::new();
    let job = folder
        .measured("run --name=s --ioengine=spin --spin_cycles=100000 --runtime=300ms --time_based --size=1t")["jobs"]
        [0]
    .clone();
    let cycles = number(&job["thread_cycles_per_io"]);
    assert!((90_000.0..150_000.0).contains(&cycles), "{cycles}");
}

#[test]
fn syncs_are_counted() {
    let folder = Folder::new();
    let cases = [
        ("fsync=4", 3),
        ("fdatasync=4", 3),
        ("fsync=4\nend_fsync=1", 4),
        ("end_fsync=1", 1),
        ("fsync=100", 0),
        ("fsync=0", 0),
    ];
    for engine in ["psync", "libaio", "io_uring"] {
        let mut text = format!("[global]\nioengine={engine}\nrw=write\nbs=4k\nsize=64k\niodepth=4\nstonewall\n");
        cases.iter().enumerate().for_each(|(index, (options, _))| text += &format!("[s{index}]\n{options}\n"));
        let finding = folder.measured_job(&text);
        for (job, (options, syncs)) in finding["jobs"].as_array().unwrap().iter().zip(cases) {
            assert_eq!((whole(&job["syncs"]), whole(&job["ios"])), (syncs, 16), "{engine} {options}");
        }
    }
}

#[test]
fn percentiles_are_the_requested_ones() {
    let job = null("--runtime=200ms --percentile_list=25:50:99");
    let list = job["latency_ns"]["percentiles"].as_array().unwrap();
    let percents: Vec<f64> = list.iter().map(|pair| number(&pair[0])).collect();
    assert_eq!(percents, [25.0, 50.0, 99.0]);
    assert_eq!(list[1][1], job["latency_ns"]["p50"]);
    // Ten I/Os have no 99th percentile.
    let few = null("--number_ios=10 --percentile_list=99");
    assert!(few["latency_ns"]["p99"].is_null() && few["latency_ns"]["percentiles"][0][1].is_null(), "{few}");
}

#[test]
fn the_mix_is_near_the_requested_one() {
    let job = null("--rw=randrw --rwmixread=80 --number_ios=20000");
    let reads = whole(&job["read"]["ios"]);
    assert!((15_500..=16_500).contains(&reads), "{reads} of 20000");
    assert_eq!(whole(&job["ios"]), 20_000);
}
