//! Rounds of slices: warm worker processes, started anew in each round, take turns of some 10 ms.

use super::drawn_cpus::Drawn;
use super::worker_process::{Assignment, WorkerProcess};
use super::{RoundRunner, Tasks, at_once};
use crate::compare::record::{CaseLatency, RoundRecord, Schedule, SliceReading, SliceRecord, SliceWork};
use lab::command::{CommandPlan, Count, Counter, Executed, Isolation, execute};
use lab::error::{Error, Result};
use lab::network_namespace;
use lab::shell::short;
use lab::toggle::and_left;
use lab::whereabouts::{PlacementWatch, Workload, summed};
use model::experiment::{ArmPlan, Cell, Work};
use model::placement::Whereabouts;
use model::plan::{Access, Phase};
use model::unit::Nanos;
use model::warning::add_once;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Length of a slice of a load that keeps its CPUs busy. The machine's noise here has the same spread over 5 ms as over
/// 200 ms (its Allan deviation is flat), so shorter slices have less noise that two neighbours do not share; below this
/// length the reading of the clocks weighs too much.
const SLICE: Duration = Duration::from_millis(10);
/// Length of a slice of a load that sleeps: shorter ones contain too few wake-ups (docs/method/windows.md).
const SLEEPY_SLICE: Duration = Duration::from_millis(20);
/// Warm-up of arms with system settings, as a part of a slice: effects of the other setting on queues and caches end
/// during the warm-up.
const SWITCHED_WARM_UP_SHARE: u32 = 2;
/// A slice is this many times as long as a switch. A switch takes at most a second; slower settings use whole rounds.
const SWITCHES_PER_SLICE: u32 = 50;
/// A load that is on a CPU for less than this part of its time sleeps.
const AWAKE: f64 = 0.9;
/// Warm-up before a slice, as a part of its length: I/O that does not count, so that caches and predictors belong to
/// the arm again.
const WARM_UP_SHARE: u32 = 5;
/// Consecutive I/Os per slice, so that draining the queue at its end weighs little.
const TURNS_PER_SLICE: u32 = 20;
/// Minimum length of a slice, even if it reads blocks twice: in a shorter one, reading the clocks would dominate.
const SHORTEST_SLICE: Duration = Duration::from_millis(1);
/// Approximate length of a round.
const ROUND: Duration = Duration::from_secs(1);
/// More blocks per round gain less than another round.
const MOST_BLOCKS: u32 = 100;
/// Rounds that the budget has room for.
const ROUNDS_PER_BUDGET: f64 = 10.0;
/// Part of a round that starting its workers may take.
const START_SHARE: f64 = 0.05;
/// How long a rehearsal waits for the first I/Os of a slow target.
const LONGEST_REHEARSAL: Duration = Duration::from_secs(2);

