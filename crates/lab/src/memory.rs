//! How much memory files may fill: what the machine has available, and the limits of this process's control groups.

use crate::control_groups::{self, ControlGroup};
use crate::sysroot::Sysroot;

/// Bytes that can be used without evicting anything; `None` if the kernel does not report it.
pub fn available(root: &Sysroot) -> Option<u64> {
    let groups = limits(root).min();
    available_in_machine(root).into_iter().chain(groups).min()
}

fn available_in_machine(root: &Sysroot) -> Option<u64> {
    let text = root.text("proc/meminfo")?;
    let value = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The limit of each control group of this process, up to the root: memory.max in version 2, memory.limit_in_bytes in
/// version 1.
fn limits(root: &Sysroot) -> impl Iterator<Item = u64> {
    let groups = control_groups::of(root, "self", "memory").into_iter();
    groups
        .filter_map(|group| ["memory.max", "memory.limit_in_bytes"].iter().find_map(|file| number(root, &group, file)))
}

/// How many more threads each control group of this process allows, up to the root: pids.max less pids.current.
pub fn limits_of_threads(root: &Sysroot) -> impl Iterator<Item = u64> {
    let groups = control_groups::of(root, "self", "pids").into_iter();
    groups.filter_map(|group| {
        let most = number(root, &group, "pids.max")?;
        Some(most.saturating_sub(number(root, &group, "pids.current").unwrap_or(0)))
    })
}

fn number(root: &Sysroot, group: &ControlGroup, file: &str) -> Option<u64> {
    group.text(root, file)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_groups::tests::{VERSION_1, VERSION_2, machine};

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable:  1000000 kB\n");

    #[test]
    fn without_a_group_the_machine_s_memory_counts() {
        let (_folder, root) = machine(&[&[MEMINFO]]);
        assert_eq!(available(&root), Some(1_024_000_000));
        let (_folder, root) = machine(&[]);
        assert_eq!(available(&root), None);
    }

    #[test]
    fn a_group_of_either_version_or_one_above_it_limits_it() {
        let (_folder, root) = machine(&[
            &VERSION_2,
            &[MEMINFO, ("sys/fs/cgroup/job/step/memory.max", "max\n"), ("sys/fs/cgroup/job/memory.max", "268435456\n")],
        ]);
        assert_eq!(available(&root), Some(256 << 20));
        let (_folder, root) = machine(&[
            &VERSION_1,
            &[
                MEMINFO,
                ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "134217728\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ],
        ]);
        assert_eq!(available(&root), Some(128 << 20));
    }
}
