//! `iotoll cost -- CMD`: what a foreign command costs the whole machine.
//!
//! The command is run as it is; where it can say in JSON how many I/Os it did, the flag for that is added.
//! /proc/PID/io is not used: it misses what io_uring does.

mod counter;
mod execution;
mod fio;
mod iperf3;
mod output_parser;
mod running;

pub use counter::Counter;
pub(crate) use execution::{Executed, Surroundings, execute};

use crate::around;
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::guardian::processes::Processes;
use crate::placing::{self, Placing};
use crate::progress::Observer;
use crate::session::{Session, Settings};
use model::experiment::Around;
use model::record::{Outcome, PhaseRecord, Record, Source};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

/// A shell command around a measured one is killed after this time: it hangs.
const LONGEST_SHELL: Duration = Duration::from_secs(3600);

/// A command and where its I/O count comes from.
#[derive(Clone, Debug)]
pub struct CommandPlan {
    /// Program and arguments; not empty.
    pub command: Vec<String>,
    /// How I/Os are counted.
    pub count: Count,
    /// How many times it is executed.
    pub repeat: u32,
    /// Where what it prints for people goes.
    pub printed: Printed,
    /// What it shares with us, and how long it may live.
    pub custody: Custody,
    /// Shell commands around it, which are not measured.
    pub around: Around,
    /// Who cleans up when we are killed.
    pub guardian: Guardian,
}

/// What a command shares with us, and how long it may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Custody {
    /// It has our input, standard error and process group, takes the time that it takes, and what it leaves running stays.
    Shared,
    /// It has no input and a process group of its own. Of what it says on standard error only the last line is kept, for
    /// when it fails. Whatever of it still runs at its end, or after this time, is killed.
    Alone {
        /// How long it may run.
        longest: Duration,
    },
}

/// Where what a command prints on its standard output goes. Never to ours, which holds the result alone.
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
#[derive(Clone, Debug)]
pub enum Count {
    /// By the program itself, when it is one that can: fio, iperf3.
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

/// Measures a command. What the program printed for people is given to `print`.
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
    let placing = Placing::resolve(settings.place.as_ref(), &placing::servers_named(&plan.command))?;
    let around =
        around::Around::begin(plan.around.clone(), &plan.guardian, LONGEST_SHELL, settings.interruption.clone())?;
    let mut session = Session::open(settings, source)?;
    if let Count::Kernel(counter) = &plan.count {
        counter.read().map_err(|error| Error::Refused(format!("--count {counter}: {error}")))?;
    }
    session.watch_background(observer);
    let mut phase = PhaseRecord::default();
    // What the command leaves running stays, so it stays as well when we are killed.
    let unguarded = Processes::default();
    for number in 0..plan.repeat.max(1) as usize {
        if session.interrupted() || session.record.outcome != Outcome::Completed {
            break;
        }
        if let Err(error) = around.before_execution() {
            if phase.executions.is_empty() {
                return Err(error);
            }
            session.note_outcome(Outcome::Failed(error.to_string()));
            break;
        }
        let mut surroundings = Surroundings {
            meters: &mut session.meters,
            interruption: &session.settings.interruption,
            warnings: &mut session.record.warnings,
            cpus: placing.of(0),
            processes: &unguarded,
        };
        let Executed { execution, failure } = match execute(plan, number, &mut surroundings, observer, print) {
            Ok(executed) => executed,
            Err(error) if phase.executions.is_empty() => return Err(error),
            // What the executions before it cost is known.
            Err(error) => {
                session.note_outcome(Outcome::Failed(error.to_string()));
                break;
            }
        };
        if let Some(failure) = failure {
            session.note_outcome(Outcome::Failed(failure));
        }
        phase.executions.push(execution);
    }
    if phase.executions.is_empty() {
        return Err(Error::Interrupted("before the command was started".to_owned()));
    }
    session.record.phases.push(phase);
    session.watch_background(observer);
    if let Err(error) = around.end() {
        session.note_outcome(Outcome::Failed(error.to_string()));
    }
    Ok(session.close())
}
