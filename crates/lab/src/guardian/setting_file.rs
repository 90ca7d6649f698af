//! The file of a setting: its value, and what else changes with it.

use super::undo::Identity;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longest value, in bytes: the kernel gives and takes a setting in one page.
const LONGEST_VALUE: usize = 4096;
/// A file that does not answer within this time is not the file of a setting.
const LONGEST_READ: Duration = Duration::from_secs(5);

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
    /// Of a regular file: another one may come to its path.
    pub identity: Option<Identity>,
}

impl SettingFile {
    /// A file of the kernel.
    pub fn of_kernel(path: &Path, value: &str) -> Self {
        Self { path: path.to_owned(), value: value.to_owned(), kernel: true, identity: None }
    }

    /// Reads the current value, and makes sure that another one can be written.
    ///
    /// # Errors
    /// When it is neither a regular file nor a file of the kernel, is longer than a value, or does not answer in time.
    pub fn read(path: &Path) -> io::Result<Self> {
        let path = path.to_owned();
        in_time(move || {
            let metadata = fs::metadata(&path)?;
            if !metadata.is_file() {
                return Err(io::Error::other("not a regular file"));
            }
            let kernel = is_of_the_kernel(&path)?;
            // Not even root can write to it, and reading may consume what it shows (/proc/kmsg).
            if kernel && metadata.permissions().mode() & 0o222 == 0 {
                return Err(io::Error::other("the kernel lets nobody write to it"));
            }
            let text = text_of(opening(OpenOptions::new().read(true)).open(&path)?)?;
            // Truncating a virtual file, and putting its value back in one write, is right only for those of the kernel.
            if !kernel && metadata.len() != text.len() as u64 {
                return Err(io::Error::other("neither a regular file nor in a file system of kernel settings"));
            }
            let writable = opening(OpenOptions::new().write(true)).open(&path);
            writable.map_err(|error| io::Error::new(error.kind(), format!("opening for writing: {error}")))?;
            let identity = (!kernel).then(|| Identity::of(&metadata));
            Ok(Self { path, value: if kernel { present(&text) } else { text }, kernel, identity })
        })
    }

    /// Writes the original value back.
    pub fn write_back(&self) -> io::Result<()> {
        self.write(&self.value)
    }

    /// Writes a value.
    ///
    /// The original value must fit again even if the disk is full by then. So a regular file keeps its blocks: the value is written
    /// over the earlier one, and the file is cut afterwards.
    pub fn write(&self, value: &str) -> io::Result<()> {
        // Never create the file: an ordinary file would remain where a removed device had its file.
        if self.kernel {
            // In one write, because the kernel takes each write as a value. It ends in a newline, because an empty value would
            // otherwise be no write at all.
            let mut file = opening(OpenOptions::new().write(true).truncate(true)).open(&self.path)?;
            return file.write_all(format!("{value}\n").as_bytes());
        }
        self.write_over(&self.open(OpenOptions::new().write(true))?, value)
    }

    fn write_over(&self, file: &File, value: &str) -> io::Result<()> {
        // Not every file system can do this.
        let _ = self.reserve(file);
        file.write_all_at(value.as_bytes(), 0)?;
        file.set_len(value.len() as u64)?;
        let _ = self.reserve(file);
        Ok(())
    }

