//! The unit of a JSON number, from its key and the type that contains it.

/// Types with one unit for all keys.
const TYPES: [(&str, &str); 22] = [
    ("MoveFinding", "instructions per I/O"),
    ("SymbolChange", "cycles per I/O"),
    ("EventChange", "events per I/O"),
    ("StackChange", "cycles per I/O"),
    ("LatencyFinding", "ns"),
    ("Injected", "ns"),
    ("Rates", "I/Os or bytes per s"),
    ("EventCorrelation", "correlation coefficient"),
    ("SteadyState", "unit of the metric, or percent"),
    ("uint8PerDirection", "percent"),
    ("PathSend", "bytes"),
    ("PathReceive", "bytes"),
    ("PathSegment", "bytes"),
    ("MetricFinding", "unit of the metric"),
    ("AgainstStored", "unit of the metric"),
    ("Published", "unit of the metric"),
    ("ProbeFinding", "unit of the probe"),
    ("ProbeComparison", "unit of the probe"),
    ("BothArms", "unit of the probe"),
    ("CrossoverFinding", "unit of the axis"),
    ("Estimate", "unit of its key"),
    ("Expected", "unit of its series"),
];

/// Parts of keys. The first match determines the unit.
const PARTS: [(&str, &str); 63] = [
    ("_ratio", "ratio"),
    ("events_per_io", "events per I/O"),
    ("nanos_per_count", "ns"),
    ("sent_per_second", "packets per s"),
    ("delivered_per_second", "packets per s"),
    ("errors_per_second", "packets per s"),
    ("cycles_per_packet", "cycles per packet"),
    ("switches_per_packet", "switches per packet"),
    ("probes_per_packet", "unit of the probe per packet"),
    ("instructions_per_io", "instructions per I/O"),
    ("calls_per_io", "calls per I/O"),
    ("repetitions_per_io", "instructions per I/O"),
    ("memory_mib", "MiB"),
    ("unix_seconds", "s since 1970"),
    ("seconds_needed", "s"),
    ("gigabytes_per_second", "GB/s"),
    ("bytes_per_second", "bytes per s"),
    ("switches_per_second", "per s"),
    ("migrations_per_second", "per s"),
    ("iops_change", "fraction"),
    ("cycles_change", "fraction"),
    ("per_io_change", "fraction"),
    ("_seconds", "s"),
    ("seconds", "s"),
    ("hertz", "Hz"),
    ("_nanos", "ns"),
    ("_ns", "ns"),
    ("cycles_per_byte", "cycles per byte"),
    ("cycles_per_io", "cycles per I/O"),
    ("by_meter", "cycles per I/O"),
    ("switches_per_io", "switches per I/O"),
    ("per_crossing", "I/Os per system call"),
    ("iops", "I/Os per s"),
    ("spin_cycles", "TSC ticks"),
    ("cycles", "cycles"),
    ("percentiles", "percent, ns"),
    ("percent", "percent"),
    ("fraction", "fraction"),
    ("share", "fraction"),
    ("misfit", "fraction"),
    ("mde80", "fraction"),
    ("half_width", "fraction"),
    ("margin", "fraction"),
    ("precision", "fraction"),
    ("change", "fraction"),
    ("p_value", "0 to 1"),
    ("bytes", "bytes"),
    ("path_max_payload", "bytes"),
    ("busy_cpus", "CPUs"),
    ("cpus_allowed", "CPU numbers"),
    ("cpus", "CPUs"),
    ("ios", "I/Os"),
    ("contention", "fraction"),
    ("coherency", "fraction"),
    ("alone", "I/Os per s"),
    ("peak", "submitters"),
    ("oversubscribed", "submitters"),
    ("per_byte", "cycles per byte"),
    ("per_io", "cycles per I/O"),
    ("complete_m", "I/Os"),
    ("in_flight", "I/Os"),
    ("submit", "I/Os"),
    ("process", "process ID"),
];

