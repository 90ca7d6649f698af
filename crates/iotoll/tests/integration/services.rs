//! Servers that iotoll starts: none of them is left behind, however the measurement ends.

use super::guardian;
use super::iotoll::{Ended, Folder, Iotoll, at_once, eventually, whole};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const SERVE: &str = "iotoll serve --backend memory:16m --listen 127.0.0.1:{port}";

/// A folder to run in, with a subfolder for temporary files and one for ledgers.
struct Scene(Folder);

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.path("tmp")).unwrap();
        fs::create_dir(folder.path("state")).unwrap();
        Self(folder)
    }

    fn iotoll(&self, words: &str) -> Iotoll {
        let [tmp, state] = ["TMPDIR=tmp", "XDG_STATE_HOME=state"]
            .map(|variable| variable.replace('=', &format!("={}/", self.0.path("").display())));
        self.0.iotoll(words).under(&["env", &tmp, &state])
    }

    fn experiment(&self, text: &str, words: &str) -> Ended {
        self.0.write("x.toml", text);
        self.iotoll(&format!("compare x.toml --no-save --quiet --format json {words}")).run()
    }

    /// The folders of services, and ledgers. They may disappear while they are listed.
    fn temporary(&self) -> Vec<String> {
        let entries = ["tmp", "state"].map(|name| fs::read_dir(self.0.path(name)).unwrap().flatten());
        entries.into_iter().flatten().map(|entry| entry.path().display().to_string()).collect()
    }

    #[track_caller]
    fn assert_nothing_left(&self, how: &str) {
        self.0.assert_no_processes();
        assert!(eventually(|| self.temporary().is_empty()), "{how}: {:?}", self.temporary());
    }
}

fn experiment(services: &str, arms: &str) -> String {
    format!("job = '''\n[a]\nioengine=nbd\nrw=randread\nbs=4k\n'''\n{services}\n{arms}")
}

fn services(finding: &Value) -> Vec<&str> {
    finding["services"].as_array().unwrap().iter().map(|service| service["name"].as_str().unwrap()).collect()
}

#[test]
fn an_experiment_starts_fills_and_ends_its_servers() {
    let scene = Scene::new();
    let fill =
        "iotoll run --name=fill --ioengine=nbd --uri={uri} --rw=write --bs=1m --background=200ms --no-save --quiet";
    let text = experiment(
        &format!(
            "cleanup = 'cp {{tcp.dir}}/note note'\n[[service]]\nname = 'tcp'\ncommand = '{SERVE}'\narm = 'tcp'\n\
             fill = '{fill} && echo filled > {{dir}}/note'\n\
             [[service]]\nname = 'unix'\ncommand = 'iotoll serve --backend file:{{tcp.dir}}/note --read-only --unix {{socket}}'\n\
             ready = 'serves'\n"
        ),
        "[[arm]]\nname = 'tcp'\noptions = ['uri={tcp.uri}']\n[[arm]]\nname = 'again'\noptions = ['uri={other.uri}']\n\
         [[service]]\nname = 'other'\ncommand = ['iotoll', 'serve', '--backend', 'memory:16m', '--unix', '{socket}']\n",
    );
    // The setup runs before the services start, so it can make the file that a service serves.
    let text = text.replace("cleanup =", "setup = 'head -c 1M /dev/zero > {tcp.dir}/note'\ncleanup =");
    let text = text.replace("ready = 'serves'\n", "");
    let finding = scene.experiment(&text, "--budget 1s").done().json();
    assert_eq!(services(&finding), ["tcp", "unix", "other"]);
    assert_eq!(finding["services"][0]["uri"].as_str().unwrap().split(':').next(), Some("nbd"));
    assert_eq!(finding["arms"][0]["what"], "uri={tcp.uri}");
    assert!(finding["cells"][0]["metrics"]["iops"]["baseline"].as_f64().unwrap() > 0.0, "{finding}");
    assert_eq!(scene.0.read("note"), b"filled\n", "it was filled, and its folder is there until the cleanup");
    scene.assert_nothing_left("a good end");
}

