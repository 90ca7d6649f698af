//! Events of the kernel that `run`, `cost` and `compare` count for each I/O: tracepoints, and system calls by name.
//!
//! [`Wanted::parse_list`] reads `--events`, [`TRACEPOINTS`] and [`GROUPS`] are the names that iotoll knows, and [`Events`] is what a
//! record says of them. Any other tracepoint of the machine can be counted too.

mod table;

pub use table::{GROUPS, Group, TRACEPOINTS, Tracepoint};

use crate::plan::value::nearest;
use crate::reading::Reading;
use crate::warning::{Code, Warning, add_once};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Rarer events, per I/O or packet, are neither shown nor, by the mean of both arms, tested, unless the user named them.
pub const RARE: f64 = 0.001;

/// The subsystem of system calls, which are counted by name: `syscalls:pread64`.
pub const SYSTEM_CALLS: &str = "syscalls";
/// The subsystem of counters of the hardware: `hw:instructions`.
pub const HARDWARE: &str = "hw";
/// The event that a sheet or a comparison counts anyway, in undisturbed windows or rounds.
pub const CONTEXT_SWITCHES: &str = "sched:sched_switch";
/// Instead of the name of an event: all of its subsystem.
pub const ALL: &str = "*";
/// The group that is counted unless others are named.
pub const DEFAULT: &str = "default";

/// One or several events that the user names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A tracepoint, or a counter of the hardware.
    Tracepoint {
        subsystem: String,
        name: String,
        /// Whether the user named it, and not a group that contains it.
        named: bool,
    },
    /// Every tracepoint of a subsystem that the machine has.
    Subsystem(String),
    SystemCall(String),
    /// All system calls, each by its name.
    SystemCalls,
}

impl Wanted {
    /// The events that are counted by default.
    pub fn by_default() -> Vec<Self> {
        Self::group(DEFAULT).unwrap_or_default()
    }

    /// Parses names of groups and `SUBSYSTEM:NAME`, separated by commas.
    ///
    /// # Errors
    /// A name that cannot be one, with the most similar that is.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let mut found: Vec<Self> = Vec::new();
        for word in text.split(',') {
            for wanted in Self::parse(word)? {
                match found.iter_mut().find(|other| other.is_same(&wanted)) {
                    Some(other @ Self::Tracepoint { named: false, .. }) => *other = wanted,
                    Some(_) => {}
                    None => found.push(wanted),
                }
            }
        }
        Ok(found)
    }

    fn parse(word: &str) -> Result<Vec<Self>, String> {
        let Some((subsystem, name)) = word.split_once(':') else {
            return Self::group(word).ok_or_else(|| format!("'{word}' is no group of events; {}", mend(word)));
        };
        let is_word = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        if !is_word(subsystem) || !(name == ALL || is_word(name)) {
            return Err(format!("'{word}' is no event; expected SUBSYSTEM:NAME, as in sched:sched_switch"));
        }
        let (subsystem, name) = (subsystem.to_owned(), name.to_owned());
        Ok(vec![match (subsystem.as_str(), name.as_str()) {
            (SYSTEM_CALLS, ALL) => Self::SystemCalls,
            (SYSTEM_CALLS, call) => Self::SystemCall(call.strip_prefix("sys_enter_").unwrap_or(call).to_owned()),
            (HARDWARE, ALL) => return Ok(Self::group(HARDWARE).unwrap_or_default()),
            (HARDWARE, counter) if hardware().all(|it| it.name != counter) => {
                let names: Vec<String> = hardware().map(Tracepoint::full_name).collect();
                return Err(unknown(word, names.iter().map(String::as_str)));
            }
            (_, ALL) => Self::Subsystem(subsystem),
            _ => Self::Tracepoint { subsystem, name, named: true },
        }])
    }

    /// The events of a group.
    fn group(name: &str) -> Option<Vec<Self>> {
        let group = GROUPS.iter().find(|group| group.name == name)?;
        let of_group = TRACEPOINTS.iter().filter(|tracepoint| tracepoint.groups.contains(&name));
        let tracepoint = |it: &Tracepoint| Self::Tracepoint {
            subsystem: it.subsystem.to_owned(),
            name: it.name.to_owned(),
            named: false,
        };
        Some(of_group.map(tracepoint).chain(group.system_calls.then_some(Self::SystemCalls)).collect())
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Tracepoint { subsystem, name, .. },
                Self::Tracepoint { subsystem: their_subsystem, name: their_name, .. },
            ) => subsystem == their_subsystem && name == their_name,
            _ => self == other,
        }
    }
}

