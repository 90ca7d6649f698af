//! Meters count the cycles of the whole machine.
//!
//! A [`MeterSet`] owns every meter that this machine and the user's choice allow. At each boundary of a window it takes
//! a [`Snapshot`]. The kernel's idle clock is read from one CPU. What can only be read on its CPU is read there by a reader
//! that is pinned to it; where no such meter runs, no CPU is woken.
//!
//! `model::meter` describes each meter. A row of `OPENERS` opens it, and a file here reads it.

mod account_windows;
pub mod accounts;
mod cpu_reader;
mod events;
mod idle_clock;
mod kernel_types;
pub(crate) mod proc_stat;
#[cfg(not(fuzzing))]
mod sampler;
#[cfg(fuzzing)]
pub mod sampler;
mod soaker;
mod tasks;

use crate::error::{Error, Result};
use crate::group_limits::GroupLimits;
use crate::probe::ProbeSet;
use account_windows::{AccountWindows, Relations};
use cpu_reader::{CpuMeters, CpuReaders};
use events::EventMeter;
use idle_clock::IdleClock;
use model::events::{Events, Wanted};
use model::meter::{Meter, MeterStatus};
use model::reading::Reading;
use model::record::{Count, Done, Mode, Snapshot};
use model::unit::{Bytes, Nanos};
use proc_stat::ProcStatFile;
use sampler::Sampling;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use sys::clock::{monotonic_nanos, own_thread_nanos};
use sys::perf::{Hardware, HardwareCounter};

pub use model::meter::Selection;
pub use tasks::{Owners, TaskScan};

/// Opens a meter, or returns why it cannot be read here.
type Opener = fn(&Cpus) -> std::result::Result<Opened, String>;

/// The opener of each meter. The kernel's idle clock is first, because others depend on it.
const OPENERS: [(Meter, Opener); Meter::ALL.len()] = [
    (Meter::TimerList, idle_clock::open),
    (Meter::Pmu, |cpus| {
        cpus.each(|cpu| HardwareCounter::open_cpu(cpu, Hardware::Cycles).map_err(|error| error.to_string()))
    }),
    (Meter::Idle, cpu_reader::idle),
    (Meter::ProcStat, |_| proc_stat::open()),
    (Meter::Soaker, soaker::open),
    (Meter::Sampler, sampler::open),
    (Meter::Accounts, |_| AccountWindows::open().map(|windows| Opened::Accounts(Box::new(windows)))),
    // The code that watches the workload reads this one.
    (Meter::Thread, |_| Ok(Opened::ReadAnyway)),
];

/// A meter that is open.
enum Opened {
    /// One per CPU, in the order of the CPUs.
    EachCpu(Vec<Box<dyn CpuMeter>>),
    /// The kernel's idle clock.
    IdleClock(Box<IdleClock>),
    /// Exact accounts.
    Accounts(Box<AccountWindows>),
    /// Samples of stacks.
    Sampler(Box<Sampling>),
    /// Part of every snapshot anyway.
    ReadAnyway,
}

/// A meter of one CPU; the reader of that CPU reads it there.
trait CpuMeter: Send {
    /// The current count. `next` is the mode of the time after this reading: a meter that disturbs starts or stops with
    /// it.
    fn read(&mut self, next: Mode) -> Option<u64>;
}

/// The hardware's cycle counter, for everything that runs on a CPU.
impl CpuMeter for HardwareCounter {
    fn read(&mut self, _: Mode) -> Option<u64> {
        HardwareCounter::read(self).ok()
    }
}

/// The CPUs that meters are opened on.
struct Cpus {
    online: Vec<u32>,
}

impl Cpus {
    fn online() -> Result<Self> {
        let online = sys::schedule::online_cpus().map_err(|error| Error::instrument("listing CPUs", error))?;
        Ok(Self { online })
    }

