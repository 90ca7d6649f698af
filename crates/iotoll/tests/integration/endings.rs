//! However a measurement ends, by Ctrl-C, a closed terminal, a crash or a kill, at any moment: its results are saved as far as they go, cleanup
//! runs, settings are restored, files that iotoll made are removed, and no process is left. The product cannot crash on demand; SIGABRT stands for that.

use super::iotoll::{Folder, Running, at_once, eventually, items, number, warns, whole};
use super::machine::needs;
use super::servers::Server;
use rustix::process::Signal;
use std::fs;
use std::time::Duration;

/// When a signal is sent.
type Moment = fn(&Folder, &Running) -> bool;

const INT: Signal = Signal::INT;
const TERM: Signal = Signal::TERM;
const KILL: Signal = Signal::KILL;

/// A measurement, the moment, the signals, and whether it has a record then.
type Ending = (&'static str, Moment, &'static [Signal], bool);

fn laid_out(folder: &Folder, _: &Running) -> bool {
    ["new", "mine"].iter().any(|name| fs::metadata(folder.path(name)).is_ok_and(|file| file.len() > 2 << 20))
}

/// A job has worked for a while.
fn works(_: &Folder, running: &Running) -> bool {
    let works = running.has_threads("job j", 1);
    std::thread::sleep(Duration::from_millis(if works { 300 } else { 0 }));
    works
}

/// The setting of an arm is on, after the first round.
fn switched(folder: &Folder, running: &Running) -> bool {
    rounds(folder, running) && folder.read("knob") == b"changed"
}

fn rounds(folder: &Folder, _: &Running) -> bool {
    !folder.lines("round").is_empty()
}

fn recorded(folder: &Folder, _: &Running) -> bool {
    folder.lines("chunk").len() > 1
}

fn windows(folder: &Folder, _: &Running) -> bool {
    folder.lines("windows").len() > 1
}

fn commanded(_: &Folder, running: &Running) -> bool {
    running.children().iter().any(|(_, name)| name == "sleep")
}

fn ready(folder: &Folder, _: &Running) -> bool {
    folder.exists("ready")
}

/// The services, and the comparison too.
fn served(folder: &Folder, running: &Running) -> bool {
    ready(folder, running) && rounds(folder, running)
}

/// The clock readers run, the job does not.
fn clocks_are_read(_: &Folder, running: &Running) -> bool {
    fs::read_dir(format!("/proc/{}/task", running.id())).is_ok_and(|tasks| tasks.count() > 1)
}

const RUN: &str = "run --name=j --rw=randread --background 200ms";
const LONG: &str = "--size=1m --runtime=50 --time_based";
const NULL: &str =
    "compare --meters thread --ioengine=null --size=1m --rate_iops=1k --slice 20ms --budget 60s --precision 0.01%";
const SET: &str = "--candidate-set file:$PWD/knob=changed";
const ARMS: &str = "compare --meters thread --budget 60s";

/// In each word, `$RUN`, `$LONG`, `$NULL`, `$SET` and `$ARMS` stand for the words above.
const ENDINGS: [Ending; 23] = [
    ("$RUN --filename=new --size=8g --fallocate=none", laid_out, &[INT, KILL], false),
    ("$RUN --filename=mine --size=8g --fallocate=none", laid_out, &[TERM, KILL], false),
    ("run --name=j --rw=randread --background 30s --filename=mine", clocks_are_read, &[INT], false),
    ("$RUN --filename=made $LONG --ioengine=psync", works, &[INT], true),
    ("$RUN --filename=mine $LONG --ioengine=libaio --iodepth=8", works, &[TERM], true),
    ("$RUN --filename=made $LONG --ioengine=io_uring --iodepth=8", works, &[INT], true),
    ("$RUN --filename=mine $LONG", windows, &[KILL], true),
    ("$RUN --filename=made --size=3m --runtime=50 --time_based", windows, &[KILL], true),
    ("$RUN --filename=mine $LONG --startdelay=50", |_, running| running.has_threads("job j", 1), &[INT], true),
    ("$RUN --filename=mine $LONG --thinktime=50s", |_, running| running.has_threads("job j", 1), &[INT], true),
    ("$RUN --filename=mine $LONG --rate_iops=1", |_, running| running.has_threads("job j", 1), &[INT], true),
    ("cost --background 200ms --ios 5 -- sleep 8", commanded, &[TERM], true),
    ("cost --background 200ms --ios 5 -- sleep 8", windows, &[KILL], true),
    ("$NULL $SET", switched, &[INT, TERM, Signal::QUIT, Signal::HUP, Signal::ABORT, KILL], true),
    ("$ARMS --precision 0.01% $SET -- dd if=/dev/zero of=/dev/null bs=64k", switched, &[TERM, KILL], true),
    ("$ARMS --baseline-cmd 'sleep 300' --candidate-cmd 'sleep 301'", commanded, &[INT], false),
    // Some have left the process group, some have no parent either, one has another environment.
    ("$ARMS --baseline-cmd 'sh command' --candidate-cmd 'sh ./command'", ready, &[KILL], false),
    ("$ARMS --baseline-cmd 'env -i sleep 303' --candidate-cmd 'env -i sleep 304'", commanded, &[KILL], false),
    ("compare services.toml --meters thread", served, &[INT, Signal::ABORT, KILL], true),
    ("ftq --cpu --duration 50s", recorded, &[INT, KILL], true),
    ("ftq --target mine --rw=read --duration 50s", recorded, &[TERM], true),
    ("ftq -- cat /dev/zero", recorded, &[INT, KILL], true),
    ("blast --duration 50s --rounds 200", rounds, &[TERM, KILL], true),
];

