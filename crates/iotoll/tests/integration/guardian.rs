//! iotoll is killed: settings are restored, its files and processes are removed, and leftovers of a double kill are
//! found later.
//!
//! The product cannot panic on demand; SIGABRT, which ends it like a crash, stands for that.

use super::iotoll::{Folder, Iotoll, Running, eventually};
use super::machine::{has, skip};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_autocorking";
const COMPARE: &str =
    "compare --quiet --no-save --ioengine=spin --size=1m --spin_cycles=20000 --budget 60s --precision 0.01%";
/// A variable that all processes of a test inherit, except those that clear their environment.
const MARK: &str = "IOTOLL_TEST_MARK";

/// For env(1): the test runner may ignore this signal, and iotoll would inherit that.
const HEEDED: &str = "--default-signal=HUP";

/// A folder with a file to switch, and a folder for ledgers.
struct Scene {
    folder: Folder,
    state: PathBuf,
    _parent: Folder,
}

impl Scene {
    fn new() -> Self {
        let (folder, parent) = (Folder::new(), Folder::new());
        folder.write("knob", "found\n");
        Self { folder, state: parent.path("state"), _parent: parent }
    }

    fn environment(&self) -> [String; 2] {
        [format!("XDG_STATE_HOME={}", self.state.display()), format!("{MARK}={}", self.folder.path("").display())]
    }

    fn iotoll(&self, words: &str) -> Iotoll {
        let [state, mark] = self.environment();
        self.folder.iotoll(words).under(&["env", HEEDED, &state, &mark])
    }

    /// `file:` setting of the knob.
    fn setting(&self) -> String {
        format!("--candidate-set=file:{}=changed", self.folder.path("knob").display())
    }

    /// Whether the setting is on.
    fn is_on(&self) -> bool {
        self.folder.read("knob") == b"changed"
    }

    /// Processes of this test.
    fn processes(&self) -> Vec<i32> {
        let [_, mark] = self.environment();
        let bears = |id: &i32| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(bears).collect()
    }

    /// Whether a command sleeps in the folder.
    fn sleeps(&self) -> bool {
        let folder = fs::canonicalize(self.folder.path("")).unwrap();
        let here = |id: &i32| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|place| place == folder);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter(here).any(|id| comm(id) == "sleep")
    }

    fn ledgers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state.join("iotoll")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Removes a ledger that contains only the hint at a command.
    fn forget_hints(&self) {
        let [ledger] = self.ledgers().try_into().unwrap();
        let text = fs::read_to_string(&ledger).unwrap();
        assert!(text.lines().count() == 2 && text.contains("may_be_on"), "{text}");
        fs::remove_file(ledger).unwrap();
    }

    /// Everything is restored, and no process is left.
    #[track_caller]
    fn assert_undone(&self, how: &str) {
        assert!(eventually(|| self.folder.read("knob") == b"found\n"), "{how}: the knob was not put back");
        assert!(eventually(|| self.processes().is_empty()), "{how}: processes are left: {:?}", self.processes());
        self.folder.assert_no_processes();
        assert!(self.ledgers().is_empty(), "{how}: {:?}", self.ledgers());
    }
}

pub fn comm(id: i32) -> String {
    fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default().trim().to_owned()
}

pub fn guardian(running: &Running) -> Option<Pid> {
    running.children().into_iter().find(|id| comm(*id) == "undo-guardian").and_then(Pid::from_raw)
}

pub fn kill(process: Pid) {
    kill_process(process, Signal::KILL).unwrap();
}

/// The sysctl to switch, if that is allowed: its value, and a setting that changes it.
fn sysctl() -> Option<(String, String)> {
    let before = fs::read_to_string(SYSCTL).ok().filter(|before| fs::write(SYSCTL, before).is_ok());
    let Some(before) = before else {
        skip("tcp_autocorking cannot be written; only the file was tested");
        return None;
    };
    let other = if before.trim() == "0" { "1" } else { "0" };
    Some((before, format!("--candidate-set=sysctl:net.ipv4.tcp_autocorking={other}")))
}

