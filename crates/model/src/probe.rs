//! The probes as data: kernel counters and gauges that can be read during a measurement, each with a name.
//!
//! [`Probe::parse`] turns a name into its meaning and the place of its number in a file. `lab::probe` reads the files,
//! and `study::probes` turns the readings into rates. To add a probe, add a row to [`ROWS`], or to [`FAMILIES`] if a
//! part of its name depends on the machine (`net.eth0.rx_bytes`).

mod families;
mod field;

pub use families::{FAMILIES, Family, Instance, Part, WorkerCounter};
pub use field::Field;

use crate::plan::value::nearest;
use crate::reading::Reading;
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// How a number of the kernel changes over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Only grows; its rate is reported.
    #[default]
    Counter,
    /// Goes up and down; its level is reported.
    Gauge,
}

/// What a number covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole machine.
    Machine,
    /// One network interface or block device.
    Device,
    /// Whatever the file of the probe covers.
    File,
    /// The worker of a recording.
    Worker,
}

/// What a probe reads, as stored in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// The name, as typed.
    pub name: String,
    /// What it reads, in words.
    pub meaning: String,
    /// The unit of one count: `ns`, `bytes`, `pages`…
    pub unit: String,
    /// Counter or gauge.
    pub kind: Kind,
    /// What it covers.
    pub scope: Scope,
}

/// A probe that can be opened.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What it reads.
    pub descriptor: Descriptor,
    /// Where its number is.
    pub place: Place,
    /// Factor from the unit of the place to the probe's.
    pub factor: f64,
}

/// Where the number of a probe is.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a file.
    File {
        /// The file.
        path: String,
        /// The place in it.
        field: Field,
    },
    /// It is a counter of the worker of a recording.
    Worker(WorkerCounter),
    /// It is how often a tracepoint was passed on all CPUs since the probe was opened.
    Tracepoint {
        /// The folder of the tracepoint below `events`: `writeback`.
        group: String,
        /// Its name: `balance_dirty_pages`.
        name: String,
    },
}

/// The readings of all probes at a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Readings {
    /// CLOCK_MONOTONIC just before.
    pub at_nanos: Nanos,
    /// In the order of the record's probes; `None` if a probe could not be read.
    pub values: Vec<Option<f64>>,
}

/// One or several probes that a machine may have, for `--probe list`.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name, or the form of its names.
    pub name: String,
    /// What it reads, or why it cannot be read.
    pub meaning: Reading<String>,
}

/// A probe with a fixed name.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What it reads, in words.
    pub meaning: &'static str,
    unit: &'static str,
    kind: Kind,
    path: &'static str,
    key: &'static str,
    column: usize,
    factor: f64,
}

/// A tick of the columns of /proc/stat, in nanoseconds: USER_HZ is 100 on every supported machine.
const TICK_NANOS: f64 = 1e7;
const VMSTAT: &str = "/proc/vmstat";
const STAT: &str = "/proc/stat";

