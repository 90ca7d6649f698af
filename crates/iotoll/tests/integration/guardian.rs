//! iotoll is killed: settings are restored, its files and processes are removed (`endings` has every verb and moment), and leftovers of a
//! double kill are found later.

use super::iotoll::{Folder, eventually, items};
use super::machine::skip;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const COMPARE: &str =
    "compare --meters thread --quiet --no-save --ioengine=null --size=1m --rate_iops=1k --budget 60s --precision 0.01%";
const NEXT: &str =
    "run --background 200ms --no-save --quiet --format json --name=n --ioengine=null --size=1m --number_ios=10";

/// A folder with a file to switch.
struct Scene {
    folder: Folder,
    /// Measures, and switches it.
    compare: String,
}

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        folder.write("knob", "found\n");
        let compare = format!("{COMPARE} --candidate-set=file:{}=changed", folder.name("knob"));
        Self { folder, compare }
    }

    /// Whether the setting is on.
    fn is_on(&self) -> bool {
        self.folder.read("knob") == b"changed"
    }

    /// What the next iotoll says.
    fn next(&self) -> String {
        self.folder.iotoll(NEXT).run().done().stderr
    }

    /// Removes a ledger that contains only the hint at a command.
    fn forget_hints(&self) {
        let [ledger] = self.folder.ledgers().try_into().unwrap();
        let text = fs::read_to_string(&ledger).unwrap();
        assert!(text.lines().count() == 2 && text.contains("may_be_on"), "{text}");
        fs::remove_file(ledger).unwrap();
    }

    /// Everything is restored, and no process is left.
    #[track_caller]
    fn assert_undone(&self, how: &str) {
        assert!(eventually(|| self.folder.read("knob") == b"found\n"), "{how}: the knob was not put back");
        self.folder.assert_undone(how);
    }

    /// Kills an iotoll together with its guardian, in the middle of a toggle.
    fn killed_both(&self) {
        let around = "--candidate-setup='touch entered' --candidate-cleanup='touch left'";
        let running = self.folder.iotoll(&format!("{} {around}", self.compare)).start();
        let is_on = || !self.folder.ledgers().is_empty() && self.folder.exists("entered") && self.is_on();
        let running = running.when(|_| is_on());
        // While it is stopped, it cannot start another one.
        running.signal(Signal::STOP);
        kill_process(running.guardian().unwrap(), Signal::KILL).unwrap();
        running.ended_by(Signal::KILL);
        self.folder.assert_no_processes();
        // A kill during cleanup would be a different case.
        let _ = fs::remove_file(self.folder.path("left"));
        self.folder.write("knob", "changed");
        assert_eq!(self.folder.ledgers().len(), 1);
    }

    /// What the doctor says of leftovers.
    fn left_behind(&self) -> Value {
        let diagnosis = self.folder.iotoll("doctor --format json").run().done().json();
        items(&diagnosis["checks"]).find(|check| check["topic"] == "left_behind").unwrap().clone()
    }
}

/// The guardian is in its own session and is not called iotoll, so that killing a terminal's processes or all processes
/// called iotoll spares it.
#[test]
fn a_kill_of_the_whole_group_spares_the_guardian() {
    let scene = Scene::new();
    let running = scene.folder.iotoll(&scene.compare).under(&["setsid"]).start();
    let running = running.when(|running| running.guardian().is_some() && scene.is_on());
    let guardian = running.guardian().unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::PIPE] {
        kill_process(guardian, signal).unwrap();
    }
    let name = fs::read(format!("/proc/{}/cmdline", guardian.as_raw_nonzero())).unwrap();
    assert!(!String::from_utf8_lossy(&name).contains("iotoll"), "{name:?}");
    assert!(eventually(|| scene.is_on()));
    kill_process_group(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
    running.wait();
    scene.assert_undone("the group");
}

