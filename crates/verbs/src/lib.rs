//! What iotoll measures, a folder for each verb: its plan, its record, how it is measured, its study and its page. No verb knows another;
//! what they share is in the crates below, and in [`pages`].

pub mod blast;
pub mod compare;
pub mod cost;
pub mod doctor;
pub mod format;
pub mod ftq;
pub mod guest;
pub mod history;
pub mod pages;

#[cfg(test)]
mod experiments;

#[cfg(test)]
mod hostile;

use lab::created::Created;
use lab::progress::Observer;
use lab::session::Settings;

pub use format::{Finding, Format};

/// How a verb measures; what implements it says what, besides what is the same for every verb.
pub trait Measure<R> {
    /// Measures. Files that are made for it are noted in `created`, and kept when it ends well.
    ///
    /// # Errors
    /// When nothing could be measured. What fails later is in the record, with everything measured before.
    fn measure(&self, settings: Settings, created: &Created, observer: Observer) -> lab::Result<R>;
}

/// Every kind of record: `$of::<R>()` for each.
#[macro_export]
macro_rules! kinds {
    ($of:ident) => {
        [
            $of::<model::record::Record>(),
            $of::<$crate::compare::CompareRecord>(),
            $of::<$crate::guest::GuestRecord>(),
            $of::<$crate::ftq::FtqRecord>(),
            $of::<$crate::blast::BlastRecord>(),
        ]
    };
}