/// A folder with what the measurements need. A service of the experiment ignores SIGTERM, and has a child in a session of its own.
fn scene() -> Folder {
    let folder = Folder::with_file("mine", 1 << 20);
    folder.write("knob", "found\n");
    folder.write("command", "setsid sleep 300 &\n(setsid sleep 301 &)\nenv -i sleep 302 &\ntouch ready\nwait\n");
    folder.write("stubborn", "trap '' TERM\nsetsid sleep 1000 &\ntouch ready\necho up\nwhile :; do sleep 1; done\n");
    folder.write(
        "services.toml",
        "job = '''\n[a]\nioengine=nbd\nuri={s.uri}\nrw=randread\n'''\nbudget = '60s'\nprecision = '0.01%'\n\
         [[service]]\nname = 's'\ncommand = 'iotoll serve --backend memory:16m --listen 127.0.0.1:{port}'\n\
         [[service]]\nname = 'stubborn'\nready = 'up'\ncommand = 'sh stubborn {port}'\n\
         [[arm]]\nname = 'a'\n[[arm]]\nname = 'b'\noptions = ['bs=8k']\n",
    );
    folder
}

#[test]
fn whenever_a_measurement_is_ended_its_results_are_kept_and_nothing_else_is_left() {
    let all = ENDINGS.into_iter().flat_map(|(words, moment, signals, record)| {
        signals.iter().map(move |signal| (words, moment, *signal, record))
    });
    at_once(all, |(words, moment, signal, record)| {
        let (folder, how) = (scene(), format!("{words}: {signal:?}"));
        let before = folder.listing();
        let place = folder.name("");
        let meanings =
            [("$RUN", RUN), ("$LONG", LONG), ("$NULL", NULL), ("$ARMS", ARMS), ("$SET", SET), ("$PWD", &place)];
        let words = meanings.iter().fold(words.to_owned(), |words, (word, meaning)| words.replace(word, meaning));
        let (verb, rest) = words.split_once(' ').unwrap();
        let around = "--setup 'touch entered' --cleanup 'rm entered; touch left'";
        let temporary = format!("TMPDIR={}", folder.name(".."));
        let running = folder.iotoll(&format!("{verb} --quiet --format json --out kept {around} {rest}"));
        let ended =
            running.under(&["env", &temporary]).start().when(|running| moment(&folder, running)).ended_by(signal);
        let is_killed = [KILL, Signal::ABORT].contains(&signal);
        assert_eq!(ended.code, (!is_killed).then_some(130), "{how}: {ended:?}");
        assert!(eventually(|| folder.exists("left")) && !folder.exists("entered"), "{how}: {ended:?}");
        // A command of `cost` outlives a killed iotoll.
        if !(verb == "cost" && is_killed) {
            folder.assert_undone(&how);
        }
        assert!(eventually(|| folder.read("knob") == b"found\n"), "{how}: the knob was not put back");
        let mut left = folder.listing();
        left.retain(|name, _| !name.starts_with("kept") && !["left", "ready"].contains(&name.as_str()));
        assert_eq!(left, before, "{how}");
        if !record {
            let told = ended.stderr.starts_with("iotoll: ") && ended.stderr.contains("interrupted");
            assert!(is_killed || told, "{how}: {ended:?}");
            return assert!(is_killed || ended.stdout.is_empty() && !folder.exists("kept"), "{how}: {ended:?}");
        }
        let found = folder.iotoll("report kept --format json").run().done();
        let finding = found.json();
        assert_ne!(finding["outcome"], "completed", "{how}");
        if !is_killed {
            assert_eq!(found.stdout, ended.stdout, "{how}");
            assert_eq!(finding["outcome"], "interrupted", "{how}");
        }
        match verb {
            "run" if words.contains("ioengine") => {
                assert!(warns(&finding, "interrupted", &["before the interruption"]), "{how}: {finding}");
                assert!(whole(&finding["jobs"][0]["ios"]) > 100, "{how}: {finding}");
            }
            "cost" if !is_killed => assert_eq!(finding["phases"][0]["exits"][0]["signal"], 2, "{how}: {finding}"),
            "run" | "cost" if is_killed => {
                assert!(warns(&finding, "interrupted", &["killed while the workload ran"]), "{how}: {finding}");
                let phase = &finding["phases"][0];
                assert!(number(&phase["wall_seconds"]) > 0.5, "{how}: {phase}");
                // What `--ios` says is known of whole executions only.
                assert_eq!(phase["iops"].as_f64().is_some_and(|iops| iops > 0.0), verb == "run", "{how}: {phase}");
            }
            "compare" | "blast" => assert!(whole(&finding["rounds"]) > 0, "{how}: {finding}"),
            "ftq" => assert!(whole(&finding["readings"]) > 100, "{how}: {finding}"),
            _ => {}
        }
        for format in ["table", "mail"] {
            folder.iotoll(&format!("report kept --format {format}")).run().done();
        }
    });
}

