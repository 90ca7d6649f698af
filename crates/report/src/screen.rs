//! Draws terminal text with its colours as an SVG image of a terminal window. The input is the output of
//! [`crate::Format::Table`] with [`crate::Ink::Colour`].
//!
//! Each run of text in one colour has its own position and length, so that columns are aligned in any monospaced font.

use crate::text::page::width;

/// Pixels of a column and of a line. Monospaced fonts are about 0.6 of their size wide.
const COLUMN: f64 = 8.4;
const LINE: f64 = 19.0;
const FONT_SIZE: f64 = 14.0;
const MARGIN: f64 = 20.0;
/// Height of the title bar.
const BAR: f64 = 36.0;
const FONTS: &str = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace";

/// Colours on a dark window. Each has a contrast of at least 4.5 to it (WCAG 2.1, 1.4.3).
const STYLE: &str = "\
text { fill: #d4d7dd; white-space: pre }
.b { fill: #ffffff; font-weight: bold }
.d { fill: #8f96a3 }
.g { fill: #7ec98f }
.y { fill: #e5c07b }
.r { fill: #f0787f }
";

/// A window of `columns` that shows `command` and its output `text`.
pub fn svg(command: &str, text: &str, columns: usize) -> String {
    let prompt = prompt(command, columns);
    let lines: Vec<&str> =
        prompt.iter().map(String::as_str).chain(std::iter::once("")).chain(text.trim_end().lines()).collect();
    let (across, down) = (2.0 * MARGIN + columns as f64 * COLUMN, BAR + MARGIN + lines.len() as f64 * LINE);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {across:.0} {down:.0}\" width=\"{across:.0}\" \
         height=\"{down:.0}\" font-family=\"{FONTS}\" font-size=\"{FONT_SIZE}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"9\" fill=\"#1b1e25\" stroke=\"#4a505c\"/>\n",
        escaped(command),
        across - 1.0,
        down - 1.0,
    );
    for (place, colour) in [(0.0, "#ed6a5e"), (1.0, "#f5bf4f"), (2.0, "#61c554")] {
        svg += &format!("<circle cx=\"{:.0}\" cy=\"20\" r=\"6\" fill=\"{colour}\"/>\n", MARGIN + 4.0 + place * 20.0);
    }
    for (number, line) in lines.iter().enumerate() {
        let baseline = BAR + FONT_SIZE + number as f64 * LINE;
        for run in runs(line) {
            svg += &run.text(baseline);
        }
    }
    svg + "</svg>\n"
}

/// The command after a prompt, wrapped with backslashes. An option and its value stay on one line.
fn prompt(command: &str, columns: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in command.split(' ') {
        match parts.last_mut() {
            Some(option) if option.starts_with("--") && !option.contains(['=', ' ']) && !word.starts_with('-') => {
                option.push(' ');
                option.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
    }
    let mut lines = vec!["\u{1b}[32m$\u{1b}[0m\u{1b}[1m".to_owned()];
    let mut used = 1;
    for part in parts {
        // Leaves room for a backslash.
        if used + 1 + width(&part) + 2 > columns
            && let Some(line) = lines.last_mut()
        {
            line.push_str(" \\\u{1b}[0m");
            lines.push("\u{1b}[1m   ".to_owned());
            used = 3;
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(&part);
            used += 1 + width(&part);
        }
    }
    if let Some(line) = lines.last_mut() {
        line.push_str("\u{1b}[0m");
    }
    lines
}

/// Text in one colour.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    column: usize,
    class: &'static str,
    letters: String,
}

impl Run {
    fn text(&self, baseline: f64) -> String {
        let letters = self.letters.trim_end();
        let bare = letters.trim_start();
        if bare.is_empty() {
            return String::new();
        }
        let column = self.column + width(letters) - width(bare);
        let class = if self.class.is_empty() { String::new() } else { format!(" class=\"{}\"", self.class) };
        let (place, length) = (MARGIN + column as f64 * COLUMN, width(bare) as f64 * COLUMN);
        format!(
            "<text x=\"{place:.1}\" y=\"{baseline:.0}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\"{class} xml:space=\"preserve\">{}</text>\n",
            escaped(bare)
        )
    }
}

/// Splits a line where its colour changes. Escape sequences that [`crate::ink`] does not write are dropped.
fn runs(line: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let (mut column, mut class) = (0, "");
    let mut parts = line.split("\u{1b}[");
    let mut add = |letters: &str, class: &'static str| {
        if !letters.is_empty() {
            runs.push(Run { column, class, letters: letters.to_owned() });
            column += width(letters);
        }
    };
    add(parts.next().unwrap_or_default(), class);
    for part in parts {
        let (rendition, letters) = part.split_once('m').unwrap_or(("", part));
        class = match rendition {
            "0" => "",
            "1" => "b",
            "2" => "d",
            "31" => "r",
            "32" => "g",
            "33" => "y",
            _ => class,
        };
        add(letters, class);
    }
    runs
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::fixture;
    use crate::document::Tone;
    use crate::{Format, Ink};

    #[test]
    fn colours_become_classes_and_columns_stay() {
        let run = |column, class, letters: &str| Run { column, class, letters: letters.to_owned() };
        let line = format!("  {} is {}", Ink::Colour.paint(Tone::Strong, "cost"), Ink::Colour.paint(Tone::Bad, "µ<"));
        assert_eq!(runs(&line), [run(0, "", "  "), run(2, "b", "cost"), run(6, "", " is "), run(10, "r", "µ<")]);
        let picture = svg("iotoll", &line, 40);
        assert!(picture.contains(">µ&lt;</text>") && picture.contains("x=\"104.0\""), "{picture}");
    }

    #[test]
    fn a_long_command_is_wrapped_between_options() {
        let plain = |command| -> Vec<String> {
            let lines = prompt(command, 30);
            lines.iter().map(|line| runs(line).iter().map(|run| run.letters.as_str()).collect()).collect()
        };
        let wrapped = plain("iotoll run --name=a --rw=randread --bs=4k");
        assert_eq!(wrapped, ["$ iotoll run --name=a \\", "    --rw=randread --bs=4k"]);
        assert_eq!(plain("iotoll compare --baseline bs=4k"), ["$ iotoll compare \\", "    --baseline bs=4k"]);
    }

    #[test]
    fn every_letter_of_a_report_is_in_its_picture() {
        for (name, finding) in fixture::all() {
            let text = |ink| Format::Table.render(&finding, ink, 100);
            let picture = svg("iotoll run", &text(Ink::Colour), 100);
            for word in text(Ink::Plain).split_whitespace() {
                assert!(picture.contains(&escaped(word)), "{name} {word}");
            }
            assert!(!picture.contains('\u{1b}'), "{name}");
        }
    }
}
