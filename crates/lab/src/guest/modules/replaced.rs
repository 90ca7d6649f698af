//! Modules of the user's own in place of those of a kernel: one module is rebuilt, the rest of the kernel is stock.

use super::{built_in, index, plain, read};
use crate::bounded_file::{self, LONGEST_FILE};
use crate::elf;
use crate::error::{Error, Result};
use crate::guest::kernel::Kernel;
use crate::guest::tool::unreadable;
use std::fmt;
use std::path::{Path, PathBuf};

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

impl Replaced {
    /// Hash of the file.
    pub(in crate::guest) fn hash(&self) -> Result<String> {
        let bytes = bounded_file::read(&self.file, LONGEST_FILE).map_err(|error| unreadable(&self.file, &error))?;
        Ok(format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes)))
    }
}

/// Reads `NAME=FILE`, one or more with blanks between, and compares each file with the module that it replaces.
///
/// # Errors
/// When a file is missing or no module of this name, the kernel has no such module, or it was built for another kernel.
pub(in crate::guest) fn read_all(text: &str, kernel: &Kernel) -> Result<Vec<Replaced>> {
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
    let information = described(&file)?;
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
    let magic = |information: &[(String, String)]| value(information, "vermagic").unwrap_or_default().to_owned();
    if let Some(difference) = difference(&magic(&information), &magic(&described(&stock)?)) {
        return Err(refused(format!(
            "its vermagic differs from that of kernel '{label}': {difference}; build it with the headers of {release}"
        )));
    }
    Ok(Replaced { name, file })
}

fn described(file: &Path) -> Result<Vec<(String, String)>> {
    let information = elf::module_information(&read(file)?);
    information.ok_or_else(|| Error::Refused(format!("{}: is not a kernel module for x86-64", file.display())))
}

fn value<'a>(information: &'a [(String, String)], key: &str) -> Option<&'a str> {
    information.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
}

/// What differs between the vermagic of a module and the kernel's: a release, and words such as `SMP` and `modversions`.
fn difference(own: &str, stock: &str) -> Option<String> {
    let (own, stock): (Vec<&str>, Vec<&str>) = (own.split_whitespace().collect(), stock.split_whitespace().collect());
    let mut parts = Vec::new();
    match (own.first(), stock.first()) {
        (Some(release), Some(wanted)) if release != wanted => {
            parts.push(format!("it is of release {release} instead of {wanted}"));
        }
        (None, Some(_)) => parts.push("it has none".to_owned()),
        _ => {}
    }
    let without = |some: &[&str], others: &[&str]| -> Vec<String> {
        let lacked = some.iter().skip(1).filter(|word| !others.contains(word));
        lacked.map(|word| format!("'{word}'")).collect()
    };
    let (lacks, more) = (without(&stock, &own), without(&own, &stock));
    if !own.is_empty() && !lacks.is_empty() {
        parts.push(format!("it lacks {}", lacks.join(", ")));
    }
    if !more.is_empty() {
        parts.push(format!("it has {}", more.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kernel, write};
    use super::*;
    use std::fs;

    #[test]
    fn what_differs_in_the_vermagic_is_named() {
        let stock = "6.12.1-amd64 SMP preempt mod_unload modversions ";
        assert_eq!(difference(stock.trim(), stock), None);
        for (own, said) in [
            ("6.12.2 SMP preempt mod_unload modversions", "it is of release 6.12.2 instead of 6.12.1-amd64"),
            ("6.12.1-amd64 SMP preempt_rt mod_unload", "it lacks 'preempt', 'modversions', it has 'preempt_rt'"),
            ("", "it has none"),
        ] {
            assert_eq!(difference(own, stock).as_deref(), Some(said));
        }
    }

    #[test]
    fn a_module_is_replaced_by_name_or_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let magic = "vermagic=6.1.0 SMP mod_unload";
        write(root, "kernel/net/lib-ceph.ko", &["name=lib_ceph", magic]);
        fs::write(root.join("modules.builtin"), "kernel/net/tcp.ko\n").unwrap();
        write(root, "own/6.1.0/a.ko", &["name=lib_ceph", magic]);
        write(root, "own/other.ko", &["name=lib_ceph", "vermagic=6.2.0 SMP mod_unload"]);
        write(root, "own/rbd.ko", &["name=rbd", magic]);
        fs::write(root.join("own/text.ko"), "text").unwrap();
        // Its own folder is not among the kernel's modules.
        let kernel = kernel(&root.join("kernel"));
        let said = |text: &str| {
            let read = read_all(&text.replace("ROOT", root.to_str().unwrap()), &kernel);
            let told = |read: Vec<Replaced>| read.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let text = read.map_or_else(|error| error.to_string(), told);
            text.replace(root.to_str().unwrap(), "ROOT")
        };
        fs::rename(root.join("modules.builtin"), root.join("kernel/modules.builtin")).unwrap();
        assert_eq!(said(""), "");
        assert_eq!(said("lib-ceph=ROOT/own/{release}/a.ko"), "lib_ceph=ROOT/own/6.1.0/a.ko");
        for (text, why) in [
            ("lib_ceph", "write NAME=FILE, such as libceph=./libceph.ko"),
            ("lib_ceph=ROOT/gone.ko", "ROOT/gone.ko: no such file; give the .ko that was built for 6.1.0"),
            ("lib_ceph=ROOT/own/rbd.ko", "the file is the module 'rbd'; write rbd=ROOT/own/rbd.ko"),
            ("rbd=ROOT/own/rbd.ko", "in kernel 'test' (6.1.0) the module 'rbd' does not exist; check its name"),
            (
                "lib_ceph=ROOT/own/other.ko",
                "its vermagic differs from that of kernel 'test': it is of release 6.2.0 instead of 6.1.0; build it with the \
                 headers of 6.1.0",
            ),
        ] {
            assert_eq!(said(text), format!("module '{text}': {why}"));
        }
        assert_eq!(said("lib_ceph=ROOT/own/text.ko"), "ROOT/own/text.ko: is not a kernel module for x86-64");
        write(root, "own/tcp.ko", &["name=tcp", magic]);
        let built_in = said("tcp=ROOT/own/tcp.ko");
        assert!(built_in.contains("is built in, and cannot be replaced"), "{built_in}");
    }
}
