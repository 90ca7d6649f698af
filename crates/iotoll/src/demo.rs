//! `iotoll demo`: shows in half a minute what an I/O costs, and whether a change made it cheaper.
//!
//! The scratch file is removed at the end. The record of the comparison stays, with a page of the comparison and the two cost sheets,
//! unless the user gives `--no-save`.

use crate::arguments::Output;
use crate::compare;
use crate::failure;
use crate::measure::{begun, undo};
use crate::progress::ProgressLine;
use crate::saving::{self, Saving};
use crate::signals::LeftBehind;
use crate::stdout;
use lab::guardian::OwnFolder;
use lab::replaying::Replays;
use lab::session::Settings as Session;
use lab::workload::target::Created;
use model::comparison::CompareFinding;
use model::experiment::draft::{Draft, Surroundings, Workload};
use model::experiment::{ArmPlan, DraftRules, Experiment};
use model::finding::{PhaseFinding, RunFinding};
use model::kind::Recorded;
use model::plan::service::Address;
use model::plan::{DeviceWrites, Settings, UnknownOptions, parse};
use model::record::Outcome;
use report::{Format, number};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Two phases: the cost of the page cache, and the cost of a small write that bypasses it.
const JOBS: &str = "\
[global]
filename=SCRATCH
size=64m
time_based
ramp_time=500ms
runtime=3
[cached reads]
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

/// The jobs; `least` is the smallest block of the scratch file that O_DIRECT accepts.
fn jobs(scratch: &str, least: Option<u64>) -> String {
    let (name, block, direct) = match least {
        Some(least @ ..=1024) if 1024 % least.max(1) == 0 => ("direct 1 KiB writes".to_owned(), 1024, 1),
        Some(least) => (format!("direct {least} B writes"), least, 1),
        None => ("cached 1 KiB writes".to_owned(), 1024, 0),
    };
    JOBS.replace("SCRATCH", scratch)
        .replace("NAME", &name)
        .replace("BLOCK", &block.to_string())
        .replace("DIRECT", &direct.to_string())
}

/// Longest time of the comparison: enough for ten rounds, from which on its intervals can be trusted.
const COMPARISON_SECONDS: f64 = 11.0;

/// The job of the first phase, with two engines: without io_uring, maps of memory show as well what a system call for each read costs.
fn comparison(scratch: &str, io_uring: std::io::Result<()>) -> anyhow::Result<Experiment> {
    let (engine, why) = match io_uring {
        Ok(()) => ("io_uring", String::new()),
        Err(error) => ("mmap", format!(" (io_uring is refused here: {error}; `iotoll doctor` says why)")),
    };
    let arm = |engine: &str| ArmPlan {
        name: engine.to_owned(),
        options: vec![format!("ioengine={engine}")],
        ..ArmPlan::default()
    };
    let text = format!("[cached reads]\nfilename={scratch}\nsize=64m\nrw=randread\nbs=4k\n");
    let draft = Draft {
        title: format!("the same reads with another engine: psync | {engine}{why}"),
        workload: Workload::JobFile { name: "demo".to_owned(), text, options: Vec::new() },
        arms: vec![arm("psync"), arm(engine)],
        rules: DraftRules { budget_seconds: Some(COMPARISON_SECONDS), ..DraftRules::default() },
        ..Draft::default()
    };
    let surroundings = Surroundings {
        environment: &|_| None,
        included: &|_| None,
        address: &|_| Address::default(),
        unknown_options: UnknownOptions::Refuse,
        device_writes: DeviceWrites::Refuse,
    };
    Ok(draft.resolve(&surroundings)?)
}

