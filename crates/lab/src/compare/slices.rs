//! Rounds of slices: warm worker processes, fresh in each round, that take turns of some 10 ms.

use super::protocol::Assignment;
use super::team::Team;
use super::{Measured, RoundRunner, Tasks};
use crate::error::{Error, Result};
use model::comparison::record::{CaseLatency, Schedule, SliceReading, SliceRecord, SliceWork};
use model::experiment::ArmPlan;
use model::plan::Phase;
use model::unit::Nanos;
use std::time::{Duration, Instant};

/// Length of a slice of a load that keeps its CPUs busy. The machine's noise here has the same spread over 5 ms as over
/// 200 ms (its Allan deviation is flat), so what two slices next to each other do not share shrinks with their length;
/// below this the reading of the clocks weighs too much.
const SLICE: Duration = Duration::from_millis(10);
/// Length of a slice of a load that sleeps: shorter ones hold too few wake-ups (METHOD.md).
const SLEEPY_SLICE: Duration = Duration::from_millis(20);
/// Part of it under settings of the system: what the other setting leaves behind in queues and caches falls into the warm-up.
const SWITCHED_WARM_UP_SHARE: u32 = 2;
/// A slice is this many times as long as switching took, which ends at a second: what takes longer makes rounds whole.
const SWITCHES_PER_SLICE: u32 = 50;
/// A load that is on a CPU for less than this part of its time sleeps.
const AWAKE: f64 = 0.9;
/// Part of a slice's length for which I/O is run before it and does not count: caches and predictors belong to the arm
/// again.
const WARM_UP_SHARE: u32 = 5;
/// A slice holds so many I/Os one after the other, so that its drained end weighs little.
const TURNS_PER_SLICE: u32 = 20;
/// No slice is shorter, whatever it would read twice: reading the clocks would be most of it.
const SHORTEST_SLICE: Duration = Duration::from_millis(1);
/// About how long a round is.
const ROUND: Duration = Duration::from_secs(1);
/// Blocks beyond this add nothing to a round that a new round would not add better.
const MOST_BLOCKS: u32 = 100;
/// Part of a round that starting its workers may take.
const START_SHARE: f64 = 0.05;
/// How long a rehearsal waits for the first I/Os of a slow target.
const LONGEST_REHEARSAL: Duration = Duration::from_secs(2);

