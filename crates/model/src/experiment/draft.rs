//! An experiment as the user wrote it, and how it is resolved into an [`Experiment`].

mod braces;
mod origin;
mod published;

pub use origin::Origin;

use super::{
    ArmPlan, Around, Axis, CacheCondition, Case, Cell, DraftRules, Experiment, Metric, Published, Rules, Work,
};
use crate::page_cache::is_buffered;
use crate::plan::service::{Address, Names, ServicePlan};
use crate::plan::{Plan, Refused, Settings, parse};
use std::fmt;

/// An experiment as it was written.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Where it was written.
    pub origin: Origin,
    /// A one-line title. If empty, the arms make up the title.
    pub title: String,
    /// What every arm runs.
    pub workload: Workload,
    /// The arms, baseline first. A single arm is compared with itself.
    pub arms: Vec<ArmPlan>,
    /// The axes of the sweep.
    pub axes: Vec<Axis>,
    /// When the experiment ends and what counts as a difference.
    pub rules: DraftRules,
    /// The limits, as written. Those of flags are not here.
    pub fail_on: Vec<String>,
    pub published: Vec<Published>,
    /// Whether the baseline is compared with itself.
    pub against_itself: bool,
    /// The requested page cache condition, if any.
    pub cache: Option<CacheCondition>,
    /// Shell commands that run around the measurement.
    pub around: Around,
    /// The requested placement of the load, if any.
    pub place: Option<crate::placement::Place>,
    /// Servers that it starts.
    pub services: Vec<ServicePlan>,
}

/// What resolving depends on besides the draft.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// For the jobs.
    pub settings: Settings<'a>,
    /// The address that was chosen for a service, by name.
    pub address: &'a dyn Fn(&str) -> Address,
}

/// No environment, no services, and the safe choices.
impl Default for Surroundings<'_> {
    fn default() -> Self {
        Self { settings: Settings::default(), address: &|_| Address::default() }
    }
}

/// What every arm runs, before its own options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// No common workload: each arm has a command.
    #[default]
    None,
    JobFile {
        /// Its name in messages.
        name: String,
        text: String,
        /// Options that override the file's, as `name=value`.
        options: Vec<String>,
    },
    /// Options of a job, as flags.
    Flags(Vec<String>),
    /// A foreign command.
    Command(Vec<String>),
}

/// Why a draft could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// Options of jobs.
    #[error(transparent)]
    Job(#[from] Refused),
    /// The experiment as a whole: what is wrong, and how to fix it.
    #[error("{0}")]
    Wrong(String),
}

fn wrong<T>(message: impl fmt::Display) -> Result<T, DraftError> {
    Err(DraftError::Wrong(message.to_string()))
}

/// More cases than this are probably a mistake; each has its own process in every round.
const MOST_CASES: usize = 512;

impl Draft {
    /// Resolves the draft.
    ///
    /// # Errors
    /// What is missing or contradictory, in one line.
    pub fn resolve(self, surroundings: &Surroundings) -> Result<Experiment, DraftError> {
        let origin = self.origin.clone();
        self.resolved(surroundings).map_err(|error| origin.refuses(error))
    }

