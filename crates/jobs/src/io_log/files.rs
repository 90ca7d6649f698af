//! The files of logs, written when the run has ended.

use super::{IoLog, rows};
use crate::workload::target;
use lab::error::{Error, Result};
use model::plan::{JobPlan, Plan};
use model::warning::{Code, Warning};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The files of a job in its trace.
fn traced(job: &JobPlan) -> Vec<PathBuf> {
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    match &job.logs.trace {
        Some(_) => target::paths(job, 0).into_iter().map(absolute).collect(),
        None => Vec::new(),
    }
}

/// Writes the logs of copies by their number among those of the run, in place of what an earlier run left. Returns caveats.
///
/// # Errors
/// The first file that cannot be written; the others are written.
pub fn write(plan: &Plan, logs: &[(usize, IoLog)]) -> (Vec<Warning>, Result<()>) {
    let (mut warnings, mut begun, mut failure) = (Vec::new(), BTreeSet::new(), None);
    for (number, job) in plan.copies() {
        let Some((_, log)) = logs.iter().find(|(of, _)| *of == number) else { continue };
        let files = traced(job);
        for (kind, file) in job.log_files(number) {
            let shared = !begun.insert(file.clone());
            let path = Path::new(&file);
            let write = |file: File| {
                let mut out = BufWriter::new(file);
                rows::write(log, job, kind, &files, &mut out)?;
                out.flush()
            };
            let written =
                if shared { OpenOptions::new().append(true).open(path).and_then(write) } else { replaced(path, write) };
            if let Err(error) = written {
                let what = format!("job '{}': {}: writing the log: {error}", job.name, path.display());
                failure.get_or_insert(Error::Failed(what));
            }
        }
        if let Some(after) = log.full_after_ms() {
            let name = &job.name;
            let what = format!(
                "job '{name}': the memory for its logs was full after {after} ms, and later I/Os are not in them; \
                 use log_avg_msec, or fewer threads with logs"
            );
            warnings.push(Warning::new(Code::LogFull, what));
        }
    }
    (warnings, failure.map_or(Ok(()), Err))
}

/// Writes a file beside the one that it then replaces, so that two runs at once leave one of theirs, whole. What is no regular file is
/// written to. Jobs may share a file: the first begins it, the others add to it.
fn replaced(path: &Path, write: impl FnOnce(File) -> std::io::Result<()>) -> std::io::Result<()> {
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        return File::create(path).and_then(write);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made =
        tempfile::Builder::new().prefix(".iotoll").permissions(Permissions::from_mode(0o644)).tempfile_in(folder)?;
    write(made.reopen()?)?;
    made.persist(path)?;
    Ok(())
}
