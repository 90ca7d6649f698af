//! Servers that iotoll starts: none of them is left behind, however the measurement ends (`endings` has the signals).

use super::iotoll::{Ended, Folder, Iotoll, PROGRAM, at_once, items, number, whole};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;

const SERVE: &str = "iotoll serve --backend memory:16m --listen 127.0.0.1:{port}";
const JOB: &str = "--name=a --ioengine=nbd --uri={server.uri} --rw=randread --bs=4k --time_based";

/// A folder to run in, with a subfolder for temporary files.
struct Scene(Folder);

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.path("tmp")).unwrap();
        Self(folder)
    }

    fn iotoll(&self, words: &str) -> Iotoll {
        self.0.iotoll(words).under(&["env", &format!("TMPDIR={}", self.0.name("tmp"))])
    }

    /// A comparison of arms on services.
    fn experiment(&self, services: &str, arms: &str, words: &str) -> Ended {
        self.0.write("x.toml", format!("job = '''\n[a]\nioengine=nbd\nrw=randread\nbs=4k\n'''\n{services}\n{arms}"));
        self.iotoll(&format!("compare x.toml --meters thread --no-save --quiet --format json {words}")).run()
    }

    /// Neither a process, a ledger, nor a folder of services is left.
    #[track_caller]
    fn assert_nothing_left(&self, how: &str) {
        self.0.assert_undone(how);
        assert_eq!(fs::read_dir(self.0.path("tmp")).unwrap().count(), 0, "{how}");
    }
}

fn services(finding: &Value) -> Vec<&str> {
    items(&finding["services"]).map(|service| service["name"].as_str().unwrap()).collect()
}

#[test]
fn an_experiment_starts_fills_and_ends_its_servers() {
    let scene = Scene::new();
    let fill =
        "iotoll run --name=fill --ioengine=nbd --uri={uri} --rw=write --bs=1m --background=200ms --no-save --quiet";
    // The setup runs before the services start, so it can make the file that a service serves.
    let services_of = format!(
        "setup = 'head -c 1M /dev/zero > {{tcp.dir}}/note'\ncleanup = 'cp {{tcp.dir}}/note note'\n\
         [[service]]\nname = 'tcp'\ncommand = '{SERVE}'\narm = 'tcp'\nfill = '{fill} && echo filled > {{dir}}/note'\n\
         [[service]]\nname = 'unix'\ncommand = 'iotoll serve --backend file:{{tcp.dir}}/note --read-only --unix {{socket}}'\n"
    );
    let arms = "[[arm]]\nname = 'tcp'\noptions = ['uri={tcp.uri}']\n[[arm]]\nname = 'again'\noptions = ['uri={other.uri}']\n\
                [[service]]\nname = 'other'\ncommand = ['iotoll', 'serve', '--backend', 'memory:16m', '--unix', '{socket}']\n";
    let finding = scene.experiment(&services_of, arms, "--budget 1s").done().json();
    assert_eq!(services(&finding), ["tcp", "unix", "other"]);
    assert!(finding["services"][0]["uri"].as_str().unwrap().starts_with("nbd:"));
    assert_eq!(finding["arms"][0]["what"], "uri={tcp.uri}");
    assert!(number(&finding["cells"][0]["metrics"]["iops"]["baseline"]) > 0.0, "{finding}");
    assert_eq!(scene.0.text("note"), "filled\n", "it was filled, and its folder is there until the cleanup");
    scene.assert_nothing_left("a good end");
}

/// `./check` runs them one at a time: beside others a server may not get enough CPU time to be seen.
mod alone {
    use super::*;

    #[test]
    fn a_run_and_a_command_have_services_too() {
        let scene = Scene::new();
        let words = format!("--background 200ms --no-save --quiet --format json --service 'server={SERVE}'");
        let finding = scene.iotoll(&format!("run {words} {JOB} --runtime=1")).run().done().json();
        assert!(whole(&finding["jobs"][0]["ios"]) > 0);
        assert_eq!(services(&finding), ["server"]);
        let peers = &finding["phases"][0]["placement"]["peers"];
        let server = items(peers).find(|peer| peer["name"] == "'server' (iotoll serve)");
        assert_eq!(server.map(|server| &server["server"]), Some(&true.into()), "{peers}");
        let script = "'test -d {server.dir} && echo {server.port} > port'";
        let finding = scene.iotoll(&format!("cost {words} --ios=1 -- sh -c {script}")).run().done().json();
        assert_eq!(services(&finding), ["server"]);
        assert_eq!(finding["services"][0]["port"].to_string(), scene.0.text("port").trim());
        scene.assert_nothing_left("a command");
    }
}

