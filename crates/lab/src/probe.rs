//! Probes: kernel counters and gauges that are read while something is measured, if the user asked for them.
//!
//! Probes enter, as `model::probe` describes them; a [`ProbeSet`] keeps their sources open, reads each once at a time, and
//! takes the numbers of all its probes from it. Reading takes 1 to 10 µs a source, 20 µs for all of /proc/vmstat (2 CPUs).
//! `run` takes at most 10 snapshots a second: less than 3 ten-thousandths of one CPU, and as much in the background, which
//! is subtracted. A recording (`ftq`) reads them in each quantum and measures what that costs.

mod source;
mod worker;

use crate::error::{Error, Result};
use crate::sysroot::names;
use model::probe::{Descriptor, FAMILIES, Family, Instance, Listed, Place, Probe, ROWS, Readings};
use model::reading::Reading;
use model::unit::Nanos;
use source::Source;
use sys::clock::monotonic_nanos;

pub use worker::WorkerTask;

/// Probes that are read together.
#[derive(Default)]
pub struct ProbeSet {
    sources: Vec<Source>,
    probes: Vec<Probe>,
}

impl ProbeSet {
    /// Opens the sources of probes and tries each of them. A probe that is named twice is read once.
    ///
    /// # Errors
    /// Refused when a source cannot be read or does not contain the number, because the user asked for it; and for probes of
    /// a worker, which only a recording has.
    pub fn open(asked: &[Probe]) -> Result<Self> {
        Self::open_beside(asked, None)
    }

    /// The same for a measurement that has a worker.
    ///
    /// # Errors
    /// As above.
    pub fn open_beside(asked: &[Probe], worker: Option<WorkerTask>) -> Result<Self> {
        let mut set = Self::default();
        for probe in asked {
            let name = &probe.descriptor.name;
            match set.probes.iter().find(|earlier| earlier.descriptor.name == *name) {
                Some(earlier) if earlier.descriptor.meaning == probe.descriptor.meaning => continue,
                Some(_) => {
                    return Err(Error::Refused(format!(
                        "probe '{name}': two probes have this name; give one another name"
                    )));
                }
                None => {}
            }
            set.add(probe, worker)?;
        }
        for probe in &mut set.probes {
            if let (Place::Worker(counter), Some(task)) = (&probe.place, worker) {
                probe.descriptor.meaning += task.scope(*counter);
            }
        }
        Ok(set)
    }

    fn add(&mut self, probe: &Probe, worker: Option<WorkerTask>) -> Result<()> {
        let place = self.probes.len();
        let known = self.sources.iter_mut().find(|source| source.contains(probe));
        match known {
            Some(source) => source.try_one(probe, place)?,
            None => {
                let mut source = Source::open(probe, worker)?;
                source.try_one(probe, place)?;
                self.sources.push(source);
            }
        }
        self.probes.push(probe.clone());
        Ok(())
    }

    /// The probes, in the order of the readings.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        self.probes.iter().map(|probe| probe.descriptor.clone()).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.probes.len()
    }

    /// The current values; `None` without probes.
    pub(crate) fn read(&mut self) -> Option<Box<Readings>> {
        if self.probes.is_empty() {
            return None;
        }
        let at_nanos = Nanos(monotonic_nanos());
        let mut values = vec![None; self.probes.len()];
        self.read_into(&mut values);
        Some(Box::new(Readings { at_nanos, values }))
    }

    /// Reads the current values into `values`, which has a place for each probe. Does not allocate, unless a file has grown
    /// to more than twice its size.
    pub fn read_into(&mut self, values: &mut [Option<f64>]) {
        values.fill(None);
        for source in &mut self.sources {
            source.read(&self.probes, values);
        }
    }
}

/// Every probe with a fixed name, and each family with its instances on this machine.
pub fn list() -> Vec<Listed> {
    let rows = ROWS.iter().map(|row| {
        let probe = row.probe();
        let meaning = format!("{} ({}, {})", row.meaning, probe.descriptor.unit, probe.descriptor.kind.name());
        let opened = ProbeSet::open(std::slice::from_ref(&probe));
        Listed { name: row.name.to_owned(), meaning: Reading::from(opened.map(|_| meaning)) }
    });
    rows.chain(FAMILIES.iter().flat_map(of_family)).collect()
}

/// The form of a family, then a line for each of its instances.
fn of_family(family: &Family) -> Vec<Listed> {
    let mut found = vec![Listed { name: family.form.to_owned(), meaning: Reading::Taken(family.meaning.to_owned()) }];
    let readable = |name: &str| Probe::parse(name).is_ok_and(|probe| ProbeSet::open(&[probe]).is_ok());
    let line = |begin: String, ends: &[&str]| {
        let there: Vec<&str> = ends.iter().copied().filter(|end| readable(&format!("{begin}{end}"))).collect();
        (!there.is_empty()).then(|| Listed { name: format!("  {begin}…"), meaning: Reading::Taken(there.join(", ")) })
    };
    match family.instances {
        Instance::Any => {}
        Instance::Ends(ends) => found.extend(line(family.prefix.to_owned(), ends)),
        Instance::Folder(folder, ends) => {
            let names = names(folder.as_ref());
            found.extend(names.iter().filter_map(|name| line(format!("{}{name}.", family.prefix), ends)));
            if names.is_empty() {
                let why = format!("{folder} is empty or missing");
                found.push(Listed { name: format!("  {}", family.prefix), meaning: Reading::Unavailable(why) });
            }
        }
    }
    found
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
    fn a_file_without_the_number_is_quoted_as_far_as_it_is_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, told) in
            [(&b"alpha\x1b[2J 5\n"[..], "it begins with 'alpha [2J 5'"), (b"", "it is empty"), (&[0xff], "not UTF-8")]
        {
            std::fs::write(file.path(), text).unwrap();
            let why = refusal(&format!("gauge:file:{}:beta ([0-9]+)", file.path().display()));
            assert!(why.contains(told) && why.starts_with("probe '") && !why.contains('\u{1b}'), "{why:?}");
        }
    }

    #[test]
    fn the_list_contains_every_row_and_family() {
        let listed = list();
        let has = |name: &str| listed.iter().any(|line| line.name == name);
        assert!(ROWS.iter().all(|row| has(row.name)) && FAMILIES.iter().all(|family| has(family.form)));
        assert!(has("  softirqs.…"));
        let softirqs = listed.iter().find(|line| line.name == "  softirqs.…").and_then(|line| line.meaning.taken());
        assert!(softirqs.is_some_and(|names| names.contains("net_rx")), "{softirqs:?}");
    }
}
