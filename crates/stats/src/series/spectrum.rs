//! The power of a series by frequency, relative to the noise around each frequency.
//!
//! A stall that repeats has power at its frequency and its multiples (harmonics); a short one has the same in hundreds
//! of them. Noise whose power varies slowly with frequency, relative to its mean there, is exponentially distributed
//! with mean 1 in each bin, and the sum of h bins has a Gamma(h) distribution. So the probability of a sum is known
//! whatever the colour of the noise.

use super::mean;
use crate::basics::quantile;

/// Probability of finding a period in a series without any, above which nothing is reported.
pub const FALSE_ALARM: f64 = 1e-4;

/// Numbers of harmonics that are summed. A sum of few finds a sine, a sum of many a short stall.
pub const SUMS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Fewest periods in a recording: with fewer, noise that grows towards low frequencies looks the same.
pub const FEWEST_PERIODS: f64 = 4.5;
/// Fewest bins of a part of the background: the median of 12 exponential values has a standard error of 40 %.
const FEWEST_BINS: usize = 12;
/// A part of the background ends at this multiple of its first frequency, a quarter of an octave.
const PART: f64 = 1.19;
/// Fewest values of a spectrum.
const FEWEST_VALUES: usize = 64;

/// Power in each bin relative to its surroundings.
#[derive(Debug)]
pub struct Spectrum {
    /// Periods in the series per bin.
    pub periods_per_bin: f64,
    /// Relative power by bin, from frequency 0 on.
    pub power: Vec<f64>,
}

/// A comb of harmonics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comb {
    /// Periods of the fundamental in the series.
    pub periods: f64,
    /// Harmonics in the sum.
    pub harmonics: usize,
    /// Logarithm of the probability that noise reaches this sum at this place.
    pub ln_probability: f64,
}

impl Spectrum {
    /// The spectrum of `values`, whose mean is near 0: Hann's window, a Fourier transform, and the power divided by that
    /// of the surroundings. `None` for fewer than 64 values.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < FEWEST_VALUES {
            return None;
        }
        let length = fast_length(values.len());
        let mean = mean(values);
        let turn = std::f64::consts::TAU / values.len() as f64;
        let hann = |place: usize| 0.5 - 0.5 * (turn * (place as f64 + 0.5)).cos();
        let mut input: Vec<f64> =
            values.iter().enumerate().map(|(place, value)| (value - mean) * hann(place)).collect();
        input.resize(length, 0.0);
        let mut output = vec![(0.0, 0.0); length];
        transform(&input, 1, &mut output);
        // Those of the upper half repeat the lower one's.
        let mut power: Vec<f64> = output.iter().take(length / 2 + 1).map(|(re, im)| re * re + im * im).collect();
        whiten(&mut power);
        Some(Self { periods_per_bin: values.len() as f64 / length as f64, power })
    }

    /// For each number of harmonics the comb with the largest sum.
    pub fn combs(&self) -> Vec<Comb> {
        SUMS.iter().filter_map(|&harmonics| self.best_comb(harmonics)).collect()
    }

    /// Places are tried in steps of half a bin of the highest harmonic.
    fn best_comb(&self, harmonics: usize) -> Option<Comb> {
        let steps = 2.0 * harmonics as f64;
        let first = (FEWEST_PERIODS / self.periods_per_bin * steps).ceil() as usize;
        // At the last place, the highest harmonic is in the last bin.
        let last = self.power.len().saturating_sub(2) * 2;
        // The numbers of harmonics are powers of two.
        let shift = harmonics.trailing_zeros() + 1;
        let sum = |place: usize| {
            let bin = |harmonic: usize| (harmonic * place + harmonics) >> shift;
            (1..=harmonics).map(|harmonic| self.power.get(bin(harmonic)).copied().unwrap_or(0.0)).sum::<f64>()
        };
        let sums = (first..=last).map(|place| (place, sum(place)));
        let (place, sum) = sums.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let periods = place as f64 / steps * self.periods_per_bin;
        Some(Comb { periods, harmonics, ln_probability: ln_gamma_tail(harmonics, sum) })
    }
}

/// The Fourier transform of every `stride`-th value, which are as many as `output` is long: those of its parts, put together.
fn transform(values: &[f64], stride: usize, output: &mut [(f64, f64)]) {
    let times =
        |(re, im): (f64, f64), (other_re, other_im)| (re * other_re - im * other_im, re * other_im + im * other_re);
    let length = output.len();
    let Some(parts) = [5, 3, 2].into_iter().find(|&parts| length > 1 && length.is_multiple_of(parts)) else {
        return output.iter_mut().zip(values).for_each(|(bin, value)| *bin = (*value, 0.0));
    };
    for (first, part) in output.chunks_exact_mut(length / parts).enumerate() {
        transform(values.get(first * stride..).unwrap_or_default(), stride * parts, part);
    }
    let of_parts = output.to_vec();
    output.fill((0.0, 0.0));
    for (first, part) in of_parts.chunks_exact(length / parts).enumerate() {
        let (sin, cos) = (-std::f64::consts::TAU * first as f64 / length as f64).sin_cos();
        let mut turn = (1.0, 0.0);
        for (sum, bin) in output.iter_mut().zip(part.iter().cycle()) {
            let (re, im) = times(*bin, turn);
            (sum.0, sum.1, turn) = (sum.0 + re, sum.1 + im, times(turn, (cos, sin)));
        }
    }
}

