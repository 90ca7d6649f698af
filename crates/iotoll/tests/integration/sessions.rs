//! What every verb that measures on this machine shares: shell commands around, services, probes, and a record that a kill leaves.

use super::iotoll::{Folder, Iotoll, PROGRAM, at_once, eventually, number, whole};
use rustix::process::Signal;
use serde_json::Value;

/// A short measurement of each verb, and how often it prepares; `compare` once for each of its two arms in each round.
const SHORT: [(&str, &str, usize); 5] = [
    ("run --background 200ms", "jobs.fio", 2),
    ("cost --background 200ms --repeat 3", "-- true", 3),
    ("compare --budget 1s --slices off", "--aa -- true", 0),
    ("ftq --duration 300ms", "--cpu", 1),
    ("blast --duration 400ms --rounds 2", "", 2),
];

/// A long measurement of each verb, and the first lines of its record that are worth keeping.
const LONG: [(&str, &str, &str); 5] = [
    ("run --background 200ms", "--ioengine=null --size=1g --time_based --runtime=50", "windows"),
    ("cost --background 200ms", "--ios 5 -- sleep 8", "windows"),
    ("compare --budget 50s --precision 0.01%", "--ioengine=null --size=1g --aa", "round"),
    ("ftq --duration 50s", "--cpu", "chunk"),
    ("blast --duration 50s --rounds 200", "", "round"),
];

fn folder() -> Folder {
    let folder = Folder::new();
    let job = "ioengine=null\nsize=1m\n";
    folder.write("jobs.fio", format!("[a]\n{job}[b]\nstonewall\n{job}"));
    folder
}

#[test]
fn shell_commands_run_around_every_verb() {
    at_once(SHORT, |(verb, rest, prepares)| {
        let folder = folder();
        let iotoll = folder.iotoll(&format!("{verb} --no-save --quiet --format json"));
        let log = |iotoll: Iotoll, what: &str| iotoll.word(format!("--{what}=echo {what} >>log"));
        let ended = ["setup", "prepare", "cleanup"].into_iter().fold(iotoll, log).word_list(rest).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{verb}: {ended:?}");
        let log = String::from_utf8(folder.read("log")).unwrap();
        let log: Vec<&str> = log.lines().collect();
        let expected = match prepares {
            0 => 2 * whole(&ended.json()["rounds"]) as usize,
            prepares => prepares,
        };
        assert_eq!((log[0], log[log.len() - 1]), ("setup", "cleanup"), "{verb}: {log:?}");
        assert_eq!(log.iter().filter(|line| **line == "prepare").count(), expected, "{verb}: {log:?}");
        assert_eq!(log.len(), expected + 2, "{verb}: {log:?}");
        folder.assert_no_processes();
    });
}

/// By iotoll itself, or by the guardian.
#[test]
fn cleanup_runs_however_a_verb_ends() {
    let signals = [Signal::INT, Signal::KILL];
    at_once(LONG.into_iter().flat_map(|long| signals.map(|signal| (long, signal))), |((verb, rest, _), signal)| {
        let folder = folder();
        let words = format!("{verb} --no-save --quiet");
        let iotoll = folder.iotoll(&words).word("--setup=touch entered").word("--cleanup=rm entered; touch left");
        let running = iotoll.word_list(rest).start();
        assert!(eventually(|| folder.exists("entered")), "{words}");
        let ended = running.ended_by(signal);
        let expected = (signal == Signal::INT).then_some(130);
        // A command that is measured ends by the signal, and its status is that of `cost`.
        assert!(verb.starts_with("cost") || ended.code == expected, "{words}: {ended:?}");
        assert!(eventually(|| folder.exists("left")) && !folder.exists("entered"), "{words}: {signal:?}");
        // A command of `cost` outlives a killed iotoll.
        if !verb.starts_with("cost") {
            folder.assert_no_processes();
        }
    });
}

/// Cleanup may unmount what a file is on: a file that has to go is gone by then, and one that stays is there.
#[test]
fn files_are_settled_before_cleanup() {
    for (runtime, found) in [("300ms", "there"), ("50s", "gone")] {
        let folder = Folder::new();
        let words = format!(
            "run --background 200ms --no-save --quiet --name=j --filename=made --size=1m --time_based --runtime={runtime}"
        );
        let look = "--cleanup=if test -e made; then echo there; else echo gone; fi >found";
        let running = folder.iotoll(&words).word(look).start();
        if found == "gone" {
            assert!(eventually(|| running.has_threads("job j", 1)), "{words}");
            running.signal(Signal::INT);
        }
        running.wait();
        assert_eq!(String::from_utf8(folder.read("found")).unwrap().trim(), found, "{words}");
        assert_eq!(folder.exists("made"), found == "there");
    }
}

/// A setup or a prepare that fails ends the measurement, with the reason.
#[test]
fn a_shell_command_that_fails_is_named() {
    at_once(SHORT, |(verb, rest, _)| {
        for what in ["setup", "prepare"] {
            let folder = folder();
            let iotoll = folder.iotoll(&format!("{verb} --no-save --quiet")).word("--cleanup=touch cleaned");
            let ended = iotoll.word(format!("--{what}=echo no disk >&2; exit 3")).word_list(rest).run();
            ended.refused(1, &[what, "no disk"]);
            assert!(folder.exists("cleaned"), "{verb} --{what}");
        }
    });
}

