//! Renders a plan that is only read, not measured (`--parse-only`): what would run, in words.

use crate::document::{Block, Body, Document, Fact, Section};
use crate::number;
use crate::phrase::{tied, units_tied};
use crate::provenance;
use crate::shell::command;
use crate::workload::options;
use model::experiment::{Axis, CacheCondition, Experiment, Metric, Rules, Work};
use model::ftq::FtqPlan;
use model::ftq::record::Worker;
use model::guest::GuestPlan;
use model::plan::{JobPlan, Phase, Plan};

pub fn document(plan: &Plan) -> Document {
    let several = plan.phases.len() > 1;
    let label = |phase: usize| if several { format!("Phase {}", phase + 1) } else { "Job".to_owned() };
    let names: Vec<&str> = jobs(plan).map(|(_, job)| job.name.as_str()).collect();
    read_only("run", names.join(", "), facts(plan, label))
}

/// The document of a recording's plan.
pub fn recording(plan: &FtqPlan) -> Document {
    let worker = match &plan.worker {
        Worker::Job(job) => jobs(job).map(|(_, job)| format!("{}: {}", job.name, options(job))).collect(),
        Worker::Cpu => "computes without pause".to_owned(),
        Worker::Command(words) => command(words),
        Worker::Process(process) => format!("process {process}"),
    };
    let quanta = plan.duration.0 / plan.quantum.0.max(1);
    let length = number::seconds(plan.duration.seconds());
    let mut facts = vec![
        Fact::new("Worker", &worker),
        Fact::new("Quantum", units_tied(&number::with_unit(number::NANOS, plan.quantum.as_f64()))),
        Fact::new("Duration", units_tied(&format!("{length}, {quanta} quanta"))),
    ];
    let cpu = |name: &str, cpu: Option<u32>| cpu.map(|cpu| Fact::new(name, format!("on CPU {cpu}")));
    facts.extend([cpu("Recorder", plan.recorder_cpu), cpu("Worker's place", plan.worker_cpu)].into_iter().flatten());
    read_only("ftq", worker, facts)
}

/// The document of a plan of guests.
pub fn guests(plan: &GuestPlan) -> Document {
    let work = |phase: &Phase| phase.jobs.iter().map(options).collect::<Vec<_>>().join("; ");
    let mut facts = Vec::new();
    if let Some(compared) = &plan.compared {
        facts.push(Fact::new("Compared", format!("{compared}: {}", plan.arms.join(", "))));
    }
    let mut seen = Vec::new();
    for point in &plan.points {
        let (work, ios) = (work(&point.phase), point.ios.to_string());
        let line = format!("{} on {}: {work}", point.place.job, point.place.stack);
        if !seen.contains(&line) {
            facts.push(Fact::new("Job", format!("{line}, {ios} I/Os")));
            seen.push(line);
        }
    }
    let (points, boots) = (plan.points.len(), plan.points.len() * plan.replicates as usize);
    facts.push(Fact::new("Guests", format!("{points} points × {} replicates = {boots}", plan.replicates)));
    facts.extend(plan.published.iter().map(|it| Fact::new("Published", format!("{} ({})", it.what, it.source))));
    read_only("guest run", plan.title.clone(), facts)
}

/// The document of an experiment.
pub fn experiment(experiment: &Experiment) -> Document {
    let facts = [workload(experiment), sweep(experiment), conditions(experiment), rules(experiment)].concat();
    let subjects = experiment.arms.iter().map(|arm| Fact::new(&arm.name, arm.what(&experiment.arms)));
    Document { subjects: subjects.collect(), ..read_only("compare", experiment.title.clone(), facts) }
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
fn rules(experiment: &Experiment) -> Vec<Fact> {
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
    facts.extend(experiment.limits.iter().map(|limit| Fact::new("Fails if", limit.text.clone())));
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

fn read_only(verb: &str, title: String, facts: Vec<Fact>) -> Document {
    Document {
        kind: format!("iotoll {verb} --parse-only"),
        title,
        sections: vec![Section::new("", vec![Block::new("", Body::Facts(facts))])],
        ..Document::default()
    }
}

/// All jobs, each with its phase.
fn jobs(plan: &Plan) -> impl Iterator<Item = (usize, &JobPlan)> {
    plan.phases.iter().enumerate().flat_map(|(phase, found)| found.jobs.iter().map(move |job| (phase, job)))
}

#[cfg(test)]
pub use tests::experiment as fixture;

#[cfg(test)]
mod tests {
    use super::{Experiment, FtqPlan, GuestPlan, Worker};
    use crate::{Format, Ink};
    use model::experiment::draft::Surroundings;
    use model::guest::plan::{Place, Point};
    use model::plan::service::Address;
    use model::plan::{Settings, parse};
    use model::unit::Nanos;

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

    #[test]
    fn a_recording_names_its_worker_and_the_number_of_quanta() {
        let worker = Worker::Command(["dd", "if=a b"].map(str::to_owned).to_vec());
        let (quantum, duration) = (Nanos(440_000), Nanos::from_millis(27_000));
        let plan = FtqPlan { worker, quantum, duration, recorder_cpu: Some(1), worker_cpu: None, seed: 1 };
        let table = Format::Table.render(&plan, Ink::Plain, 200).replace('\u{a0}', " ");
        for part in ["dd 'if=a b'", "440 µs", "27.0 s, 61363 quanta", "on CPU 1"] {
            assert!(table.contains(part), "'{part}' is not in\n{table}");
        }
    }

    #[test]
    fn guests_name_what_is_compared_and_how_many_boot() {
        let phase =
            parse::flags(&["--name=a", "--ioengine=null", "--size=1m"].map(str::to_owned), &Settings::default());
        let phase = phase.unwrap().phases.remove(0);
        let point = |arm: usize, kernel: &str| Point {
            place: Place {
                job: "a".to_owned(),
                kernel: kernel.to_owned(),
                stack: "ext4".to_owned(),
                cell: [("depth".to_owned(), "4".to_owned())].into(),
                ..Place::default()
            },
            arm,
            phase: phase.clone(),
            sysctls: Vec::new(),
            mount_options: None,
            module: String::new(),
            warm_up_ios: 0,
            ios: 400,
        };
        let plan = GuestPlan {
            compared: Some("kernel".to_owned()),
            arms: vec!["5.10".to_owned(), "6.12".to_owned()],
            replicates: 5,
            points: vec![point(0, "5.10"), point(1, "6.12")],
            ..GuestPlan::default()
        };
        let table = Format::Table.render(&plan, Ink::Plain, 200).replace('\u{a0}', " ");
        for part in ["kernel: 5.10, 6.12", "a on ext4: ioengine=null", "400 I/Os", "2 points × 5 replicates = 10"] {
            assert!(table.contains(part), "'{part}' is not in\n{table}");
        }
        assert_eq!(table.matches("a on ext4").count(), 1, "{table}");
    }

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
        let address = |_: &str| Address { port: 1111, directory: "/tmp/s".to_owned() };
        let surroundings = Surroundings { address: &address, ..Surroundings::default() };
        model::experiment::file::parse("x.toml", text).unwrap().resolve(&surroundings).unwrap()
    }
}
