//! Holm's correction: over several cells, the chance of a false finding is the same as for a single one.

/// p-values adjusted after Holm (1979): the i-th smallest of m times (m − i + 1), never smaller than that of a smaller
/// p-value, at most 1. A cell is detected when its adjusted p-value is below 0.05. `None` means not tested; it stays
/// `None` and does not count.
pub fn holm(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut ordered: Vec<(usize, f64)> =
        p_values.iter().enumerate().filter_map(|(index, p)| Some((index, (*p)?))).collect();
    ordered.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut adjusted = vec![None; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, (index, p)) in ordered.iter().enumerate() {
        least = least.max(p * (ordered.len() - rank) as f64).min(1.0);
        if let Some(slot) = adjusted.get_mut(*index) {
            *slot = Some(least);
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_by_hand() {
        let found = holm(&[Some(0.01), None, Some(0.04), Some(0.03), Some(0.005)]);
        let expected = [Some(0.03), None, Some(0.06), Some(0.06), Some(0.02)];
        for (found, expected) in found.iter().zip(expected) {
            match (found, expected) {
                (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-15, "{found} {expected}"),
                (found, expected) => assert_eq!(*found, expected),
            }
        }
    }

    #[test]
    fn one_cell_needs_no_correction() {
        assert_eq!(holm(&[None, Some(0.03)]), [None, Some(0.03)]);
        assert_eq!(holm(&[]), []);
    }

    proptest! {
        #[test]
        fn between_the_p_value_and_bonferronis(p_values in proptest::collection::vec(0.0f64..=1.0, 1..20)) {
            let given: Vec<Option<f64>> = p_values.iter().copied().map(Some).collect();
            for (p, adjusted) in p_values.iter().zip(holm(&given)) {
                let adjusted = adjusted.unwrap();
                prop_assert!(*p <= adjusted && adjusted <= (p * p_values.len() as f64).min(1.0));
            }
        }

        #[test]
        fn the_order_of_cells_does_not_matter(p_values in proptest::collection::vec(0.0f64..=1.0, 1..20)) {
            let given: Vec<Option<f64>> = p_values.iter().copied().map(Some).collect();
            let turned: Vec<Option<f64>> = given.iter().rev().copied().collect();
            let mut back = holm(&turned);
            back.reverse();
            prop_assert_eq!(holm(&given), back);
        }
    }
}