impl RoundRunner<'_> {
    /// The length of a slice from `--slice`.
    pub(super) fn asked_slice(&self) -> Option<Duration> {
        self.experiment.rules.slice_seconds.map(Duration::from_secs_f64)
    }

    /// Whether arms differ by settings of the system.
    fn is_switched(&self) -> bool {
        self.experiment.arms.iter().any(ArmPlan::is_toggled)
    }

    /// Starts every case once, to measure the duration of its I/Os and of its start, and whether it sleeps.
    pub(super) fn rehearse(&mut self) -> Result<Schedule> {
        let begun = Instant::now();
        let drawn = self.draw_cpus()?;
        let mut teams = self.teams()?;
        let start = begun.elapsed();
        let _aside = drawn.as_ref().map(Drawn::step_aside).transpose()?;
        let (mut slowest, mut awake) = (Duration::ZERO, true);
        let mut longest: Option<Duration> = None;
        for (case, worker_process) in teams.iter_mut().enumerate() {
            let mut length = SLICE;
            let turn = loop {
                self.cache.before_slice(case)?;
                worker_process.warm_up(length)?;
                let work = worker_process.work();
                let cold = self.cache.longest_slice(case, work.bytes.0, work.wall_nanos.duration());
                longest = longest.into_iter().chain(cold).min();
                if work.ios >= u64::from(TURNS_PER_SLICE) || length > LONGEST_REHEARSAL {
                    let thread_nanos = work.wall_nanos.0.saturating_mul(worker_process.threads as u64);
                    awake &= work.thread_nanos.as_f64() >= AWAKE * thread_nanos as f64;
                    // The time from one I/O of a thread to the next includes think time and waits.
                    let turn = work.latency_nanos.0.max(thread_nanos).checked_div(work.ios);
                    break Duration::from_nanos(turn.unwrap_or(0));
                }
                length *= 4;
            };
            slowest = slowest.max(turn);
            self.heed()?;
        }
        for worker_process in teams {
            worker_process.finish()?;
        }
        let (least, share) = if self.is_switched() {
            (SLEEPY_SLICE.max(self.toggles.slowest_switch * SWITCHES_PER_SLICE), SWITCHED_WARM_UP_SHARE)
        } else {
            (if awake { SLICE } else { SLEEPY_SLICE }, WARM_UP_SHARE)
        };
        let slice = self
            .asked_slice()
            .unwrap_or_else(|| least.max(slowest * TURNS_PER_SLICE).max(self.meters.shortest_slice()));
        self.longest_slice = longest.map(|longest| longest.max(SHORTEST_SLICE));
        let slice = self.longest_slice.map_or(slice, |longest| slice.min(longest));
        let warm_up = (slice / share).max(slowest);
        // A turn for each case, and one without workload.
        let turns = u32::try_from(self.experiment.cases.len()).unwrap_or(u32::MAX).saturating_add(1);
        let block = (slice + warm_up) * turns;
        // At least ten rounds within the budget, even if starting workers then takes a larger part of each.
        let most = Duration::from_secs_f64(self.experiment.rules.budget_seconds / ROUNDS_PER_BUDGET);
        let wanted = ROUND.max(start.div_f64(START_SHARE)).min(most.max(ROUND));
        let blocks = (wanted.as_secs_f64() / block.as_secs_f64()).round().clamp(1.0, MOST_BLOCKS.into()) as u32;
        Ok(Schedule::Slices { slice_nanos: Nanos::from(slice), warm_up_nanos: Nanos::from(warm_up), blocks })
    }

    /// Measures one round.
    pub(super) fn round_of_slices(&mut self, slice: Duration, warm_up: Duration, blocks: u32) -> Result<RoundRecord> {
        let drawn = self.draw_cpus()?;
        let mut teams = self.teams()?;
        let _aside = drawn.as_ref().map(Drawn::step_aside).transpose()?;
        for case in self.shuffler.shuffled(0..teams.len()) {
            if let Some(worker_process) = teams.get_mut(case) {
                worker_process.warm_up(warm_up)?;
            }
        }
        let (mut slices, mut starts) = (Vec::new(), Vec::new());
        for _ in 0..blocks {
            let turns = (0..teams.len()).map(Some).chain([None]);
            for turn in self.shuffler.shuffled(turns) {
                self.heed()?;
                match turn.and_then(|case| Some((case, teams.get_mut(case)?))) {
                    Some((case, worker_process)) => {
                        let begins = self.meters.counts_events().then_some(Duration::ZERO);
                        let (measured, begun) = self.switched(case, |runner| {
                            let mut measure = |length| runner.slice(case, worker_process, length, warm_up);
                            Ok((measure(slice)?, begins.map(measure).transpose()?))
                        })?;
                        slices.push(measured);
                        starts.extend(begun);
                    }
                    None => {
                        std::thread::sleep(warm_up);
                        slices.push(self.alone(slice, Tasks::Unread, || {}));
                    }
                }
            }
        }
        let mut latencies = Vec::new();
        for (case, worker_process) in teams.into_iter().enumerate() {
            latencies.push(CaseLatency {
                case,
                injected_ns: worker_process.injected(),
                ticks: worker_process.finish()?,
            });
        }
        let cpus = drawn.map(|drawn| drawn.cpus).unwrap_or_default();
        Ok(RoundRecord { slices, starts, latencies, cpus, ..RoundRecord::default() })
    }

    /// A warm-up, then a slice of one case.
    pub(super) fn slice(
        &mut self,
        case: usize,
        worker_process: &mut WorkerProcess,
        length: Duration,
        warm_up: Duration,
    ) -> Result<SliceRecord> {
        worker_process.warm_up(warm_up)?;
        self.cache.before_slice(case)?;
        let read_before = worker_process.storage_read();
        self.neighbours.before(case);
        let before = Box::new(self.meters.begin_slice());
        worker_process.go(true);
        self.sleep(length);
        worker_process.halt()?;
        let mut after = Box::new(self.meters.end_slice(worker_process.owners()));
        after.whereabouts = self.neighbours.after(case, worker_process);
        let storage_read = worker_process.storage_read().zip(read_before).map(|(after, before)| after.since(before));
        let work = SliceWork { storage_read, ..worker_process.work() };
        Ok(SliceRecord { case: Some(case), reading: SliceReading::Slice { before, after, work, tasks: None } })
    }

    /// Sleeps for the length of a slice, or until an interruption: a round with a shortened slice does not count.
    pub(super) fn sleep(&self, length: Duration) {
        self.settings.interruption.sleep(length);
    }

    /// A worker process for each case, started together, all ready.
    fn teams(&mut self) -> Result<Vec<WorkerProcess>> {
        // In random order, because the kernel may place the first process differently from the last.
        let (mut teams, switched) = (Vec::new(), self.is_switched());
        for case in self.shuffler.shuffled(0..self.experiment.cases.len()) {
            let worker_process = self.switched(case, |runner| {
                let mut worker_process = runner.worker_process(case, |phase| phase)?;
                // The arm's setting must be on when files and sockets are opened.
                if switched {
                    worker_process.ready()?;
                }
                Ok(worker_process)
            })?;
            teams.push((case, worker_process));
        }
        teams.sort_by_key(|(case, _)| *case);
        let mut teams: Vec<WorkerProcess> = teams.into_iter().map(|(_, worker_process)| worker_process).collect();
        if !switched {
            teams.iter_mut().try_for_each(WorkerProcess::ready)?;
        }
        Ok(teams)
    }

    /// Starts a worker process for a case.
    pub(super) fn worker_process(&mut self, case: usize, adapt: impl FnOnce(Phase) -> Phase) -> Result<WorkerProcess> {
        let seed = self.shuffler.seed();
        let phase = self.experiment.cases.get(case).and_then(|case| case.work.phase());
        let mut phase = adapt(phase.cloned().unwrap_or_default());
        // A different order of blocks each time, so that an arm does not find the blocks of another arm in caches.
        for job in phase.jobs.iter_mut() {
            job.requests.seed = Some(job.requests.seed.unwrap_or(0) ^ seed);
        }
        let targets = self.targets.get(case).cloned().unwrap_or_default();
        let (scheduler, placing) = (std::process::id(), self.placing.clone());
        let assignment = Assignment { phase, targets, scheduler, clock_hertz: self.clock.0, placing };
        WorkerProcess::start(&self.name(case), &assignment, self.limit.clone(), &self.processes)
    }
}

