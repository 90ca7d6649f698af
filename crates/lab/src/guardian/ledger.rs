//! The ledger: a file for each iotoll that has something to undo, in case both iotoll and its guardian are killed.
//!
//! Lines of JSON: a header, then the same entries that the guardian receives. Nothing is written between slices. The
//! process that has undone everything removes the file.

use super::path_text;
use super::processes::Leader;
use super::setting_file::shown;
use super::undo::{Switched, Undo};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "iotoll.ledger/3";
/// Most bytes of a ledger. One with a thousand files has a tenth of that.
const LONGEST: u64 = 4 << 20;
/// File name extension of ledgers.
const ENDING: &str = "jsonl";

/// A line of a ledger.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Opened(Header),
    Add(u64, Undo),
    Drop(u64),
}

/// The writer, and when it started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    schema: String,
    /// Kernel's id of this boot.
    pub boot_id: String,
    /// When the ledger was created.
    pub unix_seconds: f64,
    pub command_line: Vec<String>,
    #[serde(with = "path_text")]
    pub directory: PathBuf,
    pub iotoll: Option<Leader>,
}

/// Folder of the ledgers. `None` if no environment variable names one.
pub(super) fn folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = named("XDG_STATE_HOME").or_else(|| match rustix::process::geteuid().is_root() {
        true => Some("/var/lib".into()),
        false => named("HOME").map(|home| home.join(".local/state")),
    })?;
    Some(state.join("iotoll"))
}

/// The ledger of this process.
#[derive(Debug)]
pub(super) struct Ledger {
    command_line: Vec<String>,
    written: Option<(PathBuf, File)>,
    trouble: Option<String>,
}

impl Ledger {
    pub fn new(command_line: Vec<String>) -> Self {
        Self { command_line, written: None, trouble: None }
    }

    /// Its path, if it exists.
    pub fn path(&self) -> Option<&Path> {
        self.written.as_ref().map(|(path, _)| path.as_path())
    }

    /// Why it cannot be written, if it cannot.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Adds an entry, and creates the file if there is none. Returns whether it did.
    pub fn add(&mut self, number: u64, undo: &Undo) -> bool {
        let Some(undo) = lasting(undo) else { return false };
        let begins = self.written.is_none() && self.trouble.is_none();
        if begins {
            match create(self.command_line.clone()) {
                Ok(written) => self.written = Some(written),
                Err(why) => self.trouble = Some(why),
            }
        }
        let durable = matches!(undo, Undo::Restore(_));
        self.write(&Line::Add(number, undo), durable);
        begins && self.written.is_some()
    }

    /// Withdraws an entry.
    pub fn give_up(&mut self, number: u64) {
        self.write(&Line::Drop(number), false);
    }

    /// Removes the file: nothing is left to undo.
    pub fn remove(&mut self) {
        if let Some((path, _)) = self.written.take() {
            remove(&path);
        }
    }

    fn write(&mut self, line: &Line, durable: bool) {
        let Some((path, file)) = &mut self.written else { return };
        let written = text(line).and_then(|text| file.write_all(&text));
        // A setting may survive a crash of the machine, and so must its entry.
        let written = written.and_then(|()| if durable { file.sync_all() } else { Ok(()) });
        if let Err(error) = written {
            self.trouble = Some(format!("{}: {error}", path.display()));
        }
    }
}

fn text(line: &Line) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// The part of an entry that is useful without the guardian: only those files for which the values that iotoll sets are
/// known.
fn lasting(undo: &Undo) -> Option<Undo> {
    match undo {
        Undo::Restore(files) => {
            let known = |file: &&Switched| !file.set.is_empty();
            Some(Undo::Restore(files.iter().filter(known).cloned().collect()))
        }
        Undo::Run { .. } => None,
        other => Some(other.clone()),
    }
}

