//! What the jobs of a phase need at the same time, compared with what the machine has, before anything is laid out. The kernel promises
//! more memory than it has and kills the process that touches it, and a library aborts the process that cannot have it.

use lab::error::{Error, Result};
use lab::memory;
use lab::sysroot::Sysroot;
use model::plan::{Buffers, EngineKind, JobPlan, Phase, Size};
use std::path::Path;

/// Mappings of a thread: its stack, the guard page below it.
const MAPPINGS: u64 = 2;

/// Refuses phases that need more memory, threads or files than there are.
///
/// # Errors
/// What is needed, what there is, and how to mend it.
pub fn check<'a>(phases: impl IntoIterator<Item = &'a Phase>) -> Result<()> {
    let machine = Machine::of(&Sysroot::at(Path::new("/")));
    phases.into_iter().try_for_each(|phase| machine.allows(Demand::of(&phase.jobs)))
}

/// What jobs that run at the same time need, at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Demand {
    /// Bytes.
    memory: u64,
    threads: u64,
    /// Open files of the copy with the most: each copy has its own table of descriptors.
    files: u64,
}

impl Demand {
    fn of(jobs: &[JobPlan]) -> Self {
        jobs.iter().fold(Self::default(), |sum, job| {
            let copies = u64::from(job.copies.max(1));
            Self {
                memory: sum.memory.saturating_add(memory_of(job).saturating_mul(copies)),
                threads: sum.threads.saturating_add(copies),
                files: sum.files.max(job.file_count() as u64),
            }
        })
    }
}

/// Bytes of the buffers of one copy, and of the memory that stands for its device.
fn memory_of(job: &JobPlan) -> u64 {
    let slot = job.slot_bytes().max(1).div_ceil(4096).saturating_mul(4096);
    let buffers = match job.engine.buffers() {
        Buffers::None => 0,
        Buffers::One => slot,
        Buffers::Each => slot.saturating_mul(job.depth.in_flight.into()),
    };
    let bytes = |size: Size| if let Size::Bytes(bytes) = size { bytes.0 } else { 0 };
    let device = [job.target.size.map_or(0, bytes), bytes(job.target.offset)];
    let device = device.into_iter().filter(|_| job.engine == EngineKind::Mem);
    device.chain([job.thread.locked_memory.0]).fold(buffers, u64::saturating_add)
}

/// What the machine, or the limits of this process, allow; `None` where there is no limit, or it is unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Machine {
    /// Bytes.
    memory: Option<u64>,
    threads: Option<(u64, &'static str)>,
    /// Open files of a process.
    files: Option<u64>,
}

impl Machine {
    fn of(root: &Sysroot) -> Self {
        Self { memory: memory::available(root), threads: threads(root), files: files_of_process() }
    }

    fn allows(&self, demand: Demand) -> Result<()> {
        let over = |needed: u64, most: Option<u64>| most.filter(|most| needed > *most);
        if let Some(most) = over(demand.memory, self.memory) {
            return Err(Error::Refused(format!(
                "the jobs need {} of memory at the same time, but the machine has {} available; use a smaller numjobs=, iodepth=, bs= \
                 or lockmem=, or for ioengine=mem a smaller size=",
                amount_of(demand.memory),
                amount_of(most)
            )));
        }
        if let Some((most, limit)) = self.threads.filter(|(most, _)| demand.threads > *most) {
            return Err(Error::Refused(format!(
                "the jobs need {} threads at the same time, but {limit} allows {most} more; use a smaller numjobs=, or raise the limit",
                demand.threads
            )));
        }
        if let Some(most) = over(demand.files, self.files) {
            return Err(Error::Refused(format!(
                "a job opens {} files at the same time, but the hard limit of open files leaves {most}; use fewer files, or raise \
                 ulimit -Hn",
                demand.files
            )));
        }
        Ok(())
    }
}

/// "1.5 GiB", or in MiB if it is less than one.
pub(crate) fn amount_of(bytes: u64) -> String {
    let units = [(1_u64 << 60, "EiB"), (1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1 << 20, "MiB"));
    format!("{:.1} {name}", bytes as f64 / unit as f64)
}

