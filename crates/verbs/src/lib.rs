//! What iotoll measures, a folder for each verb: its plan, its record, how it is measured, its study and its page. No verb knows another;
//! what they share is in the crates below, and in [`pages`].

/// For tests: a macro with every kind whose findings are made up in its `page/fixture.rs`.
#[cfg(test)]
macro_rules! fixtures {
    ($of:ident) => {
        $of! { cost compare guest ftq blast }
    };
}

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

pub use format::Format;

/// A finding that can be reported. Its JSON is its serialization; all other formats are rendered from its document.
pub trait Finding: Json {
    /// The finding as a document.
    fn document(&self) -> report::document::Document;

    /// The run of iotoll's own engines that it is, if it is one: only that has the numbers of fio's formats.
    fn own_run(&self) -> Option<&model::finding::RunFinding> {
        None
    }
}

/// What can be written as JSON.
pub trait Json {
    fn json(&self) -> String;
}

impl<T: serde::Serialize> Json for T {
    fn json(&self) -> String {
        report::json::json(self)
    }
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
