//! For tests: a kernel that was upgraded.

use crate::history::{ChangePoint, Expected, Experiment, HistoryFinding, Level, Member, Point, Series};
use model::stats::Estimate;

fn estimate(value: f64, part: f64) -> Estimate {
    Estimate { value, low: Some(value - value.abs() * part), high: Some(value + value.abs() * part) }
}

fn series(metric: &str, unit: &str, levels: [f64; 2]) -> Series {
    let value = |record: usize| if record < 5 { levels[0] } else { levels[1] } * (1.0 + 0.002 * (record % 3) as f64);
    let level = |first: usize, last: usize, value| Level {
        first,
        last,
        records: last - first + 1,
        value: estimate(value, 0.01),
    };
    Series {
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        points: (0..8).map(|record| Point { record, value: estimate(value(record), 0.02) }).collect(),
        levels: vec![level(0, 4, levels[0]), level(5, 7, levels[1])],
        changes: vec![ChangePoint { record: 5, change: estimate(levels[1] / levels[0] - 1.0, 0.1), p_value: 0.001 }],
        expected: Some(Expected { low: levels[1] * 0.97, high: levels[1] * 0.99, is_last_outside: metric == "iops" }),
        ..Series::default()
    }
}

pub fn upgraded() -> HistoryFinding {
    let record = |day: usize| Member {
        path: format!("iotoll-runs/day{day}"),
        started_unix_seconds: 1_795_000_000.0 + 86_400.0 * day as f64,
        iotoll_version: "0.1.0".to_owned(),
        method_version: 3,
        kernel: if day < 5 { "6.1.0" } else { "6.12.1" }.to_owned(),
        cpus: "2 × AMD EPYC".to_owned(),
        differs: if day == 5 { vec!["kernel 6.1.0 → 6.12.1".to_owned()] } else { Vec::new() },
    };
    let zero = Series {
        metric: "context_switches_per_io".to_owned(),
        unit: "switches/I/O".to_owned(),
        points: (0..8).map(|record| Point { record, value: Estimate::bare(0.0) }).collect(),
        ..Series::default()
    };
    let experiment = Experiment {
        kind: "cost".to_owned(),
        command_line: ["run", "job.fio"].map(str::to_owned).to_vec(),
        records: (0..8).map(record).collect(),
        series: vec![
            series("cycles_per_io", "cycles/I/O", [30e3, 33e3]),
            series("iops", "I/O/s", [112e3, 101e3]),
            zero,
        ],
        warnings: Vec::new(),
    };
    HistoryFinding {
        experiments: vec![experiment],
        alone: vec!["iotoll-runs/other".to_owned()],
        incomplete: vec!["iotoll-runs/cut".to_owned()],
    }
}
