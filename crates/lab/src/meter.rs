//! Meters: what counts the cycles of the whole machine.
//!
//! A [`Panel`] owns every meter that this machine and the user's choice allow. At each boundary of a
//! window it takes a [`Snapshot`]: a reader pinned to each CPU reads that CPU's clocks *there*, because
//! idle clocks stand still while their CPU idles, and waking it brings them up to date.

mod cpu_reader;
mod cpuidle;
mod proc_stat;
mod soaker;
mod tasks;
mod timer_list;

pub use model::record::Selection;
pub use tasks::{Owners, TaskScan};

use crate::error::{Error, Result};
use cpu_reader::{CpuReaders, Instruments};
use model::reading::Reading;
use model::record::{Done, Meter, MeterStatus, Mode, Snapshot};
use model::unit::{Bytes, Nanos};
use proc_stat::ProcStatFile;
use soaker::Soakers;
use std::sync::Arc;
use sys::clock::monotonic_nanos;
use timer_list::TimerList;

/// Reading /proc/timer_list takes 130 µs on 2 CPUs and grows with them, so it is read at most as often as
/// keeps it below a 500th of one CPU's time.
const TIMER_LIST_SHARE: u64 = 500;

/// Whether a meter may run.
fn allows(selection: &Selection, meter: Meter) -> bool {
    match selection {
        Selection::Default => !disturbs(meter),
        Selection::Only(chosen) => chosen.contains(&meter),
        Selection::All => true,
    }
}

/// Whether a meter changes what it measures, so that it needs windows of its own.
fn disturbs(meter: Meter) -> bool {
    matches!(meter, Meter::Soaker | Meter::Sampler)
}

/// Which windows the meters of a panel need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Windows in which nothing runs that disturbs.
    pub quiet: bool,
    /// Meters that disturb.
    pub disturbing: Vec<Mode>,
}

/// What counts the work between two snapshots.
pub trait Work {
    /// I/Os and bytes so far, if they are counted.
    fn done(&self) -> Option<Done>;
    /// CPU time of the workload's own threads so far, if it is known.
    fn thread_nanos(&self) -> Option<Nanos>;
    /// Bytes that the kernel has read from storage for the workload so far, if it tells.
    fn storage_read(&self) -> Option<Bytes> {
        None
    }
}

/// The machine without a workload.
pub struct NoWork;

impl Work for NoWork {
    fn done(&self) -> Option<Done> {
        None
    }
    fn thread_nanos(&self) -> Option<Nanos> {
        None
    }
}

/// All meters of a measurement.
pub struct Panel {
    readers: CpuReaders,
    timer_list: Option<TimerList>,
    timer_list_read: Option<(Mode, Nanos, Nanos)>,
    /// How long reading it takes, once somebody asked.
    timer_list_cost: Option<Nanos>,
    proc_stat: Option<ProcStatFile>,
    soakers: Option<Arc<Soakers>>,
    sampler: bool,
    selection: Selection,
    statuses: Vec<MeterStatus>,
}

impl Panel {
    /// Opens what can be opened and starts one reader per CPU.
    ///
    /// # Errors
    /// When not even the readers can be started; a meter that cannot run is not an error but a status.
    pub fn open(selection: Selection) -> Result<Self> {
        let cpus = sys::schedule::online_cpus().map_err(|error| Error::instrument("listing CPUs", error))?;
        let mut statuses = Vec::new();
        let mut choose = |meter: Meter, status: Reading<String>| {
            let ran = status.taken().is_some();
            statuses.push(MeterStatus { meter, status });
            ran
        };
        let not_chosen = || Reading::unavailable("not chosen; see --meters");
        let disturbing =
            |name: &str| format!("not chosen: it disturbs; --meters all or {name} gives it windows of its own");
        let allowed = |meter: Meter| allows(&selection, meter);

        let out_of_reach = cpu_reader::out_of_reach(&cpus);
        let cpuidle = match (&out_of_reach, allowed(Meter::Idle)) {
            (_, false) => not_chosen(),
            (Some(reason), true) => Reading::unavailable(reason.clone()),
            (None, true) => cpuidle::status(&cpus),
        };
        let cpuidle = choose(Meter::Idle, cpuidle);
        let timer_list = out_of_reach.map_or_else(|| TimerList::open(cpus.len()), Err);
        let timer_list = match (allowed(Meter::TimerList), timer_list) {
            (false, _) => (None, not_chosen()),
            (true, Ok(file)) => (Some(file), Reading::Taken(timer_list::SEES.to_owned())),
            (true, Err(reason)) => (None, Reading::Unavailable(reason)),
        };
        choose(Meter::TimerList, timer_list.1);
        let proc_stat = ProcStatFile::open();
        // Its steal column belongs to every other clock too, so it is read even when not chosen.
        let status = match (&proc_stat, allowed(Meter::ProcStat)) {
            (_, false) => not_chosen(),
            (Ok(_), true) => Reading::Taken(proc_stat::SEES.to_owned()),
            (Err(error), true) => Reading::unavailable(format!("/proc/stat: {error}")),
        };
        choose(Meter::ProcStat, status);
        let soakers = if allowed(Meter::Soaker) {
            Soakers::start(&cpus).map(Arc::new).map_err(|error| format!("a SCHED_IDLE thread per CPU: {error}"))
        } else {
            Err(disturbing("soaker"))
        };
        choose(Meter::Soaker, Reading::from(soakers.as_ref().map(|_| soaker::SEES.to_owned())));
        let soakers = soakers.ok();
        let pmu = if allowed(Meter::Pmu) { cpu_reader::pmu_status(&cpus) } else { not_chosen() };
        let pmu = choose(Meter::Pmu, pmu);
        let sampler = match allowed(Meter::Sampler) {
            true => cpu_reader::sampler_status(&cpus),
            false => Reading::unavailable(disturbing("sampler")),
        };
        let sampler = choose(Meter::Sampler, sampler);
        let thread = match allowed(Meter::Thread) {
            true => Reading::Taken("the workload's own threads; blind to what others do for them".to_owned()),
            false => not_chosen(),
        };
        choose(Meter::Thread, thread);

        let instruments = Instruments { cpuidle, pmu, sampler, soakers: soakers.clone() };
        let readers = CpuReaders::start(&cpus, &instruments)?;
        Ok(Self {
            readers,
            timer_list: timer_list.0,
            timer_list_read: None,
            timer_list_cost: None,
            proc_stat: proc_stat.ok(),
            soakers,
            sampler,
            selection,
            statuses,
        })
    }