#[test]
fn a_toggle_is_restored_however_iotoll_ends() {
    let sysctl = sysctl();
    let switched = || fs::read_to_string(SYSCTL).unwrap();
    for signal in [Signal::KILL, Signal::TERM, Signal::HUP, Signal::ABORT] {
        let scene = Scene::new();
        let settings = [Some(scene.setting()), sysctl.as_ref().map(|(_, setting)| setting.clone())];
        let compare = settings.into_iter().flatten().fold(scene.iotoll(COMPARE), Iotoll::word);
        let running = compare.start();
        // A worker exists only after the rehearsal.
        let worker = || scene.processes().into_iter().any(|id| comm(id) == "exe");
        assert!(eventually(|| worker() && scene.is_on()), "{signal:?}: never switched on");
        assert!(sysctl.as_ref().is_none_or(|(before, _)| *before != switched()), "{signal:?}");
        running.ended_by(signal);
        scene.assert_undone(&format!("{signal:?}"));
        assert!(sysctl.as_ref().is_none_or(|(before, _)| *before == switched()), "{signal:?}");
    }
}

/// The guardian is in its own session and is not called iotoll, so that killing a terminal's processes or all processes
/// called iotoll spares it.
#[test]
fn a_kill_of_the_whole_group_spares_the_guardian() {
    let scene = Scene::new();
    let running = scene.iotoll(COMPARE).word(scene.setting()).under(&["setsid"]).start();
    assert!(eventually(|| guardian(&running).is_some() && scene.is_on()));
    let guardian = guardian(&running).unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::PIPE] {
        kill_process(guardian, signal).unwrap();
    }
    let name = fs::read(format!("/proc/{}/cmdline", guardian.as_raw_nonzero())).unwrap();
    assert!(!String::from_utf8_lossy(&name).contains("iotoll"), "{name:?}");
    let group = Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap();
    assert!(eventually(|| scene.is_on()));
    kill_process_group(group, Signal::KILL).unwrap();
    running.wait();
    scene.assert_undone("the group");
}

#[test]
fn a_toggle_is_restored_when_its_terminal_is_closed() {
    if !has("script") {
        return skip("script is not installed");
    }
    let scene = Scene::new();
    let line = format!("exec env {HEEDED} {} {COMPARE} {}", super::iotoll::PROGRAM, scene.setting());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).current_dir(scene.folder.path(""));
    for variable in scene.environment() {
        let (name, value) = variable.split_once('=').unwrap();
        terminal.env(name, value);
    }
    let mut terminal = terminal.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(eventually(|| scene.is_on()), "never switched on");
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    scene.assert_undone("the terminal");
}

#[test]
fn files_of_a_killed_run_are_removed() {
    let run = "run --background 200ms --no-save --quiet --name=s --rw=randread --runtime=50 --time_based";
    let laid_out =
        |scene: &Scene, name: &str| fs::metadata(scene.folder.path(name)).is_ok_and(|file| file.len() > 2 << 20);
    for name in ["new", "mine"] {
        let scene = Scene::new();
        scene.folder.write("mine", vec![0x5a; 1 << 20]);
        let before = scene.folder.listing();
        // In the middle of laying out, and of measuring.
        for (size, threads) in [("20g", 0), ("3m", 1)] {
            let words = format!("{run} --filename={name} --size={size} --fallocate=none");
            let running = scene.iotoll(&words).start();
            assert!(eventually(|| laid_out(&scene, name) && running.has_threads("job s", threads)));
            running.ended_by(Signal::KILL);
            assert!(eventually(|| scene.processes().is_empty()), "{name} {size}");
            assert_eq!(scene.folder.listing(), before, "{name} {size}");
            assert!(scene.ledgers().is_empty());
        }
    }
    let scene = Scene::new();
    let before = scene.folder.listing();
    let running = scene.iotoll("demo --quiet").start();
    assert!(eventually(|| running.has_threads("job cached read", 1)));
    running.ended_by(Signal::KILL);
    assert!(eventually(|| scene.processes().is_empty()));
    assert_eq!(scene.folder.listing(), before, "demo");
    assert!(scene.ledgers().is_empty());
}

