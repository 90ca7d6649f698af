//! The command line.
//!
//! `run` takes fio's options as flags beside our own. Ours are known to clap; what clap does not know is
//! set apart before it parses, and read by the same table as a job file.

mod serve;
mod value;

pub use serve::{ServeArguments, Storage};
pub use value::{Probes, Words};

use crate::failure::BadInput;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use lab::meter::Selection;
use model::experiment::{Around, Cache, Limit, Metric};
use model::placement::Place;
use model::probe::Probe;
use report::Format;
use std::path::PathBuf;
use std::time::Duration;

/// What one I/O costs: CPU cycles of the whole machine, where its latency went, context switches.
#[derive(Debug, Parser)]
#[command(name = "iotoll", version, disable_help_subcommand = true, after_help = AFTER_HELP)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

const AFTER_HELP: &str = "Exit status: 0 done, 1 it failed, 2 bad usage or bad input, 3 and 4 a limit of \
                          `compare --fail-on` was exceeded or is undecided, 130 interrupted; `cost` exits as its \
                          command did.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a workload in fio's language and say what it cost
    #[command(after_help = "")]
    Run(RunArguments),
    /// Say what any command costs: iotoll cost -- fio job.fio
    Cost(CostArguments),
    /// Say whether a change made it cheaper: two options, commands or settings, interleaved, with true intervals
    #[command(after_help = "")]
    Compare(Box<CompareArguments>),
    /// An NBD server that says what it did and what that cost it: iotoll serve --backend memory:256m
    Serve(ServeArguments),
    /// Render a saved record again
    Report(ReportArguments),
    /// Say what this machine can measure, how well, and what would mend it
    Doctor(DoctorArguments),
    /// Ten seconds that show what iotoll does, on a scratch file that is removed again
    Demo(DemoArguments),
    /// iotoll's own worker, which it starts for itself
    #[command(hide = true)]
    Worker {
        /// Threads.
        threads: usize,
    },
    /// iotoll's own guardian, which it starts for itself
    #[command(hide = true)]
    Guardian,
}

/// How results are shown and kept.
#[derive(Args, Clone, Debug)]
pub struct Output {
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = value::format,
        help = format!("How to print the result: {}", value::formats()))]
    pub format: Format,
    /// Keep the record and report.html in this folder [default: iotoll-runs/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not keep the record
    #[arg(long, conflicts_with = "out")]
    pub no_save: bool,
    /// Beside an earlier run or command (its folder, or record.jsonl): what differs between then and now
    #[arg(long, value_name = "DIR")]
    pub stored: Option<PathBuf>,
    /// No progress, no notes
    #[arg(long)]
    pub quiet: bool,
}

/// What is measured with.
#[derive(Args, Clone, Debug)]
pub struct Measuring {
    /// Meters that may run, comma-separated: idle (all idle clocks), timer_list, proc_stat, soaker, sampler,
    /// thread, pmu, all [default: those that do not disturb]
    #[arg(long, value_name = "METERS", default_value = "default", hide_default_value = true, value_parser = value::selection)]
    pub meters: Selection,
    /// Also read these numbers of the kernel, their rates and what an I/O adds to them: dirty, net.eth0.rx_bytes,
    /// vmstat.NAME, counter:file:PATH:PATTERN…; list names those of this machine
    #[arg(long = "probe", value_name = "NAME,…", value_parser = value::probes)]
    probe: Vec<Probes>,
    /// How long to watch the machine without the workload, before and again after
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::background)]
    pub background: Duration,
    /// Where the load runs: same (all of it on one CPU), apart (each thread of a job on a CPU of its own), or CPUs (0,2-3) for
    /// all of it; servers that are there already stay where they are [default: where the scheduler puts it]
    #[arg(long, value_name = "same|apart|CPUS", value_parser = value::place)]
    pub place: Option<Place>,
}

