//! Sources of the counts of `iotoll cost`: the JSON of fio and iperf3, and the kernel's counters.

use super::iotoll::{Folder, number, warns, whole};
use super::machine::{LoopDevice, Peer, is_root, skip, skip_without_idle_time};
use serde_json::Value;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn fio_counts_for_itself() {
    let folder = Folder::new();
    folder.write(
        "job.fio",
        "[global]\nsize=4m\nbs=4k\nioengine=psync\n[r]\nrw=randread\nruntime=500ms\ntime_based\n\
         [w]\nrw=randrw\nbs=8k\nnumber_ios=100\n",
    );
    // The command's own output is unchanged, and shows how much it did.
    let cost = "cost --background 200ms --no-save --format json -- fio job.fio";
    let ended = folder.iotoll(cost).run().done();
    let finding = ended.json();
    assert!(finding["counted_by"].as_str().is_some_and(|words| words.contains("fio")), "{}", finding["counted_by"]);
    let jobs = finding["jobs"].as_array().unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["r", "w"]);
    let total = |job: &Value| whole(&job["read"]["ios"]) + whole(&job["write"]["ios"]);
    assert_eq!(total(&jobs[1]), 100);
    assert_eq!(whole(&jobs[1]["bytes"]), 100 * 8192);
    // fio prints the same for users, in a line such as "issued rwts: total=1234,0,0,0".
    let counts: Vec<u64> = ended
        .stderr
        .lines()
        .filter_map(|line| line.trim().strip_prefix("issued rwts: total="))
        .filter_map(|counts| counts.split(' ').next())
        .map(|counts| counts.split(',').take(2).map(|count| count.parse::<u64>().unwrap()).sum())
        .collect();
    assert_eq!(counts, [total(&jobs[0]), total(&jobs[1])], "{}", ended.stderr);
    assert_eq!(whole(&finding["phases"][0]["ios"]), counts.iter().sum::<u64>());
    if !skip_without_idle_time(&finding) {
        assert!(number(&finding["phases"][0]["cycles_per_io_gross"]) > 0.0);
    }
}

#[test]
fn time_in_which_fio_did_no_io_is_excluded() {
    let folder = Folder::new();
    let cost = "cost --background 200ms --quiet --no-output --format json --out kept -- \
                fio --name=a --rw=randread --size=32m --ioengine=psync --runtime=500ms --time_based";
    folder.iotoll(cost).run().done();
    let record = String::from_utf8(folder.read("kept/record.jsonl")).unwrap();
    let record: Value = serde_json::from_str(record.lines().nth(1).unwrap()).unwrap();
    let execution = &record["measured"]["phases"][0]["executions"][0];
    let snapshots = execution["stretch"]["snapshots"].as_array().unwrap();
    let (first, last) = (whole(&snapshots[0]["at_nanos"]), whole(&snapshots[snapshots.len() - 1]["at_nanos"]));
    let (begin, end) = (whole(&execution["io_interval"]["begin_nanos"]), whole(&execution["io_interval"]["end_nanos"]));
    assert!(first <= begin && begin < end && end <= last, "{first} {begin} {end} {last}");
    assert!((400_000_000..2_000_000_000).contains(&(end - begin)), "{}", end - begin);
    assert!(end - begin < last - first, "laying out the file and starting up are outside");
}

/// In a group, fio's run time is the sum over its members, which run at the same time.
#[test]
fn a_group_takes_as_long_as_its_members() {
    let folder = Folder::new();
    let finding = folder.measured(
        "cost --no-output -- fio --name=a --numjobs=2 --group_reporting --rw=randread --size=4m --bs=4k \
         --ioengine=psync --runtime=1 --time_based",
    );
    assert_eq!(finding["jobs"].as_array().unwrap().len(), 1);
    let seconds = number(&finding["phases"][0]["wall_seconds"]);
    assert!((0.5..1.5).contains(&seconds), "{seconds}");
    assert!(!warns(&finding, "unknown", &["before it was started"]), "{}", finding["warnings"]);
}

const FIO: &str = "fio --name=a --rw=randread --filename=f --readonly --runtime=300ms --time_based --ioengine=psync";

#[test]
fn fio_s_progress_does_not_hide_its_json() {
    let folder = Folder::with_file("f", 1 << 20);
    let finding = folder.measured(&format!("cost --no-output -- {FIO} --eta=always"));
    assert!(whole(&finding["phases"][0]["ios"]) > 0, "{finding}");
}

