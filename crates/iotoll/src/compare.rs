//! `iotoll compare`: takes an experiment from flags or a file, measures it round by round, saves each round, studies
//! the record and prints the finding.

use crate::arguments::{self, List, by};
use crate::arguments::{JobArguments, Observed, Output};
use crate::failure::bad;
use crate::input::{Inputs, is_toml};
use crate::measure::{self, Asked, Earlier, Measurement, Services, fresh_seed};
use clap::Args;
use model::experiment::draft::{Draft, DraftError, Surroundings, Workload};
use model::experiment::{
    ArmPlan, Axis, CacheCondition, DraftRules, EndSignal, Experiment, Metric, Rules, Setting, Slices, Work, file,
    work_counter,
};
use model::plan::Settings;
use model::plan::parse::files_and_options;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use verbs::compare::CompareRecord;
use verbs::compare::measure::Comparison;
use verbs::pages::plan::ReadExperiment;

/// `iotoll compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArguments {
    /// The job of all arms, as for run: fio's options as flags, or a job file and options that override it; or an
    /// experiment file
    #[arg(value_name = "JOB.fio | EXPERIMENT.toml | --OPTION=VALUE")]
    pub job: Vec<String>,
    #[command(flatten)]
    pub arms: ArmArguments,
    /// Page cache state of the jobs' files at the start of each slice: warm (read in first and kept), cold (dropped
    /// before each slice), as-is [default: warm where the files fit into memory; a job's own invalidate= takes
    /// precedence]
    #[arg(long, help_heading = "Measurement", value_name = "warm|cold|as-is", value_parser = by(CacheCondition::parse))]
    pub cache: Option<CacheCondition>,
    #[command(flatten)]
    pub observed: Observed,
    #[command(flatten)]
    pub rules: RuleArguments,
    #[command(flatten)]
    pub turns: TurnArguments,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub choices: JobArguments,
    #[command(flatten)]
    pub output: Output,
    /// The command of all arms; {NAME} in it is replaced by the value of a sweep
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<String>,
}

/// What is compared.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Arms")]
pub struct ArmArguments {
    /// Options of the baseline only: 'bs=4k iodepth=8' [default: the job unchanged]
    #[arg(long, value_name = "OPTIONS", value_parser = arguments::options, allow_hyphen_values = true)]
    pub baseline: Option<List<String>>,
    /// Options of a candidate; repeat the flag for more candidates
    #[arg(long, value_name = "OPTIONS", value_parser = arguments::options, allow_hyphen_values = true)]
    pub candidate: Vec<List<String>>,
    /// Command of the baseline; a shell runs it if |, >, ; or && stand between its words
    #[arg(long, value_name = "COMMAND", value_parser = arguments::command)]
    pub baseline_cmd: Option<List<String>>,
    /// Command of a candidate; repeat the flag for more candidates
    #[arg(long, value_name = "COMMAND", value_parser = arguments::command)]
    pub candidate_cmd: Vec<List<String>>,
    /// Measure the candidate under this setting: sysctl:NAME=VALUE or file:/sys/…=VALUE; the previous value is restored (net.* is that of iotoll's own network namespace)
    #[arg(long, value_name = "SETTING", value_parser = by(Setting::parse))]
    pub candidate_set: Vec<Setting>,
    /// Run this shell command to switch something on for the candidate
    #[arg(long, value_name = "COMMAND", requires = "candidate_cleanup")]
    pub candidate_setup: Option<String>,
    /// Run this shell command to switch it off again; it runs even after a failure
    #[arg(long, value_name = "COMMAND", requires = "candidate_setup")]
    pub candidate_cleanup: Option<String>,
    /// Compare the baseline with itself, to see how small a change this machine can detect, and how fast
    #[arg(long)]
    pub aa: bool,
    /// Vary an option of the job, or a {NAME} in the command and in --prepare: bs=4k,64k,1m; repeat the flag for a grid
    #[arg(long, value_name = "NAME=A,B,…", value_parser = arguments::axis)]
    pub sweep: Vec<Axis>,
}

