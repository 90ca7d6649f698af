//! `iotoll demo`: ten seconds that show what iotoll does, leaving nothing behind.

use crate::arguments::{DemoArguments, Measuring};
use crate::failure;
use crate::guardian::guardian;
use crate::progress::ProgressLine;
use crate::render;
use crate::run::{measurement, undo};
use crate::signals::{LaterSignals, LeftBehind};
use lab::guardian::OwnFolder;
use lab::workload::target::Created;
use model::plan::{Settings, parse};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

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
[NAME]
stonewall
rw=randwrite
bs=BLOCK
ioengine=psync
direct=DIRECT
";

/// The jobs, where the scratch file takes blocks of `least` bytes and more around the page cache.
fn jobs(scratch: &str, least: Option<u64>) -> String {
    let (name, block, direct) = match least {
        Some(least @ ..=1024) if 1024 % least.max(1) == 0 => ("1 KiB random writes, direct".to_owned(), 1024, 1),
        Some(least) => (format!("{least} B random writes, direct"), least, 1),
        None => ("1 KiB random writes, page cache".to_owned(), 1024, 0),
    };
    JOBS.replace("SCRATCH", scratch)
        .replace("NAME", &name)
        .replace("BLOCK", &block.to_string())
        .replace("DIRECT", &direct.to_string())
}

/// Runs the verb.
pub fn demo(arguments: &DemoArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let left = LeftBehind::default();
    let measuring = Measuring::for_seconds(1);
    let measurement = measurement(&measuring, LaterSignals::Exit(2, left.clone()), words)?;
    let guardian = guardian(words);
    // In the working folder where that can be written: a temporary folder is often in memory, where
    // O_DIRECT means nothing.
    let make = |around: &Path| OwnFolder::make(&guardian, around, "iotoll-demo-");
    let folder = make(Path::new(".")).or_else(|_| make(&std::env::temp_dir()))?;
    let created = Arc::new(Created::guarded(guardian));
    left.unless({
        let (folder, created) = (folder.path().to_owned(), Arc::downgrade(&created));
        let rest = move || {
            // Gone, or going, where it is at its end.
            let _ = std::fs::remove_dir_all(&folder);
        };
        move || undo(&created, &rest)
    });
    let scratch = folder.path().join("scratch").display().to_string().replace(':', "\\:");
    let jobs = jobs(&scratch, lab::preparation::least_direct_block(folder.path()));
    let plan = parse::job_file("demo", &jobs, &Settings::default())?;
    let line = ProgressLine::new(arguments.quiet);
    let outcome = lab::run::run(&plan, &measurement, &created, &mut |progress| line.show(&progress));
    line.clear();
    let record = outcome?;
    render::print(&model::study::study(&record), arguments.format)?;
    folder.close()?;
    Ok(failure::of_outcome(&record.outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_something_to_show_whatever_the_disk_takes() {
        for (least, block, direct) in [(Some(512), 1024, true), (Some(4096), 4096, true), (None, 1024, false)] {
            let plan = parse::job_file("demo", &jobs("s", least), &Settings::default()).unwrap();
            let job = &plan.phases[1].jobs[0];
            assert_eq!((job.block_sizes.write.0, job.direct), (block, direct), "{least:?}");
        }
    }
}
