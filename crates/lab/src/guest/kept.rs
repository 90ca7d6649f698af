//! What the cache keeps of guests: a note beside each file says what it is, and the least recently used ones are removed
//! when all are too large.

use super::cache::{Cache, Part};
use crate::error::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;
use xxhash_rust::xxh3::xxh3_128;

/// Limit for all guests of the cache, if the user names none.
pub const LIMIT_BYTES: u64 = 8 << 30;

/// What a file of the cache is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The kernel's release.
    pub kernel: String,
    /// The stack's name.
    pub stack: String,
    /// What is to be restored: the number of the replicate, from 1, and the user's kernel parameters. `None` for the first
    /// file system that guests boot from.
    pub saved: Option<(u32, String)>,
    /// Hash of the first file system, to find it damaged.
    pub hash: Option<String>,
}

/// A guest in the cache, or a file that guests boot from.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What it is, if that is known.
    pub note: Option<Note>,
    /// Size of its files.
    pub bytes: u64,
    /// When it was used last.
    pub used: SystemTime,
    /// Names of its files without their endings.
    stem: String,
}

impl Note {
    /// The note beside the files of this name.
    pub(super) fn read(cache: &Cache, stem: &str) -> Option<Self> {
        serde_json::from_slice(&fs::read(cache.entry(Part::Guests, &format!("{stem}.json"))).ok()?).ok()
    }

    pub(super) fn write(&self, cache: &Cache, stem: &str) -> Result<()> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        cache.replace(Part::Guests, &format!("{stem}.json"), |path| {
            fs::write(path, text).map_err(|error| Error::file(path, "writing the note about a guest", error))
        })?;
        Ok(())
    }

    /// Whether this is the first file system that is noted.
    pub(super) fn describes(&self, path: &Path) -> bool {
        fs::read(path).is_ok_and(|bytes| self.hash.as_deref() == Some(format!("{:032x}", xxh3_128(&bytes)).as_str()))
    }
}

/// A file of the cache that this process uses: no iotoll removes it to make room while this exists.
#[derive(Debug)]
pub(super) struct InUse {
    /// Its lock ends with it, also if iotoll is killed.
    _locked: File,
}

impl InUse {
    /// `None` if the file is absent, or was removed meanwhile.
    pub(super) fn hold(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        // A file system without locks is no reason to refuse: the file is only unprotected there.
        let _ = flock(&file, FlockOperation::LockShared);
        let (held, named) = (file.metadata().ok()?, fs::metadata(path).ok()?);
        ((held.dev(), held.ino()) == (named.dev(), named.ino())).then_some(Self { _locked: file })
    }

    /// Whether a process uses the file.
    fn any(path: &Path) -> bool {
        File::open(path).is_ok_and(|file| {
            flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
        })
    }
}

/// Notes that a file is used now.
pub(super) fn touch(path: &Path) {
    if let Ok(file) = File::options().write(true).open(path) {
        // Without it, it is only removed earlier.
        let _ = file.set_modified(SystemTime::now());
    }
}

/// The guests of the cache, those used last first.
pub fn guests(cache: &Cache) -> Vec<Kept> {
    let mut found: BTreeMap<String, Kept> = BTreeMap::new();
    for name in cache.names(Part::Guests) {
        let Some((stem, ending)) = name.rsplit_once('.') else { continue };
        // The plugin is small, and part of every guest.
        let Some(metadata) = fs::metadata(cache.entry(Part::Guests, &name)).ok().filter(|_| ending != "so") else {
            continue;
        };
        let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let kept = found.entry(stem.to_owned()).or_insert_with(|| Kept {
            note: Note::read(cache, stem),
            bytes: 0,
            used,
            stem: stem.to_owned(),
        });
        kept.bytes += metadata.len();
        kept.used = kept.used.max(used);
    }
    let mut found: Vec<Kept> = found.into_values().collect();
    found.sort_by_key(|kept| std::cmp::Reverse(kept.used));
    found
}