    /// Opens the file that was read first.
    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        let file = opening(options).open(&self.path)?;
        if self.identity.is_some_and(|identity| file.metadata().is_ok_and(|now| Identity::of(&now) != identity)) {
            return Err(io::Error::other("another file is there now"));
        }
        Ok(file)
    }

    /// Whether `now` is what iotoll leaves that sets these values.
    pub fn is_ours(&self, now: &str, set: &[String]) -> bool {
        set.iter().any(|set| self.is(now, set) || self.is_between(now, set))
    }

    /// Keeps the blocks that the original value needs, also behind the end of the file.
    fn reserve(&self, file: &File) -> rustix::io::Result<()> {
        match self.value.len() as u64 {
            0 => Ok(()),
            bytes => fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes),
        }
    }

    /// Whether `now` is what is left in a regular file if iotoll was killed while it wrote `set`, or wrote the original value
    /// back: the one, and the rest of the other.
    pub fn is_between(&self, now: &str, set: &str) -> bool {
        let over = |new: &str, earlier: &str| {
            let rest = earlier.as_bytes().get(new.len()..).unwrap_or_default();
            now.as_bytes() == [new.as_bytes(), rest].concat()
        };
        !self.kernel && (over(set, &self.value) || over(&self.value, set))
    }

    /// The current value, if it differs.
    pub fn differs(&self) -> io::Result<Option<String>> {
        let now = self.now()?;
        Ok((!self.is(&now, &self.value)).then_some(now))
    }

    /// The current value.
    pub fn now(&self) -> io::Result<String> {
        let text = text_of(self.open(OpenOptions::new().read(true))?)?;
        Ok(if self.kernel { present(&text) } else { text })
    }

    /// Whether two texts are the same value in this file.
    pub fn is(&self, one: &str, other: &str) -> bool {
        if self.kernel { same(one, other) } else { one == other }
    }
}

/// A file that was not set back.
#[derive(Debug, PartialEq, Eq)]
pub struct Left<'a> {
    pub found: &'a SettingFile,
    pub why: String,
    /// Whether it holds what another process wrote, or is another file. It is left as it is.
    pub foreign: bool,
}

/// Writes the original values back, in this order, where they differ. Each file comes with the values that iotoll set: a regular one that
/// has none of them belongs to another process now. Returns the files that still differ at the end, and why.
///
/// The kernel may accept a value only after a related one (it refuses 0 in vm.dirty_bytes, which comes from writing
/// vm.dirty_ratio), so the result is checked after all writes.
pub(crate) fn put_back<'a>(files: impl IntoIterator<Item = (&'a SettingFile, &'a [String])>) -> Vec<Left<'a>> {
    type Written = Result<(), Option<io::Error>>;
    let restored = |(found, set): (&'a SettingFile, &'a [String])| (found, restore(found, set));
    let written: Vec<(&SettingFile, Written)> = files.into_iter().map(restored).collect();
    let remaining = written.into_iter().filter_map(|(found, written)| {
        // A regular file contains what was written.
        let (why, foreign) = match (found.kernel, written) {
            (false, Ok(())) => return None,
            (true, _) if found.differs().is_ok_and(|now| now.is_none()) => return None,
            (_, Err(None)) => ("another process changed it meanwhile, and it is left as it is".to_owned(), true),
            (_, Err(Some(error))) => (error.to_string(), false),
            (true, Ok(())) => match found.differs() {
                Ok(now) => (format!("the kernel changed it to '{}'", now.unwrap_or_default()), false),
                Err(error) => (error.to_string(), false),
            },
        };
        Some(Left { found, why, foreign })
    });
    remaining.collect()
}

/// Writes the original value back if it differs. Without an error where the file is another process's now.
fn restore(found: &SettingFile, set: &[String]) -> Result<(), Option<io::Error>> {
    if found.kernel {
        return match found.differs()? {
            None => Ok(()),
            Some(_) => Ok(found.write_back()?),
        };
    }
    let file = opening(OpenOptions::new().read(true).write(true)).open(&found.path)?;
    let is_it = found.identity.is_none_or(|identity| file.metadata().is_ok_and(|now| Identity::of(&now) == identity));
    // What is too long or no text was not written by iotoll either.
    match text_of(&file).ok().filter(|_| is_it) {
        Some(now) if now == found.value => Ok(()),
        Some(now) if found.is_ours(&now, set) => Ok(found.write_over(&file, &found.value)?),
        _ => Err(None),
    }
}

