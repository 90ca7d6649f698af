//! A document as GitHub-flavoured Markdown, for a pull request or an issue.
//!
//! Text from outside cannot create markup: markup characters are escaped, and option names are in code spans.

use crate::document::{
    Align, Audience, Block, Body, Cell, Column, Document, Draw, Fact, Figure, Row, Section, Table, Tone, language,
};
use crate::mail;
use crate::text::page::Page;
use crate::text::sketch::sketch;
use model::origin::Input;

/// Its readers.
const READER: Audience = Audience::POST;

/// Renders the text.
pub fn markdown(document: &Document) -> String {
    let subjects = document.subjects.iter().map(|fact| format!("{}: {}", code(&fact.label), code(&fact.text)));
    let workload = document.workload_for(READER).map(|fact| format!("{}: {}", prose(&fact.label), code(&fact.text)));
    let mut parts = vec![headline(document), prose(&document.lead), list(workload.chain(subjects))];
    parts.extend(document.sections.iter().flat_map(section));
    let caveats = list(document.caveats.iter().map(|caveat| prose(&caveat.message)));
    parts.push(titled("Caveats", caveats));
    parts.push(titled("How it was measured", facts(document.provenance_for(READER))));
    if !document.command.is_empty() {
        parts.push(block_of_code(&document.command.line()));
    }
    parts.extend(document.command.inputs.iter().map(file));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

/// The answer, or the title if there is none.
fn headline(document: &Document) -> String {
    let outcome = document.outcome.iter().map(|note| note.text.clone());
    let title = document.headline.is_empty().then(|| document.title.clone());
    let answer = document.headline.iter().map(|sentence| sentence.whole());
    let lines = title.into_iter().chain(outcome).chain(answer).filter(|text| !text.trim().is_empty());
    let lines = lines.map(|text| format!("**{}**", prose(&text)));
    // Two trailing blanks would also break the line, but editors remove them.
    lines.collect::<Vec<_>>().join("\\\n")
}

fn list(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}

fn facts<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> String {
    let line = |fact: &Fact| {
        let mark = fact.letter().map(|mark| format!("{} ", prose(&mark.to_string()))).unwrap_or_default();
        format!("{mark}{}: {}", prose(&fact.label), prose(&fact.text))
    };
    list(facts.into_iter().map(line))
}

fn titled(title: &str, text: String) -> String {
    if title.trim().is_empty() || text.is_empty() { text } else { format!("### {}\n\n{text}", prose(title)) }
}

fn section(section: &Section) -> Vec<String> {
    let (title, blocks) = section.seen_by(READER);
    let mut parts: Vec<String> = blocks.into_iter().map(block).collect();
    if let Some(first) = parts.first_mut().filter(|_| !title.is_empty()) {
        *first = format!("## {}\n\n{first}", prose(title));
    }
    parts
}

fn block(block: &Block) -> String {
    let body = match &block.body {
        Body::Notes | Body::Charts(_) => String::new(),
        Body::Figures(lines) => figures(lines),
        Body::Facts(facts) => self::facts(facts),
        Body::Table(table) => self::table(table),
        Body::Timeline(timeline) => drawing(&sketch(Page::mail(mail::COLUMNS), timeline)),
    };
    let notes = list(block.notes.iter().map(|note| prose(&note.text)));
    let mut parts = vec![body, notes];
    parts.retain(|part| !part.is_empty());
    titled(&block.title, parts.join("\n\n"))
}

fn figures(lines: &[Vec<Figure>]) -> String {
    let figure = |figure: &Figure| {
        let interval = figure.interval.as_ref().map(|interval| format!(" {}", prose(interval))).unwrap_or_default();
        prose(&figure.value) + &interval
    };
    list(lines.iter().map(|line| line.iter().map(figure).collect::<Vec<_>>().join(", ")))
}

fn table(table: &Table) -> String {
    let shown = |column: &&Column| !column.is_drawn();
    let heads = table.columns.iter().filter(shown).map(|column| (prose(&column.head), column.align == Align::Right));
    let heads: Vec<(String, bool)> = heads.collect();
    let row = |row: &Row| match row {
        Row::Cells(_, cells) => {
            let cells = cells.iter().zip(&table.columns).filter(|(_, column)| shown(column));
            cells.map(|(cell, column)| self::cell(cell, column)).collect()
        }
        Row::Note(label, text) => {
            let rest = heads.iter().skip(2).map(|_| String::new());
            [prose(&label.text), prose(text)].into_iter().chain(rest).take(heads.len()).collect()
        }
    };
    pipes(&heads, table.rows.iter().map(row))
}

/// A verdict "better" or "worse" is bold.
fn cell(cell: &Cell, column: &Column) -> String {
    let text = prose(&cell.text);
    let stands_out = column.draw == Draw::Verdict && matches!(cell.tone, Tone::Own | Tone::Bad);
    if stands_out && !text.is_empty() { format!("**{text}**") } else { text }
}

/// A table of escaped fields. The flag of a header says whether its column is right-aligned.
fn pipes(heads: &[(String, bool)], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |fields: Vec<&str>| format!("| {} |", fields.join(" | "));
    let mut lines = vec![line(heads.iter().map(|(head, _)| head.as_str()).collect())];
    lines.push(line(heads.iter().map(|(_, right)| if *right { "--:" } else { ":--" }).collect()));
    lines.extend(rows.map(|row| line(row.iter().map(String::as_str).collect())));
    lines.join("\n")
}

/// `text` on one line, without control characters and no-break spaces.
fn flat(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() || letter == '\u{a0}' { ' ' } else { letter }).collect()
}

