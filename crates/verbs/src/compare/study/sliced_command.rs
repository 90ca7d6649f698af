//! Caveats of commands that took turns in slices: what their counter misses, and what counting costs.

use super::View;
use crate::compare::record::{CommandTotal, End, SliceReading, SliceRecord};
use model::experiment::Metric;
use model::experiment::work_counter::{self, Counted};
use model::slice::{Rounds, bytes_of_a_message, counts};
use model::stats::basics::quantile;
use model::warning::{Code, Warning};

/// A counter and the command's own total that differ by more than this fraction are a caveat: two thirds of the default
/// margin, so that it is not hidden in a verdict.
const DISAGREEMENT: f64 = 0.02;

/// A noticeable part of the slices has no counts.
pub(super) fn uncounted(record: View) -> Option<Warning> {
    /// Which slices they are is not chance: a ring is hidden longest when its command was interrupted in the middle of a submission.
    const NOTICEABLE: f64 = 0.01;
    let slices = || record.rounds.iter().flat_map(|round| &round.slices).filter(|slice| slice.case.is_some());
    let (missing, all) = (slices().filter(|slice| slice.reading.is_uncounted()).count(), slices().count());
    let counter = record.header.work_counter.as_ref()?;
    let message = format!(
        "{missing} of {all} slices are left out, because the counter {} could not be read at their ends; choose another counter with \
         --count",
        counter.name
    );
    (missing as f64 > NOTICEABLE * all as f64).then(|| Warning::new(Code::WorkUnknown, message))
}

/// The counter and the commands' own totals disagree: the case with the largest difference.
pub(super) fn disagreement(record: View) -> Option<Warning> {
    let header = record.header;
    let counter = header.work_counter.as_ref()?;
    let experiment = &header.experiment;
    let found = experiment.cases.iter().enumerate().filter_map(|(place, case)| {
        let totals =
            record.rounds.iter().filter_map(|round| round.commands.iter().find(|it| it.cases.contains(&place)));
        let (mut count, mut own) = (0.0, 0.0);
        for total in totals {
            count += total.count as f64;
            own += own_count(total, counter.counts)?;
        }
        let arm = experiment.arms.get(case.arm)?;
        (own > 0.0).then(|| (arm.name.as_str(), count / own - 1.0))
    });
    let (arm, part) = found.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()))?;
    let message = format!(
        "{} counted {:.1} % {} than arm '{arm}' reports itself: its slices are scaled to its own total, which is right only \
         if the difference is the same all the time; choose another counter with --count",
        counter.name,
        part.abs() * 100.0,
        if part > 0.0 { "more" } else { "less" },
    );
    (part.abs() > DISAGREEMENT).then(|| Warning::new(Code::CountersDisagree, message))
}

/// Counted by reads and writes that look like log lines, of a command that does not report what it does: its I/Os may go another
/// way, which the rehearsal did not see while the command still started.
pub(super) fn like_log_lines(record: View) -> Option<Warning> {
    const LOG_LINE: f64 = 512.0;
    let header = record.header;
    let counter = header.work_counter.as_ref()?;
    let told = |end: &End| end.warnings.iter().any(|warning| warning.code == Code::CountersDisagree);
    let unasked = counter.reason != work_counter::NAMED;
    if record.end.is_some_and(told) || !unasked || !work_counter::is_of_system_calls(&counter.name) {
        return None;
    }
    let experiment = &header.experiment;
    let found = experiment.cases.iter().enumerate().filter_map(|(place, case)| {
        let arm = experiment.arms.get(case.arm)?;
        typical_message(record, place).filter(|size| *size < LOG_LINE).map(|size| (arm.name.as_str(), size))
    });
    let (arm, size) = found.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let message = format!(
        "the slices of arm '{arm}' are counted by {}, and its typical call moves {size:.0} bytes, like a log line; if that is not its \
         work, name another counter with --count",
        counter.name
    );
    Some(Warning::new(Code::CountersDisagree, message))
}

