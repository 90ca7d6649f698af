//! The programs of a guest, with the libraries that they need, each where its loader looks for it. They are the host's;
//! what the host does not have comes from its Debian package, which is unpacked in the cache and not installed.

use super::cache::{Cache, Part};
use super::debian::suite::Source;
use super::debian::{self, Offer};
use super::tool::unreadable;
use crate::bounded_file::{self, LONGEST_FILE};
use crate::elf::{self, Linking};
use crate::error::{Error, Result};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

/// Folders of programs, the ones that a guest uses first.
const PROGRAM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Folders in which the loader looks for libraries, of Debian first, then of others (ld.so(8)).
const LIBRARY_FOLDERS: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// Begins the name of a stripped program in the cache.
const STRIPPED: &str = "stripped-";

/// A program that a guest needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file name.
    pub name: &'static str,
    /// The Debian package that contains it.
    pub package: &'static str,
}

/// A file that a program opens while it runs: a plugin, which no program names as a library that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Where the program looks for it.
    pub path: &'static str,
    /// The Debian package that contains it.
    pub package: &'static str,
}

/// What a guest needs beside its kernel.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub programs: &'a [Program],
    pub opened: &'a [Opened],
    /// Packages that are searched for libraries before those that apt names.
    pub library_packages: &'a [&'a str],
}

/// A file of the host and its place in the guest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    pub guest_path: String,
    pub host_path: PathBuf,
}

/// Finds programs, the files that they open, and all that these need to run. In the guest they are in `/usr/sbin` or `/usr/bin`, as on the host. Of
/// a package that was unpacked before, that version is used.
///
/// # Errors
/// When the host has neither a program nor its package, or a library of it is found nowhere.
pub fn gather(wanted: Wanted, cache: &Cache, observe: &mut dyn FnMut(String)) -> Result<Vec<Placed>> {
    let mut gathering = Gathering::new(Path::new("/"), cache, observe);
    for package in wanted.library_packages.iter().filter(|package| !debian::is_installed(package)) {
        let root = gathering.unpacked(package).map_err(|error| needed("a guest needs libraries", error))?;
        gathering.search(root);
    }
    for program in wanted.programs {
        gathering.program(program)?;
    }
    for opened in wanted.opened {
        gathering.opened(opened)?;
    }
    Ok(gathering.placed.into_iter().collect())
}

/// A program at a path of the host, which gets `guest_path` in the guest, and the libraries that it needs.
///
/// # Errors
/// When it is no program for x86-64, or the host does not have one of its libraries.
pub fn closure_of(path: &Path, guest_path: &str, cache: &Cache) -> Result<Vec<Placed>> {
    let nothing = &mut |_| {};
    let mut gathering = Gathering::new(Path::new("/"), cache, nothing);
    gathering.file(guest_path, path, None)?;
    Ok(gathering.placed.into_iter().collect())
}

/// What has been found so far.
struct Gathering<'a> {
    cache: &'a Cache,
    observe: &'a mut dyn FnMut(String),
    /// The folders that are searched like a `/`: the host's, and those of unpacked packages.
    roots: Vec<PathBuf>,
    placed: BTreeSet<Placed>,
    /// Paths in the guest that have a file.
    taken: BTreeSet<String>,
}

impl<'a> Gathering<'a> {
    fn new(host: &Path, cache: &'a Cache, observe: &'a mut dyn FnMut(String)) -> Self {
        Self { cache, observe, roots: vec![host.to_owned()], placed: BTreeSet::new(), taken: BTreeSet::new() }
    }

    /// Adds a program and its libraries.
    fn program(&mut self, program: &Program) -> Result<()> {
        let Program { name, package } = *program;
        let find = |root: &Path| {
            PROGRAM_FOLDERS.into_iter().find_map(|folder| Some((folder, below(root, &format!("{folder}/{name}"))?)))
        };
        let found = match self.roots.first().and_then(|host| find(host)) {
            Some(found) => found,
            None => {
                let root = self.unpacked(package).map_err(|error| needed(&format!("a guest needs `{name}`"), error))?;
                let found = find(&root).ok_or_else(|| {
                    Error::Refused(format!(
                        "a guest needs `{name}`, but the Debian package {package} does not contain it; install it on this system"
                    ))
                })?;
                self.search(root);
                found
            }
        };
        let (folder, host_path) = found;
        let folder = if folder.ends_with("sbin") { "/usr/sbin" } else { "/usr/bin" };
        self.file(&format!("{folder}/{name}"), &host_path, Some(package))
    }

