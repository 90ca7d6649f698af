//! The answer at a glance: a figure for each target metric.

use super::{contents, words};
use crate::change::Change;
use crate::document::{Figure, Interval, LARGEST, Note, Scale, Span, Tone};
use crate::number;
use crate::phrase::tied;
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding, NoiseFloor};
use model::experiment::Metric;
use model::stats::Verdict;

/// The figures, one line for each arm.
pub fn figures(finding: &CompareFinding) -> Vec<Vec<Figure>> {
    match &finding.noise_floor {
        Some(floor) => vec![noise_floor(finding, floor)],
        None => contents::candidates(finding).iter().map(|arm| of_arm(finding, arm)).collect(),
    }
}

fn of_arm(finding: &CompareFinding, arm: &str) -> Vec<Figure> {
    let cells = contents::cells(finding, arm);
    let several = contents::candidates(finding).len() > 1;
    let figures = contents::targets(finding).into_iter().filter_map(|metric| {
        let noun = words::of(metric).noun;
        let what = if several { format!("{arm}: {noun}") } else { noun.to_owned() };
        match cells.as_slice() {
            [cell] if !contents::is_sweep(finding) => {
                let found = contents::metric(cell, metric).filter(|found| contents::has_value(found))?;
                Some(of_change(finding, what, metric, found))
            }
            cells => of_sweep(&what, metric, cells),
        }
    });
    figures.collect()
}

fn of_change(finding: &CompareFinding, what: String, metric: Metric, found: &MetricFinding) -> Figure {
    let change = Change::from(found);
    let (baseline, candidate) = words::of(metric).pair(found.baseline, found.candidate);
    let margin = finding.rules.margin;
    // Each figure has its own scale: wide enough for its interval and for the margin.
    let ends = [change.value, change.low, change.high].into_iter().flatten();
    let widest = ends.map(f64::abs).fold(margin * 2.0, f64::max);
    let drawn = change.value.filter(|_| widest > 0.0 && widest < LARGEST);
    let scale = Scale { span: Span::new(-widest, widest), margin: Some(margin) };
    let tone = words::tone(found.verdict);
    // A change that was not resolved is known only by its interval; its value would look like a result.
    let resolved = !matches!(found.verdict, Verdict::NoDifference | Verdict::Inconclusive);
    let (value, interval) = match change.ends().filter(|_| !resolved) {
        Some(_) => (tied(&change.range()), format!("interval; estimate {}", change.percent())),
        None => (change.percent(), change.interval()),
    };
    Figure {
        what,
        interval: Some(interval),
        drawing: drawn.map(|value| (Interval { value, ends: change.ends() }, scale)),
        note: format!("{baseline} → {candidate}"),
        verdict: Some(Note::new(tone, words::verdict(found.verdict))),
        ..Figure::new(tone, value)
    }
}

/// How many cells have each verdict.
fn of_sweep(what: &str, metric: Metric, cells: &[&CellFinding]) -> Option<Figure> {
    let found = cells.iter().filter_map(|cell| contents::metric(cell, metric));
    let found: Vec<&MetricFinding> = found.filter(|found| contents::has_value(found)).collect();
    let count = |verdict: Verdict| found.iter().filter(|found| found.verdict == verdict).count();
    let counted = words::VERDICTS.map(|verdict| (verdict, count(verdict))).into_iter();
    let counted: Vec<(Verdict, usize)> = counted.filter(|(_, count)| *count > 0).collect();
    let small = |verdict| matches!(verdict, Verdict::BetterMaybeSmall | Verdict::WorseMaybeSmall);
    let texts = counted.iter().map(|(verdict, count)| format!("{count} {}", words::verdict(*verdict)));
    (!counted.is_empty()).then(|| Figure {
        what: format!("{what} in {} cells", found.len()),
        note: texts.collect::<Vec<_>>().join(" · "),
        counts: counted.iter().map(|(verdict, count)| (words::tone(*verdict), small(*verdict), *count)).collect(),
        ..Figure::default()
    })
}

fn noise_floor(finding: &CompareFinding, floor: &NoiseFloor) -> Vec<Figure> {
    let known = Metric::ALL.into_iter().filter(|metric| contents::targets(finding).contains(metric));
    let known = known.filter_map(|metric| Some((metric, floor.metrics.get(metric.name())?)));
    let figure = known.map(|(metric, noise)| {
        let (tone, word) = match noise.false_difference {
            true => (Tone::Bad, "false difference"),
            false => (Tone::Own, "no false difference"),
        };
        Figure {
            what: words::of(metric).noun.to_owned(),
            note: format!("resolved in {}", number::seconds(finding.seconds)),
            verdict: Some(Note::new(tone, word)),
            ..Figure::new(tone, format!("±{}", number::percent(noise.half_width)))
        }
    });
    figure.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture;
    use crate::html::html;

    #[test]
    fn a_change_that_is_not_resolved_shows_its_interval_in_its_tile() {
        let mut finding = fixture::options();
        let metrics = &mut finding.cells[0].metrics;
        let iops = metrics.get_mut("iops").unwrap();
        (iops.change, iops.low, iops.high) = (Some(0.0), Some(-0.009), Some(0.005));
        iops.verdict = Verdict::NoDifference;
        let page = html(&crate::compare::document(&finding)).replace('\u{a0}', " ");
        let tiles = page.matches("<div class=\"tile ").count();
        assert_eq!(tiles, contents::targets(&finding).len(), "{page}");
        assert!(page.contains(">-0.9 to +0.5 %</p>"), "{page}");
        assert!(page.contains("95 % interval; estimate 0.0 %"), "{page}");
        assert!(!page.contains("class=\"beside\""), "no value stands without the name of its metric");
    }

    #[test]
    fn every_metric_that_was_measured_is_on_the_page() {
        for (name, mut finding) in [("options", fixture::options()), ("sweep", fixture::sweep())] {
            for metric in finding.cells.iter_mut().flat_map(|cell| cell.metrics.values_mut()) {
                metric.verdict = Verdict::NoDifference;
                metric.detected = false;
            }
            let page = html(&crate::compare::document(&finding));
            for metric in finding.cells.iter().flat_map(contents::measured).map(|(metric, _)| metric) {
                assert!(page.contains(words::of(metric).noun), "{name}: {}", metric.name());
            }
        }
    }
}
