//! The thread that does a job's I/O: its CPUs, its priorities, its memory.

use super::*;

/// I/O priority classes and levels of Linux: none, real time, best effort, idle; 0 is the highest level.
const CLASSES: u64 = 3;
const LEVELS: u64 = 7;
/// The largest number: no machine has more.
const MOST_LOCKED: u64 = 1 << 50;
/// Best effort: the class of a priority without a class.
const BEST_EFFORT: u8 = 2;

const MEMORIES: &[&str] = &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"];

pub(super) static OPTIONS: &[JobOption] = &[
    work("cpus_allowed", text(parsed!(cpus_allowed, cpus)), Words("all CPUs"), "0-3,5", "3-0")
        .form("CPU numbers and ranges, 0 to 1023")
        .help("Pin the job's threads to these CPUs"),
    other("cpumask", number("as a mask of CPUs", 1..=0xffff_ffff, CPUMASK), Words("all CPUs"), "0x5", "0")
        .help("The same as a bit mask: 5 is CPUs 0 and 2. The later of the two wins"),
    work("cpus_allowed_policy", one_of(&["shared", "split"], CPUS_ALLOWED_POLICY), Is("shared"), "split", "apart")
        .help("Whether all threads may use all of cpus_allowed, or take turns among them, one CPU for each"),
    work("numa_cpu_nodes", text(parsed!(thread.nodes, cpus)), Words("all nodes"), "0-1", "1-0")
        .form("numbers and ranges of nodes")
        .help("Pin the job's threads to the CPUs of these NUMA nodes"),
    work("numa_mem_policy", text(parsed!(thread.memory, memory_policy)), Is("default"), "bind:0", "bind")
        .form("default, local, prefer:NODE, bind:NODES or interleave:NODES")
        .help("The NUMA nodes whose memory the job's threads get"),
    work("nice", text(parsed!(thread.nice, nice)), Is("0"), "10", "20")
        .form("a whole number from -20 to 19")
        .help("CPU priority of the job's threads, −20 (highest) to 19"),
    work("prioclass", number("as a class", 0..=CLASSES, PRIOCLASS), Words("as inherited"), "2", "4")
        .help("I/O priority class of the job's threads: 0 none, 1 real time, 2 best effort, 3 idle"),
    other("prio", number("as a priority", 0..=LEVELS, PRIO), Words("as inherited"), "4", "8").help(
        "I/O priority of the job's threads within their class, 0 (highest) to 7. Without prioclass, that of \
         best effort",
    ),
    work("mem", one_of(MEMORIES, MEM), Is("malloc"), "mmaphuge", "stack").also(&["iomem"]).help(
        "The memory of the buffers: small pages, or with mmaphuge and shmhuge the reserved huge pages of the \
         machine (vm.nr_hugepages)",
    ),
    work("lockmem", number("bytes", 0..=MOST_LOCKED, field!(thread.locked)), Is("0"), "64m", "much")
        .help("Take this much memory away from the machine: each thread of the job locks it for as long as it runs"),
    nothing("iomem_align", number("bytes", 0..=4096, nowhere!()), Words("a page"), "512", "8k")
        .also(&["mem_align"])
        .help("Accepted up to 4096 without effect: each buffer begins a page"),
    nothing("hugepage-size", number("bytes", 1..=MANY_64, nowhere!()), Words("the machine's"), "2m", "big")
        .help("Accepted without effect: the size of the reserved huge pages is the machine's"),
];

// Places that are no fields.
const CPUMASK: Place<Set<u64>> = unshown(|draft, mask| {
    draft.job.cpus_allowed = (0..=LARGEST_CPU.min(31)).filter(|cpu| mask >> cpu & 1 == 1).collect();
});
const CPUS_ALLOWED_POLICY: Place<SetWord> = place(
    |job| shown(if job.thread.one_cpu_each { "split" } else { "shared" }),
    |draft, text| draft.job.thread.one_cpu_each = text == "split",
);
const PRIOCLASS: Place<Set<u64>> = place(
    |job| job.thread.io_priority.map(|(class, _)| class.to_string()),
    |draft, class| {
        let level = draft.job.thread.io_priority.map_or(0, |(_, level)| level);
        draft.job.thread.io_priority = Some((u8::try_from(class).unwrap_or(BEST_EFFORT), level));
    },
);
const PRIO: Place<Set<u64>> = unshown(|draft, level| {
    let class = draft.job.thread.io_priority.map_or(BEST_EFFORT, |(class, _)| class);
    draft.job.thread.io_priority = Some((class, u8::try_from(level).unwrap_or(0)));
});
const MEM: Place<SetWord> = place(
    |job| shown(if job.thread.huge_pages { "mmaphuge" } else { "malloc" }),
    |draft, text| draft.job.thread.huge_pages = text.ends_with("huge"),
);

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
