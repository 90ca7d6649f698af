//! fio's job files: lines of `[section]`, `name=value` and bare names, with `;` and `#` comments.

use super::{Assignment, Kind, Refusal, Section, Subject, keywords};
use crate::plan::draft::Origin;
use crate::plan::value::{Quoted, Wrong};

/// Splits a file into its sections.
pub(super) fn sections(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Section>, Refusal> {
    let mut sections: Vec<Section> = Vec::new();
    for (line, line_text) in (1..).zip(without_mark(text).lines()) {
        let (text, origin) = (without_comment(line_text), Origin::Line(line));
        if text.is_empty() {
            continue;
        }
        if text.starts_with('[') {
            sections.push(section(line_text, text, origin)?);
            continue;
        }
        let assignment = assignment(text, origin, environment)?;
        match sections.last_mut() {
            Some(section) => section.assignments.push(assignment),
            None => {
                return Err(refuse(&assignment.name, origin, "is before the first section, such as [job1]"));
            }
        }
    }
    Ok(sections)
}

/// The error for a file without a job, at its last line.
pub(super) fn no_job(text: &str) -> Refusal {
    let origin = Origin::Line(text.lines().count().max(1));
    refuse_section(origin, "job1", "missing; a file needs at least one job")
}

/// Removes the byte order mark that Windows editors put at the start of a file.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

/// Parses a section header. As in fio, blanks belong to the name. A name may also contain the signs of comments, which
/// fio cuts off together with the sign before them; that is a caveat of the section.
fn section(line: &str, without_comment: &str, origin: Origin) -> Result<Section, Refusal> {
    let inside = |text: &str| text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).map(str::to_owned);
    let whole = line.trim();
    let name = inside(without_comment).or_else(|| inside(whole));
    let Some(name) = name else {
        let name = without_comment.strip_prefix('[').unwrap_or_default();
        let wrong = "does not end its line with ']', with or without a comment behind it";
        return Err(refuse_section(origin, name, wrong));
    };
    if name.trim().is_empty() {
        return Err(refuse_section(origin, &name, "has no name"));
    }
    let mut section = Section::new(Kind::of(&name), origin);
    if inside(without_comment).is_none() {
        let cut = without_comment.strip_prefix('[').unwrap_or_default();
        let cut = cut.get(..cut.char_indices().next_back().map_or(0, |(at, _)| at)).unwrap_or_default();
        section.caveat = Some(format!(
            "job {}: fio takes the rest of the section's name for a comment and calls the job {}",
            Quoted(&name),
            Quoted(cut)
        ));
    }
    Ok(section)
}

fn assignment(text: &str, origin: Origin, environment: &dyn Fn(&str) -> Option<String>) -> Result<Assignment, Refusal> {
    let name = text.split(|character: char| character == '=' || character.is_whitespace()).next().unwrap_or_default();
    if name == "include" {
        return Err(refuse(name, origin, "not supported; copy the lines of that file here"));
    }
    let refuse = |reason| refuse(name, origin, reason);
    let text = substitute(text, environment).map_err(refuse)?;
    let text = keywords::replace(&text, environment).map_err(refuse)?;
    Ok(Assignment::parse(&text, origin))
}

/// Replaces each `${NAME}`. Values from the environment are not expanded again.
fn substitute(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut pieces = text.split("${");
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once('}').ok_or("'${' has no '}'")?;
        let wrong = || Wrong::because(name, "is not set in the environment").reason;
        result.push_str(&environment(name).ok_or_else(wrong)?);
        result.push_str(rest);
    }
    Ok(result)
}

fn refuse(option: &str, origin: Origin, reason: impl Into<String>) -> Refusal {
    Refusal::option(option, origin, Wrong::new(reason))
}

fn refuse_section(origin: Origin, name: &str, reason: &str) -> Refusal {
    Refusal { origin, subject: Subject::Section(name.to_owned()), wrong: Wrong::new(reason) }
}
