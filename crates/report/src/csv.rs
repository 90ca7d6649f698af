//! A document's data as CSV (RFC 4180), in raw numbers. An unknown value is an empty field.

use crate::document::{Cell, Document, Raw, Row};

/// The table with its header.
pub fn csv(document: &Document) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut written = writer.write_record(document.data.columns.iter().map(|column| bare(&column.head)));
    for row in &document.data.rows {
        if let Row::Cells(_, cells) = row {
            written = written.and_then(|()| writer.write_record(cells.iter().map(field)));
        }
    }
    // Writing to memory cannot fail in practice; if it does, the result is an empty table.
    let bytes = if written.is_ok() { writer.into_inner().unwrap_or_default() } else { Vec::new() };
    String::from_utf8(bytes).unwrap_or_default()
}

fn field(cell: &Cell) -> String {
    match cell.raw {
        Raw::Number(value) => value.to_string(),
        Raw::Interval(interval) => interval.value.to_string(),
        Raw::None => bare(&cell.text),
    }
}

/// A name without control characters, because the table may be shown on a terminal.
fn bare(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{document, fixture};
    use model::comparison::finding::{CellFinding, ProbeComparison};
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
            let rows = read(&csv(&document(&finding)));
            let values =
                |probe: &ProbeComparison| [probe.per_io, probe.per_second, probe.mean].into_iter().flatten().count();
            let of_cell = |cell: &CellFinding| {
                let values: usize = cell.probes.iter().map(values).sum();
                cell.metrics.len() + values + cell.accounts.len() + cell.events.len()
            };
            let expected: usize = finding.cells.iter().map(of_cell).sum();
            assert_eq!(rows.len(), expected + 1, "{name}");
        }
    }

    #[test]
    fn numbers_are_raw_and_unknown_ones_are_empty() {
        let finding = fixture::sweep();
        let rows = read(&csv(&document(&finding)));
        let first = &finding.cells[0];
        let cycles = &first.metrics["cycles_per_io"];
        assert_eq!((field(&rows, 1, "rw"), field(&rows, 1, "bs")), ("randread", "4k"));
        assert_eq!(field(&rows, 1, "metric"), "cycles_per_io");
        assert_eq!(field(&rows, 1, "change").parse::<f64>().unwrap(), cycles.change.unwrap());
        let explained = fixture::explained();
        let rows = read(&csv(&document(&explained)));
        let row = rows.iter().position(|row| row.contains(&"account softirq net_rx".to_owned())).unwrap();
        let of = |column| field(&rows, row, column).to_owned();
        assert_eq!(["change", "difference", "difference_low", "detected"].map(of), ["", "-9", "-13", "true"]);
        let rows = read(&csv(&document(&fixture::unmeasured())));
        let row = rows.iter().position(|row| row.contains(&"latency_p999".to_owned())).unwrap();
        assert_eq!(field(&rows, row, "change"), "");
        assert!(field(&rows, row, "reason").starts_with("not enough samples"));
    }

    #[test]
    fn a_stored_record_has_columns() {
        let finding = fixture::stored();
        let rows = read(&csv(&document(&finding)));
        let stored = finding.cells[0].metrics["cycles_per_io"].stored.unwrap();
        let environment = field(&rows, 1, "environment_change").parse::<f64>().unwrap();
        assert_eq!((field(&rows, 1, "metric"), environment), ("cycles_per_io", stored.environment.change));
        assert_eq!(field(&rows, 1, "total_high").parse::<f64>().unwrap(), stored.total.high.unwrap());
        assert_eq!(field(&read(&csv(&document(&fixture::options()))), 1, "stored_baseline"), "");
    }

    #[test]
    fn every_number_of_a_run_has_its_line() {
        for (name, finding) in crate::cost::fixture::all() {
            let rows = read(&csv(&crate::cost::document(&finding)));
            assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{name}");
            assert!(rows.len() > 10 * finding.phases.len(), "{name}");
        }
        let rows = read(&csv(&crate::cost::document(&crate::cost::fixture::psync_4k())));
        let (metric, of) = ("cycles_per_io", "meter timer_list");
        let row = (0..rows.len()).find(|row| field(&rows, *row, "metric") == metric && field(&rows, *row, "of") == of);
        assert_eq!(
            ["phase", "value", "unit"].map(|column| field(&rows, row.unwrap(), column)),
            ["randread-4k", "6884", "cycles"]
        );
    }

    proptest! {
        #[test]
        fn hostile_names_are_read_back(number in any::<f64>(), text in any::<String>()) {
            let finding = fixture::hostile(number, &text);
            let table = csv(&document(&finding));
            let escapes = table.contains('\u{1b}');
            prop_assert!(!escapes);
            let rows = read(&table);
            prop_assert!(rows.iter().skip(1).all(|row| row.iter().any(|field| *field == bare(&text))));
        }
    }
}
