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

pub mod csv;
pub mod document;
pub mod fio;
pub mod flame_graph;
pub mod html;
pub mod json;
pub mod mail;
pub mod markdown;
pub mod phrase;
pub mod shell;
pub mod text;

pub use flame_graph::folded;
pub use model::number;
pub use text::Ink;
