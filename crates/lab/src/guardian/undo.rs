//! Undo actions as data: sent to the guardian, written to the ledger, and performed by either.

use super::processes::{self, Leader};
use super::setting_file::{Left, SettingFile, put_back, shown};
use crate::control_groups;
use crate::host::now;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A file that iotoll switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Switched {
    /// Its original value.
    pub found: SettingFile,
    /// The values that it may have while it is switched: what the arms set, and what the kernel makes of that. Empty if
    /// not known yet.
    pub set: Vec<String>,
}

/// An undo action. Paths are absolute, because the guardian has another working directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Undo {
    /// Writes the original values back, in this order.
    Restore(Vec<Switched>),
    /// Runs the cleanup command of an arm.
    Run {
        command: String,
        /// Working directory of iotoll.
        #[serde(with = "super::path_text")]
        directory: PathBuf,
        /// Kill it after this time.
        longest_seconds: f64,
    },
    /// Does nothing; records a shell command that the user may have to run.
    MayBeOn { command: String },
    /// Removes a file that iotoll made, or a folder with its contents.
    Remove {
        #[serde(with = "super::path_text")]
        path: PathBuf,
        made: Made,
    },
    /// Restores the length of a file that iotoll lengthened.
    Shorten {
        #[serde(with = "super::path_text")]
        path: PathBuf,
        lengthened: Lengthened,
    },
    /// Ends every process in a control group that iotoll made, frozen ones too, and removes it with the groups in it.
    RemoveGroup {
        #[serde(with = "super::path_text")]
        path: PathBuf,
    },
    /// Kills processes by the mark in their environment, the process group of `leader`, and all descendants.
    Kill { mark: String, leader: Option<Leader> },
}

/// How to recognise a file or folder that iotoll made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// It will be made after this time (Unix seconds): an empty one that is newer is ours.
    After(f64),
    Is(Identity),
}

impl Made {
    /// It will be made from now on.
    pub fn soon() -> Self {
        Self::After(now())
    }

    fn is(self, metadata: &fs::Metadata) -> bool {
        /// File timestamps have the resolution of the kernel's tick.
        const TICK_SECONDS: f64 = 0.1;
        match self {
            Self::Is(identity) => Identity::of(metadata) == identity,
            Self::After(seconds) => {
                let changed = metadata.ctime() as f64 + metadata.ctime_nsec() as f64 / 1e9;
                (metadata.is_dir() || metadata.len() == 0) && changed >= seconds - TICK_SECONDS
            }
        }
    }

    /// Whether `path` is what iotoll made.
    pub fn lies_at(self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|metadata| self.is(&metadata))
    }
}

/// Identity of a file, independent of its name: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity(u64, u64);

impl Identity {
    pub fn of(metadata: &fs::Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// A file that iotoll lengthened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lengthened {
    pub file: Identity,
    /// Its length before.
    pub from: u64,
    /// Its length after. Bytes behind that belong to another process.
    pub to: u64,
}

impl Lengthened {
    /// Restores its length, unless it is a different file, or another process lengthened it too.
    pub fn undo(&self, path: &Path) -> io::Result<()> {
        // A pipe that is there now would wait for its reader.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().write(true).custom_flags(nonblocking).open(path)?;
        if self.is(&file.metadata()?) { file.set_len(self.from) } else { Ok(()) }
    }

    fn is(&self, metadata: &fs::Metadata) -> bool {
        Identity::of(metadata) == self.file && (self.from..=self.to).contains(&metadata.len())
    }

    /// Whether `path` is this file and still longer than before.
    pub fn lies_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| self.is(&metadata) && metadata.len() > self.from)
    }
}

impl Undo {
    /// Whether it comes before all others: a process must not run while its settings are restored.
    pub fn is_first(&self) -> bool {
        matches!(self, Self::Kill { .. })
    }

    /// Performs it. It is not an error if it is already undone; what now belongs to another process is left alone.
    ///
    /// # Errors
    /// What could not be undone, in words.
    pub fn perform(&self) -> Result<(), String> {
        let named = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        match self {
            Self::Restore(files) => restore(files),
            Self::Run { command, directory, longest_seconds } => run(command, directory, *longest_seconds),
            Self::MayBeOn { .. } => Ok(()),
            Self::Remove { path, made } => match fs::symlink_metadata(path) {
                Ok(found) if made.is(&found) => match made {
                    _ if !found.is_dir() => fs::remove_file(path),
                    Made::Is(_) => fs::remove_dir_all(path),
                    // If the identity is unknown, remove it only while it is empty.
                    Made::After(_) => fs::remove_dir(path),
                }
                .map_err(|error| named(path, error)),
                _ => Ok(()),
            },
            Self::Shorten { path, lengthened } => match lengthened.undo(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other.map_err(|error| named(path, error)),
            },
            Self::RemoveGroup { path } => control_groups::remove(path),
            Self::Kill { mark, leader } => processes::kill_all(|| processes::found(mark, *leader)),
        }
    }
}

