//! The control groups of a process, in both versions: their names, and the folders in which the kernel shows them.

use crate::sysroot::Sysroot;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// A control group.
pub(crate) struct ControlGroup {
    /// As /proc/PID/cgroup names it.
    pub(crate) name: String,
    /// Its folder, without the leading slash.
    pub(crate) folder: String,
}

impl ControlGroup {
    /// Path of a file of it.
    pub(crate) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// A file of it as text.
    pub(crate) fn text(&self, root: &Sysroot, name: &str) -> Option<String> {
        root.text(&self.file(name))
    }
}

/// The groups of a process (its number, or `self`) in the hierarchy of this controller, the innermost first, up to the topmost that is
/// mounted here: those of version 1 if it has the controller, else those of version 2, which is asked for by an empty name.
pub(crate) fn of(root: &Sysroot, process: &str, controller: &str) -> Vec<ControlGroup> {
    let groups = root.text(&format!("proc/{process}/cgroup")).unwrap_or_default();
    let mounts = root.text("proc/self/mountinfo").unwrap_or_default();
    let found = in_hierarchy(&groups, &mounts, controller).or_else(|| in_hierarchy(&groups, &mounts, ""));
    found.unwrap_or_default()
}

fn in_hierarchy(groups: &str, mounts: &str, controller: &str) -> Option<Vec<ControlGroup>> {
    // `4:memory:/job`, cgroups(7).
    let path = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        fields.next()?.split(',').find(|name| *name == controller)?;
        fields.next()
    })?;
    // A process outside the namespace of this one has a path with `..`, which leads elsewhere from here.
    let path = Some(Path::new(path)).filter(|path| !path.components().any(|part| part == Component::ParentDir))?;
    let mut mounted = mounts.lines().filter_map(|line| mounted(line, controller));
    let (point, below) = mounted.find_map(|(top, point)| Some((point, path.strip_prefix(top).ok()?)))?;
    let group = |(name, below): (&Path, &Path)| ControlGroup {
        name: name.display().to_string(),
        folder: Path::new(point.trim_start_matches('/')).join(below).display().to_string(),
    };
    Some(path.ancestors().zip(below.ancestors()).map(group).collect())
}

/// Topmost group and mount point of a line of mountinfo that describes this hierarchy, proc_pid_mountinfo(5).
fn mounted<'a>(line: &'a str, controller: &str) -> Option<(&'a str, &'a str)> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (top, point) = (fields.next()?, fields.next()?);
    let mut fields = after.split(' ');
    let (kind, options) = (fields.next()?, fields.nth(1)?);
    let is_it = match controller {
        "" => kind == "cgroup2",
        name => kind == "cgroup" && options.split(',').any(|option| option == name),
    };
    is_it.then_some((top, point))
}

/// How long a group may still have processes that are ending.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The folder of the group that this process runs in, if cgroup v2 is mounted.
pub(crate) fn own() -> Option<PathBuf> {
    let root = Path::new("/");
    Some(root.join(&of(&Sysroot::at(root), "self", "").first()?.folder))
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
pub(crate) mod tests {
    use super::*;
    use crate::doctor::fixture::Fixture;
    use std::fs;

    /// Version 1 for CPU time, memory and I/O, version 2 beside it, as in this machine's container `job`.
    pub(crate) const VERSION_1: [(&str, &str); 2] = [
        ("proc/self/cgroup", "9:blkio:/job\n7:cpu,cpuacct:/job/step\n4:memory:/job\n0::/\n"),
        (
            "proc/self/mountinfo",
            "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
             38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n",
        ),
    ];
    /// Version 2 only, of which a part is mounted.
    pub(crate) const VERSION_2: [(&str, &str); 2] = [
        ("proc/self/cgroup", "0::/slice/job/step\n"),
        ("proc/self/mountinfo", "30 23 0:26 /slice /sys/fs/cgroup ro,relatime - cgroup2 cgroup2 rw\n"),
    ];

    /// A machine with these files, or none of them where the folder is dropped.
    pub(crate) fn machine(files: &[&[(&str, &str)]]) -> (Fixture, Sysroot) {
        let fixture = Fixture::new();
        files.iter().copied().flatten().for_each(|(path, text)| fixture.write(path, text));
        let root = Sysroot::at(fixture.path());
        (fixture, root)
    }

    fn found(files: &[(&str, &str)], controller: &str) -> Vec<(String, String)> {
        let (_folder, root) = machine(&[files]);
        of(&root, "self", controller).into_iter().map(|group| (group.name, group.folder)).collect()
    }

    #[test]
    fn each_version_has_its_groups_up_to_what_is_mounted() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, folder)| ((*name).to_owned(), (*folder).to_owned())).collect()
        };
        let cpu = pairs(&[
            ("/job/step", "sys/fs/cgroup/cpu,cpuacct/job/step"),
            ("/job", "sys/fs/cgroup/cpu,cpuacct/job"),
            ("/", "sys/fs/cgroup/cpu,cpuacct/"),
        ]);
        assert_eq!(found(&VERSION_1, "cpu"), cpu);
        assert_eq!(found(&VERSION_1, "pids"), pairs(&[("/", "sys/fs/cgroup/unified/")]), "version 2 has the rest");
        let all = pairs(&[
            ("/slice/job/step", "sys/fs/cgroup/job/step"),
            ("/slice/job", "sys/fs/cgroup/job"),
            ("/slice", "sys/fs/cgroup/"),
        ]);
        assert_eq!(found(&VERSION_2, "memory"), all);
        assert_eq!(found(&VERSION_2, ""), all);
        assert_eq!(found(&[("proc/self/cgroup", "0::/../other\n"), VERSION_2[1]], "cpu"), []);
        assert_eq!(found(&[("proc/self/cgroup", "0::/elsewhere\n"), VERSION_2[1]], "cpu"), []);
        assert_eq!(found(&[], "cpu"), []);
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
