//! What a foreign program reports of itself, and what the user states of it.

use super::*;

fn says(code: Code, execution: &Execution) -> bool {
    has(&study(&record(vec![quiet(10, NOTHING)], vec![execution.clone()])), code)
}

/// `cost --bytes`.
#[test]
fn bytes_that_are_stated_are_no_missing_count() {
    let mut stated = execution(quiet(20, NOTHING), 0);
    assert!(says(Code::WorkUnknown, &stated));
    stated.jobs[0].read.bytes = Bytes(1 << 20);
    assert!(!says(Code::WorkUnknown, &stated));
}

#[test]
fn percentiles_that_a_program_does_not_report_are_not_for_want_of_ios() {
    let mut few = execution(quiet(20, NOTHING), 5);
    assert!(says(Code::FewSamples, &few));
    few.jobs[0].read.latency = Latency::Reported { mean_nanos: 1e3, max_nanos: Nanos(2000), percentiles: Vec::new() };
    assert!(!says(Code::FewSamples, &few));
}
