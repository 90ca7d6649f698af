//! The options of a job: name, accepted values, default, and what each one sets.
//!
//! The tables of the subjects, and then those of single engines, are the only list of options. Parsing, messages, `--help`, the
//! documentation, the work in reports and the comparison with stored records follow from them. A row is written as
//! `work("iodepth", count("I/Os", 1..=DEEPEST, field!(depth.in_flight)), Is("1"), "32", "0").help("…")`.

mod content;
mod engines;
mod files;
mod fio_names;
mod job;
mod logs;
mod path;
mod requests;

use self::Default::{Is, Required, Words};
use super::job::*;
use super::parse::{Draft, Start};
use super::value::TimeUnit::{Microseconds, Seconds};
use super::value::{
    self, BLOCK, Effect, LARGEST_BLOCK, LARGEST_CPU, LARGEST_FILE, Short, TimeUnit, Wrong, blocks, count_in, cpus,
    distribution, each_direction, file_names, name_format, nearest, percentages, percentiles, range, split, typed,
};
use crate::unit::{Bytes, Nanos};
use fio_names::engine;
pub(crate) use fio_names::unknown;
pub use fio_names::{OfFio, no_such, of_fio};
use std::ops::RangeInclusive;

#[cfg(test)]
mod tests;

/// Upper limit of counts. A larger value is a typing error: as nanoseconds or cycles, this is up to one second for each
/// I/O.
const MANY: u32 = 1_000_000_000;
const MANY_64: u64 = MANY as u64;

/// The options of each subject. Those of single engines have none.
const SUBJECTS: [(&str, &[JobOption]); 16] = [
    ("Jobs", job::OPTIONS),
    ("Requests", requests::OPTIONS),
    ("Sizes of requests", requests::SIZES),
    ("Positions of requests", requests::POSITIONS),
    ("What is written", content::OPTIONS),
    ("Whether it is read back right", content::VERIFY),
    ("Files", files::OPTIONS),
    ("Making, opening and syncing files", files::CALLS),
    ("Pace and length", job::PACE),
    ("Jobs among others", job::TOGETHER),
    ("Threads", job::THREAD),
    ("Traces that are replayed", logs::REPLAY),
    ("Logs", logs::OPTIONS),
    ("Reports and clocks of fio", logs::REPORTS),
    ("", engines::OPTIONS),
    ("", path::OPTIONS),
];

/// One row of the table.
pub struct JobOption {
    /// The name that help and messages show.
    pub name: &'static str,
    /// fio's other names for it.
    pub aliases: &'static [&'static str],
    /// One line of help, without the default and the engine.
    pub help: &'static str,
    /// What applies if it is not given.
    pub(crate) default: Default,
    /// The engines that read it. Empty: all do.
    pub engines: &'static [EngineKind],
    /// What a difference in it means.
    pub(crate) role: Role,
    /// A valid value.
    pub example: &'static str,
    /// An invalid value.
    pub bad_example: &'static str,
    /// Its value in a job.
    pub(crate) get: Get,
    /// The accepted values of free text.
    pub(crate) form: &'static str,
    /// The accepted values, and the function that applies one.
    pub(crate) set: Value,
}

