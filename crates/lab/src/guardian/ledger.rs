//! The ledger: a file for each iotoll that has something to undo, for the case that both iotoll and its guardian are killed.
//!
//! Lines of JSON: who writes it, then what the guardian is told, as it is told that. Nothing is written between slices. Whoever has
//! undone everything removes it.

use super::path_text;
use super::processes::Leader;
use super::undo::{Switched, Undo};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "iotoll.ledger/1";
/// How names of ledgers end.
const ENDING: &str = "jsonl";

/// A line of a ledger.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Opened(Header),
    Guardian(Leader),
    Add(u64, Undo),
    Drop(u64),
}

/// Who writes it, and when.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    schema: String,
    /// The kernel's name for the boot.
    pub boot_id: String,
    /// When it was begun.
    pub unix_seconds: f64,
    pub command_line: Vec<String>,
    #[serde(with = "path_text")]
    pub directory: PathBuf,
    pub iotoll: Option<Leader>,
}

/// Where ledgers are. `None` where nobody says.
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

    /// Where it is, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.written.as_ref().map(|(path, _)| path.as_path())
    }

    /// Why it cannot be written, if it cannot.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Adds an entry, to a new file where there is none: whether that is so.
    pub fn add(&mut self, number: u64, undo: &Undo, guardian: Option<u32>) -> bool {
        let Some(undo) = lasting(undo) else { return false };
        let begins = self.written.is_none() && self.trouble.is_none();
        if begins {
            match create(self.command_line.clone()) {
                Ok(written) => self.written = Some(written),
                Err(why) => self.trouble = Some(why),
            }
            self.note_guardian(guardian);
        }
        let durable = matches!(undo, Undo::Restore(_));
        self.write(&Line::Add(number, undo), durable);
        begins && self.written.is_some()
    }

    /// Gives an entry up.
    pub fn give_up(&mut self, number: u64) {
        self.write(&Line::Drop(number), false);
    }

    /// Notes which process guards the same.
    pub fn note_guardian(&mut self, guardian: Option<u32>) {
        if let Some(guardian) = guardian.and_then(Leader::of) {
            self.write(&Line::Guardian(guardian), false);
        }
    }

    /// Nothing is left to undo.
    pub fn remove(&mut self) {
        if let Some((path, _)) = self.written.take() {
            remove(&path);
        }
    }

    fn write(&mut self, line: &Line, durable: bool) {
        let Some((path, file)) = &mut self.written else { return };
        let written = text(line).and_then(|text| file.write_all(&text));
        // What survives a crash of the machine must be known after it.
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

/// What of an entry is of use when the guardian is gone: of files only those of which it is known what iotoll sets.
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

/// Begins a ledger; in words, why that cannot be.
fn create(command_line: Vec<String>) -> Result<(PathBuf, File), String> {
    let folder = folder().ok_or("neither XDG_STATE_HOME nor HOME says where it could be")?;
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
        Ok(file)
    });
    Ok((path, created.map_err(|error| format!("{}: {error}", folder.display()))?))
}

fn begin(folder: &Path, path: &Path) -> io::Result<File> {
    /// Another iotoll may take the empty folder away meanwhile.
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

/// Removes a ledger, and the folder if it was the last one.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    // It stays where another one is in it.
    let _ = path.parent().map(fs::remove_dir);
}

/// A ledger that the guardian holds too, so that nobody acts on it while one of us lives.
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

/// Whose ledger it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Somebody's who lives: not our affair.
    Iotoll,
    /// Its iotoll is gone, and its guardian, of this number, is about to undo everything.
    Guardian(u32),
    /// Nobody's any more.
    Gone,
}

/// A ledger that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub path: PathBuf,
    pub header: Header,
    /// The newest first.
    pub entries: Vec<Undo>,
    pub holder: Holder,
    /// Locked for us alone, where it is nobody's.
    _file: File,
}

impl Found {
    /// Lets a guardian go on that was stopped.
    pub fn wake_guardian(&self) {
        if let Holder::Guardian(process) = self.holder
            && let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(process, Signal::CONT);
        }
    }

    /// Whether it is this process's.
    pub fn is_own(&self) -> bool {
        self.header.iotoll == Leader::of(std::process::id())
    }

    /// Keeps these entries alone: the others were seen to.
    pub fn keep(&self, entries: &[Undo]) -> io::Result<()> {
        let added = (0..).zip(entries).map(|(number, undo)| Line::Add(number, undo.clone()));
        let lines: io::Result<Vec<Vec<u8>>> =
            std::iter::once(Line::Opened(self.header.clone())).chain(added).map(|line| text(&line)).collect();
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        // In place, because the lock is this file's.
        OpenOptions::new().write(true).truncate(true).custom_flags(flags).open(&self.path)?.write_all(&lines?.concat())
    }

    /// What was in it was seen to.
    pub fn remove(&self) {
        remove(&self.path);
    }
}

/// All ledgers of this user. What is not whole or not ours is not looked at: who reads it acts on it.
pub(super) fn all() -> Vec<Found> {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == ENDING));
    paths.sort();
    paths.into_iter().filter_map(read).collect()
}

fn read(path: PathBuf) -> Option<Found> {
    // A pipe would wait for a writer.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(&path).ok()?;
    let metadata = file.metadata().ok()?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0;
    if !metadata.is_file() || !ours {
        return None;
    }
    let mut text = Vec::new();
    io::Read::read_to_end(&mut file, &mut text).ok()?;
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').map(serde_json::from_slice::<Line>);
    let Some(Ok(Line::Opened(header))) = lines.next() else { return None };
    let (mut entries, mut guardian) = (BTreeMap::new(), None);
    for line in lines.flatten() {
        match line {
            Line::Opened(_) => {}
            Line::Guardian(leader) => guardian = Some(leader),
            Line::Add(number, undo) => _ = entries.insert(number, undo),
            Line::Drop(number) => _ = entries.remove(&number),
        }
    }
    let same_boot = crate::host::boot_id().is_ok_and(|now| now == header.boot_id);
    let lives = |leader: Option<Leader>| same_boot && leader.is_some_and(Leader::lives);
    let free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let holder = match guardian {
        _ if lives(header.iotoll) => Holder::Iotoll,
        Some(leader) if lives(guardian) => Holder::Guardian(leader.process),
        // Somebody whose number is not seen from here, in another container, or another one that acts on it now.
        _ if !free => Holder::Iotoll,
        _ => Holder::Gone,
    };
    Some(Found { path, header, entries: entries.into_values().rev().collect(), holder, _file: file })
}