/// How many more threads can start, and what limits them.
fn threads(root: &Sysroot) -> Option<(u64, &'static str)> {
    let number = |path: &str| u64::try_from(root.number(path)?).ok();
    // "0.20 0.18 0.12 1/80 11206": tasks that run, and all of them.
    let running = root.text("proc/loadavg").and_then(|text| {
        let (_, all) = text.split_whitespace().nth(3)?.split_once('/')?;
        all.parse::<u64>().ok()
    });
    let more = |most: u64| most.saturating_sub(running.unwrap_or(0));
    let of_machine = number("proc/sys/kernel/threads-max").map(|most| (more(most), "kernel.threads-max"));
    let of_numbers = number("proc/sys/kernel/pid_max").map(|most| (more(most), "kernel.pid_max"));
    let of_mappings = number("proc/sys/vm/max_map_count").map(|most| (most / MAPPINGS, "vm.max_map_count"));
    let of_groups = memory::limits_of_threads(root).min().map(|most| (most, "pids.max of the control group"));
    // Root has no limit of its own.
    let of_user = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    let of_user = of_user.filter(|_| !rustix::process::geteuid().is_root()).map(|most| (most, "ulimit -u"));
    let all = [of_machine, of_numbers, of_mappings, of_groups, of_user];
    all.into_iter().flatten().min_by_key(|(most, _)| *most)
}

/// Files that a process can open, besides those that iotoll itself needs. The limit is raised to the hard one.
fn files_of_process() -> Option<u64> {
    const OWN: u64 = 64;
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.map(|most| most.saturating_sub(OWN).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Plan, Settings, parse};

    fn demand(text: &str) -> Demand {
        let flags: Vec<String> = format!("--name=a {text}").split(' ').map(|flag| flag.replace('~', " ")).collect();
        let plan: Plan = parse::flags(&flags, &Settings::default()).unwrap();
        Demand::of(&plan.phases[0].jobs)
    }

    #[test]
    fn buffers_of_all_copies_are_needed_at_the_same_time() {
        let deep = demand("--ioengine=io_uring --rw=read --size=4g --bs=1m --iodepth=1024 --numjobs=64");
        assert_eq!((deep.memory, deep.threads, deep.files), (64 << 30, 64, 1));
        // Its calls wait, so one buffer is enough.
        assert_eq!(demand("--ioengine=psync --rw=read --size=4g --bs=5000").memory, 8192);
        assert_eq!(demand("--ioengine=mem --rw=read --size=1g --bs=4k --numjobs=3").memory, 3 * ((1 << 30) + 4096));
        assert_eq!(demand("--ioengine=null --rw=read --size=1g --bs=1g --iodepth=1024").memory, 0);
        assert_eq!(demand("--rw=read --size=1m --filename=a:b:c --numjobs=2").files, 3);
        assert_eq!(demand("--rw=write --filesize=4k --nrfiles=1000 --numjobs=2").files, 1000);
    }

    #[test]
    fn more_than_there_is_is_refused_with_both_numbers() {
        let machine = Machine { memory: Some(2 << 30), threads: Some((100, "ulimit -u")), files: Some(9) };
        let enough = Demand { memory: 2 << 30, threads: 100, files: 9 };
        machine.allows(enough).unwrap();
        for (demand, words) in [
            (
                Demand { memory: 3 << 30, ..enough },
                ["need 3.0 GiB of memory", "has 2.0 GiB available", "smaller numjobs="],
            ),
            (Demand { threads: 101, ..enough }, ["need 101 threads", "ulimit -u allows 100 more", "smaller numjobs="]),
            (Demand { files: 10, ..enough }, ["opens 10 files", "leaves 9", "use fewer files"]),
        ] {
            let message = machine.allows(demand).unwrap_err().to_string();
            assert!(words.iter().all(|word| message.contains(word)) && !message.contains('\n'), "{message}");
        }
        Machine::default().allows(Demand { memory: u64::MAX, threads: u64::MAX, ..enough }).unwrap();
    }

    #[test]
    fn the_tightest_limit_of_threads_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/loadavg", "0.20 0.18 0.12 1/80 11206\n");
        write("proc/sys/kernel/threads-max", "1000\n");
        let root = Sysroot::at(folder.path());
        assert_eq!(threads(&root), Some((920, "kernel.threads-max")));
        write("proc/self/cgroup", "0::/job/step\n");
        write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write("sys/fs/cgroup/job/pids.max", "50\n");
        write("sys/fs/cgroup/job/pids.current", "20\n");
        write("sys/fs/cgroup/job/step/pids.max", "max\n");
        assert_eq!(threads(&root), Some((30, "pids.max of the control group")));
    }
}
