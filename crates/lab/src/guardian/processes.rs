//! Processes that the guardian kills if iotoll is killed: it finds them by a mark in their environment, and kills them
//! with all their descendants.
//!
//! The guardian receives the mark before iotoll starts a process with it, and the guardian's pipe closes only when no
//! child of iotoll is between fork and exec any more, so none is missed. A process that clears its environment is found
//! by the process group that it leads.

use super::undo::Undo;
use super::{Guardian, UndoGuard};
use crate::error::Result as LabResult;
use crate::proc_files::{Stat, numbered, pid};
use rustix::process::{Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Environment variable of the mark.
pub(super) const VARIABLE: &str = "IOTOLL_GUARDED";

/// A process; the start time tells it from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Its process id, which is also its process group.
    pub process: u32,
    /// When it started, in kernel clock ticks since boot.
    pub start: u64,
}

impl Leader {
    /// A process that runs, or a zombie.
    pub fn of(process: u32) -> Option<Self> {
        Some(Self { process, start: Stat::of(process)?.started? })
    }

    /// Sends it a signal, unless it has ended or its id belongs to another one.
    pub fn signal(self, signal: Signal) {
        let process = pid(self.process).filter(|_| self.lives());
        let _ = process.map(|process| kill_process(process, signal));
    }

    /// Whether it is stopped or has ended.
    pub fn is_stopped(self) -> bool {
        self.stat().is_none_or(|stat| matches!(stat.state, 'T' | 't'))
    }

    /// Whether it has been killed, and the kernel has not ended it yet.
    pub fn is_dying(self) -> bool {
        // In this order: a signal that waits no longer has begun to end it.
        awaits_kill(self.process) || self.stat().is_some_and(|stat| stat.is_exiting())
    }

    /// What the kernel says of it as long as it runs.
    fn stat(self) -> Option<Stat> {
        Stat::of(self.process).filter(|stat| stat.started == Some(self.start) && !stat.has_ended())
    }

    /// Whether it still runs.
    pub fn lives(self) -> bool {
        self.stat().is_some()
    }
}

/// Processes that are killed if iotoll is. After a drop they are left alone.
#[derive(Debug, Default)]
pub struct Processes {
    mark: Option<String>,
    held: UndoGuard,
}

impl Processes {
    /// Marks the processes that `command` starts.
    pub fn mark(&self, command: &mut Command) {
        if let Some(mark) = &self.mark {
            command.env(VARIABLE, mark);
        }
    }

    /// The leader of the process group of the last marked process. Optional: the mark finds it too.
    pub fn led_by(&self, process: u32) {
        if let (Some(mark), Some(leader)) = (&self.mark, Leader::of(process)) {
            let _ = self.held.replace(Undo::Kill { mark: mark.clone(), leader: Some(leader) }, false);
        }
    }

    /// The last marked process, its process group, and all processes with the mark that started since, with their
    /// descendants.
    pub fn living(&self, leader: Leader) -> Vec<Leader> {
        let mark = self.mark.clone().unwrap_or_else(fresh_mark);
        found(&mark, Some(leader)).into_iter().filter(|one| one.start >= leader.start).collect()
    }

    /// Kills the last marked process, its process group, and all processes with the mark that started since: a child in
    /// a session of its own has left the group.
    ///
    /// # Errors
    /// When some still run after a while.
    pub fn kill_with_all_it_began(&self, process: u32) -> Result<(), String> {
        let Some(leader) = Leader::of(process) else { return Ok(()) };
        kill_all(|| self.living(leader))
    }
}

impl Guardian {
    /// Processes of a whole measurement.
    ///
    /// # Errors
    /// When no guardian runs that would kill them.
    pub fn processes(&self) -> LabResult<Processes> {
        self.marked(true)
    }

    /// Processes that end soon: nothing is written to disk for them.
    ///
    /// # Errors
    /// As above.
    pub fn passing_processes(&self) -> LabResult<Processes> {
        self.marked(false)
    }

