//! What a user wrote, and how it becomes an [`Experiment`].

use super::{ArmPlan, Axis, BootPlan, Case, Cell, Experiment, Limit, Metric, Published, Rules, Work};
use crate::plan::{DeviceWrites, ParseError, Plan, Settings, UnknownOptions, parse};
use std::collections::BTreeMap;

/// An experiment as it was written.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// In one line; made up of the arms when it is empty.
    pub title: String,
    /// What every arm does.
    pub workload: Workload,
    /// The arms, baseline first. One alone is compared with itself.
    pub arms: Vec<ArmPlan>,
    /// What is varied besides.
    pub axes: Vec<Axis>,
    /// When it ends and what counts.
    pub rules: Rules,
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

fn wrong<T>(message: impl Into<String>) -> Result<T, DraftError> {
    Err(DraftError::Wrong(message.into()))
}

/// More cases than this are surely a slip of the hand; each has a process of its own in every round.
const MOST_CASES: usize = 512;

impl Draft {
    /// The experiment that it means.
    ///
    /// # Errors
    /// What is missing or contradicts itself, in one line.
    pub fn resolve(self, surroundings: &Surroundings) -> Result<Experiment, DraftError> {
        let arms = self.arms()?;
        let commands = matches!(self.workload, Workload::Command(_)) || arms.iter().any(|arm| arm.command.is_some());
        let whole = |metric: &Metric| matches!(metric, Metric::Cycles | Metric::Seconds);
        if self.rules.targets.is_empty() || (!commands && self.rules.targets.iter().any(whole)) {
            return wrong("target: cycles and seconds are of commands; a job has cycles_per_io, iops, latency_mean, …");
        }
        if let Some(metric) = self.rules.targets.iter().find(|metric| metric.percent().is_some()) {
            return wrong(format!(
                "target: {} is a percentile, and its interval is made at the end, of rounds that are joined; give latency_mean \
                 (percentiles are shown in any case, and --fail-on takes them)",
                metric.name()
            ));
        }
        let boots = self.boots(&arms)?;
        let cells = self.cells()?;
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
            rules: self.rules,
            limits: self.limits,
            published: self.published.into_iter().map(with_change).collect(),
            against_itself: self.against_itself,
            boots,
        })
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
            return wrong(format!(
                "arm '{}' has a when: give it a second time by another name, without --aa",
                booted.name
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
        let each = self.boots.unwrap_or(BootPlan::EACH);
        if !BootPlan::BOOTS.contains(&each) {
            return wrong(format!("boots = {each}: expected {} to {}", BootPlan::BOOTS.start(), BootPlan::BOOTS.end()));
        }
        Ok(Some(BootPlan { each, hook: self.hook.clone() }))
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
            let Some(baseline) = arms.first() else { return wrong("--aa: there is no baseline") };
            arms.push(ArmPlan { name: "itself".to_owned(), ..baseline.clone() });
            return Ok(arms);
        }
        if arms.len() < 2 {
            return wrong(
                "one arm is no comparison: give --candidate OPTIONS, --candidate-cmd CMD, --candidate-set … or --aa",
            );
        }
        for (place, arm) in arms.iter().enumerate() {
            if arms.iter().take(place).any(|other| other.name == arm.name) {
                return wrong(format!("two arms are called '{}'; name them apart", arm.name));
            }
            if arm.leave.is_some() != arm.enter.is_some() {
                return wrong(format!("arm '{}': enter and leave belong together; give both", arm.name));
            }
            let nameless = |other: &&ArmPlan| ArmPlan { name: String::new(), ..(*other).clone() };
            if arms.iter().take(place).any(|other| nameless(&other) == nameless(&arm)) {
                return wrong(format!("arm '{}' is the same as another; --aa compares an arm with itself", arm.name));
            }
        }
        Ok(arms)
    }

    fn cells(&self) -> Result<Vec<Cell>, DraftError> {
        let mut cells = vec![Cell::default()];
        for (place, axis) in self.axes.iter().enumerate() {
            if axis.values.is_empty() || axis.values.iter().any(String::is_empty) {
                return wrong(format!("sweep of {}: a value is missing; expected {}=A,B,C", axis.name, axis.name));
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
                return wrong(format!(
                    "arm '{name}': '{option}' is an option of a job, and a command has none; give --{name}-cmd"
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
                wrong("there is no workload: give JOB.fio, options such as --rw=randread, or a command after --")
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
        assert!(says(Draft { arms: vec![arm("a", &[]), arm("b", &[])], ..draft() }).contains("--aa"));
        assert!(says(Draft { axes: vec![axis("bs", &["4k", "4k"])], ..draft() }).contains("twice"));
        assert!(says(Draft { axes: vec![axis("inject_ns", &["1"])], ..draft() }).contains("choose one"));
        assert!(says(Draft { axes: vec![axis("bs", &[""])], ..draft() }).contains("missing"));
        assert!(says(Draft { workload: Workload::None, ..draft() }).contains("no workload"));
        let command = Workload::Command(vec!["fio".to_owned()]);
        assert!(says(Draft { workload: command, ..draft() }).contains("option of a job"));
        assert!(says(Draft { arms: vec![arm("a", &[]), arm("b", &["bz=8k"])], ..draft() }).contains("bz"));
        let targets = vec![Metric::Iops, Metric::LatencyP99];
        let percentile = says(Draft { rules: Rules { targets, ..Rules::default() }, ..draft() });
        assert!(
            percentile.starts_with("target: latency_p99 is a percentile") && percentile.contains("give latency_mean")
        );
        assert!(!percentile.contains('\n'), "{percentile}");
        let many: Vec<String> = (1..600).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(says(Draft { axes: vec![axis("iodepth", &many)], ..draft() }).contains("fewer values"));
    }
}
