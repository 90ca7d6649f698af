//! Comparisons: an [`Experiment`](model::experiment::Experiment) is measured into a [`record`], and
//! [`study`](study::study) turns that into a [`finding`].

pub mod against_stored;
pub mod finding;
pub mod measure;
pub mod page;
pub mod record;
pub mod study;

pub use finding::CompareFinding;
pub use record::{CompareRecord, RoundRecord, SliceRecord};
pub use study::study;
pub use study::which_rounds::TWO_REGIMES;

#[cfg(test)]
mod stored_files;