    /// The guardian will kill every process with a fresh mark.
    fn marked(&self, lasting: bool) -> LabResult<Processes> {
        if self.0.is_none() {
            return Ok(Processes::default());
        }
        let mark = fresh_mark();
        let held = self.hold(Undo::Kill { mark: mark.clone(), leader: None }, lasting)?;
        Ok(Processes { mark: Some(mark), held })
    }
}

/// A unique mark.
pub(super) fn fresh_mark() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    // The process id makes it unique if the kernel gives no UUID.
    format!("{}-{}-{}", random.trim(), std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Whether SIGKILL was sent to a process and has not reached it yet.
fn awaits_kill(process: u32) -> bool {
    /// Signals are numbered from 1, bits from 0.
    const KILL: u64 = 1 << 8;
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let pending =
        status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:")));
    pending.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok()).any(|mask| mask & KILL != 0)
}

/// Every process that has not ended, by its id.
fn living() -> BTreeMap<u32, Stat> {
    let numbers = numbered(Path::new("/proc")).into_iter();
    numbers.filter_map(|number| Some((number, Stat::of(number).filter(|stat| !stat.has_ended())?))).collect()
}

fn bears(process: u32, mark: &str) -> bool {
    let wanted = format!("{VARIABLE}={mark}");
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// The processes with the mark or in the leader's group, and all their descendants, with their start times. Guardians
/// are excluded: the guardian of an iotoll among them has to undo that one's changes.
pub(super) fn found(mark: &str, leader: Option<Leader>) -> Vec<Leader> {
    let living = living();
    // The kernel does not reuse a process id while a process group has it.
    let group =
        leader.filter(|leader| living.get(&leader.process).is_none_or(|stat| stat.started == Some(leader.start)));
    let rooted = |process: u32, stat: &Stat| {
        group.is_some_and(|leader| stat.group == Some(leader.process)) || bears(process, mark)
    };
    let mut chosen: BTreeSet<u32> =
        living.iter().filter(|(process, stat)| rooted(**process, stat)).map(|(process, _)| *process).collect();
    loop {
        let before = chosen.len();
        let children = living.iter().filter(|(_, stat)| chosen.contains(&stat.parent)).map(|(process, _)| *process);
        let children: Vec<u32> = children.collect();
        chosen.extend(children);
        if chosen.len() == before {
            break;
        }
    }
    let spared = |process: &u32, stat: &Stat| {
        *process <= 1 || *process == std::process::id() || stat.name == super::after_the_end::NAME
    };
    let chosen = chosen.into_iter().filter_map(|process| Some((process, living.get(&process)?)));
    chosen
        .filter(|(process, stat)| !spared(process, stat))
        .filter_map(|(process, stat)| Some(Leader { process, start: stat.started? }))
        .collect()
}

/// Kills them, and waits until they have ended.
///
/// # Errors
/// When some still run after a while.
pub(super) fn kill_all(found: impl Fn() -> Vec<Leader>) -> Result<(), String> {
    /// Limit, in case processes are started as fast as they are found.
    const MOST_SCANS: usize = 200;
    /// Longer than the gap within exec between closing our pipe and showing the mark.
    const PAUSE: Duration = Duration::from_millis(10);
    const TIMEOUT: Duration = Duration::from_secs(5);
    let mut killed: Vec<Leader> = Vec::new();
    let mut calm = false;
    for _ in 0..MOST_SCANS {
        // A stopped process starts no other, and an orphan can no longer be found by its parent.
        let mut stopped: Vec<Leader> = Vec::new();
        for _ in 0..MOST_SCANS {
            let new: Vec<Leader> = found().into_iter().filter(|one| !stopped.contains(one)).collect();
            if new.is_empty() {
                break;
            }
            new.iter().for_each(|one| one.signal(Signal::STOP));
            stopped.extend(new);
        }
        stopped.iter().for_each(|one| one.signal(Signal::KILL));
        match (stopped.is_empty(), calm) {
            (true, true) => break,
            (true, false) => calm = true,
            (false, _) => calm = false,
        }
        killed.extend(stopped.into_iter().filter(|one| !killed.contains(one)).collect::<Vec<_>>());
        std::thread::sleep(PAUSE);
    }
    let begun = Instant::now();
    while killed.iter().any(|one| one.lives()) {
        if begun.elapsed() > TIMEOUT {
            let left = killed.iter().filter(|one| one.lives()).count();
            return Err(format!("{left} processes still run after SIGKILL"));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;

    /// A shell and its children. A failing test leaves none of them, and their output is not waited for.
    struct Shell(std::process::Child, String);

    impl Shell {
        fn start(script: &str) -> Self {
            let mark = fresh_mark();
            let mut command = Command::new("sh");
            command.args(["-c", script]).env(VARIABLE, &mark).process_group(0);
            Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(), mark)
        }

        fn id(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            for process in found(&self.1, None) {
                process.signal(Signal::KILL);
            }
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn eventually(so: impl Fn() -> bool) -> bool {
        (0..2000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            so()
        })
    }

    #[test]
    fn every_process_with_the_mark_is_killed() {
        // A process in its own session, one without a parent, one with a cleared environment.
        let script = "setsid sleep 1000 & (setsid sleep 1001 &) ; env -i sleep 1002 & wait";
        let (mut shell, other) = (Shell::start(script), Shell::start("exec sleep 1003"));
        let mark = shell.1.clone();
        assert!(eventually(|| found(&mark, None).len() == 4), "{:?}", found(&mark, None));
        kill_all(|| found(&mark, None)).unwrap();
        assert_eq!(found(&mark, None), []);
        assert!(Leader::of(other.id()).unwrap().lives());
        assert!(!shell.0.wait().unwrap().success());
    }

    #[test]
    fn a_group_is_killed_by_its_leader_but_not_by_a_reused_id() {
        let shell = Shell::start("exec env -i sleep 1000");
        let leader = Leader::of(shell.id()).unwrap();
        let cleared = || fs::read(format!("/proc/{}/environ", shell.id())).is_ok_and(|text| text.is_empty());
        assert!(eventually(cleared));
        let mark = fresh_mark();
        kill_all(|| found(&mark, Some(Leader { start: leader.start + 1, ..leader }))).unwrap();
        assert!(leader.lives(), "it is a different process");
        kill_all(|| found(&mark, Some(leader))).unwrap();
        assert!(!leader.lives());
    }

    #[test]
    fn a_command_is_killed_with_its_children_but_not_with_earlier_processes() {
        let before = Shell::start("exec sleep 1000");
        // Start times are in kernel clock ticks of 10 ms.
        std::thread::sleep(Duration::from_millis(50));
        let processes = Processes { mark: Some(before.1.clone()), held: UndoGuard::default() };
        let mut command = Command::new("sh");
        command.args(["-c", "(setsid sleep 1001 &); sleep 1002"]).process_group(0).stdout(Stdio::null());
        processes.mark(&mut command);
        let mut child = command.spawn().unwrap();
        assert!(eventually(|| found(&before.1, None).len() == 4), "{:?}", found(&before.1, None));
        processes.kill_with_all_it_began(child.id()).unwrap();
        child.wait().unwrap();
        assert_eq!(found(&before.1, None), Leader::of(before.id()).into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_guardian_among_them_is_spared() {
        let shell =
            Shell::start(&format!("printf {} > /proc/$$/comm; sleep 1000 & wait", super::super::after_the_end::NAME));
        // Its child is not a guardian.
        let only_child = || matches!(found(&shell.1, None).as_slice(), [one] if one.process != shell.id());
        assert!(eventually(|| Stat::of(shell.id()).is_some_and(|stat| stat.name == super::super::after_the_end::NAME)));
        assert!(eventually(only_child), "{:?}", found(&shell.1, None));
    }
}
