//! The targets of the I/O: files that are found, laid out and, when a run fails, removed again.

use crate::demand::amount_of;
use crate::error::{Error, Result};
use crate::guardian::file_identity::{Identity, Lengthened};
use crate::guardian::undo::{Made as How, Undo};
use crate::guardian::{Guardian, UndoGuard};
use model::plan::{Access, Fallocate, JobPlan, Order, Size};
use rustix::fs::{Advice, FallocateFlags, FileType, OFlags};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

mod device;

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

/// Files that this run created or lengthened, undone unless the run ends well, and the devices that it has claimed for
/// its duration.
#[derive(Debug, Default)]
pub struct Created {
    made: Mutex<Made>,
    /// Undoes it if iotoll is killed.
    guardian: Guardian,
}

#[derive(Debug, Default)]
struct Made {
    /// Files that did not exist.
    created: BTreeMap<PathBuf, (Identity, UndoGuard)>,
    /// Folders that did not exist, each behind the one that it is in.
    folders: Vec<(PathBuf, UndoGuard)>,
    /// Of those, files that a job wants removed (`unlink`).
    unlinked: BTreeSet<PathBuf>,
    /// Files that were shorter.
    lengthened: BTreeMap<PathBuf, (Lengthened, UndoGuard)>,
    /// Devices by number, opened so that no other process can mount or claim them.
    devices: BTreeMap<u64, File>,
}

