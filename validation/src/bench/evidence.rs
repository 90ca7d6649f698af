//! The result of a validation: tables for docs/validation/output, notes, and criteria that were met or not.

use super::Options;
use model::stats::Estimate;
use std::time::SystemTime;

/// Tables, notes and criteria, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    parts: Vec<String>,
    /// Whether each was met, and its words.
    criteria: Vec<(bool, String)>,
}

impl Evidence {
    /// Adds a table; every row has as many cells as the header.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut table = line(&header.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>());
        let columns = header.iter().enumerate().map(|(place, _)| if place == 0 { "---|" } else { "---:|" });
        table += &format!("|{}\n", columns.collect::<String>());
        rows.iter().for_each(|row| table += &line(row));
        self.parts.push(table);
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.parts.push(text.into() + "\n");
    }

    /// Adds a criterion, and whether it was met.
    pub fn criterion(&mut self, met: bool, text: impl Into<String>) {
        self.criteria.push((met, text.into()));
    }

    /// Whether all criteria were met.
    pub fn met(&self) -> bool {
        self.criteria.iter().all(|(met, _)| *met)
    }

    /// The heading: date, machine, and command.
    pub fn heading(&self, name: &str, options: &Options) -> String {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let set: String = options.set.iter().map(|(name, value)| format!(" --{name} {value}")).collect();
        format!(
            "### {name}\n\n{}, Linux {}, {}: `cargo run --release -p validation -- {name} --seconds {} --rounds {} \
             --seed {}{set}`\n",
            now.get(..10).unwrap_or(&now),
            kernel(),
            cpus(),
            options.seconds,
            options.rounds,
            options.seed
        )
    }

    /// The tables, notes, and criteria.
    pub fn body(&self) -> String {
        let line = |(met, text): &(bool, String)| format!("- {}: {text}\n", if *met { "shown" } else { "NOT SHOWN" });
        let criteria: String = self.criteria.iter().map(line).collect();
        let parts = self.parts.iter().cloned().chain((!criteria.is_empty()).then_some(criteria));
        parts.collect::<Vec<_>>().join("\n")
    }
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(|_| "(unknown)".to_owned(), |release| release.trim().to_owned())
}

fn cpus() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = std::thread::available_parallelism().map_or(0, |count| count.get());
    format!("{count} × {}", model.map_or("unknown CPU", |(_, model)| model.trim()))
}

/// `1.43 [1.39, 1.47]`.
pub fn interval(estimate: &Estimate, decimals: usize) -> String {
    let value = format!("{:.decimals$}", estimate.value);
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{value} [{low:.decimals$}, {high:.decimals$}]"),
        _ => value,
    }
}

/// A ratio as a change: `+0.4 [−0.1, +0.9] %`.
pub fn change(ratio: &Estimate) -> String {
    let change = |value: f64| format!("{:+.1}", (value - 1.0) * 100.0);
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}] %", change(ratio.value), change(low), change(high)),
        _ => format!("{} %", change(ratio.value)),
    }
}

/// A number, or a dash if unknown.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_markdown_and_lists_unmet_criteria() {
        let mut evidence = Evidence::default();
        evidence.table(&["load", "IOPS"], &[vec!["null".to_owned(), "1.52 M".to_owned()]]);
        evidence.note("One run.");
        evidence.criterion(true, "faster");
        assert!(evidence.met());
        evidence.criterion(false, "smaller");
        assert!(!evidence.met());
        assert_eq!(
            evidence.body(),
            "| load | IOPS |\n|---|---:|\n| null | 1.52 M |\n\nOne run.\n\n- shown: faster\n- NOT SHOWN: smaller\n"
        );
    }

    #[test]
    fn numbers_are_short() {
        let estimate = Estimate { value: 1.026, low: Some(1.0), high: Some(1.05) };
        assert_eq!(interval(&estimate, 2), "1.03 [1.00, 1.05]");
        assert_eq!(change(&estimate), "+2.6 [+0.0, +5.0] %");
        assert_eq!(number(None, 1), "–");
    }
}
