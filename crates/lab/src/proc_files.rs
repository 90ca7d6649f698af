//! What /proc says about processes.

use model::record::Holder;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Of a thread of the kernel, linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;

/// Entries of a directory whose names are numbers: processes, threads, interrupts.
pub(crate) fn numbered(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What `stat` says of a process or a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) parent: u32,
    /// Whether it is a thread of the kernel.
    pub(crate) kernel: bool,
    /// When it started, if the line says so: ticks of the kernel since boot.
    pub(crate) started: Option<u64>,
}

impl Stat {
    /// Reads the file in the directory of a process or a thread. `None` if it has ended.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        // pid (comm) state ppid pgrp session tty tpgid flags …, proc_pid_stat(5); comm may contain any byte, and a long
        // name may be cut within a character.
        let stat = fs::read(directory.join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let (head, tail) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let mut fields = tail.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        let started = fields.nth(12).and_then(|ticks| ticks.parse().ok());
        Some(Self { name, parent, kernel: flags & PF_KTHREAD != 0, started })
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
    threads
        .filter_map(|thread| real_time_task(&String::from_utf8_lossy(&fs::read(thread.join("stat")).ok()?)))
        .collect()
}

/// By a line of `stat`; `None` if it is not one.
fn real_time_task(stat: &str) -> Option<Holder> {
    let (head, tail) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    // proc_pid_stat(5) counts fields from 1, and these from the third on.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ready = fields.first() == Some(&"R") && number(9)? & PF_KTHREAD == 0;
    let priority = u32::try_from(number(40)?).ok().filter(|priority| ready && *priority > 0)?;
    Some(Holder { name: head.split_once('(')?.1.to_owned(), priority, cpu: u32::try_from(number(39)?).ok()? })
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
        let stat = |name: &str, parent, kernel, started| Some(Stat { name: name.to_owned(), parent, kernel, started });
        let rest = "0 0 0 0 0 0 0 0 20 0 1 0";
        assert_eq!(read(&format!("5 (a) b (c) S 2 0 0 0 -1 2129984 {rest} 17 0")), stat("a) b (c", 2, true, Some(17)));
        assert_eq!(read(&format!("6 (x) S 5 0 0 0 -1 4194304 {rest} 2088 0")), stat("x", 5, false, Some(2088)));
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
        assert_eq!(real_time_task(&stat("R", 0, 50)), Some(holder));
        for other in [stat("S", 0, 50), stat("R", 0x0020_0000, 50), stat("R", 0, 0), "7 (a) R 1".to_owned()] {
            assert_eq!(real_time_task(&other), None, "{other}");
        }
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        assert_eq!(real_time_task(&own), None);
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
