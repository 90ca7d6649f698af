//! The estimator of costs: a ratio of sums, with an interval from the residuals of its units.

use super::estimate::{CONFIDENCE, Estimate, Neighbours, Uncertainty};

/// Numerator and denominator of one unit (a window, a round, an execution), for example cycles and I/Os.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub numerator: f64,
    pub denominator: f64,
}

impl Pair {
    /// The sum of units.
    pub fn sum(units: impl Iterator<Item = Self>) -> Self {
        let add = |sum: Self, unit: Self| Self {
            numerator: sum.numerator + unit.numerator,
            denominator: sum.denominator + unit.denominator,
        };
        units.fold(Self { numerator: 0.0, denominator: 0.0 }, add)
    }

    pub fn ratio(self) -> f64 {
        self.numerator / self.denominator
    }
}

/// A ratio of sums, with the uncertainty from the spread of the units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Σ numerator / Σ denominator.
    pub value: f64,
    /// How far it may be off, in the unit of the value; `None` with fewer than two units.
    pub error: Option<Uncertainty>,
    pub units: usize,
    /// The correlation of neighbouring units, where it is evident. The error is larger for it.
    pub correlation: Option<f64>,
}

impl Ratio {
    /// The value with its 95 % interval.
    pub fn estimate(&self) -> Estimate {
        Estimate::around(self.value, self.error.as_ref(), CONFIDENCE)
    }
}

/// Σn / Σd. The standard error is that of the classical ratio estimator (Cochran, Sampling Techniques, 3rd ed., § 6.4):
/// residuals e = n − r·d, se = sqrt(R/(R−1) · Σe²) / Σd, grown by the correlation of `neighbours` ([`super::serial()`]), and
/// skewed as the residuals are. Units may have different lengths, as windows do, and are weighted by their work. `None` if
/// Σd is not positive.
pub fn ratio_of_sums(pairs: &[Pair], neighbours: Neighbours) -> Option<Ratio> {
    let (value, influences) = with_influences(pairs)?;
    let lengths: Vec<f64> = pairs.iter().map(|pair| pair.denominator).collect();
    let (error, correlation) = Uncertainty::of_mean(&influences, &lengths, neighbours).unzip();
    Some(Ratio { value, error, units: pairs.len(), correlation: correlation.flatten() })
}

/// Σn / Σd, and the influence of each unit on it; their sum is 0. `None` if Σd is not positive.
pub(super) fn with_influences(pairs: &[Pair]) -> Option<(f64, Vec<f64>)> {
    let sum = Pair::sum(pairs.iter().copied());
    if sum.denominator.is_nan() || sum.denominator <= 0.0 || !sum.numerator.is_finite() {
        return None;
    }
    let value = sum.ratio();
    let per_unit = pairs.len() as f64 / sum.denominator;
    let influence = |pair: &Pair| (pair.numerator - value * pair.denominator) * per_unit;
    Some((value, pairs.iter().map(influence).collect()))
}

/// Whether a cost `net` of a background is more than the background's error explains, per capacity, round by round; `None` if its sum is
/// unknown.
///
/// A cost of less has no ratio to another: its interval contains 0 (Fieller, 1954). The error of a net cost is at most that of its own spread,
/// which a load that varies has too, and at most √2 times that of the background `alone`, which a drift has too: it is subtracted from what ran
/// beside the same background. So the smaller of the two counts.
pub fn exceeds_background(net: &[Pair], alone: &[Pair]) -> Option<bool> {
    let net = ratio_of_sums(net, Neighbours::Independent)?;
    let reach = |ratio: Ratio| ratio.error?.times_t(0.5 + CONFIDENCE / 2.0);
    let (own, alone) = (reach(net), ratio_of_sums(alone, Neighbours::Independent).and_then(reach));
    // One round has no error, and no interval.
    Some(net.value > own.zip(alone).map_or(0.0, |(own, alone)| own.min(2f64.sqrt() * alone)))
}

/// The one unit that carries a large part of a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dominant {
    /// Its place among the units.
    pub place: usize,
    /// Its part of the sum, as a fraction.
    pub part: f64,
    /// Whether that sum is the denominator.
    pub of_denominator: bool,
}

/// Smallest part of a sum that one unit must have to be named.
const DOMINANT_PART: f64 = 0.25;
/// Largest part of a sum that units below 0 may take away: net costs near 0 are noise.
const MOST_NOISE: f64 = 0.1;
/// How many times its part of the other sum that must be.
const DOMINANT_EXCESS: f64 = 3.0;

/// The unit with a quarter of a sum or more, and three times as much as the other sum explains; `None` if there is none. A
/// mean that rests on one unit is known only as well as the frequency of such units, which one of them hardly tells.
pub fn dominant(pairs: &[Pair]) -> Option<Dominant> {
    let swapped: Vec<Pair> =
        pairs.iter().map(|pair| Pair { numerator: pair.denominator, denominator: pair.numerator }).collect();
    let found = [(pairs, false), (&swapped, true)].into_iter().filter_map(|(pairs, of_denominator)| {
        let (place, part) = dominant_numerator(pairs)?;
        Some(Dominant { place, part, of_denominator })
    });
    found.max_by(|one, other| one.part.total_cmp(&other.part))
}

