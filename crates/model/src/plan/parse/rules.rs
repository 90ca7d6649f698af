//! What options need and exclude: a row for each, and what no row can say.

use super::{Draft, ParseError, Place};
use crate::plan::job::{
    Access, Buffers, Depth, EngineKind, JobPlan, Medium, Order, Queue, Size, VerifyMethod, is_default, word,
};
use crate::plan::options;
use crate::plan::value::{LARGEST_FILE, Quoted, Short, Wrong};
use crate::unit::{Bytes, Nanos};
use crate::warning::{Code, Warning};

/// What an option needs or excludes.
struct Rule {
    /// The option to change.
    option: &'static str,
    /// Whether a job breaks the rule.
    broken: fn(&JobPlan, &Draft) -> bool,
    /// Why it is one, and what to do, or what happens. `{engine}` stands for the job's engine, `{sync}` and `{writes}` for the option that syncs
    /// and how often, `{files}` for the number of its files.
    why: &'static str,
}

const fn refused(option: &'static str, broken: fn(&JobPlan, &Draft) -> bool) -> Rule {
    Rule { option, broken, why: "" }
}

/// What a caveat tells.
const fn told(broken: fn(&JobPlan, &Draft) -> bool) -> Rule {
    refused("", broken)
}

impl Rule {
    const fn because(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    fn sentence(&self, job: &JobPlan) -> String {
        let (sync, every) = syncs(job).unwrap_or(("", 1));
        let writes = if every == 1 { "each write".to_owned() } else { format!("every {every} writes") };
        let sentence = self.why.replace("{engine}", job.engine.name()).replace("{sync}", sync);
        sentence.replace("{writes}", &writes).replace("{files}", &job.file_count().to_string())
    }
}

/// What an engine needs, rates, injected work, and files.
static FIRST: &[Rule] = &[
    refused("rr_peer", |job, _| job.engine == EngineKind::Rr && job.own.rr_peer.is_none())
        .because("ioengine=rr needs an echo server; add one, for example rr_peer=tcp://127.0.0.1:5007"),
    refused("uri", |job, _| job.engine.medium() == Medium::Remote && job.path.uri.is_none())
        .because("ioengine=nbd needs a server; add one, for example uri=nbd://127.0.0.1:10809"),
    // As in fio, a direction has one rate.
    refused("rate", |job, _| each_rate(job).any(|(ios, bytes)| ios > 0 && bytes > 0))
        .because("rate and rate_iops both limit the same direction; leave one of them out"),
    // Without a given cost, these engines would silently cost nothing.
    refused("spin_cycles", |job, draft| job.engine == EngineKind::Spin && !draft.places.contains_key("spin_cycles"))
        .because("ioengine=spin needs a cost for each I/O, for example spin_cycles=1000"),
    refused("work_steps", |job, draft| job.engine == EngineKind::Work && !draft.places.contains_key("work_steps"))
        .because("ioengine=work needs a cost for each I/O, for example work_steps=1000"),
    refused("inject_every", |job, draft| job.inject.every > Nanos(0) && !draft.places.contains_key("inject_ns"))
        .because("it has no effect without inject_ns; add it, for example inject_ns=500000"),
    refused("filename", |job, _| has_files(job) && job.target.files.iter().any(|name| name == "-")).because(
        "'-' means standard input or output to fio, which are no storage; use a file, './-' if that is its name",
    ),
];

/// Traces, and what is verified. The kernel moves MAX_RW_COUNT bytes in one call.
static LAST: &[Rule] = &[
    refused("bs", |job, _| holds_data(job) && job.access != Access::Trim && job.largest_block().0 > 0x7fff_f000)
        .because("a read or write moves at most 2147479552 bytes in one call; use bs=2147479552 or less, or rw=trim"),
    refused("read_iolog", |job, _| job.replay.traces.iter().any(|trace| trace == "-"))
        .because("'-' means standard input to fio; use a file"),
    refused("read_iolog", |job, _| job.replay.is_in_force() && !has_files(job))
        .because("ioengine={engine} has no files whose requests it could replay; use another engine"),
    refused("read_iolog", |job, _| job.replay.is_in_force() && job.verify.method.is_some())
        .because("what a trace writes is not read back; leave verify out"),
    refused("verify", |job, _| job.verify.method == Some(VerifyMethod::Pattern) && job.verify.pattern.is_none())
        .because("verify=pattern needs one; add it, for example verify_pattern=0xdeadface"),
    refused("verify", |job, _| checks(job) && !holds_data(job))
        .because("what ioengine={engine} writes cannot be read back; use an engine with files, or nbd"),
    refused("do_verify", |job, _| checks(job) && job.verify.after && job.access == Access::ReadWrite && has_rate(job))
        .because(
            "a mix of reads and writes with a rate cannot be read back, because time decides what it writes; use \
             do_verify=0, or leave the rate out",
        ),
];

/// What has no effect, as in fio.
static IGNORED: &[Rule] = &[
    told(|job, _| job.files.count.is_some() && !job.target.files.is_empty())
        .because("nrfiles has no effect beside filename, as in fio"),
    told(|job, _| job.files.name_format.is_some() && !job.target.files.is_empty())
        .because("filename_format has no effect beside filename, as in fio"),
];

/// Where a job deliberately does other work than fio 3.33 would: docs/guide/fio.md lists and explains these.
static DIFFERS: &[Rule] = &[
    told(|job, _| unequal_blocks(job) && job.access == Access::ReadWrite).because(
        "bs has different sizes, and reads and writes each visit every block of their size, so both may visit the same bytes; fio leaves \
         blocks out, because its map has blocks of the smallest size",
    ),
    told(|job, _| unequal_blocks(job) && job.access != Access::ReadWrite).because(
        "bs has different sizes, and every block is visited; fio leaves blocks out, because its map has blocks of the smallest size",
    ),
    told(|job, _| job.access == Access::TrimWrite && job.block_sizes.write != job.block_sizes.trim)
        .because("each block that is trimmed is written whole; fio writes blocks of the size of writes"),
    told(|job, _| syncs(job).is_some() && job.access == Access::ReadWrite)
        .because("{sync} is called once after {writes}; fio calls it again after each read that follows"),
    told(|job, _| syncs(job).is_some() && job.file_count() > 1).because(
        "{sync} after {writes} is called for each of the {files} files that was written since its last call; fio calls it for one file, \
         the next in turn",
    ),
    // These hand a sync over as another I/O, and fio counts none of it as issued.
    told(|job, _| syncs(job).is_some() && job.engine == EngineKind::IoUring && job.depth.in_flight > 1).because(
        "{sync} is called once after {writes}; with ioengine={engine}, fio repeats it until the queue is full",
    ),
    told(|job, _| job.sync.at_end && job.access.writes() && passes(job))
        .because("end_fsync calls fsync once, at the end; fio calls it after each pass over the files"),
    // Files stay open from pass to pass; fio closes and opens them again.
    told(|job, _| job.sync.on_close && job.access.writes() && has_files(job) && may_pass_again(job))
        .because("fsync_on_close calls fsync once for each file, at the end; fio closes files after each pass"),
    told(|job, _| job.files.making.on_open && has_files(job))
        .because("create_on_open makes files empty before the first I/O; fio makes them when their turn comes"),
    told(|job, _| reads_back(job) && passes(job) && exceeds(job)).because(
        "io_size bytes are written, and verify reads the blocks back once, at the end; fio counts what it reads back as part of io_size",
    ),
    told(|job, _| reads_back(job) && passes(job) && !exceeds(job))
        .because("verify reads the blocks back once, at the end; fio after each pass over the files"),
    told(|job, _| job.engine.buffers() == Buffers::None && !is_default(&job.content))
        .because("ioengine={engine} writes nothing whose content could be chosen"),
];

/// Turns a complete draft into a job. An option that is missing is reported at `section`.
pub(super) fn checked(mut draft: Draft, section: &Place, warnings: &mut Vec<Warning>) -> Result<JobPlan, ParseError> {
    warnings.extend(endless(&mut draft.job));
    let complaint = broken(FIRST, &draft)
        .or_else(|| region(&mut draft.job))
        .or_else(|| block_size(&draft.job))
        .or_else(|| broken(LAST, &draft))
        .or_else(|| header(&draft.job));
    if let Some((option, reason)) = complaint {
        let reason = format!("job {}: {reason}", Quoted(&draft.job.name));
        return Err(ParseError::option(option, draft.places.get(option).unwrap_or(section), Wrong::new(reason)));
    }
    warnings.extend(unread(&draft));
    warnings.extend(more_files(&draft));
    for (code, rules) in [(Code::OptionIgnored, IGNORED), (Code::OptionDiffers, DIFFERS)] {
        let broken = rules.iter().filter(|rule| (rule.broken)(&draft.job, &draft));
        warnings.extend(broken.map(|rule| caveat(code, &draft.job, &rule.sentence(&draft.job))));
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

/// Options that are given and that the engine does not read, or iotoll does not.
fn unread(draft: &Draft) -> impl Iterator<Item = Warning> {
    let job = &draft.job;
    let given = |option: &str| draft.places.contains_key(option);
    let unread = options::of_other_engines(job).filter(move |option| given(option));
    let unread = unread.map(|option| format!("{option} has no effect with ioengine={}", job.engine.name()));
    let said = options::all_said().filter(move |(option, _)| given(option));
    unread.chain(said.map(|(option, what)| format!("{option}: {what}"))).map(|what| differs(job, what))
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
    let block = job.least_block().0;
    (block < header).then(|| {
        let (word, block) = (word(method), Short(block));
        ("verify", format!("verify={word} needs {header} bytes for each header, more than {block}; use a larger bs"))
    })
}

/// The first rule of these that a job breaks.
fn broken(rules: &[Rule], draft: &Draft) -> Option<Complaint> {
    let rule = rules.iter().find(|rule| (rule.broken)(&draft.job, draft))?;
    Some((rule.option, rule.sentence(&draft.job)))
}

/// The option that syncs what a job writes, and after how many writes.
fn syncs(job: &JobPlan) -> Option<(&'static str, u32)> {
    let sync = match (job.sync.every, job.sync.data_every) {
        (0, 0) => None,
        (0, every) => Some(("fdatasync", every)),
        (every, _) => Some(("fsync", every)),
    };
    sync.filter(|_| job.access.writes() && job.engine.medium() != Medium::Nothing)
}

/// Whether a job moves more than `size` in one loop.
fn exceeds(job: &JobPlan) -> bool {
    let more = match (job.duration.io_size, job.target.size) {
        (Some(Size::Bytes(io_size)), Some(Size::Bytes(size))) => io_size > size,
        // The size of the files decides.
        (Some(Size::Bytes(_)), _) => true,
        _ => false,
    };
    more && job.duration.loops == 1
}

/// Whether a job goes over its files more than once, by its amount of I/O.
fn passes(job: &JobPlan) -> bool {
    (job.duration.loops > 1 || exceeds(job)) && !job.duration.time_based
}

fn may_pass_again(job: &JobPlan) -> bool {
    job.duration.loops > 1 || job.duration.io_size.is_some() || job.duration.time_based
}

/// Whether the blocks are read back when all are written.
fn reads_back(job: &JobPlan) -> bool {
    checks(job) && job.verify.after && job.verify.backlog == 0 && job.access.writes()
}

/// Whether a random order has blocks above the smallest size, also if that is the size of a direction that the job does not use.
fn unequal_blocks(job: &JobPlan) -> bool {
    let smallest = job.smallest_block().0;
    job.order == Order::Random && job.has_random_map() && job.used_sizes().any(|sizes| sizes.least() > smallest)
}

/// I/Os and bytes per second of each direction.
fn each_rate(job: &JobPlan) -> impl Iterator<Item = (u64, u64)> {
    job.pace.ios.each().into_iter().zip(job.pace.bytes.each().map(|bytes| bytes.0))
}

fn has_rate(job: &JobPlan) -> bool {
    each_rate(job).any(|(ios, bytes)| ios > 0 || bytes > 0)
}

fn has_files(job: &JobPlan) -> bool {
    job.engine.medium() == Medium::Files
}

fn checks(job: &JobPlan) -> bool {
    job.verify.method.is_some()
}

fn holds_data(job: &JobPlan) -> bool {
    matches!(job.engine.medium(), Medium::Files | Medium::Remote)
}
