//! The environment of a validation: a scratch directory, the program under test, rounds in random order, Ctrl-C.

pub mod evidence;
pub mod rounds;
pub mod seeded;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use seeded::Seeded;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of a validation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Length of one measurement.
    pub seconds: f64,
    pub rounds: usize,
    /// Seed of the random order.
    pub seed: u64,
    /// Texts of an experiment file that were changed.
    pub set: BTreeMap<String, String>,
}

/// What every validation uses. Dropping it removes the scratch directory.
pub struct Bench {
    /// From the command line.
    pub options: Options,
    name: String,
    scratch: tempfile::TempDir,
    iotoll: PathBuf,
    interrupted: Arc<AtomicBool>,
    seeded: Seeded,
}

impl Bench {
    /// # Errors
    /// When there is no iotoll binary to measure.
    pub fn new(name: &str, options: Options) -> anyhow::Result<Self> {
        let bench = Self::without_iotoll(name, options)?;
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, bench.interrupted.clone())?;
        }
        build(&bench.iotoll)?;
        Ok(bench)
    }

    /// A bench that measures nothing.
    pub fn without_iotoll(name: &str, options: Options) -> anyhow::Result<Self> {
        let iotoll = std::env::current_exe()?.with_file_name("iotoll");
        // In the current directory: a temporary directory may be in memory, not on ext4.
        let here = std::env::current_dir()?;
        let scratch = tempfile::Builder::new().prefix("iotoll-validate-").tempdir_in(&here);
        let scratch = scratch.with_context(|| format!("creating a scratch directory in {}", here.display()))?;
        let (interrupted, seeded) = (Arc::default(), Seeded::new(options.seed));
        Ok(Self { options, name: name.to_owned(), scratch, iotoll, interrupted, seeded })
    }

    /// A path in the scratch directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// A command that runs a program in the scratch directory, which finds `iotoll` and `validation` of this build first.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let mut paths = OsString::from(self.iotoll.parent().unwrap_or(Path::new("")));
        paths.push(":");
        paths.push(std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(self.scratch.path()).stdin(Stdio::null()).env("PATH", paths);
        command
    }

    /// A command that runs the shell line that is added to it.
    pub fn shell(&self) -> Command {
        let mut shell = self.command("sh");
        shell.arg("-c");
        shell
    }

    /// Starts a shell line that runs until the guard is dropped, or this process ends.
    pub fn beside(&self, line: &str) -> anyhow::Result<Beside> {
        let mut command = self.command("setpriv");
        command.args(["--pdeathsig", "KILL", "sh", "-c", line]).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Beside { child: command.process_group(0).spawn().context("cannot run setpriv; install util-linux")? })
    }

    /// Runs a program and returns its standard output if it succeeds.
    pub fn output(&self, command: &mut Command) -> anyhow::Result<String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let output = command.output().with_context(|| format!("cannot run {program}; install it"))?;
        self.check()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").to_owned();
            let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            bail!("{program} {}: {}: {last}", words.join(" "), output.status);
        }
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// # Errors
    /// After Ctrl-C.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.interrupted.load(Ordering::Relaxed), "interrupted");
        Ok(())
    }

    /// Measures every cell once per round. Cells of one block stay together; blocks, and the cells in each, are in a
    /// new random order in each round. The values of each cell are in the order of the rounds.
    pub fn in_rounds<C, T>(
        &mut self,
        rounds: usize,
        cells: &[C],
        block: impl Fn(&C) -> usize,
        named: impl Fn(&C) -> String,
        mut measure: impl FnMut(&Self, &C, usize) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<Vec<T>>> {
        let mut found: Vec<Vec<T>> = cells.iter().map(|_| Vec::new()).collect();
        let blocks: Vec<usize> = cells.iter().map(block).collect();
        for round in 1..=rounds {
            for (done, place) in order(&blocks, &mut self.seeded).into_iter().enumerate() {
                let (Some(cell), Some(values)) = (cells.get(place), found.get_mut(place)) else { continue };
                let (count, what) = (cells.len(), named(cell));
                self.progress(&format!("round {round} of {rounds}, {} of {count}: {what}", done + 1));
                self.check()?;
                values.push(measure(self, cell, round).with_context(|| what)?);
            }
        }
        Ok(found)
    }

    /// Prints a progress line.
    pub fn progress(&self, what: &str) {
        eprintln!("{}: {what}", self.name);
    }
}

/// A random order of indices in which those of one block stay together.
fn order(blocks: &[usize], seeded: &mut Seeded) -> Vec<usize> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, block) in blocks.iter().enumerate() {
        members.entry(*block).or_default().push(place);
    }
    let mut members: Vec<Vec<usize>> = members.into_values().collect();
    seeded.shuffle(&mut members);
    members.iter_mut().for_each(|places| seeded.shuffle(places));
    members.concat()
}

/// Whether this is a release build: any other has no speed that is worth a figure.
pub fn is_release() -> bool {
    std::env::current_exe().is_ok_and(|this| this.parent().is_some_and(|folder| folder.ends_with("release")))
}

/// The iotoll binary: built now if cargo runs this program, otherwise the one built last.
fn build(iotoll: &Path) -> anyhow::Result<()> {
    if let Ok(cargo) = std::env::var("CARGO") {
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "-p", "iotoll"]).args(is_release().then_some("--release"));
        let status = build.current_dir(crate::workspace()).status().context("building iotoll")?;
        ensure!(status.success(), "building iotoll failed: run cargo build --release");
    }
    ensure!(iotoll.is_file(), "{} is missing: run cargo build --release", iotoll.display());
    Ok(())
}

/// A process that is killed with its group, if it leads one, when this guard is dropped.
pub struct Beside {
    pub child: Child,
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have exited by itself; in any case nothing remains.
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stay_together_and_every_cell_occurs() {
        let blocks = [7, 7, 7, 1, 1, 1, 4];
        let mut seeded = Seeded::new(3);
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let order = order(&blocks, &mut seeded);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..blocks.len()).collect::<Vec<_>>());
            let changes = order.windows(2).filter(|pair| blocks[pair[0]] != blocks[pair[1]]).count();
            assert_eq!(changes, 2, "{order:?}");
            orders.insert(order);
        }
        assert!(orders.len() > 50, "{}", orders.len());
    }
}