/// Removes the guests that were not used for the longest time, until all are no larger than `limit`; those that are
/// `needed` stay, and those that another process uses. Returns the size of what is left.
pub(super) fn trim(cache: &Cache, limit: u64, needed: &BTreeSet<String>) -> u64 {
    let guests = guests(cache);
    let mut bytes: u64 = guests.iter().map(|kept| kept.bytes).sum();
    for kept in guests.iter().rev().filter(|kept| !needed.contains(&kept.stem)) {
        if bytes <= limit {
            break;
        }
        if remove(cache, kept) {
            bytes = bytes.saturating_sub(kept.bytes);
        }
    }
    bytes
}

/// Whether the cache has a newer kernel of the same Debian series than this entry of it.
pub fn is_superseded(cache: &Cache, kernel: &str) -> bool {
    super::kernel::is_superseded(kernel, &cache.names(Part::Kernels))
}

/// Removes the unpacked kernels that a newer one of the same Debian series replaces, and their guests. Returns the bytes that they took.
pub fn remove_superseded(cache: &Cache) -> u64 {
    let mut bytes = 0;
    for entry in cache.list().into_iter().filter(|entry| entry.part == Part::Kernels) {
        if is_superseded(cache, &entry.name) {
            let path = cache.entry(entry.part, &entry.name);
            if fs::remove_dir_all(&path).is_ok() {
                bytes += entry.bytes;
            }
        }
    }
    let kernels = cache.names(Part::Kernels);
    for kept in guests(cache) {
        let Some(note) = &kept.note else { continue };
        if super::kernel::is_superseded_release(&note.kernel, &kernels) && remove(cache, &kept) {
            bytes += kept.bytes;
        }
    }
    bytes
}

/// Removes the files of a guest, unless a process uses them. Returns whether it did.
fn remove(cache: &Cache, kept: &Kept) -> bool {
    let file = |ending: &str| cache.entry(Part::Guests, &format!("{}.{ending}", kept.stem));
    if InUse::any(&file("cpio")) {
        return false;
    }
    // The note last: it tells what the others are.
    for ending in ["state", "symbols", "cpio", "json"] {
        let _ = fs::remove_file(file(ending));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_least_recently_used_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let file = |name: &str| cache.entry(Part::Guests, name);
        for (age, name) in [(10, "old.state"), (20, "oldest.state"), (20, "oldest.symbols"), (30, "needed.state")] {
            fs::write(file(name), [0; 100]).unwrap();
            let used = SystemTime::now() - Duration::from_secs(age);
            File::options().write(true).open(file(name)).unwrap().set_modified(used).unwrap();
        }
        fs::write(file("plugin-1.so"), [0; 100]).unwrap();
        fs::write(file("new.cpio"), [0; 100]).unwrap();
        let needed = BTreeSet::from(["needed".to_owned()]);
        assert_eq!(trim(&cache, 500, &needed), 500);
        assert_eq!(guests(&cache).len(), 4);
        assert_eq!(trim(&cache, 499, &needed), 300);
        assert!(!file("oldest.state").exists() && !file("oldest.symbols").exists() && file("old.state").exists());
        touch(&file("old.state"));
        assert_eq!(trim(&cache, 200, &needed), 200);
        assert!(!file("new.cpio").exists() && file("old.state").exists());
        assert_eq!(trim(&cache, 0, &needed), 100);
        assert!(file("needed.state").exists() && file("plugin-1.so").exists());
    }

    #[test]
    fn a_file_in_use_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let file = cache.entry(Part::Guests, "a.cpio");
        fs::write(&file, [0; 100]).unwrap();
        let held = [InUse::hold(&file).unwrap(), InUse::hold(&file).unwrap()];
        assert_eq!(trim(&cache, 0, &BTreeSet::new()), 100);
        assert!(file.exists());
        drop(held);
        assert_eq!(trim(&cache, 0, &BTreeSet::new()), 0);
        assert!(!file.exists());
        assert!(InUse::hold(&file).is_none());
    }

    #[test]
    fn a_note_finds_a_damaged_file() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let file = cache.entry(Part::Guests, "a.cpio");
        fs::write(&file, "whole").unwrap();
        let note = Note { hash: Some(format!("{:032x}", xxh3_128(b"whole"))), ..Note::default() };
        note.write(&cache, "a").unwrap();
        let note = Note::read(&cache, "a").unwrap();
        assert!(note.describes(&file));
        fs::write(&file, "").unwrap();
        assert!(!note.describes(&file));
        assert!(!note.describes(folder.path()));
    }
}