#[test]
fn while_the_background_is_measured_again() {
    let folder = scene();
    // The job ends at once; the background after it takes longer.
    let words = "run --name=j --rw=randread --format json --out kept --background 2s --filename=made --size=1m --number_ios=200";
    let running = folder.iotoll(words).start().when(|running| running.has_threads("job j", 1));
    let ended = running.when(|running| !running.has_threads("job j", 1)).ended_by(INT);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!((&ended.json()["outcome"], whole(&ended.json()["jobs"][0]["ios"])), (&"interrupted".into(), 200));
    assert_eq!(folder.reported("kept"), ended.json());
    assert!(!folder.exists("made"));
    folder.assert_undone("the second background");
}

#[test]
fn while_the_demo_runs() {
    for signal in [INT, KILL] {
        let folder = Folder::new();
        let running = folder.iotoll("demo --quiet --format json").start();
        let ended = running.when(|running| running.has_threads("job cached read", 1)).ended_by(signal);
        assert!(signal == KILL || ended.json()["outcome"] == "interrupted", "{ended:?}");
        folder.assert_undone("the demo");
        assert!(folder.listing().is_empty(), "{:?}", folder.listing());
    }
}

/// Sends two signals, some time apart: simultaneous signals count as one.
#[test]
fn a_second_signal_ends_what_ignores_the_first() {
    needs!("nbdkit");
    at_once([INT, TERM], |signal| {
        let folder = Folder::new();
        let script = "'trap \"\" INT TERM; touch ready; sleep 50'";
        let cost = format!("cost --background 200ms --format json --quiet --out kept --ios 5 -- sh -c {script}");
        let running = folder.iotoll(&cost).start().when(|_| folder.exists("ready"));
        running.signal(signal);
        std::thread::sleep(Duration::from_millis(600));
        let ended = running.ended_by(signal);
        let exit = ended.json()["phases"][0]["exits"][0].clone();
        assert_eq!((ended.code, whole(&exit["signal"])), (Some(128 + 9), 9), "{ended:?}");
        assert!(folder.exists("kept/record.jsonl"), "the results are saved");
        folder.assert_undone("a command");
    });
    let silent = Server::foreign("nbdkit -f -U s --filter=delay memory 8m rdelay=3600");
    let folder = Folder::with_file("mine", 1 << 20);
    let files = "[a]\nfilename=made\nsize=1m\n[b]\nfilename=mine\nsize=2m\n[c]\nioengine=nbd\n";
    let job = format!("[global]\nruntime=600\ntime_based\nrw=randread\n{files}uri={}\n", silent.uri);
    folder.write("j.fio", job);
    let before = folder.listing();
    let running = folder.iotoll("run --background 200ms --out kept j.fio").start();
    let running =
        running.when(|running| running.has_threads("job c", 1) && folder.exists("kept") && folder.exists("made"));
    running.signal(INT);
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(running.ended_by(INT).code, Some(130));
    assert_eq!(folder.listing(), before, "its files are removed");
    folder.assert_undone("a run");
}

/// Cleanup may unmount what a file is on: a file that has to go is gone by then, and one that stays is there.
#[test]
fn files_are_settled_before_cleanup() {
    for (runtime, found) in [("300ms", "there"), ("50s", "gone")] {
        let folder = Folder::new();
        let look = "--cleanup 'if test -e made; then echo there; else echo gone; fi >found'";
        let words =
            format!("{RUN} --no-save --quiet {look} --filename=made --size=1m --time_based --runtime={runtime}");
        let running = folder.iotoll(&words).start();
        match found {
            "gone" => drop(running.when(|running| running.has_threads("job j", 1)).ended_by(INT)),
            _ => drop(running.wait()),
        }
        assert_eq!((folder.text("found").trim(), folder.exists("made")), (found, found == "there"), "{words}");
    }
}

