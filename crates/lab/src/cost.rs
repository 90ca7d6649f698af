//! `iotoll cost -- CMD`: what a command costs the whole machine.
//!
//! The command runs unchanged; a program that can report its I/O count in JSON gets the flag for that. /proc/PID/io is
//! not used: it misses I/O by io_uring.

mod counter;
mod execution;
mod fio;
mod iperf3;
mod output_parser;
mod running;

pub use counter::Counter;
pub use execution::{Executed, Surroundings, execute, set_apart};
pub use output_parser::reports;
pub use output_parser::{Output, Prepared, prepared};

use crate::error::{Error, Result};
use crate::guardian::processes::Processes;
use crate::network_namespace;
use crate::placing;
use crate::progress::{Observer, Progress};
use crate::session::{Session, Settings, outcome_of};
use crate::sheet::Sheet;
use crate::workload::target::Created;
use model::experiment::Cell;
use model::probe::Probe;
use model::record::{Outcome, PhaseRecord, Record, Source};
use model::warning::add_once;
use std::time::Duration;

/// A command, and where its I/O count comes from.
#[derive(Clone, Debug)]
pub struct CommandPlan {
    /// Program and arguments; not empty.
    pub command: Vec<String>,
    /// How I/Os are counted.
    pub count: Count,
    pub repeat: u32,
    /// Whether the command's standard output goes to our standard error, or nowhere. Never to ours, which contains only the result.
    pub printed: bool,
    /// What the command shares with iotoll, and how long it may live.
    pub custody: Isolation,
}

/// What a command shares with iotoll, and how long it may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It shares our standard input, standard error and process group, has no time limit, and may leave processes
    /// running.
    Shared,
    /// It has no standard input and a process group of its own. Of its standard error only the last line is kept, for
    /// the error message. Its processes are killed when it ends, or after this time.
    Alone { longest: Duration },
}

/// How the I/Os of a command are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// By the program itself, if it is one that can: fio, iperf3.
    Program,
    /// Stated by the user, for each execution.
    Stated {
        ios: Option<u64>,
        bytes: Option<u64>,
    },
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
    let servers = placing::servers_named(&plan.command);
    let session = Session::open(settings, &servers, &mut |service| observer(Progress::Starting { service }))?;
    let measured = measure(plan, &session, observer, print);
    session.close(measured, &Created::default(), |record| &mut record.outcome)
}

fn measure(plan: &CommandPlan, session: &Session, observer: Observer, print: &mut dyn FnMut(&str)) -> Result<Record> {
    let counted_by = output_parser::counted_by(plan);
    let mut sheet = Sheet::open(session, Source::Cost { command: plan.command.clone(), counted_by })?;
    if let Count::Kernel(counter) = &plan.count {
        counter.read().map_err(|error| Error::Refused(format!("--count {counter}: {error}")))?;
    }
    sheet.watch_background(observer);
    let mut phase = PhaseRecord::default();
    // Processes that the command leaves running stay, also if iotoll is killed.
    let unguarded = Processes::default();
    for number in 0..plan.repeat.max(1) as usize {
        if sheet.has_ended() {
            break;
        }
        let windows = Some(sheet.growing_windows(0));
        let mut surroundings = Surroundings {
            windows,
            meters: &mut sheet.meters,
            interruption: &session.settings.interruption,
            warnings: &mut sheet.record.warnings,
            cpus: session.placing.of(0),
            processes: &unguarded,
        };
        let prepared = session.around.prepare(&Cell::default());
        let executed = prepared.and_then(|()| execute(plan, number, &mut surroundings, observer, print));
        let Executed { execution, failure, elsewhere } = match executed {
            Ok(executed) => executed,
            Err(error) if phase.executions.is_empty() => return Err(error),
            // The cost of the executions before it is known.
            Err(error) => {
                sheet.note_outcome(outcome_of(&error));
                break;
            }
        };
        let ours = of_our_network(plan, &session.settings.probes);
        if let Some(caveat) = network_namespace::caveat(&ours, &plan.command, elsewhere) {
            add_once(&mut sheet.record.warnings, caveat);
        }
        // An interrupted command often ends with a failure of its own.
        if let Some(failure) = failure.filter(|_| !session.interrupted()) {
            sheet.note_outcome(Outcome::Failed(failure));
        }
        sheet.keep_execution(0, &execution);
        phase.executions.push(execution);
    }
    if phase.executions.is_empty() {
        return Err(Error::Interrupted("before the command was started".to_owned()));
    }
    sheet.record.phases.push(phase);
    sheet.watch_background(observer);
    Ok(sheet.close())
}

/// What counts in iotoll's own network namespace.
fn of_our_network(plan: &CommandPlan, probes: &[Probe]) -> Vec<String> {
    let interface = match &plan.count {
        Count::Kernel(counter @ Counter::Probe(name)) if name.starts_with("net.") => Some(format!("--count {counter}")),
        Count::Kernel(counter @ Counter::Net(_)) => Some(format!("--count {counter}")),
        Count::Kernel(Counter::Block(_) | Counter::Probe(_)) | Count::Program | Count::Stated { .. } => None,
    };
    interface.into_iter().chain(network_namespace::flags_of_one(probes)).collect()
}
