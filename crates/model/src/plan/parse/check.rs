//! Checks a job as a whole, once all of its options are known.
//!
//! A contradiction is reported at the option that the user can change to fix it. Where fio silently runs something
//! other than the file says, the job contains what will be run, and a warning says so.

mod rules;

use super::Refusal;
use crate::plan::draft::{CacheWords, Draft, Origin};
use crate::plan::job::{Access, Depth, EngineKind, JobPlan, Medium, Order, Queue, Size, is_default};
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
pub(super) fn job(mut draft: Draft, section: Origin, warnings: &mut Vec<Warning>) -> Result<JobPlan, Refusal> {
    warnings.extend(endless(&mut draft.job));
    let complaint = rules::broken(rules::FIRST, &draft)
        .or_else(|| region(&mut draft.job))
        .or_else(|| rules::broken(rules::FILES, &draft))
        .or_else(|| block_size(&draft.job))
        .or_else(|| too_long(&draft.job))
        .or_else(|| rules::broken(rules::LAST, &draft))
        .or_else(|| header(&draft.job));
    if let Some((option, reason)) = complaint {
        let reason = format!("job {}: {reason}", Quoted(&draft.job.name));
        return Err(refuse(&draft, option, section, reason));
    }
    warnings.extend(unread_options(&draft));
    warnings.extend(said_options(&draft));
    warnings.extend(more_files(&draft));
    warnings.extend(ignored(&draft.job));
    warnings.extend(empty_histograms(&draft.job));
    warnings.extend(unlike_fio(&draft.job));
    warnings.extend(single_queue(&mut draft.job));
    draft.job.depth = batches(draft.job.depth);
    Ok(draft.job)
}

fn refuse(draft: &Draft, option: &'static str, otherwise: Origin, reason: String) -> Refusal {
    let origin = draft.origin(option).unwrap_or(otherwise);
    Refusal::option(option, origin, Wrong::new(reason))
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
    let filesize = job.files.each.map(|size| Size::Bytes(Bytes(files(size.most))));
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
        (Some(each), _) => each.most.0,
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
    let given = options::of_other_engines(&draft.job).filter(|option| draft.origin(option).is_some());
    given.map(|option| differs(&draft.job, format!("{option} has no effect with ioengine={}", draft.job.engine.name())))
}