/// Another user could not write to a file of ours.
#[test]
fn fio_is_counted_as_any_user() {
    if !is_root() {
        return skip("only root can become another user");
    }
    let folder = Folder::within(&std::env::temp_dir());
    folder.write("f", vec![0x5a; 1 << 20]);
    fs::set_permissions(folder.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.path("f");
    let reads = Command::new("runuser").args(["-u", "nobody", "--", "test", "-r"]).arg(&file).status();
    if !reads.is_ok_and(|status| status.success()) {
        return skip("nobody may not read temporary files");
    }
    for starter in ["runuser -u nobody --", "setpriv --reuid nobody --clear-groups"] {
        let finding = folder.measured(&format!("cost --no-output -- {starter} {FIO}"));
        assert!(whole(&finding["phases"][0]["ios"]) > 0, "{starter}: {finding}");
    }
}

#[test]
fn a_failing_fio_is_reported() {
    let folder = Folder::new();
    let cost = |arguments: &str| {
        let ended =
            folder.iotoll(&format!("cost --background 200ms --no-save --quiet --format json -- fio {arguments}")).run();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
        let finding = ended.json();
        assert_eq!(finding["outcome"]["failed"], "the command ended with status 1");
        finding
    };
    let option = cost("--name=a --nosuchoption=1");
    assert!(warns(&option, "work_unknown", &["fio did not report its I/O"]), "{}", option["warnings"]);
    assert!(option["phases"][0]["cycles_per_io"].is_null());
    // A job that fails is in fio's JSON, without I/O.
    cost("--name=a --rw=read --size=1m --filename=/proc/version/x");
}

/// A server of iperf3 for one client.
struct Iperf3Server {
    _peer: Peer,
    port: u16,
}

impl Iperf3Server {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let peer = Peer::start(Command::new("iperf3").args(["-s", "-B", "127.0.0.1", "-p", &port.to_string()]));
        assert!(super::iotoll::eventually(|| TcpStream::connect(("127.0.0.1", port)).is_ok()), "iperf3 did not listen");
        Self { _peer: peer, port }
    }
}

#[test]
fn iperf3_counts_for_itself() {
    let (folder, server) = (Folder::new(), Iperf3Server::start());
    let client = format!("iperf3 -c 127.0.0.1 -p {} -t 1", server.port);
    let tcp = folder.measured(&format!("cost -- {client} -l 64k"));
    let phase = &tcp["phases"][0];
    assert!(whole(&phase["bytes"]) > 1 << 20, "{phase}");
    assert_eq!(whole(&phase["ios"]), whole(&phase["bytes"]) / 65_536);
    let both = folder.measured(&format!("cost -- {client} -l 64k --bidir"));
    let job = &both["jobs"][0];
    assert!(whole(&job["read"]["bytes"]) > 1 << 20 && whole(&job["write"]["bytes"]) > 1 << 20, "{job}");
    if !skip_without_idle_time(&tcp) {
        assert!(number(&phase["cycles_per_io_gross"]) > 0.0 && phase["cycles_per_byte"].is_number(), "{phase}");
    }
    let udp = folder.measured(&format!("cost -- {client} -u -b 10m -l 1000"));
    let phase = &udp["phases"][0];
    assert_eq!(whole(&phase["bytes"]), whole(&phase["ios"]) * 1000, "{phase}");
    drop(server);
    let ended = folder.iotoll(&format!("cost --background 200ms --no-save --quiet --format json -- {client}")).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let why = ended.json()["outcome"]["failed"].to_string();
    assert!(why.contains("iperf3") && why.contains("refused"), "{why}");
}

#[test]
fn the_kernel_counts_packets() {
    let (folder, server) = (Folder::new(), Iperf3Server::start());
    let options = format!("cost --no-output --count net:lo -- iperf3 -c 127.0.0.1 -p {} -t 1", server.port);
    let finding = folder.measured(&options);
    let (phase, job) = (&finding["phases"][0], &finding["jobs"][0]);
    assert!(whole(&phase["ios"]) > 100 && whole(&phase["bytes"]) > 1 << 20, "{phase}");
    assert_eq!((job["name"].as_str(), job["engine"].as_str()), (Some("net:lo"), Some("counter")));
    assert!(finding["counted_by"].as_str().is_some_and(|words| words.contains("net:lo")), "{}", finding["counted_by"]);
}

#[test]
fn the_kernel_counts_blocks() {
    let folder = Folder::with_file("image", 8 << 20);
    let device = match LoopDevice::attach(&folder.path("image"), &[]) {
        Ok(device) => device,
        Err(reason) => return skip(&reason),
    };
    let options =
        format!("--count block:{} -- dd if={} of=/dev/null bs=64k iflag=direct count=64", device.name(), device.path);
    let finding = folder
        .iotoll(&format!("cost --background 200ms --no-save --quiet --no-output --format json {options}"))
        .run()
        .done();
    let phase = &finding.json()["phases"][0];
    assert!(whole(&phase["ios"]) >= 64 && whole(&phase["bytes"]) >= 4 << 20, "{phase}");
}

#[test]
fn a_probe_counts_the_ios_of_a_command() {
    let folder = Folder::new();
    let finding = folder.measured("cost --count vmstat.pgfault -- sh -c true");
    assert!(whole(&finding["phases"][0]["ios"]) > 0, "{}", finding["phases"]);
}
