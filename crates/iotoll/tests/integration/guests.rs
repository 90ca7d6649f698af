//! `iotoll guest` with Debian's kernel 6.1: exact and repeatable counts, and failures in one line that leave nothing.

use super::cases::limits_are_told;
use super::iotoll::{Folder, Iotoll, eventually, items, number, whole};
use super::machine::{has, skip};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The cache of these tests. Below `target`: a repeated check downloads nothing, and the user's cache is not touched.
pub(super) const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/guests");
pub(super) const KERNEL: &str = "--kernel debian:6.1 --replicates 1 --quiet";
pub(super) const JOB: &str = "--rw=randread --bs=4k --number_ios=100 --by-function";
pub(super) const QEMU: &str = "qemu-system-x86_64";

pub(super) fn guest(folder: &Folder, words: &str, variables: &[&str]) -> Iotoll {
    with_cache(folder, &format!("guest {words}"), variables)
}

/// A command with the cache of these tests, or with that of the variables.
pub(super) fn with_cache(folder: &Folder, words: &str, variables: &[&str]) -> Iotoll {
    let cache = format!("XDG_CACHE_HOME={CACHE}");
    let environment: Vec<&str> = ["/usr/bin/env", &cache].into_iter().chain(variables.iter().copied()).collect();
    folder.iotoll(words).under(&environment)
}

/// A folder, if this machine can run guests; otherwise the test is skipped. One guest is ready then.
#[track_caller]
pub(super) fn ready() -> Option<Folder> {
    FIRST.as_ref().map(|_| Folder::new()).map_err(|why| skip(why)).ok()
}

/// What the first guest's job found, or why this machine runs no guests.
static FIRST: LazyLock<Result<Value, String>> = LazyLock::new(|| {
    if !has(QEMU) {
        return Err("qemu-system-x86 is not installed".to_owned());
    }
    let ended = guest(&Folder::new(), &format!("run {KERNEL} {JOB} --no-save --format json"), &[]).run();
    let of_machine =
        ["looking up", "downloading", "apt knows no package", "MiB of memory", "MiB are free", "guests need QEMU"];
    if ended.code != Some(0) && of_machine.iter().any(|reason| ended.stderr.contains(reason)) {
        return Err(ended.stderr.trim().to_owned());
    }
    Ok(ended.found())
});

/// The finding of a run that is not saved.
#[track_caller]
pub(super) fn measured(folder: &Folder, words: &str) -> Value {
    guest(folder, &format!("run {KERNEL} --no-save --format json {words}"), &[]).run().found()
}

/// A figure per I/O as a number of instructions.
#[track_caller]
pub(super) fn instructions(point: &Value, per_io: &Value) -> u64 {
    (number(per_io) * whole(&point["ios"]) as f64).round() as u64
}

/// Whether a function is of a program, not of the kernel.
pub(super) fn of_program(function: &Value) -> bool {
    !function["program"].is_null() || function["name"] == "[programs]"
}

fn files_below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    names.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

