//! `iotoll compare`: measures an experiment round by round into a record.
//!
//! A round measures every case equally often, in a new random order, so that changes of the machine affect all arms
//! alike. How a round is cut depends on what is compared ([`Schedule`]).

mod cache;
mod drawn_cpus;
mod explaining;

mod rehearsal;
mod sliced;
mod sliced_command;
mod slices;
mod work_counter;
pub mod worker_process;

use crate::compare::record::{CompareRecord, End, Header, RoundRecord, Schedule, SliceReading, SliceRecord, SliceWork};
use crate::compare::study;
use cache::CacheKeeper;
use drawn_cpus::{Deck, Drawn};
use jobs::demand;
use jobs::worker_pool::{self, JobCopy};
use jobs::workload::permutation::Shuffler;
use jobs::workload::target::{Target, warn_of_holes};
use lab::canary;
use lab::command::Surroundings;
use lab::created::Created;
use lab::error::{Error, Result};
use lab::guardian::processes::Processes;
use lab::host;
use lab::interruption::{Interruption, WaitLimit};
use lab::meter::{MeterSet, Owners};
use lab::placing::{self, Placing};
use lab::progress::{Observer, Progress};
use lab::session::{Session, Settings, note_failure};
use lab::toggle::Toggles;
use lab::watch::READING_OF_EVENTS;
use lab::whereabouts::servers::Address;
use model::experiment::{Experiment, Work, arm_at};
use model::kind::Recorded;
use model::plan::{Access, JobPlan, Medium, Phase};
use model::record::Outcome;
use model::unit::{Hertz, Nanos};
use model::warning::{Warning, add_once};
use sliced::SlicedCommands;
use slices::Neighbours;
use std::time::{Duration, Instant};
use sys::clock::monotonic_nanos;
use sys::schedule::{Class, allowed_cpus, within_class};

/// Fewer rounds have no spread, so no interval; these are measured whatever the budget.
const FEWEST_ROUNDS: usize = 2;

/// An experiment, and the seed of its order. The background of the settings is unused, because each round has its own; place, services and
/// shell commands are those of the experiment.
pub struct Comparison<'a> {
    pub experiment: &'a Experiment,
    pub seed: u64,
}

impl Comparison<'_> {
    pub fn measure(&self, settings: Settings, created: &Created, observer: Observer) -> Result<CompareRecord> {
        let experiment = self.experiment;
        demand::check(experiment.cases.iter().filter_map(|case| case.work.phase()))?;
        let settings = Settings {
            place: experiment.place.clone(),
            around: experiment.around.clone(),
            longest_shell: Some(Duration::from_secs_f64(experiment.rules.hang_timeout())),
            ..settings
        };
        let session =
            Session::open(&settings, &servers(experiment), &mut |service| observer(Progress::Starting { service }))?;
        let experiment = Experiment { services: session.services.started.clone(), ..experiment.clone() };
        let mut measured = measure(&experiment, self.seed, &session, created, observer);
        session.close_with_end(measured.as_mut().map(|(_, end)| end), created, |end| &mut end.outcome);
        measured.map(|(record, end)| CompareRecord { end: Some(end), ..record })
    }
}

