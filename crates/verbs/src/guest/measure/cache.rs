//! The cache of guests: a folder with a sub-folder for each kind of entry. An entry is complete or absent. Guests that
//! were not used for long are removed.

use super::tool::Care;
use lab::error::{Error, Result};
use lab::guardian::{Guardian, OwnFolder};
use lab::sysroot::names;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// Guests that were not used for 30 days are removed.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);

/// Begins the name of a folder in which an entry is being made; the maker's process id follows.
const PARTIAL: &str = ".partial-";

/// A kind of entry: the name of its sub-folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(&'static str);

impl Part {
    /// Unpacked kernels.
    pub const KERNELS: Self = Self("kernels");
    /// Downloaded packages.
    pub const PACKAGES: Self = Self("packages");
    /// Unpacked packages of programs.
    pub const PROGRAMS: Self = Self("programs");
    /// Prepared guests.
    pub const GUESTS: Self = Self("guests");
    const ALL: [Self; 4] = [Self::KERNELS, Self::PACKAGES, Self::PROGRAMS, Self::GUESTS];
}

#[derive(Clone, Debug)]
pub struct Cache {
    pub folder: PathBuf,
    /// What ends the making of an entry early.
    pub(super) care: Care,
}

impl Cache {
    /// The user's cache: `$XDG_CACHE_HOME/iotoll`, or `~/.cache/iotoll`. `care` is for what makes its entries.
    ///
    /// # Errors
    /// When neither variable names a folder, or the folder cannot be made.
    pub fn open(care: Care) -> Result<Self> {
        let folder = user_folder(|name| std::env::var_os(name)).ok_or_else(|| {
            Error::Refused(
                "no folder for the cache of guests: neither XDG_CACHE_HOME nor HOME is an absolute path; \
                 set XDG_CACHE_HOME"
                    .into(),
            )
        })?;
        Ok(Self { care, ..Self::at(&folder)? })
    }

    /// The cache in `folder`, which is made if it is missing. Removes what ended processes left half-made, and guests that were not used for long.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn at(folder: &Path) -> Result<Self> {
        let cache = Self { folder: folder.to_owned(), care: Care::default() };
        for part in Part::ALL {
            let folder = cache.part(part);
            fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
            remove_stale(&folder);
        }
        remove_unused(&cache.part(Part::GUESTS));
        Ok(cache)
    }

    /// Path of an entry, which may be absent.
    pub fn entry(&self, part: Part, name: &str) -> PathBuf {
        self.part(part).join(name)
    }

    /// The entry, which `make` makes if it is absent: a file or a folder at the path that it is given. The parent of
    /// that path is an empty folder of its own and is removed with all else in it. If another process makes the same
    /// entry meanwhile, the first one stays.
    ///
    /// # Errors
    /// When `make` fails, or the cache cannot be written to.
    pub fn make(&self, part: Part, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let entry = self.entry(part, name);
        if entry.exists() { Ok(entry) } else { self.replace(part, name, make) }
    }

    /// The same, also if the entry exists. A file is replaced in one step.
    ///
    /// # Errors
    /// As above.
    pub fn replace(&self, part: Part, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let entry = self.entry(part, name);
        let partial = partial(&self.part(part), &self.care.guardian)?;
        let made = partial.path().join(name);
        make(&made)?;
        match fs::rename(&made, &entry) {
            Err(_) if entry.is_dir() => Ok(entry),
            Err(error) => Err(unwritable(&entry, &error)),
            Ok(()) => Ok(entry),
        }
    }

    /// An entry with these contents.
    pub(super) fn write(&self, part: Part, name: &str, contents: &[u8]) -> Result<PathBuf> {
        self.replace(part, name, |path| {
            fs::write(path, contents).map_err(|error| Error::file(path, "writing it into the cache of guests", error))
        })
    }

    /// Names of the complete entries of a kind, sorted; without those that begin with a dot.
    pub fn names(&self, part: Part) -> Vec<String> {
        let mut names = names(&self.part(part));
        names.retain(|name| !name.starts_with('.'));
        names
    }

    /// The complete entries of a kind, and the sizes of their files.
    pub fn list(&self, part: Part) -> Vec<(String, u64)> {
        let sized = |name: String| (bytes_below(&self.entry(part, &name)), name);
        self.names(part).into_iter().map(sized).map(|(bytes, name)| (name, bytes)).collect()
    }

    /// Size of all files of the cache, those that are being made too.
    pub fn size(&self) -> u64 {
        bytes_below(&self.folder)
    }

    /// Removes the other entries whose names begin so, which this one replaces.
    pub(super) fn remove_earlier(&self, part: Part, begin: &str, name: &str) {
        for earlier in names(&self.part(part)).iter().filter(|earlier| earlier.starts_with(begin) && *earlier != name) {
            let path = self.entry(part, earlier);
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }

    fn part(&self, part: Part) -> PathBuf {
        self.folder.join(part.0)
    }
}

