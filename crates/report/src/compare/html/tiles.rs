//! The answer at a glance: a tile for each metric that the experiment was made for.

use super::markup::{element, escape};
use super::table::{Scale, class, pill};
use crate::compare::change::Change;
use crate::compare::{contents, words};
use crate::number;
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding, NoiseFloor};
use model::experiment::Metric;
use model::stats::Verdict;

/// The tiles of all arms.
pub fn tiles(finding: &CompareFinding) -> String {
    let rows: Vec<String> = match &finding.noise_floor {
        Some(floor) => vec![noise_floor(finding, floor)],
        None => contents::candidates(finding).iter().map(|arm| of_arm(finding, arm)).collect(),
    };
    rows.iter().filter(|row| !row.is_empty()).map(|row| element("div", "tiles", row)).collect()
}

fn of_arm(finding: &CompareFinding, arm: &str) -> String {
    let cells = contents::cells(finding, arm);
    let several = contents::candidates(finding).len() > 1;
    let tiles = contents::targets(finding).into_iter().map(|metric| {
        let noun = words::of(metric).noun;
        let what = if several { format!("{arm}: {noun}") } else { noun.to_owned() };
        match cells.as_slice() {
            [cell] if !contents::is_sweep(finding) => {
                let found = contents::metric(cell, metric).filter(|found| contents::has_value(found));
                found.map(|found| of_change(finding, &what, metric, found)).unwrap_or_default()
            }
            cells => of_sweep(&what, metric, cells),
        }
    });
    tiles.collect()
}

fn of_change(finding: &CompareFinding, what: &str, metric: Metric, found: &MetricFinding) -> String {
    let change = Change::from(found);
    let (baseline, candidate) = words::of(metric).pair(found.baseline, found.candidate);
    let margin = finding.rules.margin;
    // Each tile has its own scale: as wide as its interval needs, and never so narrow that the margin is not seen.
    let ends = [change.value, change.low, change.high].into_iter().flatten();
    let widest = ends.map(f64::abs).fold(margin * 2.0, f64::max);
    let strip = if widest > 0.0 && widest < crate::compare::changes::LARGEST {
        Scale::new((-widest, widest), margin).strip(change)
    } else {
        String::new()
    };
    let class = class(found.verdict);
    format!(
        "<div class=\"tile {class}\"><p class=\"what\">{}</p><p class=\"big\">{}</p><p class=\"ends\">95 % {}</p>\
         {strip}<p class=\"values\">{} → {}</p>{}</div>\n",
        escape(what),
        escape(&change.percent()),
        escape(&change.interval()),
        escape(&baseline),
        escape(&candidate),
        pill(class, words::verdict(found.verdict)),
    )
}

/// How many cells came to which verdict, as a bar.
fn of_sweep(what: &str, metric: Metric, cells: &[&CellFinding]) -> String {
    let found = cells.iter().filter_map(|cell| contents::metric(cell, metric));
    let found: Vec<&MetricFinding> = found.filter(|found| contents::has_value(found)).collect();
    if found.is_empty() {
        return String::new();
    }
    let counted =
        words::VERDICTS.map(|verdict| (verdict, found.iter().filter(|found| found.verdict == verdict).count()));
    let counted = || counted.iter().filter(|(_, count)| *count > 0);
    let bar: String = counted()
        .map(|(verdict, count)| {
            let small = matches!(verdict, Verdict::BetterMaybeSmall | Verdict::WorseMaybeSmall);
            let class = format!("{}{}", class(*verdict), if small { " small" } else { "" });
            format!("<span class=\"{class}\" style=\"flex-grow:{count}\">{count}</span>")
        })
        .collect();
    let texts: Vec<String> =
        counted().map(|(verdict, count)| format!("{count} {}", words::verdict(*verdict))).collect();
    format!(
        "<div class=\"tile\"><p class=\"what\">{} <small>in {} cells</small></p><div class=\"counts\" aria-hidden=\"true\">\
         {bar}</div><p class=\"values\">{}</p></div>\n",
        escape(what),
        found.len(),
        escape(&texts.join(" · ")),
    )
}

fn noise_floor(finding: &CompareFinding, floor: &NoiseFloor) -> String {
    let known = Metric::ALL.into_iter().filter(|metric| contents::targets(finding).contains(metric));
    let known = known.filter_map(|metric| Some((metric, floor.metrics.get(metric.name())?)));
    known
        .map(|(metric, noise)| {
            let (class, word) = if noise.false_difference { ("worse", "false difference") } else { ("better", "no false difference") };
            format!(
                "<div class=\"tile {class}\"><p class=\"what\">{}</p><p class=\"big\">±{}</p><p class=\"ends\">told apart in {}</p>{}</div>\n",
                escape(words::of(metric).noun),
                escape(&number::percent(noise.half_width)),
                escape(&number::seconds(finding.seconds)),
                pill(class, word),
            )
        })
        .collect()
}
