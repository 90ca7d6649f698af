//! Finding → document → text.
//!
//! Each renderer turns a [`document::Document`] into text and knows no kind. JSON is the finding itself.
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

pub use model::number;
pub use text::Ink;
