//! Blasts of packets, each in a network namespace of its own: what arrives is counted, and what does not has a place.

use super::gates::judged;
use super::iotoll::{Ended, Folder, Running, eventually, number, warns, whole};
use super::machine::{Peer, skip};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The port of receivers, each in its own namespace.
const PORT: &str = "5001";
/// Addresses of the two ends of a pair.
const HERE: &str = "10.213.78.1";
const THERE: &str = "10.213.78.2";

/// Words that run a command in a new network that has only loopback.
const ALONE: [&str; 6] = ["unshare", "-n", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"];

/// Whether this test may make networks.
fn may() -> bool {
    let made = Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success());
    if !made {
        skip("may not make a network namespace (unshare -n)");
    }
    made
}

/// A blast in a network of its own.
fn blast(folder: &Folder, words: &str) -> Ended {
    folder.iotoll(&format!("blast --format json --quiet {words}")).under(&ALONE).run()
}

/// Every packet that was sent is somewhere.
#[track_caller]
fn accounted(finding: &Value) {
    for point in finding["points"].as_array().unwrap() {
        let packets = &point["packets"];
        let drops: u64 = packets["drops"].as_array().unwrap().iter().map(|drop| whole(&drop["count"])).sum();
        assert!(whole(&packets["delivered"]) > 0, "{point}");
        assert_eq!(whole(&packets["sent"]), whole(&packets["delivered"]) + drops, "{point}");
        assert_eq!(packets["unaccounted"], 0, "{point}");
        assert!(packets["reordered"] == 0 || packets["reordered"].is_null(), "{point}");
    }
}

#[test]
fn every_method_accounts_for_each_packet() {
    if !may() {
        return;
    }
    let folder = Folder::new();
    let ended = blast(&folder, "--out kept --method own,shared --submitters 1,3 --duration 200ms --rounds 2").done();
    let finding = ended.json();
    assert_eq!(
        (finding["schema"].as_str(), finding["method"].as_str()),
        (Some("iotoll.blast/1"), Some("sendto,sendmmsg,gso,io_uring,lock,ring-task,mp-ring,swap-all"))
    );
    assert_eq!(finding["points"].as_array().unwrap().len(), 16);
    accounted(&finding);
    for point in finding["points"].as_array().unwrap() {
        for key in ["sent_per_second", "delivered_per_second"] {
            assert!(number(&point[key]) > 0.0, "{point}");
        }
        assert_eq!(number(&point["errors_per_second"]), 0.0);
        assert!(number(&point["delivered_per_second"]) <= 1.2 * number(&point["sent_per_second"]), "{point}");
    }
    let again = folder.iotoll("report kept --format json").run();
    assert_eq!((again.code, &again.stdout), (Some(0), &ended.stdout));
    assert!(folder.exists("kept/report.html"));
    let compared = folder.iotoll("report kept --stored kept --format json").run().json();
    assert_eq!(number(&compared["points"][0]["since_stored"]["delivered"]["value"]), 0.0);
}