    /// A meter on each CPU, or an error.
    fn each<M: CpuMeter + 'static>(
        &self,
        open: impl Fn(u32) -> std::result::Result<M, String>,
    ) -> std::result::Result<Opened, String> {
        let boxed = |cpu: &u32| open(*cpu).map(|meter| Box::new(meter) as Box<dyn CpuMeter>);
        self.online.iter().map(boxed).collect::<std::result::Result<_, _>>().map(Opened::EachCpu)
    }
}

/// The windows that the meters of a set need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Windows without anything that disturbs.
    pub quiet: bool,
    /// Meters and counts that disturb.
    pub disturbing: Vec<Mode>,
}

/// Counts the work between two snapshots.
pub trait Work {
    /// I/Os and bytes so far, if they are counted.
    fn done(&self) -> Option<Done> {
        None
    }
    /// CPU time of the workload's own threads so far, if it is known.
    fn thread_nanos(&self) -> Option<Nanos> {
        None
    }
    /// Bytes that the kernel has read from storage for the workload so far, if it reports them.
    fn storage_read(&self) -> Option<Bytes> {
        None
    }
    /// The tasks that are the workload.
    fn owners(&self) -> Owners {
        Owners::default()
    }
    /// A measured command that runs, which may have gone to control groups of its own.
    fn command(&self) -> Option<u32> {
        None
    }
}

/// The machine without a workload.
pub struct NoWork;

impl Work for NoWork {}

/// The workload of a slice, which counts its work itself.
struct OfSlice(Owners);

impl Work for OfSlice {
    fn owners(&self) -> Owners {
        self.0.clone()
    }
}

/// What disturbs in a round.
#[derive(Clone, Debug, Default)]
struct InRounds {
    /// One runs all the time; several have windows of their own in executions, and the machine without a load has a slice for each.
    modes: Vec<Mode>,
    /// The mode of the next slice.
    slice: usize,
}

impl InRounds {
    fn mode(&self) -> Mode {
        self.modes.get(self.slice).copied().unwrap_or(Mode::Quiet)
    }
}

/// All meters of a measurement.
pub struct MeterSet {
    readers: CpuReaders,
    idle_clock: Option<Box<IdleClock>>,
    accounts: Option<Box<AccountWindows>>,
    sampler: Option<Box<Sampling>>,
    events: Option<EventMeter>,
    /// In rounds, what disturbs, if anything does; `None` without rounds.
    in_rounds: Option<InRounds>,
    /// Always open, because it also gives steal and context switches.
    proc_stat: Option<ProcStatFile>,
    selection: Selection,
    /// What each meter sees, or why it does not run.
    pub statuses: Vec<MeterStatus>,
    /// Probes that are read at the same time.
    pub probes: ProbeSet,
    /// Limits of the load's control groups, likewise.
    group_limits: GroupLimits,
    /// The latest scan of all tasks, so that the next one reads only those that ran since.
    tasks: Option<TaskScan>,
}

impl MeterSet {
    /// Opens the meters, and starts one reader per CPU if one of them must be read on its CPU.
    ///
    /// # Errors
    /// When the readers cannot be started. A meter that cannot run is not an error but a status.
    pub fn open(selection: Selection) -> Result<Self> {
        Self::open_where(selection, |meter, idle_clock| match meter {
            Meter::Idle if idle_clock => Err(WAKES.to_owned()),
            _ => Ok(()),
        })
    }

    /// The same for rounds, in which no meter has windows of its own. Some rounds keep accounts, count events or sample
    /// ([`MeterSet::explain`]).
    ///
    /// # Errors
    /// Likewise.
    pub fn open_for_rounds(selection: Selection) -> Result<Self> {
        let meters = Self::open_where(selection, |meter, idle_clock| match meter {
            Meter::Idle | Meter::Pmu if idle_clock => Err(WAKES.to_owned()),
            meter if meter.disturbs() && !matches!(meter, Meter::Accounts | Meter::Sampler) => {
                Err(NO_WINDOWS.to_owned())
            }
            _ => Ok(()),
        })?;
        Ok(Self { in_rounds: Some(InRounds::default()), ..meters })
    }