impl Created {
    /// `guardian` undoes the changes if iotoll is killed.
    pub fn guarded(guardian: Guardian) -> Self {
        Self { guardian, made: Mutex::default() }
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the removal of a file before it is made.
    fn will_create(&self, path: &Path) -> Result<UndoGuard> {
        self.guardian.add(Undo::RemoveFile { path: absolute(path)?, made: How::soon() })
    }

    fn note_created(&self, path: &Path, file: Identity, held: UndoGuard) -> Result<()> {
        let amended = held.amend(Undo::RemoveFile { path: absolute(path)?, made: How::Is(file) });
        self.made().created.insert(path.to_owned(), (file, held));
        amended
    }

    fn note_lengthened(&self, path: &Path, file: Identity, from: u64, to: u64) -> Result<()> {
        let mut made = self.made();
        if made.created.contains_key(path) {
            return Ok(());
        }
        let undo = |lengthened| Ok(Undo::Shorten { path: absolute(path)?, lengthened });
        match made.lengthened.entry(path.to_owned()) {
            // A later job may lengthen it again; the original length counts.
            Entry::Occupied(mut there) => {
                let (lengthened, held) = there.get_mut();
                lengthened.to = to;
                held.amend(undo(*lengthened)?)
            }
            Entry::Vacant(place) => {
                let lengthened = Lengthened { file, from, to };
                place.insert((lengthened, self.guardian.add(undo(lengthened)?)?));
                Ok(())
            }
        }
    }

    /// Claims a device that will be written to.
    fn claim(&self, path: &Path, plan: &JobPlan) -> Result<()> {
        let number =
            fs::metadata(path).map_err(|error| Error::file(path, "reading the device's metadata", error))?.rdev();
        let mut made = self.made();
        if let Entry::Vacant(place) = made.devices.entry(number) {
            place.insert(device::claim(path, plan)?);
        }
        Ok(())
    }

    /// Whether this run made the file.
    pub fn has_made(&self, path: &Path) -> bool {
        self.made().created.contains_key(path)
    }

    /// The run ended well: the files that it created stay, as fio's do, unless a job has `unlink`. Devices are released.
    pub fn keep(&self) {
        let mut made = self.made();
        made.devices.clear();
        made.lengthened.clear();
        let unlinked = std::mem::take(&mut made.unlinked);
        made.folders.clear();
        made.created.retain(|path, _| unlinked.contains(path));
        remove(std::mem::take(&mut made.created));
    }

    /// Undoes the changes, as on drop, except for files that belong to another process now. Devices are released.
    pub fn undo(&self) {
        // The run has failed already, so an error here is not reported.
        let mut made = self.made();
        made.devices.clear();
        for (path, (lengthened, _held)) in std::mem::take(&mut made.lengthened) {
            let _ = lengthened.undo(&path);
        }
        remove(std::mem::take(&mut made.created));
        for (path, _held) in std::mem::take(&mut made.folders).into_iter().rev() {
            // Only if nothing else is in it.
            let _ = fs::remove_dir(path);
        }
    }

    /// Makes the missing folders on the way to a file, as fio does.
    fn make_folders(&self, file: &Path) -> Result<()> {
        let missing: Vec<&Path> = file
            .ancestors()
            .skip(1)
            .take_while(|folder| !folder.as_os_str().is_empty() && fs::symlink_metadata(folder).is_err())
            .collect();
        for folder in missing.into_iter().rev() {
            let held = self.guardian.add(Undo::RemoveFolder { path: absolute(folder)?, made: How::soon() })?;
            match fs::create_dir(folder) {
                Ok(()) => self.made().folders.push((folder.to_owned(), held)),
                // `a/..` is there as soon as `a` is.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
                Err(error) => return Err(Error::file(folder, "making the folder of a file", error)),
            }
        }
        Ok(())
    }
}

/// Removes files that were made, but for what has become somebody else's.
fn remove(created: BTreeMap<PathBuf, (Identity, UndoGuard)>) {
    for (path, (file, _held)) in created {
        if fs::symlink_metadata(&path).is_ok_and(|metadata| Identity::of(&metadata) == file) {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        self.undo();
    }
}

/// Receives the progress of laying out: path, bytes written, bytes in total. Returning `false` ends it.
pub type LayoutProgress<'a> = &'a mut dyn FnMut(&Path, u64, u64) -> bool;

/// Finds or makes the files of one copy of a job.
///
/// # Errors
/// Refused or failed, with the fix; files made so far are in `created`.
pub fn prepare(plan: &JobPlan, copy: u32, created: &Created, progress: LayoutProgress) -> Result<Vec<Target>> {
    if let Some(folder) = plan.directory_of(copy)
        && !fs::metadata(folder).is_ok_and(|metadata| metadata.is_dir())
    {
        let name = &plan.name;
        return Err(Error::Refused(format!(
            "job '{name}': directory={folder} is not a folder that exists; make it first"
        )));
    }
    refuse_ascent(plan)?;
    let paths = paths(plan, copy);
    let count = paths.len() as u64;
    let mut targets = Vec::with_capacity(paths.len());
    for (number, path) in (0..).zip(paths) {
        refuse_files_of_the_kernel(plan, &path)?;
        created.make_folders(&path)?;
        targets.push(prepare_one(plan, path, Share { number, count }, created, progress)?);
    }
    Ok(targets)
}

/// The name of a job is that of its file if it has no `filename`. It may be in a folder, but not lead out of the current one.
fn refuse_ascent(plan: &JobPlan) -> Result<()> {
    let stem = Path::new(plan.file_stem());
    if plan.target.files.is_empty()
        && stem.components().any(|part| part == Component::ParentDir)
        && stem.parent() != Some(Path::new(""))
    {
        return Err(Error::Refused(format!(
            "job '{}': without filename=, the name is that of the file, which '..' would put elsewhere; use another name, or add filename=",
            plan.name
        )));
    }
    Ok(())
}

/// Refuses files that the kernel makes up: they are no storage, and a write to one changes a setting.
fn refuse_files_of_the_kernel(plan: &JobPlan, path: &Path) -> Result<()> {
    // From linux/magic.h.
    const MADE_UP: [(u64, &str); 8] = [
        (0x9fa0, "proc"),
        (0x6265_6572, "sysfs"),
        (0x6462_6720, "debugfs"),
        (0x7472_6163, "tracefs"),
        (0x0027_e0eb, "cgroup"),
        (0x6367_7270, "cgroup2"),
        (0xcafe_4a11, "bpf"),
        (0x7363_6673, "securityfs"),
    ];
    let absolute = absolute(path)?;
    let Some(there) = absolute.ancestors().find(|path| path.exists()) else { return Ok(()) };
    // A device or a pipe that such a file leads to is judged by itself.
    if there == absolute && !there.is_file() {
        return Ok(());
    }
    let Ok(held) = rustix::fs::statfs(there) else { return Ok(()) };
    match MADE_UP.iter().find(|(magic, _)| u64::try_from(held.f_type).is_ok_and(|found| found == *magic)) {
        Some((_, kind)) => Err(Error::Refused(format!(
            "job '{}': {} is in the file system {kind}, whose files the kernel makes up; use a file on storage, or on tmpfs",
            plan.name,
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses to lay out more than the file system has room for, before anything is written.
fn refuse_without_room(plan: &JobPlan, path: &Path, file: &File, bytes: u64) -> Result<()> {
    let allocates = !matches!(plan.fallocate, Fallocate::None | Fallocate::Truncate);
    let Ok(held) = rustix::fs::fstatvfs(file) else { return Ok(()) };
    let room = held.f_bavail.saturating_mul(held.f_frsize);
    if bytes <= room || !(allocates || reads(plan)) {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "job '{}': {} needs {} more, but its file system has {} free; use a smaller size=, or another directory=",
        plan.name,
        path.display(),
        amount_of(bytes),
        amount_of(room)
    )))
}

/// Which of a job's files one is: `size` is divided among all of them.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    pub number: u64,
    pub count: u64,
}

impl Share {
    /// The only file.
    pub const ALL: Self = Self { number: 0, count: 1 };

    /// The part of `size` that this file gets. As in fio, whole blocks of what remains go to the first files.
    fn of(self, size: u64, block: u64) -> u64 {
        let each = size / self.count.max(1);
        let rest = size.saturating_sub(each.saturating_mul(self.count)) / block.max(1);
        if self.number < rest { each.saturating_add(block) } else { each }
    }
}

/// Absolute, because the guardian has another working directory.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::file(path, "resolving the path", error))
}

fn paths(plan: &JobPlan, copy: u32) -> Vec<PathBuf> {
    let names = match plan.target.files.as_slice() {
        [] => vec![format!("{}.{copy}.0", plan.file_stem())],
        names => names.to_vec(),
    };
    // As in fio, a name that begins with a slash is in the directory too.
    let within = |name: String| match plan.directory_of(copy) {
        Some(directory) => format!("{directory}/{name}"),
        None => name,
    };
    names.into_iter().map(|name| PathBuf::from(within(name))).collect()
}

fn prepare_one(
    plan: &JobPlan,
    path: PathBuf,
    share: Share,
    created: &Created,
    progress: LayoutProgress,
) -> Result<Target> {
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::file(&path, "reading the file's metadata", error)),
    };
    let kind = metadata.as_ref().map(|metadata| metadata.file_type());
    let device = kind.is_some_and(|kind| kind.is_block_device());
    let endless = metadata.as_ref().is_some_and(device::is_endless);
    if let Some(kind) = kind
        && !kind.is_file()
        && !device
        && !endless
    {
        let what =
            if kind.is_dir() { "a directory; put it into directory=" } else { "neither a file nor a block device" };
        return Err(Error::Refused(format!("job '{}': {} is {what}", plan.name, path.display())));
    }
    if endless && matches!(plan.access, Access::Trim | Access::TrimWrite) {
        let path = path.display();
        return Err(Error::Refused(format!("job '{}': {path} has no blocks to trim; use a file or device", plan.name)));
    }
    if endless && reads(plan) {
        device::refuse_nothing_to_read(&path, plan)?;
    }
    if device && writes(plan) {
        device::refuse_unsafe_write(&path, plan)?;
        created.claim(&path, plan)?;
    }
    let length = match (&metadata, device) {
        (_, true) => device::size(&path)?,
        (Some(metadata), false) => metadata.size(),
        (None, false) => 0,
    };
    let mut span = span(plan, &path, share, metadata.is_some(), length)?;
    if endless {
        return opened(plan, Target { path, span });
    }
    let end = span.begin.saturating_add(span.length);
    span.beyond = length.saturating_sub(end);
    if device && end > length {
        return Err(Error::Refused(format!(
            "job '{}': {} has {length} bytes, but offset + size is {end}; use a smaller size=",
            plan.name,
            path.display()
        )));
    }
    if !device && end > length {
        let held = if metadata.is_some() { UndoGuard::default() } else { created.will_create(&path)? };
        let file = open_to_lay_out(plan, &path, metadata.is_some())?;
        // After the file is known to be ours, and before anything is written to it.
        let opened = file.metadata().map_err(|error| Error::file(&path, "reading the file's metadata", error))?;
        let file_is = Identity::of(&opened);
        if metadata.is_some() {
            created.note_lengthened(&path, file_is, length, end)?;
        } else {
            created.note_created(&path, file_is, held)?;
        }
        refuse_without_room(plan, &path, &file, end - length)?;
        lay_out(plan, file, &path, length, end, progress)?;
    }
    if plan.unlink && !device {
        created.made().unlinked.insert(path.clone());
    }
    opened(plan, Target { path, span })
}

/// Opens it once as the engine will, so that an error shows before the measurement.
fn opened(plan: &JobPlan, target: Target) -> Result<Target> {
    open(plan, &target)?;
    Ok(target)
}

fn writes(plan: &JobPlan) -> bool {
    plan.access.changes()
}

fn reads(plan: &JobPlan) -> bool {
    matches!(plan.access, Access::Read | Access::ReadWrite)
}

/// The part that a job uses of a target with `length` bytes.
pub(crate) fn span(plan: &JobPlan, path: &Path, share: Share, exists: bool, length: u64) -> Result<Span> {
    let part = |percent: u8| super::amount::share(length, percent);
    // Whole blocks, as in fio: otherwise every I/O would touch one page more.
    let block = plan.block_sizes.smallest().0.max(1);
    let begin = match plan.target.offset {
        Size::Bytes(bytes) => bytes.0,
        Size::Percent(percent) => part(percent).next_multiple_of(block),
    };
    let absolute = matches!(plan.target.size, Some(Size::Bytes(_)));
    if !absolute && length > 0 && begin > length {
        let (name, path) = (&plan.name, path.display());
        return Err(Error::Refused(format!(
            "job '{name}': {path} has {length} bytes, but offset={begin} is behind its end; use a smaller offset="
        )));
    }
    let wanted = match plan.target.size {
        Some(Size::Bytes(bytes)) => share.of(bytes.0, block),
        Some(Size::Percent(percent @ ..100)) if length > 0 => {
            let wanted = part(percent).min(length.saturating_sub(begin));
            wanted - wanted % block
        }
        Some(Size::Percent(_)) | None if length > 0 => length.saturating_sub(begin),
        _ => {
            let what = if exists { "is empty" } else { "does not exist" };
            let path = path.display();
            return Err(Error::Refused(format!("job '{}': {path} {what}; give size= in bytes", plan.name)));
        }
    };
    if !absolute && length > 0 && wanted < block {
        let (name, path) = (&plan.name, path.display());
        return Err(Error::Refused(format!(
            "job '{name}': {path} has {length} bytes; from offset={begin} on, the job has {wanted} of them, less than a block of {block} \
             bytes; use a smaller offset= or bs=, or a larger size="
        )));
    }
    if begin.checked_add(wanted).is_none_or(|end| end > i64::MAX as u64) {
        return Err(Error::Refused(format!("job '{}': offset + size exceeds the largest possible file", plan.name)));
    }
    Ok(Span { begin, length: wanted, beyond: 0 })
}

/// Opens a file that is to be made or lengthened. A missing file must really be created here: through a dangling link,
/// a file elsewhere would be made, and the link removed afterwards.
fn open_to_lay_out(plan: &JobPlan, path: &Path, exists: bool) -> Result<File> {
    let what = if exists { "opening the file to lengthen it" } else { "creating the file" };
    let file = OpenOptions::new().write(true).create_new(!exists).open(path);
    file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Refused(format!(
            "job '{}': {} is a link to a file that does not exist; remove the link, or make that file",
            plan.name,
            path.display()
        )),
        _ => Error::file(path, what, error),
    })
}

