//! The latencies of one arm over all rounds, and how the rank of a percentile differs between rounds.

use crate::histogram::Histogram;

/// All rounds of an arm together.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    /// The buckets that are not empty: their ends in ln ticks, and the fraction of all I/Os below each end.
    pieces: Vec<Piece>,
    /// Log odds of the percentile.
    odds: f64,
    /// The percentile, in ticks.
    ticks: Option<u64>,
    pub ios: u64,
    /// By round: R × the round's part of the I/Os at most the percentile, less what would be there if all rounds were
    /// alike, in log odds. They sum to 0.
    pub influences: Option<Vec<f64>>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    low: f64,
    high: f64,
    before: f64,
    after: f64,
}

impl Pooled {
    pub fn of(rounds: Vec<&Histogram>, percent: f64) -> Self {
        let mut all = Histogram::new();
        rounds.iter().for_each(|round| all.merge(round));
        let ios = all.total();
        let fraction = percent / 100.0;
        let mut pieces = Vec::new();
        let (mut before, mut holding) = (0.0, None);
        for bucket in all.buckets() {
            let after = before + bucket.count as f64 / ios as f64;
            let (low, high) = bucket.range();
            // Nothing is shorter than a tick; ln 0 does not exist.
            let piece = Piece { low: low.max(0.5).ln(), high: high.ln(), before, after };
            if holding.is_none() && after >= fraction {
                holding = Some((bucket.index, ((fraction - before) / (after - before)).clamp(0.0, 1.0)));
            }
            pieces.push(piece);
            before = after;
        }
        let influences = holding.map(|holding| influences(&rounds, ios, fraction, holding));
        let odds = log_odds(fraction);
        Self { pieces, odds, ticks: all.percentile(percent), ios, influences }
    }

    /// At least one tick, so that the logarithm exists.
    pub fn ticks(&self) -> Option<f64> {
        self.ticks.map(|ticks| ticks.max(1) as f64)
    }

    /// The shortest and the longest latency, in ln ticks.
    pub fn range(&self) -> (f64, f64) {
        (self.pieces.first().map_or(0.0, |piece| piece.low), self.pieces.last().map_or(0.0, |piece| piece.high))
    }

    /// The latency, in ln ticks, whose rank is this far from the percentile's, in log odds.
    pub fn at(&self, odds: f64) -> f64 {
        let fraction = 1.0 / (1.0 + (-(self.odds + odds)).exp());
        let place = self.pieces.partition_point(|piece| piece.after < fraction);
        let Some(piece) = self.pieces.get(place).or(self.pieces.last()) else { return 0.0 };
        let part = ((fraction - piece.before) / (piece.after - piece.before)).clamp(0.0, 1.0);
        piece.low + part * (piece.high - piece.low)
    }

    /// How far the rank of a latency (in ln ticks) is from the percentile's, in log odds.
    pub fn odds_below(&self, latency: f64) -> f64 {
        let place = self.pieces.partition_point(|piece| piece.high < latency);
        let fraction = match self.pieces.get(place) {
            None => 1.0,
            Some(piece) if latency <= piece.low => piece.before,
            Some(piece) => {
                piece.before + (latency - piece.low) / (piece.high - piece.low) * (piece.after - piece.before)
            }
        };
        log_odds(fraction) - self.odds
    }

    /// Change of the percentile, in ln ticks, for a change of its rank by 1 in log odds, around `error`.
    pub fn slope(&self, error: f64) -> f64 {
        // Without spread, one I/O more or less is the smallest change of the rank.
        let error = error.max(1.0 / self.ios.max(1) as f64);
        (self.at(error) - self.at(-error)) / (2.0 * error)
    }
}

/// `holding`: the bucket of the percentile, and the part of it at most the percentile.
fn influences(rounds: &[&Histogram], ios: u64, fraction: f64, (bucket, part): (usize, f64)) -> Vec<f64> {
    let scale = rounds.len() as f64 / ios as f64 / (fraction * (1.0 - fraction));
    let influence = |round: &&Histogram| {
        let (mut below, mut inside) = (0_u64, 0_u64);
        for other in round.buckets().take_while(|other| other.index <= bucket) {
            if other.index < bucket { below += other.count } else { inside = other.count }
        }
        (below as f64 + part * inside as f64 - fraction * round.total() as f64) * scale
    };
    rounds.iter().map(influence).collect()
}

/// Finite also at the ends: beyond all latencies.
fn log_odds(fraction: f64) -> f64 {
    const END: f64 = 1e-12;
    let fraction = fraction.clamp(END, 1.0 - END);
    (fraction / (1.0 - fraction)).ln()
}