/// Creates a ledger, or returns why that fails.
fn create(command_line: Vec<String>) -> Result<(PathBuf, File), String> {
    let folder = folder().ok_or("neither XDG_STATE_HOME nor HOME is set to an absolute path")?;
    let header = Header {
        schema: SCHEMA.to_owned(),
        boot_id: crate::host::boot_id().unwrap_or_default(),
        unix_seconds: crate::host::now(),
        command_line,
        directory: std::env::current_dir().unwrap_or_default(),
        iotoll: Leader::of(std::process::id()),
    };
    let path = folder.join(format!("{}-{:.0}.{ENDING}", std::process::id(), header.unix_seconds * 1e6));
    let created = begin(&folder, &path).and_then(|mut file| {
        text(&Line::Opened(header)).and_then(|text| file.write_all(&text)).inspect_err(|_| remove(&path))?;
        // The name must survive a crash of the machine too. Not every file system can write a folder to disk.
        let _ = File::open(&folder).and_then(|folder| folder.sync_all());
        Ok(file)
    });
    Ok((path, created.map_err(|error| format!("{}: {error}", folder.display()))?))
}

fn begin(folder: &Path, path: &Path) -> io::Result<File> {
    /// Another iotoll may remove the empty folder meanwhile.
    const TRIES: usize = 100;
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for _ in 0..TRIES {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        outcome = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path);
        if outcome.as_ref().is_ok_and(|file| flock(file, FlockOperation::LockShared).is_ok()) {
            break;
        }
        if !outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            break;
        }
    }
    outcome
}

/// Removes a ledger, and the folder if it is empty then.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    // Fails while another ledger is in it.
    let _ = path.parent().map(fs::remove_dir);
}

/// A ledger that the guardian keeps open too, so that no other process acts on it while iotoll or the guardian lives.
#[derive(Debug)]
pub(super) struct Watched {
    path: PathBuf,
    /// Locked as long as this process lives.
    _file: File,
}

impl Watched {
    pub fn open(path: PathBuf) -> Option<Self> {
        let file = File::open(&path).ok()?;
        let _ = flock(&file, FlockOperation::LockShared);
        Some(Self { path, _file: file })
    }

    pub fn remove(self) {
        remove(&self.path);
    }
}

/// The owner of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// An iotoll that still runs.
    Iotoll,
    /// A process keeps it open, and no iotoll that runs here: a guardian is undoing, the kernel is ending both, they run in another PID
    /// namespace (container), or another iotoll is acting on it.
    Another,
    /// No process.
    Gone,
}

/// A ledger found on disk.
#[derive(Debug)]
pub(super) struct Found {
    pub path: PathBuf,
    pub header: Header,
    /// The newest first.
    pub entries: Vec<Undo>,
    pub holder: Holder,
    /// Locked exclusively, if no process owns the ledger.
    _file: File,
}

impl Found {
    /// Whether this process owns it.
    pub fn is_own(&self) -> bool {
        self.header.iotoll == Leader::of(std::process::id())
    }

    /// Keeps only these entries; the others are done. If that fails, the file stays as it is.
    pub fn keep(&self, entries: &[Undo]) -> io::Result<()> {
        let added = (0..).zip(entries).map(|(number, undo)| Line::Add(number, undo.clone()));
        let lines: io::Result<Vec<Vec<u8>>> =
            std::iter::once(Line::Opened(self.header.clone())).chain(added).map(|line| text(&line)).collect();
        let lines = lines?.concat();
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        // In place, because the lock belongs to this file; it becomes shorter, so a full disk has room for it.
        let mut file = OpenOptions::new().write(true).custom_flags(flags).open(&self.path)?;
        file.write_all(&lines)?;
        file.set_len(lines.len() as u64)?;
        file.sync_all()
    }

    /// Removes it: all its entries are done.
    pub fn remove(&self) {
        remove(&self.path);
    }
}

