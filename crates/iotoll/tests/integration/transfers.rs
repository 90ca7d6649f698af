//! Transfers: counts and bytes by direction, for every engine, and the contents of the files afterwards.

use super::iotoll::{Folder, at_once, whole};
use super::machine::skip;

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
        let counts = ["ios", "bytes", "errors"].map(|key| whole(&job[key]));
        assert_eq!(counts, [ios, ios * 4096, 0], "{context}");
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
