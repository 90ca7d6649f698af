//! The probes as data: numbers of the kernel that can be read beside a measurement, each by name.
//!
//! A name as typed enters [`Probe::parse`]; what it means, and in which file its number stands, leaves. `lab::probe` reads the
//! files, `study::probes` makes rates of the readings. To add a probe: a row of [`ROWS`], or a row of [`FAMILIES`] where its
//! name holds a part that the machine decides (`net.eth0.rx_bytes`).

mod families;
mod field;

pub use families::{FAMILIES, Family, FilePart, Instance};
pub use field::Field;

use crate::plan::nearest;
use crate::reading::Reading;
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// What a number of the kernel does with time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It grows: its rate is of interest.
    #[default]
    Counter,
    /// It goes up and down: its level is of interest.
    Gauge,
}

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole machine.
    Machine,
    /// One network interface or block device.
    Device,
    /// Whatever the file of the probe is of.
    File,
}

/// What a probe reads, as the record keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// As typed.
    pub name: String,
    /// In words.
    pub meaning: String,
    /// Of one; `ns`, `bytes`, `pages`…
    pub unit: String,
    /// What it does with time.
    pub kind: Kind,
    /// What it is of.
    pub scope: Scope,
}

/// A probe that can be opened.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What it reads.
    pub descriptor: Descriptor,
    /// The file that holds it.
    pub path: String,
    /// Where in the file.
    pub field: Field,
    /// From the file's unit to the probe's.
    pub factor: f64,
}

/// What every probe read at a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Readings {
    /// CLOCK_MONOTONIC just before.
    pub at_nanos: Nanos,
    /// In the order of the record's probes; `None` where it could not be read.
    pub values: Vec<Option<f64>>,
}

/// A probe that a machine may have, or several of one form.
#[derive(Clone, Debug)]
pub struct Listed {
    /// How it is asked for.
    pub name: String,
    /// What it reads, or why it cannot be read.
    pub meaning: Reading<String>,
}

/// A probe of a fixed name.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// In words.
    pub meaning: &'static str,
    unit: &'static str,
    kind: Kind,
    path: &'static str,
    key: &'static str,
    column: usize,
    factor: f64,
}

/// A tick of the columns of /proc/stat, in nanoseconds: USER_HZ is 100 on every machine that this runs on.
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

/// The probes of fixed names.
pub const ROWS: &[Row] = &[
    row("dirty", (VMSTAT, "nr_dirty", 0), (Kind::Gauge, "pages", 1.0), "pages of files that wait to be written back"),
    row(
        "writeback",
        (VMSTAT, "nr_writeback", 0),
        (Kind::Gauge, "pages", 1.0),
        "pages of files on their way to storage",
    ),
    row("context_switches", (STAT, "ctxt", 0), (Kind::Counter, "switches", 1.0), "switches from one thread to another"),
    row("interrupts", (STAT, "intr", 0), (Kind::Counter, "interrupts", 1.0), "interrupts of all devices and timers"),
    row("steal", (STAT, "cpu", 7), (Kind::Counter, "ns", TICK_NANOS), "CPU time that the hypervisor took"),
    row("page_faults", (VMSTAT, "pgfault", 0), (Kind::Counter, "faults", 1.0), "page faults, minor and major"),
    row(
        "major_page_faults",
        (VMSTAT, "pgmajfault", 0),
        (Kind::Counter, "faults", 1.0),
        "page faults that read storage",
    ),
    row("pgpgin", (VMSTAT, "pgpgin", 0), (Kind::Counter, "bytes", 1024.0), "bytes that block devices read"),
    row("pgpgout", (VMSTAT, "pgpgout", 0), (Kind::Counter, "bytes", 1024.0), "bytes that block devices wrote"),
];