fn hardware() -> impl Iterator<Item = &'static Tracepoint> {
    TRACEPOINTS.iter().filter(|counter| counter.subsystem == HARDWARE)
}

/// How to mend a word that is no group.
fn mend(word: &str) -> String {
    let same_name = TRACEPOINTS.iter().find(|tracepoint| tracepoint.name == word);
    let near = nearest(word, GROUPS.iter().map(|group| group.name));
    match (same_name, near) {
        (Some(tracepoint), _) => format!("did you mean '{}'?", tracepoint.full_name()),
        (None, Some(near)) => format!("did you mean '{near}'?"),
        (None, None) => {
            let names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
            format!("expected SUBSYSTEM:NAME, or a list of {}", names.join(", "))
        }
    }
}

/// Why a name is none of those that the machine has.
pub fn unknown<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(name, names).map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    format!("there is no event '{name}' here{near}")
}

impl Tracepoint {
    /// As the user names it.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.subsystem, self.name)
    }
}

/// What an event is, in words; empty if iotoll does not know.
pub fn meaning(full_name: &str) -> &'static str {
    let (subsystem, name) = full_name.split_once(':').unwrap_or_default();
    let known = TRACEPOINTS.iter().find(|tracepoint| (tracepoint.subsystem, tracepoint.name) == (subsystem, name));
    match known {
        Some(tracepoint) => tracepoint.meaning,
        None if subsystem == SYSTEM_CALLS && name != ALL => "system call",
        None if subsystem == SYSTEM_CALLS => "system calls by name",
        None => "",
    }
}

/// The events of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// Whether the user asked for them (`--events`).
    pub asked: bool,
    pub events: Vec<Event>,
    /// How long a count takes, measured at the costliest: a system call that passes its tracepoint. `None` if nothing can be counted.
    pub nanos_per_count: Option<f64>,
    /// Why nothing is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Events {
    /// The sets that are counted.
    pub(crate) fn sets(&self) -> BTreeSet<u8> {
        self.events.iter().filter_map(|event| event.set.taken()).copied().collect()
    }

    /// Why nothing can be counted; `None` if something can.
    pub(crate) fn refusal(&self) -> Option<&str> {
        let refused = || self.events.iter().find_map(|event| event.set.reason());
        let nothing = || self.sets().is_empty().then(|| refused().unwrap_or("nothing was to be counted"));
        self.reason.as_deref().or_else(nothing)
    }

    /// The events of a set: its tracepoints, and those of `happened` that are system calls, if it has all of them.
    pub(crate) fn names<'a>(&self, set: u8, happened: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
        let counted = self.events.iter().filter(|event| event.set.taken() == Some(&set));
        let (calls, prefix) = (format!("{SYSTEM_CALLS}:{ALL}"), format!("{SYSTEM_CALLS}:"));
        let (all_calls, named): (Vec<&Event>, Vec<&Event>) = counted.partition(|event| event.name == calls);
        let mut names: BTreeSet<String> = named.into_iter().map(|event| event.name.clone()).collect();
        if !all_calls.is_empty() {
            names.extend(happened.filter(|name| name.starts_with(&prefix)).cloned());
        }
        names
    }

    /// What was to be counted, in words.
    pub(crate) fn findings(&self) -> Vec<EventFinding> {
        let finding = |event: &Event| EventFinding {
            name: event.name.clone(),
            meaning: meaning(&event.name).to_owned(),
            named: event.named,
            reason: event.set.reason().map(str::to_owned),
        };
        self.events.iter().map(finding).collect()
    }

    /// Caveats of events that the user asked for and that were not counted. Without the right the default ones are left out, as the
    /// accounts are, whose reason is shown. `reasons` say why there are none.
    pub fn shortfalls<'a>(&self, reasons: impl Iterator<Item = &'a String>) -> Vec<Warning> {
        let mut found = Vec::new();
        if self.asked {
            for reason in reasons {
                add_once(&mut found, Warning::new(Code::Unknown, format!("no events per I/O: {reason}")));
            }
            for event in self.events.iter().filter(|event| event.named) {
                let warning = |reason: &str| Warning::new(Code::Unknown, format!("event {}: {reason}", event.name));
                found.extend(event.set.reason().map(warning));
            }
        }
        found
    }
}

