//! The CPU time that the scheduler charged to every task of the machine, read before and after.
//!
//! It shows *where* a cost is that the workload's own threads do not show: a kernel worker, a daemon, the other end of
//! a connection. Processes that started and ended in between are not seen; ended threads of a live process are in its
//! clock.

use crate::proc_files::{Stat, descends, numbered};
use model::account::LIBRARY_THREADS;
use model::record::{TaskOwner, TaskTime, TaskTimes};
use model::unit::Nanos;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use sys::clock::{monotonic_nanos, process_nanos};

/// Decides the owner of a task.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Ids of the workload's threads in this process.
    pub workers: BTreeSet<u32>,
    /// Threads of this process that end are the workload's too: those of the C library for engine `posixaio`.
    pub ended: bool,
    /// Ids of threads in this process that serve it: a receiver of packets.
    pub servers: BTreeSet<u32>,
    /// A measured command, whose descendants are the workload too.
    pub command: Option<u32>,
}

/// A task whose owner is asked for.
pub(super) struct OwnedTask<'a> {
    pub(super) process: u32,
    pub(super) thread: u32,
    /// Whether it is a thread of the kernel.
    pub(super) kernel: bool,
    pub(super) name: &'a str,
}

impl Owners {
    /// Whose a task is. `us` is the number of this process, `peers` work for the workload.
    pub(super) fn of(
        &self,
        task: &OwnedTask<'_>,
        us: u32,
        peers: &BTreeSet<u32>,
        parent: impl Fn(u32) -> Option<u32>,
    ) -> TaskOwner {
        if task.kernel {
            return TaskOwner::Kernel;
        }
        if task.process == us {
            // The kernel's workers of our io_uring engines are threads of this process.
            // Those of the C library for engine posixaio are ours too, whichever job they work for.
            let helps = task.name.starts_with("iou-") || task.name == LIBRARY_THREADS;
            let ended = self.ended && task.thread == ENDED;
            let worker = helps || ended || self.workers.contains(&task.thread);
            let serves = self.servers.contains(&task.thread);
            return match (serves, worker) {
                (true, _) => TaskOwner::Peer,
                (false, true) => TaskOwner::Workload,
                (false, false) => TaskOwner::Iotoll,
            };
        }
        match self.command {
            Some(command) if descends(task.process, command, parent) => TaskOwner::Workload,
            _ if peers.contains(&task.process) => TaskOwner::Peer,
            _ => TaskOwner::Other,
        }
    }
}

/// Instead of a thread id: all ended threads of a process.
const ENDED: u32 = 0;

/// CPU time of every task at one instant.
pub struct TaskScan {
    at: Nanos,
    tasks: HashMap<(u32, u32), Task>,
}

struct Task {
    name: String,
    parent: u32,
    kernel: bool,
    nanos: Nanos,
}

impl TaskScan {
    /// Reads every task that this user can see: some 20 µs a task.
    pub fn now() -> Self {
        Self::of(Path::new("/proc"), process_nanos)
    }

    /// `all_nanos` is the CPU time of all threads of a process, including ended ones.
    fn of(proc: &Path, all_nanos: impl Fn(u32) -> Option<u64>) -> Self {
        let at = Nanos(monotonic_nanos());
        let mut tasks = HashMap::new();
        for process in numbered(proc) {
            let mut living = Nanos(0);
            for thread in numbered(&proc.join(process.to_string()).join("task")) {
                let directory = proc.join(process.to_string()).join("task").join(thread.to_string());
                // A task that ends meanwhile is left out, as if it had ended before.
                if let Some(task) = Task::read(&directory) {
                    living += task.nanos;
                    tasks.insert((process, thread), task);
                }
            }
            // CPU time of the ended threads. Kernel threads have no process clock.
            let own: Option<&Task> = tasks.get(&(process, process)).filter(|task| !task.kernel);
            if let Some((own, all)) = own.zip(all_nanos(process)) {
                let ended = Task { name: own.name.clone(), nanos: Nanos(all).since(living), ..*own };
                tasks.insert((process, ENDED), ended);
            }
        }
        Self { at, tasks }
    }

    /// CPU time of each task since `earlier`, summed by name and owner, largest first.
    pub fn since(&self, earlier: &Self, owners: &Owners) -> TaskTimes {
        let mut sums: BTreeMap<(TaskOwner, String), Nanos> = BTreeMap::new();
        // What threads that ended since used before: it moved from them to the ended threads of their process.
        let mut moved: HashMap<u32, Nanos> = HashMap::new();
        for (key, task) in &earlier.tasks {
            if key.1 != ENDED && !self.tasks.contains_key(key) {
                *moved.entry(key.0).or_default() += task.nanos;
            }
        }
        for (&(process, thread), task) in &self.tasks {
            let mut before = earlier.tasks.get(&(process, thread)).map_or(Nanos(0), |task| task.nanos);
            if thread == ENDED {
                before += moved.get(&process).copied().unwrap_or_default();
            }
            let used = task.nanos.since(before);
            if used > Nanos(0) {
                let owner = self.owner(process, thread, task, owners);
                *sums.entry((owner, task.name.clone())).or_default() += used;
            }
        }
        let mut tasks: Vec<TaskTime> =
            sums.into_iter().map(|((owner, name), nanos)| TaskTime { name, owner, nanos }).collect();
        tasks.sort_by_key(|task| std::cmp::Reverse(task.nanos));
        TaskTimes { wall_nanos: self.at.since(earlier.at), tasks }
    }

    fn owner(&self, process: u32, thread: u32, task: &Task, owners: &Owners) -> TaskOwner {
        let owned = OwnedTask { process, thread, kernel: task.kernel, name: &task.name };
        owners.of(&owned, std::process::id(), &BTreeSet::new(), |process| self.parent(process))
    }

