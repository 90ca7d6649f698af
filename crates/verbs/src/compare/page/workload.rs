//! The work of a comparison in words.

use crate::compare::CompareFinding;
use crate::pages::workload::{listed, options};
use model::experiment::Work;
use report::document::Fact;
use report::shell::command;

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
    use model::plan::{EngineKind, JobPlan, Phase, Plan};
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
