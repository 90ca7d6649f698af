//! Exact accounts: planted loads are charged where they belong, and nothing stays in the kernel.

use super::iotoll::{Folder, eventually, number};
use super::machine::{skip, skip_without_idle_time};
use rustix::process::Signal;
use serde_json::Value;

/// The accounts of the first phase; `None` where they cannot be kept, or nothing was idle.
#[track_caller]
fn accounts(finding: &Value) -> Option<Vec<Value>> {
    let meters = finding["meters"].as_array().unwrap();
    let meter = meters.iter().find(|meter| meter["name"] == "accounts").unwrap();
    if let Some(reason) = meter["reason"].as_str() {
        skip(reason);
        return None;
    }
    if skip_without_idle_time(finding) {
        return None;
    }
    Some(finding["phases"][0]["accounts"].as_array().unwrap().clone())
}

/// The share of the accounts that fit.
fn share(accounts: &[Value], fits: impl Fn(&Value) -> bool) -> f64 {
    accounts.iter().filter(|account| fits(account)).map(|account| number(&account["share"])).sum()
}

#[test]
fn cached_reads_are_their_own_threads_work() {
    let folder = Folder::new();
    let words = "run --quiet --no-save --format json --rw=randread --bs=4k --size=4m --time_based --runtime=2";
    let finding = folder.iotoll(words).run().json();
    let Some(accounts) = accounts(&finding) else { return };
    assert!((share(&accounts, |_| true) - 1.0).abs() < 1e-6, "{accounts:?}");
    let own = share(&accounts, |account| account["owner"] == "workload" && account["kind"] == "task");
    assert!(own > 0.7, "{accounts:?}");
    assert!(!accounts.iter().any(|account| account["name"].as_str().unwrap().starts_with("no task")), "{accounts:?}");
}

/// Datagrams over loopback are received in a softirq of the sender.
#[test]
fn packets_are_received_in_a_softirq() {
    const SEND: &str = "import socket, time\n\
        a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(('127.0.0.1', 0))\n\
        end = time.monotonic() + 2\n\
        while time.monotonic() < end:\n  a.sendto(b'x', a.getsockname()); a.recv(9)\n";
    let folder = Folder::new();
    let iotoll = folder.iotoll("cost --quiet --no-save --format json --ios 100000 -- python3 -c").word(SEND);
    let finding = iotoll.run().json();
    let Some(accounts) = accounts(&finding) else { return };
    let net_rx = share(&accounts, |account| account["kind"] == "softirq" && account["name"] == "softirq net_rx");
    let own = share(&accounts, |account| account["owner"] == "workload");
    assert!(net_rx > 0.02 && net_rx < own, "{accounts:?}");
}

/// Processes that start and end between two readings belong to the command that started them.
#[test]
fn children_that_end_at_once_are_the_commands() {
    let folder = Folder::new();
    let script = "i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done";
    let iotoll = folder.iotoll("cost --quiet --no-save --format json --ios 1500 -- sh -c").word(script);
    let finding = iotoll.run().json();
    let Some(accounts) = accounts(&finding) else { return };
    // Other tests may start programs too.
    let of = |owner: &str| share(&accounts, |account| account["owner"] == owner);
    assert!(of("workload") > 0.3, "{accounts:?}");
}

/// The accounts of the only cell; `None` where they cannot be kept.
#[track_caller]
fn compared(finding: &Value) -> Option<Vec<Value>> {
    if let Some(reason) = finding["unexplained"].as_str() {
        skip(reason);
        return None;
    }
    Some(finding["cells"][0]["accounts"].as_array().unwrap().clone())
}

const COMPARE: &str = "compare --quiet --format json --rw=randread --bs=4k --size=4m";

