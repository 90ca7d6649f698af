//! A job reads what an earlier one had written when it ended, by the state that it saved; blocks are trimmed, and read back as zeros.

use super::iotoll::{Folder, eventually, whole};
use super::machine::{has, skip};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

const WRITE: &str = "[job]\nfilename=x\nsize=512k\nverify=md5\ndo_verify=0\nnumber_ios=40\nverify_state_save=1\n";
const READ: &str = "[job]\nfilename=x\nsize=512k\nverify=md5\nverify_state_load=1\n";
const STATE: &str = "local-job-0-verify.state";

fn folder() -> Folder {
    Folder::with_file("x", 512 << 10)
}

/// What iotoll makes of a job: its finding, or its complaint.
fn ours(folder: &Folder, job: &str, options: &str) -> Result<Value, String> {
    folder.write("job.fio", format!("{job}{options}"));
    let ended = folder.iotoll("run --no-save --background 200ms --format json job.fio").run();
    if ended.code == Some(0) { Ok(ended.json()) } else { Err(ended.stderr) }
}

/// fio's exit status, and the reads that it issued.
fn fio(folder: &Folder, job: &str, options: &str) -> (bool, u64) {
    folder.write("fio.fio", format!("{job}{options}"));
    let mut fio = Command::new("fio");
    fio.args(["--output-format=json", "--output=fio.json", "fio.fio"]);
    let ended = fio.current_dir(folder.path(".")).stdin(Stdio::null()).output().unwrap();
    let found: Value = serde_json::from_slice(&folder.read("fio.json")).unwrap();
    (ended.status.success(), whole(&found["jobs"][0]["read"]["total_ios"]))
}

#[track_caller]
fn has_read(found: Result<Value, String>, blocks: u64) {
    let job = &found.unwrap()["jobs"][0];
    assert_eq!((whole(&job["read"]["ios"]), whole(&job["verified"]["wrong"])), (blocks, 0), "{job}");
}

#[test]
fn fio_and_iotoll_load_what_the_other_saved() {
    if !has("fio") {
        return skip("fio_and_iotoll_load_what_the_other_saved", "no fio here");
    }
    let written_by_fio = folder();
    assert!(fio(&written_by_fio, WRITE, "rw=write\n").0);
    has_read(ours(&written_by_fio, READ, "rw=read\n"), 40);
    has_read(ours(&written_by_fio, READ, "rw=read\nioengine=libaio\niodepth=8\nloops=4\n"), 40);
    let written_by_us = folder();
    ours(&written_by_us, WRITE, "rw=write\n").unwrap();
    assert_eq!(fio(&written_by_us, READ, "rw=read\n"), (true, 40));
    has_read(ours(&written_by_us, READ, "rw=write\nverify_only\n"), 40);
    // A queue, whose last writes complete in any order.
    let queued = folder();
    assert!(fio(&queued, WRITE, "rw=write\nioengine=libaio\niodepth=8\n").0);
    has_read(ours(&queued, READ, "rw=read\n"), 40);
    // fio's random order is its own.
    let random = folder();
    assert!(fio(&random, WRITE, "rw=randwrite\n").0);
    let why = ours(&random, READ, "rw=randread\n").unwrap_err();
    assert!(why.contains("fio's random order is not iotoll's"), "{why}");
    ours(&random, WRITE, "rw=randwrite\n").unwrap();
    has_read(ours(&random, READ, "rw=randread\n"), 40);
    has_read(ours(&random, READ, "rw=randwrite\nverify_only\n"), 40);
}

