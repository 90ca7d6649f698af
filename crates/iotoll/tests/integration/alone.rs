//! Claims about costs, shares and counts of the whole machine: `./check` runs them one at a time, when no other test keeps the CPUs busy.

use super::iotoll::{Folder, eventually, items, number, warns, whole};
use super::limits::Ordinary;
use super::machine::{needs, skip, skip_without_idle_time};
use rustix::process::Signal;
use serde_json::Value;

/// A meter of this name is there, and the cost is known; otherwise a skip.
#[track_caller]
fn has_meter(finding: &Value, name: &str) -> bool {
    let meter = items(&finding["meters"]).find(|meter| meter["name"] == name).unwrap();
    meter["reason"].as_str().inspect(|reason| skip(reason)).is_none() && !skip_without_idle_time(finding)
}

/// The sum of a number of those that fit.
fn sum(of: &Value, path: &[&str], fits: impl Fn(&Value) -> bool) -> f64 {
    items(of).filter(|it| fits(it)).map(|it| number(path.iter().fold(it, |it, key| &it[*key]))).sum()
}

/// Keys, each with its type. A type with a question mark may be null: unknown.
const CONTRACT: [(&str, &str); 7] = [
    ("", "schema:text host:object meters:list background:object phases:list jobs:list warnings:list"),
    ("meters", "name:text available:truth"),
    ("background", "busy_fraction:number?"),
    (
        "phases",
        "jobs:list ios:whole? cycles_per_io:number? cycles_per_io_low:number? cycles_per_io_high:number? \
         cycles_per_io_gross:number? cycles_per_byte:number? context_switches_per_io:number? by_meter:object \
         events_per_io:object probes:list",
    ),
    (
        "jobs",
        "name:text engine:text ios:whole bytes:whole errors:whole wall_seconds:number iops:number \
         bytes_per_second:number read:object write:object thread_cycles_per_io:number? ios_per_crossing:number? \
         latency_ns:object cycles_per_io:number?",
    ),
    ("latency_ns", "mean:number? p50:number? p90:number? p99:number? p999:number? p9999:number? max:number?"),
    ("warnings", "code:text message:text"),
];

/// All keys that docs/reference/json.md promises for `run` and `cost`.
#[track_caller]
fn keeps_the_contract(finding: &Value) {
    assert_eq!(finding["schema"], "iotoll.run/1");
    for (place, keys) in CONTRACT {
        let values: Vec<&Value> = match place {
            "" => vec![finding],
            "latency_ns" => items(&finding["jobs"]).map(|job| &job["latency_ns"]).collect(),
            _ if finding[place].is_object() => vec![&finding[place]],
            _ => items(&finding[place]).collect(),
        };
        for (key, kind) in keys.split_whitespace().filter_map(|key| key.split_once(':')) {
            let right = |found: &Value| match kind.trim_end_matches('?') {
                "text" => found.is_string(),
                "object" => found.is_object(),
                "list" => found.is_array(),
                "truth" => found.is_boolean(),
                "whole" => found.is_u64(),
                _ => found.is_number(),
            };
            for value in &values {
                let found = value.get(key).unwrap_or_else(|| panic!("{place}.{key} is missing"));
                assert!(right(found) || found.is_null() && kind.ends_with('?'), "{place}.{key} is no {kind}: {found}");
            }
        }
    }
    for meter in items(&finding["meters"]) {
        let told = meter["available"] == true || meter["reason"].as_str().is_some_and(|reason| !reason.is_empty());
        assert!(told, "unavailable without a reason: {meter}");
    }
    for phase in items(&finding["phases"]) {
        let by_meter = phase["by_meter"].as_object().unwrap();
        assert!(by_meter.values().all(|cost| cost.is_number() || cost.is_null()), "{by_meter:?}");
        assert!(items(&phase["jobs"]).all(Value::is_string), "{phase}");
    }
}

