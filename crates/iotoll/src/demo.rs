//! `iotoll demo`: shows in half a minute what an I/O costs, and whether a change made it cheaper, by a run and a comparison on a scratch
//! file that it removes. The record of the comparison stays, unless the user gives `--no-save`.

use crate::arguments::Output;
use crate::failure::INTERRUPTED;
use crate::measure::Saving;
use crate::signals::{self, LeftBehind};
use crate::{Verb, flags_of};
use crate::{compare, measure, run};
use lab::guardian::OwnFolder;
use std::path::Path;
use std::process::ExitCode;
use verbs::Format;

/// The jobs of the run: the cost of the page cache, and that of a small write that bypasses it. `least` is the smallest block of the scratch file
/// that O_DIRECT accepts.
fn jobs(scratch: &str, least: Option<u64>) -> Vec<String> {
    let (name, block, direct) = match least {
        Some(least @ ..=1024) if 1024 % least.max(1) == 0 => ("direct 1 KiB writes".to_owned(), 1024, 1),
        Some(least) => (format!("direct {least} B writes"), least, 1),
        None => ("cached 1 KiB writes".to_owned(), 1024, 0),
    };
    let all = format!("{scratch} --size=64m --time_based --ramp_time=500ms --runtime=3 --ioengine=psync");
    let reads = ["--name=cached reads", "--rw=randread", "--bs=4k", "--invalidate=0"].map(str::to_owned);
    let writes = [format!("--name={name}"), format!("--bs={block}"), format!("--direct={direct}")];
    let all = all.split(' ').map(str::to_owned);
    all.chain(reads).chain(writes).chain(["--stonewall", "--rw=randwrite"].map(str::to_owned)).collect()
}

pub fn demo(output: &Output, words: &[String]) -> anyhow::Result<ExitCode> {
    let left = LeftBehind::default();
    let interruption = signals::interruption(Some(2), left.clone())?;
    let guardian = signals::guardian(words);
    // Prefer the working folder: a temporary folder is often in memory, where O_DIRECT has no meaning.
    let make = |around: &Path| OwnFolder::make(&guardian, around, "iotoll-demo-");
    let folder = make(Path::new(".")).or_else(|_| make(&std::env::temp_dir()))?;
    left.unless({
        let folder = folder.path().to_owned();
        // It is missing if the demo is ending at this moment.
        move || drop(std::fs::remove_dir_all(&folder))
    });
    // What cannot be saved is refused before anything is measured.
    Saving::prepare(output, "demo")?.abandon();
    let scratch = folder.path().join("scratch").display().to_string().replace(':', "\\:");
    let scratch = format!("--filename={scratch}");
    let is_table = output.shown.format == Format::Table;
    let mut ended = ExitCode::SUCCESS;
    if let Verb::Run(mut run) = flags_of(&["iotoll", "run"])? {
        run.job = jobs(&scratch, jobs::workload::target::least_direct_block(folder.path()));
        run.output = Output { no_save: true, out: None, ..output.clone() };
        ended = run::run(&run, words)?;
    }
    if interruption.is_requested() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    // Without io_uring, maps of memory show as well what a system call for each read costs.
    let (engine, why) = match lab::io_uring() {
        Ok(()) => ("ioengine=io_uring", String::new()),
        Err(error) => ("ioengine=mmap", format!(" io_uring is refused here: {error}; iotoll doctor says why.\n")),
    };
    if is_table {
        measure::write(&format!("\n\nThe same reads with another engine.{why}\n"))?;
    }
    let flags = ["iotoll", "compare", "--budget", "11s", "--baseline", "ioengine=psync", "--candidate", engine];
    if let Verb::Compare(mut comparison) = flags_of(&flags)? {
        let job = ["--name=cached reads", &scratch, "--size=64m", "--rw=randread", "--bs=4k"];
        comparison.job = job.map(str::to_owned).to_vec();
        comparison.output = output.clone();
        ended = compare::compare(&comparison, words)?;
    }
    folder.close()?;
    if is_table {
        measure::write(
            "\nNow your own: iotoll run JOB.fio, iotoll cost -- COMMAND, or iotoll compare JOB.fio --candidate OPTION=VALUE.\n",
        )?;
    }
    Ok(ended)
}
