//! Refuses a run whose files have two roles of which one destroys the other: job files and traces that are read, the files of jobs, logs,
//! and the file of the result. Files are compared by what they are, not by their names: links lead to the same file.

use crate::workload::target;
use lab::error::{Error, Result};
use model::plan::{JobPlan, LogKind, Medium, Plan};
use rustix::fs::Access;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file, whatever its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    /// Device and inode.
    There(u64, u64),
    /// Its path without links, of a file that is not there.
    Path(PathBuf),
}

/// The files of a run that no log and no result may replace.
struct InUse {
    /// Job files, and traces that are replayed.
    inputs: HashSet<Identity>,
    of_jobs: HashSet<Identity>,
}

/// The logs of a run so far: each with its kind and name.
type Logs = HashMap<Identity, (LogKind, String)>;

/// Refuses files that one of their roles would destroy: job files, files of jobs, logs, the file of the result; and logs that cannot be written.
///
/// # Errors
/// The first of them.
pub fn check(plan: &Plan, job_files: &[&Path], output: Option<&Path>) -> Result<()> {
    let in_use = InUse::of(plan, job_files)?;
    let mut logs = Logs::new();
    for (number, job) in plan.copies() {
        for (kind, file) in job.log_files(number) {
            check_log(job, kind, &file, &in_use, &mut logs)?;
        }
        if job.logs.trace.is_some() {
            check_trace(job)?;
        }
    }
    output.map_or(Ok(()), |output| check_output(output, &in_use, &logs))
}

impl InUse {
    fn of(plan: &Plan, job_files: &[&Path]) -> Result<Self> {
        let jobs =
            || plan.phases.iter().flat_map(|phase| &phase.jobs).filter(|job| job.engine.medium() == Medium::Files);
        let traces = jobs().flat_map(|job| &job.replay.traces).map(|trace| Identity::of(Path::new(trace)));
        let inputs: HashSet<Identity> = job_files.iter().map(|file| Identity::of(file)).chain(traces).collect();
        let mut of_jobs = HashSet::new();
        for job in jobs() {
            for copy in 0..job.copies.max(1) {
                for path in target::paths(job, copy) {
                    let file = Identity::of(&path);
                    if job.access.changes() && inputs.contains(&file) {
                        let why =
                            "is a job file or a trace that is replayed, and the job writes to it; use another file";
                        return Err(Error::refused_file(job, &path, why));
                    }
                    of_jobs.insert(file);
                }
            }
        }
        Ok(Self { inputs, of_jobs })
    }

    fn contains(&self, file: &Identity) -> bool {
        self.inputs.contains(file) || self.of_jobs.contains(file)
    }
}

impl Identity {
    fn of(path: &Path) -> Self {
        let through_folder = || Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?));
        match fs::metadata(path) {
            Ok(there) => Self::There(there.dev(), there.ino()),
            Err(_) => Self::Path(through_folder().unwrap_or_else(|| path.to_owned())),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

fn check_log(job: &JobPlan, kind: LogKind, name: &str, in_use: &InUse, logs: &mut Logs) -> Result<()> {
    let path = Path::new(name);
    let refused = |why: &str| {
        let option = job.logs.first_option().unwrap_or("logs");
        Err(Error::refused(job, format_args!("{option}: {name}: {why}")))
    };
    let file = Identity::of(path);
    if in_use.contains(&file) {
        return refused("a job uses or replays this file, or it is a job file; choose another name of the log");
    }
    match logs.get(&file) {
        Some(_) if kind == LogKind::Trace => {
            return refused("another log goes to this file, too; give each job a trace of its own, and numjobs=1");
        }
        // Threads may share a log of one kind (per_job_logs=0).
        Some(other) if *other != (kind, name.to_owned()) => {
            return refused("another log goes to this file, too; choose another name");
        }
        _ => {}
    }
    logs.insert(file, (kind, name.to_owned()));
    refuse_unwritable(path).or_else(|why| refused(&why))
}

/// Why a file cannot be made or replaced.
fn refuse_unwritable(path: &Path) -> std::result::Result<(), String> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(format!("{} is not a folder that exists; make it first, or choose another name", folder.display()));
    }
    if let Some(kind) = target::file_system_of_the_kernel(path) {
        return Err(format!("is in the file system {kind}, whose files the kernel makes up; choose another name"));
    }
    if !path.exists() && path.is_symlink() {
        return Err("is a link to a file that is not there; choose another name".to_owned());
    }
    if path.exists() && !path.is_file() {
        return Err("is there, and no file; choose another name".to_owned());
    }
    let written = if path.exists() { path } else { folder };
    rustix::fs::access(written, Access::WRITE_OK).map_err(|error| {
        let error = std::io::Error::from(error);
        format!("cannot be written: {error}; check the permissions, or choose another name")
    })
}