/// Cached reads: their own thread's work, with one system call for each I/O, and every promised key.
#[test]
fn cached_reads_have_a_cost_of_their_own_thread_and_one_submission_each() {
    let folder = Folder::with_file("data", 4 << 20);
    let job = "--ioengine=libaio --filename=data --rw=randread --bs=4k --time_based --runtime=1500ms --invalidate=0";
    // Long enough for a window of events without the load.
    let words = format!("run {job} --background 400ms --name=r --events syscalls:io_submit,sched");
    let finding = folder.costed(&words);
    keeps_the_contract(&finding);
    let (phase, job) = (&finding["phases"][0], &finding["jobs"][0]);
    assert_eq!((job["name"].as_str(), job["engine"].as_str()), (Some("r"), Some("libaio")));
    assert_eq!(job["cycles_per_io"], phase["cycles_per_io"]);
    // Long enough for a cost, if the machine has any meter.
    if !skip_without_idle_time(&finding) {
        assert!(phase["cycles_per_io"].is_number() && phase["cycles_per_io_gross"].is_number(), "{phase}");
    }
    if has_meter(&finding, "accounts") {
        let accounts = &phase["accounts"];
        assert!((sum(accounts, &["share"], |_| true) - 1.0).abs() < 1e-6, "{accounts}");
        let own = sum(accounts, &["share"], |account| account["owner"] == "workload" && account["kind"] == "task");
        assert!(own > 0.7, "{accounts}");
        let idle = |account: &Value| account["name"].as_str().unwrap().starts_with("no task");
        assert!(!items(accounts).any(idle), "{accounts}");
    }
    if let Some(reason) = phase["events_reason"].as_str() {
        return skip(reason);
    }
    let events = phase["events_per_io"].as_object().unwrap();
    let calls = &events["syscalls:io_submit"];
    let value = number(&calls["value"]);
    assert!((value - 1.0).abs() < 0.001, "{calls}");
    assert!(number(&calls["low"]) <= value && value <= number(&calls["high"]), "{calls}");
    assert!(events.contains_key("sched:sched_switch"), "{events:?}");
    assert!(!events.keys().any(|name| name.starts_with("syscalls:") && name != "syscalls:io_submit"), "{events:?}");
    assert!(number(&phase["events_counting_fraction"]) > 0.0);
}

#[test]
fn a_cost_of_unknown_work_has_every_promised_key() {
    // Its I/O is unknown: null, never 0, with a warning that gives the reason.
    let unknown = Folder::new().costed("cost -- sleep 0.3");
    keeps_the_contract(&unknown);
    for key in ["ios", "cycles_per_io", "cycles_per_io_gross", "cycles_per_byte", "context_switches_per_io"] {
        assert!(unknown["phases"][0][key].is_null(), "{key}: {}", unknown["phases"]);
    }
    assert!(warns(&unknown, "work_unknown", &[]), "{}", unknown["warnings"]);
}

