//! `iotoll guest`: instructions of I/Os in guests.

use crate::arguments::{self, Output};
use crate::failure::{BadInput, bad};
use crate::input::{Inputs, is_toml};
use crate::measure::{self, Asked, Earlier, Measurement, measure};
use clap::{Args, Subcommand};
use model::experiment::{Axis, Rules};
use model::experiment_kind::ExperimentKind;
use model::plan::Settings as PlanSettings;
use model::plan::parse::files_and_options;
use report::number;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use verbs::guest::GuestPlan;
use verbs::guest::draft::{Draft, JobDraft};
use verbs::guest::measure::Guests;
use verbs::guest::measure::cache::{Cache, Part};
use verbs::guest::measure::kernel::installed_images;
use verbs::guest::measure::stack::{self, stacks};
use verbs::guest::measure::tool::Care;
use verbs::guest::plan::MODULE;

/// What to do with guests.
#[derive(Clone, Debug, Subcommand)]
pub enum GuestVerb {
    /// Count the instructions of one I/O through real stacks of unmodified kernels
    #[command(after_help = "")]
    Run(Box<GuestRunArguments>),
    /// List the stacks, and what the cache holds
    List {
        /// Remove all guests, kernels and programs from the cache
        #[arg(long)]
        clear: bool,
    },
}

/// `iotoll guest run`.
#[derive(Args, Clone, Debug)]
pub struct GuestRunArguments {
    /// fio's options as flags (--rw=randread …), a job file, or an experiment file of guests (.toml)
    #[arg(
        value_name = "JOB.fio | EXPERIMENT.toml | --OPTION=VALUE",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub job: Vec<String>,
    /// Boot this kernel: debian:5.10, debian:6.1, debian:6.12, a .deb, a vmlinuz, VMLINUZ,MODULES_FOLDER, or the folder of a build; give it
    /// again to compare kernels, the first is the baseline
    #[arg(long, help_heading = "Guests", value_name = "KERNEL")]
    pub kernel: Vec<String>,
    /// Replace a module of the kernel by this file, and compare with the kernel's own; {release} in FILE is the kernel's release.
    /// Several for one arm with blanks between; give it again for another arm
    #[arg(long, help_heading = "Guests", value_name = "NAME=FILE")]
    pub module: Vec<String>,
    /// Send the I/O through this stack, see `iotoll guest list`; give it again for more [default: tmpfs]
    #[arg(long, help_heading = "Guests", value_name = "STACK")]
    pub stack: Vec<String>,
    /// Add these parameters to the kernel's command line; give it again to compare
    #[arg(long, help_heading = "Guests", value_name = "PARAMETERS", allow_hyphen_values = true)]
    pub cmdline: Vec<String>,
    /// Set this sysctl in the guest before the stack mounts; give it again for more
    #[arg(long, help_heading = "Guests", value_name = "NAME=VALUE")]
    pub sysctl: Vec<String>,
    /// Add these options to those that the stack mounts or maps with
    #[arg(long, help_heading = "Guests", value_name = "OPTIONS")]
    pub mount: Option<String>,
    /// Measure every combination of these values of a job option, of sysctl:NAME, of mount, or of module
    #[arg(long, help_heading = "Comparison", value_name = "NAME=A,B,…", value_parser = arguments::axis)]
    pub sweep: Vec<Axis>,
    /// Compare the values of this: kernel, parameters, stack, or the name of a sweep [default: the first that has several]
    #[arg(long, help_heading = "Comparison", value_name = "WHAT")]
    pub versus: Option<String>,
    /// Boot each guest this often, each time with another memory layout and timing; the interval comes from their spread
    /// [default: 5]
    #[arg(long, help_heading = "Comparison", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub replicates: Option<u32>,
    /// Count instructions by function
    #[arg(long, help_heading = "Functions")]
    pub by_function: bool,
    /// Changes below this do not matter [default: 1%]
    #[arg(long, help_heading = "Comparison", value_name = "PERCENT", value_parser = arguments::by(Rules::parse_percent))]
    pub margin: Option<f64>,
    /// Kill a guest that takes more CPU time than this, or does nothing for as long, and fail
    #[arg(long, help_heading = "Guests", value_name = "TIME", default_value = "120s", value_parser = arguments::by(Rules::parse_time))]
    pub hang_timeout: f64,
    /// Boot all guests again, instead of restoring those in the cache
    #[arg(long, help_heading = "Cache")]
    pub fresh: bool,
    /// Parse everything, print the plan, and exit
    #[arg(long, help_heading = "Job")]
    pub parse_only: bool,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
}

/// Without `--stack`: what needs no module and no program.
const STACK: &str = "tmpfs";

pub fn guest(verb: &GuestVerb, words: &[String]) -> anyhow::Result<ExitCode> {
    match verb {
        GuestVerb::Run(arguments) => measured(arguments, words),
        GuestVerb::List { clear } => list(*clear),
    }
}

fn measured(arguments: &GuestRunArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let asked = Asked::alone(words, &arguments.output, &arguments.earlier);
    let plan = plan(arguments, &asked.inputs)?;
    let timeout = Duration::from_secs_f64(arguments.hang_timeout);
    let work = Guests { plan: &plan, timeout, fresh: arguments.fresh };
    let guests = Measurement {
        shown_plan: if arguments.parse_only { Some(&plan) } else { None },
        ..Measurement::growing("guest", &plan)
    };
    measure(guests, asked, |settings, created, observer| work.measure(settings, created, observer))
}

