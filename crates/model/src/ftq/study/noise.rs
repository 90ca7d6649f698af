//! The table that users of osnoise know: what the worker lost against its undisturbed quantum, and what interrupted it.

use super::grain::Grain;
use super::stalls::Stalled;
use crate::ftq::finding::{Cause, Noise};
use crate::ftq::record::FtqRecord;
use crate::ftq::series::{Grid, Series};
use crate::probe::Kind;
use crate::stats::quantile::quantile;
use std::ops::Range;

/// Quantile of the quanta that is one without noise: a few are faster than the worker can sustain.
const UNDISTURBED: f64 = 0.95;
/// Fewest I/Os in an undisturbed quantum: with 20, one more or less is 5 %.
pub(super) const FEWEST_IOS: f64 = 20.0;
/// Beginnings of the names of counters that interrupt a worker, or count how often it stopped.
const CAUSES: [&str; 5] = ["interrupts", "softirqs.", "context_switches", "steal", "worker."];

/// Why the undisturbed amount of a quantum is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unknown {
    /// The quanta of a level hold so few I/Os on average.
    Few(f64),
    /// Nearly all work is done in few quanta.
    Lumps,
}

/// The noise of a series, each level of its rate by itself, and why a part of it is unknown.
pub(super) fn noise(
    record: &FtqRecord,
    (series, grid): (&Series, &Grid),
    (stalls, levels): (&[Stalled], &[Range<usize>]),
    grain: Option<Grain>,
) -> (Noise, Option<Unknown>) {
    let parts: Vec<Undisturbed> = levels.iter().filter_map(|slots| Undisturbed::of(grid, slots, grain)).collect();
    let slots = grid.slots().max(1) as f64;
    let available = parts.iter().map(|part| Some(part.available.ok()? * part.slots / slots)).sum::<Option<f64>>();
    let available = available.filter(|_| !parts.is_empty());
    let longest = stalls.iter().map(|stall| stall.slots.len()).max();
    let noise = Noise {
        undisturbed_per_quantum: parts.iter().map(|part| part.amount * part.slots / slots).sum(),
        available_fraction: available,
        lost_seconds: available.map(|available| (1.0 - available) * grid.seconds()),
        longest_stall_seconds: longest.map(|slots| slots as f64 * grid.step),
        by_cause: causes(record, series),
    };
    (noise, parts.iter().find_map(|part| part.available.err()))
}

/// What the worker does in a quantum of a level without noise.
struct Undisturbed {
    slots: f64,
    amount: f64,
    /// The mean as a part of it.
    available: Result<f64, Unknown>,
}

impl Undisturbed {
    fn of(grid: &Grid, slots: &Range<usize>, grain: Option<Grain>) -> Option<Self> {
        let (all, filled) = (grid.values.get(slots.clone())?, grid.filled.get(slots.clone())?);
        let in_time = all.iter().zip(filled).filter(|(_, filled)| !**filled);
        let mut values: Vec<f64> = in_time.map(|(value, _)| *value).collect();
        // If every reading was late, means over spans are all there is.
        let undisturbed = quantile(&mut values, UNDISTURBED).or_else(|| quantile(&mut all.to_vec(), UNDISTURBED))?;
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let ios = |amount: f64| grain.map_or(f64::INFINITY, |grain| amount / grain.amount);
        let available = if ios(mean) < FEWEST_IOS && mean > 0.0 && ios(undisturbed) < FEWEST_IOS {
            Err(Unknown::Few(ios(mean)))
        } else if undisturbed <= 0.0 || undisturbed < mean || ios(undisturbed) < FEWEST_IOS {
            // A worker that does all its work in a few quanta has an undisturbed amount below its mean.
            Err(Unknown::Lumps)
        } else {
            Ok((mean / undisturbed).min(1.0))
        };
        Some(Self { slots: slots.len() as f64, amount: undisturbed, available })
    }
}

fn causes(record: &FtqRecord, series: &Series) -> Vec<Cause> {
    let probes = record.probes().iter().enumerate();
    let interrupting = probes
        .filter(|(_, probe)| probe.kind == Kind::Counter && CAUSES.iter().any(|begin| probe.name.starts_with(begin)));
    let cause = |(number, probe): (usize, &crate::probe::Descriptor)| {
        let line = series.line(number, Kind::Counter);
        let count = line.iter().rev().find(|count| count.is_finite())?;
        Some(Cause { probe: probe.name.clone(), count: *count, unit: probe.unit.clone() })
    };
    interrupting.filter_map(cause).collect()
}