    /// What each meter can see, or why it does not run.
    pub fn statuses(&self) -> &[MeterStatus] {
        &self.statuses
    }

    /// Whether the thread clock was chosen.
    pub fn reads_threads(&self) -> bool {
        allows(&self.selection, Meter::Thread)
    }

    /// The windows that the chosen meters need.
    pub fn windows(&self) -> Windows {
        let modes = [(self.soakers.is_some(), Mode::Soaker), (self.sampler, Mode::Sampler)];
        let disturbing: Vec<Mode> = modes.into_iter().filter(|(runs, _)| *runs).map(|(_, mode)| mode).collect();
        let quiet = Meter::ALL.into_iter().any(|meter| allows(&self.selection, meter) && !disturbs(meter));
        Windows { quiet: quiet || disturbing.is_empty(), disturbing }
    }

    /// Reads every clock, then starts what `mode`, the time after this snapshot, needs.
    pub fn snapshot(&mut self, mode: Mode, work: &dyn Work) -> Snapshot {
        let now = Nanos(monotonic_nanos());
        let due = self.timer_list_read.is_none_or(|(before, read, took)| {
            before != mode || now.since(read).0 >= took.0.saturating_mul(TIMER_LIST_SHARE)
        });
        self.read(mode, work, due)
    }

    /// Reads every clock at an end of a slice of this length. The two ends must show the same clocks, so whether
    /// /proc/timer_list can be read as often as that is not asked of each of them.
    pub fn boundary(&mut self, slice: Nanos) -> Snapshot {
        /// Of a slice, for reading at its two ends.
        const MOST: u64 = 50;
        let due = self.timer_list_cost().is_some_and(|cost| cost.0.saturating_mul(MOST) <= slice.0);
        let snapshot = self.read(Mode::Quiet, &NoWork, due);
        // What is watched next begins anew, and its first snapshot is to have this clock.
        self.timer_list_read = None;
        snapshot
    }

    /// How long reading /proc/timer_list takes: the fastest of some readings, because a slow one was held up.
    fn timer_list_cost(&mut self) -> Option<Nanos> {
        const READINGS: usize = 5;
        if self.timer_list_cost.is_none() {
            let file = self.timer_list.as_mut()?;
            let took = |_| {
                let began = Nanos(monotonic_nanos());
                file.read().map(|_| Nanos(monotonic_nanos()).since(began))
            };
            self.timer_list_cost = (0..READINGS).filter_map(took).min();
        }
        self.timer_list_cost
    }

    fn read(&mut self, mode: Mode, work: &dyn Work, timer_list_is_due: bool) -> Snapshot {
        let at_nanos = Nanos(monotonic_nanos());
        let cpus = self.readers.read(mode);
        let done = work.done();
        let thread_nanos = if self.reads_threads() { work.thread_nanos() } else { None };
        let proc_stat = self.proc_stat.as_mut().and_then(ProcStatFile::read);
        // Just after the readers woke every CPU, so that no idle clock is older than they are.
        let began = Nanos(monotonic_nanos());
        let timer_list = self.timer_list.as_mut().filter(|_| timer_list_is_due).and_then(TimerList::read);
        if timer_list.is_some() {
            let took = Nanos(monotonic_nanos()).since(began);
            self.timer_list_read = Some((mode, at_nanos, took));
        }
        if let Some(soakers) = &self.soakers {
            soakers.run(mode == Mode::Soaker);
        }
        let storage_read = work.storage_read();
        Snapshot { mode, at_nanos, cpus, timer_list, proc_stat, thread_nanos, done, storage_read, whereabouts: None }
    }
}
