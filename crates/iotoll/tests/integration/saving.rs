//! Where records and results go: folders, formats, pipes that are closed or that nobody reads, and that printing a record again gives the same.

use super::iotoll::{Folder, at_once, number, warns};
use super::machine::needs;
use super::servers::fill;
use std::fs;
use std::io::pipe;
use std::os::unix::fs::symlink;

const NULL: &str = "run --background 200ms --name=n --ioengine=null --size=1g --runtime=200ms --time_based";

#[test]
fn a_record_is_saved_in_the_requested_folder() {
    // Options, and the folder of the record.
    let cases = [("--no-save", ""), ("--out here", "here/"), ("--out deep/er", "deep/er/"), ("", "iotoll-runs/")];
    at_once(cases, |(options, place)| {
        let folder = Folder::new();
        let ended = folder.iotoll(&format!("{NULL} {options}")).run().done();
        let records: Vec<String> = folder.listing().into_keys().filter(|path| path.ends_with("record.jsonl")).collect();
        if place.is_empty() {
            return assert!(folder.listing().is_empty(), "{:?}", folder.listing());
        }
        assert!(matches!(records.as_slice(), [one] if one.starts_with(place)), "{options}: {records:?}");
        let rest = format!("iotoll report --full {}, ", records[0].trim_end_matches("/record.jsonl"));
        assert!(ended.stdout.contains(&rest), "{ended:?}");
        assert!(!folder.listing().keys().any(|path| path.ends_with(".partial")));
    });
    // A note goes to standard error only.
    let folder = Folder::new();
    let ended = folder.iotoll(&format!("{NULL} --format json --out o")).run();
    assert!(ended.json().is_object() && ended.stderr.lines().count() == 1, "{ended:?}");
    assert!(ended.stderr.starts_with("iotoll: record and report.html in o;"), "{ended:?}");
    // Also in the same second.
    let folder = Folder::new();
    at_once(0..6, |_| drop(folder.iotoll(NULL).run().done()));
    let records = folder.listing().into_keys().filter(|path| path.ends_with("record.jsonl")).count();
    assert_eq!(records, 6, "{:?}", folder.listing());
}

/// A run and a command are compared with earlier ones, while measuring and again from the saved record.
#[test]
fn a_run_is_compared_with_an_earlier_one() {
    let folder = Folder::new();
    let spin = "--quiet --format json --ioengine=spin --size=1g --runtime=500ms --time_based --name=a";
    let run = |words: &str| folder.iotoll(&format!("run --background 200ms {spin} {words}")).run();
    run("--out then --spin_cycles=100").done();
    let found = run("--stored then --spin_cycles=20000 --out now").done().json();
    assert_eq!(found["stored"]["from"], "then");
    assert!(found["stored"]["differs"].is_array() && warns(&found, "stored_work_differs", &["spin_cycles"]), "{found}");
    // A bound that holds despite noise: twenty thousand cycles more than next to none.
    let stored = &found["phases"][0]["stored"];
    assert!(number(&stored["iops"]["value"]) > 0.0 && number(&stored["iops"]["change"]["value"]) < -0.5, "{stored}");
    assert_eq!(found["jobs"][0]["plan"]["own"]["spin_cycles"], 20_000);
    for words in ["now --stored then", "now/record.jsonl --stored then/record.jsonl"] {
        assert_eq!(folder.reported(words)["phases"], found["phases"]);
    }
    folder.iotoll("cost --background 200ms --quiet --ios 10 --out command -- sleep 0.1").run().done();
    let shown = folder.iotoll("report command --stored command").run();
    assert!(shown.stdout.contains("Against the stored command of 20"), "{shown:?}");
    folder.write("file", "garbage");
    for (stored, named) in [("nowhere", "reading the record"), ("file", "is not a record")] {
        let refused = run(&format!("--no-save --spin_cycles=100 --stored {stored}"));
        refused.refused(2, &[&format!("--stored {stored}"), named, "iotoll run"]);
    }
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let folder = Folder::new();
    let closed = || pipe().unwrap().1;
    for words in [&format!("{NULL} --no-save --quiet --format json"), "doctor --format json", "run --help"] {
        let ended = folder.iotoll(words).stdout(closed()).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words}");
    }
    let ended = folder.iotoll("run --nonsense").stderr(closed()).run();
    assert_eq!(ended.code, Some(2), "a closed standard error must not cause a panic");
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = Folder::new();
    let measured = format!("{NULL} --no-save --quiet");
    for words in [&measured, "--help", "-h", "--version", "help run", "run --help", "completions bash"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        folder.iotoll(words).stdout(full).run().refused(1, &["No space left"]);
    }
}

/// Neither one that lies there before, nor one that is made while iotoll measures.
#[test]
fn a_symbolic_link_is_not_written_through() {
    let folder = Folder::new();
    for name in ["report.html", "record.jsonl"] {
        let out = format!("before-{name}");
        fs::create_dir(folder.path(&out)).unwrap();
        symlink(folder.path("victim"), folder.path(&format!("{out}/{name}"))).unwrap();
        folder.iotoll(&format!("{NULL} --out {out}")).run().refused(2, &[&out, "already"]);
        assert!(!folder.exists("victim"), "{name}");
    }
    let running = folder.iotoll(&format!("{NULL} --quiet --out during")).start();
    let running = running.when(|_| folder.exists("during/record.jsonl"));
    symlink(folder.path("victim"), folder.path("during/report.html")).unwrap();
    running.wait().done();
    assert!(!folder.exists("victim"));
    assert!(fs::symlink_metadata(folder.path("during/report.html")).unwrap().is_file());
}

#[test]
fn a_measurement_whose_standard_error_nobody_reads_ends() {
    let folder = Folder::new();
    for (words, code) in [(format!("{NULL} --no-save --format json"), 0), ("run --name=j --rw=nonsense".to_owned(), 2)]
    {
        let (_reader, mut writer) = pipe().unwrap();
        fill(&mut writer);
        let ended = folder.iotoll(&words).stderr(writer).run();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(code != 0 || ended.json().is_object());
    }
}

/// Ctrl-S stops the output of a terminal. The progress line is then left out.
#[test]
fn a_measurement_on_a_stopped_terminal_ends() {
    needs!("python3");
    let under = ["python3", "-c", include_str!("programs/stopped_terminal.py")];
    Folder::new().iotoll(&format!("{NULL} --runtime=1 --no-save")).under(&under).run().done();
}
