//! Fixed-time-quantum I/O: what one worker did in each quantum of time, with the kernel's counters on the same time axis.

pub mod finding;
pub mod measure;
pub mod page;
pub mod record;
mod series;
mod study;

pub use finding::FtqFinding;
pub use record::{FtqPlan, FtqRecord};
pub use study::study;
pub(crate) use study::{at_places, quantities};
