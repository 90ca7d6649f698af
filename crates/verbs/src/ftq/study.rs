//! From a recording to its finding.
//!
//! Readings become a series on a uniform grid; periods are searched in it, then single stalls, then the probes that
//! move with them. docs/method describes the formulas.

mod caveats;
mod labels;
mod noise;
mod periods;
mod probes;
mod stalls;
mod words;

use super::finding::{FtqFinding, Label, Periodic, Stall};
use super::record::FtqRecord;
use super::series::{Grid, Series};
use labels::{Found, Line};
use model::kind::{Head, Recorded};
use model::limit::{AtPlace, Quantity};
use model::stats::unpaired::grouped;
use model::stats::{Estimate, Neighbours, Pair, ratio_of_sums};
use model::stored::{self, Stored};
use noise::Grain;
use periods::Period;
use stalls::Stalled;

/// Most single stalls in a finding.
const MOST_STALLS: usize = 20;

/// Computes all numbers of a recording, compared with an earlier one if there is one.
pub fn study(record: &FtqRecord, stored: Option<&Stored<FtqRecord>>) -> FtqFinding {
    let series = Series::of(record);
    let grid = Grid::of(&series);
    let periods = periods::periods(&grid);
    let stalls = stalls::stalls(&grid, &periods);
    let mut finding = overall(record, &series);
    let levels = noise::ranges(&grid);
    finding.levels = noise::levels(&grid, &levels, series.quantum);
    let grain = Grain::of(record, &series);
    let unknown;
    (finding.noise, unknown) = noise::noise(&grid, (&stalls, &levels), grain);
    let mut single = longest_first(&stalls);
    finding.stall_count = single.len() as u64;
    single.truncate(MOST_STALLS);
    let mut labels = labelled(record, (&series, &grid), &periods, &single).into_iter();
    let subject = words::subject(&record.header.plan.worker);
    let of_periods = periods.iter().zip(labels.by_ref());
    finding.periodic = of_periods.map(|(period, labels)| told(period, labels, &grid, subject)).collect();
    finding.stalls = single.iter().zip(labels).map(|(stall, labels)| told_once(stall, labels, &grid)).collect();
    let probes = record.header.probes.iter().enumerate();
    finding.probes = probes.map(|(number, probe)| probes::summary(&series, number, probe)).collect();
    finding.pictures = probes::pictures(record, &series);
    caveats::add(record, (&series, &grid), &periods, unknown.zip(grain), &mut finding);
    if let Some(stored) = stored {
        caveats::stand_beside(&mut finding, record, stored);
    }
    finding
}

/// What needs no analysis.
fn overall(record: &FtqRecord, series: &Series) -> FtqFinding {
    let header = &record.header;
    let end = record.end.as_ref();
    let (amount, seconds) = (series.amount() as u64, series.length());
    FtqFinding {
        head: Head::of(
            FtqRecord::KIND,
            &header.envelope,
            header.worker.clone(),
            (&header.host, &header.services),
            end.map(|end| (&end.outcome, end.warnings.as_slice())),
        ),
        counted_by: header.counted_by.clone(),
        unit: header.unit.clone(),
        quantum_seconds: series.quantum,
        quanta: series.quanta(),
        readings: series.readings() as u64,
        late: series.spans.iter().filter(|span| **span > 1).count() as u64,
        longest_span: series.spans.iter().copied().max().unwrap_or(0),
        bytes: (header.unit == "bytes").then_some(amount),
        amount,
        seconds,
        amount_per_second: if seconds > 0.0 { series.amount() / seconds } else { 0.0 },
        recorder: end.map_or_else(Default::default, |end| end.recorder.clone()),
        ..FtqFinding::default()
    }
}

/// Stalls that belong to no period, the longest first.
fn longest_first(stalls: &[Stalled]) -> Vec<&Stalled> {
    let mut single: Vec<&Stalled> = stalls.iter().filter(|stall| !stall.periodic).collect();
    single.sort_by(|one, other| other.slots.len().cmp(&one.slots.len()).then(other.lost.total_cmp(&one.lost)));
    single
}

/// The labels of each period, then of each stall. Reads one probe after the other, because each may be large.
fn labelled(
    record: &FtqRecord,
    (series, grid): (&Series, &Grid),
    periods: &[Period],
    stalls: &[&Stalled],
) -> Vec<Vec<Label>> {
    let probes = record.header.probes.as_slice();
    let (tests, seed) = (labels::tests(probes), record.header.plan.seed);
    let mut found: Vec<Vec<Found>> = vec![Vec::new(); periods.len() + stalls.len()];
    for probe in probes.iter().enumerate() {
        let Some(line) = Line::of((series, grid), probe, (tests, seed)) else { continue };
        let of_periods = periods.iter().map(|period| line.of_period(&period.dip));
        let of_stalls = stalls.iter().map(|stall| line.of_stall(&stall.slots));
        found.iter_mut().zip(of_periods.chain(of_stalls)).for_each(|(found, label)| found.extend(label));
    }
    found.into_iter().map(labels::strongest_first).collect()
}