/// The contents of a file, which is not longer than a value.
fn text_of(file: impl Read) -> io::Result<String> {
    let mut text = Vec::with_capacity(LONGEST_VALUE + 1);
    file.take(LONGEST_VALUE as u64 + 1).read_to_end(&mut text)?;
    if text.len() > LONGEST_VALUE {
        return Err(io::Error::other(format!("longer than {LONGEST_VALUE} bytes, so it is not the file of a setting")));
    }
    String::from_utf8(text).map_err(|_| io::Error::other("not text, so it is not the file of a setting"))
}

/// A file that has nothing to read yet, such as /proc/kmsg, must not stop iotoll.
fn opening(options: &mut OpenOptions) -> &OpenOptions {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed())
}

/// Does it in a thread, and gives up after a while: a file of a server that is away, or of a driver that hangs, may never
/// answer, and nothing can interrupt the wait.
fn in_time<T: Send + 'static>(act: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let (tell, told) = channel();
    std::thread::Builder::new().name("iotoll-setting".to_owned()).spawn(move || tell.send(act()))?;
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", LONGEST_READ.as_secs()));
    told.recv_timeout(LONGEST_READ).unwrap_or_else(|_| Err(late()))
}

/// A value in a message: on one line, and cut.
pub(crate) fn shown(value: &str) -> String {
    const MOST: usize = 60;
    let line: String = value
        .trim()
        .chars()
        .take(MOST)
        .flat_map(|letter| match letter.is_control() {
            true => letter.escape_default().collect::<Vec<_>>(),
            false => vec![letter],
        })
        .collect();
    if value.trim().chars().count() > MOST { line + "…" } else { line }
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
    /// proc, sysfs, cgroup2, cgroup, debugfs, tracefs, configfs, securityfs, selinuxfs, resctrl, binfmt_misc
    /// (linux/magic.h).
    const KINDS: [i64; 11] = [
        0x9fa0,
        0x6265_6572,
        0x6367_7270,
        0x0027_e0eb,
        0x6462_6720,
        0x7472_6163,
        0x6265_6570,
        0x7363_6673,
        0xf97c_ff8c,
        0x0765_5821,
        0x4249_4e4d,
    ];
    Ok(KINDS.contains(&rustix::fs::statfs(path)?.f_type))
}

/// The values of the settings beside `setting`, in its folder and its subfolders: the kernel changes some of them with
/// it (`vm.dirty_bytes` with `vm.dirty_ratio`, the settings of an I/O scheduler with the scheduler). Those that change
/// by themselves are left out.
///
/// # Errors
/// When one of them does not answer in time.
pub(crate) fn beside(setting: &Path) -> io::Result<BTreeMap<PathBuf, String>> {
    let setting = setting.to_owned();
    in_time(move || {
        let folder = setting.parent().unwrap_or(&setting);
        let first = look(folder, &setting);
        std::thread::sleep(STILL);
        let second = look(folder, &setting);
        Ok(first.into_iter().filter(|(path, value)| second.get(path) == Some(value)).collect())
    })
}

fn look(folder: &Path, setting: &Path) -> BTreeMap<PathBuf, String> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let below = entries(folder)
        .filter(|path| path.is_dir() && !path.is_symlink())
        .flat_map(|path| entries(&path).collect::<Vec<_>>());
    let all = entries(folder).chain(below).filter(|path| path != setting && is_setting(path)).take(MOST_BESIDE);
    let value = |path: &Path| text_of(opening(OpenOptions::new().read(true)).open(path).ok()?).ok();
    all.filter_map(|path| Some((path.clone(), present(&value(&path)?)))).collect()
}

