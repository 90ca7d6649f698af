//! What a unit of work costs, net of the background, and how much work was done at which rate.
//!
//! A [`Rate`] is what a meter or a counter sees without the workload. A [`Cost`] is the ratio over [`Window`]s, with its interval. All such
//! figures of a run use this estimator; on a busy machine it counts what is the workload's by name ([`accounts`]).

use super::caveats::NEVER_IDLE;
use super::windows::{Window, done_between, growth, io_seconds, total, windows, windows_of_counter};
use super::{Context, accounts};
use crate::account::named::ByAccount;
use crate::finding::{Background, BackgroundTask, Figure};
use crate::meter::Meter;
use crate::record::{Done, Execution, IoInterval, JobRecord, Mode, Snapshot, Stretch, TaskOwner};
use crate::stats::estimate::{CONFIDENCE, half_width};
use crate::stats::{Dominant, Estimate, Neighbours, Pair, Uncertainty, dominant, ratio_of_sums};
use crate::unit::Nanos;
use std::collections::BTreeMap;

/// Maximum number of groups of windows for an interval: neighbouring windows are not independent, groups of them nearly
/// are.
const GROUPS: usize = 20;

/// Maximum number of tasks to report.
const NAMED_TASKS: usize = 5;

/// Busy cycles per second that a meter saw without the workload; for a probe, its counts per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub cycles_per_capacity_second: f64,
    pub standard_error: f64,
    pub degrees_of_freedom: f64,
}

/// The background by meter and by task, and the machine that it is of.
pub(super) struct BackgroundRates {
    pub(super) context: Context,
    rates: BTreeMap<Meter, Rate>,
    task_nanos_per_second: BTreeMap<(TaskOwner, String), f64>,
    /// Of each exact account.
    accounts: Option<ByAccount>,
    /// Of all accounts that serve a load too, together.
    shared: Option<Rate>,
    /// Context switches of the whole machine per second.
    switches: Option<Rate>,
}

impl BackgroundRates {
    pub(super) fn new(stretches: &[Stretch], context: Context) -> Self {
        let seen = |meter| stretches.iter().map(move |stretch| windows(stretch, meter, None, &context));
        let rates = Meter::ALL.into_iter().filter(|meter| meter.sees_whole_machine());
        let rates = rates.filter_map(|meter| Some((meter, rate(seen(meter))?))).collect();
        let mut nanos: BTreeMap<(TaskOwner, String), f64> = BTreeMap::new();
        let mut seconds = 0.0;
        for tasks in stretches.iter().filter_map(|stretch| stretch.tasks.as_ref()) {
            seconds += tasks.wall_nanos.seconds();
            for task in &tasks.tasks {
                *nanos.entry((task.owner, task.name.clone())).or_default() += task.nanos.as_f64();
            }
        }
        if seconds > 0.0 {
            nanos.values_mut().for_each(|nanos| *nanos /= seconds);
        }
        Self {
            context,
            rates,
            task_nanos_per_second: nanos,
            accounts: accounts::rates(stretches),
            shared: rate(stretches.iter().map(|stretch| accounts::shared(stretch, &context))),
            switches: rate(stretches.iter().map(|stretch| switch_windows(stretch, None))),
        }
    }

    /// The rate of `meter`; `None` if it did not run.
    pub(super) fn of(&self, meter: Meter) -> Option<Rate> {
        self.rates.get(&meter).copied()
    }

