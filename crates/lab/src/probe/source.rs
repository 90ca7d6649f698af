//! Where probes are read: a file that several may share, a counter of the worker, or a tracepoint.

use super::worker::{Reader, WorkerTask};
use crate::error::{Error, Result};
use crate::event_counters::Counters;
use model::probe::{Place, Probe};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use sys::perf::available_tracepoints;

/// Most characters of a file quoted in an error.
const QUOTED: usize = 40;

/// A source, and the indices of the probes that are read there.
pub(super) struct Source {
    opened: Opened,
    probes: Vec<usize>,
}

enum Opened {
    File {
        path: String,
        file: TextFile,
        /// How much of it the probes need; `None` if that is all.
        reach: Option<usize>,
    },
    Worker(Reader),
    Tracepoint(Counters),
}

impl Source {
    /// Opens the source of a probe.
    pub fn open(probe: &Probe, worker: Option<WorkerTask>) -> Result<Self> {
        let name = &probe.descriptor.name;
        let opened = match (&probe.place, worker) {
            (Place::File { path, .. }, _) => {
                let file = TextFile::open(path).map_err(|error| refused(probe, path, &error))?;
                Opened::File { path: path.clone(), file, reach: Some(0) }
            }
            (Place::Worker(counter), Some(task)) => Opened::Worker(Reader::open(*counter, task)?),
            (Place::Worker(_), None) => {
                let why = "only a recording (iotoll ftq) has a worker; leave it out, or record";
                return Err(Error::Refused(format!("probe '{name}': {why}")));
            }
            (Place::Tracepoint { group, name: event }, _) => {
                let counters = passes(group, event);
                Opened::Tracepoint(counters.map_err(|why| Error::Refused(format!("probe '{name}': {why}")))?)
            }
        };
        Ok(Self { opened, probes: Vec::new() })
    }

    /// Whether this probe is in a file that is open already.
    pub fn contains(&self, probe: &Probe) -> bool {
        match (&self.opened, &probe.place) {
            (Opened::File { path: open, .. }, Place::File { path, .. }) => open == path,
            _ => false,
        }
    }

    /// Reads a probe here for the first time, and from then on in every reading as the one with this index.
    ///
    /// # Errors
    /// Refused, when it cannot be read or its number is not there.
    pub fn try_one(&mut self, probe: &Probe, index: usize) -> Result<()> {
        match (&mut self.opened, &probe.place) {
            (Opened::File { path, file, reach }, Place::File { field, .. }) => {
                file.read_only(None);
                let text = file.read().map_err(|error| refused(probe, path, &error))?;
                field.read(text).ok_or_else(|| not_found(probe, path, text))?;
                // All of it if that is true of one probe.
                *reach = reach.and_then(|reach| Some(reach.max(field.reach(text)?)));
                file.read_only(*reach);
            }
            (Opened::Worker(reader), _) => {
                let name = &probe.descriptor.name;
                let gone = || Error::Refused(format!("probe '{name}': the kernel does not provide it for this worker"));
                reader.read().ok_or_else(gone)?;
            }
            _ => {}
        }
        self.probes.push(index);
        Ok(())
    }

    /// Reads its probes into their places in `values`.
    pub fn read(&mut self, probes: &[Probe], values: &mut [Option<f64>]) {
        match &mut self.opened {
            Opened::File { file, reach, .. } => {
                if !from_text(file, &self.probes, probes, values) && reach.take().is_some() {
                    // The lines before it have grown: from now on read all.
                    file.read_only(None);
                    from_text(file, &self.probes, probes, values);
                }
            }
            Opened::Worker(reader) => {
                let number = reader.read();
                self.probes.iter().for_each(|index| set(probes, values, *index, number));
            }
            Opened::Tracepoint(counters) => {
                let number = counters.passes(0).ok().map(|events| events as f64);
                self.probes.iter().for_each(|index| set(probes, values, *index, number));
            }
        }
    }
}

/// Starts to count the passes of a tracepoint.
///
/// # Errors
/// When there is no such tracepoint, or counting is not allowed.
fn passes(group: &str, name: &str) -> std::result::Result<Counters, String> {
    // Programs know no groups. Where names may not be listed, only attaching shows whether there is such a tracepoint.
    if available_tracepoints().is_ok_and(|names| !names.contains(&format!("{group}:{name}"))) {
        return Err(format!("there is no tracepoint {group}:{name}"));
    }
    let mut counters = Counters::load(&[name], false).map_err(|error| error.to_string())?;
    match counters.attach().map_err(|error| error.to_string())?.pop() {
        Some((_, why)) => Err(why),
        None => Ok(counters),
    }
}

/// Reads a file once for all its probes. Returns whether each was found. A file that has become unreadable (its interface
/// was removed) gives no value, and the study reports it.
fn from_text(file: &mut TextFile, indices: &[usize], probes: &[Probe], values: &mut [Option<f64>]) -> bool {
    let Ok(text) = file.read() else { return true };
    let mut all = true;
    for index in indices {
        let Some(Place::File { field, .. }) = probes.get(*index).map(|probe| &probe.place) else { continue };
        let number = field.read(text);
        all &= number.is_some();
        set(probes, values, *index, number);
    }
    all
}

fn set(probes: &[Probe], values: &mut [Option<f64>], index: usize, number: Option<f64>) {
    if let (Some(value), Some(probe)) = (values.get_mut(index), probes.get(index)) {
        *value = number.map(|number| number * probe.factor);
    }
}

/// Why a probe's file cannot be read, and how to fix that.
fn refused(probe: &Probe, path: &str, error: &io::Error) -> Error {
    let mend = match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR) => "; --probe list names the probes of this machine",
        Some(Errno::ACCESS | Errno::PERM) => "; run as root, or choose one that this user may read",
        Some(Errno::OPNOTSUPP) => "; the kernel does not count pressure: boot it with psi=1",
        Some(Errno::INVAL) => "; this device has no such counter",
        _ => "",
    };
    Error::Refused(format!("probe '{}': {path}: {error}{mend}", probe.descriptor.name))
}

/// The number is not in its file; quotes what is.
fn not_found(probe: &Probe, path: &str, text: &str) -> Error {
    let begin: String = text.trim_start().chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let there =
        if begin.is_empty() { "it is empty".to_owned() } else { format!("it begins with '{}'", begin.trim_end()) };
    Error::Refused(format!(
        "probe '{}': no such number in {path}, {there}; compare the name or the pattern with the file",
        probe.descriptor.name
    ))
}

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
    fn passes_are_counted_or_the_error_says_why() {
        match passes("sched", "sched_switch") {
            Ok(counters) => {
                let before = counters.passes(0).unwrap();
                (0..20).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(100)));
                assert!(counters.passes(0).unwrap() >= before + 20);
            }
            Err(why) => assert!(why.contains("root"), "{why}"),
        }
        let why = passes("no", "sched_switch").map(drop).unwrap_err();
        assert!(why.contains("no:sched_switch") || why.contains("root"), "{why}");
    }

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
