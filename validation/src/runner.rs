//! Runs the experiments of `validation/experiments/NAME.toml`: commands under conditions, values from their JSON by path, tables and claims.
//!
//! Each part of an experiment has axes, whose products are the rows, and arms, which are shell lines (`{round}` is the round's number). In each round, every arm of every row
//! is measured once; what is the same for several rows is measured once for all. A formula makes a number of the values of one row in one
//! round, a statistic makes a figure of those of all rounds, and a claim holds such numbers or figures against a bound.

mod document;
mod formula;
mod readers;
mod serving;
mod statistic;

use crate::bench::Bench;
use crate::bench::evidence::{Evidence, number};
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::cell::Cell as Flag;
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// Substitutions: `{NAME}`.
type Names = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub shows: String,
    /// Default length of one measurement.
    pub seconds: f64,
    /// Default number of rounds.
    pub rounds: usize,
    /// It measures no speed, so a debug build does as well.
    #[serde(default)]
    pub any_build: bool,
    /// A function simulates it (`validations/coverage.rs`).
    #[serde(default)]
    pub simulated: bool,
    /// Texts for `{NAME}`; `--NAME VALUE` changes one.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Servers that run during all rounds: address and shell line, in which `{port}` is free. `{NAME}` is the address.
    #[serde(default)]
    serve: BTreeMap<String, [String; 2]>,
    /// Shell lines before the servers start, when they listen, and in any case at the end.
    #[serde(default)]
    setup: Vec<String>,
    #[serde(default)]
    fill: Vec<String>,
    #[serde(default)]
    cleanup: Vec<String>,
    #[serde(default)]
    part: Vec<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    #[serde(default)]
    note: String,
    /// Each a name and its places; the fields of a place are names, too.
    #[serde(default)]
    axes: Vec<Vec<Value>>,
    /// Runs with the same text stay together in a round.
    #[serde(default)]
    together: String,
    /// Rounds of this part for each of the option.
    #[serde(default = "one")]
    times: usize,
    /// Paths of every arm.
    #[serde(default)]
    values: Names,
    arm: BTreeMap<String, Arm>,
    #[serde(default)]
    tables: Vec<Vec<Column>>,
    #[serde(default)]
    claim: Vec<Claim>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arm {
    run: String,
    /// A shell line that runs meanwhile.
    #[serde(default)]
    beside: String,
    /// A shell line that runs before.
    #[serde(default)]
    before: String,
    #[serde(default)]
    values: Names,
    /// One of [`readers::TABLE`], and its words.
    #[serde(default)]
    read: Vec<String>,
    /// It is measured in these many rounds only.
    #[serde(default = "every")]
    most_rounds: usize,
    /// Attempts if a value is missing.
    #[serde(default = "one")]
    attempts: usize,
}

fn one() -> usize {
    1
}

