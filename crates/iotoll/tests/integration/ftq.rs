//! Recordings of quanta: of a worker of iotoll, of a command, of a process; and the files that they leave.

use super::iotoll::{Folder, eventually, items, number, warns, whole};
use super::machine::needs;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// A recording that is saved in `kept` and must succeed.
#[track_caller]
fn recorded(folder: &Folder, words: &str) -> Value {
    let ended = folder.iotoll(&format!("ftq --format json --quiet --out kept {words}")).run();
    assert_eq!(ended.code, Some(0), "{words}\n{ended:?}");
    ended.json()
}

/// The header of the record in `kept`.
fn header(folder: &Folder) -> Value {
    let text = folder.text("kept/record.jsonl");
    serde_json::from_str::<Value>(text.lines().nth(1).unwrap()).unwrap()["header"].clone()
}

#[test]
fn a_writer_of_iotoll_is_recorded() {
    let folder = Folder::new();
    let finding = recorded(&folder, "--target new --rw=write --bs=64k --size=64m --quantum 1ms --duration 1s");
    assert_eq!(finding["title"], "ioengine=psync rw=write bs=64k size=64m filename=new");
    assert_eq!((finding["schema"].as_str(), finding["unit"].as_str()), (Some("iotoll.ftq/1"), Some("bytes")));
    let quanta = whole(&finding["quanta"]);
    assert!((900..=1010).contains(&quanta), "{quanta} quanta of 1 ms in 1 s");
    assert!(whole(&finding["readings"]) <= 1001, "{finding}");
    assert!(whole(&finding["bytes"]) > 1 << 20, "{finding}");
    assert!(number(&finding["recorder"]["cpu_nanos"]) > 0.0);
    assert_eq!(fs::metadata(folder.path("new")).unwrap().len(), 64 << 20, "the file stays, as after a run");
    let header = header(&folder);
    let names: Vec<&str> = items(&header["probes"]).filter_map(|probe| probe["name"].as_str()).collect();
    for name in ["dirty", "writeback", "worker.sleeps", "worker.off_cpu_time"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    // A missing file of a writer gets a size.
    let plan = folder.iotoll("ftq --target other --rw=write --parse-only --format json").run().json();
    let job = &plan["worker"]["job"]["phases"][0]["jobs"][0];
    assert_eq!((whole(&job["target"]["size"]["bytes"]), job["name"].as_str()), (1 << 30, Some("ftq")));
    assert!(!folder.exists("other"));
}

/// A slow writer of a new file does not reach its end, which is written all the same: iotoll has laid the file out before.
#[test]
fn a_writer_does_not_record_how_its_file_is_made() {
    let folder = Folder::new();
    recorded(&folder, "--target new --rw=write --bs=4k --size=8m --rate_iops=20 --quantum 1ms --duration 300ms");
    let made = folder.read("new");
    assert_eq!(made.len(), 8 << 20);
    assert!(made.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)), "a block was never written");
}

#[test]
fn a_saved_record_is_shown_again_and_its_series_has_a_row_for_each_reading() {
    let folder = Folder::with_file("data", 1 << 20);
    folder.write("level", "depth 7\n");
    let probes = format!("page_faults,queue=gauge:file:{}:([0-9]+)", folder.name("level"));
    let finding = recorded(&folder, &format!("--target data --rw=read --duration 500ms --probe {probes}"));
    assert_eq!(folder.reported("kept"), finding);
    folder.reported("kept --stored kept");
    folder.iotoll("report kept --series elsewhere").run().done();
    let text = folder.text("kept/series.csv");
    assert!(folder.text("elsewhere/series.csv") == text && folder.exists("kept/report.html"));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len() as u64 - 1, whole(&finding["readings"]));
    let column = |name: &str| -> Vec<&str> {
        let place = rows[0].iter().position(|there| *there == name).unwrap_or_else(|| panic!("{name}: {:?}", rows[0]));
        rows[1..].iter().map(|row| row[place]).collect()
    };
    assert!(column("queue").iter().all(|value| *value == "7"));
    column("page_faults");
    column("dirty_pages");
    let numbers = |name: &str| -> Vec<i64> { column(name).iter().map(|value| value.parse().unwrap()).collect() };
    let [times, done, total] = ["time_ns", "done_bytes", "total_bytes"].map(numbers);
    assert!(times.is_sorted_by(|a, b| a < b));
    assert_eq!(done.iter().sum::<i64>(), total.last().unwrap() - total.first().unwrap());
    assert_eq!(u64::try_from(done.iter().sum::<i64>()).unwrap(), whole(&finding["bytes"]));
}

