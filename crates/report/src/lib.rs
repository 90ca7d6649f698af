//! A finding as text: a cost sheet for the terminal, JSON for scripts, a mail for a patch thread. How a comparison is
//! written stands in [`compare`]; [`format`](mod@format) has a row for each format of either.
//!
//! Nothing here computes a statistic: every number is in the finding already, and changes at most
//! its unit. Nothing prints: a report is a `String`, and the binary decides where it goes.

pub mod compare;
mod conditions;
pub mod doctor;
pub mod format;
pub mod ink;
pub mod json;
pub mod mail;
pub mod number;
pub mod page;
mod placement;
pub mod probes;
mod provenance;
mod table;
pub mod terminal;

#[cfg(test)]
mod fixture;

pub use format::Format;
pub use ink::Ink;
pub use json::json;
pub use mail::mail;
pub use terminal::terminal;
