//! `--probe`: numbers of the kernel and of files beside a run and a command, and refused probes.

use super::iotoll::{Folder, number};
use super::machine::skip;
use super::servers::Server;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A probe in the only phase.
#[track_caller]
fn probe<'a>(finding: &'a Value, name: &str) -> &'a Value {
    let probes = finding["phases"][0]["probes"].as_array().unwrap();
    probes.iter().find(|probe| probe["name"] == name).unwrap_or_else(|| panic!("no {name}: {probes:?}"))
}

#[track_caller]
fn is_estimate(probe: &Value, key: &str) {
    let [low, value, high] = ["low", "value", "high"].map(|end| number(&probe[key][end]));
    assert!(low <= value && value <= high, "{key}: {probe}");
}

/// One number grows steadily, and one rises and falls.
#[test]
fn a_file_that_changes_is_read_as_a_counter_and_as_a_gauge() {
    let folder = Folder::with_file("data", 1 << 20);
    folder.write("numbers", "00000000 0\n");
    let numbers = File::options().write(true).open(folder.path("numbers")).unwrap();
    let over = AtomicBool::new(false);
    let finding = std::thread::scope(|scope| {
        scope.spawn(|| {
            for count in 1_u64.. {
                // Eight bytes, then one: a reader never sees half of a number.
                numbers.write_at(format!("{count:08}").as_bytes(), 0).unwrap();
                numbers.write_at(if count % 2 == 0 { b"2" } else { b"7" }, 9).unwrap();
                if over.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let asked = "counter:file:numbers:^([0-9]{8}),?";
        let job = "run --name=r --filename=data --rw=randread --rate_iops=2000 --runtime=1s --time_based";
        let finding = folder.costed(&format!("{job} --probe {asked} --probe gauge:file:numbers:([0-9])$"));
        over.store(true, Ordering::Relaxed);
        finding
    });
    let counter = probe(&finding, "counter:file:numbers:^([0-9]{8}),?");
    assert_eq!((&counter["kind"], &counter["reason"]), (&Value::from("counter"), &Value::Null), "{counter}");
    is_estimate(counter, "per_second");
    is_estimate(counter, "per_io");
    let rates = [&counter["per_second"]["value"], &counter["background_per_second"]];
    assert!(rates.into_iter().all(|rate| number(rate) > 0.0), "{counter}");
    assert!(counter["mean"].is_null(), "{counter}");
    let gauge = probe(&finding, "gauge:file:numbers:([0-9])$");
    assert!(gauge["per_second"].is_null() && gauge["per_io"].is_null(), "{gauge}");
    is_estimate(gauge, "mean");
    for level in [&gauge["mean"]["value"], &gauge["min"], &gauge["max"]] {
        assert!((0.0..=7.0).contains(&number(level)), "{gauge}");
    }
    for probe in [counter, gauge] {
        let series = probe["series"].as_array().unwrap();
        let seconds: Vec<f64> = series.iter().map(|point| number(&point[0])).collect();
        assert!(!series.is_empty() && seconds.windows(2).all(|pair| pair[0] < pair[1]), "{series:?}");
    }
}

/// `./check` runs them one at a time.
mod alone {
    use super::*;

    /// Two names of the page faults give the same number; buffered writes make dirty pages.
    #[test]
    fn kernel_counters_are_read_beside_buffered_writes() {
        let folder = Folder::new();
        let job = "run --name=w --filename=data --rw=write --bs=64k --size=32m --runtime=800ms --time_based";
        let finding =
            folder.costed(&format!("{job} --probe vmstat.pgfault,page_faults,dirty --probe writeback,softirqs.timer"));
        let names: Vec<&Value> =
            finding["phases"][0]["probes"].as_array().unwrap().iter().map(|probe| &probe["name"]).collect();
        assert_eq!(names, ["vmstat.pgfault", "page_faults", "dirty", "writeback", "softirqs.timer"]);
        let faults = probe(&finding, "vmstat.pgfault");
        is_estimate(faults, "per_second");
        is_estimate(faults, "per_io");
        for key in ["per_second", "per_io", "background_per_second"] {
            assert_eq!(faults[key], probe(&finding, "page_faults")[key], "{key}");
        }
        let dirty = probe(&finding, "dirty");
        assert_eq!(dirty["unit"], "pages");
        assert!(number(&dirty["max"]) > 0.0, "{dirty}");
        for gauge in [dirty, probe(&finding, "writeback")] {
            let [least, mean, most] = [&gauge["min"], &gauge["mean"]["value"], &gauge["max"]].map(number);
            assert!(least <= mean && mean <= most, "{gauge}");
        }
        assert!(number(&probe(&finding, "softirqs.timer")["per_second"]["value"]) >= 0.0);
    }
}

/// Other traffic adds to it, and the gross rate is not reduced: each read moves its bytes through lo.
#[test]
fn the_loopback_interface_carries_what_an_nbd_job_reads() {
    let served = Server::new("--backend memory:8m --listen 127.0.0.1:0");
    let job = "run --name=n --ioengine=nbd --rw=randread --bs=16k --runtime=2500ms --time_based";
    let probes = "net.lo.rx_bytes,net.lo.rx_packets";
    let finding = served.folder.costed(&format!("{job} --uri={} --probe {probes}", served.uri));
    let (bytes, job) = (probe(&finding, "net.lo.rx_bytes"), &finding["jobs"][0]);
    is_estimate(bytes, "per_second");
    assert!(number(&bytes["per_second"]["value"]) > 0.5 * number(&job["bytes_per_second"]), "{bytes} {job}");
    assert_eq!((&bytes["unit"], &probe(&finding, "net.lo.rx_packets")["unit"]), (&"bytes".into(), &"packets".into()));
}

/// Idle states of all CPUs: the kernel counts each once, and its tracepoint is passed at both ends. perf would miss some CPUs.
#[test]
fn a_tracepoint_s_probe_sees_what_idle_tasks_do() {
    let states = |cpu: fs::DirEntry| fs::read_dir(cpu.path().join("cpuidle")).into_iter().flatten().flatten();
    let cpus = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let usages: Vec<String> =
        cpus.flat_map(states).map(|state| state.path().join("usage").display().to_string()).collect();
    let usages: Vec<String> = usages.into_iter().filter(|path| fs::read_to_string(path).is_ok()).collect();
    if usages.is_empty() {
        return skip("the kernel has no cpuidle");
    }
    let folder = Folder::with_file("data", 1 << 20);
    let numbered = usages.iter().enumerate();
    let probes: String =
        numbered.map(|(place, path)| format!(" --probe u{place}=counter:file:{path}:([0-9]+)")).collect();
    let job = "--filename=data --rw=randread --rate_iops=1000 --runtime=1s --time_based";
    let words = format!("run --no-save --quiet --format json {job} --probe passes=tracepoint.power.cpu_idle{probes}");
    let ended = folder.iotoll(&words).run();
    if ended.code != Some(0) {
        return skip(&ended.stderr);
    }
    let finding = ended.json();
    let per_second = |name: &str| number(&probe(&finding, name)["per_second"]["value"]);
    let idle: f64 = (0..usages.len()).map(|place| per_second(&format!("u{place}"))).sum();
    let passes = per_second("passes");
    // They are read some microseconds after each other.
    assert!((passes - 2.0 * idle).abs() <= 0.02 * passes + 10.0, "{passes} passes, {idle} idle states");
}
