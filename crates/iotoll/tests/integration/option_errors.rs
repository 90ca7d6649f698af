//! Bad usage: one line with the place, the option and a suggestion, exit status 2, nothing done.

use super::iotoll::Folder;
use std::collections::BTreeMap;

#[test]
fn flags_are_refused_in_one_line() {
    let folder = Folder::with_file("data", 1 << 20);
    folder.write("a.fio", "[a]\nioengine=null\nsize=1m\n");
    folder.write("a.toml", "title = \"a\"\n");
    folder.write("guest.toml", "kind = \"guest\"\n");
    folder.write("other.toml", "kind = \"ftq\"\n");
    std::fs::create_dir(folder.path("kept")).unwrap();
    folder.write("kept/record.jsonl", "");
    let before = folder.listing();
    // Command lines, each with the parts of its refusal.
    type Refusals = BTreeMap<String, Vec<(String, Vec<String>)>>;
    let refusals: Refusals = serde_json::from_str(include_str!("option_errors.json")).unwrap();
    for (words, named) in refusals.values().flatten() {
        folder.iotoll(words).run().refused(2, &named.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(folder.listing(), before, "{words} left something behind");
    }
}

#[test]
fn job_files_are_refused_with_file_line_and_option() {
    let folder = Folder::new();
    let cases: &[(&str, &[&str])] = &[
        ("[a]\nrw=read\n\niodeph=4\n", &["job.fio:4", "'iodeph'", "'iodepth'"]),
        ("[global]\nbs=4x\n[a]\n", &["job.fio:2", "'bs'", "4x"]),
        ("bs=4k\n[a]\n", &["job.fio:1", "'bs'", "before the first section"]),
        ("[a\nbs=4k\n", &["job.fio:1", "']'"]),
        ("[]\n", &["job.fio:1", "has no name"]),
        ("", &["job.fio:1", "no file has a job"]),
        ("[global]\nbs=4k\n", &["job.fio:2", "no file has a job"]),
        ("[a]\ninclude other.fio\n", &["job.fio:2", "'include'"]),
        ("[a]\nsize=$pagesize\n", &["job.fio:2", "is not a whole number"]),
        ("[a]\nprofile=tiobench\n", &["job.fio:2", "known to fio, not supported; jobs are written out"]),
        ("[a]\nfilename=${IOTOLL_NOT_SET}\n", &["job.fio:2", "IOTOLL_NOT_SET"]),
        ("; c\n[a]\nioengine=libaoi\n", &["job.fio:3", "'libaio'"]),
        ("[a]\nrw\n", &["job.fio:2", "'rw'", "needs a value"]),
    ];
    for (text, named) in cases {
        folder.write("job.fio", text);
        let before = folder.listing();
        folder.iotoll("run job.fio").run().refused(2, named);
        assert_eq!(folder.listing(), before, "{text}");
    }
}

#[test]
fn files_that_are_not_text_are_refused() {
    let folder = Folder::new();
    folder.write("latin1.fio", b"[a]\nfilename=caf\xe9\n");
    folder.iotoll("run latin1.fio").run().refused(2, &["latin1.fio", "UTF-8"]);
    use std::os::unix::ffi::OsStrExt;
    let output = std::process::Command::new(super::iotoll::PROGRAM)
        .args(["run", "--name=a"])
        .arg(std::ffi::OsStr::from_bytes(b"--filename=caf\xe9"))
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && stderr.contains("UTF-8"), "{stderr}");
}

#[test]
fn help_goes_to_standard_output() {
    let folder = Folder::new();
    for (words, named) in [
        ("--help", "cost"),
        ("run --help", "--background"),
        ("run -h", "--background"),
        ("help job", "iodepth"),
        ("help job bs", "--bs="),
        ("cost --help", "--repeat"),
        ("--version", "0."),
    ] {
        let ended = folder.iotoll(words).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words}");
        assert!(ended.stdout.contains(named), "{ended:?}");
    }
    let bare = folder.iotoll("").run();
    assert_eq!((bare.code, bare.stdout.as_str()), (Some(2), ""));
    assert!(bare.stderr.contains("Usage"), "{bare:?}");
}
