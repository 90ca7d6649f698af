//! The stacks of a run as lines for flame graphs.

use crate::cost::page::fixture;
use model::profile::StackFinding;
use report::flame_graph::*;

#[test]
fn a_folded_line_has_its_calls_and_cycles_and_several_phases_are_told_apart() {
    let mut finding = fixture::named("udp_like");
    assert_eq!(folded(&finding), None);
    let stacks = [("a;b", 2.5), ("a\nc", f64::NAN)];
    let stack = |(calls, cycles_per_io): (&str, f64)| StackFinding { calls: calls.to_owned(), cycles_per_io };
    finding.phases[0].functions.stacks = stacks.map(stack).to_vec();
    assert_eq!(folded(&finding).unwrap(), "a;b 2500\na c 0\n");
    let second = finding.phases[0].clone();
    finding.phases.push(second);
    finding.phases[1].jobs = vec!["x;y".to_owned(), "z".to_owned()];
    assert!(folded(&finding).unwrap().ends_with("\nx:y+z;a;b 2500\nx:y+z;a c 0\n"));
}