impl Measuring {
    /// As without any flag, with so long a look at the machine without the workload.
    pub fn for_seconds(background: u64) -> Self {
        let background = Duration::from_secs(background);
        Self { meters: Selection::Default, probe: Vec::new(), background, place: None }
    }

    /// The probes of all `--probe`.
    pub fn probes(&self) -> Vec<Probe> {
        let of = |probes: &Probes| match probes {
            Probes::List => Vec::new(),
            Probes::Of(probes) => probes.clone(),
        };
        self.probe.iter().flat_map(of).collect()
    }

    /// Whether they are only to be listed.
    pub fn lists_probes(&self) -> bool {
        self.probe.iter().any(|probes| matches!(probes, Probes::List))
    }
}

/// `iotoll run`.
#[derive(Args, Clone, Debug)]
pub struct RunArguments {
    /// fio's options as flags (--name=a --rw=randread …), or a job file and options that override it
    #[arg(value_name = "JOB.fio | --OPTION=VALUE", trailing_var_arg = true, allow_hyphen_values = true)]
    pub job: Vec<String>,
    /// Read the job, print what it means, and do nothing
    #[arg(long)]
    pub parse_only: bool,
    /// Note options that are not known, instead of refusing them
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Writing to a block device is meant; never one that is mounted or partitioned
    #[arg(long)]
    pub allow_device_write: bool,
    /// Seed of the random offsets of every job (fio's randseed)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub measuring: Measuring,
    #[command(flatten)]
    pub output: Output,
}

/// `iotoll cost`.
#[derive(Args, Clone, Debug)]
pub struct CostArguments {
    /// I/Os that the command does in each execution
    #[arg(long, value_name = "N", value_parser = value::amount)]
    pub ios: Option<u64>,
    /// Bytes that the command moves in each execution; 4k, 1g as in fio
    #[arg(long, value_name = "N", value_parser = value::amount)]
    pub bytes: Option<u64>,
    /// Count I/Os by a counter of the kernel: block:vda, net:eth0
    #[arg(long, value_name = "COUNTER", conflicts_with_all = ["ios", "bytes"])]
    pub count: Option<lab::cost::Counter>,
    /// Execute the command this many times; the interval is then of their spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    #[command(flatten)]
    pub around: AroundArguments,
    /// Only the result: what the command prints for people is left out
    #[arg(long)]
    pub no_output: bool,
    #[command(flatten)]
    pub measuring: Measuring,
    #[command(flatten)]
    pub output: Output,
    /// The command and its arguments; fio and iperf3 say themselves how many I/Os they did
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<String>,
}

/// Shell commands around what is measured.
#[derive(Args, Clone, Debug)]
pub struct AroundArguments {
    /// Run this shell command once, before anything else
    #[arg(long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Run this shell command before each execution of a command; it is not measured
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Run this shell command once, after everything else, whatever happened
    #[arg(long, value_name = "COMMAND")]
    pub cleanup: Option<String>,
}

impl AroundArguments {
    /// The same as the experiment has it.
    pub fn around(&self) -> Around {
        Around { setup: self.setup.clone(), prepare: self.prepare.clone(), cleanup: self.cleanup.clone() }
    }
}

