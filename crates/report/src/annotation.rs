//! The instructions of one function of a measurement, as a report of their own.

use crate::cost::symbols;
use crate::document::{Document, Section};
use crate::format::Finding;
use crate::json;
use model::elided_list::elided_list;
use model::finding::RunFinding;

/// One function of a measurement.
#[derive(Clone, Debug)]
pub struct Annotation {
    finding: RunFinding,
    symbol: String,
}

impl Annotation {
    /// The function of this name, or the only one whose name contains it.
    ///
    /// # Errors
    /// When there is none, or more than one: which there are.
    pub fn of(finding: RunFinding, symbol: &str) -> Result<Self, String> {
        let mut names: Vec<String> =
            finding.phases.iter().flat_map(|phase| &phase.functions.annotated).map(|it| it.symbol.clone()).collect();
        if names.is_empty() && finding.phases.iter().any(|phase| phase.functions.profile.is_some()) {
            return Err("the record has samples, but no net cost above 0 to divide among instructions".to_owned());
        }
        if names.is_empty() {
            return Err("the record has no instructions: measure with --profile, on x86-64, and long enough".to_owned());
        }
        names.dedup();
        let known: Vec<String> = names.iter().filter(|name| name.contains(symbol)).cloned().collect();
        let found = match known.as_slice() {
            _ if names.iter().any(|name| name == symbol) => symbol.to_owned(),
            [only] => only.clone(),
            [] => {
                let names = elided_list(&names, ", ");
                return Err(format!("'{symbol}' has too few samples, or is no function; there are {names}"));
            }
            several => return Err(format!("'{symbol}' is a part of several names: {}", elided_list(several, ", "))),
        };
        Ok(Self { finding, symbol: found })
    }
}

impl Finding for Annotation {
    fn document(&self) -> Document {
        let whole = self.finding.document();
        let several = self.finding.phases.len() > 1;
        let functions = self.finding.phases.iter().flat_map(|phase| {
            let of_it = phase.functions.annotated.iter().filter(|function| function.symbol == self.symbol);
            let title = if several { phase.jobs.join(", ") } else { String::new() };
            of_it.map(move |function| Section::new(title.clone(), vec![symbols::listing(function, phase)]))
        });
        Document { sections: functions.collect(), ..whole }
    }

    fn json(&self) -> String {
        let of_it = self.finding.phases.iter().flat_map(|phase| &phase.functions.annotated);
        json::json(&of_it.filter(|function| function.symbol == self.symbol).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::fixture;
    use crate::{Format, Ink};

    #[test]
    fn the_lines_around_the_largest_are_shown() {
        let annotation = Annotation::of(fixture::named("profiled"), "direct_IO").unwrap();
        insta::assert_snapshot!("annotation_at_100", Format::Table.render(&annotation, Ink::Plain, 100));
    }

    #[test]
    fn an_unknown_function_names_those_that_are_known() {
        let refused = |name: &str| Annotation::of(fixture::named("profiled"), name).map(|_| ()).unwrap_err();
        assert_eq!(refused("vfs_x"), "'vfs_x' has too few samples, or is no function; there are do_blockdev_direct_IO");
        let mut finding = fixture::named("profiled");
        let mut other = finding.phases[0].functions.annotated[0].clone();
        other.symbol = "do_blockdev".to_owned();
        finding.phases[0].functions.annotated.push(other);
        let refused = Annotation::of(finding.clone(), "do_").map(|_| ()).unwrap_err();
        assert_eq!(refused, "'do_' is a part of several names: do_blockdev_direct_IO, do_blockdev");
        assert!(Annotation::of(finding, "do_blockdev").is_ok(), "a whole name is no part");
        let refused = Annotation::of(fixture::named("psync_4k"), "x").map(|_| ()).unwrap_err();
        assert!(refused.contains("measure with --profile"), "{refused}");
    }
}
