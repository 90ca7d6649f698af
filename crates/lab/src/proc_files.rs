//! What /proc says about processes.

use model::record::Holder;
use rustix::process::Pid;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Of a thread of the kernel, linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;
/// Of a task that the kernel ends.
const PF_EXITING: u64 = 0x4;

/// Entries of a directory whose names are numbers: processes, threads, interrupts.
pub fn numbered(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A process number in the form that rustix passes to the kernel; `None` for what is no process, 0 among them.
pub fn pid(process: u32) -> Option<Pid> {
    i32::try_from(process).ok().and_then(Pid::from_raw)
}

/// Directory of the threads of a process.
pub fn tasks_of(process: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/task"))
}

/// Each thread of a process, with the process.
pub fn threads_of(process: u32) -> impl Iterator<Item = (u32, u32)> {
    numbered(&tasks_of(process)).into_iter().map(move |thread| (process, thread))
}

/// The processes that a thread has started, where the kernel lists them (CONFIG_PROC_CHILDREN).
pub fn children_of(process: u32, thread: u32) -> Vec<u32> {
    let text = fs::read_to_string(tasks_of(process).join(format!("{thread}/children"))).unwrap_or_default();
    text.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// The inodes of the sockets of a process.
pub fn sockets_of(process: u32) -> Vec<u64> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    // `socket:[17]`
    let inode = |target: &str| target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    open.filter_map(|file| inode(fs::read_link(file.path()).ok()?.to_str()?)).collect()
}

/// A number of a table with a line of names and a line of values, both beginning with `prefix`.
pub fn of_table(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(prefix));
    let place = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// A number of a list of names with a colon and values.
pub fn of_lines(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line?.split_whitespace().next()?.parse().ok()
}

/// A number of a list of names and values.
pub fn of_list(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What `stat` says of a process or a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: u32,
    /// Its process group.
    pub(crate) group: Option<u32>,
    flags: u64,
    /// When it started, if the line says so: ticks of the kernel since boot.
    pub(crate) started: Option<u64>,
    /// Its CPU, and its priority if that is a real-time one.
    pub(crate) cpu: Option<u32>,
    real_time_priority: Option<u64>,
}

impl Stat {
    /// Reads the file in the directory of a process or a thread. `None` if it has ended.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        // A long name may be cut within a character.
        Self::parse(&String::from_utf8_lossy(&fs::read(directory.join("stat")).ok()?))
    }

    /// The same of a process of this machine.
    pub(crate) fn of(process: u32) -> Option<Self> {
        Self::read(&Path::new("/proc").join(process.to_string()))
    }

    pub(crate) fn parse(stat: &str) -> Option<Self> {
        // pid (comm) state ppid pgrp …; comm may contain any byte. proc_pid_stat(5) counts fields from 1, and these from the third on.
        let (head, tail) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            name: head.split_once('(')?.1.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: u32::try_from(number(4)?).ok()?,
            group: number(5).and_then(|group| u32::try_from(group).ok()),
            flags: number(9)?,
            started: number(22),
            cpu: number(39).and_then(|cpu| u32::try_from(cpu).ok()),
            real_time_priority: number(40).filter(|priority| *priority > 0),
        })
    }

    /// Whether it is a thread of the kernel.
    pub(crate) fn is_kernel(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// Whether the kernel is ending it.
    pub(crate) fn is_exiting(&self) -> bool {
        self.flags & PF_EXITING != 0
    }

    /// Whether it has ended, and nobody has waited for it.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Threads of programs that are ready to run with a real-time priority, except those of this process.
pub(crate) fn real_time_tasks() -> Vec<Holder> {
    let own = std::process::id();
    let processes = numbered(Path::new("/proc")).into_iter().filter(|process| *process != own);
    let threads = processes.flat_map(|process| {
        let directory = Path::new("/proc").join(process.to_string()).join("task");
        numbered(&directory).into_iter().map(move |thread| directory.join(thread.to_string()))
    });
    threads.filter_map(|thread| real_time_task(Stat::read(&thread)?)).collect()
}

/// `None` if it is not one.
fn real_time_task(stat: Stat) -> Option<Holder> {
    let ready = stat.state == 'R' && !stat.is_kernel();
    let priority = u32::try_from(stat.real_time_priority?).ok().filter(|_| ready)?;
    Some(Holder { name: stat.name, priority, cpu: stat.cpu? })
}

/// The live descendants of a process, as far as their parents live: some 10 µs for each process of the machine.
pub(crate) fn descendants(ancestor: u32) -> Vec<u32> {
    descendants_in(Path::new("/proc"), ancestor)
}

fn descendants_in(proc: &Path, ancestor: u32) -> Vec<u32> {
    let parent = |process: u32| Some((process, Stat::read(&proc.join(process.to_string()))?.parent));
    let parents: HashMap<u32, u32> = numbered(proc).into_iter().filter_map(parent).collect();
    let found = parents.keys().filter(|process| **process != ancestor);
    found.filter(|process| descends(**process, ancestor, |process| parents.get(&process).copied())).copied().collect()
}

/// Whether a process is `ancestor`, or descends from it as far as parents are known.
pub(crate) fn descends(process: u32, ancestor: u32, parent: impl Fn(u32) -> Option<u32>) -> bool {
    /// A longer chain is a cycle of reused numbers.
    const LONGEST: usize = 64;
    let known = |process: &u32| parent(*process).filter(|parent| *parent > 1);
    std::iter::successors(Some(process), known).take(LONGEST).any(|process| process == ancestor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_tells_names_parents_and_kernel_threads() {
        let directory = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            fs::write(directory.path().join("stat"), text).unwrap();
            Stat::read(directory.path())
        };
        let told = |text: &str| read(text).map(|stat| (stat.name.clone(), stat.parent, stat.is_kernel(), stat.started));
        let stat = |name: &str, parent, kernel, started| Some((name.to_owned(), parent, kernel, started));
        let rest = "0 0 0 0 0 0 0 0 20 0 1 0";
        assert_eq!(told(&format!("5 (a) b (c) S 2 0 0 0 -1 2129984 {rest} 17 0")), stat("a) b (c", 2, true, Some(17)));
        assert_eq!(told(&format!("6 (x) S 5 0 0 0 -1 4194304 {rest} 2088 0")), stat("x", 5, false, Some(2088)));
        assert_eq!(read("6 (x) S"), None);
        assert_eq!(Stat::read(&directory.path().join("ended")), None);
    }

    #[test]
    fn only_ready_threads_of_programs_with_a_real_time_priority_are_told() {
        let stat = |state: &str, flags: u32, priority: u32| {
            let zeroes = |count: usize| "0 ".repeat(count);
            format!("7 (a) b) {state} {}{flags} {}3 {priority} 1 {}", zeroes(5), zeroes(29), zeroes(11))
        };
        let holder = Holder { name: "a) b".to_owned(), priority: 50, cpu: 3 };
        let told = |line: &str| Stat::parse(line).and_then(real_time_task);
        assert_eq!(told(&stat("R", 0, 50)), Some(holder));
        for other in [stat("S", 0, 50), stat("R", 0x0020_0000, 50), stat("R", 0, 0), "7 (a) R 1".to_owned()] {
            assert_eq!(told(&other), None, "{other}");
        }
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        assert_eq!(told(&own), None);
    }

    #[test]
    fn descendants_are_found_by_their_parents() {
        let directory = tempfile::tempdir().unwrap();
        for (process, parent) in [(5, 1), (6, 5), (7, 6), (8, 1)] {
            fs::create_dir_all(directory.path().join(process.to_string())).unwrap();
            let stat = format!("{process} (a) S {parent} 0 0 0 -1 4194304 0 0");
            fs::write(directory.path().join(format!("{process}/stat")), stat).unwrap();
        }
        let mut found = descendants_in(directory.path(), 5);
        found.sort_unstable();
        assert_eq!(found, [6, 7]);
        assert!(descendants_in(directory.path(), 8).is_empty());
    }

    #[test]
    fn descent_ends_at_init_and_in_a_cycle() {
        let parent = |process: u32| match process {
            9 => Some(8),
            8 => Some(7),
            7 => Some(1),
            4 => Some(5),
            5 => Some(4),
            _ => None,
        };
        assert!(descends(9, 7, parent) && descends(7, 7, parent) && descends(4, 5, parent));
        assert!(!descends(7, 9, parent) && !descends(9, 1, parent) && !descends(4, 6, parent));
    }
}