    /// `fits` tells whether a meter that is not chosen by name runs, also by whether the kernel's idle clock does.
    fn open_where(selection: Selection, fits: impl Fn(Meter, bool) -> std::result::Result<(), String>) -> Result<Self> {
        let cpus = Cpus::online()?;
        let mut of_cpus: Vec<(u32, CpuMeters)> = cpus.online.iter().map(|cpu| (*cpu, Vec::new())).collect();
        let (mut idle_clock, mut accounts, mut sampler) = (None::<Box<IdleClock>>, None, None);
        let mut statuses = Vec::new();
        for (meter, open) in OPENERS {
            let chosen = if selection.allows(meter) { Ok(()) } else { Err(not_chosen(meter)) };
            let wanted = chosen.and_then(|()| {
                if selection.names(meter) && !meter.disturbs() { Ok(()) } else { fits(meter, idle_clock.is_some()) }
            });
            let opened = wanted.and_then(|()| open(&cpus));
            let sees = |opened: &Opened| match opened {
                Opened::IdleClock(clock) => format!("{}; {}", meter.descriptor().sees, clock.way()),
                _ => meter.descriptor().sees.to_owned(),
            };
            statuses.push(MeterStatus { meter, status: Reading::from(opened.as_ref().map(sees)) });
            match opened {
                Ok(Opened::EachCpu(meters)) => {
                    of_cpus.iter_mut().zip(meters).for_each(|((_, own), opened)| own.push((meter, opened)));
                }
                Ok(Opened::IdleClock(opened)) => idle_clock = Some(opened),
                Ok(Opened::Accounts(opened)) => accounts = Some(opened),
                Ok(Opened::Sampler(opened)) => sampler = Some(opened),
                Ok(Opened::ReadAnyway) | Err(_) => {}
            }
        }
        // In the order in which meters are shown.
        statuses.sort_by_key(|status| Meter::ALL.iter().position(|meter| *meter == status.meter));
        of_cpus.retain(|(_, meters)| !meters.is_empty());
        let readers = CpuReaders::start(of_cpus)?;
        let (proc_stat, probes) = (ProcStatFile::open().ok(), ProbeSet::default());
        Ok(Self {
            readers,
            idle_clock,
            accounts,
            sampler,
            events: None,
            in_rounds: None,
            proc_stat,
            selection,
            statuses,
            probes,
            tasks: None,
            group_limits: GroupLimits::own(),
        })
    }

    /// The same, with events that are counted in windows of their own: those that the user asks for, or where the meters are not chosen,
    /// the default ones.
    ///
    /// # Errors
    /// When a name is none of this machine's.
    pub fn counting(self, asked: Option<&[Wanted]>) -> Result<Self> {
        let by_default = || self.selection.allows_default_events().then(Wanted::by_default);
        let wanted = asked.map(<[Wanted]>::to_vec).or_else(by_default).filter(|wanted| !wanted.is_empty());
        let events = wanted.map(|wanted| EventMeter::open(&wanted, asked.is_some())).transpose()?;
        Ok(Self { events, ..self })
    }

    /// The events that are counted; `None` if none are to be.
    pub fn events(&self) -> Option<&Events> {
        self.events.as_ref().map(|events| &events.status)
    }

    /// Reads also what limits of the control groups of a process of the load do, if it is in others than iotoll.
    pub fn follow(&mut self, process: u32) {
        self.group_limits.follow(process);
    }

    /// The CPU time of all tasks now.
    pub fn scan_tasks(&mut self) -> TaskScan {
        let scan = self.tasks.take().map_or_else(TaskScan::now, |earlier| earlier.again());
        self.tasks.insert(scan).clone()
    }

