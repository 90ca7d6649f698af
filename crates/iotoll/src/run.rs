//! `iotoll run`: a plan from flags or a job file, measured, kept, studied, printed.

use crate::arguments::{Measuring, RunArguments};
use crate::failure::{self, BadInput};
use crate::progress::ProgressLine;
use crate::render::{self, Keeping};
use crate::signals;
use lab::run::Settings as Measurement;
use model::plan::{DeviceWrites, Plan, Settings, UnknownOptions, parse};
use std::path::Path;
use std::process::ExitCode;

/// Runs the verb.
pub fn run(arguments: &RunArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let plan = plan(arguments)?;
    if arguments.parse_only {
        render::write(&format!("{}\n", serde_json::to_string_pretty(&plan)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let keeping = Keeping::prepare(&arguments.output, &title(&plan))?;
    let measurement = measurement(&arguments.measuring, words)?;
    let line = ProgressLine::new(arguments.output.quiet);
    let outcome = lab::run::run(&plan, &measurement, &mut |progress| line.show(&progress));
    line.clear();
    let record = outcome.inspect_err(|_| keeping.abandon())?;
    keeping.keep(&record, !arguments.output.quiet)?;
    render::print(&model::study::study(&record), arguments.output.format)?;
    Ok(failure::of_outcome(&record.outcome))
}

/// How to measure, as the command line says.
pub fn measurement(measuring: &Measuring, words: &[String]) -> anyhow::Result<Measurement> {
    Ok(Measurement {
        meters: measuring.meters.clone(),
        background: measuring.background,
        interrupted: signals::interrupted()?,
        command_line: words.to_vec(),
    })
}

fn title(plan: &Plan) -> String {
    let jobs = plan.phases.iter().flat_map(|phase| &phase.jobs);
    jobs.map(|job| job.name.as_str()).collect::<Vec<_>>().join("-")
}

fn plan(arguments: &RunArguments) -> anyhow::Result<Plan> {
    let environment = |name: &str| std::env::var(name).ok();
    let unknown_options = if arguments.ignore_unknown { UnknownOptions::Ignore } else { UnknownOptions::Refuse };
    let device_writes = if arguments.allow_device_write { DeviceWrites::Allow } else { DeviceWrites::Refuse };
    let mut overrides: Vec<String> = arguments.seed.map(|seed| format!("randseed={seed}")).into_iter().collect();
    let (files, flags) = files_and_flags(&arguments.job);
    let from_file = match files.as_slice() {
        [] => None,
        [file] => Some(*file),
        [_, second, ..] => {
            let message = format!("'{second}': one job file at a time; put the jobs into one file, or run twice");
            return Err(BadInput(message).into());
        }
    };
    let settings = |overrides| Settings { environment: &environment, overrides, unknown_options, device_writes };
    match from_file {
        Some(file) => {
            // On top of a file, options on the command line hold for every job of it.
            overrides.extend(flags.iter().map(|flag| flag.trim_start_matches('-').to_owned()));
            let text = render::read(Path::new(file))?;
            Ok(parse::job_file(file, &text, &settings(&overrides))?)
        }
        None if flags.is_empty() => {
            Err(BadInput("run: no job; give JOB.fio, or --name=NAME --rw=randread --filename=FILE …".to_owned()).into())
        }
        None => Ok(parse::flags(&arguments.job, &settings(&overrides))?),
    }
}

/// Job files stand before the first option; after it, a word may be an option's value.
fn files_and_flags(job: &[String]) -> (Vec<&str>, &[String]) {
    let first = job.iter().position(|word| word.starts_with('-')).unwrap_or(job.len());
    let (files, flags) = job.split_at(first);
    // …or at the end, where the last option has its value behind an equals sign.
    match flags {
        [options @ .., file] if files.is_empty() && !file.starts_with('-') => {
            let complete = options.iter().all(|option| option.contains('=') || is_switch(option));
            if complete { (vec![file.as_str()], options) } else { (Vec::new(), flags) }
        }
        _ => (files.iter().map(String::as_str).collect(), flags),
    }
}

fn is_switch(option: &str) -> bool {
    let name = option.trim_start_matches('-');
    let found = model::plan::options::reference().find(|reference| reference.name == name);
    found.is_some_and(|reference| reference.value.contains("switch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_job_file_may_stand_first_or_last() {
        let first = words("j.fio --bs=4k");
        assert_eq!(files_and_flags(&first), (vec!["j.fio"], &first[1..]));
        let last = words("--bs=4k j.fio");
        assert_eq!(files_and_flags(&last), (vec!["j.fio"], &last[..1]));
        let flags = words("--name=a --bs 4k");
        assert_eq!(files_and_flags(&flags), (vec![], &flags[..]));
    }
}
