//! Opens and reads files that the user names or that another program makes. iotoll opens regular files only, because opening a pipe waits for
//! its writer and opening a device may start an action; and it reads no more than the caller's limit, because `/dev/zero` has no end.

use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Bytes of a program, a library or a module: those of the largest with their debug information.
pub const LONGEST_FILE: u64 = 1 << 30;

/// Opens a regular file for reading.
///
/// # Errors
/// Those of the kernel, and when the file is something else, which is then not opened.
pub fn open(path: &Path) -> io::Result<File> {
    // This handle only names the file: neither does it wait, nor does a device notice it.
    let named = File::from(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
    match named.metadata()? {
        folder if folder.is_dir() => return Err(rustix::io::Errno::ISDIR.into()),
        other if !other.is_file() => return Err(io::Error::other("not a regular file")),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(format!("/proc/self/fd/{}", named.as_raw_fd()), flags, Mode::empty())?))
}

/// The contents of a regular file with no more than `most` bytes, or of a pipe that this process was started with (`/dev/fd/N`).
///
/// # Errors
/// Those of the kernel, when the file is something else, and when it is longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let is_own = ["/dev/fd", "/proc/self/fd", "/dev/stdin"].iter().any(|own| path.starts_with(own));
    if is_own && fs::metadata(path)?.file_type().is_fifo() {
        return at_most(File::open(path)?, most);
    }
    let file = open(path)?;
    // A sparse file of terabytes is not read to know that.
    if file.metadata()?.len() > most { Err(too_long(most)) } else { at_most(file, most) }
}

fn too_long(most: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("longer than {} MiB", most >> 20))
}

/// All that a reader gives, if it is no more than `most` bytes.
///
/// # Errors
/// Those of the reader, and when it gives more.
pub fn at_most(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match from.take(most.saturating_add(1)).read_to_end(&mut bytes)? as u64 > most {
        true => Err(too_long(most)),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    #[test]
    fn only_regular_files_and_own_pipes_are_read_and_only_so_far() {
        let folder = tempfile::tempdir().unwrap();
        let why = |path: &Path| read(path, 1 << 20).unwrap_err().to_string();
        assert!(why(Path::new("/dev/zero")).contains("not a regular file"));
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(why(&pipe).contains("not a regular file"));
        assert!(why(folder.path()).contains("Is a directory"));
        let sparse = folder.path().join("sparse");
        File::create(&sparse).unwrap().set_len(15_000 << 30).unwrap();
        assert!(why(&sparse).contains("longer than 1 MiB"));
        let (reads, mut writes) = io::pipe().unwrap();
        let own = |end: &OwnedFd| format!("/dev/fd/{}", end.as_raw_fd());
        writes.write_all(b"text").unwrap();
        drop(writes);
        let reads = OwnedFd::from(reads);
        assert_eq!(read(Path::new(&own(&reads)), 4).unwrap(), b"text");
        let zero = OwnedFd::from(File::open("/dev/zero").unwrap());
        assert!(why(Path::new(&own(&zero))).contains("not a regular file"));
    }
}
