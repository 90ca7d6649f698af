//! Probes whose names hold a part that the machine decides: an interface, a device, a field, a file.
//!
//! What follows a family's prefix enters, the file and the place in it leave. A name never leads out of the folder that it
//! is looked for in.

use super::{Field, Kind, Scope, VMSTAT};

/// Probes of one form.
pub struct Family {
    /// How a name begins.
    pub prefix: &'static str,
    /// What a name looks like.
    pub form: &'static str,
    /// In words.
    pub meaning: &'static str,
    /// What such a number is of.
    pub scope: Scope,
    /// How what follows the prefix is read.
    pub parse: fn(&str) -> Result<FilePart, String>,
    /// Where its instances on a machine are to be found.
    pub instances: Instance,
}

/// Where the instances of a family are to be found.
pub enum Instance {
    /// One for each entry of this folder; these may follow its name.
    Folder(&'static str, &'static [&'static str]),
    /// These follow the prefix.
    Ends(&'static [&'static str]),
    /// Whatever somebody names.
    Any,
}

/// Where a number stands and what it is; of what kind, where that follows from the name.
#[derive(Debug)]
pub struct FilePart {
    pub(super) path: String,
    pub(super) field: Field,
    pub(super) unit: String,
    pub(super) kind: Option<Kind>,
    pub(super) factor: f64,
    pub(super) meaning: String,
}

/// All families.
pub const FAMILIES: &[Family] = &[
    Family {
        prefix: "softirqs.",
        form: "softirqs.KIND",
        meaning: "soft interrupts of one kind that were handled, all CPUs together",
        scope: Scope::Machine,
        parse: softirqs,
        instances: Instance::Ends(SOFTIRQS),
    },
    Family {
        prefix: "pressure.",
        form: "pressure.RESOURCE.LINE",
        meaning: "time in which some or all tasks that were not idle waited for a resource (PSI)",
        scope: Scope::Machine,
        parse: pressure,
        instances: Instance::Folder("/proc/pressure", &["some", "full"]),
    },
    Family {
        prefix: "net.",
        form: "net.IFACE.STATISTIC",
        meaning: "what a network interface counts: any file of /sys/class/net/IFACE/statistics",
        scope: Scope::Device,
        parse: net,
        instances: Instance::Folder("/sys/class/net", &["rx_bytes", "rx_packets", "tx_bytes", "tx_packets"]),
    },
    Family {
        prefix: "block.",
        form: "block.DEV.COLUMN",
        meaning: "what a block device or partition counts: a column of /sys/class/block/DEV/stat",
        scope: Scope::Device,
        parse: block,
        instances: Instance::Folder("/sys/class/block", BLOCK_NAMES),
    },
    Family {
        prefix: "vmstat.",
        form: "vmstat.NAME",
        meaning: "any field of /proc/vmstat",
        scope: Scope::Machine,
        parse: vmstat,
        instances: Instance::Any,
    },
    Family {
        prefix: "file:",
        form: "counter:file:PATH:PATTERN",
        meaning: "a number of any file (gauge:file:PATH:PATTERN where it goes down too)",
        scope: Scope::File,
        parse: file,
        instances: Instance::Any,
    },
];

/// Kinds of soft interrupts, as the kernel calls them in small letters.
const SOFTIRQS: &[&str] =
    &["hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"];

fn softirqs(kind: &str) -> Result<FilePart, String> {
    if !SOFTIRQS.contains(&kind) {
        return Err(format!("there is no such soft interrupt; expected one of {}", SOFTIRQS.join(", ")));
    }
    Ok(FilePart {
        path: "/proc/softirqs".to_owned(),
        field: Field::RowSum(format!("{}:", kind.to_ascii_uppercase())),
        unit: "softirqs".to_owned(),
        kind: Some(Kind::Counter),
        factor: 1.0,
        meaning: format!("soft interrupts {kind} that were handled"),
    })
}

fn pressure(name: &str) -> Result<FilePart, String> {
    /// What the kernel counts in microseconds.
    const MICROS: f64 = 1000.0;
    let (resource, line) = name.split_once('.').ok_or("expected pressure.RESOURCE.LINE, as in pressure.io.some")?;
    if !["cpu", "io", "memory", "irq"].contains(&resource) {
        return Err("expected one of cpu, io, memory, irq after the first dot".to_owned());
    }
    let reader = match line {
        "some" => "some task",
        "full" => "every task that was not idle",
        _ => return Err("expected some or full at the end".to_owned()),
    };
    Ok(FilePart {
        path: format!("/proc/pressure/{resource}"),
        field: Field::Labelled { key: line.to_owned(), label: "total=" },
        unit: "ns".to_owned(),
        kind: Some(Kind::Counter),
        factor: MICROS,
        meaning: format!("time in which {reader} waited for {resource}"),
    })
}

fn net(name: &str) -> Result<FilePart, String> {
    // An interface may have dots in its name, a statistic has none.
    let (interface, statistic) =
        name.rsplit_once('.').ok_or("expected net.IFACE.STATISTIC, as in net.eth0.rx_bytes")?;
    entry(interface).ok_or_else(|| format!("'{interface}' is no name of an interface"))?;
    entry(statistic).ok_or_else(|| format!("'{statistic}' is no name of a statistic"))?;
    let unit = ["bytes", "packets"].into_iter().find(|unit| statistic.ends_with(unit)).unwrap_or("events");
    Ok(FilePart {
        path: format!("/sys/class/net/{interface}/statistics/{statistic}"),
        field: Field::Word(0),
        unit: unit.to_owned(),
        kind: Some(Kind::Counter),
        factor: 1.0,
        meaning: format!("{statistic} of interface {interface}"),
    })
}

/// The columns of a device's stat, in their order (Documentation/block/stat.rst), with unit, kind and factor.
const BLOCK: [(&str, (&str, Kind, f64)); 17] = {
    use Kind::{Counter, Gauge};
    const SECTOR: f64 = 512.0;
    const MILLIS: f64 = 1e6;
    [
        ("read_ios", ("I/Os", Counter, 1.0)),
        ("read_merges", ("requests", Counter, 1.0)),
        ("read_bytes", ("bytes", Counter, SECTOR)),
        ("read_time", ("ns", Counter, MILLIS)),
        ("write_ios", ("I/Os", Counter, 1.0)),
        ("write_merges", ("requests", Counter, 1.0)),
        ("write_bytes", ("bytes", Counter, SECTOR)),
        ("write_time", ("ns", Counter, MILLIS)),
        ("in_flight", ("requests", Gauge, 1.0)),
        ("busy_time", ("ns", Counter, MILLIS)),
        ("queue_time", ("ns", Counter, MILLIS)),
        ("discard_ios", ("I/Os", Counter, 1.0)),
        ("discard_merges", ("requests", Counter, 1.0)),
        ("discard_bytes", ("bytes", Counter, SECTOR)),
        ("discard_time", ("ns", Counter, MILLIS)),
        ("flush_ios", ("I/Os", Counter, 1.0)),
        ("flush_time", ("ns", Counter, MILLIS)),
    ]
};

/// Those that are listed for each device; a refusal names all.
const BLOCK_NAMES: &[&str] = &["read_ios", "read_bytes", "write_ios", "write_bytes", "in_flight"];

fn block(name: &str) -> Result<FilePart, String> {
    let (device, column) = name.rsplit_once('.').ok_or("expected block.DEV.COLUMN, as in block.vda.read_bytes")?;
    entry(device).ok_or_else(|| format!("'{device}' is no name of a block device"))?;
    let found = BLOCK.iter().enumerate().find(|(_, (name, _))| *name == column);
    let Some((place, (_, (unit, kind, factor)))) = found else {
        let names: Vec<&str> = BLOCK.iter().map(|(name, _)| *name).collect();
        return Err(format!("'{column}' is no column of a device; expected one of {}", names.join(", ")));
    };
    Ok(FilePart {
        path: format!("/sys/class/block/{device}/stat"),
        field: Field::Word(place),
        unit: (*unit).to_owned(),
        kind: Some(*kind),
        factor: *factor,
        meaning: format!("{column} of block device {device}"),
    })
}

fn vmstat(name: &str) -> Result<FilePart, String> {
    /// What begins as gauges do and only grows.
    const COUNTERS: &[&str] = &[
        "nr_dirtied",
        "nr_written",
        "nr_throttled_written",
        "nr_vmscan_write",
        "nr_vmscan_immediate_reclaim",
        "nr_foll_pin_acquired",
        "nr_foll_pin_released",
        "nr_tlb_remote_flush",
        "nr_tlb_remote_flush_received",
        "nr_tlb_local_flush_all",
        "nr_tlb_local_flush_one",
    ];
    /// What does not and goes up and down.
    const GAUGES: &[&str] = &["workingset_nodes"];
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!("'{name}' is no field of {VMSTAT}"));
    }
    let gauge = GAUGES.contains(&name) || name.starts_with("nr_") && !COUNTERS.contains(&name);
    let (kind, unit) = if gauge { (Kind::Gauge, "pages") } else { (Kind::Counter, "events") };
    Ok(FilePart {
        path: VMSTAT.to_owned(),
        field: Field::Row { key: name.to_owned(), column: 0 },
        unit: unit.to_owned(),
        kind: Some(kind),
        factor: 1.0,
        meaning: format!("{name} of {VMSTAT}"),
    })
}

/// `PATH:PATTERN`, where a colon of the path is written `\:`.
fn file(text: &str) -> Result<FilePart, String> {
    let escaped = |place: usize| place > 0 && text.as_bytes().get(place - 1) == Some(&b'\\');
    let colon = text.match_indices(':').map(|(place, _)| place).find(|place| !escaped(*place));
    let parts = colon.and_then(|place| Some((text.get(..place)?, text.get(place + 1..)?)));
    let (path, pattern) = parts.filter(|(path, pattern)| !path.is_empty() && !pattern.is_empty()).ok_or(
        "expected counter:file:PATH:PATTERN or gauge:file:PATH:PATTERN; PATTERN is a regular expression with the number in \
         parentheses, and a colon in PATH is written \\:",
    )?;
    let path = path.replace("\\:", ":");
    Ok(FilePart {
        field: Field::pattern(pattern).map_err(|wrong| format!("its pattern {wrong}"))?,
        unit: String::new(),
        kind: None,
        factor: 1.0,
        meaning: format!("what {pattern} captures in {path}"),
        path,
    })
}

/// A name that can be an entry of a folder, and no way out of it.
fn entry(name: &str) -> Option<&str> {
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    plain.then_some(name)
}