fn told(period: &Period, labels: Vec<Label>, grid: &Grid, subject: &str) -> Periodic {
    let (dip, loss) = (&period.dip, &period.loss);
    let (seconds, stalled) = (dip.period * grid.step, loss.slots * grid.step);
    Periodic {
        period_seconds: seconds,
        stall_seconds: stalled,
        depth: loss.depth,
        false_alarm: period.ln_false_alarm.exp(),
        phase: (grid.begin / seconds + dip.phase).rem_euclid(1.0),
        seen: loss.seen,
        of: loss.of,
        probe: labels.first().map(|label| label.probe.clone()),
        sentence: words::every(seconds, subject, (loss.depth, stalled), &labels),
        labels,
    }
}

fn told_once(stall: &Stalled, labels: Vec<Label>, grid: &Grid) -> Stall {
    let at_seconds = grid.begin + stall.slots.start as f64 * grid.step;
    let (seconds, lost_seconds) = (stall.slots.len() as f64 * grid.step, stall.lost * grid.step);
    Stall { at_seconds, seconds, lost_seconds, labels }
}

const RATE: &str = "amount_per_second";
const AVAILABLE: &str = "available_fraction";
const OFF_CPU: &str = "off_cpu_share";
const STALL: &str = "longest_stall_seconds";
const STALLS: &str = "stall_count";
const LATE: &str = "late_share";

/// The probe that tells how long the worker was not on a CPU.
const OFF_CPU_PROBE: &str = "worker.off_cpu_time";

/// Each metric that `--fail-on` can limit. Rates are estimates, with the interval over parts of the recording. The longest stall and how often the
/// recorder or the worker was late are facts about this recording, which decide a limit on their value, but not on a change: one recording
/// shows no spread of them.
pub(crate) fn quantities() -> Vec<Quantity> {
    let row = |name, unit| Quantity { name, unit };
    vec![
        row(RATE, "bytes or steps/s"),
        row(AVAILABLE, "fraction"),
        row(OFF_CPU, "fraction"),
        row(STALL, "s"),
        row(STALLS, "stalls"),
        row(LATE, "fraction"),
    ]
}

/// A metric of the recording.
pub fn at_places(finding: &FtqFinding, now: &FtqRecord, then: Option<&FtqRecord>, name: &str) -> Vec<AtPlace> {
    let value = estimate(now, name).unwrap_or_else(|| fact(now, finding, name));
    let no_spread = || "one recording shows no spread of it; limit its value".to_owned();
    let change = then.map(|then| {
        let then = estimate(then, name).ok_or_else(no_spread)?;
        let found = stored::since(value.clone()?, then?).ok_or("it is 0 in one of the two")?;
        Ok(found)
    });
    vec![AtPlace { cell: String::new(), arm: String::new(), value, change }]
}

fn fact(record: &FtqRecord, finding: &FtqFinding, name: &str) -> Result<Estimate, String> {
    if finding.readings < 2 {
        return Err("nothing was read".to_owned());
    }
    Ok(match name {
        AVAILABLE => {
            let available = finding.noise.available_fraction.ok_or("a quantum holds too few I/Os to tell")?;
            // It is the rate as a part of the undisturbed one.
            let rate = estimate(record, RATE).ok_or("nothing was read")??;
            let part = |end: f64| available * end / rate.value;
            Estimate { value: available, low: rate.low.map(part), high: rate.high.map(part) }
        }
        // A worker that never stalled has no longest stall.
        STALL => Estimate::exact(finding.noise.longest_stall_seconds.unwrap_or(0.0)),
        STALLS => Estimate::exact(finding.stall_count as f64),
        _ => Estimate::exact(finding.late as f64 / finding.readings as f64),
    })
}

/// The metrics with an interval; `None` for the others.
fn estimate(record: &FtqRecord, name: &str) -> Option<Result<Estimate, String>> {
    let series = Series::of(record);
    let rate = |line: &[f64]| {
        let times = series.seconds.iter().zip(line).filter(|(_, done)| done.is_finite());
        let later = times.clone().skip(1);
        let steps: Vec<Pair> = times
            .zip(later)
            .map(|((before, done_before), (at, done))| Pair { numerator: done - done_before, denominator: at - before })
            .collect();
        Some(ratio_of_sums(&grouped(&steps), Neighbours::Alike)?.estimate())
    };
    match name {
        RATE => Some(rate(&series.done).ok_or_else(|| "nothing was read".to_owned())),
        OFF_CPU => {
            let probes = &record.header.probes;
            let probe = probes.iter().enumerate().find(|(_, probe)| probe.name == OFF_CPU_PROBE);
            let found = probe.and_then(|(number, probe)| rate(&series.line(number, probe.kind)));
            Some(found.map(|nanos| nanos.scaled(1e-9)).ok_or_else(|| format!("{OFF_CPU_PROBE} was not read")))
        }
        _ => None,
    }
}
