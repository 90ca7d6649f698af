//! What records of one experiment say over time: the level of each metric, where it changed, and what else changed there.
//!
//! Records belong to one experiment if they were made by the same command line with the same files and variables. The change points
//! are those of [`stats::change_points`](model::stats::change_points()).

pub mod page;

use model::kind::{Envelope, Recorded};
use model::limit::{Beyond, Bound, CHANGE, Limit, LimitFinding, judge};
use model::origin::without;
use model::record::{Canaries, Host, Outcome};
use model::stats::change_points::{self, MOST, change_points};
use model::stats::estimate::CONFIDENCE;
use model::stats::{Estimate, LogLevel};
use model::stored::machine::Machine;
use model::warning::{Code, Warning, add_once};
use serde::{Deserialize, Serialize};

/// A record, as the history of its experiment sees it.
#[derive(Clone, Debug)]
pub struct Observation {
    path: String,
    /// Of the path that was given for it, among all: records are in the order of these, then of time.
    pub place: usize,
    envelope: Envelope,
    host: Host,
    canaries: Vec<Canaries>,
    has_completed: bool,
    readings: Vec<LimitFinding>,
}

impl Observation {
    fn machine(&self) -> Machine<'_> {
        Machine { canaries: self.canaries.iter().collect(), ..Machine::of(&self.host, &self.envelope) }
    }
}

/// What the records of several experiments say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HistoryFinding {
    /// Each experiment with two records or more, that with most records first.
    pub experiments: Vec<Experiment>,
    /// Paths of the records that are alone: no other was made by the same command line.
    pub alone: Vec<String>,
    /// Paths of the records whose measurement failed or was interrupted: they are left out.
    pub incomplete: Vec<String>,
}

/// The records of one experiment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Experiment {
    /// Kind of the records.
    pub kind: String,
    /// The command line that all have in common, without where and how the result is kept and shown.
    pub command_line: Vec<String>,
    /// The records, in the order of the given paths; those of one path in order of time.
    pub records: Vec<Member>,
    /// One series for each metric at each place. A metric that no record tells has none.
    pub series: Vec<Series>,
    /// What limits the numbers.
    pub warnings: Vec<Warning>,
}

/// A record of an experiment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Member {
    /// Path of the record.
    pub path: String,
    /// Start of the measurement, in seconds since 1970.
    pub started_unix_seconds: f64,
    /// Version of the program that measured.
    pub iotoll_version: String,
    /// Version of the method.
    pub method_version: u32,
    /// Kernel release.
    pub kernel: String,
    /// Number and model of the CPUs.
    pub cpus: String,
    /// What is known to differ from the record before: "kernel 6.1.0 → 6.12.0".
    pub differs: Vec<String>,
}

/// One metric at one place, over all records that tell it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// The metric's name.
    pub metric: String,
    /// Unit of the values; `change` for a change between arms as a fraction.
    pub unit: String,
    /// The cell of a sweep, the jobs of a phase, or a job, in words. Empty if there is only one.
    pub cell: String,
    /// Name of the arm; empty if there is none.
    pub arm: String,
    /// The values, in the order of the records.
    pub points: Vec<Point>,
    /// The levels between the changes, of the last 512 values; one if nothing changed.
    pub levels: Vec<Level>,
    /// Where the level changed.
    pub changes: Vec<ChangePoint>,
    /// Where one more record of the last level is expected, from all but the last record, with 95 % confidence; `null` with fewer
    /// than three others at that level, or if values are not positive.
    pub expected: Option<Expected>,
}

/// A value of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Index of the record.
    pub record: usize,
    /// The value, with the interval that its own record gives.
    pub value: Estimate,
}

/// A level of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Index of its first record.
    pub first: usize,
    /// Index of its last record.
    pub last: usize,
    /// Number of its records.
    pub records: usize,
    /// The geometric mean of its values, with the interval that their spread gives.
    pub value: Estimate,
}

/// A change of the level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Index of the first record of the new level.
    pub record: usize,
    /// The new level ÷ the one before − 1, as a fraction. Of changes between arms: of 1 + the change.
    pub change: Estimate,
    /// Part of the permutations of the records that split as far apart.
    pub p_value: f64,
}

/// Where a record of a level is expected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Whether the last record is outside. One alone is no change of the level.
    pub is_last_outside: bool,
}