/// An event that was to be counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// `sched:sched_switch`, `syscalls:pread64`; `syscalls:*` for all system calls, each of which is counted by its name.
    pub name: String,
    /// Whether the user named it, and not a group that contains it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// The set of events that are counted in the same windows, or why it cannot be counted here.
    pub set: Reading<u8>,
}

/// An event of the kernel that was to be counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFinding {
    /// Its tracepoint, `sched:sched_switch`, or system call, `syscalls:pread64`; `syscalls:*` for all system calls, each of which is
    /// counted by its name.
    pub name: String,
    /// What it is, in words; empty if iotoll does not know.
    pub meaning: String,
    /// Whether the user named it, and not a group that contains it.
    pub named: bool,
    /// Why it could not be counted; `null` if it was.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<String> {
        let name = |wanted: &Wanted| match wanted {
            Wanted::Tracepoint { subsystem, name, .. } => format!("{subsystem}:{name}"),
            Wanted::Subsystem(subsystem) => format!("{subsystem}:*"),
            Wanted::SystemCall(name) => format!("syscalls:{name}"),
            Wanted::SystemCalls => "syscalls:*".to_owned(),
        };
        Wanted::parse_list(text).unwrap().iter().map(name).collect()
    }

    #[test]
    fn groups_and_names_are_read_once_each() {
        assert_eq!(names("none"), [""; 0]);
        assert_eq!(names("syscalls:sys_enter_pread64,syscalls:*"), ["syscalls:pread64", "syscalls:*"]);
        assert_eq!(names("foo:bar,foo:*,foo:bar"), ["foo:bar", "foo:*"]);
        let block = names("block");
        assert!(block.contains(&"block:block_rq_issue".to_owned()));
        assert_eq!(names("block,block:block_rq_issue").len(), block.len());
        let both = Wanted::parse_list("block,block:block_rq_issue").unwrap();
        let named = both.iter().filter(|wanted| matches!(wanted, Wanted::Tracepoint { named: true, .. })).count();
        assert_eq!(named, 1, "the user named it");
        assert_eq!(names("hw:*"), names("hw"));
        assert_eq!(names("default").last().unwrap(), "syscalls:*");
        assert_eq!(names("default").len(), Wanted::by_default().len());
    }

    #[test]
    fn a_wrong_name_suggests_a_right_one() {
        for (text, told) in [
            ("shed", "did you mean 'sched'?"),
            ("sched_switch", "did you mean 'sched:sched_switch'?"),
            ("", "expected SUBSYSTEM:NAME, or a list of default,"),
            ("sched,", "'' is no group"),
            ("sched:", "expected SUBSYSTEM:NAME"),
            ("sched:sched_*", "expected SUBSYSTEM:NAME"),
            ("../x:y", "expected SUBSYSTEM:NAME"),
            ("hw:instruction", "did you mean 'hw:instructions'?"),
        ] {
            let wrong = Wanted::parse_list(text).unwrap_err();
            assert!(wrong.contains(told), "{text}: {wrong}");
        }
        let told = unknown("block:block_rq_isue", ["block:block_rq_issue", "sched:sched_switch"]);
        assert!(told.contains("did you mean 'block:block_rq_issue'?"), "{told}");
    }

    #[test]
    fn every_tracepoint_is_in_a_group_and_has_a_meaning() {
        for (place, tracepoint) in TRACEPOINTS.iter().enumerate() {
            let name = tracepoint.full_name();
            assert!(!tracepoint.groups.is_empty() && !meaning(&name).is_empty(), "{name}");
            assert!(tracepoint.groups.iter().all(|name| GROUPS.iter().any(|group| group.name == *name)), "{name}");
            assert!(TRACEPOINTS.iter().skip(place + 1).all(|other| other.full_name() != name), "{name} is there twice");
        }
        for group in GROUPS.iter().filter(|group| group.name != "none") {
            assert!(!Wanted::group(group.name).unwrap().is_empty(), "{}", group.name);
        }
        assert_eq!(meaning("foo:bar"), "");
    }

    proptest! {
        #[test]
        fn no_name_is_a_surprise(text in any::<String>()) {
            let _ = Wanted::parse_list(&text);
        }
    }
}
