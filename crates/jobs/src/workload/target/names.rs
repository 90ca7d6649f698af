//! The names of a job's files.

use lab::created::absolute;
use lab::error::{Error, Result};
use model::plan::JobPlan;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The name of a job is that of its file if it has no `filename`. It may be in a folder, but not lead out of the current one.
pub(super) fn refuse_ascent(plan: &JobPlan) -> Result<()> {
    let stem = Path::new(plan.file_stem());
    let format = plan.files.name_format.as_deref().map(Path::new);
    let ascends = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    if plan.target.files.is_empty() && format.is_some_and(ascends) {
        let why = "filename_format leads out of the folder by '..'; use directory= for another one";
        return Err(Error::refused(plan, why));
    }
    if plan.target.files.is_empty() && ascends(stem) && stem.parent() != Some(Path::new("")) {
        let why = "without filename=, the name is that of the file, which '..' would put elsewhere; use another name, or add filename=";
        return Err(Error::refused(plan, why));
    }
    Ok(())
}

/// Refuses files that the kernel makes up: they are no storage, and a write to one changes a setting.
pub(super) fn refuse_files_of_the_kernel(plan: &JobPlan, path: &Path) -> Result<()> {
    let refused = |why: String| Err(Error::refused_file(plan, path, why));
    match file_system_of_the_kernel(path) {
        Some(kind) => refused(format!(
            "is in the file system {kind}, whose files the kernel makes up; use a file on storage, or on tmpfs"
        )),
        None if is_among_devices(path) => refused(
            "is no device; a file under that name would be in memory, and hide a device that comes later".to_owned(),
        ),
        None => Ok(()),
    }
}

/// The kind of a file system whose files the kernel makes up; `None` on any other.
pub(crate) fn file_system_of_the_kernel(path: &Path) -> Option<&'static str> {
    // From linux/magic.h.
    const MADE_UP: [(u64, &str); 8] = [
        (0x9fa0, "proc"),
        (0x6265_6572, "sysfs"),
        (0x6462_6720, "debugfs"),
        (0x7472_6163, "tracefs"),
        (0x0027_e0eb, "cgroup"),
        (0x6367_7270, "cgroup2"),
        (0xcafe_4a11, "bpf"),
        (0x7363_6673, "securityfs"),
    ];
    let absolute = absolute(path).ok()?;
    let there = absolute.ancestors().find(|path| path.exists())?;
    // A device or a pipe that such a file leads to is judged by itself.
    if there == absolute && !there.is_file() {
        return None;
    }
    let held = u64::try_from(rustix::fs::statfs(there).ok()?.f_type).ok()?;
    MADE_UP.iter().find(|(magic, _)| held == *magic).map(|(_, kind)| *kind)
}

/// Whether a file would be made among the device nodes of /dev. What is mounted below it (/dev/shm) is something else.
fn is_among_devices(path: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    let Ok(absolute) = absolute(path) else { return false };
    let folder = absolute.ancestors().skip(1).find(|folder| folder.exists());
    let nodes = device(Path::new("/dev"));
    let is_a_mount = nodes != device(Path::new("/"));
    is_a_mount && !absolute.exists() && folder.is_some_and(|folder| device(folder) == nodes)
}

/// The files of one copy of a job: those of `filename`, or else its own.
pub(crate) fn paths(plan: &JobPlan, copy: u32) -> Vec<PathBuf> {
    let names = match plan.target.files.as_slice() {
        // As in fio, a job with one file may have the name of a device, or of another file that is none of its own.
        [] if plan.file_count() == 1 && is_special(Path::new(plan.file_stem())) => vec![plan.file_stem().to_owned()],
        [] => (0..plan.file_count()).map(|number| own_name(plan, copy, number)).collect(),
        names => names.to_vec(),
    };
    // As in fio, a name that begins with a slash is in the directory too.
    let within = |name: String| match &plan.target.directory {
        Some(directory) => format!("{directory}/{name}"),
        None => name,
    };
    names.into_iter().map(|name| PathBuf::from(within(name))).collect()
}

/// Whether there is a device, a link or the like at a path. fio fails where there is a folder; a file beside it does no harm.
fn is_special(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The name of a file of a copy of a job without `filename`.
fn own_name(plan: &JobPlan, copy: u32, number: usize) -> String {
    let Some(format) = &plan.files.name_format else { return format!("{}.{copy}.{number}", plan.file_stem()) };
    // Parsing has refused other words. The name of the job may contain any, so it comes last.
    let name = format.replace("$jobnum", &copy.to_string()).replace("$filenum", &number.to_string());
    name.replace("$clientuid", "").replace("$jobname", plan.file_stem())
}
