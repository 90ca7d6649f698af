//! Undo that survives a kill: a second process, `iotoll guardian`, undoes iotoll's changes when iotoll is killed.
//!
//! The guardian receives the undo action (`Undo`) before iotoll makes the change, and drops it when iotoll has undone
//! the change itself or wants to keep it ([`UndoGuard`]). When the pipe from iotoll closes, for whatever reason, the
//! guardian performs the remaining actions, the newest first. The process lives while there are entries. The ledger on disk
//! records what has to be undone if both are killed.

mod after_the_end;
pub mod folder;
mod ledger;
pub(crate) mod leftovers;
pub(crate) mod path_text;
pub mod processes;
pub(crate) mod setting_file;
pub mod undo;

pub use after_the_end::serve;
pub use folder::OwnFolder;
pub use leftovers::{found, put_back};

use crate::error::{Error, Result};
use after_the_end::Order;
use ledger::Ledger;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use undo::Undo;

/// How long a guardian may take to start, and to end when nothing is left to undo.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Handle of the guardian; clones share it. The default has no guardian: nothing is undone after a kill.
#[derive(Clone, Debug, Default)]
pub struct Guardian(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    entries: BTreeMap<u64, Entry>,
    /// Number of the next entry; numbers increase.
    next: u64,
    process: Option<Process>,
    ledger: Ledger,
}

#[derive(Debug)]
struct Entry {
    undo: Undo,
    /// The ledger contains it too.
    lasting: bool,
}

/// An entry. Dropping it withdraws the entry: the change was undone, or it stays.
#[derive(Debug, Default)]
pub struct UndoGuard(Option<(Arc<Shared>, u64)>);

impl Guardian {
    /// A guardian that will be started from `program`, iotoll's own executable. The ledger stores the command line for
    /// the user.
    pub fn of(program: PathBuf, command_line: Vec<String>) -> Self {
        let ledger = Ledger::new(command_line);
        let state = State { entries: BTreeMap::new(), next: 0, process: None, ledger };
        Self(Some(Arc::new(Shared { program, state: Mutex::new(state) })))
    }

    /// Registers an undo action before the change.
    ///
    /// # Errors
    /// When no guardian can be started; then do not make the change.
    pub(crate) fn add(&self, undo: Undo) -> Result<UndoGuard> {
        self.hold(undo, true)
    }

    /// The same for a cleanup command, if there is one.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn arm_cleanup(&self, command: Option<&String>, longest: Duration) -> Result<UndoGuard> {
        let Some(command) = command.filter(|_| self.0.is_some()).cloned() else { return Ok(UndoGuard(None)) };
        let directory =
            std::env::current_dir().map_err(|error| Error::instrument("reading the working directory", error))?;
        self.hold(Undo::Run { command, directory, longest_seconds: longest.as_secs_f64() }, false)
    }

    /// The same; unless it is `lasting`, without an entry in the ledger: nothing is written to disk.
    ///
    /// # Errors
    /// As above.
    fn hold(&self, undo: Undo, lasting: bool) -> Result<UndoGuard> {
        let Some(shared) = &self.0 else { return Ok(UndoGuard(None)) };
        let mut state = shared.state();
        let number = state.next;
        state.next += 1;
        let told = state.set(&shared.program, number, Entry { undo, lasting }, lasting);
        told.inspect_err(|_| _ = state.entries.remove(&number))?;
        Ok(UndoGuard(Some((shared.clone(), number))))
    }

    /// Makes sure that a guardian runs with all entries.
    ///
    /// # Errors
    /// When none runs and none can be started.
    pub(crate) fn make_sure(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |shared| shared.state().make_sure(&shared.program))
    }

    /// Why the ledger cannot be written, if it cannot.
    pub(crate) fn ledger_trouble(&self) -> Option<String> {
        self.0.as_ref().and_then(|shared| shared.state().ledger.trouble().map(str::to_owned))
    }
}

impl UndoGuard {
    /// Replaces the entry, for example when more is known about what to undo.
    ///
    /// # Errors
    /// When no guardian runs and none can be started.
    pub(crate) fn amend(&self, undo: Undo) -> Result<()> {
        self.replace(undo, true)
    }

