//! Kernel counters that count I/Os for programs that do not: of a block device or a network interface.

use model::record::{Done, JobRecord, Stretch};
use model::unit::Bytes;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A counter: `block:vda`, `net:eth0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Completed reads, writes and discards of a block device; bytes of reads and writes.
    Block(String),
    /// Packets and bytes, received and sent, of a network interface.
    Net(String),
}

impl FromStr for Counter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}': expected block:DEVICE or net:INTERFACE, such as block:vda or net:eth0");
        let (kind, name) = text.split_once(':').ok_or_else(wrong)?;
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(wrong());
        }
        match kind {
            "block" => Ok(Self::Block(name.to_owned())),
            "net" => Ok(Self::Net(name.to_owned())),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Block(name) => write!(formatter, "block:{name}"),
            Self::Net(name) => write!(formatter, "net:{name}"),
        }
    }
}

impl Counter {
    /// The current count.
    pub fn read(&self) -> Result<Done, String> {
        self.read_under(Path::new("/"))
    }

    fn read_under(&self, root: &Path) -> Result<Done, String> {
        match self {
            Self::Block(name) => {
                // /sys/class/block has partitions beside whole devices.
                let text = read(root.join("sys/class/block").join(name).join("stat"))?;
                parse_block(&text).ok_or_else(|| format!("unexpected text '{}'", text.trim()))
            }
            Self::Net(name) => {
                let directory = root.join("sys/class/net").join(name).join("statistics");
                let number = |file: &str| -> Result<u64, String> {
                    let text = read(directory.join(file))?;
                    text.trim().parse().map_err(|_| format!("unexpected text '{}'", text.trim()))
                };
                Ok(Done {
                    ios: number("rx_packets")? + number("tx_packets")?,
                    bytes: Bytes(number("rx_bytes")? + number("tx_bytes")?),
                })
            }
        }
    }

    /// The count over a stretch, as a job.
    pub(super) fn job(&self, stretch: &Stretch) -> Option<JobRecord> {
        let first = stretch.snapshots.first()?.done?;
        let last = stretch.snapshots.last()?.done?;
        let mut job = JobRecord { name: self.to_string(), engine: "counter".to_owned(), ..JobRecord::default() };
        job.read.ios = last.ios.saturating_sub(first.ios);
        job.read.bytes = last.bytes.since(first.bytes);
        Some(job)
    }
}

fn read(path: PathBuf) -> Result<String, String> {
    std::fs::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no {}", path.display()),
        _ => format!("{}: {error}", path.display()),
    })
}

/// Completed reads, read sectors, completed writes, written sectors, completed discards (Documentation/block/stat.rst);
/// a sector is 512 bytes on every device.
fn parse_block(text: &str) -> Option<Done> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let discards = fields.get(11).copied().unwrap_or(0);
    Some(Done {
        ios: fields.first()? + fields.get(4)? + discards,
        bytes: Bytes((fields.get(2)? + fields.get(6)?) * 512),
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
        for text in ["", "vda", "block:", "block:../x", "disk:vda"] {
            assert!(text.parse::<Counter>().unwrap_err().contains("block:vda"), "{text}");
        }
    }

    #[test]
    fn the_kernel_s_fields_are_added_up() {
        let done = parse_block("  10 1 80 5 20 2 160 7 0 0 0 3 0 8 0 0 0\n").unwrap();
        assert_eq!((done.ios, done.bytes), (33, Bytes(240 * 512)));
        assert_eq!(parse_block("1 2"), None);
    }

    #[test]
    fn loopback_counts_and_a_missing_device_says_so() {
        assert!(Counter::Net("lo".into()).read().is_ok());
        assert!(Counter::Block("nosuch".into()).read().unwrap_err().contains("there is no"));
    }
}
