//! What the pages of several verbs show, an idea each.

pub mod conditions;
pub mod explained;
pub mod limits;
pub mod parts;
pub mod placement;
pub mod plan;
pub mod probes;
pub mod provenance;
pub mod stored;
pub mod words;
pub mod workload;

#[cfg(test)]
pub mod tests;
