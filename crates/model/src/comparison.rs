//! Comparisons: an [`Experiment`](crate::experiment::Experiment) is measured into a [`record`], and
//! [`study`](study::study) turns that into a [`finding`].

pub mod against_stored;
pub mod finding;
pub mod record;
pub mod study;

pub use finding::CompareFinding;
pub use record::{CompareRecord, RoundRecord, SliceRecord};
pub use study::regimes::TWO_REGIMES;
pub use study::study;