/// Where threads ran during slices: workers report it themselves, other processes are sampled around each slice. And the number of slices
/// of each case.
pub(super) struct Neighbours {
    placement_watch: PlacementWatch,
    slices: Vec<u32>,
}

impl Neighbours {
    pub fn new(cases: usize) -> Self {
        Self { placement_watch: PlacementWatch::new(Workload::Threads(BTreeSet::new())), slices: vec![0; cases] }
    }

    /// Before a slice starts.
    pub fn before(&mut self, case: usize) {
        // Discard the time since the last slice; the next call covers this slice.
        self.placement_watch.look_at(None, self.looks_around(case));
    }

    /// After a slice has ended: where the workers and the processes beside them ran.
    pub fn after(&mut self, case: usize, worker_process: &WorkerProcess) -> Option<Box<Whereabouts>> {
        let looks_around = self.looks_around(case);
        let beside = self.placement_watch.look_at(None, looks_around)?;
        let servers = if looks_around { self.placement_watch.servers() } else { Vec::new() };
        if let Some(count) = self.slices.get_mut(case) {
            *count = count.saturating_add(1);
        }
        let ran = worker_process.ran().into_iter().chain(beside.ran).collect();
        Some(Box::new(Whereabouts { ran: summed(ran), servers }))
    }

