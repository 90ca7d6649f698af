//! Kernel modules and those that they need, in the order in which they must be inserted. A package of a kernel has no
//! index of its modules, so they describe themselves. A user's own modules may stand in place of those of a kernel: one is rebuilt, the rest of
//! the kernel is stock.

use super::kernel::Kernel;
use super::tool;
use lab::elf;
use lab::error::{Error, Result};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Endings of module files, and what unpacks them.
const ENDINGS: [(&str, Option<&str>); 4] =
    [(".ko", None), (".ko.xz", Some("xz")), (".ko.zst", Some("zstd")), (".ko.gz", Some("gzip"))];

/// A module, ready to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// Its file, neither compressed nor with debug information.
    pub bytes: Vec<u8>,
}

/// The modules `names` and all that they need, each after those that it needs. Modules that are built into the kernel
/// are left out.
///
/// # Errors
/// When a module is missing, damaged or of another release, or the program that unpacks it is missing.
pub fn closure(kernel: &Kernel, names: &[&str]) -> Result<Vec<Module>> {
    let Some(folder) = &kernel.modules else {
        let Some(first) = names.first() else { return Ok(Vec::new()) };
        return Err(Error::Refused(format!(
            "kernel '{}' ({}): module '{first}' is needed, and no folder of the kernel's modules is known; give \
             VMLINUZ,MODULES_FOLDER",
            kernel.label, kernel.release
        )));
    };
    let mut files = index(folder);
    files.extend(kernel.replaced.iter().map(|replaced| (replaced.name.clone(), replaced.file.clone())));
    let mut closure =
        Closure { kernel, folder, files, built_in: built_in(folder), seen: BTreeSet::new(), modules: vec![] };
    for name in names {
        closure.add(&plain(name), None)?;
    }
    Ok(closure.modules)
}

struct Closure<'a> {
    kernel: &'a Kernel,
    folder: &'a Path,
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
    seen: BTreeSet<String>,
    modules: Vec<Module>,
}

impl Closure<'_> {
    /// Adds a module after those that it needs. `user` is the module that needs it.
    fn add(&mut self, name: &str, user: Option<&str>) -> Result<()> {
        if self.built_in.contains(name) || !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Kernel { label, release, .. } = self.kernel;
        let file = self.files.get(name).cloned().ok_or_else(|| {
            let user = user.map_or_else(String::new, |user| format!(", which '{user}' needs,"));
            Error::Refused(format!(
                "kernel '{label}' ({release}): module '{name}'{user} is neither in {} nor built in; use a kernel \
                 that has it",
                self.folder.display()
            ))
        })?;
        let bytes = read(&file)?;
        let information = described(&file, &bytes)?;
        let values = |key: &'static str| information.iter().filter(move |pair| pair.0 == key).map(|pair| &*pair.1);
        if let Some(other) =
            values("vermagic").find_map(|magic| magic.split(' ').next()).filter(|other| other != release)
        {
            return Err(Error::Refused(format!(
                "{}: the module is of release {other}, but kernel '{label}' is of release {release}; give the folder of \
                 its own modules",
                file.display()
            )));
        }
        for needed in values("depends").flat_map(|list| list.split(',')).filter(|needed| !needed.is_empty()) {
            self.add(&plain(needed), Some(name))?;
        }
        let (before, after) = soft_dependencies(values("softdep"));
        self.add_wished(&before, name)?;
        self.modules.push(Module { name: name.to_owned(), bytes: tool::stripped(bytes) });
        self.add_wished(&after, name)
    }

    /// Adds those of the soft dependencies that exist.
    fn add_wished(&mut self, wished: &[String], user: &str) -> Result<()> {
        for wish in wished {
            if let Some(name) = candidates(wish).into_iter().find(|name| self.files.contains_key(name)) {
                self.add(&name, Some(user))?;
            }
        }
        Ok(())
    }
}

/// The name under which the kernel knows a module.
fn plain(name: &str) -> String {
    name.trim().replace('-', "_")
}

/// The soft dependencies before and after a module: `pre: a b post: c`.
fn soft_dependencies<'a>(lists: impl Iterator<Item = &'a str>) -> (Vec<String>, Vec<String>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for list in lists {
        let mut to: Option<&mut Vec<String>> = None;
        for word in list.split_whitespace() {
            match word {
                "pre:" => to = Some(&mut before),
                "post:" => to = Some(&mut after),
                word => to.iter_mut().for_each(|list| list.push(word.to_owned())),
            }
        }
    }
    (before, after)
}

