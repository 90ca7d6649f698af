//! Undo that outlives us: a second process, `iotoll guardian`, that undoes what iotoll did when iotoll is killed.
//!
//! What undoes a thing (`Undo`) is handed over before the thing is done, and given up when it was undone or is to stay ([`Held`]).
//! The guardian holds the same list; when our end of its pipe closes, whatever closed it, it does what is left. It begins with
//! the first entry and ends with the last. The ledger on disk holds what has to be known if both are killed.

pub(crate) mod file_identity;
mod folder;
mod ledger;
pub(crate) mod leftovers;
pub(crate) mod path_text;
pub(crate) mod processes;
mod serve;
pub(crate) mod setting_file;
pub(crate) mod undo;

pub use folder::OwnFolder;
pub use leftovers::{found, put_back};
pub use serve::serve;

use crate::error::{Error, Result};
use ledger::Ledger;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serve::Order;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use undo::Undo;

/// How long a guardian may take to begin, and to end when there is nothing left to undo.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Whom to hand over what undoes something; clones are the same one. By default nobody: then nothing outlives us.
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
    /// The next entry's number: the newest is the highest.
    next: u64,
    process: Option<Process>,
    ledger: Ledger,
}

#[derive(Debug)]
struct Entry {
    undo: Undo,
    /// It is in the ledger too.
    lasting: bool,
}

/// An entry. Dropped, it is given up: it was undone, or what it would undo stays.
#[derive(Debug, Default)]
pub struct Held(Option<(Arc<Shared>, u64)>);

impl Guardian {
    /// A guardian that is going to be started as `program`, this program. The command line is for who finds the ledger.
    pub fn of(program: PathBuf, command_line: Vec<String>) -> Self {
        let ledger = Ledger::new(command_line);
        let state = State { entries: BTreeMap::new(), next: 0, process: None, ledger };
        Self(Some(Arc::new(Shared { program, state: Mutex::new(state) })))
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    /// Hands over what undoes something that is going to be done.
    ///
    /// # Errors
    /// When there can be no guardian: then it is not to be done.
    pub(crate) fn add(&self, undo: Undo) -> Result<Held> {
        self.hold(undo, true)
    }

    /// The same without a word in the ledger: nothing is written to disk.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn arm(&self, undo: Undo) -> Result<Held> {
        self.hold(undo, false)
    }

    fn hold(&self, undo: Undo, lasting: bool) -> Result<Held> {
        let Some(shared) = &self.0 else { return Ok(Held(None)) };
        let mut state = shared.state();
        let number = state.next;
        state.next += 1;
        let told = state.set(&shared.program, number, Entry { undo, lasting }, lasting);
        told.inspect_err(|_| _ = state.entries.remove(&number))?;
        Ok(Held(Some((shared.clone(), number))))
    }

    /// Makes sure that somebody guards what was handed over.
    ///
    /// # Errors
    /// When nobody does, and no other one can be started.
    pub(crate) fn make_sure(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |shared| shared.state().make_sure(&shared.program))
    }

    /// Why the ledger cannot be written, if it cannot.
    pub(crate) fn ledger_trouble(&self) -> Option<String> {
        self.0.as_ref().and_then(|shared| shared.state().ledger.trouble().map(str::to_owned))
    }
}

impl Held {
    /// Replaces the entry: more is known of what has to be undone.
    ///
    /// # Errors
    /// When nobody holds it any more.
    pub(crate) fn amend(&self, undo: Undo) -> Result<()> {
        self.replace(undo, true)
    }

    /// The same without a word in the ledger.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn amend_in_passing(&self, undo: Undo) -> Result<()> {
        self.replace(undo, false)
    }

    fn replace(&self, undo: Undo, written: bool) -> Result<()> {
        let Some((shared, number)) = &self.0 else { return Ok(()) };
        let mut state = shared.state();
        let lasting = state.entries.get(number).is_some_and(|entry| entry.lasting);
        state.set(&shared.program, *number, Entry { undo, lasting }, lasting && written)
    }

    /// Leaves it to the guardian for good: we could not undo it.
    pub(crate) fn abandon(self) {
        std::mem::forget(self);
    }
}

