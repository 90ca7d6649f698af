//! Comparing: an [`Experiment`](crate::experiment::Experiment) was measured into a [`record`], which
//! [`study`](study::study) turns into a [`finding`].

pub mod boots;
pub mod finding;
pub mod record;
pub mod stored;
pub mod study;

pub use finding::CompareFinding;
pub use record::{CompareRecord, RoundRecord, SliceRecord};
pub use stored::{Stored, study_against};
pub use study::regimes::TWO_REGIMES;
pub use study::study;
