//! Where reads came from, in words.

use report::document::tied;
use report::number::{self, MISSING};

/// A note on direct reads that storage did not deliver. A file system that does not account its reads looks the same.
pub(crate) const DIRECT_FROM_MEMORY: &str =
    "served from memory: storage delivered nothing, or the file system (FUSE, virtiofs) does not account its reads";

/// "31 % of reads from storage": where a part of them came from. `memory` says where the others may come from.
pub fn source(from_storage: Option<f64>, what: &str, memory: &str) -> String {
    match from_storage {
        None => format!("{MISSING} unknown where {what} came from"),
        Some(0.0) => format!("{} of {what} {memory}", tied("100 %")),
        Some(part) if part < model::page_cache::WARM => format!("{} of {what} {memory}", tied("> 99.9 %")),
        Some(part) => format!("{} of {what} from storage", tied(&number::percent(part))),
    }
}
