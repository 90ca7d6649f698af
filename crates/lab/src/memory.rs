//! How much memory files may fill: what the machine has available, and the limits of this process's control groups.

use crate::sysroot::Sysroot;
use std::path::{Path, PathBuf};

/// Bytes that can be used without evicting anything; `None` if the kernel does not report it.
pub(crate) fn available(root: &Sysroot) -> Option<u64> {
    let groups = limits(root).min();
    available_in_machine(root).into_iter().chain(groups).min()
}

fn available_in_machine(root: &Sysroot) -> Option<u64> {
    let text = root.text("proc/meminfo")?;
    let value = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The limit of each control group of this process, up to the root: memory.max in version 2, memory.limit_in_bytes in
/// version 1. A container sees its own group as the root.
fn limits(root: &Sysroot) -> impl Iterator<Item = u64> {
    let text = root.text("proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (mounts, file): (&[&str], &str) = match controllers {
            "" => (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (&["sys/fs/cgroup/memory"], "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let inside = Path::new(path.trim_start_matches('/'));
        for mount in mounts {
            let groups = inside.ancestors().map(|group| PathBuf::from(mount).join(group).join(file));
            found.extend(groups.filter_map(|file| root.text(file.to_str()?)?.parse::<u64>().ok()));
        }
    }
    found.into_iter()
}

/// How many more threads each control group of this process allows, up to the root: pids.max less pids.current.
pub(crate) fn limits_of_threads(root: &Sysroot) -> impl Iterator<Item = u64> {
    let text = root.text("proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mount = match controllers {
            "" => "sys/fs/cgroup",
            names if names.split(',').any(|name| name == "pids") => "sys/fs/cgroup/pids",
            _ => continue,
        };
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let number = |file: &str| root.text(Path::new(mount).join(group).join(file).to_str()?)?.parse::<u64>().ok();
            found.extend(number("pids.max").map(|most| most.saturating_sub(number("pids.current").unwrap_or(0))));
        }
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Sysroot) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Sysroot::at(folder.path());
        (folder, root)
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable:  1000000 kB\n");

    #[test]
    fn without_a_group_the_machine_s_memory_counts() {
        let (_folder, root) = machine(&[MEMINFO]);
        assert_eq!(available(&root), Some(1_024_000_000));
        let (_folder, root) = machine(&[]);
        assert_eq!(available(&root), None);
    }

    #[test]
    fn a_group_of_either_version_or_one_above_it_limits_it() {
        let (_folder, root) = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("sys/fs/cgroup/job/memory.max", "268435456\n"),
        ]);
        assert_eq!(available(&root), Some(256 << 20));
        let (_folder, root) = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "7:cpu:/job\n4:memory:/job\n0::/\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "134217728\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(available(&root), Some(128 << 20));
    }
}