/// A trace names each file in each line, by words with blanks between them, and numbers that do not change.
fn check_trace(job: &JobPlan) -> Result<()> {
    let files = target::paths(job, 0);
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let has_blank = |file: &PathBuf| file.to_str().is_none_or(|file| file.contains(char::is_whitespace));
    if let Some(file) = files.iter().map(absolute).find(has_blank) {
        let file = file.display();
        let why = format_args!("the name {file} has a blank, which a trace cannot hold; use a file without");
        return Err(Error::refused(job, format_args!("write_iolog: {why}")));
    }
    Ok(())
}

fn check_output(path: &Path, in_use: &InUse, logs: &Logs) -> Result<()> {
    let refused = |why: &str| Err(Error::Refused(format!("--output: {}: {why}", path.display())));
    let file = Identity::of(path);
    if in_use.contains(&file) {
        return refused("a job uses or replays this file, or it is a job file; choose another name");
    }
    if logs.contains_key(&file) {
        return refused("a log goes to this file; choose another name");
    }
    // /dev/stdout, /dev/null and pipes are as good as files.
    match fs::metadata(path) {
        Ok(there) if there.file_type().is_block_device() => refused("a block device; choose a file"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Settings, parse};

    fn plan(options: &str) -> Plan {
        let text = format!("[a]\nsize=4k\nrw=write\n{options}\n");
        parse::job_files(&[("x.fio", &text)], &Settings::default()).unwrap()
    }

    fn refusal(plan: &Plan, job_files: &[&Path], output: Option<&Path>) -> String {
        check(plan, job_files, output).unwrap_err().to_string()
    }

    #[test]
    fn logs_that_cannot_be_written_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir(at("is_bw.1.log")).unwrap();
        std::os::unix::fs::symlink("/nonexistent/x", at("link_bw.1.log")).unwrap();
        for (options, expected) in [
            (format!("write_bw_log={}", at("new/x")), "is not a folder that exists"),
            (format!("write_bw_log={}", at("is")), "is there, and no file"),
            (format!("write_bw_log={}", at("link")), "is a link to a file that is not there"),
            ("write_bw_log=/proc/x".to_owned(), "is in the file system proc"),
            (format!("filename={}\nwrite_bw_log={}", at("f_bw.1.log"), at("f")), "a job uses or replays this file"),
        ] {
            let error = refusal(&plan(&options), &[], None);
            assert!(error.starts_with("job 'a': write_bw_log: ") && error.contains(expected), "{error}");
        }
        let mine = at("mine_bw.1.log");
        let good = plan(&format!("filename={}\nwrite_bw_log={}", at("f"), at("mine")));
        check(&good, &[], Some(Path::new(&at("result")))).unwrap();
        assert!(refusal(&good, &[Path::new(&mine)], None).contains("it is a job file"));
    }

    #[test]
    fn a_file_has_one_role_whatever_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = |name: &str| at(name).display().to_string();
        fs::write(at("data"), "x").unwrap();
        fs::hard_link(at("data"), at("hard")).unwrap();
        fs::hard_link(at("data"), at("hard_bw.1.log")).unwrap();
        std::os::unix::fs::symlink(at("data"), at("soft")).unwrap();
        let data = text("data");
        for log in ["write_iolog=hard", "write_iolog=soft", "write_bw_log=hard"] {
            let (option, name) = log.split_once('=').unwrap();
            let error = refusal(&plan(&format!("filename={data}\n{option}={}", text(name))), &[], None);
            assert!(error.contains("a job uses or replays this file"), "{log}: {error}");
        }
        let two = format!(
            "filename={data}\nwrite_bw_log={0}\n[b]\nsize=4k\nfilename={data}\nwrite_iolog={0}_bw.1.log",
            text("z")
        );
        assert!(refusal(&plan(&two), &[], None).contains("another log goes to this file"));
        let writer = plan(&format!("filename={}", text("soft")));
        assert!(refusal(&writer, &[&at("hard")], None).contains("the job writes to it"));
        let reader = parse::job_files(&[("x.fio", &format!("[a]\nsize=4k\nfilename={data}"))], &Settings::default());
        let reader = reader.unwrap();
        check(&reader, &[&at("hard")], None).unwrap();
        assert!(refusal(&reader, &[], Some(&at("soft"))).starts_with("--output: "));
        let logged = plan(&format!("filename={data}\nwrite_iolog={}", text("t")));
        assert!(refusal(&logged, &[], Some(&at("t"))).contains("a log goes to this file"));
        check(&logged, &[], Some(Path::new("/dev/null"))).unwrap();
    }
}