/// Some have left the process group, some have no parent either, one has another environment.
#[test]
fn the_command_of_a_killed_comparison_is_killed_with_its_descendants() {
    let scene = Scene::new();
    scene.folder.write("command", "setsid sleep 300 &\n(setsid sleep 301 &)\nenv -i sleep 302 &\ntouch ready\nwait\n");
    let words = "compare --quiet --no-save --budget 60s --baseline-cmd";
    let running = scene.iotoll(words).word("sh command").word("--candidate-cmd").word("sh ./command").start();
    assert!(eventually(|| scene.folder.exists("ready")));
    running.ended_by(Signal::KILL);
    scene.assert_undone("a command");
    // One that executes a different program after a while.
    let words = "compare --quiet --no-save --budget 60s --baseline-cmd";
    let running = scene.iotoll(words).word("env -i sleep 303").word("--candidate-cmd").word("env -i sleep 304").start();
    assert!(eventually(|| scene.sleeps()));
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.ended_by(Signal::KILL);
    scene.assert_undone("a command without environment");
}

#[test]
fn cleanup_runs_even_after_a_kill_during_setup() {
    for setup in ["touch entered; sleep 300", "sleep 300 & echo $! > pid; touch entered"] {
        let scene = Scene::new();
        let running = scene
            .iotoll(COMPARE)
            .word("--candidate-setup")
            .word(setup)
            .word("--candidate-cleanup")
            .word("rm entered; kill $(cat pid); touch left")
            .word(scene.setting())
            .start();
        assert!(eventually(|| scene.folder.exists("entered") && scene.is_on()));
        running.ended_by(Signal::KILL);
        assert!(eventually(|| scene.folder.exists("left")), "{setup}");
        assert!(!scene.folder.exists("entered"), "{setup}");
        scene.assert_undone(setup);
    }
}

#[test]
fn a_guardian_that_dies_is_replaced() {
    let scene = Scene::new();
    let running = scene.iotoll(COMPARE).word(scene.setting()).start();
    assert!(eventually(|| guardian(&running).is_some() && scene.is_on()));
    let first = guardian(&running).unwrap();
    kill(first);
    let another = || guardian(&running).is_some_and(|now| now != first);
    assert!(eventually(|| another() && scene.is_on()), "no other one");
    running.ended_by(Signal::KILL);
    scene.assert_undone("the second guardian");
}

/// Kills an iotoll together with its guardian, in the middle of a toggle.
fn killed_both(scene: &Scene) {
    let running = scene
        .iotoll(COMPARE)
        .word(scene.setting())
        .word("--candidate-setup=touch entered")
        .word("--candidate-cleanup=touch left")
        .start();
    assert!(eventually(|| !scene.ledgers().is_empty() && scene.folder.exists("entered") && scene.is_on()));
    // While it is stopped, it cannot start another one.
    running.signal(Signal::STOP);
    kill(guardian(&running).unwrap());
    running.ended_by(Signal::KILL);
    assert!(eventually(|| scene.processes().is_empty()), "{:?}", scene.processes());
    // A kill during cleanup would be a different case.
    let _ = fs::remove_file(scene.folder.path("left"));
    scene.folder.write("knob", "changed");
    assert_eq!(scene.ledgers().len(), 1);
}

fn left_behind(scene: &Scene) -> Value {
    let ended = scene.iotoll("doctor --format json").run().done();
    let checks = ended.json()["checks"].as_array().unwrap().clone();
    checks.into_iter().find(|check| check["topic"] == "left_behind").unwrap()
}

const NEXT: &str =
    "run --background 200ms --no-save --quiet --format json --name=n --ioengine=null --size=1m --number_ios=10";