/// When it ends, and what counts as a difference.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Rules")]
pub struct RuleArguments {
    /// Stop when the intervals of these metrics are narrow enough [default: cycles_per_io,iops]
    #[arg(long, value_name = "METRICS", value_delimiter = ',', value_parser = arguments::metric)]
    pub target: Vec<Metric>,
    /// Ignore changes smaller than this [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = by(Rules::parse_percent))]
    pub margin: Option<f64>,
    /// Stop when every interval is at most this wide to either side [default: a third of the margin]
    #[arg(long, value_name = "PERCENT", value_parser = by(Rules::parse_percent))]
    pub precision: Option<f64>,
    /// Stop after this time, but measure at least two rounds [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = by(Rules::parse_time))]
    pub budget: Option<f64>,
    /// Treat a command, worker or toggle as hung after this time [default: twice the budget and 60s]
    #[arg(long, value_name = "TIME", value_parser = by(Rules::parse_time))]
    pub hang_timeout: Option<f64>,
    /// Seed of the order of slices [default: a new one each time; --full shows it]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// How arms take turns.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Turns")]
pub struct TurnArguments {
    /// Length of a slice of a job, 1ms to 60s; use longer slices for a setting that takes a while to have its effect
    /// [default: by the load]
    #[arg(long, value_name = "TIME", value_parser = by(Rules::parse_slice))]
    pub slice: Option<f64>,
    /// Let commands take turns, one thawed and all others frozen: auto (if every command lives for some seconds), off (each
    /// slice is a whole execution), or the length of a slice, as 50ms [default: auto, with slices of 50ms]
    #[arg(long, value_name = "auto|off|TIME", value_parser = by(Slices::parse))]
    pub slices: Option<Slices>,
    /// What counts the I/Os of commands (of whole executions, only a counter of the machine: the last three): auto, io_uring, task:both, task:read, task:write, task:storage,
    /// tcp, syscalls, block:DEVICE, net:INTERFACE, or a probe [default: auto, by a rehearsal]
    #[arg(long, value_name = "COUNTER", value_parser = by(work_counter::parse))]
    pub count: Option<String>,
    /// I/Os that every command does in a whole execution; each slice is one
    #[arg(long, value_name = "N", value_parser = arguments::amount, conflicts_with = "count")]
    pub ios: Option<u64>,
    /// Bytes that every command moves in a whole execution; suffixes as in fio: 4k, 1g
    #[arg(long, value_name = "N", value_parser = arguments::amount, conflicts_with = "count")]
    pub bytes: Option<u64>,
    /// End a command that takes turns with this signal, so that it reports what it did: INT, TERM, HUP, QUIT, USR1, USR2 or KILL
    /// [default: INT]
    #[arg(long, value_name = "SIGNAL", value_parser = by(EndSignal::parse))]
    pub end_signal: Option<EndSignal>,
}

/// Name of the first arm when arms come from flags.
const BASELINE: &str = "baseline";

pub fn compare(arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let mut asked = Asked::alone(words, &arguments.output, &arguments.earlier);
    let experiment = experiment(arguments, &mut asked)?;
    let jobs = experiment.cases.iter().filter_map(|case| case.work.phase()).flat_map(|phase| &phase.jobs);
    lab::placing::check(experiment.place.as_ref(), &experiment.services, jobs)?;
    if arguments.choices.parse_only {
        measure::stored::<CompareRecord>(asked.earlier.stored.as_deref(), &experiment)?;
    }
    let limits = measure::limits::<CompareRecord>(&asked.earlier, &experiment)?;
    let shown = ReadExperiment { experiment: &experiment, limits };
    let work = Comparison { experiment: &experiment, seed: arguments.rules.seed.unwrap_or_else(fresh_seed) };
    let comparison = Measurement {
        shown_plan: if arguments.choices.parse_only { Some(&shown) } else { None },
        settings: arguments.observed.settings(),
        last_signal: None,
        after_failure: &|_| Some(""),
        ..Measurement::growing("compare", &experiment)
    };
    measure::measure(comparison, asked, |settings, created, observer| work.measure(settings, created, observer))
}

/// `iotoll worker`; a comparison starts it itself.
pub fn worker(threads: usize) -> anyhow::Result<ExitCode> {
    let memory = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let latencies = verbs::compare::measure::worker_process::serve(&memory, threads)?;
    measure::write(&serde_json::to_string(&latencies)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The experiment. Its file, its services and the limits in its file are what else is asked for.
fn experiment(arguments: &CompareArguments, asked: &mut Asked) -> anyhow::Result<Experiment> {
    let inputs = &asked.inputs;
    let mut draft = match experiment_file(arguments, inputs)? {
        Some(draft) => draft,
        None => Draft {
            workload: workload(arguments, inputs)?,
            arms: arms(arguments)?,
            axes: arguments.arms.sweep.clone(),
            against_itself: arguments.arms.aa,
            ..Draft::default()
        },
    };
    let (rules, turns, file) = (&arguments.rules, &arguments.turns, draft.rules);
    draft.rules = DraftRules {
        targets: Some(rules.target.clone()).filter(|targets| !targets.is_empty()).or(file.targets),
        margin: rules.margin.or(file.margin),
        precision: rules.precision.or(file.precision),
        budget_seconds: rules.budget.or(file.budget_seconds),
        slice_seconds: turns.slice.or(file.slice_seconds),
        hang_timeout_seconds: rules.hang_timeout.or(file.hang_timeout_seconds),
        slices: turns.slices.or(file.slices),
        count: turns.count.clone().or(file.count),
        ios: turns.ios.or(file.ios),
        bytes: turns.bytes.or(file.bytes),
        end_signal: turns.end_signal.or(file.end_signal),
    };
    draft.cache = arguments.cache.or(draft.cache);
    draft.around = arguments.observed.session.around().or(draft.around);
    draft.place = arguments.observed.place.clone().or(draft.place);
    asked.earlier.of_file = (draft.origin.to_string(), std::mem::take(&mut draft.fail_on));
    draft.services.extend(arguments.observed.session.service.iter().cloned());
    let addresses = measure::addresses(&draft.services)?;
    let surroundings = Surroundings {
        settings: Settings {
            environment: &|name| inputs.variable(name),
            ignore_unknown: arguments.choices.ignore_unknown,
            device_writes: arguments.choices.allow_device_write,
            ..Settings::default()
        },
        address: &|name| addresses.of(name),
    };
    let experiment = draft.resolve(&surroundings).map_err(|error| match error {
        DraftError::Job(refused) => refused.into(),
        error => bad(error.to_string()),
    })?;
    for case in &experiment.cases {
        if let Work::Command(command) = &case.work {
            inputs.note_command(command);
        }
    }
    asked.services = Services { services: experiment.services.clone(), addresses };
    Ok(experiment)
}

/// The experiment file, if the job argument names one.
fn experiment_file(arguments: &CompareArguments, inputs: &Inputs) -> anyhow::Result<Option<Draft>> {
    let (files, options) = files_and_options(&arguments.job);
    let [file] = files.as_slice() else { return Ok(None) };
    if !is_toml(file) {
        return Ok(None);
    }
    let alone =
        options.is_empty() && arguments.command.is_empty() && arguments.arms.sweep.is_empty() && !arguments.arms.aa;
    let nothing_said = [ArmPlan { name: BASELINE.to_owned(), ..ArmPlan::default() }];
    if !alone || arms(arguments)? != nothing_said {
        return Err(bad(format!("{file}: arms, sweeps and options belong in the experiment file; move them there")));
    }
    let text = inputs.experiment_file(Path::new(file))?;
    file::parse(file, &text).map(Some).map_err(|error| bad(error.to_string()))
}

fn workload(arguments: &CompareArguments, inputs: &Inputs) -> anyhow::Result<Workload> {
    let (files, options) = files_and_options(&arguments.job);
    match (files.as_slice(), arguments.command.as_slice()) {
        ([], []) if options.is_empty() => Ok(Workload::None),
        ([], []) => Ok(Workload::Flags(arguments.job.clone())),
        ([file], []) => {
            let text = inputs.job_file(Path::new(file))?;
            Ok(Workload::JobFile { name: (*file).to_owned(), text, options })
        }
        ([], command) if options.is_empty() => Ok(Workload::Command(command.to_vec())),
        ([_, second, ..], _) => {
            Err(bad(format!("'{second}': only one job file is allowed; put the jobs into one file")))
        }
        (_, command) => {
            let program = command.first().map_or("", String::as_str);
            Err(bad(format!("compare: both a job and a command ('{program}' after --); give one of them")))
        }
    }
}

fn arms(arguments: &CompareArguments) -> anyhow::Result<Vec<ArmPlan>> {
    let baseline = ArmPlan {
        name: BASELINE.to_owned(),
        options: arguments.arms.baseline.clone().unwrap_or_default(),
        command: arguments.arms.baseline_cmd.clone(),
        ..ArmPlan::default()
    };
    let of_options =
        arguments.arms.candidate.iter().map(|options| ArmPlan { options: options.clone(), ..ArmPlan::default() });
    let of_commands = arguments
        .arms
        .candidate_cmd
        .iter()
        .map(|command| ArmPlan { command: Some(command.clone()), ..ArmPlan::default() });
    let mut candidates: Vec<ArmPlan> = of_options.chain(of_commands).collect();
    let toggled = !arguments.arms.candidate_set.is_empty() || arguments.arms.candidate_setup.is_some();
    if toggled {
        if candidates.len() > 1 {
            return Err(bad(
                "compare: settings apply to one candidate, and there are several; compare one candidate at a time",
            ));
        }
        // Besides the setting it may be the same job or command, or a different one.
        let candidate = candidates.pop().unwrap_or_else(|| ArmPlan {
            options: baseline.options.clone(),
            command: baseline.command.clone(),
            ..ArmPlan::default()
        });
        candidates.push(ArmPlan {
            settings: arguments.arms.candidate_set.clone(),
            setup: arguments.arms.candidate_setup.clone(),
            cleanup: arguments.arms.candidate_cleanup.clone(),
            ..candidate
        });
    }
    if arguments.arms.aa && !candidates.is_empty() {
        return Err(bad(
            "compare: --aa compares the baseline with itself, but there is a candidate; remove one of them",
        ));
    }
    for (number, candidate) in candidates.iter_mut().enumerate() {
        candidate.name = if number == 0 { "candidate".to_owned() } else { format!("candidate{}", number + 1) };
    }
    Ok(std::iter::once(baseline).chain(candidates).collect())
}
