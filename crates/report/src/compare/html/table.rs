//! Tables of changes in which each interval is drawn beside its numbers, all of a table on one scale.

use super::markup::{element, escape};
use crate::compare::change::{Change, bare};
use crate::compare::changes::{Changes, Line, Mark};
use crate::compare::section::Grid;
use crate::compare::span::Span;
use crate::compare::words;
use crate::page::Tone;
use model::experiment::Metric;
use model::stats::Verdict;

/// Room at both ends of a scale, in percent of its width, so that no mark touches an edge.
const PAD: f64 = 3.0;

/// The class that colours a verdict.
pub fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better | Verdict::BetterMaybeSmall => "better",
        Verdict::Worse | Verdict::WorseMaybeSmall => "worse",
        Verdict::NoDifference => "same",
        Verdict::Inconclusive => "unsure",
    }
}

/// The class that colours a tone.
pub fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Own => "better",
        Tone::Bad => "worse",
        Tone::Notice => "unsure",
        Tone::Plain | Tone::Strong | Tone::Faint => "same",
    }
}

/// A word on a coloured ground.
pub fn pill(class: &str, word: &str) -> String {
    element("span", &format!("pill {class}"), &escape(word))
}

/// A table of changes under its title, which is escaped already.
pub fn changes(title: &str, table: &Changes, margin: f64) -> String {
    let scale = table.range(margin).map(|range| Scale::new(range, margin));
    let mut heads: String = table.heads.iter().map(|head| format!("<th scope=\"col\">{}</th>", escape(head))).collect();
    heads +=
        &table.arms.iter().map(|arm| format!("<th scope=\"col\" class=\"n\">{}</th>", escape(arm))).collect::<String>();
    heads += "<th scope=\"col\" class=\"n\">change</th><th scope=\"col\">95 %</th><th scope=\"col\" class=\"strip\">";
    heads += &scale.map(|scale| scale.axis()).unwrap_or_default();
    heads += "</th><th scope=\"col\">verdict</th>";
    let rows: String = table.lines.iter().map(|line| row(table.metric, line, scale)).collect();
    let caption = if title.is_empty() { String::new() } else { element("caption", "", title) };
    format!(
        "<div class=\"scroll\"><table class=\"changes\">{caption}<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn row(metric: Option<Metric>, line: &Line, scale: Option<Scale>) -> String {
    let (class, word) = match line.mark {
        Mark::Verdict(verdict) => (self::class(verdict), words::verdict(verdict)),
        Mark::Typical => ("unsure", "shape changed"),
    };
    // There is room for whole words, which a terminal does not have.
    let label = |label: &String| match (metric, line.mark) {
        (None, Mark::Verdict(_)) => escape(words::of(line.metric).noun),
        (None, Mark::Typical) => "in a typical round".to_owned(),
        (Some(_), _) => escape(label),
    };
    let labels = line.labels.iter().map(|text| format!("<th scope=\"row\">{}</th>", label(text)));
    let labels: String = labels.collect();
    let strip = scale.map(|scale| scale.strip(line.change)).unwrap_or_default();
    let group = match (line.opens_group, line.mark) {
        (true, _) => " class=\"group\"",
        (false, Mark::Typical) => " class=\"typical\"",
        (false, Mark::Verdict(_)) => "",
    };
    format!(
        "<tr{group}>{labels}<td class=\"n from\">{}</td><td class=\"n to\">{}</td><td class=\"n change {class}\">{}</td>\
         <td class=\"ends\">{}</td><td class=\"strip {class}\">{strip}</td><td class=\"verdict\">{}</td></tr>\n",
        escape(&line.baseline),
        escape(&line.candidate),
        escape(&line.change.percent()),
        escape(&line.change.interval()),
        pill(class, word),
    )
}

/// The scale of a table's drawings: from `low` to `high`, which are finite and rise.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    span: Span,
    margin: f64,
}

impl Scale {
    /// A scale.
    pub fn new((low, high): (f64, f64), margin: f64) -> Self {
        Self { span: Span::new(low, high), margin }
    }

    /// Where a change stands, in percent of the width.
    fn place(self, change: f64) -> f64 {
        PAD + self.span.fraction(change) * (100.0 - 2.0 * PAD)
    }

