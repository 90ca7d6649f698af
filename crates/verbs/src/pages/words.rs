//! Words for metrics and verdicts.

use model::experiment::Metric;
use model::stats::Verdict;
use report::document::Tone;
use report::number::{COUNT, CYCLES, Scale, Units, bare_percent, is_about_0, known, of_metric};

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

#[cfg(test)]
mod tests {
    use super::*;
    use report::number::MISSING;

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
}
