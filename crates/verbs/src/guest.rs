//! Guests: stacks of unmodified kernels, whose I/O costs emulated instructions.
//!
//! An instruction of a guest is neither a cycle nor a time, so it has types of its own.

pub mod draft;
pub mod finding;
mod functions;
pub mod measure;
pub mod page;
pub mod plan;
pub mod record;
mod study;
#[cfg(test)]
pub(crate) mod tests;

pub use finding::GuestFinding;
pub use plan::GuestPlan;
pub use record::GuestRecord;
pub use study::study;
pub(crate) use study::{at_places, differences, fits, quantities, study_against};
