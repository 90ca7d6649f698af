//! Experiment files: TOML, read into a [`Draft`].

use super::draft::{Draft, DraftError, Workload};
use super::{ArmPlan, Axis, Limit, Metric, Published, Rules, Setting, When};
use crate::plan::value::{self, TimeUnit};
use serde::Deserialize;

/// What a file holds, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    title: String,
    job: Option<String>,
    command: Option<Command>,
    #[serde(default)]
    arm: Vec<Arm>,
    #[serde(default)]
    sweep: Vec<Sweep>,
    budget: Option<String>,
    patience: Option<String>,
    margin: Option<String>,
    precision: Option<String>,
    target: Option<Vec<Metric>>,
    #[serde(default)]
    fail_on: Vec<String>,
    #[serde(default)]
    published: Vec<Published>,
    #[serde(default)]
    aa: bool,
    boots: Option<u32>,
    hook: Option<String>,
}

/// Words, or one text that is split as a shell would.
#[derive(Deserialize)]
#[serde(untagged)]
enum Command {
    Text(String),
    Words(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arm {
    name: String,
    #[serde(default)]
    options: Vec<String>,
    command: Option<Command>,
    #[serde(default)]
    set: Vec<String>,
    enter: Option<String>,
    leave: Option<String>,
    when: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    name: String,
    values: Vec<String>,
}

/// Reads an experiment file. `file_name` is what messages call it.
///
/// # Errors
/// With the line where the syntax or a name is wrong, or the entry whose value is.
pub fn parse(file_name: &str, text: &str) -> Result<Draft, DraftError> {
    let wrong = |why: String| DraftError::Wrong(format!("{file_name}: {why}"));
    let file: File = toml::from_str(text).map_err(|error| {
        let begin = error.span().map_or(0, |span| span.start);
        let line = text.get(..begin).map_or(0, |before| before.matches('\n').count()) + 1;
        DraftError::Wrong(format!("{file_name}:{line}: {}", error.message().replace('\n', " ")))
    })?;
    draft(file, file_name).map_err(wrong)
}

fn draft(file: File, file_name: &str) -> Result<Draft, String> {
    let workload = match (file.job, file.command) {
        (Some(_), Some(_)) => return Err("job and command: which of them? Give one".to_owned()),
        (Some(text), None) => Workload::JobFile { name: format!("{file_name} (job)"), text, options: Vec::new() },
        (None, Some(command)) => Workload::Command(words("command", command)?),
        (None, None) => Workload::None,
    };
    let rules = Rules::default();
    let margin = fraction("margin", file.margin.as_deref())?.unwrap_or(rules.margin);
    let rules = Rules {
        targets: file.target.unwrap_or(rules.targets),
        margin,
        precision: fraction("precision", file.precision.as_deref())?.unwrap_or(margin / 3.0),
        budget_seconds: seconds("budget", file.budget.as_deref())?.unwrap_or(rules.budget_seconds),
        patience_seconds: seconds("patience", file.patience.as_deref())?,
    };
    Ok(Draft {
        title: file.title,
        workload,
        arms: file.arm.into_iter().map(arm).collect::<Result<_, _>>()?,
        axes: file.sweep.into_iter().map(|sweep| Axis { name: sweep.name, values: sweep.values }).collect(),
        rules,
        limits: file
            .fail_on
            .iter()
            .map(|text| Limit::parse(text).map_err(|wrong| wrong.to_string()))
            .collect::<Result<_, _>>()?,
        published: file.published,
        against_itself: file.aa,
        boots: file.boots,
        hook: file.hook,
    })
}

fn arm(arm: Arm) -> Result<ArmPlan, String> {
    let named = |why: String| format!("arm '{}': {why}", arm.name);
    let settings: Result<Vec<Setting>, _> = arm.set.iter().map(|text| Setting::parse(text)).collect();
    Ok(ArmPlan {
        settings: settings.map_err(|wrong| named(wrong.to_string()))?,
        command: arm.command.map(|command| words("command", command)).transpose().map_err(named)?,
        options: arm.options,
        enter: arm.enter,
        leave: arm.leave,
        when: arm.when.as_deref().map(When::parse).transpose().map_err(|wrong| named(wrong.to_string()))?,
        name: arm.name,
    })
}

fn words(what: &str, command: Command) -> Result<Vec<String>, String> {
    let words = match command {
        Command::Words(words) => words,
        Command::Text(text) => shell_words::split(&text).map_err(|error| format!("{what} = {text:?}: {error}"))?,
    };
    if words.is_empty() { Err(format!("{what}: there is nothing in it")) } else { Ok(words) }
}

/// `2m` as 120.
fn seconds(what: &str, text: Option<&str>) -> Result<Option<f64>, String> {
    let Some(text) = text else { return Ok(None) };
    let wrong = |wrong: String| format!("{what} = {text:?}: {wrong}");
    let seconds = value::time(text, TimeUnit::Seconds).map_err(|error| wrong(error.to_string()))?.seconds();
    if !Rules::TIMES.contains(&seconds) {
        return Err(wrong("at least 1s, at most 1d".to_owned()));
    }
    Ok(Some(seconds))
}

/// `3%` as 0.03; one below 0.01 % would never be reached.
fn fraction(what: &str, text: Option<&str>) -> Result<Option<f64>, String> {
    let Some(text) = text else { return Ok(None) };
    match text.trim().strip_suffix('%').map(|number| number.trim().parse::<f64>()) {
        Some(Ok(percent)) if (0.01..=100.0).contains(&percent) => Ok(Some(percent / 100.0)),
        _ => Err(format!("{what} = {text:?}: expected 0.01% to 100%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::draft::Surroundings;
    use crate::plan::{DeviceWrites, UnknownOptions};

    const FILE: &str = r#"
        title = "pull-up against gather"
        job = "[a]\nioengine=null\nsize=1m"
        budget = "2m"
        margin = "6 %"
        target = ["cycles_per_io"]
        fail_on = ["cycles_per_io > +3%"]

        [[arm]]
        name = "baseline"

        [[arm]]
        name = "slow"
        options = ["inject_ns=100"]
        set = ["sysctl:vm.swappiness=10"]

        [[sweep]]
        name = "bs"
        values = ["4k", "64k"]

        [[published]]
        cell = { bs = "4k" }
        metric = "iops"
        baseline = 1000.0
        candidate = 1100.0
        source = "seed 001"
    "#;

    #[test]
    fn a_file_is_a_draft() {
        let draft = parse("x.toml", FILE).unwrap();
        assert_eq!((draft.rules.budget_seconds, draft.rules.margin), (120.0, 0.06));
        assert!((draft.rules.precision - 0.02).abs() < 1e-12);
        assert_eq!(draft.arms[1].settings[0].value, "10");
        assert_eq!(draft.axes[0].values, ["4k", "64k"]);
        assert_eq!(draft.published[0].source, "seed 001");
        assert_eq!(draft.limits[0].metric, Metric::CyclesPerIo);
    }

    /// The same refusal as of the flag, because a file becomes a draft too.
    #[test]
    fn a_percentile_is_no_target() {
        let surroundings = Surroundings {
            environment: &|_| None,
            unknown_options: UnknownOptions::Refuse,
            device_writes: DeviceWrites::Refuse,
        };
        let resolved = |target: &str| {
            let text = FILE.replace("\"cycles_per_io\"]\n        fail", &format!("{target}]\n        fail"));
            parse("x.toml", &text).unwrap().resolve(&surroundings)
        };
        assert!(resolved("\"cycles_per_io\", \"latency_mean\"").is_ok());
        let refusal = resolved("\"cycles_per_io\", \"latency_p50\"").unwrap_err().to_string();
        assert!(refusal.starts_with("target: latency_p50 is a percentile"), "{refusal}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_or_entry() {
        let says = |from: &str, to: &str| parse("x.toml", &FILE.replace(from, to)).unwrap_err().to_string();
        assert!(
            says("margin =", "margn =").starts_with("x.toml:5: unknown field `margn`"),
            "{}",
            says("margin =", "margn =")
        );
        assert!(says("\"6 %\"", "\"6\"").contains("margin = \"6\""));
        assert!(says("\"2m\"", "\"soon\"").contains("budget = \"soon\""));
        assert!(says("sysctl:", "sisctl:").contains("arm 'slow'"));
        assert!(says("> +3%", "!").contains("expected a limit"));
        assert!(says("[[arm]]", "[[arm").starts_with("x.toml:"));
        assert!(says("[\"cycles_per_io\"]", "[\"speed\"]").contains("x.toml:6"));
    }
}
