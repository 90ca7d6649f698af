//! Blasts of packets, each in a network namespace of its own: what arrives is counted, and what does not has a place.

use super::iotoll::{Ended, Folder, Running, items, number, warns, whole};
use super::machine::{skip, tool};
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

/// A folder, if this test may make networks.
fn may() -> Option<Folder> {
    let made = Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success());
    if !made {
        skip("may not make a network namespace (unshare -n)");
    }
    made.then(Folder::new)
}

/// A blast in a network of its own.
fn blast(folder: &Folder, words: &str) -> Ended {
    folder.iotoll(&format!("blast --format json --quiet {words}")).under(&ALONE).run()
}

/// Every packet that was sent is somewhere.
#[track_caller]
fn accounted(finding: &Value) {
    for point in items(&finding["points"]) {
        let packets = &point["packets"];
        let drops: u64 = items(&packets["drops"]).map(|drop| whole(&drop["count"])).sum();
        assert!(whole(&packets["delivered"]) > 0, "{point}");
        assert_eq!(whole(&packets["sent"]), whole(&packets["delivered"]) + drops, "{point}");
        assert_eq!(packets["unaccounted"], 0, "{point}");
        assert!(packets["reordered"] == 0 || packets["reordered"].is_null(), "{point}");
    }
}

/// Packets that were refused, of a point.
fn refused(point: &Value) -> u64 {
    items(&point["packets"]["failed"]).map(|failed| whole(&failed["count"])).sum()
}

#[test]
fn every_method_accounts_for_each_packet() {
    let Some(folder) = may() else { return };
    let ended =
        blast(&folder, "--meters thread --out kept --method own,shared --submitters 1,3 --duration 200ms --rounds 2")
            .done();
    let finding = ended.json();
    let methods = "sendto,sendmmsg,gso,io_uring,lock,ring-task,mp-ring,swap-all";
    let found = (finding["schema"].as_str(), finding["method"].as_str(), items(&finding["points"]).count());
    assert_eq!(found, (Some("iotoll.blast/1"), Some(methods), 16));
    accounted(&finding);
    for point in items(&finding["points"]) {
        let [sent, delivered, errors] =
            ["sent", "delivered", "errors"].map(|key| number(&point[format!("{key}_per_second")]));
        assert!(sent > 0.0 && delivered > 0.0 && delivered <= 1.2 * sent && errors == 0.0, "{point}");
    }
    assert_eq!(folder.reported("kept"), finding);
    assert!(folder.exists("kept/report.html"));
    let compared = folder.reported("kept --stored kept");
    assert_eq!(number(&compared["points"][0]["since_stored"]["delivered"]["value"]), 0.0);
}

/// A file says what flags would, and its published figures stand beside the measured ones.
#[test]
fn an_experiment_file_places_the_task_of_a_ring() {
    let Some(folder) = may() else { return };
    let text = "kind = \"blast\"\nmethod = \"lock,ring-task\"\nsubmitters = \"2\"\ntask_cpu = \"any,0\"\n\
                [[published]]\nmethod = \"lock\"\nsubmitters = 2\nkpps = \"1422+0\"\nsource = \"a mail\"\n\
                [[published]]\nmethod = \"ring-task\"\nsubmitters = 2\nkpps = \"1279+0\"\nsource = \"a mail\"\n";
    folder.write("queues.toml", text);
    let finding = blast(&folder, "queues.toml --out kept --duration 200ms --rounds 2").done().json();
    accounted(&finding);
    let ways: Vec<[&Value; 2]> = items(&finding["points"]).map(|it| [&it["method"], &it["task_cpu"]]).collect();
    let [lock, ring, zero] = [Value::from("lock"), Value::from("ring-task"), Value::from(0)];
    assert_eq!(ways, [[&lock, &Value::Null], [&ring, &Value::Null], [&ring, &zero]]);
    let shown = folder.iotoll("report --full kept").run();
    for part in ["ring-task on CPU 0", "1279+0", "0.90", "a mail"] {
        assert!(shown.stdout.contains(part), "{}", shown.stdout);
    }
}

/// A pair of network devices: one in the network of the submitters, the other in that of the receiver.
struct Pair {
    submitters: String,
    receiver: String,
    folder: Folder,
}

