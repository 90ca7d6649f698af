//! fio's job files: lines of `[section]`, `name=value` and bare names, with `;` and `#` comments.

use super::{Assignment, Kind, Refusal, Section, Subject};
use crate::plan::draft::Origin;
use crate::plan::value::Wrong;

/// Keywords that fio replaces with a property of the machine. They are refused because a plan must mean the same on
/// every machine.
const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// Splits a file into its sections.
pub(super) fn sections(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Section>, Refusal> {
    let mut sections: Vec<Section> = Vec::new();
    for (line, text) in (1..).zip(without_mark(text).lines()) {
        let (text, origin) = (without_comment(text), Origin::Line(line));
        if text.is_empty() {
            continue;
        }
        if let Some(header) = text.strip_prefix('[') {
            sections.push(Section::new(kind(header, origin)?, origin));
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
    section(origin, "job1", "missing; a file needs at least one job")
}

/// Removes the byte order mark that Windows editors put at the start of a file.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

/// Parses a section header after its `[`.
fn kind(header: &str, origin: Origin) -> Result<Kind, Refusal> {
    match header.strip_suffix(']').map(str::trim) {
        None => Err(section(origin, header, "does not end its line with ']'")),
        Some("") => Err(section(origin, "", "has no name")),
        Some(name) => Ok(Kind::of(name)),
    }
}

fn assignment(text: &str, origin: Origin, environment: &dyn Fn(&str) -> Option<String>) -> Result<Assignment, Refusal> {
    let name = text.split(|character: char| character == '=' || character.is_whitespace()).next().unwrap_or_default();
    if name == "include" {
        return Err(refuse(name, origin, "not supported; copy the lines of that file here"));
    }
    if let Some(keyword) = KEYWORDS.into_iter().find(|keyword| text.contains(keyword)) {
        return Err(refuse(name, origin, format!("the keyword {keyword} is not supported; use a number")));
    }
    let text = substitute(text, environment).map_err(|reason| refuse(name, origin, reason))?;
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

fn section(origin: Origin, name: &str, reason: &str) -> Refusal {
    Refusal { origin, subject: Subject::Section(name.to_owned()), wrong: Wrong::new(reason) }
}
