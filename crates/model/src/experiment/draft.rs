//! What a user wrote, and how it becomes an [`Experiment`].

mod origin;

pub use origin::Origin;

use super::{
    ArmPlan, Around, Axis, BootPlan, Cache, Case, Cell, DraftRules, Experiment, Limit, Metric, Published, Rules, Work,
};
use crate::page_cache::is_buffered;
use crate::plan::{DeviceWrites, ParseError, Plan, Settings, UnknownOptions, parse};
use std::collections::BTreeMap;
use std::fmt;

/// An experiment as it was written.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Where it was written.
    pub origin: Origin,
    /// In one line; made up of the arms when it is empty.
    pub title: String,
    /// What every arm does.
    pub workload: Workload,
    /// The arms, baseline first. One alone is compared with itself.
    pub arms: Vec<ArmPlan>,
    /// What is varied besides.
    pub axes: Vec<Axis>,
    /// When it ends and what counts.
    pub rules: DraftRules,
    /// What must not happen.
    pub limits: Vec<Limit>,
    /// What others published.
    pub published: Vec<Published>,
    /// Compare the baseline with itself.
    pub against_itself: bool,
    /// Boots of each arm, where arms are boots and it was said.
    pub boots: Option<u32>,
    /// What boots the arm that is next.
    pub hook: Option<String>,
    /// What the page cache is to hold, where it was said.
    pub cache: Option<Cache>,
    /// Shell commands around it.
    pub around: Around,
    /// Where the load is to run, where it was said.
    pub place: Option<crate::placement::Place>,
}

/// What every arm does, before its own options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// Nothing was said: each arm has a command.
    #[default]
    None,
    /// A job file, by name and text.
    JobFile {
        /// What messages call it.
        name: String,
        /// Its text.
        text: String,
        /// Options on top of it, as `name=value`.
        options: Vec<String>,
    },
    /// Options of a job as flags.
    Flags(Vec<String>),
    /// A foreign command.
    Command(Vec<String>),
}

/// What resolving depends on besides the draft.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The environment, for `${NAME}` in job files.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// What to do with options of a job that are not known.
    pub unknown_options: UnknownOptions,
    /// Whether jobs may write to devices.
    pub device_writes: DeviceWrites,
}

/// Why a draft is no experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// An option of a job.
    #[error(transparent)]
    Job(#[from] ParseError),
    /// The experiment as a whole: what, and how to mend it.
    #[error("{0}")]
    Wrong(String),
}

fn wrong<T>(message: impl fmt::Display) -> Result<T, DraftError> {
    Err(DraftError::Wrong(message.to_string()))
}

/// More cases than this are surely a slip of the hand; each has a process of its own in every round.
const MOST_CASES: usize = 512;

impl Draft {
    /// The experiment that it means.
    ///
    /// # Errors
    /// What is missing or contradicts itself, in one line.
    pub fn resolve(self, surroundings: &Surroundings) -> Result<Experiment, DraftError> {
        let origin = self.origin.clone();
        self.resolved(surroundings).map_err(|error| origin.refuses(error))
    }

