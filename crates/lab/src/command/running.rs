//! A running command: starts it, watches it, ends it.

use super::{CommandPlan, Count, Counter, Isolation};
use crate::error::{Error, Result};
use crate::guardian::processes::Processes;
use crate::interruption::Interruption;
use crate::meter::{Owners, Work};
use crate::network_namespace;
use crate::page_cache::{own_storage_read, storage_read_of_tree};
use crate::placing::pinned;
use crate::proc_files::{descendants, pid};
use crate::progress::{Observer, Progress, iops};
use crate::store::GrowingWindows;
use crate::watch::{Step, Subject};
use crate::whereabouts::{PlacementWatch, Workload};
use model::placement::Whereabouts;
use model::record::{Done, Snapshot};
use model::unit::Bytes;
use rustix::process::{Signal, kill_process, kill_process_group};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use sys::process::Ended;

pub(super) struct Running<'a> {
    plan: &'a CommandPlan,
    /// Number of the execution, from 0.
    number: usize,
    child: Option<Command>,
    pub process: Option<u32>,
    news: Option<Receiver<io::Result<Ended>>>,
    ended: Option<Ended>,
    /// Its own name, and why its end is unknown.
    program: String,
    failure: Option<Error>,
    /// The plan's counter before it started.
    first: Option<Done>,
    interruption: &'a Interruption,
    told_to_end: Option<Instant>,
    /// It was ended because it exceeded its time limit.
    overdue: bool,
    begun: Instant,
    /// Highest sum of bytes read from storage for iotoll and the command.
    storage_read: Cell<Bytes>,
    pub observer: Observer<'a>,
    placement_watch: PlacementWatch,
    /// It was in another network namespace than iotoll.
    pub elsewhere: bool,
    /// Any, if there are none.
    pub cpus: &'a [u32],
    /// Receives the leader of its process group once it has run for a while: that costs some microseconds, and its mark
    /// identifies it before.
    pub processes: Option<&'a Processes>,
    /// Saves its windows while it runs.
    pub windows: Option<GrowingWindows>,
}

impl<'a> Running<'a> {
    /// A command that has not started yet.
    pub fn new(
        plan: &'a CommandPlan,
        number: usize,
        child: Command,
        interruption: &'a Interruption,
        observer: Observer<'a>,
    ) -> Self {
        Self {
            plan,
            number,
            program: child.get_program().to_string_lossy().into_owned(),
            child: Some(child),
            process: None,
            news: None,
            ended: None,
            failure: None,
            first: counter(plan).and_then(|counter| counter.read().ok()),
            interruption,
            told_to_end: None,
            overdue: false,
            begun: Instant::now(),
            storage_read: Cell::new(Bytes(0)),
            observer,
            placement_watch: PlacementWatch::new(Workload::Command),
            elsewhere: false,
            cpus: &[],
            processes: None,
            windows: None,
        }
    }

    /// Notes which of the processes beside it are servers.
    pub fn note_servers(&mut self, snapshots: &mut [Snapshot]) {
        self.placement_watch.note_servers(snapshots);
    }

    /// How it ended. All processes of a command with its own process group have ended after this.
    pub fn end(&mut self) -> Result<Ended> {
        if self.longest().is_some() {
            self.kill(Signal::KILL);
        }
        match (self.failure.take(), self.ended.take()) {
            (Some(failure), _) => Err(failure),
            (None, Some(ended)) => Ok(ended),
            (None, None) => Err(self.lost_sight(io::Error::other("the thread that waits for it has ended"))),
        }
    }

    /// It was started, but could not be waited for.
    fn lost_sight(&self, error: io::Error) -> Error {
        Error::instrument(format!("{}: could not be waited for", self.program), error)
    }

    /// Its time limit, if it was ended because of that.
    pub fn is_overdue(&self) -> Option<Duration> {
        self.longest().filter(|_| self.overdue)
    }

    fn longest(&self) -> Option<Duration> {
        match self.plan.custody {
            Isolation::Shared => None,
            Isolation::Alone { longest } => Some(longest),
        }
    }

    /// Passes an interruption on, once: Ctrl-C in a terminal reaches the command by itself.
    fn pass_interruption_on(&mut self) {
        if self.interruption.is_requested() && self.told_to_end.is_none() {
            self.told_to_end = Some(Instant::now());
            self.kill(Signal::INT);
        }
    }

    /// Ends a command that exceeds its limit, or does not end after it was asked to.
    fn hurry(&mut self) {
        /// Time to end after it was asked to.
        const GRACE: Duration = Duration::from_secs(2);
        if self.interruption.is_repeated() {
            self.kill_with_descendants();
        }
        let Some(longest) = self.longest() else { return };
        if self.told_to_end.is_some_and(|told| told.elapsed() > GRACE) {
            self.kill(Signal::KILL);
        }
        match self.begun.elapsed() {
            elapsed if elapsed > longest + GRACE => self.kill(Signal::KILL),
            elapsed if elapsed > longest => {
                self.overdue = true;
                self.kill(Signal::TERM);
            }
            _ => {}
        }
    }

    /// Kills the command and its descendants, as far as their parents live: the jobs of fio continue if only fio is
    /// killed.
    fn kill_with_descendants(&self) {
        /// Limit, in case processes are started as fast as they are found.
        const MOST_SCANS: usize = 8;
        let Some(command) = self.process else { return };
        // An orphan can no longer be found by its parent, and a stopped process starts no other.
        self.kill(Signal::STOP);
        let mut found = BTreeSet::new();
        for _ in 0..MOST_SCANS {
            let before = found.len();
            for process in descendants(command) {
                if found.insert(process) {
                    signal(process, Signal::STOP);
                }
            }
            if found.len() == before {
                break;
            }
        }
        self.kill(Signal::KILL);
        found.into_iter().for_each(|process| signal(process, Signal::KILL));
    }

