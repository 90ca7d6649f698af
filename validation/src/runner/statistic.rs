//! Figures over rounds: `mean`, `median`, `mean.low`, …, and how a table shows them.

use crate::bench::evidence::{self, number};
use crate::bench::rounds;
use anyhow::bail;
use model::stats::Estimate;

/// A figure by its name; one that is not known is NaN.
pub fn of(name: &str, values: &[f64]) -> anyhow::Result<Estimate> {
    let (kind, end) = name.split_once('.').unwrap_or((name, ""));
    // A NaN among the values is neither the least nor the largest, so it must not hide.
    let known = !values.is_empty() && values.iter().all(|value| !value.is_nan());
    let fold = |by: fn(f64, f64) -> f64| values.iter().copied().reduce(by).filter(|_| known).unwrap_or(f64::NAN);
    let mut sorted = values.to_vec();
    let mut percentile = |percent| rounds::percentile(&mut sorted, percent).filter(|_| known).unwrap_or(f64::NAN);
    let estimate = match kind {
        "mean" | "interval" => rounds::mean(values),
        "ratio" | "change" => rounds::ratio(values, &vec![1.0; values.len()]),
        // Half of the interval of the mean, in percent of it.
        "half" => {
            let mean = rounds::mean(values);
            Estimate::bare(mean.half_width().map_or(f64::NAN, |half| 100.0 * half / mean.value.abs()))
        }
        "median" => Estimate::bare(if known { rounds::median(values) } else { f64::NAN }),
        "least" => Estimate::bare(fold(f64::min)),
        "most" => Estimate::bare(fold(f64::max)),
        "worst" => Estimate::bare(fold(|one, other| if other.abs() > one.abs() { other } else { one })),
        "sum" => Estimate::bare(fold(|one, other| one + other)),
        "spread" => Estimate::bare(fold(f64::max) - fold(f64::min)),
        "p5" => Estimate::bare(percentile(5.0)),
        "p95" => Estimate::bare(percentile(95.0)),
        _ => bail!("no statistic is named {name}"),
    };
    Ok(match end {
        "" => estimate,
        "low" => Estimate { value: estimate.low.unwrap_or(f64::NAN), ..estimate },
        "high" => Estimate { value: estimate.high.unwrap_or(f64::NAN), ..estimate },
        _ => bail!("{name}: a part is .low or .high"),
    })
}

/// As a table or a claim shows it.
pub fn shown(name: &str, figure: &Estimate, decimals: usize) -> String {
    match name {
        _ if figure.value.is_nan() => "–".to_owned(),
        "change" => evidence::change(figure),
        "interval" | "ratio" => evidence::interval(figure, decimals),
        _ => number(Some(figure.value), decimals),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_in_one_round_is_unknown() {
        for name in ["mean", "ratio", "median", "least", "most", "worst", "sum", "spread", "p95", "mean.low"] {
            assert!(of(name, &[1.0, f64::NAN, 3.0]).unwrap().value.is_nan(), "{name}");
            assert!(of(name, &[]).unwrap().value.is_nan(), "{name}");
        }
        let value = |name| of(name, &[1.0, -4.0, 2.0]).unwrap().value;
        assert_eq!((value("worst"), value("spread"), value("median"), value("sum")), (-4.0, 6.0, 1.0, -1.0));
        assert!(of("mode", &[1.0]).is_err() && of("mean.middle", &[1.0]).is_err());
    }
}
