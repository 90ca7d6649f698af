//! The placement of a phase's threads, whether the two busiest shared a CPU, and the rate and cost in both modes.
//!
//! The rate of a mode comes from the windows between snapshots with their [`Whereabouts`], the cost from the windows of
//! the headline meter. A meter's window may contain several snapshot windows; it belongs to a mode only if all of them
//! do.

use super::net_cost::BackgroundRates;
use super::windows::{done_between, windows};
use super::with_jobs;
use crate::finding::PhaseFinding;
use crate::placement::{
    BUSY, Mode, ModeFinding, PeerPlacement, Place, PlacementFinding, RanOn, Side, Whereabouts, in_words, mend,
    two_rates,
};
use crate::plan::JobPlan;
use crate::record::{self, Execution, IoInterval, Meter, Record, Snapshot};
use crate::unit::Nanos;
use crate::warning::{Code, Warning};
use std::collections::{BTreeMap, BTreeSet};

/// Fraction of the time above which a mode is that of the phase; the rest is the start-up of threads.
pub const ALMOST_ALL: f64 = 0.9;

/// A window between two snapshots, and the placement of threads in it.
pub struct PlacedWindow<'a> {
    pub begin: Nanos,
    pub end: Nanos,
    /// I/Os, if counted.
    pub ios: Option<u64>,
    pub whereabouts: &'a Whereabouts,
    pub mode: Option<Mode>,
}

impl PlacedWindow<'_> {
    pub(crate) fn seconds(&self) -> f64 {
        self.end.since(self.begin).seconds()
    }
}

/// The peers that are servers according to the snapshots.
pub fn servers<'a>(snapshots: impl IntoIterator<Item = &'a Snapshot>) -> BTreeSet<u32> {
    let whereabouts = snapshots.into_iter().filter_map(|snapshot| snapshot.whereabouts.as_deref());
    whereabouts.flat_map(|whereabouts| &whereabouts.servers).copied().collect()
}

fn servers_of(executions: &[Execution]) -> BTreeSet<u32> {
    servers(executions.iter().flat_map(|execution| &execution.stretch.snapshots))
}

/// The servers that may belong to the load. `None` for jobs that use files or nothing, so that no other process is part
/// of their load. `jobs` is `None` for a command, whose peers are unknown.
pub fn of_load<'a>(jobs: Option<&[JobPlan]>, servers: &'a BTreeSet<u32>) -> Option<&'a BTreeSet<u32>> {
    jobs.is_none_or(|jobs| jobs.iter().any(|job| job.path.uri.is_some())).then_some(servers)
}

/// The windows of an execution with a recorded placement, within its time of I/O.
pub fn placed<'a>(execution: &'a Execution, servers: Option<&BTreeSet<u32>>) -> Vec<PlacedWindow<'a>> {
    let found = execution.stretch.pairs().filter_map(|(before, after)| {
        let (begin, end, whereabouts) = (before.at_nanos, after.at_nanos, after.whereabouts.as_deref()?);
        let ios = done_between(before, after).map(|done| done.ios);
        let counts = before.mode != record::Mode::Gap && IoInterval::covers(execution.io_interval, begin, end);
        let mode = whereabouts.mode(end.since(begin), servers);
        counts.then_some(PlacedWindow { begin, end, ios, whereabouts, mode })
    });
    found.collect()
}

