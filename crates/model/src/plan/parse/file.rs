//! fio's job files: lines of `[section]`, `name=value` and bare names, with `;` and `#` comments.

use super::{Assignment, Kind, Refusal, Section, Settings, Subject};
use crate::plan::draft::Origin;
use crate::plan::value::{Quoted, Wrong};

/// Files may include others this deep, as in fio; more is a circle.
const DEEPEST: usize = 16;
/// Files that are included in all: two includes in each would be 2^16.
const MOST_INCLUDED: usize = 100;

/// The sections of a file and of those that it includes.
pub(super) struct Lines<'a> {
    settings: &'a Settings<'a>,
    pub sections: Vec<Section>,
    /// What is wrong, in the order of the lines.
    pub refusals: Vec<Refusal>,
    /// The names of the files, as messages show them.
    pub names: Vec<String>,
    /// Files that are being read, each within the one before.
    depth: usize,
    /// Too many were included. Nothing more is read, or the errors would have no bound.
    too_many: bool,
}

impl<'a> Lines<'a> {
    pub fn new(settings: &'a Settings<'a>) -> Self {
        Self { settings, sections: Vec::new(), refusals: Vec::new(), names: Vec::new(), depth: 0, too_many: false }
    }

    /// Splits a file into its sections.
    pub fn read(&mut self, name: &str, text: &str) {
        let file = self.names.len();
        self.names.push(name.to_owned());
        self.depth += 1;
        for (line, line_text) in (1..).zip(without_mark(text).lines()) {
            let (text, origin) = (without_comment(line_text), Origin::Line { file, line });
            if text.is_empty() {
                continue;
            }
            if let Err(refusal) = self.line(line_text, text, origin) {
                self.refusals.push(refusal);
            }
            if self.too_many {
                break;
            }
        }
        self.depth -= 1;
    }

    fn line(&mut self, whole: &str, text: &str, origin: Origin) -> Result<(), Refusal> {
        if text.starts_with('[') {
            let section = section(whole, text, origin);
            // What follows belongs to a section, whatever its name is.
            let (section, outcome) = match section {
                Ok(section) => (section, Ok(())),
                Err(refusal) => (Section::new(Kind::Job(String::new()), origin), Err(refusal)),
            };
            self.sections.push(section);
            return outcome;
        }
        if let Some(other) = text.strip_prefix("include").filter(|rest| rest.starts_with(char::is_whitespace)) {
            return self.include(other.trim(), origin);
        }
        let assignment = assignment(text, origin, self.settings.environment)?;
        match self.sections.last_mut() {
            Some(section) => section.assignments.push(assignment),
            None => return Err(refuse(&assignment.name, origin, "is before the first section, such as [job1]")),
        }
        Ok(())
    }

    /// Reads the lines of another file in place of this one. As in fio, its name is relative to the current folder or else to the folder of
    /// the file that names it.
    fn include(&mut self, name: &str, origin: Origin) -> Result<(), Refusal> {
        if self.depth > DEEPEST {
            let why =
                format!("{} is included within {DEEPEST} others; files must not include each other", Quoted(name));
            return Err(refuse("include", origin, why));
        }
        if self.names.len() > MOST_INCLUDED {
            self.too_many = true;
            return Err(refuse(
                "include",
                origin,
                format!("more than {MOST_INCLUDED} files are included; include fewer"),
            ));
        }
        let Origin::Line { file, .. } = origin else { return Ok(()) };
        let folder = self.names.get(file).and_then(|from| from.rsplit_once('/')).map(|(folder, _)| folder);
        let places = [Some(name.to_owned()), folder.map(|folder| format!("{folder}/{name}"))];
        let mut found =
            places.into_iter().flatten().filter_map(|place| Some(((self.settings.included)(&place)?, place)));
        match found.next() {
            Some((Ok(text), place)) => {
                self.read(&place, &text);
                Ok(())
            }
            Some((Err(why), _)) => Err(refuse("include", origin, why)),
            None => {
                let why = format!("{}: there is no such file, neither here nor beside this file", Quoted(name));
                Err(refuse("include", origin, why))
            }
        }
    }
}

/// The error for a file without a job, at its last line.
pub(super) fn no_job(text: &str) -> Refusal {
    let origin = Origin::Line { file: 0, line: text.lines().count().max(1) };
    refuse_section(origin, "job1", "missing; no file has a job, so nothing runs")
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

fn refuse_section(origin: Origin, name: &str, reason: &str) -> Refusal {
    Refusal { origin, subject: Subject::Section(name.to_owned()), wrong: Wrong::new(reason) }
}