/// A file says what flags would, and its published figures stand beside the measured ones.
#[test]
fn an_experiment_file_places_the_task_of_a_ring() {
    if !may() {
        return;
    }
    let text = "kind = \"blast\"\nmethod = \"lock,ring-task\"\nsubmitters = \"2\"\ntask_cpu = \"any,0\"\n\
                [[published]]\nmethod = \"lock\"\nsubmitters = 2\nkpps = \"1422+0\"\nsource = \"a mail\"\n\
                [[published]]\nmethod = \"ring-task\"\nsubmitters = 2\nkpps = \"1279+0\"\nsource = \"a mail\"\n";
    let folder = Folder::new();
    folder.write("queues.toml", text);
    let finding = blast(&folder, "queues.toml --out kept --duration 200ms --rounds 2").done().json();
    accounted(&finding);
    let points = finding["points"].as_array().unwrap();
    let ways: Vec<(&str, &Value)> =
        points.iter().map(|point| (point["method"].as_str().unwrap(), &point["task_cpu"])).collect();
    assert_eq!(ways, [("lock", &Value::Null), ("ring-task", &Value::Null), ("ring-task", &Value::from(0))]);
    let shown = folder.iotoll("report --full kept").run();
    for part in ["ring-task on CPU 0", "1279+0", "0.90", "a mail"] {
        assert!(shown.stdout.contains(part), "{}", shown.stdout);
    }
    let refused = |words: &str| folder.iotoll(&format!("blast --no-save {words}")).run();
    refused("queues.toml --method gso").refused(2, &["--method", "write it into queues.toml"]);
    refused("127.0.0.1").refused(2, &["HOST:PORT"]);
    refused("missing.toml").refused(2, &["missing.toml", "no such file"]);
    refused("--method gso --batch 65").refused(2, &["--batch 65", "at most 64", "UDP_MAX_SEGMENTS"]);
    refused("--method gso --batch 64 --payload 1472").refused(2, &["at most 44", "65507 bytes"]);
    refused("--method sendto --batch 2").refused(2, &["sendto takes one packet for each call"]);
    refused("--task-cpu other").refused(2, &["any,0,1"]);
}

/// A pair of network devices: one in the network of the submitters, the other in that of the receiver.
struct Pair {
    submitters: String,
    receiver: String,
}

impl Pair {
    fn new(test: &str) -> Option<Self> {
        let name = |end: &str| format!("iotoll-t{}-{test}-{end}", std::process::id());
        let pair = Self { submitters: name("s"), receiver: name("r") };
        let (s, r) = (pair.submitters.as_str(), pair.receiver.as_str());
        for words in [
            format!("netns add {s}"),
            format!("netns add {r}"),
            format!("-n {s} link add near type veth peer name far netns {r}"),
            format!("-n {s} addr add {HERE}/30 dev near"),
            format!("-n {r} addr add {THERE}/30 dev far"),
            format!("-n {s} link set near up"),
            format!("-n {r} link set far up"),
            format!("-n {s} link set lo up"),
        ] {
            if let Err(why) = ip(&words) {
                skip(&why);
                return None;
            }
        }
        Some(pair)
    }

