//! The unit of a JSON number, from its key and the type that contains it.

/// Types with one unit for all keys, by the unit.
const TYPES: &str = "\
instructions per I/O: MoveFinding
cycles per I/O: SymbolChange StackChange
events per I/O: EventChange
ns: LatencyFinding Injected
I/Os or bytes per s: Rates
correlation coefficient: EventCorrelation
unit of the metric, or percent: SteadyState
percent: uint8PerDirection
bytes: PathSend PathReceive PathSegment
unit of the metric: MetricFinding AgainstStored Published
unit of the probe: ProbeFinding ProbeComparison BothArms
unit of the axis: CrossoverFinding
unit of its key: Estimate
unit of its series: Expected";

/// Parts of keys, by the unit. The first match determines the unit.
const PARTS: &str = "\
ratio: _ratio
events per I/O: events_per_io
ns: nanos_per_count _nanos _ns
packets per s: sent_per_second delivered_per_second errors_per_second
cycles per packet: cycles_per_packet
switches per packet: switches_per_packet
unit of the probe per packet: probes_per_packet
instructions per I/O: instructions_per_io repetitions_per_io
calls per I/O: calls_per_io
MiB: memory_mib
s since 1970: unix_seconds
s: seconds_needed _seconds seconds
GB/s: gigabytes_per_second
bytes per s: bytes_per_second
per s: switches_per_second migrations_per_second
fraction: iops_change cycles_change per_io_change
Hz: hertz
cycles per byte: cycles_per_byte per_byte
cycles per I/O: cycles_per_io by_meter
switches per I/O: switches_per_io
I/Os per system call: per_crossing
I/Os per s: iops alone
TSC ticks: spin_cycles
cycles: cycles
percent, ns: percentiles
percent: percent
fraction: fraction share misfit mde80 half_width margin precision change contention coherency
0 to 1: p_value
bytes: bytes path_max_payload
CPUs: busy_cpus
CPU numbers: cpus_allowed
CPUs: cpus
I/Os: ios complete_m in_flight submit
submitters: peak oversubscribed
cycles per I/O: per_io
process ID: process";

/// Exceptions, as TYPE.KEY, by the unit.
const KEYS: &str = "\
fraction: DeviceZones.reset_frequency DeviceZones.reset_threshold Shape.center CarryingUnit.part
fraction: LatencyFinding.bucket_error_fraction MetricFinding.change MetricFinding.low MetricFinding.high
fraction: MetricFinding.mde80 Published.change UnpairedChange.low UnpairedChange.high Interval.low Interval.high
fraction: PlacementFinding.cpus PeerPlacement.cpus Periodic.depth Periodic.phase BothArms.change
bytes: RequestPlan.skip
its distribution's: Shape.parameter
unit of its series: Level.value Point.value
its `unit`: LimitFinding.found
count: CarryingUnit.number CarryingUnit.of FamilyFinding.comparisons MetricFinding.units
0 to 1: FamilyFinding.confidence MetricFinding.confidence MetricFinding.correlation MetricFinding.p_value
0 to 1: Periodic.false_alarm Label.false_alarm
0 to 0.9: PhaseFinding.correlation
packets: PointFinding.delivered
instructions per I/O: PointFinding.lowest PointFinding.highest FunctionFinding.change ChangeFinding.difference
percent, ns: LatencyFinding.percentiles
cycles per I/O: AccountFinding.low AccountFinding.high AccountChange.baseline AccountChange.candidate
cycles per I/O: ExplainedFinding.baseline ExplainedFinding.candidate
s: MetricFinding.seconds_to_decide ProbeFinding.lost_at_seconds PeriodChanges.appeared PeriodChanges.went
unit: FtqFinding.amount Noise.undisturbed_per_quantum
unit per s: FtqFinding.amount_per_second Level.amount_per_second
unit of the probe: Cause.count Label.during Label.elsewhere
ratio: Label.times_chance";

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
    let exception = format!("{name}.{key}");
    let found = named(KEYS, |known| known == exception).or_else(|| named(TYPES, |known| known == name));
    found.or_else(|| named(PARTS, |part| key.contains(part))).or_else(|| (kind == "integer").then_some("count"))
}

/// The unit of the first line with a word that `is` it.
fn named(table: &'static str, is: impl Fn(&str) -> bool) -> Option<&'static str> {
    let lines = table.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(_, words)| words.split(' ').any(&is)).map(|(unit, _)| unit).next()
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
