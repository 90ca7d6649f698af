//! Finding of a history → document: where a level changed and what else changed there, all levels, a chart of each series.

#[cfg(test)]
pub(crate) mod fixture;

use crate::history::{ChangePoint, Experiment, HistoryFinding, Level, Series};
use crate::pages::parts;
use crate::pages::words::Change;
use model::limit::CHANGE;
use model::stats::Estimate;
use report::document::{
    Audience, Axis, Block, Body, Cell, Chart, Column, Document, Fact, Mark, Note, Point, Section, Sentence,
    Series as Line, Table, Tone, tied,
};
use report::number::{self, MISSING, PERCENT, Written};
use report::phrase;
use report::shell;

/// Charts of an experiment: those of series that changed, and as many others as make these.
const CHARTS: usize = 6;

impl crate::Finding for HistoryFinding {
    fn document(&self) -> Document {
        let records: usize = self.experiments.iter().map(|experiment| experiment.records.len()).sum();
        let mut sections: Vec<Section> = self.experiments.iter().map(section).collect();
        let left_out = [
            (&self.alone, "Not in a history, because no other record has the same command line"),
            (&self.incomplete, "Left out, because the measurement failed or was interrupted"),
        ];
        let left_out = left_out.into_iter().filter(|(paths, _)| !paths.is_empty());
        let notes: Vec<Note> =
            left_out.map(|(paths, why)| Note::remark(format!("{why}: {}", paths.join(", ")))).collect();
        if !notes.is_empty() {
            sections.push(Section::new("", vec![Block::new("", Body::Notes).with(notes)]));
        }
        Document {
            kind: "iotoll history".to_owned(),
            title: format!("{} of {records} records", plural(self.experiments.len(), "experiment")),
            lead: "Each metric of stored records over time: its levels, and where they changed".to_owned(),
            headline: self.experiments.iter().flat_map(headline).collect(),
            sections,
            caveats: self.experiments.iter().flat_map(|experiment| experiment.warnings.clone()).collect(),
            ..Document::default()
        }
    }
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// What changed in an experiment, one sentence for each record with a change; or that nothing did.
fn headline(experiment: &Experiment) -> Vec<Sentence> {
    /// The largest ones are named; the table has all.
    const NAMED: usize = 2;
    let mut sentences = Vec::new();
    for at_record in changes(experiment).chunk_by(|(_, one), (_, next)| one.record == next.record) {
        let Some((_, first)) = at_record.first() else { continue };
        let named = at_record.iter().take(NAMED);
        let named: Vec<String> =
            named.map(|(series, change)| format!("{} {}", name(series), percent(&change.change))).collect();
        let others = at_record.len().saturating_sub(NAMED);
        let others = if others > 0 { format!(", and {}", plural(others, "other metric")) } else { String::new() };
        let text = format!("Since {}: {}{others}", moment(experiment, first.record), named.join(", "));
        let differs = differs(experiment, first.record);
        sentences.push(Sentence { detail: (!differs.is_empty()).then_some(differs), ..Sentence::plain(text) });
    }
    if sentences.is_empty() {
        let (series, records) = (plural(experiment.series.len(), "metric"), plural(experiment.records.len(), "record"));
        sentences.push(Sentence::plain(format!("{}: no change of {series} in {records}", title(experiment))));
    }
    let outside = experiment.series.iter().filter(|series| series.expected.is_some_and(|it| it.is_last_outside));
    let outside: Vec<String> = outside.map(name).collect();
    if !outside.is_empty() {
        let text =
            format!("The last record of {} is outside of what is expected: {}", title(experiment), outside.join(", "));
        sentences.push(Sentence {
            detail: Some("one record is no change; measure again".to_owned()),
            ..Sentence::plain(text)
        });
    }
    sentences
}

/// All changes, in order of time, the largest first where several are at one record.
fn changes(experiment: &Experiment) -> Vec<(&Series, &ChangePoint)> {
    let mut found: Vec<_> =
        experiment.series.iter().flat_map(|series| series.changes.iter().map(move |change| (series, change))).collect();
    let size = |change: &ChangePoint| change.change.value.ln_1p().abs();
    found.sort_by(|(_, a), (_, b)| a.record.cmp(&b.record).then_with(|| size(b).total_cmp(&size(a))));
    found
}

fn section(experiment: &Experiment) -> Section {
    let facts = Block::new("", Body::Facts(facts(experiment)));
    let charts = Block::new("", Body::Charts(charts(experiment))).of(Audience::PAGE);
    Section::new(title(experiment), vec![facts, Block::new("Levels", Body::Table(levels(experiment))), charts])
}

fn facts(experiment: &Experiment) -> Vec<Fact> {
    let (first, last) = (moment(experiment, 0), moment(experiment, experiment.records.len().saturating_sub(1)));
    let mut facts = vec![Fact::new("Records", format!("{}, from {first} to {last}", experiment.records.len()))];
    let first = experiment.records.first();
    facts.extend(first.map(|record| Fact::new("First on", format!("kernel {}, {}", record.kernel, record.cpus))));
    let differing = experiment.records.iter().enumerate().filter(|(_, record)| !record.differs.is_empty());
    facts.extend(differing.map(|(place, record)| Fact::new(moment(experiment, place), record.differs.join(", "))));
    facts
}

/// The levels of each series, each with its change against the one before; the last value, and where it was expected.
fn levels(experiment: &Experiment) -> Table {
    let mut columns = vec![Column::rows("metric"), Column::text("since").spare(2)];
    columns.extend([Column::number("records").spare(1), Column::number("level"), Column::text("95 %")]);
    columns.extend([Column::number("change"), Column::number("last"), Column::text("expected")]);
    columns.extend(["unit", ""].map(Column::text));
    let mut table = Table::new(columns);
    for series in &experiment.series {
        let Some(last) = series.points.last() else { continue };
        let Some(newest) = series.levels.last() else {
            let Written { unit, scale } = Written::of(&series.unit, last.value.value);
            let text =
                format!("last {} {unit}; no level, because not all values are positive", scale.cell(last.value.value));
            table.note(Cell::from(name(series)), text);
            continue;
        };
        for (place, level) in series.levels.iter().enumerate() {
            let Written { unit, scale } = Written::of(&series.unit, newest.value.value);
            let change = series.changes.iter().find(|change| change.record == level.first);
            let change = change.map_or_else(String::new, |change| percent(&change.change));
            let of_last = |text: String| if place + 1 == series.levels.len() { text } else { String::new() };
            let expected = series.expected.map_or_else(|| MISSING.to_owned(), |it| scale.interval(it.low, it.high));
            let cells = [
                if place == 0 { name(series) } else { String::new() },
                moment(experiment, level.first),
                level.records.to_string(),
                scale.cell(level.value.value),
                parts::interval(scale, &level.value),
                change,
                of_last(scale.cell(last.value.value)),
                of_last(expected),
                unit,
            ];
            let outside = series.expected.is_some_and(|it| it.is_last_outside);
            let word = Cell::new(Tone::Notice, of_last(if outside { "outside".to_owned() } else { String::new() }));
            table.row(cells.map(Cell::from).into_iter().chain([word]).collect());
        }
    }
    table
}

fn charts(experiment: &Experiment) -> Vec<Chart> {
    let (changed, same): (Vec<&Series>, Vec<&Series>) = experiment
        .series
        .iter()
        .filter(|series| series.points.len() > 1 && !series.levels.is_empty())
        .partition(|series| !series.changes.is_empty());
    let room = CHARTS.saturating_sub(changed.len());
    changed.into_iter().chain(same.into_iter().take(room)).map(|series| chart(experiment, series)).collect()
}

fn chart(experiment: &Experiment, series: &Series) -> Chart {
    let (units, _) = number::of_metric(&series.unit);
    let at = |record: usize| record as f64;
    let upright = |at: f64| Mark { across: Some((at, at)), ..Mark::default() };
    let dots = series.points.iter().map(|point| Point {
        x: at(point.record),
        y: point.value.value,
        ends: point.value.ends(),
        hint: experiment.records.get(point.record).map_or_else(String::new, |record| record.path.clone()),
    });
    let dots = Line { subject: 0, joined: false, dot: 5, points: dots.collect() };
    let line = |level: &Level| {
        let ends = [at(level.first), at(level.last)];
        let points = ends.map(|x| Point::new(x, level.value.value)).to_vec();
        Line { subject: 0, joined: true, dot: 0, points }
    };
    let marked = experiment.records.iter().enumerate().filter(|(_, record)| !record.differs.is_empty());
    Chart {
        title: name(series),
        x: Axis::Named((0..).map(at).zip(steps(experiment)).collect()),
        y: Axis::Amount { units, from_zero: units == PERCENT },
        marks: marked.map(|(place, _)| at(place) - 0.5).map(upright).collect(),
        series: std::iter::once(dots).chain(series.levels.iter().map(line)).collect(),
    }
}

fn title(experiment: &Experiment) -> String {
    format!("iotoll {}", shell::command(&experiment.command_line))
}

/// "cycles_per_io", with its place: "iops (bs=4k, candidate)".
fn name(series: &Series) -> String {
    let place = [series.cell.as_str(), series.arm.as_str()];
    let place: Vec<&str> = place.into_iter().filter(|part| !part.is_empty()).collect();
    let change = if series.unit == CHANGE { "change of " } else { "" };
    let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
    format!("{change}{}{place}", series.metric)
}

/// The days of the records, or the times if all are of one day.
fn steps(experiment: &Experiment) -> Vec<String> {
    let moments: Vec<String> = (0..experiment.records.len()).map(|place| moment(experiment, place)).collect();
    let day = |moment: &String| moment.chars().take("2026-11-26".len()).collect::<String>();
    let days: Vec<String> = moments.iter().map(day).collect();
    let is_one_day = days.first() == days.last();
    if is_one_day { moments.iter().map(|it| it.chars().skip("2026-11-26 ".len()).collect()).collect() } else { days }
}

/// When a record was made, to the minute.
fn moment(experiment: &Experiment, record: usize) -> String {
    const TO_THE_MINUTE: usize = "2026-11-26 23:39".len();
    let time = experiment.records.get(record).and_then(|record| phrase::time(record.started_unix_seconds));
    tied(&time.map_or_else(|| MISSING.to_owned(), |time| time.chars().take(TO_THE_MINUTE).collect()))
}

fn differs(experiment: &Experiment, record: usize) -> String {
    experiment.records.get(record).map_or_else(String::new, |record| record.differs.join(", "))
}

fn percent(change: &Estimate) -> String {
    tied(&Change::from(*change).whole())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use report::Ink;

    #[test]
    fn a_change_is_said_with_its_time_and_what_else_changed() {
        let table = Format::Table.render(&fixture::upgraded(), Ink::Plain, 160).replace('\u{a0}', " ");
        insta::assert_snapshot!(table);
    }

    #[test]
    fn a_page_has_a_chart_of_each_series() {
        let finding = fixture::upgraded();
        let page = Format::Html.render(&finding, Ink::Plain, 0);
        assert_eq!(page.matches("<figure").count(), 2, "a series without levels has none");
    }
}
