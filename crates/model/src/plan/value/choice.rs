//! Values that are one of a fixed set of words.

use super::Wrong;
use crate::plan::job::{
    Access, ENGINES, Ends, EngineKind, Fallocate, FileAdvice, InjectAt, Order, PATTERNS, PathCopy, PathCrc,
    PathFraming, PathInFlight, PathNull, PathTxQueue, VERIFY_METHODS, VerifyMethod, WriteSync,
};
use crate::plan::nearest::nearest;

/// A value that is one of a fixed set of words.
pub trait Choice: Copy {
    /// The words and their values.
    fn words() -> Vec<(&'static str, Self)>;
}

/// Types, each with its words and their values. Of two words with the same value, the first is shown.
macro_rules! words {
    ($($type:ident: $($word:literal => $value:ident),+;)+) => {
        $(impl Choice for $type {
            fn words() -> Vec<(&'static str, Self)> {
                vec![$(($word, Self::$value)),+]
            }
        })+
    };
}

words! {
    Ends: "group" => Group, "stonewall" => Phase, "all" => Run;
    Fallocate:
        "none" => None, "native" => Native, "posix" => Posix, "keep" => Keep, "truncate" => Truncate, "0" => None,
        "1" => Posix;
    FileAdvice: "0" => None, "1" => Order, "random" => Random, "sequential" => Sequential, "noreuse" => NoReuse;
    WriteSync: "none" => None, "0" => None, "sync" => Sync, "1" => Sync, "dsync" => DataSync;
    PathFraming: "one-go" => OneGo, "segment-at-a-time" => SegmentAtATime, "page-at-a-time" => PageAtATime;
    PathCopy: "plain" => Plain, "rep-movsb" => RepMovsb, "non-temporal" => NonTemporal;
    PathCrc: "off" => Off, "on" => On;
    PathTxQueue: "none" => None, "lock" => Lock, "ring-task" => RingTask, "mp-ring" => MpRing, "swap-all" => SwapAll;
    PathInFlight: "none" => None, "per-thread" => PerThread, "shared" => Shared;
    InjectAt: "submit" => Submit, "wire" => Wire, "server" => Server, "storage" => Storage;
    PathNull: "none" => None, "wire" => Wire, "server" => Server;
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

impl Choice for Option<VerifyMethod> {
    fn words() -> Vec<(&'static str, Self)> {
        let methods = VERIFY_METHODS.iter().map(|row| (row.word, Some(row.method)));
        [("0", None), ("none", None)].into_iter().chain(methods).collect()
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