impl Pair {
    fn new(test: &str) -> Option<Self> {
        let name = |end: &str| format!("iotoll-t{}-{test}-{end}", std::process::id());
        let pair = Self { submitters: name("s"), receiver: name("r"), folder: Folder::new() };
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
            if let Err(why) = run("ip", &words) {
                skip(&why);
                return None;
            }
        }
        Some(pair)
    }

    /// A receiver at its end, which listens.
    fn receiver(&self) -> Running {
        let inside = ["ip", "netns", "exec", &self.receiver];
        let receiver = self.folder.iotoll(&format!("blast --serve {THERE}:{PORT}")).under(&inside).start();
        let sockets = format!("netns exec {} cat /proc/net/tcp", self.receiver);
        receiver.when(|_| run("ip", &sockets).is_ok_and(|sockets| sockets.contains(":1389 ")))
    }

    fn blast(&self, words: &str) -> Running {
        let line = format!("blast --format json --quiet {words}");
        self.folder.iotoll(&line).under(&["ip", "netns", "exec", &self.submitters]).start()
    }

    /// A blast to the receiver that has saved rounds in `kept`.
    #[track_caller]
    fn running(&self) -> Running {
        let running = self.blast(&format!("{THERE}:{PORT} --out kept --duration 60 --rounds 600"));
        running.when(|_| self.folder.lines("round").len() > 1)
    }

    /// The only point of a short blast.
    #[track_caller]
    fn point(&self, words: &str) -> Value {
        let finding = self.blast(&format!("--meters thread --no-save --rounds 2 {words}")).wait().done().json();
        accounted(&finding);
        finding["points"][0].clone()
    }

    /// Makes the queue of the submitters' end short: 10 Mbit/s, and room for a few packets.
    fn has_short_queue(&self) -> bool {
        let words = format!("-n {} qdisc replace dev near root tbf rate 10mbit burst 3000 limit 3000", self.submitters);
        run("tc", &words).map_err(|why| skip(&why)).is_ok()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in [&self.submitters, &self.receiver] {
            // One that was not made cannot be removed.
            let _ = run("ip", &format!("netns delete {name}"));
        }
    }
}

fn run(program: &str, words: &str) -> Result<String, String> {
    tool(program, &words.split(' ').collect::<Vec<_>>())
}

#[test]
fn another_network_is_asked_for_its_counts() {
    let Some(pair) = Pair::new("remote") else { return };
    let receiver = pair.receiver();
    let to = format!("{THERE}:{PORT} --no-save --rounds 2");
    let finding = pair.blast(&format!("{to} --method sendto,gso --duration 400ms")).wait().done().json();
    accounted(&finding);
    let about = &finding["receiver"];
    assert_eq!((&about["same_machine"], &about["same_network"]), (&true.into(), &false.into()));
    assert!(!warns(&finding, "remote_receiver", &[]), "{finding}");
    drop(receiver);
    let nobody = pair.blast(&format!("{to} --duration 200ms")).wait();
    nobody.refused(2, &["no receiver answers", "iotoll blast --serve 0.0.0.0:5001"]);
}

#[test]
fn a_receiver_that_is_lost_leaves_the_rounds_before() {
    for how in ["dies", "down"] {
        let Some(pair) = Pair::new(how) else { return };
        let (receiver, running) = (pair.receiver(), pair.running());
        if how == "dies" {
            receiver.signal(Signal::KILL);
        } else {
            run("ip", &format!("-n {} link set near down", pair.submitters)).unwrap();
        }
        let ended = running.wait();
        ended.failed(1, &["the receiver at", "the rounds before are kept"]);
        assert!(whole(&ended.json()["rounds"]) > 0);
        assert_eq!(pair.folder.reported("kept"), ended.json());
    }
}

#[test]
fn a_full_queue_of_this_host_refuses_packets() {
    let Some(pair) = Pair::new("full") else { return };
    let _receiver = pair.receiver();
    if pair.has_short_queue() {
        let point = pair.point(&format!("{THERE}:{PORT} --duration 400ms --payload 500"));
        assert!(number(&point["errors_per_second"]) > 0.0, "{point}");
        assert!(point["packets"]["failed"].to_string().contains("No buffer space"), "{point}");
    }
}