    fn resolved(self, surroundings: &Surroundings) -> Result<Experiment, DraftError> {
        let rules = self.rules.clone().resolve();
        rules.check().or_else(wrong)?;
        let arms = self.arms()?;
        let commands = matches!(self.workload, Workload::Command(_)) || arms.iter().any(|arm| arm.command.is_some());
        let whole = |metric: &Metric| matches!(metric, Metric::Cycles | Metric::Seconds);
        if rules.targets.is_empty() {
            return wrong("target: there is none; leave it out, or give cycles_per_io, iops, latency_mean, …");
        }
        if !commands && rules.targets.iter().any(whole) {
            return wrong("target: cycles and seconds are of commands; a job has cycles_per_io, iops, latency_mean, …");
        }
        if let Some(limit) = self.limits.iter().find(|limit| !commands && whole(&limit.metric)) {
            let flag = self.origin.says("--fail-on", "fail_on");
            return wrong(format!(
                "{flag} '{limit}': {} is of commands; of a job take cycles_per_io, iops, …",
                limit.metric.name()
            ));
        }
        if let Some(metric) = rules.targets.iter().find(|metric| metric.percent().is_some()) {
            return wrong(format!(
                "target: {} is a percentile, and its interval is made at the end, of rounds that are joined; give latency_mean \
                 (percentiles are shown in any case, and {} takes them)",
                metric.name(),
                self.origin.says("--fail-on", "fail_on")
            ));
        }
        let boots = self.boots(&arms)?;
        let cells = self.cells()?;
        if let Some(lost) = self.published.iter().find(|published| !cells.iter().any(|cell| published.fits(cell))) {
            let place = Cell { values: lost.cell.clone() };
            return wrong(format!(
                "published from '{}': {place} is no point of the sweep; write its values as the sweep does, or leave cell out",
                lost.source
            ));
        }
        if cells.len().saturating_mul(arms.len()) > MOST_CASES {
            let (cells, arms) = (cells.len(), arms.len());
            return wrong(format!("{cells} cells × {arms} arms: at most {MOST_CASES} cases; sweep fewer values"));
        }
        let mut cases = Vec::new();
        for (cell_index, cell) in cells.iter().enumerate() {
            for (arm_index, arm) in arms.iter().enumerate() {
                let work = self.work(cell, arm, surroundings)?;
                cases.push(Case { cell: cell_index, arm: arm_index, work });
            }
        }
        self.conditions(&cases, &rules)?;
        let title = match self.title.as_str() {
            "" if self.against_itself => format!("{} against itself", arms.first().map_or("", |arm| &arm.name)),
            "" => arms.iter().map(ArmPlan::what).collect::<Vec<_>>().join(" | "),
            title => title.to_owned(),
        };
        Ok(Experiment {
            title,
            arms,
            axes: self.axes,
            cells,
            cases,
            rules,
            limits: self.limits,
            published: self.published.into_iter().map(with_change).collect(),
            against_itself: self.against_itself,
            boots,
            cache: self.cache,
            around: self.around,
            place: self.place,
        })
    }

    /// Whether the conditions that were asked for can be had of these cases.
    fn conditions(&self, cases: &[Case], rules: &Rules) -> Result<(), DraftError> {
        let says = |flag, in_file| self.origin.says(flag, in_file);
        let cache = says("--cache", "cache");
        let prepare = says("--prepare", "prepare");
        let commands = cases.iter().any(|case| matches!(case.work, Work::Command(_)));
        if self.cache.is_some() && commands {
            return wrong(format!(
                "{cache} is of jobs, whose files are known; a command opens files of its own: {prepare} 'cat FILE >/dev/null' \
                 warms them before each execution, {prepare} 'echo 3 >/proc/sys/vm/drop_caches' drops them"
            ));
        }
        if self.rules.slice_seconds.is_some() && commands {
            let slice = says("--slice", "slice");
            return wrong(format!(
                "{slice} is of jobs; a command is executed from its beginning to its end: leave it out"
            ));
        }
        // Two rounds are measured in any case: a slice for each case and one for the machine alone.
        let least = rules.slice_seconds.unwrap_or(0.0) * 2.0 * (cases.len() + 1) as f64;
        if least > rules.budget_seconds {
            let (slice, budget) = (says("--slice", "slice"), says("--budget", "budget"));
            return wrong(format!(
                "{slice} of {} s: two rounds of {} slices take {least:.0} s and {budget} is {:.0} s; give a longer {budget} or a \
                 shorter {slice}",
                rules.slice_seconds.unwrap_or(0.0),
                cases.len() + 1,
                rules.budget_seconds
            ));
        }
        if self.around.prepare.is_some() && !commands {
            return wrong(format!(
                "{prepare} runs before each execution of a command, and jobs have none; {cache} warm or cold prepares their \
                 files, {} runs once before all",
                says("--setup", "setup")
            ));
        }
        let mut jobs = cases.iter().filter_map(|case| case.work.phase()).flat_map(|phase| &phase.jobs);
        if self.cache.is_some()
            && let Some(job) = jobs.find(|job| job.invalidate.is_some())
        {
            let bit = u8::from(job.invalidates());
            return wrong(format!("{cache} and invalidate={bit} both say what the page cache holds; give one of them"));
        }
        let all_jobs = cases.iter().filter_map(|case| case.work.phase()).flat_map(|phase| &phase.jobs);
        if self.cache.is_some() && !all_jobs.clone().any(is_buffered) {
            return wrong(format!(
                "{cache} changes nothing: no job uses the page cache (direct=1, or no files); leave it out"
            ));
        }
        let refused = self.place.as_ref().and_then(|place| {
            commands.then(|| place.refuses_command()).flatten().or_else(|| place.refuses_jobs(all_jobs))
        });
        if let Some(why) = refused {
            return wrong(why);
        }
        let Around { setup, prepare: before_each, cleanup } = &self.around;
        if [setup, before_each, cleanup].into_iter().flatten().any(|command| command.trim().is_empty()) {
            return wrong("setup, prepare and cleanup are shell commands, and one is empty; 'true' does nothing");
        }
        Ok(())
    }