    /// The windows that the chosen meters need.
    pub fn windows(&self) -> Windows {
        if let Some(InRounds { modes, .. }) = &self.in_rounds {
            return Windows { quiet: modes.is_empty(), disturbing: modes.clone() };
        }
        let runs = |status: &&MeterStatus| status.meter.disturbs() && status.status.taken().is_some();
        let meters = self.statuses.iter().filter(runs).map(|status| Mode::Alone(status.meter));
        let disturbing: Vec<Mode> = meters.chain(self.events.iter().flat_map(EventMeter::modes)).collect();
        let quiet = Meter::ALL.into_iter().any(|meter| self.selection.allows(meter) && !meter.disturbs());
        Windows { quiet: quiet || disturbing.is_empty(), disturbing }
    }

    /// The mode whose windows the cost will come from, if not from the quiet ones: the accounts', beside other programs.
    pub fn favoured(&self) -> Option<Mode> {
        // That of rounds comes from others.
        let needed = self.in_rounds.is_none() && self.accounts.as_ref().is_some_and(|accounts| accounts.are_needed());
        needed.then_some(Mode::Alone(Meter::Accounts))
    }

    /// Reads every clock, then starts what `mode`, the mode of the time after this snapshot, needs.
    pub fn snapshot(&mut self, mode: Mode, work: &dyn Work) -> Snapshot {
        self.read(mode, work, |clock| clock.read_if_due(mode))
    }

    /// Begins to count events, if the latest snapshot was for that.
    pub fn begin_events(&mut self, work: &dyn Work) {
        self.events.iter_mut().for_each(|events| events.begin(work));
    }

    /// Notes which events happened since.
    pub fn note_events(&mut self, work: &dyn Work) {
        self.events.iter_mut().for_each(|events| events.note(work));
    }

    /// Whether rounds can be explained by this meter.
    pub fn can_explain(&self, meter: Meter) -> bool {
        match meter {
            Meter::Accounts => self.accounts.is_some(),
            Meter::Sampler => self.sampler.is_some(),
            _ => false,
        }
    }

    /// The modes of rounds that count events.
    pub fn modes_of_events(&self) -> Vec<Mode> {
        self.events.iter().flat_map(EventMeter::modes).collect()
    }

    /// From now on, slices and executions are in this mode all the time, until [`MeterSet::stop_explaining`]. Returns whether they are.
    pub fn explain(&mut self, mode: Mode) -> bool {
        let explains = match mode {
            Mode::Alone(Meter::Accounts) => self.accounts.as_mut().is_some_and(|accounts| accounts.hold()),
            Mode::Alone(meter) => self.can_explain(meter),
            Mode::Events(set) => self.events.as_mut().is_some_and(|events| events.hold(set)),
            Mode::Quiet | Mode::Gap => false,
        };
        self.in_rounds = Some(InRounds { modes: explains.then_some(mode).into_iter().collect(), slice: 0 });
        explains
    }

    /// From now on, executions have windows in these modes, until [`MeterSet::stop_explaining`].
    pub fn explain_in_windows(&mut self, modes: &[Mode]) {
        self.in_rounds = Some(InRounds { modes: modes.to_vec(), slice: 0 });
    }

    /// The next slice has the next of these modes. Returns whether there is another one.
    pub fn next_slice(&mut self) -> bool {
        let Some(in_rounds) = &mut self.in_rounds else { return false };
        in_rounds.slice += 1;
        let is_another = in_rounds.slice < in_rounds.modes.len();
        if !is_another {
            in_rounds.slice = 0;
        }
        is_another
    }

    /// Whether slices count events now.
    pub fn counts_events(&self) -> bool {
        self.in_rounds.as_ref().is_some_and(|in_rounds| matches!(in_rounds.mode(), Mode::Events(_)))
    }

    /// From now on, none does.
    pub fn stop_explaining(&mut self) {
        self.in_rounds = Some(InRounds::default());
        self.accounts.iter_mut().for_each(|accounts| accounts.release());
        self.events.iter_mut().for_each(EventMeter::release);
    }

    /// Whether a CPU came or went since the last call, so that a slice has no busy time.
    pub fn cpus_changed(&mut self) -> bool {
        self.idle_clock.as_mut().is_some_and(|clock| clock.has_changed())
    }

