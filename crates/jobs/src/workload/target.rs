//! The targets of the I/O: files that are found, laid out and, when a run fails, removed again; and what is said of them before.

mod device;
mod layout;
mod names;
mod region;

use crate::worker_pool::JobCopy;
pub use device::least_direct_block;
use lab::created::Created;
use lab::error::{Error, Result};
use lab::guardian::UndoGuard;
use lab::guardian::undo::{Identity, Made};
pub use layout::fill_with_noise;
use model::plan::{Access, EngineKind, JobPlan, Order, Size, WriteSync};
use model::warning::{Code, Warning, add_once};
pub(crate) use names::{file_system_of_the_kernel, paths};
pub(crate) use region::{Share, span};
use rustix::fs::{Advice, FileType, OFlags};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The part of a file that a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Span {
    /// First byte.
    pub begin: u64,
    /// Bytes.
    pub length: u64,
    /// Bytes of the file behind the part. The last block of a sequential job may reach into them, as in fio.
    #[serde(default)]
    pub beyond: u64,
}

/// A file or device that a job uses.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Target {
    pub path: PathBuf,
    /// The part in use.
    pub span: Span,
}

/// Receives the progress of laying out: path, bytes written, bytes in total. Returning `false` ends it.
pub type LayoutProgress<'a> = &'a mut dyn FnMut(&Path, u64, u64) -> bool;

/// Finds or makes the files of one copy of a job.
///
/// # Errors
/// Refused or failed, with the fix; files made so far are in `created`.
pub fn prepare(plan: &JobPlan, copy: u32, created: &Created, progress: LayoutProgress) -> Result<Vec<Target>> {
    if let Some(folder) = &plan.target.directory
        && !fs::metadata(folder).is_ok_and(|metadata| metadata.is_dir())
    {
        let why = format_args!("directory={folder} is not a folder that exists; make it first");
        return Err(Error::refused(plan, why));
    }
    names::refuse_ascent(plan)?;
    let paths = names::paths(plan, copy);
    let count = paths.len() as u64;
    let mut targets = Vec::with_capacity(paths.len());
    for (number, path) in (0..).zip(paths) {
        names::refuse_files_of_the_kernel(plan, &path)?;
        created.make_folders(&path)?;
        let share = Share { copy, number, count };
        targets.push(prepare_one(plan, path, share, created, progress)?);
    }
    Ok(targets)
}

/// The metadata of a path, or that nothing is there.
fn if_there(found: io::Result<fs::Metadata>, path: &Path) -> Result<Option<fs::Metadata>> {
    match found {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file(path, "reading the file's metadata", error)),
    }
}

fn prepare_one(
    plan: &JobPlan,
    path: PathBuf,
    share: Share,
    created: &Created,
    progress: LayoutProgress,
) -> Result<Target> {
    let metadata = if_there(fs::metadata(&path), &path)?;
    let kind = metadata.as_ref().map(|metadata| metadata.file_type());
    let device = kind.is_some_and(|kind| kind.is_block_device());
    let endless = metadata.as_ref().is_some_and(device::is_endless);
    let refused = |why: String| Err(Error::refused_file(plan, &path, why));
    if let Some(kind) = kind.filter(|kind| !kind.is_file() && !device && !endless) {
        return refused(match kind.is_dir() {
            true => "is a directory; put it into directory=".to_owned(),
            false => "is neither a file nor a block device".to_owned(),
        });
    }
    if endless && plan.access.trims() {
        return refused("has no blocks to trim; use a file or device".to_owned());
    }
    if endless && plan.access.reads() {
        device::refuse_nothing_to_read(&path, plan)?;
    }
    if device && plan.access.changes() {
        device::refuse_unsafe_write(&path, plan)?;
        created.claim(&path, plan)?;
    }
    let length = match (&metadata, device) {
        (_, true) => device::size(&path)?,
        (Some(metadata), false) => metadata.size(),
        (None, false) => 0,
    };
    if let (Some(Size::Percent(percent @ 101..)), false) = (plan.target.size, device) {
        let why = "fio writes a file without end then; give size=100%, and loops= for more than one pass";
        return Err(Error::refused(plan, format_args!("size={percent}%: {}: {why}", path.display())));
    }
    let mut span = span(plan, &path, share, metadata.is_some(), length)?;
    if endless {
        return opened(plan, Target { path, span });
    }
    let end = span.begin.saturating_add(span.length);
    span.beyond = length.saturating_sub(end);
    if device && end > length {
        return refused(format!("has {length} bytes, but offset + size is {end}; use a smaller size="));
    }
    let making = plan.files.making;
    let exists = metadata.is_some();
    if making.forbidden && (!exists || !device && end > length) {
        return refused(format!(
            "has {length} of {end} bytes, and allow_file_create=0 or --readonly forbids to make them; make it first"
        ));
    }
    if !device && end > length {
        if making.on_open && plan.access.reads() {
            return refused(
                "is too short to be read, and create_on_open=1 writes nothing into it; leave that out".to_owned(),
            );
        }
        if !making.on_open {
            make(plan, &path, (exists, length, end), created, progress)?;
        } else if !exists {
            make(plan, &path, (false, 0, 0), created, progress)?;
        }
    }
    if plan.files.unlink && !device {
        created.will_unlink(&path);
    }
    opened(plan, Target { path, span })
}