    /// Sends a signal to the command, or to its process group if it has one. It may have ended already.
    fn kill(&self, signal: Signal) {
        let process = self.process.and_then(pid);
        let Some(process) = process else { return };
        let _ = match self.plan.custody {
            Isolation::Alone { .. } => kill_process_group(process, signal),
            Isolation::Shared => kill_process(process, signal),
        };
        if matches!(signal, Signal::INT | Signal::TERM) {
            // A stopped command acts on it only when it goes on.
            self.kill(Signal::CONT);
        }
    }
}

/// Sends a signal to a process, which may have ended already.
fn signal(process: u32, signal: Signal) {
    if let Some(process) = pid(process) {
        let _ = kill_process(process, signal);
    }
}

/// The kernel counter of its I/Os.
fn counter(plan: &CommandPlan) -> Option<&Counter> {
    match &plan.count {
        Count::Kernel(counter) => Some(counter),
        Count::Program | Count::Stated { .. } => None,
    }
}

impl Work for Running<'_> {
    fn done(&self) -> Option<Done> {
        let (now, first) = (counter(self.plan)?.read().ok()?, self.first?);
        Some(Done { ios: now.ios.saturating_sub(first.ios), bytes: now.bytes.since(first.bytes) })
    }

    fn owners(&self) -> Owners {
        Owners { command: self.process, ..Owners::default() }
    }

    fn command(&self) -> Option<u32> {
        self.process
    }

    fn storage_read(&self) -> Option<Bytes> {
        // Ended children that were waited for are in our own count, live ones in the count of the tree.
        let living = self.process.filter(|_| self.ended.is_none()).and_then(storage_read_of_tree);
        let read = own_storage_read()? + living.unwrap_or(Bytes(0));
        // A process that has ended but was not waited for yet is in neither.
        self.storage_read.set(self.storage_read.get().max(read));
        Some(self.storage_read.get())
    }
}

impl Subject for Running<'_> {
    fn begin(&mut self) {
        let Some(mut command) = self.child.take() else { return };
        // Its children inherit the affinity.
        match pinned(self.cpus, || command.spawn()) {
            Ok(child) => {
                self.begun = Instant::now();
                self.process = Some(child.id());
                let (tell, news) = channel();
                self.news = Some(news);
                let waiter = std::thread::Builder::new().name("iotoll-wait".to_owned()).stack_size(128 << 10);
                if let Err(error) = waiter.spawn(move || tell.send(sys::process::wait(child))) {
                    // Its end could not be seen, so kill it; init reaps it after iotoll has ended.
                    self.kill(Signal::KILL);
                    self.failure = Some(self.lost_sight(error));
                }
            }
            Err(source) => self.failure = Some(Error::NotStarted { program: self.program.clone(), source }),
        }
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        /// Longest reaction time to Ctrl-C.
        const POLL_INTERVAL: Duration = Duration::from_millis(100);
        let mut left = timeout;
        while !left.is_zero() {
            let Some(news) = &self.news else { return true };
            match news.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(Ok(ended)) => {
                    self.ended = Some(ended);
                    return true;
                }
                Ok(Err(error)) => {
                    self.failure = Some(self.lost_sight(error));
                    return true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
            }
            if let (Some(processes), Some(process)) = (self.processes.take(), self.process) {
                processes.led_by(process);
            }
            self.pass_interruption_on();
            self.hurry();
            left = left.saturating_sub(POLL_INTERVAL);
        }
        false
    }

    fn whereabouts(&mut self) -> Option<Box<Whereabouts>> {
        if let Some(process) = self.process.filter(|_| !self.elsewhere) {
            self.elsewhere = network_namespace::any_elsewhere([process]);
        }
        self.placement_watch.look(self.process)
    }

    fn step(&mut self, step: Step) {
        if let Some(windows) = &mut self.windows {
            windows.keep(&step);
        }
        (self.observer)(Progress::Running {
            number: self.number,
            count: self.plan.repeat.max(1) as usize,
            elapsed: step.elapsed,
            total: None,
            iops: iops(&step),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    fn plan() -> CommandPlan {
        let command = vec!["prog".to_owned()];
        CommandPlan { command, count: Count::Program, repeat: 1, printed: false, custody: Isolation::Shared }
    }

    /// The result of `program` if `lose` is done to it.
    fn ends(program: &str, lose: impl FnOnce(&mut Running)) -> Result<Ended> {
        let (plan, calm) = (plan(), Interruption::default());
        let mut ignore = |_: Progress| {};
        let mut running = Running::new(&plan, 0, Command::new(program), &calm, &mut ignore);
        running.begin();
        while !running.wait(Duration::from_secs(1)) {}
        lose(&mut running);
        running.end()
    }

    #[test]
    fn a_missing_program_differs_from_one_that_cannot_be_waited_for() {
        assert!(ends("true", |_| {}).is_ok());
        let missing = ends("/no/such/program", |_| {}).unwrap_err();
        assert!(matches!(&missing, Error::NotStarted { program, .. } if program == "/no/such/program"), "{missing:?}");
        let lost = ends("true", |running| running.failure = Some(running.lost_sight(io::ErrorKind::Other.into())));
        let gone = ends("true", |running| running.ended = None);
        for lost in [lost, gone] {
            let lost = lost.unwrap_err();
            assert!(matches!(lost, Error::Instrument { .. }), "{lost:?}");
            assert!(lost.to_string().starts_with("true: could not be waited for"), "{lost}");
        }
    }
}