    /// What its arms say of boots: all of them something, or none.
    fn boots(&self, arms: &[ArmPlan]) -> Result<Option<BootPlan>, DraftError> {
        let Some(booted) = arms.iter().find(|arm| arm.when.is_some()) else {
            return match (self.boots, &self.hook) {
                (None, None) => Ok(None),
                _ => wrong("boots and hook are of arms that are booted: give each arm when = \"uname -r = …\""),
            };
        };
        if self.against_itself {
            // Whatever its second name: it is booted whenever the first is.
            return wrong(format!(
                "arm '{}' has a when, and against itself it would be two arms with the same: which of them is booted? Leave {} out",
                booted.name,
                self.origin.says("--aa", "aa = true")
            ));
        }
        for (place, arm) in arms.iter().enumerate() {
            let Some(when) = &arm.when else {
                return wrong(format!(
                    "arm '{}' has no when, and arm '{}' has; with boots each needs one",
                    arm.name, booted.name
                ));
            };
            if let Some(other) = arms.iter().take(place).find(|other| other.when.as_ref() == Some(when)) {
                return wrong(format!(
                    "arms '{}' and '{}' have the same when: which of them is booted?",
                    other.name, arm.name
                ));
            }
        }
        let plan = BootPlan { each: self.boots.unwrap_or(BootPlan::EACH), hook: self.hook.clone(), begun: None };
        plan.check().or_else(wrong)?;
        Ok(Some(plan))
    }

    fn arms(&self) -> Result<Vec<ArmPlan>, DraftError> {
        let mut arms = self.arms.clone();
        if self.against_itself {
            if let Some(other) = arms.get(1) {
                let name = &other.name;
                return wrong(format!(
                    "the baseline is compared with itself, and there is arm '{name}'; give one or the other"
                ));
            }
            let Some(baseline) = arms.first() else {
                return wrong("there is no arm to compare with itself: give it as the one [[arm]]");
            };
            arms.push(ArmPlan { name: "itself".to_owned(), ..baseline.clone() });
            return Ok(arms);
        }
        if arms.len() < 2 {
            let mend = self.origin.says(
                "--candidate OPTIONS, --candidate-cmd CMD, --candidate-set … or --aa",
                "an [[arm]] for each of them, or aa = true",
            );
            let what = if arms.is_empty() { "there are no arms" } else { "one arm is no comparison" };
            return wrong(format!("{what}: give {mend}"));
        }
        for (place, arm) in arms.iter().enumerate() {
            if arms.iter().take(place).any(|other| other.name == arm.name) {
                return wrong(format!("two arms are called '{}'; name them apart", arm.name));
            }
            if arm.name.trim().is_empty() {
                return wrong("an arm has no name; give it one");
            }
            if [&arm.setup, &arm.cleanup].into_iter().flatten().any(|command| command.trim().is_empty()) {
                return wrong(format!(
                    "arm '{}': setup and cleanup are shell commands, and one is empty; 'true' does nothing",
                    arm.name
                ));
            }
            if arm.cleanup.is_some() != arm.setup.is_some() {
                return wrong(format!("arm '{}': setup and cleanup belong together; give both", arm.name));
            }
            let nameless = |other: &&ArmPlan| ArmPlan { name: String::new(), ..(*other).clone() };
            if arms.iter().take(place).any(|other| nameless(&other) == nameless(&arm)) {
                let itself = self.origin.says("--aa", "aa = true, and one [[arm]],");
                return wrong(format!(
                    "arm '{}' is the same as another; {itself} compares an arm with itself",
                    arm.name
                ));
            }
        }
        Ok(arms)
    }

