//! Probes: kernel counters and gauges that are read at each snapshot, if the user asked for them.
//!
//! Probes enter, as `model::probe` describes them; a [`ProbeSet`] keeps their files open, reads each file once per
//! snapshot, and takes the numbers of all its probes from that text. Reading takes 3 to 10 µs a file and 20 µs for
//! /proc/vmstat (2 CPUs), and there are at most 10 snapshots a second: less than 3 ten-thousandths of one CPU, and as
//! much in the background, which is subtracted.

mod listing;

pub use listing::list;

use crate::error::{Error, Result};
use model::probe::{Descriptor, Probe, Readings};
use model::unit::Nanos;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use sys::clock::monotonic_nanos;

/// Most bytes read of a file, so that a growing file does not dominate the measurement.
const MOST_BYTES: usize = 1 << 20;
/// Most characters of a file quoted in an error.
const QUOTED: usize = 40;

/// Probes that are read together.
#[derive(Default)]
pub struct ProbeSet {
    sources: Vec<Source>,
    probes: Vec<Probe>,
}

/// A file, and the indices of the probes in it.
struct Source {
    path: String,
    file: TextFile,
    probes: Vec<usize>,
}

impl ProbeSet {
    /// Opens their files and tries each of them. A probe that is named twice is read once.
    ///
    /// # Errors
    /// Refused when a file cannot be read or does not contain the number, because the user asked for it.
    pub fn open(asked: &[Probe]) -> Result<Self> {
        let mut set = Self::default();
        for probe in asked {
            let name = &probe.descriptor.name;
            if set.probes.iter().any(|earlier| earlier.descriptor.name == *name) {
                continue;
            }
            let place = set.probes.len();
            let source = match set.sources.iter().position(|source| source.path == probe.path) {
                Some(known) => known,
                None => {
                    let file = TextFile::open(&probe.path).map_err(|error| refused(probe, &error))?;
                    set.sources.push(Source { path: probe.path.clone(), file, probes: Vec::new() });
                    set.sources.len() - 1
                }
            };
            if let Some(source) = set.sources.get_mut(source) {
                let text = source.file.read().map_err(|error| refused(probe, &error))?;
                probe.field.read(text).ok_or_else(|| not_found(probe, text))?;
                source.probes.push(place);
            }
            set.probes.push(probe.clone());
        }
        Ok(set)
    }

    /// The probes, in the order of the readings.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        self.probes.iter().map(|probe| probe.descriptor.clone()).collect()
    }

    /// The current values; `None` without probes.
    pub(crate) fn read(&mut self) -> Option<Box<Readings>> {
        if self.probes.is_empty() {
            return None;
        }
        let at_nanos = Nanos(monotonic_nanos());
        let mut values = vec![None; self.probes.len()];
        for source in &mut self.sources {
            // A file that has become unreadable (its interface was removed) gives no value, and the study reports it.
            let Ok(text) = source.file.read() else { continue };
            for place in &source.probes {
                if let (Some(value), Some(probe)) = (values.get_mut(*place), self.probes.get(*place)) {
                    *value = probe.field.read(text).map(|number| number * probe.factor);
                }
            }
        }
        Some(Box::new(Readings { at_nanos, values }))
    }
}

/// A file that stays open, with a reusable buffer.
struct TextFile {
    file: File,
    bytes: Vec<u8>,
}

impl TextFile {
    fn open(path: &str) -> io::Result<Self> {
        // Opening a pipe or a terminal would block.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
        }
        Ok(Self { file: File::open(path)?, bytes: vec![0; 16 << 10] })
    }

    /// The current text, up to [`MOST_BYTES`].
    fn read(&mut self) -> io::Result<&str> {
        let mut length = 0;
        while let Some(room) = self.bytes.get_mut(length..).filter(|_| length < MOST_BYTES) {
            if room.is_empty() {
                self.bytes.resize((2 * length).min(MOST_BYTES), 0);
                continue;
            }
            match self.file.read_at(room, length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let text = std::str::from_utf8(self.bytes.get(..length).unwrap_or_default());
        text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8 text"))
    }
}

/// Why a probe's file cannot be read, and how to fix that.
fn refused(probe: &Probe, error: &io::Error) -> Error {
    let mend = match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR) => "; --probe list names the probes of this machine",
        Some(Errno::ACCESS | Errno::PERM) => "; run as root, or choose one that this user may read",
        Some(Errno::OPNOTSUPP) => "; the kernel does not count pressure: boot it with psi=1",
        Some(Errno::INVAL) => "; this device has no such counter",
        _ => "",
    };
    Error::Refused(format!("probe '{}': {}: {error}{mend}", probe.descriptor.name, probe.path))
}