#[test]
fn what_is_only_read_starts_nothing() {
    let scene = Scene::new();
    let service = "[[service]]\nname = 's'\ncommand = 'touch started {port}'\n";
    let arms =
        "[[arm]]\nname = 'a'\noptions = ['uri={s.uri}']\n[[arm]]\nname = 'b'\noptions = ['uri={s.uri}', 'bs=8k']";
    let plan = scene.experiment(service, arms, "--parse-only").done().json();
    let uri = &plan["cases"][0]["work"]["jobs"]["phases"][0]["jobs"][0]["path"]["uri"];
    assert_eq!(uri.as_str(), Some(format!("nbd://127.0.0.1:{}", plan["services"][0]["port"]).as_str()));
    let job = "--name=a --ioengine=nbd --uri={s.uri}";
    scene.iotoll(&format!("run --parse-only --service 's=touch started {{port}}' {job}")).run().done();
    assert!(!scene.0.exists("started"));
    scene.assert_nothing_left("--parse-only");
}

/// The exit of a server ends every verb, which says so; and the service may print as much as it likes.
#[test]
fn a_server_that_dies_ends_the_measurement() {
    let dies = "sh -c 'yes talk | head -c 5000000; echo up; sleep 1; echo out of memory; exit 9; : {port}'";
    let null = "--ioengine=null --size=1g --time_based --runtime=50";
    let verbs = [
        format!("run --background 200ms {null}"),
        "compare --meters thread --budget 50s --ioengine=null --size=1m --rate_iops=1k --candidate inject_ns=10"
            .to_owned(),
        "ftq --duration 50s --cpu".to_owned(),
        "blast --duration 50s --rounds 200".to_owned(),
        "cost --background 200ms -- sleep 50".to_owned(),
    ];
    at_once(verbs, |words| {
        let scene = Scene::new();
        let (verb, rest) = words.split_once(' ').unwrap();
        let iotoll =
            scene.iotoll(&format!("{verb} --no-save --quiet --format json --service")).word(format!("s={dies}"));
        let ended = iotoll.word_list(rest).run();
        assert_eq!(ended.code, Some(1), "{words}: {ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("service 's' ended by itself (exit status 9); its output ends: "), "{words}: {ended:?}");
        assert!(said.contains("'up' 'out of memory'"), "{words}: {ended:?}");
        scene.assert_nothing_left(&words);
    });
    // An NBD server that is killed while a job uses it.
    let scene = Scene::new();
    let server = format!("server=sh -c 'echo $$ > pid; exec \"$0\" {}' {PROGRAM}", &SERVE["iotoll ".len()..]);
    let run = scene.iotoll("run --background 200ms --no-save --quiet --format json --service").word(server);
    let running = run.word_list(&format!("{JOB} --runtime=50")).start();
    let running = running.when(|running| running.has_threads("job a", 1));
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill_process(Pid::from_raw(scene.0.text("pid").trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    let ended = running.wait();
    let outcome = ended.json()["outcome"].to_string();
    assert!(ended.code == Some(1) && outcome.contains("service 'server' ended by itself (signal 9)"), "{ended:?}");
    scene.assert_nothing_left("a killed server");
}

/// The next iotoll kills it.
#[test]
fn a_server_that_two_kills_leave_is_found_by_the_next() {
    let scene = Scene::new();
    let running = scene.iotoll(&format!("run --no-save --quiet --service 'server={SERVE}' {JOB} --runtime=50")).start();
    let running = running.when(|running| running.has_threads("job a", 1));
    running.signal(Signal::STOP);
    kill_process(running.guardian().unwrap(), Signal::KILL).unwrap();
    running.ended_by(Signal::KILL);
    let doctor = scene.iotoll("doctor --format json").run();
    assert!(doctor.stdout.contains("running processes") && doctor.stdout.contains("iotoll-services-"), "{doctor:?}");
    let next = scene.iotoll("run --background 200ms --no-save --quiet --name=n --ioengine=null --size=1m").run().done();
    assert!(next.stderr.contains("; killed") && next.stderr.contains("; removed"), "{next:?}");
    scene.assert_nothing_left("the next");
}

/// A folder for temporary files whose name is a command to a shell.
#[test]
fn an_address_is_no_part_of_a_shell_command() {
    let scene = Scene::new();
    let tmp = scene.0.path("t;touch owned; $(touch owned) 'q");
    fs::create_dir(&tmp).unwrap();
    let variable = format!("TMPDIR={}", tmp.display());
    let iotoll = |words: &str| scene.0.iotoll(words).under(&["env", &variable]);
    let made = "echo {s.dir} >> log; echo \"{s.dir}\" >> log; echo '{s.dir}' >> log";
    let cost = iotoll(&format!("cost --background 200ms --no-save --quiet --ios 1 --service 's={SERVE}'"));
    let cost = ["--setup", "--prepare", "--cleanup"].into_iter().fold(cost, |cost, flag| cost.word(flag).word(made));
    cost.word_list("-- sh -c").word(made).run().done();
    let fill = made.replace("s.dir", "dir");
    let around = format!("setup = '''{made}'''\ncleanup = '''{made}'''\n");
    let text = format!(
        "job = \"[a]\\nioengine=nbd\"\n{around}[[service]]\nname = 's'\nfill = '''{fill}'''\ncommand = '{SERVE}'\n\
         [[arm]]\nname = 'a'\noptions = ['uri={{s.uri}}']\n[[arm]]\nname = 'b'\noptions = ['uri={{s.uri}}']\n{around}"
    );
    scene.0.write("x.toml", text);
    iotoll("compare x.toml --meters thread --no-save --quiet --budget 1s").run().done();
    let log = scene.0.text("log");
    let folder = format!("{}/iotoll-services-", tmp.display());
    assert!(log.lines().count() > 20 && log.lines().all(|line| line.starts_with(&folder)), "{log}");
    assert!(!scene.0.exists("owned"));
    scene.assert_nothing_left("odd names");
}

#[test]
fn a_recording_and_a_blast_have_services() {
    let scene = Scene::new();
    let ftq = |words: &str| {
        let words = format!("ftq --no-save --quiet --format json --duration 500ms --service 's={SERVE}' {words}");
        let finding = scene.iotoll(&words).run().done().json();
        let uri = finding["services"][0]["uri"].as_str().unwrap();
        assert!(services(&finding) == ["s"] && finding["title"].as_str().unwrap().contains(uri), "{finding}");
        assert!(number(&finding["amount"]) > 0.0, "{finding}");
    };
    ftq("--target {s.uri} --rw=read");
    // A command that talks to the server.
    let job = JOB.replace("server", "s");
    ftq(&format!("--count page_faults -- {PROGRAM} run --background 200ms --no-save --quiet {job} --runtime=50"));
    let receiver = "--service 'rx=iotoll blast --serve 127.0.0.1:{port}' 127.0.0.1:{rx.port}";
    let finding = scene.0.costed(&format!("blast --duration 400ms --rounds 2 {receiver}"));
    let at = format!("127.0.0.1:{}", finding["services"][0]["port"]);
    assert_eq!(finding["receiver"]["address"], at, "{finding}");
    assert!(number(&finding["points"][0]["delivered_per_second"]) > 0.0, "{finding}");
    scene.assert_nothing_left("a recording");
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn services_are_pinned_by_themselves_or_by_the_place() {
        let Some(cpus) = super::super::placed::cpus() else { return };
        let (first, last) = (cpus[0], *cpus.last().unwrap());
        let scene = Scene::new();
        let arms = "[[arm]]\nname = 'a'\noptions = ['uri={s.uri}']\n[[arm]]\nname = 'b'\noptions = ['uri={s.uri}', 'iodepth=2']";
        let cpus_of = |service: &str, words: &str| {
            let service = format!("[[service]]\nname = 's'\ncommand = '{SERVE}'\n{service}");
            scene.experiment(&service, arms, &format!("--budget 1s {words}")).done().json()["services"][0]["cpus"]
                .clone()
        };
        assert_eq!(cpus_of("", ""), serde_json::json!([]));
        assert_eq!(cpus_of(&format!("cpus = '{last}'"), "--place same"), serde_json::json!([last]));
        assert_eq!(cpus_of("", "--place apart"), serde_json::json!([last]));
        assert_eq!(cpus_of("", "--place same"), serde_json::json!([first]));
    }
}
