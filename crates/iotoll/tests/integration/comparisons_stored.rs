//! `--stored`: a comparison with an earlier one of the same baseline.

use super::iotoll::{Ended, Folder, at_once, number, warns};
use serde_json::Value;

const SPIN: &str = "compare --budget 8s --quiet --format json --ioengine=spin --size=1m --spin_cycles=20000";

/// An earlier comparison in the folder `one`.
fn folder_with_one() -> Folder {
    let folder = Folder::new();
    folder.iotoll(SPIN).word_list("--out one --candidate inject_ns=500").run().done();
    folder
}

/// (1 + total) = (1 + change) · (1 + environment), and every interval contains its value.
#[track_caller]
fn product_holds(metric: &Value) {
    let (environment, total) = (&metric["stored"]["environment"], &metric["stored"]["total"]);
    let factor = |change: &Value| 1.0 + number(change);
    let product = factor(&metric["change"]) * factor(&environment["value"]);
    assert!((product / factor(&total["value"]) - 1.0).abs() < 1e-9, "{metric}");
    for change in [environment, total] {
        let value = number(&change["value"]);
        assert!(number(&change["low"]) <= value && value <= number(&change["high"]), "{change}");
    }
}

#[test]
fn the_difference_from_the_stored_record_is_split() {
    let folder = folder_with_one();
    let found =
        folder.iotoll(SPIN).word_list("--out two --stored one --candidate spin_cycles=200000").run().done().json();
    let metrics = &found["cells"][0]["metrics"];
    let threads = &metrics["thread_cycles_per_io"];
    product_holds(threads);
    // Bounds that hold despite noise: a tenfold change, an environment that other tests disturb.
    assert!((15_000.0..60_000.0).contains(&number(&threads["stored"]["baseline"])), "{threads}");
    assert!((3.0..30.0).contains(&number(&threads["stored"]["total"]["value"])), "{threads}");
    assert!((-0.7..2.0).contains(&number(&threads["stored"]["environment"]["value"])), "{threads}");
    product_holds(&metrics["iops"]);
    assert!(metrics["latency_p99"]["stored"].is_null());
    assert_eq!(found["stored"]["from"], "one");
    let planned = |case: usize| &found["cases"][case]["plan"]["jobs"]["phases"][0]["jobs"][0]["spin_cycles"];
    assert_eq!((planned(0), planned(1)), (&20_000.into(), &200_000.into()), "{}", found["cases"]);
    assert!(found["stored"]["differs"].is_array() && number(&found["stored"]["started_unix_seconds"]) > 1.7e9);
    assert!(!warns(&found, "stored_work_differs", &[]), "{}", found["warnings"]);
    assert!(String::from_utf8(folder.read("two/report.html")).unwrap().contains("Against the stored baseline of 20"));
    // The same from the saved record; without `--stored` there is no trace of the stored record.
    at_once(["json", "mail", "table", "markdown", "csv"], |format| {
        let again = folder.iotoll(&format!("report two --stored one/record.jsonl --format {format}")).run().done();
        let alone = folder.iotoll(&format!("report two --format {format}")).run().done();
        match format {
            "json" => assert_eq!(again.json()["cells"], found["cells"]),
            "csv" => assert!(again.stdout != alone.stdout),
            _ => {
                assert!(again.stdout.contains("Against the stored baseline of 20"), "{again:?}");
                assert!(again.stdout.contains("environment"), "{again:?}");
                assert!(!alone.stdout.contains("Against the stored"), "{alone:?}");
            }
        }
    });
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn different_work_gives_a_warning_and_unmatched_cells_have_no_change() {
        let folder = Folder::new();
        let swept = "--sweep bs=4k,16k --candidate inject_ns=500";
        folder.iotoll(SPIN).word_list("--out one").word_list(swept).run().done();
        let found = folder
            .iotoll(SPIN)
            .word_list("--no-save --stored one --iodepth=4 --sweep bs=16k,64k --candidate inject_ns=900")
            .run()
            .done()
            .json();
        assert!(warns(&found, "stored_work_differs", &["iodepth 1 → 4"]), "{}", found["warnings"]);
        let stored = |cell: usize| &found["cells"][cell]["metrics"]["iops"]["stored"];
        assert!(stored(0).is_object() && stored(1).is_null(), "{}", found["cells"]);
    }

    /// A record that does not fit is refused before the measurement, and nothing is left behind.
    #[test]
    fn records_that_do_not_fit_are_refused_at_once() {
        let folder = Folder::new();
        folder
        .iotoll(
            "run --name=r --ioengine=null --size=1m --runtime=200ms --time_based --background 200ms --quiet --out run",
        )
        .run()
        .done();
        folder.iotoll(SPIN).word_list("--out swept --sweep bs=4k,16k --candidate inject_ns=500").run().done();
        let kept = String::from_utf8(folder.read("swept/record.jsonl")).unwrap();
        folder.write("cut.jsonl", kept.lines().take(2).collect::<Vec<_>>().join("\n"));
        let cases: [(&str, &[&str]); 5] = [
            ("nowhere", &["--stored nowhere", "reading the record", "give the folder of a comparison"]),
            ("run", &["--stored run", "the record of a run, not of a comparison", "iotoll compare"]),
            ("run/record.jsonl", &["--stored run/record.jsonl", "the record of a run"]),
            ("cut.jsonl", &["--stored cut.jsonl", "no complete round"]),
            ("swept", &["--stored swept", "bs=4k", "bs=16k", "no point of a sweep"]),
        ];
        let before = folder.listing();
        at_once(cases, |(stored, named)| {
            let words = format!("--out new --candidate inject_ns=900 --stored {stored}");
            folder.iotoll(SPIN).word_list(&words).run().refused(2, named);
        });
        assert_eq!(folder.listing(), before);
        let refused = |ended: Ended, named: &[&str]| ended.refused(2, named);
        refused(
            folder.iotoll("report run --stored swept").run(),
            &["--stored swept", "record of a comparison, not of a run"],
        );
        refused(folder.iotoll("report swept --stored nowhere").run(), &["--stored nowhere", "reading the record"]);
    }

    /// A record of an older method is read, with a warning.
    #[test]
    fn another_method_gives_a_warning() {
        let folder = folder_with_one();
        let kept = String::from_utf8(folder.read("one/record.jsonl")).unwrap();
        folder.write("old.jsonl", kept.replacen("\"method_version\":3", "\"method_version\":1", 1));
        let found = folder.iotoll("report one --stored old.jsonl --format json").run().done().json();
        assert!(warns(&found, "stored_method_differs", &["method 1", "method 3"]), "{}", found["warnings"]);
        let environment = &found["cells"][0]["metrics"]["thread_cycles_per_io"]["stored"]["environment"];
        assert_eq!(number(&environment["value"]), 0.0);
    }
}