#[test]
fn a_run_and_a_command_have_services_too() {
    let scene = Scene::new();
    let words = "--background 200ms --no-save --quiet --format json --service";
    let job = "--name=a --ioengine=nbd --uri={server.uri} --rw=randread --bs=4k --time_based --runtime=1";
    let finding =
        scene.iotoll(&format!("run {words}")).word(format!("server={SERVE}")).word_list(job).run().done().json();
    assert!(whole(&finding["jobs"][0]["ios"]) > 0);
    assert_eq!(services(&finding), ["server"]);
    let peers = finding["phases"][0]["placement"]["peers"].as_array().unwrap();
    let server = peers.iter().find(|peer| peer["name"].as_str().is_some_and(|name| name == "'server' (iotoll serve)"));
    assert_eq!(server.map(|server| server["server"].as_bool()), Some(Some(true)), "{peers:?}");
    scene.assert_nothing_left("a run");
    let script = "test -d {server.dir} && echo {server.port} > port";
    let command = scene.iotoll(&format!("cost {words}")).word(format!("server={SERVE}"));
    let ended = command.word_list("--ios=1 -- sh -c").word(script).run().done();
    assert_eq!(services(&ended.json()), ["server"]);
    let port = String::from_utf8(scene.0.read("port")).unwrap();
    assert_eq!(ended.json()["services"][0]["port"].to_string(), port.trim());
    scene.assert_nothing_left("a command");
}

#[test]
fn a_server_that_cannot_be_had_is_named_with_its_last_words() {
    let null = "--name=a --ioengine=null --size=1m";
    let cases = [
        (
            "s=sh -c 'echo no disk >&2; exit 7; {port}'",
            1,
            &["service 's' ended by itself (exit status 7)", "'no disk'"][..],
        ),
        ("s=/no/such/server {port}", 2, &["service 's': /no/such/server: cannot be started"]),
        ("s=iotoll serve --backend memory:1m --unix {prot}", 2, &["--service", "unknown {prot}", "{socket}"]),
        ("s=iotoll serve --backend memory:1m", 2, &["nothing says when it is ready", "{port}"]),
        ("=iotoll", 2, &["--service", "no name of a service"]),
    ];
    at_once(cases, |(service, code, named)| {
        let scene = Scene::new();
        let run = scene.iotoll("run --no-save --quiet --service").word(service).word_list(null);
        run.run().refused(code, named);
        scene.assert_nothing_left(service);
    });
    let deep = format!("{}/tmp", "d".repeat(100));
    for (folder, service, named) in [
        ("missing", SERVE, &["missing/iotoll-services-", "set TMPDIR to a folder that exists"][..]),
        (&deep, "iotoll serve --backend memory:1m --unix {socket}", &["service 's': {socket} would be", "set TMPDIR"]),
    ] {
        let scene = Scene::new();
        let run = scene.0.iotoll("run --no-save --quiet --service").word(format!("s={service}")).word_list(null);
        let folder = format!("TMPDIR={}", scene.0.path(folder).display());
        run.under(&["env", &folder]).run().refused(2, named);
    }
    let scene = Scene::new();
    let slow = "[[service]]\nname = 'slow'\ncommand = \"sh -c 'echo not yet; sleep 1000; : {port}'\"\ntimeout = '1s'\n";
    let arms =
        "[[arm]]\nname = 'a'\noptions = ['uri={slow.uri}']\n[[arm]]\nname = 'b'\noptions = ['uri={slow.uri}', 'bs=8k']";
    let ended = scene.experiment(&experiment(slow, arms), "--budget 1s");
    ended.refused(1, &["service 'slow' is not ready after 1 s: nothing listens on port", "'not yet'"]);
    scene.assert_nothing_left("a slow one");
    let unknown = experiment(
        "",
        "[[arm]]\nname = 'a'\noptions = ['uri=nbd://localhost']\n[[arm]]\nname = 'b'\noptions = ['uri={server.uri}']",
    );
    scene.experiment(&unknown, "").refused(2, &["x.toml: {server.uri}: no service is called 'server'"]);
}

#[test]
fn what_is_only_read_starts_nothing() {
    let scene = Scene::new();
    let service = "[[service]]\nname = 's'\ncommand = 'touch started {port}'\n";
    let arms =
        "[[arm]]\nname = 'a'\noptions = ['uri={s.uri}']\n[[arm]]\nname = 'b'\noptions = ['uri={s.uri}', 'bs=8k']";
    let ended = scene.experiment(&experiment(service, arms), "--parse-only").done();
    let port = ended.json()["services"][0]["port"].clone();
    let uri = &ended.json()["cases"][0]["work"]["jobs"]["phases"][0]["jobs"][0]["uri"];
    assert_eq!(uri.as_str(), Some(format!("nbd://127.0.0.1:{port}").as_str()));
    let run = scene.iotoll("run --parse-only --service").word("s=touch started {port}");
    run.word_list("--name=a --ioengine=nbd --uri={s.uri}").run().done();
    assert!(!scene.0.exists("started"));
    scene.assert_nothing_left("--parse-only");
}