/// Exceptions: type, key, unit.
const KEYS: [(&str, &str, &str); 59] = [
    ("DeviceZones", "reset_frequency", "fraction"),
    ("DeviceZones", "reset_threshold", "fraction"),
    ("RequestPlan", "skip", "bytes"),
    ("Shape", "parameter", "its distribution's"),
    ("Shape", "center", "fraction"),
    ("Level", "value", "unit of its series"),
    ("Point", "value", "unit of its series"),
    ("LimitFinding", "found", "its `unit`"),
    ("CarryingUnit", "number", "count"),
    ("CarryingUnit", "of", "count"),
    ("CarryingUnit", "part", "fraction"),
    ("FamilyFinding", "comparisons", "count"),
    ("FamilyFinding", "confidence", "0 to 1"),
    ("MetricFinding", "confidence", "0 to 1"),
    ("MetricFinding", "correlation", "0 to 1"),
    ("PhaseFinding", "correlation", "0 to 0.9"),
    ("PointFinding", "delivered", "packets"),
    ("PointFinding", "lowest", "instructions per I/O"),
    ("PointFinding", "highest", "instructions per I/O"),
    ("FunctionFinding", "change", "instructions per I/O"),
    ("ChangeFinding", "difference", "instructions per I/O"),
    ("LatencyFinding", "bucket_error_fraction", "fraction"),
    ("LatencyFinding", "percentiles", "percent, ns"),
    ("MetricFinding", "change", "fraction"),
    ("AccountFinding", "low", "cycles per I/O"),
    ("AccountFinding", "high", "cycles per I/O"),
    ("AccountChange", "baseline", "cycles per I/O"),
    ("AccountChange", "candidate", "cycles per I/O"),
    ("ExplainedFinding", "baseline", "cycles per I/O"),
    ("ExplainedFinding", "candidate", "cycles per I/O"),
    ("MetricFinding", "low", "fraction"),
    ("MetricFinding", "high", "fraction"),
    ("MetricFinding", "mde80", "fraction"),
    ("MetricFinding", "p_value", "0 to 1"),
    ("MetricFinding", "seconds_to_decide", "s"),
    ("MetricFinding", "units", "count"),
    ("Published", "change", "fraction"),
    ("UnpairedChange", "low", "fraction"),
    ("UnpairedChange", "high", "fraction"),
    ("Interval", "low", "fraction"),
    ("Interval", "high", "fraction"),
    ("PlacementFinding", "cpus", "fraction"),
    ("PeerPlacement", "cpus", "fraction"),
    ("FtqFinding", "amount", "unit"),
    ("FtqFinding", "amount_per_second", "unit per s"),
    ("Level", "amount_per_second", "unit per s"),
    ("Noise", "undisturbed_per_quantum", "unit"),
    ("Cause", "count", "unit of the probe"),
    ("Periodic", "depth", "fraction"),
    ("Periodic", "phase", "fraction"),
    ("Periodic", "false_alarm", "0 to 1"),
    ("Label", "during", "unit of the probe"),
    ("Label", "elsewhere", "unit of the probe"),
    ("Label", "times_chance", "ratio"),
    ("Label", "false_alarm", "0 to 1"),
    ("BothArms", "change", "fraction"),
    ("ProbeFinding", "lost_at_seconds", "s"),
    ("PeriodChanges", "appeared", "s"),
    ("PeriodChanges", "went", "s"),
];

/// Identifiers and indices, which have no unit.
const NUMBERS: [&str; 8] = [
    "method_version",
    "seed",
    "round",
    "first_round",
    "last_round",
    "first_execution",
    "last_execution",
    "after_round",
];

/// The unit of the number at `key` in an object of type `name`. `kind` is the kind of number; an integer without a rule is a
/// count. `None` if there is no number, or no rule for it.
pub fn unit(name: &str, key: &str, kind: &str) -> Option<&'static str> {
    match kind {
        "" => return None,
        "Bytes" => return Some("bytes"),
        "Nanos" => return Some("ns"),
        _ if NUMBERS.contains(&key) => return Some(""),
        _ => {}
    }
    if let Some((_, _, unit)) = KEYS.iter().find(|(of, named, _)| (*of, *named) == (name, key)) {
        return Some(unit);
    }
    if let Some((_, unit)) = TYPES.iter().find(|(of, _)| *of == name) {
        return Some(unit);
    }
    let part = PARTS.iter().find(|(part, _)| key.contains(part));
    part.map(|(_, unit)| *unit).or_else(|| (kind == "integer").then_some("count"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_in_its_unit_unless_its_type_has_one() {
        assert_eq!(unit("PhaseFinding", "cycles_per_io_low", "number"), Some("cycles per I/O"));
        assert_eq!(unit("LatencyFinding", "p50", "number"), Some("ns"));
        assert_eq!(unit("MetricFinding", "low", "number"), Some("fraction"));
        assert_eq!(unit("MetricFinding", "baseline", "number"), Some("unit of the metric"));
        assert_eq!(unit("JobFinding", "copies", "integer"), Some("count"));
        assert_eq!(unit("JobFinding", "name", ""), None);
        assert_eq!(unit("JobFinding", "weight", "number"), None);
    }
}
