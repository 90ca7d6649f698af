//! Tables in which each interval is drawn next to its numbers, with one scale for each column.

use super::{class, pill};
use super::{element, escape};
use crate::document::{Align, Cell, Column, Draw, Interval, Note, Raw, Row, Scale, Table, Tone};
use crate::number::{self, bare_percent};

/// Padding at both ends of a scale, in percent of its width, so that no mark touches an edge.
const PAD: f64 = 3.0;

/// A table with its title. On a phone, a table with drawings is shown as cards, so each cell also contains its header.
pub fn table(title: &str, table: &Table) -> String {
    let heads: String = table.columns.iter().map(head).collect();
    let rows = table.rows.iter().zip(table.opens_group());
    let rows: String = rows.map(|(row, opens)| self::row(table, row, opens)).collect();
    let caption = if title.is_empty() { String::new() } else { element("caption", "", &escape(title)) };
    let drawn = table.columns.iter().any(|column| matches!(column.draw, Draw::Interval(_)));
    let cards = if drawn { " class=\"cards\"" } else { "" };
    format!(
        "<div class=\"scroll\"><table{cards}>{caption}<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn head(column: &Column) -> String {
    match column.draw {
        Draw::Interval(scale) => format!("<th scope=\"col\" class=\"strip\">{}</th>", axis(rounded(scale))),
        Draw::Bar | Draw::Diverging => "<th scope=\"col\" class=\"strip\"></th>".to_owned(),
        Draw::Text | Draw::Verdict => format!("<th scope=\"col\"{}>{}</th>", side(column), escape(&column.head)),
    }
}

fn side(column: &Column) -> &'static str {
    if column.align == Align::Right { " class=\"n\"" } else { "" }
}

fn row(table: &Table, row: &Row, opens_group: bool) -> String {
    match row {
        Row::Cells(level, cells) => {
            let group = if opens_group {
                " class=\"group\""
            } else if *level > 0 {
                " class=\"sub\""
            } else {
                ""
            };
            let cells = cells.iter().zip(&table.columns).enumerate();
            let cells = cells.map(|(place, (cell, column))| field(cell, column, place < table.keys));
            format!("<tr{group}>{}</tr>\n", cells.collect::<String>())
        }
        Row::Note(label, text) => format!(
            "<tr><th scope=\"row\">{}</th><td class=\"why\" colspan=\"{}\">{}</td></tr>\n",
            escape(&label.text),
            table.columns.len().saturating_sub(1).max(1),
            escape(text)
        ),
    }
}

fn field(cell: &Cell, column: &Column, names: bool) -> String {
    let text = escape(cell.in_full.as_ref().unwrap_or(&cell.text));
    let text = if cell.tone == Tone::Strong { element("b", "", &text) } else { text };
    if names {
        return format!("<th scope=\"row\">{text}</th>");
    }
    let head = escape(&column.head);
    let toned = matches!(cell.tone, Tone::Own | Tone::Notice | Tone::Bad);
    match (column.draw, cell.raw) {
        (Draw::Interval(scale), Raw::Interval(interval)) => {
            let about = number::significant(interval.value);
            format!("<td class=\"strip {}\">{}</td>", class(cell.tone), strip(rounded(scale), interval, &about))
        }
        (Draw::Bar | Draw::Diverging, Raw::Number(part)) => {
            let part = if part.is_finite() { part.clamp(-1.0, 1.0) } else { 0.0 };
            let (kind, from, width) = match column.draw {
                Draw::Diverging => ("diverging ", 50.0 + part.min(0.0) * 50.0, part.abs() * 50.0),
                _ => ("", 0.0, part.max(0.0) * 100.0),
            };
            format!(
                "<td class=\"strip {kind}{}\"><div class=\"bar\" style=\"margin-left:{from:.2}%;width:{width:.2}%\"></div></td>",
                class(cell.tone)
            )
        }
        (Draw::Interval(_) | Draw::Bar | Draw::Diverging, _) => "<td class=\"strip\"></td>".to_owned(),
        (Draw::Verdict, _) if cell.text.is_empty() => "<td></td>".to_owned(),
        (Draw::Verdict, _) => format!("<td class=\"verdict\">{}</td>", pill(&Note::new(cell.tone, &cell.text))),
        (Draw::Text, _) => {
            let number = if column.align == Align::Right { "n" } else { "" };
            let tone = if toned { format!(" toned {}", class(cell.tone)) } else { String::new() };
            format!("<td class=\"{number}{tone}\" data-head=\"{head}\">{text}</td>")
        }
    }
}

/// A scale of changes, which shows its ends, with round ends.
fn rounded(scale: Scale) -> Scale {
    let span = if scale.margin.is_some() { scale.span.rounded() } else { scale.span };
    Scale { span, ..scale }
}

/// The position of a value, in percent of the width.
fn place(scale: Scale, value: f64) -> f64 {
    PAD + scale.span.fraction(value) * (100.0 - 2.0 * PAD)
}

/// The shaded margin, and a line at 0.
fn ground(scale: Scale) -> String {
    let Some(margin) = scale.margin else { return String::new() };
    let (from, to, zero) = (place(scale, -margin), place(scale, margin), place(scale, 0.0));
    format!(
        "<rect class=\"margin\" x=\"{from:.2}%\" y=\"0\" width=\"{:.2}%\" height=\"100%\"/>\
         <line class=\"zero\" x1=\"{zero:.2}%\" x2=\"{zero:.2}%\" y1=\"0\" y2=\"100%\"/>",
        to - from
    )
}