/// The next length from `length` on that has no prime factor above 5, for which the transform is fast.
fn fast_length(length: usize) -> usize {
    let smooth = |mut number: usize| {
        for factor in [2, 3, 5] {
            while number.is_multiple_of(factor) {
                number /= factor;
            }
        }
        number == 1
    };
    (length..).find(|&number| number % 2 == 0 && smooth(number)).unwrap_or(length)
}

/// Divides each bin by the mean power of the noise around it.
fn whiten(power: &mut [f64]) {
    let nodes = background(power);
    let mut nodes = nodes.windows(2);
    let Some(mut line) = nodes.next() else { return power.fill(0.0) };
    for (bin, power) in power.iter_mut().enumerate() {
        let ln_bin = (bin.max(1) as f64).ln();
        while line.get(1).is_some_and(|end| ln_bin > end.0) {
            let Some(next) = nodes.next() else { break };
            line = next;
        }
        let [(from, low), (to, high)] = line else { continue };
        let level = low + (high - low) * ((ln_bin - from) / (to - from)).min(1.0);
        *power = if bin == 0 { 0.0 } else { *power / level.exp() };
    }
}

/// The mean power of the noise at several frequencies, as logarithms of bin and power: the median of a part of the
/// bins ÷ ln 2, which is the mean of exponentially distributed values and hardly rises by a few lines.
fn background(power: &[f64]) -> Vec<(f64, f64)> {
    let mut nodes = Vec::new();
    let mut begin = 1;
    while begin < power.len() {
        let wide = (begin as f64 * PART) as usize;
        let end = wide.max(begin + FEWEST_BINS);
        let end = if power.len() < end + FEWEST_BINS { power.len() } else { end };
        let mut part = power.get(begin..end).unwrap_or_default().to_vec();
        let middle = (begin as f64).ln().midpoint(((end - 1) as f64).ln());
        let median = quantile(&mut part, 0.5).unwrap_or(0.0) / std::f64::consts::LN_2;
        nodes.push((middle, median.max(f64::MIN_POSITIVE).ln()));
        begin = end;
    }
    nodes
}

/// Logarithm of the probability that a Gamma(`shape`) variable is `sum` or more: e^−s · Σ sⁱ/i! for i < shape.
pub fn ln_gamma_tail(shape: usize, sum: f64) -> f64 {
    if sum <= shape as f64 {
        return 0.0;
    }
    // The last term is the largest; the others are summed relative to it.
    let ln_last: f64 = (1..shape).map(|i| sum.ln() - (i as f64).ln()).sum();
    let (mut others, mut term) = (1.0, 1.0);
    for i in (1..shape).rev() {
        term *= i as f64 / sum;
        others += term;
    }
    (ln_last + others.ln() - sum).min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_gamma_distribution() {
        // scipy.stats.gamma.sf(sum, shape)
        for (shape, sum, tail) in [(1, 3.0, 0.049_787_068), (4, 12.0, 0.002_291_824), (16, 60.0, 4.168_751e-12)] {
            let found: f64 = ln_gamma_tail(shape, sum).exp();
            assert!((found / tail - 1.0).abs() < 1e-3, "{shape} {sum}: {found:e}");
        }
        assert!(ln_gamma_tail(32, 1e12) < -9e11);
    }

    #[test]
    fn a_transform_has_the_waves_of_its_values() {
        // 2·cos of 7 turns, and sin of 11, in 60 values.
        let angle = |turns: f64, place: usize| std::f64::consts::TAU * turns * place as f64 / 60.0;
        let values: Vec<f64> = (0..60).map(|place| 2.0 * angle(7.0, place).cos() + angle(11.0, place).sin()).collect();
        let mut found = vec![(0.0, 0.0); 60];
        transform(&values, 1, &mut found);
        for (bin, (re, im)) in found.into_iter().enumerate() {
            let expected = match bin {
                7 | 53 => (60.0, 0.0),
                11 => (0.0, -30.0),
                49 => (0.0, 30.0),
                _ => (0.0, 0.0),
            };
            assert!((re - expected.0).abs() < 1e-9 && (im - expected.1).abs() < 1e-9, "{bin}: {re} {im}");
        }
    }

    #[test]
    fn lengths_are_fast_and_near() {
        assert_eq!([64, 61_000, 68_182, 272_728].map(fast_length), [64, 61_440, 69_120, 276_480]);
    }
}
