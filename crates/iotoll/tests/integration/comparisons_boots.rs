//! `iotoll compare` of boots. A file stands in for the booted arm.

use super::iotoll::{Folder, number, whole};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn experiment(more: &str) -> String {
    format!(
        r#"
        job = """
        [spin]
        ioengine=spin
        size=1m
        spin_cycles=20000
        """
        budget = "1s"
        boots = 2
        {more}
        [[arm]]
        name = "stock"
        when = "cat which = stock"
        [[arm]]
        name = "patched"
        when = "grep -qx patched which"
        options = ["spin_cycles=40000"]
        "#
    )
}

/// The next arm, from the line that names it.
fn next(stderr: &str) -> &str {
    let line = stderr.lines().find(|line| line.contains(" next, then: iotoll compare --resume /")).unwrap();
    assert!(line.ends_with("/kept"), "{line}");
    line.split('\'').nth(1).unwrap()
}

#[track_caller]
fn complete(found: &Value) {
    assert_eq!((whole(&found["rounds"]), found["boots"].as_array().unwrap().len()), (2, 4), "{found}");
    // Twice as many cycles, which the thread's own clock shows on a busy machine too.
    let threads = &found["cells"][0]["metrics"]["thread_cycles_per_io"];
    assert!((0.8..1.2).contains(&number(&threads["change"])), "{threads}");
    for round in [0, 1] {
        let arms = || found["boots"].as_array().unwrap().iter().filter(|boot| boot["round"] == round);
        assert_eq!(arms().count(), 2);
        assert!(arms().any(|boot| boot["arm"] == "stock") && arms().any(|boot| boot["arm"] == "patched"));
    }
    let codes: Vec<&str> = found["warnings"].as_array().unwrap().iter().filter_map(|w| w["code"].as_str()).collect();
    assert!(codes.contains(&"no_boot"), "the boot id is the same all the time: {codes:?}");
}

#[test]
fn a_missing_folder_is_named() {
    let (folder, gone) = (Folder::new(), Folder::new());
    gone.write("which", "neither");
    gone.write("boots.toml", experiment(""));
    gone.iotoll(&format!("compare boots.toml --quiet --out {}", folder.path("kept").display())).run().done();
    drop(gone);
    folder
        .iotoll("compare --resume kept")
        .run()
        .refused(2, &["kept", "it was started in", "No such file", "mount or make it"]);
}

#[test]
fn an_existing_report_is_not_overwritten() {
    let folder = Folder::new();
    folder.write("which", "stock");
    folder.write("boots.toml", experiment(""));
    fs::create_dir(folder.path("kept")).unwrap();
    folder.write("kept/report.html", "somebody's");
    folder.iotoll("compare boots.toml --out kept").run().refused(2, &["kept/report.html", "choose another --out"]);
    assert_eq!(folder.read("kept/report.html"), b"somebody's");
    assert!(!folder.exists("kept/record.jsonl"));
}