#[test]
fn counts_are_exact() {
    let Some(folder) = ready() else { return };
    let gone = format!("TMPDIR={}", folder.name("gone"));
    guest(&folder, &format!("run {KERNEL} {JOB} --no-save"), &[&gone]).run().refused(2, &["gone", "TMPDIR"]);
    let first = FIRST.as_ref().unwrap();
    // The kernel's symbols are known now; whether they are asked for changes no count.
    assert_eq!(first["points"], measured(&folder, JOB)["points"]);
    let point = &first["points"][0];
    assert_eq!(whole(&point["ios"]), 100);
    let total = instructions(point, &point["instructions_per_io"]["value"]);
    assert!((50_000..1_000_000).contains(&total), "{total}");
    let functions = point["functions"].as_array().unwrap();
    let of = |function: &Value| instructions(point, &function["instructions_per_io"]);
    assert_eq!(functions.iter().map(of).sum::<u64>(), total);
    let programs = functions.iter().filter(|function| of_program(function));
    assert_eq!(programs.map(of).sum::<u64>(), instructions(point, &point["program_instructions_per_io"]));
    assert!(functions.iter().any(|function| function["program"] == "iotoll" && of(function) > 0));
    let read = functions.iter().find(|function| function["name"] == "vfs_read").unwrap();
    // Each I/O is one call; the job ends by a few more reads than its I/Os at most.
    let calls = read["calls_per_io"].as_f64().unwrap();
    assert!(of(read) > 0 && (1.0..1.1).contains(&calls), "{read}");

    // A planted change: more steps of a loop, in the program alone.
    let work = "--ioengine=work --rw=read --size=1m --number_ios=100 --by-function";
    let planted = measured(&folder, &format!("{work} --sweep work_steps=1000,1100"));
    let [base, hundred] = [0, 1].map(|number| {
        let point = &planted["points"][number];
        let functions = point["functions"].as_array().unwrap().iter();
        let programs = functions.filter(|function| of_program(function));
        programs.map(|function| instructions(point, &function["instructions_per_io"])).sum::<u64>()
    });
    let steps = hundred - base;
    assert!(steps >= 20_000 && steps.is_multiple_of(10_000), "each of 100 I/Os has a hundred steps more: {steps}");
    let list = guest(&folder, "list", &[]).run().done();
    assert!(list.stdout.contains("linux-image-6.1.") && list.stdout.contains("\nSaved guests: "), "{list:?}");
}

