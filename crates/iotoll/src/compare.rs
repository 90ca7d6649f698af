//! `iotoll compare`: takes an experiment from flags or a file, measures it round by round, saves each round, studies
//! the record and prints the finding.

mod boots;

use crate::arguments::{CompareArguments, Earlier};
use crate::failure::bad;
use crate::input::{Inputs, is_toml};
use crate::measure::{self, Asked, Measurement, Services, fresh_seed};
use crate::progress::ProgressLine;
use crate::run::files_and_options;
use crate::stdout;
use lab::compare::Settings;
use lab::service::Addresses;
use lab::session::Settings as Session;
use lab::workload::target::Created;
use model::comparison::CompareRecord;
use model::experiment::draft::{Draft, DraftError, Surroundings, Workload};
use model::experiment::{ArmPlan, DraftCommandRules, DraftRules, Experiment, Work, file};
use model::plan::{DeviceWrites, UnknownOptions};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

/// Name of the first arm when arms come from flags.
const BASELINE: &str = "baseline";

pub fn compare(arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &arguments.resume {
        return boots::resume(folder, arguments, words);
    }
    // The limits of an experiment are parts of its plan.
    let earlier = Earlier { stored: arguments.stored.clone(), fail_on: Vec::new() };
    let mut asked = Asked::alone(words, &arguments.output, &earlier);
    let (experiment, addresses) = experiment(arguments, &asked.inputs)?;
    if arguments.same_boot && experiment.boots.is_none() {
        return Err(bad(
            "--same-boot needs an experiment whose arms are boots (when = … in an experiment file); leave it out",
        ));
    }
    let jobs = experiment.cases.iter().filter_map(|case| case.work.phase()).flat_map(|phase| &phase.jobs);
    lab::placing::check(experiment.place.as_ref(), &experiment.services, jobs)?;
    if arguments.parse_only || experiment.boots.is_some() {
        measure::stored::<CompareRecord>(earlier.stored.as_deref(), &experiment)?;
    }
    if experiment.boots.is_some() && !arguments.parse_only {
        return boots::start(experiment, arguments, words, asked.inputs.command_line(words, Vec::new()));
    }
    asked.services = Services { services: experiment.services.clone(), addresses };
    measure::measure(comparison(arguments, &experiment), asked)
}

/// The comparison of arms that can all be measured in this boot.
fn comparison<'a>(arguments: &'a CompareArguments, experiment: &'a Experiment) -> Measurement<'a, CompareRecord> {
    let lab = |session: Session, _: &Created, line: &ProgressLine| {
        let settings = settings(session, arguments.seed);
        Ok(lab::compare::compare(experiment.clone(), &settings, &mut |stage| line.show_stage(&stage))?)
    };
    Measurement {
        shown_plan: if arguments.parse_only { Some(experiment) } else { None },
        settings: Session {
            meters: arguments.profile.selection(&arguments.meters),
            events: arguments.events.events.clone(),
            probes: arguments.session.probes(),
            ..Session::default()
        },
        last_signal: None,
        after_failure: &|_| Some(""),
        ..Measurement::growing("compare", experiment, lab)
    }
}

/// How to measure, with a new seed if the user gave none.
pub fn settings(session: Session, seed: Option<u64>) -> Settings {
    Settings {
        session,
        seed: seed.unwrap_or_else(fresh_seed),
        // Not the path: another program may replace the file before the next round.
        program: "/proc/self/exe".into(),
        schedule: None,
    }
}

/// `iotoll worker`; a comparison starts it itself.
pub fn worker(threads: usize) -> anyhow::Result<ExitCode> {
    let memory = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let latencies = lab::compare::worker::serve(&memory, threads)?;
    stdout::write(&serde_json::to_string(&latencies)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The experiment, and the addresses that were chosen for its services.
fn experiment(arguments: &CompareArguments, inputs: &Inputs) -> anyhow::Result<(Experiment, Addresses)> {
    let mut draft = match experiment_file(arguments, inputs)? {
        Some(draft) => draft,
        None => Draft {
            workload: workload(arguments, inputs)?,
            arms: arms(arguments)?,
            axes: arguments.sweep.clone(),
            against_itself: arguments.aa,
            ..Draft::default()
        },
    };
    let flags = DraftRules {
        targets: (!arguments.target.is_empty()).then(|| arguments.target.clone()),
        margin: arguments.margin,
        precision: arguments.precision,
        budget_seconds: arguments.budget,
        slice_seconds: arguments.slice,
        hang_timeout_seconds: arguments.hang_timeout,
    };
    draft.rules = flags.or(draft.rules);
    let commands = DraftCommandRules {
        slices: arguments.slices,
        count: arguments.count.clone(),
        ios: arguments.ios,
        bytes: arguments.bytes,
        end_signal: arguments.end_signal,
    };
    draft.commands = commands.or(draft.commands);
    draft.cache = arguments.cache.or(draft.cache);
    draft.around = arguments.session.around().or(draft.around);
    draft.place = arguments.place.place.clone().or(draft.place);
    draft.limits.extend(arguments.fail_on.iter().cloned());
    draft.services.extend(arguments.session.service.iter().cloned());
    let addresses = measure::addresses(&draft.services)?;
    let surroundings = Surroundings {
        environment: &|name| inputs.variable(name),
        included: &|path| inputs.included(Path::new(path)),
        address: &|name| addresses.of(name),
        unknown_options: if arguments.ignore_unknown { UnknownOptions::Ignore } else { UnknownOptions::Refuse },
        device_writes: if arguments.allow_device_write { DeviceWrites::Allow } else { DeviceWrites::Refuse },
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
    Ok((experiment, addresses))
}

/// The experiment file, if the job argument names one.
fn experiment_file(arguments: &CompareArguments, inputs: &Inputs) -> anyhow::Result<Option<Draft>> {
    let (files, options) = files_and_options(&arguments.job);
    let [file] = files.as_slice() else { return Ok(None) };
    if !is_toml(file) {
        return Ok(None);
    }
    let alone = options.is_empty() && arguments.command.is_empty() && arguments.sweep.is_empty() && !arguments.aa;
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
        options: arguments.baseline.clone().unwrap_or_default(),
        command: arguments.baseline_cmd.clone(),
        ..ArmPlan::default()
    };
    let of_options =
        arguments.candidate.iter().map(|options| ArmPlan { options: options.clone(), ..ArmPlan::default() });
    let of_commands =
        arguments.candidate_cmd.iter().map(|command| ArmPlan { command: Some(command.clone()), ..ArmPlan::default() });
    let mut candidates: Vec<ArmPlan> = of_options.chain(of_commands).collect();
    let toggled = !arguments.candidate_set.is_empty() || arguments.candidate_setup.is_some();
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
            settings: arguments.candidate_set.clone(),
            setup: arguments.candidate_setup.clone(),
            cleanup: arguments.candidate_cleanup.clone(),
            fresh: arguments.candidate_fresh,
            ..candidate
        });
    }
    if arguments.aa && !candidates.is_empty() {
        return Err(bad(
            "compare: --aa compares the baseline with itself, but there is a candidate; remove one of them",
        ));
    }
    for (number, candidate) in candidates.iter_mut().enumerate() {
        candidate.name = if number == 0 { "candidate".to_owned() } else { format!("candidate{}", number + 1) };
    }
    Ok(std::iter::once(baseline).chain(candidates).collect())
}