    fn resolved(self, surroundings: &Surroundings) -> Result<Experiment, DraftError> {
        let rules = self.rules.clone().resolve();
        let arms = self.arms()?;
        let commands = matches!(self.workload, Workload::Command(_)) || arms.iter().any(|arm| arm.command.is_some());
        if rules.targets.is_empty() {
            return wrong("target is empty; leave it out, or set it to cycles_per_io, iops, latency_mean, …");
        }
        if !commands && rules.targets.iter().copied().any(Metric::is_of_commands) {
            return wrong("target: cycles and seconds are only for commands; use cycles_per_io, iops, latency_mean, …");
        }
        if let Some(metric) = rules.targets.iter().find(|metric| metric.percent().is_some()) {
            return wrong(format!(
                "target: {} is a percentile, whose interval is only known at the end; use latency_mean \
                 (percentiles are always reported, and {} accepts them)",
                metric.name(),
                self.origin.says("--fail-on", "fail_on")
            ));
        }
        let swept: Vec<String> = self.axes.iter().map(|axis| axis.name.clone()).collect();
        let services = braces::services(&self.services, &arms, &swept, surroundings)?;
        let names = Names { services: &services, swept: &swept, arm: None };
        let cells = self.cells()?;
        published::check(&self.published, &cells, &arms)?;
        if cells.len().saturating_mul(arms.len()) > MOST_CASES {
            let (cells, arms) = (cells.len(), arms.len());
            return wrong(format!("{cells} cells × {arms} arms exceed {MOST_CASES} cases; sweep fewer values"));
        }
        let mut cases = Vec::new();
        for (cell_index, cell) in cells.iter().enumerate() {
            for (arm_index, arm) in arms.iter().enumerate() {
                let names = Names { arm: (!self.against_itself).then_some(&arm.name), ..names };
                let work = self.work(cell, arm, &names, surroundings)?;
                cases.push(Case { cell: cell_index, arm: arm_index, work });
            }
        }
        self.conditions(&cases, &rules)?;
        let title = match self.title.as_str() {
            "" if self.against_itself => format!("{} against itself", arms.first().map_or("", |arm| &arm.name)),
            "" => arms.iter().map(|arm| arm.what(&arms)).collect::<Vec<_>>().join(" | "),
            title => title.to_owned(),
        };
        Ok(Experiment {
            title,
            arms: arms.into_iter().map(|arm| braces::arm(arm, &names)).collect::<Result<_, _>>()?,
            axes: self.axes,
            cells,
            cases,
            rules,
            published: self.published.into_iter().map(Published::with_change).collect(),
            against_itself: self.against_itself,
            cache: self.cache,
            around: braces::around(&self.around, &names)?,
            place: self.place,
            services,
        })
    }

