//! The background as a rate, which is subtracted from each meter's figures.

use super::Context;
use super::accounts;
use super::caveats::NEVER_IDLE;
use super::per_work::switch_windows;
use super::windows::{Window, grouped, windows};
use crate::account::named::ByAccount;
use crate::finding::{Background, BackgroundTask};
use crate::record::{Meter, Mode, Snapshot, Stretch, TaskOwner};
use crate::stats::estimate::half_width;
use crate::stats::{Neighbours, Pair, ratio_of_sums};
use std::collections::BTreeMap;

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

    /// Context switches of the whole machine per second.
    pub(super) fn switches(&self) -> Option<Rate> {
        self.switches
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
        Background {
            busy_fraction: busy.map(of_machine),
            busy_fraction_low: busy.zip(half).map(|(busy, half)| of_machine(busy - half)),
            busy_fraction_high: busy.zip(half).map(|(busy, half)| of_machine(busy + half)),
            busy_fraction_before: part(0),
            busy_fraction_after: part(1),
            seconds: stretches.iter().filter_map(length_seconds).sum(),
            context_switches_per_second: self.switches.map(|rate| rate.cycles_per_capacity_second),
            tasks,
        }
    }
}

fn length_seconds(stretch: &Stretch) -> Option<f64> {
    Some(stretch.snapshots.last()?.at_nanos.since(settled(stretch)?.at_nanos).seconds())
}

/// The first snapshot to use: what starts or ends just before it is not part of the background.
fn settled(stretch: &Stretch) -> Option<&Snapshot> {
    stretch.snapshots.iter().find(|snapshot| snapshot.mode != Mode::Gap)
}

fn pairs(windows: &[Window]) -> Vec<Pair> {
    windows.iter().map(|window| Pair { numerator: window.cycles, denominator: window.capacity_seconds }).collect()
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