#[test]
fn a_hook_boots_arm_after_arm_until_all_are_measured() {
    let folder = Folder::new();
    folder.write("which", "neither");
    folder
        .write("boots.toml", experiment(r#"hook = "echo \"$IOTOLL_ARM\" > which; echo \"$IOTOLL_RESUME\" >> hooks""#));
    let ended = folder.iotoll("compare boots.toml --same-boot --out kept --format json --seed 5").run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    complete(&ended.json());
    let said: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("of 4 measured: arm '")).collect();
    assert_eq!(said.len(), 4, "{ended:?}");
    let kept = folder.path("kept").canonicalize().unwrap();
    assert_eq!(String::from_utf8(folder.read("hooks")).unwrap(), format!("{}\n", kept.display()).repeat(4));
    assert!(folder.exists("kept/report.html"));
    let again = folder.iotoll("report kept --format json").run();
    assert_eq!(again.json(), ended.json());
    folder.iotoll("compare --resume kept").run().refused(2, &["kept", "complete", "iotoll report kept"]);
}

#[test]
fn incomplete_experiments_of_boots_are_refused_in_one_line() {
    let folder = Folder::new();
    folder.write("which", "stock");
    let whole = experiment("");
    let alone = whole.rsplit_once("[[arm]]").unwrap().0;
    let cases: [(String, &[&str]); 7] = [
        (alone.replace("boots = 2", "boots = 2\naa = true"), &["boots.toml: arm 'stock' has a when", "aa = true"]),
        (whole.replace("boots = 2", "boots = 1"), &["boots = 1", "2 to 100"]),
        (whole.replace("when = \"grep -qx patched which\"", ""), &["arm 'patched' has no when"]),
        (whole.replace("grep -qx patched which", "cat which = stock"), &["'stock' and 'patched'", "same when"]),
        (whole.replace("when = \"cat", "#").replace("when = \"grep", "#"), &["boots and hook", "when ="]),
        (whole.replace("cat which = stock", " "), &["arm 'stock'", "is empty"]),
        (whole.replace("boots = 2", "boots = 2\naa = true"), &["compared with itself", "arm 'patched'"]),
    ];
    for (text, named) in cases {
        folder.write("boots.toml", text);
        folder.iotoll("compare boots.toml --out kept").run().refused(2, named);
        assert!(!folder.exists("kept"));
    }
    folder.write("boots.toml", whole);
    folder.iotoll("compare boots.toml --no-save").run().refused(2, &["--no-save"]);
    folder.iotoll("compare boots.toml --probe dirty --out kept").run().refused(2, &["--probe", "boots"]);
    assert!(!folder.exists("kept"));
    folder.iotoll("compare --resume nowhere").run().refused(2, &["nowhere", "give the folder of a comparison"]);
    folder.iotoll("compare --resume kept --budget 3s").run().refused(2, &["--resume", "--budget"]);
    // A comparison without boots, and an edited header: refused, and unchanged.
    folder.iotoll("compare boots.toml --out kept --quiet").run();
    let record = String::from_utf8(folder.read("kept/record.jsonl")).unwrap();
    for (from, to) in [("\"each\":2", "\"each\":4000000000"), ("\"budget_seconds\":1.0", "\"budget_seconds\":-1.0")] {
        let changed = format!("{}{{\"bo", record.replace(from, to));
        assert!(!changed.starts_with(&record));
        folder.write("kept/record.jsonl", &changed);
        folder
            .iotoll("compare --resume kept")
            .run()
            .refused(2, &["kept", "header was changed", "start a new experiment"]);
        assert_eq!(folder.read("kept/record.jsonl"), changed.as_bytes());
    }
}

/// A boot that fails does not count, and can be measured again.
#[test]
fn an_arm_that_fails_in_its_boot_leaves_the_record_unchanged() {
    let folder = Folder::new();
    folder.write("which", "stock");
    let failing = experiment("hook = \"echo $IOTOLL_ARM > which\"")
        .replace("ioengine=spin", "ioengine=psync\nfilename=data/below\nrw=read");
    folder.write("data", "a file, and no folder");
    folder.write("boots.toml", failing.replace("spin_cycles=20000\n", "").replace("spin_cycles=40000", "bs=8k"));
    let ended = folder.iotoll("compare boots.toml --out kept --quiet --same-boot").run();
    ended.refused(2, &["data/below"]);
    let shown = folder.iotoll("report kept --format json").run();
    assert_eq!((whole(&shown.json()["rounds"]), shown.code), (0, Some(0)), "{shown:?}");
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    /// A systemd unit at boot runs in `/`, and knows only the folder.
    #[test]
    fn it_resumes_in_the_directory_and_with_the_flags_of_its_start() {
        let (folder, elsewhere) = (Folder::with_file("data", 1 << 20), Folder::new());
        folder.iotoll("compare --budget 1s --quiet --out one --rw=read --filename=data --size=1m --aa").run().done();
        folder.write("which", "neither");
        let hook = r#"hook = "test ! -e go || echo \"$IOTOLL_ARM\" > which; echo \"$IOTOLL_RESUME\" >> hooks""#;
        let reads = experiment(hook)
            .replace("ioengine=spin", "rw=read\nfilename=data")
            .replace("spin_cycles=20000\n", "")
            .replace("spin_cycles=40000", "bs=8k");
        folder.write("boots.toml", reads);
        let begun = folder.iotoll("compare boots.toml --out kept --quiet --meters proc_stat --stored one").run();
        let first = next(&begun.stderr).to_owned();
        folder.write("which", first);
        folder.write("go", "");
        let record = folder.path("kept/record.jsonl");
        let words = format!("compare --resume {} --same-boot --quiet --format json", record.display());
        let ended = elsewhere.iotoll(&words).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found = ended.json();
        assert_eq!((whole(&found["rounds"]), found["boots"].as_array().unwrap().len()), (2, 4), "{found}");
        // No files were laid out there, and the meters and the stored record are those of the start.
        assert!(elsewhere.listing().is_empty(), "{:?}", elsewhere.listing());
        // Ticks are too coarse for a slice, and another meter was not asked for.
        assert!(found["environment"]["meter"].is_null(), "{}", found["environment"]["meter"]);
        assert_eq!(found["stored"]["from"], "one");
        assert!(folder.exists("kept/report.html"));
        let kept = folder.path("kept").canonicalize().unwrap();
        let hooks = String::from_utf8(folder.read("hooks")).unwrap();
        assert!(hooks.lines().count() == 4 && hooks.lines().all(|line| Path::new(line) == kept), "{hooks}");
    }

    #[test]
    fn a_user_boots_the_named_arm_and_resumes() {
        let folder = Folder::new();
        folder.write("which", "neither");
        folder.write("boots.toml", experiment(""));
        let begun = folder.iotoll("compare boots.toml --out kept --quiet").run();
        assert_eq!((begun.code, begun.stdout.as_str()), (Some(0), ""), "{begun:?}");
        let first = next(&begun.stderr).to_owned();
        let other = if first == "stock" { "patched" } else { "stock" };
        folder.iotoll("compare --resume kept").run().refused(2, &["no arm is booted", &format!("'{first}'")]);
        folder.write("which", other);
        folder.iotoll("compare --resume kept").run().refused(2, &[&format!("arm '{other}' is booted"), "boot that"]);
        folder.write("which", &first);
        let measured = folder.iotoll("compare --resume kept --quiet").run();
        assert_eq!((measured.code, next(&measured.stderr)), (Some(0), other), "{measured:?}");
        // An incomplete experiment can be shown, and is marked incomplete.
        let shown = folder.iotoll("report kept").run();
        assert!(shown.stdout.contains("1 of 4 boots were measured"), "{shown:?}");
        // A line that a power cut left incomplete is measured again.
        let record = folder.read("kept/record.jsonl");
        folder.write("kept/record.jsonl", [record.as_slice(), b"{\"boot\":{\"bo\n"].concat());
        folder.write("which", other);
        let mut last = folder.iotoll("compare --resume kept --quiet").run();
        for _ in 0..2 {
            assert_eq!(last.code, Some(0), "{last:?}");
            let arm = next(&last.stderr).to_owned();
            folder.write("which", &arm);
            // The second round may start with the arm that ended the first: then nothing can be booted in between here.
            let words = "compare --resume kept --quiet --format json";
            let again = folder.iotoll(words).run();
            last = if again.code == Some(2) {
                again.refused(2, &["is next again", "--same-boot"]);
                folder.iotoll(&format!("{words} --same-boot")).run()
            } else {
                again
            };
        }
        assert_eq!(last.code, Some(0), "{last:?}");
        complete(&last.json());
    }
}