    /// A receiver at its end, which listens.
    fn receiver(&self) -> Peer {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.receiver, env!("CARGO_BIN_EXE_iotoll"), "blast", "--serve"]);
        let peer = Peer::start(command.arg(format!("{THERE}:{PORT}")));
        let listens = || {
            let mut sockets = Command::new("ip");
            sockets.args(["netns", "exec", &self.receiver, "cat", "/proc/net/tcp"]);
            sockets.output().is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(":1389 "))
        };
        assert!(eventually(listens), "the receiver does not listen");
        peer
    }

    fn blast(&self, folder: &Folder, words: &str) -> Running {
        let line = format!("blast --format json --quiet {THERE}:{PORT} {words}");
        folder.iotoll(&line).under(&["ip", "netns", "exec", &self.submitters]).start()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in [&self.submitters, &self.receiver] {
            // One that was not made cannot be removed.
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(words: &str) -> Result<(), String> {
    super::machine::tool("ip", &words.split(' ').collect::<Vec<_>>()).map(|_| ())
}

fn tc(words: &str) -> Result<String, String> {
    super::machine::tool("tc", &words.split(' ').collect::<Vec<_>>())
}

/// A blast over a pair that runs, and has saved rounds in `kept`.
#[track_caller]
fn running(pair: &Pair, folder: &Folder) -> Running {
    let running = pair.blast(folder, "--out kept --duration 60 --rounds 600");
    let saved =
        || fs::read_to_string(folder.path("kept/record.jsonl")).is_ok_and(|text| text.matches('\n').count() > 3);
    assert!(eventually(saved), "no round is saved");
    running
}

#[test]
fn another_network_is_asked_for_its_counts() {
    let Some(pair) = Pair::new("remote") else { return };
    let folder = Folder::new();
    let receiver = pair.receiver();
    let finding = pair.blast(&folder, "--no-save --method sendto,gso --duration 400ms --rounds 2").wait().done().json();
    accounted(&finding);
    let about = &finding["receiver"];
    assert_eq!((&about["same_machine"], &about["same_network"]), (&Value::from(true), &Value::from(false)));
    assert!(!warns(&finding, "remote_receiver", &[]), "{finding}");
    drop(receiver);
    let nobody = pair.blast(&folder, "--no-save --duration 200ms --rounds 2").wait();
    nobody.refused(2, &["no receiver answers", "iotoll blast --serve 0.0.0.0:5001"]);
}

#[test]
fn a_receiver_that_dies_leaves_the_rounds_before() {
    let Some(pair) = Pair::new("dies") else { return };
    let folder = Folder::new();
    let mut receiver = pair.receiver();
    let running = running(&pair, &folder);
    receiver.end();
    let ended = running.wait();
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
    assert!(
        ended.stderr.contains("the receiver at") && ended.stderr.contains("the rounds before are kept"),
        "{ended:?}"
    );
    assert!(whole(&ended.json()["rounds"]) > 0);
    folder.assert_no_processes();
    let again = folder.iotoll("report kept --format json").run();
    assert_eq!((again.code, &again.stdout), (Some(0), &ended.stdout));
}

#[test]
fn a_link_that_goes_down_ends_it_in_one_line() {
    let Some(pair) = Pair::new("down") else { return };
    let folder = Folder::new();
    let _receiver = pair.receiver();
    let running = running(&pair, &folder);
    ip(&format!("-n {} link set near down", pair.submitters)).unwrap();
    let ended = running.wait();
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
    assert!(ended.stderr.contains("the receiver at"), "{ended:?}");
    folder.assert_no_processes();
}

#[test]
fn a_signal_ends_it_and_keeps_the_rounds() {
    for signal in [Signal::INT, Signal::TERM] {
        let Some(pair) = Pair::new("signal") else { return };
        let folder = Folder::new();
        let _receiver = pair.receiver();
        let running = running(&pair, &folder);
        let ended = running.ended_by(signal);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert_eq!(ended.json()["outcome"], "interrupted");
        folder.assert_no_processes();
    }
}

#[test]
fn a_full_queue_of_this_host_refuses_packets() {
    let Some(pair) = Pair::new("full") else { return };
    let folder = Folder::new();
    let _receiver = pair.receiver();
    // 10 Mbit/s, and room for a few packets.
    if let Err(why) =
        tc(&format!("-n {} qdisc add dev near root tbf rate 10mbit burst 3000 limit 3000", pair.submitters))
    {
        return skip(&why);
    }
    let finding = pair.blast(&folder, "--no-save --duration 400ms --rounds 2 --payload 500").wait().done().json();
    accounted(&finding);
    let point = &finding["points"][0];
    assert!(number(&point["errors_per_second"]) > 0.0, "{point}");
    assert!(point["packets"]["failed"].to_string().contains("No buffer space"), "{point}");
}

/// Packets that were accepted, and those that were refused, of a point.
fn attempts(point: &Value) -> (u64, u64) {
    let refused = point["packets"]["failed"].as_array().unwrap().iter().map(|failed| whole(&failed["count"])).sum();
    (whole(&point["packets"]["sent"]), refused)
}

/// A filter of this network that refuses every tenth packet counts what it passes and what it refuses: a call that takes a part
/// of its packets has one refused packet, and none is sent a second time.
#[test]
fn every_method_counts_each_refused_packet_once() {
    let Some(pair) = Pair::new("refused") else { return };
    let folder = Folder::new();
    let filter = |words: &str| {
        let inside = ["netns", "exec", &pair.submitters, "nft"];
        super::machine::tool("ip", &inside.into_iter().chain(words.split(' ')).collect::<Vec<_>>())
    };
    let (table, chain) = ("add table ip counted", "add chain ip counted out { type filter hook output priority 0 ; }");
    if let Err(why) = filter(table).and_then(|_| filter(chain)) {
        return skip(&why);
    }
    for method in ["sendto", "sendmmsg", "gso", "io_uring", "lock", "ring-task", "mp-ring", "swap-all"] {
        filter("flush chain ip counted out").unwrap();
        filter("add rule ip counted out udp dport 1-65535 numgen random mod 10 == 0 counter drop").unwrap();
        filter("add rule ip counted out udp dport 1-65535 counter accept").unwrap();
        let words = format!(
            "blast --no-save --quiet --format json --method {method} --submitters 2 --duration 200ms --rounds 2"
        );
        let finding = folder.iotoll(&words).under(&["ip", "netns", "exec", &pair.submitters]).run().done().json();
        let point = &finding["points"][0];
        let (sent, refused) = attempts(point);
        let said = filter("list chain ip counted out").unwrap();
        let counts: Vec<u64> =
            said.split("packets ").skip(1).map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect();
        // A send that the kernel cuts into packets is one packet for the filter.
        let each = if method == "gso" { whole(&point["batch"]) } else { 1 };
        assert_eq!((refused, sent), (each * counts[0], each * counts[1]), "{method}: {point}");
        assert!(refused > 0, "{method}: {point}");
        assert_eq!(point["packets"]["unaccounted"], 0, "{method}: {point}");
    }
}

/// An echo server, and where it listens.
fn echo(folder: &Folder, address: &str) -> (Running, String) {
    let said = folder.path("said");
    let server = folder.iotoll(&format!("serve --echo {address}")).stdout(fs::File::create(&said).unwrap()).start();
    let line = || fs::read_to_string(&said).unwrap_or_default();
    assert!(eventually(|| line().ends_with('\n')), "the echo server does not listen");
    let at = line().trim_start_matches("listening on ").trim().to_owned();
    (server, at)
}

#[test]
fn requests_and_responses_are_exchanged() {
    for address in ["tcp://127.0.0.1:0", "udp://127.0.0.1:0", "unix:echo"] {
        let folder = Folder::new();
        let (server, at) = echo(&folder, address);
        let ways = ["", " --iodepth=4", " --rr_connect=1"];
        for way in ways.iter().filter(|way| !(address.starts_with("udp") && way.contains("connect"))) {
            let job = format!("run --name=rr --ioengine=rr --rr_peer={at} --bs=8 --number_ios=300{way}");
            let finding = folder.measured(&job);
            let job = &finding["jobs"][0];
            assert_eq!((whole(&job["read"]["ios"]), whole(&job["read"]["bytes"])), (300, 2400), "{address}{way} {job}");
            let mean = number(&job["read"]["latency_ns"]["mean"]);
            let stages = job["stages_ns"].as_object().unwrap();
            assert!(stages["sending"].is_object() && mean > 0.0, "{job}");
            let sum: f64 = stages.values().map(|stage| number(&stage["mean"])).sum();
            assert!((sum / mean - 1.0).abs() < 0.02, "{sum} {job}");
        }
        server.ended_by(Signal::TERM).done();
        assert!(!folder.exists("echo"), "the socket is removed");
        let nobody =
            folder.iotoll(&format!("run --no-save --name=rr --ioengine=rr --rr_peer={at} --bs=8 --number_ios=3")).run();
        assert!(
            nobody.code == Some(2) && nobody.stderr.contains("iotoll serve --echo") || address.starts_with("udp"),
            "{nobody:?}"
        );
        assert!(nobody.code != Some(0), "{nobody:?}");
    }
}

/// A peer that never answers: the job ends after a second, with all of its exchanges in flight.
#[test]
fn a_silent_peer_ends_the_job() {
    let (folder, silent) = (Folder::new(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let at = silent.local_addr().unwrap();
    for depth in [1, 64] {
        let begun = std::time::Instant::now();
        let job = format!(
            "run --no-save --quiet --background 200ms --name=rr --ioengine=rr --rr_peer=udp://{at} --bs=8 --iodepth={depth} \
             --iodepth_batch_complete_min={depth} --number_ios=300"
        );
        let ended = folder.iotoll(&job).run();
        assert!(ended.code == Some(1) && ended.stdout.contains("timed out"), "{ended:?}");
        assert!(begun.elapsed().as_secs() < 40, "depth {depth}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_network_without_ipv6_has_no_receiver() {
    if may() {
        let none = ["unshare", "-n", "sh", "-c", "ip link set lo up && ip -6 addr flush dev lo; exec \"$@\"", "sh"];
        let ended = Folder::new().iotoll("blast --no-save [::1]:5001").under(&none).run();
        ended.refused(2, &["[::1]:5001", "no receiver answers"]);
    }
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn payloads_of_any_length_arrive() {
        if !may() {
            return;
        }
        let folder = Folder::new();
        for (payload, batch) in [(0, ""), (1, "--batch 8"), (1472, "--batch 8"), (65_507, "")] {
            let methods = if payload < 65_507 { "own" } else { "sendto,sendmmsg,gso" };
            let words = format!("--no-save --payload {payload} --method {methods} {batch} --duration 200ms --rounds 2");
            let ended = blast(&folder, &words).done();
            accounted(&ended.json());
        }
    }

    /// The same where a queue of this host is full, which refuses most packets.
    #[test]
    fn every_method_counts_what_a_full_queue_refuses() {
        let Some(pair) = Pair::new("overfull") else { return };
        let folder = Folder::new();
        let _receiver = pair.receiver();
        let near = &pair.submitters;
        for method in ["sendto", "sendmmsg", "io_uring", "lock", "ring-task", "mp-ring", "swap-all"] {
            if let Err(why) =
                tc(&format!("-n {near} qdisc replace dev near root tbf rate 10mbit burst 3000 limit 3000"))
            {
                return skip(&why);
            }
            let words = format!("--no-save --duration 400ms --rounds 2 --payload 500 --method {method}");
            let finding = pair.blast(&folder, &words).wait().done().json();
            let (_, refused) = attempts(&finding["points"][0]);
            let said = tc(&format!("-n {near} -s qdisc show dev near")).unwrap();
            let dropped = said.split("dropped ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
            let dropped: u64 = dropped.parse().unwrap();
            // The queue also drops what else this host sends: the questions to the receiver.
            assert!((refused..=refused + 40).contains(&dropped) && refused > 100, "{method}: {refused} of {dropped}");
            tc(&format!("-n {near} qdisc delete dev near root")).unwrap();
        }
    }

    #[test]
    fn limits_hold_at_every_point() {
        if !may() {
            return;
        }
        let folder = Folder::new();
        let gate = |words: &'static str| {
            let folder = &folder;
            move |more: &[&str]| {
                let words = format!("blast --format json --quiet --duration 500ms --rounds 10 {words}");
                more.iter().fold(folder.iotoll(&words).under(&ALONE), |iotoll, word| iotoll.word(*word)).run()
            }
        };
        judged(gate("--out one"), &["packets_per_second < 1"], (0, &["kept"]));
        let limits = ["packets_per_second < 1T", "packets_per_second > +100000%"];
        // Of the point that the stored measurement has not, the change is unknown.
        judged(
            gate("--no-save --submitters 1,2 --stored one"),
            &limits,
            (3, &["exceeded", "exceeded", "undecided", "kept"]),
        );
        judged(gate("--no-save --submitters 1,2 --stored one"), &limits[1..], (4, &["undecided", "kept"]));
    }
}
