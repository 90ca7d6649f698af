//! Planted stalls of a known period are first in the list of a recording; the same series, shuffled in blocks shorter than the
//! period, has none.

use crate::bench::evidence::Evidence;
use crate::bench::seeded::Seeded;
use crate::bench::{Bench, recording};
use model::ftq::FtqRecord;
use model::kind::Recorded;

/// A planted truth, and the length of its recording.
#[derive(Clone, Copy, Debug)]
struct Truth {
    name: &'static str,
    period_millis: u64,
    stall_micros: u64,
    seconds: u64,
}

const TRUTHS: [Truth; 3] = [
    Truth { name: "0.5 ms every 1 s", period_millis: 1000, stall_micros: 500, seconds: 30 },
    Truth { name: "50 µs every 100 ms", period_millis: 100, stall_micros: 50, seconds: 30 },
    Truth { name: "5 ms every 5 s", period_millis: 5000, stall_micros: 5000, seconds: 120 },
];
/// Largest error of a period that counts as found.
const NEAR: f64 = 0.02;
/// Readings of a block that is moved as a whole: 7 ms, much less than any period, more than most natural stalls.
const BLOCK: usize = 16;
/// Part of the recordings that must show their period first, and that may show one when shuffled: 19 and 1 of 20.
const MOST_MISSED: f64 = 0.05;

/// What one recording showed.
#[derive(Clone, Copy, Debug)]
struct Shown {
    first: bool,
    anywhere: bool,
    shuffled: bool,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    bench.file("written", 64)?;
    let mut number = 0;
    let mut seeded = Seeded::new(bench.options.seed);
    let found = bench.in_rounds(
        &TRUTHS,
        |truth| truth.period_millis as usize,
        |truth| truth.name.to_owned(),
        |bench, truth| {
            number += 1;
            let folder = bench.path(&format!("recording-{number}"));
            let shown = record(bench, truth, &folder, &mut seeded);
            std::fs::remove_dir_all(&folder)?;
            shown
        },
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (truth, runs) in TRUTHS.iter().zip(&found) {
        let count = |of: fn(&Shown) -> bool| runs.iter().filter(|run| of(run)).count();
        let (first, shuffled, all) = (count(|run| run.first), count(|run| run.shuffled), runs.len());
        let allowed = (all as f64 * MOST_MISSED).floor() as usize;
        evidence.criterion(first + allowed >= all, format!("{}: first in the list of {first} of {all}", truth.name));
        evidence.criterion(
            shuffled <= allowed,
            format!("{}: {shuffled} of {all} shuffled series have a period", truth.name),
        );
        let of = |count: usize| format!("{count} of {all}");
        rows.push(vec![truth.name.to_owned(), of(first), of(count(|run| run.anywhere)), of(shuffled)]);
    }
    evidence.note(format!(
        "A buffered writer of 4 KiB on CPU 0, quanta of 440 µs. A period counts as found within ±{:.0} %. Shuffled: the same \
         quanta in blocks of {BLOCK}, in random order.",
        NEAR * 100.0
    ));
    evidence.table(&["planted", "first in the list", "in the list", "periods when shuffled"], &rows);
    Ok(evidence)
}

fn record(bench: &Bench, truth: &Truth, folder: &std::path::Path, seeded: &mut Seeded) -> anyhow::Result<Shown> {
    let options = [
        "--target=written".to_owned(),
        "--rw=write".to_owned(),
        "--size=64m".to_owned(),
        format!("--duration={}s", truth.seconds),
        format!("--inject_ns={}", truth.stall_micros * 1000),
        format!("--inject_every={}ms", truth.period_millis),
    ];
    let (finding, record) = recording::record_in(bench, folder, &options)?;
    let period = truth.period_millis as f64 / 1e3;
    let near = |found: f64| (found / period - 1.0).abs() <= NEAR;
    Ok(Shown {
        first: finding.periodic.first().is_some_and(|found| near(found.period_seconds)),
        anywhere: finding.periodic.iter().any(|found| near(found.period_seconds)),
        shuffled: !shuffled(record, seeded).study(None).periodic.is_empty(),
    })
}

/// The same increases in another order, at the same times.
fn shuffled(mut record: FtqRecord, seeded: &mut Seeded) -> FtqRecord {
    let amounts: Vec<u64> = record.chunks.iter().flat_map(|chunk| chunk.amount.iter().copied()).collect();
    let increases: Vec<u64> = amounts
        .windows(2)
        .map(|pair| pair.last().zip(pair.first()).map_or(0, |(after, before)| after - before))
        .collect();
    let mut blocks: Vec<&[u64]> = increases.chunks(BLOCK).collect();
    seeded.shuffle(&mut blocks);
    let mut so_far = amounts.first().copied().unwrap_or(0);
    let mut moved = blocks.into_iter().flatten();
    let mut begun = false;
    for amount in record.chunks.iter_mut().flat_map(|chunk| &mut chunk.amount) {
        if std::mem::replace(&mut begun, true) {
            so_far += moved.next().copied().unwrap_or(0);
        }
        *amount = so_far;
    }
    record
}
