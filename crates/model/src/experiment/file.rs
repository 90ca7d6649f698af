//! Experiment files: TOML, parsed into a [`Draft`].

use super::draft::{Draft, DraftError, Origin, Workload};
use super::{
    ArmPlan, Around, Axis, CacheCondition, DraftRules, EndSignal, Metric, Published, Rules, Setting, Slices,
    command_words, work_counter,
};
use crate::experiment_kind::ExperimentKind;
use crate::placement::Place;
use crate::plan::service::ServicePlan;
use crate::plan::value;
use crate::plan::value::Wrong;
use serde::Deserialize;

/// The contents of a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    title: String,
    job: Option<String>,
    command: Option<Command>,
    arm: Vec<Arm>,
    sweep: Vec<Axis>,
    budget: Option<String>,
    hang_timeout: Option<String>,
    slice: Option<String>,
    slices: Option<String>,
    count: Option<String>,
    ios: Option<String>,
    bytes: Option<String>,
    end_signal: Option<String>,
    margin: Option<String>,
    precision: Option<String>,
    target: Option<Vec<Metric>>,
    fail_on: Vec<String>,
    published: Vec<Published>,
    aa: bool,
    cache: Option<String>,
    setup: Option<String>,
    prepare: Option<String>,
    cleanup: Option<String>,
    place: Option<String>,
    service: Vec<Service>,
}

/// A list of words, or one text that is split as a shell would.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a command is a text, or a list of words")]
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
    setup: Option<String>,
    cleanup: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    name: String,
    command: Command,
    uri: Option<String>,
    ready: Option<String>,
    timeout: Option<String>,
    fill: Option<String>,
    cpus: Option<String>,
    arm: Option<String>,
}

/// Parses an experiment file. `file_name` is used in messages only.
///
/// # Errors
/// Names the line of a wrong syntax or key, or the entry with a wrong value.
pub fn parse(file_name: &str, text: &str) -> Result<Draft, DraftError> {
    let file = ExperimentKind::Compare.parse(file_name, text).map_err(DraftError::Wrong)?;
    draft(file, file_name).map_err(|why| DraftError::Wrong(format!("{file_name}: {why}")))
}

fn draft(file: File, file_name: &str) -> Result<Draft, String> {
    let workload = match (file.job, file.command) {
        (Some(_), Some(_)) => return Err("job and command are both set; use one of them".to_owned()),
        (Some(text), None) => Workload::JobFile { name: format!("{file_name} (job)"), text, options: Vec::new() },
        (None, Some(command)) => Workload::Command(words("command", command)?),
        (None, None) => Workload::None,
    };
    let rules = DraftRules {
        targets: file.target,
        margin: read("margin", file.margin, Rules::parse_percent)?,
        precision: read("precision", file.precision, Rules::parse_percent)?,
        budget_seconds: read("budget", file.budget, Rules::parse_time)?,
        hang_timeout_seconds: read("hang_timeout", file.hang_timeout, Rules::parse_time)?,
        slice_seconds: read("slice", file.slice, Rules::parse_slice)?,
        slices: read("slices", file.slices, Slices::parse)?,
        count: read("count", file.count, work_counter::parse)?,
        ios: read("ios", file.ios, value::integer)?,
        bytes: read("bytes", file.bytes, value::integer)?,
        end_signal: read("end_signal", file.end_signal, EndSignal::parse)?,
    };
    Ok(Draft {
        origin: Origin::File(file_name.to_owned()),
        title: file.title,
        workload,
        arms: file.arm.into_iter().map(arm).collect::<Result<_, _>>()?,
        axes: file.sweep,
        rules,
        fail_on: file.fail_on,
        published: file.published,
        against_itself: file.aa,
        cache: read("cache", file.cache, CacheCondition::parse)?,
        around: Around { setup: file.setup, prepare: file.prepare, cleanup: file.cleanup },
        place: read("place", file.place, Place::parse)?,
        services: file.service.into_iter().map(service).collect::<Result<_, _>>()?,
    })
}

