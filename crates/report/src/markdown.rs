//! A document as GitHub-flavoured Markdown, for a pull request or an issue.
//!
//! Text from outside cannot create markup: markup characters are escaped, and option names are in code spans. Not every
//! program that shows Markdown honours code, so a text with a tag is escaped in code, too: no `<` that could open a tag
//! leaves this file but those of our own `<code>` and `<pre>`.

use crate::document::{
    Align, Audience, Block, Body, Cell, Column, Document, Draw, Fact, Figure, Row, Section, Table, Tone, language,
};
use crate::html::escape;
use crate::mail;
use crate::shell::is_hidden;
use crate::text::Page;
use crate::text::sketch::sketch;
use model::origin::Input;

const READER: Audience = Audience::POST;

pub fn markdown(document: &Document) -> String {
    let subjects = document.subjects.iter().map(|fact| format!("{}: {}", code(&fact.label), code(&fact.text)));
    let workload = document.workload_for(READER).map(|fact| format!("{}: {}", prose(&fact.label), code(&fact.text)));
    let mut parts = vec![headline(document), prose(&document.lead), list(workload.chain(subjects))];
    let caveats = list(document.gravest_first().into_iter().map(|caveat| prose(&caveat.message)));
    parts.push(titled("Caveats", caveats));
    parts.extend(document.sections.iter().flat_map(section));
    parts.push(titled("How it was measured", facts(document.provenance_for(READER))));
    if !document.command.is_empty() {
        parts.push(block_of_code("sh", &document.command.line()));
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
        Body::Timeline(timeline) => block_of_code("", &sketch(Page::mail(mail::COLUMNS), timeline)),
        Body::FlameGraph(_) => String::new(),
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

/// `text` on one line, without control characters, no-break spaces and letters that change the direction of a line.
fn flat(text: &str) -> String {
    let blank = |letter: char| letter.is_control() || is_hidden(letter) || letter == '\u{a0}';
    text.chars().map(|letter| if blank(letter) { ' ' } else { letter }).collect()
}

/// Whether something in `text` could be read as a tag, a comment or a declaration of HTML.
fn has_tag(text: &str) -> bool {
    text.split('<').skip(1).any(opens_tag)
}

/// Whether a `<` before `after` could open a tag.
pub fn opens_tag(after: &str) -> bool {
    after.starts_with(|next: char| next.is_ascii_alphabetic() || "/!?".contains(next))
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

/// A code span with `text`, which may contain backquotes. It is not for tables, where a pipe would end it.
fn code(text: &str) -> String {
    let text = flat(text);
    if text.trim().is_empty() {
        return String::new();
    }
    if has_tag(&text) {
        return format!("<code>{}</code>", prose(&text));
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// A block of code in a language.
fn block_of_code(language: &str, text: &str) -> String {
    // A tab is a part of a file, and no program takes it for a command.
    let lines = text.lines().map(|line| line.split('\t').map(flat).collect::<Vec<_>>().join("\t"));
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        return text;
    }
    if has_tag(&text) {
        let lines: Vec<String> = text.lines().map(escape).collect();
        return format!("<pre>\n{}\n</pre>", lines.join("\n"));
    }
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// A file that the command refers to.
fn file(input: &Input) -> String {
    let name = code(&input.name);
    match &input.text {
        Some(text) if text.trim().is_empty() => format!("{name}: empty"),
        Some(text) => format!("{name}:\n\n{}", block_of_code(language(&input.name), text)),
        None => format!("{name}: too long to be kept"),
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(code("a | b"), "`a | b`", "no code is in a table");
        assert_eq!(code("\n"), "");
    }

    #[test]
    fn a_tag_is_escaped_in_code_too() {
        assert_eq!(code("<img src=x onerror=y>"), r"<code>\<img src=x onerror=y\></code>");
        assert_eq!(code(r"`\<b>`"), r"<code>\`\\\<b\>\`</code>");
        assert_eq!(code("a < b <3"), "`a < b <3`", "these are no tags");
        assert_eq!(block_of_code("sh", "cat </etc/x"), "<pre>\ncat &lt;/etc/x\n</pre>");
        assert_eq!(block_of_code("ini", "[a]\n\tbs=4k"), "```ini\n[a]\n\tbs=4k\n```");
    }
}
