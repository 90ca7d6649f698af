//! A timeline with characters: in each column what a track did during a part of the time. The first track is high, the
//! other important ones are strips below it.
//!
//! Shades show the reach of a column: full up to its least value, half up to its mean, light up to its greatest. A mail
//! has other characters for the same.

use super::{Page, width};
use crate::document::{NOTHING, Reach, Timeline, Tone, Track};
use crate::number;

/// Lines of the first track, and of each other one.
const BLOCK: usize = 8;
const STRIP: usize = 2;
/// Most strips.
const STRIPS: usize = 5;
/// Columns of the numbers on the left.
const LEFT: usize = 10;
/// Most columns of a drawing: on a wider terminal it would be flat.
const WIDEST: usize = 160;

/// The characters of a page.
struct Letters {
    full: &'static str,
    half: &'static str,
    light: &'static str,
    foot: &'static str,
    side: &'static str,
    corner: &'static str,
}

const UNICODE: Letters = Letters { full: "█", half: "▒", light: "░", foot: "─", side: "┤", corner: "└" };
const ASCII: Letters = Letters { full: "#", half: ":", light: ".", foot: "-", side: "|", corner: "+" };

/// The drawing; empty if there is nothing to draw.
pub fn sketch(page: Page, timeline: &Timeline) -> String {
    let Some((first, others)) = timeline.tracks.split_first().filter(|_| !timeline.is_empty()) else {
        return String::new();
    };
    let letters = if page.can_draw() { &UNICODE } else { &ASCII };
    let indent = width(page.indent());
    let columns = page.columns().min(WIDEST).saturating_sub(indent + LEFT + 2);
    let drawing = Drawing { page, letters, timeline, columns };
    let mut lines = vec![drawing.title(first)];
    lines.extend(drawing.block(first, BLOCK));
    for track in others.iter().filter(|track| track.is_important).take(STRIPS) {
        lines.push(drawing.title(track));
        lines.extend(drawing.block(track, STRIP));
    }
    lines.push(drawing.foot());
    lines.extend(drawing.times());
    lines.push(drawing.legend());
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

struct Drawing<'a> {
    page: Page,
    letters: &'a Letters,
    timeline: &'a Timeline,
    columns: usize,
}

