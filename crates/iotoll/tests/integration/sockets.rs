//! Engine net: two jobs of one file, and a job with fio at the other end. Each block is sent and received once, and all ends by itself.

use super::iotoll::{Folder, PROGRAM, at_once, eventually, number, whole};
use super::like_fio::joined;
use super::machine::{has, skip};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Blocks of 4 KiB.
const BLOCKS: u64 = 64;

/// A port that nobody uses.
fn port() -> u16 {
    loop {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if UdpSocket::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// Options that both ends have, and those of the receiver and the sender alone.
fn ends(protocol: &str, folder: &Folder) -> (String, String, String) {
    let (tcp, place) = (protocol.starts_with("tcp"), folder.path("s"));
    let common = format!("ioengine=net protocol={protocol} bs=4k size=256k");
    if protocol == "unix" {
        let both = format!("{common} hostname={}", place.display());
        return (both, "rw=read".to_owned(), "rw=write".to_owned());
    }
    let host = if protocol.ends_with("v6") { "::1" } else { "127.0.0.1" };
    let receiver = if tcp { "rw=read listen=1" } else { "rw=read" };
    (format!("{common} port={}", port()), receiver.to_owned(), format!("rw=write hostname={host}"))
}

fn lines(options: &str) -> String {
    options.replace(' ', "\n")
}

/// A job file with both ends, the sender with these options too.
fn pair(protocol: &str, folder: &Folder, more: &str) -> String {
    let (both, receiver, sender) = ends(protocol, folder);
    format!("[global]\n{}\n[to]\n{}\n[from]\n{}\n", lines(&format!("{both} {more}")), lines(&receiver), lines(&sender))
}

fn job<'a>(finding: &'a Value, name: &str) -> &'a Value {
    finding["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap()
}

/// Datagrams may be lost: those that came and those that are known to be lost are not more than were sent.
fn check(protocol: &str, (sent, came, lost): (u64, u64, u64)) {
    assert_eq!(sent, BLOCKS, "{protocol}");
    if protocol.starts_with("udp") {
        assert!((1..=BLOCKS).contains(&came) && came + lost <= BLOCKS, "{protocol}: {came} {lost}");
    } else {
        assert_eq!(came, BLOCKS, "{protocol}");
    }
}

const PROTOCOLS: [&str; 5] = ["tcp", "tcpv6", "udp", "udpv6", "unix"];

fn has_six() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

#[test]
fn two_jobs_of_a_file_send_and_receive_each_block() {
    at_once(PROTOCOLS, |protocol| {
        if protocol.ends_with("v6") && !has_six() {
            return skip("two_jobs_of_a_file_send_and_receive_each_block", "no IPv6 here");
        }
        let folder = Folder::new();
        folder.write("job.fio", pair(protocol, &folder, "startdelay=0"));
        let ended = folder.iotoll("run --no-save --quiet --background 200ms --format json job.fio").run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{protocol}");
        let finding = ended.json();
        let (to, from) = (job(&finding, "to"), job(&finding, "from"));
        let lost = to["read"]["lost"].as_u64().unwrap_or(0);
        check(protocol, (whole(&from["write"]["ios"]), whole(&to["read"]["ios"]), lost));
        assert_eq!(whole(&to["read"]["ios"]) * 4096, whole(&to["bytes"]));
        // The phase counts both ends.
        assert_eq!(whole(&finding["phases"][0]["ios"]), whole(&to["ios"]) + whole(&from["ios"]));
        assert!(!folder.exists("s"), "the socket is removed");
    });
}

#[test]
fn each_block_comes_back_and_time_ends_both_ends() {
    at_once(["tcp", "udp", "unix"], |protocol| {
        let folder = Folder::new();
        let finding = folder.measured_job(&pair(protocol, &folder, "pingpong=1 rate_iops=2000"));
        for name in ["to", "from"] {
            assert_eq!(whole(&job(&finding, name)["ios"]), BLOCKS, "{protocol} {name}");
        }
        let folder = Folder::new();
        let begun = Instant::now();
        folder.write("job.fio", pair(protocol, &folder, "runtime=500ms time_based=1"));
        let ended = folder.iotoll("run --no-save --quiet --background 200ms --format json job.fio").run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{protocol}");
        let seconds = number(&job(&ended.json(), "from")["wall_seconds"]);
        assert!(seconds > 0.45 && begun.elapsed().as_secs() < 20, "{protocol}: {seconds}");
    });
}

/// The sheet says what the cost is divided by, and the clock of the receiver begins with the sender's.
#[test]
fn the_sheet_says_that_a_block_counts_at_both_ends() {
    let folder = Folder::new();
    let (both, receiver, sender) = ends("tcp", &folder);
    let job_file =
        format!("[global]\n{}\n[to]\n{}\n[from]\nstartdelay=1\n{}\n", lines(&both), lines(&receiver), lines(&sender));
    folder.write("job.fio", job_file);
    let ended = folder.iotoll("run --full --out r --quiet --background 200ms job.fio").run();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let sheet = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(sheet.contains("is two I/Os, one at each end"), "{sheet}");
    let finding = folder.iotoll("report --format json r").run().json();
    let seconds = number(&job(&finding, "to")["wall_seconds"]);
    assert!(seconds < 0.9, "{seconds}");
}

/// Whether something waits for the other end.
fn is_there(protocol: &str, folder: &Folder, options: &str) -> bool {
    let port = options.split("port=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u16>().ok());
    let bound = |table: &str, state: &str| {
        let table = fs::read_to_string(table).unwrap_or_default();
        let place = format!(":{:04X}", port.unwrap_or(0));
        table.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words.as_slice(), [_, local, _, found, ..] if local.ends_with(&place) && *found == state)
        })
    };
    match protocol {
        "tcp" => bound("/proc/net/tcp", "0A"),
        "udp" => bound("/proc/net/udp", "07"),
        _ => fs::metadata(folder.path("s")).is_ok_and(|found| found.file_type().is_socket()),
    }
}

