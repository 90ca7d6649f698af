//! pread at chosen places of a page, as a loop and as a library to preload: where a program's system call instruction lies moves what the call
//! costs by a tenth and more, so one loop at one place is nothing to measure others by.

use super::bench::Bench;
use super::rounds;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

const SOURCE: &str = include_str!("placed/placed_pread.c");
/// Loops of the program, as in the source.
pub const PLACES: usize = 16;
/// Bytes of a cache line, and from one place to the next.
const LINE: usize = 64;
const STEP: usize = 4;
/// Bytes from the start of a place to the first instruction after the system call, as in the source.
const HEAD: usize = 21;

/// The program, built in the scratch directory.
#[derive(Clone, Debug)]
pub struct Loops {
    program: PathBuf,
}

/// One run of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// Reads a second of each loop.
    pub of_places: [f64; PLACES],
}

impl Loops {
    /// # Errors
    /// When there is no C compiler, or it cannot compile for this machine (the source is for x86-64).
    pub fn build(bench: &Bench) -> anyhow::Result<Self> {
        let program = bench.path("placed-pread");
        compile(bench, &program, &[])?;
        Ok(Self { program })
    }

    pub fn run(&self, bench: &Bench, file: &Path, seconds: f64) -> anyhow::Result<Rates> {
        parse(&bench.output(bench.command(&self.program).arg(file).arg(seconds.to_string()))?)
    }
}

/// A library that has libc's pread at this place.
pub fn library(bench: &Bench, place: usize) -> anyhow::Result<PathBuf> {
    let library = bench.path(&format!("placed-pread-{place}.so"));
    compile(bench, &library, &["-shared", "-fPIC", &format!("-DPLACE={place}")])?;
    Ok(library)
}

/// Where in its cache line a place has the first instruction after the system call.
pub fn in_line(place: usize) -> usize {
    (HEAD + STEP * place) % LINE
}

/// What a loop has that lies anywhere: the reads of all loops together in the time of all together, when each reads as often.
pub fn anywhere(rates: &Rates) -> f64 {
    PLACES as f64 / rates.of_places.iter().map(|rate| 1.0 / rate).sum::<f64>()
}

/// The places with the most and the fewest reads a second over all runs.
pub fn extremes(runs: &[Rates]) -> (usize, usize) {
    let mean = |place: usize| rounds::mean(&of_place(runs, place)).value;
    let mut places: Vec<usize> = (0..PLACES).collect();
    places.sort_by(|one, other| mean(*other).total_cmp(&mean(*one)));
    (places.first().copied().unwrap_or(0), places.last().copied().unwrap_or(0))
}

/// One place's rate in each run.
pub fn of_place(runs: &[Rates], place: usize) -> Vec<f64> {
    runs.iter().filter_map(|run| run.of_places.get(place).copied()).collect()
}

fn compile(bench: &Bench, into: &Path, how: &[&str]) -> anyhow::Result<()> {
    let source = bench.path("placed_pread.c");
    std::fs::write(&source, SOURCE)?;
    bench.output(bench.command("cc").arg("-O2").args(how).arg("-o").arg(into).arg(&source))?;
    Ok(())
}

fn parse(said: &str) -> anyhow::Result<Rates> {
    let rates: Vec<f64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>().context(said.to_owned())?;
    match <[f64; PLACES]>::try_from(rates) {
        Ok(of_places) if of_places.iter().all(|rate| *rate > 0.0) => Ok(Rates { of_places }),
        _ => bail!("{PLACES} rates, not '{}'", said.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(of: impl Fn(usize) -> f64) -> Rates {
        Rates { of_places: std::array::from_fn(of) }
    }

    #[test]
    fn sixteen_rates_are_read_and_nothing_else() {
        let said: String = (1..=PLACES).map(|rate| format!("{rate}.5\n")).collect();
        assert_eq!(parse(&said).unwrap(), rates(|place| place as f64 + 1.5));
        assert!(parse("1\n2\n").is_err() && parse(&said.replace("3.5", "x")).is_err());
        assert!(parse(&said.replace("3.5", "0")).is_err());
    }

    /// Half the loops at 1, half at 3 reads a second: 16 reads of each in 8 · 16 + 8 · 16 ⁄ 3 seconds are 1.5 a second, and not 2.
    #[test]
    fn a_loop_anywhere_has_the_mean_of_times() {
        let half = rates(|place| if place < PLACES / 2 { 1.0 } else { 3.0 });
        assert!((anywhere(&half) - 1.5).abs() < 1e-12);
    }

    #[test]
    fn the_extremes_are_of_all_runs_together() {
        let runs =
            [rates(|place| if place == 2 { 100.0 } else { 50.0 - place as f64 }), rates(|place| 90.0 - place as f64)];
        assert_eq!(extremes(&runs), (2, 15));
        assert_eq!(of_place(&runs, 2), [100.0, 88.0]);
        let slow = [rates(|place| if place == 7 { 1.0 } else { 5.0 })];
        assert_eq!(extremes(&slow).1, 7);
    }

    #[test]
    fn places_are_four_bytes_apart_and_begin_anew_with_each_line() {
        assert_eq!((in_line(0), in_line(1), in_line(11), in_line(15)), (21, 25, 1, 17));
    }
}
