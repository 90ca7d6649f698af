//! Transfers: counts and bytes by direction, for every engine, and the contents of the files afterwards.

use super::iotoll::{Folder, at_once, whole};
use super::machine::skip;
use serde_json::Value;
use std::process::Command;

const ENGINES: [&str; 3] = ["psync", "libaio", "io_uring"];
/// Values of `rw=`, and the directions that they use.
const PATTERNS: [(&str, [bool; 3]); 10] = [
    ("read", [true, false, false]),
    ("write", [false, true, false]),
    ("trim", [false, false, true]),
    ("randread", [true, false, false]),
    ("randwrite", [false, true, false]),
    ("randtrim", [false, false, true]),
    ("rw", [true, true, false]),
    ("randrw", [true, true, false]),
    ("trimwrite", [false, true, true]),
    ("randtrimwrite", [false, true, true]),
];

/// All patterns in sequence, each over 16 blocks of a file of its own.
fn all_patterns(engine: &str, direct: u8) {
    let folder = Folder::new();
    let mut text = format!("[global]\nioengine={engine}\ndirect={direct}\nbs=4k\nsize=64k\niodepth=4\nstonewall\n");
    PATTERNS.iter().for_each(|(rw, _)| text += &format!("[{rw}]\nrw={rw}\n"));
    folder.write("job.fio", text);
    let ended = folder.iotoll("run job.fio --background 200ms --no-save --quiet --format json").run();
    if direct == 1 && ended.stderr.contains("has no O_DIRECT") {
        return skip("the build folder's file system has no O_DIRECT");
    }
    let finding = ended.done().json();
    let jobs = finding["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), PATTERNS.len());
    for (job, (rw, uses)) in jobs.iter().zip(PATTERNS) {
        let context = format!("{engine} direct={direct} {rw}");
        assert_eq!((job["name"].as_str(), job["engine"].as_str()), (Some(rw), Some(engine)), "{context}");
        // As in fio, each block is trimmed and then written.
        let ios = if rw.ends_with("trimwrite") { 32 } else { 16 };
        assert_eq!(
            (whole(&job["ios"]), whole(&job["bytes"]), whole(&job["errors"])),
            (ios, ios * 4096, 0),
            "{context}"
        );
        for (direction, used) in ["read", "write", "trim"].into_iter().zip(uses) {
            let (ios, bytes) = (whole(&job[direction]["ios"]), whole(&job[direction]["bytes"]));
            assert_eq!((ios > 0, bytes), (used, ios * 4096), "{context} {direction}");
        }
        assert_eq!(folder.listing()[&format!("{rw}.0.0")], Some(65_536), "{context}");
    }
    let written = folder.read("write.0.0");
    assert!(written.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)), "{engine}: a block was not written");
    assert!(folder.read("trim.0.0").iter().all(|byte| *byte == 0), "{engine}: a block was not trimmed");
}

#[test]
fn every_pattern_with_every_engine() {
    at_once(ENGINES.into_iter().flat_map(|engine| [(engine, 0), (engine, 1)]), |(engine, direct)| {
        all_patterns(engine, direct);
    });
}

#[test]
fn io_stays_within_offset_and_size() {
    at_once(ENGINES, |engine| {
        let folder = Folder::new();
        folder.write("data", [0; 65_536]);
        let options =
            format!("run --name=w --filename=data --rw=randwrite --offset=16k --size=32k --ioengine={engine}");
        assert_eq!(whole(&folder.measured(&options)["jobs"][0]["ios"]), 8);
        let touched: Vec<bool> =
            folder.read("data").chunks(4096).map(|block| block.iter().any(|byte| *byte != 0)).collect();
        let expected: Vec<bool> = (0..16).map(|block| (4..12).contains(&block)).collect();
        assert_eq!(touched, expected, "{engine}");
    });
}

/// Job files whose counts are not random, so that fio's and ours must be equal.
const DETERMINED: [&str; 16] = [
    "rw=write\nfsync=4",
    "rw=randwrite\nfsync=1",
    "rw=read\nloops=3",
    "rw=read\nloops=3\nnumber_ios=10",
    "rw=randread\nio_size=100k",
    "rw=randread\nio_size=20k",
    "rw=randread\nio_size=50%",
    "rw=randread\nnumber_ios=7",
    "rw=randread\nnumber_ios=100",
    "rw=write\nsize=30000",
    "rw=randread\nsize=30000",
    "rw=randread\nnumjobs=3\ngroup_reporting",
    "rw=read\nfilename=j1.0.0\noffset=16k\nsize=32k",
    "rw=read\nfilename=j1.0.0\noffset=25%\nsize=50%",
    "rw=read\nfilename=two1:two2",
    "rw=read\nnumber_ios=10\nramp_time=10ms",
];

#[test]
fn counts_equal_those_of_fio() {
    let folder = Folder::new();
    let mut text = "[global]\nbs=4k\nsize=64k\nioengine=psync\nstonewall\n".to_owned();
    DETERMINED.iter().enumerate().for_each(|(index, options)| text += &format!("[j{index}]\n{options}\n"));
    let ours = folder.measured_job(&text);
    let output = Command::new("fio").args(["--output-format=json", "job.fio"]).current_dir(folder.path(".")).output();
    let output = output.expect("fio must be installed: apt-get install fio");
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = |job: &Value, ios: &str, bytes: &str, syncs: u64| {
        let of = |direction: &str, key: &str| whole(&job[direction][key]);
        [of("read", ios), of("write", ios), of("read", bytes), of("write", bytes), syncs]
    };
    for (index, options) in DETERMINED.iter().enumerate() {
        let (job, fio) = (&ours["jobs"][index], &theirs["jobs"][index]);
        let job = counts(job, "ios", "bytes", whole(&job["syncs"]));
        let fio = counts(fio, "total_ios", "io_bytes", whole(&fio["sync"]["total_ios"]));
        assert_eq!(job, fio, "reads, writes, their bytes, syncs of\n{options}");
    }
}

#[test]
fn a_seed_makes_the_same_run_again() {
    let folder = Folder::with_file("data", 1 << 20);
    let reads = |seed: u64| {
        let options = format!("run --name=a --filename=data --rw=randrw --seed {seed}");
        whole(&folder.measured(&options)["jobs"][0]["read"]["ios"])
    };
    let same = reads(1);
    assert_eq!(reads(1), same);
    assert!((2..6).any(|seed| reads(seed) != same), "four other seeds, and always {same} reads of 256");
}
