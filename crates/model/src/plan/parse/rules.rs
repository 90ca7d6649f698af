//! What options need and exclude: a row for each.

use super::{Complaint, Draft};
use crate::plan::job::{Access, Buffers, EngineKind, JobPlan, Medium, Order, Size, VerifyMethod, is_default};
use crate::unit::Nanos;

/// What an option needs or excludes.
pub(super) struct Rule {
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
}

/// What an engine needs, rates, and injected work.
pub(super) static FIRST: &[Rule] = &[
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
];

/// Files.
pub(super) static FILES: &[Rule] =
    &[refused("filename", |job, _| has_files(job) && job.target.files.iter().any(|name| name == "-")).because(
        "'-' means standard input or output to fio, which are no storage; use a file, './-' if that is its name",
    )];

/// Traces, and what is verified. The kernel moves MAX_RW_COUNT bytes in one call.
pub(super) static LAST: &[Rule] = &[
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
        .because("ioengine={engine} keeps nothing that could be read back; use an engine with files"),
    refused("do_verify", |job, _| checks(job) && job.verify.after && job.access == Access::ReadWrite && has_rate(job))
        .because(
            "a mix of reads and writes with a rate cannot be read back, because time decides what it writes; use \
             do_verify=0, or leave the rate out",
        ),
];

/// What has no effect, as in fio.
pub(super) static IGNORED: &[Rule] = &[
    told(|job, _| job.files.count.is_some() && !job.target.files.is_empty())
        .because("nrfiles has no effect beside filename, as in fio"),
    told(|job, _| job.files.name_format.is_some() && !job.target.files.is_empty())
        .because("filename_format has no effect beside filename, as in fio"),
];

/// Where a job deliberately does other work than fio 3.33 would: docs/guide/fio.md lists and explains these.
pub(super) static DIFFERS: &[Rule] = &[
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

/// The first rule of these that a job breaks.
pub(super) fn broken(rules: &[Rule], draft: &Draft) -> Option<Complaint> {
    let rule = rules.iter().find(|rule| (rule.broken)(&draft.job, draft))?;
    Some((rule.option, rule.sentence(&draft.job)))
}

/// What all of these rules say that a job breaks.
pub(super) fn all_broken(rules: &[Rule], draft: &Draft) -> impl Iterator<Item = String> {
    rules.iter().filter(|rule| (rule.broken)(&draft.job, draft)).map(|rule| rule.sentence(&draft.job))
}

impl Rule {
    fn sentence(&self, job: &JobPlan) -> String {
        let (sync, every) = syncs(job).unwrap_or(("", 1));
        let writes = if every == 1 { "each write".to_owned() } else { format!("every {every} writes") };
        let sentence = self.why.replace("{engine}", job.engine.name()).replace("{sync}", sync);
        sentence.replace("{writes}", &writes).replace("{files}", &job.file_count().to_string())
    }
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
