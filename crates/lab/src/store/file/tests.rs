//! Records that are incomplete, damaged or missing.

use super::*;
use crate::compare::boots;
use model::comparison::CompareRecord;
use model::comparison::record::{BootRecord, End, RoundRecord};
use model::record::{Outcome, Record};

/// A comparison of two boots, of which the first was measured.
const BEGUN: &str = include_str!("begun.jsonl");

/// A folder with this record.
fn folder_of(text: impl AsRef<[u8]>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(RECORD), text).unwrap();
    folder
}

fn begun() -> tempfile::TempDir {
    folder_of(BEGUN)
}

/// The other boot.
fn next() -> (BootRecord, RoundRecord) {
    let mut line: serde_json::Value = serde_json::from_str(BEGUN.lines().last().unwrap()).unwrap();
    line["boot"]["boot"]["arm"] = 1.into();
    let [boot, round] = ["boot", "round"].map(|part| line["boot"][part].take());
    (serde_json::from_value(boot).unwrap(), serde_json::from_value(round).unwrap())
}

/// Envelope and header of a comparison without boots.
fn bare() -> String {
    let boots = "\"boots\":{\"each\":5,\"hook\":null,\"begun\":null}";
    assert!(BEGUN.contains(boots));
    BEGUN.lines().take(2).map(|line| line.replacen(boots, "\"boots\":null", 1) + "\n").collect()
}

fn text(folder: &Path) -> Vec<u8> {
    fs::read(folder.join(RECORD)).unwrap()
}

fn arms(record: &CompareRecord) -> Vec<usize> {
    record.boots.iter().map(|boot| boot.arm).collect()
}

/// The next line follows exactly what was read; the rest has been removed.
#[test]
fn resuming_keeps_only_what_was_read() {
    let whole = BEGUN.as_bytes();
    let without_end = whole.strip_suffix(b"\n").unwrap();
    let tails: [(&[u8], &[u8]); 5] = [
        (whole, b""),
        (whole, b"{\"boot\":{\"bo"),
        // A complete line with damaged content, from a bad disk or an editor.
        (whole, b"{\"boot\":{\"bo\n"),
        (whole, b"\0\0\0\0\n\n"),
        (without_end, b""),
    ];
    for (kept, tail) in tails {
        let folder = begun();
        fs::write(folder.path().join(RECORD), [kept, tail].concat()).unwrap();
        let shown = String::from_utf8_lossy(tail);
        assert_eq!(arms(&load::<CompareRecord>(folder.path()).unwrap()), [0], "{shown}");
        let (saver, record) = boots::resume(folder.path()).unwrap();
        assert_eq!(arms(&record), [0], "{shown}");
        assert_eq!(text(folder.path()), whole, "{shown}");
        let (boot, round) = next();
        boots::add(&saver, &boot, &round).unwrap();
        let record = load::<CompareRecord>(folder.path()).unwrap();
        assert_eq!((arms(&record), record.rounds.len()), (vec![0, 1], 1), "{shown}");
    }
}

#[test]
fn a_folder_and_its_file_are_the_same_record() {
    let folder = begun();
    let file = folder.path().join(RECORD);
    for path in [folder.path(), &file] {
        assert_eq!(arms(&load::<CompareRecord>(path).unwrap()), [0]);
        let (resumed, record) = boots::resume(path).unwrap();
        assert_eq!((resumed.path(), arms(&record)), (Some(file.clone()), vec![0]));
    }
}

#[test]
fn a_record_that_cannot_be_resumed_says_why_and_is_unchanged() {
    let folder = begun();
    let says = |text: &[u8]| {
        fs::write(folder.path().join(RECORD), text).unwrap();
        let why = boots::resume(folder.path()).err().unwrap().to_string();
        assert_eq!(self::text(folder.path()), text, "{why}");
        why
    };
    for (from, to, named) in [
        ("\"each\":5", "\"each\":4000000000", "boots = 4000000000"),
        ("\"budget_seconds\":60.0", "\"budget_seconds\":-1.0", "budget of -1 s"),
        ("\"hang_timeout_seconds\":null", "\"hang_timeout_seconds\":1e300", "hang_timeout of "),
    ] {
        assert!(BEGUN.contains(from), "{from}");
        let why = says(format!("{}{{\"bo", BEGUN.replacen(from, to, 1)).as_bytes());
        assert!(why.contains("its header was changed") && why.contains(named), "{why}");
    }
    let why = says(bare().as_bytes());
    assert!(why.contains("no arm of this comparison is a boot") && why.contains("iotoll report"), "{why}");
    let end = End {
        outcome: Outcome::Completed,
        reason: "all boots were measured".to_owned(),
        tsc_hertz: 1.0,
        canaries: next().0.canaries,
        warnings: Vec::new(),
    };
    let mut ended = BEGUN.as_bytes().to_vec();
    line(&mut ended, "end", &end).unwrap();
    let why = says(&ended);
    assert!(why.contains("is complete") && why.contains("iotoll report"), "{why}");
}

