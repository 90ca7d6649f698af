//! Where probes are read: a file that several may share, a counter of the worker, or a tracepoint.

use super::text_file::TextFile;
use super::tracepoint::Passes;
use super::worker::{Reader, WorkerTask};
use crate::error::{Error, Result};
use model::probe::{Place, Probe};
use rustix::io::Errno;
use std::io;

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
    Tracepoint(Passes),
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
                let passes = Passes::open(group, event);
                Opened::Tracepoint(passes.map_err(|why| Error::Refused(format!("probe '{name}': {why}")))?)
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

    /// The probes here that may miss what the idle tasks do.
    pub fn may_miss(&self) -> &[usize] {
        match &self.opened {
            Opened::Tracepoint(passes) if passes.may_miss() => &self.probes,
            Opened::Tracepoint(_) | Opened::File { .. } | Opened::Worker(_) => &[],
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
            Opened::Tracepoint(passes) => {
                let number = passes.read().map(|events| events as f64);
                self.probes.iter().for_each(|index| set(probes, values, *index, number));
            }
        }
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