impl RoundRunner<'_> {
    /// The length of a slice that was asked for.
    pub(super) fn asked_slice(&self) -> Option<Duration> {
        self.experiment.rules.slice_seconds.map(Duration::from_secs_f64)
    }

    /// Whether arms differ by settings of the system.
    fn is_switched(&self) -> bool {
        self.experiment.arms.iter().any(ArmPlan::is_toggled)
    }

    /// Starts every case once, to see how long its I/Os take, how long its start, and whether it sleeps.
    pub(super) fn rehearse(&mut self) -> Result<Schedule> {
        let begun = Instant::now();
        let mut teams = self.teams()?;
        let start = begun.elapsed();
        let (mut slowest, mut awake) = (Duration::ZERO, true);
        let mut longest: Option<Duration> = None;
        for (case, team) in teams.iter_mut().enumerate() {
            let mut length = SLICE;
            let turn = loop {
                self.cache.before_slice(case)?;
                team.warm_up(length)?;
                let work = team.work();
                let cold = self.cache.longest_slice(case, work.bytes.0, work.wall_nanos.duration());
                longest = longest.into_iter().chain(cold).min();
                if work.ios >= u64::from(TURNS_PER_SLICE) || length > LONGEST_REHEARSAL {
                    let thread_nanos = work.wall_nanos.0.saturating_mul(team.threads() as u64);
                    awake &= work.thread_nanos.as_f64() >= AWAKE * thread_nanos as f64;
                    // What passes from one I/O of a thread to its next one holds the time that it thinks or waits.
                    let turn = work.latency_nanos.0.max(thread_nanos).checked_div(work.ios);
                    break Duration::from_nanos(turn.unwrap_or(0));
                }
                length *= 4;
            };
            slowest = slowest.max(turn);
            if self.interrupted() {
                return Err(Error::Interrupted("before the first round".to_owned()));
            }
        }
        for team in teams {
            team.finish()?;
        }
        let (least, share) = if self.is_switched() {
            (SLEEPY_SLICE.max(self.toggles.slowest_switch() * SWITCHES_PER_SLICE), SWITCHED_WARM_UP_SHARE)
        } else {
            (if awake { SLICE } else { SLEEPY_SLICE }, WARM_UP_SHARE)
        };
        let slice = self.asked_slice().unwrap_or_else(|| least.max(slowest * TURNS_PER_SLICE));
        self.longest_slice = longest.map(|longest| longest.max(SHORTEST_SLICE));
        let slice = self.longest_slice.map_or(slice, |longest| slice.min(longest));
        let warm_up = (slice / share).max(slowest);
        // A turn for each case and one for the machine alone.
        let turns = u32::try_from(self.experiment.cases.len()).unwrap_or(u32::MAX).saturating_add(1);
        let block = (slice + warm_up) * turns;
        let wanted = ROUND.max(start.div_f64(START_SHARE));
        let blocks = (wanted.as_secs_f64() / block.as_secs_f64()).round().clamp(1.0, MOST_BLOCKS.into()) as u32;
        let nanos = |duration: Duration| Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        Ok(Schedule::Slices { slice_nanos: nanos(slice), warm_up_nanos: nanos(warm_up), blocks })
    }

    /// One round; `None` when it was interrupted.
    pub(super) fn round_of_slices(
        &mut self,
        slice: Duration,
        warm_up: Duration,
        blocks: u32,
    ) -> Result<Option<Measured>> {
        let mut teams = self.teams()?;
        for case in self.shuffler.shuffled(0..teams.len()) {
            if let Some(team) = teams.get_mut(case) {
                team.warm_up(warm_up)?;
            }
        }
        let mut slices = Vec::new();
        for _ in 0..blocks {
            let turns = (0..teams.len()).map(Some).chain([None]);
            for turn in self.shuffler.shuffled(turns) {
                if self.interrupted() {
                    return Ok(None);
                }
                match turn.and_then(|case| Some((case, teams.get_mut(case)?))) {
                    Some((case, team)) => {
                        slices.push(self.switched(case, |runner| runner.slice(case, team, slice, warm_up))?);
                    }
                    None => {
                        std::thread::sleep(warm_up);
                        slices.push(self.alone(slice, Tasks::Unread));
                    }
                }
            }
        }
        let mut latencies = Vec::new();
        for (case, team) in teams.into_iter().enumerate() {
            latencies.push(CaseLatency { case, injected_ns: team.injected(), ticks: team.finish()? });
        }
        Ok(Some((slices, latencies)))
    }

    /// A warm-up, then a slice of one case.
    pub(super) fn slice(
        &mut self,
        case: usize,
        team: &mut Team,
        length: Duration,
        warm_up: Duration,
    ) -> Result<SliceRecord> {
        let nanos = Nanos(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        team.warm_up(warm_up)?;
        self.cache.before_slice(case)?;
        let read_before = team.storage_read();
        self.neighbours.before(case);
        let before = Box::new(self.meters.boundary(nanos));
        team.go(true);
        self.sleep(length);
        team.halt()?;
        let mut after = Box::new(self.meters.boundary(nanos));
        after.whereabouts = self.neighbours.after(case, team);
        let storage_read = team.storage_read().zip(read_before).map(|(after, before)| after.since(before));
        let work = SliceWork { storage_read, ..team.work() };
        Ok(SliceRecord { case: Some(case), reading: SliceReading::Slice { before, after, work, tasks: None } })
    }

    /// Sleeps for the length of a slice, or until an interruption: the round of a slice that was cut short does not count.
    fn sleep(&self, length: Duration) {
        /// Longest time that an interruption goes unnoticed; ten wake-ups a second of a slice that is longer.
        const GLANCE: Duration = Duration::from_millis(100);
        let end = Instant::now() + length;
        while !self.interrupted() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(GLANCE));
        }
    }

    /// A worker process for each case, started together, all ready.
    fn teams(&mut self) -> Result<Vec<Team>> {
        // In random order, because who starts first may be placed otherwise than who starts last.
        let (mut teams, switched) = (Vec::new(), self.is_switched());
        for case in self.shuffler.shuffled(0..self.experiment.cases.len()) {
            let team = self.switched(case, |runner| {
                let mut team = runner.team(case, |phase| phase)?;
                // What is settled when a file or a socket is opened is settled under the arm's setting.
                if switched {
                    team.ready()?;
                }
                Ok(team)
            })?;
            teams.push((case, team));
        }
        teams.sort_by_key(|(case, _)| *case);
        let mut teams: Vec<Team> = teams.into_iter().map(|(_, team)| team).collect();
        if !switched {
            teams.iter_mut().try_for_each(Team::ready)?;
        }
        Ok(teams)
    }

    /// A worker process for a case, started.
    pub(super) fn team(&mut self, case: usize, adapt: impl FnOnce(Phase) -> Phase) -> Result<Team> {
        let seed = self.shuffler.seed();
        let phase = self.experiment.cases.get(case).and_then(|case| case.work.phase());
        let mut phase = adapt(phase.cloned().unwrap_or_default());
        // Blocks in another order each time: an arm that repeated another's would find what that one had left in caches.
        for job in phase.jobs.iter_mut() {
            job.seed = Some(job.seed.unwrap_or(0) ^ seed);
        }
        let targets = self.targets.get(case).cloned().unwrap_or_default();
        let (scheduler, placing) = (std::process::id(), self.placing.clone());
        let assignment = Assignment { phase, targets, scheduler, clock_hertz: self.clock.0, placing };
        Team::start(&self.settings.program, &self.name(case), &assignment, self.limit.clone(), &self.processes)
    }
}
