//! The thread that does a job's I/O: its CPUs, its priorities, its memory.

use super::{MANY_64, one_of};
use crate::plan::job::MemoryPolicy;
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{LARGEST_CPU, Wrong, cpus, integer_in, typed};
use crate::unit::Bytes;

/// I/O priority classes and levels of Linux: none, real time, best effort, idle; 0 is the highest level.
const CLASSES: u64 = 3;
const LEVELS: u64 = 7;
/// The largest number: no machine has more.
const MOST_LOCKED: u64 = 1 << 50;
/// Best effort: the class of a priority without a class.
const BEST_EFFORT: u8 = 2;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "cpus_allowed",
        help: "Pin the job's threads to these CPUs",
        default: Default::Words("all CPUs"),
        role: Role::Work,
        example: "0-3,5",
        bad_example: "3-0",
        get: |job| typed::list(&job.cpus_allowed, ","),
        set: Text("CPU numbers and ranges, 0 to 1023", |draft, text| {
            cpus(text).map(|cpus| draft.job.cpus_allowed = cpus)
        }),
        ..PLAIN
    },
    JobOption {
        name: "cpumask",
        help: "The same as a bit mask: 5 is CPUs 0 and 2. The later of the two wins",
        default: Default::Words("all CPUs"),
        role: Role::Other,
        example: "0x5",
        bad_example: "0",
        get: |_| None,
        set: Number("as a mask of CPUs", 1..=0xffff_ffff, |draft, mask| {
            draft.job.cpus_allowed = (0..=LARGEST_CPU.min(31)).filter(|cpu| mask >> cpu & 1 == 1).collect();
        }),
        ..PLAIN
    },
    JobOption {
        name: "cpus_allowed_policy",
        help: "Whether all threads may use all of cpus_allowed, or take turns among them, one CPU for each",
        default: Default::Value("shared"),
        role: Role::Work,
        example: "split",
        bad_example: "apart",
        get: |job| Some(if job.thread.one_cpu_each { "split" } else { "shared" }.to_owned()),
        set: Choice(
            || "shared, split".to_owned(),
            |draft, text| one_of(text, &["shared", "split"]).map(|()| draft.job.thread.one_cpu_each = text == "split"),
        ),
        ..PLAIN
    },
    JobOption {
        name: "numa_cpu_nodes",
        help: "Pin the job's threads to the CPUs of these NUMA nodes",
        default: Default::Words("all nodes"),
        role: Role::Work,
        example: "0-1",
        bad_example: "1-0",
        get: |job| typed::list(&job.thread.nodes, ","),
        set: Text("numbers and ranges of nodes", |draft, text| cpus(text).map(|nodes| draft.job.thread.nodes = nodes)),
        ..PLAIN
    },
    JobOption {
        name: "numa_mem_policy",
        help: "The NUMA nodes whose memory the job's threads get",
        default: Default::Value("default"),
        role: Role::Work,
        example: "bind:0",
        bad_example: "bind",
        get: |job| {
            let listed = |nodes: &[u32]| typed::list(nodes, ",").unwrap_or_default();
            Some(match &job.thread.memory {
                MemoryPolicy::Default => "default".to_owned(),
                MemoryPolicy::Local => "local".to_owned(),
                MemoryPolicy::Prefer(node) => format!("prefer:{node}"),
                MemoryPolicy::Bind(nodes) => format!("bind:{}", listed(nodes)),
                MemoryPolicy::Interleave(nodes) => format!("interleave:{}", listed(nodes)),
            })
        },
        set: Text("default, local, prefer:NODE, bind:NODES or interleave:NODES", |draft, text| {
            memory_policy(text).map(|policy| draft.job.thread.memory = policy)
        }),
        ..PLAIN
    },
    JobOption {
        name: "nice",
        help: "CPU priority of the job's threads, −20 (highest) to 19",
        default: Default::Value("0"),
        role: Role::Work,
        example: "10",
        bad_example: "20",
        get: |job| Some(job.thread.nice.to_string()),
        set: Text("a whole number from -20 to 19", |draft, text| match text.parse::<i8>() {
            Ok(nice) if (-20..=19).contains(&nice) => {
                draft.job.thread.nice = nice;
                Ok(())
            }
            _ => Err(Wrong::because(text, "is out of range")),
        }),
        ..PLAIN
    },
    JobOption {
        name: "prioclass",
        help: "I/O priority class of the job's threads: 0 none, 1 real time, 2 best effort, 3 idle",
        default: Default::Words("as inherited"),
        role: Role::Work,
        example: "2",
        bad_example: "4",
        get: |job| job.thread.io_priority.map(|(class, _)| class.to_string()),
        set: Number("as a class", 0..=CLASSES, |draft, class| {
            let level = draft.job.thread.io_priority.map_or(0, |(_, level)| level);
            draft.job.thread.io_priority = Some((u8::try_from(class).unwrap_or(BEST_EFFORT), level));
        }),
        ..PLAIN
    },
    JobOption {
        name: "prio",
        help: "I/O priority of the job's threads within their class, 0 (highest) to 7. Without prioclass, that of best effort",
        default: Default::Words("as inherited"),
        role: Role::Other,
        example: "4",
        bad_example: "8",
        get: |_| None,
        set: Number("as a priority", 0..=LEVELS, |draft, level| {
            let class = draft.job.thread.io_priority.map_or(BEST_EFFORT, |(class, _)| class);
            draft.job.thread.io_priority = Some((class, u8::try_from(level).unwrap_or(0)));
        }),
        ..PLAIN
    },
    JobOption {
        name: "mem",
        aliases: &["iomem"],
        help: "The memory of the buffers: small pages, or with mmaphuge and shmhuge the reserved huge pages of the machine (vm.nr_hugepages)",
        default: Default::Value("malloc"),
        role: Role::Work,
        example: "mmaphuge",
        bad_example: "stack",
        get: |job| Some(if job.thread.huge_pages { "mmaphuge" } else { "malloc" }.to_owned()),
        set: Choice(
            || "malloc, shm, shmhuge, mmap, mmapshared, mmaphuge".to_owned(),
            |draft, text| {
                one_of(text, &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"])?;
                draft.job.thread.huge_pages = text.ends_with("huge");
                Ok(())
            },
        ),
        ..PLAIN
    },
    JobOption {
        name: "lockmem",
        help: "Take this much memory away from the machine: each thread of the job locks it for as long as it runs",
        default: Default::Value("0"),
        role: Role::Work,
        example: "64m",
        bad_example: "much",
        get: |job| Some(typed::bytes(job.thread.locked.0)),
        set: Number("bytes", 0..=MOST_LOCKED, |draft, bytes| draft.job.thread.locked = Bytes(bytes)),
        ..PLAIN
    },
    JobOption {
        name: "iomem_align",
        aliases: &["mem_align"],
        help: "Accepted up to 4096 without effect: each buffer begins a page",
        default: Default::Words("a page"),
        role: Role::Nothing,
        example: "512",
        bad_example: "8k",
        get: |_| None,
        set: Number("bytes", 0..=4096, |_, _| {}),
        ..PLAIN
    },
    JobOption {
        name: "hugepage-size",
        help: "Accepted without effect: the size of the reserved huge pages is the machine's",
        default: Default::Words("the machine's"),
        role: Role::Nothing,
        example: "2m",
        bad_example: "big",
        get: |_| None,
        set: Number("bytes", 1..=MANY_64, |_, _| {}),
        ..PLAIN
    },
];

fn memory_policy(text: &str) -> Result<MemoryPolicy, Wrong> {
    let (mode, nodes) = text.split_once(':').map_or((text, None), |(mode, nodes)| (mode, Some(nodes)));
    match (mode, nodes) {
        ("default", None) => Ok(MemoryPolicy::Default),
        ("local", None) => Ok(MemoryPolicy::Local),
        ("prefer", Some(node)) => {
            let node = integer_in(node, &(0..=LARGEST_CPU.into()))?;
            Ok(MemoryPolicy::Prefer(u32::try_from(node).unwrap_or(0)))
        }
        // fio has `all`; an empty list means that here.
        ("bind", Some("all")) | ("interleave", Some("all")) => Err(Wrong::because(text, "names no node; list them")),
        ("bind", Some(nodes)) => cpus(nodes).map(MemoryPolicy::Bind),
        ("interleave", Some(nodes)) => cpus(nodes).map(MemoryPolicy::Interleave),
        _ => Err(Wrong::because(text, "is no memory policy")),
    }
}