/// Busy work in the submitting thread.
#[test]
fn a_planted_difference_belongs_to_the_own_threads() {
    let folder = Folder::new();
    let words = format!("{COMPARE} --no-save --budget 8s --baseline inject_ns=0 --candidate inject_ns=2000");
    let finding = folder.iotoll(&words).run().json();
    let Some(accounts) = compared(&finding) else { return };
    let cycles = 2000.0 * number(&finding["environment"]["host"]["tsc_hertz"]) / 1e9;
    let own = &accounts[0];
    let change = &own["change"];
    assert_eq!((own["name"].as_str(), own["detected"].as_bool()), (Some("the workload's own threads"), Some(true)));
    assert!((0.7..1.6).contains(&(number(&change["value"]) / cycles)), "{change} beside {cycles}");
    assert!(number(&change["low"]) <= number(&change["value"]) && number(&change["value"]) <= number(&change["high"]));
    for other in accounts.iter().skip(1).filter(|other| other["detected"] == true) {
        assert!(number(&other["change"]["value"]).abs() < 0.3 * cycles, "{other}");
    }
    let explained = &finding["cells"][0]["explained"];
    let sum: f64 = accounts.iter().map(|account| number(&account["change"]["value"])).sum();
    assert!((sum - number(&explained["change"]["value"])).abs() < 1e-3 * cycles, "{sum} {explained}");
    assert!(number(&explained["rounds"]) >= 3.0, "{explained}");
    // Of other meters nobody asked for accounts.
    let without = folder.iotoll(&words).word_list("--meters idle").run().json();
    assert!(without["cells"][0]["accounts"].as_array().unwrap().is_empty() && without["unexplained"].is_null());
}

/// Killed while accounts are kept: the record has every round.
#[test]
fn a_kill_in_an_explaining_round_keeps_the_answer() {
    let folder = Folder::new();
    let start = || folder.iotoll(&format!("{COMPARE} --out kept --budget 8s --aa --events none")).start();
    let mut running = start();
    let lines = |name: &str| folder.lines(name).len();
    assert!(eventually(|| running.ended() || lines("explaining") >= 3));
    if lines("explaining") == 0 {
        let finding = running.wait().json();
        assert!(compared(&finding).is_none(), "{finding}");
        return;
    }
    running.ended_by(Signal::KILL);
    let (rounds, explaining) = (lines("round"), lines("explaining"));
    let ended = folder.iotoll("report kept --format json").run();
    let finding = ended.json();
    assert_eq!(number(&finding["rounds"]) as usize, rounds, "{finding}");
    assert_eq!(number(&finding["cells"][0]["explained"]["rounds"]) as usize, explaining, "{finding}");
    assert!(finding["outcome"]["failed"].as_str().is_some_and(|why| why.contains("cut off")), "{}", finding["outcome"]);
}

/// Packets over loopback: the sender, the softirq that delivers, and the receiver.
#[test]
fn a_packet_is_divided_between_sender_softirq_and_receiver() {
    let folder = Folder::new();
    let words = "blast --quiet --no-save --format json --duration 3s --rounds 6 --method sendto,gso";
    let finding = folder.iotoll(words).run().json();
    let points = finding["points"].as_array().unwrap();
    let Some(accounts) = points[0]["accounts"].as_array() else {
        let reason = finding["unexplained"].as_str().unwrap();
        return skip(reason);
    };
    let of = |fits: &dyn Fn(&Value) -> bool| {
        let cost = |account: &Value| number(&account["candidate"]["value"]);
        let sum: f64 = accounts.iter().filter(|account| fits(account)).map(cost).sum();
        sum / number(&points[0]["explained"]["candidate"]["value"])
    };
    assert!((of(&|_| true) - 1.0).abs() < 1e-6, "{accounts:?}");
    for part in [
        of(&|account| account["owner"] == "workload"),
        of(&|account| account["name"] == "softirq net_rx"),
        of(&|account| account["owner"] == "peer"),
    ] {
        assert!(part > 0.02, "{accounts:?}");
    }
    // A batch in one call costs the sender less.
    let own = points[1]["accounts"].as_array().unwrap().iter().find(|account| account["owner"] == "workload").unwrap();
    assert!(number(&own["change"]["value"]) < 0.0, "{own}");
}

/// Not even between the windows of an execution.
#[test]
fn only_explaining_rounds_keep_accounts() {
    let folder = Folder::new();
    let words = "compare --quiet --out kept --format json --budget 20s --precision 40% --slices off --events none";
    let commands = ["--baseline-cmd", "dd if=/dev/zero of=/dev/null count=40000", "--candidate-cmd"];
    let iotoll = commands.into_iter().fold(folder.iotoll(words), |iotoll, word| iotoll.word(word));
    let finding = iotoll.word("dd if=/dev/zero of=/dev/null count=200000").run().json();
    if compared(&finding).is_none() {
        return;
    }
    let keeps = |line: &String| line.contains("\"alone\":\"accounts\"");
    let (rounds, explaining) = (folder.lines("round"), folder.lines("explaining"));
    assert!(!rounds.iter().any(keeps) && rounds.len() >= 2, "{} rounds", rounds.len());
    assert!(explaining.iter().all(keeps) && explaining.len() >= 3, "{} explaining rounds", explaining.len());
}
