//! Flags of fio's command line that say how it reports, with fio's meaning.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args};
use std::path::PathBuf;
use verbs::Format;

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
