//! How a metric, its change and the verdict on it are told: words, a percentage with its sign, and its interval with as many decimals.

use model::experiment::Metric;
use model::stats::{Estimate, Verdict};
use report::document::{Interval, Raw, Tone};
use report::number::{COUNT, CYCLES, MISSING, Scale, TOO_LARGE, Units, bare_percent, is_about_0, known, of_metric};

/// Values with a ratio above this do not share a unit.
const FAR_APART: f64 = 30.0;

/// The words for a metric.
pub struct Words {
    /// In the header of a row or column.
    pub head: &'static str,
    /// In a sentence.
    pub noun: &'static str,
    /// "*costs* 3 % more cycles per I/O".
    pub verb: &'static str,
    /// "takes 3 % more *time for the median I/O*"; empty means the noun.
    amount: &'static str,
    /// The units of its values.
    pub units: Units,
}

/// The words for `metric`. Its column says what cycles are of.
pub fn of(metric: Metric) -> Words {
    let [head, noun, verb, amount] = metric.words();
    let (units, _) = of_metric(metric.unit());
    Words { head, noun, verb, amount, units: if units == CYCLES { COUNT } else { units } }
}

impl Words {
    /// "costs 3 % *more cycles per I/O*".
    pub fn direction(&self, is_more: bool) -> String {
        let amount = if self.amount.is_empty() { self.noun } else { self.amount };
        let less = if amount.starts_with("time") { "less" } else { "fewer" };
        format!("{} {amount}", if is_more { "more" } else { less })
    }

    /// Formats a value of this metric. A net one that noise made negative is not known.
    pub fn value(&self, value: Option<f64>) -> String {
        known(self.units, value.filter(|value| !is_about_0(*value)))
    }

    /// Formats two values in one unit if they are close.
    pub fn pair(&self, first: Option<f64>, second: Option<f64>) -> (String, String) {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let apart = (self.value(first), self.value(second));
        let (Some(one), Some(other)) = (finite(first), finite(second)) else { return apart };
        let (least, most) = (one.abs().min(other.abs()), one.abs().max(other.abs()));
        if most > least * FAR_APART || one < 0.0 || other < 0.0 {
            return apart;
        }
        // The smaller value has three digits; the larger one has as many decimals.
        let scale = Scale::of(self.units, if least > 0.0 { least } else { most });
        let gap = if scale.unit.is_empty() { "" } else { " " };
        let cell = |value| format!("{}{gap}{}", scale.cell(value), scale.unit);
        (cell(one), cell(other))
    }
}

/// A short word for a verdict, for table columns.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::BetterMaybeSmall => "better, small?",
        Verdict::WorseMaybeSmall => "worse, small?",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// A verdict in a sentence, with the margin.
pub fn verdict_in_full(verdict: Verdict, margin: f64) -> String {
    let small = |word: &str| format!("{word} (maybe by less than {})", bare_percent(margin));
    match verdict {
        Verdict::BetterMaybeSmall => small("better"),
        Verdict::WorseMaybeSmall => small("worse"),
        Verdict::Better | Verdict::Worse | Verdict::NoDifference | Verdict::Inconclusive => {
            self::verdict(verdict).to_owned()
        }
    }
}

pub fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better | Verdict::BetterMaybeSmall => Tone::Own,
        Verdict::Worse | Verdict::WorseMaybeSmall => Tone::Bad,
        Verdict::NoDifference => Tone::Plain,
        Verdict::Inconclusive => Tone::Notice,
    }
}

/// The order in which verdicts are counted.
pub const VERDICTS: [Verdict; 6] = [
    Verdict::Better,
    Verdict::BetterMaybeSmall,
    Verdict::Worse,
    Verdict::WorseMaybeSmall,
    Verdict::NoDifference,
    Verdict::Inconclusive,
];

/// In place of an interval from less than a thousandth to more than a thousandfold.
const SAYS_NOTHING: &str = "says nothing";