/// `iotoll compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArguments {
    /// The job of all arms, as for run: fio's options as flags, or a job file and options that override it; or an
    /// experiment file
    #[arg(value_name = "JOB.fio | EXPERIMENT.toml | --OPTION=VALUE")]
    pub job: Vec<String>,
    /// Options of the baseline alone: 'bs=4k iodepth=8' [default: the job as it is]
    #[arg(long, value_name = "OPTIONS", value_parser = value::options, allow_hyphen_values = true)]
    pub baseline: Option<Words>,
    /// Options of a candidate; several make several candidates
    #[arg(long, value_name = "OPTIONS", value_parser = value::options, allow_hyphen_values = true)]
    pub candidate: Vec<Words>,
    /// The baseline is this command
    #[arg(long, value_name = "COMMAND", value_parser = value::words)]
    pub baseline_cmd: Option<Words>,
    /// A candidate is this command; several make several candidates
    #[arg(long, value_name = "COMMAND", value_parser = value::words)]
    pub candidate_cmd: Vec<Words>,
    /// The candidate runs under this setting: sysctl:NAME=VALUE or file:/sys/…=VALUE; what was found is put back
    #[arg(long, value_name = "SETTING", value_parser = value::setting)]
    pub candidate_set: Vec<model::experiment::Setting>,
    /// A shell command that switches something on for the candidate
    #[arg(long, value_name = "COMMAND", requires = "candidate_cleanup")]
    pub candidate_setup: Option<String>,
    /// The shell command that switches it off again; it always runs
    #[arg(long, value_name = "COMMAND", requires = "candidate_setup")]
    pub candidate_cleanup: Option<String>,
    /// What the page cache holds of the jobs' files when a slice begins: warm (read in first and kept), cold (dropped before
    /// each slice), as-is [default: warm where the files fit into memory; a job's own invalidate= decides instead]
    #[arg(long, value_name = "warm|cold|as-is", value_parser = value::cache)]
    pub cache: Option<Cache>,
    #[command(flatten)]
    pub around: AroundArguments,
    /// Where all arms run, as for run: same, apart, or CPUs (0,2-3)
    #[arg(long, value_name = "same|apart|CPUS", value_parser = value::place)]
    pub place: Option<Place>,
    /// Go on with the experiment in this folder, whose arms are boots: measure the arm that is booted now
    #[arg(long, value_name = "DIR", conflicts_with_all = ["job", "baseline", "candidate", "baseline_cmd", "candidate_cmd",
        "candidate_set", "candidate_setup", "candidate_cleanup", "cache", "setup", "prepare", "cleanup", "place", "aa", "sweep", "target", "margin", "precision", "budget",
        "hang_timeout", "slice", "stored", "fail_on", "seed", "ignore_unknown", "allow_device_write", "parse_only", "meters", "out",
        "no_save", "command"])]
    pub resume: Option<PathBuf>,
    /// Measure an arm again though the machine was not booted in between; a warning says so
    #[arg(long)]
    pub same_boot: bool,
    /// Compare the baseline with itself: what this machine can tell apart, and how fast
    #[arg(long)]
    pub aa: bool,
    /// Vary an option of the job, or a name in braces of the command: bs=4k,64k,1m; several make a grid
    #[arg(long, value_name = "NAME=A,B,…", value_parser = value::axis)]
    pub sweep: Vec<model::experiment::Axis>,
    /// Metrics whose intervals decide when it ends [default: cycles_per_io,iops]
    #[arg(long, value_name = "METRICS", value_delimiter = ',', value_parser = value::metric)]
    pub target: Vec<Metric>,
    /// A change below this does not matter [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    pub margin: Option<f64>,
    /// It ends when every interval is this narrow to either side [default: a third of the margin]
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    pub precision: Option<f64>,
    /// It ends after this time at the latest [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    pub budget: Option<f64>,
    /// A command, worker or toggle that takes longer than this hangs [default: twice the budget and 60s]
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    pub hang_timeout: Option<f64>,
    /// Length of a slice of a job, 1ms to 60s: longer where a setting takes a while to have its effect [default: by the load; README]
    #[arg(long, value_name = "TIME", value_parser = value::slice)]
    pub slice: Option<f64>,
    /// Beside an earlier comparison with the same baseline (its folder, or record.jsonl): how much is the change, and how
    /// much the machine
    #[arg(long, value_name = "DIR")]
    pub stored: Option<PathBuf>,
    /// Exit with 3 when a change lies beyond this limit, 4 when that is undecided: 'cycles_per_io > +3%'
    #[arg(long, value_name = "LIMIT", value_parser = value::limit)]
    pub fail_on: Vec<Limit>,
    /// Seed of the order of slices [default: another one each time; it is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Note options of the job that are not known, instead of refusing them
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Writing to a block device is meant; never one that is mounted or partitioned
    #[arg(long)]
    pub allow_device_write: bool,
    /// Print what would be compared, and do nothing
    #[arg(long)]
    pub parse_only: bool,
    /// Meters that may run, as for run
    #[arg(long, value_name = "METERS", default_value = "default", hide_default_value = true, value_parser = value::selection)]
    pub meters: Selection,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = value::format,
        help = format!("How to print the result: {}", value::formats()))]
    pub format: Format,
    /// Keep the record and report.html in this folder [default: iotoll-runs/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not keep the record
    #[arg(long, conflicts_with = "out")]
    pub no_save: bool,
    /// No progress, no notes
    #[arg(long)]
    pub quiet: bool,
    /// The command of all arms; {NAME} in it takes the value of a sweep
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<String>,
}