fn arm(arm: Arm) -> Result<ArmPlan, String> {
    let named = |why: String| format!("arm '{}': {why}", arm.name);
    let settings: Result<Vec<Setting>, _> = arm.set.iter().map(|text| Setting::parse(text)).collect();
    Ok(ArmPlan {
        settings: settings.map_err(|wrong| named(wrong.to_string()))?,
        command: arm.command.map(|command| words("command", command)).transpose().map_err(named)?,
        options: arm.options,
        setup: arm.setup,
        cleanup: arm.cleanup,
        name: arm.name,
    })
}

fn service(service: Service) -> Result<ServicePlan, String> {
    let named = |why: String| format!("service '{}': {why}", service.name);
    Ok(ServicePlan {
        command: words("command", service.command).map_err(named)?,
        uri: service.uri,
        ready: service.ready,
        timeout_seconds: read("timeout", service.timeout, Rules::parse_time).map_err(named)?,
        fill: service.fill,
        cpus: read("cpus", service.cpus, value::cpus).map_err(named)?.unwrap_or_default(),
        arm: service.arm,
        name: service.name.clone(),
    })
}

fn words(what: &str, command: Command) -> Result<Vec<String>, String> {
    let words = match command {
        Command::Words(words) => words,
        Command::Text(text) => command_words(&text).map_err(|error| format!("{what} = {text:?}: {error}"))?,
    };
    if words.is_empty() { Err(format!("{what}: is empty")) } else { Ok(words) }
}

/// Parses an optional value with the function of the flag with the same name.
fn read<T>(what: &str, text: Option<String>, parse: fn(&str) -> Result<T, Wrong>) -> Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    parse(&text).map(Some).map_err(|wrong| format!("{what} = {text:?}: {wrong}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::draft::Surroundings;

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
        assert_eq!((draft.rules.budget_seconds, draft.rules.margin), (Some(120.0), Some(0.06)));
        assert!((draft.rules.clone().resolve().precision - 0.02).abs() < 1e-12);
        assert_eq!(draft.arms[1].settings[0].value, "10");
        assert_eq!(draft.axes[0].values, ["4k", "64k"]);
        assert_eq!(draft.published[0].source, "seed 001");
        assert_eq!(draft.fail_on, ["cycles_per_io > +3%"]);
    }

    /// Same message as for the flag, because a file also becomes a draft.
    #[test]
    fn a_percentile_is_not_a_target() {
        let resolved = |target: &str| {
            let text = FILE.replace("\"cycles_per_io\"]\n        fail", &format!("{target}]\n        fail"));
            parse("x.toml", &text).unwrap().resolve(&Surroundings::default())
        };
        assert!(resolved("\"cycles_per_io\", \"latency_mean\"").is_ok());
        let refusal = resolved("\"cycles_per_io\", \"latency_p50\"").unwrap_err().to_string();
        assert!(refusal.starts_with("x.toml: target: latency_p50 is a percentile"), "{refusal}");
    }

    /// A file accepts the same values as the flags: both use the same functions.
    #[test]
    fn settings_are_written_as_flags_are() {
        let draft = parse("x.toml", &FILE.replace("\"6 %\"", "\"6\"").replace("\"2m\"", "\"1min 30s\"")).unwrap();
        assert_eq!((draft.rules.margin, draft.rules.budget_seconds), (Some(0.06), Some(90.0)));
    }

    #[test]
    fn errors_name_the_line_or_entry() {
        let says = |from: &str, to: &str| parse("x.toml", &FILE.replace(from, to)).unwrap_err().to_string();
        assert!(
            says("margin =", "margn =").starts_with("x.toml:5: unknown field `margn`"),
            "{}",
            says("margin =", "margn =")
        );
        assert!(says("\"6 %\"", "\"6 per cent\"").contains("margin = \"6 per cent\""));
        assert!(says("\"2m\"", "\"soon\"").starts_with("x.toml: budget = \"soon\""));
        assert!(says("\"2m\"", "\"2d\"").contains("1s to 1d"));
        let unknown = says("source =", "sauce =");
        assert!(unknown.starts_with("x.toml:") && unknown.contains("unknown field `sauce`"), "{unknown}");
        assert!(says("sysctl:", "sisctl:").contains("arm 'slow'"));
        assert!(says("[[arm]]", "[[arm").starts_with("x.toml:"));
        assert!(says("[\"cycles_per_io\"]", "[\"speed\"]").contains("x.toml:6"));
    }
}