/// The jobs do not use the server, so that only the watcher can notice its exit.
#[test]
fn a_server_that_dies_ends_the_measurement() {
    let service = "s=sh -c 'echo up; while test ! -e die; do sleep 0.05; done; echo out of memory; exit 9; : {port}'";
    let file = format!(
        "{}[[service]]\nname = 's'\nready = 'up'\ncommand = \"{}\"\n[[arm]]\nname = 'a'\n[[arm]]\nname = 'b'\noptions = ['inject_ns=10']",
        "job = '''\n[a]\nioengine=null\nsize=1m\n'''\nbudget = '60s'\n",
        service.trim_start_matches("s=")
    );
    let scene = Scene::new();
    scene.0.write("x.toml", file);
    let mut running = scene.iotoll("compare x.toml --no-save --quiet").start();
    // By then the first round is complete.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert!(!running.ended());
    scene.0.write("die", "");
    let ended = running.wait();
    let why = "service 's' ended by itself (exit status 9); its output ends: 'up' 'out of memory'";
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
    scene.assert_nothing_left("a death");
    // An NBD server that is killed while a job uses it.
    let scene = Scene::new();
    let job = "--name=a --ioengine=nbd --uri={server.uri} --rw=randread --bs=4k --time_based --runtime=50";
    let run = scene.iotoll("run --background 200ms --no-save --quiet --format json --service");
    let running = run.word(
        format!("server=sh -c 'echo $$ > pid; exec \"$0\" {}' ", &SERVE["iotoll ".len()..]) + super::iotoll::PROGRAM,
    );
    let running = running.word_list(job).start();
    assert!(eventually(|| running.has_threads("job a", 1)));
    std::thread::sleep(std::time::Duration::from_millis(500));
    let server: i32 = String::from_utf8(scene.0.read("pid")).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(server).unwrap(), Signal::KILL).unwrap();
    let ended = running.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let outcome = ended.json()["outcome"].to_string();
    assert!(outcome.contains("service 'server' ended by itself (signal 9)"), "{outcome}");
    scene.assert_nothing_left("a killed server");
    // A command that iotoll interrupts for it was not interrupted by a user; and the service may print as much as it likes.
    let scene = Scene::new();
    let run = scene.iotoll("cost --background 200ms --no-save --quiet --service");
    let run = run.word("s=sh -c 'yes talk | head -c 50000000; echo up; sleep 2; exit 9; : {port}'");
    let ended = run.word_list("-- sleep 50").start().wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    scene.assert_nothing_left("a death under a command");
}

#[test]
fn no_server_is_left_however_iotoll_ends() {
    // A service that ignores SIGTERM, with a child in a session of its own.
    let stubborn =
        "sh -c 'trap \"\" TERM; setsid sleep 1000 & touch stubborn; echo ready; while :; do sleep 1; done; : {port}'";
    let file = format!(
        "job = '''\n[a]\nioengine=nbd\nuri={{s.uri}}\nrw=randread\n'''\nbudget = '60s'\nprecision = '0.01%'\n\
         [[service]]\nname = 's'\ncommand = '{SERVE}'\n\
         [[service]]\nname = 'stubborn'\nready = 'ready'\ncommand = \"{}\"\n\
         [[arm]]\nname = 'a'\n[[arm]]\nname = 'b'\noptions = ['bs=8k']",
        stubborn.replace('"', "\\\"")
    );
    at_once([Signal::KILL, Signal::TERM, Signal::INT, Signal::ABORT], |signal| {
        let scene = Scene::new();
        scene.0.write("x.toml", &file);
        let running = scene.iotoll("compare x.toml --no-save --quiet").start();
        assert!(eventually(|| scene.0.exists("stubborn")));
        std::thread::sleep(std::time::Duration::from_secs(1));
        let ended = running.ended_by(signal);
        let expected = if signal == Signal::KILL || signal == Signal::ABORT { None } else { Some(130) };
        assert_eq!(ended.code, expected, "{signal:?}: {ended:?}");
        scene.assert_nothing_left(&format!("{signal:?}"));
    });
}