    /// The shortest slice in which reading the clocks does not dominate.
    pub fn shortest_slice(&self) -> Duration {
        self.idle_clock.as_ref().map_or(Duration::ZERO, |clock| clock.shortest_window())
    }

    /// Reads every clock at the beginning of a slice. Events are counted from the end of this reading on.
    pub fn begin_slice(&mut self) -> Snapshot {
        let mode = self.in_rounds.as_ref().map_or(Mode::Quiet, InRounds::mode);
        let snapshot = self.boundary(mode, Owners::default());
        self.begin_events(&NoWork);
        snapshot
    }

    /// The same at its end, until whose beginning events are counted. `owners` tells the tasks of its workload.
    pub fn end_slice(&mut self, owners: Owners) -> Snapshot {
        self.note_events(&NoWork);
        self.boundary(Mode::Quiet, owners)
    }

    fn boundary(&mut self, mode: Mode, owners: Owners) -> Snapshot {
        self.read(mode, &OfSlice(owners), IdleClock::read)
    }

    fn read(
        &mut self,
        mode: Mode,
        work: &dyn Work,
        read_idle_clock: impl Fn(&mut IdleClock) -> Option<Count>,
    ) -> Snapshot {
        let asks = self.accounts.is_some() || self.sampler.is_some();
        let owners = if asks { work.owners() } else { Owners::default() };
        self.accounts.iter_mut().for_each(|accounts| accounts.before(mode));
        let events = self.events.as_mut().map(|events| events.before(mode)).unwrap_or_default();
        let at_nanos = Nanos(monotonic_nanos());
        // Beside the instant at which the accounts are closed.
        let early = self.accounts.as_ref().map(|_| work.done());
        self.accounts.iter_mut().for_each(|accounts| accounts.close(mode));
        let mut counts = self.readers.read(mode);
        // Beside one another: the idle clock does not count this thread's time as idle.
        let own_nanos = Nanos(own_thread_nanos());
        counts.set(Meter::TimerList, self.idle_clock.as_deref_mut().and_then(read_idle_clock));
        let done = early.unwrap_or_else(|| work.done());
        let thread = work.thread_nanos().filter(|_| self.selection.allows(Meter::Thread));
        counts.set(Meter::Thread, thread.map(|Nanos(total)| Count { at_nanos, cpus: 1, total }));
        let (idle, system) = self.proc_stat.as_mut().and_then(ProcStatFile::read).unzip();
        counts.set(Meter::ProcStat, idle);
        let storage_read = work.storage_read();
        let probes = self.probes.read();
        work.command().into_iter().for_each(|process| self.follow(process));
        let group_limits = self.group_limits.read();
        let read = self.accounts.as_mut().map(|accounts| accounts.read(mode, &owners)).unwrap_or_default();
        counts.set(Meter::Accounts, read.count);
        self.accounts.iter_mut().for_each(|accounts| accounts.after());
        // Last, because naming what was sampled takes longest.
        let none = Relations::default();
        let relations = self.accounts.as_ref().map_or(&none, |accounts| &accounts.relations);
        let sampled = self.sampler.as_mut().map(|sampler| sampler.read(mode, &owners, relations)).unwrap_or_default();
        counts.set(Meter::Sampler, sampled.count);
        Snapshot {
            mode,
            at_nanos,
            counts,
            own_nanos,
            system,
            done,
            storage_read,
            whereabouts: None,
            probes,
            group_limits,
            accounts: read.accounts,
            profile: sampled.profile,
            events,
        }
    }
}

/// Why a meter that disturbs does not run in slices.
const NO_WINDOWS: &str = "it disturbs the workload, and has windows of its own only in run and cost";

/// Why a meter that has to be read on each CPU does not run.
const WAKES: &str = "not read, because reading it wakes every CPU and timer_list does not; --meters idle or --meters pmu reads it anyway";

