//! Fractions of many experiments, checked against a band.

use std::path::Path;

/// Number of experiments for a figure, of `./check --long`: 2,000 as in docs/method, or 10,000 if they are cheap, so that
/// a true 6 % does not exceed a band that ends at 6.5 % by chance. `./check` takes a part of them, in which an estimator
/// that is wrong by several percent is seen.
pub const EXPERIMENTS: u64 = 10_000 / PART;
/// For latencies and sweeps, which take ten times as long.
pub const SLOW_EXPERIMENTS: u64 = 2000 / PART;
const PART: u64 = if crate::ALL { 1 } else { 20 };

/// A fraction of this number of experiments.
#[derive(Clone, Copy)]
pub struct Share {
    pub part: f64,
    pub of: u64,
}

/// The fraction of all experiments for which `holds` is true. Each figure has its own seeds.
pub fn share(figure: u64, holds: impl Fn(u64) -> bool) -> Share {
    share_of(EXPERIMENTS, figure, holds)
}

/// Like [`share`], with another number of experiments.
pub fn share_of(experiments: u64, figure: u64, holds: impl Fn(u64) -> bool) -> Share {
    let hits = (0..experiments).filter(|number| holds(figure << 32 | number)).count();
    Share { part: hits as f64 / experiments as f64, of: experiments }
}

/// Records a fraction and checks it against a band in percent.
pub fn within(name: &str, share: Share, low: f64, high: f64) {
    let Share { part, of } = share;
    let percent = 100.0 * part;
    // What chance adds with fewer experiments: four standard errors at the end of the band.
    let chance = |end: f64| if PART == 1 { 0.0 } else { 4.0 * (end * (100.0 - end).max(0.0) / of as f64).sqrt() };
    let (low, high) = (low - chance(low), high + chance(high));
    note(name, &format!("{percent:.2} % of {of}, to be within [{low:.1}, {high:.1}] %"));
    assert!((low..=high).contains(&percent), "{name}: {percent:.2} % of {of} is not within [{low:.1}, {high:.1}] %");
}

/// Records a fraction of which nothing is claimed.
pub fn note_share(name: &str, share: Share) {
    note(name, &format!("{:.2} %", 100.0 * share.part));
}

/// Writes a figure to `target/tmp/calibration`, so that the results of passed tests can be read.
pub fn note(name: &str, figure: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calibration");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name.replace(' ', "_")), format!("{name}: {figure}\n")).unwrap();
}

/// The median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
