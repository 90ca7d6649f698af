//! The files of logs: refused before the first I/O if they cannot be written, written when the run has ended.

use super::{IoLog, rows};
use crate::error::{Error, Result};
use crate::workload::target;
use model::plan::{JobPlan, Medium, Plan};
use model::unit::Ticks;
use model::warning::{Code, Warning};
use rustix::fs::Access;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use sys::clock::ticks;

/// Refuses logs whose files cannot be written, or are `others`: job files, and files that jobs use. `opens_in_loop` says whether a job with this
/// number of files opens them while it runs.
///
/// # Errors
/// The first of them.
pub(crate) fn check(plan: &Plan, others: &[&Path], opens_in_loop: fn(&JobPlan, usize) -> bool) -> Result<()> {
    if plan.copies().all(|(_, job)| job.logs.first_option().is_none()) {
        return Ok(());
    }
    let mut in_use: Vec<PathBuf> = others.iter().map(|path| resolved(path)).collect();
    for job in plan.phases.iter().flat_map(|phase| &phase.jobs).filter(|job| job.engine.medium() == Medium::Files) {
        in_use.extend(job.replay.traces.iter().map(|trace| resolved(Path::new(trace))));
        for copy in 0..job.copies.max(1) {
            in_use.extend(target::paths(job, copy)?.iter().map(|path| resolved(path)));
        }
    }
    let mut traces = BTreeSet::new();
    for (number, job) in plan.copies() {
        for (_, file) in job.log_files(number) {
            check_one(job, Path::new(&file), &in_use)?;
        }
        if let Some(trace) = &job.logs.trace {
            check_trace(job, opens_in_loop)?;
            if !traces.insert(resolved(Path::new(trace))) {
                let name = &job.name;
                return Err(Error::Refused(format!(
                    "job '{name}': write_iolog: {trace}: another thread writes the same trace; give each job one of its own, and numjobs=1"
                )));
            }
        }
    }
    Ok(())
}

/// The files of a job in its trace.
fn traced(job: &JobPlan) -> Result<Vec<PathBuf>> {
    if job.logs.trace.is_none() {
        return Ok(Vec::new());
    }
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    Ok(target::paths(job, 0)?.into_iter().map(absolute).collect())
}

/// A trace names each file in each line, by words with blanks between them, and numbers that do not change.
fn check_trace(job: &JobPlan, opens_in_loop: fn(&JobPlan, usize) -> bool) -> Result<()> {
    let (name, files) = (&job.name, traced(job)?);
    if let Some(file) = files.iter().find(|file| file.to_str().is_none_or(|file| file.contains(char::is_whitespace))) {
        let file = file.display();
        return Err(Error::Refused(format!(
            "job '{name}': write_iolog: the name {file} has a blank, which a trace cannot hold; use a file without"
        )));
    }
    if opens_in_loop(job, files.len()) {
        return Err(Error::Refused(format!(
            "job '{name}': write_iolog: the job opens files while it runs; leave openfiles, create_on_open and unlink_each_loop out"
        )));
    }
    Ok(())
}

fn check_one(job: &JobPlan, path: &Path, in_use: &[PathBuf]) -> Result<()> {
    let refused = |why: String| {
        let (name, option) = (&job.name, job.logs.first_option().unwrap_or("logs"));
        Err(Error::Refused(format!("job '{name}': {option}: {}: {why}", path.display())))
    };
    if in_use.contains(&resolved(path)) {
        return refused(
            "a job uses or replays this file, or it is a job file; choose another name of the log".to_owned(),
        );
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return refused(format!(
            "{} is not a folder that exists; make it first, or choose another name",
            folder.display()
        ));
    }
    if path.exists() && !path.is_file() {
        return refused("is there, and no file; choose another name".to_owned());
    }
    let written = if path.exists() { path } else { folder };
    match rustix::fs::access(written, Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(error) => {
            let error = std::io::Error::from(error);
            refused(format!("cannot be written: {error}; check the permissions, or choose another name"))
        }
    }
}

/// The path without links, as far as it is there.
fn resolved(path: &Path) -> PathBuf {
    let through_folder = || {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(through_folder).unwrap_or_else(|| path.to_owned())
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
        let files = traced(job).unwrap_or_default();
        for (kind, file) in job.log_files(number) {
            let shared = !begun.insert(file.clone());
            let path = Path::new(&file);
            let written = open(path, shared).and_then(|file| {
                let mut out = BufWriter::new(file);
                rows::write(log, job, kind, epoch, &files, &mut out)?;
                out.flush()
            });
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

/// Jobs may share a file: the first begins it, the others add to it.
fn open(path: &Path, shared: bool) -> std::io::Result<File> {
    if shared { OpenOptions::new().append(true).create(true).open(path) } else { File::create(path) }
}

/// When the job started, in milliseconds of the clock that its rows have; 0 if their times are since then.
fn epoch_ms(job: &JobPlan, log: &IoLog) -> u64 {
    let Some(clock) = job.logs.epoch() else { return 0 };
    let now = sys::clock::nanos_of(clock).unwrap_or(0);
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
        std::fs::remove_dir_all(folder.path()).unwrap();
        let (_, written) = write(&plan, &[(1, log(1))]);
        assert!(written.unwrap_err().to_string().contains("writing the log"));
    }

    #[test]
    fn logs_that_cannot_be_written_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir(at("is_bw.1.log")).unwrap();
        for (options, expected) in [
            (format!("write_bw_log={}", at("new/x")), "is not a folder that exists"),
            (format!("write_bw_log={}", at("is")), "is there, and no file"),
            (format!("filename={}\nwrite_bw_log={}", at("f_bw.1.log"), at("f")), "a job uses or replays this file"),
        ] {
            let error = check(&plan(&options), &[], |_, _| false).unwrap_err().to_string();
            assert!(error.starts_with("job 'a': write_bw_log: ") && error.contains(expected), "{error}");
        }
        let mine = at("mine_bw.1.log");
        let good = plan(&format!("filename={}\nwrite_bw_log={}", at("f"), at("mine")));
        check(&good, &[], |_, _| false).unwrap();
        let error = check(&good, &[Path::new(&mine)], |_, _| false).unwrap_err();
        assert!(error.to_string().contains("it is a job file"), "{error}");
    }
}
