//! The study: exact values, intervals over replicates, changes, what moved, caveats, and records that are cut off or wrong.

use super::draft::{Draft, JobDraft};
use super::record::{End, FunctionCount, GuestRecord, Header, InstructionCount, Measured};
use super::study;
use crate::guest::finding::{FunctionFinding, GuestFinding, PointFinding};
use model::record::Outcome;
use model::stats::Verdict;
use model::warning::Code;
use proptest::prelude::*;

/// A plan of `jobs` jobs on each of `kernels` kernels. Points are job by job, kernel by kernel.
pub(crate) fn record(kernels: usize, jobs: usize, measured: Vec<Measured>) -> GuestRecord {
    let job = |number: usize| JobDraft {
        name: format!("job {number}"),
        stacks: vec!["tmpfs".to_owned()],
        ..JobDraft::default()
    };
    let kernels = (0..kernels).map(|number| format!("k{number}")).collect();
    let plan = Draft { kernels, jobs: (0..jobs).map(job).collect(), ..Draft::default() }
        .resolve(&model::plan::Settings::default())
        .unwrap();
    let end = End { outcome: Outcome::Completed, warnings: Vec::new(), seconds: 1.0 };
    GuestRecord { header: Header { plan, ..Header::default() }, measured, end: Some(end) }
}

/// 100 I/Os of this many instructions each, a tenth of them of programs, a twentieth of string instructions.
fn guest(point: usize, replicate: u32, per_io: u64) -> Measured {
    let total = 100 * per_io;
    Measured {
        point,
        replicate,
        ios: 100,
        bytes: 409_600,
        clock_nanos: total,
        instructions: InstructionCount {
            total,
            programs: total / 10,
            string: total / 20,
            ..InstructionCount::default()
        },
        counters: [("sends".to_owned(), 100 + i64::from(replicate))].into(),
        guest: format!("{point}-{replicate}"),
    }
}

fn guests(point: usize, per_io: &[u64]) -> Vec<Measured> {
    per_io.iter().zip(0..).map(|(per_io, replicate)| guest(point, replicate, *per_io)).collect()
}

/// Two kernels, one job.
fn pair(baseline: &[u64], candidate: &[u64]) -> GuestFinding {
    study(&record(2, 1, [guests(0, baseline), guests(1, candidate)].concat()))
}

fn point(finding: &GuestFinding, number: usize) -> &PointFinding {
    finding.points.get(number).unwrap()
}

fn codes(finding: &GuestFinding) -> Vec<Code> {
    finding.head.warnings.iter().map(|warning| warning.code).collect()
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9 * expected.abs().max(1.0)
}

#[test]
fn identical_replicates_give_an_exact_value() {
    let finding = study(&record(1, 1, guests(0, &[5830, 5830, 5830])));
    let point = point(&finding, 0);
    let value = point.instructions_per_io.unwrap();
    assert_eq!((value.value, value.low, value.high), (5830.0, Some(5830.0), Some(5830.0)));
    assert_eq!((point.ios, point.bytes, point.replicates), (100, 409_600, 3));
    let parts = [point.kernel_instructions_per_io, point.program_instructions_per_io, point.string_repetitions_per_io];
    assert_eq!(parts.map(|part| part.unwrap().0), [5247.0, 583.0, 291.5]);
    assert_eq!(point.path_proof.get("sends"), Some(&100), "of the first replicate");
    assert_eq!((finding.unit.as_str(), finding.seconds), ("instructions, emulated", Some(1.0)));
    assert!(finding.head.warnings.is_empty() && point.change.is_none());
}

/// scipy.stats.t.interval(0.95, 4, loc=numpy.mean(x), scale=scipy.stats.sem(x)) of these five values.
#[test]
fn the_interval_is_students_over_replicates() {
    let finding = study(&record(1, 1, guests(0, &[100, 102, 104, 106, 108])));
    let value = point(&finding, 0).instructions_per_io.unwrap();
    assert!(close(value.value, 104.0));
    assert!(close(value.half_width().unwrap(), 2.776_445_105_197_793_4 * 2.0_f64.sqrt()), "{value:?}");
}

#[test]
fn one_replicate_has_a_value_but_no_interval_no_verdict_and_no_spread() {
    let finding = pair(&[100], &[150]);
    let point = point(&finding, 1);
    assert_eq!(point.instructions_per_io.unwrap().low, None);
    let change = point.change.as_ref().unwrap();
    assert_eq!((change.difference, change.change.low), (50.0, None));
    assert!(close(change.change.value, 0.5));
    assert_eq!((change.verdict, change.beyond_layouts), (Verdict::Inconclusive, false));
    assert!(codes(&finding).is_empty(), "the spread is not known");
}