pub fn demo(output: &Output, words: &[String]) -> anyhow::Result<ExitCode> {
    // Made only at the end; but an error must show before the wait.
    Saving::prepare(output, "demo")?.abandon();
    let left = LeftBehind::default();
    let begun = begun(words, words.to_vec().into(), Some(2), left.clone())?;
    let measurement = Session { background: Duration::from_secs(1), ..begun };
    let guardian = measurement.guardian.clone();
    // Prefer the working folder: a temporary folder is often in memory, where O_DIRECT has no meaning.
    let make = |around: &Path| OwnFolder::make(&guardian, around, "iotoll-demo-");
    let folder = make(Path::new(".")).or_else(|_| make(&std::env::temp_dir()))?;
    let created = Arc::new(Created::guarded(guardian));
    left.unless({
        let (folder, created) = (folder.path().to_owned(), Arc::downgrade(&created));
        let rest = move || {
            // It is missing if the demo is ending at this moment.
            let _ = std::fs::remove_dir_all(&folder);
        };
        move || undo(&created, &rest)
    });
    let scratch = folder.path().join("scratch").display().to_string().replace(':', "\\:");
    let jobs = jobs(&scratch, lab::laying_out::least_direct_block(folder.path()));
    let plan = parse::job_file("demo", &jobs, &Settings::default())?;
    let line = ProgressLine::new(output.quiet);
    let outcome =
        lab::run::run(&plan, &Replays::default(), &measurement, &created, &mut |progress| line.show(&progress));
    line.clear();
    let record = outcome?;
    let costs = model::study::study(&record);
    stdout::print(&costs, output.shown, None)?;
    let ended = match record.outcome {
        Outcome::Completed => compare_engines(output, &costs, &scratch, measurement)?,
        outcome => failure::of_outcome(&outcome),
    };
    folder.close()?;
    Ok(ended)
}

/// Compares two engines on the scratch file, saves the report with the costs, and prints the comparison.
fn compare_engines(
    output: &Output,
    costs: &RunFinding,
    scratch: &str,
    measurement: Session,
) -> anyhow::Result<ExitCode> {
    let experiment = comparison(scratch, lab::io_uring())?;
    let saving = Saving::prepare(output, "demo")?;
    let settings = compare::settings(Session { saver: saving.saver(), ..measurement }, None);
    let line = ProgressLine::new(output.quiet);
    let outcome = lab::compare::compare(experiment, &settings, &mut |stage| line.show_stage(&stage));
    line.clear();
    let record = outcome.inspect_err(|_| saving.abandon())?;
    if output.shown.format == Format::Table {
        stdout::write("\n\n")?;
    }
    let finding = record.study(None);
    let kept = saving.folder().map_or(Ok(()), |folder| {
        saving::write_html(folder, &report::page_of_both(&finding, costs))?;
        if !output.quiet && !output.shown.is_glance() {
            saving::note_folder(folder, "");
        }
        Ok(())
    });
    saving::both(kept, stdout::print(&finding, output.shown, saving.folder()))?;
    if output.shown.format == Format::Table {
        stdout::write(&format!("\n{}\n", textwrap::fill(&told(costs, &finding), stdout::columns())))?;
    }
    Ok(failure::of_outcome(&finding.head.outcome))
}

/// What the demo showed, in three sentences.
fn told(costs: &RunFinding, comparison: &CompareFinding) -> String {
    let cost = |phase: &PhaseFinding| {
        let cost = phase
            .cycles_per_io
            .map(|cycles| number::net(Some(cycles), |cycles| number::with_unit(number::CYCLES, cycles)));
        format!("{} for {}", cost.unwrap_or_else(|| "an unknown number of cycles".to_owned()), phase.jobs.join(", "))
    };
    let phases: Vec<String> = costs.phases.iter().map(cost).collect();
    let arms: Vec<&str> = comparison.arms.iter().map(|arm| arm.name.as_str()).collect();
    format!(
        "This demo showed what one I/O costs the whole machine, {}, and whose cycles these are. Then {} did the same reads in turns, and \
         the intervals of the differences say which of them is cheaper. Now your own: iotoll run JOB.fio, iotoll cost -- COMMAND, or \
         iotoll compare JOB.fio --candidate OPTION=VALUE.",
        phases.join(" and "),
        arms.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_fits_any_block_size() {
        for (least, block, direct) in [(Some(512), 1024, true), (Some(4096), 4096, true), (None, 1024, false)] {
            let plan = parse::job_file("demo", &jobs("s", least), &Settings::default()).unwrap();
            let job = &plan.phases[1].jobs[0];
            assert_eq!((job.block_sizes.write.0, job.direct), (block, direct), "{least:?}");
        }
    }
}
