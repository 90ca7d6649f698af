//! Typical commands of a user who does not know `invalidate`, on a cold and on a warm machine.
//!
//! Engines × buffered or direct × reads or writes × run, cost or compare × fresh, cached, just written or larger than
//! memory. This validation decides by itself whether a measurement contains two regimes, from the series of I/Os per
//! second (for fio, from the fraction of reads that came from the disk), independently of iotoll's verdict. If it does,
//! the first lines must report it, and no mean or verdict may cover both.

use crate::bench::evidence::Evidence;
use crate::bench::{Bench, read_through};
use anyhow::Context;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the existing file, in MiB.
const FILE: usize = 256;
/// Memory limit of the control group in which [`FILE`] is larger than memory: half of the file, and some for iotoll.
const GROUP_BYTES: u64 = 160 << 20;
/// Lines that people read first: title, headline, and what follows directly.
const FIRST_LINES: usize = 10;
/// A measurement has two regimes if the I/Os per second of its first and last part differ by this factor.
const APART: f64 = 2.0;

/// State of the file before the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has existed for long.
    There,
    /// It does not exist.
    Fresh,
    /// Just written, not yet on the disk.
    JustWritten,
    /// Larger than the memory that iotoll may use.
    Larger,
}

/// The commands; `F` is the file, `SECONDS` the length.
const COMMANDS: [(State, &str); 30] = [
    (State::There, "run --name=a --rw=randread --bs=4k --filename=F --runtime=SECONDS --time_based"),
    (
        State::There,
        "run --name=a --rw=randread --bs=4k --filename=F --runtime=SECONDS --time_based --ioengine=io_uring --iodepth=32",
    ),
    (
        State::There,
        "run --name=a --rw=randread --bs=4k --filename=F --runtime=SECONDS --time_based --ioengine=libaio --iodepth=8 --direct=1",
    ),
    (State::There, "run --name=a --rw=randread --bs=4k --filename=F --runtime=SECONDS --time_based --invalidate=0"),
    (State::There, "run --name=a --rw=read --bs=128k --filename=F --runtime=SECONDS --time_based"),
    (State::There, "run --name=a --rw=randwrite --bs=4k --filename=F --runtime=SECONDS --time_based"),
    (State::There, "run --name=a --rw=randwrite --bs=4k --filename=F --runtime=SECONDS --time_based --direct=1"),
    (State::There, "run --name=a --rw=randwrite --bs=1k --filename=F --runtime=SECONDS --time_based"),
    (State::There, "run --name=a --rw=randrw --bs=4k --filename=F --runtime=SECONDS --time_based --numjobs=2"),
    (State::Fresh, "run --name=a --rw=randread --bs=4k --filename=F --size=64m --runtime=SECONDS --time_based"),
    (State::Fresh, "run --name=a --rw=write --bs=1m --filename=F --size=256m"),
    (State::JustWritten, "run --name=a --rw=randread --bs=4k --filename=F --runtime=SECONDS --time_based"),
    (State::JustWritten, "run --name=a --rw=read --bs=1m --filename=F"),
    (State::Larger, "run --name=a --rw=randread --bs=4k --filename=F --runtime=SECONDS --time_based"),
    (State::Larger, "run --name=a --rw=read --bs=128k --filename=F --runtime=SECONDS --time_based --invalidate=0"),
    (
        State::There,
        "cost -- fio --name=a --rw=randread --bs=4k --filename=F --size=256m --runtime=SECONDS --time_based",
    ),
    (
        State::There,
        "cost -- fio --name=a --rw=randread --bs=4k --filename=F --size=256m --runtime=SECONDS --time_based --invalidate=0",
    ),
    (
        State::There,
        "cost -- fio --name=a --rw=read --bs=128k --filename=F --size=256m --ioengine=io_uring --iodepth=8 --direct=1",
    ),
    (State::There, "cost -- dd if=F of=/dev/null bs=4k"),
    (State::Fresh, "cost -- fio --name=a --rw=write --bs=1m --filename=F --size=256m"),
    (
        State::Larger,
        "cost -- fio --name=a --rw=randread --bs=4k --filename=F --size=256m --runtime=SECONDS --time_based",
    ),
    (
        State::There,
        "compare --rw=randread --bs=4k --filename=F --size=256m --baseline ioengine=psync --candidate ioengine=io_uring",
    ),
    (State::There, "compare --rw=randread --bs=4k --filename=F --size=256m --candidate direct=1"),
    (
        State::There,
        "compare --rw=randread --bs=4k --filename=F --size=256m --invalidate=1 --candidate ioengine=io_uring",
    ),
    (State::There, "compare --rw=read --filename=F --size=256m --baseline bs=4k --candidate bs=128k"),
    (State::There, "compare --rw=randwrite --bs=4k --filename=F --size=256m --candidate direct=1"),
    (
        State::Fresh,
        "compare --rw=randread --bs=4k --filename=F --size=64m --baseline ioengine=psync --candidate ioengine=libaio",
    ),
    (State::JustWritten, "compare --rw=randread --bs=4k --filename=F --size=256m --candidate ioengine=io_uring"),
    (State::Larger, "compare --rw=randread --bs=4k --filename=F --size=256m --candidate ioengine=io_uring"),
    (State::There, "compare -- fio --name=a --rw=randread --bs=4k --filename=F --size=64m --baseline-candidate"),
];

