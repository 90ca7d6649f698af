//! Parses the same options as flags: `--name=a --rw=read --bs 4k --time_based`.

use super::{Assignment, Kind, Refusal, Section, Subject};
use crate::plan::draft::Origin;
use crate::plan::options;
use crate::plan::value::Wrong;

/// Splits flags into sections, one for each `--name`.
pub(super) fn sections(arguments: &[String]) -> Result<Vec<Section>, Refusal> {
    let (mut sections, mut section) = (Vec::new(), Section::new(Kind::Global, Origin::Flag));
    let mut rest = arguments.iter().map(String::as_str).peekable();
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
            return Err(stray(argument));
        };
        let mut assignment = Assignment::parse(flag, Origin::Flag);
        if assignment.value.is_none() && takes_the_next(&assignment.name) {
            assignment.value = rest.next_if(|next| !next.starts_with("--")).map(str::to_owned);
        }
        if assignment.name != "name" {
            section.assignments.push(assignment);
            continue;
        }
        let name = assignment.value.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| refuse("name", "it needs a value, for example --name=job1"))?;
        sections.push(std::mem::replace(&mut section, Section::new(Kind::of(&name), Origin::Flag)));
    }
    sections.push(section);
    Ok(sections)
}

/// A switch takes a value only after `=`, as in fio.
fn takes_the_next(name: &str) -> bool {
    options::find(name).is_none_or(|option| option.takes_value())
}

/// The error for flags without a job.
pub(super) fn no_job() -> Refusal {
    refuse("name", "missing; each job begins with --name=JOB")
}

fn stray(argument: &str) -> Refusal {
    Refusal {
        origin: Origin::Flag,
        subject: Subject::Argument(argument.to_owned()),
        wrong: Wrong::new("not an option; expected --option=value"),
    }
}

fn refuse(option: &str, reason: &str) -> Refusal {
    Refusal::option(option, Origin::Flag, Wrong::new(reason))
}
