//! Records that are incomplete, damaged or missing.

use super::CompareRecord;
use lab::store::{RECORD, envelope_at, load, load_to_show};
use model::kind::{Envelope, Recorded, SCHEMA};
use model::record::Record;
use std::fs;
use std::path::Path;

/// A comparison whose first round was measured.
const BEGUN: &str = include_str!("begun.jsonl");

/// A folder with it.
fn begun() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(RECORD), BEGUN).unwrap();
    folder
}

/// Each error says what was found and what to do about it.
#[test]
fn a_file_that_is_not_a_record_says_what_to_give() {
    let folder = begun();
    let [envelope, header, round]: [&str; 3] = BEGUN.lines().collect::<Vec<_>>().try_into().unwrap();
    let give = "give the folder of a comparison that was saved (iotoll compare)";
    let cases: [(String, &[&str]); 12] = [
        (String::new(), &["is empty", give]),
        ("\n\n".to_owned(), &["is empty", give]),
        ("garbage\n".to_owned(), &["line 1: is not a record", give]),
        ("{\"schema\":\"iotoll.compare/1\"}\n".to_owned(), &["line 1: is not the envelope", give]),
        (
            envelope.replacen("iotoll.record/5", "iotoll.record/9", 1),
            &["its schema is 'iotoll.record/9', of iotoll", give],
        ),
        (envelope.replacen("\"method_version\":6", "\"method_version\":\"two\"", 1), &["line 1: is damaged", give]),
        (
            envelope.replacen("\"method_version\":6", "\"method_version\":1", 1),
            &["measured by method 1", "show it with"],
        ),
        (
            envelope.replacen("\"kind\":\"compare\"", "\"kind\":\"cost\"", 1),
            &["is a record of kind 'cost', not of a comparison"],
        ),
        (format!("{envelope}\n"), &["line 2: is missing: nothing was measured", give]),
        (
            format!("{envelope}\n{}\n", header.replacen("\"seed\":1", "\"seed\":\"one\"", 1)),
            &["line 2: is damaged", give],
        ),
        (format!("{envelope}\n{header}\n{{\"ro\n{round}"), &["line 3: is damaged", "remove it and all lines after it"]),
        (format!("{envelope}\n{header}\n\n{header}\n"), &["line 4: is a second header", "remove it"]),
    ];
    for (text, named) in cases {
        fs::write(folder.path().join(RECORD), text).unwrap();
        let why = load::<CompareRecord>(folder.path()).unwrap_err().to_string();
        assert!(named.iter().all(|word| why.contains(word)), "{named:?}: {why}");
    }
    let why = load::<CompareRecord>(Path::new("/nowhere")).unwrap_err().to_string();
    assert!(why.contains("reading the record") && why.ends_with(give), "{why}");
}

/// What every program that reads records must learn from the first line alone.
#[test]
fn the_envelope_says_the_kind() {
    let folder = begun();
    assert_eq!(envelope_at(folder.path()).unwrap().kind, CompareRecord::KIND.name);
    for (text, named) in [("", "is empty"), ("garbage", "is not a record")] {
        fs::write(folder.path().join(RECORD), text).unwrap();
        let why = envelope_at(folder.path()).unwrap_err().to_string();
        assert!(why.contains(named) && why.ends_with("give the folder of a saved run or comparison"), "{why}");
    }
}

#[test]
fn a_run_without_its_measurement_is_not_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let text = serde_json::json!({ "envelope": Envelope::new(Record::KIND, 0.0, Vec::new()) }).to_string() + "\n";
    fs::write(folder.path().join(RECORD), text).unwrap();
    let why = load::<Record>(folder.path()).unwrap_err().to_string();
    assert!(why.contains("line 2: is missing") && why.contains("iotoll run"), "{why}");
}

/// What can be shown is shown, with the place where it ends.
#[test]
fn a_record_that_ends_early_says_where() {
    let (folder, lines) = (begun(), BEGUN.lines().collect::<Vec<_>>());
    let show = |text: String| {
        fs::write(folder.path().join(RECORD), text).unwrap();
        load_to_show::<CompareRecord>(folder.path()).map(|(_, note)| note).map_err(|error| error.to_string())
    };
    let note = show(BEGUN.to_owned()).unwrap().unwrap();
    assert!(note.contains("after line 3: its end is missing") && note.contains("complete: 1"), "{note}");
    let note = show(format!("{BEGUN}{{\"round\":")).unwrap().unwrap();
    assert!(note.contains("in line 4: its end is missing"), "{note}");
    for (text, place) in [
        (lines[..2].join("\n"), "after line 2"),
        (format!("{}\n{}", lines[..2].join("\n"), &lines[2][..9]), "in line 3"),
        (format!("{}\n{}", lines[0], &lines[1][..lines[1].len() / 2]), "in line 2"),
    ] {
        let why = show(text).unwrap_err();
        assert!(why.contains("ends early") && why.contains(place) && why.contains("nothing to show"), "{why}");
    }
}

#[test]
fn what_a_damaged_record_says_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(RECORD);
    let letters = "x".repeat(5000);
    for line in [
        format!("{{\"envelope\": {{\"schema\": \"{letters}\"}}}}\n"),
        format!(
            "{{\"envelope\": {{\"schema\": \"{SCHEMA}\", \"kind\": {{\"{letters}\": 1}}, \"created_unix_seconds\": \"{letters}\"}}}}\n"
        ),
        serde_json::to_string(&serde_json::json!({ "envelope": Envelope::new(CompareRecord::KIND, 0.0, Vec::new()) }))
            .unwrap()
            + &format!("\n{{\"{letters}\": 1}}\n"),
    ] {
        fs::write(&path, &line).unwrap();
        let error = load::<CompareRecord>(folder.path()).unwrap_err().to_string();
        assert!(error.len() < 900 && error.contains("compare"), "{} {error}", error.len());
    }
}