fn said_options(draft: &Draft) -> impl Iterator<Item = Warning> {
    let given = options::said().filter(|(option, _)| draft.origin(option).is_some());
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

/// As in fio, histograms need the length of a row.
fn empty_histograms(job: &JobPlan) -> Option<Warning> {
    let empty = job.logs.histogram.is_some() && job.logs.histogram_window == 0;
    empty.then(|| {
        let why = "write_hist_log writes an empty file without log_hist_msec, as in fio; add it, for example log_hist_msec=1000";
        caveat(Code::OptionIgnored, job, why)
    })
}

fn writes(every: u32) -> String {
    if every == 1 { "each write".to_owned() } else { format!("every {every} writes") }
}

/// Where a job deliberately does other work than fio 3.33 would: docs/guide/fio.md lists and explains these.
fn unlike_fio(job: &JobPlan) -> impl Iterator<Item = Warning> {
    let syncs = match (job.sync.every, job.sync.data_every) {
        (0, 0) => None,
        (0, every) => Some(("fdatasync", writes(every))),
        (every, _) => Some(("fsync", writes(every))),
    }
    .filter(|_| job.access.writes() && job.engine.medium() != Medium::Nothing);
    let files = job.file_count();
    let (size, io_size, loops) = (job.target.size, job.duration.io_size, job.duration.loops);
    let exceeds = |io_size| match (io_size, size) {
        (Some(Size::Bytes(io_size)), Some(Size::Bytes(size))) => io_size > size,
        // The size of the files decides.
        (Some(Size::Bytes(_)), _) => true,
        _ => false,
    };
    let syncs_of_queue = syncs.clone();
    let mix = syncs.clone().filter(|_| job.access == Access::ReadWrite).map(|(name, every)| {
        format!("{name} is called once after {every}; fio calls it again after each read that follows")
    });
    let each = syncs.filter(|_| files > 1).map(|(name, every)| {
        format!(
            "{name} after {every} is called for each of the {files} files that was written since its last call; \
                 fio calls it for one file, the next in turn"
        )
    });
    // These hand a sync over as another I/O, and fio counts none of it as issued.
    let queues = job.engine == EngineKind::IoUring && job.depth.in_flight > 1;
    let queued = syncs_of_queue.filter(|_| queues).map(|(name, every)| {
        let engine = job.engine.name();
        format!("{name} is called once after {every}; with ioengine={engine}, fio repeats it until the queue is full")
    });
    let exceeds = exceeds(io_size) && loops == 1;
    let passes = (loops > 1 || exceeds) && !job.duration.time_based;
    let end = (job.sync.at_end && job.access.writes() && passes)
        .then(|| "end_fsync calls fsync once, at the end; fio calls it after each pass over the files".to_owned());
    let requests = requests_unlike_fio(job);
    let all = requests.chain([mix, each, queued, end, closed_once(job)].into_iter().flatten());
    let all = all.chain(verify_unlike_fio(job, (passes, exceeds)));
    all.map(|what| differs(job, what)).collect::<Vec<_>>().into_iter()
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

/// What has no effect beside `filename`, as in fio.
fn ignored(job: &JobPlan) -> impl Iterator<Item = Warning> {
    let given = [(job.files.count.is_some(), "nrfiles"), (job.files.name_format.is_some(), "filename_format")];
    let given = given.into_iter().filter(|(given, _)| *given && !job.target.files.is_empty());
    given.map(|(_, name)| caveat(Code::OptionIgnored, job, &format!("{name} has no effect beside filename, as in fio")))
}

/// Files stay open from pass to pass; fio closes and opens them again.
fn closed_once(job: &JobPlan) -> Option<String> {
    let several = job.duration.loops > 1 || job.duration.io_size.is_some() || job.duration.time_based;
    let differs = job.sync.on_close && job.access.writes() && several && job.engine.medium() == Medium::Files;
    differs.then(|| {
        "fsync_on_close calls fsync once for each file, at the end; fio closes files after each pass".to_owned()
    })
}

/// The most that the kernel moves in one call: MAX_RW_COUNT.
const MOST_MOVED: u64 = 0x7fff_f000;

/// A read or write that the kernel would cut.
fn too_long(job: &JobPlan) -> Option<Complaint> {
    let calls = matches!(job.engine.medium(), Medium::Files | Medium::Remote);
    let moves = job.access != Access::Trim;
    (calls && moves && job.largest_block().0 > MOST_MOVED).then(|| {
        let why = format!(
            "a read or write moves at most {MOST_MOVED} bytes in one call; use bs={MOST_MOVED} or less, or rw=trim"
        );
        ("bs", why)
    })
}

/// Where requests are deliberately others than fio 3.33's.
fn requests_unlike_fio(job: &JobPlan) -> impl Iterator<Item = String> {
    // fio's map has blocks of the smallest size, also if that is the size of a direction that the job does not use.
    let smallest = job.smallest_block().0;
    let unequal =
        job.order == Order::Random && job.has_random_map() && job.used_sizes().any(|sizes| sizes.least() > smallest);
    let map = unequal.then(|| {
        let visits = match job.access {
            Access::ReadWrite => "reads and writes each visit every block of their size, so both may visit the same bytes",
            _ => "every block is visited",
        };
        format!("bs has different sizes, and {visits}; fio leaves blocks out, because its map has blocks of the smallest size")
    });
    let sizes = (job.access == Access::TrimWrite && job.block_sizes.write != job.block_sizes.trim)
        .then(|| "each block that is trimmed is written whole; fio writes blocks of the size of writes".to_owned());
    [map, sizes].into_iter().flatten()
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

/// Where it does otherwise than fio 3.33. `passes`: the job writes its blocks more than once.
fn verify_unlike_fio(job: &JobPlan, (passes, exceeds): (bool, bool)) -> impl Iterator<Item = String> {
    let verify = &job.verify;
    let checks = verify.method.is_some();
    let what = if exceeds {
        "io_size bytes are written, and verify reads the blocks back once, at the end; fio counts what it reads back as part of io_size"
    } else {
        "verify reads the blocks back once, at the end; fio after each pass over the files"
    };
    let once =
        (checks && verify.after && verify.backlog == 0 && job.access.writes() && passes).then(|| what.to_owned());
    let idle = matches!(job.engine, EngineKind::Null | EngineKind::Spin | EngineKind::Work);
    let unused = (idle && !is_default(&job.content))
        .then(|| format!("ioengine={} writes nothing whose content could be chosen", job.engine.name()));
    [once, unused].into_iter().flatten()
}
