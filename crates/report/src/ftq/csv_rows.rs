//! All numbers of a recording in raw units, one row each.

use crate::document::{Cell, Column, Table};
use model::ftq::FtqFinding;

/// The columns. `of` is the number of a period or a stall, or the name of a probe; `seconds` a time since the beginning.
const COLUMNS: [&str; 5] = ["metric", "of", "seconds", "unit", "value"];

pub(super) fn table(finding: &FtqFinding) -> Table {
    let mut lines = Lines(Table::new(COLUMNS.map(Column::text).to_vec()));
    lines.whole(finding);
    for (place, level) in finding.levels.iter().enumerate() {
        let (of, unit) = (format!("level {}", place + 1), format!("{}/s", finding.unit));
        lines.line("level_per_second", &of, Some(level.begin_seconds), &unit, Some(level.amount_per_second));
    }
    lines.periods(finding);
    for (place, stall) in finding.stalls.iter().enumerate() {
        let of = format!("stall {}", place + 1);
        lines.line("stall_seconds", &of, Some(stall.at_seconds), "seconds", Some(stall.seconds));
        lines.line("stall_lost_seconds", &of, Some(stall.at_seconds), "seconds", Some(stall.lost_seconds));
    }
    for cause in &finding.noise.by_cause {
        lines.line("interruptions", &cause.probe, None, &cause.unit, Some(cause.count));
    }
    for probe in &finding.probes {
        let unit = if probe.counter { format!("{}/s", probe.unit) } else { probe.unit.clone() };
        let of_reading = if probe.unit == "ns" { &probe.unit } else { &unit };
        lines.line("probe_mean", &probe.name, None, &unit, probe.mean);
        lines.line("probe_least", &probe.name, None, of_reading, probe.least);
        lines.line("probe_greatest", &probe.name, None, of_reading, probe.greatest);
    }
    for thread in &finding.threads {
        let per_second = format!("{}/s", finding.unit);
        lines.line("thread_per_second", &thread.name, None, &per_second, Some(thread.bytes / thread.seconds));
        let at = Some(thread.at_seconds);
        lines.line("thread_standstill_seconds", &thread.name, at, "seconds", Some(thread.standstill_seconds));
    }
    lines.against(finding);
    lines.0
}

struct Lines(Table);

impl Lines {
    fn line(&mut self, metric: &str, of: &str, at: Option<f64>, unit: &str, value: Option<f64>) {
        let cells = [Cell::from(metric), Cell::from(of), Cell::number(at), Cell::from(unit), Cell::number(value)];
        self.0.row(cells.to_vec());
    }

    fn whole(&mut self, finding: &FtqFinding) {
        let count = |value: u64| Some(value as f64);
        let nanos = |nanos: model::unit::Nanos| Some(nanos.as_f64() / 1e9);
        let (unit, noise, recorder) = (finding.unit.as_str(), &finding.noise, &finding.recorder);
        let per_second = format!("{unit}/s");
        for (metric, unit, value) in [
            ("quantum", "seconds", Some(finding.quantum_seconds)),
            ("seconds", "seconds", Some(finding.seconds)),
            ("quanta", "quanta", count(finding.quanta)),
            ("readings", "readings", count(finding.readings)),
            ("late", "readings", count(finding.late)),
            ("longest_span", "quanta", count(finding.longest_span)),
            ("amount", unit, count(finding.amount)),
            ("amount_per_second", &per_second, Some(finding.amount_per_second)),
            ("undisturbed_per_quantum", unit, Some(noise.undisturbed_per_quantum)),
            ("available_fraction", "", noise.available_fraction),
            ("lost_seconds", "seconds", noise.lost_seconds),
            ("longest_stall_seconds", "seconds", noise.longest_stall_seconds),
            ("stall_count", "stalls", count(finding.stall_count)),
            ("recorder_cpu_seconds", "seconds", nanos(recorder.cpu_nanos)),
            ("recorder_reading_seconds", "seconds", nanos(recorder.reading_nanos)),
            ("recorder_longest_reading_seconds", "seconds", nanos(recorder.longest_reading_nanos)),
        ] {
            self.line(metric, "", None, unit, value);
        }
    }

    fn periods(&mut self, finding: &FtqFinding) {
        for (place, period) in finding.periodic.iter().enumerate() {
            let of = format!("period {}", place + 1);
            for (metric, unit, value) in [
                ("period_seconds", "seconds", period.period_seconds),
                ("period_stall_seconds", "seconds", period.stall_seconds),
                ("period_depth", "", period.depth),
                ("period_false_alarm", "", period.false_alarm),
                ("period_phase", "", period.phase),
                ("period_seen", "periods", period.seen as f64),
                ("period_of", "periods", period.of as f64),
            ] {
                self.line(metric, &of, None, unit, Some(value));
            }
            for label in &period.labels {
                let of = format!("{of} {}", label.probe);
                self.line("period_during", &of, None, &label.unit, Some(label.during));
                self.line("period_elsewhere", &of, None, &label.unit, Some(label.elsewhere));
                self.line("period_times_chance", &of, None, "", Some(label.times_chance));
                self.line("period_label_false_alarm", &of, None, "", Some(label.false_alarm));
            }
        }
    }

    fn against(&mut self, finding: &FtqFinding) {
        let Some(changes) = &finding.against else { return };
        for (metric, periods) in [("period_appeared", &changes.appeared), ("period_went", &changes.went)] {
            for period in periods {
                self.line(metric, &changes.stored, None, "seconds", Some(*period));
            }
        }
        for kept in &changes.kept {
            self.line("period_kept", &changes.stored, None, "seconds", Some(kept.period_seconds));
            self.line("period_kept_stall", &changes.stored, None, "seconds", Some(kept.stall_seconds));
            self.line("period_kept_stored_stall", &changes.stored, None, "seconds", Some(kept.stored_stall_seconds));
        }
    }
}