fn flags(options: &str) -> Vec<String> {
    options.split(' ').map(|option| format!("--{option}")).collect()
}

fn start(program: &[&str], options: &str, output: &Path, folder: &Folder) -> Child {
    let (program, arguments) = program.split_first().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).args(flags(options)).current_dir(folder.path(".")).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", folder.path("state"));
    command.stdout(fs::File::create(output).unwrap()).stderr(Stdio::null()).spawn().unwrap()
}

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    // fio says that it waits.
    let begin = text.find('{').unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(&text[begin..]).unwrap()
}

#[test]
fn fio_is_the_other_end() {
    const FIO: &[&str] = &["fio", "--name=a", "--thread", "--output-format=json"];
    const OURS: &[&str] =
        &[PROGRAM, "run", "--name=a", "--no-save", "--quiet", "--background", "200ms", "--format", "json"];
    if !has("fio") {
        return skip("fio_is_the_other_end", "no fio here");
    }
    let cases = ["tcp", "udp", "unix"].into_iter().flat_map(|protocol| [(protocol, true), (protocol, false)]);
    at_once(cases, |(protocol, receives)| {
        let folder = Folder::new();
        let (both, receiver, sender) = ends(protocol, &folder);
        let (receiver, sender) = (format!("{both} {receiver}"), format!("{both} {sender} rate_iops=1000"));
        let (waiting, coming) = if receives { (OURS, FIO) } else { (FIO, OURS) };
        let (to, from) = (folder.path("to.json"), folder.path("from.json"));
        let mut waiting = start(waiting, &receiver, &to, &folder);
        assert!(eventually(|| is_there(protocol, &folder, &both)), "{protocol}");
        // fio binds its socket before it is ready to take the first message.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let mut coming = start(coming, &sender, &from, &folder);
        let ended = [coming.wait().unwrap().success(), waiting.wait().unwrap().success()];
        // fio 3.33 cannot send its last message over a Unix socket, and ends with an error.
        let fio_fails = protocol == "unix";
        let expected = if receives { [!fio_fails, true] } else { [true, !fio_fails] };
        assert_eq!(ended, expected, "{protocol}, iotoll receives: {receives}");
        let (to, from) = (json(&to), json(&from));
        let (to, from) = (&to["jobs"][0]["read"], &from["jobs"][0]["write"]);
        let of_fio = |direction: &Value| whole(&direction["io_bytes"]) / 4096;
        let numbers = if receives {
            (of_fio(from), whole(&to["ios"]), to["lost"].as_u64().unwrap_or(0))
        } else {
            (whole(&from["ios"]), of_fio(to), 0)
        };
        if receives {
            check(protocol, numbers);
            return;
        }
        // fio 3.33 counts too few bytes where a block comes in pieces, also from fio.
        let (sent, came, _) = numbers;
        assert!(sent == BLOCKS && (BLOCKS - 16..=BLOCKS).contains(&came), "{protocol}: {sent} {came}");
    });
}

