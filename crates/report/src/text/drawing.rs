//! Intervals and bars drawn with characters: `├──●──┤` on one scale, with 0 and the margin for changes.

use crate::document::{Draw, Interval, Raw, Scale, Span};
use crate::number::bare_percent;

/// Columns of an interval on a scale of changes.
const CHANGE: usize = 29;
/// Columns of an interval on a scale without marks.
const PLAIN: usize = 19;
/// Length of a bar for a fraction of 1.
const BAR: usize = 32;
/// Length of a bar to one side of the middle.
const SIDE: usize = 12;

/// The drawing of a cell; `None` if the column shows text.
pub fn draw(how: Draw, raw: Raw) -> Option<String> {
    match (how, raw) {
        (Draw::Text | Draw::Verdict, _) => None,
        (Draw::Bar, Raw::Number(part)) => Some(bar(part)),
        (Draw::Interval(scale), Raw::Interval(interval)) => Some(self::interval(scale, interval)),
        (Draw::Diverging, Raw::Number(part)) => Some(diverging(part)),
        (Draw::Bar | Draw::Diverging | Draw::Interval(_), _) => Some(String::new()),
    }
}

fn bar(part: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * BAR as f64 * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS.get(eighths % 8).unwrap_or(&"")
}

/// A bar from the middle: to the left below 0. There are no characters for parts of a cell from the right, so it has whole and
/// half cells.
fn diverging(part: f64) -> String {
    let part = if part.is_finite() { part.clamp(-1.0, 1.0) } else { 0.0 };
    let halves = (part.abs() * SIDE as f64 * 2.0).round() as usize;
    let (whole, half) = ("█".repeat(halves / 2), halves % 2 == 1);
    if part < 0.0 {
        let blanks = " ".repeat(SIDE - halves.div_ceil(2));
        format!("{blanks}{}{whole}│", if half { "▐" } else { "" })
    } else {
        format!("{}│{whole}{}", " ".repeat(SIDE), if half { "▌" } else { "" })
    }
}

/// The ends of a scale of changes, and its 0.
pub fn head(scale: Scale) -> String {
    if scale.margin.is_none() {
        return String::new();
    }
    let mut head = vec![' '; CHANGE];
    let texts = [
        (0, format!("-{}", bare_percent(-scale.span.low))),
        (column(scale, 0.0), "0".to_owned()),
        (CHANGE, format!("+{}", bare_percent(scale.span.high))),
    ];
    for (place, text) in texts {
        let length = text.chars().count();
        let start = place.min(CHANGE.saturating_sub(length));
        // A number that would touch its neighbour is omitted.
        let around = start.saturating_sub(1)..start.saturating_add(length + 1).min(CHANGE);
        if head.get(around).is_some_and(|letters| letters.iter().all(|letter| *letter == ' ')) {
            head.iter_mut().skip(start).zip(text.chars()).for_each(|(old, new)| *old = new);
        }
    }
    head.into_iter().collect::<String>().trim_end().to_owned()
}

fn interval(scale: Scale, Interval { value, ends }: Interval) -> String {
    let middle = column(scale, value);
    let (low, high) = ends.map_or((middle, middle), |(low, high)| (column(scale, low), column(scale, high)));
    // Without a margin there is no mark, and no column has this number.
    let marks = scale.margin.map(|margin| [-margin, 0.0, margin].map(|mark| column(scale, mark)));
    let [left, zero, right] = marks.unwrap_or([usize::MAX; 3]);
    // An arrow at the edge points to what is outside.
    let Span { low: first, high: last } = scale.span;
    let (least, most) = ends.unwrap_or((value, value));
    let (below, above) = (least.min(value) < first, most.max(value) > last);
    let edge = columns(scale) - 1;
    let letter = |column: usize| match column {
        0 if below => '◄',
        _ if column == edge && above => '►',
        _ if column == middle && (value < first || value > last) => '─',
        _ if column == middle => '●',
        _ if column == low => '├',
        _ if column == high => '┤',
        _ if column == zero && low < column && column < high => '┼',
        _ if low < column && column < high => '─',
        _ if column == zero => '│',
        _ if column == left || column == right => '┊',
        _ => ' ',
    };
    (0..columns(scale)).map(letter).collect::<String>().trim_end().to_owned()
}

