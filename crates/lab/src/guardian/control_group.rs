//! Control groups (cgroup v2) that iotoll makes: finds the group that it runs in, and removes those that it made.

use crate::control_groups;
use crate::sysroot::Sysroot;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a group may still have processes that are ending.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The folder of the group that this process runs in, if cgroup v2 is mounted.
pub(crate) fn own() -> Option<PathBuf> {
    let root = Path::new("/");
    Some(root.join(&control_groups::of(&Sysroot::at(root), "self", "").first()?.folder))
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
    fn a_group_that_is_gone_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("group/below")).unwrap();
        remove(&folder.path().join("group")).unwrap();
        remove(&folder.path().join("group")).unwrap();
        assert!(!folder.path().join("group").exists());
    }
}