/// Makes a file, or makes it longer.
fn make(
    plan: &JobPlan,
    path: &Path,
    (exists, length, end): (bool, u64, u64),
    created: &Created,
    progress: LayoutProgress,
) -> Result<()> {
    let held = if exists { UndoGuard::default() } else { created.will_create(path)? };
    let file = layout::open_to_lay_out(plan, path, exists)?;
    // After the file is known to be ours, and before anything is written to it.
    let opened = file.metadata().map_err(|error| Error::file(path, "reading the file's metadata", error))?;
    let file_is = Identity::of(&opened);
    if exists {
        created.note_lengthened(path, file_is, length, end)?;
    } else {
        created.note_created(path, Made::Is(file_is), held)?;
    }
    if end == length {
        return Ok(());
    }
    layout::refuse_without_room(plan, path, &file, end - length)?;
    layout::lay_out(plan, file, path, length, end, progress)
}

/// Opens it once as the engine will, so that an error shows before the measurement.
fn opened(plan: &JobPlan, target: Target) -> Result<Target> {
    open(plan, &target)?;
    Ok(target)
}

#[cfg(test)]
mod tests;

/// asm-generic/fcntl.h. The constant of that name in rustix is O_SYNC.
const O_DSYNC: u32 = 0o10_000;

/// Opens a target for a job's engine, and advises the kernel of its access pattern as fio does by default
/// (fadvise_hint), which decides the read-ahead.
///
/// # Errors
/// Also when O_DIRECT is not supported, or the job's block sizes or offset are not multiples of its alignment.
pub fn open(plan: &JobPlan, target: &Target) -> Result<File> {
    let path = &target.path;
    let opening = plan.files.opening;
    let mut options = OpenOptions::new();
    // Access times are updated, as for fio and most programs: the cost of that is part of a read.
    // A mapping that is written is read, too.
    options
        .read(plan.access.reads() || plan.verify.reads_between() || plan.engine == EngineKind::Mmap)
        .write(plan.access.changes());
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, plan.direct);
    flags |= match opening.sync {
        WriteSync::None => OFlags::empty(),
        WriteSync::Sync => OFlags::SYNC,
        WriteSync::DataSync => OFlags::from_bits_retain(O_DSYNC),
    };
    options.custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|error| match (plan.direct, error.raw_os_error()) {
        (true, Some(22)) => {
            let why = "is in a file system without O_DIRECT; use direct=0 or another filename=";
            Error::refused_file(plan, path, why)
        }
        (_, Some(24)) => {
            Error::refused(plan, "this process may not open more files; use fewer files, or raise ulimit -n")
        }
        _ => Error::file(path, "opening", error),
    })?;
    if plan.direct {
        device::refuse_misalignment(plan, target, &file)?;
    }
    if opening.advises {
        let advice = if plan.order == Order::Random { Advice::Random } else { Advice::Sequential };
        // Only advice: a failure changes nothing else.
        let _ = rustix::fs::fadvise(&file, target.span.begin, std::num::NonZeroU64::new(target.span.length), advice);
    }
    Ok(file)
}

/// Whether this part of the file has holes; reading a hole does not reach the device.
fn has_holes(target: &Target) -> bool {
    let Ok(file) = File::open(&target.path) else { return false };
    let regular = rustix::fs::fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
    let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(target.span.begin));
    regular && hole.is_ok_and(|hole| hole < target.span.begin + target.span.length)
}

/// Says where `unlink` does otherwise than fio: with files that were there before, and with files that another job may
/// still use.
pub fn warn_of_unlinking<'a>(
    phases: impl IntoIterator<Item = &'a [JobCopy<'a>]>,
    created: &Created,
    warnings: &mut Vec<Warning>,
) {
    let mut phases = phases.into_iter().peekable();
    while let Some(copies) = phases.next() {
        for copy in copies.iter().filter(|copy| copy.plan.files.unlink) {
            for path in copy.targets.iter().map(|target| &target.path).filter(|path| path.is_file()) {
                let users = copies.iter().filter(|copy| copy.targets.iter().any(|target| target.path == *path)).count();
                let (job, made) = (&copy.plan.name, created.has_made(path));
                let path = path.display();
                let what = match (made, users > 1 || phases.peek().is_some()) {
                    (false, _) => "keeps {path}, because iotoll did not make it; fio removes it",
                    (true, true) => "removes {path} when the measurement ends; fio removes it when the job ends",
                    (true, false) => continue,
                };
                let message = format!("job '{job}': unlink=1 {}", what.replace("{path}", &path.to_string()));
                add_once(warnings, Warning::new(Code::OptionDiffers, message));
            }
        }
    }
}

/// Warns about every file that is read and has parts that were never written.
pub fn warn_of_holes<'a>(copies: impl IntoIterator<Item = &'a JobCopy<'a>>, warnings: &mut Vec<Warning>) {
    let readers = copies.into_iter().filter(|copy| copy.plan.access == Access::Read);
    for target in readers.flat_map(|copy| &copy.targets) {
        if !target.path.as_os_str().is_empty() && has_holes(target) {
            let message = format!(
                "{} has holes or blocks that were never written; reading them costs less than reading data. \
                 Remove it, and iotoll lays it out anew",
                target.path.display()
            );
            add_once(warnings, Warning::new(Code::UnwrittenBlocks, message));
        }
    }
}
