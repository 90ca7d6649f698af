//! `iotoll run`: takes a plan from flags or a job file, measures it, saves the record, studies it and prints the
//! finding.

use crate::arguments::{FioFlags, JobArguments, Measuring, Output};
use crate::failure::{self, BadInput, bad};
use crate::input::Inputs;
use crate::measure::{Asked, Earlier, Measurement, Services, measure};
use clap::Args;
use jobs::replaying::Replays;
use model::plan::{Plan, Settings, parse};
use model::record::Source;
use std::path::Path;
use std::process::ExitCode;
use verbs::Finding;
use verbs::cost::measure::{Jobs, check_files};

/// `iotoll run`. As in fio, a flag may be repeated.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct RunArguments {
    /// fio's options as flags (--rw=randread --filename=f …), a job file and options that override it, or an experiment file of any kind
    #[arg(
        value_name = "JOB.fio … | - | EXPERIMENT.toml | --OPTION=VALUE",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub job: Vec<String>,
    #[command(flatten)]
    pub choices: JobArguments,
    /// Run only the job of this section of the job file; repeat the flag for more
    #[arg(long, help_heading = "Job", value_name = "NAME")]
    pub section: Vec<String>,
    /// Refuse jobs that write or trim
    #[arg(long, help_heading = "Job")]
    pub readonly: bool,
    /// Seed of the random offsets of every job (fio's randseed)
    #[arg(long, help_heading = "Job", value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub measuring: Measuring,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub fio: FioFlags,
}

pub fn run(arguments: &RunArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let asked = Asked::of(words, &arguments.output, &arguments.earlier, &measuring.observed.session)?;
    let mut plan = plan(arguments, &asked.services, &asked.inputs)?;
    let (jobs, warnings) = plan.replaying();
    let mut replays = Replays::default();
    for (phase, number, job) in jobs {
        warnings.extend(replays.read(phase, number, job)?);
    }
    if arguments.readonly {
        refuse_writes(&mut plan)?;
    }
    let place = measuring.observed.place.as_ref();
    let jobs = || plan.phases.iter().flat_map(|phase| &phase.jobs);
    if let Some(why) = place.and_then(|place| place.refuses_jobs(jobs())) {
        return Err(bad(why));
    }
    lab::placing::check(place, &[], jobs())?;
    if arguments.choices.parse_only && plan.phases.is_empty() {
        failure::complain("no file has a job, so nothing would run");
    }
    // Otherwise they are checked when setup has run.
    if !arguments.choices.parse_only && asked.around.setup.is_none() {
        let job_files: Vec<&Path> = parse::files_and_options(&arguments.job).0.into_iter().map(Path::new).collect();
        check_files(&plan, &job_files, arguments.fio.file.as_deref())?;
    }
    let name = jobs().map(|job| job.name.as_str()).collect::<Vec<_>>().join("-");
    let source = Source::Run(plan.clone());
    let work = Jobs { plan: &plan, replays };
    let shown_plan: Option<&dyn Finding> = if arguments.choices.parse_only { Some(&plan) } else { None };
    let run = Measurement { shown_plan, fio: Some(&arguments.fio), ..Measurement::whole(&name, &source, measuring) };
    measure(run, asked, |settings, created, observer| work.measure(settings, created, observer))
}

fn plan(arguments: &RunArguments, services: &Services, inputs: &Inputs) -> anyhow::Result<Plan> {
    let environment = |name: &str| inputs.variable(name);
    let mut overrides: Vec<String> = arguments.seed.map(|seed| format!("randseed={seed}")).into_iter().collect();
    let names = services.names();
    let job = names.fill_in_all(&arguments.job).map_err(BadInput)?;
    let (files, options) = parse::files_and_options(&job);
    let settings = |overrides| Settings {
        environment: &environment,
        overrides,
        sections: &arguments.section,
        ignore_unknown: arguments.choices.ignore_unknown,
        device_writes: arguments.choices.allow_device_write,
        without_jobs: arguments.choices.parse_only,
    };
    match files.as_slice() {
        [file, ..] => {
            // With a job file, options on the command line apply to all its jobs.
            if let Some(name) = options.iter().find(|option| option.starts_with("name=")) {
                return Err(bad(format!(
                    "'--{name}': the jobs of '{file}' already have names, and options beside a job file apply to all of them; leave it out, or put \
                     another job into the file"
                )));
            }
            overrides.extend(options);
            let text = |file: &&str| Ok(names.fill_in(&inputs.job_file(Path::new(file))?).map_err(BadInput)?);
            let texts = files.iter().map(text).collect::<anyhow::Result<Vec<String>>>()?;
            let texts: Vec<_> = files.iter().copied().zip(texts.iter().map(String::as_str)).collect();
            Ok(parse::job_files(&texts, &settings(&overrides))?)
        }
        [] if options.is_empty() => Err(bad("run: no job; give JOB.fio, or --rw=randread --filename=FILE --size=1g …")),
        [] => {
            // A job needs a name only if there are several; compare gives it the same one.
            let named = options.iter().any(|option| option == "name" || option.starts_with("name="));
            let name = (!named).then(|| "--name=job".to_owned());
            let flags: Vec<String> = name.into_iter().chain(job).collect();
            Ok(parse::flags(&flags, &settings(&overrides))?)
        }
    }
}

/// `--readonly`: a job that would change data is refused before anything is opened, and the others make no file longer.
fn refuse_writes(plan: &mut Plan) -> anyhow::Result<()> {
    let mut jobs = plan.phases.iter_mut().flat_map(|phase| &mut phase.jobs);
    let writer = jobs.find_map(|job| {
        job.files.making.forbidden = true;
        job.access.changes().then_some(job)
    });
    match writer {
        None => Ok(()),
        Some(job) => Err(bad(format!(
            "--readonly: job '{}' has rw={}, which changes data; leave --readonly out, or run another job",
            job.name,
            job.rw()
        ))),
    }
}