/// `iotoll report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArguments {
    /// Folder of a saved run or comparison, or its record.jsonl
    pub record: PathBuf,
    /// Beside an earlier record of the same kind: what differs between then and now
    #[arg(long, value_name = "DIR")]
    pub stored: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = value::format,
        help = format!("How to print it: {}", value::formats()))]
    pub format: Format,
}

/// `iotoll doctor`.
#[derive(Args, Clone, Debug)]
pub struct DoctorArguments {
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = value::format,
        help = format!("How to print it: {}", value::formats()))]
    pub format: Format,
}

/// `iotoll demo`.
#[derive(Args, Clone, Debug)]
pub struct DemoArguments {
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = value::format,
        help = format!("How to print the result: {}", value::formats()))]
    pub format: Format,
    /// No progress, no notes
    #[arg(long)]
    pub quiet: bool,
}

/// A parsed command line, and the words that it was made of.
pub struct Invocation {
    /// What to do.
    pub verb: Verb,
    /// As typed.
    pub words: Vec<String>,
}

impl Invocation {
    /// Parses the command line of this process. Asked for help, it prints that and ends the process.
    ///
    /// # Errors
    /// Bad usage.
    pub fn from_command_line() -> anyhow::Result<Self> {
        let words: Result<Vec<String>, _> = std::env::args_os().map(std::ffi::OsString::into_string).collect();
        let mut words = words.map_err(|word| {
            BadInput(format!("'{}': not UTF-8 text, which a record cannot hold; rename it", word.display()))
        })?;
        if let Some(program) = words.first_mut() {
            // Where the program lies is of no interest to who reads the record.
            *program = "iotoll".to_owned();
        }
        let mut command = CommandLine::command();
        for verb in JOB_VERBS {
            command = command.mut_subcommand(verb, |verb| verb.after_help(job_help()));
        }
        let (ours, job) = split(&command, &words);
        let parsed = command.try_get_matches_from_mut(ours);
        let parsed = parsed.and_then(|matches| CommandLine::from_arg_matches(&matches));
        let mut verb = match parsed {
            Ok(parsed) => parsed.verb,
            Err(error) if error.use_stderr() && error.kind() != NO_VERB => {
                return Err(BadInput(in_one_line(&error)).into());
            }
            Err(error) => error.exit(),
        };
        match &mut verb {
            Verb::Run(arguments) => arguments.job = job,
            Verb::Compare(arguments) => arguments.job = job,
            _ => {}
        }
        Ok(Self { verb, words })
    }
}

/// `iotoll` alone: the help is what is wanted, so it is printed whole.
const NO_VERB: clap::error::ErrorKind = clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

/// What is wrong and the tips, without the usage that clap prints below.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let line = lines.collect::<Vec<_>>().join(" ");
    format!("{}; see --help", line.strip_prefix("error: ").unwrap_or(&line))
}

/// Verbs that take a job.
const JOB_VERBS: [&str; 2] = ["run", "compare"];

