//! Processes of the machine: which were busy beside the workload, and the descendants of a command.

use super::servers;
use super::thread::name;
use crate::proc_files::{Stat, children_of, descendants, numbered, tasks_of};
use model::placement::BUSY;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Instant;
use sys::clock::process_nanos;

/// Most other processes to watch: the busiest.
const MOST_PEERS: usize = 8;
/// CPU time of every process at one instant, including its ended threads, so that one clock per process suffices.
pub(super) struct Processes {
    at: Instant,
    nanos: BTreeMap<u32, u64>,
}

impl Processes {
    /// Reads them: some 2 µs a process.
    pub fn now() -> Self {
        let ids = numbered(Path::new("/proc")).into_iter();
        Self { at: Instant::now(), nanos: ids.filter_map(|id| Some((id, process_nanos(id)?))).collect() }
    }

    /// The processes that were busy since `earlier`, the busiest first.
    fn busy_since(&self, earlier: &Self) -> Vec<u32> {
        let least = self.at.duration_since(earlier.at).as_nanos() as f64 * BUSY;
        let used = |id: &u32, nanos: u64| nanos.saturating_sub(earlier.nanos.get(id).copied().unwrap_or(0));
        let mut busy: Vec<(u64, u32)> = self
            .nanos
            .iter()
            .map(|(id, nanos)| (used(id, *nanos), *id))
            .filter(|(used, _)| *used as f64 > least)
            .collect();
        busy.sort_unstable_by(|a, b| b.cmp(a));
        busy.into_iter().map(|(_, id)| id).collect()
    }
}

/// The processes that were busy beside the workload.
#[derive(Default)]
pub(super) struct Peers {
    before: Option<Processes>,
    known: BTreeMap<u32, String>,
}

impl Peers {
    /// Adds the processes that were busy since the last call, except this process and `members`, which are the
    /// workload.
    pub fn look_around(&mut self, now: Processes, members: &BTreeSet<u32>) {
        let busy = self.before.as_ref().map(|before| now.busy_since(before)).unwrap_or_default();
        let us = std::process::id();
        for process in busy.into_iter().filter(|process| *process != us && !members.contains(process)) {
            if self.known.len() >= MOST_PEERS || self.known.contains_key(&process) {
                continue;
            }
            if let Some(name) = stranger(process) {
                self.known.insert(process, name);
            }
        }
        self.before = Some(now);
    }

    /// Process and name of each.
    pub fn known(&self) -> impl Iterator<Item = (u32, &str)> {
        self.known.iter().map(|(process, name)| (*process, name.as_str()))
    }
}

/// The name of a process that lives, is not a kernel thread, and is not a child of this one.
fn stranger(process: u32) -> Option<String> {
    let stat = Stat::of(process)?;
    let service = servers::service_of(process);
    // Children of this process are the workload or work for it: a comparison's workers, shells of toggles. Services are servers.
    if stat.is_kernel() || (stat.parent == std::process::id() && service.is_none()) {
        return None;
    }
    let name = name(process, process);
    // The second word of the command line tells the verbs of iotoll apart.
    let arguments = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let verb = arguments.split(|byte| *byte == 0).nth(1).filter(|verb| !verb.starts_with(b"-") && !verb.is_empty());
    let name = match verb {
        Some(verb) if name == "iotoll" => format!("{name} {}", String::from_utf8_lossy(verb)),
        _ => name,
    };
    Some(service.map_or_else(|| name.clone(), |service| format!("'{service}' ({name})")))
}

/// The threads of a process and of its live descendants: process and thread, at most `most`.
pub(super) fn family(ancestor: u32, most: usize) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let mut processes = vec![ancestor];
    // Without CONFIG_PROC_CHILDREN the kernel lists no children, but every process has its parent.
    let told = fs::exists(tasks_of(ancestor).join(ancestor.to_string()).join("children")).unwrap_or(false);
    if !told {
        processes.extend(descendants(ancestor));
    }
    let mut place = 0;
    while let Some(&process) = processes.get(place) {
        place += 1;
        for thread in numbered(&tasks_of(process)) {
            if found.len() >= most {
                return found;
            }
            found.push((process, thread));
            if told {
                processes.extend(children_of(process, thread));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn processes(at: Instant, nanos: &[(u32, u64)]) -> Processes {
        Processes { at, nanos: nanos.iter().copied().collect() }
    }

    #[test]
    fn a_process_that_used_a_twentieth_of_a_cpu_was_busy() {
        let begin = Instant::now();
        let before = processes(begin, &[(5, 1_000_000), (6, 9_000_000), (7, 0)]);
        let used = [(5, 1_000_000 + 4_900_000), (6, 9_000_000 + 5_100_000), (7, 0), (8, 60_000_000)];
        let after = processes(begin + Duration::from_millis(100), &used);
        assert_eq!(after.busy_since(&before), [8, 6]);
    }

    #[test]
    fn a_command_s_family_is_itself_and_its_descendants() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().expect("there is a shell");
        let grown = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let family = family(child.id(), 64);
            (family.len() > 1).then_some(family)
        });
        let family = grown.unwrap();
        for (process, _) in family.iter().filter(|(process, _)| *process != child.id()) {
            let _ = std::process::Command::new("kill").arg(process.to_string()).status();
        }
        child.wait().unwrap();
        assert_eq!(family.len(), 2, "{family:?}");
        assert_eq!(family[0], (child.id(), child.id()));
        assert_eq!(super::family(child.id(), 1).len(), 0, "it has ended");
    }

    #[test]
    fn kernel_threads_are_no_peers() {
        // PID 2 is kthreadd, except where processes are hidden or in a PID namespace.
        if name(2, 2) == "kthreadd" {
            assert_eq!(stranger(2), None);
        }
        assert!(stranger(std::process::id()).is_some());
    }
}