#[test]
fn cleanup_runs_even_after_a_kill_during_setup() {
    for setup in ["touch entered; sleep 300", "sleep 300 & echo $! > pid; touch entered"] {
        let scene = Scene::new();
        let cleanup = "--candidate-cleanup 'rm entered; kill $(cat pid); touch left'";
        let words = format!("{} --candidate-setup '{setup}' {cleanup}", scene.compare);
        let running = scene.folder.iotoll(&words).start();
        running.when(|_| scene.folder.exists("entered") && scene.is_on()).ended_by(Signal::KILL);
        assert!(eventually(|| scene.folder.exists("left")) && !scene.folder.exists("entered"), "{setup}");
        scene.assert_undone(setup);
    }
}

#[test]
fn a_guardian_that_dies_is_replaced() {
    let scene = Scene::new();
    let running = scene.folder.iotoll(&scene.compare).start();
    let running = running.when(|running| running.guardian().is_some() && scene.is_on());
    let first = running.guardian();
    kill_process(first.unwrap(), Signal::KILL).unwrap();
    let another = |now: Option<Pid>| now.is_some() && now != first;
    running.when(|running| another(running.guardian()) && scene.is_on()).ended_by(Signal::KILL);
    scene.assert_undone("the second guardian");
}

#[test]
fn leftovers_of_a_double_kill_are_named_and_restored_by_the_next_run() {
    let scene = Scene::new();
    scene.killed_both();
    let knob = scene.folder.name("knob");
    // A pipe without a writer must not block.
    let pipe = scene.folder.ledgers()[0].with_file_name("pipe.jsonl");
    scene.folder.command("mkfifo").word(pipe.display().to_string()).run().done();
    for _ in 0..2 {
        let check = scene.left_behind();
        assert_eq!(check["state"], "poor", "{check}");
        let found = check["found"].as_str().unwrap();
        assert!(found.contains(&knob) && found.contains("run `touch left`"), "{check}");
        assert!(check["mend"].as_str().unwrap().contains("iotoll demo"), "{check}");
        assert!(scene.is_on(), "the doctor changes nothing");
    }
    fs::remove_file(&pipe).unwrap();
    let said = scene.next();
    let lines: Vec<&str> = said.lines().collect();
    let [may_be_on, put_back] = lines.as_slice() else { panic!("{said}") };
    let parts = [&knob, "set back", "iotoll compare"];
    assert!(parts.iter().all(|part| put_back.contains(part)), "{put_back}");
    let place = scene.folder.name("left");
    let hint = format!("may still be on: run `touch left` in {}, then remove ", place.trim_end_matches("/left"));
    assert!(may_be_on.contains(&hint), "{may_be_on}");
    assert!(!scene.folder.exists("left"), "no command is run from a ledger");
    // A hint stays until the user has followed it; restored entries are removed.
    scene.folder.write("knob", "changed");
    assert_eq!(scene.next().trim_end(), *may_be_on);
    assert!(scene.is_on());
    scene.folder.write("knob", "found\n");
    assert_eq!(PathBuf::from(may_be_on.rsplit(' ').next().unwrap()), scene.folder.ledgers()[0]);
    scene.forget_hints();
    scene.assert_undone("the next");
    assert_eq!(scene.next(), "");
    assert_eq!(scene.left_behind()["state"], "good");
}

/// Values that another process set meanwhile, or of a previous boot's kernel, are left alone.
#[test]
fn values_set_by_other_processes_are_left_alone() {
    let scene = Scene::new();
    scene.killed_both();
    scene.folder.write("knob", "theirs");
    let said = scene.next();
    assert!(said.contains("'theirs'") && said.contains("left as it is"), "{said}");
    assert_eq!(scene.folder.read("knob"), b"theirs");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let another = |_: &Path, text: String| {
        assert!(text.contains(boot.trim()));
        text.replace(boot.trim(), "another").replace("\"kernel\":false", "\"kernel\":true")
    };
    let (scene, said, _) = after(another);
    assert!(!said.contains("knob is") && scene.is_on(), "{said}");
    scene.forget_hints();
}