    /// Whether any meter measured the background.
    pub(super) fn watched(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Whether the machine was so busy without the workload that the workload's cost cannot be seen. Core cycles are
    /// not a fraction.
    pub(super) fn never_idle(&self) -> bool {
        let times = self.rates.iter().filter(|(meter, _)| meter.counts_time());
        times.map(|(_, rate)| rate.cycles_per_capacity_second / self.context.clock.0).any(|busy| busy > NEVER_IDLE)
    }

    /// CPU time per second of a task.
    pub(super) fn task_nanos_per_second(&self, owner: TaskOwner, name: &str) -> f64 {
        self.task_nanos_per_second.get(&(owner, name.to_owned())).copied().unwrap_or(0.0)
    }

    /// What each exact account has without the workload; `None` if none were kept.
    pub(super) fn accounts(&self) -> Option<&ByAccount> {
        self.accounts.as_ref()
    }

    /// The error of what is taken off a cost by name. Each account is net already, so the rate itself is 0.
    pub(super) fn error_by_name(&self) -> Rate {
        self.shared.map_or_else(Rate::default, |shared| Rate { cycles_per_capacity_second: 0.0, ..shared })
    }

    pub(super) fn finding(&self, stretches: &[Stretch]) -> Background {
        let context = &self.context;
        // Uses the headline meter of the costs; core cycles are not a fraction.
        let meter = Meter::by_trust().find(|meter| meter.counts_time() && self.of(*meter).is_some());
        let fraction = |cycles: f64| cycles / context.clock.0;
        // Noise may exceed what the machine has.
        let of_machine = |fraction: f64| fraction.clamp(0.0, 1.0);
        let rate = meter.and_then(|meter| self.of(meter));
        let half = rate.and_then(|rate| half_width(rate.standard_error, rate.degrees_of_freedom)).map(fraction);
        let busy = rate.map(|rate| fraction(rate.cycles_per_capacity_second));
        let part = |place: usize| {
            let all = windows(stretches.get(place)?, meter?, None, context);
            Some(of_machine(fraction(ratio_of_sums(&pairs(&all), Neighbours::Alike)?.value)))
        };
        let mut tasks: Vec<BackgroundTask> = Vec::new();
        for ((owner, name), nanos) in &self.task_nanos_per_second {
            if *owner != TaskOwner::Iotoll {
                tasks.push(BackgroundTask { name: name.clone(), busy_fraction: nanos / 1e9 / context.cpus as f64 });
            }
        }
        tasks.sort_by(|a, b| b.busy_fraction.total_cmp(&a.busy_fraction));
        tasks.truncate(NAMED_TASKS);
        let length =
            |stretch: &Stretch| Some(stretch.snapshots.last()?.at_nanos.since(settled(stretch)?.at_nanos).seconds());
        Background {
            busy_fraction: busy.map(of_machine),
            busy_fraction_low: busy.zip(half).map(|(busy, half)| of_machine(busy - half)),
            busy_fraction_high: busy.zip(half).map(|(busy, half)| of_machine(busy + half)),
            busy_fraction_before: part(0),
            busy_fraction_after: part(1),
            seconds: stretches.iter().filter_map(length).sum(),
            context_switches_per_second: self.switches.map(|rate| rate.cycles_per_capacity_second),
            tasks,
        }
    }
}

/// The first snapshot to use: what starts or ends just before it is not part of the background.
fn settled(stretch: &Stretch) -> Option<&Snapshot> {
    stretch.snapshots.iter().find(|snapshot| snapshot.mode != Mode::Gap)
}

fn pairs(windows: &[Window]) -> Vec<Pair> {
    windows.iter().map(|window| Pair { numerator: window.cycles, denominator: window.capacity_seconds }).collect()
}

/// Merges neighbouring windows into at most [`GROUPS`] groups of about equal length.
fn grouped(windows: &[Window]) -> Vec<Window> {
    let total: f64 = windows.iter().map(Window::seconds).sum();
    let least = total / GROUPS as f64 * 0.999;
    let mut groups: Vec<Window> = Vec::new();
    let mut length = 0.0;
    for window in windows {
        match groups.last_mut() {
            Some(group) if length < least => {
                group.join(window);
                length += window.seconds();
            }
            _ => {
                groups.push(*window);
                length = window.seconds();
            }
        }
    }
    // The last group may be too short to count as one of many.
    if let [.., before, last] = groups.as_mut_slice()
        && last.seconds() < least / 2.0
    {
        let last = *last;
        before.join(&last);
        groups.pop();
    }
    groups
}

/// The rate over the windows of all stretches. If the rates before and after differ, half of the difference is used as
/// a standard error if it is larger: this assumes that the background during the run was between the two, which is not
/// measured.
pub(super) fn rate(stretches: impl IntoIterator<Item = Vec<Window>>) -> Option<Rate> {
    let parts: Vec<Vec<Window>> = stretches.into_iter().map(|windows| grouped(&windows)).collect();
    let all: Vec<Pair> = parts.iter().flat_map(|part| pairs(part)).collect();
    let whole = ratio_of_sums(&all, Neighbours::Alike)?;
    let values: Vec<f64> =
        parts.iter().filter_map(|part| Some(ratio_of_sums(&pairs(part), Neighbours::Alike)?.value)).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // With one window, the error is unknown, so it may be the whole value.
    let within = whole.error.map_or(whole.value.abs(), |error| error.standard_error);
    let apart = (high - low) / 2.0;
    Some(Rate {
        cycles_per_capacity_second: whole.value,
        standard_error: within.max(apart),
        degrees_of_freedom: whole.error.map_or(1.0, |error| error.degrees_of_freedom),
    })
}

/// The divisor of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Per {
    Io,
    Byte,
    Second,
}

