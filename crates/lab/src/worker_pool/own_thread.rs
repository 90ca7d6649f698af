//! What a worker sets for its own thread: CPUs, priorities, memory policy, locked memory.

use crate::error::{Error, Result};
use model::plan::{JobPlan, MemoryPolicy};
use std::collections::BTreeSet;
use sys::buffer::AlignedBuffer;
use sys::schedule;

/// Sets up the calling thread for a job. Returns the memory that it locks while it runs.
///
/// # Errors
/// What the kernel refused, and the option that asked for it.
pub(super) fn set_up(plan: &JobPlan) -> Result<Option<AlignedBuffer>> {
    let failed = |option: &'static str| move |error| Error::job(&plan.name, option, error);
    let thread = &plan.thread;
    let cpus = cpus(plan)?;
    if !cpus.is_empty() {
        schedule::pin_to(&cpus).map_err(failed("cpus_allowed"))?;
    }
    let policy = match &thread.memory {
        MemoryPolicy::Default => None,
        MemoryPolicy::Local => Some((schedule::Memory::Local, [].as_slice())),
        MemoryPolicy::Prefer(node) => Some((schedule::Memory::Prefer, std::slice::from_ref(node))),
        MemoryPolicy::Bind(nodes) => Some((schedule::Memory::Bind, nodes.as_slice())),
        MemoryPolicy::Interleave(nodes) => Some((schedule::Memory::Interleave, nodes.as_slice())),
    };
    if let Some((policy, nodes)) = policy {
        schedule::set_memory_policy(policy, nodes).map_err(failed("numa_mem_policy"))?;
    }
    if thread.nice != 0 {
        schedule::set_nice(thread.nice).map_err(failed("nice"))?;
    }
    if let Some((class, level)) = thread.io_priority {
        schedule::set_io_priority(class, level).map_err(failed("prioclass"))?;
    }
    let locked = usize::try_from(thread.locked.0).unwrap_or(usize::MAX);
    let buffer = (locked > 0).then(|| AlignedBuffer::locked(locked));
    buffer.transpose().map_err(failed("lockmem (run as root, or raise ulimit -l)"))
}

/// The CPUs of `cpus_allowed` and of the nodes of `numa_cpu_nodes`; empty means all.
fn cpus(plan: &JobPlan) -> Result<Vec<u32>> {
    let mut cpus: BTreeSet<u32> = BTreeSet::new();
    for node in &plan.thread.nodes {
        let of_node = schedule::cpus_of_node(*node);
        cpus.extend(of_node.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::Refused(format!(
                "job '{}': numa_cpu_nodes: this machine has no node {node}; see /sys/devices/system/node/online",
                plan.name
            )),
            _ => Error::job(&plan.name, format!("numa_cpu_nodes: node {node}"), error),
        })?);
    }
    let given = &plan.cpus_allowed;
    match (given.is_empty(), cpus.is_empty()) {
        (_, true) => Ok(given.clone()),
        (true, false) => Ok(cpus.into_iter().collect()),
        (false, false) => Ok(given.iter().copied().filter(|cpu| cpus.contains(cpu)).collect()),
    }
}