    /// Whether to scan all processes around this slice, which takes longer. Each case has its own server, so this
    /// happens at each case's first slices, and then less and less often.
    fn looks_around(&self, case: usize) -> bool {
        self.slices.get(case).is_some_and(|count| *count == 0 || count.is_power_of_two())
    }
}

/// Wait before measuring without workload: the previous case is still being cleaned up.
const SETTLE: Duration = Duration::from_millis(200);
/// Time without workload in each round.
const ALONE: Duration = Duration::from_millis(300);

/// Long enough that a sync at its end is a small part, short enough for many rounds.
const TURN: Duration = Duration::from_secs(1);
/// Settings that take longer to switch are switched once per round: shorter slices would be too short for them.
pub(super) const SLOW_SWITCH: Duration = Duration::from_millis(20);
/// Warm-up I/O after a toggle.
const WARM_UP: Duration = Duration::from_millis(100);

/// The schedule of whole rounds, with the length `asked` if given; no slice is longer than `longest`.
pub(super) fn whole_rounds(asked: Option<Duration>, longest: Option<Duration>) -> Schedule {
    let slice = asked.unwrap_or(TURN);
    let slice = longest.map_or(slice, |longest| longest.min(slice));
    Schedule::WholeRounds { slice_nanos: Nanos::from(slice) }
}

