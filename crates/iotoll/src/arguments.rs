//! Flags: groups that several verbs take, and what the help says of all.

pub mod fio_flags;
pub mod help;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, ValueEnum};
use clap_complete::Shell;
pub use fio_flags::{FioFlags, ONLY_RUNS};
use lab::meter::Selection;
use lab::session::Settings;
use model::events::Wanted;
use model::experiment::{Around, Axis, Metric, command_words};
use model::placement::Place;
use model::plan::service::ServicePlan;
use model::probe::Probe;
use model::record::Meter;
use report::Ink;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;
use verbs::Format;

/// The exit statuses of all verbs.
pub const AFTER_HELP: &str = "Exit status: 0 done, 1 failed, 2 bad usage or bad input, 3 a limit of --fail-on was \
                          exceeded, 4 that is undecided, 130 interrupted; `cost` exits with the status of its \
                          command.";

/// What `iotoll generate` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// A man page for each verb
    Man,
    /// A completion script for each shell
    Completions,
    /// The reference, as Markdown
    Reference,
}

/// Verbs that take a job.
pub const JOB_VERBS: [&[&str]; 4] = [&["run"], &["compare"], &["ftq"], &["guest", "run"]];

/// Meters, and events per I/O.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct MeterArguments {
    /// Use only these meters, comma-separated: idle (all idle clocks), timer_list, proc_stat, soaker, sampler, accounts, thread,
    /// pmu, all [default: the meters that do not disturb the workload, and the accounts of run and cost]
    #[arg(long, value_name = "METERS", default_value = "default", hide_default_value = true, value_parser = selection)]
    pub meters: Selection,
    /// Count these events of the kernel per I/O, in windows or rounds of their own: tracepoints (sched:sched_waking, block:*), system calls
    /// (syscalls:pread64), or groups of them: default, syscalls, sched, ipi, timer, mm, alloc, block, fs, io_uring, net, dma, hw (counters
    /// of the hardware), none; needs the right to load BPF programs [default: default, if --meters is not given]
    #[arg(long, value_name = "EVENTS", value_parser = Wanted::parse_list)]
    pub events: Option<List<Wanted>>,
}

/// What every verb that measures on this machine takes: what is read beside the measurement, and what surrounds it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct SessionArguments {
    /// Read these kernel counters and gauges too, and report their rates and their increase per I/O: dirty,
    /// net.eth0.rx_bytes, vmstat.NAME, counter:file:PATH:PATTERN…; NAME=PROBE gives one a name of yours; 'list' prints the
    /// names that this machine has; 'none' leaves out those that are read by default (ftq: dirty, writeback, worker.sleeps,
    /// worker.off_cpu_time, worker.run_delay; blast: softirqs.net_rx, softirqs.net_tx)
    #[arg(long = "probe", value_name = "[NAME=]PROBE,…", value_parser = probes)]
    probe: Vec<Probes>,
    /// Start a server for the measurement, and end it after: 'server=iotoll serve --listen 127.0.0.1:{port}'; options, commands
    /// and jobs refer to it as {server.uri}, {server.port}, {server.socket} and {server.dir}
    #[arg(long, value_name = "NAME=COMMAND", value_parser = ServicePlan::parse)]
    pub service: Vec<ServicePlan>,
    /// Run this shell command once, before anything else
    #[arg(long, help_heading = "Shell", value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Run this shell command, unmeasured, before each phase (run), execution of a command (cost, compare), recording (ftq) or
    /// round (blast)
    #[arg(long, help_heading = "Shell", value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Run this shell command once, after everything else, also after a failure or an interruption
    #[arg(long, help_heading = "Shell", value_name = "COMMAND")]
    pub cleanup: Option<String>,
}

impl SessionArguments {
    /// The probes of all flags.
    pub fn probes(&self) -> Vec<Probe> {
        let of = |probes: &Probes| match probes {
            Probes::List | Probes::None => Vec::new(),
            Probes::Of(probes) => probes.clone(),
        };
        self.probe.iter().flat_map(of).collect()
    }

    /// The probes that a verb reads by default, but for names that the user gave; none with 'none'.
    pub fn default_probes(&self, names: &str) -> Vec<Probe> {
        if self.probe.iter().any(|probes| matches!(probes, Probes::None)) {
            return Vec::new();
        }
        let asked = self.probes();
        let taken = |probe: &Probe| asked.iter().any(|asked| asked.descriptor.name == probe.descriptor.name);
        let defaults = Probe::parse_list(names).unwrap_or_default();
        defaults.into_iter().filter(|probe| !taken(probe)).collect()
    }

    /// The shell commands as a part of the plan.
    pub fn around(&self) -> Around {
        Around { setup: self.setup.clone(), prepare: self.prepare.clone(), cleanup: self.cleanup.clone() }
    }
}