/// Modules that a soft dependency can mean: the module itself, or, for an algorithm, the one that implements it without
/// special instructions.
fn candidates(wish: &str) -> [String; 2] {
    let name = plain(wish.strip_prefix("crypto-").unwrap_or(wish));
    let generic = format!("{name}_generic");
    [name, generic]
}

/// The module files below a folder, by name. Of two with one name, the one from the folders for replacements counts, or
/// the one that is less deep.
pub(super) fn index(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            // Symlinks to folders are not followed: `build` leads to the sources.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if let Some(stem) = ENDINGS.iter().find_map(|(ending, _)| name.strip_suffix(ending)) {
                found.push((plain(stem), entry.path()));
            }
        }
    }
    let rank = |path: &Path| {
        let below = path.strip_prefix(folder).unwrap_or(path);
        let replaces = below.starts_with("updates") || below.starts_with("extra");
        (Reverse(replaces), below.components().count(), below.to_owned())
    };
    // The best one is inserted last.
    found.sort_by_key(|(_, path)| Reverse(rank(path)));
    found.into_iter().collect()
}

/// Names of the modules that are built into the kernel.
fn built_in(folder: &Path) -> BTreeSet<String> {
    let list = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
    let stem = |line: &str| Some(plain(Path::new(line.trim()).file_stem()?.to_str()?));
    list.lines().filter_map(stem).collect()
}

/// What a module says of itself.
fn described(file: &Path, bytes: &[u8]) -> Result<Vec<(String, String)>> {
    let information = elf::module_information(bytes);
    information.ok_or_else(|| Error::Refused(format!("{}: is not a kernel module for x86-64", file.display())))
}

/// The contents of a module's file, unpacked.
fn read(file: &Path) -> Result<Vec<u8>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let program = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).and_then(|(_, program)| *program);
    match program {
        None => tool::read(file),
        Some(program) => {
            let what = format!("unpacking {}", file.display());
            tool::output(Command::new(program).arg("-dc").arg(file), &what, "install it", &tool::Care::default())
        }
    }
}

/// Stands in the user's text for the kernel's release.
const RELEASE: &str = "{release}";

/// A file that replaces a module of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The module's name, with underscores.
    pub name: String,
    pub file: PathBuf,
}

impl fmt::Display for Replaced {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}={}", self.name, self.file.display())
    }
}

/// Reads `NAME=FILE`, one or more with blanks between, and compares each file with the module that it replaces.
///
/// # Errors
/// When a file is missing or no module of this name, the kernel has no such module, or it was built for another kernel.
pub(super) fn replaced(text: &str, kernel: &Kernel) -> Result<Vec<Replaced>> {
    text.split_whitespace().map(|word| read_one(word, kernel)).collect()
}

fn read_one(word: &str, kernel: &Kernel) -> Result<Replaced> {
    let refused = |why: String| Error::Refused(format!("module '{word}': {why}"));
    let (name, path) = word
        .split_once('=')
        .filter(|(name, path)| !name.is_empty() && !path.is_empty())
        .ok_or_else(|| refused("write NAME=FILE, such as libceph=./libceph.ko".to_owned()))?;
    let path = path.replace(RELEASE, &kernel.release);
    let file = std::path::absolute(&path).map_err(|error| refused(error.to_string()))?;
    if !file.is_file() {
        return Err(refused(format!("{path}: no such file; give the .ko that was built for {}", kernel.release)));
    }
    let name = plain(name);
    let information = described(&file, &read(&file)?)?;
    if let Some(other) = value(&information, "name").filter(|other| plain(other) != name) {
        return Err(refused(format!("the file is the module '{other}'; write {other}={path}")));
    }
    let Kernel { label, release, modules, .. } = kernel;
    let folder = modules.as_ref().ok_or_else(|| {
        refused(format!(
            "no folder of the modules of kernel '{label}' ({release}) is known; give VMLINUZ,MODULES_FOLDER"
        ))
    })?;
    let Some(stock) = index(folder).remove(&name) else {
        let why = match built_in(folder).contains(&name) {
            true => "is built in, and cannot be replaced; use a kernel that has it as a module",
            false => "does not exist; check its name",
        };
        return Err(refused(format!("in kernel '{label}' ({release}) the module '{name}' {why}")));
    };
    let magic = |information: &[(String, String)]| value(information, "vermagic").unwrap_or_default().trim().to_owned();
    let (own, theirs) = (magic(&information), magic(&described(&stock, &read(&stock)?)?));
    if own != theirs {
        return Err(refused(format!(
            "its vermagic is '{own}', and that of kernel '{label}' is '{theirs}'; build it with the headers of {release}"
        )));
    }
    Ok(Replaced { name, file })
}

fn value<'a>(information: &'a [(String, String)], key: &str) -> Option<&'a str> {
    information.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests;
