//! For tests: findings of every kind.

use crate::{Finding, blast, compare, cost, doctor, experiment, ftq, guest, history};
use model::envelope::Kind;

type Examples = Vec<(String, Box<dyn Finding>)>;

/// Findings of every kind of record.
pub fn measured() -> Examples {
    fn named<F: Finding + 'static>(kind: Kind, findings: Vec<(&str, F)>) -> Examples {
        let name = |name: &str| format!("{}_{name}", kind.name());
        findings.into_iter().map(|(own, finding)| (name(own), Box::new(finding) as Box<dyn Finding>)).collect()
    }
    let of = |kind| match kind {
        Kind::Cost => named(kind, cost::fixture::all()),
        Kind::Compare => named(kind, compare::fixture::all()),
        Kind::Guest => named(kind, guest::fixture::all()),
        Kind::Ftq => named(kind, ftq::fixture::all()),
        Kind::Blast => named(kind, blast::fixture::all()),
    };
    Kind::all().flat_map(of).collect()
}

/// All that can be shown: also what no record contains.
pub fn all() -> Examples {
    let others: [(&str, Box<dyn Finding>); 3] = [
        ("doctor", Box::new(doctor::fixture())),
        ("experiment", Box::new(experiment::fixture())),
        ("history", Box::new(history::fixture::upgraded())),
    ];
    measured().into_iter().chain(others.map(|(name, finding)| (name.to_owned(), finding))).collect()
}
