//! What a foreign command is said to have done is what it did, whatever it prints and wherever it runs. The senders know their truth by
//! construction: each message has the same size, and arms differ only by how often they print.

use super::iotoll::{Ended, Folder, eventually, number, warns, whole};
use super::machine::{has, is_root, needs, skip};
use serde_json::Value;
use std::net::TcpListener;
use std::process::{Command, Stdio};

const COMPARE: &str = "compare --meters thread --quiet --no-save --format json --budget 4s";
const COST: &str = "cost --background 200ms --no-save --quiet --no-output --format json";

/// A comparison of two commands.
fn compared(folder: &Folder, [baseline, candidate]: [&str; 2]) -> Ended {
    let ended = folder.iotoll(&format!("{COMPARE} --baseline-cmd '{baseline}' --candidate-cmd '{candidate}'")).run();
    folder.assert_no_processes();
    ended
}

/// Candidate divided by baseline.
fn ratio(found: &Value, metric: &str) -> f64 {
    let metric = &found["cells"][0]["metrics"][metric];
    number(&metric["candidate"]) / number(&metric["baseline"])
}

/// Two kinds of I/O have no common counter, and one line names those of both.
#[test]
fn different_kinds_of_io_need_a_named_counter() {
    needs!("python3");
    let folder = Folder::new();
    folder.write("tcp.py", include_str!("programs/tcp.py"));
    let arms = ["python3 tcp.py 60000 5", "dd if=/dev/zero of=/dev/null bs=64k"];
    compared(&folder, arms).refused(2, &["different kinds of I/O", "tcp", "task:both", "--count", "--slices off"]);
}

/// What iperf3 on the other side says it did, while iotoll measures this side.
fn beside_a_client(folder: &Folder, client: &str) -> (Value, Value) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let measured = folder.iotoll(&format!("{COST} -- iperf3 -s -1 -B 127.0.0.1 -p {port}")).start();
    let mut end = Value::Null;
    // It is refused until the server listens.
    let asked = eventually(|| {
        let client = Command::new("iperf3")
            .args(["-J", "-c", "127.0.0.1", "-p", &port.to_string(), "-t", "1"])
            .args(client.split(' '))
            .stdin(Stdio::null())
            .output();
        let text = client.map(|client| String::from_utf8_lossy(&client.stdout).into_owned()).unwrap_or_default();
        let found: Value = serde_json::from_str(&text).unwrap_or_default();
        end = found["end"].clone();
        found["error"].is_null() && end.is_object()
    });
    assert!(asked, "iperf3 did not listen");
    let ended = measured.wait().done();
    (ended.json(), end)
}