#[test]
fn a_kill_leaves_every_verb_a_record_that_can_be_reported() {
    at_once(LONG, |(verb, rest, line)| {
        let folder = folder();
        let running = folder.iotoll(&format!("{verb} --quiet --out kept {rest}")).start();
        assert!(eventually(|| folder.lines(line).len() > 1), "{verb}");
        running.ended_by(Signal::KILL);
        let ended = folder.iotoll("report kept --format json").run();
        assert_eq!(ended.code, Some(0), "{verb}: {ended:?}");
        assert_ne!(ended.json()["outcome"], "completed", "{verb}");
    });
}

/// A gauge that the candidate's setup changes, and a counter of seconds, of jobs and of commands.
#[test]
fn a_comparison_reads_probes_in_each_arm() {
    let (jobs, commands) = ("--slice 200ms --ioengine=null --size=1m", "--slices off -- sleep 0.1");
    at_once([jobs, commands], |work| {
        let folder = folder();
        folder.write("level", "2\n");
        let iotoll = folder
            .iotoll("compare --budget 3s --out kept --quiet --format json --probe level=gauge:file:level:([0-9]+)");
        let iotoll = iotoll.word_list("--probe ticks=counter:file:/proc/uptime:^([0-9.]+)");
        let iotoll = iotoll.word("--candidate-setup=echo 8 >level").word("--candidate-cleanup=echo 2 >level");
        let finding = iotoll.word_list(work).run().done().json();
        let probes = finding["cells"][0]["probes"].as_array().unwrap_or_else(|| panic!("{finding}"));
        let of = |name: &str| probes.iter().find(|probe| probe["name"] == name).unwrap_or_else(|| panic!("{probes:?}"));
        let mean = &of("level")["mean"];
        assert_eq!(
            (number(&mean["baseline"]["value"]), number(&mean["candidate"]["value"])),
            (2.0, 8.0),
            "{work}: {mean}"
        );
        assert!((number(&mean["change"]["value"]) - 3.0).abs() < 1e-9, "{mean}");
        // A second has a second.
        let ticks = of("ticks");
        let rate = number(&ticks["per_second"]["candidate"]["value"]);
        assert!((0.5..2.0).contains(&rate), "{work}: {ticks}");
        assert_eq!(ticks["per_io"].is_null(), work == commands, "{work}: {ticks}");
        for format in ["table", "csv", "markdown", "html", "mail"] {
            let shown = folder.iotoll(&format!("report kept --full --format {format}")).run().done();
            assert!(shown.stdout.contains("ticks"), "{format}: {}", shown.stdout);
        }
    });
}

fn service(finding: &Value) -> &Value {
    assert_eq!(finding["services"].as_array().map(Vec::len), Some(1), "{finding}");
    &finding["services"][0]
}

#[test]
fn a_recording_and_a_blast_have_services() {
    let folder = Folder::new();
    let serve = "--service=s=iotoll serve --backend memory:16m --listen 127.0.0.1:{port}";
    let ftq = || folder.iotoll("ftq --no-save --quiet --format json --duration 500ms").word(serve);
    let nbd = ftq().word_list("--target {s.uri} --rw=read").run().done();
    assert!(nbd.json()["worker"].as_str().unwrap().contains(service(&nbd.json())["uri"].as_str().unwrap()), "{nbd:?}");
    assert!(number(&nbd.json()["amount"]) > 0.0, "{nbd:?}");
    // A command that talks to the server.
    let job = "run --background 200ms --no-save --quiet --name=c --ioengine=nbd --uri={s.uri} --rw=read --time_based --runtime=50";
    let command = ftq().word_list("--count page_faults --").word(PROGRAM).word_list(job).run().done();
    let uri = service(&command.json())["uri"].as_str().unwrap().to_owned();
    assert!(command.json()["worker"].as_str().unwrap().contains(&uri), "{command:?}");
    let blast = folder.iotoll("blast --no-save --quiet --format json --duration 400ms --rounds 2");
    let blast =
        blast.word("--service=rx=iotoll blast --serve 127.0.0.1:{port}").word("127.0.0.1:{rx.port}").run().done();
    let finding = blast.json();
    let port = &service(&finding)["port"];
    assert_eq!(finding["receiver"]["address"].as_str(), Some(format!("127.0.0.1:{port}").as_str()), "{finding}");
    assert!(number(&finding["points"][0]["delivered_per_second"]) > 0.0, "{finding}");
    folder.assert_no_processes();
    for words in ["ftq --target {t.uri} --rw=read", "blast 127.0.0.1:{t.port}"] {
        folder.iotoll(words).word(serve).run().refused(2, &["no service is called 't'", "there is s"]);
    }
}

/// A service that exits ends the measurement, which says so.
#[test]
fn a_service_that_exits_ends_a_recording_and_a_blast() {
    let dies = "--service=s=sh -c 'timeout 2 \"$0\" serve --backend memory:1m --listen 127.0.0.1:{port}; exit 9' ";
    at_once(["ftq --duration 50s --cpu", "blast --duration 50s --rounds 200"], |words| {
        let folder = Folder::new();
        let iotoll = folder.iotoll(words).word_list("--no-save --quiet --format json");
        let ended = iotoll.word(dies.to_owned() + PROGRAM).run();
        assert_eq!(ended.code, Some(1), "{words}: {ended:?}");
        assert!(ended.json()["outcome"].to_string().contains("service 's' ended by itself"), "{words}: {ended:?}");
        folder.assert_no_processes();
    });
}
