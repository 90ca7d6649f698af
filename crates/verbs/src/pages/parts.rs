//! A table of parts of a cost, or of what happens for an I/O: accounts, functions, events. The same for one measurement and for two.

use model::elided_list::elided_list;
use model::events::{RARE, meaning};
use model::stats::Estimate;
use report::document::{Block, Body, Cell, Column, Draw, Interval, Note, Raw, Scale as Drawn, Span, Table, Tone};
use report::number::{self, COUNT, CYCLES, MISSING, Scale, Units};

/// A row.
#[derive(Default)]
pub(crate) struct Part {
    /// The values of the axes, or the point.
    pub place: Vec<Cell>,
    pub name: String,
    /// Where it is, or what it means.
    pub of: String,
    /// Whatever else is known of it.
    pub also: String,
    /// The colour of its bar.
    pub tone: Tone,
    /// Of one measurement, or of two.
    pub costs: Vec<Estimate>,
    /// Of one: its part of the whole.
    pub share: Option<f64>,
    /// Of two: the change, and whether it is detected.
    pub change: Option<(Estimate, bool)>,
}

/// What the rows of a table have in common.
#[derive(Clone, Copy)]
pub(crate) struct Kind<'a> {
    pub axes: &'a [&'a str],
    /// What a part is: "account".
    pub what: &'a str,
    /// The headers of [`Part::of`] and [`Part::also`].
    pub of: &'a str,
    pub also: &'a str,
    /// The measurements, or the unit of the only one.
    pub costs: &'a [&'a str],
    pub units: Units,
    /// The unit of all costs of one measurement. Without it, each has its own.
    pub scale: Option<Scale>,
    /// Whether more of it is worse. Of events it is not: one may stand in place of another.
    pub is_cost: bool,
}

/// The accounts of one measurement.
pub(crate) const ACCOUNTS: Kind<'static> = Kind {
    axes: &[],
    what: "account",
    of: "",
    also: "times/IO",
    costs: &[],
    units: CYCLES,
    scale: None,
    is_cost: true,
};

/// Columns that no row needs are left out.
pub(crate) fn table(kind: Kind, parts: Vec<Part>) -> Table {
    let any = |holds: &dyn Fn(&Part) -> bool| parts.iter().any(holds);
    let (of, also) = (any(&|part| !part.of.is_empty()), any(&|part| !part.also.is_empty()));
    let (share, two) = (any(&|part| part.share.is_some()), any(&|part| part.change.is_some()));
    let ends = !two && any(&|part| part.costs.iter().any(|cost| cost.low.is_some()));
    let detected = |is: bool| any(&|part| part.change.is_some_and(|(_, detected)| detected == is));
    let doubtful = detected(true) && detected(false);
    let changes = || parts.iter().filter_map(|part| Some(part.change?.0));
    let ranges: Vec<_> = changes().filter_map(|it| Span::range([Some(it.value), it.low, it.high])).collect();
    // The largest change of a count is whole: it stands for the others.
    let largest = changes().map(|it| it.value.abs()).filter(|size| size.is_finite()).fold(0.0, f64::max);
    let around = if kind.is_cost { 0.0 } else { largest };
    let drawn = Span::of_most(&ranges, around).map(|span| Drawn { span, margin: None });
    let mut columns: Vec<Column> = kind.axes.iter().map(|axis| Column::text(*axis)).collect();
    columns.push(Column::rows(kind.what));
    columns.extend((of && kind.is_cost).then(|| Column::text(kind.of).spare(3)));
    for (head, spare) in kind.costs.iter().zip([2, 1]) {
        columns.push(if two { Column::number(*head).spare(spare) } else { Column::number(*head) });
    }
    columns.extend(ends.then(|| Column::text("95 % interval").spare(2)));
    columns.extend(share.then(|| Column::number("share")));
    // Beside the name of a place it is a name, too.
    columns.extend(also.then(|| if of { Column::text(kind.also) } else { Column::number(kind.also) }.spare(1)));
    columns.extend(two.then(|| [Column::number("change"), Column::text("interval")]).into_iter().flatten());
    columns.extend(doubtful.then(|| Column::text("detected")));
    columns.extend((of && !kind.is_cost).then(|| Column::text(kind.of).spare(0)));
    columns.extend(share.then(|| Column::drawing(Draw::Bar)));
    columns.extend(drawn.map(|drawn| Column::drawing(Draw::Interval(drawn))));
    let mut table = Table { keys: kind.axes.len() + 1, ..Table::new(columns) };
    for part in parts {
        let mut cells = part.place;
        cells.push(Cell::from(part.name));
        let name_of = of.then(|| Cell::new(Tone::Faint, part.of));
        cells.extend(name_of.clone().filter(|_| kind.is_cost));
        let cost = |cost: &Estimate| match kind.scale {
            Some(scale) => scale.cell(cost.value),
            None => number::net(Some(cost.value), |value| number::with_unit(kind.units, value)),
        };
        cells.extend(part.costs.iter().map(|it| Cell::from(cost(it))));
        let within = |it: &Estimate| interval(kind.scale.unwrap_or_else(|| Scale::of(kind.units, it.value)), it);
        cells.extend(ends.then(|| Cell::from(part.costs.first().map_or_else(String::new, within))));
        cells.extend(share.then(|| Cell::from(part.share.map_or_else(|| MISSING.to_owned(), number::percent))));
        cells.extend(also.then(|| Cell::from(part.also)));
        let mut drawing = Cell::default();
        if let Some((change, detected)) = part.change {
            let tone = match (detected, kind.is_cost) {
                (false, _) => Tone::Plain,
                (true, false) => Tone::Strong,
                (true, true) if change.value > 0.0 => Tone::Bad,
                (true, true) => Tone::Own,
            };
            let unit = scale(kind.units, &change);
            cells.push(Cell::new(tone, with_unit(unit, |unit| signed(unit, change.value))));
            cells.push(Cell::from(interval(unit, &change)));
            cells.extend(doubtful.then(|| Cell::from(if detected { "yes" } else { "no" })));
            drawing = Cell::drawn(tone, Raw::Interval(Interval { value: change.value, ends: change.ends() }));
        }
        cells.extend(name_of.filter(|_| !kind.is_cost));
        cells.extend(drawn.map(|_| drawing));
        cells.extend(share.then(|| Cell::drawn(part.tone, part.share.map_or(Raw::None, Raw::Number))));
        table.row(cells);
    }
    table
}

