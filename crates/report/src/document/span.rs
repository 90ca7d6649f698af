//! Where a number stands between two ends: what every drawing has in common.

/// A stretch of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Where it begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

impl Span {
    /// From `low` to `high`.
    pub fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// How far from the beginning to the end a number stands, 0 to 1. What has no place, because it is not a number or
    /// there is no stretch, stands at the beginning.
    pub fn fraction(self, value: f64) -> f64 {
        let fraction = (value - self.low) / (self.high - self.low);
        if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_lies_beyond_an_end_stands_at_it() {
        let span = Span::new(-1.0, 3.0);
        assert_eq!([-2.0, -1.0, 0.0, 3.0, 1e300].map(|value| span.fraction(value)), [0.0, 0.0, 0.25, 1.0, 1.0]);
        assert_eq!(Span::new(1.0, 1.0).fraction(1.0), 0.0);
    }

    proptest! {
        #[test]
        fn every_number_has_its_place(low in any::<f64>(), high in any::<f64>(), value in any::<f64>()) {
            prop_assert!((0.0..=1.0).contains(&Span::new(low, high).fraction(value)));
        }
    }
}
