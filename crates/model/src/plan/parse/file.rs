//! fio's job files: lines of `[section]`, `name=value` and bare names, with `;` and `#` comments.

use super::{Assignment, ParseError, Place, Section, Subject};
use crate::plan::value::{Quoted, Wrong};

/// The sections of a file, and what is wrong, in the order of the lines.
pub(super) fn read(
    file: &str,
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> (Vec<Section>, Vec<ParseError>) {
    let (mut sections, mut errors) = (Vec::<Section>::new(), Vec::new());
    // Windows editors put a byte order mark at the start of a file.
    for (line, whole) in (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).lines()) {
        let (text, place) = (without_comment(whole), Place::Line { file: file.to_owned(), line });
        if text.is_empty() {
            continue;
        }
        let outcome = if text.starts_with('[') {
            let section = section(whole, text, &place);
            // What follows belongs to a section, whatever its name is.
            let (section, outcome) =
                section.map_or_else(|error| (Section::new("", place), Err(error)), |section| (section, Ok(())));
            sections.push(section);
            outcome
        } else {
            assignment(text, place, environment).and_then(|assignment| match sections.last_mut() {
                Some(section) => {
                    section.assignments.push(assignment);
                    Ok(())
                }
                None => Err(refuse(&assignment.name, &assignment.place, "is before the first section, such as [job1]")),
            })
        };
        errors.extend(outcome.err());
    }
    (sections, errors)
}

fn assignment(
    text: &str,
    place: Place,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Assignment, ParseError> {
    let name = text.split(|letter: char| letter == '=' || letter.is_whitespace()).next().unwrap_or_default();
    if name == "include" {
        return Err(refuse(name, &place, "a job file includes no other; write its lines here"));
    }
    match substitute(text, environment) {
        Ok(text) => Ok(Assignment::parse(&text, place)),
        Err(why) => Err(refuse(name, &place, why)),
    }
}

/// The error for a file without a job, at its last line.
pub(super) fn no_job(file: &str, text: &str) -> ParseError {
    let place = Place::Line { file: file.to_owned(), line: text.lines().count().max(1) };
    refuse_section(&place, "job1", "missing; no file has a job, so nothing runs")
}

fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

/// Parses a section header. As in fio, blanks belong to the name. A name may also contain the signs of comments, which
/// fio cuts off together with the sign before them; that is a caveat of the section.
fn section(line: &str, without_comment: &str, place: &Place) -> Result<Section, ParseError> {
    let inside = |text: &str| text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).map(str::to_owned);
    let cut = without_comment.strip_prefix('[').unwrap_or_default();
    let Some(name) = inside(without_comment).or_else(|| inside(line.trim())) else {
        return Err(refuse_section(place, cut, "does not end its line with ']', with or without a comment behind it"));
    };
    if name.trim().is_empty() {
        return Err(refuse_section(place, &name, "has no name"));
    }
    let mut section = Section::new(&name, place.clone());
    if inside(without_comment).is_none() {
        let cut = cut.get(..cut.char_indices().next_back().map_or(0, |(at, _)| at)).unwrap_or_default();
        section.caveat = Some(format!(
            "job {}: fio takes the rest of the section's name for a comment and calls the job {}",
            Quoted(&name),
            Quoted(cut)
        ));
    }
    Ok(section)
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

fn refuse(option: &str, place: &Place, reason: impl Into<String>) -> ParseError {
    ParseError::option(option, place, Wrong::new(reason))
}

fn refuse_section(place: &Place, name: &str, reason: &str) -> ParseError {
    ParseError { place: place.clone(), kind: Subject::Section, name: name.to_owned(), wrong: Wrong::new(reason) }
}