#[test]
fn without_a_ledger_it_measures_and_warns() {
    for (state, warns) in [("/proc/nowhere", true), ("state", false)] {
        let scene = Scene::new();
        let words = scene.compare.replace("60s", "1s").replace("--quiet", "--quiet --format json");
        let iotoll = scene.folder.iotoll(&words).under(&["env", &format!("XDG_STATE_HOME={state}")]);
        let finding = iotoll.run().done().json();
        assert_eq!(super::iotoll::warns(&finding, "no_ledger", &["ledger", "killed"]), warns, "{finding}");
        scene.assert_undone("a good end");
    }
}

/// The second one would take the first one's value for the original.
#[test]
fn a_second_iotoll_may_not_switch_the_same_file() {
    let scene = Scene::new();
    let first = scene.folder.iotoll(&scene.compare).start().when(|_| scene.is_on());
    scene.folder.iotoll(&scene.compare).run().refused(2, &["knob", "another iotoll", "wait"]);
    first.ended_by(Signal::TERM);
    scene.assert_undone("two iotolls");
}

/// What becomes of the ledger at this path with this text.
type Change<'a> = &'a dyn Fn(&Path, String) -> String;

/// Changes the ledger of an iotoll that was killed with its guardian. Returns what the next start says, and the ledger then.
fn after(change: impl Fn(&Path, String) -> String) -> (Scene, String, Option<String>) {
    let scene = Scene::new();
    scene.killed_both();
    let [ledger] = scene.folder.ledgers().try_into().unwrap();
    let text = change(&ledger, fs::read_to_string(&ledger).unwrap());
    fs::write(&ledger, text).unwrap();
    let said = scene.next();
    (scene, said, fs::read_to_string(&ledger).ok())
}

/// The kernel takes a while to end a process with much memory, and closes its files last.
#[test]
fn a_start_while_the_killed_ones_are_still_ending_finds_what_they_left() {
    let scene = Scene::new();
    scene.killed_both();
    let ledger = fs::File::open(&scene.folder.ledgers()[0]).unwrap();
    rustix::fs::flock(&ledger, rustix::fs::FlockOperation::LockShared).unwrap();
    let next = scene.folder.iotoll(NEXT).start();
    std::thread::sleep(Duration::from_millis(400));
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
        let running = scene.folder.iotoll(&scene.compare).start().when(|running| running.guardian().is_some());
        std::thread::sleep(Duration::from_millis(number * number * 3));
        let both = [running.guardian(), Pid::from_raw(running.id().cast_signed())];
        both.into_iter().flatten().for_each(|id| kill_process(id, Signal::KILL).unwrap());
        // At once: the kernel may not have ended them yet.
        let said = scene.next();
        running.wait();
        assert_eq!(scene.folder.read("knob"), b"found\n", "kill number {number}: {said}");
        scene.assert_undone("the next start");
    }
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn a_ledger_of_another_schema_or_that_others_can_write_to_is_left_alone() {
        let newer: Change = &|_, text| text.replacen("iotoll.ledger/3", "iotoll.ledger/4", 1);
        let open: Change = &|path, text| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
            text
        };
        let theirs: Change = &|path, text| {
            std::os::unix::fs::chown(path, Some(65534), None).unwrap();
            text
        };
        let unknown: Change = &|_, text| text + "{\"add\":[99,{\"unmount\":{\"path\":\"/mnt\"}}]}\n";
        let mut cases = vec![
            ("its schema is 'iotoll.ledger/4'", newer),
            ("is not understood", unknown),
            ("other users can write to it", open),
        ];
        match rustix::process::geteuid().is_root() {
            true => cases.push(("belongs to user 65534, not 0", theirs)),
            false => skip("only root can make a ledger of another user"),
        }
        for (why, change) in cases {
            let (scene, said, ledger) = after(change);
            assert!(said.contains(why) && said.contains("left as it is") && said.lines().count() == 1, "{said}");
            assert!(ledger.is_some_and(|ledger| ledger.contains("restore")), "{why}: the ledger is lost");
            assert!(scene.is_on(), "{why}: it was acted on");
            let found = scene.left_behind()["found"].as_str().unwrap().to_owned();
            assert!(found.contains(why), "{found}");
        }
    }
}