    fn parent(&self, process: u32) -> Option<u32> {
        self.tasks.get(&(process, process)).map(|task| task.parent)
    }

    /// The descendants of a process, as far as their parents live.
    pub fn descendants(&self, ancestor: u32) -> impl Iterator<Item = u32> {
        let processes = self.tasks.keys().filter(|(process, thread)| process == thread).map(|(process, _)| *process);
        processes.filter(move |process| *process != ancestor && self.descends(*process, ancestor))
    }

    fn descends(&self, process: u32, ancestor: u32) -> bool {
        descends(process, ancestor, |process| self.parent(process))
    }
}

impl Task {
    fn read(directory: &Path) -> Option<Self> {
        let Stat { name, parent, kernel, .. } = Stat::read(directory)?;
        let schedstat = fs::read_to_string(directory.join("schedstat")).ok()?;
        let nanos = schedstat.split_whitespace().next()?.parse().ok()?;
        Some(Self { name, parent, kernel, nanos: Nanos(nanos) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_of_ours_is_found_and_owned() {
        let before = TaskScan::now();
        let (send, receive) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("busy-bee".into());
        let thread = thread.spawn(move || {
            let begin = sys::clock::own_thread_nanos();
            while sys::clock::own_thread_nanos() - begin < 30_000_000 {}
            send.send(sys::schedule::thread_id().unsigned_abs()).unwrap();
            let _ = stopped.recv();
        });
        let id = receive.recv().unwrap();
        let owners = Owners { workers: [id].into(), ..Owners::default() };
        let times = TaskScan::now().since(&before, &owners);
        drop(stop);
        thread.unwrap().join().unwrap();
        let bee = times.tasks.iter().find(|task| task.name == "busy-bee").unwrap();
        assert_eq!(bee.owner, TaskOwner::Workload);
        assert!(bee.nanos >= Nanos::from_millis(30), "{bee:?}");
    }

    #[test]
    fn threads_that_ended_are_charged_to_their_process() {
        let directory = tempfile::tempdir().unwrap();
        for thread in [7, 8] {
            let task = directory.path().join(format!("7/task/{thread}"));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("stat"), format!("{thread} (server) S 2 0 0 0 -1 4194304 0 0")).unwrap();
            fs::write(task.join("schedstat"), "1000 0 9").unwrap();
        }
        let scan = |all| TaskScan::of(directory.path(), move |_| Some(all));
        let times = scan(9500).since(&scan(2500), &Owners::default());
        let found: Vec<_> = times.tasks.iter().map(|task| (task.name.as_str(), task.owner, task.nanos.0)).collect();
        assert_eq!(found, [("server", TaskOwner::Other, 7000)]);
        // What a thread used before the first scan is not charged again when it ends.
        let earlier = scan(2500);
        fs::remove_dir_all(directory.path().join("7/task/8")).unwrap();
        let times = scan(2600).since(&earlier, &Owners::default());
        assert_eq!(times.tasks.iter().map(|task| task.nanos.0).collect::<Vec<_>>(), [100]);
    }

    #[test]
    fn threads_of_the_c_library_are_the_workloads_while_they_live_and_when_they_ended() {
        let owner = |thread, name, ended| {
            let owners = Owners { ended, ..Owners::default() };
            let task = OwnedTask { process: 7, thread, kernel: false, name };
            owners.of(&task, 7, &BTreeSet::new(), |_| None)
        };
        assert_eq!(owner(9, LIBRARY_THREADS, false), TaskOwner::Workload);
        assert_eq!(owner(ENDED, "iotoll", true), TaskOwner::Workload);
        assert_eq!(owner(ENDED, "iotoll", false), TaskOwner::Iotoll);
        assert_eq!(owner(9, "iotoll", true), TaskOwner::Iotoll);
    }

    #[test]
    fn descendants_are_found_by_their_parents() {
        let directory = tempfile::tempdir().unwrap();
        for (process, parent) in [(5, 1), (6, 5), (7, 6), (8, 1)] {
            let task = directory.path().join(format!("{process}/task/{process}"));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("stat"), format!("{process} (a) S {parent} 0 0 0 -1 4194304 0 0")).unwrap();
            fs::write(task.join("schedstat"), "1 0 9").unwrap();
        }
        let scan = TaskScan::of(directory.path(), |_| Some(9));
        assert_eq!(scan.descendants(5).collect::<BTreeSet<_>>(), [6, 7].into());
        assert_eq!(scan.descendants(8).count(), 0);
    }

    #[test]
    fn a_name_cut_within_a_character_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let task = directory.path().join("5/task/5");
        fs::create_dir_all(&task).unwrap();
        fs::write(task.join("stat"), b"5 (job Zufallsles\xc3) S 2 0 0 0 -1 64 0 0").unwrap();
        fs::write(task.join("schedstat"), "1234 0 9").unwrap();
        let scan = TaskScan::of(directory.path(), |_| None);
        assert_eq!(scan.tasks[&(5, 5)].name, "job Zufallsles\u{fffd}");
    }

    #[test]
    fn a_name_with_parentheses_is_read_whole() {
        let directory = tempfile::tempdir().unwrap();
        let task = directory.path().join("5/task/5");
        fs::create_dir_all(&task).unwrap();
        fs::write(task.join("stat"), "5 (a) b (c) S 2 0 0 0 -1 2129984 0 0").unwrap();
        fs::write(task.join("schedstat"), "1234 0 9").unwrap();
        let scan = TaskScan::of(directory.path(), |_| None);
        let task = &scan.tasks[&(5, 5)];
        assert_eq!((task.name.as_str(), task.parent, task.kernel, task.nanos), ("a) b (c", 2, true, Nanos(1234)));
    }
}
