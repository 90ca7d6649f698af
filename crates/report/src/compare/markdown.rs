//! A comparison as GitHub's Markdown: for a pull request or an issue.
//!
//! Text from outside cannot make markup: what would is escaped, and names of options stand in code spans.

use super::answer::{answer, outcome};
use super::changes::{Changes, Mark, tables};
use super::section::{Body, Fact, Grid, Section, sections};
use super::{contents, environment, notes, words};
use crate::page::command;
use model::comparison::CompareFinding;
use model::stats::Verdict;

/// The text.
pub fn markdown(finding: &CompareFinding) -> String {
    let metrics = contents::targets(finding);
    let mut parts = vec![head(finding), arms(finding)];
    for arm in contents::candidates(finding) {
        parts.extend(tables(finding, arm, &metrics).iter().map(|table| changes(finding, table)));
        let notes = notes::notes(finding, arm, &metrics);
        parts.push(list(notes.iter().map(|note| prose(&note.text))));
    }
    parts.extend(sections(finding).iter().map(section));
    let warnings = finding.warnings.iter().map(|warning| prose(&warning.message));
    let warnings = list(warnings);
    if !warnings.is_empty() {
        parts.push(format!("### To be careful with\n\n{warnings}"));
    }
    let facts = [environment::environment(finding), environment::method(finding)].concat();
    parts.push(format!("### How it was measured\n\n{}", self::facts(&facts)));
    if !finding.command_line.is_empty() {
        parts.push(block(&command(&finding.command_line)));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn head(finding: &CompareFinding) -> String {
    let outcome = outcome(&finding.outcome).map(|(_, text)| text);
    let answer = answer(finding).into_iter().map(|sentence| sentence.whole());
    let lines = outcome.into_iter().chain(answer).map(|text| format!("**{}**", prose(&text)));
    // Two blanks would break the line too, but editors take them away.
    lines.collect::<Vec<_>>().join("\\\n")
}

fn arms(finding: &CompareFinding) -> String {
    list(finding.arms.iter().map(|arm| format!("{}: {}", code(&arm.name), code(&arm.what))))
}

fn list(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}

fn facts(facts: &[Fact]) -> String {
    list(facts.iter().map(|fact| format!("{}: {}", prose(&fact.label), prose(&fact.text))))
}

fn changes(finding: &CompareFinding, table: &Changes) -> String {
    let mut heads: Vec<(String, bool)> = table.heads.iter().map(|head| (prose(head), false)).collect();
    heads.extend(table.arms.iter().map(|arm| (prose(arm), true)));
    heads.extend([("change", true), ("95 %", false), ("verdict", false)].map(|(head, right)| (head.to_owned(), right)));
    let rows = table.lines.iter().map(|line| {
        let mut fields: Vec<String> = line.labels.iter().map(|label| prose(label)).collect();
        fields.extend([line.baseline.clone(), line.candidate.clone(), line.change.percent(), line.change.interval()]);
        fields.push(match line.mark {
            Mark::Verdict(verdict @ (Verdict::NoDifference | Verdict::Inconclusive)) => {
                words::verdict(verdict).to_owned()
            }
            Mark::Verdict(verdict) => format!("**{}**", words::verdict(verdict)),
            Mark::Typical => "shape changed".to_owned(),
        });
        fields
    });
    let several = contents::candidates(finding).len() > 1;
    let arm = table.arms.last().filter(|_| several).map_or("", String::as_str);
    let metric = table.metric.map_or("", |metric| words::of(metric).noun);
    let title = prose(&[arm, metric].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "));
    let title = if title.is_empty() { title } else { format!("### {title}\n\n") };
    title + &pipes(&heads, rows)
}

fn section(section: &Section) -> String {
    let body = match &section.body {
        Body::Grid(grid) => self::grid(grid),
        Body::Facts(facts) => self::facts(facts),
    };
    let notes: String = section.notes.iter().map(|note| format!("\n\n{}", prose(note))).collect();
    format!("### {}\n\n{body}{notes}", section.title)
}

fn grid(grid: &Grid) -> String {
    let heads: Vec<_> = grid.heads.iter().map(|head| (prose(&head.text), head.is_number)).collect();
    pipes(&heads, grid.rows.iter().map(|row| row.iter().map(|field| prose(&field.text)).collect()))
}

/// A table of fields that are escaped already; a head says whether its column stands on the right.
fn pipes(heads: &[(String, bool)], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |fields: Vec<&str>| format!("| {} |", fields.join(" | "));
    let mut lines = vec![line(heads.iter().map(|(head, _)| head.as_str()).collect())];
    lines.push(line(heads.iter().map(|(_, right)| if *right { "--:" } else { ":--" }).collect()));
    lines.extend(rows.map(|row| line(row.iter().map(String::as_str).collect())));
    lines.join("\n")
}

/// `text` on one line, without control characters and without the blanks that keep a number and its unit together.
fn flat(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() || letter == '\u{a0}' { ' ' } else { letter }).collect()
}

/// Text in which nothing is markup.
fn prose(text: &str) -> String {
    let letters: Vec<char> = flat(text).trim().chars().collect();
    let at = |index: usize| letters.get(index).copied().unwrap_or(' ');
    let mut escaped = String::new();
    for (index, letter) in letters.iter().copied().enumerate() {
        let before = if index == 0 { ' ' } else { at(index - 1) };
        let is_markup = match letter {
            '\\' | '`' | '*' | '<' | '>' | '|' | '~' | '&' | '!' => true,
            // Within a word it is a letter like any other: cycles_per_io stays readable.
            '_' => !(before.is_alphanumeric() && at(index + 1).is_alphanumeric()),
            // Only a link goes on like this; an interval in brackets does not.
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

/// A code span that holds `text`, whatever backquotes are in it.
fn code(text: &str) -> String {
    let text = flat(text).replace('|', "\\|");
    let fence = "`".repeat(longest_run(&text) + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.trim().is_empty() { String::new() } else { format!("{fence}{blank}{text}{blank}{fence}") }
}

/// A block of code.
fn block(text: &str) -> String {
    let text = flat(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}sh\n{text}\n{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture;
    use proptest::prelude::*;

    #[test]
    fn comparisons_as_they_are_posted() {
        insta::assert_snapshot!("options", markdown(&fixture::options()));
        insta::assert_snapshot!("sweep", markdown(&fixture::sweep()));
        insta::assert_snapshot!("stored", markdown(&fixture::stored()));
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

    /// A page without its code: what stands in blocks and spans is shown as it is.
    fn without_code(page: &str) -> String {
        let mut bare = String::new();
        let mut block: Option<&str> = None;
        for line in page.lines() {
            let fence = line.get(..line.len() - line.trim_start_matches('`').len()).filter(|fence| fence.len() >= 3);
            match (block, fence) {
                (Some(open), Some(fence)) if open == fence && line == fence => block = None,
                (Some(_), _) => {}
                (None, Some(fence)) if line == format!("{fence}sh") => block = Some(fence),
                (None, _) => bare += &(without_spans(line) + "\n"),
            }
        }
        assert_eq!(block, None, "a block is never closed: {page}");
        bare
    }

    /// A line without its code spans: each ends at the next run of as many backquotes as it began with.
    fn without_spans(line: &str) -> String {
        let mut bare = String::new();
        let mut rest = line;
        while let Some(place) = rest.find(['`', '\\']) {
            let (before, from) = rest.split_at(place);
            bare += before;
            let run = from.len() - from.trim_start_matches('`').len();
            if run == 0 {
                // Escaped: the backslash and what follows it are text.
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
    fn code_is_told_from_prose() {
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
            // What may follow it in a tag; a number below 0.1 is none.
            let opens = |after: &str| after.starts_with(|next: char| next.is_ascii_alphabetic() || "/!?".contains(next));
            prop_assert!(!bare.split('<').skip(1).any(opens), "{}", prose);
            prop_assert_eq!(lines(&format!("a{text}")), lines("a"));
        }
    }
}