#[test]
fn a_change_without_any_spread_is_exact() {
    let finding = pair(&[4408; 5], &[4811; 5]);
    let change = point(&finding, 1).change.as_ref().unwrap();
    assert_eq!(change.difference, 403.0);
    assert!(close(change.change.value, 403.0 / 4408.0) && close(change.change.low.unwrap(), 403.0 / 4408.0));
    assert_eq!((change.verdict, change.beyond_layouts), (Verdict::Worse, true));
    let back = pair(&[4811; 5], &[4408; 5]);
    assert_eq!(point(&back, 1).change.as_ref().unwrap().verdict, Verdict::Better, "fewer instructions are better");
    let equal = pair(&[4408; 3], &[4408; 3]);
    let change = point(&equal, 1).change.as_ref().unwrap();
    assert_eq!((change.difference, change.verdict, change.beyond_layouts), (0.0, Verdict::NoDifference, false));
    assert!(equal.head.warnings.is_empty(), "nothing changed");
}

#[test]
fn a_change_within_the_spread_of_layouts_is_said_to_be_so() {
    let finding = pair(&[1000, 1010, 1020, 1005, 1015], &[1002, 1012, 1022, 1007, 1017]);
    let change = point(&finding, 1).change.as_ref().unwrap();
    assert!(!change.beyond_layouts && change.change.contains(0.0) == Some(true));
    assert_eq!(codes(&finding), [Code::WithinLayouts]);
    let message = &finding.head.warnings.first().unwrap().message;
    assert!(message.starts_with("job 0, k1: the change is within the spread of the replicates"), "{message}");
}

#[test]
fn points_are_compared_with_the_same_job_of_the_first_kernel() {
    let measured = [guests(0, &[100; 2]), guests(1, &[110; 2]), guests(2, &[200; 2]), guests(3, &[180; 2])].concat();
    let finding = study(&record(2, 2, measured));
    let differences: Vec<_> =
        finding.points.iter().map(|point| point.change.as_ref().map(|change| change.difference)).collect();
    assert_eq!(differences, [None, Some(10.0), None, Some(-20.0)]);
}

fn function(name: &str, module: Option<&str>, count: u64) -> FunctionCount {
    FunctionCount { name: name.to_owned(), module: module.map(str::to_owned), count, ..FunctionCount::default() }
}

fn by_function(point: usize, replicate: u32, functions: Vec<FunctionCount>) -> Measured {
    let total = functions.iter().map(|function| function.count).sum();
    let instructions = InstructionCount { total, functions, ..InstructionCount::default() };
    Measured { instructions, clock_nanos: total, ..guest(point, replicate, 0) }
}

#[test]
fn clones_are_one_function_and_renames_within_a_subsystem_are_one_move() {
    let before = vec![
        function("tcp_sendmsg.isra.0", None, 3000),
        function("tcp_sendmsg.cold", None, 1000),
        function("nfs_old", Some("nfs"), 5000),
        function("zzz", None, 700),
    ];
    let after =
        vec![function("tcp_sendmsg", None, 4100), function("nfs_new", Some("nfs"), 5200), function("zzz", None, 700)];
    let finding = study(&record(2, 1, vec![by_function(0, 0, before), by_function(1, 0, after)]));
    let point = point(&finding, 1);
    let row = |it: &FunctionFinding| (it.name.clone(), it.instructions_per_io, it.change);
    let shown: Vec<_> = point.functions.iter().map(row).collect();
    // A function that is gone is listed with 0.
    let row = |name: &str, now, change| (name.to_owned(), now, Some(change));
    let rows =
        [row("nfs_new", 52.0, 52.0), row("tcp_sendmsg", 41.0, 1.0), row("zzz", 7.0, 0.0), row("nfs_old", 0.0, -50.0)];
    assert_eq!(shown, rows);
    let moved = point.change.iter().flat_map(|change| &change.moved);
    let moved: Vec<_> = moved.map(|moved| (moved.name.as_str(), moved.difference())).collect();
    assert_eq!(moved, [("NFS and SunRPC", 2.0), ("network", 1.0), ("zzz", 0.0)]);
}

#[test]
fn an_interrupted_record_says_how_far_it_came() {
    let mut record = record(2, 1, guests(0, &[100, 101]));
    record.end = None;
    let finding = study(&record);
    assert_eq!((finding.head.outcome.clone(), finding.seconds), (Outcome::Interrupted, None));
    assert_eq!(codes(&finding), [Code::Interrupted]);
    let message = &finding.head.warnings.first().unwrap().message;
    assert_eq!(message, "the measurement was interrupted: 2 of 10 replicates were measured");
    let missing = point(&finding, 1);
    assert_eq!((missing.instructions_per_io, missing.replicates, missing.idle_fraction), (None, 0, None));
    assert!(missing.change.is_none() && missing.path_proof.is_empty() && missing.functions.is_empty());
}

