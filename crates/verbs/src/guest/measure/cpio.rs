//! The first file system of a guest, as the archive that the kernel unpacks at boot: cpio, format newc
//! (Documentation/driver-api/early-userspace/buffer-format.rst). The same contents give the same bytes.

use super::tool;
use lab::error::{Error, Result};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// Name of the entry that ends an archive.
const TRAILER: &str = "TRAILER!!!";
/// Types of entries in the mode (inode(7)).
const CHARACTER_DEVICE: u32 = 0o020_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
/// Links of a merged `/usr`: whichever path a loader looks at, there is one place.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// What a file contains, or where a symlink leads.
#[derive(Clone, Debug)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What this file of the host contains, without debug information.
    Host(PathBuf),
}

/// An entry of the archive: its mode, its number as a device, its content.
type Entry = (u32, (u32, u32), Content);

/// An archive being composed. Every entry belongs to root.
#[derive(Clone, Debug)]
pub struct Initramfs {
    /// By path, without a leading slash.
    entries: BTreeMap<String, Entry>,
}

impl Default for Initramfs {
    /// An archive with `/usr`, and `/bin`, `/sbin`, `/lib` and `/lib64` as links into it.
    fn default() -> Self {
        let mut archive = Self { entries: BTreeMap::new() };
        for name in MERGED {
            archive.directory(&format!("/usr/{name}"));
            archive.symlink(&format!("/{name}"), &format!("usr/{name}"));
        }
        archive
    }
}

impl Initramfs {
    /// Adds a directory, unless there is something at its path.
    pub fn directory(&mut self, path: &str) {
        self.entries.entry(place(path)).or_insert((DIRECTORY | 0o755, (0, 0), Content::Bytes(Vec::new())));
    }

    /// Adds a symlink.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.add(path, (SYMLINK | 0o777, (0, 0), Content::Bytes(target.as_bytes().to_vec())));
    }

    /// Adds a file; its permissions are those of `permissions` in octal, such as `0o755`.
    pub fn file(&mut self, path: &str, content: Content, permissions: u32) {
        self.add(path, (REGULAR | permissions, (0, 0), content));
    }

    /// Adds a character device, which only root may use.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.add(path, (CHARACTER_DEVICE | 0o600, (major, minor), Content::Bytes(Vec::new())));
    }

    fn add(&mut self, path: &str, entry: Entry) {
        let path = place(path);
        path.match_indices('/').for_each(|(end, _)| self.directory(path.get(..end).unwrap_or_default()));
        self.entries.insert(path, entry);
    }

    /// The archive.
    ///
    /// # Errors
    /// When a file of the host cannot be read, or is too large for the format.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let mut archive = Vec::new();
        for (number, (path, (mode, device, content))) in (1..).zip(&self.entries) {
            let owned;
            let content = match content {
                Content::Bytes(bytes) => bytes,
                Content::Host(file) => {
                    owned = tool::stripped(tool::read(file)?);
                    &owned
                }
            };
            let size = u32::try_from(content.len()).map_err(|_| {
                Error::Refused(format!("/{path}: the file is 4 GiB or larger; a guest holds smaller files only"))
            })?;
            append(&mut archive, (number, *mode, *device), path, size, content);
        }
        append(&mut archive, (0, 0, (0, 0)), TRAILER, 0, &[]);
        Ok(archive)
    }
}

/// Where an entry for `path` goes: the path without leading slash, below `/usr` where its first folder is a link to there.
fn place(path: &str) -> String {
    let mut place: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => _ = place.pop(),
            part => place.push(part),
        }
    }
    let is_merged = place.len() > 1 && place.first().is_some_and(|first| MERGED.contains(first));
    format!("{}{}", if is_merged { "usr/" } else { "" }, place.join("/"))
}

/// Appends an entry.
fn append(archive: &mut Vec<u8>, header: (u32, u32, (u32, u32)), path: &str, size: u32, content: &[u8]) {
    let (number, mode, (major, minor)) = header;
    let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
    let name_bytes = path.len() + 1;
    // Magic, inode, mode, user, group, links, time, size, device of the file, device it is, name, checksum.
    let _ = write!(archive, "070701{number:08x}{mode:08x}{0:08x}{0:08x}{links:08x}{0:08x}{size:08x}{0:08x}{0:08x}", 0);
    let _ = write!(archive, "{major:08x}{minor:08x}{name_bytes:08x}{:08x}{path}\0", 0);
    // What follows begins at a multiple of 4.
    archive.resize(archive.len().next_multiple_of(4), 0);
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests;
