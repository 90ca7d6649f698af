//! Kernel counters that count I/Os for programs that do not: of a block device or a network interface.

use crate::probe::ProbeSet;
use model::experiment::work_counter;
use model::probe::{Kind, Place, Probe};
use model::record::{Direction, Done, JobRecord, Stretch};
use model::unit::Bytes;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A counter of the machine: `block:vda`, `net:eth0`, or a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Completed reads, writes and discards of a block device, requests that only flush among the writes; bytes of reads and writes.
    Block(String),
    /// Packets and bytes, received and sent, of a network interface.
    Net(String),
    /// What a probe of this name counts.
    Probe(String),
}

impl FromStr for Counter {
    type Err = String;

    /// Of the names that [`work_counter::parse`] knows, those that count the whole machine.
    fn from_str(text: &str) -> Result<Self, String> {
        work_counter::parse(text).map_err(|wrong| wrong.to_string())?;
        let wrong = || format!("'{text}': expected block:DEVICE or net:INTERFACE, such as block:vda or net:eth0");
        match text.split_once(':') {
            Some(("block" | "net", name)) if name.is_empty() || name.contains('/') || name.starts_with('.') => {
                Err(wrong())
            }
            Some(("block", name)) => Ok(Self::Block(name.to_owned())),
            Some(("net", name)) => Ok(Self::Net(name.to_owned())),
            _ if text == work_counter::AUTO || work_counter::find(text).is_some() => Err(format!(
                "'{text}': counts commands that take turns (iotoll compare, --slices); for whole executions give block:DEVICE, \
                 net:INTERFACE or a probe, or --ios or --bytes"
            )),
            _ => Self::of_probe(text),
        }
    }
}

impl Counter {
    fn of_probe(text: &str) -> Result<Self, String> {
        let probe = Probe::parse(text)?;
        if probe.descriptor.kind == Kind::Gauge {
            return Err(format!("'{text}': is a gauge; only what increases can count"));
        }
        match probe.place {
            // It counts only while it is open, and between readings it is not.
            Place::Tracepoint { .. } | Place::Worker(_) => Err(format!(
                "'{text}': cannot count a whole command; read it with --probe, and count with another counter"
            )),
            _ => Ok(Self::Probe(text.to_owned())),
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Block(name) => write!(formatter, "block:{name}"),
            Self::Net(name) => write!(formatter, "net:{name}"),
            Self::Probe(name) => write!(formatter, "{name}"),
        }
    }
}

impl Counter {
    /// The current count.
    pub fn read(&self) -> Result<Done, String> {
        match self {
            Self::Block(name) => {
                // /sys/class/block has partitions beside whole devices.
                let text = read(Path::new("/sys/class/block").join(name).join("stat"))?;
                parse_block(&text).ok_or_else(|| format!("unexpected text '{}'", text.trim()))
            }
            Self::Net(name) => {
                let directory = Path::new("/sys/class/net").join(name).join("statistics");
                let number = |file: &str| -> Result<u64, String> {
                    let text = read(directory.join(file))?;
                    text.trim().parse().map_err(|_| format!("unexpected text '{}'", text.trim()))
                };
                Ok(Done {
                    ios: number("rx_packets")? + number("tx_packets")?,
                    bytes: Bytes(number("rx_bytes")? + number("tx_bytes")?),
                })
            }
            Self::Probe(name) => {
                let mut set = ProbeSet::open(&[Probe::parse(name)?]).map_err(|error| error.to_string())?;
                let mut values = [None];
                set.read_into(&mut values);
                let [value] = values;
                let ios = value.filter(|value| (0.0..u64::MAX as f64).contains(value)).ok_or("cannot be read")? as u64;
                Ok(Done { ios, bytes: Bytes(0) })
            }
        }
    }

    /// What its I/Os are, in words that follow its name.
    pub fn remark(&self) -> &'static str {
        match self {
            Self::Block(_) => "; flushes count as writes",
            Self::Net(_) | Self::Probe(_) => "",
        }
    }

    /// The count over a stretch, as a job.
    pub(super) fn job(&self, stretch: &Stretch) -> Option<JobRecord> {
        let first = stretch.snapshots.first()?.done?;
        let last = stretch.snapshots.last()?.done?;
        let (ios, bytes) = (last.ios.saturating_sub(first.ios), last.bytes.since(first.bytes));
        Some(JobRecord {
            name: self.to_string(),
            engine: "counter".to_owned(),
            mixed: Some(Box::new(Direction { ios, bytes, ..Direction::default() })),
            ..JobRecord::default()
        })
    }
}

fn read(path: PathBuf) -> Result<String, String> {
    std::fs::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no {}", path.display()),
        _ => format!("{}: {error}", path.display()),
    })
}

/// Completed reads, read sectors, completed writes, written sectors, completed discards (Documentation/block/stat.rst); a sector is 512 bytes
/// on every device.
fn parse_block(text: &str) -> Option<Done> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let discards = fields.get(11).copied().unwrap_or(0);
    Some(Done {
        ios: fields.first()?.saturating_add(*fields.get(4)?).saturating_add(discards),
        bytes: Bytes(fields.get(2)?.saturating_add(*fields.get(6)?).saturating_mul(512)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_parsed_and_named() {
        for text in ["block:vda", "net:eth0"] {
            assert_eq!(text.parse::<Counter>().unwrap().to_string(), text);
        }
        for text in ["block:", "block:../x"] {
            assert!(text.parse::<Counter>().unwrap_err().contains("block:vda"), "{text}");
        }
        for text in ["", "vda", "disk:vda"] {
            assert!(text.parse::<Counter>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_counter_of_the_machine_is_one_that_a_comparison_takes_too() {
        assert_eq!("vmstat.pgfault".parse(), Ok(Counter::Probe("vmstat.pgfault".to_owned())));
        let faults = || Counter::Probe("vmstat.pgfault".to_owned()).read().unwrap().ios;
        let first = faults();
        assert!(first > 0 && faults() >= first);
        for (text, why) in [
            ("task:read", "take turns"),
            ("auto", "take turns"),
            ("dirty", "expected auto"),
            ("vmstat.nr_dirty", "gauge"),
        ] {
            let refusal = text.parse::<Counter>().unwrap_err();
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }

    #[test]
    fn the_kernel_s_fields_are_added_up() {
        let done = |ios| Some(Done { ios, bytes: Bytes(240 * 512) });
        assert_eq!(parse_block("  10 1 80 5 20 2 160 7 0 0 0 3 0 8 0 0 0\n"), done(33));
        // A kernel without discards.
        assert_eq!(parse_block("  10 1 80 5 20 2 160 7 0 0 0\n"), done(30));
        assert_eq!(parse_block("1 2"), None);
    }

    #[test]
    fn loopback_counts_and_a_missing_device_says_so() {
        assert!(Counter::Net("lo".into()).read().is_ok());
        assert!(Counter::Block("nosuch".into()).read().unwrap_err().contains("there is no"));
    }
}