const fn row(
    name: &'static str,
    (path, key, column): (&'static str, &'static str, usize),
    (kind, unit, factor): (Kind, &'static str, f64),
    meaning: &'static str,
) -> Row {
    Row { name, meaning, unit, kind, path, key, column, factor }
}

/// The probes with fixed names.
pub const ROWS: &[Row] = &[
    row("dirty", (VMSTAT, "nr_dirty", 0), (Kind::Gauge, "pages", 1.0), "dirty page cache pages, not yet written back"),
    row("writeback", (VMSTAT, "nr_writeback", 0), (Kind::Gauge, "pages", 1.0), "page cache pages being written back"),
    row("context_switches", (STAT, "ctxt", 0), (Kind::Counter, "switches", 1.0), "switches from one thread to another"),
    row("interrupts", (STAT, "intr", 0), (Kind::Counter, "interrupts", 1.0), "interrupts of all devices and timers"),
    row("steal", (STAT, "cpu", 7), (Kind::Counter, "ns", TICK_NANOS), "CPU time stolen by the hypervisor"),
    row("page_faults", (VMSTAT, "pgfault", 0), (Kind::Counter, "faults", 1.0), "page faults, minor and major"),
    row(
        "major_page_faults",
        (VMSTAT, "pgmajfault", 0),
        (Kind::Counter, "faults", 1.0),
        "page faults that read from storage",
    ),
    row("pgpgin", (VMSTAT, "pgpgin", 0), (Kind::Counter, "bytes", 1024.0), "bytes read by block devices"),
    row("pgpgout", (VMSTAT, "pgpgout", 0), (Kind::Counter, "bytes", 1024.0), "bytes written by block devices"),
];

impl Probe {
    /// Parses `PROBE`, or `NAME=PROBE`, which gives the probe a name of the user's.
    ///
    /// # Errors
    /// What is wrong with either name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((own, name)) = own_name(text) else { return Self::of_name(text) };
        if own.is_empty() || own.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(format!(
                "'{text}': a probe's own name is a word without spaces, as in queue=block.vda.in_flight"
            ));
        }
        let probe = Self::of_name(name)?;
        Ok(Self { descriptor: Descriptor { name: own.to_owned(), ..probe.descriptor }, ..probe })
    }

    /// Parses the name of a probe.
    fn of_name(name: &str) -> Result<Self, String> {
        if let Some(row) = ROWS.iter().find(|row| row.name == name) {
            return Ok(row.probe());
        }
        // The file does not say whether its number is a counter.
        let (kind, rest) = match name.split_once(':') {
            Some(("counter", rest)) => (Some(Kind::Counter), rest),
            Some(("gauge", rest)) => (Some(Kind::Gauge), rest),
            _ => (None, name),
        };
        let of_family = FAMILIES.iter().find_map(|family| Some((family, rest.strip_prefix(family.prefix)?)));
        let Some((family, rest)) = of_family else {
            let names = ROWS.iter().map(|row| row.name).chain(FAMILIES.iter().map(|family| family.form));
            let near = nearest(name, names).map_or_else(String::new, |near| format!("did you mean '{near}'? "));
            return Err(format!(
                "'{name}' is not a probe; {near}use --probe list to list the probes of this machine, and \
                 counter:file:PATH:PATTERN for any other number"
            ));
        };
        let wrong = |what: String| format!("probe '{name}': {what}");
        let part = (family.parse)(rest).map_err(wrong)?;
        let kind = match (part.kind, kind) {
            (Some(known), Some(said)) if known != said => {
                return Err(wrong(format!("is a {}; omit the prefix before the colon", known.name())));
            }
            (Some(kind), _) | (None, Some(kind)) => kind,
            (None, None) => {
                return Err(wrong(format!(
                    "add its type: counter:{name} if the number only grows, otherwise gauge:{name}"
                )));
            }
        };
        let Part { place, unit, factor, meaning, .. } = part;
        let descriptor = Descriptor { name: name.to_owned(), meaning, unit, kind, scope: family.scope };
        Ok(Self { descriptor, place, factor })
    }

    /// Parses several names separated by commas. The pattern of a file may contain commas, so it extends to the end of
    /// the text.
    ///
    /// # Errors
    /// As [`Probe::parse`].
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let probe = own_name(text).map_or(text, |(_, probe)| probe);
            let of_file = ["file:", "counter:file:", "gauge:file:"].iter().any(|begin| probe.starts_with(begin));
            let (name, others) = match text.split_once(',') {
                Some((name, others)) if !of_file => (name, Some(others)),
                _ => (text, None),
            };
            found.push(Self::parse(name)?);
            rest = others;
        }
        Ok(found)
    }
}

impl Row {
    /// Creates the probe of this row.
    pub fn probe(&self) -> Probe {
        let descriptor = Descriptor {
            name: self.name.to_owned(),
            meaning: self.meaning.to_owned(),
            unit: self.unit.to_owned(),
            kind: self.kind,
            scope: Scope::Machine,
        };
        let field = Field::Row { key: self.key.to_owned(), column: self.column };
        Probe { descriptor, place: Place::File { path: self.path.to_owned(), field }, factor: self.factor }
    }
}

/// The user's name and the rest of `NAME=PROBE`. A pattern may contain `=`, but only after a colon; so may a list's later
/// names, but only after a comma.
fn own_name(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(own, _)| !own.contains([':', ',']))
}

impl Kind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(name: &str) -> Probe {
        Probe::parse(name).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_row_is_a_probe_and_no_two_have_one_name() {
        for row in ROWS {
            let probe = parsed(row.name);
            assert_eq!(probe.descriptor.name, row.name);
            assert!(matches!(&probe.place, Place::File { path, .. } if path == row.path));
            assert!(!row.meaning.is_empty());
        }
    }