fn every() -> usize {
    usize::MAX
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Column {
    /// Head and text.
    Text(String, String),
    /// Head, statistic, formula, decimals.
    Figure(String, String, String, usize),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    says: String,
    /// The formula.
    of: String,
    /// The statistic of each row, as a bound may be: `["mean.high", "FORMULA"]`; without one, each round of each row is judged.
    #[serde(default)]
    by: String,
    at_most: Option<Value>,
    at_least: Option<Value>,
    /// Of 0, on both sides.
    within: Option<Value>,
    /// Part of all that must hold.
    #[serde(default = "all")]
    share: f64,
    /// Rows with the same text are judged together.
    #[serde(default)]
    per: String,
    /// Only the rows in which this name has a text.
    #[serde(default)]
    only: String,
    #[serde(default = "two")]
    decimals: usize,
}

fn all() -> f64 {
    1.0
}

fn two() -> usize {
    2
}

/// One command under its conditions, with all values that rows want of it: by path, in each round.
struct Cell {
    run: String,
    beside: String,
    before: String,
    read: Vec<String>,
    most_rounds: usize,
    attempts: usize,
    together: String,
    paths: Vec<String>,
}

/// Values of a command by path; none in a round in which it was not measured.
type Found = Option<BTreeMap<String, f64>>;

struct Row {
    names: Names,
    /// Of each arm its cell, and its values: name and path.
    arms: BTreeMap<String, (usize, Names)>,
}

impl Experiment {
    /// # Errors
    /// When there is no such file, or it is wrong.
    pub fn load(name: &str) -> anyhow::Result<Self> {
        let path = folder().join(format!("{name}.toml"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The names of all files.
    pub fn names() -> Vec<String> {
        let files = fs::read_dir(folder()).into_iter().flatten().flatten().map(|file| file.path());
        let names = files.filter(|path| path.extension().is_some_and(|it| it == "toml"));
        let mut names: Vec<String> = names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
        names.sort_unstable();
        names
    }

    pub fn run(&self, bench: &mut Bench) -> anyhow::Result<Evidence> {
        let mut names = self.names_of(bench)?;
        let cleanup = self.cleanup.iter().map(|line| fill(line, &names)).collect();
        let _cleanup = Cleanup { bench: bench.shell(), lines: cleanup };
        let lines = |lines: &[String], names: &Names| {
            lines.iter().try_for_each(|line| bench.output(bench.shell().arg(fill(line, names))).map(|_| ()))
        };
        lines(&self.setup, &names)?;
        let _servers = serving::start(bench, &self.serve, &mut names)?;
        lines(&self.fill, &names)?;
        let mut evidence = Evidence::default();
        for part in &self.part {
            part.run(bench, &names, &mut evidence)?;
        }
        Ok(evidence)
    }

    fn names_of(&self, bench: &Bench) -> anyhow::Result<Names> {
        let mut names: Names = self.set.iter().map(|(name, value)| (name.clone(), text_of(value))).collect();
        names.extend(bench.options.set.clone());
        let cpus = sys::schedule::allowed_cpus()?;
        ensure!(cpus.len() > 1, "this process may use only one CPU; allow it two (taskset, cpuset)");
        names.extend((0..).zip(&cpus).map(|(place, cpu)| (format!("cpu{place}"), cpu.to_string())));
        let own = [
            ("dir", bench.path("").display().to_string()),
            ("experiments", folder().display().to_string()),
            ("out", bench.path("out").display().to_string()),
            ("record", bench.path("record").display().to_string()),
            ("cpus", cpus.len().to_string()),
            ("seconds", bench.options.seconds.to_string()),
            ("length", format!("{}ms", (bench.options.seconds * 1e3).round())),
            ("rounds", bench.options.rounds.to_string()),
            ("seed", bench.options.seed.to_string()),
            ("pid", std::process::id().to_string()),
        ];
        names.extend(own.map(|(name, text)| (name.to_owned(), text)));
        Ok(names)
    }
}

fn folder() -> std::path::PathBuf {
    crate::workspace().join("validation/experiments")
}

/// Runs the lines when it is dropped, whatever happened.
struct Cleanup {
    bench: std::process::Command,
    lines: Vec<String>,
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        if !self.lines.is_empty() {
            // What was not set up cannot be undone, and that is no error here.
            let _ = self.bench.arg(self.lines.join("\n")).stderr(std::process::Stdio::null()).status();
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Replaces `{NAME}`, and `{FORMULA}` of names that are numbers. Other braces stay: they are somebody else's.
fn fill(text: &str, names: &Names) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        filled += before;
        let found = behind.split_once('}').and_then(|(inner, after)| {
            let number = |name: &str| -> anyhow::Result<f64> { Ok(names.get(name).context("no number")?.parse()?) };
            let text = match names.get(inner) {
                Some(text) => fill(text, names),
                None => formula::evaluate(inner, &number).ok()?.to_string(),
            };
            Some((text, after))
        });
        match found {
            Some((text, after)) => (filled, rest) = (filled + &text, after),
            None => (filled, rest) = (filled + "{", behind),
        }
    }
    filled + rest
}

impl Part {
    fn run(&self, bench: &mut Bench, names: &Names, evidence: &mut Evidence) -> anyhow::Result<()> {
        let (rows, cells) = self.plan(names)?;
        let together: Vec<&str> = cells.iter().map(|cell| cell.together.as_str()).collect();
        let block = |cell: &Cell| together.iter().position(|other| *other == cell.together).unwrap_or(0);
        let rounds = self.times * bench.options.rounds;
        let found = bench.in_rounds(
            rounds,
            &cells,
            block,
            |cell| cell.run.trim().replace('\n', " "),
            |bench, cell, number| {
                if number > cell.most_rounds { Ok(None) } else { cell.measure(bench, number).map(Some) }
            },
        )?;
        if !self.note.is_empty() {
            evidence.note(fill(&self.note, names));
        }
        for columns in &self.tables {
            let heads: Vec<String> = columns.iter().map(|column| fill(column.head(), names)).collect();
            let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
            let line = |row: &Row| columns.iter().map(|column| column.cell(row, &found)).collect::<anyhow::Result<_>>();
            evidence.table(&heads, &rows.iter().map(line).collect::<anyhow::Result<Vec<_>>>()?);
        }
        self.claim.iter().try_for_each(|claim| claim.judge(&rows, &found, evidence))
    }

    /// The rows, and the commands that they need, each once.
    fn plan(&self, names: &Names) -> anyhow::Result<(Vec<Row>, Vec<Cell>)> {
        let mut products = vec![names.clone()];
        for axis in &self.axes {
            let (name, places) = axis.split_first().context("an axis has a name and places")?;
            let name = text_of(name);
            let with = |names: &Names, place: &Value| {
                let mut names = names.clone();
                match place {
                    Value::Object(fields) => names.extend(fields.iter().map(|(field, value)| {
                        (if field == "name" { name.clone() } else { field.clone() }, text_of(value))
                    })),
                    value => _ = names.insert(name.clone(), text_of(value)),
                }
                names
            };
            products = products
                .iter()
                .flat_map(|names| places.iter().map(|place| with(names, place)).collect::<Vec<_>>())
                .collect();
        }
        let (mut rows, mut cells) = (Vec::new(), Vec::<Cell>::new());
        for names in products {
            let mut arms = BTreeMap::new();
            for (name, arm) in &self.arm {
                let [run, beside, before, together] =
                    [&arm.run, &arm.beside, &arm.before, &self.together].map(|text| fill(text, &names));
                let read: Vec<String> = arm.read.iter().map(|word| fill(word, &names)).collect();
                let values = self.values.iter().chain(&arm.values);
                let values: Names = values.map(|(value, path)| (value.clone(), fill(path, &names))).collect();
                let same = |cell: &Cell| {
                    (&cell.run, &cell.beside, &cell.before, &cell.read) == (&run, &beside, &before, &read)
                };
                let place = cells.iter().position(same).unwrap_or(cells.len());
                if place == cells.len() {
                    let (most_rounds, attempts, paths) = (arm.most_rounds, arm.attempts, Vec::new());
                    cells.push(Cell { run, beside, before, read, most_rounds, attempts, together, paths });
                }
                let paths = &mut cells.get_mut(place).context("a cell")?.paths;
                paths.extend(values.values().filter(|path| !paths.contains(path)).cloned().collect::<Vec<_>>());
                arms.insert(name.clone(), (place, values));
            }
            rows.push(Row { names, arms });
        }
        Ok((rows, cells))
    }
}

impl Cell {
    fn measure(&self, bench: &Bench, round: usize) -> anyhow::Result<BTreeMap<String, f64>> {
        let mut attempts = 1..=self.attempts;
        loop {
            let found = self.once(bench, round)?;
            attempts.next();
            if attempts.is_empty() || found.values().all(|value| !value.is_nan()) {
                return Ok(found);
            }
        }
    }

    fn once(&self, bench: &Bench, round: usize) -> anyhow::Result<BTreeMap<String, f64>> {
        let (out, record) = (bench.path("out"), bench.path("record"));
        let _ = (fs::remove_file(&out), fs::remove_dir_all(&record));
        if !self.before.is_empty() {
            bench.output(bench.shell().arg(&self.before))?;
        }
        let beside = (!self.beside.is_empty()).then(|| bench.beside(&self.beside)).transpose()?;
        let begun = Instant::now();
        let text = bench.output(bench.shell().arg(self.run.replace("{round}", &round.to_string())))?;
        let mut found = BTreeMap::from([("wall_seconds".to_owned(), begun.elapsed().as_secs_f64())]);
        drop(beside);
        let (mut documents, of_file) =
            (BTreeMap::new(), |path: &std::path::Path| document::parse(&fs::read_to_string(path)?));
        for path in &self.paths {
            let (source, path_there) =
                path.split_once(':').filter(|(source, _)| ["out", "record"].contains(source)).unwrap_or(("", path));
            if !documents.contains_key(source) {
                let document = match source {
                    "out" => of_file(&out),
                    "record" => of_file(&record.join("record.jsonl")),
                    _ => document::parse(&text),
                };
                documents.insert(source, document.with_context(|| format!("{}: its JSON", self.run))?);
            }
            let number = documents.get(source).map_or(f64::NAN, |document| document::number(document, path_there));
            found.insert(path.clone(), number);
        }
        found.extend(readers::read(bench, &self.read)?);
        Ok(found)
    }
}

impl Row {
    /// A formula in one round; `None` if a command was not measured in it.
    fn value(&self, formula: &str, found: &[Vec<Found>], round: usize) -> anyhow::Result<Option<f64>> {
        let missing = Flag::new(false);
        let look_up = |name: &str| {
            if let Some(number) = self.names.get(name).and_then(|text| text.parse().ok()) {
                return Ok(number);
            }
            let of_arm = name.split_once('.').and_then(|(arm, value)| Some((self.arms.get(arm)?, value)));
            let only = || self.arms.values().next().filter(|_| self.arms.len() == 1).map(|arm| (arm, name));
            let ((cell, paths), value) = of_arm.or_else(only).with_context(|| format!("no value {name}"))?;
            let Some(Some(values)) = found.get(*cell).and_then(|rounds| rounds.get(round)) else {
                missing.set(true);
                return Ok(f64::NAN);
            };
            let path = paths.get(value).map_or(value, String::as_str);
            values.get(path).copied().with_context(|| format!("no value {name}"))
        };
        let value = formula::evaluate(&fill(formula, &self.names), &look_up)?;
        Ok((!missing.get()).then_some(value))
    }

    /// A formula in all rounds.
    fn values(&self, formula: &str, found: &[Vec<Found>]) -> anyhow::Result<Vec<f64>> {
        let rounds = found.iter().map(Vec::len).max().unwrap_or(0);
        (0..rounds).filter_map(|round| self.value(formula, found, round).transpose()).collect()
    }
}

impl Column {
    fn head(&self) -> &str {
        match self {
            Self::Text(head, _) | Self::Figure(head, ..) => head,
        }
    }

    fn cell(&self, row: &Row, found: &[Vec<Found>]) -> anyhow::Result<String> {
        match self {
            Self::Text(_, text) => Ok(fill(text, &row.names)),
            Self::Figure(head, name, formula, decimals) => {
                let figure = statistic::of(name, &row.values(formula, found).with_context(|| head.clone())?)?;
                Ok(statistic::shown(name, &figure, *decimals))
            }
        }
    }
}

impl Claim {
    fn judge(&self, rows: &[Row], found: &[Vec<Found>], evidence: &mut Evidence) -> anyhow::Result<()> {
        let (limits, word) = match (&self.at_most, &self.at_least, &self.within) {
            (Some(most), None, None) => (most, "at most"),
            (None, Some(least), None) => (least, "at least"),
            (None, None, Some(most)) => (most, "within ±"),
            _ => bail!("claim '{}' needs one of at_most, at_least, within", self.says),
        };
        let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
        for row in rows
            .iter()
            .filter(|row| self.only.is_empty() || row.names.get(&self.only).is_some_and(|text| !text.is_empty()))
        {
            let text = fill(&self.per, &row.names);
            match groups.iter_mut().find(|(other, _)| *other == text) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((text, vec![row])),
            }
        }
        ensure!(!groups.is_empty(), "claim '{}' is about no row", self.says);
        for (_, rows) in groups {
            let (mut held, mut all, mut worst) = (0_usize, 0_usize, (f64::NEG_INFINITY, String::new()));
            for row in &rows {
                let limit = match limits {
                    Value::Array(figure) => {
                        let [by, of] = figure.as_slice() else { bail!("a bound is a statistic and a formula") };
                        statistic::of(&text_of(by), &row.values(&text_of(of), found)?)?.value
                    }
                    limit => {
                        let number = |name: &str| Ok(row.names.get(name).context("no number")?.parse()?);
                        formula::evaluate(&fill(&text_of(limit), &row.names), &number)?
                    }
                };
                let values = row.values(&self.of, found).with_context(|| self.says.clone())?;
                let judged: Vec<(f64, String)> = if self.by.is_empty() {
                    values
                        .iter()
                        .map(|value| (*value, number(Some(*value).filter(|value| !value.is_nan()), self.decimals)))
                        .collect()
                } else {
                    let figure = statistic::of(&self.by, &values)?;
                    let kind = self.by.split('.').next().unwrap_or_default();
                    let whole = statistic::of(kind, &values)?;
                    let kind = if kind == "mean" { "interval" } else { kind };
                    vec![(figure.value, statistic::shown(kind, &whole, self.decimals))]
                };
                for (value, shown) in judged {
                    let excess = match word {
                        "at most" => value - limit,
                        "at least" => limit - value,
                        _ => value.abs() - limit,
                    };
                    all += 1;
                    held += usize::from(excess <= 0.0);
                    if excess.is_nan() || excess > worst.0 {
                        let excess = if excess.is_nan() { f64::INFINITY } else { excess };
                        worst = (excess, format!("{shown}, {word} {}", number(Some(limit), self.decimals)));
                    }
                }
            }
            let needed = (self.share * all as f64 - 1e-9).ceil() as usize;
            let says = rows.first().map_or_else(String::new, |row| fill(&self.says, &row.names));
            let least = if self.share < 1.0 { format!(" (at least {needed} must)") } else { String::new() };
            evidence.criterion(
                all > 0 && held >= needed,
                if all == 1 {
                    format!("{says}: {}", worst.1)
                } else {
                    format!("{says}: {held} of {all}{least}; worst {}", worst.1)
                },
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