/// The cost of a unit of work: net with its interval, and gross.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub net: Estimate,
    pub gross: f64,
    /// Total length of the windows, in seconds.
    pub seconds: f64,
    /// Number of groups of windows, or of executions, that the interval is based on.
    pub units: usize,
    /// The one of them that carries much of the mean.
    pub dominant: Option<Dominant>,
    /// The correlation of consecutive ones, where it is evident.
    pub correlation: Option<f64>,
}

/// The counts in the windows that `seen` finds in each execution, net of the background's rate, per unit of work.
/// `None` if it finds no windows.
pub(super) fn per_work(
    executions: &[Execution],
    per: Per,
    rate: Rate,
    seen: impl Fn(&Execution) -> Option<Vec<Window>>,
) -> Option<Cost> {
    let mut units = Vec::new();
    let (mut capacity, mut cycles, mut seconds) = (0.0, 0.0, 0.0);
    for execution in executions {
        let found = seen(execution)?;
        let shares = shares(execution, &found, per)?;
        let sum = |of: fn(&Window) -> f64| found.iter().map(of).sum::<f64>();
        capacity += sum(|window| window.capacity_seconds);
        cycles += sum(|window| window.cycles);
        seconds += sum(Window::seconds);
        let net = |window: &Window| window.cycles - rate.cycles_per_capacity_second * window.capacity_seconds;
        if executions.len() > 1 {
            units.push(Pair { numerator: found.iter().map(net).sum(), denominator: shares * sum(Window::seconds) });
        } else {
            units.extend(grouped(&found).iter().map(|window| Pair {
                numerator: net(window),
                denominator: work(window, per).unwrap_or(shares * window.seconds()),
            }));
        }
    }
    // Windows follow each other; executions start anew.
    let neighbours = if executions.len() > 1 { Neighbours::Independent } else { Neighbours::Alike };
    let ratio = ratio_of_sums(&units, neighbours)?;
    let work: f64 = units.iter().map(|unit| unit.denominator).sum();
    // The background's error affects the whole phase.
    let background = Uncertainty::new(rate.standard_error * capacity / work, rate.degrees_of_freedom);
    let error = ratio.error.map(|own| own.plus(background));
    Some(Cost {
        net: Estimate::around(ratio.value, error.as_ref(), CONFIDENCE),
        gross: cycles / work,
        seconds,
        units: units.len(),
        // A unit with much of the work and few cycles is no stall.
        dominant: dominant(&units).filter(|unit| !unit.of_denominator),
        correlation: ratio.correlation,
    })
}

/// The work in a window, if the snapshots have it.
fn work(window: &Window, per: Per) -> Option<f64> {
    match per {
        Per::Io => window.done.map(|done| done.ios as f64),
        Per::Byte => window.done.map(|done| done.bytes.as_f64()),
        Per::Second => Some(window.seconds()),
    }
}

/// Work per second of an execution. If the snapshots do not have the work, only its total is known, and each window
/// gets a share proportional to time.
fn shares(execution: &Execution, found: &[Window], per: Per) -> Option<f64> {
    let jobs = || execution.jobs.iter();
    let counted: Option<f64> = found.iter().map(|window| work(window, per)).sum();
    let seconds: f64 = found.iter().map(Window::seconds).sum();
    if let Some(counted) = counted.filter(|counted| *counted > 0.0 && seconds > 0.0) {
        return Some(counted / seconds);
    }
    let work = match per {
        Per::Io => total(jobs(), JobRecord::ios)?,
        Per::Byte => total(jobs(), |job| job.bytes().0)?,
        Per::Second => return None,
    };
    let wall = io_seconds(execution);
    (wall > 0.0 && seconds > 0.0).then(|| work as f64 / wall)
}

/// The context switches of the whole machine in each window.
pub(super) fn switch_windows(stretch: &Stretch, interval: Option<IoInterval>) -> Vec<Window> {
    windows_of_counter(stretch, interval, |before: &Snapshot, after: &Snapshot| {
        let (first, last) = (before.system?, after.system?);
        let grown = last.context_switches.saturating_sub(first.context_switches) as f64;
        Window::of_counter(first.at_nanos, last.at_nanos, grown, done_between(before, after))
    })
}