/// Bytes of a typical call, or segment, of a case whose command does not report what it does.
fn typical_message(record: View, place: usize) -> Option<f64> {
    let mut totals = record.rounds.iter().flat_map(|round| &round.commands).filter(|it| it.cases.contains(&place));
    if totals.any(|total| total.own.is_some()) {
        return None;
    }
    let size = |slice: &SliceRecord| match &slice.reading {
        SliceReading::Command { first, last, .. } => bytes_of_a_message(first, last),
        SliceReading::Slice { .. } | SliceReading::Execution(_) => None,
    };
    let slices = record.rounds.iter().flat_map(|round| &round.slices).filter(|slice| slice.case == Some(place));
    let mut sizes: Vec<f64> = slices.filter_map(size).collect();
    quantile(&mut sizes, 0.5)
}

/// Two arms whose bytes are counted and whose messages differ: equal work may be other bytes, and equal bytes other work.
pub(super) struct Unlike {
    pub why: String,
    /// Whether the user says that bytes are the work.
    bytes_are_work: bool,
}

impl Unlike {
    /// `None` if the messages of two cases are alike, or unknown.
    pub fn of(record: View, cases: [usize; 2]) -> Option<Self> {
        const ALIKE: f64 = 0.05;
        /// Larger segments are cut by TCP, not by the program.
        const STREAM: f64 = 16_384.0;
        let counter = record.header.work_counter.as_ref().filter(|it| it.counts == Counted::Bytes)?;
        let [Some(one), Some(other)] = cases.map(|case| typical_message(record, case)) else { return None };
        let are_calls = work_counter::is_of_system_calls(&counter.name);
        if (other / one).ln().abs() <= ALIKE || !are_calls && one.min(other) > STREAM {
            return None;
        }
        let bytes_are_work = counter.reason == work_counter::NAMED;
        let (message, calls) = (if are_calls { "call" } else { "TCP segment" }, work_counter::SYSTEM_CALLS);
        let differ = format!("a typical {message} moves {one:.0} bytes in one arm and {other:.0} in the other, so");
        let why = match bytes_are_work {
            true => format!(
                "{differ} only costs and rates of bytes, which --count names, compare equal work; --count {calls} for system calls"
            ),
            false => format!(
                "{differ} equal bytes may not be equal work; name what counts the work: --count {} for bytes, --count {calls} for system calls",
                counter.name
            ),
        };
        Some(Self { why, bytes_are_work })
    }

    /// Whether the arms do other work by this metric.
    pub fn concerns(&self, metric: Metric) -> bool {
        metric.is_of_work()
            && !(self.bytes_are_work && matches!(metric, Metric::CyclesPerByte | Metric::BytesPerSecond))
    }
}

