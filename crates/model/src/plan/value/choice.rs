//! Values that are one of a fixed set of words.

use super::Wrong;
use crate::plan::job::{
    Access, DedupeMode, ENGINES, Ends, EngineKind, Fallocate, FileAdvice, Generator, GoesOn, Order, PATTERNS,
    RateProcess, Sequencer, VERIFY_METHODS, VerifyMethod, WriteHint, WriteSync,
};
use crate::plan::nearest::nearest;

/// A value that is one of a fixed set of words.
pub trait Choice: Copy {
    /// The words and their values.
    fn words() -> Vec<(&'static str, Self)>;
}

impl Choice for EngineKind {
    fn words() -> Vec<(&'static str, Self)> {
        ENGINES.iter().map(|engine| (engine.name, engine.kind)).collect()
    }
}

impl Choice for (Access, Order) {
    fn words() -> Vec<(&'static str, Self)> {
        PATTERNS.into_iter().map(|(word, access, order)| (word, (access, order))).collect()
    }
}

impl Choice for Ends {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("group", Self::Group), ("stonewall", Self::Phase), ("all", Self::Run)]
    }
}

impl Choice for RateProcess {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("linear", Self::Linear), ("poisson", Self::Poisson)]
    }
}

impl Choice for DedupeMode {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("repeat", Self::Repeat), ("working_set", Self::WorkingSet)]
    }
}

impl Choice for Option<VerifyMethod> {
    fn words() -> Vec<(&'static str, Self)> {
        let methods = VERIFY_METHODS.iter().map(|row| (row.word, Some(row.method)));
        [("0", None), ("none", None)].into_iter().chain(methods).collect()
    }
}

impl Choice for GoesOn {
    fn words() -> Vec<(&'static str, Self)> {
        vec![
            ("none", Self::None),
            ("read", Self::Read),
            ("write", Self::Write),
            ("io", Self::Io),
            ("verify", Self::Verify),
            ("all", Self::All),
            ("0", Self::None),
            ("1", Self::All),
        ]
    }
}

impl Choice for Fallocate {
    fn words() -> Vec<(&'static str, Self)> {
        vec![
            ("none", Self::None),
            ("native", Self::Native),
            ("posix", Self::Posix),
            ("keep", Self::Keep),
            ("truncate", Self::Truncate),
            ("0", Self::None),
            ("1", Self::Posix),
        ]
    }
}

impl Choice for Generator {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("tausworthe", Self::Tausworthe), ("lfsr", Self::Lfsr), ("tausworthe64", Self::Tausworthe64)]
    }
}

impl Choice for Sequencer {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("sequential", Self::Sequential), ("identical", Self::Identical)]
    }
}

impl Choice for FileAdvice {
    fn words() -> Vec<(&'static str, Self)> {
        vec![
            ("0", Self::None),
            ("1", Self::Order),
            ("random", Self::Random),
            ("sequential", Self::Sequential),
            ("noreuse", Self::NoReuse),
        ]
    }
}

impl Choice for WriteSync {
    fn words() -> Vec<(&'static str, Self)> {
        vec![
            ("none", Self::None),
            ("0", Self::None),
            ("sync", Self::Sync),
            ("1", Self::Sync),
            ("dsync", Self::DataSync),
        ]
    }
}

impl Choice for WriteHint {
    fn words() -> Vec<(&'static str, Self)> {
        vec![
            ("none", Self::None),
            ("short", Self::Short),
            ("medium", Self::Medium),
            ("long", Self::Long),
            ("extreme", Self::Extreme),
        ]
    }
}

/// The value of the word `text`.
pub fn choice<T: Choice>(text: &str) -> Result<T, Wrong> {
    let words = T::words();
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*meaning);
    }
    let suggestion = nearest(text, words.iter().map(|(word, _)| *word)).map(str::to_owned);
    Err(Wrong { suggestion, ..Wrong::because(text, "is not supported") })
}

/// The first word for `value`.
pub fn word<T: Choice + PartialEq>(value: T) -> &'static str {
    T::words().into_iter().find(|(_, meaning)| *meaning == value).map_or("", |(word, _)| word)
}

/// All words, for help.
pub fn list_words<T: Choice>() -> String {
    let words: Vec<_> = T::words().into_iter().map(|(word, _)| word).collect();
    words.join(", ")
}
