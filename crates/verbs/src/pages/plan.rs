//! Renders a plan that is only read, not measured (`--parse-only`): what would run, in words.

use crate::pages::provenance;
use crate::pages::workload::options;
use model::experiment::{Axis, CacheCondition, Experiment, Metric, Rules, Work};
use model::limit::Limit;
use model::plan::{JobPlan, Plan};
use report::document::{Block, Body, Document, Fact, Section, tied, units_tied};
use report::number;
use report::shell::command;
use serde::Serialize;

impl crate::Finding for Plan {
    fn document(&self) -> Document {
        let several = self.phases.len() > 1;
        let label = |phase: usize| if several { format!("Phase {}", phase + 1) } else { "Job".to_owned() };
        let names: Vec<&str> = jobs(self).map(|(_, job)| job.name.as_str()).collect();
        read_only("run", names.join(", "), facts(self, label))
    }
}

/// An experiment, and what it fails on.
#[derive(Serialize)]
pub struct ReadExperiment<'a> {
    #[serde(flatten)]
    pub experiment: &'a Experiment,
    pub limits: Vec<Limit>,
}

impl crate::Finding for ReadExperiment<'_> {
    fn document(&self) -> Document {
        let Self { experiment, limits } = self;
        let facts =
            [workload(experiment), sweep(experiment), conditions(experiment), rules(experiment, limits)].concat();
        let subjects = experiment.arms.iter().map(|arm| Fact::new(&arm.name, arm.what(&experiment.arms)));
        Document { subjects: subjects.collect(), ..read_only("compare", experiment.title.clone(), facts) }
    }
}

/// What the baseline runs at the first point of the sweep; the arms and the sweep say what differs.
fn workload(experiment: &Experiment) -> Vec<Fact> {
    match experiment.cases.first().map(|case| &case.work) {
        Some(Work::Jobs(plan)) => facts(plan, |_| "Job".to_owned()),
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
        CacheCondition::Warm => "warm: the files are read in first and kept in memory",
        CacheCondition::Cold => "cold: the files are dropped before each slice",
        _ => "not controlled",
    });
    let around = &experiment.around;
    let shell = [("Setup", &around.setup), ("Prepare", &around.prepare), ("Cleanup", &around.cleanup)];
    let mut facts: Vec<Fact> = provenance::services(&experiment.services).collect();
    facts.extend(cache.map(|cache| Fact::new("Page cache", cache)));
    facts.extend(experiment.place.as_ref().map(|place| Fact::new("Place", place.to_string())));
    facts.extend(shell.into_iter().filter_map(|(label, text)| Some(Fact::new(label, text.as_ref()?))));
    facts
}

/// When it ends, and what counts as a difference.
fn rules(experiment: &Experiment, limits: &[Limit]) -> Vec<Fact> {
    let Rules { targets, margin, precision, budget_seconds, slice_seconds, .. } = &experiment.rules;
    let percent = |fraction: f64| tied(&number::percent(fraction));
    let budget = units_tied(&format!("{budget_seconds} s"));
    let targets: Vec<&str> = targets.iter().map(|metric: &Metric| metric.name()).collect();
    let (targets, width) = (targets.join(", "), percent(*precision));
    let mut facts = vec![
        Fact::new("Budget", format!("{budget}, but at least two rounds")),
        Fact::new("Precision", format!("ends earlier if the intervals of {targets} are within ±{width}")),
        Fact::new("Margin", format!("changes below {} do not count", percent(*margin))),
        Fact::new("Hang timeout", units_tied(&format!("{} s", experiment.rules.hang_timeout()))),
    ];
    facts.extend(slice_seconds.map(|slice| Fact::new("Slice", tied(&number::seconds(slice)))));
    facts.extend(limits.iter().map(|limit| Fact::new("Fails if", limit.text.clone())));
    facts.extend(experiment.published.iter().map(|published| {
        let change = published.change.map_or_else(|| number::MISSING.to_owned(), percent);
        Fact::new("Published", format!("{}: {change} ({})", published.metric.name(), published.source))
    }));
    facts
}

/// Each job with its options, and the caveats of a plan.
fn facts(plan: &Plan, label: impl Fn(usize) -> String) -> Vec<Fact> {
    let jobs = jobs(plan).map(|(phase, job)| Fact::new(label(phase), format!("{}: {}", job.name, options(job))));
    jobs.chain(plan.warnings.iter().map(|warning| Fact::new("Caveat", &warning.message))).collect()
}

/// The document of what is only read.
pub fn read_only(verb: &str, title: String, facts: Vec<Fact>) -> Document {
    Document {
        kind: format!("iotoll {verb} --parse-only"),
        title,
        sections: vec![Section::new("", vec![Block::new("", Body::Facts(facts))])],
        ..Document::default()
    }
}

/// All jobs, each with its phase.
pub fn jobs(plan: &Plan) -> impl Iterator<Item = (usize, &JobPlan)> {
    plan.phases.iter().enumerate().flat_map(|(phase, found)| found.jobs.iter().map(move |job| (phase, job)))
}

#[cfg(test)]
pub use tests::experiment as fixture;

#[cfg(test)]
mod tests {
    use super::{Limit, Metric, ReadExperiment};
    use crate::Format;
    use model::experiment::draft::Surroundings;
    use model::plan::service::Address;
    use model::plan::{Settings, parse};
    use report::Ink;

    #[test]
    fn a_plan_names_every_job_its_options_and_its_phase() {
        let text = "[global]\nsize=1m\nioengine=null\n[one]\nrw=randread\n[two]\nbs=8k\nnumjobs=3\nstonewall\n";
        let plan = parse::job_file("x.fio", text, &Settings::default()).unwrap();
        let table = Format::Table.render(&plan, Ink::Plain, 200).replace('\u{a0}', " ");
        for part in [
            "one, two\n",
            "Phase 1",
            "one: ioengine=null rw=randread bs=4k size=1m iodepth=1",
            "Phase 2",
            "two: ",
            "bs=8k",
            "numjobs=3",
        ] {
            assert!(table.contains(part), "'{part}' is not in\n{table}");
        }
        assert_eq!(table.matches("numjobs").count(), 1, "{table}");
    }

    pub fn experiment() -> ReadExperiment<'static> {
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
        let address = |_: &str| Address { port: 1111, directory: "/tmp/s".to_owned() };
        let surroundings = Surroundings { address: &address, ..Surroundings::default() };
        let draft = model::experiment::file::parse("x.toml", text).unwrap();
        let limits = draft.fail_on.iter().map(|text| Limit::parse(text, &Metric::quantities()).unwrap()).collect();
        ReadExperiment { experiment: Box::leak(Box::new(draft.resolve(&surroundings).unwrap())), limits }
    }
}