/// What applies if an option is not given.
pub(crate) enum Default {
    /// The same as this value.
    Is(&'static str),
    /// What these words say; no value has the same meaning.
    Words(&'static str),
    /// The engine needs it.
    Required,
}

/// What it means that two jobs differ in an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// They do other work.
    Work,
    /// They do the same work elsewhere or longer. Reports show the option; a stored record may differ in it.
    Extent,
    /// Nothing that a reader of a report needs.
    Other,
    /// None: it has no effect.
    Nothing,
    /// None, and a caveat says so where fio would do something.
    Said,
}

/// The kinds of value, each with its limits and the function that applies a valid value.
pub(crate) enum Value {
    /// `1` or `0`, or the bare name, which means `1`.
    Switch(Set<bool>),
    /// `1` or `0`.
    Boolean(Set<bool>),
    /// 0 to 100.
    Percent(Set<u8>),
    /// A whole number.
    Count(&'static str, RangeInclusive<u32>, Set<u32>),
    /// A whole number that may be large.
    Number(&'static str, RangeInclusive<u64>, Set<u64>),
    /// A whole number for each of reads, writes and trims.
    PerDirection(&'static str, RangeInclusive<u64>, Set<[Option<u64>; 3]>),
    Time(TimeUnit, Set<Nanos>),
    /// The user gives bytes, at least this number, or a percentage in this range.
    Size(u64, RangeInclusive<u8>, Set<Size>),
    /// It has no effect: one of these words, or any text without them; a bare name too, if it is `bare`.
    Ignored {
        words: &'static [&'static str],
        bare: bool,
    },
    /// One of the words that the first function lists.
    Choice(fn() -> String, SetText),
    /// Free text.
    Text(SetText),
    /// The same, or nothing: a bare name is an empty text.
    Name(SetText),
}

impl JobOption {
    /// Applies `text` to `draft`. `None` means a bare name.
    pub(crate) fn apply(&self, draft: &mut Draft, text: Option<&str>) -> Result<(), Wrong> {
        let outcome = match (text, &self.set) {
            (text, Value::Name(set)) => set(draft, text.unwrap_or_default()),
            (Some(""), _) => Err(Wrong::new("its value is empty")),
            (Some(text), value) => value.apply(draft, text),
            (None, Value::Switch(set)) => {
                set(draft, true);
                Ok(())
            }
            (None, Value::Ignored { bare: true, .. }) => Ok(()),
            (None, _) => Err(Wrong::new("it needs a value")),
        };
        outcome.map_err(|wrong| Wrong { reason: format!("{}; {}", wrong.reason, self.expectation()), ..wrong })
    }

    /// How fio 3.33 reads a valid value otherwise.
    pub(crate) fn unlike_fio(&self, text: &str) -> Option<String> {
        if !self.has_effect() {
            return None;
        }
        if let Some(keyword) = KEYWORDS.into_iter().find(|keyword| text.contains(keyword)) {
            return Some(format!("its value contains '{keyword}', in whose place fio puts a number of the machine"));
        }
        if let Some(sign) = text.chars().find(|character| matches!(character, ';' | '#')) {
            return Some(format!("its value contains '{sign}', at which fio would cut it, as at a comment"));
        }
        let what = match self.name {
            "bssplit" if value::has_ranges(text) => {
                Some("has a range of sizes, of which only the first one is used, as by fio")
            }
            "bs" if value::is_range_of_blocks(text) => Some(
                "is the size of reads and, behind the '-', that of writes and trims, as in fio; bsrange draws sizes from a range",
            ),
            "percentage_random" if text.contains('%') => {
                Some("has a percent sign, with which the whole order is random, as by fio; leave the sign out")
            }
            _ => None,
        };
        if let Some(what) = what {
            return Some(format!("{} {what}", value::Quoted(text)));
        }
        let unit = text.trim_start_matches(|character: char| character.is_ascii_digit());
        (matches!(self.set, Value::Time(..)) && unit.eq_ignore_ascii_case("sec"))
            .then(|| format!("'{text}' is in seconds; fio 3.33 reads it as microseconds, so write 's'"))
    }

    fn expectation(&self) -> String {
        format!("expected {}, for example {}={}", self.values(), self.name, self.example)
    }

    /// The accepted values, with unit and range.
    pub fn values(&self) -> String {
        self.set.form(self.form)
    }

    /// The words that it accepts, if it accepts only words.
    pub fn words(&self) -> Vec<String> {
        self.set.words()
    }

    /// What it belongs to: its engines, or the subject of an option that all engines read.
    pub fn group(&self) -> String {
        let subject = || by_subject().find(|(_, option)| option.name == self.name).map_or("", |(subject, _)| subject);
        self.engines_in_words().unwrap_or_else(|| subject().to_owned())
    }

    /// Whether the word that follows the option is its value.
    pub(crate) fn takes_value(&self) -> bool {
        !matches!(self.set, Value::Switch(_) | Value::Ignored { bare: true, .. })
    }

    fn has_effect(&self) -> bool {
        !matches!(self.role, Role::Nothing | Role::Said)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// One line of help with the engine that reads the option, and its default.
    pub fn full_help(&self) -> String {
        let help = self.engines_in_words().map_or_else(
            || self.help.to_owned(),
            |engines| {
                let (first, rest) = self.help.split_at(1);
                // An abbreviation stays as it is.
                let word = rest.starts_with(|letter: char| !letter.is_uppercase());
                let first = if word { first.to_lowercase() } else { first.to_owned() };
                format!("{engines}: {first}{rest}")
            },
        );
        match self.default {
            Default::Is(default) | Default::Words(default) => format!("{help} [default: {default}]"),
            Default::Required => help,
        }
    }

    /// Its default, as a value or in words.
    pub fn default_in_words(&self) -> String {
        match (&self.default, self.engines_in_words()) {
            (Default::Is(default) | Default::Words(default), _) => (*default).to_owned(),
            (Default::Required, Some(engines)) => format!("required by {}", engines.to_lowercase()),
            (Default::Required, None) => "required".to_owned(),
        }
    }

    /// "Engine nbd", "Engines libaio and io_uring"; `None` if all engines read it.
    fn engines_in_words(&self) -> Option<String> {
        let names: Vec<&str> = self.engines.iter().map(|engine| engine.name()).collect();
        match names.as_slice() {
            [] => None,
            [one] => Some(format!("Engine {one}")),
            [first @ .., last] => Some(format!("Engines {} and {last}", first.join(", "))),
        }
    }

    const fn form(self, form: &'static str) -> Self {
        Self { form, ..self }
    }

    /// The default in words, where a row has no room for it.
    const fn otherwise(self, words: &'static str) -> Self {
        Self { default: Default::Words(words), ..self }
    }

    const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn of(self, engines: &'static [EngineKind]) -> Self {
        Self { engines, ..self }
    }

    const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// An option without effect that has one of these values only; the first is an example.
    const fn only(self, words: &'static [&'static str]) -> Self {
        let [example, ..] = words else { return self };
        Self { set: Value::Ignored { words, bare: false }, example, ..self }
    }

    /// An option without effect that needs no value.
    const fn bare(self) -> Self {
        Self { set: Value::Ignored { words: &[], bare: true }, ..self }
    }
}

impl Value {
    fn apply(&self, draft: &mut Draft, text: &str) -> Result<(), Wrong> {
        match self {
            Self::Switch(set) | Self::Boolean(set) => set(draft, value::boolean(text)?),
            Self::Percent(set) => set(draft, value::percent(text)?),
            Self::Count(_, range, set) => set(draft, value::count_in(text, range)?),
            Self::Number(_, range, set) => set(draft, value::integer_in(text, range)?),
            Self::PerDirection(_, range, set) => set(draft, value::per_direction(text, range)?),
            Self::Time(unit, set) => set(draft, value::time(text, *unit)?),
            Self::Size(least, percent, set) => set(draft, value::size(text, &(*least..=LARGEST_FILE), percent)?),
            Self::Ignored { words, .. } if words.is_empty() || words.contains(&text) => {}
            Self::Ignored { .. } => return Err(Wrong::because(text, "is not supported")),
            Self::Choice(_, set) | Self::Text(set) | Self::Name(set) => set(draft, text)?,
        }
        Ok(())
    }

    /// The accepted values, in words; `text` are those of free text.
    fn form(&self, text: &str) -> String {
        match self {
            Self::Switch(_) => "nothing, 1 or 0".to_owned(),
            Self::Boolean(_) => "1 or 0".to_owned(),
            Self::Percent(_) => "0 to 100 percent".to_owned(),
            Self::Count(unit, range, _) => format!("{} to {} {unit}", range.start(), range.end()),
            Self::Number(unit, range, _) => limits(unit, range),
            Self::PerDirection(unit, range, _) => format!("{} (READ,WRITE,TRIM)", limits(unit, range)),
            Self::Time(unit, _) => {
                let days = value::LONGEST_TIME.0 / (86_400 * 1_000_000_000);
                let unit = if *unit == TimeUnit::Seconds { "seconds" } else { "microseconds" };
                format!("{unit}, or a time in us, ms, s, m, h or d, up to {days}d")
            }
            Self::Size(least, percent, _) => {
                format!("{}, or {} to {}%", limits("bytes", &(*least..=LARGEST_FILE)), percent.start(), percent.end())
            }
            Self::Ignored { words, .. } if !words.is_empty() => format!("one of {}", words.join(", ")),
            Self::Choice(..) => format!("one of {}", self.words().join(", ")),
            Self::Text(_) | Self::Name(_) | Self::Ignored { .. } => text.to_owned(),
        }
    }

    /// The words that it accepts, if it accepts only words.
    fn words(&self) -> Vec<String> {
        match self {
            Self::Choice(words, _) => words().split(", ").map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }
}

fn limits(unit: &str, range: &RangeInclusive<u64>) -> String {
    format!("{} to {} {unit}", Short(*range.start()), Short(*range.end()))
}

/// All options, each with its subject.
fn by_subject() -> impl Iterator<Item = (&'static str, &'static JobOption)> {
    SUBJECTS.into_iter().flat_map(|(subject, options)| options.iter().map(move |option| (subject, option)))
}

/// All options.
fn all() -> impl Iterator<Item = &'static JobOption> {
    by_subject().map(|(_, option)| option)
}

/// fio's keywords for numbers of the machine.
const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// Finds an option by name or alias.
pub(crate) fn find(name: &str) -> Option<&'static JobOption> {
    all().find(|option| option.names().any(|known| known == name))
}

/// Whether `name` is a switch: a bare name is enough, and the next word is not its value.
pub fn is_switch(name: &str) -> bool {
    find(name).is_some_and(|option| !option.takes_value())
}

/// Changes a job by one option.
///
/// # Errors
/// What is wrong with the value, or that there is no such option.
pub fn apply(job: &mut JobPlan, name: &str, text: &str) -> Result<(), Wrong> {
    let option = find(name).ok_or_else(|| unknown(name))?;
    let mut draft = Draft::default();
    std::mem::swap(&mut draft.job, job);
    let outcome = option.apply(&mut draft, Some(text));
    *job = draft.job;
    outcome
}

/// All options that have an effect, in the order in which help lists them.
pub fn reference() -> impl Iterator<Item = &'static JobOption> {
    all().filter(|option| option.has_effect())
}

/// Options that are accepted and have no effect where fio would do something, each with what happens instead.
pub(crate) fn all_said() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().filter(|option| option.role == Role::Said).map(|option| (option.name, option.help))
}

