//! Finding → document → text.
//!
//! Each kind of finding has a pure function that turns it into a [`document::Document`]: `cost`, `compare`, `guest`,
//! `ftq`, `doctor`, and `plan` for what is only read.
//! Each renderer turns a document into text and knows no kind: `terminal`, `mail`, `markdown`, `csv`, `html`. JSON is
//! the finding itself.
//!
//! To add a renderer, write its file and a row of the table in [`format`](mod@format). To add a kind, write its file
//! and implement [`Finding`] for it; all formats then work.
//!
//! This crate computes no statistics: every number is already in the finding, and only its unit may change. It prints
//! nothing: a report is a `String`, and the binary decides where it goes.

mod blast;
mod change;
mod compare;
mod conditions;
mod contents;
mod cost;
mod csv;
mod doctor;
pub mod document;
mod explained;
mod fio;
mod flame_graph;
pub mod format;
mod ftq;
pub mod guest;
mod history;
mod html;
pub mod ink;
mod json;
pub mod limits;

mod mail;
mod markdown;
mod parts;
mod phrase;
mod placement;
mod plan;
pub mod probes;
mod provenance;
mod published;

pub mod shell;
mod stored;
mod text;
mod words;
mod workload;

#[cfg(test)]
mod examples;
#[cfg(test)]
mod hostile;

pub use flame_graph::folded;
pub use format::{Finding, Format, PAGE};
pub use ink::Ink;
pub use model::number;
