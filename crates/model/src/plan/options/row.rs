//! How a row of the table is written:
//! `work("iodepth", count("I/Os", 1..=DEEPEST, field!(depth.in_flight)), Is("1"), "32", "0").help("…")`.

use super::{Default, JobOption, Role, Value};
use crate::plan::draft::Draft;
use crate::plan::job::{EngineKind, JobPlan, Size};
use crate::plan::value::{Choice, TimeUnit, Wrong, list_words};
use crate::unit::{Bytes, Nanos};
use std::ops::RangeInclusive;

/// Shows the value of a job, as people type it. `None` if it is not given and has no value of its own.
pub(crate) type Get = fn(&JobPlan) -> Option<String>;
/// Applies a value.
pub(crate) type Set<T> = fn(&mut Draft, T);
/// Applies a text, which may be wrong.
pub(crate) type SetText = fn(&mut Draft, &str) -> Result<(), Wrong>;

/// Where the value of an option is: [`field!`], [`parsed!`], [`word_of!`], or two functions.
pub(super) struct Place<S> {
    get: Get,
    set: S,
}

/// A place that is no field.
pub(super) const fn place<S: Copy>(get: Get, set: S) -> Place<S> {
    Place { get, set }
}

/// That of an option whose value another one shows.
pub(super) const fn unshown<S: Copy>(set: S) -> Place<S> {
    place(|_| None, set)
}

/// A field of the job.
macro_rules! field {
    ($($field:ident).+) => {
        crate::plan::options::row::place(
            |job| crate::plan::value::typed::shown(&job.$($field).+),
            |draft, value| crate::plan::options::row::Takes::take(&mut draft.job.$($field).+, value),
        )
    };
}

/// A field of the job that is true where the option is 0.
macro_rules! field_not {
    ($($field:ident).+) => {
        crate::plan::options::row::place(
            |job| crate::plan::value::typed::shown(&!job.$($field).+),
            |draft, on: bool| draft.job.$($field).+ = !on,
        )
    };
}

/// A field of the job, with the function that parses its value.
macro_rules! parsed {
    ($($field:ident).+, $parse:expr) => {
        crate::plan::options::row::place(
            |job| crate::plan::value::typed::shown(&job.$($field).+),
            |draft, text| {
                let value = $parse(text)?;
                crate::plan::options::row::Takes::take(&mut draft.job.$($field).+, value);
                Ok(())
            },
        )
    };
}

/// One of the words of the type of a field.
macro_rules! word_of {
    ($($field:ident).+) => {
        crate::plan::options::row::words(
            || crate::plan::options::row::words_of(|job| &job.$($field).+),
            crate::plan::options::row::parsed!($($field).+, crate::plan::value::choice),
        )
    };
}

pub(super) use {field, field_not, parsed, word_of};

/// The words of the type of a field.
pub(super) fn words_of<T: Choice>(_: fn(&JobPlan) -> &T) -> String {
    list_words::<T>()
}

/// A field that takes a value, maybe one of another type.
pub(in crate::plan) trait Takes<T> {
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
pub(super) struct Kind {
    get: Get,
    set: Value,
}

/// Kinds of values: what each needs, and its place.
macro_rules! kinds {
    ($($function:ident($($limit:ident: $type:ty),*), $set:ty => $value:expr;)+) => {
        $(pub(super) const fn $function($($limit: $type,)* place: Place<$set>) -> Kind {
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

/// The beginnings of rows: the name, the kind of the value with its place, the default, a valid value, an invalid one.
macro_rules! roles {
    ($($function:ident: $role:ident),+) => {
        $(pub(super) const fn $function(
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
pub(super) const fn nothing(name: &'static str, why: &'static str) -> JobOption {
    let kind = Kind { get: |_| None, set: Value::Ignored { words: &[], bare: false } };
    let (option, role) = (other(name, kind, Default::Words("none"), "1", ""), Role::Nothing);
    JobOption { role, help: why, form: "any value", ..option }
}

/// The same where fio would do something: a caveat says what happens instead.
pub(super) const fn said(name: &'static str, instead: &'static str) -> JobOption {
    JobOption { role: Role::Said, ..nothing(name, instead) }
}

impl JobOption {
    pub(super) const fn form(self, form: &'static str) -> Self {
        Self { form, ..self }
    }

    /// The default in words, where a row has no room for it.
    pub(super) const fn otherwise(self, words: &'static str) -> Self {
        Self { default: Default::Words(words), ..self }
    }

    pub(super) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(super) const fn of(self, engines: &'static [EngineKind]) -> Self {
        Self { engines, ..self }
    }

    pub(super) const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// An option without effect that has one of these values only; the first is an example.
    pub(super) const fn only(self, words: &'static [&'static str]) -> Self {
        let [example, ..] = words else { return self };
        Self { set: Value::Ignored { words, bare: false }, example, ..self }
    }

    /// An option without effect that needs no value.
    pub(super) const fn bare(self) -> Self {
        Self { set: Value::Ignored { words: &[], bare: true }, ..self }
    }
}
