//! The correlation of consecutive residuals, and what it does to the error of their mean.
//!
//! Readings of one run follow each other in time, so neighbours resemble each other, and their mean is known worse than
//! their number suggests. The input is residuals in the order of time. The result is the factor by which the variance
//! of their mean exceeds that of independent residuals.

/// A larger correlation cannot be told from a trend: at 0.9, an error grows by a factor of 4.4.
const MOST: f64 = 0.9;
/// Standard errors of a correlation that one in twenty exceeds by chance.
const EVIDENT: f64 = 1.645;
/// A [`wander`] that one in twenty exceeds by chance.
const WANDERS: f64 = 0.463;
/// Fewer residuals say nothing about their order.
const FEWEST: usize = 4;
/// The correlation of fewer sums is not known.
const FEWEST_SUMS: usize = 8;

/// How the order of readings comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// Readings of one run, one after the other: neighbours resemble each other unless they are known not to.
    Alike,
    /// Rounds with fresh workers in a random order: neighbours are independent unless the data says otherwise, so only an
    /// evident correlation counts.
    Independent,
}

/// The correlation of neighbours, and the growth of the variance of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Serial {
    /// Estimate of ρ, corrected for its bias; from 0 on, below 1. Of what lasts for many readings, the ρ of the same growth.
    pub correlation: f64,
    /// (1 + ρ)/(1 − ρ), the variance of a mean relative to that of independent readings (Bartlett, 1935).
    pub growth: f64,
    /// Whether ρ is above 0, or the level wanders, each at the 5 % level.
    pub is_evident: bool,
}

impl Serial {
    /// Neighbours that have nothing to do with each other.
    pub const NONE: Self = Self { correlation: 0.0, growth: 1.0, is_evident: false };

    /// The correlation, if it is evident.
    pub fn evident(self) -> Option<f64> {
        self.is_evident.then_some(self.correlation)
    }
}

/// The correlation of `residuals` in the order of measurement. They sum to 0, because the caller has subtracted their mean.
///
/// What lasts for many of them shows little from one to the next, if each has noise of its own. Sums of 2, 4, 8… neighbours have less of that
/// noise. So where their correlation is evident, or [`wander`] is, the variance of the mean is the largest of those that each of these sums
/// give (blocking; Flyvbjerg and Petersen, 1989), at most that of two independent residuals.
pub fn serial(residuals: &[f64], neighbours: Neighbours) -> Serial {
    let fine = lag_one(residuals, 1, neighbours);
    let wanders = wander(residuals) > WANDERS;
    if !fine.is_evident && !wanders {
        return fine;
    }
    let by_sums = |sums: &[f64]| lag_one(sums, 1, Neighbours::Alike).growth * squares(sums) / squares(residuals);
    let (mut sums, mut growth) = (residuals.to_vec(), by_sums(residuals));
    while sums.len() >= 2 * FEWEST_SUMS {
        sums = sums.chunks_exact(2).map(|pair| pair.iter().sum()).collect();
        growth = growth.max(by_sums(&sums));
    }
    growth = growth.min(residuals.len() as f64 / 2.0).max(fine.growth);
    Serial { correlation: (growth - 1.0) / (growth + 1.0), growth, is_evident: growth > 1.0 }
}

fn squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|residual| residual.powi(2)).sum()
}

/// How far the sums of the first 1, 2, 3… residuals go from 0: Σ S²/n² divided by the variance. A level that wanders below the noise drives
/// them (Kwiatkowski, Phillips, Schmidt and Shin, 1992).
fn wander(residuals: &[f64]) -> f64 {
    let mut sum = 0.0;
    let sums: Vec<f64> = residuals
        .iter()
        .map(|residual| {
            sum += residual;
            sum
        })
        .collect();
    squares(&sums) / squares(residuals) / residuals.len() as f64
}

/// The lag-1 correlation of `residuals`, of which the caller has subtracted the mean of each of `means` consecutive parts.
///
/// With n residuals from one mean, the usual lag-1 estimate is too low by about (1 + 3ρ)/n (Marriott and Pope, 1954). The function adds that
/// for each mean. It has a standard error of about 1/√n.
pub(super) fn lag_one(residuals: &[f64], means: usize, neighbours: Neighbours) -> Serial {
    let count = residuals.len() as f64;
    let squares = squares(residuals);
    if residuals.len() < FEWEST || squares <= 0.0 || !squares.is_finite() {
        return Serial::NONE;
    }
    let products: f64 = residuals.iter().zip(residuals.iter().skip(1)).map(|(one, next)| one * next).sum();
    let raw = products / squares;
    let lost = means as f64 / count;
    let correlation = (raw + (1.0 + 3.0 * raw) * lost).clamp(0.0, MOST);
    // Without correlation, the raw estimate is −1/n on average, of one mean.
    let is_evident = raw + lost > EVIDENT / count.sqrt();
    if neighbours == Neighbours::Independent && !is_evident {
        return Serial::NONE;
    }
    Serial { correlation, growth: (1.0 + correlation) / (1.0 - correlation), is_evident }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residuals 1, 1, −1, −1, 1, 1, −1, −1: 7 products sum to 1, of 8 squares: ρ̂ = 1/8, plus (1 + 3/8)/8.
    #[test]
    fn worked_by_hand() {
        let residuals = [1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0];
        let found = serial(&residuals, Neighbours::Alike);
        assert!((found.correlation - (0.125 + 1.375 / 8.0)).abs() < 1e-12, "{found:?}");
        assert!((found.growth - (1.0 + found.correlation) / (1.0 - found.correlation)).abs() < 1e-12);
        assert_eq!(serial(&residuals, Neighbours::Independent), Serial::NONE, "1/8 + 1/8 is below 1.645/√8");
    }

    #[test]
    fn neighbours_that_alternate_never_narrow_an_error() {
        let residuals = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        let found = serial(&residuals, Neighbours::Alike);
        assert_eq!((found.correlation, found.growth), (0.0, 1.0));
    }

    #[test]
    fn a_trend_is_evident_and_its_growth_is_limited() {
        let residuals: Vec<f64> = (0..60).map(|place| f64::from(place) - 29.5).collect();
        let found = serial(&residuals, Neighbours::Independent);
        assert!(found.is_evident && found.growth == 30.0, "{found:?}");
    }

    /// A level that changes after every 20 of 80, below noise that alternates: the neighbours themselves are not alike.
    #[test]
    fn a_level_that_wanders_below_noise_is_evident() {
        let residuals: Vec<f64> =
            (0..80).map(|place| [1.0, 2.0, -1.0, -2.0][place / 20] + [4.0, -4.0][place % 2]).collect();
        assert_eq!(lag_one(&residuals, 1, Neighbours::Independent), Serial::NONE);
        let found = serial(&residuals, Neighbours::Independent);
        // The variance of a mean of four levels, against that of 80 residuals of ±4 and a level.
        assert!(found.is_evident && found.growth > 2.5, "{found:?}");
    }

    #[test]
    fn few_or_equal_residuals_say_nothing() {
        assert_eq!(serial(&[1.0, 0.0, -1.0], Neighbours::Alike), Serial::NONE);
        assert_eq!(serial(&[0.0; 20], Neighbours::Alike), Serial::NONE);
    }
}