fn columns(scale: Scale) -> usize {
    if scale.margin.is_some() { CHANGE } else { PLAIN }
}

fn column(scale: Scale, value: f64) -> usize {
    (scale.span.fraction(value) * (columns(scale) - 1) as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(low: f64, high: f64) -> Scale {
        Scale { span: Span::new(low, high), margin: Some(0.03) }
    }

    fn drawn(value: f64, low: f64, high: f64) -> Interval {
        Interval { value, ends: Some((low, high)) }
    }

    #[test]
    fn intervals_are_drawn_with_zero_and_the_margin() {
        let scale = changes(-0.07, 0.07);
        let lines = [drawn(0.031, 0.026, 0.037), drawn(0.0, -0.05, 0.05), drawn(-0.06, -0.07, -0.05)];
        let lines = lines.map(|change| interval(scale, change));
        assert_eq!(head(scale), "-7 %          0          +7 %");
        assert_eq!(
            lines,
            ["        ┊     │    ├●┤", "    ├─────────●─────────┤    ", "├─●─┤   ┊     │     ┊"].map(str::trim_end)
        );
    }

    #[test]
    fn what_is_outside_has_an_arrow() {
        let outside = [drawn(0.77, -0.76, 11.8), drawn(0.05, 0.02, 0.5), drawn(-3.0, -4.0, -2.0)];
        let lines = outside.map(|change| interval(changes(-0.07, 0.07), change));
        let right = "        ┊     │   ├─────●───►";
        assert_eq!(lines, ["◄─────────────┼─────────────►", right, "◄       ┊     │     ┊"]);
    }

    #[test]
    fn intervals_of_meters_are_drawn_on_one_scale() {
        let scale = Scale { span: Span::new(88.0, 112.0), margin: None };
        let strips = [drawn(100.0, 88.0, 112.0), drawn(106.0, 100.0, 112.0)].map(|reading| interval(scale, reading));
        assert_eq!(strips, ["├────────●────────┤", "         ├────●───┤"]);
        assert_eq!(head(scale), "");
    }

    #[test]
    fn ends_that_would_touch_are_left_out() {
        assert_eq!(head(changes(-0.03, 0.9)), "-3 %                    +90 %");
    }

    #[test]
    fn unknown_values_are_not_drawn() {
        assert_eq!(draw(Draw::Interval(changes(-0.1, 0.1)), Raw::None).as_deref(), Some(""));
        assert!(interval(changes(-0.1, 0.1), drawn(1e300, -1e300, f64::NAN)).contains('►'));
    }

    #[test]
    fn diverging_bars_leave_the_middle_to_the_side_of_their_sign() {
        assert_eq!(diverging(1.0), format!("{}│{}", " ".repeat(SIDE), "█".repeat(SIDE)));
        assert_eq!(diverging(-0.5), format!("{}{}│", " ".repeat(6), "█".repeat(6)));
        assert_eq!(diverging(-0.125), format!("{}▐█│", " ".repeat(10)));
        assert_eq!(diverging(f64::NAN), format!("{}│", " ".repeat(SIDE)));
        assert_eq!(diverging(-9.0), format!("{}│", "█".repeat(SIDE)));
    }

    #[test]
    fn bars_are_as_long_as_the_part() {
        assert_eq!(bar(1.0), "█".repeat(BAR));
        assert_eq!(bar(0.5 / BAR as f64), "▌");
        assert_eq!(bar(-1.0), "");
        assert_eq!(bar(f64::NAN), "");
    }
}