/// Exact counts decide without an interval, against limits, against another arm, and against a stored record.
fn gates(folder: &Folder) {
    let judged = |words: &str, limits: &[&str], code: i32, states: &[&str]| {
        let limits: String = limits.iter().map(|limit| format!(" --fail-on '{limit}'")).collect();
        let ended = with_cache(folder, &format!("{words} --format json{limits}"), &[]).run();
        let finding = ended.json();
        let found: Vec<&str> = items(&finding["limits"]).map(|limit| limit["state"].as_str().unwrap()).collect();
        assert_eq!((ended.code, found.as_slice()), (Some(code), states), "{limits}: {ended:?}");
        limits_are_told(&ended);
    };
    let job = format!("guest run {KERNEL} {JOB}");
    let value = ["kernel_instructions_per_io > 1k", "instructions_per_io > 1G"];
    judged(&format!("{job} --out gate"), &value, 3, &["exceeded", "kept"]);
    let change = "instructions_per_io > +0.5%";
    let both = [change, "instructions_per_io < -0.001%"];
    judged(&format!("{job} --no-save --stored gate"), &both, 0, &["kept", "kept"]);
    judged("report gate --stored gate", &["instructions_per_io < +0.5%"], 3, &["exceeded"]);
    // A guest that was not measured.
    let record = folder.text("gate/record.jsonl");
    let lines: Vec<&str> = record.lines().filter(|line| !line.contains("\"measured\":")).collect();
    fs::create_dir(folder.path("cut")).unwrap();
    folder.write("cut/record.jsonl", lines.join("\n") + "\n");
    judged("report gate --stored cut", &[change], 4, &["undecided"]);
    // Its limits stand in the record; without more it says nothing by its status.
    assert_eq!(folder.reported("gate")["limits"][0]["state"], "exceeded");
    // Another arm.
    let arms = "--ioengine=work --rw=read --size=1m --number_ios=100 --sweep work_steps=1000,1100 --no-save";
    let words = format!("guest run {arms} {KERNEL}");
    judged(&words, &["program_instructions_per_io > +0.1%"], 3, &["exceeded"]);
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn damaged_files_are_noticed_and_limits_decide() {
        let Some(folder) = ready() else { return };
        let first = measured(&folder, JOB);
        // Damaged files are noticed: the guest boots again, the symbols are asked for again.
        let guests = Path::new(CACHE).join("iotoll/guests");
        for ending in [".state", ".symbols"] {
            let damaged = files_below(&guests, ending);
            assert!(!damaged.is_empty());
            let cut = |path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(100_000).unwrap();
            damaged.iter().for_each(cut);
        }
        assert_eq!(first["points"], measured(&folder, JOB)["points"]);
        gates(&folder);
    }

    /// QEMU of Debian 13, whose plugins have another interface, unpacked with all its libraries: the same program executes the same instructions, and
    /// the kernel nearly the same, whatever the version.
    #[test]
    fn another_qemu_counts_the_same() {
        const UNPACK: &str = r#"set -e; cd "$1"; mkdir -p lists/partial archives/partial root bin; : > status
            echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" > sources
            apt="apt-get -qq -o Dir::Etc::sourcelist=$1/sources -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$1/lists
                -o Dir::State::status=$1/status -o Dir::Cache=$1 -o APT::Sandbox::User=root -o Debug::NoLocking=1"
            $apt update; $apt install -y --no-install-recommends -d qemu-system-x86
            for deb in archives/*.deb; do dpkg-deb -x "$deb" root; done
            lib="$1/root/usr/lib/x86_64-linux-gnu"
            printf '#!/bin/sh\nexec %s --library-path %s %s -L %s -L %s "$@"\n' "$lib/ld-linux-x86-64.so.2" "$lib" \
                "$1/root/usr/bin/qemu-system-x86_64" "$1/root/usr/share/qemu" "$1/root/usr/share/seabios" > bin/qemu-system-x86_64
            chmod +x bin/qemu-system-x86_64
            mkdir -p cache/iotoll; cp -a "$2/iotoll/kernels" cache/iotoll/"#;
        let Some(folder) = ready() else { return };
        let place = folder.path("");
        let unpacked = Command::new("/bin/sh").args(["-c", UNPACK, "sh"]).arg(&place).arg(CACHE).output().unwrap();
        if !unpacked.status.success() {
            return skip(&format!("Debian 13's QEMU: {}", String::from_utf8_lossy(&unpacked.stderr)));
        }
        let here = measured(&folder, JOB);
        let path = format!("PATH={}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap());
        let words = format!("run {KERNEL} --no-save --format json {JOB}");
        let cache = format!("XDG_CACHE_HOME={}", folder.path("cache").display());
        let there = guest(&folder, &words, &[&path, &cache]).run().found();
        assert!(there["emulator"].as_str().unwrap().starts_with("QEMU 10."), "{}", there["emulator"]);
        let of = |finding: &Value, key: &str| number(&finding["points"][0][key]);
        assert_eq!(of(&here, "program_instructions_per_io"), of(&there, "program_instructions_per_io"));
        let [here, there] = [&here, &there].map(|finding| of(finding, "kernel_instructions_per_io"));
        assert!((here / there - 1.0).abs() < 0.01, "{here} {there}");
    }

    #[test]
    fn an_interrupted_run_leaves_nothing() {
        let Some(folder) = ready() else { return };
        // Not the guest of the other test.
        let words = "--rw=read --cmdline iotoll.test=1";
        fs::create_dir(folder.path("tmp")).unwrap();
        let temporary = format!("TMPDIR={}", folder.path("tmp").display());
        for signal in [Signal::INT, Signal::KILL] {
            let mut running = guest(&folder, &format!("run {KERNEL} --fresh --out rec {words}"), &[&temporary]).start();
            let partial = format!(".partial-{}-", running.id());
            let own = || {
                let parts = ["guests", "kernels", "packages", "programs"]
                    .map(|part| Path::new(CACHE).join("iotoll").join(part));
                parts
                    .iter()
                    .flat_map(|part| fs::read_dir(part).unwrap().flatten())
                    .any(|entry| entry.file_name().to_string_lossy().starts_with(&partial))
            };
            let boots = || files_below(&folder.path("tmp"), "").iter().any(|path| path.join("console").exists());
            assert!(eventually(|| boots() || running.ended()));
            assert!(own(), "the guest is made in a folder of its own");
            let ended = running.ended_by(signal);
            if signal == Signal::INT {
                ended.refused(130, &["interrupted", "nothing was measured"]);
                assert!(!folder.exists("rec"));
            }
            assert!(eventually(|| !own() && files_below(&folder.path("tmp"), "").is_empty()), "{signal:?}");
            folder.assert_no_processes();
        }
    }
}