/// The placement of the threads of a phase; `None` if not recorded.
pub(super) fn study(
    executions: &[Execution],
    jobs: Option<&[JobPlan]>,
    headline: Option<Meter>,
    rates: &BackgroundRates,
) -> Option<PlacementFinding> {
    let servers = servers_of(executions);
    let of_load = of_load(jobs, &servers);
    let all: Vec<(&Execution, Vec<PlacedWindow>)> =
        executions.iter().map(|execution| (execution, placed(execution, of_load))).collect();
    let windows = || all.iter().flat_map(|(_, windows)| windows);
    windows().find(|window| !window.whereabouts.ran.is_empty())?;
    let mut cpus = BTreeMap::new();
    let mut peers: BTreeMap<(Option<u32>, &str), BTreeMap<u32, f64>> = BTreeMap::new();
    for ran in windows().flat_map(|window| &window.whereabouts.ran) {
        let by_cpu = match ran.side {
            Side::Workload => &mut cpus,
            Side::Peer => peers.entry((ran.process, ran.name.as_str())).or_default(),
        };
        *by_cpu.entry(ran.cpu).or_insert(0.0) += ran.nanos.as_f64();
    }
    let mut peers: Vec<_> = peers.into_iter().collect();
    let used = |by_cpu: &BTreeMap<u32, f64>| by_cpu.values().sum::<f64>();
    let is_server = |process: Option<u32>| process.is_some_and(|process| servers.contains(&process));
    peers.sort_by(|((one, _), a), ((other, _), b)| {
        is_server(*other).cmp(&is_server(*one)).then(used(b).total_cmp(&used(a)))
    });
    let modes = modes(&all, headline, rates);
    Some(PlacementFinding {
        cpus: shares(cpus),
        peers: peers
            .into_iter()
            .map(|((process, name), cpus)| PeerPlacement {
                name: name.to_owned(),
                process,
                server: is_server(process),
                cpus: shares(cpus),
            })
            .collect(),
        mode: mode_of(&modes),
        modes,
    })
}

/// The fraction of each CPU.
fn shares(mut by_cpu: BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
    let sum: f64 = by_cpu.values().sum();
    by_cpu.retain(|_, nanos| *nanos > 0.0);
    by_cpu.values_mut().for_each(|nanos| *nanos /= sum);
    by_cpu
}

/// The overall mode of a phase.
pub(crate) fn mode_of(modes: &[ModeFinding]) -> Option<Mode> {
    let all: f64 = modes.iter().map(|mode| mode.seconds).sum();
    let most = modes.iter().find(|mode| mode.seconds >= ALMOST_ALL * all);
    (all > 0.0).then(|| most.map_or(Mode::Mixed, |most| most.mode))
}

fn modes(
    all: &[(&Execution, Vec<PlacedWindow>)],
    headline: Option<Meter>,
    rates: &BackgroundRates,
) -> Vec<ModeFinding> {
    let found = [Mode::Same, Mode::Apart].into_iter().filter_map(|mode| {
        let of_mode = || all.iter().flat_map(|(_, windows)| windows).filter(|window| window.mode == Some(mode));
        let seconds: f64 = of_mode().map(PlacedWindow::seconds).sum();
        let ios: Option<u64> =
            of_mode().try_fold(0_u64, |sum, window| Some(sum.saturating_add(window.ios?))).filter(|ios| *ios > 0);
        let costs = headline.map(|meter| cost(all, mode, meter, rates));
        let (cycles, paid) = costs.unwrap_or_default();
        (seconds > 0.0).then(|| ModeFinding {
            mode,
            windows: of_mode().count(),
            seconds,
            iops: ios.map(|ios| ios as f64 / seconds),
            cycles_per_io: (paid > 0.0).then(|| cycles / paid),
        })
    });
    found.collect()
}

/// Net cycles in a meter's windows of one mode, and the I/Os in them.
fn cost(all: &[(&Execution, Vec<PlacedWindow>)], mode: Mode, meter: Meter, rates: &BackgroundRates) -> (f64, f64) {
    let rate = rates.of(meter).map_or(0.0, |rate| rate.cycles_per_capacity_second);
    let (mut cycles, mut ios) = (0.0, 0.0);
    for (execution, placed) in all {
        for window in windows(*execution, meter, execution.io_interval, &rates.context) {
            let mut within = placed.iter().filter(|placed| placed.begin >= window.begin && placed.end <= window.end);
            let begins = within.next().is_some_and(|placed| placed.mode == Some(mode));
            let Some(done) = window.done.filter(|_| begins && within.all(|placed| placed.mode == Some(mode))) else {
                continue;
            };
            cycles += window.cycles - rate * window.capacity_seconds;
            ios += done.ios as f64;
        }
    }
    (cycles, ios)
}