/// Jobs that run together share one cost, a job alone has its own, and the numbers agree with each other.
#[test]
fn stonewall_begins_a_phase() {
    let folder = Folder::new();
    folder.write(
        "job.fio",
        "[global]\nioengine=null\nsize=100g\nruntime=300ms\ntime_based\n\
         [alone]\nrw=randrw\nbs=4k,8k\n[one]\nstonewall\n[two]\nbs=8k\n[last]\nstonewall\n",
    );
    let finding = folder.costed("run job.fio");
    let phases = finding["phases"].as_array().unwrap();
    let jobs: Vec<&Value> = phases.iter().map(|phase| &phase["jobs"]).collect();
    assert_eq!(jobs, [&serde_json::json!(["alone"]), &serde_json::json!(["one", "two"]), &serde_json::json!(["last"])]);
    let job = |index: usize| &finding["jobs"][index];
    assert_eq!(job(0)["cycles_per_io"], phases[0]["cycles_per_io"]);
    // Two jobs that ran together have one cost, which belongs to neither.
    if !skip_without_idle_time(&finding) {
        let phase = &phases[0];
        let (net, gross) = (number(&phase["cycles_per_io"]), number(&phase["cycles_per_io_gross"]));
        assert!(net > 0.0 && gross > 0.0 && (net <= gross || phase["known_by_name"] == true), "{phase}");
        assert!(phases[1]["cycles_per_io"].is_number());
    }
    assert!(job(1)["cycles_per_io"].is_null() && job(2)["cycles_per_io"].is_null());
    assert!(number(&job(1)["thread_cycles_per_io"]) > 0.0, "each thread has its own cycles");
    assert_eq!(job(3)["cycles_per_io"], phases[2]["cycles_per_io"]);
    assert_eq!(whole(&phases[1]["ios"]), whole(&job(1)["ios"]) + whole(&job(2)["ios"]));
    for phase in phases {
        assert!((0.25..10.0).contains(&number(&phase["wall_seconds"])), "{phase}");
    }
    let (read, write) = (&job(0)["read"], &job(0)["write"]);
    for (key, of_read, of_write) in [("ios", 1, 1), ("bytes", 4096, 8192)] {
        assert_eq!(whole(&job(0)[key]), whole(&read["ios"]) * of_read + whole(&write["ios"]) * of_write, "{key}");
        assert_eq!(whole(&read[key]), whole(&read["ios"]) * of_read);
    }
    assert_eq!(phases[0]["ios"], job(0)["ios"]);
    let rate = number(&job(0)["ios"]) / number(&job(0)["wall_seconds"]);
    assert!((rate / number(&job(0)["iops"]) - 1.0).abs() < 1e-6, "{rate} {}", job(0)["iops"]);
    let ladder = ["p50", "p90", "p99", "max"].map(|key| number(&job(0)["latency_ns"][key]));
    assert!(ladder.is_sorted() && ladder[0] > 0.0, "{ladder:?}");
}

/// Datagrams over loopback are received in a softirq of the sender.
#[test]
fn packets_are_received_in_a_softirq() {
    const SEND: &str = "import socket, time\n\
        a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(('127.0.0.1', 0))\n\
        end = time.monotonic() + 1\n\
        while time.monotonic() < end:\n  a.sendto(b'x', a.getsockname()); a.recv(9)\n";
    let folder = Folder::new();
    let words = "cost --background 400ms --quiet --no-save --format json --ios 100000 -- python3 -c";
    let finding = folder.iotoll(words).word(SEND).run();
    let finding = finding.json();
    if !has_meter(&finding, "accounts") {
        return;
    }
    let accounts = &finding["phases"][0]["accounts"];
    let net_rx = sum(accounts, &["share"], |it| it["kind"] == "softirq" && it["name"] == "softirq net_rx");
    assert!(net_rx > 0.02 && net_rx < sum(accounts, &["share"], |it| it["owner"] == "workload"), "{accounts}");
}

/// Processes that start and end between two readings belong to the command that started them, and so do their functions.
#[test]
fn children_that_end_at_once_are_the_commands() {
    let folder = Folder::new();
    let program = planted(&folder);
    let script = format!("i=0; while [ $i -lt 80 ]; do {program} 20; i=$((i+1)); done");
    let words = "cost --quiet --profile --no-save --format json --ios 1000 -- sh -c";
    let finding = folder.iotoll(words).word(script).run().json();
    let phase = &finding["phases"][0];
    if has_meter(&finding, "accounts") {
        let own = sum(&phase["accounts"], &["share"], |account| account["owner"] == "workload");
        assert!(own > 0.3, "{}", phase["accounts"]);
    }
    if has_meter(&finding, "sampler") {
        let own = sum(&phase["symbols"], &["samples"], |symbol| symbol["module"] == "planted");
        assert!(own > 100.0 && own > 0.5 * sum(&phase["symbols"], &["samples"], |_| true), "{}", phase["symbols"]);
    }
}