/// Makes the file as large as the job needs. Data that the job reads is written first, because reading a hole never
/// reaches the device.
fn lay_out(plan: &JobPlan, mut file: File, path: &Path, length: u64, end: u64, progress: LayoutProgress) -> Result<()> {
    let failed = |what: &'static str| move |error: io::Error| Error::file(path, what, error);
    allocate(&file, plan.fallocate, length, end).map_err(failed("allocating the file"))?;
    if reads(plan) {
        write_noise(&mut file, path, length, end, progress)?;
        file.sync_all().map_err(failed("syncing the file"))?;
    }
    Ok(())
}

fn allocate(file: &File, how: Fallocate, length: u64, end: u64) -> io::Result<()> {
    let flags = match how {
        Fallocate::None => return Ok(()),
        Fallocate::Truncate => return file.set_len(end),
        Fallocate::Keep => FallocateFlags::KEEP_SIZE,
        Fallocate::Native | Fallocate::Posix => FallocateFlags::empty(),
    };
    match rustix::fs::fallocate(file, flags, length, end - length) {
        // Without allocation the file system assigns blocks when they are written.
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(end),
        other => Ok(other?),
    }
}

fn write_noise(file: &mut File, path: &Path, begin: u64, end: u64, progress: LayoutProgress) -> Result<()> {
    use std::io::Seek;
    const CHUNK: usize = 1 << 20;
    let failed = |error| Error::file(path, "laying out the file", error);
    let mut chunk = vec![0; CHUNK];
    let mut seed = 0x6e01_5e00 ^ begin;
    file.seek(io::SeekFrom::Start(begin)).map_err(failed)?;
    let mut done = begin;
    while done < end {
        if !progress(path, done - begin, end - begin) {
            return Err(Error::Interrupted(format!("while laying out {}", path.display())));
        }
        fill_with_noise(&mut chunk, &mut seed);
        let length = (end - done).min(CHUNK as u64) as usize;
        file.write_all(chunk.get(..length).unwrap_or(&chunk)).map_err(failed)?;
        done += length as u64;
    }
    Ok(())
}