/// The ledgers of this user.
#[derive(Debug, Default)]
pub(super) struct Ledgers {
    pub found: Vec<Found>,
    /// Files that are left alone, because their entries would be acted on: which and why, one line each.
    pub refused: Vec<String>,
}

/// All ledgers of this user.
pub(super) fn all() -> Ledgers {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == ENDING));
    paths.sort();
    let mut ledgers = Ledgers::default();
    for path in paths {
        let shown = path.display().to_string();
        match read(path) {
            Ok(Some(found)) => ledgers.found.push(found),
            Ok(None) => {}
            Err(why) => ledgers.refused.push(format!("{shown}: {why}; it is left as it is")),
        }
    }
    ledgers
}

/// Whether this process, or the machine, has too many open files.
fn is_no_room(error: &io::Error) -> bool {
    let limits = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(rustix::io::Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| limits.contains(&code))
}

/// Reads a ledger. `None` if it is being created or has just been removed.
///
/// # Errors
/// Why it must not be acted on.
fn read(path: PathBuf) -> Result<Option<Found>, String> {
    // Do not wait for a writer if it is a pipe.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let mut file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The limit of open files says nothing about the ledger, and is said where it matters. A later start finds it.
        Err(error) if is_no_room(&error) => return Ok(None),
        opened => opened.map_err(|error| format!("it looks like a ledger of iotoll, and cannot be opened: {error}"))?,
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let user = rustix::process::geteuid().as_raw();
    match metadata.is_file() {
        true if metadata.uid() != user => {
            return Err(format!(
                "it looks like a ledger of iotoll, and belongs to user {}, not {user}",
                metadata.uid()
            ));
        }
        true if metadata.mode() & 0o022 != 0 => {
            return Err("it looks like a ledger of iotoll, and other users can write to it (see its mode)".to_owned());
        }
        true if metadata.len() > LONGEST => return Err("it is too long for a ledger of iotoll".to_owned()),
        true => {}
        false => return Err("it is named like a ledger of iotoll, and is not a regular file".to_owned()),
    }
    let mut text = Vec::new();
    io::Read::read_to_end(&mut file, &mut text).map_err(|error| error.to_string())?;
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    // The change that belongs to an incomplete line was not made.
    let mut lines = lines.filter(|line| line.ends_with(b"\n"));
    let Some(first) = lines.next() else { return Ok(None) };
    let header = header(first)?;
    let mut entries = BTreeMap::new();
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(Line::Opened(_)) => {}
            Ok(Line::Add(number, undo)) => _ = entries.insert(number, undo),
            Ok(Line::Drop(number)) => _ = entries.remove(&number),
            Err(_) => {
                let line = String::from_utf8_lossy(line);
                return Err(format!("its entry {} is not understood; {MEND}", shown(&line)));
            }
        }
    }
    let same_boot = crate::host::boot_id().is_ok_and(|now| now == header.boot_id);
    let free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let holder = match header.iotoll.filter(|iotoll| same_boot && iotoll.lives()) {
        Some(iotoll) if !iotoll.is_dying() => Holder::Iotoll,
        None if free => Holder::Gone,
        _ => Holder::Another,
    };
    let entries = entries.into_values().rev().collect();
    Ok(Some(Found { path, header, entries, holder, _file: file }))
}

/// What to do with a ledger that this version cannot act on.
const MEND: &str = "start the iotoll that wrote it to undo its changes, or undo them by hand and remove the file";

/// The header in the first line.
fn header(line: &[u8]) -> Result<Header, String> {
    match serde_json::from_slice(line) {
        Ok(Line::Opened(header)) if header.schema == SCHEMA => Ok(header),
        Ok(Line::Opened(Header { schema, .. })) => {
            Err(format!("its schema is '{}', not {SCHEMA}: another version of iotoll wrote it; {MEND}", shown(&schema)))
        }
        _ => {
            Err("it is named like a ledger of iotoll, and is none, or damaged; undo by hand what it lists, and remove \
                  the file"
                .to_owned())
        }
    }
}