    fn cells(&self) -> Result<Vec<Cell>, DraftError> {
        let mut cells = vec![Cell::default()];
        for (place, axis) in self.axes.iter().enumerate() {
            if axis.values.is_empty() || axis.values.iter().any(String::is_empty) {
                let (name, as_flag) = (&axis.name, format!("{}=A,B,C", axis.name));
                let expected = self.origin.says(&as_flag, "values = [\"A\", \"B\", \"C\"]");
                return wrong(format!("sweep of {name}: a value is missing; expected {expected}"));
            }
            if self.axes.iter().take(place).any(|other| other.name == axis.name) {
                return wrong(format!("{} is swept twice; put all its values into one sweep", axis.name));
            }
            if let Some(again) = axis
                .values
                .iter()
                .enumerate()
                .find(|(at, value)| axis.values.iter().take(*at).any(|other| other == *value))
            {
                return wrong(format!("sweep of {}: the value {} stands there twice", axis.name, again.1));
            }
            // By whatever name: fio has several for some.
            let option =
                |name: &str| crate::plan::options::find(name).map_or(name.to_owned(), |option| option.name.to_owned());
            let sets = |text: &String| option(text.split('=').next().unwrap_or(text)) == option(&axis.name);
            if let Some(arm) = self.arms.iter().find(|arm| arm.options.iter().any(sets)) {
                return wrong(format!("{} is swept, and arm '{}' sets it; choose one", axis.name, arm.name));
            }
            if cells.len().saturating_mul(axis.values.len()) > MOST_CASES {
                return wrong(format!("the sweep has more than {MOST_CASES} cells; sweep fewer values"));
            }
            let with = |cell: &Cell, value: &String| {
                let mut values = cell.values.clone();
                values.insert(axis.name.clone(), value.clone());
                Cell { values }
            };
            cells = cells.iter().flat_map(|cell| axis.values.iter().map(move |value| with(cell, value))).collect();
        }
        Ok(cells)
    }

    fn work(&self, cell: &Cell, arm: &ArmPlan, surroundings: &Surroundings) -> Result<Work, DraftError> {
        let command = match (&arm.command, &self.workload) {
            (Some(command), Workload::None) => Some(command),
            (Some(_), _) => {
                return wrong(format!("arm '{}' has a command, and there is a workload for all; choose one", arm.name));
            }
            (None, Workload::Command(command)) => Some(command),
            (None, _) => None,
        };
        if let Some(command) = command {
            if let Some(option) = arm.options.first() {
                let name = &arm.name;
                let mend = match self.origin {
                    // Other candidates than the first have names that are no flags.
                    Origin::CommandLine if arm.name == "baseline" => "give --baseline-cmd",
                    Origin::CommandLine => "give --candidate-cmd",
                    Origin::File(_) => "give the arm a command = … of its own",
                };
                return wrong(format!(
                    "arm '{name}': '{option}' is an option of a job, and a command has none; {mend}"
                ));
            }
            return fill_in(command, &cell.values).map(Work::Command);
        }
        let swept = cell.values.iter().map(|(name, value)| format!("{name}={value}"));
        let options: Vec<String> = swept.chain(arm.options.iter().cloned()).collect();
        let plan = self.plan(&options, surroundings)?;
        match plan.phases.as_slice() {
            [_] => Ok(Work::Jobs(plan)),
            phases => wrong(format!(
                "the job has {} phases (stonewall): which of them is compared? Put one into a job file of its own",
                phases.len()
            )),
        }
    }

    fn plan(&self, case: &[String], surroundings: &Surroundings) -> Result<Plan, DraftError> {
        let &Surroundings { environment, unknown_options, device_writes } = surroundings;
        let settings = |overrides| Settings { environment, overrides, unknown_options, device_writes };
        match &self.workload {
            Workload::JobFile { name, text, options } => {
                let options = [options.as_slice(), case].concat();
                Ok(parse::job_file(name, text, &settings(&options))?)
            }
            Workload::Flags(flags) => {
                // A job needs a name only where there are several.
                let named = flags.iter().any(|flag| flag == "--name" || flag.starts_with("--name="));
                let name = (!named).then(|| "--name=job".to_owned());
                let flags: Vec<String> = name.into_iter().chain(flags.iter().cloned()).collect();
                Ok(parse::flags(&flags, &settings(case))?)
            }
            Workload::None | Workload::Command(_) => {
                let mend = self.origin.says(
                    "JOB.fio, options such as --rw=randread, or a command after --",
                    "job = \"…\", command = \"…\", or each arm a command",
                );
                wrong(format!("there is no workload: give {mend}"))
            }
        }
    }
}

/// A published change is often left to the reader.
fn with_change(published: Published) -> Published {
    let values = published.baseline.zip(published.candidate).filter(|(baseline, _)| *baseline > 0.0);
    let change = published.change.or(values.map(|(baseline, candidate)| candidate / baseline - 1.0));
    Published { change, ..published }
}

