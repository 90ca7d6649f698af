//! The first file system of a guest, as the archive that the kernel unpacks at boot: cpio, format newc
//! (Documentation/driver-api/early-userspace/buffer-format.rst). The same contents give the same bytes.

use super::tool::unreadable;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Name of the entry that ends an archive.
const TRAILER: &str = "TRAILER!!!";
/// Types of entries in the mode (inode(7)).
const CHARACTER_DEVICE: u32 = 0o020_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
/// Links of a merged `/usr`: whichever path a loader looks at, there is one place.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// Symlinks followed in one path before the rest is taken literally, as the kernel's limit (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// What a file contains.
#[derive(Clone, Debug)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What this file of the host contains.
    Host(PathBuf),
}

/// An entry of the archive.
#[derive(Clone, Debug)]
enum Entry {
    Directory,
    Symlink(String),
    File { content: Content, permissions: u32 },
    Device { major: u32, minor: u32 },
}

/// An archive being composed. Every entry belongs to root.
#[derive(Clone, Debug)]
pub struct Initramfs {
    /// By path, without a leading slash.
    entries: BTreeMap<String, Entry>,
}

impl Default for Initramfs {
    fn default() -> Self {
        Self::new()
    }
}

impl Initramfs {
    /// An archive with `/usr`, and `/bin`, `/sbin`, `/lib` and `/lib64` as links into it.
    pub fn new() -> Self {
        let mut archive = Self { entries: BTreeMap::new() };
        for name in MERGED {
            archive.directory(&format!("/usr/{name}"));
            archive.symlink(&format!("/{name}"), &format!("usr/{name}"));
        }
        archive
    }

    /// Adds a directory, unless there is something at its path.
    pub fn directory(&mut self, path: &str) {
        let path = self.place(path);
        if !path.is_empty() {
            self.entries.entry(path).or_insert(Entry::Directory);
        }
    }

    /// Adds a symlink. What is added below its path later goes to its target.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.add(path, Entry::Symlink(target.to_owned()));
    }

    /// Adds a file; its permissions are those of `permissions` in octal, such as `0o755`.
    pub fn file(&mut self, path: &str, content: Content, permissions: u32) {
        self.add(path, Entry::File { content, permissions: permissions & 0o7777 });
    }

    /// Adds a character device, which only root may use.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.add(path, Entry::Device { major, minor });
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// When a file of the host cannot be read, is too large for the format, or the archive cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let written = |error: io::Error| {
            let path = path.display();
            Error::Failed(format!("{path}: the guest's first file system cannot be written: {error}"))
        };
        let mut output = BufWriter::new(File::create(path).map_err(written)?);
        self.stream(&mut output, &written)?;
        output.into_inner().map_err(|error| written(error.into_error()))?;
        Ok(())
    }

    /// A hash of the archive that [`Self::write`] would write now, as 32 hexadecimal digits.
    ///
    /// # Errors
    /// When a file of the host cannot be read, or is too large for the format.
    pub fn hash(&self) -> Result<String> {
        let mut hash = Hash(Xxh3::new());
        self.stream(&mut hash, &|error| Error::instrument("hashing the guest's first file system", error))?;
        Ok(format!("{:032x}", hash.0.digest128()))
    }

    fn add(&mut self, path: &str, entry: Entry) {
        let path = self.place(path);
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
        if !path.is_empty() {
            self.entries.insert(path, entry);
        }
    }

    /// Where an entry for `path` goes: the path without leading slash, its parents' symlinks followed. The parents are
    /// added where they are missing.
    fn place(&mut self, path: &str) -> String {
        let mut rest: Vec<String> = parts(path);
        let mut place: Vec<String> = Vec::new();
        let mut followed = 0;
        while !rest.is_empty() {
            let part = rest.remove(0);
            if part == ".." {
                place.pop();
                continue;
            }
            place.push(part);
            let here = place.join("/");
            if rest.is_empty() {
                return here;
            }
            match self.entries.get(&here) {
                Some(Entry::Symlink(target)) if followed < MOST_LINKS => {
                    followed += 1;
                    if target.starts_with('/') {
                        place.clear();
                    } else {
                        place.pop();
                    }
                    let mut target = parts(target);
                    target.append(&mut rest);
                    rest = target;
                }
                Some(_) => {}
                None => {
                    self.entries.insert(here, Entry::Directory);
                }
            }
        }
        place.join("/")
    }

    /// Streams the archive; `failed` makes the error of a failing write.
    fn stream(&self, output: &mut dyn Write, failed: &dyn Fn(io::Error) -> Error) -> Result<()> {
        for (number, (path, entry)) in (1..).zip(&self.entries) {
            let header = Header { number, mode: 0, links: 1, device: (0, 0) };
            let owned;
            let (header, content): (_, &[u8]) = match entry {
                Entry::Directory => (Header { mode: DIRECTORY | 0o755, links: 2, ..header }, &[]),
                Entry::Symlink(target) => (Header { mode: SYMLINK | 0o777, ..header }, target.as_bytes()),
                Entry::Device { major, minor } => {
                    (Header { mode: CHARACTER_DEVICE | 0o600, device: (*major, *minor), ..header }, &[])
                }
                Entry::File { content, permissions } => {
                    let header = Header { mode: REGULAR | permissions, ..header };
                    match content {
                        Content::Bytes(bytes) => (header, bytes),
                        Content::Host(file) => {
                            let read = std::fs::read(file);
                            owned = read.map_err(|error| unreadable(file, &error))?;
                            (header, &owned)
                        }
                    }
                }
            };
            let size = u32::try_from(content.len());
            let size = size.map_err(|_| {
                Error::Refused(format!("/{path}: the file is 4 GiB or larger; a guest holds smaller files only"))
            })?;
            header.write(output, path, size, content).map_err(failed)?;
        }
        let last = Header { number: 0, mode: 0, links: 1, device: (0, 0) };
        last.write(output, TRAILER, 0, &[]).map_err(failed)
    }
}

/// The named parts of a path.
fn parts(path: &str) -> Vec<String> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
}

/// The fields of an entry's header that differ.
struct Header {
    number: u32,
    mode: u32,
    links: u32,
    device: (u32, u32),
}

impl Header {
    fn write(&self, output: &mut dyn Write, path: &str, size: u32, content: &[u8]) -> io::Result<()> {
        /// Length of the header, whose name begins right after it.
        const HEADER_BYTES: usize = 110;
        let name_bytes = path.len() + 1;
        let Self { number, mode, links, device: (major, minor) } = self;
        // Magic, inode, mode, user, group, links, time, size, device of the file, device it is, name, checksum.
        write!(output, "070701{number:08x}{mode:08x}{0:08x}{0:08x}{links:08x}{0:08x}{size:08x}{0:08x}{0:08x}", 0)?;
        write!(output, "{major:08x}{minor:08x}{name_bytes:08x}{:08x}{path}\0", 0)?;
        output.write_all(padding(HEADER_BYTES + name_bytes))?;
        output.write_all(content)?;
        output.write_all(padding(content.len()))
    }
}

/// What follows `bytes` up to a multiple of 4.
fn padding(bytes: usize) -> &'static [u8] {
    match bytes % 4 {
        0 => &[],
        1 => &[0; 3],
        2 => &[0; 2],
        _ => &[0; 1],
    }
}

struct Hash(Xxh3);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
