//! What the machine does anyway, as a rate that each meter's figures are relieved of.

use super::Context;
use super::caveats::NEVER_IDLE;
use super::windows::{Window, grouped, windows};
use crate::finding::{Background, BackgroundTask};
use crate::record::{Meter, Mode, Snapshot, Stretch, TaskOwner};
use crate::stats::estimate::half_width;
use crate::stats::{Pair, ratio_of_series, ratio_of_sums};
use std::collections::BTreeMap;

/// Tasks that are named in the report of the background.
const NAMED_TASKS: usize = 5;

/// Cycles per second of CPU capacity that a meter saw without the workload; of a probe, what it counted in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub cycles_per_capacity_second: f64,
    pub standard_error: f64,
    pub degrees_of_freedom: f64,
}

/// The background by each meter, and by each task.
pub(super) struct BackgroundRates {
    rates: BTreeMap<Meter, Rate>,
    task_nanos_per_second: BTreeMap<(TaskOwner, String), f64>,
    switches_per_second: Option<f64>,
}

impl BackgroundRates {
    pub(super) fn new(stretches: &[Stretch], context: &Context) -> Self {
        let seen = |meter| stretches.iter().map(move |stretch| windows(stretch, meter, None, context));
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
        Self { rates, task_nanos_per_second: nanos, switches_per_second: switches_per_second(stretches) }
    }

    /// What `meter` saw; `None` when it did not run then.
    pub(super) fn of(&self, meter: Meter) -> Option<Rate> {
        self.rates.get(&meter).copied()
    }

    /// Whether any meter saw a background.
    pub(super) fn watched(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Whether the machine was so busy alone that what a workload adds cannot be seen. Core cycles are no fraction.
    pub(super) fn never_idle(&self, context: &Context) -> bool {
        let times = self.rates.iter().filter(|(meter, _)| meter.counts_time());
        times.map(|(_, rate)| rate.cycles_per_capacity_second / context.clock.0).any(|busy| busy > NEVER_IDLE)
    }

    /// CPU time per second of a task.
    pub(super) fn task_nanos_per_second(&self, owner: TaskOwner, name: &str) -> f64 {
        self.task_nanos_per_second.get(&(owner, name.to_owned())).copied().unwrap_or(0.0)
    }

    pub(super) fn switches_per_second(&self) -> Option<f64> {
        self.switches_per_second
    }

    pub(super) fn finding(&self, stretches: &[Stretch], context: &Context) -> Background {
        // The meter that speaks for the costs speaks for what is taken off them; core cycles are no fraction.
        let meter = Meter::by_trust().find(|meter| meter.counts_time() && self.of(*meter).is_some());
        let fraction = |cycles: f64| cycles / context.clock.0;
        let rate = meter.and_then(|meter| self.of(meter));
        let half = rate.and_then(|rate| half_width(rate.standard_error, rate.degrees_of_freedom)).map(fraction);
        let busy = rate.map(|rate| fraction(rate.cycles_per_capacity_second));
        let part = |place: usize| {
            let all = windows(stretches.get(place)?, meter?, None, context);
            Some(fraction(ratio_of_sums(&pairs(&all))?.value).max(0.0))
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
            busy_fraction: busy.map(|busy| busy.max(0.0)),
            busy_fraction_low: busy.zip(half).map(|(busy, half)| (busy - half).max(0.0)),
            busy_fraction_high: busy.zip(half).map(|(busy, half)| (busy + half).max(0.0)),
            busy_fraction_before: part(0),
            busy_fraction_after: part(1),
            seconds: stretches.iter().filter_map(length_seconds).sum(),
            context_switches_per_second: self.switches_per_second,
            tasks,
        }
    }
}

fn length_seconds(stretch: &Stretch) -> Option<f64> {
    Some(stretch.snapshots.last()?.at_nanos.since(settled(stretch)?.at_nanos).seconds())
}

/// The first snapshot that counts: what starts or ends just before is not the background.
fn settled(stretch: &Stretch) -> Option<&Snapshot> {
    stretch.snapshots.iter().find(|snapshot| snapshot.mode != Mode::Gap)
}

fn pairs(windows: &[Window]) -> Vec<Pair> {
    windows.iter().map(|window| Pair { numerator: window.cycles, denominator: window.capacity_seconds }).collect()
}

/// Of the windows of all stretches together. When before and after differ, half of their distance is taken for a standard error
/// if it is the larger one: it supposes that the background during the run lay about between the two, which
/// nobody saw.
pub(super) fn rate(stretches: impl IntoIterator<Item = Vec<Window>>) -> Option<Rate> {
    let parts: Vec<Vec<Window>> = stretches.into_iter().map(|windows| grouped(&windows)).collect();
    let all: Vec<Pair> = parts.iter().flat_map(|part| pairs(part)).collect();
    let whole = ratio_of_series(&all)?;
    let values: Vec<f64> = parts.iter().filter_map(|part| Some(ratio_of_sums(&pairs(part))?.value)).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // With one window nothing is known of its error: then all of it may be wrong.
    let within = whole.standard_error.unwrap_or(whole.value.abs());
    let apart = (high - low) / 2.0;
    Some(Rate {
        cycles_per_capacity_second: whole.value,
        standard_error: within.max(apart),
        degrees_of_freedom: whole.degrees_of_freedom.max(1.0),
    })
}

fn switches_per_second(stretches: &[Stretch]) -> Option<f64> {
    let (mut switches, mut seconds) = (0.0, 0.0);
    for stretch in stretches {
        let first = settled(stretch)?.system?;
        let last = stretch.snapshots.last()?.system?;
        switches += last.context_switches.saturating_sub(first.context_switches) as f64;
        seconds += last.at_nanos.since(first.at_nanos).seconds();
    }
    (seconds > 0.0).then(|| switches / seconds)
}
