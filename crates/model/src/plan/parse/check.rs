//! Checks a job as a whole, once all of its options are known.
//!
//! A contradiction is reported at the option that the user can change to fix it. Where fio silently runs something
//! other than the file says, the job contains what will be run, and a warning says so.

mod rules;

use super::{ParseError, Place};
use crate::plan::draft::{CacheWords, Draft};
use crate::plan::job::{Depth, JobPlan, Medium, Queue, Size};
use crate::plan::options;
use crate::plan::value::{LARGEST_FILE, Quoted, Short, Wrong};
use crate::unit::{Bytes, Nanos};
use crate::warning::{Code, Warning};

/// What `direct=1` with `buffered=1`, or `direct=0` with `buffered=0`, in one section mean.
pub(super) fn cache_words(draft: &Draft) -> Option<String> {
    let CacheWords { direct: Some(direct), buffered: Some(buffered) } = draft.cache else { return None };
    let (value, outcome) = (u8::from(direct), u8::from(draft.job.direct));
    (direct == buffered).then(|| {
        format!(
            "direct={value} and buffered={value} contradict each other; as in fio the later one wins: direct={outcome}"
        )
    })
}

/// Turns a complete draft into a job. An option that is missing is reported at `section`.
pub(super) fn job(mut draft: Draft, section: &Place, warnings: &mut Vec<Warning>) -> Result<JobPlan, ParseError> {
    warnings.extend(endless(&mut draft.job));
    let complaint = rules::broken(rules::FIRST, &draft)
        .or_else(|| region(&mut draft.job))
        .or_else(|| rules::broken(rules::FILES, &draft))
        .or_else(|| block_size(&draft.job))
        .or_else(|| rules::broken(rules::LAST, &draft))
        .or_else(|| header(&draft.job));
    if let Some((option, reason)) = complaint {
        let reason = format!("job {}: {reason}", Quoted(&draft.job.name));
        return Err(ParseError::option(option, draft.places.get(option).unwrap_or(section), Wrong::new(reason)));
    }
    warnings.extend(unread_options(&draft));
    warnings.extend(said_options(&draft));
    warnings.extend(more_files(&draft));
    for (code, rules) in [(Code::OptionIgnored, rules::IGNORED), (Code::OptionDiffers, rules::DIFFERS)] {
        warnings.extend(rules::all_broken(rules, &draft).map(|what| caveat(code, &draft.job, &what)));
    }
    warnings.extend(single_queue(&mut draft.job));
    draft.job.depth = batches(draft.job.depth);
    Ok(draft.job)
}

/// The option to change, and why.
type Complaint = (&'static str, String);

/// As in fio, a job without `runtime` ends with its I/O.
fn endless(job: &mut JobPlan) -> Option<Warning> {
    if !job.duration.time_based || job.duration.runtime > Nanos(0) {
        return None;
    }
    job.duration.time_based = false;
    let why = "time_based has no effect without runtime, as in fio; add one, for example runtime=10s";
    Some(caveat(Code::OptionIgnored, job, why))
}

/// An engine without files needs a size from the job: from `size`, or from an option that ends the job.
fn region(job: &mut JobPlan) -> Option<Complaint> {
    if job.engine.medium() != Medium::Nothing {
        return None;
    }
    let block = job.largest_block().0;
    let files = |most: Bytes| most.0.saturating_mul(job.file_count() as u64).min(LARGEST_FILE);
    let filesize = job.files.each.map(|size| Size::Bytes(Bytes(files(size))));
    let size = match (job.target.size.or(filesize), job.duration.io_size, job.duration.number_ios) {
        (Some(Size::Bytes(size)), _, _) | (None, Some(Size::Bytes(size)), _) => size,
        (None, None, Some(ios)) => Bytes(ios.saturating_mul(block).min(LARGEST_FILE)),
        (Some(Size::Percent(_)), _, _) | (None, Some(Size::Percent(_)), _) | (None, None, None) => {
            let engine = job.engine.name();
            return Some((
                "size",
                format!(
                    "ioengine={engine} has no file whose size it could use; give a size in bytes, for example size=1g"
                ),
            ));
        }
    };
    job.target.size = Some(Size::Bytes(size));
    None
}

/// `size` is divided among the files, and a file smaller than a block would get no I/O.
fn block_size(job: &JobPlan) -> Option<Complaint> {
    let of_one_file = match (job.files.each, job.target.size) {
        (Some(each), _) => each.0,
        (None, Some(Size::Bytes(Bytes(size)))) => size / job.file_count() as u64,
        (None, _) => return None,
    };
    // Of several sizes, those that do not fit are not drawn.
    let block = job.used_sizes().map(|sizes| sizes.least()).max().unwrap_or(0);
    (block > of_one_file).then(|| {
        ("bs", format!("a block of {} bytes does not fit into a file of {} bytes", Short(block), Short(of_one_file)))
    })
}

fn unread_options(draft: &Draft) -> impl Iterator<Item = Warning> {
    let given = options::of_other_engines(&draft.job).filter(|option| draft.places.contains_key(option));
    given.map(|option| differs(&draft.job, format!("{option} has no effect with ioengine={}", draft.job.engine.name())))
}

fn said_options(draft: &Draft) -> impl Iterator<Item = Warning> {
    let given = options::said().filter(|(option, _)| draft.places.contains_key(option));
    given.map(|(option, what)| differs(&draft.job, format!("{option}: {what}")))
}

/// fio adds to the files of a job when `filename` is given again, which readers of the file may not expect.
fn more_files(draft: &Draft) -> Option<Warning> {
    let job = &draft.job;
    draft.more_files.then(|| {
        let files = job.target.files.join(":");
        let what = format!("filename is given more than once; as in fio, the job uses all of {}", Quoted(&files));
        caveat(Code::FilesAdded, job, &what)
    })
}

/// An engine whose calls wait for the I/O runs at depth 1 and ignores `iodepth`, as in fio.
fn single_queue(job: &mut JobPlan) -> Option<Warning> {
    if job.engine.queue() == Queue::Deep || job.depth.in_flight == 1 {
        return None;
    }
    let asked = std::mem::replace(&mut job.depth.in_flight, 1);
    let engine = job.engine.name();
    Some(differs(job, format!("ioengine={engine} waits for each I/O, so iodepth={asked} runs as iodepth=1")))
}

fn differs(job: &JobPlan, what: String) -> Warning {
    caveat(Code::OptionDiffers, job, &what)
}

fn caveat(code: Code, job: &JobPlan, what: &str) -> Warning {
    Warning::new(code, format!("job {}: {what}", Quoted(&job.name)))
}

/// Limits the batches to the depth, as fio does.
fn batches(asked: Depth) -> Depth {
    let depth = asked.in_flight;
    let submit = if asked.submit == 0 { depth } else { asked.submit.min(depth) };
    let low = asked.low.map(|low| low.min(depth));
    let complete_min = asked.complete_min.min(depth);
    let complete_max = asked.complete_max.max(complete_min).clamp(1, depth);
    Depth { in_flight: depth, low, submit, complete_min, complete_max }
}

/// A block has room for its header.
fn header(job: &JobPlan) -> Option<Complaint> {
    let method = job.verify.method?;
    let header = u64::from(method.header()?.1);
    let block = job.used_sizes().map(|sizes| sizes.least()).min().unwrap_or(0);
    let why = || {
        let word = crate::plan::value::word(method);
        format!("verify={word} needs {header} bytes for each header, more than {}; use a larger bs", Short(block))
    };
    (block < header).then(|| ("verify", why()))
}