/// Busy work in the submitting thread is a change of its account, and of the functions that burn.
#[test]
fn a_planted_difference_belongs_to_the_own_threads_and_their_function() {
    let folder = Folder::new();
    let words =
        "compare --ioengine=null --rw=read --bs=4k --size=64m --baseline inject_ns=0 --candidate inject_ns=2000";
    let finding = folder.costed(&format!("{words} --profile --events none --budget 5s"));
    let cell = &finding["cells"][0];
    match finding["unexplained"].as_str() {
        Some(reason) => skip(reason),
        None => {
            let accounts = cell["accounts"].as_array().unwrap();
            let cycles = 2000.0 * number(&finding["host"]["tsc_hertz"]) / 1e9;
            let own = &accounts[0];
            let change = &own["change"];
            let [low, value, high] = ["low", "value", "high"].map(|key| number(&change[key]));
            let expected = (Some("the workload's own threads"), Some(true));
            assert_eq!((own["name"].as_str(), own["detected"].as_bool()), expected);
            assert!(
                (0.7..1.6).contains(&(value / cycles)) && low <= value && value <= high,
                "{change} beside {cycles}"
            );
            for other in accounts.iter().skip(1).filter(|other| other["detected"] == true) {
                assert!(number(&other["change"]["value"]).abs() < 0.3 * cycles, "{other}");
            }
            let all = number(&cell["explained"]["change"]["value"]);
            let parts = sum(&cell["accounts"], &["change", "value"], |_| true);
            assert!((parts - all).abs() < 1e-3 * cycles, "{parts} {all}");
            assert!(number(&cell["explained"]["rounds"]) >= 3.0, "{}", cell["explained"]);
        }
    }
    let sampler = items(&finding["meters"]).find(|meter| meter["name"] == "sampler");
    match sampler.and_then(|meter| meter["reason"].as_str()) {
        Some(reason) => skip(reason),
        None => {
            let symbols = &cell["symbols"];
            let first = items(symbols).find(|symbol| symbol["detected"] == true);
            assert_eq!(first.map(|symbol| &symbol["module"]), Some(&Value::from("iotoll")), "{symbols}");
            // What burns is a few functions, whose names depend on how they were compiled; together they are most of the change.
            let change = ["change", "value"];
            let all = sum(symbols, &change, |_| true);
            let burning = sum(symbols, &change, |it| it["detected"] == true && it["module"] == "iotoll");
            assert!(all > 0.0 && burning > 0.7 * all, "{symbols}");
        }
    }
    // Of other meters nobody asked for accounts.
    let without = folder.costed(&format!("{words} --budget 1s --meters idle"));
    assert!(without["cells"][0]["accounts"].as_array().unwrap().is_empty() && without["unexplained"].is_null());
}

/// Killed while accounts are kept: the record has every round, and only the explaining ones keep accounts.
#[test]
fn a_kill_in_an_explaining_round_keeps_the_answer() {
    let folder = Folder::new();
    let words = "compare --quiet --out kept --budget 4s --aa --events none --rw=randread --bs=4k --size=4m";
    let mut running = folder.iotoll(words).start();
    let lines = |name: &str| folder.lines(name).len();
    assert!(eventually(|| running.ended() || lines("explaining") >= 3));
    if lines("explaining") == 0 {
        running.wait().done();
        return skip(folder.reported("kept")["unexplained"].as_str().unwrap());
    }
    running.ended_by(Signal::KILL);
    let (rounds, explaining) = (lines("round"), lines("explaining"));
    let finding = folder.reported("kept");
    assert_eq!(number(&finding["rounds"]) as usize, rounds, "{finding}");
    assert_eq!(number(&finding["cells"][0]["explained"]["rounds"]) as usize, explaining, "{finding}");
    assert!(finding["outcome"]["failed"].as_str().is_some_and(|why| why.contains("cut off")), "{}", finding["outcome"]);
}

