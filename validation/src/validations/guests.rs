//! Same inputs, same instructions: a measurement of each stack repeated from its saved guest and after booting afresh, alone and
//! beside a load. Functions sum to the total, and the total differs from the guest's clock by a constant.

use crate::bench::Bench;
use crate::bench::evidence::Evidence;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::collections::BTreeSet;

const KERNEL: &str = "debian:6.1";
/// Each stack, and what a program needs to reach it.
const STACKS: [(&str, &[&str]); 11] = [
    ("tmpfs", &[]),
    ("ext4-brd", &[]),
    ("ext4-dax", &[]),
    ("null_blk", &["--direct=1"]),
    ("nbd", &["--direct=1"]),
    ("nvme-tcp", &["--direct=1"]),
    ("nvme-rdma", &["--direct=1"]),
    ("nfs-tcp", &["--direct=1"]),
    ("nfs-rdma", &["--direct=1"]),
    ("rbd", &["--direct=1"]),
    ("rbd-v2", &["--direct=1"]),
];
/// How often a guest is booted afresh.
const BOOTS: usize = 3;
const IOS: u64 = 400;

/// What one measurement counted.
struct Counted {
    /// The line of the record: every count of it.
    line: String,
    total: i64,
    /// The guest's clock, less the total.
    clock_less_total: i64,
    sums: bool,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let mut evidence = Evidence::default();
    let rounds = bench.options.rounds;
    evidence.note(format!(
        "4 KiB random writes, {IOS} of them, {KERNEL}; {rounds} restored guests and {BOOTS} booted afresh, every second one beside \
         a process that keeps CPU 0 busy. Identical: all counts of all functions, all path counters, the guest's clock."
    ));
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for (stack, options) in STACKS {
        let mut all = Vec::new();
        for round in 0..rounds + BOOTS {
            bench.progress(&format!("{stack}, {} of {}", round + 1, rounds + BOOTS));
            let _busy = if round % 2 == 1 { Some(bench.beside(&["hog", "0"])?) } else { None };
            all.push(count(bench, stack, options, IOS, round >= rounds)?);
        }
        let longer = count(bench, stack, options, 2 * IOS, false)?;
        let first = all.first().context("no rounds")?;
        let same = |part: &[Counted]| part.iter().filter(|counted| counted.line == first.line).count();
        let (restored, booted) = all.split_at(rounds.min(all.len()));
        let (same_restored, same_booted) = (same(restored), same(booted));
        let sums = all.iter().chain([&longer]).all(|counted| counted.sums);
        if same_restored < restored.len() || same_booted < booted.len() || !sums {
            failures.push(stack);
        }
        rows.push(vec![
            stack.to_owned(),
            format!("{same_restored} of {}", restored.len()),
            format!("{same_booted} of {}", booted.len()),
            format!("{:.2}", first.total as f64 / IOS as f64),
            if sums { "yes" } else { "no" }.to_owned(),
            first.clock_less_total.to_string(),
            longer.clock_less_total.to_string(),
        ]);
    }
    let header = [
        "stack",
        "identical, restored",
        "identical, booted afresh",
        "instructions per I/O",
        "functions sum to the total",
        "clock − total",
        "clock − total, twice the I/Os",
    ];
    evidence.table(&header, &rows);
    evidence.note(
        "The clock is read by the worker within the marks for one job, so the total contains the instructions between mark and \
         reading; a clock far beyond the total was idle.",
    );
    let text = if failures.is_empty() {
        "every repetition of every stack is identical, and its functions sum to the total".to_owned()
    } else {
        format!("not identical, or functions do not sum to the total: {}", failures.join(", "))
    };
    evidence.criterion(failures.is_empty(), text);
    let constants: BTreeSet<(&String, &String)> =
        rows.iter().filter_map(|row| Some((row.get(5)?, row.get(6)?))).collect();
    let constant = constants.iter().all(|(once, twice)| once == twice);
    let text = "the guest's clock differs from the total by a constant that does not depend on the number of I/Os";
    evidence.criterion(constant, text);
    Ok(evidence)
}

fn count(bench: &Bench, stack: &str, options: &[&str], ios: u64, fresh: bool) -> anyhow::Result<Counted> {
    let folder = bench.path("guest");
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = bench.iotoll();
    command.args(["guest", "run", "--kernel", KERNEL, "--stack", stack, "--replicates", "1", "--by-function"]);
    command.args(["--quiet", "--format", "json", "--out"]).arg(&folder).args(fresh.then_some("--fresh"));
    bench.output(command.args(["--rw=randwrite", "--bs=4k"]).arg(format!("--number_ios={ios}")).args(options))?;
    let record = std::fs::read_to_string(folder.join("record.jsonl"))?;
    let line = record.lines().find(|line| line.starts_with("{\"measured\"")).context("nothing was measured")?;
    let value: Value = serde_json::from_str(line)?;
    let measured = value.get("measured").context("measured")?;
    let number = |pointer: &str| measured.pointer(pointer).and_then(Value::as_i64).with_context(|| pointer.to_owned());
    let total = number("/instructions/total")?;
    let functions = measured.pointer("/instructions/functions").and_then(Value::as_array).context("functions")?;
    ensure!(!functions.is_empty(), "no functions were counted");
    let sum: i64 = functions.iter().filter_map(|function| function.get("count")?.as_i64()).sum();
    Ok(Counted { line: line.to_owned(), total, clock_less_total: number("/clock_nanos")? - total, sums: sum == total })
}