impl Drawing<'_> {
    /// The name of a track and its unit.
    fn title(&self, track: &Track) -> String {
        let text = self.timeline.name(track);
        let Self { page, .. } = self;
        let room = page.columns().saturating_sub(width(page.indent()));
        format!("{}{}", page.indent(), page.paint(Tone::Strong, &page.cut(&page.spell(&text), room)))
    }

    /// Lines with shades, from the top.
    fn block(&self, track: &Track, lines: usize) -> Vec<String> {
        let most = track.greatest();
        let height = |value: f64| (value / most * lines as f64).clamp(0.0, lines as f64);
        let heights = self.timeline.parts(track, self.columns);
        let Letters { full, half, light, .. } = *self.letters;
        let cell = |line: usize, reach: &Option<Reach>| {
            let (Some(Reach { least, mean, greatest }), middle) = (reach, line as f64 + 0.5) else { return " " };
            match () {
                () if height(*least) >= middle => full,
                () if height(*mean) >= middle => half,
                () if height(*greatest) >= middle || (line == 0 && *greatest > 0.0) => light,
                () => " ",
            }
        };
        let line = |line: usize| {
            let text: String = heights.iter().map(|reach| cell(line, reach)).collect();
            let number = if line + 1 == lines { self.level(track, 1.0) } else { String::new() };
            let number = if line + 1 == lines.div_ceil(2) { self.level(track, 0.5) } else { number };
            self.line(&number, &text)
        };
        (0..lines).rev().map(line).collect()
    }

    /// The number at a part of the height.
    fn level(&self, track: &Track, part: f64) -> String {
        if track.greatest() <= NOTHING {
            // Nothing happened: the track is 0 at any height.
            return if part < 1.0 { String::new() } else { "0".to_owned() };
        }
        let units = self.timeline.scales.get(track.scale).map_or(number::COUNT, |scale| scale.units);
        number::with_unit(units, track.greatest() * part)
    }

    fn line(&self, number: &str, drawn: &str) -> String {
        let Self { page, letters, .. } = self;
        let number = page.cut(&page.spell(number), LEFT - 1);
        let blanks = " ".repeat((LEFT - 1).saturating_sub(width(&number)));
        let number = page.paint(Tone::Faint, &format!("{blanks}{number} {}", letters.side));
        format!("{}{number}{}", page.indent(), drawn.trim_end())
    }

    fn foot(&self) -> String {
        let Letters { foot, corner, .. } = self.letters;
        let line = format!("{corner}{}", foot.repeat(self.columns));
        format!("{}{}{}", self.page.indent(), " ".repeat(LEFT), self.page.paint(Tone::Faint, &line))
    }

    /// The beginning, the middle and the end of the time.
    fn times(&self) -> Option<String> {
        let Self { timeline, columns, page, .. } = self;
        let text = |part: f64| {
            let seconds = timeline.began + part * (timeline.end() - timeline.began);
            page.spell(&if seconds.abs() < 1e-3 { "0 s".to_owned() } else { number::seconds(seconds) })
        };
        let (from, middle, to) = (text(0.0), text(0.5), text(1.0));
        let gap = columns.checked_sub(width(&from) + width(&middle) + width(&to) + 2)?;
        let left = (columns / 2).saturating_sub(width(&from) + width(&middle) / 2).min(gap);
        let line = format!("{from}{}{middle}{}{to}", " ".repeat(left + 1), " ".repeat(gap - left + 1));
        Some(format!("{}{}{}", page.indent(), " ".repeat(LEFT + 1), page.paint(Tone::Faint, &line)))
    }

    fn legend(&self) -> String {
        let Letters { full, half, light, .. } = self.letters;
        let column = number::seconds((self.timeline.end() - self.timeline.began) / self.columns.max(1) as f64);
        let text = format!("{full} least, {half} mean, {light} greatest of each column of {column}");
        self.page.wrap_toned(Tone::Faint, self.page.indent(), &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Hue, TimelineScale, Trace};
    use crate::number::COUNT;
    use crate::text::Ink;
    use crate::text::width;

    /// A worker that stands still in the second quarter, and a level that rises.
    fn timeline() -> Timeline {
        let track = |name: &str, trace, values| Track {
            name: name.to_owned(),
            hue: Hue::Red,
            trace,
            scale: 0,
            is_important: true,
            values,
        };
        let place = |number: u32| f64::from(number) / 1000.0;
        let amount = (0..1000).map(|number| if (250..500).contains(&number) { 0.0 } else { 8.0 });
        Timeline {
            began: 0.0,
            seconds: (1..=1000).map(place).collect(),
            scales: vec![TimelineScale { name: "steps per quantum".to_owned(), units: COUNT }],
            tracks: vec![
                track("worker", Trace::Dots, amount.collect()),
                track("dirty", Trace::Line, (1..=1000).map(place).collect()),
            ],
            marks: Vec::new(),
            marked: String::new(),
        }
    }

    #[test]
    fn a_track_that_is_always_0_has_a_0_beside_it() {
        let mut timeline = timeline();
        timeline.tracks.iter_mut().for_each(|track| track.values.fill(0.0));
        let text = sketch(Page::terminal(Ink::Plain, 60), &timeline);
        assert!(text.contains(" 0 ┤") && !text.contains('<'), "{text}");
    }

    #[test]
    fn a_standstill_is_a_gap_and_a_rise_a_slope() {
        let text = sketch(Page::terminal(Ink::Plain, 60), &timeline());
        let lines: Vec<&str> = text.lines().collect();
        // 46 columns: 11.5 of work, 11.5 without, 23 of work. Half of a column is its mean.
        assert_eq!(lines[1], format!("       8.00 ┤{}░{}{}", "█".repeat(11), " ".repeat(11), "█".repeat(23)), "{text}");
        assert_eq!(lines[5], format!("       4.00 ┤{}▒{}{}", "█".repeat(11), " ".repeat(11), "█".repeat(23)), "{text}");
        assert!(lines[10].ends_with('█') && lines[11].contains(" ┤░"), "{text}");
        assert!(lines.iter().any(|line| line.contains("0 s") && line.ends_with("1.00 s")), "{text}");
    }

    #[test]
    fn a_mail_has_the_same_in_ascii() {
        let text = sketch(Page::mail(72), &timeline());
        assert!(text.is_ascii() && text.contains("|######"), "{text}");
        assert!(text.lines().all(|line| width(line) <= 72 && !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn shades_are_the_reach_of_a_column() {
        let mut line = timeline();
        // In every column some readings are 2, some 8.
        line.tracks[0].values = (0..1000).map(|number| if number % 2 == 0 { 2.0 } else { 8.0 }).collect();
        let text = sketch(Page::terminal(Ink::Plain, 60), &line);
        let column: String = text.lines().skip(1).take(BLOCK).filter_map(|line| line.chars().nth(30)).collect();
        assert_eq!(column, "░░░▒▒▒██", "{text}");
    }
}
