//! io_uring from the page cache at depth 32, iotoll compared with fio at the same batch sizes, both plain and with
//! registered buffers and files.

use crate::bench::evidence::{self, Evidence, rate};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{Bench, read_through};
use crate::bench::{fio, rounds};
use anyhow::Context;
use model::finding::JobFinding;
use std::path::PathBuf;

const BATCHES: [u32; 2] = [16, 1];
const BLOCKS: [&str; 2] = ["4k", "512"];
const REGISTERED: [bool; 2] = [false, true];
/// Required ratio to fio's rate, for these block and batch sizes.
const LEAST: f64 = 1.4;
const SHOWN: (&str, u32) = ("4k", 16);
/// Largest relative difference of I/Os per system call, so that the kernel's share is the same.
const SYSCALLS: f64 = 0.05;
/// Long enough to count system calls, which needs no precision of time.
const COUNTING_SECONDS: f64 = 0.3;

/// A file in the page cache.
pub struct File {
    /// Where.
    pub path: PathBuf,
    pub mebibytes: usize,
}

/// A point at which both generators are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting {
    file: usize,
    block: &'static str,
    batch: u32,
    registered: bool,
}

#[derive(Clone, Debug)]
struct Ran {
    iops: f64,
    /// Of iotoll.
    job: Option<JobFinding>,
}

pub fn validate(bench: &mut Bench, files: &[File], evidence: &mut Evidence) -> anyhow::Result<()> {
    let settings = settings(files.len());
    let mut syscalls_each = Vec::new();
    for setting in &settings {
        bench.progress(&format!("counting fio's system calls: {}", name(setting, files)));
        bench.check()?;
        syscalls_each.push(fio::per_syscall(bench, &job(setting, files, COUNTING_SECONDS)?, "io_uring_enter")?);
    }
    let cells: Vec<(usize, bool)> = (0..settings.len()).flat_map(|place| [(place, false), (place, true)]).collect();
    let named = |(place, ours): &(usize, bool)| {
        let program = if *ours { "iotoll" } else { "fio" };
        settings.get(*place).map_or(String::new(), |setting| format!("{}, {program}", name(setting, files)))
    };
    let found = bench.in_rounds(
        &cells,
        |(place, _)| *place,
        named,
        |bench, (place, ours)| {
            let setting = settings.get(*place).context("no such setting")?;
            read_through(&files.get(setting.file).context("no such file")?.path)?;
            let job = job(setting, files, bench.options.seconds)?;
            if !ours {
                return Ok(Ran { iops: fio::run(bench, &job)?.iops, job: None });
            }
            let finding = iotoll::run(bench, &Measuring::LEAST, &job)?;
            let job = iotoll::job(&finding)?.clone();
            Ok(Ran { iops: job.iops, job: Some(job) })
        },
    )?;
    let mut rows = Vec::new();
    for ((setting, syscalls), pair) in settings.iter().zip(syscalls_each).zip(found.chunks(2)) {
        let [fio, ours] = pair else { continue };
        rows.push(row(setting, files, syscalls, fio, ours, evidence));
    }
    evidence.note(
        "io_uring at depth 32, random reads from the page cache (ext4 unless the current directory is on another): \
         IOPS, means over rounds. Batch: iodepth_batch_submit and iodepth_batch_complete_min; registered: \
         fixedbufs and registerfiles. Stamp error: error of a time stamp that a batch shares; bucket error: additional error of a \
         percentile.",
    );
    let header = [
        "I/O",
        "fio",
        "iotoll",
        "iotoll ÷ fio",
        "I/Os per syscall: fio",
        "iotoll",
        "stamp error, µs: mean",
        "largest",
        "bucket error",
    ];
    evidence.table(&header, &rows);
    Ok(())
}

fn row(
    setting: &Setting,
    files: &[File],
    syscalls: Option<f64>,
    fio: &[Ran],
    ours: &[Ran],
    evidence: &mut Evidence,
) -> Vec<String> {
    let rates = |runs: &[Ran]| runs.iter().map(|run| run.iops).collect::<Vec<_>>();
    let (theirs, our) = (rates(fio), rates(ours));
    let ratio = rounds::ratio(&our, &theirs);
    let of_jobs = |value: &dyn Fn(&JobFinding) -> Option<f64>| {
        let values: Option<Vec<f64>> = ours.iter().map(|run| run.job.as_ref().and_then(value)).collect();
        values.map(|values| rounds::mean(&values).value)
    };
    let our_syscalls = of_jobs(&|job| job.ios_per_crossing);
    let micros = |nanos: Option<f64>| evidence::number(nanos.map(|nanos| nanos / 1e3), 1);
    let bucket = of_jobs(&|job| job.latency_ns.bucket_error_fraction);
    if (setting.block, setting.batch) == SHOWN {
        let equal = our_syscalls.zip(syscalls).map(|(our, theirs)| (our / theirs - 1.0).abs() <= SYSCALLS);
        let syscalls_each = match equal {
            Some(true) => "with equal I/Os per syscall",
            Some(false) => "but NOT with equal I/Os per syscall",
            None => "I/Os per syscall unknown",
        };
        let ratio_text = evidence::interval(&ratio, 2);
        let text =
            format!("{}: {ratio_text} times fio's IOPS, at least {LEAST}, {syscalls_each}", name(setting, files));
        evidence.criterion(ratio.value >= LEAST && equal != Some(false), text);
    }
    vec![
        name(setting, files),
        rate(rounds::mean(&theirs).value),
        rate(rounds::mean(&our).value),
        evidence::interval(&ratio, 2),
        syscalls.map_or("unknown".to_owned(), |syscalls| format!("{syscalls:.1}")),
        evidence::number(our_syscalls, 1),
        micros(of_jobs(&|job| job.latency_ns.stamp_error_mean)),
        micros(of_jobs(&|job| job.latency_ns.stamp_error_max)),
        evidence::number(bucket.map(|fraction| fraction * 100.0), 2) + " %",
    ]
}

fn settings(files: usize) -> Vec<Setting> {
    let mut settings = Vec::new();
    for file in 0..files {
        for block in BLOCKS {
            for batch in BATCHES {
                settings.extend(REGISTERED.map(|registered| Setting { file, block, batch, registered }));
            }
        }
    }
    settings
}

fn name(setting: &Setting, files: &[File]) -> String {
    let size = files.get(setting.file).map_or(0, |file| file.mebibytes);
    let registered = if setting.registered { ", registered" } else { "" };
    format!("{}, {size} MiB, batch {}{registered}", setting.block, setting.batch)
}

fn job(setting: &Setting, files: &[File], seconds: f64) -> anyhow::Result<Vec<String>> {
    let file = files.get(setting.file).context("no such file")?;
    let words = [
        format!("--filename={}", file.path.display()),
        format!("--size={}m", file.mebibytes),
        format!("--bs={}", setting.block),
        format!("--iodepth_batch_submit={}", setting.batch),
        format!("--iodepth_batch_complete_min={}", setting.batch),
    ];
    let mut options: Vec<&str> = words.iter().map(String::as_str).collect();
    options.extend(["--iodepth=32", "--invalidate=0"]);
    if setting.registered {
        options.extend(["--fixedbufs=1", "--registerfiles=1"]);
    }
    Ok(fio::job("io_uring", seconds, &options))
}
