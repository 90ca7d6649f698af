//! Fixed-time-quantum I/O: what one worker did in each quantum of time, with the kernel's counters on the same time axis.

pub mod finding;
pub mod plan;
pub mod record;
mod series;
mod study;

pub use finding::FtqFinding;
pub use plan::FtqPlan;
pub use record::FtqRecord;
pub(crate) use study::quantities;
pub use study::study;