/// What a record says of all metrics of its kind.
pub fn observe<R: Recorded>(path: String, record: &R) -> Observation {
    // A limit on everything tells every value with its place.
    let limits: Vec<Limit> = R::quantities()
        .into_iter()
        .map(|quantity| Limit {
            text: String::new(),
            metric: quantity.name.to_owned(),
            beyond: Beyond::Above,
            bound: match R::HAS_VALUES {
                true => Bound::Value { amount: 0.0, unit: quantity.unit.to_owned() },
                false => Bound::Change(0.0),
            },
        })
        .collect();
    let finding = record.study(None);
    let (machine, head) = (record.machine(), finding.as_ref());
    Observation {
        path,
        place: 0,
        host: machine.host.clone(),
        canaries: machine.canaries.into_iter().cloned().collect(),
        envelope: record.envelope().clone(),
        has_completed: head.outcome == Outcome::Completed,
        readings: judge(&limits, |metric| record.at_places(&finding, None, metric)),
    }
}

/// Sorts records into experiments, and studies each over time.
pub fn study(observations: Vec<Observation>) -> HistoryFinding {
    let (mut observations, incomplete): (Vec<_>, Vec<_>) = observations.into_iter().partition(|it| it.has_completed);
    let time = |observation: &Observation| observation.envelope.started_unix_seconds;
    observations.sort_by(|one, other| one.place.cmp(&other.place).then(time(one).total_cmp(&time(other))));
    let mut groups: Vec<Vec<Observation>> = Vec::new();
    for observation in observations {
        let same = |group: &&mut Vec<Observation>| group.first().is_some_and(|first| is_same(first, &observation));
        match groups.iter_mut().find(same) {
            Some(group) => group.push(observation),
            None => groups.push(vec![observation]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let (several, single): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.len() > 1);
    HistoryFinding {
        experiments: several.iter().map(|group| experiment(group)).collect(),
        alone: single.into_iter().flatten().map(|observation| observation.path).collect(),
        incomplete: incomplete.into_iter().map(|observation| observation.path).collect(),
    }
}

fn is_same(one: &Observation, other: &Observation) -> bool {
    let asked = |envelope: &Envelope| (envelope.kind.clone(), work(&envelope.typed.words));
    let (a, b) = (&one.envelope, &other.envelope);
    asked(a) == asked(b) && a.typed.inputs == b.typed.inputs && a.typed.variables == b.typed.variables
}

/// A command line without the program's path, and without where and how the result is kept, shown and judged.
fn work(words: &[String]) -> Vec<String> {
    let own = words.get(1..).unwrap_or_default();
    without(own, &["--out", "--format", "--color", "--stored", "--fail-on"], &["--quiet", "--no-save"])
}

fn experiment(group: &[Observation]) -> Experiment {
    let mut warnings = Vec::new();
    let mut records: Vec<Member> = Vec::new();
    let before = std::iter::once(None).chain(group.iter().map(Some));
    for (before, observation) in before.zip(group) {
        let envelope = &observation.envelope;
        let (earlier, later) = (before.map(|before| before.envelope.method_version), envelope.method_version);
        if let Some(earlier) = earlier.filter(|earlier| *earlier != later) {
            let message = format!(
                "records of method {earlier} and {later} are in one series: numbers may have changed their meaning; see CHANGELOG.md"
            );
            add_once(&mut warnings, Warning::new(Code::StoredMethodDiffers, message));
        }
        records.push(Member {
            path: observation.path.clone(),
            started_unix_seconds: envelope.started_unix_seconds,
            iotoll_version: envelope.iotoll_version.clone(),
            method_version: envelope.method_version,
            kernel: observation.host.kernel.clone(),
            cpus: format!("{} × {}", observation.host.cpus, observation.host.cpu_model),
            differs: before.map(|before| differences(before, observation)).unwrap_or_default(),
        });
    }
    let mut series: Vec<Series> = Vec::new();
    for (record, observation) in group.iter().enumerate() {
        for reading in &observation.readings {
            let Some(value) = reading.found.filter(|found| found.value.is_finite()) else { continue };
            let same =
                |it: &&mut Series| it.metric == reading.metric && it.cell == reading.cell && it.arm == reading.arm;
            let point = Point { record, value };
            match series.iter_mut().find(same) {
                Some(series) => series.points.push(point),
                None => series.push(Series {
                    metric: reading.metric.clone(),
                    unit: reading.unit.clone(),
                    cell: reading.cell.clone(),
                    arm: reading.arm.clone(),
                    points: vec![point],
                    ..Series::default()
                }),
            }
        }
    }
    series.iter_mut().for_each(find_changes);
    let kind = group.first().map_or_else(String::new, |first| first.envelope.kind.clone());
    let command_line = group.first().map(|first| work(&first.envelope.typed.words)).unwrap_or_default();
    Experiment { kind, command_line, records, series, warnings }
}

/// What is known to differ from the record before.
fn differences(before: &Observation, now: &Observation) -> Vec<String> {
    let mut found = before.machine().differences(&now.machine());
    let (earlier, later) = (before.envelope.method_version, now.envelope.method_version);
    found.extend((earlier != later).then(|| format!("method {earlier} → {later}")));
    found
}

/// Levels and changes of a series whose values have logarithms: all are positive, or are changes.
fn find_changes(series: &mut Series) {
    let is_change = series.unit == CHANGE;
    let log = |point: &Point| if is_change { point.value.value.ln_1p() } else { point.value.value.ln() };
    let amount = |log: f64| if is_change { log.exp_m1() } else { log.exp() };
    let logs: Vec<f64> = series.points.iter().map(log).collect();
    if logs.iter().any(|log| !log.is_finite()) {
        return;
    }
    let changes = change_points(&logs);
    let record = |place: usize| series.points.get(place).map_or(0, |point| point.record);
    let begins: Vec<usize> =
        std::iter::once(logs.len().saturating_sub(MOST)).chain(changes.iter().map(|change| change.at)).collect();
    let ends = begins.iter().skip(1).copied().chain([logs.len()]);
    let level = |(begin, end): (&usize, usize)| {
        let LogLevel { log, error } = change_points::level(logs.get(*begin..end)?);
        let value = Estimate::around(log, error.as_ref(), CONFIDENCE).map(amount);
        Some(Level { first: record(*begin), last: record(end.saturating_sub(1)), records: end - begin, value })
    };
    series.levels = begins.iter().zip(ends).filter_map(level).collect();
    series.changes = changes
        .iter()
        .map(|found| ChangePoint { record: record(found.at), change: found.change, p_value: found.p_value })
        .collect();
    let since = begins.last().copied().unwrap_or(0);
    if let Some((last, others)) = logs.get(since..).and_then(<[f64]>::split_last) {
        series.expected = change_points::expected(others).map(|range| Expected {
            low: amount(range.start),
            high: amount(range.end),
            is_last_outside: !(range.start..=range.end).contains(last),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(day: u32, words: &str, kernel: &str, value: f64) -> Observation {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let mut envelope = Envelope::new(model::record::Record::KIND, f64::from(day) * 86_400.0, words);
        envelope.iotoll_version = "1".to_owned();
        let finding = |metric: &str, unit: &str, value| LimitFinding {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            found: Some(Estimate { value, low: Some(value * 0.99), high: Some(value * 1.01) }),
            ..LimitFinding::default()
        };
        let (metric, reason) = ("latency_p99".to_owned(), Some("no meter".to_owned()));
        let unknown = LimitFinding { metric, reason, ..LimitFinding::default() };
        let readings =
            vec![finding("cycles_per_io", "cycles/I/O", value), finding("loss_share", "fraction", 0.0), unknown];
        let host = Host { kernel: kernel.to_owned(), ..Host::default() };
        let (path, canaries) = (format!("run{day}"), Vec::new());
        Observation { path, place: 0, envelope, host, canaries, has_completed: true, readings }
    }

    /// A level with ±1 % of noise.
    fn level(day: u32, level: f64) -> f64 {
        level * (1.0 + 0.01 * f64::from(day * 7 % 5) / 2.0 - 0.01)
    }

    #[test]
    fn a_change_is_found_at_its_record_with_what_else_changed() {
        let observations = (0..20).rev().map(|day| {
            let kernel = if day < 12 { "6.1" } else { "6.12" };
            let words = format!("/bin/iotoll run --out r{day} --quiet job.fio");
            observation(day, &words, kernel, level(day, if day < 12 { 1000.0 } else { 1150.0 }))
        });
        let found = study(observations.collect());
        let [experiment] = found.experiments.as_slice() else { panic!("{found:?}") };
        assert_eq!(experiment.command_line, ["run", "job.fio"]);
        assert_eq!(experiment.records[12].differs, ["kernel 6.1 → 6.12"]);
        assert!(experiment.records[11].differs.is_empty() && experiment.warnings.is_empty());
        let names: Vec<&str> = experiment.series.iter().map(|series| series.metric.as_str()).collect();
        assert_eq!(names, ["cycles_per_io", "loss_share"], "what no record tells is no series");
        let cycles = &experiment.series[0];
        let [change] = cycles.changes.as_slice() else { panic!("{:?}", cycles.changes) };
        assert_eq!((change.record, change.change.contains(0.15)), (12, Some(true)));
        let levels: Vec<(usize, usize, usize)> =
            cycles.levels.iter().map(|it| (it.first, it.last, it.records)).collect();
        assert_eq!(levels, [(0, 11, 12), (12, 19, 8)]);
        let expected = cycles.expected.unwrap();
        assert!(!expected.is_last_outside && expected.low < 1150.0 && expected.high > 1150.0);
        // No logarithm, so no level.
        assert!(experiment.series[1].levels.is_empty() && experiment.series[1].points.len() == 20);
    }

    /// Boots of two kernels, in turn.
    #[test]
    fn records_are_in_the_order_of_the_given_paths() {
        let observations = (0..16).map(|day| {
            let (place, amount) = if day % 2 == 0 { (0, 1000.0) } else { (1, 1150.0) };
            Observation { place, ..observation(day, "iotoll run a", "", level(day, amount)) }
        });
        let found = study(observations.collect());
        let [change] = found.experiments[0].series[0].changes.as_slice() else { panic!("{found:?}") };
        assert_eq!((change.record, change.change.contains(0.15)), (8, Some(true)));
    }

    #[test]
    fn one_record_off_its_level_is_said_and_is_no_change() {
        let mut observations: Vec<_> =
            (0..9).map(|day| observation(day, "iotoll run a", "", level(day, 1000.0))).collect();
        observations.push(observation(9, "iotoll run a", "", 1300.0));
        let found = study(observations);
        let cycles = &found.experiments[0].series[0];
        assert!(cycles.changes.is_empty() && cycles.expected.unwrap().is_last_outside);
    }

    #[test]
    fn a_measurement_that_did_not_complete_is_left_out() {
        let mut cut = observation(2, "iotoll run a", "", 1.0);
        cut.has_completed = false;
        let found = study(vec![observation(1, "iotoll run a", "", 1.0), cut, observation(3, "iotoll run a", "", 1.0)]);
        assert_eq!((found.experiments[0].records.len(), found.incomplete), (2, vec!["run2".to_owned()]));
    }

    /// Only the last values are searched, so earlier ones belong to no level.
    #[test]
    fn a_level_has_only_values_that_were_searched() {
        let days = u32::try_from(MOST).unwrap() + 40;
        let values = (0..days)
            .map(|day| observation(day, "iotoll run a", "", level(day, if day < 20 { 500.0 } else { 1000.0 })));
        let found = study(values.collect());
        let [only] = found.experiments[0].series[0].levels.as_slice() else { panic!("one level") };
        assert_eq!((only.first, only.records), (40, MOST));
    }

    #[test]
    fn records_of_other_work_are_other_experiments() {
        let mut other = observation(3, "iotoll run a", "", 1.0);
        other.envelope.typed.inputs = vec![model::origin::Input::new("job.fio", "bs=8k")];
        let mut newer = observation(5, "iotoll run b", "", 1.0);
        newer.envelope.method_version += 1;
        let found = study(vec![
            observation(1, "iotoll run a", "", 1.0),
            observation(2, "iotoll run a --fail-on=iops<5 --format json", "", 1.0),
            other,
            observation(4, "iotoll run b", "", 1.0),
            newer,
            observation(6, "iotoll cost -- fio --out=x", "", 1.0),
            observation(7, "iotoll cost -- fio --out=y", "", 1.0),
        ]);
        let paths = |experiment: &Experiment| experiment.records.iter().map(|it| it.path.clone()).collect::<Vec<_>>();
        assert_eq!(found.experiments.iter().map(paths).collect::<Vec<_>>(), [["run1", "run2"], ["run4", "run5"]]);
        assert_eq!(found.alone, ["run3", "run6", "run7"]);
        assert!(found.experiments[1].records[1].differs.iter().any(|it| it.starts_with("method ")));
        let codes: Vec<Code> = found.experiments[1].warnings.iter().map(|warning| warning.code).collect();
        assert_eq!(codes, [Code::StoredMethodDiffers]);
    }
}
