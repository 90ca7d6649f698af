//! Freezes and thaws a command with all its processes.
//!
//! Where iotoll may, it makes a control group (cgroup v2) for each command below the group that it runs in itself, and the
//! kernel freezes the whole group. Elsewhere it stops the command's process group, and the processes that have left it,
//! which it finds by their mark (SIGSTOP, SIGCONT).

use crate::control_groups;
use crate::error::{Error, Result};
use crate::guardian::processes::{Leader, Processes};
use crate::guardian::undo::Undo;
use crate::guardian::{Guardian, OwnFolder, UndoGuard};
use crate::proc_files::pid;
use rustix::process::{Signal, kill_process_group};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long freezing may take: a process that waits for its disk freezes only after that.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which a freezing group is checked. Short, because it adds to every slice.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Makes [`Freezable`]s. Removes what it made on drop.
#[derive(Debug, Default)]
pub struct Freezer {
    /// A control group of iotoll, with a group for each command.
    group: Option<PathBuf>,
    held: Option<UndoGuard>,
}

impl Freezer {
    /// Makes a control group, if that is allowed.
    ///
    /// # Errors
    /// When no guardian runs that would remove it.
    pub fn open(guardian: &Guardian) -> Result<Self> {
        let Some(own) = control_groups::own() else { return Ok(Self::default()) };
        let path = OwnFolder::path_in(&own, "iotoll-")?;
        let held = Some(guardian.add(Undo::RemoveGroup { path: path.clone() })?);
        let usable = fs::create_dir(&path).is_ok() && control_groups::write(&path, "cgroup.freeze", "0").is_ok();
        let freezer = Self { group: Some(path), held };
        // Dropping it removes a folder that is no control group.
        Ok(if usable { freezer } else { Self::default() })
    }

    /// A place for one command at a time.
    pub fn place(&self, name: &str, processes: Processes) -> Freezable {
        let group = self.group.as_ref().map(|group| group.join(name));
        let group = group.filter(|path| fs::create_dir(path).is_ok());
        Freezable { group, leader: None, processes, strays: Vec::new() }
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        if self.group.as_ref().is_some_and(|group| control_groups::remove(group).is_err()) {
            // The guardian tries again after iotoll has ended.
            self.held.take().into_iter().for_each(UndoGuard::abandon);
        }
    }
}

/// A command that can be frozen.
#[derive(Debug)]
pub struct Freezable {
    /// Its control group; `None` means signals.
    group: Option<PathBuf>,
    leader: Option<Leader>,
    /// The mark of its processes.
    pub processes: Processes,
    /// Processes outside its process group, as last found; only without a control group.
    strays: Vec<Leader>,
}

impl Freezable {
    /// Takes a command whose first process is stopped, and keeps it frozen.
    ///
    /// # Errors
    /// When the control group does not accept it.
    pub fn adopt(&mut self, process: u32) -> std::result::Result<(), String> {
        self.leader = Leader::of(process);
        self.strays.clear();
        self.processes.led_by(process);
        let Some(group) = &self.group else { return Ok(()) };
        let written = control_groups::write(group, "cgroup.freeze", "1")
            .and_then(|()| control_groups::write(group, "cgroup.procs", &process.to_string()));
        written.map_err(|error| format!("{}: {error}", group.display()))?;
        // Frozen, so it does not run yet.
        self.signal_group(Signal::CONT);
        Ok(())
    }

    /// Lets it run.
    ///
    /// # Errors
    /// When the control group refuses.
    pub fn thaw(&self) -> std::result::Result<(), String> {
        match &self.group {
            Some(group) => control_groups::write(group, "cgroup.freeze", "0")
                .map_err(|error| format!("could not be thawed: {}: {error}", group.display())),
            None => {
                self.strays.iter().for_each(|stray| stray.signal(Signal::CONT));
                self.signal_group(Signal::CONT);
                Ok(())
            }
        }
    }

    /// Freezes it, and waits until nothing of it runs.
    ///
    /// # Errors
    /// Why something of it still runs.
    pub fn freeze(&mut self) -> std::result::Result<(), String> {
        let frozen = match self.group.clone() {
            Some(group) => self.freeze_group(&group),
            None => self.stop(),
        };
        frozen.map_err(|why| format!("could not be frozen: {why}"))
    }

    fn freeze_group(&self, group: &Path) -> std::result::Result<(), String> {
        let named = |error| format!("{}: {error}", group.display());
        control_groups::write(group, "cgroup.freeze", "1").map_err(named)?;
        let begun = Instant::now();
        while !fs::read_to_string(group.join("cgroup.events")).map_err(named)?.contains("frozen 1") {
            if begun.elapsed() > TIMEOUT {
                return Err(format!("a process still runs after {} s", TIMEOUT.as_secs()));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        // A group without its processes is frozen too.
        let left = |leader: &Leader| leader.lives() && !self.members(group).contains(&leader.process);
        match self.leader.filter(left) {
            Some(leader) => Err(format!("process {} has left its control group", leader.process)),
            None => Ok(()),
        }
    }

    /// Stops the process group, and the processes outside it that the last [`look_around`](Self::look_around) found.
    fn stop(&mut self) -> std::result::Result<(), String> {
        self.strays.iter().for_each(|stray| stray.signal(Signal::STOP));
        self.signal_group(Signal::STOP);
        let begun = Instant::now();
        let running = |one: &&Leader| !one.is_stopped();
        while let Some(one) = self.strays.iter().chain(&self.leader).find(running) {
            if begun.elapsed() > TIMEOUT {
                return Err(format!("process {} still runs after {} s", one.process, TIMEOUT.as_secs()));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Finds the processes that have left the process group. It takes some milliseconds, so it is not a part of freezing.
    pub fn look_around(&mut self) {
        if let (None, Some(leader)) = (&self.group, self.leader) {
            self.strays = self.processes.living(leader);
        }
    }

    /// Its processes, as far as they are known.
    pub fn members_now(&self) -> Vec<u32> {
        match &self.group {
            Some(group) => self.members(group),
            None => {
                let mut all: Vec<u32> = self.strays.iter().chain(&self.leader).map(|one| one.process).collect();
                all.sort_unstable();
                all.dedup();
                all
            }
        }
    }

    fn members(&self, group: &Path) -> Vec<u32> {
        let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Sends a signal to its process group.
    pub fn signal_group(&self, signal: Signal) {
        let group = self.leader.and_then(|leader| pid(leader.process));
        // It may have ended already.
        let _ = group.map(|group| kill_process_group(group, signal));
    }

    /// Kills what is left of it.
    ///
    /// # Errors
    /// When some still run after a while.
    pub fn kill(&mut self) -> Result<()> {
        let Some(leader) = self.leader.take() else { return Ok(()) };
        if let Some(group) = &self.group {
            let _ = control_groups::write(group, "cgroup.kill", "1");
            let _ = control_groups::write(group, "cgroup.freeze", "0");
        }
        self.processes.kill_with_all_it_began(leader.process).map_err(Error::Failed)
    }
}

impl Drop for Freezable {
    fn drop(&mut self) {
        // The earlier error is the one to report.
        let _ = self.kill();
    }
}
