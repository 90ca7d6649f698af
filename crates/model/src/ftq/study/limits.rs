//! What a recording says of each metric that `--fail-on` can limit. Rates are estimates, with the interval over parts of the
//! recording. The longest stall and how often the recorder or the worker was late are facts about this recording, which decide a
//! limit on their value, but not on a change: one recording shows no spread of them.

use crate::ftq::FtqRecord;
use crate::ftq::finding::FtqFinding;
use crate::ftq::series::Series;
use crate::limit::{self, AtPlace, LimitFinding, Quantity};
use crate::stats::unpaired::grouped;
use crate::stats::{Estimate, Neighbours, Pair, ratio_of_sums};
use crate::stored::{Stored, UnpairedChange};

const RATE: &str = "amount_per_second";
const AVAILABLE: &str = "available_fraction";
const OFF_CPU: &str = "off_cpu_share";
const STALL: &str = "longest_stall_seconds";
const STALLS: &str = "stall_count";
const LATE: &str = "late_share";

/// The probe that tells how long the worker was not on a CPU.
const OFF_CPU_PROBE: &str = "worker.off_cpu_time";

pub(crate) fn quantities() -> Vec<Quantity> {
    let row = |name, unit| Quantity { name, unit };
    vec![
        row(RATE, "bytes or steps/s"),
        row(AVAILABLE, "fraction"),
        row(OFF_CPU, "fraction"),
        row(STALL, "s"),
        row(STALLS, "stalls"),
        row(LATE, "fraction"),
    ]
}

/// Every limit of the record.
pub(super) fn judge(record: &FtqRecord, finding: &FtqFinding, stored: Option<&Stored<FtqRecord>>) -> Vec<LimitFinding> {
    limit::judge(&record.header.envelope.limits, |name| {
        let value = estimate(record, name).unwrap_or_else(|| fact(record, finding, name));
        let no_spread = || "one recording shows no spread of it; limit its value".to_owned();
        let change = stored.map(|stored| {
            let then = estimate(&stored.record, name).ok_or_else(no_spread)?;
            let found = UnpairedChange::since(value.clone()?, then?).ok_or("it is 0 in one of the two")?;
            Ok(Estimate { value: found.change, low: found.low, high: found.high })
        });
        vec![AtPlace { cell: String::new(), arm: String::new(), value, change }]
    })
}

fn fact(record: &FtqRecord, finding: &FtqFinding, name: &str) -> Result<Estimate, String> {
    if finding.readings < 2 {
        return Err("nothing was read".to_owned());
    }
    Ok(match name {
        AVAILABLE => {
            let available = finding.noise.available_fraction.ok_or("a quantum holds too few I/Os to tell")?;
            // It is the rate as a part of the undisturbed one.
            let rate = estimate(record, RATE).ok_or("nothing was read")??;
            let part = |end: f64| available * end / rate.value;
            Estimate { value: available, low: rate.low.map(part), high: rate.high.map(part) }
        }
        // A worker that never stalled has no longest stall.
        STALL => Estimate::exact(finding.noise.longest_stall_seconds.unwrap_or(0.0)),
        STALLS => Estimate::exact(finding.stall_count as f64),
        _ => Estimate::exact(finding.late as f64 / finding.readings as f64),
    })
}

/// The metrics with an interval; `None` for the others.
fn estimate(record: &FtqRecord, name: &str) -> Option<Result<Estimate, String>> {
    let series = Series::of(record);
    let rate = |line: &[f64]| {
        let times = series.seconds.iter().zip(line).filter(|(_, done)| done.is_finite());
        let later = times.clone().skip(1);
        let steps: Vec<Pair> = times
            .zip(later)
            .map(|((before, done_before), (at, done))| Pair { numerator: done - done_before, denominator: at - before })
            .collect();
        Some(ratio_of_sums(&grouped(&steps), Neighbours::Alike)?.estimate())
    };
    match name {
        RATE => Some(rate(&series.done).ok_or_else(|| "nothing was read".to_owned())),
        OFF_CPU => {
            let probes = &record.header.probes;
            let probe = probes.iter().enumerate().find(|(_, probe)| probe.name == OFF_CPU_PROBE);
            let found = probe.and_then(|(number, probe)| rate(&series.line(number, probe.kind)));
            Some(found.map(|nanos| nanos.scaled(1e-9)).ok_or_else(|| format!("{OFF_CPU_PROBE} was not read")))
        }
        _ => None,
    }
}