/// Options that the engine of `job` does not read.
pub(crate) fn of_other_engines(job: &JobPlan) -> impl Iterator<Item = &'static str> {
    let engine = job.engine;
    all()
        .filter(move |option| !option.engines.is_empty() && !option.engines.contains(&engine))
        .map(|option| option.name)
}

/// The value of an option that is not given.
const NOT_GIVEN: &str = "default";

/// The options that define the work of a job, each with its value.
pub fn of_work(job: &JobPlan) -> impl Iterator<Item = (&'static str, String)> {
    let value = |option: &JobOption| (option.get)(job).unwrap_or_else(|| NOT_GIVEN.to_owned());
    all().filter(|option| option.role == Role::Work).map(move |option| (option.name, value(option)))
}

/// The options that a report shows: those that define the work or its extent and differ from the default, and those
/// of `always`.
pub fn shown(job: &JobPlan, always: &[&str]) -> Vec<(&'static str, String)> {
    let usual = JobPlan::default();
    let given = |option: &JobOption| {
        let value = (option.get)(job)?;
        let differs = (option.get)(&usual).is_none_or(|usual| usual != value);
        (differs || always.contains(&option.name)).then_some((option.name, value))
    };
    let of = |role| all().filter(move |option| option.role == role).filter_map(given);
    of(Role::Work).chain(of(Role::Extent)).collect()
}