/// A change and its interval, as fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change(pub Option<Estimate>);

impl From<Estimate> for Change {
    fn from(change: Estimate) -> Self {
        Some(change).into()
    }
}

impl From<Option<Estimate>> for Change {
    fn from(change: Option<Estimate>) -> Self {
        let finite = |number: &f64| number.is_finite();
        let change = change.filter(|change| finite(&change.value));
        Self(change.map(|it| Estimate { low: it.low.filter(finite), high: it.high.filter(finite), ..it }))
    }
}

impl Change {
    /// Both ends of the interval, if there is one.
    pub fn ends(self) -> Option<(f64, f64)> {
        self.0?.ends()
    }

    fn says_nothing(self) -> bool {
        self.ends().is_some_and(|(low, high)| low < 1.0 / 1000.0 - 1.0 && high > 1000.0 - 1.0)
    }

    /// "+3.1 %".
    pub fn percent(self) -> String {
        let said = self.0.filter(|_| !self.says_nothing());
        said.map_or_else(|| MISSING.to_owned(), |it| self.signed(it.value) + " %")
    }

    /// "[2.6, 3.7]", in percent. Positive ends have no sign, to save space.
    pub fn interval(self) -> String {
        if self.says_nothing() {
            return SAYS_NOTHING.to_owned();
        }
        let end = |end: f64| self.signed(end).replace('+', "");
        self.ends().map_or_else(|| MISSING.to_owned(), |(low, high)| format!("[{}, {}]", end(low), end(high)))
    }

    /// "+3.1 % [2.6, 3.7]", or a note that there is no interval.
    pub fn whole(self) -> String {
        match (self.0, self.ends()) {
            (None, _) => MISSING.to_owned(),
            _ if self.says_nothing() => format!("{MISSING} (the interval {SAYS_NOTHING})"),
            (Some(_), None) => format!("{} (no interval)", self.percent()),
            (Some(_), Some(_)) => format!("{} {}", self.percent(), self.interval()),
        }
    }

    /// "3.1 % [2.6, 3.7]" for both +3.1 % and -3.1 %: for sentences that state the direction.
    pub fn size(self) -> String {
        let turned = |it: Estimate| match it.scaled(-1.0) {
            Estimate { value, low, high } if value > 0.0 => Estimate { value, low: high, high: low },
            _ => it,
        };
        Self(self.0.map(turned)).whole().replace('+', "")
    }

    /// The value to draw.
    pub fn drawn(self) -> Raw {
        let said = self.0.filter(|_| !self.says_nothing());
        said.map_or(Raw::None, |it| Raw::Interval(Interval { value: it.value, ends: it.ends() }))
    }

    fn signed(self, fraction: f64) -> String {
        let percent = fraction * 100.0;
        if !percent.is_finite() {
            return MISSING.to_owned();
        }
        if percent.abs() >= TOO_LARGE {
            return format!("{percent:+.1e}");
        }
        let text = format!("{percent:+.*}", self.decimals());
        // A value that rounds to 0 has no sign.
        let zero = !text.contains(|letter: char| ('1'..='9').contains(&letter));
        if zero { text.trim_start_matches(['+', '-']).to_owned() } else { text }
    }