/// The result of one command.
struct Outcome {
    /// Two regimes, according to the series.
    two: bool,
    /// The first lines report it.
    told: bool,
    /// A mean or verdict covers both.
    rests: bool,
    /// The lines about the page cache.
    wording: String,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let _group = GroupUntilDropped;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    let (mut mixtures, mut silent, mut resting, mut false_alarms) = (0, 0, 0, 0);
    for (number, (state, words)) in COMMANDS.iter().enumerate() {
        for warm in [false, true] {
            bench.progress(&format!("{} of {}, {}: {words}", number + 1, COMMANDS.len(), machine(warm)));
            let outcome = measure(bench, *state, words, warm).with_context(|| (*words).to_owned())?;
            mixtures += usize::from(outcome.two);
            silent += usize::from(outcome.two && !outcome.told);
            resting += usize::from(outcome.two && outcome.rests);
            false_alarms += usize::from(!outcome.two && outcome.told);
            let word = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
            let verdict = if outcome.two && outcome.rests { "COVERS BOTH" } else { "" }.to_owned();
            let cells = [format!("`{words}`"), format!("{state:?}"), machine(warm).to_owned()];
            rows.push([cells.to_vec(), vec![word(outcome.two), word(outcome.told), verdict, outcome.wording]].concat());
        }
    }
    let header = ["command", "file", "machine", "two regimes", "reported", "", "first lines"];
    evidence.table(&header, &rows);
    let count = rows.len();
    evidence.criterion(
        silent == 0,
        format!("{mixtures} of {count} had two regimes; the first lines of {silent} do not report it"),
    );
    evidence.criterion(resting == 0, format!("{resting} means or verdicts cover two regimes"));
    evidence.note(format!(
        "{false_alarms} sheets report a mixture that the series does not show (less than a factor of {APART})."
    ));
    Ok(evidence)
}

fn machine(warm: bool) -> &'static str {
    if warm { "warm" } else { "cold" }
}

fn measure(bench: &Bench, state: State, words: &str, warm: bool) -> anyhow::Result<Outcome> {
    let file = bench.path("F");
    prepare(bench, state, warm, &file)?;
    let record = bench.path("record");
    let _ = fs::remove_dir_all(&record);
    let words = words.replace("SECONDS", &bench.options.seconds.to_string());
    let (ours, command) =
        words.split_once(" -- ").map_or((words.as_str(), None), |(ours, command)| (ours, Some(command)));
    let compare = ours.starts_with("compare");
    let mut iotoll = within_group(bench, state)?;
    iotoll.args(ours.split(' ')).args(["--quiet", "--out"]).arg(&record);
    if compare {
        iotoll.arg(format!("--budget={}s", 3.0 * bench.options.seconds));
    }
    match command {
        // Two commands that differ by an option without effect here.
        Some(command) if compare => {
            let command = command
                .replace(" --baseline-candidate", &format!(" --runtime={} --time_based", bench.options.seconds / 3.0));
            iotoll.arg("--baseline-cmd").arg(&command).arg("--candidate-cmd").arg(format!("{command} --thread"));
        }
        Some(command) => _ = iotoll.arg("--").args(command.split(' ')),
        None => {}
    }
    let text = bench.output(&mut iotoll)?;
    let json = bench.output(bench.iotoll().args(["report", "--format", "json"]).arg(&record))?;
    let found: Value = serde_json::from_str(&json).context("parsing the report's JSON")?;
    // The sheet follows the command's own output; with --quiet, standard output contains nothing else.
    let first: Vec<&str> = text.lines().take(FIRST_LINES).map(str::trim).collect();
    let wording = first
        .iter()
        .filter(|line| line.contains("age cache:") || line.contains("reads:") || line.contains("regimes"))
        .copied();
    let wording = wording.collect::<Vec<_>>().join(" / ");
    let mixed = ["regimes", "warming", "partly cached", "came from storage"];
    let told = mixed.iter().any(|word| wording.contains(word));
    let (two, rests) = if compare { compared(&found) } else { phase(&found) };
    Ok(Outcome { two, told, rests, wording })
}

