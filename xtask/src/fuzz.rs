//! `xtask fuzz`: looks for bytes that break what reads bytes from strangers, guided by which code they reach.
//!
//! libFuzzer and its counters work with any compiler, so no special one is needed. What was found worth keeping lies in
//! `fuzz/corpus`, and is played before anything new is tried.

use anyhow::{Context, bail, ensure};
use std::path::Path;
use std::process::Command;

/// Each a file in `fuzz/targets`, and how long its inputs may be: a handshake has messages of kilobytes, and limits behind them; a write past the page cache has a page.
const TARGETS: [(&str, u32); 4] =
    [("server_handshake", 24 << 10), ("client_handshake", 24 << 10), ("requests", 6 << 10), ("replies", 2048)];
/// For each target, unless told.
const SECONDS: u64 = 60;
/// What counts where the program went: LLVM's coverage pass, as libFuzzer wants it.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// How it is called.
pub fn usage() -> String {
    format!(
        "       xtask fuzz [--seconds N] [--same] [TARGET]…   ({SECONDS} s each, unless told; targets: {})",
        names().join(", ")
    )
}

fn names() -> [&'static str; 4] {
    TARGETS.map(|(name, _)| name)
}

/// Builds the targets, and runs each for so long.
///
/// # Errors
/// When a target cannot be built, or something is found.
pub fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let (seconds, arguments) = match arguments {
        ["--seconds", seconds, rest @ ..] => (seconds.parse().context("--seconds wants a number")?, rest),
        rest => (SECONDS, rest),
    };
    // The same inputs each time, and nothing of earlier times but what is kept: for a check, which is the same for everybody.
    let (again, named) = match arguments {
        ["--same", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    ensure!(seconds > 0, "--seconds wants 1 or more: 0 would go on for ever");
    if let Some(unknown) = named.iter().find(|name| !names().contains(name)) {
        bail!("'{unknown}' is no target; there are {}", names().join(", "));
    }
    let folder = root.join("fuzz");
    let built = root.join("target/fuzz");
    let host = host()?;
    // With a target named, build scripts and macros are compiled without counters.
    let mut build = Command::new("cargo");
    build.args(["build", "--locked", "--release", "--quiet", "--bins", "--target", &host, "--target-dir"]).arg(&built);
    build.current_dir(&folder).env("RUSTFLAGS", [&["--cfg=fuzzing"], &COVERAGE[..]].concat().join(" "));
    ensure!(build.status().context("cargo cannot be run")?.success(), "the targets do not build; libFuzzer needs g++");
    // Where a target puts what it needs meanwhile; what an earlier one left there goes.
    let scratch = built.join("scratch");
    let _ = std::fs::remove_dir_all(&scratch);
    std::fs::create_dir_all(&scratch)?;
    for (target, longest) in TARGETS.iter().filter(|(target, _)| named.is_empty() || named.contains(target)) {
        let program = built.join(&host).join("release").join(target);
        let findings = built.join("findings").join(target);
        let (corpus, new) = (folder.join("corpus").join(target), built.join("corpus").join(target));
        if again {
            let _ = std::fs::remove_dir_all(&new);
        }
        for folder in [&findings, &corpus, &new] {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        eprintln!("fuzz: {target}, {seconds} s");
        // What is new goes to the first folder. What was found once is tried first.
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
            ensure!(found, "{target} failed before anything was found");
            let (findings, program, scratch) = (findings.display(), program.display(), scratch.display());
            bail!("{target}: something was found; it is in {findings}. Again: TMPDIR={scratch} {program} FILE");
        }
        let inputs = output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let inputs = inputs.context("libFuzzer does not say what it did")?.trim();
        println!("fuzz: {target}: {inputs} inputs in {seconds} s, and nothing was found");
    }
    Ok(())
}

/// What this compiler builds for by itself.
fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc cannot be run")?;
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it builds for")?.to_owned())
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
            assert!(corpus.count() > 0, "{target} begins with nothing");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_before_anything_is_built() {
        let root = Path::new("/nowhere");
        for (arguments, output) in [
            (&["--seconds", "x"][..], "a number"),
            (&["--seconds", "0"], "1 or more"),
            (&["reqests"], "'reqests' is no target"),
        ] {
            assert!(run(root, arguments).unwrap_err().to_string().contains(output), "{arguments:?}");
        }
    }
}