fn dominant_numerator(pairs: &[Pair]) -> Option<(usize, f64)> {
    let Pair { numerator: numerators, denominator: denominators } = Pair::sum(pairs.iter().copied());
    if pairs.len() < 2 || numerators <= 0.0 || denominators <= 0.0 {
        return None;
    }
    // A sum of which noise takes away a part is not carried by what remains.
    let taken_away = |of: fn(&Pair) -> f64| -pairs.iter().map(|pair| of(pair).min(0.0)).sum::<f64>();
    let noise = |of: fn(&Pair) -> f64, sum: f64| taken_away(of) > MOST_NOISE * sum;
    if noise(|pair| pair.numerator, numerators) || noise(|pair| pair.denominator, denominators) {
        return None;
    }
    let (place, largest) = pairs.iter().enumerate().max_by(|(_, a), (_, b)| a.numerator.total_cmp(&b.numerator))?;
    let (part, work) = (largest.numerator / numerators, largest.denominator / denominators);
    (part >= DOMINANT_PART && part >= DOMINANT_EXCESS * work).then_some((place, part.min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
        values.iter().map(|&(numerator, denominator)| Pair { numerator, denominator }).collect()
    }

    fn error(pairs: &[Pair], neighbours: Neighbours) -> Uncertainty {
        ratio_of_sums(pairs, neighbours).unwrap().error.unwrap()
    }

    /// Worked by hand: r = 60/30 = 2, residuals 1, 0, −1, se = sqrt(3/2 · 2)/30.
    #[test]
    fn golden() {
        let ratio = ratio_of_sums(&pairs(&[(21.0, 10.0), (20.0, 10.0), (19.0, 10.0)]), Neighbours::Alike).unwrap();
        assert_eq!(ratio.value, 2.0);
        assert!((ratio.error.unwrap().standard_error - 3f64.sqrt() / 30.0).abs() < 1e-15);
        let interval = ratio.estimate();
        assert!((interval.half_width().unwrap() - 4.302652729749464 * 3f64.sqrt() / 30.0).abs() < 1e-9);
    }

    #[test]
    fn correlated_neighbours_widen_the_error() {
        let alike = pairs(&[(11.0, 1.0); 4].into_iter().chain([(9.0, 1.0); 4]).collect::<Vec<_>>());
        let unlike = pairs(&[(11.0, 1.0), (9.0, 1.0)].into_iter().cycle().take(8).collect::<Vec<_>>());
        let (alike, unlike) = (error(&alike, Neighbours::Alike), error(&unlike, Neighbours::Alike));
        assert!(alike.standard_error > unlike.standard_error);
        assert!(alike.degrees_of_freedom < unlike.degrees_of_freedom);
        assert_eq!(unlike.degrees_of_freedom, 7.0, "never narrower");
    }

    #[test]
    fn only_an_evident_correlation_is_told() {
        let of = |values: Vec<(f64, f64)>| ratio_of_sums(&pairs(&values), Neighbours::Alike).unwrap().correlation;
        let half = |cycles: f64| [(cycles, 1.0); 10];
        assert!(of([half(11.0), half(9.0)].concat()).unwrap() > 0.8);
        assert_eq!(of([(11.0, 1.0), (9.0, 1.0)].repeat(10)), None);
        assert_eq!(of(vec![(11.0, 1.0)]), None);
    }

    #[test]
    fn without_work_there_is_no_ratio() {
        assert_eq!(ratio_of_sums(&[], Neighbours::Alike), None);
        assert_eq!(ratio_of_sums(&pairs(&[(5.0, 0.0)]), Neighbours::Alike), None);
    }

    #[test]
    fn a_window_that_carries_the_mean_is_named() {
        let mut values = vec![(1.0, 1.0); 20];
        assert_eq!(dominant(&pairs(&values)), None);
        values[7].0 = 20.0;
        let found = dominant(&pairs(&values)).unwrap();
        assert_eq!(found.place, 7);
        assert!((found.part - 20.0 / 39.0).abs() < 1e-12);
        assert!(!found.of_denominator);
        values[7].1 = 20.0;
        assert_eq!(dominant(&pairs(&values)), None, "its work explains it");
        values[7].0 = 1.0;
        assert!(
            dominant(&pairs(&values)).unwrap().of_denominator,
            "a stalled round has the same I/Os and more seconds"
        );
        assert_eq!(dominant(&pairs(&[(3.0, 1.0), (1.0, 1.0)])), None, "one of two has at least a half");
        assert_eq!(dominant(&pairs(&[(-3.0, 1.0); 5])), None);
        assert_eq!(dominant(&pairs(&[(5.0, 1.0), (-4.0, 1.0), (1.0, 1.0), (-1.0, 1.0)])), None, "noise around 0");
    }

    proptest! {
        #[test]
        fn scaling_the_work_scales_the_cost_and_its_error(
            values in proptest::collection::vec((1.0f64..1e6, 2e5f64..5e5), 2..30),
            factor in 0.001f64..1000.0,
        ) {
            let plain = ratio_of_sums(&pairs(&values), Neighbours::Alike).unwrap();
            let scaled: Vec<_> = values.iter().map(|&(n, d)| (n * factor, d)).collect();
            let scaled = ratio_of_sums(&pairs(&scaled), Neighbours::Alike).unwrap();
            prop_assert!((scaled.value / plain.value / factor - 1.0).abs() < 1e-9);
            let (a, b) = (scaled.error.unwrap().standard_error, plain.error.unwrap().standard_error * factor);
            prop_assert!((a - b).abs() <= 1e-9 * scaled.value);
        }
    }
}
