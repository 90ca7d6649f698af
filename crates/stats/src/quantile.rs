//! Sample quantiles of unsorted values.

/// The quantile `fraction` (0 to 1) of `values`, which are reordered: the value at the nearest rank. `None` if there
/// are none. Values that are not numbers count as the largest.
pub fn quantile(values: &mut [f64], fraction: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let rank = (fraction.clamp(0.0, 1.0) * last as f64).round() as usize;
    let (_, value, _) = values.select_nth_unstable_by(rank.min(last), f64::total_cmp);
    Some(*value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_exact() {
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.95, 1.0].map(|part| quantile(&mut values, part)), [0.0, 50.0, 95.0, 100.0].map(Some));
        assert_eq!(quantile(&mut [], 0.5), None);
    }
}
