//! Checks what a job says about its files.

use super::Complaint;
use crate::plan::job::{Access, JobPlan, Medium, Size};
use crate::plan::value::Quoted;
use crate::warning::{Code, Warning};

/// A name that fio reads as standard input or output, an addition without a size, data that could never be there.
pub(super) fn complaint(job: &JobPlan) -> Option<Complaint> {
    if job.engine.medium() != Medium::Files {
        return None;
    }
    let making = job.files.making;
    if job.target.files.iter().any(|name| name == "-") {
        let why =
            "'-' means standard input or output to fio, which are no storage; use a file, './-' if that is its name";
        return Some(("filename", why.to_owned()));
    }
    if making.append && !job.access.writes() {
        return Some((
            "file_append",
            "the job does not write, and there is nothing behind the end; leave it out".to_owned(),
        ));
    }
    if making.append && job.files.each.is_none() && !matches!(job.target.size, Some(Size::Bytes(_))) {
        return Some(("file_append", "add size= in bytes, how much is added".to_owned()));
    }
    if making.fill && job.access != Access::Write {
        return Some(("fill_device", "only a job of writes fills a device; use rw=write or leave it out".to_owned()));
    }
    None
}

/// What has no effect beside `filename`, as in fio.
pub(super) fn ignored(job: &JobPlan) -> impl Iterator<Item = Warning> {
    let given = [
        (job.files.count.is_some() && job.files.folder.is_none(), "nrfiles"),
        (job.files.name_format.is_some(), "filename_format"),
    ];
    let given = given.into_iter().filter(|(given, _)| *given && !job.target.files.is_empty());
    given.map(|(_, name)| {
        let why = format!("job {}: {name} has no effect beside filename, as in fio", Quoted(&job.name));
        Warning::new(Code::OptionIgnored, why)
    })
}

/// Files stay open from pass to pass; fio closes and opens them again.
pub(super) fn closed_once(job: &JobPlan) -> Option<String> {
    let several = job.duration.loops > 1 || job.duration.io_size.is_some() || job.duration.time_based;
    let differs = job.files.syncing.on_close && job.access.writes() && several && job.engine.medium() == Medium::Files;
    differs.then(|| {
        "fsync_on_close calls fsync once for each file, at the end; fio closes files after each pass".to_owned()
    })
}