/// An interval and its centre. Its numbers are in other columns; `about` is the accessible text.
fn strip(scale: Scale, interval: Interval, about: &str) -> String {
    let inside = |value: f64| (scale.span.low..=scale.span.high).contains(&value);
    let arrow = |value: f64| {
        let (at, path) = if value < scale.span.low { (0.0, "M0,12l9,-6v12z") } else { (100.0, "M0,12l-9,-6v12z") };
        format!("<svg class=\"arrow\" x=\"{at}%\"><path d=\"{path}\"/></svg>")
    };
    let ends = interval.ends.map(|(low, high)| {
        let end = |value: f64| {
            let place = place(scale, value);
            if inside(value) {
                format!("<line x1=\"{place:.2}%\" x2=\"{place:.2}%\" y1=\"7\" y2=\"17\"/>")
            } else {
                arrow(value)
            }
        };
        let (from, to) = (place(scale, low), place(scale, high));
        let line = format!("<line class=\"thick\" x1=\"{from:.2}%\" x2=\"{to:.2}%\" y1=\"12\" y2=\"12\"/>");
        line + &end(low) + &end(high)
    });
    let middle = match interval.value {
        value if inside(value) => format!("<circle cx=\"{:.2}%\" cy=\"12\" r=\"4.5\"/>", place(scale, value)),
        value => arrow(value),
    };
    format!(
        "<svg class=\"interval\" role=\"img\" aria-label=\"{}\" height=\"24\">{}{}{middle}</svg>",
        escape(about),
        ground(scale),
        ends.unwrap_or_default(),
    )
}

/// The numbers of a scale of changes: the ends, 0 and the margin. A number that would touch its neighbour is omitted.
fn axis(scale: Scale) -> String {
    let Some(margin) = scale.margin else { return String::new() };
    let mut texts = vec![(place(scale, 0.0), "0".to_owned(), "middle")];
    let mut add = |place: f64, text: String, anchor: &'static str| {
        if texts.iter().all(|(other, _, _)| (other - place).abs() > 16.0) {
            texts.push((place, text, anchor));
        }
    };
    let (low, high) = (scale.span.low, scale.span.high);
    add(place(scale, low), format!("-{}", bare_percent(-low)), "start");
    add(place(scale, high), format!("+{}", bare_percent(high)), "end");
    add(place(scale, -margin), format!("-{}", bare_percent(margin)), "middle");
    add(place(scale, margin), format!("+{}", bare_percent(margin)), "middle");
    let texts = texts.iter().map(|(place, text, anchor)| {
        format!("<text x=\"{place:.2}%\" y=\"15\" text-anchor=\"{anchor}\">{}</text>", escape(text))
    });
    format!("<svg class=\"axis\" aria-hidden=\"true\" height=\"20\">{}</svg>", texts.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Span;

    #[test]
    fn an_interval_is_drawn_at_its_numbers() {
        let scale = Scale { span: Span::new(-0.05, 0.05), margin: Some(0.03) };
        let strip = strip(scale, Interval { value: 0.0, ends: Some((-0.05, 0.05)) }, "0.0 %");
        assert!(strip.contains("cx=\"50.00%\"") && strip.contains("x1=\"3.00%\" x2=\"97.00%\""), "{strip}");
        assert!(strip.contains("<rect class=\"margin\" x=\"21.80%\" y=\"0\" width=\"56.40%\""), "{strip}");
    }

    #[test]
    fn what_is_outside_has_an_arrow() {
        let scale = Scale { span: Span::new(-0.05, 0.05), margin: Some(0.03) };
        let strip = strip(scale, Interval { value: 0.01, ends: Some((-0.04, 11.0)) }, "+1.0 %");
        assert_eq!(
            (strip.matches("class=\"arrow\" x=\"100%\"").count(), strip.matches("<circle").count()),
            (1, 1),
            "{strip}"
        );
    }

    #[test]
    fn the_scale_of_changes_ends_at_round_numbers() {
        let scale = |margin| Scale { span: Span::new(-0.637, 0.352), margin };
        let head = axis(rounded(scale(Some(0.03))));
        assert!(head.contains(">-100 %<") && head.contains(">+50 %<"), "{head}");
        assert_eq!(rounded(scale(None)), scale(None), "its ends are not shown");
    }

    #[test]
    fn a_diverging_bar_ends_or_begins_in_the_middle() {
        let drawn = |part| field(&Cell::drawn(Tone::Bad, Raw::Number(part)), &Column::drawing(Draw::Diverging), false);
        assert!(drawn(0.5).contains("margin-left:50.00%;width:25.00%"), "{}", drawn(0.5));
        assert!(drawn(-1.0).contains("margin-left:0.00%;width:50.00%"), "{}", drawn(-1.0));
        assert!(drawn(f64::NAN).contains("width:0.00%"));
    }

    #[test]
    fn unknown_intervals_are_not_drawn() {
        let scale = Scale { span: Span::new(-0.05, 0.05), margin: Some(0.03) };
        let text = field(&Cell::drawn(Tone::Plain, Raw::None), &Column::drawing(Draw::Interval(scale)), false);
        assert_eq!(text, "<td class=\"strip\"></td>");
    }
}
