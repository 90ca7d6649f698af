//! Small packets: several submitters send to one receiver, which counts what arrives.

pub mod experiment;
pub mod finding;
pub mod measure;
pub mod page;
pub mod plan;
pub mod record;
mod study;
#[cfg(test)]
mod tests;

pub use finding::BlastFinding;
pub use plan::{BlastPlan, Method};
pub use record::BlastRecord;
pub use study::study;
pub(crate) use study::{at_places, quantities};
