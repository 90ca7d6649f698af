//! Probes whose names contain a part that depends on the machine: an interface, a device, a field, a file.
//!
//! Parses the part after a family's prefix into the place of a number. No name can refer to a file outside the
//! family's folder.

use super::{Field, Kind, Place, Scope, VMSTAT};

/// Probes with a common form.
pub struct Family {
    /// Prefix of the names.
    pub prefix: &'static str,
    /// Form of the names.
    pub form: &'static str,
    /// What they read, in words.
    pub meaning: &'static str,
    /// What a number covers.
    pub scope: Scope,
    /// Parses the part after the prefix.
    pub parse: fn(&str) -> Result<Part, String>,
    /// How to find the probes of a machine.
    pub instances: Instance,
}

/// How to find the probes of a family on a machine.
pub enum Instance {
    /// One for each entry of this folder, with each of these suffixes.
    Folder(&'static str, &'static [&'static str]),
    /// The prefix with each of these suffixes.
    Ends(&'static [&'static str]),
    /// Any file that the user names.
    Any,
}

/// The place of a number, its meaning, and its kind if the name determines it.
#[derive(Debug)]
pub struct Part {
    pub(super) place: Place,
    pub(super) unit: String,
    pub(super) kind: Option<Kind>,
    pub(super) factor: f64,
    pub(super) meaning: String,
}

impl Part {
    /// A counter of `unit`, each of which the kernel counts as 1.
    fn counter(unit: &str, place: Place, meaning: String) -> Self {
        Self { place, unit: unit.to_owned(), kind: Some(Kind::Counter), factor: 1.0, meaning }
    }
}

fn in_file(path: impl Into<String>, field: Field) -> Place {
    Place::File { path: path.into(), field }
}

pub const FAMILIES: &[Family] = &[
    Family {
        prefix: "softirqs.",
        form: "softirqs.KIND",
        meaning: "soft interrupts of one kind handled by all CPUs",
        scope: Scope::Machine,
        parse: softirqs,
        instances: Instance::Ends(SOFTIRQS),
    },
    Family {
        prefix: "pressure.",
        form: "pressure.RESOURCE.LINE",
        meaning: "time in which some or all non-idle tasks waited for a resource (PSI)",
        scope: Scope::Machine,
        parse: pressure,
        instances: Instance::Folder("/proc/pressure", &["some", "full"]),
    },
    Family {
        prefix: "net.",
        form: "net.IFACE.STATISTIC",
        meaning: "statistics of a network interface: any file in /sys/class/net/IFACE/statistics",
        scope: Scope::Device,
        parse: net,
        instances: Instance::Folder("/sys/class/net", &["rx_bytes", "rx_packets", "tx_bytes", "tx_packets"]),
    },
    Family {
        prefix: "block.",
        form: "block.DEV.COLUMN",
        meaning: "statistics of a block device or partition: any column of /sys/class/block/DEV/stat",
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
        prefix: "journal.",
        form: "journal.DEV.commits",
        meaning: "commits of the journal of an ext4 file system: DEV is a folder in /proc/fs/jbd2",
        scope: Scope::Device,
        parse: journal,
        instances: Instance::Folder("/proc/fs/jbd2", &["commits"]),
    },
    Family {
        prefix: "tracepoint.",
        form: "tracepoint.GROUP.NAME",
        meaning: "how often a tracepoint of the kernel is passed, on all CPUs; needs root, or CAP_BPF and CAP_PERFMON",
        scope: Scope::Machine,
        parse: tracepoint,
        instances: Instance::Any,
    },
    Family {
        prefix: "worker.",
        form: "worker.COUNTER",
        meaning: "counters of the worker of a recording (iotoll ftq): sleeps, preemptions, on_cpu_time, off_cpu_time, run_delay",
        scope: Scope::Worker,
        parse: worker,
        instances: Instance::Any,
    },
    Family {
        prefix: "file:",
        form: "counter:file:PATH:PATTERN",
        meaning: "a number in any file (gauge:file:PATH:PATTERN if it can decrease)",
        scope: Scope::File,
        parse: file,
        instances: Instance::Any,
    },
];

/// Kinds of soft interrupts: the kernel's names in lower case.
const SOFTIRQS: &[&str] =
    &["hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"];

fn softirqs(kind: &str) -> Result<Part, String> {
    if !SOFTIRQS.contains(&kind) {
        return Err(format!("unknown soft interrupt; expected one of {}", SOFTIRQS.join(", ")));
    }
    let place = in_file("/proc/softirqs", Field::RowSum(format!("{}:", kind.to_ascii_uppercase())));
    Ok(Part::counter("softirqs", place, format!("{kind} soft interrupts handled")))
}

fn pressure(name: &str) -> Result<Part, String> {
    /// The kernel counts in microseconds.
    const MICROS: f64 = 1000.0;
    let (resource, line) = name.split_once('.').ok_or("expected pressure.RESOURCE.LINE, as in pressure.io.some")?;
    if !["cpu", "io", "memory", "irq"].contains(&resource) {
        return Err("expected one of cpu, io, memory, irq after the first dot".to_owned());
    }
    let reader = match line {
        "some" => "some tasks",
        "full" => "all non-idle tasks",
        _ => return Err("expected some or full at the end".to_owned()),
    };
    let field = Field::Labelled { key: line.to_owned(), label: "total=" };
    let meaning = format!("time in which {reader} waited for {resource}");
    let place = in_file(format!("/proc/pressure/{resource}"), field);
    Ok(Part { factor: MICROS, ..Part::counter("ns", place, meaning) })
}

fn net(name: &str) -> Result<Part, String> {
    // The name of an interface may contain dots, the name of a statistic does not.
    let (interface, statistic) =
        name.rsplit_once('.').ok_or("expected net.IFACE.STATISTIC, as in net.eth0.rx_bytes")?;
    entry(interface).ok_or_else(|| format!("'{interface}' is not an interface name"))?;
    entry(statistic).ok_or_else(|| format!("'{statistic}' is not a statistic name"))?;
    let unit = ["bytes", "packets"].into_iter().find(|unit| statistic.ends_with(unit)).unwrap_or("events");
    let place = in_file(format!("/sys/class/net/{interface}/statistics/{statistic}"), Field::Word(0));
    Ok(Part::counter(unit, place, format!("{statistic} of interface {interface}")))
}

/// The columns of a device's stat file in order (Documentation/block/stat.rst), with unit, kind and factor.
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

/// The columns that `--probe list` lists for each device. An error message lists all.
const BLOCK_NAMES: &[&str] = &["read_ios", "read_bytes", "write_ios", "write_bytes", "in_flight"];

fn block(name: &str) -> Result<Part, String> {
    let (device, column) = name.rsplit_once('.').ok_or("expected block.DEV.COLUMN, as in block.vda.read_bytes")?;
    entry(device).ok_or_else(|| format!("'{device}' is not a block device name"))?;
    let found = BLOCK.iter().enumerate().find(|(_, (name, _))| *name == column);
    let Some((place, (_, (unit, kind, factor)))) = found else {
        let names: Vec<&str> = BLOCK.iter().map(|(name, _)| *name).collect();
        return Err(format!("'{column}' is not a column of a device; expected one of {}", names.join(", ")));
    };
    let place = in_file(format!("/sys/class/block/{device}/stat"), Field::Word(place));
    let meaning = format!("{column} of block device {device}");
    Ok(Part { kind: Some(*kind), factor: *factor, ..Part::counter(unit, place, meaning) })
}

fn vmstat(name: &str) -> Result<Part, String> {
    /// Fields whose names begin like a gauge's, but which only grow.
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
    /// Fields whose names do not begin like a gauge's, but which go up and down.
    const GAUGES: &[&str] = &["workingset_nodes"];
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!("'{name}' is not a field of {VMSTAT}"));
    }
    let gauge = GAUGES.contains(&name) || name.starts_with("nr_") && !COUNTERS.contains(&name);
    let (kind, unit) = if gauge { (Kind::Gauge, "pages") } else { (Kind::Counter, "events") };
    let place = in_file(VMSTAT, Field::Row { key: name.to_owned(), column: 0 });
    Ok(Part { kind: Some(kind), ..Part::counter(unit, place, format!("{name} of {VMSTAT}")) })
}

