//! The work of a measurement in fio's words: "ioengine=psync rw=randread bs=4k iodepth=1".

use crate::document::{Audience, Fact};
use crate::shell::command;
use model::comparison::CompareFinding;
use model::comparison::finding::CasePlan;
use model::elided_list::{distinct, elided_list, grouped};
use model::experiment::Work;
use model::finding::RunFinding;
use model::plan::{JobPlan, options};

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

/// The work of a comparison: its jobs with what varies, or the command of each arm.
pub fn of_comparison(finding: &CompareFinding) -> Vec<Fact> {
    let Some(first) = finding.cases.first() else { return Vec::new() };
    let axes = finding.axes.iter().map(|axis| (axis.name.clone(), axis.values.join(", ")));
    let axes = axes.map(|(name, values)| Fact::new("Sweep", format!("{name}: {values}")));
    let work = match &first.plan {
        Work::Jobs(_) => listed("Job", of_jobs(finding)),
        Work::Command(_) => of_commands(finding),
    };
    work.into_iter().chain(axes).collect()
}

/// Options, each with its different values.
type Varied = Vec<(&'static str, Vec<String>)>;

/// Each job of the baseline with its options. An option that varies has all its values, and those of an arm with others.
fn of_jobs(finding: &CompareFinding) -> Vec<(String, String)> {
    let baseline = jobs_of(finding.cases.iter().filter(|case| is_of(finding, case, 0)));
    let others: Vec<(&str, Vec<Vec<&JobPlan>>)> = finding
        .arms
        .iter()
        .enumerate()
        .skip(1)
        .map(|(place, arm)| {
            (arm.name.as_str(), jobs_of(finding.cases.iter().filter(move |case| is_of(finding, case, place))))
        })
        .collect();
    let words = |(place, jobs): (usize, &Vec<&JobPlan>)| {
        let name = jobs.first().map_or_else(String::new, |job| job.name.clone());
        let own = options_of_all(jobs);
        let of_others: Vec<(&str, Varied)> = others
            .iter()
            .map(|(arm, jobs)| (*arm, jobs.get(place).map_or_else(Vec::new, |jobs| options_of_all(jobs))))
            .collect();
        let mut names: Vec<&str> = own.iter().map(|(name, _)| *name).collect();
        for (name, _) in of_others.iter().flat_map(|(_, options)| options) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let values = |options: &Varied, name: &str| {
            let found = options.iter().find(|(other, _)| *other == name);
            found.map_or_else(|| options::usual(name), |(_, values)| elided_list(values, "|"))
        };
        let word = |name: &&str| {
            let first = values(&own, name);
            let differ = of_others.iter().map(|(arm, options)| (arm, values(options, name)));
            let differ: Vec<String> =
                differ.filter(|(_, value)| *value != first).map(|(arm, value)| format!("{arm}: {value}")).collect();
            let differ = if differ.is_empty() { String::new() } else { format!(" ({})", elided_list(&differ, ", ")) };
            format!("{name}={first}{differ}")
        };
        (name, names.iter().map(word).collect::<Vec<_>>().join(" "))
    };
    baseline.iter().enumerate().map(words).collect()
}

/// Whether a case is of the arm at `place`.
fn is_of(finding: &CompareFinding, case: &CasePlan, place: usize) -> bool {
    finding.arms.get(place).is_some_and(|arm| arm.name == case.arm)
}

/// By place in the plan: the same job in all cases.
fn jobs_of<'a>(cases: impl Iterator<Item = &'a CasePlan>) -> Vec<Vec<&'a JobPlan>> {
    let mut all: Vec<Vec<&JobPlan>> = Vec::new();
    for case in cases {
        let Work::Jobs(plan) = &case.plan else { continue };
        for (place, job) in plan.phases.iter().flat_map(|phase| &phase.jobs).enumerate() {
            match all.get_mut(place) {
                Some(jobs) => jobs.push(job),
                None => all.push(vec![job]),
            }
        }
    }
    all
}

/// The options of one job in all cases, each with its different values.
fn options_of_all(jobs: &[&JobPlan]) -> Varied {
    grouped(distinct(jobs.iter().flat_map(|job| options::shown(job, &ALWAYS))))
}

/// The command of each arm in full; one if all arms have the same. Of a sweep, that of its first point.
fn of_commands(finding: &CompareFinding) -> Vec<Fact> {
    let first = |place: usize| {
        let case = finding.cases.iter().find(|case| is_of(finding, case, place))?;
        let Work::Command(words) = &case.plan else { return None };
        let cell: Vec<String> = case.cell.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let at = if cell.is_empty() { String::new() } else { format!("  (at {})", cell.join(" ")) };
        Some((finding.arms.get(place)?.name.clone(), command(words) + &at))
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
    use crate::compare::fixture;
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
    fn the_jobs_of_a_comparison_say_what_differs_between_arms() {
        let mut finding = fixture::named("options");
        finding.cases = vec![case("baseline", &[], jobs(job(4096))), case("candidate", &[], jobs(job(8192)))];
        let expected = "Job: reads: ioengine=psync rw=read bs=4k (candidate: 8k) iodepth=1 filename=data";
        assert_eq!(texts(&finding), [expected]);
    }

    #[test]
    fn an_option_that_only_one_arm_has_is_shown() {
        let mut finding = fixture::named("options");
        let direct = JobPlan { direct: true, ..job(4096) };
        finding.cases = vec![case("baseline", &[], jobs(job(4096))), case("candidate", &[], jobs(direct))];
        let text = texts(&finding).concat();
        assert!(text.ends_with("direct=0 (candidate: 1)"), "{text}");
    }

    #[test]
    fn what_is_swept_has_all_its_values() {
        let mut finding = fixture::named("sweep");
        finding.cases = ["4k", "64k"]
            .into_iter()
            .zip([4096, 65536])
            .flat_map(|(bs, bytes)| ["baseline", "candidate"].map(|arm| case(arm, &[("bs", bs)], jobs(job(bytes)))))
            .collect();
        let texts = texts(&finding);
        assert_eq!(texts[0], "Job: reads: ioengine=psync rw=read bs=4k|64k iodepth=1 filename=data");
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