/// The rounds, and how they ended: what is not written yet.
fn measure(
    experiment: &Experiment,
    seed: u64,
    session: &Session,
    created: &Created,
    observer: Observer,
) -> Result<(CompareRecord, End)> {
    let settings = session.settings;
    let interruption = &settings.interruption;
    let longest = Duration::from_secs_f64(experiment.rules.hang_timeout());
    let mut warnings = Vec::new();
    let targets = lay_out(experiment, interruption, created, &mut warnings, observer)?;
    let cache = CacheKeeper::prepare(experiment, &targets, &mut |path, done, total| {
        observer(Progress::ReadingIn { path, done, total });
        !interruption.is_requested()
    })?;
    let meters = session.meters_of_rounds()?;
    let meters = meters.counting(settings.events.as_deref())?;
    let limit = WaitLimit::new(longest, interruption.clone());
    let toggles = Toggles::prepare(&experiment.arms, limit.clone(), &settings.guardian, &mut warnings)?;
    let canaries = canary::run();
    let mut runner = RoundRunner {
        meters,
        toggles,
        limit,
        shuffler: Shuffler::new(seed),
        warnings,
        clock: session.clock(),
        targets,
        cache,
        longest_slice: None,
        deck: deck_of_jobs(experiment),
        placing: session.placing.clone(),
        session,
        neighbours: Neighbours::new(experiment.cases.len()),
        processes: settings.guardian.processes()?,
        sliced: None,
        experiment,
        settings,
    };
    let schedule = runner.schedule()?;
    let header = Header {
        envelope: session.envelope(CompareRecord::KIND),
        experiment: experiment.clone(),
        seed,
        schedule,
        host: session.host(host::storage::of_experiment(experiment)),
        meters: runner.meters.statuses.clone(),
        probes: runner.meters.probes.descriptors(),
        events: runner.meters.events().cloned(),
        canaries,
        page_cache: runner.cache.setup.clone(),
        work_counter: runner.sliced.as_ref().map(|sliced| sliced.rehearsed.counter.clone()),
    };
    settings.saver.begin(&header.envelope, &header)?;
    let mut record = CompareRecord { header, rounds: Vec::new(), explaining: Vec::new(), end: None };
    let begun = Instant::now();
    let (mut outcome, reason) = runner.rounds(schedule, &mut record, observer)?;
    if outcome == Outcome::Completed {
        let took = begun.elapsed().saturating_sub(runner.cache.spent);
        let budget = Duration::from_secs_f64(experiment.rules.budget_seconds);
        outcome = runner.explain(schedule, &mut record, (took, budget), observer);
    }
    let warnings = std::mem::take(&mut runner.warnings);
    let mut end = End { outcome, reason, tsc_hertz: session.clock().0, canaries: canary::run(), warnings };
    // Switch off what is still on, and report it if that fails.
    if let Err(error) = runner.toggles.switch_off() {
        note_failure(&mut end.outcome, &error);
    }
    Ok((record, end))
}

/// Measures the rounds of an experiment.
struct RoundRunner<'a> {
    meters: MeterSet,
    toggles: Toggles,
    limit: WaitLimit,
    shuffler: Shuffler,
    warnings: Vec<Warning>,
    clock: Hertz,
    /// The files of each thread, per case.
    targets: CaseTargets,
    cache: CacheKeeper,
    /// Longest slice that does not read again what it has read into the page cache.
    longest_slice: Option<Duration>,
    /// CPUs that are drawn for each round; `None` if something else places its threads.
    deck: Option<Deck>,
    /// The CPUs of the threads in this round.
    placing: Placing,
    session: &'a Session<'a>,
    neighbours: Neighbours,
    /// Workers and commands.
    processes: Processes,
    /// What commands that take turns need, if they do.
    sliced: Option<SlicedCommands>,
    experiment: &'a Experiment,
    settings: &'a Settings,
}