fn journal(name: &str) -> Result<Part, String> {
    let device = name.strip_suffix(".commits").ok_or("expected journal.DEV.commits, as in journal.vda1-8.commits")?;
    entry(device).ok_or_else(|| format!("'{device}' is not a folder in /proc/fs/jbd2"))?;
    let place = in_file(format!("/proc/fs/jbd2/{device}/info"), Field::Word(0));
    Ok(Part::counter("commits", place, format!("transactions that the journal of {device} committed")))
}

fn tracepoint(name: &str) -> Result<Part, String> {
    let form = "expected tracepoint.GROUP.NAME, as in tracepoint.writeback.balance_dirty_pages";
    let (group, event) = name.split_once('.').ok_or(form)?;
    for part in [group, event] {
        let word = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if part.is_empty() || !word {
            return Err(format!("'{part}' is not the name of a tracepoint or its group; {form}"));
        }
    }
    let place = Place::Tracepoint { group: group.to_owned(), name: event.to_owned() };
    Ok(Part::counter("events", place, format!("passes of the tracepoint {group}:{event}")))
}

/// A counter of the worker of a recording: of its thread if iotoll started it as a job, of the process otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerCounter {
    /// Voluntary context switches: it waited for something.
    Sleeps,
    /// Involuntary context switches: another task took its CPU.
    Preemptions,
    OnCpuTime,
    /// Time less CPU time: it waited, or wanted a CPU and had none.
    OffCpuTime,
    /// Time in which it wanted a CPU and had none.
    RunDelay,
}

