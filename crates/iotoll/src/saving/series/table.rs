//! A recording as named columns.

use model::ftq::FtqRecord;
use std::collections::BTreeSet;

/// Named columns of equal length.
#[derive(Debug, PartialEq)]
pub struct Table {
    pub columns: Vec<Column>,
}

#[derive(Debug, PartialEq)]
pub struct Column {
    /// With its unit at the end.
    pub name: String,
    pub values: Values,
}

/// The values of a column.
#[derive(Debug, PartialEq)]
pub enum Values {
    Whole(Vec<i64>),
    /// A missing one could not be read.
    Number(Vec<Option<f64>>),
}

impl Table {
    /// The columns of a recording: time, quanta since the reading before, what the worker did since then and in all, and the
    /// probes as the kernel gave them (counters are cumulative).
    pub fn of(record: &FtqRecord) -> Self {
        let rows =
            || record.chunks.iter().flat_map(|chunk| chunk.at.iter().map(|at| at.0).zip(chunk.amount.iter().copied()));
        let quantum = record.header.plan.quantum.0.max(1);
        let unit = plain(&record.header.unit);
        let (mut at, mut span, mut done, mut total) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut before = None;
        for (time, amount) in rows() {
            // A reading belongs to the deadline before it.
            let (quanta, more) = before.map_or((0, 0), |(earlier, had): (u64, u64)| {
                (time / quantum - earlier / quantum, amount.saturating_sub(had))
            });
            for (column, value) in [(&mut at, time), (&mut span, quanta), (&mut done, more), (&mut total, amount)] {
                column.push(i64::try_from(value).unwrap_or(i64::MAX));
            }
            before = Some((time, amount));
        }
        let named = [("time_ns".to_owned(), at), ("span_quanta".to_owned(), span)];
        let named = named.into_iter().chain([(format!("done_{unit}"), done), (format!("total_{unit}"), total)]);
        let mut columns: Vec<Column> =
            named.map(|(name, values)| Column { name, values: Values::Whole(values) }).collect();
        let mut taken: BTreeSet<String> = columns.iter().map(|column| column.name.clone()).collect();
        for (index, probe) in record.header.probes.iter().enumerate() {
            let column = record.chunks.iter().filter_map(|chunk| chunk.probes.get(index)).flatten();
            let name = unique(&column_name(&probe.name, &probe.unit), &mut taken);
            columns.push(Column { name, values: Values::Number(column.copied().collect()) });
        }
        Self { columns }
    }
}

/// `net.eth0.rx_bytes` in bytes is `net_eth0_rx_bytes`, `dirty` in pages is `dirty_pages`: a name that SQL and Python take
/// without quotes, with the unit at its end.
fn column_name(name: &str, unit: &str) -> String {
    let (name, unit) = (plain(name), plain(unit));
    if unit.is_empty() || name == unit || name.ends_with(&format!("_{unit}")) { name } else { format!("{name}_{unit}") }
}

fn plain(text: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let text: String = text.chars().map(word).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) { format!("_{text}") } else { text }
}

fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = |number: u32| if number == 1 { name.to_owned() } else { format!("{name}_{number}") };
    let free = (1..).map(numbered).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_in_their_unit() {
        assert_eq!(column_name("dirty", "pages"), "dirty_pages");
        assert_eq!(column_name("net.eth0.rx_bytes", "bytes"), "net_eth0_rx_bytes");
        assert_eq!(column_name("gauge:file:/x:([0-9]+)", ""), "gauge_file__x___0_9___");
        assert_eq!(column_name("9p", "I/Os"), "_9p_i_os");
        let mut taken = BTreeSet::new();
        assert_eq!([unique("a", &mut taken), unique("a", &mut taken)], ["a", "a_2"]);
    }
}
