//! Planted stalls of a known period are first in the list of a recording; the same series, shuffled in blocks shorter than the
//! period, has none.

use crate::bench::evidence::Evidence;
use crate::bench::seeded::Seeded;
use crate::bench::{Bench, recording};
use model::ftq::FtqRecord;
use model::kind::Recorded;
use model::unit::Nanos;

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
        "A buffered writer of 4 KiB at random places of a file, quanta of 440 µs. (One that writes the file from its beginning to its \
         end, again and again, has a period of its own.) A period counts as found within ±{:.0} %. Shuffled: the same quanta in \
         blocks of {BLOCK}, in random order.",
        NEAR * 100.0
    ));
    evidence.table(&["planted", "first in the list", "in the list", "periods when shuffled"], &rows);
    Ok(evidence)
}

fn record(bench: &Bench, truth: &Truth, folder: &std::path::Path, seeded: &mut Seeded) -> anyhow::Result<Shown> {
    let options = [
        "--target=written".to_owned(),
        "--rw=randwrite".to_owned(),
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

/// The same readings in another order: each keeps its amount and its length, which is several quanta if it was late.
fn shuffled(mut record: FtqRecord, seeded: &mut Seeded) -> FtqRecord {
    let readings = || record.chunks.iter().flat_map(|chunk| chunk.at.iter().copied().zip(chunk.amount.iter().copied()));
    let increases: Vec<(u64, u64)> = readings()
        .zip(readings().skip(1))
        .map(|((from, less), (to, more))| (to.since(from).0, more.saturating_sub(less)))
        .collect();
    let mut blocks: Vec<&[(u64, u64)]> = increases.chunks(BLOCK).collect();
    seeded.shuffle(&mut blocks);
    let (mut at, mut amount) = readings().next().map_or((0, 0), |(at, amount)| (at.0, amount));
    let moved = blocks.into_iter().flatten().map(|(length, increase)| {
        (at, amount) = (at + length, amount + increase);
        (Nanos(at), amount)
    });
    let rows: Vec<(Nanos, u64)> = readings().take(1).chain(moved).collect();
    let mut rows = rows.into_iter();
    for chunk in &mut record.chunks {
        for (at, amount) in chunk.at.iter_mut().zip(&mut chunk.amount) {
            (*at, *amount) = rows.next().unwrap_or_default();
        }
    }
    record
}
