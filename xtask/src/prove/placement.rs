//! Where in a page a program's system call instruction lies moves what the call costs: of a bare pread loop, and of unmodified fio with a
//! pread preloaded whose place is chosen. So the same source built twice may differ by as much, and one bare loop is no floor.

use super::bench::{Bench, read_through};
use super::evidence::{self, Evidence};
use super::placed::{self, Loops, PLACES, Rates};
use super::{fio, rounds};
use anyhow::Context;
use std::path::PathBuf;

const MEBIBYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    /// The loops, all places in one run.
    Loops,
    /// fio with libc's pread.
    Fio,
    /// fio with a pread at this place.
    Placed(usize),
}

enum Found {
    Loops(Rates),
    Fio(f64),
}

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("cached", MEBIBYTES)?;
    let loops = Loops::build(bench)?;
    let libraries: Vec<PathBuf> =
        (0..PLACES).map(|place| placed::library(bench, place)).collect::<anyhow::Result<_>>()?;
    let cells: Vec<Cell> = [Cell::Loops, Cell::Fio].into_iter().chain((0..PLACES).map(Cell::Placed)).collect();
    let (size, name) = (format!("--size={MEBIBYTES}m"), format!("--filename={}", file.display()));
    let job = fio::job("psync", bench.options.seconds, &["--bs=4k", "--invalidate=0", &size, &name]);
    let found = bench.in_rounds(
        &cells,
        |_| 0,
        |cell| format!("{cell:?}"),
        |bench, cell| {
            read_through(&file)?;
            Ok(match cell {
                Cell::Loops => Found::Loops(loops.run(bench, &file, bench.options.seconds * PLACES as f64 / 4.0)?),
                Cell::Fio => Found::Fio(fio::run(bench, &job)?.iops),
                Cell::Placed(place) => {
                    let library = libraries.get(*place).context("no such place")?;
                    Found::Fio(fio::run_with(bench, &job, &[("LD_PRELOAD", library)])?.iops)
                }
            })
        },
    )?;
    let [loops, fio, placed @ ..] = found.as_slice() else { anyhow::bail!("no cells") };
    let loops: Vec<Rates> = loops.iter().filter_map(Found::loops).collect();
    let fio = rates(fio);
    let placed = by_round(&placed.iter().map(|cell| rates(cell)).collect::<Vec<_>>());
    let mut evidence = Evidence::default();
    spread("a bare pread loop", &loops, &mut evidence);
    spread("fio, psync, with a pread preloaded", &placed, &mut evidence);
    let anywhere: Vec<f64> = placed.iter().map(placed::anywhere).collect();
    evidence.note(format!(
        "4 KiB random reads of {MEBIBYTES} MiB in the page cache: nanoseconds a read where the first instruction after the system call lies so \
         many bytes behind the start of a cache line. The loops take turns in one process; fio is an execution a place. fio with libc's own \
         pread: {} ns, {} of its IOPS with the preloaded ones (the mean of all places).",
        evidence::interval(&rounds::mean(&nanoseconds(&fio)), 0),
        evidence::interval(&rounds::ratio(&fio, &anywhere), 3),
    ));
    let row = |place: usize| {
        let cell = |runs: &[Rates]| evidence::interval(&rounds::mean(&nanoseconds(&placed::of_place(runs, place))), 0);
        vec![placed::in_line(place).to_string(), cell(&loops), cell(&placed)]
    };
    evidence.table(&["bytes", "bare pread loop", "fio, pread preloaded"], &(0..PLACES).map(row).collect::<Vec<_>>());
    Ok(evidence)
}

impl Found {
    fn loops(&self) -> Option<Rates> {
        match self {
            Self::Loops(rates) => Some(rates.clone()),
            Self::Fio(_) => None,
        }
    }
}

fn rates(found: &[Found]) -> Vec<f64> {
    found.iter().filter_map(|found| if let Found::Fio(iops) = found { Some(*iops) } else { None }).collect()
}

/// What was measured place by place, round by round.
fn by_round(places: &[Vec<f64>]) -> Vec<Rates> {
    let count = places.iter().map(Vec::len).min().unwrap_or(0);
    let of = |round: usize, place: usize| places.get(place).and_then(|rates| rates.get(round)).copied();
    (0..count)
        .map(|round| Rates { of_places: std::array::from_fn(|place| of(round, place).unwrap_or(f64::NAN)) })
        .collect()
}

/// The fastest place and the slowest are chosen in every other round and compared in the rest: of sixteen that were all alike, the extremes
/// of the same rounds would differ too.
fn spread(who: &str, runs: &[Rates], evidence: &mut Evidence) {
    let (chosen, compared) = halves(runs);
    let (fastest, slowest) = placed::extremes(&chosen);
    let of = |place| placed::of_place(&compared, place);
    let ratio = rounds::ratio(&of(fastest), &of(slowest));
    let text = format!(
        "{who}: {} times the IOPS with the return at byte {} of a line than at byte {}, which were chosen in other rounds",
        evidence::interval(&ratio, 3),
        placed::in_line(fastest),
        placed::in_line(slowest),
    );
    evidence.criterion(ratio.low.is_some_and(|low| low > 1.0), text);
}

/// Every other round, and the rest.
fn halves(runs: &[Rates]) -> (Vec<Rates>, Vec<Rates>) {
    (runs.iter().step_by(2).cloned().collect(), runs.iter().skip(1).step_by(2).cloned().collect())
}

fn nanoseconds(rates: &[f64]) -> Vec<f64> {
    rates.iter().map(|rate| 1e9 / rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_put_together_from_their_places() {
        let places: Vec<Vec<f64>> = (0..PLACES).map(|place| vec![place as f64, 100.0 + place as f64]).collect();
        let found = by_round(&places);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].of_places[3], 103.0);
    }

    /// Noise alone: whatever is fastest in the rounds that choose is not faster in the others.
    #[test]
    fn a_spread_of_noise_alone_is_not_shown() {
        let noise = |round: usize| Rates {
            of_places: std::array::from_fn(|place| {
                1000.0 + ((place * 7 + round * 13) * 2_654_435_761 % 997) as f64 / 10.0
            }),
        };
        let mut evidence = Evidence::default();
        spread("noise", &(0..12).map(noise).collect::<Vec<_>>(), &mut evidence);
        assert!(!evidence.met());
        let true_one = |round| {
            let mut rates = noise(round);
            rates.of_places[5] = 2000.0 + round as f64;
            rates
        };
        let mut evidence = Evidence::default();
        spread("one place", &(0..12).map(true_one).collect::<Vec<_>>(), &mut evidence);
        assert!(evidence.met());
    }
}
