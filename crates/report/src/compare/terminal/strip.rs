//! Intervals drawn in characters on one scale: `├──●──┤`, with 0 and the margin.

use crate::compare::change::{Change, bare};
use crate::compare::span::Span;

/// Columns of a drawing.
const COLUMNS: usize = 29;

/// The scale of a table's drawings.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    span: Span,
    margin: f64,
}

impl Scale {
    /// A scale from `low` to `high`, which are finite and rise.
    pub fn new((low, high): (f64, f64), margin: f64) -> Self {
        Self { span: Span::new(low, high), margin }
    }

    /// The ends of the scale and its 0.
    pub fn head(&self) -> String {
        let mut head = vec![' '; COLUMNS];
        let texts = [
            (0, format!("-{}", bare(-self.span.low))),
            (self.column(0.0), "0".to_owned()),
            (COLUMNS, format!("+{}", bare(self.span.high))),
        ];
        for (place, text) in texts {
            let length = text.chars().count();
            let start = place.min(COLUMNS.saturating_sub(length));
            // What would touch its neighbour is left out.
            let around = start.saturating_sub(1)..start.saturating_add(length + 1).min(COLUMNS);
            if head.get(around).is_some_and(|letters| letters.iter().all(|letter| *letter == ' ')) {
                head.iter_mut().skip(start).zip(text.chars()).for_each(|(old, new)| *old = new);
            }
        }
        head.into_iter().collect::<String>().trim_end().to_owned()
    }

    /// The interval of a change.
    pub fn draw(&self, change: Change) -> String {
        let Some(value) = change.value else { return String::new() };
        let middle = self.column(value);
        let (low, high) = change.ends().map_or((middle, middle), |(low, high)| (self.column(low), self.column(high)));
        let margin = [self.column(-self.margin), self.column(self.margin)];
        let zero = self.column(0.0);
        let letter = |column: usize| match column {
            _ if column == middle => '●',
            _ if column == low => '├',
            _ if column == high => '┤',
            _ if column == zero && low < column && column < high => '┼',
            _ if low < column && column < high => '─',
            _ if column == zero => '│',
            _ if margin.contains(&column) => '┊',
            _ => ' ',
        };
        (0..COLUMNS).map(letter).collect::<String>().trim_end().to_owned()
    }

    fn column(&self, change: f64) -> usize {
        (self.span.fraction(change) * (COLUMNS - 1) as f64).round() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(value: f64, low: f64, high: f64) -> Change {
        Change { value: Some(value), low: Some(low), high: Some(high) }
    }

    #[test]
    fn intervals_stand_beside_zero_and_the_margin() {
        let scale = Scale::new((-0.07, 0.07), 0.03);
        let lines = [change(0.031, 0.026, 0.037), change(0.0, -0.05, 0.05), change(-0.06, -0.07, -0.05)];
        let lines = lines.map(|change| scale.draw(change));
        assert_eq!(scale.head(), "-7 %          0          +7 %");
        assert_eq!(
            lines,
            ["        ┊     │    ├●┤", "    ├─────────●─────────┤    ", "├─●─┤   ┊     │     ┊"].map(str::trim_end)
        );
    }

    #[test]
    fn ends_that_would_touch_are_left_out() {
        assert_eq!(Scale::new((-0.03, 0.9), 0.03).head(), "-3 %                    +90 %");
    }

    #[test]
    fn nothing_is_drawn_of_what_is_not_known() {
        let scale = Scale::new((-0.1, 0.1), 0.03);
        assert_eq!(scale.draw(Change::default()), "");
        assert!(scale.draw(change(1e300, -1e300, f64::NAN)).contains('●'));
    }
}
