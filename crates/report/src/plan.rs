//! Renders a [`Plan`] that is only read, not measured (`run --parse-only`): what would run, in words.

use crate::document::{Block, Body, Cell, Column, Document, Fact, Section, Table};
use crate::workload::options;
use model::plan::{JobPlan, Plan};

/// The document of a plan.
pub fn document(plan: &Plan) -> Document {
    let several = plan.phases.len() > 1;
    let label = |phase: usize| if several { format!("Phase {}", phase + 1) } else { "Job".to_owned() };
    let mut facts: Vec<Fact> =
        jobs(plan).map(|(phase, job)| Fact::new(label(phase), format!("{}: {}", job.name, options(job)))).collect();
    facts.extend(plan.warnings.iter().map(|warning| Fact::new("Caveat", &warning.message)));
    let mut data = Table::new(["phase", "job", "work"].map(Column::text).to_vec());
    for (phase, job) in jobs(plan) {
        data.row(
            [(phase + 1).to_string(), job.name.clone(), options(job)].map(|text| Cell::from(text.as_str())).to_vec(),
        );
    }
    let names: Vec<&str> = jobs(plan).map(|(_, job)| job.name.as_str()).collect();
    Document {
        kind: "iotoll run --parse-only".to_owned(),
        title: names.join(", "),
        sections: vec![Section::new("", vec![Block::new("", Body::Facts(facts))])],
        data,
        ..Document::default()
    }
}

/// All jobs, each with its phase.
fn jobs(plan: &Plan) -> impl Iterator<Item = (usize, &JobPlan)> {
    plan.phases.iter().enumerate().flat_map(|(phase, found)| found.jobs.iter().map(move |job| (phase, job)))
}

#[cfg(test)]
mod tests {
    use crate::{Format, Ink};
    use model::plan::{Settings, parse};

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
        assert_eq!(Format::Csv.render(&plan, Ink::Plain, 0).lines().count(), 3);
    }
}