/// A command with the values of a cell in the place of their names in braces.
fn fill_in(command: &[String], values: &BTreeMap<String, String>) -> Result<Vec<String>, DraftError> {
    let mut filled = command.to_vec();
    for (name, value) in values {
        let braced = format!("{{{name}}}");
        if !filled.iter().any(|word| word.contains(&braced)) {
            return wrong(format!(
                "{name} is swept, but the command does not hold {braced}; write it where the value belongs"
            ));
        }
        filled.iter_mut().for_each(|word| *word = word.replace(&braced, value));
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Setting, When};

    fn surroundings() -> Surroundings<'static> {
        Surroundings {
            environment: &|_| None,
            unknown_options: UnknownOptions::Refuse,
            device_writes: DeviceWrites::Refuse,
        }
    }

    fn arm(name: &str, options: &[&str]) -> ArmPlan {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        ArmPlan { name: name.to_owned(), options, ..ArmPlan::default() }
    }

    fn draft() -> Draft {
        Draft {
            workload: Workload::Flags(["--ioengine=null", "--size=1m"].map(str::to_owned).to_vec()),
            arms: vec![arm("baseline", &[]), arm("candidate", &["inject_ns=100"])],
            ..Draft::default()
        }
    }

    fn axis(name: &str, values: &[&str]) -> Axis {
        Axis { name: name.to_owned(), values: values.iter().map(|&value| value.to_owned()).collect() }
    }

    #[test]
    fn each_case_has_the_options_of_its_cell_and_arm() {
        let draft = Draft { axes: vec![axis("bs", &["4k", "64k"]), axis("rw", &["read", "write"])], ..draft() };
        let experiment = draft.resolve(&surroundings()).unwrap();
        assert_eq!((experiment.cells.len(), experiment.cases.len()), (4, 8));
        let last = experiment.cases.last().unwrap();
        let Work::Jobs(plan) = &last.work else { panic!("no jobs") };
        let job = &plan.phases[0].jobs[0];
        assert_eq!((job.block_sizes.read.0, job.rw(), job.inject.0), (65_536, "write", 100));
        assert_eq!(experiment.cells[last.cell].to_string(), "bs=64k rw=write");
    }

    #[test]
    fn a_command_takes_the_sweep_s_values_in_braces() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut draft = Draft {
            axes: vec![axis("bs", &["4k", "8k"])],
            against_itself: true,
            arms: vec![arm("baseline", &[])],
            ..draft()
        };
        draft.workload = Workload::Command(words("fio --bs={bs} j.fio"));
        let experiment = draft.clone().resolve(&surroundings()).unwrap();
        let Work::Command(command) = &experiment.cases[2].work else { panic!("no command") };
        assert_eq!(command, &words("fio --bs=8k j.fio"));
        draft.workload = Workload::Command(words("fio j.fio"));
        assert!(draft.resolve(&surroundings()).unwrap_err().to_string().contains("does not hold {bs}"));
    }

    #[test]
    fn what_is_no_comparison_is_refused_in_words() {
        let says = |draft: Draft| draft.resolve(&surroundings()).unwrap_err().to_string();
        assert!(says(Draft { arms: vec![arm("baseline", &[])], ..draft() }).contains("one arm is no comparison"));
        assert!(says(Draft { arms: vec![arm("a", &[]), arm("a", &["bs=8k"])], ..draft() }).contains("called 'a'"));
        assert!(says(Draft { axes: vec![axis("bs", &["4k", "4k"])], ..draft() }).contains("twice"));
        assert!(says(Draft { axes: vec![axis("inject_ns", &["1"])], ..draft() }).contains("choose one"));
        assert!(says(Draft { axes: vec![axis("bs", &[""])], ..draft() }).contains("missing"));
        assert!(says(Draft { workload: Workload::None, ..draft() }).contains("no workload"));
        let command = Workload::Command(vec!["fio".to_owned()]);
        assert!(says(Draft { workload: command, ..draft() }).contains("option of a job"));
        assert!(says(Draft { arms: vec![arm("a", &[]), arm("b", &["bz=8k"])], ..draft() }).contains("bz"));
        let targets = Some(vec![Metric::Iops, Metric::LatencyP99]);
        let percentile = says(Draft { rules: DraftRules { targets, ..DraftRules::default() }, ..draft() });
        assert!(
            percentile.starts_with("compare: target: latency_p99 is a percentile")
                && percentile.contains("give latency_mean")
        );
        assert!(!percentile.contains('\n'), "{percentile}");
        let many: Vec<String> = (1..600).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(says(Draft { axes: vec![axis("iodepth", &many)], ..draft() }).contains("fewer values"));
        let rules = DraftRules { budget_seconds: Some(0.0), ..DraftRules::default() };
        assert!(says(Draft { rules, ..draft() }).contains("budget of 0 s"));
        let rules = || DraftRules { slice_seconds: Some(0.02), ..DraftRules::default() };
        assert!(Draft { rules: rules(), ..draft() }.resolve(&surroundings()).is_ok());
        let command = Workload::Command(vec!["true".to_owned()]);
        let on = ArmPlan { settings: vec![Setting::parse("sysctl:a.b=1").unwrap()], ..arm("on", &[]) };
        let arms = vec![arm("off", &[]), on];
        assert!(says(Draft { rules: rules(), workload: command, arms, ..draft() }).contains("--slice is of jobs"));
        let rules = DraftRules { slice_seconds: Some(5.0), budget_seconds: Some(1.0), ..DraftRules::default() };
        let long = says(Draft { rules, ..draft() });
        assert!(long.contains("two rounds of 3 slices take 30 s and --budget is 1 s"), "{long}");
        let published = |cell: &[(&str, &str)]| {
            let cell = cell.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            let (source, change) = ("a mail".to_owned(), Some(0.1));
            let published =
                vec![Published { cell, metric: Metric::Iops, baseline: None, candidate: None, change, source }];
            Draft { axes: vec![axis("bs", &["4k", "64k"]), axis("iodepth", &["1", "8"])], published, ..draft() }
        };
        for lost in [[("bs", "8k")].as_slice(), &[("bs", "4096")], &[("rw", "read")], &[("bs", "4k"), ("iodepth", "2")]]
        {
            let why = says(published(lost));
            assert!(why.contains("published from 'a mail'") && why.contains("no point of the sweep"), "{why}");
        }
        for found in [[].as_slice(), &[("bs", "64k")], &[("bs", "4k"), ("iodepth", "8")]] {
            assert!(published(found).resolve(&surroundings()).is_ok(), "{found:?}");
        }
    }

    /// Each refusal that advises something does it in the language of where the draft was written.
    #[test]
    fn a_refusal_says_where_and_what_can_be_written_there() {
        let command = || Workload::Command(vec!["fio".to_owned()]);
        let when = |name: &str| ArmPlan { when: When::parse("true").ok(), ..arm(name, &[]) };
        let targets = Some(vec![Metric::LatencyP50]);
        let cases: [(Draft, &str, &str); 8] = [
            (Draft { arms: vec![arm("a", &[])], ..draft() }, "--candidate OPTIONS", "[[arm]]"),
            (Draft { arms: vec![arm("a", &[]), arm("b", &[])], ..draft() }, "--aa", "aa = true"),
            (Draft { workload: command(), ..draft() }, "--candidate-cmd", "command = …"),
            (Draft { workload: Workload::None, ..draft() }, "JOB.fio", "job = \"…\""),
            (Draft { axes: vec![axis("bs", &[""])], ..draft() }, "bs=A,B,C", "values = ["),
            (Draft { arms: vec![when("a")], against_itself: true, ..draft() }, "Leave --aa out", "Leave aa = true out"),
            (Draft { rules: DraftRules { targets, ..DraftRules::default() }, ..draft() }, "--fail-on", "fail_on"),
            (Draft { arms: vec![arm("a", &[]), arm("b", &["bz=8k"])], ..draft() }, "option '--bz'", "option 'bz'"),
        ];
        for (draft, as_flags, in_file) in cases {
            let says = |origin| Draft { origin, ..draft.clone() }.resolve(&surroundings()).unwrap_err().to_string();
            let (flags, file) = (says(Origin::CommandLine), says(Origin::File("x.toml".to_owned())));
            assert!(flags.starts_with("compare: ") && flags.contains(as_flags), "{flags}");
            assert!(file.starts_with("x.toml: ") && file.contains(in_file), "{file}");
            assert!(!file.contains("--"), "{file}");
        }
    }

    #[test]
    fn a_job_file_is_named_by_itself() {
        let job = |name: &str| Workload::JobFile {
            name: name.to_owned(),
            text: "[a]\nbz=8k\n".to_owned(),
            options: Vec::new(),
        };
        let says = |origin, name| {
            Draft { origin, workload: job(name), ..draft() }.resolve(&surroundings()).unwrap_err().to_string()
        };
        assert!(says(Origin::CommandLine, "a.fio").starts_with("a.fio:2: option 'bz'"));
        assert!(says(Origin::File("x.toml".to_owned()), "x.toml (job)").starts_with("x.toml (job):2: option 'bz'"));
    }
}
