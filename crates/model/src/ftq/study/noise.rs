//! The table that users of osnoise know: what the worker lost against its undisturbed quantum, and what interrupted it.

use super::stalls::Stalled;
use crate::ftq::finding::{Cause, Noise};
use crate::ftq::record::FtqRecord;
use crate::ftq::series::{Grid, Series};
use crate::probe::Kind;
use crate::stats::quantile::quantile;

/// Quantile of the quanta that is one without noise: a few are faster than the worker can sustain.
const UNDISTURBED: f64 = 0.95;
/// Fewest I/Os in an undisturbed quantum: with 20, one more or less is 5 %.
pub(super) const FEWEST_IOS: f64 = 20.0;
/// Beginnings of the names of counters that interrupt a worker, or count how often it stopped.
const CAUSES: [&str; 5] = ["interrupts", "softirqs.", "context_switches", "steal", "worker."];

/// The noise of a series.
pub(super) fn noise(record: &FtqRecord, series: &Series, grid: &Grid, stalls: &[Stalled]) -> Noise {
    let in_time = grid.values.iter().zip(&grid.filled).filter(|(_, filled)| !**filled);
    let mut values: Vec<f64> = in_time.map(|(value, _)| *value).collect();
    // If every reading was late, means over spans are all there is.
    let undisturbed = quantile(&mut values, UNDISTURBED).or_else(|| quantile(&mut grid.values.clone(), UNDISTURBED));
    let undisturbed = undisturbed.unwrap_or(0.0);
    let mean = grid.values.iter().sum::<f64>() / grid.slots().max(1) as f64;
    // A worker that does all its work in a few quanta has an undisturbed amount below its mean.
    let enough = undisturbed > 0.0
        && undisturbed >= mean
        && series.grain().is_none_or(|grain| undisturbed >= FEWEST_IOS * grain);
    let available = enough.then(|| (mean / undisturbed).min(1.0));
    let longest = stalls.iter().map(|stall| stall.slots.len()).max();
    Noise {
        undisturbed_per_quantum: undisturbed,
        available_fraction: available,
        lost_seconds: available.map(|available| (1.0 - available) * grid.seconds()),
        longest_stall_seconds: longest.map(|slots| slots as f64 * grid.step),
        by_cause: causes(record, series),
    }
}

fn causes(record: &FtqRecord, series: &Series) -> Vec<Cause> {
    let probes = record.header.probes.iter().enumerate();
    let interrupting = probes
        .filter(|(_, probe)| probe.kind == Kind::Counter && CAUSES.iter().any(|begin| probe.name.starts_with(begin)));
    let cause = |(number, probe): (usize, &crate::probe::Descriptor)| {
        let line = series.line(number, Kind::Counter);
        let count = line.iter().rev().find(|count| count.is_finite())?;
        Some(Cause { probe: probe.name.clone(), count: *count, unit: probe.unit.clone() })
    };
    interrupting.filter_map(cause).collect()
}
