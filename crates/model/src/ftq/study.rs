//! From a recording to its finding.
//!
//! Readings become a series on a uniform grid; periods are searched in it, then single stalls, then the probes that
//! move with them. docs/method describes the formulas.

mod against;
mod caveats;
mod grain;
mod labels;
mod levels;
mod limits;
mod noise;
mod periods;
mod pictures;
mod probes;
mod profile;
mod stalls;
mod threads;
mod words;

pub(crate) use limits::quantities;

use super::finding::{FtqFinding, Label, Noise, Periodic, SCHEMA, Stall};
use super::record::FtqRecord;
use super::series::{Grid, Series};
use crate::record::Outcome;
use crate::stored::Stored;
use crate::warning::gravest_first;
use grain::Grain;
use labels::{Found, Line, Windows};
use periods::{Period, cycles};
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
    let levels = levels::ranges(&grid);
    finding.levels = levels::levels(&grid, &levels, series.quantum);
    let grain = Grain::of(record, &series);
    let unknown;
    (finding.noise, unknown) = noise::noise(record, (&series, &grid), (&stalls, &levels), grain);
    let single: Vec<&Stalled> = longest_first(&stalls);
    finding.stall_count = single.len() as u64;
    let single = single.get(..single.len().min(MOST_STALLS)).unwrap_or_default();
    let (of_periods, of_stalls) = labelled(record, (&series, &grid), &periods, single);
    let subject = words::subject(&record.header.plan.worker);
    finding.periodic =
        periods.iter().zip(of_periods).map(|(period, labels)| told(period, labels, &grid, subject)).collect();
    finding.stalls =
        single.iter().zip(of_stalls).map(|(stall, labels)| told_once(stall, labels, &grid, subject)).collect();
    let probes = record.probes().iter().enumerate();
    finding.probes = probes.map(|(number, probe)| probes::summary(&series, number, probe)).collect();
    finding.threads = threads::threads(record, &series);
    finding.pictures = pictures::pictures(record, &series, &grid, &periods);
    caveats::add(record, (&series, &grid), &periods, unknown.zip(grain), &mut finding);
    if let Some(stored) = stored {
        against::stand_beside(&mut finding, record, stored);
        gravest_first(&mut finding.warnings);
    }
    finding.limits = limits::judge(record, &finding, stored);
    finding
}

/// The periods of a recording, without their labels.
fn periodic(record: &FtqRecord) -> Vec<Periodic> {
    let grid = Grid::of(&Series::of(record));
    let subject = words::subject(&record.header.plan.worker);
    periods::periods(&grid).iter().map(|period| told(period, Vec::new(), &grid, subject)).collect()
}

/// What needs no analysis.
fn overall(record: &FtqRecord, series: &Series) -> FtqFinding {
    let header = &record.header;
    let end = record.end.as_ref();
    let (amount, seconds) = (series.amount() as u64, series.length());
    FtqFinding {
        schema: SCHEMA.to_owned(),
        method_version: header.envelope.method_version,
        started_unix_seconds: header.envelope.started_unix_seconds,
        command_line: header.envelope.command_line.clone(),
        host: header.host.clone(),
        origin: header.envelope.origin(),
        worker: header.worker.clone(),
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
        levels: Vec::new(),
        recorder: end.map_or_else(Default::default, |end| end.recorder.clone()),
        noise: Noise::default(),
        periodic: Vec::new(),
        stalls: Vec::new(),
        stall_count: 0,
        threads: Vec::new(),
        probes: Vec::new(),
        services: header.services.clone(),
        against: None,
        limits: Vec::new(),
        outcome: end.map_or(Outcome::Interrupted, |end| end.outcome.clone()),
        warnings: end.map_or_else(Vec::new, |end| end.warnings.clone()),
        pictures: super::finding::Pictures::default(),
    }
}

/// Stalls that belong to no period, the longest first.
fn longest_first(stalls: &[Stalled]) -> Vec<&Stalled> {
    let mut single: Vec<&Stalled> = stalls.iter().filter(|stall| !stall.periodic).collect();
    single.sort_by(|one, other| other.slots.len().cmp(&one.slots.len()).then(other.lost.total_cmp(&one.lost)));
    single
}

/// The labels of each period and of each stall. Reads one probe after the other, because each may be large.
fn labelled(
    record: &FtqRecord,
    (series, grid): (&Series, &Grid),
    periods: &[Period],
    stalls: &[&Stalled],
) -> (Vec<Vec<Label>>, Vec<Vec<Label>>) {
    let probes = record.probes();
    let (tests, seed) = (labels::tests(probes), record.header.plan.seed);
    let windows: Vec<Windows> = periods.iter().map(|period| windows(period, grid)).collect();
    let mut of_periods: Vec<Vec<Found>> = periods.iter().map(|_| Vec::new()).collect();
    let mut of_stalls: Vec<Vec<Found>> = stalls.iter().map(|_| Vec::new()).collect();
    for probe in probes.iter().enumerate() {
        let Some(line) = Line::of((series, grid), probe, (tests, seed)) else { continue };
        for (found, windows) in of_periods.iter_mut().zip(&windows) {
            found.extend(line.of_period(windows));
        }
        for (found, stall) in of_stalls.iter_mut().zip(stalls) {
            found.extend(line.of_stall(&stall.slots));
        }
    }
    let sorted = |found: Vec<Vec<Found>>| found.into_iter().map(labels::strongest_first).collect();
    (sorted(of_periods), sorted(of_stalls))
}

/// The slots of a period's stalls.
fn windows(period: &Period, grid: &Grid) -> Windows {
    Windows { windows: cycles(&period.dip, grid.slots()).map(|cycle| cycle.dip).collect(), period: period.dip.period }
}

fn told(period: &Period, labels: Vec<Label>, grid: &Grid, subject: &str) -> Periodic {
    let (dip, loss) = (&period.dip, &period.loss);
    let (seconds, stalled) = (dip.period * grid.step, loss.slots * grid.step);
    let moved = labels.first().map(|label| label.words.as_str());
    Periodic {
        period_seconds: seconds,
        stall_seconds: stalled,
        depth: loss.depth,
        false_alarm: period.ln_false_alarm.exp(),
        phase: (grid.begin / seconds + dip.phase).rem_euclid(1.0),
        seen: loss.seen,
        of: loss.of,
        probe: labels.first().map(|label| label.probe.clone()),
        sentence: words::every(seconds, subject, loss.depth, stalled, moved),
        labels,
    }
}

fn told_once(stall: &Stalled, labels: Vec<Label>, grid: &Grid, subject: &str) -> Stall {
    let at = grid.begin + stall.slots.start as f64 * grid.step;
    let seconds = stall.slots.len() as f64 * grid.step;
    let lost = stall.lost * grid.step;
    let depth = stall.lost / stall.slots.len().max(1) as f64;
    let moved = labels.first().map(|label| label.words.as_str());
    Stall {
        at_seconds: at,
        seconds,
        lost_seconds: lost,
        sentence: words::once(at, subject, depth, lost, moved),
        labels,
    }
}