#[test]
fn a_failed_record_gives_the_reason() {
    let mut record = record(1, 1, guests(0, &[100]));
    record.end = Some(End { outcome: Outcome::Failed("it hung".to_owned()), warnings: Vec::new(), seconds: 2.0 });
    let finding = study(&record);
    assert_eq!(codes(&finding), [Code::JobFailed]);
    assert_eq!(finding.head.warnings.first().unwrap().message, "it hung");
}

#[test]
fn a_guest_that_waited_is_said_to_have() {
    let mut measured = guests(0, &[100, 100]);
    measured.iter_mut().for_each(|measured| measured.clock_nanos = 20_000);
    let finding = study(&record(1, 1, measured));
    assert!(close(point(&finding, 0).idle_fraction.unwrap(), 0.5));
    assert_eq!(codes(&finding), [Code::GuestWaited]);
}

#[test]
fn a_replicate_without_ios_counts_nothing() {
    let mut measured =
        vec![by_function(0, 0, vec![function("f", None, 500)]), by_function(0, 1, vec![function("f", None, 700)])];
    measured.push(Measured { ios: 0, ..by_function(0, 2, vec![function("f", None, 900)]) });
    let finding = study(&record(1, 1, measured));
    let point = point(&finding, 0);
    assert_eq!((point.instructions_per_io.unwrap().value, point.replicates), (6.0, 2));
    let sum: f64 = point.functions.iter().map(|function| function.instructions_per_io).sum();
    assert!(close(sum, 6.0), "{sum}");
}

#[test]
fn every_guest_is_named_by_what_it_is_made_of() {
    let finding = study(&record(2, 1, vec![guest(0, 0, 1), guest(1, 3, 1)]));
    let hashes: Vec<_> = finding.hashes.iter().map(|(name, hash)| format!("{name}: {hash}")).collect();
    assert_eq!(hashes, ["0 job 0 k0 0: 0-0", "1 job 0 k1 3: 1-3"]);
}

/// Names from several subsystems, clones among them.
fn any_functions() -> impl Strategy<Value = Vec<FunctionCount>> {
    let name =
        prop::sample::select(vec!["tcp_a", "tcp_a.isra.0", "nfs_b", "zzz", "__schedule", "[programs]", "x.cold"]);
    let module = prop::sample::select(vec![None, Some("nfs"), Some("brd")]);
    prop::collection::vec((name, module, 0..1_000_000_u64), 0..12)
        .prop_map(|all| all.into_iter().map(|(name, module, count)| function(name, module, count)).collect())
}

proptest! {
    /// Functions sum to the total, and their changes and what moved to the difference.
    #[test]
    fn parts_sum_to_the_whole(parts in prop::collection::vec(any_functions(), 2..7), ios in 1..5000_u64) {
        let measured = parts.into_iter().zip(0_u32..).map(|(functions, number)| {
            Measured { ios, ..by_function(number as usize % 2, number / 2, functions) }
        });
        let finding = study(&record(2, 1, measured.collect()));
        for point in &finding.points {
            let sum: f64 = point.functions.iter().map(|function| function.instructions_per_io).sum();
            prop_assert!(close(sum, point.instructions_per_io.unwrap().value), "{sum}");
        }
        if let Some(change) = &point(&finding, 1).change {
            let changes: f64 = point(&finding, 1).functions.iter().filter_map(|function| function.change).sum();
            let moved: f64 = change.moved.iter().map(|moved| moved.difference()).sum();
            prop_assert!((changes - change.difference).abs() < 1e-3 && (moved - change.difference).abs() < 1e-3);
        }
    }

    /// Whatever a record holds, it can be studied, and every interval contains its value.
    #[test]
    fn any_record_can_be_studied(
        raw in prop::collection::vec((0..4_usize, 0..4_u32, any::<u64>(), any::<u64>(), any::<u64>(), any::<i64>()), 0..12)
    ) {
        let measured = raw.into_iter().map(|(point, replicate, ios, total, clock_nanos, counter)| Measured {
            ios: if ios % 4 == 0 { 0 } else { ios },
            clock_nanos,
            instructions: InstructionCount { total, programs: counter.unsigned_abs(), ..InstructionCount::default() },
            counters: [("c".to_owned(), counter)].into(),
            ..guest(point, replicate, 1)
        });
        let finding = study(&record(2, 2, measured.collect()));
        for point in &finding.points {
            let change = point.change.as_ref().map(|change| change.change);
            for value in [point.instructions_per_io, change].into_iter().flatten() {
                let tolerance = 1e-9 * value.value.abs();
                prop_assert!(value.low.is_none_or(|low| low <= value.value + tolerance), "{value:?}");
                prop_assert!(value.high.is_none_or(|high| high + tolerance >= value.value), "{value:?}");
            }
        }
    }
}