/// Fills memory with bytes that neither compress nor repeat.
pub fn fill_with_noise(memory: &mut [u8], seed: &mut u64) {
    for word in memory.chunks_mut(8) {
        let noise = super::permutation::split_mix(seed).to_le_bytes();
        for (byte, noise) in word.iter_mut().zip(noise) {
            *byte = noise;
        }
    }
}

/// Opens a target for a job's engine, and advises the kernel of its access pattern as fio does by default
/// (fadvise_hint), which decides the read-ahead.
///
/// # Errors
/// Also when O_DIRECT is not supported, or the job's block sizes or offset are not multiples of its alignment.
pub fn open(plan: &JobPlan, target: &Target) -> Result<File> {
    let path = &target.path;
    let mut options = OpenOptions::new();
    // Access times are updated, as for fio and most programs: the cost of that is part of a read.
    options.read(reads(plan) || plan.verify.reads_between()).write(writes(plan));
    if plan.direct {
        options.custom_flags(OFlags::DIRECT.bits().cast_signed());
    }
    let file = options.open(path).map_err(|error| match (plan.direct, error.raw_os_error()) {
        (true, Some(22)) => Error::Refused(format!(
            "job '{}': the file system of {} has no O_DIRECT; use direct=0 or another filename=",
            plan.name,
            path.display()
        )),
        _ => Error::file(path, "opening", error),
    })?;
    if plan.direct {
        device::refuse_misalignment(plan, target, &file)?;
    }
    let advice = match plan.order {
        Order::Random => Advice::Random,
        Order::Sequential => Advice::Sequential,
    };
    // Only advice: a failure changes nothing else.
    let _ = rustix::fs::fadvise(&file, target.span.begin, std::num::NonZeroU64::new(target.span.length), advice);
    Ok(file)
}

/// Whether this part of the file has holes; reading a hole does not reach the device.
pub fn has_holes(target: &Target) -> bool {
    let Ok(file) = File::open(&target.path) else { return false };
    let regular = rustix::fs::fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
    let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(target.span.begin));
    regular && hole.is_ok_and(|hole| hole < target.span.begin + target.span.length)
}

#[cfg(test)]
mod tests;
