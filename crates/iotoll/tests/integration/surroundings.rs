//! What a process inherits: signals, descriptors, the mask of new files, variables, limits. CI systems, nohup(1) and daemons
//! leave odd ones. And what the tests leave behind when one fails.

use super::iotoll::{Folder, at_once, eventually};
use super::limits::Ordinary;
use super::machine::{is_root, tool};
use super::servers::Server;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Every verb that ends by itself within seconds.
const VERBS: [&str; 11] = [
    "run --background 200ms --no-save --quiet --format json --ioengine=null --size=1m",
    "run --background 200ms --no-save --quiet --format json --filename=data --rw=randread --number_ios=100",
    "cost --background 200ms --no-save --quiet --format json --ios 5 -- true",
    "compare --no-save --quiet --format json --budget 1s --ioengine=null --size=1m --rate_iops=1k --candidate bs=8k",
    "compare --meters thread --no-save --quiet --format json --budget 1s --slices off --aa -- true",
    "ftq --no-save --quiet --format json --cpu --duration 300ms",
    "blast --no-save --quiet --format json --duration 400ms --rounds 2",
    "report kept --format json",
    "doctor --format json",
    "guest list",
    "completions bash",
];

/// A cache of guests that is not there.
const NO_CACHE: &str = concat!("XDG_CACHE_HOME=", env!("CARGO_TARGET_TMPDIR"), "/no-cache");

/// A command that starts the rest of the line in an odd way.
const SURROUNDINGS: [(&str, &[&str]); 13] = [
    ("ignored signals", &["env", "--ignore-signal=HUP,INT,QUIT,TERM,CHLD,PIPE,ALRM,USR1,USR2"]),
    ("blocked signals", &["env", "--block-signal"]),
    ("nohup", &["nohup"]),
    ("no terminal", &["setsid"]),
    ("closed standard input", &["sh", "-c", "exec \"$0\" \"$@\" <&-"]),
    ("closed standard error", &["sh", "-c", "exec \"$0\" \"$@\" 2>&-"]),
    ("files for nobody", &["sh", "-c", "umask 777; exec \"$0\" \"$@\""]),
    ("files for everybody", &["sh", "-c", "umask 0; exec \"$0\" \"$@\""]),
    (
        "no variables",
        &[
            "env",
            "-i",
            concat!("XDG_STATE_HOME=", env!("CARGO_TARGET_TMPDIR"), "/state"),
            NO_CACHE,
            "PATH=/usr/bin:/bin",
        ],
    ),
    ("no home", &["env", "-u", "HOME", "-u", "XDG_STATE_HOME", NO_CACHE]),
    ("another locale", &["env", "LC_ALL=tr_TR.UTF-8", "LANGUAGE=de", "TZ=Asia/Kathmandu", "TERM=dumb"]),
    ("few open files", &["prlimit", "--nofile=128:128"]),
    ("no locked memory", &["prlimit", "--memlock=0:0"]),
];

/// Nobody can see the result, as with /dev/null.
#[test]
fn every_verb_works_with_a_closed_standard_output() {
    let folder = Folder::with_file("data", 1 << 20);
    folder.iotoll("run --background 200ms --out kept --quiet --ioengine=null --size=1m").run().done();
    at_once(VERBS, |verb| {
        let ended = folder.iotoll(verb).under(&["sh", "-c", "exec \"$0\" \"$@\" >&-"]).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{verb}: {ended:?}");
    });
}

/// Names a file; whatever a failing test starts inherits it.
const MARK: &str = "IOTOLL_FAILS_ON_PURPOSE";

/// Fails with everything running that tests start, if the test below runs it.
#[test]
fn fails_on_purpose() {
    let Some(started) = std::env::var_os(MARK) else { return };
    let served = Server::new("--backend memory:1m --unix s");
    let folder = Folder::new();
    let script = "sleep 600 & (setsid sleep 600 &) ; touch ready; sleep 600";
    let cost = "cost --background 200ms --no-save --quiet --ios 1 -- sh -c";
    let _running = folder.iotoll(cost).word(script).start();
    let _peer = folder.command("sh -c 'sleep 600 & wait'").start();
    assert!(eventually(|| folder.exists("ready")));
    fs::write(Path::new(&started), "all").unwrap();
    panic!("on purpose, beside the server {}", served.uri);
}