impl WorkerCounter {
    pub const ALL: [Self; 5] = [Self::Sleeps, Self::Preemptions, Self::OnCpuTime, Self::OffCpuTime, Self::RunDelay];

    /// Finds a counter by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.name() == name)
    }

    /// Its name after `worker.`.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Its name, the unit of one count, and what it counts.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Sleeps => ("sleeps", "switches", "times that the worker went to sleep (voluntary context switches)"),
            Self::Preemptions => {
                let meaning = "times that another task took the worker's CPU (involuntary context switches)";
                ("preemptions", "switches", meaning)
            }
            Self::OnCpuTime => ("on_cpu_time", "ns", "CPU time of the worker"),
            Self::OffCpuTime => ("off_cpu_time", "ns", "time in which the worker was not on a CPU"),
            Self::RunDelay => ("run_delay", "ns", "time in which the worker wanted a CPU and had none"),
        }
    }
}

fn worker(name: &str) -> Result<Part, String> {
    let counter = WorkerCounter::named(name).ok_or_else(|| {
        let names: Vec<&str> = WorkerCounter::ALL.iter().map(|counter| counter.name()).collect();
        format!("'{name}' is not a counter of a worker; expected one of {}", names.join(", "))
    })?;
    let (_, unit, meaning) = counter.words();
    Ok(Part::counter(unit, Place::Worker(counter), meaning.to_owned()))
}

/// Parses `PATH:PATTERN`. A colon in the path is written `\:`.
fn file(text: &str) -> Result<Part, String> {
    let escaped = |place: usize| place > 0 && text.as_bytes().get(place - 1) == Some(&b'\\');
    let colon = text.match_indices(':').map(|(place, _)| place).find(|place| !escaped(*place));
    let parts = colon.and_then(|place| Some((text.get(..place)?, text.get(place + 1..)?)));
    let (path, pattern) = parts.filter(|(path, pattern)| !path.is_empty() && !pattern.is_empty()).ok_or(
        "expected counter:file:PATH:PATTERN or gauge:file:PATH:PATTERN; PATTERN is a regular expression with the number in \
         parentheses, and a colon in PATH is written \\:",
    )?;
    let path = path.replace("\\:", ":");
    let field = Field::pattern(pattern).map_err(|wrong| format!("its pattern {wrong}"))?;
    let meaning = format!("the number that {pattern} matches in {path}");
    Ok(Part { kind: None, ..Part::counter("", in_file(path, field), meaning) })
}

/// A name that is a plain directory entry, so that it cannot leave the folder.
fn entry(name: &str) -> Option<&str> {
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    plain.then_some(name)
}