    /// Checks whether the requested conditions are possible for these cases.
    fn conditions(&self, cases: &[Case], rules: &Rules) -> Result<(), DraftError> {
        let says = |flag, in_file| self.origin.says(flag, in_file);
        let cache = says("--cache", "cache");
        let prepare = says("--prepare", "prepare");
        let commands = cases.iter().any(|case| matches!(case.work, Work::Command(_)));
        if self.cache.is_some() && commands {
            return wrong(format!(
                "{cache} only works with jobs, whose files iotoll knows. For a command, use {prepare} 'cat FILE >/dev/null' \
                 (warm) or {prepare} 'echo 3 >/proc/sys/vm/drop_caches' (cold)"
            ));
        }
        if self.rules.slice_seconds.is_some() && commands {
            let slice = says("--slice", "slice");
            let slices = says("--slices", "slices");
            return wrong(format!("{slice} only works with jobs; for commands, {slices} is the length of a slice"));
        }
        if self.rules.are_of_commands() && !commands {
            let all =
                says("--slices, --count, --ios, --bytes and --end-signal", "slices, count, ios, bytes and end_signal");
            return wrong(format!("{all} only work with commands; jobs have {}", says("--slice", "slice")));
        }
        // At least two rounds are measured, each with one slice per case and one of the idle machine.
        let least = rules.slice_seconds.unwrap_or(0.0) * 2.0 * (cases.len() + 1) as f64;
        if least > rules.budget_seconds {
            let (slice, budget) = (says("--slice", "slice"), says("--budget", "budget"));
            return wrong(format!(
                "{slice} of {} s is too long: two rounds of {} slices take {least:.0} s, and {budget} is {:.0} s; use a longer {budget} or a \
                 shorter {slice}",
                rules.slice_seconds.unwrap_or(0.0),
                cases.len() + 1,
                rules.budget_seconds
            ));
        }
        if self.around.prepare.is_some() && !commands {
            return wrong(format!(
                "{prepare} only works with commands. For jobs, {cache} warm or cold prepares the \
                 files, and {} runs once before the measurement",
                says("--setup", "setup")
            ));
        }
        let mut jobs = cases.iter().filter_map(|case| case.work.phase()).flat_map(|phase| &phase.jobs);
        if self.cache.is_some()
            && let Some(job) = jobs.find(|job| job.files.invalidate.is_some())
        {
            let bit = u8::from(job.invalidates());
            return wrong(format!("{cache} and invalidate={bit} both control the page cache; use only one of them"));
        }
        let all_jobs = cases.iter().filter_map(|case| case.work.phase()).flat_map(|phase| &phase.jobs);
        if self.cache.is_some() && !all_jobs.clone().any(is_buffered) {
            return wrong(format!(
                "{cache} has no effect: no job uses the page cache (direct=1, or no files); omit it"
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
            return wrong("one of setup, prepare and cleanup is empty; use 'true' for a command that does nothing");
        }
        Ok(())
    }

    fn arms(&self) -> Result<Vec<ArmPlan>, DraftError> {
        let mut arms = self.arms.clone();
        if self.against_itself {
            if let Some(other) = arms.get(1) {
                let name = &other.name;
                return wrong(format!(
                    "the baseline is compared with itself, but there is also arm '{name}'; use one or the other"
                ));
            }
            let Some(baseline) = arms.first() else {
                return wrong("there is no arm to compare with itself; add one [[arm]]");
            };
            arms.push(ArmPlan { name: "itself".to_owned(), ..baseline.clone() });
            return Ok(arms);
        }
        if arms.len() < 2 {
            let mend = self.origin.says(
                "--candidate OPTIONS, --candidate-cmd CMD, --candidate-set … or --aa",
                "an [[arm]] for each of them, or aa = true",
            );
            let what = if arms.is_empty() { "there are no arms" } else { "a comparison needs two arms" };
            return wrong(format!("{what}; add {mend}"));
        }
        for (place, arm) in arms.iter().enumerate() {
            if arms.iter().take(place).any(|other| other.name == arm.name) {
                return wrong(format!("two arms have the name '{}'; rename one", arm.name));
            }
            if arm.name.trim().is_empty() {
                return wrong("an arm has no name; add one");
            }
            if [&arm.setup, &arm.cleanup].into_iter().flatten().any(|command| command.trim().is_empty()) {
                return wrong(format!(
                    "arm '{}': setup or cleanup is empty; use 'true' for a command that does nothing",
                    arm.name
                ));
            }
            if arm.cleanup.is_some() != arm.setup.is_some() {
                return wrong(format!("arm '{}': setup and cleanup must be given together", arm.name));
            }
            let nameless = |other: &&ArmPlan| ArmPlan { name: String::new(), ..(*other).clone() };
            if arms.iter().take(place).any(|other| nameless(&other) == nameless(&arm)) {
                let itself = self.origin.says("--aa", "aa = true with a single [[arm]]");
                return wrong(format!(
                    "arm '{}' is identical to another arm; to compare an arm with itself, use {itself}",
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
                return wrong(format!("{} is swept twice; put all values into one sweep", axis.name));
            }
            if let Some(again) = axis
                .values
                .iter()
                .enumerate()
                .find(|(at, value)| axis.values.iter().take(*at).any(|other| other == *value))
            {
                return wrong(format!("sweep of {}: the value {} appears twice", axis.name, again.1));
            }
            // Also under fio's other names for the option.
            let option =
                |name: &str| crate::plan::options::find(name).map_or(name.to_owned(), |option| option.name.to_owned());
            let sets = |text: &String| option(text.split('=').next().unwrap_or(text)) == option(&axis.name);
            if let Some(arm) = self.arms.iter().find(|arm| arm.options.iter().any(sets)) {
                return wrong(format!("{} is swept, but arm '{}' also sets it; use only one", axis.name, arm.name));
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

    fn work(&self, cell: &Cell, arm: &ArmPlan, names: &Names, surroundings: &Surroundings) -> Result<Work, DraftError> {
        let command = match (&arm.command, &self.workload) {
            (Some(command), Workload::None) => Some(command),
            (Some(_), common) => {
                let common = match common {
                    Workload::Command(_) => "the command of all arms",
                    _ => "the options of a job",
                };
                return wrong(format!("arm '{}' has a command of its own, which cannot be beside {common}", arm.name));
            }
            (None, Workload::Command(command)) => Some(command),
            (None, _) => None,
        };
        if let Some(command) = command {
            if let Some(option) = arm.options.first() {
                let name = &arm.name;
                let mend = match self.origin {
                    // Only the baseline and the first candidate have flags for a command.
                    Origin::CommandLine if arm.name == "baseline" => "use --baseline-cmd",
                    Origin::CommandLine => "use --candidate-cmd",
                    Origin::File(_) => "add command = … to the arm",
                };
                return wrong(format!(
                    "arm '{name}': '{option}' is a job option, but the workload is a command; {mend}"
                ));
            }
            let command = names.fill_in_all(command).or_else(wrong)?;
            return braces::cell(&command, self.around.prepare.as_ref(), cell).map(Work::Command);
        }
        let swept = cell.values.iter().map(|(name, value)| format!("{name}={value}"));
        let options =
            names.fill_in_all(&swept.chain(arm.options.iter().cloned()).collect::<Vec<_>>()).or_else(wrong)?;
        let plan = self.plan(&options, names, surroundings)?;
        if let Some(why) = plan.only_for_run() {
            return wrong(why);
        }
        match plan.phases.as_slice() {
            [_] => Ok(Work::Jobs(plan)),
            phases => wrong(format!(
                "the job has {} phases (stonewall), but only one can be compared; move it to a separate job file",
                phases.len()
            )),
        }
    }

    fn plan(&self, case: &[String], names: &Names, surroundings: &Surroundings) -> Result<Plan, DraftError> {
        let settings = |overrides| Settings { overrides, ..surroundings.settings };
        match &self.workload {
            Workload::JobFile { name, text, options } => {
                let options = [names.fill_in_all(options).or_else(wrong)?.as_slice(), case].concat();
                Ok(parse::job_file(name, &names.fill_in(text).or_else(wrong)?, &settings(&options))?)
            }
            Workload::Flags(flags) => {
                // A job needs a name only if there are several.
                let named = flags.iter().any(|flag| flag == "--name" || flag.starts_with("--name="));
                let name = (!named).then(|| "--name=job".to_owned());
                let flags: Vec<String> = name.into_iter().chain(names.fill_in_all(flags).or_else(wrong)?).collect();
                Ok(parse::flags(&flags, &settings(case))?)
            }
            Workload::None | Workload::Command(_) => {
                if self.arms.iter().any(|other| other.command.is_some()) {
                    let mend = self.origin.says("--baseline-cmd", "command = … to the arm");
                    return wrong(format!(
                        "arm '{}' has no command, but another arm has one; add {mend}",
                        names.arm.unwrap_or("baseline")
                    ));
                }
                let mend = self.origin.says(
                    "JOB.fio, options such as --rw=randread, or a command after --",
                    "job = \"…\", command = \"…\", or a command in each arm",
                );
                wrong(format!("there is no workload; add {mend}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Setting;

    fn surroundings() -> Surroundings<'static> {
        Surroundings {
            address: &|name| Address { port: 1111, directory: format!("/tmp/{name}") },
            ..Surroundings::default()
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
        assert_eq!((job.block_sizes.read.0, job.rw(), job.inject.time.0), (65_536, "write", 100));
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
        assert!(draft.resolve(&surroundings()).unwrap_err().to_string().contains("does not contain {bs}"));
    }

    #[test]
    fn invalid_comparisons_are_refused() {
        let says = |draft: Draft| draft.resolve(&surroundings()).unwrap_err().to_string();
        assert!(says(Draft { arms: vec![arm("baseline", &[])], ..draft() }).contains("a comparison needs two arms"));
        assert!(says(Draft { arms: vec![arm("a", &[]), arm("a", &["bs=8k"])], ..draft() }).contains("name 'a'"));
        assert!(says(Draft { axes: vec![axis("bs", &["4k", "4k"])], ..draft() }).contains("twice"));
        assert!(says(Draft { axes: vec![axis("inject_ns", &["1"])], ..draft() }).contains("use only one"));
        assert!(says(Draft { axes: vec![axis("bs", &[""])], ..draft() }).contains("missing"));
        assert!(says(Draft { workload: Workload::None, ..draft() }).contains("no workload"));
        let command = Workload::Command(vec!["fio".to_owned()]);
        assert!(says(Draft { workload: command, ..draft() }).contains("is a job option"));
        assert!(says(Draft { arms: vec![arm("a", &[]), arm("b", &["bz=8k"])], ..draft() }).contains("bz"));
        let targets = Some(vec![Metric::Iops, Metric::LatencyP99]);
        let percentile = says(Draft { rules: DraftRules { targets, ..DraftRules::default() }, ..draft() });
        assert!(
            percentile.starts_with("compare: target: latency_p99 is a percentile")
                && percentile.contains("use latency_mean")
        );
        assert!(!percentile.contains('\n'), "{percentile}");
        let many: Vec<String> = (1..600).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(says(Draft { axes: vec![axis("iodepth", &many)], ..draft() }).contains("fewer values"));
        let rules = || DraftRules { slice_seconds: Some(0.02), ..DraftRules::default() };
        assert!(Draft { rules: rules(), ..draft() }.resolve(&surroundings()).is_ok());
        let command = Workload::Command(vec!["true".to_owned()]);
        let on = ArmPlan { settings: vec![Setting::parse("sysctl:a.b=1").unwrap()], ..arm("on", &[]) };
        let arms = vec![arm("off", &[]), on];
        assert!(says(Draft { rules: rules(), workload: command, arms, ..draft() }).contains("--slice only works"));
        let rules = DraftRules { slice_seconds: Some(5.0), budget_seconds: Some(1.0), ..DraftRules::default() };
        let long = says(Draft { rules, ..draft() });
        assert!(long.contains("two rounds of 3 slices take 30 s, and --budget is 1 s"), "{long}");
        let (cell, source) = ([("bs".to_owned(), "8k".to_owned())].into(), "a mail".to_owned());
        let lost =
            Published { cell, arm: None, metric: Metric::Iops, baseline: None, candidate: None, change: None, source };
        assert!(says(Draft { published: vec![lost], ..draft() }).contains("is not a point of the sweep"));
    }

    /// Each error suggests a fix in the language in which the draft was written.
    #[test]
    fn an_error_suggests_a_fix_in_the_language_of_its_origin() {
        let command = || Workload::Command(vec!["fio".to_owned()]);
        let targets = Some(vec![Metric::LatencyP50]);
        let cases: [(Draft, &str, &str); 7] = [
            (Draft { arms: vec![arm("a", &[])], ..draft() }, "--candidate OPTIONS", "[[arm]]"),
            (Draft { arms: vec![arm("a", &[]), arm("b", &[])], ..draft() }, "--aa", "aa = true"),
            (Draft { workload: command(), ..draft() }, "--candidate-cmd", "command = …"),
            (Draft { workload: Workload::None, ..draft() }, "JOB.fio", "job = \"…\""),
            (Draft { axes: vec![axis("bs", &[""])], ..draft() }, "bs=A,B,C", "values = ["),
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
    fn an_error_in_a_job_file_names_the_job_file() {
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