    #[test]
    fn a_family_finds_its_file_and_its_unit() {
        let of = |name: &str| {
            let probe = parsed(name);
            let Place::File { path, .. } = probe.place else { panic!("{name} is in no file") };
            (path, probe.descriptor.unit, probe.descriptor.kind, probe.factor)
        };
        let file = |path: &str, unit: &str, kind, factor| (path.to_owned(), unit.to_owned(), kind, factor);
        use Kind::*;
        assert_eq!(of("softirqs.net_rx"), file("/proc/softirqs", "softirqs", Counter, 1.0));
        assert_eq!(of("pressure.io.some"), file("/proc/pressure/io", "ns", Counter, 1000.0));
        assert_eq!(of("net.lo.rx_bytes"), file("/sys/class/net/lo/statistics/rx_bytes", "bytes", Counter, 1.0));
        let vlan = "/sys/class/net/eth0.7/statistics/tx_packets";
        assert_eq!(of("net.eth0.7.tx_packets"), file(vlan, "packets", Counter, 1.0), "a VLAN has a dot in its name");
        assert_eq!(of("block.vda.read_bytes"), file("/sys/class/block/vda/stat", "bytes", Counter, 512.0));
        assert_eq!(of("block.vda.in_flight"), file("/sys/class/block/vda/stat", "requests", Gauge, 1.0));
        assert_eq!(of("vmstat.pgfault"), file("/proc/vmstat", "events", Counter, 1.0));
        assert_eq!(of("vmstat.nr_dirty").2, Gauge);
        assert_eq!(of("vmstat.nr_dirtied").2, Counter, "it begins as gauges do");
        assert_eq!(of("journal.dm-0-8.commits"), file("/proc/fs/jbd2/dm-0-8/info", "commits", Counter, 1.0));
        assert_eq!(of("gauge:file:/proc/meminfo:Dirty: +([0-9]+)"), file("/proc/meminfo", "", Gauge, 1.0));
        let device = "/sys/bus/pci/devices/0000:00:1f.2/irq";
        assert_eq!(
            of(r"counter:file:/sys/bus/pci/devices/0000\:00\:1f.2/irq:([0-9]+)"),
            file(device, "", Counter, 1.0)
        );
    }

    #[test]
    fn several_names_stand_in_one_argument_and_a_pattern_keeps_its_commas() {
        let names = |text: &str| -> Vec<String> {
            Probe::parse_list(text).unwrap().into_iter().map(|probe| probe.descriptor.name).collect()
        };
        assert_eq!(names("dirty,net.lo.rx_bytes"), ["dirty", "net.lo.rx_bytes"]);
        assert_eq!(names("dirty,gauge:file:/x:([0-9]{1,3}),5"), ["dirty", "gauge:file:/x:([0-9]{1,3}),5"]);
        assert_eq!(names("a=dirty,b=gauge:file:/x:n=([0-9]{1,3}),5"), ["a", "b"]);
        assert_eq!(names("gauge:file:/x:n=([0-9]+)"), ["gauge:file:/x:n=([0-9]+)"], "this = belongs to the pattern");
    }

    #[test]
    fn some_probes_are_in_no_file() {
        let sleeps = parsed("worker.sleeps");
        assert!(matches!(sleeps.place, Place::Worker(WorkerCounter::Sleeps)));
        assert_eq!((sleeps.descriptor.unit.as_str(), sleeps.descriptor.scope), ("switches", Scope::Worker));
        let passed = parsed("throttling=tracepoint.writeback.balance_dirty_pages");
        let Place::Tracepoint { group, name } = &passed.place else { panic!("{passed:?}") };
        assert_eq!((group.as_str(), name.as_str()), ("writeback", "balance_dirty_pages"));
        assert_eq!(passed.descriptor.name, "throttling");
    }

    #[test]
    fn errors_suggest_a_fix() {
        for (name, told) in [
            ("dirti", "did you mean 'dirty'"),
            ("", "--probe list"),
            ("softirqs.net_xx", "net_rx"),
            ("pressure.disk.some", "cpu, io, memory"),
            ("pressure.io.half", "some or full"),
            ("net.lo", "net.IFACE.STATISTIC"),
            ("net../../etc.passwd", "is not an interface name"),
            ("net..rx_bytes", "is not an interface name"),
            ("block.vda.speed", "read_bytes"),
            ("block.a/b.read_bytes", "is not a block device name"),
            ("vmstat.", "is not a field"),
            ("gauge:vmstat.pgfault", "is a counter"),
            ("file:/x:([0-9]+)", "counter:file:/x:([0-9]+)"),
            ("gauge:file:/x", "gauge:file:PATH:PATTERN"),
            ("gauge:file:/x:[0-9]+", "has no capture group"),
            ("counter:dirty", "is not a probe"),
            ("=dirty", "own name"),
            ("my queue=dirty", "own name"),
            ("queue=dirti", "did you mean 'dirty'"),
            ("worker.naps", "sleeps"),
            ("tracepoint.writeback", "tracepoint.GROUP.NAME"),
            ("tracepoint.../x", "is not the name"),
            ("journal.vda1-8.aborts", "commits"),
        ] {
            let error = Probe::parse(name).unwrap_err();
            assert!(error.contains(told), "{name}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_name_is_a_surprise(name in any::<String>(), family in 0..FAMILIES.len()) {
            let _ = Probe::parse_list(&name);
            let _ = Probe::parse_list(&format!("{}{name}", FAMILIES[family].prefix));
        }
    }
}
