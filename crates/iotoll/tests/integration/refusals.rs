//! Targets that cannot be used or vanish: one clear line, the right status, nothing left behind.

use super::iotoll::{Folder, at_once, warns, whole};
use super::machine::skip;
use std::fs;

#[test]
fn targets_that_cannot_be_used_are_refused() {
    let folder = Folder::with_file("data", 1 << 20);
    fs::create_dir(folder.path("folder")).unwrap();
    folder.write("empty", "");
    let before = folder.listing();
    let cases: &[(&str, &[&str])] = &[
        ("--rw=read --filename=absent", &["absent", "does not exist", "size="]),
        ("--rw=read --filename=empty", &["empty", "is empty", "size="]),
        ("--rw=read --filename=folder --size=1m", &["folder is a directory", "directory="]),
        ("--rw=read --filename=/dev/null --size=1m", &["/dev/null", "nothing to read", "filename=/dev/zero"]),
        ("--rw=write --filename=/dev/full --size=1m", &["/dev/full", "neither a file nor a block device"]),
        ("--rw=read --directory=nowhere --size=1m", &["job 'a'", "directory=nowhere", "make it first"]),
        ("--rw=read --filename=data/x --size=1m", &["data/x", "Not a directory"]),
        (
            "--rw=read --filename=data --offset=2m --size=2t --fallocate=none --bs=4m --number_ios=0 --offset=9223372036854775807 --size=4m",
            &["offset"],
        ),
        ("--rw=read --filename=data --cpus_allowed=1023", &["job 'a'", "cpus_allowed=1023: not online"]),
    ];
    for (options, named) in cases {
        let ended = folder.iotoll(&format!("run --background 200ms --name=a {options}")).run();
        ended.refused(2, named);
        assert_eq!(folder.listing(), before, "{options} left something behind");
    }
    folder.assert_no_processes();
}

#[test]
fn direct_io_that_is_not_aligned_is_refused() {
    let folder = Folder::with_file("data", 1 << 20);
    let run = |options: &str| {
        folder.iotoll(&format!("run --background 200ms --quiet --name=a --filename=data --direct=1 {options}")).run()
    };
    let usable = run("--rw=read --bs=4k --out direct");
    if usable.stderr.contains("has no O_DIRECT") {
        return skip("the build folder's file system has no O_DIRECT");
    }
    usable.done();
    let before = folder.listing();
    for engine in ["psync", "libaio", "io_uring"] {
        for (options, what) in [
            ("--rw=read --bs=1000", "bs=1000"),
            ("--rw=read --bs=4k --offset=100", "offset=100"),
            ("--rw=randrw --bs=4k,4000", "bs of writes=4000"),
        ] {
            let ended = run(&format!("{options} --ioengine={engine}"));
            // If the kernel does not report its alignment, only the first I/O shows the error.
            if ended.code == Some(1) {
                assert!(ended.json()["outcome"]["failed"].as_str().is_some_and(|why| why.contains("Invalid argument")));
                continue;
            }
            ended.refused(2, &["'a'", what, "data", "multiple", "direct=0"]);
            assert_eq!(folder.listing(), before, "{options}");
        }
    }
}

/// The kernel cannot fail one access to a mapping.
#[test]
fn a_mapped_file_that_becomes_shorter_ends_the_run_in_one_line() {
    let folder = Folder::with_file("data", 4 << 20);
    let options =
        "run --no-save --quiet --background 200ms --name=v --filename=data --rw=randread --runtime=30 --time_based";
    let running = folder.iotoll(&format!("{options} --ioengine=mmap")).start();
    assert!(super::iotoll::eventually(|| running.has_threads("job v", 1)));
    std::thread::sleep(std::time::Duration::from_millis(300));
    fs::OpenOptions::new().write(true).open(folder.path("data")).unwrap().set_len(0).unwrap();
    let ended = running.wait();
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
    assert!(ended.stderr.starts_with("iotoll: a mapped file (ioengine=mmap) has become shorter"), "{}", ended.stderr);
}

#[test]
fn a_vanished_target_ends_the_run_and_keeps_the_results() {
    at_once(["psync", "libaio", "io_uring"], |engine| {
        let folder = Folder::with_file("data", 4 << 20);
        let options =
            "run --background 200ms --format json --name=v --filename=data --rw=randread --runtime=30 --time_based";
        let running = folder.iotoll(&format!("{options} --out kept --ioengine={engine}")).start();
        assert!(super::iotoll::eventually(|| running.has_threads("job v", 1)), "{engine}");
        std::thread::sleep(std::time::Duration::from_millis(300));
        fs::OpenOptions::new().write(true).open(folder.path("data")).unwrap().set_len(0).unwrap();
        let ended = running.wait();
        assert_eq!(ended.code, Some(1), "{engine} {ended:?}");
        let finding = ended.json();
        let why = finding["outcome"]["failed"].as_str().unwrap_or_default();
        assert!(why.contains("'v'") && why.contains("truncated"), "{engine}: {why}");
        assert!(warns(&finding, "job_failed", &["truncated"]), "{}", finding["warnings"]);
        let job = &finding["jobs"][0];
        assert!(whole(&job["ios"]) > 100 && whole(&job["errors"]) == 1, "{engine}: {job}");
        assert!(folder.exists("kept/record.jsonl"), "{engine}");
        assert!(folder.exists("data"), "{engine}: the user's own file stays");
        let again = folder.iotoll("report kept --format json").run().done();
        assert_eq!(again.stdout, ended.stdout, "{engine}");
    });
}

#[test]
fn reading_holes_gives_a_warning() {
    let folder = Folder::new();
    fs::File::create(folder.path("holes")).unwrap().set_len(1 << 20).unwrap();
    let finding = folder.measured("run --name=h --filename=holes --rw=read");
    assert!(warns(&finding, "unwritten_blocks", &["holes"]), "{}", finding["warnings"]);
    folder.write("full", vec![7; 1 << 20]);
    let finding = folder.measured("run --name=h --filename=full --rw=read");
    assert!(!warns(&finding, "unwritten_blocks", &[]), "{}", finding["warnings"]);
}

#[test]
fn a_dangling_link_is_refused_and_stays() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("elsewhere", folder.path("link")).unwrap();
    let before = folder.listing();
    let ended = folder.iotoll("run --background 200ms --name=a --rw=write --filename=link --size=1m").run();
    ended.refused(2, &["'a'", "link is a link to a file that does not exist"]);
    assert_eq!(folder.listing(), before);
    assert!(fs::symlink_metadata(folder.path("link")).is_ok());
}

#[test]
fn a_lengthened_file_is_restored_after_a_failure() {
    let folder = Folder::with_file("data", 1 << 20);
    // The second job cannot be prepared, after the first one's file was.
    folder.write("job.fio", "[a]\nrw=write\nfilename=data\nsize=2m\n[b]\nrw=read\nfilename=absent\n");
    let before = folder.listing();
    folder.iotoll("run --background 200ms job.fio").run().refused(2, &["'b'", "absent", "does not exist"]);
    assert_eq!(folder.listing(), before);
    assert!(folder.read("data").iter().all(|byte| *byte == 0x5a));
}

#[test]
fn control_characters_in_a_name_are_refused() {
    let folder = Folder::new();
    folder.write("job.fio", "[a\0b]\nioengine=null\nrw=read\nsize=1m\n");
    folder.iotoll("run --background 200ms job.fio").run().refused(2, &["job.fio:1", "control characters"]);
    let flags = "run --background 200ms --ioengine=null --rw=read --size=1m";
    folder.iotoll(flags).word("--name=a\x1b[2J").run().refused(2, &["control characters"]);
}
