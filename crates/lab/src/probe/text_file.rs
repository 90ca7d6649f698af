//! A file that stays open and is read again and again, as little of it as its probes need.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Most bytes read of a file, so that a growing file does not dominate the measurement.
const MOST_BYTES: usize = 1 << 20;
/// First size of the buffer: more than the part of any file of /proc or /sys that probes are usually in.
const FIRST_BYTES: usize = 16 << 10;
/// A first read of less than this is a whole file: files of /proc give at least a page less one line at a time, and other
/// files all that there is. It saves the system call that would only find the end.
const SURELY_WHOLE: usize = 2048;
/// Room for lines that become longer while a file is watched: counters grow by a digit now and then.
const SLACK: usize = 128;

/// A file that stays open, with a reusable buffer.
pub(super) struct TextFile {
    file: File,
    bytes: Vec<u8>,
    /// How much of it to read; `None` for all.
    enough: Option<usize>,
}

impl TextFile {
    /// Opens a regular file.
    pub fn open(path: &str) -> io::Result<Self> {
        // Opening a pipe or a terminal would block.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
        }
        Ok(Self { file: File::open(path)?, bytes: vec![0; FIRST_BYTES], enough: None })
    }

    /// From now on reads only the lines up to this many bytes and somewhat more; everything with `None`. The kernel formats
    /// no more of /proc/vmstat than what is read.
    pub fn read_only(&mut self, enough: Option<usize>) {
        self.enough = enough.map(|enough| enough + SLACK).filter(|enough| *enough < self.bytes.len());
    }

    /// The current text, up to [`MOST_BYTES`], or as much of it as is enough, in whole lines.
    pub fn read(&mut self) -> io::Result<&str> {
        let bytes = match self.enough {
            None => self.read_all()?,
            Some(enough) => {
                let length = self.read_at(0, enough)?;
                // The last line may be cut.
                let text = self.bytes.get(..length).unwrap_or_default();
                let lines = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                if length == enough { lines } else { length }
            }
        };
        let text = std::str::from_utf8(self.bytes.get(..bytes).unwrap_or_default());
        text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8 text"))
    }

    fn read_all(&mut self) -> io::Result<usize> {
        let mut length = 0;
        while length < MOST_BYTES {
            if length == self.bytes.len() {
                self.bytes.resize((2 * length).min(MOST_BYTES), 0);
            }
            let read = self.read_at(length, self.bytes.len())?;
            length += read;
            if read == 0 || length < SURELY_WHOLE {
                break;
            }
        }
        Ok(length)
    }

    /// Reads into the buffer from `begin` to at most `end`.
    fn read_at(&mut self, begin: usize, end: usize) -> io::Result<usize> {
        let room = self.bytes.get_mut(begin..end).unwrap_or_default();
        loop {
            match self.file.read_at(room, begin as u64) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_is_in_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let lines = (0..1000).map(|line| format!("line{line} 5\n")).collect::<String>();
        std::fs::write(&path, &lines).unwrap();
        let mut file = TextFile::open(path.to_str().unwrap()).unwrap();
        assert_eq!(file.read().unwrap(), lines);
        file.read_only(Some(100));
        let text = file.read().unwrap();
        assert!(text.len() > 200 && text.len() < 228 && text.ends_with('\n') && lines.starts_with(text), "{text}");
        std::fs::write(&path, "short").unwrap();
        assert_eq!(file.read().unwrap(), "short", "the file ends without a newline");
    }
}