/// Sets apart what follows such a verb and is not ours: a job file, fio's options. What follows `--` is a command.
fn split(command: &clap::Command, words: &[String]) -> (Vec<String>, Vec<String>) {
    let verb = words.get(1).filter(|word| JOB_VERBS.contains(&word.as_str()));
    let Some(run) = verb.and_then(|verb| command.find_subcommand(verb)) else { return (words.to_vec(), Vec::new()) };
    let (mut ours, mut job) = (words.iter().take(2).cloned().collect::<Vec<_>>(), Vec::new());
    let mut rest = words.iter().skip(2);
    while let Some(word) = rest.next() {
        if word == "--" {
            ours.push(word.clone());
            ours.extend(rest.cloned());
            break;
        }
        let name = word.strip_prefix("--").map(|long| long.split('=').next().unwrap_or(long));
        let known = name.and_then(|name| run.get_arguments().find(|argument| argument.get_long() == Some(name)));
        let help = matches!(word.as_str(), "-h" | "--help");
        match known {
            Some(argument) => {
                ours.push(word.clone());
                if argument.get_action().takes_values() && !word.contains('=') {
                    ours.extend(rest.next().cloned());
                }
            }
            None if help => ours.push(word.clone()),
            None => job.push(word.clone()),
        }
    }
    (ours, job)
}

fn job_help() -> String {
    let mut text = "Options of a job, as flags or in a job file (fio's meanings and units):\n".to_owned();
    for option in model::plan::options::reference() {
        const INDENT: &str = "                              ";
        let first = format!("  {:<28}", option.name);
        let about = format!("{} [{}]", option.help, option.value);
        let layout = textwrap::Options::new(99).initial_indent(&first).subsequent_indent(INDENT);
        text += &textwrap::fill(&about, layout);
        text.push('\n');
    }
    text + "\n" + AFTER_HELP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn our_flags_and_fio_s_may_be_mixed() {
        let words = ["iotoll", "run", "--name=a", "--format", "json", "--bs", "4k", "--quiet", "--rw=read"];
        let (ours, job) = split(&CommandLine::command(), &words.map(str::to_owned));
        assert_eq!(ours, ["iotoll", "run", "--format", "json", "--quiet"]);
        assert_eq!(job, ["--name=a", "--bs", "4k", "--rw=read"]);
    }

    /// A flag of ours with the name of an option of fio's would hide it.
    #[test]
    fn no_flag_of_ours_hides_an_option_of_a_job() {
        let command = CommandLine::command();
        for verb in JOB_VERBS {
            let verb = command.find_subcommand(verb).unwrap();
            for option in model::plan::options::reference() {
                for name in std::iter::once(option.name).chain(option.aliases.iter().copied()) {
                    assert!(verb.get_arguments().all(|argument| argument.get_long() != Some(name)), "{name}");
                }
            }
        }
    }

    #[test]
    fn every_format_stands_in_the_help() {
        let listed = |verb: &str| {
            let help = CommandLine::command().find_subcommand_mut(verb).unwrap().render_help().to_string();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            help.split("How to print").nth(1).unwrap().split('[').next().unwrap().to_owned()
        };
        for format in Format::all() {
            for verb in ["run", "cost", "compare", "report", "doctor", "demo"] {
                assert!(listed(verb).contains(format.name()), "{verb} {format:?}");
            }
        }
    }

    /// What an experiment is was said when it was begun. The rest says how it is shown.
    #[test]
    fn every_flag_that_says_what_is_measured_is_refused_beside_resume() {
        let command = CommandLine::command();
        let compare = command.find_subcommand("compare").unwrap();
        let resume = compare.get_arguments().find(|argument| argument.get_id() == "resume").unwrap();
        let conflicts = compare.get_arg_conflicts_with(resume);
        let others: Vec<&str> = compare
            .get_arguments()
            .filter(|argument| !conflicts.iter().any(|other| other.get_id() == argument.get_id()))
            .map(|argument| argument.get_id().as_str())
            .collect();
        assert_eq!(others, ["resume", "same_boot", "format", "quiet"]);
    }
}
