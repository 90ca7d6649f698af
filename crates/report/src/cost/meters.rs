//! The meters next to each other: those that gave a figure, with their intervals on one scale, so that disagreement is
//! visible, and the others on one line.

use crate::document;
use crate::document::{Audience, Block, Body, Cell, Column, Draw, Fact, Interval, Note, Raw, Span, Table, Tone};
use crate::number::{self, CYCLES, Scale};
use crate::parts;
use model::elided_list::grouped;
use model::finding::{MeterReading, PhaseFinding, RunFinding};
use model::record::Meter;
use model::stats::Estimate;

/// The meters of the phase at `index`. Meters that the machine does not have are listed once, in the last phase.
pub fn blocks(finding: &RunFinding, index: usize, phase: &PhaseFinding) -> Vec<Block> {
    let readings = &phase.by_meter_detail;
    // Without a count of I/Os, the meters are compared by their cost of an execution.
    let of_execution = readings.iter().any(|reading| reading.cycles_per_execution.is_some());
    let per = if of_execution { "" } else { "/IO" };
    let values = readings.iter().filter_map(|reading| cost(reading).map(|estimate| estimate.value));
    let scale = phase.cycles_per_io.or(values.reduce(f64::max)).map(|value| Scale::of(CYCLES, value));
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
    let mut silent = Silent::default();
    for reading in readings {
        let headline = !phase.known_by_name && phase.headline_meter.as_ref() == Some(&reading.name);
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
            _ => silent.add(&reading.name, reading.reason.as_deref()),
        }
    }
    if last {
        let named = |name: &str| readings.iter().any(|reading| reading.name == name);
        for meter in finding.meters.iter().filter(|meter| !meter.available && !named(&meter.name)) {
            silent.add(&meter.name, meter.reason.as_deref());
        }
    }
    let mut costs = readings.iter().filter_map(cost).peekable();
    let mut notes = Vec::new();
    if costs.peek().is_some() && !phase.interval_from.is_empty() {
        let of_phase = phase.cycles_per_io_low.or(phase.cycles_low);
        let known = of_phase.is_some() || costs.any(|estimate| estimate.low.is_some());
        let from = if known { "interval from" } else { "no interval:" };
        let what = if of_execution { "cycles of one execution; " } else { "" };
        notes.push(Note::remark(format!("{what}{from} {}", phase.interval_from)));
    }
    // Where no meter gave the cost, the whole reason is what the reader needs.
    let is_unknown = !readings.iter().any(|reading| whole_machine(reading) && cost(reading).is_some());
    notes.extend(silent.line(is_unknown).map(Note::remark));
    let body = if table.rows.is_empty() { Body::Notes } else { Body::Table(table) };
    let in_full = Block::new("Meters without a figure", Body::Facts(silent.facts())).of(Audience::PAGE);
    vec![Block::new("Meters", body).with(notes).of(Audience::SCREEN.or(Audience::PAGE)), in_full]
}

/// The meters without a figure, by their reason.
#[derive(Default)]
struct Silent<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Silent<'a> {
    fn add(&mut self, name: &'a str, reason: Option<&'a str>) {
        self.0.push((reason.unwrap_or("not read"), name));
    }

    /// All of them on one line, each reason in full or without its details: the page has them, and `iotoll doctor`. The details of
    /// a meter that was not chosen are an advice.
    fn line(&self, in_full: bool) -> Option<String> {
        let shown = self.0.iter().map(|(reason, name)| {
            (if in_full && !reason.starts_with("not chosen") { reason } else { short(reason) }, *name)
        });
        let part = |(reason, names): (_, Vec<_>)| format!("{} ({reason})", names.join(", "));
        let parts: Vec<String> = grouped(shown).into_iter().map(part).collect();
        (!parts.is_empty()).then(|| format!("no figure from {}", parts.join(", ")))
    }

    /// The reasons in full.
    fn facts(&self) -> Vec<Fact> {
        grouped(self.0.iter().copied()).into_iter().map(|(reason, names)| Fact::new(names.join(", "), reason)).collect()
    }
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
    fn meters_without_a_figure_take_one_line() {
        let mut silent = Silent::default();
        assert_eq!(silent.line(false), None);
        silent.add("soaker", Some("not chosen: it disturbs; --meters all gives it windows of its own"));
        silent.add("pmu", Some("the hypervisor offers no cycle counter (perf_event_open: No such file)"));
        silent.add("sampler", Some("not chosen: it disturbs; --meters sampler gives it windows of its own"));
        silent.add("idle", None);
        let line = "no figure from soaker, sampler (not chosen), pmu (the hypervisor offers no cycle counter), idle (not read)";
        assert_eq!(silent.line(false).as_deref(), Some(line));
        assert!(
            silent
                .line(true)
                .is_some_and(|line| line.contains("(perf_event_open: No such file)") && !line.contains("windows"))
        );
        assert_eq!(silent.facts().len(), 4, "in full on a page");
    }

    #[test]
    fn one_meter_has_no_scale_and_neither_has_nonsense() {
        assert_eq!(range(&[reading("idle", 100.0, 12.0)]), None);
        assert_eq!(range(&[reading("idle", 100.0, 0.0), reading("pmu", 100.0, 0.0)]), None);
        assert_eq!(range(&[reading("idle", f64::INFINITY, 1.0), reading("pmu", 1.0, 0.0)]), None);
    }
}
