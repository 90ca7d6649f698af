//! Flags of fio's command line that say how it reports, with fio's meaning; those that say what iotoll cannot do are refused by name.

use super::value;
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
    /// Output formats by fio's names, with commas between them: normal (table), json (fio-json), json+ (fio-json+), terse
    #[arg(long, value_name = "FORMATS", value_delimiter = ',', value_parser = fio_format(), hide_possible_values = true, conflicts_with = "format")]
    output_format: Vec<Format>,
    /// Short for --output-format terse
    #[arg(long, conflicts_with_all = ["format", "output_format"])]
    minimal: bool,
    /// Version of terse; only 3 is known
    #[arg(long, value_name = "3", value_parser = value::terse_version)]
    terse_version: Option<u8>,
    /// Print terse too
    #[arg(long)]
    append_terse: bool,
    /// Without effect: iotoll shows its progress only on a terminal
    #[arg(long, value_name = "WHEN")]
    eta: Option<String>,
    /// Without effect
    #[arg(long, value_name = "TIME")]
    eta_interval: Option<String>,
    /// Without effect
    #[arg(long, value_name = "TIME")]
    eta_newline: Option<String>,
    /// Without effect: iotoll has no pool of memory of a given size
    #[arg(long, value_name = "KIB")]
    alloc_size: Option<String>,
    /// Without effect: iotoll has no table of jobs of a given size
    #[arg(long, value_name = "N")]
    max_jobs: Option<String>,
    /// Without effect: iotoll saves and loads no states of verifications
    #[arg(long, value_name = "FOLDER")]
    aux_path: Option<PathBuf>,
    /// Without effect: what fio warns about in a job, iotoll refuses or says in a caveat
    #[arg(long)]
    warnings_fatal: bool,
}

/// fio's names of its formats, in the order in which it prints several.
const FORMATS: [(&str, Format); 4] =
    [("terse", Format::Terse), ("json", Format::FioJson), ("json+", Format::FioJsonPlus), ("normal", Format::Table)];

fn fio_format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(FORMATS.map(|(name, _)| name)).try_map(|text| {
        let found = FORMATS.iter().find(|(name, _)| *name == text);
        found.map(|(_, format)| *format).ok_or(text)
    })
}

impl FioFlags {
    /// The formats to print, one after the other: those of these flags, or `ours`.
    pub fn formats(&self, ours: Format) -> Vec<Format> {
        let minimal = |format: Format| self.minimal && format == Format::Terse;
        let mut formats = FORMATS.map(|(_, format)| format).to_vec();
        formats.retain(|format| minimal(*format) || self.output_format.contains(format));
        // json+ contains json.
        if formats.contains(&Format::FioJsonPlus) {
            formats.retain(|format| *format != Format::FioJson);
        }
        if formats.is_empty() {
            formats.push(ours);
        }
        if self.append_terse && !formats.contains(&Format::Terse) {
            formats.push(Format::Terse);
        }
        formats
    }
}

/// Flags that iotoll has not, each with what to do instead.
const REFUSED: [(&str, &str); 14] = [
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
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: FioFlags,
        #[arg(long, default_value = "table")]
        format: String,
    }

    #[test]
    fn formats_are_printed_in_fios_order() {
        let formats = |line: &str| {
            let line = Line::try_parse_from(std::iter::once("iotoll").chain(line.split_whitespace()))?;
            Ok::<_, clap::Error>(line.flags.formats(Format::Mail).into_iter().map(Format::name).collect::<Vec<_>>())
        };
        for (line, expected) in [
            ("", &["mail"][..]),
            ("--output-format=normal,json", &["fio-json", "table"]),
            ("--output-format json,json+,terse", &["terse", "fio-json+"]),
            ("--minimal --terse-version=3", &["terse"]),
            ("--append-terse", &["mail", "terse"]),
            ("--eta=never --eta-interval 1s --alloc-size=9 --max-jobs=3 --warnings-fatal", &["mail"]),
        ] {
            assert_eq!(formats(line).unwrap(), expected, "{line}");
        }
        for line in ["--terse-version=2", "--output-format=xml", "--minimal --format json"] {
            assert!(formats(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_refused_flag_is_named() {
        let refused = |word: &str| refuse_others(&[word.to_owned()]).map_err(|error| error.to_string());
        assert!(refused("--client=host").unwrap_err().starts_with("--client: "));
        assert_eq!(refused("--rw=read"), Ok(()));
        assert_eq!(refused("client"), Ok(()), "a file's name");
    }
}
