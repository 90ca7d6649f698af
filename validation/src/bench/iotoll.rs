//! Runs iotoll and parses its JSON.

use super::{Bench, Beside};
use anyhow::Context;
use model::finding::{JobFinding, PhaseFinding, RunFinding};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Flags of iotoll itself: meters, background, and where the record goes.
#[derive(Clone, Debug)]
pub struct Measuring {
    /// `--meters`.
    pub meters: &'static str,
    /// `--background`, milliseconds.
    pub background_millis: u64,
    /// `--out`, if the record is needed.
    pub out: Option<PathBuf>,
}

impl Measuring {
    /// Measures only the I/O itself.
    pub const LEAST: Self = Self { meters: "thread", background_millis: 200, out: None };

    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--meters={}", self.meters),
            format!("--background={}ms", self.background_millis),
            "--format=json".to_owned(),
            "--quiet".to_owned(),
        ];
        flags.push(match &self.out {
            Some(folder) => format!("--out={}", folder.display()),
            None => "--no-save".to_owned(),
        });
        flags
    }
}

/// Runs `iotoll run` with fio's options.
pub fn run(bench: &Bench, measuring: &Measuring, job: &[String]) -> anyhow::Result<RunFinding> {
    let text = bench.output(bench.iotoll().arg("run").args(measuring.flags()).args(job))?;
    parse(&text)
}

/// Runs `iotoll cost` with flags and a command.
pub fn cost(bench: &Bench, measuring: &Measuring, flags: &[String], command: &[String]) -> anyhow::Result<RunFinding> {
    let mut iotoll = bench.iotoll();
    iotoll.arg("cost").arg("--no-output").args(measuring.flags()).args(flags).arg("--").args(command);
    parse(&bench.output(&mut iotoll)?)
}

fn parse(text: &str) -> anyhow::Result<RunFinding> {
    serde_json::from_str(text).context("iotoll's JSON does not have the expected format")
}

/// The only phase.
pub fn phase(finding: &RunFinding) -> anyhow::Result<&PhaseFinding> {
    finding.phases.first().context("iotoll's JSON has no phase")
}

/// The only job.
pub fn job(finding: &RunFinding) -> anyhow::Result<&JobFinding> {
    finding.jobs.first().context("iotoll's JSON has no job")
}

/// Net cycles per I/O by the headline meter.
pub fn net(finding: &RunFinding) -> anyhow::Result<f64> {
    phase(finding)?.cycles_per_io.with_context(|| format!("iotoll found no cycles per I/O: {:?}", finding.warnings))
}

/// Starts `iotoll blast --serve` at an address, by a command that runs iotoll. Returns its port.
pub fn receiver(mut iotoll: Command, address: &str) -> anyhow::Result<(Beside, u16)> {
    iotoll.args(["blast", "--quiet", "--serve", &format!("{address}:0")]).stdout(Stdio::piped());
    let mut process = Beside { child: iotoll.spawn()? };
    let mut line = String::new();
    BufReader::new(process.child.stdout.take().context("the receiver's output")?.take(200)).read_line(&mut line)?;
    let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
    Ok((process, port.with_context(|| format!("the receiver said '{line}'"))?))
}