    /// Adds a file that a program opens, and its libraries.
    fn opened(&mut self, opened: &Opened) -> Result<()> {
        let Opened { path, package } = *opened;
        let found = match self.roots.iter().find_map(|root| below(root, path)) {
            Some(found) => found,
            None => {
                let root = self.unpacked(package).map_err(|error| needed(&format!("a guest needs {path}"), error))?;
                let found = below(&root, path).ok_or_else(|| {
                    Error::Refused(format!(
                        "a guest needs {path}, but the Debian package {package} does not contain it; install it on this system"
                    ))
                })?;
                self.search(root);
                found
            }
        };
        self.file(path, &found, Some(package))
    }

    /// Adds a program or a library, and the libraries that it needs. `package` is whose dependencies may contain them.
    fn file(&mut self, guest_path: &str, host_path: &Path, package: Option<&str>) -> Result<()> {
        let mut waiting = vec![(guest_path.to_owned(), host_path.to_owned())];
        while let Some((guest_path, host_path)) = waiting.pop() {
            if !self.taken.insert(guest_path.clone()) {
                continue;
            }
            let bytes = bounded_file::read(&host_path, LONGEST_FILE).map_err(|error| unreadable(&host_path, &error))?;
            let Linking { interpreter, needed, folders } = elf::linking(&bytes).ok_or_else(|| {
                Error::Refused(format!("{}: is not a program or library for x86-64 (ELF)", host_path.display()))
            })?;
            if let Some(loader) = interpreter {
                let found = self.roots.iter().find_map(|root| below(root, &loader));
                let found = found.ok_or_else(|| {
                    Error::Refused(format!(
                        "{}: its loader {loader} is not on this system; install its C library",
                        host_path.display()
                    ))
                })?;
                self.taken.insert(loader.clone());
                self.placed.insert(Placed { guest_path: loader, host_path: found });
            }
            let origin = guest_path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let folders: Vec<_> = folders.iter().map(|folder| expanded(folder, origin)).collect();
            for library in needed {
                // The C library names its loader, which is in memory already.
                if library.starts_with("ld-") && self.taken.iter().any(|path| path.ends_with(&format!("/{library}"))) {
                    continue;
                }
                waiting.push(self.library(&library, &folders, &host_path, package)?);
            }
            let host_path = stripped(&host_path, &bytes, self.cache);
            self.placed.insert(Placed { guest_path, host_path });
        }
        Ok(())
    }

    /// The place of a library that `user` needs.
    fn library(
        &mut self,
        name: &str,
        folders: &[String],
        user: &Path,
        package: Option<&str>,
    ) -> Result<(String, PathBuf)> {
        let find = |root: &Path| {
            let folders = folders.iter().map(String::as_str).chain(LIBRARY_FOLDERS);
            let mut paths = folders.map(|folder| format!("{}/{name}", folder.trim_end_matches('/')));
            paths.find_map(|path| {
                let found = below(root, &path)?;
                // Libraries for other processors may be in the same folders.
                elf::linking(&fs::read(&found).ok()?)?;
                Some((path, found))
            })
        };
        if let Some(found) = self.roots.iter().find_map(|root| find(root)) {
            return Ok(found);
        }
        let user = user.display();
        // What an earlier search has unpacked, the newest version first.
        let mut unpacked = self.packages();
        unpacked.sort_by(|left, right| debian::compare(&right.1, &left.1));
        for (_, stem) in unpacked {
            let root = self.cache.entry(Part::Programs, &stem);
            if let Some(found) = find(&root) {
                self.search(root);
                return Ok(found);
            }
        }
        let missing =
            || Error::Refused(format!("{user}: the library {name}, which it needs, is not on this system; install it"));
        let mut packages = debian::libraries_of(package.ok_or_else(missing)?, self.cache.care())?;
        packages.retain(|package| !debian::is_installed(package));
        packages.sort_by_key(|package| Reverse(alike(package, name)));
        for package in packages {
            let root = self.unpacked(&package).map_err(|error| needed(&format!("{user} needs {name}"), error))?;
            if let Some(found) = find(&root) {
                self.search(root);
                return Ok(found);
            }
        }
        Err(missing())
    }

