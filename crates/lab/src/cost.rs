//! `iotoll cost -- CMD`: what a command costs the whole machine.
//!
//! The command runs unchanged; a program that can report its I/O count in JSON gets the flag for that. /proc/PID/io is
//! not used: it misses I/O by io_uring.

mod counter;
mod execution;
mod fio;
mod iperf3;
mod iperf3_json;
mod output_parser;
mod running;

pub use counter::Counter;
pub(crate) use execution::{Executed, Prepared, Surroundings, execute, last_line, prepared, set_apart};
pub(crate) use output_parser::OutputParser;
pub use output_parser::reports;

use crate::around;
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::guardian::processes::Processes;
use crate::network_namespace;
use crate::placing::{self, Placing};
use crate::progress::{Observer, Progress};
use crate::service::{Folders, LONGEST_FILL, Services};
use crate::session::{Session, Settings};
use model::experiment::{Around, Cell};
use model::plan::service::Service;
use model::probe::Probe;
use model::record::{Outcome, PhaseRecord, Record, Source};
use model::warning::add_once;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

/// A shell command around a measured one counts as hung after this time, and is killed.
const LONGEST_SHELL: Duration = Duration::from_secs(3600);

/// A command, and where its I/O count comes from.
#[derive(Clone, Debug)]
pub struct CommandPlan {
    /// Program and arguments; not empty.
    pub command: Vec<String>,
    /// How I/Os are counted.
    pub count: Count,
    /// Number of executions.
    pub repeat: u32,
    /// Where the command's standard output goes.
    pub printed: Printed,
    /// What the command shares with iotoll, and how long it may live.
    pub custody: Isolation,
    /// Shell commands before and after it, which are not measured.
    pub around: Around,
    /// Cleans up if iotoll is killed.
    pub guardian: Guardian,
}

/// What a command shares with iotoll, and how long it may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It shares our standard input, standard error and process group, has no time limit, and may leave processes
    /// running.
    Shared,
    /// It has no standard input and a process group of its own. Of its standard error only the last line is kept, for
    /// the error message. Its processes are killed when it ends, or after this time.
    Alone {
        /// Longest run time.
        longest: Duration,
    },
}

/// Where a command's standard output goes. Never to ours, which contains only the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// To our standard error.
    ToStderr,
    /// Nowhere.
    Nowhere,
}

impl Printed {
    fn stdio(self) -> Stdio {
        let stderr = || std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
        match self {
            Self::ToStderr => stderr(),
            Self::Nowhere => Stdio::null(),
        }
    }
}

/// How the I/Os of a command are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// By the program itself, if it is one that can: fio, iperf3.
    Program,
    /// Stated by the user, for each execution.
    Stated {
        /// I/Os.
        ios: Option<u64>,
        /// Bytes.
        bytes: Option<u64>,
    },
    /// By a counter of the kernel.
    Kernel(Counter),
}

/// Measures a command. What the program prints for people goes to `print`.
///
/// # Errors
/// When the command cannot be started. A command that fails is in the record.
pub fn cost(
    plan: &CommandPlan,
    settings: &Settings,
    observer: Observer,
    print: &mut dyn FnMut(&str),
) -> Result<Record> {
    let source = Source::Cost { command: plan.command.clone(), counted_by: output_parser::counted_by(plan) };
    let place = settings.place.as_ref();
    let servers = placing::servers_named(&plan.command);
    let placing = Placing::resolve(place, &servers)?;
    let folders = Folders::make(&settings.services)?;
    let around =
        around::Around::begin(plan.around.clone(), &plan.guardian, LONGEST_SHELL, settings.interruption.clone())?;
    let mut services =
        Services::start(&settings.services, place, LONGEST_FILL, &settings.interruption, &mut |service| {
            observer(Progress::Starting { service });
        })?;
    // Again, because it depends on where the servers are that run now.
    let placing = if services.started().is_empty() { placing } else { Placing::resolve(place, &servers)? };
    let measured = measure(plan, (settings, services.started()), source, &placing, &around, observer, print);
    let mut record = services.conclude(measured, |record| &mut record.outcome)?;
    if let Err(error) = around.end().and_then(|()| folders.close())
        && record.outcome == Outcome::Completed
    {
        record.outcome = Outcome::Failed(error.to_string());
    }
    Ok(record)
}

/// The same beside services that run, after setup.
fn measure(
    plan: &CommandPlan,
    (settings, services): (&Settings, &[Service]),
    source: Source,
    placing: &Placing,
    around: &around::Around,
    observer: Observer,
    print: &mut dyn FnMut(&str),
) -> Result<Record> {
    let mut session = Session::open(settings, source, services)?;
    if let Count::Kernel(counter) = &plan.count {
        counter.read().map_err(|error| Error::Refused(format!("--count {counter}: {error}")))?;
    }
    session.watch_background(observer);
    let mut phase = PhaseRecord::default();
    // Processes that the command leaves running stay, also if iotoll is killed.
    let unguarded = Processes::default();
    for number in 0..plan.repeat.max(1) as usize {
        if session.interrupted() || session.record.outcome != Outcome::Completed {
            break;
        }
        if let Err(error) = around.before_execution(&Cell::default()) {
            if phase.executions.is_empty() {
                return Err(error);
            }
            session.note_outcome(Outcome::Failed(error.to_string()));
            break;
        }
        let windows = Some(session.unfinished_windows(0));
        let mut surroundings = Surroundings {
            windows,
            meters: &mut session.meters,
            interruption: &session.settings.interruption,
            warnings: &mut session.record.warnings,
            cpus: placing.of(0),
            processes: &unguarded,
        };
        let Executed { execution, failure, elsewhere } = match execute(plan, number, &mut surroundings, observer, print)
        {
            Ok(executed) => executed,
            Err(error) if phase.executions.is_empty() => return Err(error),
            // The cost of the executions before it is known.
            Err(error) => {
                session.note_outcome(Outcome::Failed(error.to_string()));
                break;
            }
        };
        let ours = of_our_network(plan, &session.settings.probes);
        if let Some(caveat) = network_namespace::caveat(&ours, &plan.command, elsewhere) {
            add_once(&mut session.record.warnings, caveat);
        }
        if let Some(failure) = failure {
            session.note_outcome(Outcome::Failed(failure));
        }
        session.keep_execution(0, &execution);
        phase.executions.push(execution);
    }
    if phase.executions.is_empty() {
        return Err(Error::Interrupted("before the command was started".to_owned()));
    }
    session.record.phases.push(phase);
    session.watch_background(observer);
    Ok(session.close())
}

/// What counts in iotoll's own network namespace.
fn of_our_network(plan: &CommandPlan, probes: &[Probe]) -> Vec<String> {
    let of_network = |name: &String| name.starts_with("net.");
    let interface = match &plan.count {
        Count::Kernel(counter @ Counter::Probe(name)) if of_network(name) => Some(format!("--count {counter}")),
        Count::Kernel(counter @ Counter::Net(_)) => Some(format!("--count {counter}")),
        Count::Kernel(Counter::Block(_) | Counter::Probe(_)) | Count::Program | Count::Stated { .. } => None,
    };
    let probes = probes.iter().map(|probe| &probe.descriptor.name).filter(|name| of_network(name));
    interface.into_iter().chain(probes.map(|name| format!("--probe {name}"))).collect()
}