/// The context switches of a phase, as one figure that the sheet, its events and its limits show.
pub(super) fn switches(executions: &[Execution], rates: &BackgroundRates) -> Figure {
    let jobs = || executions.iter().flat_map(|execution| &execution.jobs);
    let own = jobs().map(|job| Some(job.usage?.context_switches as f64)).sum::<Option<f64>>();
    let own = own.zip(total(jobs(), JobRecord::ios)).map(|(switches, ios)| switches / ios as f64);
    let own = own.map_or_else(String::new, |own| format!("; the load's own threads make {own:.3} per I/O"));
    let unknown = |reason: &str| Figure { estimate: None, why_not: Some(format!("{reason}{own}")) };
    // If no background was measured, every figure is gross, and a caveat says so.
    let rate = rates.switches.or_else(|| (!rates.watched()).then(Default::default));
    let Some(rate) = rate else { return unknown("the background was too short for a window") };
    let seen = |execution: &Execution| Some(switch_windows(&execution.stretch, execution.io_interval));
    let Some(cost) = per_work(executions, Per::Io, rate, seen) else {
        return unknown("the number of I/Os is unknown, or no window was read during them");
    };
    let (net, background) = (cost.net, cost.gross - cost.net.value);
    let reason = match net.low {
        None => Some("too few windows for an interval; run longer".to_owned()),
        Some(low) if low <= 0.0 => Some("not different from 0".to_owned()),
        Some(_) if background > net.value => {
            Some(format!("the background's are more than the load's: {:.0} %", background / net.value * 100.0))
        }
        Some(_) => None,
    };
    Figure { estimate: Some(net), why_not: reason.map(|reason| reason + &own) }
}

/// The work done. The counts are those of the jobs; rates come from the snapshots if they have the work, because jobs
/// may start counting at different times.
pub(super) struct Work {
    pub ios: Option<u64>,
    pub bytes: Option<u64>,
    pub wall_seconds: f64,
    pub counted_ios: Option<f64>,
    pub counted_bytes: Option<f64>,
}

impl Work {
    pub(super) fn of(executions: &[Execution]) -> Self {
        let jobs = || executions.iter().flat_map(|execution| &execution.jobs);
        let (ios, bytes) = (total(jobs(), JobRecord::ios), total(jobs(), |job| job.bytes().0));
        let counted = |total: Option<u64>, of: fn(&Done) -> u64| {
            let read = |snapshot: &Snapshot| snapshot.done.map(|done| (snapshot.at_nanos, of(&done)));
            let counted: Option<f64> = executions.iter().map(|execution| growth(execution, read)).sum();
            total.map(|total| counted.unwrap_or(total as f64))
        };
        Self {
            ios,
            bytes,
            wall_seconds: executions.iter().map(io_seconds).sum(),
            counted_ios: counted(ios, |done| done.ios),
            counted_bytes: counted(bytes, |done| done.bytes.0),
        }
    }

    /// Work per second, of which `counted` is in the time of I/O, with its interval: over executions, or over groups of windows of one. Where
    /// snapshots do not have the work, it is that of the `jobs`.
    pub(super) fn rate(
        &self,
        counted: Option<f64>,
        executions: &[Execution],
        done: fn(&Done) -> u64,
        jobs: fn(&JobRecord) -> u64,
    ) -> Option<Estimate> {
        let value = counted.filter(|_| self.wall_seconds > 0.0)? / self.wall_seconds;
        let seen = |execution: &Execution| {
            let counted = windows_of_counter(&execution.stretch, execution.io_interval, |before, after| {
                let between = done_between(before, after)?;
                Window::of_counter(before.at_nanos, after.at_nanos, done(&between) as f64, Some(between))
            });
            if counted.is_empty() {
                let end = Nanos((io_seconds(execution) * 1e9) as u64);
                let whole = total(execution.jobs.iter(), jobs)?;
                return Some(vec![Window::of_counter(Nanos(0), end, whole as f64, None)?]);
            }
            Some(counted)
        };
        let Some(found) = per_work(executions, Per::Second, Rate::default(), seen).map(|cost| cost.net) else {
            return Some(Estimate::bare(value));
        };
        // Windows and whole phases differ by what lies between.
        let off = value - found.value;
        Some(Estimate { value, low: found.low.map(|low| low + off), high: found.high.map(|high| high + off) })
    }
}

/// Duration of an execution: of one exact, of several the mean.
pub(super) fn seconds(executions: &[Execution]) -> Option<Estimate> {
    let units: Vec<Pair> =
        executions.iter().map(|execution| Pair { numerator: io_seconds(execution), denominator: 1.0 }).collect();
    match units.as_slice() {
        [one] => Some(Estimate::exact(one.numerator)),
        several => Some(ratio_of_sums(several, Neighbours::Independent)?.estimate()),
    }
}