/// The flag says where, for fio and for iotoll: the states in the working folder are of another amount.
#[test]
fn states_are_in_the_folder_of_the_flag() {
    if !has("fio") {
        return skip("states_are_in_the_folder_of_the_flag", "no fio here");
    }
    let folder = folder();
    ours(&folder, WRITE, "rw=write\n").unwrap();
    std::fs::create_dir(folder.path("aux")).unwrap();
    let run = |job: &str| {
        folder.write("job.fio", job);
        folder.iotoll("run --no-save --background 200ms --format json --aux-path aux job.fio").run()
    };
    run(&format!("{WRITE}rw=write\nnumber_ios=7\n")).done();
    assert!(folder.exists(&format!("aux/{STATE}")));
    has_read(Ok(run(&format!("{READ}rw=read\n")).json()), 7);
    has_read(ours(&folder, READ, "rw=read\n"), 40);
    folder.write("fio.fio", format!("{READ}rw=read\n"));
    let mut fio = Command::new("fio");
    fio.args(["--aux-path=aux", "--output-format=json", "--output=fio.json", "fio.fio"]);
    assert!(fio.current_dir(folder.path(".")).stdin(Stdio::null()).status().unwrap().success());
    let found: Value = serde_json::from_slice(&folder.read("fio.json")).unwrap();
    assert_eq!(whole(&found["jobs"][0]["read"]["total_ios"]), 7);
    let missing = folder.iotoll("run --no-save --aux-path gone job.fio").run();
    missing.refused(2, &["--aux-path gone: no such folder; make it with mkdir"]);
}

#[test]
fn an_interrupted_job_leaves_what_its_state_tells() {
    let folder = Folder::new();
    folder.write("job.fio", WRITE.replace("number_ios=40", "rate_iops=200") + "rw=write\n");
    let running = folder.iotoll("run --no-save --quiet --background 200ms job.fio").start();
    assert!(eventually(|| std::fs::read(folder.path("x"))
        .is_ok_and(|data| data.len() > 8192 && data[8200..].iter().any(|byte| *byte != 0))));
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
    assert!(folder.exists("x") && folder.exists(STATE));
    let found = ours(&folder, READ, "rw=write\nverify_only\n").unwrap();
    let job = &found["jobs"][0];
    assert!(whole(&job["read"]["ios"]) > 2 && whole(&job["verified"]["wrong"]) == 0, "{job}");
}

#[test]
fn a_state_that_cannot_be_used_is_named() {
    let folder = folder();
    let refused = |says: &str| {
        let why = ours(&folder, READ, "rw=read\n").unwrap_err();
        assert!(why.contains(says) && why.lines().count() == 1, "{why}");
    };
    refused("does not exist; run the job that writes with verify_state_save=1");
    ours(&folder, WRITE, "rw=write\nbs=8k\n").unwrap();
    refused("wrote in another order");
    let mut state = folder.read(STATE);
    state[100] ^= 1;
    folder.write(STATE, &state);
    refused("is damaged");
    state.truncate(30);
    folder.write(STATE, state);
    refused("ends too early");
    std::fs::remove_file(folder.path(STATE)).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, folder.path(STATE), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    refused("is no file, so it has no state");
}

#[test]
fn written_blocks_are_trimmed_and_read_back_as_zeros() {
    const TRIMS: &str = "[a]\nfilename=x\nsize=64k\nrw=randwrite\nverify=crc32c\ntrim_backlog=4\n";
    let folder = folder();
    let zeros = |folder: &Folder| {
        folder.read("x")[..64 << 10].chunks(4096).filter(|block| !block.iter().any(|byte| *byte != 0)).count()
    };
    for (options, trimmed, checked) in [
        ("trim_percentage=100\n", 16, 16),
        ("trim_percentage=100\nioengine=libaio\niodepth=8\ntrim_backlog_batch=2\n", 8, 16),
        ("trim_percentage=100\ntrim_backlog_batch=3\ntrim_verify_zero=0\n", 12, 4),
        ("trim_percentage=0\n", 0, 16),
    ] {
        folder.write("x", vec![1; 512 << 10]);
        let found = ours(&folder, TRIMS, options).unwrap();
        let job = &found["jobs"][0];
        let counts = [&job["write"]["ios"], &job["trim"]["ios"], &job["verified"]["ios"], &job["verified"]["wrong"]];
        assert_eq!(counts.map(whole), [16, trimmed, checked, 0], "{options}: {job}");
        assert_eq!(zeros(&folder) as u64, trimmed, "{options}");
    }
}
