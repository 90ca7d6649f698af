//! The work of a measurement in fio's words: "ioengine=psync rw=randread bs=4k iodepth=1".

use crate::document::{Audience, Fact};
use crate::shell::command;
use model::comparison::CompareFinding;
use model::comparison::finding::CasePlan;
use model::elided_list::elided_list;
use model::experiment::Work;
use model::finding::RunFinding;
use model::plan::JobPlan;
use model::stored::options_of;

/// Options that are shown also if they are fio's default.
const ALWAYS: [&str; 4] = ["ioengine", "rw", "bs", "iodepth"];
/// Options whose values are bytes.
const SIZES: [&str; 4] = ["bs", "size", "offset", "io_size"];
/// Jobs that are shown; the others are counted.
const MOST_JOBS: usize = 4;
/// A longer text is not for a terminal, whose reader typed it.
const SHORT: usize = 200;

/// What defines the work of a job, and what is not default: "ioengine=psync rw=randread bs=4k iodepth=1 filename=data".
pub fn options(job: &JobPlan) -> String {
    let words = given(job).into_iter().map(|(name, value)| format!("{name}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

/// All options of a job that are worth to say, in fio's notation.
fn given(job: &JobPlan) -> Vec<(String, String)> {
    let usual = options_of(&JobPlan::default());
    let differs = |option: &(&str, String)| ALWAYS.contains(&option.0) || !usual.contains(option);
    let given = options_of(job).into_iter().filter(|option| option.0 != "files" && differs(option));
    let mut options: Vec<(String, String)> = given
        .map(|(name, value)| (name.to_owned(), if SIZES.contains(&name) { short(&value) } else { as_typed(value) }))
        .collect();
    let mut add = |name: &str, value: Option<String>| options.extend(value.map(|value| (name.to_owned(), value)));
    add("filename", (!job.target.files.is_empty()).then(|| job.target.files.join(":")));
    let folder = job.target.directory.as_ref().map(|folder| {
        let folders = std::iter::once(folder).chain(&job.target.more_directories);
        folders.map(String::as_str).collect::<Vec<_>>().join(":")
    });
    add("directory", folder);
    let runtime = job.duration.runtime.0;
    add("runtime", (runtime > 0).then(|| duration(runtime)));
    add("time_based", job.duration.time_based.then(|| "1".to_owned()));
    add("number_ios", job.duration.number_ios.map(|ios| ios.to_string()));
    add("loops", (job.duration.loops != 1).then(|| job.duration.loops.to_string()));
    options
}

/// What an option is if it is not given.
fn usual(name: &str) -> String {
    let all = options_of(&JobPlan::default());
    all.into_iter().find(|(other, _)| *other == name).map_or_else(|| "default".to_owned(), |(_, value)| as_typed(value))
}

/// A switch as fio writes it: 1 or 0.
fn as_typed(value: String) -> String {
    match value.as_str() {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        _ => value,
    }
}

/// "4k,4k,64k" of "4096,4096,65536": as people write sizes, if that is exact.
fn short(sizes: &str) -> String {
    let one = |size: &str| {
        let Ok(bytes) = size.parse::<u64>() else { return size.to_owned() };
        let units = [(1u64 << 40, "t"), (1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
        let unit = units.iter().find(|(unit, _)| bytes > 0 && bytes % unit == 0);
        unit.map_or_else(|| size.to_owned(), |(unit, letter)| format!("{}{letter}", bytes / unit))
    };
    sizes.split(',').map(one).collect::<Vec<_>>().join(",")
}

/// "10s", or in microseconds.
fn duration(nanos: u64) -> String {
    match nanos {
        whole if whole % 1_000_000_000 == 0 => format!("{}s", whole / 1_000_000_000),
        whole if whole % 1_000_000 == 0 => format!("{}ms", whole / 1_000_000),
        other => format!("{}us", other / 1000),
    }
}

/// The jobs of a run. A foreign command says itself what it does.
pub fn of_run(finding: &RunFinding) -> Vec<Fact> {
    let jobs = finding.jobs.iter().filter_map(|job| Some((job.name.as_str(), options(job.plan.as_ref()?))));
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
type Varied = Vec<(String, Vec<String>)>;

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
        let mut names: Vec<&String> = own.iter().map(|(name, _)| name).collect();
        for (name, _) in of_others.iter().flat_map(|(_, options)| options) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let values = |options: &[(String, Vec<String>)], name: &str| {
            let found = options.iter().find(|(other, _)| other == name);
            found.map_or_else(|| usual(name), |(_, values)| elided_list(values, "|"))
        };
        let word = |name: &&String| {
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
    let mut all: Varied = Vec::new();
    for (name, value) in jobs.iter().flat_map(|job| given(job)) {
        match all.iter_mut().find(|(other, _)| *other == name) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => all.push((name, vec![value])),
        }
    }
    all
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
    use model::plan::{BlockSizes, EngineKind, Phase, Plan};
    use model::unit::Bytes;

    fn job(block: u64) -> JobPlan {
        let sizes = BlockSizes { read: Bytes(block), write: Bytes(block), trim: Bytes(block) };
        let mut job = JobPlan { name: "reads".to_owned(), engine: EngineKind::Psync, ..JobPlan::default() };
        job.block_sizes = sizes;
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
    fn sizes_are_written_as_people_write_them() {
        assert_eq!(
            ["4096", "65536,4096,1048576", "4097", "50%", "0"].map(short),
            ["4k", "64k,4k,1m", "4097", "50%", "0"]
        );
        assert_eq!([duration(10_000_000_000), duration(1_500_000_000), duration(2_500)], ["10s", "1500ms", "2us"]);
    }

    #[test]
    fn the_jobs_of_a_comparison_say_what_differs_between_arms() {
        let mut finding = fixture::options();
        finding.cases = vec![case("baseline", &[], jobs(job(4096))), case("candidate", &[], jobs(job(8192)))];
        let expected = "Job: reads: ioengine=psync rw=read bs=4k (candidate: 8k) iodepth=1 filename=data";
        assert_eq!(texts(&finding), [expected]);
    }

    #[test]
    fn an_option_that_only_one_arm_has_is_shown() {
        let mut finding = fixture::options();
        let direct = JobPlan { direct: true, ..job(4096) };
        finding.cases = vec![case("baseline", &[], jobs(job(4096))), case("candidate", &[], jobs(direct))];
        let text = texts(&finding).concat();
        assert!(text.ends_with("direct=0 (candidate: 1)"), "{text}");
    }

    #[test]
    fn what_is_swept_has_all_its_values() {
        let mut finding = fixture::sweep();
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
        let mut finding = fixture::options();
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
