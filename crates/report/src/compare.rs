//! A comparison as text: tables for the terminal, a mail and a pull request, CSV and JSON for programs, one HTML file.
//!
//! `contents` says what there is and in which order; `answer`, `changes`, `notes`, `section` and
//! `environment` put it into words and bare tables; each renderer lays these out and escapes them in its own way.
//! Nothing here computes a statistic.

mod answer;
mod change;
mod changes;
mod contents;
mod csv;
mod environment;
mod format;
mod html;
mod json;
mod layout;
mod mail;
mod markdown;
mod notes;
mod section;
mod terminal;
mod words;

#[cfg(test)]
mod fixture;

pub use csv::csv;
pub use format::CompareFormat;
pub use html::html;
pub use json::json;
pub use mail::mail;
pub use markdown::markdown;
pub use terminal::terminal;
