//! The files of logs, written when the run has ended.

use super::{IoLog, rows};
use crate::error::{Error, Result};
use crate::workload::target;
use model::plan::{JobPlan, Plan};
use model::unit::Ticks;
use model::warning::{Code, Warning};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use sys::clock::ticks;

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
pub(crate) fn write(plan: &Plan, logs: &[(usize, IoLog)]) -> (Vec<Warning>, Result<()>) {
    let (mut warnings, mut begun, mut failure) = (Vec::new(), BTreeSet::new(), None);
    for (number, job) in plan.copies() {
        let Some((_, log)) = logs.iter().find(|(of, _)| *of == number) else { continue };
        let epoch = epoch_ms(job, log);
        let files = traced(job);
        for (kind, file) in job.log_files(number) {
            let shared = !begun.insert(file.clone());
            let path = Path::new(&file);
            let write = |file: File| {
                let mut out = BufWriter::new(file);
                rows::write(log, job, kind, epoch, &files, &mut out)?;
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

/// When the job started, in milliseconds since 1970 if its rows have that time; otherwise 0.
fn epoch_ms(job: &JobPlan, log: &IoLog) -> u64 {
    if !job.logs.unix_epoch {
        return 0;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    now.saturating_sub(log.clock.nanos(Ticks(ticks().saturating_sub(log.begin))).0) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Settings, parse};

    fn plan(options: &str) -> Plan {
        parse::job_files(&[("x.fio", &format!("[a]\nsize=4k\nrw=write\n{options}\n"))], &Settings::default()).unwrap()
    }

    #[test]
    fn a_shared_log_has_the_rows_of_all_and_a_full_one_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("x").display().to_string();
        let plan = plan(&format!("numjobs=2\nper_job_logs=0\nwrite_iops_log={name}"));
        let job = &plan.phases[0].jobs[0];
        let log = |ios: u64| {
            let mut log = IoLog::new(job, model::unit::Hertz(1e6), 0).unwrap().unwrap();
            log.count_from(0);
            for done in 0..ios {
                let kind = crate::workload::request_source::Kind::Write;
                log.note(&super::super::Entry { kind, offset: 0, length: 512, issued: 0, handed: 0, done });
            }
            log.finish(ios);
            log
        };
        let (warnings, written) = write(&plan, &[(1, log(3)), (2, log(2000))]);
        written.unwrap();
        assert!(warnings.len() == 1 && warnings[0].code == Code::LogFull, "{warnings:?}");
        assert!(warnings[0].message.contains("full after 1 ms"), "{warnings:?}");
        let text = std::fs::read_to_string(format!("{name}_iops.log")).unwrap();
        assert!(text.starts_with("0, 1, 1, 512, 0\n") && text.lines().count() == 3 + 1024, "{text}");
        // A log replaces the file of an earlier run as a whole: a reader of that one goes on.
        let before = std::fs::File::open(format!("{name}_iops.log")).unwrap();
        write(&plan, &[(1, log(1))]).1.unwrap();
        assert_eq!(std::io::read_to_string(before).unwrap(), text);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        std::fs::remove_dir_all(folder.path()).unwrap();
        let (_, written) = write(&plan, &[(1, log(1))]);
        assert!(written.unwrap_err().to_string().contains("writing the log"));
    }
}
