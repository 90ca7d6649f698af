//! Units of unequal length: how far the residual of a long one understates it, and how many equal ones they are worth.
//!
//! A ratio of sums weighs each unit by its work, but a long unit varies like one. It pulls the ratio to itself, so its residual is too small,
//! and the few long ones determine the error. The input is the lengths of the units, the result what the error of their mean needs.

/// With a longer unit, the others hardly tell how far it may be off.
const LONGEST_PART: f64 = 0.75;

/// The lengths of units, as parts of their sum.
pub(super) struct Lengths {
    /// Of each unit: the variance of its residual, as a part of that of its deviation from the truth.
    seen: Vec<f64>,
    /// Degrees of freedom of the variance of their mean; number − 1 if all have the same length.
    pub degrees_of_freedom: f64,
}

impl Lengths {
    /// `None` with fewer than two units, or where one has most of the length.
    ///
    /// Units deviate from the truth by the same standard deviation, whatever their length. With h the parts and S = Σh², the residual of unit r
    /// has the variance 1 − 2h_r + S, and the sum of the corrected squares the degrees of freedom (Σh²)²/tr M², where M is the matrix of the
    /// covariances of the corrected residuals (Satterthwaite, 1946; Bell and McCaffrey, 2002).
    pub fn of(lengths: &[f64]) -> Option<Self> {
        let all: f64 = lengths.iter().sum();
        let parts: Vec<f64> = lengths.iter().map(|length| length / all).collect();
        let longest = parts.iter().copied().fold(f64::NAN, f64::max);
        if parts.len() < 2 || longest.is_nan() || longest > LONGEST_PART {
            return None;
        }
        let squares: f64 = parts.iter().map(|part| part * part).sum();
        let seen: Vec<f64> = parts.iter().map(|part| 1.0 - 2.0 * part + squares).collect();
        let sum = |power: i32| parts.iter().zip(&seen).map(|(part, seen)| part.powi(2 + power) / seen).sum::<f64>();
        let (q0, q1, q2) = (sum(0), sum(1), sum(2));
        let own = |(part, seen): (&f64, &f64)| (part * part / seen).powi(2) * (1.0 + 2.0 * squares - 4.0 * part);
        let trace = (squares * q0).powi(2) + 2.0 * q0 * q2 - 4.0 * squares * q0 * q1
            + 2.0 * q1 * q1
            + parts.iter().zip(&seen).map(own).sum::<f64>();
        Some(Self { seen, degrees_of_freedom: (squares * squares / trace).max(1.0) })
    }

    /// The variance of the mean of independent units with these influences, whose sum is 0.
    pub fn variance_of_mean(&self, influences: &[f64]) -> f64 {
        let squares: f64 = influences.iter().zip(&self.seen).map(|(influence, seen)| influence.powi(2) / seen).sum();
        squares / (influences.len() as f64).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_lengths_have_the_usual_variance_of_a_mean() {
        let influences = [3.0, -1.0, -1.0, -2.0, 1.0];
        let lengths = Lengths::of(&[7.0; 5]).unwrap();
        assert!((lengths.degrees_of_freedom - 4.0).abs() < 1e-9, "{}", lengths.degrees_of_freedom);
        assert!((lengths.variance_of_mean(&influences) - 16.0 / 4.0 / 5.0).abs() < 1e-12);
    }

    /// By the matrix itself: the covariances of h·(ε − Σhε)/√seen.
    #[test]
    fn degrees_of_freedom_are_those_of_the_corrected_residuals() {
        let parts: [f64; 4] = [0.5, 0.25, 0.15, 0.1];
        let squares: f64 = parts.iter().map(|part| part * part).sum();
        let seen = |r: usize| 1.0 - 2.0 * parts[r] + squares;
        let covariance = |r: usize, s: usize| {
            let same = if r == s { 1.0 } else { 0.0 };
            parts[r] * parts[s] * (same - parts[r] - parts[s] + squares) / (seen(r) * seen(s)).sqrt()
        };
        let all = |of: &dyn Fn(usize, usize) -> f64| -> f64 { (0..16).map(|place| of(place / 4, place % 4)).sum() };
        let trace: f64 = (0..4).map(|r| covariance(r, r)).sum();
        let expected = trace * trace / all(&|r, s| covariance(r, s).powi(2));
        let found = Lengths::of(&parts.map(|part| 3.0 * part)).unwrap().degrees_of_freedom;
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn one_unit_that_is_most_of_the_length_leaves_nothing_to_tell_its_error() {
        assert!(Lengths::of(&[20.0, 1.0, 1.0, 1.0]).is_none());
        assert!(Lengths::of(&[2.0, 1.0]).is_some());
        assert!(Lengths::of(&[1.0]).is_none() && Lengths::of(&[]).is_none() && Lengths::of(&[0.0; 3]).is_none());
    }

    proptest! {
        #[test]
        fn unequal_lengths_are_worth_fewer_units(lengths in proptest::collection::vec(0.1f64..10.0, 2..40)) {
            prop_assume!(Lengths::of(&lengths).is_some());
            let found = Lengths::of(&lengths).unwrap().degrees_of_freedom;
            prop_assert!(found >= 1.0 && found <= lengths.len() as f64 - 1.0 + 1e-9, "{}", found);
        }
    }
}
