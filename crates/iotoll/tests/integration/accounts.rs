//! Exact accounts: planted loads are charged where they belong, and nothing stays in the kernel.

use super::iotoll::{Folder, number};
use super::machine::{skip, skip_without_idle_time};
use serde_json::Value;

/// The accounts of the first phase; `None` where they cannot be kept, or nothing was idle.
#[track_caller]
fn accounts(test: &str, finding: &Value) -> Option<Vec<Value>> {
    let meters = finding["meters"].as_array().unwrap();
    let meter = meters.iter().find(|meter| meter["name"] == "accounts").unwrap();
    if let Some(reason) = meter["reason"].as_str() {
        skip(test, reason);
        return None;
    }
    if skip_without_idle_time(test, finding) {
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
    let Some(accounts) = accounts("cached_reads_are_their_own_threads_work", &finding) else { return };
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
    let Some(accounts) = accounts("packets_are_received_in_a_softirq", &finding) else { return };
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
    let Some(accounts) = accounts("children_that_end_at_once_are_the_commands", &finding) else { return };
    // Other tests may start programs too.
    let of = |owner: &str| share(&accounts, |account| account["owner"] == owner);
    assert!(of("workload") > 0.3, "{accounts:?}");
}