impl RoundRunner<'_> {
    /// One round in which `measure` runs each case once.
    pub(super) fn round_of_turns(
        &mut self,
        measure: impl Fn(&mut Self, usize) -> Result<(SliceRecord, Option<CaseLatency>)>,
    ) -> Result<RoundRecord> {
        let turns = (0..self.experiment.cases.len()).map(Some).chain([None]);
        let (mut slices, mut latencies) = (Vec::new(), Vec::new());
        for turn in self.shuffler.shuffled(turns) {
            self.heed()?;
            let Some(case) = turn else {
                std::thread::sleep(SETTLE);
                loop {
                    slices.push(at_once(|| self.alone(ALONE, Tasks::Read, || {})));
                    if !self.meters.next_slice() {
                        break;
                    }
                }
                continue;
            };
            let (slice, latency) = self.switched(case, |runner| measure(runner, case))?;
            slices.push(slice);
            latencies.extend(latency);
        }
        // A round with a shortened turn is incomplete.
        self.heed()?;
        Ok(RoundRecord { slices, latencies, ..RoundRecord::default() })
    }

    /// Runs `measure` with the settings of a case's arm on, and switches them off afterwards, also after a failure. For
    /// an arm without settings the files are written too, so that the effects of a write are in both arms.
    pub(super) fn switched<T>(&mut self, case: usize, measure: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let arm = self.experiment.cases.get(case).and_then(|case| self.experiment.arms.get(case.arm));
        let Some(arm) = arm.filter(|arm| arm.is_toggled()) else {
            self.toggles.rewrite()?;
            let measured = measure(self)?;
            self.toggles.rewrite()?;
            return Ok(measured);
        };
        self.toggles.switch_on(arm)?;
        let measured = measure(self);
        and_left(measured, self.toggles.switch_off())
    }

    /// Measures one whole round.
    pub(super) fn whole_round(&mut self, length: Duration) -> Result<RoundRecord> {
        let drawn = self.draw_cpus()?;
        let measured = self.round_of_turns(|runner, case| {
            let mut worker_process = runner.worker_process(case, synced)?;
            worker_process.ready()?;
            let _aside = drawn.as_ref().map(Drawn::step_aside).transpose()?;
            let slice = at_once(|| runner.slice(case, &mut worker_process, length, WARM_UP))?;
            let injected_ns = worker_process.injected();
            Ok((slice, Some(CaseLatency { case, injected_ns, ticks: worker_process.finish()? })))
        })?;
        let cpus = drawn.map(|drawn| drawn.cpus).unwrap_or_default();
        Ok(RoundRecord { cpus, ..measured })
    }

    /// Measures one round of executions.
    pub(super) fn round_of_executions(&mut self) -> Result<RoundRecord> {
        self.round_of_turns(|runner, case| {
            runner.session.around.prepare(&runner.cell(case))?;
            Ok((runner.execution(case)?, None))
        })
    }

    /// The point of the sweep that a case belongs to.
    pub(super) fn cell(&self, case: usize) -> Cell {
        let cell = self.experiment.cases.get(case).and_then(|case| self.experiment.cells.get(case.cell));
        cell.cloned().unwrap_or_default()
    }

    pub(super) fn command_plan(&self, case: usize) -> CommandPlan {
        let command = match self.experiment.cases.get(case).map(|case| &case.work) {
            Some(Work::Command(command)) => command.clone(),
            Some(Work::Jobs(_)) | None => Vec::new(),
        };
        CommandPlan {
            command,
            count: Count::Program,
            repeat: 1,
            printed: false,
            custody: Isolation::Alone { longest: self.limit.longest },
        }
    }

    /// How the I/Os of whole executions are counted.
    fn count_of_executions(&self) -> Result<Count> {
        let rules = &self.experiment.rules;
        if rules.states_work() {
            return Ok(Count::Stated { ios: rules.ios, bytes: rules.bytes });
        }
        let Some(name) = &rules.count else { return Ok(Count::Program) };
        let counter = name.parse::<Counter>().and_then(|counter| counter.read().map(|_| counter));
        counter.map(Count::Kernel).map_err(|why| Error::Refused(format!("--count {why}")))
    }

    fn execution(&mut self, case: usize) -> Result<SliceRecord> {
        let plan = CommandPlan { count: self.count_of_executions()?, ..self.command_plan(case) };
        let name = self.name(case);
        let Executed { execution, failure, elsewhere } = execute(&plan, 0, &mut self.surroundings(), &mut |_| {})
            .map_err(|error| match error {
                Error::Refused(why) => Error::Refused(format!("{name}: {why}")),
                Error::NotStarted { .. } => Error::Refused(format!("{name}: {error}; check the command")),
                error => error,
            })?;
        self.note_namespace(&plan.command, elsewhere);
        match failure {
            // A command that iotoll ended itself has not failed.
            Some(failure) if !self.interrupted() => {
                let command = short(&plan.command.join(" "));
                Err(Error::Failed(format!("{name} (`{command}`): {failure}")))
            }
            _ => Ok(SliceRecord { case: Some(case), reading: SliceReading::Execution(execution) }),
        }
    }

    /// Settings of this network namespace do not reach a command in another one.
    pub(super) fn note_namespace(&mut self, command: &[String], elsewhere: bool) {
        let settings = self.experiment.arms.iter().flat_map(|arm| &arm.settings);
        let of_network = settings.filter(|setting| network_namespace::is_of_one(&setting.path));
        let counter =
            self.experiment.rules.count.iter().filter(|name| ["net:", "net."].iter().any(|of| name.starts_with(of)));
        let probes = network_namespace::flags_of_one(&self.settings.probes);
        let counter = counter.map(|name| format!("--count {name}"));
        let ours: BTreeSet<String> = of_network.map(ToString::to_string).chain(counter).chain(probes).collect();
        let ours: Vec<String> = ours.into_iter().collect();
        if let Some(caveat) = network_namespace::caveat(&ours, command, elsewhere) {
            add_once(&mut self.warnings, caveat);
        }
    }
}

/// The kernel writes data back for seconds afterwards; the sync charges that to the job.
fn synced(mut phase: Phase) -> Phase {
    for job in phase.jobs.iter_mut().filter(|job| job.access != Access::Read) {
        job.sync.at_end = true;
    }
    phase
}
