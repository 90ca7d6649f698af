//! fio reads what iotoll wrote, and the reverse; wrong blocks are found.

use super::iotoll::{Folder, whole};
use super::machine::needs;
use serde_json::Value;

const METHODS: [&str; 6] = ["md5", "crc32c", "crc32", "sha1", "xxhash", "pattern"];

const WORK: &str = "filename=x\nsize=48k\nbs=4k\n";

/// fio does a job without a complaint.
#[track_caller]
fn fio(folder: &Folder, job: &str) {
    folder.write("fio.fio", job);
    assert_eq!(folder.command("fio --output=fio.txt fio.fio").run().done().stderr, "");
}

/// A job for each method, and for some with a pattern behind the header.
fn jobs() -> Vec<String> {
    let pattern = "verify_pattern=0x12%o\"ab\"\n";
    let plain = METHODS.iter().map(|method| match *method {
        "pattern" => "verify=pattern\nverify_pattern=0xdeadface-1\n".to_owned(),
        method => format!("verify={method}\n"),
    });
    plain.chain(["md5", "pattern"].map(|method| format!("verify={method}\n{pattern}"))).collect()
}

/// Sections, one for each job and its file.
fn sections(first: &str, more: &str) -> String {
    let sections =
        jobs().into_iter().enumerate().map(|(number, job)| format!("[j{number}]\nfilename=x{number}\n{job}"));
    format!("[global]\nsize=48k\nbs=4k\n{first}{more}") + &sections.collect::<String>()
}

fn assert_verified(finding: &Value) {
    let all = jobs();
    let found = finding["jobs"].as_array().unwrap();
    assert_eq!(found.len(), all.len());
    for (job, options) in found.iter().zip(all) {
        let counts =
            [&job["ios"], &job["verified"]["ios"], &job["verified"]["bytes"], &job["verified"]["wrong"]].map(whole);
        assert_eq!(counts, [12, 12, 48 << 10, 0], "{options}: {job}");
    }
}

#[test]
fn fio_reads_what_iotoll_wrote_and_the_reverse() {
    needs!("fio");
    let folder = Folder::new();
    assert_verified(&folder.measured_job(&sections("rw=randwrite\n", "")));
    fio(&folder, &sections("rw=read\n", ""));
    let folder = Folder::new();
    fio(&folder, &sections("rw=write\n", "do_verify=0\n"));
    assert_verified(&folder.measured_job(&sections("rw=randread\n", "")));
}

#[test]
fn wrong_blocks_end_a_job_with_their_place() {
    let folder = Folder::new();
    folder.measured_job(&format!("[a]\nrw=write\n{WORK}verify=crc32c\ndo_verify=0\n"));
    let mut bytes = folder.read("x");
    [8392, 20_000].iter().for_each(|place: &usize| bytes[*place] ^= 0x10);
    folder.write("x", bytes);
    let options = "--name=a --filename=x --size=48k --bs=4k --verify=crc32c --background 200ms --no-save";
    let first = "verify: x: the block of 4096 bytes at offset 8192: the crc32c of its data is ";
    let ended = folder.iotoll(&format!("run {options} --format json --rw=read")).run();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let error = ended.json()["jobs"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains(first) && error.ends_with("(1 of 3 blocks read back so far are wrong)"), "{error}");
}

/// The reads of a backlog are I/Os of the job, those at the end are not; the counts of all say so.
#[test]
fn what_is_read_back_is_counted() {
    let cases = [
        ("verify_backlog=4", 12, 12),
        ("verify_backlog=5", 10, 12),
        ("do_verify=0", 0, 0),
        ("direct=1", 0, 12),
        ("loops=2", 0, 12),
        ("norandommap\nloops=3", 0, 12),
        ("number_ios=5", 0, 5),
        ("runtime=300ms\ntime_based\nrate_iops=20", 0, 0),
        ("rw=trimwrite", 0, 12),
        // Both copies write all blocks.
        ("numjobs=2\ngroup_reporting", 0, 24),
        ("rw=write\nbs=3000\nbuffer_compress_percentage=50", 0, 16),
    ];
    let engines = ["psync", "sync", "libaio\niodepth=4", "io_uring\niodepth=4"];
    let mut job = "[global]\nsize=48k\nbs=4k\nrw=randwrite\nverify=md5\n".to_owned();
    let all: Vec<_> = engines.iter().flat_map(|engine| cases.map(|case| (engine, case))).collect();
    for (number, (engine, (options, ..))) in all.iter().enumerate() {
        job += &format!("[j{number}]\nfilename=x{number}\nioengine={engine}\n{options}\n");
    }
    let finding = Folder::new().measured_job(&job);
    let found = finding["jobs"].as_array().unwrap();
    assert_eq!(found.len(), all.len());
    for (job, (engine, (options, reads, verified))) in found.iter().zip(all) {
        let counted = job["verified"]["ios"].as_u64().unwrap_or(0);
        let repeats = options.contains("norandommap");
        assert_eq!(whole(&job["read"]["ios"]), reads, "{engine} {options}");
        assert!(counted == verified || repeats && (1..=12).contains(&counted), "{engine} {options}: {counted}");
    }
}