impl RoundRunner<'_> {
    fn interrupted(&self) -> bool {
        self.settings.interruption.is_requested()
    }

    /// Ends a round that does not count.
    fn heed(&self) -> Result<()> {
        let why = || Error::Interrupted("before the first round was complete".to_owned());
        if self.interrupted() { Err(why()) } else { Ok(()) }
    }

    fn surroundings(&mut self) -> Surroundings<'_> {
        Surroundings {
            meters: &mut self.meters,
            interruption: &self.settings.interruption,
            warnings: &mut self.warnings,
            cpus: self.session.placing.of(0),
            processes: &self.processes,
            windows: None,
        }
    }

    /// How this experiment's rounds are cut.
    fn schedule(&mut self) -> Result<Schedule> {
        if self.runs_commands() {
            return self.schedule_of_commands();
        }
        // iotoll cannot know what a shell command does, and when its effect is over.
        let slow = self.toggles.slowest_switch > slices::SLOW_SWITCH;
        let by_shell = self.experiment.arms.iter().any(|arm| arm.setup.is_some() || arm.cleanup.is_some());
        if by_shell || slow || self.phases().any(|phase| phase.jobs.iter().any(leaves_dirty_pages)) {
            if self.cache.is_cold() {
                self.rehearse()?;
            }
            return Ok(slices::whole_rounds(self.asked_slice(), self.longest_slice));
        }
        self.rehearse()
    }

    fn runs_commands(&self) -> bool {
        self.experiment.cases.iter().any(|case| matches!(case.work, Work::Command(_)))
    }

    fn phases(&self) -> impl Iterator<Item = &Phase> {
        self.experiment.cases.iter().filter_map(|case| case.work.phase())
    }

    /// Measures rounds until the result is precise enough, the budget ends, or something fails.
    fn rounds(
        &mut self,
        schedule: Schedule,
        record: &mut CompareRecord,
        observer: Observer,
    ) -> Result<(Outcome, String)> {
        let budget = Duration::from_secs_f64(self.experiment.rules.budget_seconds);
        let mut progress = study::Progress::new(&record.header);
        let begun = Instant::now();
        // Start of each round, in time that counts against the budget.
        let mut starts: Vec<Duration> = Vec::new();
        loop {
            let interruption = &self.settings.interruption;
            let warmed = self.cache.before_round(&mut |_, _, _| !interruption.is_requested());
            starts.push(begun.elapsed().saturating_sub(self.cache.spent));
            let before = begun.elapsed();
            let round = match warmed.and_then(|()| self.recorded(schedule)) {
                Ok(round) => round,
                Err(error) if record.rounds.is_empty() || matches!(error, Error::Misleading(_)) => return Err(error),
                Err(Error::Interrupted(_)) => return Ok((Outcome::Interrupted, "interrupted".to_owned())),
                Err(error) => return Ok((Outcome::Failed(error.to_string()), "failed".to_owned())),
            };
            progress.add(&round);
            let kept = self.settings.saver.append("round", &round);
            record.rounds.push(round);
            if let Err(error) = kept {
                // The rounds so far are still shown, and the file contains what fitted.
                return Ok((Outcome::Failed(error.to_string()), "failed".to_owned()));
            }
            let (rounds, elapsed, standing) = (record.rounds.len(), begun.elapsed(), progress.standing());
            observer(Progress::Comparing { rounds, elapsed, budget, standing });
            if standing.is_some_and(|standing| standing.precise) {
                return Ok((Outcome::Completed, "precise enough".to_owned()));
            }
            let charged = elapsed.saturating_sub(self.cache.spent);
            // Rounds of an earlier regime do not count; but the wait for the last regime is limited.
            let warm_up = starts.get(progress.before()).copied().unwrap_or_default().min(budget);
            let round = elapsed - before;
            // Another round of this length would exceed the budget, of which explaining rounds need a part.
            let available = budget.saturating_sub(self.reserve(schedule, budget, round));
            if rounds >= FEWEST_ROUNDS && charged - warm_up + round.mul_f64(0.5) > available {
                return Ok((Outcome::Completed, format!("budget of {:.0} s", budget.as_secs_f64())));
            }
        }
    }

    /// Measures one round, with its times, again if a CPU came or went meanwhile.
    fn recorded(&mut self, schedule: Schedule) -> Result<RoundRecord> {
        /// A machine whose CPUs change more often has no cost.
        const MOST_ATTEMPTS: usize = 3;
        let mut attempts = 0;
        loop {
            let begin_nanos = Nanos(monotonic_nanos());
            let round = self.round(schedule)?;
            attempts += 1;
            if !self.meters.cpus_changed() || attempts == MOST_ATTEMPTS {
                return Ok(RoundRecord { begin_nanos, end_nanos: Nanos(monotonic_nanos()), ..round });
            }
        }
    }

    fn round(&mut self, schedule: Schedule) -> Result<RoundRecord> {
        match schedule {
            Schedule::Slices { slice_nanos, warm_up_nanos, blocks } => {
                at_once(|| self.round_of_slices(slice_nanos.duration(), warm_up_nanos.duration(), blocks))
            }
            Schedule::WholeRounds { slice_nanos } => self.whole_round(slice_nanos.duration()),
            Schedule::SlicedCommands { slice_nanos, guard_nanos, blocks, .. } => {
                at_once(|| self.round_of_sliced_commands(slice_nanos.duration(), guard_nanos.duration(), blocks))
            }
            Schedule::Executions => self.round_of_executions(),
        }
    }

    /// Measures the machine without the workload. `look` is done where slices read a counter of their own.
    fn alone(&mut self, length: Duration, tasks: Tasks, mut look: impl FnMut()) -> SliceRecord {
        // Outside the slice: reading the tasks takes some milliseconds, which would count as background.
        let earlier = (tasks == Tasks::Read).then(|| self.meters.scan_tasks());
        look();
        let before = Box::new(self.meters.begin_slice());
        if self.meters.counts_events() {
            look();
        }
        // As often as while an execution runs, iotoll wakes up.
        let is_execution = tasks == Tasks::Read && self.meters.counts_events() && self.runs_commands();
        let step = if is_execution { READING_OF_EVENTS } else { length };
        let mut left = length;
        while !left.is_zero() {
            std::thread::sleep(left.min(step));
            left = left.saturating_sub(step);
        }
        look();
        let after = Box::new(self.meters.end_slice(Owners::default()));
        let tasks = earlier.map(|earlier| self.meters.scan_tasks().since(&earlier, &Owners::default()));
        SliceRecord { case: None, reading: SliceReading::Slice { before, after, work: SliceWork::default(), tasks } }
    }

    /// Draws the CPUs of the next round's threads, the same for every case, if every thread has one of its own.
    fn draw_cpus(&mut self) -> Result<Option<Drawn>> {
        self.placing = self.session.placing.clone();
        let threads = self.targets.iter().map(Vec::len).max().unwrap_or(0);
        let Some(deck) = self.deck.as_mut().filter(|_| threads <= allowed_cpus().map_or(0, |cpus| cpus.len())) else {
            return Ok(None);
        };
        let drawn = deck.draw(threads, &mut self.shuffler)?;
        self.placing = Placing::one_each(&drawn.cpus);
        Ok(Some(drawn))
    }

    /// Name of a case in messages.
    fn name(&self, case: usize) -> String {
        let Some(case) = self.experiment.cases.get(case) else { return String::new() };
        let arm = self.experiment.arms.get(case.arm).map_or("", |arm| arm.name.as_str());
        arm_at(arm, &self.experiment.cells.get(case.cell).cloned().unwrap_or_default().values)
    }
}

