//! All numbers of a run in raw units, one row each.

use crate::document::{Cell, Column, Table};
use model::finding::{JobFinding, LatencyFinding, PhaseFinding, RunFinding};
use model::stored::UnpairedChange;

/// The columns. `of` is the meter, account, direction or stage of a number, `seconds` its time.
const COLUMNS: [&str; 10] = ["phase", "job", "metric", "of", "seconds", "unit", "value", "low", "high", "reason"];

pub fn table(finding: &RunFinding) -> Table {
    let mut lines =
        Lines { table: Table::new(COLUMNS.map(Column::text).to_vec()), phase: String::new(), job: String::new() };
    for phase in &finding.phases {
        lines.phase = phase.jobs.join(", ");
        lines.phase(phase);
    }
    for job in &finding.merged_jobs {
        let phase = finding.phases.get(job.phase);
        lines.phase = phase.map(|phase| phase.jobs.join(", ")).unwrap_or_default();
        lines.job.clone_from(&job.name);
        lines.job(job);
    }
    lines.table
}

struct Lines {
    table: Table,
    phase: String,
    job: String,
}

/// A number with the ends of its interval.
type Ends = (Option<f64>, Option<f64>, Option<f64>);

impl Lines {
    fn value(&mut self, metric: &str, unit: &str, value: Option<f64>) {
        self.line(metric, "", None, unit, (value, None, None), "");
    }

    fn line(&mut self, metric: &str, of: &str, at: Option<f64>, unit: &str, (value, low, high): Ends, reason: &str) {
        let mut cells = [self.phase.as_str(), &self.job, metric, of].map(Cell::from).to_vec();
        cells.extend([Cell::number(at), Cell::from(unit)]);
        cells.extend([value, low, high].map(Cell::number));
        cells.push(Cell::from(reason));
        self.table.row(cells);
    }

