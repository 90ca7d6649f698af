//! Counts over many experiments, held against a band.

use std::path::Path;

/// Experiments behind a figure: METHOD.md's 2,000, or 10,000 where they are cheap, so that a true 6 % does not leave a
/// band that ends at 6.5 % by chance. A debug build makes fewer, so that `cargo test` stays quick.
pub const EXPERIMENTS: u64 = if cfg!(debug_assertions) { 400 } else { 10_000 };
/// Of latencies and sweeps, which take ten times as long.
pub const SLOW_EXPERIMENTS: u64 = if cfg!(debug_assertions) { 100 } else { 2000 };
/// Standard errors by which a band is wider in a debug build; a release build has METHOD.md's bands as they are.
const DEBUG_ERRORS: f64 = if cfg!(debug_assertions) { 3.0 } else { 0.0 };

/// A part of so many experiments.
#[derive(Clone, Copy)]
pub struct Share {
    pub part: f64,
    pub of: u64,
}

/// The part of all experiments for which `holds`. Seeds differ from figure to figure.
pub fn share(figure: u64, holds: impl Fn(u64) -> bool) -> Share {
    share_of(EXPERIMENTS, figure, holds)
}

/// As [`share`], of another number of experiments.
pub fn share_of(experiments: u64, figure: u64, holds: impl Fn(u64) -> bool) -> Share {
    let hits = (0..experiments).filter(|number| holds(figure << 32 | number)).count();
    Share { part: hits as f64 / experiments as f64, of: experiments }
}

/// Notes a share and holds it against a band in percent.
pub fn within(name: &str, share: Share, low: f64, high: f64) {
    let Share { part, of } = share;
    let percent = 100.0 * part;
    let widening = |bound: f64| DEBUG_ERRORS * (bound * (100.0 - bound) / of as f64).sqrt();
    note(name, &format!("{percent:.2} % of {of}, to be within [{low}, {high}] %"));
    assert!(
        low - widening(low) <= percent && percent <= high + widening(high),
        "{name}: {percent:.2} % of {of} is not within [{low}, {high}] %"
    );
}

/// Keeps a figure under `target/tmp/calibration`, where one can read what a test that passed has measured.
pub fn note(name: &str, figure: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(if cfg!(debug_assertions) {
        "calibration-debug"
    } else {
        "calibration"
    });
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name.replace(' ', "_")), format!("{name}: {figure}\n")).unwrap();
}

/// The value that half of all are below.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