fn plan(arguments: &GuestRunArguments, inputs: &Inputs) -> anyhow::Result<GuestPlan> {
    let (files, options) = files_and_options(&arguments.job);
    let mut draft = match files.as_slice() {
        [file] => {
            let text = inputs.job_file(Path::new(file))?;
            if is_toml(file) || ExperimentKind::of(file, &text) == Ok(ExperimentKind::Guest) {
                if let Some(option) = options.first() {
                    return Err(bad(format!(
                        "'--{option}': job options do not apply to an experiment file; write it into {file}"
                    )));
                }
                Draft::parse(file, &text).map_err(BadInput)?
            } else {
                one_job(JobDraft { file: Some(((*file).to_owned(), text)), options, ..JobDraft::default() })
            }
        }
        [_, second, ..] => {
            return Err(bad(format!("'{second}': only one job file or experiment is allowed")));
        }
        [] if options.is_empty() => {
            return Err(bad("no job; give --rw=randread --bs=4k …, JOB.fio, or an experiment of guests"));
        }
        [] => {
            let said = |key: &str| options.iter().find_map(|option| option.strip_prefix(key)).map(str::to_owned);
            let name = said("name=").or_else(|| said("rw=")).unwrap_or_else(|| "read".to_owned());
            one_job(JobDraft { name, options, ..JobDraft::default() })
        }
    };
    override_with(&mut draft, arguments);
    if draft.kernels.is_empty() {
        return Err(bad(no_kernel()));
    }
    draft.jobs.iter().flat_map(|job| &job.stacks).try_for_each(|stack| stack::named(stack).map(drop))?;
    Ok(draft
        .resolve(&PlanSettings { environment: &|name| inputs.variable(name), ..PlanSettings::default() })
        .map_err(BadInput)?)
}

/// What to give for a kernel, and which kernels need no download.
fn no_kernel() -> String {
    let mut here = installed_images(Path::new("/"));
    if let Ok(cache) = Cache::open(Care::default()) {
        here.extend(cache.names(Part::KERNELS).iter().map(|name| cache.entry(Part::KERNELS, name)));
    }
    let here: Vec<String> = here.iter().map(|path| path.display().to_string()).collect();
    let here = if here.is_empty() { "none".to_owned() } else { here.join(", ") };
    format!(
        "no kernel; give --kernel debian:6.12, a .deb, a vmlinuz, or the folder of a build; on this machine: {here}"
    )
}

fn one_job(job: JobDraft) -> Draft {
    Draft { jobs: vec![JobDraft { stacks: vec![STACK.to_owned()], ..job }], ..Draft::default() }
}

/// Flags override an experiment file.
fn override_with(draft: &mut Draft, arguments: &GuestRunArguments) {
    if !arguments.kernel.is_empty() {
        draft.kernels.clone_from(&arguments.kernel);
    }
    if !arguments.cmdline.is_empty() {
        draft.parameters.clone_from(&arguments.cmdline);
    }
    if !arguments.stack.is_empty() {
        draft.jobs.iter_mut().for_each(|job| job.stacks.clone_from(&arguments.stack));
    }
    if let Some(mount) = &arguments.mount {
        draft.jobs.iter_mut().for_each(|job| job.mount_options = Some(mount.clone()));
    }
    draft.sysctls.extend(arguments.sysctl.iter().cloned());
    // The kernel's own module is the first arm.
    let modules = [String::new()].into_iter().chain(arguments.module.iter().filter(|text| !text.is_empty()).cloned());
    let modules = Axis { name: MODULE.to_owned(), values: modules.collect() };
    for sweep in arguments.sweep.iter().cloned().chain((!arguments.module.is_empty()).then_some(modules)) {
        for sweeps in draft.jobs.iter_mut().filter_map(|job| job.sweeps.as_mut()).chain([&mut draft.sweeps]) {
            sweeps.retain(|other| other.name != sweep.name);
            sweeps.push(sweep.clone());
        }
    }
    draft.compared = arguments.versus.clone().or_else(|| draft.compared.take());
    draft.replicates = arguments.replicates.or(draft.replicates);
    draft.by_function |= arguments.by_function;
    draft.margin = arguments.margin.or(draft.margin);
}

fn list(clear: bool) -> anyhow::Result<ExitCode> {
    let cache = Cache::open(Care::default())?;
    let folder = &cache.folder;
    if clear {
        let bytes = size(cache.size());
        std::fs::remove_dir_all(folder).map_err(|error| lab::Error::file(folder, "removing the cache", error))?;
        measure::write(&format!("removed {} ({bytes})\n", folder.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = "Stacks (--stack):\n".to_owned();
    for stack in stacks() {
        let _ = writeln!(text, "  {:<10} {}", stack.name, stack.about);
    }
    let _ = writeln!(text, "\nCache: {}, {}", folder.display(), size(cache.size()));
    let mut kernels = String::new();
    for (name, bytes) in cache.list(Part::KERNELS) {
        let _ = writeln!(kernels, "  {:>9}  {name}", size(bytes));
    }
    let others = cache.list(Part::PACKAGES).into_iter().chain(cache.list(Part::PROGRAMS));
    let others: u64 = others.map(|(_, bytes)| bytes).sum();
    let _ = write!(text, "\nKernels:\n{}", if kernels.is_empty() { "  none\n" } else { &kernels });
    let guests = cache.list(Part::GUESTS);
    let count = guests.iter().filter(|(name, _)| name.ends_with(".state")).count();
    let bytes = size(guests.iter().map(|(_, bytes)| bytes).sum());
    let _ = writeln!(text, "\nSaved guests: {count}, {bytes}; those that are unused for 30 days go");
    let _ = writeln!(text, "\nPrograms for guests: {}", size(others));
    measure::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn size(bytes: u64) -> String {
    number::with_unit(number::BYTES, bytes as f64)
}