/// Prepares the file and the page cache.
fn prepare(bench: &Bench, state: State, warm: bool, file: &Path) -> anyhow::Result<()> {
    if fs::metadata(file).map_or(0, |metadata| metadata.len()) != (FILE as u64) << 20 {
        bench.file("F", FILE)?;
    }
    fs::File::open(file)?.sync_all()?;
    fs::write("/proc/sys/vm/drop_caches", "3\n").context("dropping the page cache needs root")?;
    match state {
        State::There if warm => read_through(file)?,
        // Read it within the group, as far as the memory allows.
        State::Larger if warm => {
            let mut reader = within_group(bench, state)?;
            let words = ["cost", "--no-save", "--quiet", "--background=200ms", "--", "cat"];
            bench.output(reader.args(words).arg(file))?;
        }
        State::There | State::Larger => {}
        State::Fresh => fs::remove_file(file)?,
        State::JustWritten => {
            let bytes = fs::read(file)?;
            fs::write(file, bytes)?;
        }
    }
    Ok(())
}

/// A command that runs iotoll, in a control group of its own if the file must be larger than memory.
fn within_group(bench: &Bench, state: State) -> anyhow::Result<Command> {
    if state != State::Larger {
        return Ok(bench.iotoll());
    }
    let group = group()?;
    let iotoll = bench.iotoll();
    let mut shell = bench.command("sh");
    let script = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.display());
    shell.args(["-c", &script, "sh"]).arg(iotoll.get_program());
    Ok(shell)
}

/// Removes the group at the end.
struct GroupUntilDropped;

impl Drop for GroupUntilDropped {
    fn drop(&mut self) {
        if let Ok((group, _)) = group_path() {
            // It may not exist.
            let _ = fs::remove_dir(group);
        }
    }
}

/// The control group with little memory; created on first use.
fn group() -> anyhow::Result<PathBuf> {
    let (group, limit) = group_path()?;
    if !group.is_dir() {
        fs::create_dir(&group).with_context(|| format!("creating the control group {}", group.display()))?;
    }
    fs::write(group.join(limit), format!("{GROUP_BYTES}\n")).context("limiting the group's memory")?;
    Ok(group)
}

/// Path of the group and the name of its limit file, for cgroup version 1 or 2.
fn group_path() -> anyhow::Result<(PathBuf, &'static str)> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let version_1 = text.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path.to_owned()));
    let (group, limit) = match version_1 {
        Some(path) => (format!("/sys/fs/cgroup/memory{path}/iotoll-validate"), "memory.limit_in_bytes"),
        None => ("/sys/fs/cgroup/iotoll-validate".to_owned(), "memory.max"),
    };
    Ok((PathBuf::from(group), limit))
}

/// Whether a run or command had two regimes, and whether a mean of both is shown.
fn phase(found: &Value) -> (bool, bool) {
    let phase = &found["phases"][0];
    let rates: Vec<f64> =
        phase["series"].as_array().into_iter().flatten().filter_map(|point| point["iops"].as_f64()).collect();
    if rates.is_empty() {
        // A command: fio reports what it read, and the kernel what came from the disk.
        let part = phase["page_cache"]["reads_from_storage_fraction"].as_f64();
        let two = part.is_some_and(|part| (0.02..0.98).contains(&part));
        // Its mean is that of the whole command and is shown as such.
        return (two, false);
    }
    // Two speeds alone do not matter, because the cost stays the same; the page cache must have changed too.
    let cache = &phase["page_cache"];
    let two = apart(&rates) && cache["resident_before_fraction"].as_f64() < cache["resident_after_fraction"].as_f64();
    (two, !phase["cycles_per_io"].is_null())
}

/// The same for a comparison: by the rounds that count, per arm.
fn compared(found: &Value) -> (bool, bool) {
    let metrics = &found["cells"][0]["metrics"];
    let regimes = found["regimes"].as_array().map_or(0, Vec::len);
    let slices = found["cells"][0]["slices"].as_array().cloned().unwrap_or_default();
    let rates = |baseline: bool| -> Vec<f64> {
        let of = slices.iter().filter(|slice| slice["baseline"].as_bool() == Some(baseline));
        of.filter_map(|slice| slice["iops"].as_f64()).collect()
    };
    let counted = apart(&rates(true)) || apart(&rates(false));
    // The finding contains the slices that count: if these have two regimes, a verdict covers both.
    let judged = metrics["cycles_per_io"]["change"].is_number();
    (regimes > 0 || counted, counted && judged)
}

/// Whether the medians of the first and the last third of a series are two regimes.
fn apart(rates: &[f64]) -> bool {
    let third = rates.len() / 3;
    let median = |part: &[f64]| {
        let mut sorted = part.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    };
    let ends = rates.get(..third).zip(rates.get(rates.len() - third..));
    let Some((first, last)) = ends.map(|(first, last)| (median(first), median(last))) else { return false };
    third > 0 && first > 0.0 && last > 0.0 && (first / last).max(last / first) >= APART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_differ_by_the_factor_are_two_regimes() {
        assert!(apart(&[1.0, 1.0, 5.0, 9.0, 9.0, 9.0]));
        assert!(!apart(&[1.0, 1.2, 1.0, 1.1, 1.3, 1.0]));
        assert!(!apart(&[1.0, 9.0]), "too few");
        assert!(!apart(&[]));
    }
}