    /// Number of decimals that gives half of the interval's width one or two digits.
    fn decimals(self) -> usize {
        let half = self.ends().map(|(low, high)| (high - low) / 2.0 * 100.0);
        match half.filter(|half| *half > 0.0) {
            Some(half) if half >= 9.95 => 0,
            Some(half) if half >= 0.0995 => 1,
            Some(half) if half >= 0.009_95 => 2,
            Some(_) => 3,
            None => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pair_shares_its_unit() {
        let pair = |metric: Metric, one, other| of(metric).pair(Some(one), Some(other));
        let texts = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(pair(Metric::CyclesPerIo, 998.0, 1030.0), texts("998", "1030"));
        assert_eq!(pair(Metric::Iops, 8687.0, 11_700.0), texts("8.69 k", "11.70 k"));
        assert_eq!(pair(Metric::LatencyP50, 3120.0, 3204.0), texts("3.12 µs", "3.20 µs"));
        assert_eq!(pair(Metric::BytesPerSecond, 1.16e9, 1.14e9), texts("1.08 GiB", "1.06 GiB"));
        assert_eq!(pair(Metric::Seconds, 0.98, 1.02), texts("980 ms", "1020 ms"));
        assert_eq!(pair(Metric::LatencyP50, 3120.0, 3.1e8), texts("3.12 µs", "310 ms"));
        assert_eq!(of(Metric::Iops).pair(Some(f64::NAN), None), texts(MISSING, MISSING));
        assert_eq!(pair(Metric::Iops, f64::NAN, 7.0), texts(MISSING, "7.00"));
        assert_eq!(pair(Metric::ContextSwitchesPerIo, 0.0, 0.0), texts("0", "0"));
        assert_eq!(pair(Metric::ContextSwitchesPerIo, -0.4, 1.02), texts(MISSING, "1.02"));
    }

    fn change(value: f64, low: f64, high: f64) -> Change {
        Change::from(Estimate { value, low: Some(low), high: Some(high) })
    }

    #[test]
    fn a_change_and_its_interval_share_their_decimals() {
        for ((value, low, high), text) in [
            ((0.031, 0.026, 0.037), "+3.1 % [2.6, 3.7]"),
            ((-0.0021, -0.0094, 0.005), "-0.2 % [-0.9, 0.5]"),
            ((0.764, 0.62, 0.92), "+76 % [62, 92]"),
            ((0.0004, 0.0001, 0.0007), "+0.04 % [0.01, 0.07]"),
            ((0.0001, -0.004, 0.0042), "0.0 % [-0.4, 0.4]"),
            ((0.1, 0.1, 0.1), "+10.0 % [10.0, 10.0]"),
            ((1e9, 1e9, 1e9), "+1.0e11 % [1.0e11, 1.0e11]"),
        ] {
            assert_eq!(change(value, low, high).whole(), text);
        }
    }

    #[test]
    fn the_size_of_a_change_has_no_sign() {
        assert_eq!(change(0.031, 0.026, 0.037).size(), "3.1 % [2.6, 3.7]");
        assert_eq!(change(-0.031, -0.037, -0.026).size(), "3.1 % [2.6, 3.7]");
        assert_eq!(change(-0.031, -0.065, 0.003).size(), "3.1 % [-0.3, 6.5]");
    }

    #[test]
    fn an_interval_of_all_magnitudes_says_nothing() {
        let all = change(49.96, -1.0, 3.6e133);
        assert_eq!(all.whole(), format!("{MISSING} (the interval says nothing)"));
        assert_eq!(
            (all.percent(), all.interval(), all.drawn()),
            (MISSING.to_owned(), SAYS_NOTHING.to_owned(), Raw::None)
        );
        for wide in [change(49.96, -0.99, 3.6e133), change(49.96, -1.0, 600.0)] {
            assert!(wide.whole().starts_with("+4996 % [-"), "{}", wide.whole());
        }
    }

    #[test]
    fn missing_values_are_dashes() {
        assert_eq!(Change::default().whole(), MISSING);
        assert_eq!(change(f64::NAN, f64::NAN, f64::INFINITY).whole(), MISSING);
        assert_eq!(Change::from(Estimate::bare(0.031)).whole(), "+3.1 % (no interval)");
    }

    proptest! {
        #[test]
        fn every_change_is_short(value in any::<f64>(), low in any::<f64>(), high in any::<f64>()) {
            let change = change(value, low, high);
            prop_assert!(change.percent().chars().count() <= 13, "{}", change.percent());
            prop_assert!(change.interval().chars().count() <= 24, "{}", change.interval());
        }
    }
}
