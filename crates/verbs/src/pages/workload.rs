//! The work of a measurement in fio's words: "ioengine=psync rw=randread bs=4k iodepth=1".

use crate::compare::CompareFinding;
use model::experiment::Work;
use model::finding::RunFinding;
use model::plan::{JobPlan, options};
use report::document::{Audience, Fact};
use report::shell::command;

/// Options that are shown also if they are fio's default.
const ALWAYS: [&str; 4] = ["ioengine", "rw", "bs", "iodepth"];
/// Jobs that are shown; the others are counted.
const MOST_JOBS: usize = 4;
/// A longer text is not for a terminal, whose reader typed it.
const SHORT: usize = 200;

/// What defines the work of a job, and what is not default: "ioengine=psync rw=randread bs=4k iodepth=1 filename=data".
pub fn options(job: &JobPlan) -> String {
    let words = options::shown(job, &ALWAYS).into_iter().map(|(name, value)| format!("{name}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

/// The jobs of a run. A foreign command says itself what it does.
pub fn of_run(finding: &RunFinding) -> Vec<Fact> {
    let jobs = finding.merged_jobs.iter().filter_map(|job| Some((job.name.as_str(), options(job.plan.as_ref()?))));
    listed("Job", jobs.map(|(name, options)| (name.to_owned(), options)).collect())
}

/// The first facts of a kind, and how many there are beside them.
fn listed(label: &str, all: Vec<(String, String)>) -> Vec<Fact> {
    let more = all.len().saturating_sub(MOST_JOBS);
    let mut facts: Vec<Fact> = all
        .into_iter()
        .take(MOST_JOBS)
        .map(|(name, text)| {
            let audience =
                if text.chars().count() <= SHORT { Audience::ALL } else { Audience::POST.or(Audience::PAGE) };
            Fact::of(audience, label, if name.is_empty() { text } else { format!("{name}: {text}") })
        })
        .collect();
    if more > 0 {
        facts.push(Fact::new(label, format!("and {more} more")));
    }
    facts
}

/// The work of a comparison: the jobs of the baseline at the first point of the sweep, or the command of each arm. The arms and the sweep
/// say what differs.
pub fn of_comparison(finding: &CompareFinding) -> Vec<Fact> {
    let Some(first) = finding.cases.first() else { return Vec::new() };
    let axes = finding.axes.iter().map(|axis| (axis.name.clone(), axis.values.join(", ")));
    let axes = axes.map(|(name, values)| Fact::new("Sweep", format!("{name}: {values}")));
    let work = match &first.plan {
        Work::Jobs(plan) => {
            let jobs = plan.phases.iter().flat_map(|phase| &phase.jobs);
            listed("Job", jobs.map(|job| (job.name.clone(), options(job))).collect())
        }
        Work::Command(_) => of_commands(finding),
    };
    work.into_iter().chain(axes).collect()
}

/// The command of each arm in full; one if all arms have the same. Of a sweep, that of its first point.
fn of_commands(finding: &CompareFinding) -> Vec<Fact> {
    let first = |place: usize| {
        let arm = finding.arms.get(place)?;
        let case = finding.cases.iter().find(|case| case.arm == arm.name)?;
        let Work::Command(words) = &case.plan else { return None };
        let cell: Vec<String> = case.cell.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let at = if cell.is_empty() { String::new() } else { format!("  (at {})", cell.join(" ")) };
        Some((arm.name.clone(), command(words) + &at))
    };
    let mut commands: Vec<(String, String)> = (0..finding.arms.len()).filter_map(first).collect();
    if commands.windows(2).all(|pair| matches!(pair, [one, other] if one.1 == other.1)) {
        commands.truncate(1);
        commands.iter_mut().for_each(|(name, _)| name.clear());
    }
    listed("Command", commands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::finding::CasePlan;
    use crate::compare::page::fixture;
    use model::plan::{EngineKind, Phase, Plan};
    use model::unit::Bytes;

    fn job(block: u64) -> JobPlan {
        let mut job = JobPlan { name: "reads".to_owned(), engine: EngineKind::Psync, ..JobPlan::default() };
        job.block_sizes = Bytes(block).into();
        job.target.files = vec!["data".to_owned()];
        job
    }

    fn case(arm: &str, cell: &[(&str, &str)], plan: Work) -> CasePlan {
        let cell = cell.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        CasePlan { cell, arm: arm.to_owned(), plan }
    }

    fn jobs(job: JobPlan) -> Work {
        Work::Jobs(Plan { phases: vec![Phase { jobs: vec![job] }], ..Plan::default() })
    }

    fn texts(finding: &CompareFinding) -> Vec<String> {
        of_comparison(finding).into_iter().map(|fact| format!("{}: {}", fact.label, fact.text)).collect()
    }

    #[test]
    fn the_jobs_of_a_comparison_are_those_of_its_first_case() {
        let mut finding = fixture::named("sweep");
        finding.cases = vec![
            case("baseline", &[("bs", "4k")], jobs(job(4096))),
            case("candidate", &[("bs", "4k")], jobs(JobPlan { direct: true, ..job(4096) })),
        ];
        let texts = texts(&finding);
        assert_eq!(texts[0], "Job: reads: ioengine=psync rw=read bs=4k iodepth=1 filename=data");
        assert_eq!(texts[1], "Sweep: rw: randread, randwrite");
    }

    #[test]
    fn every_arm_has_its_command_in_full() {
        let mut finding = fixture::named("options");
        let command = |file: &str| Work::Command(["dd", "if=/dev/zero", file].map(str::to_owned).to_vec());
        finding.cases = vec![case("baseline", &[], command("of=a b")), case("candidate", &[], command("of=c"))];
        assert_eq!(
            texts(&finding),
            ["Command: baseline: dd if=/dev/zero 'of=a b'", "Command: candidate: dd if=/dev/zero of=c"]
        );
        finding.cases = vec![case("baseline", &[], command("of=c")), case("candidate", &[], command("of=c"))];
        assert_eq!(texts(&finding), ["Command: dd if=/dev/zero of=c"]);
    }
}