    fn phase(&mut self, phase: &PhaseFinding) {
        let count = |value: Option<u64>| value.map(|value| value as f64);
        let per_io = (phase.cycles_per_io, phase.cycles_per_io_low, phase.cycles_per_io_high);
        self.line("cycles_per_io", "", None, "cycles", per_io, "");
        let per_byte = (phase.cycles_per_byte, phase.cycles_per_byte_low, phase.cycles_per_byte_high);
        self.line("cycles_per_byte", "", None, "cycles", per_byte, "");
        self.line("cycles", "", None, "cycles", (phase.cycles, phase.cycles_low, phase.cycles_high), "");
        let switches = phase.context_switches_per_io;
        let switches = (switches, phase.context_switches_per_io_low, phase.context_switches_per_io_high);
        let reason = phase.context_switches_reason.as_deref().unwrap_or_default();
        self.line("context_switches_per_io", "", None, "switches", switches, reason);
        for (metric, unit, value) in [
            ("cycles_per_io_gross", "cycles", phase.cycles_per_io_gross),
            ("cycles_per_io_background", "cycles", phase.cycles_per_io_background),
            ("thread_cycles_per_io", "cycles", phase.thread_cycles_per_io),
            ("own_context_switches_per_io", "switches", phase.own_context_switches_per_io),
            ("ios", "I/Os", count(phase.ios)),
            ("bytes", "bytes", count(phase.bytes)),
            ("iops", "I/Os per second", phase.iops),
            ("bytes_per_second", "bytes per second", phase.bytes_per_second),
            ("busy_cpus", "CPUs", phase.busy_cpus),
            ("wall_seconds", "seconds", Some(phase.wall_seconds)),
        ] {
            self.value(metric, unit, value);
        }
        if let Some(then) = &phase.stored {
            let ends = |change: Option<UnpairedChange>| {
                change.map_or((None, None, None), |change| (Some(change.change), change.low, change.high))
            };
            for (metric, unit, value, change) in [
                ("cycles_per_io", "cycles", then.cycles_per_io, ends(then.cycles_per_io_change)),
                ("cycles", "cycles", then.cycles, ends(then.cycles_change)),
                ("iops", "I/Os per second", then.iops, (then.iops_change, None, None)),
            ] {
                self.line(metric, "stored", None, unit, (value, None, None), "");
                self.line(&format!("{metric}_change"), "stored", None, "fraction", change, "");
            }
        }
        for reading in &phase.by_meter_detail {
            let found = reading.cycles_per_io;
            let ends = (found.map(|it| it.value), found.and_then(|it| it.low), found.and_then(|it| it.high));
            let of = format!("meter {}", reading.name);
            self.line("cycles_per_io", &of, None, "cycles", ends, reading.reason.as_deref().unwrap_or_default());
            if let Some(found) = reading.cycles_per_execution {
                let ends = (Some(found.value), found.low, found.high);
                self.line("cycles_per_execution", &of, None, "cycles", ends, "");
            }
        }
        for account in &phase.accounts {
            let of = format!("account {}", account.name);
            self.line("cycles_per_io", &of, None, "cycles", (Some(account.cycles_per_io), None, None), "");
        }
        for (name, found) in &phase.events_per_io {
            let ends = (Some(found.value), found.low, found.high);
            self.line("per_io", &format!("event {name}"), None, "events", ends, "");
        }
        for regime in &phase.regimes {
            let at = Some(regime.begin_seconds);
            let cost = (regime.cycles_per_io, regime.cycles_per_io_low, regime.cycles_per_io_high);
            self.line("cycles_per_io", "regime", at, "cycles", cost, "");
            self.line("iops", "regime", at, "I/Os per second", (regime.iops, None, None), "");
        }
        for probe in &phase.probes {
            let (of, reason) = (format!("probe {}", probe.name), probe.reason.as_deref().unwrap_or_default());
            let rate = (probe.per_second, probe.per_second_low, probe.per_second_high);
            self.line("per_second", &of, None, &probe.unit, rate, reason);
            self.line("per_io", &of, None, &probe.unit, (probe.per_io, probe.per_io_low, probe.per_io_high), reason);
            self.line("mean", &of, None, &probe.unit, (probe.mean, probe.mean_low, probe.mean_high), reason);
            for &(seconds, value) in &probe.series {
                self.line("window", &of, Some(seconds), &probe.unit, (Some(value), None, None), "");
            }
        }
        for point in &phase.series {
            let at = Some(point.seconds);
            self.line("iops", "window", at, "I/Os per second", (point.iops, None, None), "");
            self.line("cycles_per_io", "window", at, "cycles", (point.cycles_per_io, None, None), "");
            self.line("busy_cpus", "window", at, "CPUs", (point.busy_cpus, None, None), "");
        }
    }

    fn job(&mut self, job: &JobFinding) {
        for (metric, unit, value) in [
            ("ios", "I/Os", Some(job.ios as f64)),
            ("bytes", "bytes", Some(job.bytes as f64)),
            ("errors", "I/Os", Some(job.errors as f64)),
            ("iops", "I/Os per second", Some(job.iops)),
            ("bytes_per_second", "bytes per second", Some(job.bytes_per_second)),
            ("thread_cycles_per_io", "cycles", job.thread_cycles_per_io),
            ("ios_per_crossing", "I/Os", job.ios_per_crossing),
        ] {
            self.value(metric, unit, value);
        }
        self.latency("", &job.latency_ns);
        for (of, direction) in [("read", &job.read), ("write", &job.write), ("trim", &job.trim)] {
            if direction.ios > 0 {
                self.latency(of, &direction.latency_ns);
            }
        }
        for (stage, latency) in job.stages_ns.iter().flat_map(|stages| stages.named()) {
            self.latency(stage, latency);
        }
    }

    fn latency(&mut self, of: &str, latency: &LatencyFinding) {
        let LatencyFinding { mean, p50, p90, p99, p999, p9999, max, .. } = *latency;
        let names = ["mean", "p50", "p90", "p99", "p999", "p9999", "max"];
        for (name, value) in names.into_iter().zip([mean, p50, p90, p99, p999, p9999, max]) {
            self.line(&format!("latency_{name}"), of, None, "nanoseconds", (value, None, None), "");
        }
    }
}
