//! The CPU time that the scheduler charged to every task of the machine, read before and after.
//!
//! It shows *where* a cost is that the workload's own threads do not show: a kernel worker, a daemon, the other end of
//! a connection. Processes that started and ended in between are not seen; ended threads of a live process are in its
//! clock.

use crate::proc_files::{Stat, descends, numbered};
use model::record::{TaskOwner, TaskTime, TaskTimes};
use model::unit::Nanos;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use sys::clock::{monotonic_nanos, process_nanos};

/// Decides the owner of a task.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Ids of the workload's threads in this process.
    pub workers: BTreeSet<u32>,
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
            let worker = task.name.starts_with("iou-") || self.workers.contains(&task.thread);
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
#[derive(Clone)]
pub struct TaskScan {
    at: Nanos,
    processes: HashMap<u32, Rc<Process>>,
}

/// The tasks of a process.
struct Process {
    /// All of them, including ended ones.
    all: Nanos,
    /// By thread.
    living: BTreeMap<u32, Task>,
}

struct Task {
    nanos: Nanos,
    /// Read once it has run between two scans.
    stat: Option<Stat>,
}

impl TaskScan {
    /// Reads every task that this user can see: some 5 µs a task.
    pub fn now() -> Self {
        Self::of(Path::new("/proc"), process_nanos, None)
    }

    /// The same later: only processes that have used the CPU since are read, and others by their clock, which takes 1 µs and 0.2 µs a thread.
    pub fn again(&self) -> Self {
        Self::of(Path::new("/proc"), process_nanos, Some(self))
    }

    /// `all_nanos` is the CPU time of all threads of a process, including ended ones.
    fn of(proc: &Path, all_nanos: impl Fn(u32) -> Option<u64>, earlier: Option<&Self>) -> Self {
        let at = Nanos(monotonic_nanos());
        let mut processes = HashMap::new();
        for number in numbered(proc) {
            // A task that ends meanwhile is left out, as if it had ended before.
            let Some(all) = all_nanos(number).map(Nanos) else { continue };
            // A clock that went back is that of another process with the same number.
            let known = earlier.and_then(|earlier| earlier.processes.get(&number)).filter(|known| known.all <= all);
            let process = match known.filter(|known| known.all == all) {
                Some(same) => same.clone(),
                None => {
                    let living = read_tasks(&proc.join(number.to_string()), known, earlier.is_some());
                    Rc::new(Process { all, living })
                }
            };
            processes.insert(number, process);
        }
        Self { at, processes }
    }

    /// CPU time of each task since `earlier`, of which this is a later scan, summed by name and owner, largest first.
    pub fn since(&self, earlier: &Self, owners: &Owners) -> TaskTimes {
        let mut sums: BTreeMap<(TaskOwner, String), Nanos> = BTreeMap::new();
        let parent = |process: u32| self.parent(process);
        for (&process, now) in &self.processes {
            let before = earlier.processes.get(&process).filter(|before| before.all <= now.all);
            if before.is_some_and(|before| before.all == now.all) {
                continue;
            }
            let used = |task: &Task, thread: u32| {
                task.nanos
                    .since(before.and_then(|before| before.living.get(&thread)).map_or(Nanos(0), |task| task.nanos))
            };
            let mut add = |thread: u32, stat: &Stat, nanos: Nanos| {
                let owned = OwnedTask { process, thread, kernel: stat.is_kernel(), name: &stat.name };
                let owner = owners.of(&owned, std::process::id(), &BTreeSet::new(), parent);
                *sums.entry((owner, stat.name.clone())).or_default() += nanos;
            };
            let mut living = Nanos(0);
            for (&thread, task) in &now.living {
                let used = used(task, thread);
                living += used;
                if let Some(stat) = task.stat.as_ref().filter(|_| used > Nanos(0)) {
                    add(thread, stat, used);
                }
            }
            // The rest was used by threads that have ended.
            let all = now.all.since(before.map_or(Nanos(0), |before| before.all));
            let first = now.living.get(&process).and_then(|task| task.stat.as_ref());
            if let Some(first) = first.filter(|first| !first.is_kernel() && all > living) {
                add(ENDED, first, all.since(living));
            }
        }
        let mut tasks: Vec<TaskTime> =
            sums.into_iter().map(|((owner, name), nanos)| TaskTime { name, owner, nanos }).collect();
        tasks.sort_by_key(|task| std::cmp::Reverse(task.nanos));
        TaskTimes { wall_nanos: self.at.since(earlier.at), tasks }
    }

    /// The parent of a process; of one that has not run since an earlier scan, what /proc says now.
    fn parent(&self, process: u32) -> Option<u32> {
        let task = self.processes.get(&process)?.living.get(&process)?;
        let now = || Stat::of(process).map(|stat| stat.parent);
        task.stat.as_ref().map(|stat| stat.parent).or_else(now)
    }
}