/// What `run`, `cost` and `compare` take.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct Observed {
    #[command(flatten)]
    pub meters: MeterArguments,
    /// Sample the stacks of what runs, in windows or rounds of their own: cycles per I/O by function of the kernel and of programs, and
    /// a flame graph in report.html; needs root, CAP_PERFMON, or kernel.perf_event_paranoid below 1
    #[arg(long)]
    pub profile: bool,
    /// Pin the workload, of all arms alike: same (all of it to one CPU), apart (each thread of a job to a CPU of its own), or a
    /// CPU list (0,2-3) for all of it; running servers are not moved [default: the scheduler decides]
    #[arg(long, value_name = "same|apart|CPUS", value_parser = by(Place::parse))]
    pub place: Option<Place>,
    #[command(flatten)]
    pub session: SessionArguments,
}

impl Observed {
    /// The same as settings of the lab, without the place.
    pub fn settings(&self) -> Settings {
        let chosen = self.meters.meters.clone();
        Settings {
            meters: if self.profile { chosen.with_profile() } else { chosen },
            events: self.meters.events.clone(),
            probes: self.session.probes(),
            ..Settings::default()
        }
    }
}

/// What `run` and `cost` take.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct Measuring {
    #[command(flatten)]
    pub observed: Observed,
    /// Measure the machine without the workload for this long, before and again after
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = background)]
    pub background: Duration,
}

impl Measuring {
    /// The same as settings of the lab.
    pub fn settings(&self) -> Settings {
        let Self { observed, background } = self;
        Settings { background: *background, place: observed.place.clone(), ..observed.settings() }
    }
}

/// What `run` and `compare` take about jobs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Job")]
pub struct JobArguments {
    /// Print what would be measured, and exit; with --format json as data
    #[arg(long)]
    pub parse_only: bool,
    /// Warn about unknown options instead of refusing them
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Allow writes to a block device. Mounted or partitioned devices are always refused
    #[arg(long)]
    pub allow_device_write: bool,
}

/// The flags of every verb that prints a result.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Result")]
pub struct Shown {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = format(), hide_possible_values = true,
        help = format!("Output format: {}", formats()))]
    pub format: Format,
    /// Show all of a table [default: one screen, which says where the rest is]
    #[arg(long)]
    pub full: bool,
    /// Colour a table: auto (on a terminal, unless NO_COLOR is set or TERM is dumb), never, always
    #[arg(long, value_name = "auto|never|always", default_value = "auto", hide_possible_values = true)]
    pub color: ColorChoice,
}

impl Shown {
    /// Whether the result is one screen, whose last line says where all is saved.
    pub fn is_glance(self) -> bool {
        !self.full && self.format == Format::Table
    }
}

/// How results are printed and saved.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Result")]
pub struct Output {
    #[command(flatten)]
    pub shown: Shown,
    /// Save the record and report.html in this folder [default: iotoll-runs/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not save the record
    #[arg(long, conflicts_with = "out")]
    pub no_save: bool,
    /// Print no progress and no notes
    #[arg(long)]
    pub quiet: bool,
}

/// The ink for an output that is a terminal or not.
pub fn ink(color: ColorChoice, is_terminal: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> Ink {
    // no-color.org: any value but an empty one.
    let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    match color {
        ColorChoice::Always => Ink::Colour,
        ColorChoice::Auto if is_terminal && !unwanted && !is_dumb(variable) => Ink::Colour,
        ColorChoice::Auto | ColorChoice::Never => Ink::Plain,
    }
}

/// Whether the terminal says that it knows no escape sequences: an editor's shell, a serial console.
pub fn is_dumb(variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
    variable("TERM").is_some_and(|value| value == "dumb")
}

/// Several values in one argument: clap takes a `Vec` for several arguments.
pub type List<T> = Vec<T>;

/// A parser of the model as one of a flag. Its reason loses the value in front, because clap names the value itself.
pub fn by<T, Wrong: Display>(
    parse: impl Fn(&str) -> Result<T, Wrong> + Clone + Send + Sync,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        parse(text).map_err(|wrong| {
            let wrong = wrong.to_string();
            wrong.strip_prefix(&format!("'{text}': ")).unwrap_or(&wrong).to_owned()
        })
    }
}

/// The words of a command, split as a shell does.
pub fn command(text: &str) -> Result<List<String>, String> {
    some(command_words(text))
}

fn some(split: Result<List<String>, shell_words::ParseError>) -> Result<List<String>, String> {
    match split {
        Ok(words) if words.is_empty() => Err("it is empty".to_owned()),
        Ok(words) => Ok(words),
        Err(error) => Err(format!("{error}; quote it as for a shell")),
    }
}

