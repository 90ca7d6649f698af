//! The thread that does a job's I/O: its CPUs, its priorities, its memory.

use super::*;

/// I/O priority classes and levels of Linux: none, real time, best effort, idle; 0 is the highest level.
const CLASSES: u64 = 3;
const LEVELS: u64 = 7;
/// The largest number: no machine has more.
const MOST_LOCKED: u64 = 1 << 50;
/// Best effort: the class of a priority without a class.
const BEST_EFFORT: u8 = 2;

pub(super) static OPTIONS: &[JobOption] = &[
    work("cpus_allowed", Words("all CPUs"), "0-3,5", "3-0")
        .help("Pin the job's threads to these CPUs")
        .text("CPU numbers and ranges, 0 to 1023", parsed!(cpus_allowed, cpus)),
    other("cpumask", Words("all CPUs"), "0x5", "0")
        .help("The same as a bit mask: 5 is CPUs 0 and 2. The later of the two wins")
        .number(
            "as a mask of CPUs",
            1..=0xffff_ffff,
            unshown(|draft, mask| {
                draft.job.cpus_allowed = (0..=LARGEST_CPU.min(31)).filter(|cpu| mask >> cpu & 1 == 1).collect();
            }),
        ),
    work("cpus_allowed_policy", Is("shared"), "split", "apart")
        .help("Whether all threads may use all of cpus_allowed, or take turns among them, one CPU for each")
        .one_of(
            &["shared", "split"],
            place(
                |job| shown(if job.thread.one_cpu_each { "split" } else { "shared" }),
                |draft, text| draft.job.thread.one_cpu_each = text == "split",
            ),
        ),
    work("numa_cpu_nodes", Words("all nodes"), "0-1", "1-0")
        .help("Pin the job's threads to the CPUs of these NUMA nodes")
        .text("numbers and ranges of nodes", parsed!(thread.nodes, cpus)),
    work("numa_mem_policy", Is("default"), "bind:0", "bind")
        .help("The NUMA nodes whose memory the job's threads get")
        .text("default, local, prefer:NODE, bind:NODES or interleave:NODES", parsed!(thread.memory, memory_policy)),
    work("nice", Is("0"), "10", "20")
        .help("CPU priority of the job's threads, −20 (highest) to 19")
        .text("a whole number from -20 to 19", parsed!(thread.nice, nice)),
    work("prioclass", Words("as inherited"), "2", "4")
        .help("I/O priority class of the job's threads: 0 none, 1 real time, 2 best effort, 3 idle")
        .number(
            "as a class",
            0..=CLASSES,
            place(
                |job| job.thread.io_priority.map(|(class, _)| class.to_string()),
                |draft, class| {
                    let level = draft.job.thread.io_priority.map_or(0, |(_, level)| level);
                    draft.job.thread.io_priority = Some((u8::try_from(class).unwrap_or(BEST_EFFORT), level));
                },
            ),
        ),
    other("prio", Words("as inherited"), "4", "8")
        .help(
            "I/O priority of the job's threads within their class, 0 (highest) to 7. Without prioclass, that of \
             best effort",
        )
        .number(
            "as a priority",
            0..=LEVELS,
            unshown(|draft, level| {
                let class = draft.job.thread.io_priority.map_or(BEST_EFFORT, |(class, _)| class);
                draft.job.thread.io_priority = Some((class, u8::try_from(level).unwrap_or(0)));
            }),
        ),
    work("mem", Is("malloc"), "mmaphuge", "stack")
        .help(
            "The memory of the buffers: small pages, or with mmaphuge and shmhuge the reserved huge pages of the \
             machine (vm.nr_hugepages)",
        )
        .also(&["iomem"])
        .one_of(
            &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"],
            place(
                |job| shown(if job.thread.huge_pages { "mmaphuge" } else { "malloc" }),
                |draft, text| draft.job.thread.huge_pages = text.ends_with("huge"),
            ),
        ),
    work("lockmem", Is("0"), "64m", "much")
        .help("Take this much memory away from the machine: each thread of the job locks it for as long as it runs")
        .number("bytes", 0..=MOST_LOCKED, field!(thread.locked)),
    nothing("iomem_align", Words("a page"), "512", "8k")
        .help("Accepted up to 4096 without effect: each buffer begins a page")
        .also(&["mem_align"])
        .number("bytes", 0..=4096, nowhere!()),
    nothing("hugepage-size", Words("the machine's"), "2m", "big")
        .help("Accepted without effect: the size of the reserved huge pages is the machine's")
        .number("bytes", 1..=MANY_64, nowhere!()),
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

fn nice(text: &str) -> Result<i8, Wrong> {
    let nice = text.parse().ok().filter(|nice| (-20..=19).contains(nice));
    nice.ok_or_else(|| Wrong::because(text, "is out of range"))
}