#[test]
fn leftovers_of_a_double_kill_are_named_and_restored_by_the_next_run() {
    let scene = Scene::new();
    killed_both(&scene);
    let knob = scene.folder.path("knob").display().to_string();
    // A pipe without a writer must not block.
    let pipe = scene.state.join("iotoll/pipe.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for _ in 0..2 {
        let check = left_behind(&scene);
        assert_eq!(check["state"], "poor", "{check}");
        let found = check["found"].as_str().unwrap();
        assert!(found.contains(&knob) && found.contains("run `touch left`"), "{check}");
        assert!(check["mend"].as_str().unwrap().contains("iotoll demo"), "{check}");
        assert!(scene.is_on(), "the doctor changes nothing");
    }
    fs::remove_file(&pipe).unwrap();
    let ended = scene.iotoll(NEXT).run().done();
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let [may_be_on, put_back] = lines.as_slice() else { panic!("{ended:?}") };
    assert!(
        put_back.contains(&knob) && put_back.contains("set back") && put_back.contains("iotoll compare"),
        "{put_back}"
    );
    let folder = scene.folder.path("left").parent().unwrap().display().to_string();
    let hint = format!("may still be on: run `touch left` in {folder}, then remove ");
    assert!(may_be_on.contains(&hint), "{may_be_on}");
    assert!(!scene.folder.exists("left"), "no command is run from a ledger");
    // A hint stays until the user has followed it; restored entries are removed.
    scene.folder.write("knob", "changed");
    assert_eq!(scene.iotoll(NEXT).run().stderr.trim_end(), *may_be_on);
    assert!(scene.is_on());
    scene.folder.write("knob", "found\n");
    assert_eq!(PathBuf::from(may_be_on.rsplit(' ').next().unwrap()), scene.ledgers()[0]);
    scene.forget_hints();
    scene.assert_undone("the next");
    assert_eq!(scene.iotoll(NEXT).run().stderr, "");
    assert_eq!(left_behind(&scene)["state"], "good");
}

/// Values that another process set meanwhile, or of a previous boot's kernel, are left alone.
#[test]
fn values_set_by_other_processes_are_left_alone() {
    let scene = Scene::new();
    killed_both(&scene);
    scene.folder.write("knob", "theirs");
    let ended = scene.iotoll(NEXT).run();
    assert!(ended.stderr.contains("'theirs'") && ended.stderr.contains("left as it is"), "{ended:?}");
    assert_eq!(scene.folder.read("knob"), b"theirs");
    scene.forget_hints();

    scene.folder.write("knob", "found\n");
    fs::remove_file(scene.folder.path("entered")).unwrap();
    killed_both(&scene);
    let ledger = &scene.ledgers()[0];
    let text = fs::read_to_string(ledger).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(text.contains(boot.trim()));
    let of_another_boot = text.replace(boot.trim(), "another").replace("\"kernel\":false", "\"kernel\":true");
    fs::write(ledger, of_another_boot).unwrap();
    let ended = scene.iotoll(NEXT).run();
    assert!(!ended.stderr.contains("knob is"), "{ended:?}");
    assert!(scene.is_on());
    scene.forget_hints();
}

#[test]
fn without_a_ledger_it_measures_and_warns() {
    let words = "compare --quiet --no-save --format json --budget 1s --ioengine=null --size=1m";
    for (state, warns) in [(Some("/proc/nowhere"), true), (None, false)] {
        let scene = Scene { state: state.map_or_else(|| Scene::new().state, PathBuf::from), ..Scene::new() };
        let ended = scene.iotoll(words).word(scene.setting()).run().done();
        assert_eq!(super::iotoll::warns(&ended.json(), "no_ledger", &["ledger", "killed"]), warns, "{ended:?}");
        scene.assert_undone("a good end");
    }
}