/// A filter of this network that refuses every tenth packet counts what it passes and what it refuses: a call that takes a part
/// of its packets has one refused packet, and none is sent a second time.
#[test]
fn every_method_counts_each_refused_packet_once() {
    let Some(pair) = Pair::new("refused") else { return };
    let filter = |words: &str| run("ip", &format!("netns exec {} nft {words}", pair.submitters));
    let (table, chain) = ("add table ip counted", "add chain ip counted out { type filter hook output priority 0 ; }");
    if let Err(why) = filter(table).and_then(|_| filter(chain)) {
        return skip(&why);
    }
    for method in ["sendto", "sendmmsg", "gso", "io_uring", "lock", "ring-task", "mp-ring", "swap-all"] {
        filter("flush chain ip counted out").unwrap();
        filter("add rule ip counted out udp dport 1-65535 numgen random mod 10 == 0 counter drop").unwrap();
        filter("add rule ip counted out udp dport 1-65535 counter accept").unwrap();
        let point = pair.point(&format!("--method {method} --submitters 2 --duration 200ms"));
        let said = filter("list chain ip counted out").unwrap();
        let counts: Vec<u64> =
            said.split("packets ").skip(1).map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect();
        // A send that the kernel cuts into packets is one packet for the filter.
        let each = if method == "gso" { whole(&point["batch"]) } else { 1 };
        let (refused, sent) = (refused(&point), whole(&point["packets"]["sent"]));
        assert_eq!((refused, sent), (each * counts[0], each * counts[1]), "{method}: {point}");
        assert!(refused > 0 && point["packets"]["unaccounted"] == 0, "{method}: {point}");
    }
}

#[test]
fn requests_and_responses_are_exchanged() {
    for address in ["tcp://127.0.0.1:0", "udp://127.0.0.1:0", "unix:echo"] {
        let folder = Folder::new();
        let said = || fs::read_to_string(folder.path("said")).unwrap_or_default();
        let output = fs::File::create(folder.path("said")).unwrap();
        let server = folder.iotoll(&format!("serve --echo {address}")).stdout(output).start();
        let server = server.when(|_| said().ends_with('\n'));
        let job = format!("--name=rr --ioengine=rr --rr_peer={}", said().trim_start_matches("listening on ").trim());
        let ways = ["", "--iodepth=4", "--rr_connect=1"];
        for way in ways.iter().filter(|way| !(address.starts_with("udp") && way.contains("connect"))) {
            let job = &folder.measured(&format!("run {job} --bs=8 --number_ios=300 {way}"))["jobs"][0];
            assert_eq!((whole(&job["read"]["ios"]), whole(&job["read"]["bytes"])), (300, 2400), "{address}{way} {job}");
            let mean = number(&job["read"]["latency_ns"]["mean"]);
            let stages = job["stages_ns"].as_object().unwrap();
            assert!(stages["sending"].is_object() && mean > 0.0, "{job}");
            let sum: f64 = stages.values().map(|stage| number(&stage["mean"])).sum();
            assert!((sum / mean - 1.0).abs() < 0.02, "{sum} {job}");
        }
        server.ended_by(Signal::TERM).done();
        assert!(!folder.exists("echo"), "the socket is removed");
        let nobody = folder.iotoll(&format!("run --no-save {job} --bs=8 --number_ios=3")).run();
        let told = nobody.code == Some(2) && nobody.stderr.contains("iotoll serve --echo");
        assert!(told || address.starts_with("udp") && nobody.code != Some(0), "{nobody:?}");
    }
}

/// A peer that never answers: the job ends after a second, with all of its exchanges in flight.
#[test]
fn a_silent_peer_ends_the_job() {
    let (folder, silent) = (Folder::new(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let at = silent.local_addr().unwrap();
    for depth in [1, 64] {
        let depth = format!("--iodepth={depth} --iodepth_batch_complete_min={depth}");
        let job =
            format!("--background 200ms --name=rr --ioengine=rr --rr_peer=udp://{at} --bs=8 {depth} --number_ios=300");
        let ended = folder.iotoll(&format!("run --no-save --quiet {job}")).run();
        assert!(ended.code == Some(1) && ended.stdout.contains("timed out"), "{ended:?}");
    }
}

#[test]
fn a_network_without_ipv6_has_no_receiver() {
    if let Some(folder) = may() {
        let none = ["unshare", "-n", "sh", "-c", "ip link set lo up && ip -6 addr flush dev lo; exec \"$@\"", "sh"];
        let ended = folder.iotoll("blast --no-save [::1]:5001").under(&none).run();
        ended.refused(2, &["[::1]:5001", "no receiver answers"]);
    }
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn payloads_of_any_length_arrive() {
        let Some(folder) = may() else { return };
        for (payload, batch) in [(0, ""), (1, "--batch 8"), (1472, "--batch 8"), (65_507, "")] {
            let methods = if payload < 65_507 { "own" } else { "sendto,sendmmsg,gso" };
            let words = format!("--no-save --payload {payload} --method {methods} {batch} --duration 200ms --rounds 2");
            accounted(&blast(&folder, &words).done().json());
        }
    }
}