/// The processes with this variable, by the arguments that they were started with.
fn marked(variable: &str) -> Vec<String> {
    let has = |entry: &fs::DirEntry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(has);
    let words = processes.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    // A process that has ended, and is not waited for yet, has none.
    words.filter(|words| !words.is_empty()).map(|words| String::from_utf8_lossy(&words).replace('\0', " ")).collect()
}

#[test]
fn a_failing_test_ends_what_it_started() {
    let folder = Folder::new();
    let started = folder.name("started");
    let output = fs::File::create(folder.path("output")).unwrap();
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "integration::surroundings::fails_on_purpose"]).env(MARK, &started);
    let status = test.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output).status().unwrap();
    let output = folder.text("output");
    assert!(!status.success() && output.contains("on purpose, beside the server"), "{output}");
    assert_eq!(folder.read("started"), b"all");
    let variable = format!("{MARK}={started}");
    assert!(eventually(|| marked(&variable).is_empty()), "left behind: {:?}", marked(&variable));
}

/// `./check` itself, without its steps, as nohup(1), a closed terminal and CI systems start it.
#[test]
fn check_ends_what_tests_leave() {
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/../../check");
    let script = fs::read_to_string(check).unwrap();
    let part = script.split("# BEGIN left_behind\n").nth(1).and_then(|rest| rest.split("# END left_behind\n").next());
    let folder = Folder::new();
    let log = folder.name("log");
    let lines = format!(
        "export IOTOLL_SKIP_LOG={log}\n{}\nsetsid sleep 600 >/dev/null 2>&1 &\nsleep 0.2\nend_what_is_left\nend_what_is_left\n",
        part.unwrap()
    );
    let said = tool("bash", &["-c", &format!("set -euo pipefail\n{lines}")]).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), ["ended what a test left running: sleep 600"]);
    assert!(marked(&format!("IOTOLL_SKIP_LOG={log}")).is_empty());
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn every_verb_works_in_odd_surroundings() {
        at_once(SURROUNDINGS, |(name, under)| {
            // An ordinary user can do nothing in a folder that nobody may use.
            if name == "files for nobody" && !is_root() {
                return;
            }
            let folder = Folder::with_file("data", 1 << 20);
            folder.iotoll("run --background 200ms --out kept --quiet --ioengine=null --size=1m").run().done();
            for verb in VERBS {
                let ended = folder.iotoll(verb).under(under).run();
                assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{name}: {verb}: {ended:?}");
                if verb.contains("json") {
                    let outcome = ended.json()["outcome"].clone();
                    assert!(outcome.is_null() || outcome == "completed", "{name}: {verb}: {outcome}");
                }
            }
            folder.assert_no_processes();
        });
    }

    /// With so little, some verbs work and others say what is missing. Root ignores the limit of processes.
    #[test]
    fn every_verb_works_or_names_the_limit() {
        let Some(ordinary) = Ordinary::new() else { return };
        ordinary.folder.iotoll("run --background 200ms --out kept --quiet --ioengine=null --size=1m").run().done();
        let processes = ["1", "2", "3", "5", "8", "12", "20"].map(|limit| ("nproc", limit));
        let others = [("nofile", "16"), ("nofile", "32"), ("memlock", "0")];
        let cache = format!("XDG_CACHE_HOME={}", ordinary.folder.path("cache").display());
        at_once((0..).zip(processes.into_iter().chain(others)), |(number, (name, limit))| {
            for verb in VERBS {
                // The limit is checked when the program is executed, so it has to be set for this user.
                let few = format!("--{name}={limit}:{limit}");
                let ended = ordinary.as_user(70_000 + number, verb).under(&["env", &cache, "prlimit", &few]).run();
                let how = format!("{name}={limit}: {verb}: {ended:?}");
                match ended.code {
                    Some(0) => assert_eq!(ended.stderr, "", "{how}"),
                    Some(1) => {
                        assert!(ended.stderr.starts_with("iotoll: ") && ended.stderr.lines().count() == 1, "{how}");
                        assert!(ended.stderr.contains("ulimit -"), "{how}");
                    }
                    _ => panic!("{how}"),
                }
            }
        });
        ordinary.folder.assert_no_processes();
    }
}