/// Calls on sockets that move a block or end a transfer: name, length and flags.
fn calls(trace: &str) -> Vec<String> {
    let of_block = |line: &String| {
        let (_, call) = line.split_once(' ')?;
        let (name, arguments) = call.trim_start().split_once('(')?;
        let arguments = arguments.replace("MSG_NOSIGNAL|", "").replace("MSG_NOSIGNAL", "0");
        // fd, data, length, flags…
        let (_, after) = arguments.split_once("..., ").or_else(|| arguments.split_once("\", "))?;
        let mut words = after.split(", ");
        let (length, flags) = (words.next()?, words.next()?.trim_end_matches(')'));
        (name.starts_with("send") && length == "4096").then(|| format!("{name} {flags}"))
    };
    let mut calls: Vec<String> = joined(trace).iter().filter_map(of_block).collect();
    calls.sort();
    calls
}

#[test]
fn blocks_are_sent_by_the_calls_of_fio() {
    if !has("fio") || !has("strace") {
        return skip("blocks_are_sent_by_the_calls_of_fio", "no fio or no strace here");
    }
    at_once(["tcp", "udp"], |protocol| {
        let sent = |command: &[&str]| -> Result<Vec<String>, String> {
            let folder = Folder::new();
            folder.write("job.fio", pair(protocol, &folder, "rate_iops=1000") + "startdelay=1\n");
            let mut strace = Command::new("strace");
            strace.args(["-f", "--seccomp-bpf", "-o", "trace", "-s", "4", "-e", "trace=sendto"]).args(command);
            strace.current_dir(folder.path(".")).env("XDG_STATE_HOME", folder.path("state")).stdin(Stdio::null());
            let ended = strace.output().unwrap();
            let said = [ended.stdout, ended.stderr].concat();
            if !ended.status.success() {
                return Err(String::from_utf8_lossy(&said).into_owned());
            }
            Ok(calls(&String::from_utf8_lossy(&folder.read("trace"))))
        };
        // The receiver of fio may not be ready after a second, and its sender then fails.
        let fio = || sent(&["fio", "job.fio"]);
        let fio = fio().or_else(|_| fio()).or_else(|_| fio()).unwrap();
        let ours = sent(&[PROGRAM, "run", "--no-save", "--background", "200ms", "job.fio"]).unwrap();
        assert_eq!(fio.len() as u64, BLOCKS, "{fio:?}");
        assert_eq!(fio, ours, "{protocol}");
    });
}

#[test]
fn wrong_use_is_one_clear_line_and_waiting_ends() {
    let folder = Folder::new();
    let other = TcpListener::bind("0.0.0.0:0").unwrap();
    let taken = other.local_addr().unwrap().port();
    folder.write("file", "no socket");
    let free = port();
    let words = "run --no-save --quiet --background 200ms --name=a --ioengine=net --size=1m";
    let nobody = ["nobody listens there; start the other end first"];
    for (options, named) in [
        (format!("--rw=write --hostname=127.0.0.1 --port={free}"), &nobody[..]),
        (format!("--rw=write --protocol=udp --hostname=127.0.0.1 --port={free}"), &nobody),
        ("--rw=write --protocol=unix --hostname=none".to_owned(), &nobody),
        (format!("--rw=read --listen --port={taken}"), &["is in use; choose another port"]),
        ("--rw=read --protocol=unix --hostname=file".to_owned(), &["no socket; choose another path"]),
    ] {
        let ended = folder.iotoll(&format!("{words} {options}")).run();
        ended.refused(2, named);
    }
    drop(other);
    let running = folder.iotoll(&format!("{words} --rw=read --listen --port={free}")).start();
    assert!(eventually(|| is_there("tcp", &folder, &format!("port={free}"))));
    running.signal(Signal::INT);
    let begun = Instant::now();
    let ended = running.wait();
    assert!(begun.elapsed().as_secs() < 10, "{ended:?}");
    assert!(
        ended.code == Some(130) && ended.stderr.starts_with("iotoll: interrupted before the first I/O"),
        "{ended:?}"
    );
}

/// A job replaces the socket of a program that has ended, and leaves one alone at which a program listens.
#[test]
fn a_socket_belongs_to_the_program_that_listens_there() {
    let folder = Folder::new();
    let words = "run --no-save --quiet --background 200ms --name=a --ioengine=net --size=1m --rw=read --protocol=unix --hostname=s";
    let left = std::os::unix::net::UnixListener::bind(folder.path("s")).unwrap();
    folder.iotoll(words).run().refused(2, &["another program listens there; choose another path"]);
    drop(left);
    let running = folder.iotoll(words).start();
    let listens = || std::os::unix::net::UnixStream::connect(folder.path("s"));
    let mut came = None;
    assert!(eventually(|| {
        came = listens().ok();
        came.is_some()
    }));
    // Its socket is gone: it must not remove the one that another program makes in that place.
    fs::remove_file(folder.path("s")).unwrap();
    let other = std::os::unix::net::UnixListener::bind(folder.path("s")).unwrap();
    drop(came);
    running.wait();
    assert!(listens().is_ok());
    drop(other);
}