/// Not even between the windows of an execution.
#[test]
fn only_explaining_rounds_keep_accounts() {
    let folder = Folder::new();
    let dd = |count: u32| format!("'dd if=/dev/zero of=/dev/null count={count}'");
    let arms = format!("--baseline-cmd {} --candidate-cmd {}", dd(20_000), dd(100_000));
    let words = format!("compare --quiet --out kept --budget 20s --precision 40% --slices off --events none {arms}");
    folder.iotoll(&words).run().done();
    if let Some(reason) = folder.reported("kept")["unexplained"].as_str() {
        return skip(reason);
    }
    let keeps = |line: &String| line.contains("\"alone\":\"accounts\"");
    let (rounds, explaining) = (folder.lines("round"), folder.lines("explaining"));
    assert!(!rounds.iter().any(keeps) && rounds.len() >= 2, "{} rounds", rounds.len());
    assert!(explaining.iter().all(keeps) && explaining.len() >= 3, "{} explaining rounds", explaining.len());
}

/// Packets over loopback: the sender, the softirq that delivers, and the receiver. A packet by sendto is a call of its own, and of those that
/// gso sends there are 64 in a call of another kind.
#[test]
fn a_packet_is_divided_between_sender_softirq_and_receiver_and_has_its_calls() {
    let words = "blast --duration 1500ms --rounds 5 --method sendto,gso --events syscalls:sendto";
    let finding = Folder::new().costed(words);
    let points = &finding["points"];
    match finding["unexplained"].as_str() {
        Some(reason) => skip(reason),
        None => {
            let all = number(&points[0]["explained"]["candidate"]["value"]);
            let of = |fits: &dyn Fn(&Value) -> bool| sum(&points[0]["accounts"], &["candidate", "value"], fits) / all;
            assert!((of(&|_| true) - 1.0).abs() < 1e-6, "{points}");
            for (key, part) in [("owner", "workload"), ("name", "softirq net_rx"), ("owner", "peer")] {
                assert!(of(&|account| account[key] == part) > 0.02, "{part}: {points}");
            }
            // A batch in one call costs the sender less.
            let own = items(&points[1]["accounts"]).find(|account| account["owner"] == "workload").unwrap();
            assert!(number(&own["change"]["value"]) < 0.0, "{own}");
        }
    }
    if let Some(reason) = finding["events_reason"].as_str() {
        return skip(reason);
    }
    assert!(number(&finding["counted_rounds"]) >= 3.0, "{}", finding["counted_rounds"]);
    let of = |point: usize| items(&points[point]["events"]).find(|event| event["name"] == "syscalls:sendto").unwrap();
    assert!(number(&of(0)["candidate"]["value"]) > 0.95 && of(0)["change"]["value"] == 0.0, "{}", of(0));
    assert!(number(&of(1)["candidate"]["value"]) < 0.1, "{}", of(1));
    assert!(of(1)["detected"] == true && number(&of(1)["change"]["value"]) < -0.9, "{}", of(1));
}