/// Reads the threads of a process. With an earlier scan, it also reads the names of those that have run since, and of the first.
fn read_tasks(process: &Path, known: Option<&Rc<Process>>, names: bool) -> BTreeMap<u32, Task> {
    let threads = process.join("task");
    let read = |thread: u32| {
        let directory = threads.join(thread.to_string());
        let schedstat = fs::read_to_string(directory.join("schedstat")).ok()?;
        let nanos = Nanos(schedstat.split_whitespace().next()?.parse().ok()?);
        let was = known.and_then(|known| known.living.get(&thread));
        let first = process.file_name().is_some_and(|name| *name == *thread.to_string());
        let wanted = names && (first || was.is_none_or(|was| was.nanos != nanos));
        let stat = if wanted { Stat::read(&directory) } else { was.and_then(|was| was.stat.clone()) };
        Some((thread, Task { nanos, stat }))
    };
    numbered(&threads).into_iter().filter_map(read).collect()
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
            crate::skipping::spin(std::time::Duration::from_millis(30));
            send.send(sys::schedule::thread_id().unsigned_abs()).unwrap();
            let _ = stopped.recv();
        });
        let id = receive.recv().unwrap();
        let owners = Owners { workers: [id].into(), ..Owners::default() };
        let times = before.again().since(&before, &owners);
        drop(stop);
        thread.unwrap().join().unwrap();
        let bee = times.tasks.iter().find(|task| task.name == "busy-bee").unwrap();
        assert_eq!(bee.owner, TaskOwner::Workload);
        assert!(bee.nanos >= Nanos::from_millis(30), "{bee:?}");
    }

    /// Writes the files in which the kernel says how long a thread of a process has run.
    fn make(root: &Path, process: u32, thread: u32, name: &[u8], nanos: u64) {
        let task = root.join(format!("{process}/task/{thread}"));
        fs::create_dir_all(&task).unwrap();
        let number = thread.to_string();
        fs::write(task.join("stat"), [number.as_bytes(), b" (", name, b") S 2 0 0 0 -1 4194304 0 0"].concat()).unwrap();
        fs::write(task.join("schedstat"), format!("{nanos} 0 9")).unwrap();
    }

    #[test]
    fn threads_that_ended_are_charged_to_their_process() {
        let directory = tempfile::tempdir().unwrap();
        [7, 8].iter().for_each(|thread| make(directory.path(), 7, *thread, b"server", 1000));
        let scan = |all, earlier: Option<&TaskScan>| TaskScan::of(directory.path(), move |_| Some(all), earlier);
        let earlier = scan(2500, None);
        let times = scan(9500, Some(&earlier)).since(&earlier, &Owners::default());
        let found: Vec<_> = times.tasks.iter().map(|task| (task.name.as_str(), task.owner, task.nanos.0)).collect();
        assert_eq!(found, [("server", TaskOwner::Other, 7000)]);
        // What a thread used before the first scan is not charged again when it ends.
        fs::remove_dir_all(directory.path().join("7/task/8")).unwrap();
        let times = scan(2600, Some(&earlier)).since(&earlier, &Owners::default());
        assert_eq!(times.tasks.iter().map(|task| task.nanos.0).collect::<Vec<_>>(), [100]);
    }

    #[test]
    fn a_process_that_did_not_run_is_not_read_again() {
        let directory = tempfile::tempdir().unwrap();
        make(directory.path(), 7, 7, b"idler", 1000);
        let scan = |all, earlier: Option<&TaskScan>| TaskScan::of(directory.path(), move |_| Some(all), earlier);
        let first = scan(1000, None);
        make(directory.path(), 7, 7, b"idler", 3000);
        let second = scan(1000, Some(&first));
        assert!(second.since(&first, &Owners::default()).tasks.is_empty());
        let third = scan(3000, Some(&second));
        for earlier in [&first, &second] {
            let times = third.since(earlier, &Owners::default());
            let ran: Vec<_> = times.tasks.iter().map(|task| (task.name.as_str(), task.nanos.0)).collect();
            assert_eq!(ran, [("idler", 2000)]);
        }
    }

    #[test]
    fn a_name_cut_within_a_character_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        make(directory.path(), 5, 5, b"job Zufallsles\xc3", 1234);
        let earlier = TaskScan::of(directory.path(), |_| Some(0), None);
        let scan = TaskScan::of(directory.path(), |_| Some(1), Some(&earlier));
        assert_eq!(scan.processes[&5].living[&5].stat.as_ref().unwrap().name, "job Zufallsles\u{fffd}");
    }
}