/// The next iotoll kills it.
#[test]
fn a_server_that_two_kills_leave_is_found_by_the_next() {
    let scene = Scene::new();
    let job = "--name=a --ioengine=nbd --uri={server.uri} --rw=randread --bs=4k --time_based --runtime=50";
    let run = scene.iotoll("run --no-save --quiet --service").word(format!("server={SERVE}"));
    let running = run.word_list(job).start();
    assert!(eventually(|| running.has_threads("job a", 1)));
    running.signal(Signal::STOP);
    guardian::kill(guardian::guardian(&running).unwrap());
    running.ended_by(Signal::KILL);
    let ended = scene.iotoll("doctor --format json").run();
    assert!(ended.stdout.contains("running processes") && ended.stdout.contains("iotoll-services-"), "{ended:?}");
    let next = scene.iotoll("run --background 200ms --no-save --quiet --name=n --ioengine=null --size=1m").run().done();
    assert!(next.stderr.contains("; killed") && next.stderr.contains("; removed"), "{next:?}");
    scene.assert_nothing_left("the next");
}

/// One experiment of the repository, measured.
#[test]
fn experiments_of_the_repository_are_one_command() {
    let scene = Scene::new();
    let experiments = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let words = "--budget 1s --no-save --quiet --format json";
    let ended = scene.iotoll(&format!("compare {experiments}/path-coalesce-length.toml {words}")).run().done();
    assert_eq!(services(&ended.json()), ["server"]);
    scene.assert_nothing_left("path-coalesce-length.toml");
}

/// A folder for temporary files whose name is a command to a shell.
#[test]
fn an_address_is_no_part_of_a_shell_command() {
    let scene = Scene::new();
    let tmp = scene.0.path("t;touch owned; $(touch owned) 'q");
    fs::create_dir(&tmp).unwrap();
    let variables =
        [format!("TMPDIR={}", tmp.display()), format!("XDG_STATE_HOME={}", scene.0.path("state").display())];
    let iotoll = |words: &str| scene.0.iotoll(words).under(&["env", &variables[0], &variables[1]]);
    let made = "echo {s.dir} >> log; echo \"{s.dir}\" >> log; echo '{s.dir}' >> log";
    let cost = iotoll("cost --background 200ms --no-save --quiet --ios 1 --service").word(format!("s={SERVE}"));
    let cost = ["--setup", "--prepare", "--cleanup"].into_iter().fold(cost, |cost, flag| cost.word(flag).word(made));
    cost.word_list("-- sh -c").word(made).run().done();
    let fill = made.replace("s.dir", "dir");
    let text = format!(
        "job = \"[a]\\nioengine=nbd\"\nsetup = '''{made}'''\ncleanup = '''{made}'''\n\
         [[service]]\nname = 's'\nfill = '''{fill}'''\ncommand = '{SERVE}'\n\
         [[arm]]\nname = 'a'\noptions = ['uri={{s.uri}}']\n\
         [[arm]]\nname = 'b'\noptions = ['uri={{s.uri}}']\nsetup = '''{made}'''\ncleanup = '''{made}'''\n"
    );
    scene.0.write("x.toml", text);
    iotoll("compare x.toml --no-save --quiet --budget 1s").run().done();
    let log = String::from_utf8(scene.0.read("log")).unwrap();
    let folder = format!("{}/iotoll-services-", tmp.display());
    assert!(log.lines().count() > 20 && log.lines().all(|line| line.starts_with(&folder)), "{log}");
    assert!(!scene.0.exists("owned"));
    scene.assert_nothing_left("odd names");
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn services_are_pinned_by_themselves_or_by_the_place() {
        let Some(cpus) = super::super::placed::cpus() else { return };
        let (first, last) = (cpus[0], *cpus.last().unwrap());
        let scene = Scene::new();
        let cpus_of = |service: &str, words: &str| {
            let service = format!("[[service]]\nname = 's'\ncommand = '{SERVE}'\n{service}");
            let arms = "[[arm]]\nname = 'a'\noptions = ['uri={s.uri}']\n[[arm]]\nname = 'b'\noptions = ['uri={s.uri}', 'iodepth=2']";
            let ended = scene.experiment(&experiment(&service, arms), &format!("--budget 1s {words}")).done();
            ended.json()["services"][0]["cpus"].clone()
        };
        assert_eq!(cpus_of("", ""), serde_json::json!([]));
        assert_eq!(cpus_of(&format!("cpus = '{last}'"), "--place same"), serde_json::json!([last]));
        assert_eq!(cpus_of("", "--place apart"), serde_json::json!([last]));
        assert_eq!(cpus_of("", "--place same"), serde_json::json!([first]));
    }
}