/// Compiles it; the compiler is the one that links this program.
fn planted(folder: &Folder) -> String {
    folder.write("planted.c", include_str!("programs/planted.c"));
    folder.command("cc -O1 planted.c -o planted").run().done();
    folder.name("planted")
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_planted_lock_is_the_largest_function() {
    let folder = Folder::new();
    let program = planted(&folder);
    let words = format!("cost --quiet --profile --out record --format json --ios 1000000 -- {program} 2000");
    let finding = folder.iotoll(&words).run().json();
    if !has_meter(&finding, "sampler") {
        return;
    }
    let phase = &finding["phases"][0];
    let symbols = &phase["symbols"];
    let first = items(symbols).find(|symbol| symbol["module"] == "planted").unwrap();
    assert_eq!(first["symbol"], "planted_lock", "{symbols}");
    // The lock takes about ten times as long as the addition to memory beside it; other functions of the program take nearly nothing.
    let cycles = |symbol: &str| sum(symbols, &["cycles_per_io", "value"], |it| it["symbol"] == symbol);
    assert!(cycles("planted_lock") > 2.0 * cycles("planted_adds"), "{symbols}");
    // Each function is a part of its account, if accounts are exact.
    let mut accounts = items(&phase["accounts"]);
    if let Some(own) = accounts.find(|account| account["owner"] == "workload" && account["kind"] == "task") {
        let parts = sum(symbols, &["cycles_per_io", "value"], |symbol| symbol["account"] == own["name"]);
        let all = number(&own["cycles_per_io"]);
        assert!((parts / all - 1.0).abs() < 0.02, "{own} {parts}");
        assert!(cycles("planted_lock") + cycles("planted_adds") > 0.8 * all, "{symbols}");
    }
    assert!(number(&phase["profile"]["whole_stacks_fraction"]) > 0.95, "{}", phase["profile"]);
    let folded = folder.text("record/profile.folded");
    assert!(folded.lines().any(|line| line.contains(";main;planted_lock ")), "{folded}");
    let page = folder.text("record/report.html");
    assert!(page.contains("src=\"data:image/svg+xml,"));
}

#[test]
fn demo_shows_two_costs_and_a_comparison_and_leaves_its_report_alone() {
    let folder = Folder::new();
    let ended = folder.iotoll("demo --quiet --format json --out report").run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let documents = serde_json::Deserializer::from_str(&ended.stdout).into_iter::<Value>();
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().unwrap();
    let [finding, comparison] = documents.as_slice() else { panic!("{ended:?}") };
    let phases = finding["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    if !skip_without_idle_time(finding) {
        // Other programs may change a phase's rate while it runs; then it has regimes and no mean.
        let has_cost = |phase: &Value| phase["cycles_per_io_gross"].as_f64().is_some_and(|cost| cost > 0.0);
        let has_regimes = |phase: &Value| !phase["regimes"].as_array().unwrap().is_empty();
        assert!(phases.iter().all(|phase| has_cost(phase) || has_regimes(phase)), "{phases:?}");
    }
    let jobs = &finding["jobs"];
    assert!(whole(&jobs[0]["read"]["ios"]) > 0 && whole(&jobs[1]["write"]["ios"]) > 0, "{jobs}");
    assert!(whole(&comparison["rounds"]) >= 2 && comparison["cells"][0]["arm"] == "candidate", "{comparison}");
    let left: Vec<String> = folder.listing().into_keys().collect();
    assert_eq!(left, ["report", "report/record.jsonl", "report/report.html"]);
    let page = folder.text("report/report.html");
    assert!(page.contains("io_uring") && page.contains("cached reads"), "{page}");
    assert_eq!(folder.reported("report")["seed"], comparison["seed"]);
}

#[test]
fn an_ordinary_user_gets_a_cost_and_learns_what_root_adds() {
    let Some(ordinary) = Ordinary::new() else { return };
    let read = "--name=r --filename=data --rw=randread --runtime=300ms --time_based";
    let finding = ordinary.iotoll(&format!("run --background 200ms --no-save --quiet --format json {read}"));
    let finding = finding.run().done().json();
    assert_eq!(finding["host"]["root"], Value::Bool(false));
    let cost = &finding["phases"][0]["cycles_per_io"];
    assert!(cost.is_number() || skip_without_idle_time(&finding), "{cost}");
    let timer_list = items(&finding["meters"]).find(|meter| meter["name"] == "timer_list").unwrap();
    assert_eq!(timer_list["available"], Value::Bool(false), "{timer_list}");
    assert!(timer_list["reason"].as_str().is_some_and(|reason| reason.contains("root")), "{timer_list}");
    let doctor = ordinary.iotoll("doctor --format json").run().done();
    assert!(doctor.stdout.contains("root"), "{doctor:?}");
    ordinary.iotoll("cost --background 200ms --quiet --ios 10 -- sleep 0.1").run().done();
}

/// The stated work divides the cost, and repeated executions give its interval.
#[test]
fn costs_are_divided_by_the_stated_work() {
    let folder = Folder::new();
    let busy = "'echo x >> times; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'";
    let finding = folder.costed(&format!("cost --ios 1k --bytes 4m --repeat 4 -- sh -c {busy}"));
    assert_eq!(folder.read("times").len(), 8);
    keeps_the_contract(&finding);
    let phase = &finding["phases"][0];
    let counted = (whole(&phase["ios"]), whole(&phase["bytes"]), phase["exits"].as_array().unwrap().len());
    assert_eq!(counted, (4096, 16 << 20, 4));
    assert!(finding["counted_by"].as_str().is_some_and(|words| words.contains("stated")), "{}", finding["counted_by"]);
    if skip_without_idle_time(&finding) {
        return;
    }
    let per_io = number(&phase["cycles_per_io"]) / 4096.0;
    assert!((per_io / number(&phase["cycles_per_byte"]) - 1.0).abs() < 1e-6, "{phase}");
    // A loop of 100,000 steps takes a shell tens of milliseconds of one CPU: millions of cycles.
    assert!(number(&phase["cycles_per_io_gross"]) * 1024.0 > 5e6, "{phase}");
    assert!(phase["interval_from"].as_str().is_some_and(|words| words.contains("executions")), "{phase}");
    let [low, cost, high] = ["cycles_per_io_low", "cycles_per_io", "cycles_per_io_high"].map(|key| number(&phase[key]));
    assert!(low < cost && cost < high, "{low} {cost} {high}");
    let bytes_only = &folder.costed(&format!("cost --bytes 4m -- sh -c {busy}"))["phases"][0];
    assert!(bytes_only["cycles_per_io"].is_null() && bytes_only["cycles_per_byte"].is_number(), "{bytes_only}");
}

#[test]
fn fio_counts_for_itself() {
    needs!("fio");
    let folder = Folder::new();
    folder.write(
        "job.fio",
        "[global]\nsize=4m\nbs=4k\nioengine=psync\n[r]\nrw=randread\nruntime=500ms\ntime_based\n\
         [w]\nrw=randrw\nbs=8k\nnumber_ios=100\n",
    );
    // The command's own output is unchanged, and shows how much it did.
    let ended = folder.iotoll("cost --background 200ms --out kept --format json -- fio job.fio").run().done();
    let finding = ended.json();
    assert!(finding["counted_by"].as_str().is_some_and(|words| words.contains("fio")), "{}", finding["counted_by"]);
    let jobs = &finding["jobs"];
    assert_eq!((jobs[0]["name"].as_str(), jobs[1]["name"].as_str()), (Some("r"), Some("w")));
    let total = |job: &Value| whole(&job["read"]["ios"]) + whole(&job["write"]["ios"]);
    assert_eq!((total(&jobs[1]), whole(&jobs[1]["bytes"])), (100, 100 * 8192));
    // fio prints the same for users, in a line such as "issued rwts: total=1234,0,0,0".
    let lines = ended.stderr.lines().filter_map(|line| line.trim().strip_prefix("issued rwts: total="));
    let counts = lines.filter_map(|counts| counts.split(' ').next());
    let counts = counts.map(|counts| counts.split(',').take(2).map(|count| count.parse::<u64>().unwrap()).sum());
    let counts: Vec<u64> = counts.collect();
    assert_eq!(counts, [total(&jobs[0]), total(&jobs[1])], "{}", ended.stderr);
    assert_eq!(whole(&finding["phases"][0]["ios"]), counts.iter().sum::<u64>());
    if !skip_without_idle_time(&finding) {
        assert!(number(&finding["phases"][0]["cycles_per_io_gross"]) > 0.0);
    }
    // Laying out the files and starting up are outside the time of its I/O.
    let record: Value = serde_json::from_str(folder.text("kept/record.jsonl").lines().nth(1).unwrap()).unwrap();
    let execution = &record["measured"]["phases"][0]["executions"][0];
    let snapshots = execution["stretch"]["snapshots"].as_array().unwrap();
    let (first, last) = (whole(&snapshots[0]["at_nanos"]), whole(&snapshots[snapshots.len() - 1]["at_nanos"]));
    let [begin, end] = ["begin_nanos", "end_nanos"].map(|key| whole(&execution["io_interval"][key]));
    assert!(first <= begin && begin < end && end <= last, "{first} {begin} {end} {last}");
    assert!((400_000_000..2_000_000_000).contains(&(end - begin)), "{}", end - begin);
    assert!(end - begin < last - first);
}
