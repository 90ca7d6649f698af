//! Flags of fio's command line that say how it reports, with fio's meaning; those that say what iotoll cannot do are refused by name.

use crate::failure::BadInput;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args};
use report::Format;
use std::path::PathBuf;

/// fio's flags beside those of iotoll.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "fio's flags")]
pub struct FioFlags {
    /// Write the result into this file instead of standard output; its contents are replaced
    #[arg(long = "output", id = "output_file", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Output format by fio's name: normal (table), json (fio-json), json+ (fio-json+) or terse
    #[arg(long, value_name = "FORMAT", value_parser = fio_format(), hide_possible_values = true, conflicts_with = "format")]
    output_format: Option<Format>,
    /// Short for --output-format terse
    #[arg(long, conflicts_with_all = ["format", "output_format"])]
    minimal: bool,
    /// Without effect: iotoll saves and loads no states of verifications
    #[arg(long, value_name = "FOLDER")]
    aux_path: Option<PathBuf>,
}

impl FioFlags {
    /// The format that they ask for.
    pub fn format(&self) -> Option<Format> {
        self.output_format.or(self.minimal.then_some(Format::Terse))
    }
}

/// fio's names of formats.
const FORMATS: [(&str, Format); 4] =
    [("normal", Format::Table), ("json", Format::FioJson), ("json+", Format::FioJsonPlus), ("terse", Format::Terse)];

fn fio_format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(FORMATS.map(|(name, _)| name)).try_map(|text| {
        let found = FORMATS.iter().find(|(name, _)| *name == text);
        found.map(|(_, format)| *format).ok_or(text)
    })
}

/// Flags that iotoll has not, each with what to do instead.
const REFUSED: [(&str, &str); 22] = [
    ("client", "run iotoll on that machine, for example by ssh, and save its record with --out"),
    ("server", "run iotoll on this machine itself, for example by ssh"),
    ("remote-config", "copy the job file to the machine that runs it"),
    ("daemonize", "start iotoll in the background with the shell's &, or with systemd-run"),
    ("status-interval", "the result comes once, at the end; --probe and the record show the run over time"),
    ("trigger", "run the command with --setup or --cleanup"),
    ("trigger-file", "run the command with --setup or --cleanup"),
    ("trigger-timeout", "run the command with --setup or --cleanup"),
    ("trigger-remote", "run the command with --setup or --cleanup"),
    ("idle-prof", "iotoll measures the cycles of the whole machine; --meters idle reads its idle time"),
    ("debug", "--parse-only shows the resolved job, and strace -f its system calls"),
    (
        "bandwidth-log",
        "write_bw_log with log_avg_msec logs the bandwidth of each job, and --format json has the rate over time (phases[].series)",
    ),
    ("append-terse", "--format fio-json has all numbers"),
    ("terse-version", "--format fio-json has all numbers"),
    ("eta", "leave it out: progress is shown only on a terminal"),
    ("eta-interval", "leave it out: progress is shown only on a terminal"),
    ("eta-newline", "leave it out: progress is shown only on a terminal"),
    ("alloc-size", "leave it out: there is no pool of memory of a given size"),
    ("max-jobs", "leave it out: there is no table of jobs of a given size"),
    ("warnings-fatal", "leave it out: what fio warns about is refused, or said in a caveat"),
    ("crctest", "run fio --crctest"),
    ("cpuclock-test", "iotoll doctor checks the clocks"),
];

/// Refuses flags of fio that iotoll has not, among the words of a job.
///
/// # Errors
/// The first of them.
pub fn refuse_others(job: &[String]) -> Result<(), BadInput> {
    for word in job {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let name = flag.split_once('=').map_or(flag, |(name, _)| name);
        if let Some((name, mend)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(BadInput(format!("--{name}: iotoll has no such flag; {mend}")));
        }
    }
    Ok(())
}

/// Why a verb cannot show what it finds in a format of fio, if one is asked for: only a run has all its numbers.
pub fn misplaced_format(matches: &ArgMatches) -> Option<String> {
    let (verb, mut matches) = matches.subcommand()?;
    let has_runs = matches!(verb, "run" | "report");
    while let Some((_, below)) = matches.subcommand() {
        matches = below;
    }
    let format = matches.try_get_one::<Format>("format").ok().flatten()?;
    let misplaced = format.is_of_fio() && !has_runs;
    misplaced.then(|| format!("--format {}: {}", format.name(), ONLY_RUNS))
}

/// What `--format` says where fio has no such report.
pub const ONLY_RUNS: &str = "only iotoll run, and iotoll report of its record, have fio's formats; use --format json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_flag_is_named() {
        let refused = |word: &str| refuse_others(&[word.to_owned()]).map_err(|error| error.to_string());
        assert!(refused("--client=host").unwrap_err().starts_with("--client: "));
        assert!(refused("--eta=never").unwrap_err().contains("leave it out"));
        assert_eq!(refused("--rw=read"), Ok(()));
        assert_eq!(refused("client"), Ok(()), "a file's name");
    }
}