/// Options of a job, with or without leading dashes, split as a shell does.
pub fn options(text: &str) -> Result<List<String>, String> {
    let words = some(shell_words::split(text))?;
    Ok(words.iter().map(|word| word.trim_start_matches('-').to_owned()).collect())
}

pub fn axis(text: &str) -> Result<Axis, String> {
    let (name, values) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=A,B,…")?;
    let values = values.split(',').map(str::to_owned).collect();
    Ok(Axis { name: name.trim_start_matches('-').to_owned(), values })
}

pub fn metric(text: &str) -> Result<Metric, String> {
    Metric::parse(text).ok_or_else(|| {
        let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        format!("expected a list of {}", names.join(", "))
    })
}

/// The formats by name, which completion scripts offer.
pub fn format() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::all().map(Format::name));
    names.try_map(|text| Format::all().find(|format| format.name() == text).ok_or_else(formats))
}

/// "table, json, mail…".
pub fn formats() -> String {
    let names = |of_fio: bool| {
        let names = Format::all().filter(|format| format.is_of_fio() == of_fio).map(Format::name);
        names.collect::<Vec<_>>().join(", ")
    };
    format!("{}; of run also {}", names(false), names(true))
}

/// Shells whose completion scripts are made.
pub const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

pub fn shell() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(SHELLS.map(|shell| shell.to_string())).try_map(|name| name.parse::<Shell>())
}

pub fn selection(text: &str) -> Result<Selection, String> {
    match text {
        "all" => return Ok(Selection::All),
        "default" => return Ok(Selection::Default),
        _ => {}
    }
    let mut chosen = Vec::new();
    for name in text.split(',') {
        match Meter::named(name) {
            // Reading all idle clocks costs no more than reading one, and each checks the others.
            Some(Meter::Idle) => {
                chosen.extend(Meter::ALL.into_iter().filter(|meter| meter.takes_steal_for_busy() && !meter.disturbs()));
            }
            Some(meter) => chosen.push(meter),
            None => {
                let names: Vec<&str> = Meter::ALL.iter().map(|meter| meter.name()).collect();
                return Err(format!("'{name}' is not a meter; expected all, or a list of {}", names.join(", ")));
            }
        }
    }
    Ok(Selection::Only(chosen))
}

/// The argument of `--probe`.
#[derive(Clone, Debug)]
pub enum Probes {
    /// List the probes of this machine.
    List,
    /// Not those that are read by default.
    None,
    /// These too.
    Of(Vec<Probe>),
}

pub fn probes(text: &str) -> Result<Probes, String> {
    match text {
        "list" => Ok(Probes::List),
        "none" => Ok(Probes::None),
        names => Probe::parse_list(names).map(Probes::Of),
    }
}

/// A shorter measurement cannot tell a quiet machine from a busy one; a longer one gains nothing.
pub fn background(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(200), Duration::from_secs(3600), "200ms to 1h")
}

/// A time within a range, which `range` names.
pub fn within(text: &str, least: Duration, most: Duration, range: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| format!("{error}; expected {range}"))?;
    if (least..=most).contains(&duration) { Ok(duration) } else { Err(format!("expected {range}")) }
}

pub fn amount(text: &str) -> Result<u64, String> {
    match model::plan::value::integer(text) {
        Ok(0) => Err("expected at least 1".to_owned()),
        Ok(amount) => Ok(amount),
        Err(wrong) => Err(wrong.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_show_them() {
        let ink = |color: ColorChoice, is_terminal, set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
            super::ink(color, is_terminal, &value)
        };
        assert_eq!(ink(ColorChoice::Auto, true, &[("TERM", "xterm")]), Ink::Colour);
        assert_eq!(ink(ColorChoice::Auto, true, &[("NO_COLOR", "")]), Ink::Colour, "an empty value means nothing");
        for set in [&[("NO_COLOR", "1")], &[("TERM", "dumb")]] {
            assert_eq!(ink(ColorChoice::Auto, true, set), Ink::Plain, "{set:?}");
            assert_eq!(ink(ColorChoice::Always, false, set), Ink::Colour, "the flag precedes {set:?}");
        }
        assert_eq!(ink(ColorChoice::Auto, false, &[]), Ink::Plain);
        assert_eq!(ink(ColorChoice::Never, true, &[]), Ink::Plain);
    }

    #[test]
    fn meters_are_chosen_by_name() {
        assert_eq!(selection("all"), Ok(Selection::All));
        assert_eq!(selection("soaker,thread"), Ok(Selection::Only(vec![Meter::Soaker, Meter::Thread])));
        assert!(selection("sponge").unwrap_err().contains("'sponge' is not a meter"));
    }
}
