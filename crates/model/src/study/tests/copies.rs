//! Copies of a job are one row for people, and jobs of one name are not.

use super::*;

/// Two jobs of one name, the first with three copies and the second with four, of 941 I/Os each.
fn two_jobs(group_reporting: bool) -> RunFinding {
    let load = Happening { busy: 60_000_000, thread: 30_000_000, ios: 1000, steal: 0 };
    let copies = [0, 1, 2, 0, 1, 2, 3].map(|copy| JobRecord {
        copy,
        group_reporting,
        wall_nanos: Nanos::from_secs(if copy == 2 { 2 } else { 1 }),
        ..job(941)
    });
    let execution = Execution { jobs: copies.to_vec(), ..execution(quiet(20, load), 0) };
    study(&record(vec![quiet(10, NOTHING)], vec![execution]))
}

#[test]
fn copies_of_one_job_are_merged_and_jobs_of_one_name_are_not() {
    for (group_reporting, apart) in [(false, 7), (true, 2)] {
        let finding = two_jobs(group_reporting);
        assert_eq!(finding.jobs.len(), apart);
        let [three, four] = finding.merged_jobs.as_slice() else { panic!("{:?}", finding.merged_jobs) };
        assert_eq!((three.copies, three.all.ios, three.all.bytes), (3, 3 * 941, 3 * 941 * 4096));
        assert_eq!((four.copies, four.all.ios, four.wall_seconds, four.all.iops), (4, 4 * 941, 2.0, 2.0 * 941.0));
        assert!(four.all.latency_ns.p99.is_some() && !has(&finding, Code::FewSamples), "{:?}", finding.head.warnings);
    }
    assert!(two_jobs(false).jobs.iter().all(|copy| copy.all.latency_ns.p99.is_none() && copy.copies == 1));
}

#[test]
fn the_slowest_and_the_fastest_copy_are_named_if_they_are_apart() {
    let finding = two_jobs(false);
    let apart = finding.merged_jobs[1].copies_apart.unwrap();
    assert_eq!((apart.slowest, apart.slowest_iops, apart.fastest_iops), (2, 470.5, 941.0));
    assert!(finding.jobs.iter().all(|copy| copy.copies_apart.is_none()));
    let even = |ios: [u64; 2]| {
        let copies = [0, 1].map(|copy| JobRecord { copy, ..job(ios[copy as usize]) });
        let execution = Execution { jobs: copies.to_vec(), ..execution(quiet(20, NOTHING), 0) };
        study(&record(vec![quiet(10, NOTHING)], vec![execution])).merged_jobs[0].copies_apart
    };
    assert!(even([1000, 1199]).is_none() && even([1000, 1210]).is_some());
}

#[test]
fn a_copy_that_failed_is_named_and_is_not_the_fastest() {
    let failed =
        JobRecord { copy: 1, errors: 1, error: Some("no space".to_owned()), wall_nanos: Nanos(1000), ..job(50) };
    let copies = vec![JobRecord { copy: 0, ..job(1000) }, failed, JobRecord { copy: 2, ..job(2000) }];
    let execution = Execution { jobs: copies, ..execution(quiet(20, NOTHING), 0) };
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution]));
    let [merged] = finding.merged_jobs.as_slice() else { panic!("{:?}", finding.merged_jobs) };
    assert_eq!(merged.error.as_deref(), Some("copy 1: no space"));
    assert_eq!(merged.copies_apart.map(|apart| (apart.slowest, apart.fastest)), Some((0, 2)));
    assert_eq!(finding.jobs[1].error.as_deref(), Some("no space"));
}