/// Shows the value of a job, as people type it. `None` if it is not given and has no value of its own.
pub(crate) type Get = fn(&JobPlan) -> Option<String>;
/// Applies a value.
pub(crate) type Set<T> = fn(&mut Draft, T);
/// Applies a text, which may be wrong.
pub(crate) type SetText = fn(&mut Draft, &str) -> Result<(), Wrong>;

/// Where the value of an option is: [`field!`], [`parsed!`], [`word_of!`], or two functions.
struct Place<S> {
    get: Get,
    set: S,
}

/// A place that is no field.
const fn place<S: Copy>(get: Get, set: S) -> Place<S> {
    Place { get, set }
}

/// That of an option whose value another one shows.
const fn unshown<S: Copy>(set: S) -> Place<S> {
    place(|_| None, set)
}

/// A field of the job.
macro_rules! field {
    ($($field:ident).+) => {
        place(|job| typed::shown(&job.$($field).+), |draft, value| Takes::take(&mut draft.job.$($field).+, value))
    };
}

/// A field of the job that is true where the option is 0.
macro_rules! field_not {
    ($($field:ident).+) => {
        place(|job| typed::shown(&!job.$($field).+), |draft, on: bool| draft.job.$($field).+ = !on)
    };
}

/// A field of the job, with the function that parses its value.
macro_rules! parsed {
    ($($field:ident).+, $parse:expr) => {
        place(
            |job| typed::shown(&job.$($field).+),
            |draft, text| {
                Takes::take(&mut draft.job.$($field).+, $parse(text)?);
                Ok(())
            },
        )
    };
}

