//! Finding → document → text.
//!
//! A kind of finding has one pure function that puts it into a [`document::Document`]: `cost`, `compare`, `doctor`. Each
//! renderer takes a document and knows no kind: `terminal`, `mail`, `markdown`, `csv`, `html`. JSON is the finding itself.
//!
//! To add a renderer, write its file and a row of the table in [`format`](mod@format). To add a kind, write its file and
//! implement [`Finding`] for it there; then it has every format.
//!
//! Nothing here computes a statistic: every number is in the finding already, and changes at most its unit. Nothing prints: a
//! report is a `String`, and the binary decides where it goes.

mod change;
mod compare;
mod cost;
mod csv;
mod doctor;
pub mod document;
pub mod format;
mod html;
pub mod ink;
mod json;
mod machine;
mod mail;
mod markdown;
pub mod number;
mod phrase;
mod placement;
pub mod probes;
mod stored;
mod terminal;
mod text;

#[cfg(test)]
mod hostile;

pub use format::{Finding, Format};
pub use ink::Ink;