/// Whether a file can be read and written, and does not name processes that come and go.
fn is_setting(path: &Path) -> bool {
    let both = |meta: &fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o600 == 0o600;
    const OF_PROCESSES: [&str; 4] = ["ns_last_pid", "cgroup.procs", "cgroup.threads", "tasks"];
    let of_processes = path.file_name().is_some_and(|name| OF_PROCESSES.iter().any(|of| name == *of));
    !of_processes && fs::symlink_metadata(path).is_ok_and(|meta| both(&meta))
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
        found.write("a longer value").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a longer value");
        let set = ["a longer value".to_owned()];
        assert_eq!(put_back([(&found, &set[..])]), []);
        assert_eq!(fs::read_to_string(&path).unwrap(), "found");
        fs::remove_file(&path).unwrap();
        assert!(put_back([(&found, &set[..])])[0].why.contains("No such file"));
        assert!(!path.exists());
    }

    #[test]
    fn what_another_process_wrote_or_put_there_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["knob", "other"].map(|name| folder.path().join(name));
        let set = ["new".to_owned()];
        fs::write(&path, "found\n").unwrap();
        let found = SettingFile::read(&path).unwrap();
        let is_left = |text: &str| {
            let left = put_back([(&found, &set[..])]);
            assert!(left[0].foreign && left[0].why.contains("another process"), "{left:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        };
        found.write("new").unwrap();
        fs::write(&path, "mine").unwrap();
        is_left("mine");
        fs::write(&path, "").unwrap();
        is_left("");
        fs::write(&path, "x".repeat(2 * LONGEST_VALUE)).unwrap();
        is_left(&"x".repeat(2 * LONGEST_VALUE));
        // Another file, also with what iotoll writes.
        fs::write(&other, "new").unwrap();
        fs::hard_link(&path, folder.path().join("keeps its number")).unwrap();
        fs::rename(&other, &path).unwrap();
        is_left("new");
        assert!(found.write("new").is_err() && found.differs().is_err());
        fs::write(&other, "new").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        is_left("new");
    }

    #[test]
    fn the_choice_in_brackets_is_the_value() {
        assert_eq!(present("none [mq-deadline] bfq\n"), "mq-deadline");
        assert_eq!(present("10\n"), "10");
        assert_eq!(present("4096\t87380\t6291456\n"), "4096\t87380\t6291456");
    }

    #[test]
    fn what_is_not_a_setting_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| SettingFile::read(path).unwrap_err().to_string();
        let sparse = folder.path().join("sparse");
        File::create(&sparse).unwrap().set_len(2 << 30).unwrap();
        assert!(refused(&sparse).contains("longer than 4096 bytes"));
        fs::write(folder.path().join("bytes"), [0xff, 0]).unwrap();
        assert!(refused(&folder.path().join("bytes")).contains("not text"));
        assert!(refused(folder.path()).contains("not a regular file"));
        // Reading it would wait for the next message of the kernel.
        assert!(refused(Path::new("/proc/kmsg")).contains("lets nobody write"));
    }

    #[test]
    fn what_does_not_answer_is_given_up() {
        let begun = std::time::Instant::now();
        let late = in_time(|| {
            std::thread::sleep(LONGEST_READ * 4);
            Ok(())
        });
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < LONGEST_READ * 3);
    }

    #[test]
    fn a_kill_while_a_value_is_written_is_recognised() {
        let found = SettingFile { kernel: false, ..SettingFile::of_kernel(Path::new(""), "found\n") };
        for now in ["newnd\n", "found\n"] {
            assert!(found.is_between(now, "new"), "{now:?}");
        }
        assert!(!found.is_between("", "new"), "another process emptied it");
        assert!(found.is_between("found\ner value", "a longer value") && !found.is_between("theirs", "new"));
        assert!(!SettingFile { kernel: true, ..found }.is_between("", "new"));
    }

    #[test]
    fn a_value_is_shown_on_one_line() {
        assert_eq!(shown(" 10\t20\n"), "10\\t20");
        assert_eq!(shown("a\nb"), "a\\nb");
        assert_eq!(shown(&"x".repeat(5000)), "x".repeat(60) + "…");
    }
}