/// The second one would take the first one's value for the original.
#[test]
fn a_second_iotoll_may_not_switch_the_same_file() {
    let scene = Scene::new();
    let first = scene.iotoll(COMPARE).word(scene.setting()).start();
    assert!(eventually(|| scene.is_on()));
    let second = format!("--candidate-set=file:{}=other", scene.folder.path("knob").display());
    scene.iotoll(COMPARE).word(second).run().refused(2, &["knob", "another iotoll", "wait"]);
    kill_process(Pid::from_raw(first.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    first.wait();
    scene.assert_undone("two iotolls");
}

/// Changes the ledger of an iotoll that was killed with its guardian. Returns what the next start says, and the ledger then.
fn after(change: impl FnOnce(&Path, String) -> String) -> (Scene, String, Option<String>) {
    let scene = Scene::new();
    killed_both(&scene);
    let [ledger] = scene.ledgers().try_into().unwrap();
    let text = change(&ledger, fs::read_to_string(&ledger).unwrap());
    fs::write(&ledger, text).unwrap();
    let ended = scene.iotoll(NEXT).run().done();
    (scene, ended.stderr, fs::read_to_string(&ledger).ok())
}

#[test]
fn an_entry_that_is_not_understood_stays_in_the_ledger() {
    let unknown = "{\"add\":[99,{\"unmount\":{\"path\":\"/mnt\"}}]}\n";
    let (scene, said, ledger) = after(|_, text| text.replace("may_be_on", "may_be_off") + unknown);
    assert!(said.contains("set back") && said.contains("2 of its entries are not understood"), "{said}");
    assert_eq!(scene.folder.read("knob"), b"found\n", "the entry that is understood is undone");
    let ledger = ledger.unwrap();
    assert!(ledger.contains("may_be_off") && ledger.ends_with(unknown) && !ledger.contains("restore"), "{ledger}");
    // It is still there, and still said, after another start.
    assert!(scene.iotoll(NEXT).run().stderr.contains("2 of its entries are not understood"));
    assert_eq!(fs::read_to_string(&scene.ledgers()[0]).unwrap(), ledger);
    assert!(left_behind(&scene)["found"].as_str().unwrap().contains("not understood"));
}

/// What becomes of the ledger at this path with this text.
type Change = fn(&Path, String) -> String;

/// The kernel takes a while to end a process with much memory, and closes its files last.
#[test]
fn a_start_while_the_killed_ones_are_still_ending_finds_what_they_left() {
    let scene = Scene::new();
    killed_both(&scene);
    let ledger = fs::File::open(&scene.ledgers()[0]).unwrap();
    rustix::fs::flock(&ledger, rustix::fs::FlockOperation::LockShared).unwrap();
    let next = scene.iotoll(NEXT).start();
    std::thread::sleep(std::time::Duration::from_millis(400));
    drop(ledger);
    let ended = next.wait().done();
    assert!(ended.stderr.contains("set back"), "{ended:?}");
    assert_eq!(scene.folder.read("knob"), b"found\n");
    scene.forget_hints();
}

/// At any moment: while the ledger is begun, while a value is written, while the arms alternate.
#[test]
fn a_kill_of_both_in_the_same_instant_leaves_nothing_that_the_next_start_does_not_find() {
    for number in 0..12_u64 {
        let scene = Scene::new();
        let running = scene.iotoll(COMPARE).word(scene.setting()).start();
        assert!(eventually(|| guardian(&running).is_some()));
        std::thread::sleep(std::time::Duration::from_millis(number * number * 5));
        let both = [guardian(&running), Pid::from_raw(running.id().cast_signed())];
        both.into_iter().flatten().for_each(kill);
        // At once: the kernel may not have ended them yet.
        let ended = scene.iotoll(NEXT).run().done();
        running.wait();
        assert_eq!(scene.folder.read("knob"), b"found\n", "kill number {number}: {ended:?}");
        scene.assert_undone("the next start");
    }
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn a_ledger_of_another_schema_or_that_others_can_write_to_is_left_alone() {
        let newer = |_: &Path, text: String| text.replacen("iotoll.ledger/1", "iotoll.ledger/2", 1);
        let open = |path: &Path, text: String| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
            text
        };
        let theirs = |path: &Path, text: String| {
            std::os::unix::fs::chown(path, Some(65534), None).unwrap();
            text
        };
        let mut cases: Vec<(&str, Change)> =
            vec![("its schema is 'iotoll.ledger/2'", newer), ("other users can write to it", open)];
        match rustix::process::geteuid().is_root() {
            true => cases.push(("belongs to user 65534, not 0", theirs)),
            false => skip("only root can make a ledger of another user"),
        }
        for (why, change) in cases {
            let (scene, said, ledger) = after(change);
            assert!(said.contains(why) && said.contains("left as it is") && said.lines().count() == 1, "{said}");
            assert!(ledger.is_some_and(|ledger| ledger.contains("restore")), "{why}: the ledger is lost");
            assert!(scene.is_on(), "{why}: it was acted on");
            let found = left_behind(&scene)["found"].as_str().unwrap().to_owned();
            assert!(found.contains(why), "{found}");
        }
    }
}
