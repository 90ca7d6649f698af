//! `xtask fuzz`: coverage-guided fuzzing of the code that parses untrusted bytes.
//!
//! libFuzzer and its counters work with any compiler, so a stable one suffices. `fuzz/corpus` contains the inputs worth
//! keeping, which are run first.

use anyhow::{Context, bail, ensure};
use std::path::Path;
use std::process::Command;

/// The targets (each a file in `fuzz/targets`) and their maximum input length: handshake messages take kilobytes, and
/// the limits are beyond them; a direct-I/O write is at least a page; the least program has a kilobyte.
const TARGETS: [(&str, u32); 7] = [
    ("server_handshake", 24 << 10),
    ("client_handshake", 24 << 10),
    ("requests", 6 << 10),
    ("replies", 2048),
    ("program", 8 << 10),
    ("trace", 1024),
    ("job_file", 1024),
];
/// Default time per target.
const SECONDS: u64 = 60;
/// Flags for LLVM's coverage pass, as libFuzzer requires it.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

pub fn usage() -> String {
    format!(
        "       xtask fuzz [--seconds N] [--same] [TARGET]…   (default {SECONDS} s each; targets: {})",
        names().join(", ")
    )
}

fn names() -> [&'static str; 7] {
    TARGETS.map(|(name, _)| name)
}

/// Builds the targets, and runs each for the given time.
///
/// # Errors
/// When a target cannot be built, or an input fails.
pub fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let (seconds, arguments) = match arguments {
        ["--seconds", seconds, rest @ ..] => (seconds.parse().context("--seconds needs a number")?, rest),
        rest => (SECONDS, rest),
    };
    // Fixed seed and no corpus from earlier runs, so that the check is the same for everyone.
    let (again, named) = match arguments {
        ["--same", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    ensure!(seconds > 0, "--seconds must be 1 or more: 0 would run forever");
    if let Some(unknown) = named.iter().find(|name| !names().contains(name)) {
        bail!("unknown target '{unknown}'; targets: {}", names().join(", "));
    }
    let folder = root.join("fuzz");
    let built = root.join("target/fuzz");
    let host = crate::host()?;
    // With an explicit target, build scripts and macros are compiled without counters.
    let mut build = Command::new("cargo");
    build.args(["build", "--locked", "--release", "--quiet", "--bins", "--target", &host, "--target-dir"]).arg(&built);
    build.current_dir(&folder).env("RUSTFLAGS", [&["--cfg=fuzzing"], &COVERAGE[..]].concat().join(" "));
    ensure!(build.status().context("cannot run cargo")?.success(), "building the targets failed; libFuzzer needs g++");
    // Scratch space of the targets; remove what an earlier run left.
    let scratch = built.join("scratch");
    let _ = std::fs::remove_dir_all(&scratch);
    let targets: Vec<_> = TARGETS.iter().filter(|(target, _)| named.is_empty() || named.contains(target)).collect();
    // A target has one thread.
    let together = std::thread::available_parallelism().map_or(1, usize::from);
    for targets in targets.chunks(together) {
        let play = |(target, longest): &(&str, u32)| {
            let place = Place { folder: &folder, built: &built, programs: &built.join(&host).join("release") };
            place.play(target, *longest, seconds, again)
        };
        std::thread::scope(|scope| {
            let running: Vec<_> = targets.iter().map(|target| scope.spawn(|| play(target))).collect();
            let ended =
                running.into_iter().map(|target| target.join().unwrap_or_else(|_| bail!("a target's thread panicked")));
            ended.collect::<anyhow::Result<Vec<()>>>()
        })?;
    }
    Ok(())
}

/// Where targets are, and what they find.
struct Place<'a> {
    folder: &'a Path,
    built: &'a Path,
    programs: &'a Path,
}

impl Place<'_> {
    fn play(&self, target: &str, longest: u32, seconds: u64, again: bool) -> anyhow::Result<()> {
        let program = self.programs.join(target);
        let (findings, scratch) = (self.built.join("findings").join(target), self.built.join("scratch").join(target));
        let (corpus, new) = (self.folder.join("corpus").join(target), self.built.join("corpus").join(target));
        if again {
            let _ = std::fs::remove_dir_all(&new);
        }
        for folder in [&findings, &corpus, &new, &scratch] {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        eprintln!("fuzz: {target}, {seconds} s");
        // New inputs go to the first folder. Earlier findings are run first.
        let mut fuzz = Command::new(&program);
        if again {
            fuzz.arg("-seed=1");
        }
        fuzz.args([&new, &corpus, &findings]).args([
            &format!("-max_total_time={seconds}"),
            &format!("-artifact_prefix={}/", findings.display()),
            &format!("-max_len={longest}"),
            "-timeout=20",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
        ]);
        let ended = fuzz.env("TMPDIR", &scratch).output().with_context(|| program.display().to_string())?;
        let output = String::from_utf8_lossy(&ended.stderr);
        if !ended.status.success() {
            eprintln!("{output}");
            let found = std::fs::read_dir(&findings).is_ok_and(|mut entries| entries.next().is_some());
            ensure!(found, "{target} failed without a finding");
            let (findings, program, scratch) = (findings.display(), program.display(), scratch.display());
            bail!("{target}: an input failed; it is in {findings}. To reproduce: TMPDIR={scratch} {program} FILE");
        }
        let inputs = output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let inputs = inputs.context("libFuzzer printed no statistics")?.trim();
        println!("fuzz: {target}: {inputs} inputs in {seconds} s, no failure");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_built_and_has_a_corpus() {
        let root = crate::workspace();
        let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        for target in names() {
            assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
            let corpus = std::fs::read_dir(root.join("fuzz/corpus").join(target)).unwrap();
            assert!(corpus.count() > 0, "{target} has an empty corpus");
        }
    }

    #[test]
    fn invalid_arguments_are_refused_before_building() {
        let root = Path::new("/nowhere");
        for (arguments, output) in [
            (&["--seconds", "x"][..], "a number"),
            (&["--seconds", "0"], "1 or more"),
            (&["reqests"], "unknown target 'reqests'"),
        ] {
            assert!(run(root, arguments).unwrap_err().to_string().contains(output), "{arguments:?}");
        }
    }
}
