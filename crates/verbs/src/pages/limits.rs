//! The limits of `--fail-on`: a table of their states, and a sentence for the one that fails a build.

use model::elided_list::grouped;
use model::limit::{CHANGE, LimitFinding, LimitState};
use report::document::{Block, Body, Cell, Column, Section, Table, Tone, tied};
use report::number::{self, MISSING, NANOS, PERCENT, SECONDS, Written, separated};

/// Exact counts from here on are shown with all digits.
const WHOLE: f64 = 100.0;
/// And from here on not.
const LONG: f64 = 1e12;

/// Each limit at each place with its state. Of several places, those where a limit is kept are only counted, by this `noun`.
pub(crate) fn block(limits: &[LimitFinding], noun: &str) -> Option<Block> {
    let first = limits.first()?;
    let places = limits.iter().any(|limit| !limit.cell.is_empty());
    let arms = limits.iter().any(|limit| limit.arm != first.arm);
    let measured = limits.iter().any(|limit| limit.found.is_some());
    let mut heads = vec![Column::rows("limit")];
    // On a narrow page the state stays.
    heads.extend(arms.then(|| Column::text("arm").spare(2)));
    heads.extend(places.then(|| Column::text(noun).spare(3)));
    heads.extend(measured.then(|| Column::number("measured").spare(1)));
    heads.push(Column::verdict("state"));
    let mut table = Table::new(heads);
    let mut add = |limit: &LimitFinding, place: &str, counted: bool| {
        let mut row = vec![Cell::from(limit.limit.as_str())];
        row.extend(arms.then(|| Cell::from(limit.arm.as_str())));
        row.extend(places.then(|| Cell::from(place)));
        row.extend(measured.then(|| if counted { Cell::from("") } else { Cell::from(tied(&found(limit))) }));
        let (word, tone) = state(limit.state);
        row.push(Cell::new(tone, word));
        table.row(row);
    };
    let kept = |limit: &&LimitFinding| places && limit.state == LimitState::Kept;
    limits.iter().filter(|limit| !kept(limit)).for_each(|limit| add(limit, &limit.cell, false));
    let kept = limits.iter().filter(kept).map(|limit| ((&limit.limit, &limit.arm), limit));
    for (_, limits) in grouped(kept) {
        let count = limits.len();
        add(limits[0], &format!("{count} {noun}{}", if count == 1 { "" } else { "s" }), true);
    }
    Some(Block::new("Limits", Body::Table(table)))
}

/// The same as a section without a title.
pub(crate) fn section(limits: &[LimitFinding], noun: &str) -> Option<Section> {
    block(limits, noun).map(|block| Section::new("", vec![block]))
}