/// Writes the original values back, and retries for a while: a device may still be busy with a process that was just
/// killed.
fn restore(files: &[Switched]) -> Result<(), String> {
    const TRIES: usize = 20;
    const PAUSE: Duration = Duration::from_millis(100);
    let mut remaining = String::new();
    for number in 0..TRIES {
        if number > 0 {
            std::thread::sleep(PAUSE);
        }
        let mut left = put_back(files.iter().map(|file| (&file.found, &*file.set)));
        left.retain(|left| !left.foreign);
        let Some(Left { found, why, .. }) = left.first() else { return Ok(()) };
        remaining = format!("{}: could not be set back to '{}': {why}", found.path.display(), shown(&found.value));
    }
    Err(remaining)
}

/// Runs a shell command to its end, or kills it after a time.
fn run(command: &str, directory: &Path, longest_seconds: f64) -> Result<(), String> {
    const POLL_INTERVAL: Duration = Duration::from_millis(5);
    let failed = |why: String| format!("`{command}` in {}: {why}", directory.display());
    let mark = processes::fresh_mark();
    let mut child = Command::new("sh")
        .args(["-c", command])
        // In this directory, because the command may contain relative paths.
        .current_dir(directory)
        .env(processes::VARIABLE, &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let begun = Instant::now();
    let longest = Duration::try_from_secs_f64(longest_seconds).unwrap_or(Duration::MAX);
    loop {
        match child.try_wait().map_err(|error| failed(error.to_string()))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(status.to_string())),
            None if begun.elapsed() > longest => {
                let leader = Leader::of(child.id());
                processes::kill_all(|| processes::found(&mark, leader))?;
                let _ = child.wait();
                return Err(failed(format!("it was killed after {longest_seconds:.0} s")));
            }
            None => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let [ours, theirs, soon, full, folder] =
            ["ours", "theirs", "soon", "full", "folder"].map(|name| directory.path().join(name));
        let remove = |path: &Path, made: Made| Undo::Remove { path: path.to_owned(), made }.perform().unwrap();
        fs::write(&ours, "data").unwrap();
        let is = Made::Is(Identity::of(&fs::metadata(&ours).unwrap()));
        // Kept under another name, so that its number is not given to the next file.
        fs::rename(&ours, &theirs).unwrap();
        fs::write(&ours, "another").unwrap();
        remove(&ours, is);
        assert!(ours.exists(), "a different file at its path stays");
        remove(&theirs, is);
        assert!(!theirs.exists());
        let made = Made::soon();
        fs::write(&soon, "").unwrap();
        fs::write(&full, "data").unwrap();
        remove(&full, made);
        remove(&soon, Made::After(f64::MAX));
        assert!(full.exists() && soon.exists());
        remove(&soon, made);
        assert!(!soon.exists());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("scratch"), "data").unwrap();
        let of = |made| Undo::Remove { path: folder.clone(), made };
        assert!(of(made).perform().is_err(), "a folder that is not empty is not the one that was about to be made");
        of(Made::Is(Identity::of(&fs::metadata(&folder).unwrap()))).perform().unwrap();
        assert!(!folder.exists());
        of(made).perform().unwrap();
    }

    #[test]
    fn a_command_runs_in_its_directory_and_is_killed_after_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let run = |command: &str, place: &Path, seconds| {
            let (command, directory) = (command.to_owned(), place.to_owned());
            Undo::Run { command, directory, longest_seconds: seconds }.perform()
        };
        run("touch left", directory.path(), 60.0).unwrap();
        assert!(directory.path().join("left").exists());
        assert!(run("exit 3", directory.path(), 60.0).unwrap_err().contains("exit status: 3"));
        assert!(run("true", Path::new("/no/such/folder"), 60.0).is_err());
        let slow = "setsid sleep 1000 & echo $! > pid; sleep 1000";
        assert!(run(slow, directory.path(), 0.3).unwrap_err().contains("killed after"));
        let pid = fs::read_to_string(directory.path().join("pid")).unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "its descendant has ended too: {stat}");
    }
}
