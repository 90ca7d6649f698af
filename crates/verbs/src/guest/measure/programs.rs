//! The programs of a guest, with the libraries that they need, each where its loader looks for it. They are the host's;
//! what the host does not have comes from its Debian package, which is unpacked in the cache and not installed.

use super::cache::{Cache, Part};
use super::debian::{self, Offer, Source};
use super::tool;
use lab::elf::{self, Linking};
use lab::error::{Error, Result};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of programs, the ones that a guest uses first, and where their programs are in a guest.
const PROGRAM_FOLDERS: [(&str, &str); 4] =
    [("/usr/sbin", "/usr/sbin"), ("/usr/bin", "/usr/bin"), ("/sbin", "/usr/sbin"), ("/bin", "/usr/bin")];
/// Folders in which the loader looks for libraries, of Debian first, then of others (ld.so(8)).
const LIBRARY_FOLDERS: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// A program that a guest needs, or a file that a program opens while it runs: a plugin, which no program names as a library that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file name; of a file that is opened, the path at which the program looks for it.
    pub name: &'static str,
    /// The Debian package that contains it.
    pub package: &'static str,
}

/// Files of a guest, each with the file of the host that it is.
pub(super) type Placed = BTreeMap<String, PathBuf>;

/// Finds this program, which is the guest's `/init`, other programs, and all that they need to run. Of a package that was unpacked before,
/// that version is used. `library_packages` are searched for libraries before those that apt names.
///
/// # Errors
/// When the host has neither a program nor its package, or a library of it is found nowhere.
pub(super) fn gather(
    programs: &[Program],
    library_packages: &[String],
    cache: &Cache,
    observe: &mut dyn FnMut(String),
) -> Result<Placed> {
    let mut gathering = Gathering::new(Path::new("/"), cache, observe);
    gathering.file("/init", &own_program()?, None)?;
    for package in library_packages.iter().filter(|package| !debian::is_installed(package)) {
        let root = gathering.unpacked(package, "a guest needs libraries")?;
        gathering.search(root);
    }
    programs.iter().try_for_each(|program| gathering.program(program))?;
    Ok(gathering.placed)
}

/// This program, which is also the guest's first process.
pub(super) fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::instrument("finding this program", error))
}

/// What has been found so far.
struct Gathering<'a> {
    cache: &'a Cache,
    observe: &'a mut dyn FnMut(String),
    /// The folders that are searched like a `/`: the host's, and those of unpacked packages.
    roots: Vec<PathBuf>,
    placed: Placed,
}

impl<'a> Gathering<'a> {
    fn new(host: &Path, cache: &'a Cache, observe: &'a mut dyn FnMut(String)) -> Self {
        Self { cache, observe, roots: vec![host.to_owned()], placed: Placed::new() }
    }

    /// Adds a program or a file that is opened, and its libraries.
    fn program(&mut self, program: &Program) -> Result<()> {
        let Program { name, package } = *program;
        let is_path = name.starts_with('/');
        let who = if is_path { format!("a guest needs {name}") } else { format!("a guest needs `{name}`") };
        let of_folder = |(from, to)| (format!("{from}/{name}"), format!("{to}/{name}"));
        let paths: Vec<(String, String)> = match is_path {
            true => vec![(name.to_owned(), name.to_owned())],
            false => PROGRAM_FOLDERS.map(of_folder).to_vec(),
        };
        let find = |root: &PathBuf| paths.iter().find_map(|(from, to)| Some((to, below(root, from)?)));
        let (place, found) = match self.roots.iter().find_map(find) {
            Some(found) => found,
            None => {
                let root = self.unpacked(package, &who)?;
                let found = find(&root).ok_or_else(|| {
                    Error::Refused(format!(
                        "{who}, but the Debian package {package} does not contain it; install it on this system"
                    ))
                })?;
                self.search(root);
                found
            }
        };
        self.file(place, &found, Some(package))
    }

    /// Adds a program or a library, and the libraries that it needs. `package` is whose dependencies may contain them.
    fn file(&mut self, guest_path: &str, host_path: &Path, package: Option<&str>) -> Result<()> {
        let mut waiting = vec![(guest_path.to_owned(), host_path.to_owned())];
        while let Some((guest_path, host_path)) = waiting.pop() {
            if self.placed.contains_key(&guest_path) {
                continue;
            }
            let bytes = tool::read(&host_path)?;
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
                self.placed.insert(loader, found);
            }
            let origin = guest_path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let folders = folders.iter().map(|folder| folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin));
            let folders: Vec<String> = folders.collect();
            for library in needed {
                // The C library names its loader, which is in memory already.
                if library.starts_with("ld-") && self.placed.keys().any(|path| path.ends_with(&format!("/{library}"))) {
                    continue;
                }
                waiting.push(self.library(&library, &folders, &host_path, package)?);
            }
            self.placed.insert(guest_path, host_path);
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
            let root = self.cache.entry(Part::PROGRAMS, &stem);
            if let Some(found) = find(&root) {
                self.search(root);
                return Ok(found);
            }
        }
        let missing =
            || Error::Refused(format!("{user}: the library {name}, which it needs, is not on this system; install it"));
        let mut packages = debian::libraries_of(package.ok_or_else(missing)?, &self.cache.care)?;
        packages.retain(|package| !debian::is_installed(package));
        packages.sort_by_key(|package| Reverse(alike(package, name)));
        for package in packages {
            let root = self.unpacked(&package, &format!("{user} needs {name}"))?;
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
        let names = self.cache.names(Part::PROGRAMS).into_iter();
        names.filter_map(|name| Some((name.split_once('_')?.0.to_owned(), name))).collect()
    }

    /// The folder of an unpacked package that `who` needs: the newest in the cache, or else the one that apt offers.
    fn unpacked(&mut self, package: &str, who: &str) -> Result<PathBuf> {
        let own = self.packages().into_iter().filter(|(name, _)| name == package).map(|(_, stem)| stem);
        if let Some(stem) = own.max_by(|left, right| debian::compare(left, right)) {
            return Ok(self.cache.entry(Part::PROGRAMS, &stem));
        }
        let offer = Offer::of(package, &Source::System, &self.cache.care);
        let unpacked = offer.and_then(|offer| offer.unpacked(self.cache, Part::PROGRAMS, self.observe));
        unpacked.map_err(|error| match error {
            Error::Refused(why) => Error::Refused(format!("{who}: {why}")),
            Error::Failed(why) => Error::Failed(format!("{who}: {why}")),
            error => error,
        })
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

#[cfg(test)]
mod tests;