/// Maximum number of events, unless the user named more.
const SHOWN: usize = 12;

/// The events of one measurement, with their number `per` what it does; nothing if none were counted. Each with its name, its count, and
/// whether the user named it.
pub(crate) fn events(per: &str, title: String, mut events: Vec<(&str, Estimate, bool)>) -> Option<Block> {
    events.sort_by(|(_, one, _), (_, other, _)| other.value.total_cmp(&one.value));
    let mut room = SHOWN.saturating_sub(events.iter().filter(|(.., named)| *named).count());
    // Whether an event is frequent, and is no noise of the background.
    let counts = |count: &Estimate| count.value >= RARE && count.low.is_none_or(|low| low > 0.0);
    let (shown, left): (Vec<_>, Vec<_>) = events.into_iter().partition(|(_, count, named)| {
        let has_room = counts(count) && room > 0;
        room -= usize::from(has_room && !named);
        *named || has_room
    });
    let part = |(name, count, _): &(&str, Estimate, bool)| Part {
        name: (*name).to_owned(),
        of: meaning(name).to_owned(),
        costs: vec![*count],
        ..Part::default()
    };
    let kind = Kind { what: "event", costs: &[per], units: COUNT, is_cost: false, ..ACCOUNTS };
    let table = table(kind, shown.iter().map(part).collect());
    let names = left.iter().filter(|(_, count, _)| counts(count)).map(|(name, ..)| (*name).to_owned());
    let names: Vec<String> = names.collect();
    let mut parts = Vec::new();
    if !names.is_empty() {
        parts.push(format!("less often: {}", elided_list(&names, ", ")));
    }
    if left.len() > names.len() {
        parts.push(format!("not shown: {} below {RARE} or not different from 0", left.len() - names.len()));
    }
    let notes = if parts.is_empty() { Vec::new() } else { vec![Note::remark(parts.join("; "))] };
    (!shown.is_empty() || !left.is_empty()).then(|| Block::new(title, Body::Table(table)).with(notes))
}

/// The unit of a change or a count. Three digits, but no more than three decimals: smaller ones are noise.
pub(crate) fn scale(units: Units, of: &Estimate) -> Scale {
    const SMALL: f64 = 0.1;
    Scale::of(units, if of.value.is_finite() { of.value.abs().max(SMALL) } else { SMALL })
}

/// "1.34 k".
pub(crate) fn with_unit(scale: Scale, text: impl FnOnce(Scale) -> String) -> String {
    let text = text(scale);
    if scale.unit.is_empty() || text == MISSING { text } else { format!("{text} {}", scale.unit) }
}

/// "+160".
pub(crate) fn signed(scale: Scale, value: f64) -> String {
    let text = scale.cell(value);
    if value > 0.0 && !text.starts_with(['<', '>']) && text != MISSING { format!("+{text}") } else { text }
}

/// "[150, 170]", or that there is none.
pub(crate) fn interval(scale: Scale, change: &Estimate) -> String {
    change.ends().map_or_else(|| MISSING.to_owned(), |(low, high)| scale.interval(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_sign_its_unit_and_its_interval() {
        let text = |value: f64| {
            let change = Estimate { value, low: Some(value - 10.0), high: Some(value + 10.0) };
            let scale = scale(CYCLES, &change);
            format!("{} {}", with_unit(scale, |scale| signed(scale, value)), interval(scale, &change))
        };
        assert_eq!(text(160.0), "+160 cycles [150, 170]");
        assert_eq!(text(-9.0), "-9.00 cycles [-19.00, 1.00]");
        assert_eq!(text(0.0), "0 cycles [-10.000, 10.000]");
        assert_eq!(text(f64::NAN), format!("{MISSING} [{MISSING}, {MISSING}]"));
    }

    #[test]
    fn no_more_than_a_dozen_events_are_shown_unless_the_user_named_them() {
        let names: Vec<String> = (0..20).map(|place| format!("a:event_{place:02}")).collect();
        let count = |(place, name)| (name, Estimate::exact(f64::from(40 - place)), place == 19);
        let events =
            super::events("per I/O", String::new(), (0..).zip(names.iter().map(String::as_str)).map(count).collect());
        let block = events.unwrap();
        let Body::Table(table) = &block.body else { panic!("no table") };
        assert_eq!(table.rows.len(), SHOWN);
        assert!(block.notes[0].text.starts_with("less often: a:event_11, "), "{}", block.notes[0].text);
    }
}
