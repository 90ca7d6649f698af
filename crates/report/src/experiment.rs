//! Renders an [`Experiment`] that is only read, not measured (`compare --parse-only`): what would be measured, in words.

use crate::document::{Block, Body, Document, Fact, Section};
use crate::number;
use crate::phrase::{tied, units_tied};
use crate::provenance;

use crate::shell::command;
use crate::workload::options;
use model::experiment::{Axis, Cache, Experiment, Metric, Rules, Work};

pub fn document(experiment: &Experiment) -> Document {
    let facts = [workload(experiment), sweep(experiment), conditions(experiment), rules(experiment)].concat();
    Document {
        kind: "iotoll compare --parse-only".to_owned(),
        title: experiment.title.clone(),
        subjects: experiment.arms.iter().map(|arm| Fact::new(&arm.name, arm.what(&experiment.arms))).collect(),
        sections: vec![Section::new("", vec![Block::new("", Body::Facts(facts))])],
        ..Document::default()
    }
}

/// What the baseline runs at the first point of the sweep; the arms and the sweep say what differs.
fn workload(experiment: &Experiment) -> Vec<Fact> {
    match experiment.cases.first().map(|case| &case.work) {
        Some(Work::Jobs(plan)) => {
            let jobs = plan.phases.iter().flat_map(|phase| &phase.jobs);
            let mut facts: Vec<Fact> =
                jobs.map(|job| Fact::new("Job", format!("{}: {}", job.name, options(job)))).collect();
            facts.extend(plan.warnings.iter().map(|warning| Fact::new("Caveat", &warning.message)));
            facts
        }
        Some(Work::Command(words)) => vec![Fact::new("Command", command(words))],
        None => Vec::new(),
    }
}

fn sweep(experiment: &Experiment) -> Vec<Fact> {
    let axis = |axis: &Axis| Fact::new("Sweep", format!("{}: {}", axis.name, axis.values.join(", ")));
    let mut facts: Vec<Fact> = experiment.axes.iter().map(axis).collect();
    let (cells, arms) = (experiment.cells.len(), experiment.arms.len());
    if !facts.is_empty() {
        facts.push(Fact::new("Cases", format!("{cells} points × {arms} arms = {}", experiment.cases.len())));
    }
    facts
}

/// What is the same for all arms.
fn conditions(experiment: &Experiment) -> Vec<Fact> {
    let cache = experiment.cache.map(|cache| match cache {
        Cache::Warm => "warm: the files are read in first and kept in memory",
        Cache::Cold => "cold: the files are dropped before each slice",
        Cache::AsIs => "not controlled",
    });
    let around = &experiment.around;
    let shell = [("Setup", &around.setup), ("Prepare", &around.prepare), ("Cleanup", &around.cleanup)];
    let mut facts: Vec<Fact> = provenance::services(&experiment.services).collect();
    facts.extend(cache.map(|cache| Fact::new("Page cache", cache)));
    facts.extend(experiment.place.as_ref().map(|place| Fact::new("Place", place.to_string())));
    facts.extend(shell.into_iter().filter_map(|(label, text)| Some(Fact::new(label, text.as_ref()?))));
    if let Some(boots) = &experiment.boots {
        facts.push(Fact::new("Boots", format!("{} of each arm", boots.each)));
        facts.extend(boots.hook.as_ref().map(|hook| Fact::new("Hook", hook)));
    }
    facts
}

/// When it ends, and what counts as a difference.
fn rules(experiment: &Experiment) -> Vec<Fact> {
    let Rules { targets, margin, precision, budget_seconds, slice_seconds, .. } = &experiment.rules;
    let percent = |fraction: f64| tied(&number::percent(fraction));
    let budget = units_tied(&format!("{budget_seconds} s"));
    let mut facts = Vec::new();
    if experiment.boots.is_some() {
        facts.push(Fact::new("Budget", format!("{budget} for each boot")));
    } else {
        let targets: Vec<&str> = targets.iter().map(|metric: &Metric| metric.name()).collect();
        let (targets, width) = (targets.join(", "), percent(*precision));
        facts.push(Fact::new("Budget", format!("{budget}, but at least two rounds")));
        facts.push(Fact::new("Precision", format!("ends earlier if the intervals of {targets} are within ±{width}")));
    }
    facts.push(Fact::new("Margin", format!("changes below {} do not count", percent(*margin))));
    facts.push(Fact::new("Hang timeout", units_tied(&format!("{} s", experiment.rules.hang_timeout()))));
    facts.extend(slice_seconds.map(|slice| Fact::new("Slice", tied(&number::seconds(slice)))));
    facts.extend(experiment.limits.iter().map(|limit| Fact::new("Fails if", limit.to_string())));
    facts.extend(experiment.published.iter().map(|published| {
        let change = published.change.map_or_else(|| number::MISSING.to_owned(), percent);
        Fact::new("Published", format!("{}: {change} ({})", published.metric.name(), published.source))
    }));
    facts
}

#[cfg(test)]
pub use tests::experiment as fixture;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Ink};
    use model::experiment::draft::Surroundings;
    use model::plan::service::Address;
    use model::plan::{DeviceWrites, UnknownOptions};

    pub fn experiment() -> Experiment {
        let text = r#"
            title = "blocks over nbd"
            job = "[a]\nioengine=nbd\nuri={s.uri}\nrw=randread"
            budget = "2min"
            place = "0,1"
            setup = "sync"
            fail_on = ["iops < -5%"]
            service = [{ name = "s", command = "iotoll serve --backend memory:16m --listen 127.0.0.1:{port}" }]
            arm = [{ name = "four" }, { name = "eight", options = ["iodepth=8"] }]
            sweep = [{ name = "bs", values = ["4k", "64k"] }]
            published = [{ metric = "iops", change = 0.5, source = "a mail" }]
        "#;
        let surroundings = Surroundings {
            environment: &|_| None,
            included: &|_| None,
            address: &|_| Address { port: 1111, directory: "/tmp/s".to_owned() },
            unknown_options: UnknownOptions::Refuse,
            device_writes: DeviceWrites::Refuse,
        };
        model::experiment::file::parse("x.toml", text).unwrap().resolve(&surroundings).unwrap()
    }

    #[test]
    fn a_plan_names_everything_that_would_be_measured() {
        let text = Format::Table.render(&experiment(), Ink::Plain, 200).replace('\u{a0}', " ");
        for part in [
            "blocks over nbd\n",
            "eight",
            "iodepth=8",
            "a: ioengine=nbd rw=randread bs=4k iodepth=1 uri=nbd://127.0.0.1:1111",
            "bs: 4k, 64k",
            "2 points × 2 arms = 4",
            "s: iotoll serve --backend memory:16m --listen 127.0.0.1:1111",
            "0,1",
            "sync",
            "120 s, but at least two rounds",
            "ends earlier if the intervals of cycles_per_io, iops are within ±1.0 %",
            "changes below 3.0 % do not count",
            "iops < -5%",
            "iops: 50 % (a mail)",
        ] {
            assert!(text.contains(part), "'{part}' is not in\n{text}");
        }
    }
}