impl Drop for Held {
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
    /// Adds an entry or replaces it, here, with the guardian and, where it is to be written, in the ledger.
    fn set(&mut self, program: &Path, number: u64, entry: Entry, written: bool) -> Result<()> {
        self.make_sure(program)?;
        let guardian = self.process.as_ref().map(|process| process.child.id());
        let begun = written && self.ledger.add(number, &entry.undo, guardian);
        let order = Order::Add(number, entry.undo.clone());
        self.entries.insert(number, entry);
        let mut told = Ok(());
        if begun && let Some(path) = self.ledger.path() {
            told = self.tell(&Order::Ledger(path.to_owned()));
        }
        match told.and_then(|()| self.tell(&order)) {
            Ok(()) => Ok(()),
            // It died just now.
            Err(_) => self.start(program),
        }
    }

    /// Gives an entry up; with the last one the guardian ends, and the ledger goes.
    fn give_up(&mut self, number: u64) {
        let Some(entry) = self.entries.remove(&number) else { return };
        // The ledger first: what is kept must not be taken back long after, by who finds it there.
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
        // One that died is replaced when there is something to add.
        let _ = self.tell(&Order::Drop(number));
    }

    fn make_sure(&mut self, program: &Path) -> Result<()> {
        if self.process.as_mut().is_some_and(Process::lives) { Ok(()) } else { self.start(program) }
    }

    fn tell(&mut self, order: &Order) -> io::Result<()> {
        self.process.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |process| process.tell(order))
    }

    /// Starts a guardian, a new one where there was one, and tells it everything.
    fn start(&mut self, program: &Path) -> Result<()> {
        let failed =
            |error| Error::instrument("starting the guardian, which undoes what iotoll did when it is killed", error);
        self.process = None;
        let mut process = Process::start(program).map_err(failed)?;
        if let Some(path) = self.ledger.path() {
            process.tell(&Order::Ledger(path.to_owned())).map_err(failed)?;
        }
        for (number, entry) in &self.entries {
            process.tell(&Order::Add(*number, entry.undo.clone())).map_err(failed)?;
        }
        self.ledger.note_guardian(Some(process.child.id()));
        self.process = Some(process);
        Ok(())
    }
}

/// A guardian that runs.
#[derive(Debug)]
struct Process {
    child: Child,
}

impl Process {
    /// Starts one, and waits until no signal of ours can reach it any more.
    fn start(program: &Path) -> io::Result<Self> {
        let child = Command::new(program)
            .arg0(serve::NAME)
            .arg("guardian")
            // Those who kill what bears our mark must leave it alone.
            .env_remove(processes::VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut process = Self { child };
        process.wait_until_ready()?;
        Ok(process)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let mut stdout = self.child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let timeout = Timespec { tv_sec: TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
        let begun = Instant::now();
        loop {
            let ready = match poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&timeout)) {
                Err(rustix::io::Errno::INTR) if begun.elapsed() < TIMEOUT => continue,
                ready => ready?,
            };
            let mut word = [0];
            return match (ready, stdout.read(&mut word)) {
                (0, _) => Err(io::Error::new(io::ErrorKind::TimedOut, "it does not begin")),
                (_, Ok(1)) => Ok(()),
                (_, Ok(_)) => Err(io::Error::other("it ended at once")),
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

    /// There is nothing left to undo: waits until it is gone.
    fn end(mut self) {
        const GLANCE: Duration = Duration::from_micros(500);
        // Said, because threads with a table of files of their own hold the pipe open as well.
        let _ = self.tell(&Order::End);
        self.child.stdin = None;
        let begun = Instant::now();
        while self.lives() && begun.elapsed() < TIMEOUT {
            std::thread::sleep(GLANCE);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended; or it is of no use, and must not undo what another one guards. When we end, this is not called.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