    /// Adds a root to those that are searched.
    fn search(&mut self, root: PathBuf) {
        if !self.roots.contains(&root) {
            self.roots.push(root);
        }
    }

    /// The unpacked packages in the cache: package, and name of the entry.
    fn packages(&self) -> Vec<(String, String)> {
        let names = self.cache.names(Part::Programs).into_iter().filter(|name| !name.starts_with(STRIPPED));
        names.filter_map(|name| Some((name.split_once('_')?.0.to_owned(), name))).collect()
    }

    /// The folder of an unpacked package: the newest in the cache, or else the one that apt offers.
    fn unpacked(&mut self, package: &str) -> Result<PathBuf> {
        let own = self.packages().into_iter().filter(|(name, _)| name == package).map(|(_, stem)| stem);
        if let Some(stem) = own.max_by(|left, right| debian::compare(left, right)) {
            return Ok(self.cache.entry(Part::Programs, &stem));
        }
        Offer::of(package, &Source::System, self.cache.care())?.unpacked(self.cache, Part::Programs, self.observe)
    }
}

/// The error of a package, with who needs it.
fn needed(who: &str, error: Error) -> Error {
    match error {
        Error::Refused(why) => Error::Refused(format!("{who}: {why}")),
        Error::Failed(why) => Error::Failed(format!("{who}: {why}")),
        error => error,
    }
}

/// Whether the package is named after the library, by Debian's convention: `libnl-3.so.200` is in `libnl-3-200`, and
/// `libtirpc.so.3` in `libtirpc3` or, since the change of `time_t`, in `libtirpc3t64`; since one of C++, `libsnappy.so.1` is in
/// `libsnappy1v5`.
fn alike(package: &str, library: &str) -> bool {
    let Some((base, version)) = library.split_once(".so.") else { return false };
    let base = base.to_lowercase().replace('_', "-");
    let joint = if base.ends_with(|c: char| c.is_ascii_digit()) { "-" } else { "" };
    let plain = package.strip_suffix("t64").or_else(|| package.strip_suffix("v5")).unwrap_or(package);
    plain == format!("{base}{joint}{version}")
}

/// A folder of a library's own list, with the place of its user for `$ORIGIN`.
fn expanded(folder: &str, origin: &str) -> String {
    folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
}

/// The file that `path` names when `root` is `/`, its symlinks followed.
fn below(root: &Path, path: &str) -> Option<PathBuf> {
    /// Limit of the links followed, as the kernel's (path_resolution(7)).
    const MOST: usize = 40;
    let mut path = PathBuf::from(path);
    for _ in 0..MOST {
        let here = root.join(path.strip_prefix("/").unwrap_or(&path));
        match fs::read_link(&here) {
            Ok(target) => path = path.parent()?.join(target),
            Err(_) => return here.is_file().then_some(here),
        }
    }
    None
}

/// The stripped copy of a file that contains debug information; the file itself if it contains none, or the host cannot
/// strip it. The copy is kept in the cache until the file changes.
fn stripped(path: &Path, bytes: &[u8], cache: &Cache) -> PathBuf {
    if !elf::has_debug_information(bytes) {
        return path.to_owned();
    }
    let copy = || {
        let metadata = fs::metadata(path).ok()?;
        let own = format!("{STRIPPED}{}-{:016x}-", path.file_name()?.to_str()?, xxh3_64(path.to_str()?.as_bytes()));
        let name = format!("{own}{}-{}.{}", metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        let made = cache.make(Part::Programs, &name, |copy| {
            let ended = Command::new("strip").arg("-o").arg(copy).arg(path).output();
            let ended = ended.map_err(|error| Error::Failed(format!("strip: {error}")))?;
            ended.status.success().then_some(()).ok_or_else(|| Error::Failed("strip failed".into()))
        });
        let made = made.ok()?;
        for earlier in cache.names(Part::Programs).into_iter().filter(|other| other.starts_with(&own) && *other != name)
        {
            let _ = fs::remove_file(cache.entry(Part::Programs, &earlier));
        }
        Some(made)
    };
    copy().unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests;