impl Probe {
    /// What a name on the command line means.
    ///
    /// # Errors
    /// What is wrong with it, and which names are near.
    pub fn parse(name: &str) -> Result<Self, String> {
        if let Some(row) = ROWS.iter().find(|row| row.name == name) {
            return Ok(row.probe());
        }
        // A file does not say whether its number is a counter.
        let (kind, rest) = match name.split_once(':') {
            Some(("counter", rest)) => (Some(Kind::Counter), rest),
            Some(("gauge", rest)) => (Some(Kind::Gauge), rest),
            _ => (None, name),
        };
        let of_family = FAMILIES.iter().find_map(|family| Some((family, rest.strip_prefix(family.prefix)?)));
        let Some((family, rest)) = of_family else {
            let names = ROWS.iter().map(|row| row.name).chain(FAMILIES.iter().map(|family| family.form));
            let near =
                nearest::nearest(name, names).map_or_else(String::new, |near| format!("did you mean '{near}'? "));
            return Err(format!("'{name}' is no probe; {near}--probe list names those of this machine"));
        };
        let wrong = |what: String| format!("probe '{name}': {what}");
        let part = (family.parse)(rest).map_err(wrong)?;
        let kind = match (part.kind, kind) {
            (Some(known), Some(said)) if known != said => {
                return Err(wrong(format!("is a {}; leave the word before the colon out", known.name())));
            }
            (Some(kind), _) | (None, Some(kind)) => kind,
            (None, None) => {
                return Err(wrong(format!(
                    "say what its number is: counter:{name} where it only grows, or gauge:{name}"
                )));
            }
        };
        let FilePart { path, field, unit, factor, meaning, .. } = part;
        let descriptor = Descriptor { name: name.to_owned(), meaning, unit, kind, scope: family.scope };
        Ok(Self { descriptor, path, field, factor })
    }

    /// Several names in one argument, with commas between them. A file's pattern may hold commas, so it goes on to the end.
    ///
    /// # Errors
    /// As [`Probe::parse`].
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let of_file = ["file:", "counter:file:", "gauge:file:"].iter().any(|begin| text.starts_with(begin));
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
    /// The probe of this row.
    pub fn probe(&self) -> Probe {
        let descriptor = Descriptor {
            name: self.name.to_owned(),
            meaning: self.meaning.to_owned(),
            unit: self.unit.to_owned(),
            kind: self.kind,
            scope: Scope::Machine,
        };
        let field = Field::Row { key: self.key.to_owned(), column: self.column };
        Probe { descriptor, path: self.path.to_owned(), field, factor: self.factor }
    }
}

impl Kind {
    /// As in JSON.
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
            assert_eq!((probe.descriptor.name.as_str(), probe.path.as_str()), (row.name, row.path));
            assert!(!row.meaning.is_empty());
        }
    }

    #[test]
    fn a_family_finds_its_file_and_its_unit() {
        let of = |name: &str| {
            let probe = parsed(name);
            (probe.path, probe.descriptor.unit, probe.descriptor.kind, probe.factor)
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
    }

    #[test]
    fn what_is_wrong_is_said_with_its_mend() {
        for (name, told) in [
            ("dirti", "did you mean 'dirty'"),
            ("", "--probe list"),
            ("softirqs.net_xx", "net_rx"),
            ("pressure.disk.some", "cpu, io, memory"),
            ("pressure.io.half", "some or full"),
            ("net.lo", "net.IFACE.STATISTIC"),
            ("net../../etc.passwd", "is no name of an interface"),
            ("net..rx_bytes", "is no name of an interface"),
            ("block.vda.speed", "read_bytes"),
            ("block.a/b.read_bytes", "is no name of a block device"),
            ("vmstat.", "is no field"),
            ("gauge:vmstat.pgfault", "is a counter"),
            ("file:/x:([0-9]+)", "counter:file:/x:([0-9]+)"),
            ("gauge:file:/x", "gauge:file:PATH:PATTERN"),
            ("gauge:file:/x:[0-9]+", "captures nothing"),
            ("counter:dirty", "is no probe"),
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
