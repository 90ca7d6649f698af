//! A comparison as text: tables for the terminal, a mail and a pull request, CSV for programs, one HTML file.
//!
//! `contents` says what there is and in which order; `answer`, `changes`, `notes`, `section`, `stored` and
//! `environment` put it into words and bare tables; each renderer lays these out and escapes them in its own way.
//! Nothing here computes a statistic.

mod answer;
mod change;
mod changes;
mod conditions;
mod contents;
mod csv;
mod environment;
mod html;
mod layout;
mod mail;
mod markdown;
mod notes;
mod section;
mod span;
mod stored;
mod terminal;
mod words;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod hostile;

pub use csv::csv;
pub use html::html;
pub use mail::mail;
pub use markdown::markdown;
pub use terminal::terminal;
