//! Rounds of turns: each case once, from start to end, with its arm's toggles, and the machine without workload once. A turn is a slice
//! of workers of its own, followed by a sync of their written data (whole rounds), or the execution of a command.

use super::drawn_cpus::Drawn;
use super::{RoundRunner, Tasks, at_once};
use crate::compare::record::{CaseLatency, RoundRecord, Schedule, SliceReading, SliceRecord};
use lab::command::{CommandPlan, Count, Counter, Executed, Isolation, execute};
use lab::error::{Error, Result};
use lab::network_namespace;
use lab::shell::short;
use lab::toggle::and_left;
use model::experiment::{Cell, Work};
use model::plan::{Access, Phase};
use model::unit::Nanos;
use model::warning::add_once;
use std::collections::BTreeSet;
use std::time::Duration;

/// Wait before measuring without workload: the previous case is still being cleaned up.
const SETTLE: Duration = Duration::from_millis(200);
/// Time without workload in each round.
const ALONE: Duration = Duration::from_millis(300);

/// Long enough that a sync at its end is a small part, short enough for many rounds.
const SLICE: Duration = Duration::from_secs(1);
/// Settings that take longer to switch are switched once per round: shorter slices would be too short for them.
pub(super) const SLOW_SWITCH: Duration = Duration::from_millis(20);
/// Warm-up I/O after a toggle.
const WARM_UP: Duration = Duration::from_millis(100);

/// The schedule of whole rounds, with the length `asked` if given; no slice is longer than `longest`.
pub(super) fn whole_rounds(asked: Option<Duration>, longest: Option<Duration>) -> Schedule {
    let slice = asked.unwrap_or(SLICE);
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
        let Executed { execution, failure, elsewhere } =
            execute(&plan, 0, &mut self.surroundings(), &mut |_| {}, &mut |_| {}).map_err(|error| match error {
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
