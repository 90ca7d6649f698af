//! Control groups (cgroup v2) that iotoll makes: finds the group that it runs in, and removes those that it made.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a group may still have processes that are ending.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The folder of the group that this process runs in, if cgroup v2 is mounted.
pub(crate) fn own() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (root, point) = mounts.lines().find_map(mounted)?;
    // The line of the unified hierarchy, cgroups(7).
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(group).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

/// Root and mount point of a line of mountinfo that describes cgroup v2, proc_pid_mountinfo(5).
fn mounted(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    (after.split(' ').next() == Some("cgroup2")).then_some((root, point))
}

/// Ends every process in a group, frozen ones too, and removes it with the groups in it. It is not an error if there is
/// none.
///
/// # Errors
/// What could not be removed, in words.
pub(crate) fn remove(path: &Path) -> Result<(), String> {
    let below = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    for group in below.filter(|path| path.is_dir()) {
        remove(&group)?;
    }
    let begun = Instant::now();
    loop {
        // Since Linux 5.14; on earlier kernels the processes are found by their mark.
        let _ = write(path, "cgroup.kill", "1");
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if begun.elapsed() > TIMEOUT => return Err(format!("{}: {error}", path.display())),
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Writes to a file of a group, which must exist.
pub(crate) fn write(path: &Path, file: &str, text: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path.join(file))?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_unified_hierarchy_is_found() {
        let line = "36 24 0:31 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(mounted(line), Some(("/", "/sys/fs/cgroup/unified")));
        assert_eq!(mounted("37 24 0:32 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer"), None);
        assert_eq!(mounted(""), None);
    }

    #[test]
    fn a_group_that_is_gone_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("group/below")).unwrap();
        remove(&folder.path().join("group")).unwrap();
        remove(&folder.path().join("group")).unwrap();
        assert!(!folder.path().join("group").exists());
    }
}