#[test]
fn limits_are_judged_exactly_by_one_replicate_and_by_the_interval_of_several() {
    use model::kind::{self, Recorded};
    use model::limit::LimitState::{self, Exceeded, Kept, Undecided};
    use model::limit::judge;
    use model::stored::Stored;
    let states = |record: &GuestRecord, stored: Option<&GuestRecord>, text: &str| -> Vec<(String, LimitState)> {
        let limits = kind::limits::<GuestRecord>(&[text.to_owned()], record.plan(), stored.is_some()).unwrap();
        let stored = stored.map(|stored| Stored::new("then", stored.clone()));
        let found = judge(&limits, |metric| record.at_places(&record.study(stored.as_ref()), stored.as_ref(), metric));
        found.into_iter().map(|limit| (limit.arm, limit.state)).collect()
    };
    let arm = |arm: &str, state| (arm.to_owned(), state);
    let exact = record(2, 1, [guests(0, &[1000]), guests(1, &[1010])].concat());
    assert_eq!(states(&exact, None, "instructions_per_io > +0.5%"), [arm("k1", Exceeded)]);
    assert_eq!(states(&exact, None, "instructions_per_io > +1.5%"), [arm("k1", Kept)]);
    let both = [arm("k1", Exceeded), arm("k0", Kept)];
    assert_eq!(states(&exact, None, "instructions_per_io > 1005"), both, "the worst first");
    // 10 % of them are of programs.
    assert_eq!(states(&exact, None, "kernel_instructions_per_io > 1k"), [arm("k1", Kept), arm("k0", Kept)]);
    let spread = record(2, 1, [guests(0, &[1000, 1010, 990]), guests(1, &[1010, 1020, 1000])].concat());
    assert_eq!(states(&spread, None, "instructions_per_io > +0.5%"), [arm("k1", Undecided)]);
    assert_eq!(states(&spread, None, "instructions_per_io > +9%"), [arm("k1", Kept)]);
    // Against an earlier record of the first kernel alone.
    let then = record(1, 1, guests(0, &[1000]));
    let now = record(1, 1, guests(0, &[1001]));
    assert_eq!(states(&now, Some(&then), "instructions_per_io > +0.05%"), [arm("", Exceeded)]);
    assert_eq!(
        states(&exact, Some(&then), "instructions_per_io > +0.5%"),
        [arm("k1", Exceeded), arm("k0", Kept)],
        "a kernel that it does not have, against its baseline"
    );
    let empty = record(1, 1, Vec::new());
    assert_eq!(states(&now, Some(&empty), "instructions_per_io > +0.5%"), [arm("", Undecided)]);
    let texts = ["instructions_per_io > +0.5%".to_owned()];
    let refused = kind::limits::<GuestRecord>(&texts, now.plan(), false).unwrap_err();
    assert!(refused.contains("--stored") && refused.contains("several kernels"), "{refused}");
    assert!(then.fits(record(1, 2, Vec::new()).plan()).is_ok());
}

#[test]
fn calls_are_those_of_the_function_and_not_of_its_parts() {
    let named = |name: &str, entries| FunctionCount { entries, ..function(name, None, 1000) };
    let sent = |entries| named("tcp_sendpage", entries);
    let before = vec![sent(25_600), named("f.part.0", 50), named("f", 100), named("g.constprop.0", 200)];
    let after = vec![sent(3300), named("f", 100)];
    let finding = study(&record(2, 1, vec![by_function(0, 0, before), by_function(1, 0, after)]));
    let calls = |point: usize, name: &str| {
        let found = self::point(&finding, point).functions.iter().find(|it| it.name == name).unwrap();
        (found.calls_per_io, found.baseline_calls_per_io)
    };
    assert_eq!(calls(0, "tcp_sendpage"), (256.0, None));
    assert_eq!(calls(1, "tcp_sendpage"), (33.0, Some(256.0)));
    assert_eq!(calls(0, "f"), (1.0, None));
    assert_eq!(calls(0, "g"), (2.0, None));
    assert_eq!(calls(1, "g"), (0.0, Some(2.0)));
}
