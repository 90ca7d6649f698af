//! What a setting's file held, and what changed with it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files beside a setting that are looked at, at most.
const MOST_BESIDE: usize = 1000;
/// What differs after this long without anybody touching it moves by itself.
const STILL: Duration = Duration::from_millis(20);

/// A file and what it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingFile {
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    pub value: String,
    /// It is a file of the kernel, which takes a value whole; not a file that keeps bytes.
    pub kernel: bool,
}

impl SettingFile {
    /// Reads what is there.
    pub fn read(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let (kernel, text) = (is_of_the_kernel(path)?, fs::read_to_string(path)?);
        Ok(Self { path: path.to_owned(), value: if kernel { present(&text) } else { text }, kernel })
    }

    /// Writes back what was there.
    pub fn write_back(&self) -> io::Result<()> {
        write(&self.path, &self.value, self.kernel)
    }

    /// What is there now, where it differs.
    pub fn differs(&self) -> io::Result<Option<String>> {
        let now = self.now()?;
        Ok((!self.is(&now, &self.value)).then_some(now))
    }

    /// What is there now.
    pub fn now(&self) -> io::Result<String> {
        let text = fs::read_to_string(&self.path)?;
        Ok(if self.kernel { present(&text) } else { text })
    }

    /// Whether two texts are the same value to this file.
    pub fn is(&self, one: &str, other: &str) -> bool {
        if self.kernel { same(one, other) } else { one == other }
    }
}

/// Writes back, in this order, what is not so already; of each that is not so at the end, why.
///
/// The kernel may take a value back only after what goes with it (0 of vm.dirty_bytes is refused, and comes of
/// vm.dirty_ratio), so it counts what is there when all were written.
pub(crate) fn put_back<'a>(files: impl IntoIterator<Item = &'a SettingFile>) -> Vec<(&'a SettingFile, String)> {
    let written: Vec<(&SettingFile, io::Result<()>)> = files.into_iter().map(|found| (found, restore(found))).collect();
    let remaining = written.into_iter().filter_map(|(found, written)| {
        // What a file that keeps bytes holds is what was written.
        let why = match (found.kernel, written, found.differs()) {
            (false, Ok(()), _) | (true, _, Ok(None)) => return None,
            (_, Err(error), _) | (_, _, Err(error)) => error.to_string(),
            (_, Ok(()), Ok(Some(now))) => format!("the kernel made '{now}' of it"),
        };
        Some((found, why))
    });
    remaining.collect()
}

/// Writes back what is not so already.
fn restore(found: &SettingFile) -> io::Result<()> {
    match found.differs() {
        Ok(None) => Ok(()),
        Err(error) if found.kernel => Err(error),
        Ok(Some(_)) | Err(_) => found.write_back(),
    }
}

/// Files of the kernel get a line, because an empty value would otherwise be no write at all.
pub(crate) fn write(path: &Path, value: &str, kernel: bool) -> io::Result<()> {
    // Not made anew: where a file of a device that is gone lay, an ordinary one would stay.
    let mut file = fs::OpenOptions::new().write(true).truncate(true).open(path)?;
    // In one write, which the kernel takes as one value.
    let end = if kernel { "\n" } else { "" };
    file.write_all(format!("{value}{end}").as_bytes())
}

/// Whether two texts are the same value, however it is spaced.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// What a file of the kernel holds, as it can be written back: of `none [mq-deadline] bfq` the word in brackets.
pub(crate) fn present(text: &str) -> String {
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or_else(|| text.trim_end_matches('\n')).to_owned()
}

/// Whether a path lies in a file system whose files are the kernel's own.
fn is_of_the_kernel(path: &Path) -> io::Result<bool> {
    /// proc, sysfs, cgroup2, cgroup, debugfs, tracefs, configfs (linux/magic.h).
    const KINDS: [i64; 7] = [0x9fa0, 0x6265_6572, 0x6367_7270, 0x0027_e0eb, 0x6462_6720, 0x7472_6163, 0x6265_6570];
    Ok(KINDS.contains(&rustix::fs::statfs(path)?.f_type))
}

/// What the settings beside `setting` hold, in its folder and those in it: the kernel changes some of them with it
/// (`vm.dirty_bytes` with `vm.dirty_ratio`, a scheduler's own with the scheduler). Those that move by themselves are left out.
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

/// Whether a file can be read and written, and is not one that every new process changes.
fn is_setting(path: &Path) -> bool {
    let both = |meta: &fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o600 == 0o600;
    let counts = path.file_name().is_some_and(|name| name == "ns_last_pid");
    !counts && fs::symlink_metadata(path).is_ok_and(|meta| both(&meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_gone_is_not_made_anew() {
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
    fn of_several_choices_the_one_in_brackets_is_present() {
        assert_eq!(present("none [mq-deadline] bfq\n"), "mq-deadline");
        assert_eq!(present("10\n"), "10");
        assert_eq!(present("4096\t87380\t6291456\n"), "4096\t87380\t6291456");
    }
}
