//! A recording of quanta as a document.

use crate::document::Document;
use model::ftq::FtqFinding;

/// The finding as a document.
pub(crate) fn document(finding: &FtqFinding) -> Document {
    let mut document = Document::default();
    document.title = finding.worker.clone();
    document
}
