//! Names of code that a program made in its memory, by the file in which it tells them: `/tmp/perf-PID.map`, a convention that JVMs, Node.js
//! (`--perf-basic-prof`) and Python (`-X perf`) follow.
//!
//! Each line has where a function begins, its length, both in hexadecimal, and its name. The program appends lines while it runs, and a
//! function may come to where another one was.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// More than the largest programs tell.
const LONGEST_FILE: u64 = 64 << 20;

/// The functions that a program made, by address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MadeCode(BTreeMap<u64, (u64, String)>);

impl MadeCode {
    /// What a file has by now.
    pub(super) fn read(file: &File) -> Self {
        let mut bytes = Vec::new();
        // The file is read from its begin also the next time, and what cannot be read names nothing.
        let _ = (&mut At { file, offset: 0 }).take(LONGEST_FILE).read_to_end(&mut bytes);
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Self {
        let mut functions = BTreeMap::new();
        for (begin, length, name) in text.lines().filter_map(function) {
            let end = begin.saturating_add(length);
            let over: Vec<u64> = functions.range(begin..end).map(|(begin, _)| *begin).collect();
            over.iter().for_each(|begin| drop(functions.remove(begin)));
            functions.insert(begin, (length, name.to_owned()));
        }
        Self(functions)
    }

    /// The function at an address, and where it begins.
    pub(super) fn of(&self, address: u64) -> Option<(&str, u64)> {
        let (begin, (length, name)) = self.0.range(..=address).next_back()?;
        (address - begin < *length).then_some((name.as_str(), *begin))
    }
}

/// `BEGIN LENGTH NAME`; a name may contain spaces.
fn function(line: &str) -> Option<(u64, u64, &str)> {
    let (begin, rest) = line.split_once(' ')?;
    let (length, name) = rest.split_once(' ')?;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let name = Some(name.trim()).filter(|name| !name.is_empty())?;
    Some((number(begin)?, number(length).filter(|length| *length > 0)?, name))
}

/// Reads a file that others may read too.
pub(super) struct At<'a> {
    pub(super) file: &'a File,
    pub(super) offset: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = std::os::unix::fs::FileExt::read_at(self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// The file of a process, in its folders and with the number that it has in its container, if it belongs to the process's user or to root.
pub(super) fn open(process: u32) -> Option<File> {
    let directory = Path::new("/proc").join(process.to_string());
    let user = fs::metadata(&directory).ok()?.uid();
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let number = numbers.and_then(|numbers| numbers.split_whitespace().next_back()?.parse().ok()).unwrap_or(process);
    open_in(&directory.join("root/tmp"), number, user)
}

fn open_in(folder: &Path, number: u32, user: u32) -> Option<File> {
    // Others may write to the folder: neither does a pipe stop iotoll, nor does a link lead it elsewhere.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(folder.join(format!("perf-{number}.map"))).ok()?;
    let found = file.metadata().ok()?;
    (found.is_file() && (found.uid() == user || found.uid() == 0)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address_and_later_lines_win() {
        let text = "7f0000001000 20 LazyCompile:~work /a b.js:1\n0x7f0000002000 0x10 Interpreter\nnonsense\n\
                    7f0000001000 10 *work\n7f0000003000 0 empty\n7f0000004000 8\n";
        let made = MadeCode::parse(text);
        assert_eq!(made.of(0x7f00_0000_100f), Some(("*work", 0x7f00_0000_1000)));
        assert_eq!(made.of(0x7f00_0000_1010), None, "moved away");
        assert_eq!(made.of(0x7f00_0000_2001), Some(("Interpreter", 0x7f00_0000_2000)));
        assert_eq!((made.of(0x7f00_0000_3000), made.of(0x7f00_0000_4001), made.of(0)), (None, None, None));
        let over = MadeCode::parse("100 10 one\n110 10 two\nf8 20 three\n");
        assert_eq!((over.of(0x108), over.of(0x118)), (Some(("three", 0xf8)), None));
        assert_eq!(MadeCode::parse("ffffffffffffffff ffffffffffffffff x\n").of(u64::MAX), Some(("x", u64::MAX)));
    }

    #[test]
    fn a_file_is_read_again_as_it_grows_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let user = fs::metadata(folder.path()).unwrap().uid();
        let path = folder.path().join("perf-7.map");
        fs::write(&path, "1000 10 one\n").unwrap();
        let file = open_in(folder.path(), 7, user).unwrap();
        assert_eq!(MadeCode::read(&file).of(0x1001), Some(("one", 0x1000)));
        fs::write(&path, "1000 10 one\n2000 10 two\n").unwrap();
        assert_eq!(MadeCode::read(&file).of(0x2001), Some(("two", 0x2000)));
        std::os::unix::fs::symlink(&path, folder.path().join("perf-8.map")).unwrap();
        assert!(open_in(folder.path(), 8, user).is_none() && open_in(folder.path(), 9, user).is_none());
    }
}
