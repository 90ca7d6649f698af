//! The kernel's files below a root directory, which is `/` except in tests.
//!
//! A file that cannot be read is `None`: it is missing, this user may not read it, or the kernel refuses. Contents may
//! be malformed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Upper bound of the files read here; limits the reading of an endless one.
const LARGEST_BYTES: u64 = 16 << 20;

/// A directory that contains `/proc`, `/sys`, `/dev` and `/boot`.
#[derive(Clone, Debug)]
pub struct Sysroot {
    root: PathBuf,
}

impl Sysroot {
    /// The files below `root`.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The file as text, trimmed, with invalid UTF-8 replaced.
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = self.bytes(path, LARGEST_BYTES)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The file as one integer.
    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// The first `most` bytes of the file.
    pub fn bytes(&self, path: &str, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The file, opened for reading.
    pub fn open(&self, path: &str) -> Option<File> {
        File::open(self.root.join(path)).ok()
    }

    /// Whether `path` exists.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The names in a directory, sorted; none if it does not exist.
    pub fn names(&self, directory: &str) -> Vec<String> {
        names(&self.root.join(directory))
    }

    /// The names in a directory that consist of `prefix` and a number, in the order of the numbers.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Vec<String> {
        let number = |name: &String| name.strip_prefix(prefix)?.parse::<u32>().ok();
        let mut names: Vec<_> = self.names(directory).into_iter().filter(|name| number(name).is_some()).collect();
        names.sort_by_key(number);
        names
    }
}

/// The names in a folder, sorted; none if it does not exist.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Number of items in a kernel list such as `0-3,8`; `None` if it is malformed.
pub fn listed(list: &str) -> Option<usize> {
    list.trim().split(',').filter(|range| !range.is_empty()).try_fold(0usize, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_counted() {
        assert_eq!(listed("0-3,8\n"), Some(5));
        assert_eq!(listed("0"), Some(1));
        assert_eq!(listed(""), Some(0));
        assert_eq!(listed("3-1"), None);
        assert_eq!(listed("a-b"), None);
    }

    #[test]
    fn numbered_names_are_in_order_and_others_left_out() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpufreq", "cpu"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        assert_eq!(Sysroot::at(directory.path()).numbered("", "cpu"), ["cpu2", "cpu10"]);
    }

    #[test]
    fn what_is_missing_or_not_text_does_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("odd"), [0xff, b'4', b'\n']).unwrap();
        let root = Sysroot::at(directory.path());
        assert_eq!(root.text("missing"), None);
        assert_eq!(root.number("odd"), None);
        assert_eq!(root.text("odd").as_deref(), Some("\u{fffd}4"));
        assert!(root.names("missing").is_empty());
    }
}