    /// The margin shaded, and 0.
    fn ground(self) -> String {
        let (from, to) = (self.place(-self.margin), self.place(self.margin));
        let zero = self.place(0.0);
        format!(
            "<rect class=\"margin\" x=\"{from:.2}%\" y=\"0\" width=\"{:.2}%\" height=\"100%\"/>\
             <line class=\"zero\" x1=\"{zero:.2}%\" x2=\"{zero:.2}%\" y1=\"0\" y2=\"100%\"/>",
            to - from
        )
    }

    /// An interval and its middle.
    pub fn strip(self, change: Change) -> String {
        let Some(value) = change.value else { return String::new() };
        let ends = change.ends().map(|(low, high)| {
            let (low, high) = (self.place(low), self.place(high));
            let cap = |place: f64| format!("<line x1=\"{place:.2}%\" x2=\"{place:.2}%\" y1=\"7\" y2=\"17\"/>");
            let line = format!("<line class=\"bar\" x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"12\" y2=\"12\"/>");
            line + &cap(low) + &cap(high)
        });
        let middle = format!("<circle cx=\"{:.2}%\" cy=\"12\" r=\"4.5\"/>", self.place(value));
        let about = escape(&change.whole());
        format!(
            "<svg class=\"interval\" role=\"img\" aria-label=\"{about}\" height=\"24\"><title>{about}</title>{}{}{middle}</svg>",
            self.ground(),
            ends.unwrap_or_default(),
        )
    }

    /// The ends, 0 and the margin in numbers; what would touch its neighbour is left out.
    pub fn axis(self) -> String {
        let mut texts = vec![(self.place(0.0), "0".to_owned(), "middle")];
        let mut add = |place: f64, text: String, anchor: &'static str| {
            if texts.iter().all(|(other, _, _)| (other - place).abs() > 16.0) {
                texts.push((place, text, anchor));
            }
        };
        let Span { low, high } = self.span;
        add(self.place(low), format!("-{}", bare(-low)), "start");
        add(self.place(high), format!("+{}", bare(high)), "end");
        add(self.place(-self.margin), format!("-{}", bare(self.margin)), "middle");
        add(self.place(self.margin), format!("+{}", bare(self.margin)), "middle");
        let texts = texts.iter().map(|(place, text, anchor)| {
            format!("<text x=\"{place:.2}%\" y=\"15\" text-anchor=\"{anchor}\">{}</text>", escape(text))
        });
        format!("<svg class=\"axis\" aria-hidden=\"true\" height=\"20\">{}</svg>", texts.collect::<String>())
    }
}

/// A table of plain fields.
pub fn grid(grid: &Grid) -> String {
    let heads = grid.heads.iter().map(|head| {
        let class = if head.is_number { " class=\"n\"" } else { "" };
        format!("<th scope=\"col\"{class}>{}</th>", escape(&head.text))
    });
    let rows = grid.rows.iter().map(|row| {
        let cells = row.iter().zip(&grid.heads).map(|(field, head)| {
            let class = if head.is_number { " class=\"n\"" } else { "" };
            let text = match field.tone {
                Tone::Plain | Tone::Strong | Tone::Faint => escape(&field.text),
                tone => pill(tone_class(tone), &field.text),
            };
            format!("<td{class}>{text}</td>")
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    });
    let (heads, rows) = (heads.collect::<String>(), rows.collect::<String>());
    format!("<div class=\"scroll\"><table><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_stands_where_its_numbers_say() {
        let scale = Scale::new((-0.05, 0.05), 0.03);
        let strip = scale.strip(Change { value: Some(0.0), low: Some(-0.05), high: Some(0.05) });
        assert!(strip.contains("cx=\"50.00%\"") && strip.contains("x1=\"3.00%\" x2=\"97.00%\""), "{strip}");
        assert!(strip.contains("<rect class=\"margin\" x=\"21.80%\" y=\"0\" width=\"56.40%\""), "{strip}");
    }

    #[test]
    fn what_is_not_known_is_not_drawn() {
        assert_eq!(Scale::new((-0.05, 0.05), 0.03).strip(Change::default()), "");
    }
}