/// One of the words of the type of a field.
macro_rules! word_of {
    ($($field:ident).+) => {
        words(|| words_of(|job| &job.$($field).+), parsed!($($field).+, choice))
    };
}

use {field, field_not, parsed, word_of};

/// The value of the word `text`.
pub fn choice<T: Choice>(text: &str) -> Result<T, Wrong> {
    let words = T::words();
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*meaning);
    }
    let suggestion = nearest(text, words.iter().map(|(word, _)| *word)).map(str::to_owned);
    Err(Wrong { suggestion, ..Wrong::because(text, "is not supported") })
}

/// The words of the type of a field.
fn words_of<T: Choice>(_: fn(&JobPlan) -> &T) -> String {
    list_words::<T>()
}

/// A field that takes a value, maybe one of another type.
pub(super) trait Takes<T> {
    /// Replaces what is given.
    fn take(&mut self, value: T);
}

impl<T> Takes<T> for T {
    fn take(&mut self, value: T) {
        *self = value;
    }
}

impl<T> Takes<T> for Option<T> {
    fn take(&mut self, value: T) {
        *self = Some(value);
    }
}

/// Numbers in fields of another type, which has room for the range of the option.
macro_rules! numbers {
    ($($field:ty: $of:expr),+ $(,)?) => {
        $(impl Takes<u64> for $field {
            fn take(&mut self, number: u64) {
                *self = $of(number);
            }
        })+
    };
}

numbers! {
    u8: |number| Self::try_from(number).unwrap_or(Self::MAX),
    u32: |number| Self::try_from(number).unwrap_or(Self::MAX),
    Bytes: Bytes,
    Option<Bytes>: |number| Some(Bytes(number)),
}

/// The kind of a value, and its place.
struct Kind {
    get: Get,
    set: Value,
}

/// Kinds of values: what each needs, and its place.
macro_rules! kinds {
    ($($function:ident($($limit:ident: $type:ty),*), $set:ty => $value:expr;)+) => {
        $(const fn $function($($limit: $type,)* place: Place<$set>) -> Kind {
            Kind { get: place.get, set: ($value)($($limit,)* place.set) }
        })+
    };
}

kinds! {
    switch(), Set<bool> => Value::Switch;
    boolean(), Set<bool> => Value::Boolean;
    percent(), Set<u8> => Value::Percent;
    count(unit: &'static str, range: RangeInclusive<u32>), Set<u32> => Value::Count;
    number(unit: &'static str, range: RangeInclusive<u64>), Set<u64> => Value::Number;
    per_direction(unit: &'static str, range: RangeInclusive<u64>), Set<[Option<u64>; 3]> => Value::PerDirection;
    time(unit: TimeUnit), Set<Nanos> => Value::Time;
    size(least: u64, percent: RangeInclusive<u8>), Set<Size> => Value::Size;
    words(list: fn() -> String), SetText => Value::Choice;
    text(), SetText => Value::Text;
    name_or_nothing(), SetText => Value::Name;
}

/// Any text.
fn any(text: &str) -> Result<String, Wrong> {
    Ok(text.to_owned())
}

/// The beginnings of rows: the name, the kind of the value with its place, the default, a valid value, an invalid one.
macro_rules! roles {
    ($($function:ident: $role:ident),+) => {
        $(const fn $function(
            name: &'static str,
            Kind { get, set }: Kind,
            default: Default,
            example: &'static str,
            bad_example: &'static str,
        ) -> JobOption {
            let (form, help, role) = ("", "", Role::$role);
            JobOption { name, aliases: &[], help, default, engines: &[], role, example, bad_example, form, get, set }
        })+
    };
}

roles!(work: Work, extent: Extent, other: Other);

/// An option of fio without effect, and why.
const fn nothing(name: &'static str, why: &'static str) -> JobOption {
    let kind = Kind { get: |_| None, set: Value::Ignored { words: &[], bare: false } };
    let (option, role) = (other(name, kind, Default::Words("none"), "1", ""), Role::Nothing);
    JobOption { role, help: why, form: "any value", ..option }
}

/// The same where fio would do something: a caveat says what happens instead.
const fn said(name: &'static str, instead: &'static str) -> JobOption {
    JobOption { role: Role::Said, ..nothing(name, instead) }
}