/// Why a meter that could run does not run.
fn not_chosen(meter: Meter) -> String {
    if meter == Meter::Sampler {
        "not chosen, because it disturbs the workload; --profile gives it windows of its own".to_owned()
    } else if meter.disturbs() {
        let name = meter.name();
        format!(
            "not chosen, because it disturbs the workload; --meters all or --meters {name} gives it windows of its own"
        )
    } else {
        "not chosen; see --meters".to_owned()
    }
}

/// Which CPUs are online, as the kernel writes it.
#[derive(Debug)]
struct Online {
    file: File,
    text: Vec<u8>,
}

impl Online {
    /// # Errors
    /// When the kernel does not tell.
    fn open() -> io::Result<Self> {
        let file = File::open("/sys/devices/system/cpu/online")?;
        let mut online = Self { file, text: Vec::new() };
        online.changed();
        Ok(online)
    }

    /// The CPUs, if they changed since the last call.
    fn changed(&mut self) -> Option<Vec<u32>> {
        let mut text = [0; 256];
        let length = self.file.read_at(&mut text, 0).unwrap_or(0);
        let text = text.get(..length).filter(|text| *text != self.text)?;
        let cpus = sys::schedule::online_cpus().ok()?;
        self.text = text.to_vec();
        Some(cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipping::{note_skipped, spin};
    use model::record::TaskOwner;

    /// A slice that spins in a thread of its own, which is the workload.
    fn slice(meters: &mut MeterSet) -> (Snapshot, Snapshot) {
        let before = meters.begin_slice();
        let spinner = std::thread::spawn(|| {
            spin(std::time::Duration::from_millis(10));
            sys::schedule::thread_id().unsigned_abs()
        });
        let workers = [spinner.join().unwrap()].into();
        (before, meters.end_slice(Owners { workers, ..Owners::default() }))
    }

    #[test]
    fn slices_keep_accounts_in_explaining_rounds_only() {
        let mut meters = MeterSet::open_for_rounds(Selection::Default).unwrap();
        let undisturbed = Windows { quiet: true, disturbing: Vec::new() };
        assert_eq!(meters.windows(), undisturbed);
        let keeps = |(before, after): &(Snapshot, Snapshot)| {
            (before.mode == Mode::Alone(Meter::Accounts), before.accounts.is_some(), after.accounts.is_some())
        };
        assert_eq!(keeps(&slice(&mut meters)), (false, false, false));
        if !meters.can_explain(Meter::Accounts) {
            let status = meters.statuses.iter().find(|status| status.meter == Meter::Accounts).unwrap();
            return note_skipped("meters: explaining rounds", status.status.reason().unwrap());
        }
        for _ in 0..2 {
            assert!(meters.explain(Mode::Alone(Meter::Accounts)));
            assert_eq!(meters.windows().disturbing, [Mode::Alone(Meter::Accounts)]);
            // What passes between two slices is in neither.
            for _ in 0..2 {
                std::thread::sleep(std::time::Duration::from_millis(30));
                let (before, after) = slice(&mut meters);
                assert_eq!(keeps(&(before.clone(), after.clone())), (true, false, true));
                let accounts = after.accounts.unwrap();
                let cpus = f64::from(before.counts.get(Meter::Accounts).unwrap().cpus);
                let passed = accounts.passed_nanos.as_f64() / cpus;
                let between = after.at_nanos.since(before.at_nanos).as_f64();
                assert!((passed / between - 1.0).abs() < 0.2, "{passed} of {between} ns");
                let own = accounts.accounts.iter().filter(|account| account.owner == Some(TaskOwner::Workload));
                let own: f64 = own.map(|account| account.nanos.as_f64()).sum();
                assert!((5e6..5e7).contains(&own), "{own} ns");
            }
            meters.stop_explaining();
            assert_eq!(meters.windows(), undisturbed);
            assert_eq!(keeps(&slice(&mut meters)), (false, false, false));
        }
    }

    #[test]
    fn every_meter_has_an_opener() {
        let opened = OPENERS.map(|(meter, _)| meter);
        assert!(Meter::ALL.iter().all(|meter| opened.contains(meter)));
    }
}
