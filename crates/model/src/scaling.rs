//! How the rate grows with the number of submitters.

use crate::experiment::Metric;
use crate::slice::Rounds;
use crate::stats::Estimate;
use crate::stats::curves::{FEWEST_POINTS, Place, Scalability, scalability};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Below, a part is nothing that a user would act on.
const NOTHING: f64 = 0.005;

/// The fitted rate of N submitters (Universal Scalability Law): rate(N) = alone × N ÷ (1 + contention × (N − 1) + coherency × N ×
/// (N − 1)). Numbers above that of the CPUs do not enter the fit, which needs five.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ScalabilityFinding {
    /// Name of the arm.
    pub arm: String,
    /// Name of the option with the number of submitters: `numjobs`.
    pub axis: String,
    /// The values of the other axes.
    pub at: BTreeMap<String, String>,
    /// I/Os per second of one submitter; `null` if there is no fit.
    pub alone: Option<Estimate>,
    /// Fraction of the work that only one submitter at a time can do.
    pub contention: Option<Estimate>,
    /// Work that each pair of submitters adds, as a fraction of the work of one.
    pub coherency: Option<Estimate>,
    /// Number of submitters with the highest rate; `null` if the rate does not fall.
    pub peak: Option<f64>,
    /// Maximum deviation of a measured rate from the curve, as a fraction of that rate.
    pub misfit: Option<f64>,
    /// Numbers of submitters above that of the CPUs.
    pub oversubscribed: Vec<f64>,
    /// The meaning in words, or why there is no fit.
    pub words: String,
}

/// The law through the rates of cases with these numbers of submitters, without names. More than `cpus` do not enter the fit.
pub fn scalability_of(points: &[(f64, usize)], sums: &Rounds, cpus: usize) -> ScalabilityFinding {
    let fits = |submitters: f64| submitters <= cpus as f64;
    let (inside, outside): (Vec<_>, Vec<_>) = points.iter().partition(|(submitters, _)| fits(*submitters));
    let point = |&(submitters, case): &(f64, usize)| Some((submitters, sums.pairs(Metric::Iops, case)?));
    let points: Vec<Place> = inside.iter().map(point).collect::<Option<_>>().unwrap_or_default();
    let fit = scalability(&points);
    let words = match &fit {
        Some(fit) => scaling(fit, points.iter().map(|(submitters, _)| *submitters).fold(0.0, f64::max)),
        None if inside.len() < FEWEST_POINTS => format!(
            "no fit: {} of the numbers are within this machine's {cpus} CPUs, {FEWEST_POINTS} are needed",
            inside.len()
        ),
        None => "no fit: the rates are unknown, or do not follow the law".to_owned(),
    };
    ScalabilityFinding {
        alone: fit.map(|fit| fit.alone),
        contention: fit.map(|fit| fit.contention),
        coherency: fit.map(|fit| fit.coherency),
        peak: fit.and_then(|fit| fit.peak()),
        misfit: fit.map(|fit| fit.misfit),
        oversubscribed: outside.into_iter().map(|(submitters, _)| submitters).collect(),
        words,
        ..ScalabilityFinding::default()
    }
}

/// What the coefficients mean. `most` is the largest number of submitters in the fit.
fn scaling(fit: &Scalability, most: f64) -> String {
    let serial = fit.contention.value;
    let mut words = match serial {
        serial if serial < NOTHING => "no serial part".to_owned(),
        serial if serial < 1.0 => format!("one CPU's worth of serial work per {:.1} submitters", 1.0 / serial),
        _ => "all work is serial, and several submitters are slower than one".to_owned(),
    };
    if let Some(peak) = fit.peak().filter(|_| serial < 1.0) {
        let beyond = if peak > most { " (beyond the sweep)" } else { "" };
        words += &format!("; the rate falls above {peak:.0}{beyond}");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_told_in_words() {
        let words = |contention, coherency| {
            let [alone, contention, coherency] =
                [1.0, contention, coherency].map(|value| Estimate::with_error(value, value / 10.0, 9.0));
            scaling(&Scalability { alone, contention, coherency, misfit: 0.0 }, 9.0)
        };
        assert_eq!(words(0.32, 0.0), "one CPU's worth of serial work per 3.1 submitters");
        assert_eq!(words(0.0, 0.01), "no serial part; the rate falls above 10 (beyond the sweep)");
        assert_eq!(words(1.2, 0.0), "all work is serial, and several submitters are slower than one");
        assert_eq!(words(0.19, 0.01), "one CPU's worth of serial work per 5.3 submitters; the rate falls above 9");
    }
}
