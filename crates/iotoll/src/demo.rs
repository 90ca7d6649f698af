//! `iotoll demo`: ten seconds that show what iotoll does, leaving nothing behind.

use crate::arguments::{DemoArguments, Measuring};
use crate::failure;
use crate::progress::ProgressLine;
use crate::render;
use crate::run::measurement;
use lab::meter::Selection;
use model::plan::{Settings, parse};
use std::process::ExitCode;
use std::time::Duration;

/// Two phases: what the page cache costs, and what a small write around it costs.
const JOBS: &str = "\
[global]
filename=SCRATCH
size=64m
time_based
ramp_time=500ms
runtime=3
[4 KiB random reads, page cache]
rw=randread
bs=4k
ioengine=psync
invalidate=0
[1 KiB random writes, direct]
stonewall
rw=randwrite
bs=1k
ioengine=psync
direct=1
";

/// Runs the verb.
pub fn demo(arguments: &DemoArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    // In the working folder where that can be written: a temporary folder is often in memory, where
    // O_DIRECT means nothing.
    let builder = tempfile::Builder::new().prefix("iotoll-demo-").to_owned();
    let folder = builder.tempdir_in(".").or_else(|_| builder.tempdir())?;
    let scratch = folder.path().join("scratch").display().to_string().replace(':', "\\:");
    let plan = parse::job_file("demo", &JOBS.replace("SCRATCH", &scratch), &Settings::default())?;
    let measurement =
        measurement(&Measuring { meters: Selection::Default, background: Duration::from_secs(1) }, words)?;
    let line = ProgressLine::new(arguments.quiet);
    let outcome = lab::run::run(&plan, &measurement, &mut |progress| line.show(&progress));
    line.clear();
    let record = outcome?;
    render::print(&model::study::study(&record), arguments.format)?;
    folder.close()?;
    Ok(failure::of_outcome(&record.outcome))
}
