//! Intervals for parameters that are fitted to several cells at once, by leaving out one round at a time.
//!
//! All cells of a round share the state of the machine, so their errors are correlated. Leaving out whole rounds
//! preserves that correlation.

use super::estimate::Estimate;

/// Estimates of N parameters, each ± t(0.975, R − 1) · se with the delete-one jackknife's
/// se² = (R − 1)/R · Σ(p_r − p̄)² (Efron and Stein, 1981), where p_r is the parameter without round r.
///
/// `fit` receives the round to leave out; `None` leaves out none. The result is `None` if the whole cannot be fitted,
/// and has no intervals if the fit fails without one of the rounds, or if there is only one.
pub fn jackknife<const N: usize>(
    rounds: usize,
    fit: impl Fn(Option<usize>) -> Option<[f64; N]>,
) -> Option<[Estimate; N]> {
    let whole = fit(None)?;
    let without: Option<Vec<[f64; N]>> = (0..rounds).map(|round| fit(Some(round))).collect();
    let Some(without) = without.filter(|_| rounds >= 2) else { return Some(whole.map(Estimate::bare)) };
    let count = rounds as f64;
    let mean = sums(without.iter().copied()).map(|sum| sum / count);
    let squares = sums(without.iter().map(|values| squared_distances(values, &mean)));
    Some(zip(whole, squares, |value, squares| {
        Estimate::with_error(value, ((count - 1.0) / count * squares).sqrt(), count - 1.0)
    }))
}

fn sums<const N: usize>(rows: impl Iterator<Item = [f64; N]>) -> [f64; N] {
    rows.fold([0.0; N], |sums, row| zip(sums, row, |sum, value| sum + value))
}

fn squared_distances<const N: usize>(values: &[f64; N], from: &[f64; N]) -> [f64; N] {
    zip(*values, *from, |value, from| (value - from).powi(2))
}

fn zip<const N: usize, T>(a: [f64; N], b: [f64; N], with: impl Fn(f64, f64) -> T) -> [T; N] {
    let mut b = b.into_iter();
    a.map(|a| with(a, b.next().unwrap_or(f64::NAN)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::student_t;

    /// The jackknife of a mean is exactly the mean with its usual error (Efron and Stein, 1981).
    #[test]
    fn for_a_mean_it_is_the_usual_interval() {
        let values: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];
        let mean = |out: Option<usize>| {
            let kept: Vec<f64> = values.iter().enumerate().filter(|(i, _)| Some(*i) != out).map(|(_, v)| *v).collect();
            Some([kept.iter().sum::<f64>() / kept.len() as f64])
        };
        let [found] = jackknife(values.len(), mean).unwrap();
        let variance = values.iter().map(|value| (value - 6.2).powi(2)).sum::<f64>() / 4.0;
        let half = student_t(0.975, 4.0).unwrap() * (variance / 5.0).sqrt();
        assert_eq!(found.value, 6.2);
        assert!((found.half_width().unwrap() - half).abs() < 1e-12);
    }

    #[test]
    fn no_interval_without_every_replicate() {
        assert_eq!(jackknife(1, |_| Some([1.0])), Some([Estimate::bare(1.0)]));
        let fails = |out: Option<usize>| (out != Some(2)).then_some([1.0]);
        assert_eq!(jackknife(5, fails), Some([Estimate::bare(1.0)]));
        assert_eq!(jackknife(5, |_| None::<[f64; 1]>), None);
    }
}