/// The largest part of a case's measured cost that counting takes, with the case; `None` if counting is free or the cost is unknown.
pub(super) fn counting_fraction(record: View, sums: &Rounds) -> Option<(usize, f64)> {
    let nanos = record.header.work_counter.as_ref()?.nanos_per_count?;
    let parts = (0..sums.cases()).filter_map(|case| {
        let slices = record.rounds.iter().flat_map(|round| &round.slices).filter(|slice| slice.case == Some(case));
        let counted = |slice: &SliceRecord| match &slice.reading {
            SliceReading::Command { first, last, .. } => counts(first, last),
            SliceReading::Slice { .. } | SliceReading::Execution(_) => None,
        };
        let spent = slices.filter_map(counted).sum::<f64>() * nanos / 1e9 * sums.clock();
        // On a busy machine the load squeezes the background, and without a meter of the whole machine nothing is net: the cost is at
        // least that of the own threads.
        let cost = [sums.net_cycles(case), sums.thread_cycles(case)].into_iter().flatten().reduce(f64::max)?;
        Some((case, if cost > spent { spent / cost } else { 1.0 }))
    });
    parts.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// Counting is a noticeable part of the cost.
pub(super) fn counting_costs(record: View, sums: &Rounds) -> Option<Warning> {
    /// A third of the default margin.
    const NOTICEABLE: f64 = 0.01;
    let header = record.header;
    let nanos = header.work_counter.as_ref()?.nanos_per_count?;
    let (case, part) = counting_fraction(record, sums)?;
    let experiment = &header.experiment;
    let arm = experiment.arms.get(experiment.cases.get(case)?.arm)?;
    let message = format!(
        "counting takes {nanos:.0} ns or more of each system call, about {:.0} % of the measured cost of arm '{}': costs are too \
         high, rates too low, and an arm with more system calls loses more; choose another counter with --count, or use --slices off",
        part * 100.0,
        arm.name
    );
    (part > NOTICEABLE).then(|| Warning::new(Code::CountingCosts, message))
}

/// What a command reports itself, in the counter's unit.
fn own_count(total: &CommandTotal, counts: Counted) -> Option<f64> {
    let own = total.own?;
    Some(match counts {
        Counted::Bytes => own.bytes.as_f64(),
        Counted::Ios => own.ios as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::super::study;
    use super::super::tests::{Load, experiment, record};
    use super::*;
    use crate::compare::record::{CommandReading, Schedule};
    use crate::compare::{CompareFinding, CompareRecord};
    use model::experiment::{Draft, WorkCounter};
    use model::meter::Meter;
    use model::record::Done;
    use model::unit::{Bytes, Nanos};

    fn counter(counts: Counted) -> WorkCounter {
        WorkCounter { name: "x".to_owned(), counts, what: String::new(), reason: String::new(), nanos_per_count: None }
    }

    fn reading(count: u64, calls: Option<u64>) -> CommandReading {
        CommandReading { count: Some(count), calls, thread_nanos: Some(Nanos(count)), ..CommandReading::default() }
    }

    /// A counter that counts each byte twice gives the same figures, and a caveat.
    #[test]
    fn slices_of_commands_are_studied_as_other_slices() {
        let load =
            |round: usize, case: usize| Load { nanos_per_io: 1000 + 100 * case as u64, ios: 900 + 10 * round as u64 };
        let plain = record(experiment(Draft::default()), 12, load);
        let mut sliced = plain.clone();
        let nanos = Nanos(0);
        sliced.header.schedule = Schedule::SlicedCommands { slice_nanos: nanos, guard_nanos: nanos, blocks: 1 };
        sliced.header.work_counter = Some(counter(Counted::Bytes));
        for round in &mut sliced.rounds {
            for slice in &mut round.slices {
                let SliceReading::Slice { before, after, work, .. } = slice.reading.clone() else { continue };
                let Some(case) = slice.case else { continue };
                let (own, count) = (Some(Done { ios: work.ios, bytes: work.bytes }), 2 * work.bytes.0);
                round.commands.push(CommandTotal { cases: vec![case], own, own_read: None, count });
                let at = |at_nanos, count, nanos| CommandReading {
                    at_nanos,
                    count: Some(count),
                    thread_nanos: Some(nanos),
                    ..CommandReading::default()
                };
                let first = at(before.at_nanos, 0, Nanos(0));
                let last = at(after.at_nanos, count, work.thread_nanos);
                slice.reading = SliceReading::Command { before, first, last, after };
            }
        }
        // Slices of the first arm without a count in two of twelve rounds: they are left out, and said.
        let mut holes = sliced.clone();
        for slice in
            holes.rounds.iter_mut().take(2).flat_map(|round| &mut round.slices).filter(|slice| slice.case == Some(0))
        {
            let SliceReading::Command { last, .. } = &mut slice.reading else { continue };
            last.count = None;
        }
        let said = study(&holes).head.warnings;
        assert!(
            said.iter()
                .any(|warning| warning.code == Code::WorkUnknown && warning.message.contains("slices are left out"))
        );
        for slice in holes.rounds.iter_mut().flat_map(|round| &mut round.slices) {
            let SliceReading::Command { last, .. } = &mut slice.reading else { continue };
            last.count = None;
        }
        // No process ended: nothing was counted.
        let reason = study(&holes).cells[0].metrics["thread_cycles_per_io"].reason.clone().unwrap_or_default();
        assert!(!reason.contains("ended") && !reason.is_empty(), "{reason}");
        // So busy without the commands that they cost nothing more.
        let mut busy = sliced.clone();
        for slice in busy.rounds.iter_mut().flat_map(|round| &mut round.slices).filter(|slice| slice.case.is_none()) {
            let SliceReading::Slice { after, .. } = &mut slice.reading else { continue };
            for meter in [Meter::TimerList, Meter::Idle] {
                after.counts.get_mut(meter).unwrap().total -= 1_000_000;
            }
        }
        let counting_costs = |sliced: &CompareRecord, nanos_per_io: f64| {
            let mut slowed = sliced.clone();
            let counter = slowed.header.work_counter.as_mut().unwrap();
            // Two counts for each of 4096 bytes.
            counter.nanos_per_count = Some(nanos_per_io / 8192.0);
            let found = study(&slowed);
            let said = found.head.warnings.iter().any(|warning| warning.code == Code::CountingCosts);
            (said, found.counting_fraction.unwrap())
        };
        // A tenth of the first arm's I/O, which costs 1000 ns; next to nothing; more than there is.
        let (said, part) = counting_costs(&sliced, 100.0);
        assert!(said && (0.095..0.105).contains(&part), "{part}");
        let (said, part) = counting_costs(&sliced, 1.0);
        assert!(!said && (0.000_9..0.001_1).contains(&part), "{part}");
        assert_eq!(counting_costs(&sliced, 9999.0), (true, 1.0));
        let (said, part) = counting_costs(&busy, 100.0);
        assert!(said && (0.05..0.105).contains(&part), "{part}");
        let (plain, sliced) = (study(&plain), study(&sliced));
        for metric in ["iops", "cycles_per_io", "bytes_per_second", "thread_cycles_per_io"] {
            let of = |finding: &CompareFinding| {
                let found = &finding.cells[0].metrics[metric];
                let known = |value: Option<f64>| value.unwrap();
                ([found.baseline, found.candidate].map(known), [found.low, found.high].map(known))
            };
            let ((plain, ends), (sliced, sliced_ends)) = (of(&plain), of(&sliced));
            for (one, other) in plain.into_iter().zip(sliced) {
                assert!((one - other).abs() <= 1e-9 * one.abs(), "{metric}: {one} {other}");
            }
            // Without noise, an interval is as wide as the steps of the readings, which are not the same.
            for (one, other) in ends.into_iter().zip(sliced_ends) {
                assert!((one - other).abs() <= 1e-4, "{metric}: {one} {other}");
            }
        }
        assert!(sliced.cells[0].metrics["latency_mean"].reason.as_ref().unwrap().contains("frozen"));
        assert!(!sliced.head.warnings.iter().any(|warning| warning.code == Code::WorkUnknown));
        let caveat = sliced.head.warnings.iter().find(|warning| warning.code == Code::CountersDisagree).unwrap();
        assert!(caveat.message.contains("100.0 % more than arm '"), "{}", caveat.message);
    }

    #[test]
    fn counting_what_looks_like_log_lines_is_said() {
        let chosen = |name: &str, reason: &str| WorkCounter {
            name: name.to_owned(),
            reason: reason.to_owned(),
            ..counter(Counted::Bytes)
        };
        let said = |bytes_of_a_call: u64, own: Option<Done>, counter: WorkCounter| {
            let mut record = record(experiment(Draft::default()), 3, |_, _| Load { nanos_per_io: 1000, ios: 900 });
            record.header.work_counter = Some(counter);
            for round in &mut record.rounds {
                for slice in &mut round.slices {
                    let SliceReading::Slice { before, after, .. } = slice.reading.clone() else { continue };
                    let last = reading(100 * bytes_of_a_call, Some(100));
                    slice.reading = SliceReading::Command { before, first: reading(0, Some(0)), last, after };
                }
                round.commands.push(CommandTotal { cases: vec![0, 1], own, own_read: None, count: 1 << 20 });
            }
            study(&record).head.warnings.iter().any(|warning| warning.message.contains("like a log line"))
        };
        let own = Some(Done { ios: 100, bytes: Bytes(409_600) });
        assert!(said(32, None, chosen("task:both", "")));
        assert!(!said(4096, None, chosen("task:both", "")));
        assert!(!said(32, own, chosen("task:both", "")));
        assert!(!said(32, None, chosen("task:both", work_counter::NAMED)));
        assert!(!said(32, None, chosen("tcp", "")));
    }

    /// Two clients that send statements of other lengths, as pgbench with a comment in one arm.
    #[test]
    fn bytes_of_other_messages_are_other_work() {
        let studied = |name: &str, reason: &str, sizes: [u64; 2], own: Option<Done>| {
            let mut record = record(experiment(Draft::default()), 12, |_, _| Load { nanos_per_io: 1000, ios: 900 });
            let (name, reason) = (name.to_owned(), reason.to_owned());
            let nanos = Nanos(0);
            record.header.schedule = Schedule::SlicedCommands { slice_nanos: nanos, guard_nanos: nanos, blocks: 1 };
            record.header.work_counter = Some(WorkCounter { name: name.clone(), reason, ..counter(Counted::Bytes) });
            for round in &mut record.rounds {
                for slice in &mut round.slices {
                    let SliceReading::Slice { before, after, .. } = slice.reading.clone() else { continue };
                    let Some(case) = slice.case else { continue };
                    let are_calls = work_counter::is_of_system_calls(&name);
                    let at = |at_nanos, messages| {
                        let (calls, segments) = (are_calls.then_some(messages), (!are_calls).then_some(messages));
                        CommandReading { at_nanos, segments, ..reading(messages * sizes[case], calls) }
                    };
                    let (first, last) = (at(before.at_nanos, 0), at(after.at_nanos, 100));
                    slice.reading = SliceReading::Command { before, first, last, after };
                }
                round.commands.push(CommandTotal { cases: vec![0, 1], own, own_read: None, count: 1 << 20 });
            }
            let finding = study(&record);
            let mut metrics = finding.cells.into_iter().next().unwrap().metrics;
            assert!(metrics["latency_mean"].reason.as_ref().unwrap().contains("frozen"));
            (
                metrics.remove("bytes_per_second").unwrap(),
                metrics.remove("iops").unwrap(),
                finding.explanation.unexplained,
            )
        };
        let (bytes, ios, unexplained) = studied("tcp", "", [43, 117], None);
        for metric in [&bytes, &ios] {
            assert_eq!((metric.change, metric.verdict), (None, model::stats::Verdict::Inconclusive));
        }
        let reason = bytes.reason.unwrap();
        assert_eq!(
            unexplained,
            Some(reason.clone()),
            "an I/O of one arm is another in the other, in every account too"
        );
        assert!(
            reason.contains("43 bytes in one arm and 117 in the other") && reason.contains("--count syscalls"),
            "{reason}"
        );
        for (counter, sizes, own, why) in [
            ("tcp", [43, 44], None, "alike"),
            ("tcp", [43, 117], Some(Done { ios: 100, bytes: Bytes(9000) }), "the programs report their work"),
            ("tcp", [20_000, 60_000], None, "a stream, which TCP cuts"),
        ] {
            assert!(studied(counter, "", sizes, own).0.change.is_some(), "{why}");
        }
        let (bytes, ios, _) = studied("task:both", "", [43, 44], None);
        assert!(bytes.change.is_some() && ios.change.is_some(), "calls that are alike");
        let (bytes, ios, _) = studied("task:both", work_counter::NAMED, [43, 117], None);
        assert!(bytes.change.is_some(), "the user says that bytes are the work");
        assert!(ios.reason.unwrap().contains("only costs and rates of bytes"), "and messages are not");
    }
}
