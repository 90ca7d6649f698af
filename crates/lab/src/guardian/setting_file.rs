//! The file of a setting: its value, and what else changes with it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most files beside a setting that are read.
const MOST_BESIDE: usize = 1000;
/// A value that differs after this time changes by itself.
const STILL: Duration = Duration::from_millis(20);

/// A file and its original value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingFile {
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    pub value: String,
    /// A file of the kernel (procfs, sysfs…), which takes a value in one write; otherwise a regular file.
    pub kernel: bool,
}

impl SettingFile {
    /// Reads the current value.
    pub fn read(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let (kernel, text) = (is_of_the_kernel(path)?, fs::read_to_string(path)?);
        Ok(Self { path: path.to_owned(), value: if kernel { present(&text) } else { text }, kernel })
    }

    /// Writes the original value back.
    pub fn write_back(&self) -> io::Result<()> {
        write(&self.path, &self.value, self.kernel)
    }

    /// The current value, if it differs.
    pub fn differs(&self) -> io::Result<Option<String>> {
        let now = self.now()?;
        Ok((!self.is(&now, &self.value)).then_some(now))
    }

    /// The current value.
    pub fn now(&self) -> io::Result<String> {
        let text = fs::read_to_string(&self.path)?;
        Ok(if self.kernel { present(&text) } else { text })
    }

    /// Whether two texts are the same value in this file.
    pub fn is(&self, one: &str, other: &str) -> bool {
        if self.kernel { same(one, other) } else { one == other }
    }
}

/// Writes the original values back, in this order, where they differ. Returns the files that still differ at the end,
/// and why.
///
/// The kernel may accept a value only after a related one (it refuses 0 in vm.dirty_bytes, which comes from writing
/// vm.dirty_ratio), so the result is checked after all writes.
pub(crate) fn put_back<'a>(files: impl IntoIterator<Item = &'a SettingFile>) -> Vec<(&'a SettingFile, String)> {
    let written: Vec<(&SettingFile, io::Result<()>)> = files.into_iter().map(|found| (found, restore(found))).collect();
    let remaining = written.into_iter().filter_map(|(found, written)| {
        // A regular file contains what was written.
        let why = match (found.kernel, written, found.differs()) {
            (false, Ok(()), _) | (true, _, Ok(None)) => return None,
            (_, Err(error), _) | (_, _, Err(error)) => error.to_string(),
            (_, Ok(()), Ok(Some(now))) => format!("the kernel changed it to '{now}'"),
        };
        Some((found, why))
    });
    remaining.collect()
}

/// Writes the original value back if it differs.
fn restore(found: &SettingFile) -> io::Result<()> {
    match found.differs() {
        Ok(None) => Ok(()),
        Err(error) if found.kernel => Err(error),
        Ok(Some(_)) | Err(_) => found.write_back(),
    }
}

/// Values for files of the kernel end in a newline, because an empty value would otherwise be no write at all.
pub(crate) fn write(path: &Path, value: &str, kernel: bool) -> io::Result<()> {
    // Never create the file: an ordinary file would remain where a removed device had its file.
    let mut file = fs::OpenOptions::new().write(true).truncate(true).open(path)?;
    // In one write, because the kernel takes each write as a value.
    let end = if kernel { "\n" } else { "" };
    file.write_all(format!("{value}{end}").as_bytes())
}

/// Whether two texts are the same value except for spacing.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// The value of a kernel file as it can be written back: of `none [mq-deadline] bfq` the word in brackets.
pub(crate) fn present(text: &str) -> String {
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or_else(|| text.trim_end_matches('\n')).to_owned()
}

/// Whether a path is in a file system of kernel files.
fn is_of_the_kernel(path: &Path) -> io::Result<bool> {
    /// proc, sysfs, cgroup2, cgroup, debugfs, tracefs, configfs (linux/magic.h).
    const KINDS: [i64; 7] = [0x9fa0, 0x6265_6572, 0x6367_7270, 0x0027_e0eb, 0x6462_6720, 0x7472_6163, 0x6265_6570];
    Ok(KINDS.contains(&rustix::fs::statfs(path)?.f_type))
}

/// The values of the settings beside `setting`, in its folder and its subfolders: the kernel changes some of them with
/// it (`vm.dirty_bytes` with `vm.dirty_ratio`, the settings of an I/O scheduler with the scheduler). Those that change
/// by themselves are left out.
pub(crate) fn beside(setting: &Path) -> BTreeMap<PathBuf, String> {
    let folder = setting.parent().unwrap_or(setting);
    let first = look(folder, setting);
    std::thread::sleep(STILL);
    let second = look(folder, setting);
    first.into_iter().filter(|(path, value)| second.get(path) == Some(value)).collect()
}

fn look(folder: &Path, setting: &Path) -> BTreeMap<PathBuf, String> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let below = entries(folder)
        .filter(|path| path.is_dir() && !path.is_symlink())
        .flat_map(|path| entries(&path).collect::<Vec<_>>());
    let all = entries(folder).chain(below).filter(|path| path != setting && is_setting(path)).take(MOST_BESIDE);
    all.filter_map(|path| Some((path.clone(), present(&fs::read_to_string(&path).ok()?)))).collect()
}

/// Whether a file can be read and written, and does not change with every new process.
fn is_setting(path: &Path) -> bool {
    let both = |meta: &fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o600 == 0o600;
    let counts = path.file_name().is_some_and(|name| name == "ns_last_pid");
    !counts && fs::symlink_metadata(path).is_ok_and(|meta| both(&meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_file_is_not_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("knob");
        fs::write(&path, "found").unwrap();
        let found = SettingFile::read(&path).unwrap();
        write(&path, "a longer value", false).unwrap();
        assert_eq!(put_back([&found]), []);
        assert_eq!(fs::read_to_string(&path).unwrap(), "found");
        fs::remove_file(&path).unwrap();
        assert!(put_back([&found])[0].1.contains("No such file"));
        assert!(!path.exists());
    }

    #[test]
    fn the_choice_in_brackets_is_the_value() {
        assert_eq!(present("none [mq-deadline] bfq\n"), "mq-deadline");
        assert_eq!(present("10\n"), "10");
        assert_eq!(present("4096\t87380\t6291456\n"), "4096\t87380\t6291456");
    }
}
