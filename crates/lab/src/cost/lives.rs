//! When the jobs of a program ran: the lives of its child processes and threads, looked at while it runs.
//!
//! A look reads the program's list of threads, the children of its first thread, which starts the jobs, and `stat` of each new task. The kernel
//! tells when a task started with a resolution of 10 ms; its end lies between two looks.

use crate::proc_files::{Stat, numbered};
use model::unit::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Most tasks to remember: a program with more of them keeps the lives that are known by then, and is not told apart.
const MOST: usize = 4096;

/// The life of a child process or of a thread, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// A thread of the program, not a process.
    pub thread: bool,
    pub begin: Nanos,
    /// When it was last seen.
    pub seen: Nanos,
    /// When it was first missing.
    pub missed: Nanos,
}

/// The lives of the tasks of one program.
pub(super) struct Lives {
    /// Its name: a starter such as nice or sudo may stand before it.
    program: &'static str,
    process: Option<u32>,
    /// By process or thread id.
    tasks: BTreeMap<u32, Open>,
    ended: Vec<(u32, Life)>,
}

/// A task that is not known to have ended.
struct Open {
    thread: bool,
    begin: Nanos,
    seen: Nanos,
}

impl Lives {
    pub fn of(program: &'static str) -> Self {
        Self { program, process: None, tasks: BTreeMap::new(), ended: Vec::new() }
    }

    /// Looks at the tasks of the program that `command` starts, or is.
    pub fn look(&mut self, command: u32) {
        if self.process.is_none() {
            self.process = find(command, self.program);
        }
        let Some(process) = self.process else { return };
        let now = Nanos(sys::clock::monotonic_nanos());
        let threads = numbered(&tasks_of(process)).into_iter().filter(|thread| *thread != process);
        let children = children(process).into_iter().map(|id| (false, id));
        for (thread, id) in children.chain(threads.map(|thread| (true, thread))) {
            if let Some(task) = self.tasks.get_mut(&id) {
                task.seen = now;
            } else if self.tasks.len() + self.ended.len() < MOST
                && let Some(begin) = start(process, thread, id)
            {
                self.tasks.insert(id, Open { thread, begin: begin.min(now), seen: now });
            }
        }
        self.tasks.retain(|id, task| {
            let lives = task.seen == now;
            if !lives {
                self.ended.push((*id, task.ended_at(now)));
            }
            lives
        });
    }

    /// All of them, in the order of their beginnings, once the program has ended.
    pub fn take(mut self) -> Vec<Life> {
        let now = Nanos(sys::clock::monotonic_nanos());
        self.ended.extend(self.tasks.iter().map(|(id, task)| (*id, task.ended_at(now))));
        // Ids grow, within a tick of the kernel too.
        self.ended.sort_by_key(|(id, life)| (life.begin, *id));
        self.ended.into_iter().map(|(_, life)| life).collect()
    }
}

impl Open {
    fn ended_at(&self, missed: Nanos) -> Life {
        Life { thread: self.thread, begin: self.begin, seen: self.seen, missed }
    }
}

fn tasks_of(process: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/task"))
}

/// The children that the first thread of a process started.
fn children(process: u32) -> Vec<u32> {
    let text = fs::read_to_string(tasks_of(process).join(format!("{process}/children"))).unwrap_or_default();
    text.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// The process of a command that is the program: the command itself, or a descendant by starters.
fn find(command: u32, program: &str) -> Option<u32> {
    /// sudo starts a monitor, which starts the program.
    const LONGEST: usize = 4;
    let mut process = command;
    for _ in 0..LONGEST {
        if Stat::read(&tasks_of(process).join(process.to_string()))?.name == program {
            return Some(process);
        }
        process = match children(process).as_slice() {
            [only] => *only,
            _ => return None,
        };
    }
    None
}

/// When a task started, on CLOCK_MONOTONIC. The kernel gives the start in ticks since boot; the boot-time clock converts it.
fn start(process: u32, thread: bool, id: u32) -> Option<Nanos> {
    let folder = if thread { tasks_of(process).join(id.to_string()) } else { PathBuf::from(format!("/proc/{id}")) };
    let ticks = Stat::read(&folder)?.started?;
    let rate = rustix::param::clock_ticks_per_second().max(1);
    let since_boot = ticks.saturating_mul(1_000_000_000 / rate);
    let boot = clock_gettime(ClockId::Boottime);
    let now = u64::try_from(boot.tv_sec).ok()?.saturating_mul(1_000_000_000) + u64::try_from(boot.tv_nsec).ok()?;
    let begin = sys::clock::monotonic_nanos().saturating_sub(now.saturating_sub(since_boot));
    // The two clocks are read one after the other; tasks of one tick have one time.
    Some(Nanos((begin + 500_000) / 1_000_000 * 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn the_lives_of_children_are_seen_behind_a_starter() {
        // A shell named after the program, behind another shell that waits for it.
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("jobber");
        fs::copy("/bin/sh", &program).unwrap();
        let script = format!("{} -c 'sleep 0.3 & wait; sleep 0.3 & sleep 0.3 & wait; :'; :", program.display());
        let before = Nanos(sys::clock::monotonic_nanos());
        let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap();
        let mut lives = Lives::of("jobber");
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(20) {
            lives.look(child.id());
            std::thread::sleep(Duration::from_millis(10));
        }
        let found = lives.take();
        assert_eq!(found.len(), 3, "{found:?}");
        let [first, second, third] = found.as_slice() else { return };
        for life in &found {
            assert!(!life.thread && life.begin <= life.seen && life.seen < life.missed, "{life:?}");
            // A tick of the kernel before, because it is rounded down.
            assert!(life.begin + Nanos::from_millis(10) >= before, "{life:?} {before:?}");
            assert!(life.missed.since(life.begin) >= Nanos::from_millis(290), "{life:?}");
        }
        assert!(second.begin + Nanos::from_millis(10) >= first.seen && third.begin <= second.seen, "{found:?}");
    }
}