/// A kill keeps the phases, and the executions of a command, that were complete, and what was counted live.
#[test]
fn a_kill_keeps_what_was_measured() {
    let killed = |folder: &Folder, words: &str, moment: &dyn Fn(&Running) -> bool| {
        let (verb, rest) = words.split_once(' ').unwrap();
        let running = folder.iotoll(&format!("{verb} --background 200ms --quiet --out kept {rest}")).start();
        running.when(moment).ended_by(KILL);
        let finding = folder.reported("kept");
        assert_eq!(finding["outcome"], "interrupted");
        finding
    };
    let folder = Folder::new();
    let job = "ioengine=null\nsize=1g\ntime_based\n";
    folder.write("jobs.fio", format!("[a]\n{job}runtime=300ms\n[b]\nstonewall\n{job}runtime=60\n"));
    let finding = killed(&folder, "run jobs.fio", &|running| running.has_threads("job b", 1));
    assert!(warns(&finding, "interrupted", &[]));
    let phases: Vec<f64> = items(&finding["phases"]).map(|phase| number(&phase["iops"])).collect();
    assert!(phases.len() == 1 && phases[0] > 0.0, "{finding}");
    assert!(number(&finding["host"]["tsc_hertz"]) > 1e6 && finding["background"].is_object(), "{finding}");
    let sheet = folder.iotoll("report kept").run().done();
    assert!(sheet.stdout.contains("Interrupted: the figures cover only the time before"), "{sheet:?}");
    let folder = Folder::new();
    folder.write("third.sh", "echo >> log; test $(wc -l < log) -lt 3 || { touch ready; exec sleep 2; }\n");
    let words = "cost --no-output --repeat 9 --ios 10 -- sh third.sh";
    let finding = killed(&folder, words, &|_| folder.exists("ready"));
    assert_eq!(items(&finding["phases"][0]["exits"]).count(), 2, "{finding}");
    folder.assert_no_processes();
    // A packet each 10 ms, for some seconds: the command outlives iotoll.
    let send = "import socket, time\nout = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                for _ in range(400):\n out.sendto(b'x', ('127.0.0.1', 9))\n time.sleep(0.01)\n";
    needs!("python3");
    let folder = Folder::new();
    folder.write("send.py", send);
    let finding = killed(&folder, "cost --count net:lo -- python3 send.py", &|running| windows(&folder, running));
    assert!(number(&finding["phases"][0]["iops"]) > 0.0, "{finding}");
    folder.assert_no_processes();
}

#[test]
fn a_kill_before_anything_was_measured_is_said() {
    let folder = Folder::new();
    let words = "cost --background 200ms --quiet --out kept --ios 10 -- sh -c 'touch ready; exec sleep 1'";
    folder.iotoll(words).start().when(|_| folder.exists("ready")).ended_by(KILL);
    let said = &["kept/record.jsonl", "killed before the first window had ended"];
    folder.iotoll("report kept --format json").run().refused(2, said);
    folder.assert_no_processes();
}

/// What was logged until Ctrl-C is in the file.
#[test]
fn an_interrupted_run_writes_its_logs() {
    let folder = Folder::new();
    let job = "--rw=read --size=1m --rate_iops=1000 --runtime=20s --time_based --write_iops_log=i --log_avg_msec=100";
    let running = folder.iotoll(&format!("{RUN} --quiet --no-save {job}")).start();
    running.when(|running| works(&folder, running)).ended_by(INT);
    let rows = folder.text("i_iops.1.log");
    let second: u64 = rows.lines().nth(1).and_then(|row| row.split(", ").nth(1)).unwrap().parse().unwrap();
    assert!(second > 500, "{rows}");
}

/// The signal that ends it is one that its parent ignored or blocked.
#[test]
fn ctrl_c_ends_a_measurement_that_inherited_odd_signals() {
    at_once(["--ignore-signal=INT,TERM,CHLD", "--block-signal"], |how| {
        let folder = Folder::temporary();
        let cost = "cost --background 200ms --no-save --quiet --format json --ios 5 -- sleep 50";
        let running = folder.iotoll(cost).under(&["env", how]).start();
        let ended = running.when(|running| commanded(&folder, running)).ended_by(INT);
        // The command had the signal's default action too.
        let exit = ended.json()["phases"][0]["exits"][0].clone();
        assert_eq!((ended.code, whole(&exit["signal"])), (Some(130), 2), "{how}: {ended:?}");
        let serve = folder.iotoll("serve --backend memory:1m --unix s").under(&["env", how]).start();
        assert_eq!(serve.when(|_| folder.exists("s")).ended_by(INT).code, Some(0), "{how}");
        folder.assert_no_processes();
    });
}