/// Whether to read the machine's tasks around a slice, which takes some milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tasks {
    Read,
    Unread,
}

/// Runs with real-time priority, so that a boundary does not wait behind the workload.
fn at_once<T>(work: impl FnOnce() -> T) -> T {
    let _real_time = within_class(Class::RealTime);
    work()
}

/// Whether the kernel still writes data back after the job's last I/O.
fn leaves_dirty_pages(job: &JobPlan) -> bool {
    job.access != Access::Read && !job.direct && job.engine.medium() == Medium::Files
}

/// CPUs for the threads of iotoll's own jobs, unless the user places one of them.
fn deck_of_jobs(experiment: &Experiment) -> Option<Deck> {
    let jobs = || experiment.cases.iter().filter_map(|case| case.work.phase()).flat_map(|phase| &phase.jobs);
    let placed =
        experiment.place.is_some() || !experiment.services.is_empty() || !jobs().all(drawn_cpus::may_be_placed);
    (!placed && jobs().next().is_some()).then(Deck::default)
}

/// Where the servers of all cases listen, as far as it is known.
fn servers(experiment: &Experiment) -> Vec<Address> {
    let of_case = |work: &Work| match work {
        Work::Jobs(plan) => placing::servers_of(plan.phases.iter().flat_map(|phase| &phase.jobs)),
        Work::Command(words) => placing::servers_named(words),
    };
    experiment.cases.iter().flat_map(|case| of_case(&case.work)).collect()
}

/// Files of each thread of each case.
type CaseTargets = Vec<Vec<Vec<Target>>>;

/// Finds or makes every file before the measurement; caveats about files and plans go to `warnings`.
fn lay_out(
    experiment: &Experiment,
    interruption: &Interruption,
    created: &Created,
    warnings: &mut Vec<Warning>,
    observer: Observer,
) -> Result<CaseTargets> {
    let mut all = Vec::new();
    for case in &experiment.cases {
        let copies = match case.work.phase() {
            Some(phase) => worker_pool::lay_out(phase, &|_, _| None, created, interruption, observer)?,
            None => Vec::new(),
        };
        all.push(copies);
    }
    let planned = experiment.cases.iter().filter_map(|case| match &case.work {
        Work::Jobs(plan) => Some(&plan.warnings),
        Work::Command(_) => None,
    });
    planned.flatten().cloned().for_each(|warning| add_once(warnings, warning));
    warn_of_holes(all.iter().flatten(), warnings);
    let targets = |copies: Vec<JobCopy>| copies.into_iter().map(|copy| copy.targets).collect();
    Ok(all.into_iter().map(targets).collect())
}