/// Text without markup.
fn prose(text: &str) -> String {
    let letters: Vec<char> = flat(text).trim().chars().collect();
    let at = |index: usize| letters.get(index).copied().unwrap_or(' ');
    let mut escaped = String::new();
    for (index, letter) in letters.iter().copied().enumerate() {
        let before = if index == 0 { ' ' } else { at(index - 1) };
        let is_markup = match letter {
            '\\' | '`' | '*' | '<' | '>' | '|' | '~' | '&' | '!' => true,
            // Within a word, an underscore is not markup, so cycles_per_io stays readable.
            '_' => !(before.is_alphanumeric() && at(index + 1).is_alphanumeric()),
            // Only a link continues like this; an interval in brackets does not.
            ']' => ['(', '[', ':'].contains(&at(index + 1)),
            '#' | '+' | '-' | '=' => index == 0 && at(1) == ' ',
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// A code span with `text`, which may contain backquotes.
fn code(text: &str) -> String {
    let text = flat(text).replace('|', "\\|");
    let fence = "`".repeat(longest_run(&text) + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.trim().is_empty() { String::new() } else { format!("{fence}{blank}{text}{blank}{fence}") }
}

/// A block of code.
fn block_of_code(text: &str) -> String {
    let text = flat(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}sh\n{text}\n{fence}")
}

/// A file that the command refers to.
fn file(input: &Input) -> String {
    let name = code(&input.name);
    let Some(text) = &input.text else { return format!("{name}: too long to be kept") };
    let shown = |letter: char| if letter.is_control() && letter != '\t' { ' ' } else { letter };
    let text = text.lines().map(|line| line.chars().map(shown).collect::<String>()).collect::<Vec<_>>().join("\n");
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{name}:\n\n{fence}{}\n{text}\n{fence}", language(&input.name))
}

/// A drawing of several lines in characters, without control characters.
fn drawing(text: &str) -> String {
    let text = text.lines().map(flat).collect::<Vec<_>>().join("\n");
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    if text.is_empty() { text } else { format!("{fence}\n{text}\n{fence}") }
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{self, fixture};
    use model::comparison::CompareFinding;
    use proptest::prelude::*;

    fn markdown(finding: &CompareFinding) -> String {
        super::markdown(&compare::document(finding))
    }

    #[test]
    fn comparisons_as_they_are_posted() {
        insta::assert_snapshot!("options", markdown(&fixture::options()));
        insta::assert_snapshot!("sweep", markdown(&fixture::sweep()));
        insta::assert_snapshot!("stored", markdown(&fixture::stored()));
        insta::assert_snapshot!("run", super::markdown(&crate::cost::document(&crate::cost::fixture::udp_like())));
    }

    #[test]
    fn markup_is_escaped_and_words_stay_readable() {
        assert_eq!(prose("cycles_per_io > +3%"), r"cycles_per_io \> +3%");
        assert_eq!(prose("+3.1 % [2.6, 3.7]"), "+3.1 % [2.6, 3.7]");
        assert_eq!(prose("[x](y) *b* _i_ <b> a|b"), r"[x\](y) \*b\* \_i\_ \<b\> a\|b");
        assert_eq!(prose("# title\u{1b}[31m"), r"\# title [31m");
    }

    #[test]
    fn code_spans_hold_backquotes_and_pipes() {
        assert_eq!(code("bs=4k"), "`bs=4k`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a | b"), r"`a \| b`");
        assert_eq!(code("\n"), "");
    }

    #[test]
    fn every_row_has_the_fields_of_its_head() {
        for (name, finding) in fixture::all() {
            let text = markdown(&finding);
            let mut fields = 0;
            for line in text.lines() {
                let found = if line.starts_with("| ") { line.replace(r"\|", "").matches('|').count() } else { 0 };
                assert!(fields == 0 || found == 0 || fields == found, "{name}: {line}");
                fields = found;
            }
        }
    }

    /// A page without its code blocks and spans, whose contents are shown as they are.
    fn without_code(page: &str) -> String {
        let mut bare = String::new();
        let mut block: Option<&str> = None;
        for line in page.lines() {
            let fence = line.get(..line.len() - line.trim_start_matches('`').len()).filter(|fence| fence.len() >= 3);
            match (block, fence) {
                (Some(open), Some(fence)) if open == fence && line == fence => block = None,
                (Some(_), _) => {}
                (None, Some(fence)) if ["sh", "toml", "ini", "text"].contains(&&line[fence.len()..]) => {
                    block = Some(fence)
                }
                (None, _) => bare += &(without_spans(line) + "\n"),
            }
        }
        assert_eq!(block, None, "a block is never closed: {page}");
        bare
    }

    /// A line without its code spans: each ends at the next run of the same number of backquotes.
    fn without_spans(line: &str) -> String {
        let mut bare = String::new();
        let mut rest = line;
        while let Some(place) = rest.find(['`', '\\']) {
            let (before, from) = rest.split_at(place);
            bare += before;
            let run = from.len() - from.trim_start_matches('`').len();
            if run == 0 {
                // Escaped: the backslash and the next character are text.
                let next = from.char_indices().nth(2).map_or(from.len(), |(next, _)| next);
                bare += &from[..next];
                rest = &from[next..];
                continue;
            }
            let (fence, inside) = from.split_at(run);
            let runs = inside.match_indices('`').map(|(at, _)| at).filter(|at| !inside[..*at].ends_with('`'));
            let end = runs.into_iter().find(|at| {
                let after = &inside[*at..];
                after.len() - after.trim_start_matches('`').len() == run
            });
            match end {
                Some(end) => rest = &inside[end + run..],
                None => {
                    bare += fence;
                    rest = inside;
                }
            }
        }
        bare + rest
    }

    #[test]
    fn code_is_separated_from_prose() {
        assert_eq!(without_code("a `<b>` c\n```sh\n<b>\n```\nd"), "a  c\nd\n");
        assert_eq!(without_code("``a`<b>`` <i> `"), " <i> `\n");
        assert_eq!(without_code(r"\`<b>`"), "\\`<b>`\n");
    }

    proptest! {
        #[test]
        fn hostile_names_make_no_lines_and_no_tags(number in any::<f64>(), text in any::<String>()) {
            let lines = |text: &str| markdown(&fixture::hostile(number, text)).lines().count();
            let page = markdown(&fixture::hostile(number, &format!("<b>{text}")));
            prop_assert!(page.contains("<b>"), "in code it stays as it is");
            let prose = without_code(&page);
            let bare = prose.replace(r"\\", "").replace(r"\<", "");
            // Characters that may follow in a tag. A number below 0.1 is not a tag.
            let opens = |after: &str| after.starts_with(|next: char| next.is_ascii_alphabetic() || "/!?".contains(next));
            prop_assert!(!bare.split('<').skip(1).any(opens), "{}", prose);
            prop_assert_eq!(lines(&format!("a{text}")), lines("a"));
        }
    }
}