/// The user's cache folder.
fn user_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")))?;
    Some(caches.join("iotoll"))
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    Error::Failed(format!(
        "{path}: the cache of guests cannot be written to: {error}; name another folder in XDG_CACHE_HOME"
    ))
}

/// A folder in which an entry is made; removed with what is left in it, also if iotoll is killed.
fn partial(around: &Path, guardian: &Guardian) -> Result<OwnFolder> {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let folder = around.join(format!("{PARTIAL}{}-{serial}", std::process::id()));
    // An earlier process with this id may have left it.
    let _ = fs::remove_dir_all(&folder);
    OwnFolder::make_at(guardian, folder).map_err(|error| match error {
        Error::File { path, source, .. } => unwritable(&path, &source),
        error => error,
    })
}

/// Removes the folders in which processes that have ended were making entries.
fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PARTIAL)?.split('-').next()?.parse().ok());
        let process = id.and_then(rustix::process::Pid::from_raw).map(rustix::process::test_kill_process);
        if process == Some(Err(rustix::io::Errno::SRCH)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the files that were not used for long.
fn remove_unused(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let used = entry.metadata().and_then(|state| state.modified());
        if used.is_ok_and(|used| used.elapsed().is_ok_and(|unused| unused > UNUSED)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Size of a file, or of the files below a folder. What cannot be read counts nothing.
fn bytes_below(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| bytes_below(&entry.path())).sum()
}

/// Notes that a file is used now.
pub(super) fn touch(path: &Path) {
    if let Ok(file) = File::options().write(true).open(path) {
        // Without it, it is only removed earlier.
        let _ = file.set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(_: &Path) -> Result<T> {
        Err(Error::Refused("not made".into()))
    }

    #[test]
    fn the_folder_is_the_users() {
        let with = |xdg: Option<&str>, home: Option<&str>| {
            user_folder(|name| if name == "HOME" { home } else { xdg }.map(OsString::from))
        };
        assert_eq!(with(Some("/xdg"), Some("/home/me")), Some("/xdg/iotoll".into()));
        assert_eq!(with(None, Some("/home/me")), Some("/home/me/.cache/iotoll".into()));
        assert_eq!(with(Some("relative"), Some("/home/me")), Some("/home/me/.cache/iotoll".into()));
        assert_eq!(with(None, None), None);
    }

    #[test]
    fn an_entry_is_complete_or_absent_and_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let failing = cache.make(Part::KERNELS, "six", |path| {
            fs::write(path, "half").unwrap();
            refused(path)
        });
        assert!(failing.is_err());
        assert!(cache.list(Part::KERNELS).is_empty());
        assert_eq!(cache.size(), 0, "what was half-made is removed");
        let made = cache.make(Part::KERNELS, "six", |path| {
            fs::write(path.with_file_name("scratch"), "0123456789").unwrap();
            fs::create_dir(path).unwrap();
            fs::write(path.join("image"), "whole").unwrap();
            // Another process is faster.
            fs::create_dir(cache.entry(Part::KERNELS, "six")).unwrap();
            fs::write(cache.entry(Part::KERNELS, "six").join("image"), "first").unwrap();
            Ok(())
        });
        assert_eq!(fs::read_to_string(made.unwrap().join("image")).unwrap(), "first");
        assert_eq!(cache.make(Part::KERNELS, "six", refused).unwrap(), folder.path().join("kernels/six"));
        assert_eq!(cache.list(Part::KERNELS), [("six".to_owned(), 5)]);
        assert_eq!(cache.size(), 5);
    }

    #[test]
    fn what_ended_processes_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = folder.path().join(format!("kernels/{PARTIAL}{}-0", child.id()));
        child.wait().unwrap();
        let alive = folder.path().join(format!("kernels/{PARTIAL}{}-999", std::process::id()));
        for made in [&ended, &alive] {
            fs::create_dir_all(made.join("deep")).unwrap();
        }
        let cache = Cache::at(folder.path()).unwrap();
        assert!(!ended.exists());
        assert!(alive.exists());
        assert!(cache.names(Part::KERNELS).is_empty(), "what is being made is no entry");
    }

    #[test]
    fn what_was_not_used_for_long_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let file = |name: &str| cache.entry(Part::GUESTS, name);
        for name in ["old.state", "used.state", "new.cpio"] {
            fs::write(file(name), "guest").unwrap();
            let written = SystemTime::now() - if name == "new.cpio" { UNUSED / 2 } else { UNUSED * 2 };
            File::options().write(true).open(file(name)).unwrap().set_modified(written).unwrap();
        }
        touch(&file("used.state"));
        assert_eq!(Cache::at(folder.path()).unwrap().names(Part::GUESTS), ["new.cpio", "used.state"]);
    }
}