#[test]
fn a_thread_that_computes_is_counted_in_steps() {
    let finding = recorded(&Folder::new(), "--cpu --probe none --quantum 1ms --duration 500ms");
    assert_eq!((finding["unit"].as_str(), &finding["bytes"]), (Some("steps"), &Value::Null));
    assert!(whole(&finding["amount"]) > 1000, "{finding}");
}

#[test]
fn a_command_is_watched_from_its_start_to_its_end() {
    let folder = Folder::new();
    let dd = "dd if=/dev/zero of=copy bs=64k count=4000 oflag=dsync";
    let finding = recorded(&folder, &format!("--rw=write --quantum 1ms --probe worker.sleeps -- {dd}"));
    assert_eq!(finding["title"], format!("the command {dd}"));
    // It is stopped before it writes much, so nearly all is seen.
    let (wrote, seen) = (4000 * 65536, whole(&finding["bytes"]));
    assert!(seen <= wrote + 4096 && seen > wrote * 9 / 10, "dd wrote {wrote}, {seen} were seen");
    assert!(finding["counted_by"].as_str().unwrap().contains("wchar"));
    folder.assert_no_processes();
}

#[test]
fn a_command_is_ended_with_the_recording_and_with_its_children() {
    let folder = Folder::new();
    let ended = folder
        .iotoll("ftq --format json --quiet --no-save --duration 500ms -- sh -c")
        .word("trap '' TERM; sleep 1000 & cat /dev/zero > /dev/null; wait")
        .run()
        .done();
    folder.assert_no_processes();
    // The shell itself writes nothing.
    assert!(whole(&ended.json()["bytes"]) > 1 << 20, "{ended:?}");
}

#[test]
fn a_worker_whose_counter_does_not_move_is_noted() {
    let folder = Folder::new();
    let ended =
        folder.iotoll("ftq --format json --quiet --no-save --duration 300ms --rw=write -- sleep 1000").run().done();
    assert!(warns(&ended.json(), "work_unknown", &["did not move", "--count"]), "{ended:?}");
}

#[test]
fn a_process_is_watched_until_it_ends_and_left_alone() {
    let folder = Folder::new();
    let dd = folder.command("dd if=/dev/zero of=/dev/null bs=4k").start().when(|dd| dd.has_threads("dd", 1));
    let words = format!("ftq --format json --quiet --no-save --rw=write --duration 300ms --pid {}", dd.id());
    let timed = folder.iotoll(&words).run().done();
    assert!(whole(&timed.json()["bytes"]) > 1 << 20, "{timed:?}");
    assert_eq!(timed.json()["title"], format!("process {} (dd)", dd.id()));
    assert!(fs::exists(format!("/proc/{}", dd.id())).unwrap(), "it was ended");
    let running = folder.iotoll(&format!("ftq --format json --quiet --out kept --pid {}", dd.id())).start();
    assert!(eventually(|| !folder.lines("chunk").is_empty()));
    dd.ended_by(Signal::KILL);
    let ended = running.wait().done();
    assert!(whole(&ended.json()["readings"]) > 100, "{ended:?}");
}

#[test]
fn fio_is_counted_by_a_probe_that_the_user_names() {
    needs!("fio");
    let folder = Folder::with_file("data", 1 << 20);
    let job = "--name=f --filename=data --rw=randread --ioengine=mmap --size=1m --time_based --runtime=1";
    let finding = recorded(&folder, &format!("--count page_faults --probe steal -- fio {job} --output=log"));
    assert_eq!(finding["unit"], "faults");
    let counted_by = finding["counted_by"].as_str().unwrap();
    assert!(counted_by.contains("page_faults") && whole(&finding["amount"]) > 0, "{finding}");
}

#[test]
fn planted_stalls_stop_the_worker_once_in_a_period() {
    let folder = Folder::with_file("data", 1 << 20);
    // Five stalls of 50 ms: the quiet quanta of 10 ms in between are full.
    let words = "--target data --rw=read --quantum 10ms --duration 1300ms --probe none";
    let finding = recorded(&folder, &format!("{words} --inject_ns=50000000 --inject_every=250ms"));
    let series = folder.text("kept/series.csv");
    let empty = series.lines().skip(2).filter(|line| line.split(',').nth(2) == Some("0")).count();
    // A stall of 50 ms contains four whole quanta; a busy machine makes more of them empty, a late reading fewer.
    assert!((5..=60).contains(&empty), "{empty} empty quanta; {finding}");
    let plan = header(&folder)["plan"]["worker"]["job"]["phases"][0]["jobs"][0].clone();
    assert_eq!((whole(&plan["inject"]["time"]), whole(&plan["inject"]["every"])), (50_000_000, 250_000_000));
}