/// Each error says what was found and what to do about it.
#[test]
fn a_file_that_is_not_a_record_says_what_to_give() {
    let folder = begun();
    let [envelope, header, boot]: [&str; 3] = BEGUN.lines().collect::<Vec<_>>().try_into().unwrap();
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
        (envelope.replacen("\"method_version\":5", "\"method_version\":\"two\"", 1), &["line 1: is damaged", give]),
        (
            envelope.replacen("\"method_version\":5", "\"method_version\":1", 1),
            &["measured by method 1", "show it with"],
        ),
        (
            envelope.replacen("\"kind\":\"compare\"", "\"kind\":\"cost\"", 1),
            &["is the record of a run, not of a comparison"],
        ),
        (format!("{envelope}\n"), &["line 2: is missing: nothing was measured", give]),
        (
            format!("{envelope}\n{}\n", header.replacen("\"seed\":1", "\"seed\":\"one\"", 1)),
            &["line 2: is damaged", give],
        ),
        (format!("{envelope}\n{header}\n{{\"bo\n{boot}"), &["line 3: is damaged", "remove it and all lines after it"]),
        (format!("{envelope}\n{header}\n\n{header}\n"), &["line 4: is a second header", "remove it"]),
    ];
    for (text, named) in cases {
        fs::write(folder.path().join(RECORD), text).unwrap();
        let why = load::<CompareRecord>(folder.path()).unwrap_err().to_string();
        assert!(named.iter().all(|word| why.contains(word)), "{named:?}: {why}");
    }
    for why in [load::<CompareRecord>(Path::new("/nowhere")).err(), boots::resume(Path::new("/nowhere")).err()] {
        let why = why.unwrap().to_string();
        assert!(why.contains("reading the record") && why.ends_with(give), "{why}");
    }
}

/// What every program that reads records must learn from the first line alone.
#[test]
fn the_envelope_says_the_kind() {
    let folder = begun();
    assert_eq!(kind_at(folder.path()).unwrap(), Kind::Compare);
    fs::write(folder.path().join(RECORD), BEGUN.replacen("\"kind\":\"compare\"", "\"kind\":\"later\"", 1)).unwrap();
    let why = kind_at(folder.path()).unwrap_err().to_string();
    assert!(why.contains("is of kind 'later'") && why.contains("does not know"), "{why}");
    for (text, named) in [("", "is empty"), ("garbage", "is not a record")] {
        fs::write(folder.path().join(RECORD), text).unwrap();
        let why = kind_at(folder.path()).unwrap_err().to_string();
        assert!(why.contains(named) && why.ends_with("give the folder of a saved run or comparison"), "{why}");
    }
}

#[test]
fn a_run_without_its_measurement_is_not_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = Vec::new();
    line(&mut text, "envelope", &Envelope::new(Kind::Cost, 0.0, Vec::new())).unwrap();
    fs::write(folder.path().join(RECORD), text).unwrap();
    let why = load::<Record>(folder.path()).unwrap_err().to_string();
    assert!(why.contains("line 2: is missing") && why.contains("iotoll run"), "{why}");
}

/// What can be shown is shown, with the place where it ends.
#[test]
fn a_record_that_ends_early_says_where() {
    let whole = format!("{}{}\n", bare(), serde_json::json!({ "round": next().1 }));
    let folder = folder_of(&whole);
    let lines: Vec<&str> = whole.lines().collect();
    let show = |text: String| {
        fs::write(folder.path().join(RECORD), text).unwrap();
        load_to_show::<CompareRecord>(folder.path()).map(|(_, note)| note).map_err(|error| error.to_string())
    };
    let note = show(whole.clone()).unwrap().unwrap();
    assert!(note.contains("after line 3: its end is missing") && note.contains("complete: 1"), "{note}");
    let note = show(format!("{whole}{{\"round\":")).unwrap().unwrap();
    assert!(note.contains("in line 4: its end is missing"), "{note}");
    for (text, place) in [
        (lines[..2].join("\n"), "after line 2"),
        (format!("{}\n{}", lines[..2].join("\n"), &lines[2][..9]), "in line 3"),
        (format!("{}\n{}", lines[0], &lines[1][..lines[1].len() / 2]), "in line 2"),
    ] {
        let why = show(text).unwrap_err();
        assert!(why.contains("ends early") && why.contains(place) && why.contains("nothing to show"), "{why}");
    }
    // One of boots waits for the next boot.
    assert!(load_to_show::<CompareRecord>(begun().path()).unwrap().1.is_none());
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
        serde_json::to_string(&serde_json::json!({ ENVELOPE: Envelope::new(Kind::Compare, 0.0, Vec::new()) })).unwrap()
            + &format!("\n{{\"{letters}\": 1}}\n"),
    ] {
        fs::write(&path, &line).unwrap();
        let error = load::<CompareRecord>(folder.path()).unwrap_err().to_string();
        assert!(error.len() < 900 && error.contains("compare"), "{} {error}", error.len());
    }
}