/// "cycles_per_io > 30k is exceeded: 35.2 [34.9, 35.5] kcycles/I/O (bs=4k)".
pub fn sentence(limit: &LimitFinding) -> String {
    let reason = limit.reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
    let text = match limit.found {
        Some(_) => format!("{}{reason}", found(limit)),
        None => limit.reason.clone().unwrap_or_default(),
    };
    let place: Vec<&str> =
        [limit.arm.as_str(), limit.cell.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
    let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
    format!("{} is {}: {text}{place}", limit.limit, state(limit.state).0)
}

/// The word for a state, and its tone.
fn state(state: LimitState) -> (&'static str, Tone) {
    match state {
        LimitState::Kept => ("kept", Tone::Own),
        LimitState::Undecided => ("undecided", Tone::Notice),
        LimitState::Exceeded => ("exceeded", Tone::Bad),
    }
}

/// What was measured, in the limit's own notation. A value that is exact has no interval.
fn found(limit: &LimitFinding) -> String {
    let Some(found) = limit.found.filter(|found| found.value.is_finite()) else { return MISSING.to_owned() };
    let ends = found.low.zip(found.high).filter(|(low, high)| low != high);
    let Written { scale, unit } = Written::of(&limit.unit, found.value);
    let is_change = limit.unit == CHANGE;
    // An exact count may be beyond its limit by little.
    let is_count = ![PERCENT, NANOS, SECONDS].contains(&number::of_metric(&limit.unit).0);
    let is_whole = is_count && ends.is_none() && (WHOLE..LONG).contains(&found.value);
    let change = change_of(found.value);
    let text = |value: f64| match value {
        value if is_change => change(value),
        value if is_whole => separated(&format!("{value:.0}")),
        value => scale.cell(value),
    };
    let interval = ends.map(|(low, high)| format!(" [{}, {}]", text(low), text(high))).unwrap_or_default();
    let unit = if is_whole { &limit.unit } else { &unit };
    format!("{}{interval} {unit}", text(found.value)).trim_end().to_owned()
}

/// Formats changes in percent with their sign: with a digit more than elsewhere, because a small one may be beyond its limit by little.
fn change_of(value: f64) -> impl Fn(f64) -> String {
    let decimals = if value.abs() < 0.1 { 2 } else { 1 };
    move |change: f64| match change * 100.0 {
        percent if percent.abs() < number::TOO_LARGE => format!("{percent:+.decimals$}").replace("-0.00", "+0.00"),
        percent => format!("{percent:+.2e}"),
    }
}

/// For tests: limits that no study gives.
#[cfg(test)]
pub(crate) fn hostile(number: f64, text: &str) -> Vec<LimitFinding> {
    let limit = |unit: &str, state| LimitFinding {
        limit: text.to_owned(),
        metric: text.to_owned(),
        cell: text.to_owned(),
        arm: unit.to_owned(),
        found: Some(model::stats::Estimate { value: number, low: Some(-number), high: Some(number) }),
        unit: unit.to_owned(),
        reason: Some(text.to_owned()),
        state,
    };
    vec![limit(CHANGE, LimitState::Exceeded), limit("ns", LimitState::Undecided), limit(text, LimitState::Exceeded)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::stats::Estimate;

    fn limit(limit: &str, unit: &str, [value, low, high]: [f64; 3], state: LimitState) -> LimitFinding {
        let found = Some(Estimate { value, low: Some(low), high: Some(high) });
        LimitFinding { limit: limit.to_owned(), unit: unit.to_owned(), found, state, ..LimitFinding::default() }
    }

    #[test]
    fn a_sentence_has_the_limit_its_state_and_what_was_measured() {
        use LimitState::{Exceeded, Undecided};
        for (finding, text) in [
            (
                limit("cycles_per_io > 30k", "cycles/I/O", [35_200.0, 34_900.0, 35_500.0], Exceeded),
                "cycles_per_io > 30k is exceeded: 35.2 [34.9, 35.5] kcycles/I/O",
            ),
            (
                limit("cycles_per_io > +3%", CHANGE, [0.05, 0.02, 0.08], Undecided),
                "cycles_per_io > +3% is undecided: +5.00 [+2.00, +8.00] %",
            ),
            (limit("latency_p99 > 200us", "ns", [250_000.0; 3], Exceeded), "latency_p99 > 200us is exceeded: 250 µs"),
            (
                limit("instructions_per_io > 2247", "instructions/I/O", [2248.0; 3], Exceeded),
                "instructions_per_io > 2247 is exceeded: 2,248 instructions/I/O",
            ),
            (limit("iops < -30%", CHANGE, [-0.314; 3], Exceeded), "iops < -30% is exceeded: -31.4 %"),
            (
                limit("longest_stall_seconds > 1ms", "s", [0.002; 3], Exceeded),
                "longest_stall_seconds > 1ms is exceeded: 2.00 ms",
            ),
            (
                limit("loss_share > 1%", "fraction", [0.02, 0.015, 0.025], Exceeded),
                "loss_share > 1% is exceeded: 2.00 [1.50, 2.50] %",
            ),
            (
                LimitFinding {
                    reason: Some("nothing was measured".to_owned()),
                    ..limit("iops < 1", "", [f64::NAN; 3], Undecided)
                },
                "iops < 1 is undecided: —; nothing was measured",
            ),
        ] {
            assert_eq!(sentence(&finding), text);
        }
        let there = LimitFinding {
            cell: "bs=4k".to_owned(),
            arm: "k2".to_owned(),
            ..limit("instructions_per_io > +1%", CHANGE, [0.02; 3], Exceeded)
        };
        assert_eq!(sentence(&there), "instructions_per_io > +1% is exceeded: +2.00 % (k2, bs=4k)");
    }

    #[test]
    fn places_where_a_limit_is_kept_are_counted() {
        let at = |cell: &str, state| LimitFinding {
            cell: cell.to_owned(),
            ..limit("iops < 10k", "I/O/s", [2e4, 1e4, 3e4], state)
        };
        let all = [at("a", LimitState::Exceeded), at("b", LimitState::Kept), at("c", LimitState::Kept)];
        let Body::Table(table) = block(&all, "phase").unwrap().body else { panic!("no table") };
        assert_eq!(table.rows.len(), 2);
        assert!(block(&[], "phase").is_none());
    }
}