/// A caveat if the phase ran at two rates, one while the two busiest threads shared a CPU and one while they did not.
pub(super) fn caveat(phase: &PhaseFinding, jobs: &str, place: Option<&Place>) -> Option<Warning> {
    let [same, apart] = two_rates(&phase.placement.as_ref()?.modes)?;
    let message = format!(
        "{jobs}: the rate while the two busiest threads shared a CPU ({}) differs from that while each had its own ({}); one mean \
         describes neither; {}",
        in_words(same),
        in_words(apart),
        mend(place)
    );
    Some(Warning::new(Code::PlacementModes, message))
}

/// Fraction of the windows above which a misplaced server is reported.
const ELSEWHERE: f64 = 0.1;

/// Servers that ran on other CPUs than `asked` requests, which only the user can fix.
pub fn elsewhere(asked: &Place, windows: &[PlacedWindow], servers: &BTreeSet<u32>, cpus: usize) -> Vec<Warning> {
    // For each peer: the windows in which it was busy together with the workload, and those of them in which it was
    // misplaced.
    let mut peers: BTreeMap<(u32, &str), (usize, usize)> = BTreeMap::new();
    let mut own: BTreeMap<u32, f64> = BTreeMap::new();
    for window in windows {
        let here: BTreeSet<u32> = busy(window, Side::Workload).map(|ran| ran.cpu).collect();
        busy(window, Side::Workload).for_each(|ran| *own.entry(ran.cpu).or_default() += ran.nanos.as_f64());
        let mut seen = BTreeSet::new();
        for peer in busy(window, Side::Peer).filter(|_| !here.is_empty()) {
            let Some(process) = peer.process.filter(|process| servers.contains(process) && seen.insert(*process))
            else {
                continue;
            };
            let wrong = match asked {
                Place::Same => !here.contains(&peer.cpu),
                Place::Apart => here.contains(&peer.cpu),
                Place::Cpus(_) => false,
            };
            let count = peers.entry((process, peer.name.as_str())).or_default();
            *count = (count.0 + 1, count.1 + usize::from(wrong));
        }
    }
    let wanted = match asked {
        Place::Same => own.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(cpu, _)| *cpu),
        Place::Apart => (0..u32::try_from(cpus).unwrap_or(u32::MAX)).find(|cpu| !own.contains_key(cpu)),
        Place::Cpus(_) => None,
    };
    let wrong = peers.into_iter().filter(|(_, (all, wrong))| *wrong as f64 > ELSEWHERE * *all as f64);
    let warning = |((process, name), (all, wrong)): ((u32, &str), (usize, usize))| {
        let part = wrong as f64 / all as f64 * 100.0;
        let ran = match asked {
            Place::Same => "on another CPU than the workload",
            Place::Apart | Place::Cpus(_) => "on a CPU of the workload's",
        };
        let mend = match wanted {
            Some(cpu) => format!("pin it: taskset -a -c -p {cpu} {process}"),
            None => "give the workload fewer threads, so that a CPU is left".to_owned(),
        };
        let message = format!(
            "--place {asked}: server {name} (process {process}) ran {ran} in {part:.0} % of the windows; iotoll \
             does not move other processes: if the load uses this server, {mend}"
        );
        Warning::new(Code::PlacementElsewhere, message)
    };
    wrong.map(warning).collect()
}

/// The same caveats for all phases of a run.
pub(super) fn elsewhere_in(record: &Record) -> Vec<Warning> {
    let Some(asked) = &record.place else { return Vec::new() };
    let (mut all, mut windows) = (BTreeSet::new(), Vec::new());
    for (phase, jobs) in with_jobs(record) {
        let servers = servers_of(&phase.executions);
        if let Some(of_load) = of_load(jobs, &servers) {
            windows.extend(phase.executions.iter().flat_map(|execution| placed(execution, Some(of_load))));
            all.extend(of_load);
        }
    }
    elsewhere(asked, &windows, &all, record.host.cpus)
}

/// The busy threads of a window, the busiest first.
fn busy<'a>(window: &'a PlacedWindow<'a>, side: Side) -> impl Iterator<Item = &'a RanOn> {
    let least = window.end.since(window.begin).as_f64() * BUSY;
    window.whereabouts.ran.iter().filter(move |ran| ran.side == side && ran.nanos.as_f64() >= least)
}
