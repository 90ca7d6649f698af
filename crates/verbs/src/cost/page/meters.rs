//! The meters next to each other: those that gave a figure, with their intervals on one scale, so that disagreement is
//! visible, and the others on one line.

use crate::pages::parts;
use model::elided_list::grouped;
use model::finding::{MeterReading, PhaseFinding, RunFinding};
use model::record::Meter;
use model::stats::Estimate;
use report::document::{self, Audience, Block, Body, Cell, Column, Draw, Interval, Note, Raw, Span, Table, Tone};
use report::number::{self, CYCLES, Scale};

/// The meters of the phase at `index`. Meters that the machine does not have are listed once, in the last phase.
pub fn block(finding: &RunFinding, index: usize, phase: &PhaseFinding) -> Block {
    let readings = &phase.by_meter_detail;
    // Without a count of I/Os, the meters are compared by their cost of an execution.
    let of_execution = readings.iter().any(|reading| reading.cycles_per_execution.is_some());
    let per = if of_execution { "" } else { "/IO" };
    let values = readings.iter().filter_map(|reading| cost(reading).map(|estimate| estimate.value));
    let scale = phase.cycles_per_io().or(values.reduce(f64::max)).map(|value| Scale::of(CYCLES, value));
    let drawn = range(readings);
    let mut table = Table::new(vec![
        Column::rows("meter"),
        Column::number(format!("{}{per}", scale.map_or("cycles", |scale| scale.unit))),
        Column::text("95 % interval"),
        Column::number("measured").spare(1),
    ]);
    table.columns.extend(drawn.map(|scale| Column::drawing(Draw::Interval(scale))));
    let last = index + 1 == finding.phases.len();
    let lacking = |name: &str| finding.meters.iter().any(|meter| meter.name == name && !meter.available);
    // Those without a figure, by their reason.
    let mut silent: Vec<(&str, &str)> = Vec::new();
    for reading in readings {
        let headline = !phase.others.known_by_name && phase.headline_meter.as_ref() == Some(&reading.name);
        let tone = if headline { Tone::Strong } else { Tone::Plain };
        let name = Cell::new(tone, label(&reading.name));
        match (cost(reading), scale) {
            (Some(estimate), Some(scale)) => {
                let mut cells = vec![
                    name,
                    Cell::new(tone, scale.cell(estimate.value)),
                    parts::interval(scale, &estimate).into(),
                    number::seconds(reading.seconds).into(),
                ];
                let tone = if headline { Tone::Own } else { Tone::Plain };
                let raw = Interval { value: estimate.value, ends: estimate.ends() };
                let raw = if whole_machine(reading) { Raw::Interval(raw) } else { Raw::None };
                cells.extend(drawn.map(|_| Cell::drawn(tone, raw)));
                table.row(cells);
            }
            // The same in every phase, so it is stated once, in the last.
            _ if !last && lacking(&reading.name) => {}
            _ => silent.push((reading.reason.as_deref().unwrap_or("not read"), &reading.name)),
        }
    }
    if last {
        let named = |name: &str| readings.iter().any(|reading| reading.name == name);
        for meter in finding.meters.iter().filter(|meter| !meter.available && !named(&meter.name)) {
            silent.push((meter.reason.as_deref().unwrap_or("not read"), &meter.name));
        }
    }
    let mut costs = readings.iter().filter_map(cost).peekable();
    let mut notes = Vec::new();
    if costs.peek().is_some() && !phase.spread.interval_from.is_empty() {
        let known = super::has_interval(phase) || costs.any(|estimate| estimate.low.is_some());
        let from = if known { "interval from" } else { "no interval:" };
        let what = if of_execution { "cycles of one execution; " } else { "" };
        notes.push(Note::remark(format!("{what}{from} {}", phase.spread.interval_from)));
    }
    // Where no meter gave the cost, the whole reason is what the reader needs.
    let is_unknown = !readings.iter().any(|reading| whole_machine(reading) && cost(reading).is_some());
    // Otherwise `iotoll doctor` has the details; those of a meter that was not chosen are an advice.
    let reason = |reason| if is_unknown && !str::starts_with(reason, "not chosen") { reason } else { short(reason) };
    let silent = grouped(silent.into_iter().map(|(why, name)| (reason(why), name)));
    let silent: Vec<String> = silent.into_iter().map(|(why, names)| format!("{} ({why})", names.join(", "))).collect();
    notes.extend((!silent.is_empty()).then(|| Note::remark(format!("no figure from {}", silent.join(", ")))));
    Block::new("Meters", Body::Table(table)).with(notes).of(Audience::SCREEN.or(Audience::PAGE))
}

/// A reason up to its first details: "not chosen" of "not chosen: it disturbs".
fn short(reason: &str) -> &str {
    let ends = [": ", "; ", " ("].iter().filter_map(|end| reason.find(end));
    ends.min().filter(|end| *end > 0).and_then(|end| reason.get(..end)).unwrap_or(reason)
}

/// The cost of an I/O, or of an execution if the I/Os are not counted.
fn cost(reading: &MeterReading) -> Option<Estimate> {
    reading.cycles_per_io.or(reading.cycles_per_execution)
}

fn label(name: &str) -> String {
    let scope = if name == Meter::Thread.name() { " (own threads)" } else { "" };
    format!("{name}{scope}")
}

/// The thread clock measures less by definition; on a common scale it would squeeze the other intervals.
fn whole_machine(reading: &MeterReading) -> bool {
    reading.name != Meter::Thread.name()
}

/// The common scale of the intervals, from the lowest end to the highest. `None` for a single meter.
fn range(readings: &[MeterReading]) -> Option<document::Scale> {
    let shown = readings.iter().filter(|reading| whole_machine(reading)).filter_map(cost);
    let ends: Vec<_> = shown.map(|it| (it.low.unwrap_or(it.value), it.high.unwrap_or(it.value))).collect();
    let low = ends.iter().map(|(low, _)| *low).fold(f64::INFINITY, f64::min);
    let high = ends.iter().map(|(_, high)| *high).fold(f64::NEG_INFINITY, f64::max);
    let has_place = ends.len() > 1 && (high - low).is_finite() && high > low;
    has_place.then(|| document::Scale { span: Span::new(low, high), margin: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(name: &str, value: f64, half: f64) -> MeterReading {
        let estimate = Estimate { value, low: Some(value - half), high: Some(value + half) };
        MeterReading {
            name: name.to_owned(),
            cycles_per_io: Some(estimate),
            cycles_per_execution: None,
            seconds: 1.0,
            reason: None,
        }
    }

    #[test]
    fn intervals_are_drawn_on_one_scale_without_the_thread_clocks() {
        let readings = [reading("idle", 100.0, 12.0), reading("pmu", 106.0, 6.0), reading("thread", 10.0, 1.0)];
        assert_eq!(range(&readings).map(|scale| scale.span), Some(Span::new(88.0, 112.0)));
    }

    #[test]
    fn one_meter_has_no_scale_and_neither_has_nonsense() {
        assert_eq!(range(&[reading("idle", 100.0, 12.0)]), None);
        assert_eq!(range(&[reading("idle", 100.0, 0.0), reading("pmu", 100.0, 0.0)]), None);
        assert_eq!(range(&[reading("idle", f64::INFINITY, 1.0), reading("pmu", 1.0, 0.0)]), None);
    }
}
