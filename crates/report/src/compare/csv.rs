//! A comparison as CSV (RFC 4180): a line for each cell, arm and metric, in raw numbers.

use super::contents;
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding};
use model::experiment::Metric;

/// The columns behind those of the axes.
const COLUMNS: [&str; 28] = [
    "arm",
    "metric",
    "unit",
    "baseline",
    "candidate",
    "change",
    "low",
    "high",
    "mde80",
    "detected",
    "verdict",
    "p_value",
    "typical_change",
    "typical_low",
    "typical_high",
    "shape_changed",
    "seconds_to_decide",
    "units",
    "rounds",
    "seed",
    "reason",
    "stored_baseline",
    "environment_change",
    "environment_low",
    "environment_high",
    "total_change",
    "total_low",
    "total_high",
];

/// The table with its head. What is unknown is an empty field.
pub fn csv(finding: &CompareFinding) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let axes = contents::axes(finding);
    let head = axes.iter().map(|axis| axis_column(axis)).chain(COLUMNS.map(str::to_owned));
    let mut written = writer.write_record(head);
    for cell in &finding.cells {
        for metric in Metric::ALL {
            let Some(found) = contents::metric(cell, metric) else { continue };
            let values = axes.iter().map(|axis| cell.cell.get(*axis).map_or_else(String::new, |value| bare(value)));
            let fields = fields(finding, cell, metric, found);
            written = written.and_then(|()| writer.write_record(values.chain(fields)));
        }
    }
    // Writing to memory fails in no way that a reader could mend: what there is of the table is the answer.
    let bytes = if written.is_ok() { writer.into_inner().unwrap_or_default() } else { Vec::new() };
    String::from_utf8(bytes).unwrap_or_default()
}

/// The name of an axis, apart from the names of the other columns.
fn axis_column(axis: &str) -> String {
    let axis = bare(axis);
    if COLUMNS.contains(&axis.as_str()) { format!("axis_{axis}") } else { axis }
}

fn fields(finding: &CompareFinding, cell: &CellFinding, metric: Metric, found: &MetricFinding) -> [String; 28] {
    let number = |value: Option<f64>| value.filter(|value| value.is_finite()).map(|value| value.to_string());
    let number = |value: Option<f64>| number(value).unwrap_or_default();
    let verdict = serde_json::to_value(found.verdict).ok();
    let verdict = verdict.as_ref().and_then(|verdict| verdict.as_str()).unwrap_or_default().to_owned();
    let typical = found.typical;
    let stored = found.stored;
    let (environment, total) = (stored.map(|stored| stored.environment), stored.map(|stored| stored.total));
    [
        bare(&cell.arm),
        metric.name().to_owned(),
        metric.unit().to_owned(),
        number(found.baseline),
        number(found.candidate),
        number(found.change),
        number(found.low),
        number(found.high),
        number(found.mde80),
        found.detected.to_string(),
        verdict,
        number(found.p_value),
        number(typical.map(|typical| typical.change)),
        number(typical.map(|typical| typical.low)),
        number(typical.map(|typical| typical.high)),
        found.shape_changed.to_string(),
        number(found.seconds_to_decide),
        found.units.to_string(),
        finding.rounds.to_string(),
        finding.seed.to_string(),
        found.reason.as_deref().map(bare).unwrap_or_default(),
        number(stored.map(|stored| stored.baseline)),
        number(environment.map(|environment| environment.change)),
        number(environment.and_then(|environment| environment.low)),
        number(environment.and_then(|environment| environment.high)),
        number(total.map(|total| total.change)),
        number(total.and_then(|total| total.low)),
        number(total.and_then(|total| total.high)),
    ]
}

/// A name without control characters: the table may be shown on a terminal.
fn bare(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<Vec<String>> {
        let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    /// The field of a column in a row.
    fn field<'a>(rows: &'a [Vec<String>], row: usize, column: &str) -> &'a str {
        let place = rows[0].iter().position(|head| head == column).unwrap();
        &rows[row][place]
    }

    #[test]
    fn a_line_for_each_cell_arm_and_metric() {
        for (name, finding) in fixture::all() {
            let rows = read(&csv(&finding));
            let expected: usize = finding.cells.iter().map(|cell| cell.metrics.len()).sum();
            assert_eq!(rows.len(), expected + 1, "{name}");
        }
    }

    #[test]
    fn numbers_are_raw_and_unknown_ones_are_empty() {
        let finding = fixture::sweep();
        let rows = read(&csv(&finding));
        let first = &finding.cells[0];
        let cycles = &first.metrics["cycles_per_io"];
        assert_eq!((field(&rows, 1, "rw"), field(&rows, 1, "bs")), ("randread", "4k"));
        assert_eq!(field(&rows, 1, "metric"), "cycles_per_io");
        assert_eq!(field(&rows, 1, "change").parse::<f64>().unwrap(), cycles.change.unwrap());
        let rows = read(&csv(&fixture::unmeasured()));
        let row = rows.iter().position(|row| row.contains(&"latency_p999".to_owned())).unwrap();
        assert_eq!(field(&rows, row, "change"), "");
        assert!(field(&rows, row, "reason").starts_with("not enough samples"));
    }

    #[test]
    fn what_a_stored_record_says_has_its_columns() {
        let finding = fixture::stored();
        let rows = read(&csv(&finding));
        let stored = finding.cells[0].metrics["cycles_per_io"].stored.unwrap();
        let environment = field(&rows, 1, "environment_change").parse::<f64>().unwrap();
        assert_eq!((field(&rows, 1, "metric"), environment), ("cycles_per_io", stored.environment.change));
        assert_eq!(field(&rows, 1, "total_high").parse::<f64>().unwrap(), stored.total.high.unwrap());
        assert_eq!(field(&read(&csv(&fixture::options())), 1, "stored_baseline"), "");
    }

    #[test]
    fn an_axis_does_not_take_the_name_of_a_column() {
        assert_eq!([axis_column("bs"), axis_column("metric")], ["bs", "axis_metric"]);
    }

    proptest! {
        #[test]
        fn hostile_names_are_read_back(number in any::<f64>(), text in any::<String>()) {
            let finding = fixture::hostile(number, &text);
            let table = csv(&finding);
            let escapes = table.contains('\u{1b}');
            prop_assert!(!escapes);
            let rows = read(&table);
            prop_assert!(rows.iter().skip(1).all(|row| row.iter().any(|field| *field == bare(&text))));
        }
    }
}
