//! A full file system: reported in one line when a file is laid out, in the record when it ends a run.

use super::iotoll::{Folder, at_once, whole};
use super::machine::{LoopDevice, Mount, tool};

/// One in memory, and one on a device.
const KINDS: [&str; 2] = ["tmpfs", "ext4"];

/// A file system of 8 MiB, or a skip.
fn tiny(folder: &Folder, kind: &str) -> Option<(Mount, Option<LoopDevice>)> {
    let place = folder.path("tiny");
    if kind == "tmpfs" {
        return Some((Mount::in_memory(place, "8m")?, None));
    }
    folder.write("image", vec![0; 8 << 20]);
    // Small blocks: a value of a few kilobytes needs several, and a short one leaves some of them to others.
    tool("mkfs.ext4", &["-q", "-b", "1024", "-m", "0", &folder.name("image")]).unwrap();
    let device = LoopDevice::attach(&folder.path("image"), &[])?;
    Some((Mount::new(place, &["-t", "ext4", &device.path])?, Some(device)))
}

fn each_file_system(kinds: &[&str], check: impl Fn(&str, &Folder) + Sync) {
    at_once(kinds, |kind| {
        let folder = Folder::new();
        let mounted = tiny(&folder, kind);
        mounted.iter().for_each(|_| check(kind, &folder));
    });
}

#[test]
fn laying_out_fails_in_one_line() {
    each_file_system(&KINDS, |kind, folder| {
        folder.write("tiny/mine", [3; 4096]);
        let before = folder.listing();
        for options in ["--rw=read", "--rw=write", "--rw=read --fallocate=none", "--rw=read --filename=tiny/mine"] {
            let name = if options.contains("filename") { "" } else { " --filename=tiny/big" };
            let ended = folder.iotoll(&format!("run --background 200ms --name=a --size=64m {options}{name}")).run();
            ended.refused(2, &["tiny/", "its file system has", "smaller size="]);
            assert_eq!(folder.listing(), before, "{kind} {options}");
        }
    });
}

#[test]
fn writing_until_the_disk_is_full_keeps_the_results() {
    each_file_system(&KINDS, |kind, folder| {
        for engine in ["psync", "libaio", "io_uring"] {
            let options =
                "run --background 200ms --quiet --format json --name=w --filename=tiny/big --rw=write --size=64m";
            let ended =
                folder.iotoll(&format!("{options} --fallocate=none --ioengine={engine} --out kept-{engine}")).run();
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""), "{kind} {engine} {ended:?}");
            let finding = ended.json();
            let why = finding["outcome"]["failed"].as_str().unwrap_or_default();
            assert!(why.contains("'w'") && why.contains("No space left") && why.contains("free some space"), "{why}");
            let ios = whole(&finding["jobs"][0]["write"]["ios"]);
            assert!((100..=2048).contains(&ios), "{kind} {engine}: {ios} writes fit into 8 MiB");
            assert!(folder.exists(&format!("kept-{engine}/record.jsonl")));
            assert!(!folder.exists("tiny/big"), "{kind} {engine}: the file that it made is removed");
        }
    });
}

#[test]
fn a_record_that_does_not_fit_is_still_printed() {
    // A full ext4 still has room for a small file.
    each_file_system(&["tmpfs"], |kind, folder| {
        let filler = std::fs::write(folder.path("tiny/filler"), vec![1; 16 << 20]);
        assert_eq!(filler.unwrap_err().kind(), std::io::ErrorKind::StorageFull, "{kind}");
        let options =
            "run --background 200ms --format json --name=n --ioengine=null --size=1g --runtime=200ms --time_based";
        let ended = folder.iotoll(&format!("{options} --out tiny")).run();
        assert_eq!(ended.code, Some(1), "{kind} {ended:?}");
        assert!(whole(&ended.json()["jobs"][0]["ios"]) > 0, "{kind}");
        assert!(ended.stderr.contains("saving the record") && ended.stderr.lines().count() == 1, "{kind} {ended:?}");
        let left: Vec<_> = folder.listing().into_keys().filter(|path| path.contains("record")).collect();
        assert!(left.is_empty(), "{kind}: {left:?}");
    });
}

/// Another process takes all space while the setting is on. On ext4 also the blocks that the short value does not need.
#[test]
fn a_setting_is_put_back_on_a_full_disk() {
    each_file_system(&KINDS, |kind, folder| {
        let found = "a line of the original value\n".repeat(100);
        folder.write("tiny/knob", &found);
        let knob = format!("--candidate-set=file:{}=other", folder.path("tiny/knob").display());
        let compare = "compare --meters thread --quiet --no-save --format json --ioengine=null --size=1m --rate_iops=1k --budget 1s";
        let compare = folder.iotoll(compare).word(knob).word_list("--candidate-cleanup true --candidate-setup");
        // Sectors of 512 bytes that the file keeps while it has the short value.
        let ended = compare.word("stat -c %b tiny/knob > kept; cat /dev/zero > tiny/filler; true").run().done();
        let kept: usize = folder.text("kept").trim().parse().unwrap();
        assert!(kept * 512 >= found.len(), "{kind}: {kept} sectors are too few for the original value");
        let is = folder.text("tiny/knob");
        assert!(is == found, "{kind}: the knob is '{is}', {ended:?}");
    });
}

/// It is tried again at the end, and said once.
#[test]
fn a_setting_that_cannot_be_put_back_is_said_once() {
    let folder = Folder::new();
    folder.write("knob", "original\n");
    let knob = format!("--candidate-set=file:{}=other", folder.path("knob").display());
    let compare =
        "compare --meters thread --quiet --no-save --format json --ioengine=null --size=1m --rate_iops=1k --budget 1s";
    let compare = folder.iotoll(compare).word(knob).word_list("--candidate-cleanup true --candidate-setup");
    // A ledger of its own, because it stays.
    let state = format!("XDG_STATE_HOME={}", folder.path("state").display());
    let ended = compare.word("rm knob").under(&["env", &state]).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let failed = match ended.stdout.as_str() {
        "" => ended.stderr.clone(),
        _ => ended.json()["outcome"]["failed"].as_str().unwrap_or_default().to_owned(),
    };
    assert_eq!(failed.matches("could not be set back to 'original'").count(), 1, "{failed}");
    folder.assert_no_processes();
}