#[test]
fn a_server_of_iperf3_counts_what_came_and_what_it_sent() {
    needs!("iperf3");
    let folder = Folder::new();
    let (found, client) = beside_a_client(&folder, "--bidir");
    let job = &found["jobs"][0];
    assert_eq!(whole(&job["read"]["bytes"]), whole(&client["sum_received"]["bytes"]), "{job}");
    assert_eq!(whole(&job["write"]["bytes"]), whole(&client["sum_sent_bidir_reverse"]["bytes"]), "{job}");
    let (found, client) = beside_a_client(&folder, "-u -b 2G -l 1400");
    let (job, sum) = (&found["jobs"][0], &client["sum_received"]);
    assert_eq!(whole(&job["read"]["bytes"]), whole(&sum["bytes"]), "{job}");
    assert_eq!(whole(&job["read"]["lost"]), whole(&sum["lost_packets"]), "{job}");
    let lost = whole(&sum["lost_packets"]) as f64 / whole(&sum["packets"]) as f64;
    assert_eq!(warns(&found, "packets_lost", &["did not arrive"]), lost > 0.03, "{lost} {}", found["warnings"]);
    // Its counts leave the first second out.
    let (found, _) = beside_a_client(&folder, "-O 1");
    assert!(warns(&found, "work_unknown", &["leave out the first 1 s"]), "{}", found["warnings"]);
    assert!(found["phases"][0]["ios"].is_null() && whole(&found["jobs"][0]["ios"]) > 0, "{found}");
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn a_sender_is_counted_by_what_it_sends_and_not_by_its_log_lines() {
        needs!("python3");
        let folder = Folder::new();
        folder.write("tcp.py", include_str!("programs/tcp.py"));
        folder.write("udp.py", include_str!("programs/udp.py"));
        for (program, counter, metric) in
            [("python3 tcp.py 60000", "tcp", "bytes_per_second"), ("python3 udp.py 1400", "udp", "iops")]
        {
            let arms = [format!("{program} 5"), format!("{program} 100")];
            let found = compared(&folder, [&arms[0], &arms[1]]).done().json();
            assert_eq!(found["work_counter"]["name"], counter, "{}", found["work_counter"]);
            // By log lines the candidate would do a twentieth.
            let ratio = ratio(&found, metric);
            assert!((0.3..3.0).contains(&ratio), "{counter}: {ratio}");
        }
    }

    #[test]
    fn a_memory_map_that_prints_is_counted_by_its_storage() {
        needs!("python3");
        let folder = Folder::with_file("data", 32 << 20);
        folder.write("mapped.py", include_str!("programs/mapped.py"));
        let ended = compared(&folder, ["python3 mapped.py 5000", "python3 mapped.py 1000"]);
        if ended.code == Some(2) && ended.stderr.contains("--count") {
            return skip("the files of this machine do not come from storage");
        }
        let found = ended.done().json();
        let counter = found["work_counter"]["name"].as_str().unwrap_or_default();
        if counter == "task:both" {
            // In memory nothing but the lines moves: then that is said.
            assert!(warns(&found, "counters_disagree", &["like a log line", "--count"]), "{}", found["warnings"]);
            return skip("the files of this machine do not come from storage");
        }
        assert_eq!(counter, "task:storage", "{}", found["work_counter"]);
    }

    #[test]
    fn a_ring_beside_the_work_is_not_counted() {
        needs!("python3");
        let folder = Folder::new();
        folder.write("ring.py", include_str!("programs/ring.py"));
        let once = Command::new("timeout").args(["0.5", "python3"]).arg(folder.path("ring.py")).arg("100").status();
        if once.is_ok_and(|status| status.code() == Some(77)) {
            return skip("io_uring is not allowed here");
        }
        let found = compared(&folder, ["python3 ring.py 100", "python3 ring.py 2000"]).done().json();
        assert_eq!(found["work_counter"]["name"], "task:both", "{}", found["work_counter"]);
        // By completions the candidate would do a twentieth.
        let ratio = ratio(&found, "bytes_per_second");
        assert!((0.3..3.0).contains(&ratio), "{ratio}");
    }

    /// The command's network namespace is another one, which a caveat says with these words.
    #[track_caller]
    fn assert_elsewhere(found: &Value, words: &[&str]) {
        assert!(warns(found, "other_namespace", words), "{}", found["warnings"]);
    }

    /// The kernel tells of the sockets of one network namespace only.
    #[test]
    fn a_command_in_another_network_namespace_is_counted_there() {
        needs!("python3");
        let entered =
            is_root() && Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success());
        if !entered || !has("ip") {
            return skip("a network namespace needs root, unshare and ip");
        }
        let folder = Folder::new();
        folder.write("tcp.py", include_str!("programs/tcp.py"));
        folder.write("udp.py", include_str!("programs/udp.py"));
        folder.write("inside.sh", "ip link set lo up\nexec python3 \"$@\"\n");
        for (program, counter) in [("tcp.py 60000", "tcp"), ("udp.py 1400", "udp")] {
            let arms = [5, 6].map(|every| format!("unshare -n sh inside.sh {program} {every}"));
            let ended = compared(&folder, [&arms[0], &arms[1]]).done();
            assert_eq!(ended.json()["work_counter"]["name"], counter);
        }
        // What is not there is said.
        let inside = "unshare -n timeout 1 sh inside.sh udp.py 1400 5";
        let found = folder.iotoll(&format!("{COST} --count net:lo --probe net.lo.tx_packets -- {inside}")).run().json();
        assert_elsewhere(&found, &["--count net:lo, --probe net.lo.tx_packets reach iotoll's own", "unshare -n"]);
        // The words do not tell.
        folder.write("hidden.sh", format!("exec {inside}\n"));
        let found = folder.iotoll(&format!("{COST} --count net:lo -- sh hidden.sh")).run().json();
        assert_elsewhere(&found, &["sh hidden.sh", "runs in another one"]);
    }

    /// It would switch nothing for the command.
    #[test]
    fn a_setting_of_another_network_namespace_is_said() {
        const SETTING: &str = "sysctl:net.ipv4.tcp_autocorking=0";
        if !is_root() || !has("unshare") {
            return skip("a network namespace needs root and unshare");
        }
        let folder = Folder::new();
        let words = format!("{COMPARE} --candidate-set {SETTING} -- unshare -n dd if=/dev/zero of=/dev/null bs=64k");
        let found = folder.iotoll(&words).run().json();
        assert_elsewhere(&found, &[SETTING, "reaches iotoll's own", "unshare -n"]);
        let here = folder.iotoll(&words.replace("unshare -n ", "")).run().json();
        assert!(!warns(&here, "other_namespace", &[]), "{}", here["warnings"]);
    }
}