    /// The same; in the ledger only if `written`.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn replace(&self, undo: Undo, written: bool) -> Result<()> {
        let Some((shared, number)) = &self.0 else { return Ok(()) };
        let mut state = shared.state();
        let lasting = state.entries.get(number).is_some_and(|entry| entry.lasting);
        state.set(&shared.program, *number, Entry { undo, lasting }, lasting && written)
    }

    /// Leaves the entry to the guardian for good, because iotoll could not undo it.
    pub(crate) fn abandon(self) {
        std::mem::forget(self);
    }
}

impl Drop for UndoGuard {
    fn drop(&mut self) {
        if let Some((shared, number)) = self.0.take() {
            shared.state().give_up(number);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds or replaces an entry: here, at the guardian, and in the ledger if `written`.
    fn set(&mut self, program: &Path, number: u64, entry: Entry, written: bool) -> Result<()> {
        self.make_sure(program)?;
        let begun = written && self.ledger.add(number, &entry.undo);
        let order = Order::Add(number, entry.undo.clone());
        self.entries.insert(number, entry);
        let mut told = Ok(());
        if begun && let Some(path) = self.ledger.path() {
            told = self.tell(&Order::Ledger(path.to_owned()));
        }
        match told.and_then(|()| self.tell(&order)) {
            Ok(()) => Ok(()),
            // The guardian has just died.
            Err(_) => self.start(program),
        }
    }

    /// Withdraws an entry. After the last one the guardian ends, and the ledger is removed.
    fn give_up(&mut self, number: u64) {
        let Some(entry) = self.entries.remove(&number) else { return };
        // The ledger first: a later iotoll must not undo a change that is to stay.
        if self.entries.is_empty() {
            self.ledger.remove();
            if let Some(process) = self.process.take() {
                process.end();
            }
            return;
        }
        if entry.lasting {
            self.ledger.give_up(number);
        }
        // A dead guardian is replaced at the next addition.
        let _ = self.tell(&Order::Drop(number));
    }

    fn make_sure(&mut self, program: &Path) -> Result<()> {
        if self.process.as_mut().is_some_and(Process::lives) { Ok(()) } else { self.start(program) }
    }

    fn tell(&mut self, order: &Order) -> io::Result<()> {
        self.process.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |process| process.tell(order))
    }

    /// Starts a guardian, replacing an earlier one, and sends it all entries.
    fn start(&mut self, program: &Path) -> Result<()> {
        let failed = |error| {
            Error::instrument("starting the guardian, which undoes iotoll's changes if iotoll is killed", error)
        };
        self.process = None;
        let mut process = Process::start(program).map_err(failed)?;
        if let Some(path) = self.ledger.path() {
            process.tell(&Order::Ledger(path.to_owned())).map_err(failed)?;
        }
        for (number, entry) in &self.entries {
            process.tell(&Order::Add(*number, entry.undo.clone())).map_err(failed)?;
        }
        self.process = Some(process);
        Ok(())
    }
}

#[derive(Debug)]
struct Process {
    child: Child,
}

impl Process {
    /// Starts one, and waits until it has protected itself from our signals.
    fn start(program: &Path) -> io::Result<Self> {
        let child = Command::new(program)
            .arg0(after_the_end::NAME)
            .arg("guardian")
            // Without the mark of our processes: killing marked processes must spare the guardian.
            .env_remove(processes::VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut process = Self { child };
        let mut stdout = process.child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let timeout = Timespec { tv_sec: TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
        let begun = Instant::now();
        loop {
            let ready = match poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&timeout)) {
                Err(rustix::io::Errno::INTR) if begun.elapsed() < TIMEOUT => continue,
                ready => ready?,
            };
            let mut word = [0];
            return match (ready, stdout.read(&mut word)) {
                (0, _) => Err(io::Error::new(io::ErrorKind::TimedOut, "it does not start")),
                (_, Ok(1)) => Ok(process),
                (_, Ok(_)) => Err(io::Error::other("it exited at once")),
                (_, Err(error)) => Err(error),
            };
        }
    }

    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn tell(&mut self, order: &Order) -> io::Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&line)
    }

    /// Nothing is left to undo: waits until the guardian has exited.
    fn end(mut self) {
        const POLL_INTERVAL: Duration = Duration::from_micros(500);
        // An explicit order, because threads with a file table of their own keep the pipe open too.
        let _ = self.tell(&Order::End);
        self.child.stdin = None;
        let begun = Instant::now();
        while self.lives() && begun.elapsed() < TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, or it is unusable and must not undo what another guardian guards. This does not run when iotoll
        // is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