/// The number is not in its file; quotes what is.
fn not_found(probe: &Probe, text: &str) -> Error {
    let begin: String = text.trim_start().chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let there =
        if begin.is_empty() { "it is empty".to_owned() } else { format!("it begins with '{}'", begin.trim_end()) };
    Error::Refused(format!(
        "probe '{}': no such number in {}, {there}; compare the name or the pattern with the file",
        probe.descriptor.name, probe.path
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(text: &str) -> Vec<Probe> {
        Probe::parse_list(text).unwrap()
    }

    fn refusal(asked: &str) -> String {
        match ProbeSet::open(&probes(asked)) {
            Err(Error::Refused(why)) => why,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{asked} was opened"),
        }
    }

    #[test]
    fn common_probes_are_read_in_the_order_given() {
        let mut set =
            ProbeSet::open(&probes("vmstat.pgfault,dirty,context_switches,vmstat.pgfault,softirqs.timer")).unwrap();
        let names: Vec<String> = set.descriptors().into_iter().map(|descriptor| descriptor.name).collect();
        assert_eq!(names, ["vmstat.pgfault", "dirty", "context_switches", "softirqs.timer"]);
        let (first, later) = (set.read().unwrap(), set.read().unwrap());
        assert!(first.values.iter().all(Option::is_some), "{first:?}");
        let of = |readings: &Readings, place: usize| readings.values[place].unwrap();
        assert!(of(&later, 0) >= of(&first, 0) && of(&first, 0) > 0.0);
        assert!(later.at_nanos >= first.at_nanos);
        assert!(ProbeSet::default().read().is_none());
    }

    #[test]
    fn a_file_of_any_length_is_read_again_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        let long = |number: u32| format!("{}\nlast {number}\n", "x".repeat(100_000));
        std::fs::write(&path, long(5)).unwrap();
        let mut set = ProbeSet::open(&probes(&format!("gauge:file:{}:last ([0-9]+)", path.display()))).unwrap();
        assert_eq!(set.read().unwrap().values, [Some(5.0)]);
        std::fs::write(&path, long(6)).unwrap();
        assert_eq!(set.read().unwrap().values, [Some(6.0)]);
        std::fs::write(&path, "").unwrap();
        assert_eq!(set.read().unwrap().values, [None], "a missing number is not zero");
        std::fs::write(&path, [0xff, b'l']).unwrap();
        assert_eq!(set.read().unwrap().values, [None]);
    }

    #[test]
    fn an_unreadable_probe_is_refused_with_a_fix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "alpha\u{1b}[2J 5\n").unwrap();
        let (file, here) = (path.display(), folder.path().display());
        for (asked, told) in [
            ("net.nosuch0.rx_bytes".to_owned(), "--probe list"),
            (format!("gauge:file:{here}/none:([0-9]+)"), "No such file"),
            (format!("gauge:file:{here}:([0-9]+)"), "is not a regular file"),
            (format!("gauge:file:{file}:beta ([0-9]+)"), "it begins with 'alpha [2J 5'"),
            ("vmstat.no_such_field".to_owned(), "no such number in /proc/vmstat"),
        ] {
            let why = refusal(&asked);
            assert!(why.contains(told) && why.starts_with("probe '"), "{why}");
            assert!(!why.contains('\u{1b}'), "{why:?}");
        }
        std::fs::write(&path, "").unwrap();
        assert!(refusal(&format!("gauge:file:{file}:([0-9]+)")).contains("it is empty"));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(refusal(&format!("gauge:file:{file}:([0-9]+)")).contains("not UTF-8"));
    }
}
