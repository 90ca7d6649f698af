//! Engine `nbd` with common servers.

use super::iotoll::{Folder, at_once, eventually, whole};
use super::machine::Peer;
use super::serving::noise;
use rustix::process::Signal;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// A foreign server on a Unix socket.
pub struct Foreign {
    peer: Peer,
    folder: Folder,
}

impl Foreign {
    /// In the arguments, `SOCKET` stands for its socket, `DATA` for a file full of data, `SETTINGS` for nbd-server's
    /// configuration, and `PID` for its pid file.
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        let folder = Folder::within(&std::env::temp_dir());
        folder.write("data", noise());
        let path = |name: &str| folder.path(name).display().to_string();
        let settings = format!(
            "[generic]\nunixsock = {}\n[data]\nexportname = {}\nflush = true\nfua = true\n",
            path("s"),
            path("data")
        );
        folder.write("settings", settings);
        let argument = |word: &&str| match *word {
            "SOCKET" => path("s"),
            "DATA" => path("data"),
            "SETTINGS" => path("settings"),
            "PID" => path("pid"),
            other => other.to_owned(),
        };
        let peer = Peer::start(Command::new(program).args(arguments.iter().map(argument)));
        // The socket exists some time before the server listens.
        assert!(
            eventually(|| UnixStream::connect(folder.path("s")).is_ok()),
            "{program} {arguments:?} does not listen"
        );
        Self { peer, folder }
    }

    /// nbd-server serves only one client unless it runs in the background.
    fn end_in_background(&self) {
        let Ok(number) = std::fs::read_to_string(self.folder.path("pid")) else { return };
        if let Some(process) = number.trim().parse().ok().and_then(rustix::process::Pid::from_raw) {
            // It may have ended already.
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }

    pub fn uri(&self) -> String {
        self.uri_of("")
    }

    fn uri_of(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.folder.path("s").display())
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.end_in_background();
    }
}

#[test]
fn our_client_works_with_common_servers() {
    const SERVERS: [(&str, &[&str]); 6] = [
        ("nbdkit", &["-f", "-U", "SOCKET", "memory", "8m"]),
        ("nbdkit", &["-f", "-U", "SOCKET", "file", "DATA"]),
        ("nbdkit", &["-f", "-U", "SOCKET", "--filter=delay", "memory", "8m", "rdelay=1ms"]),
        // Servers truncate and pad data that does not fit their storage.
        (
            "nbdkit",
            &["-f", "-U", "SOCKET", "--filter=blocksize", "memory", "8m", "minblock=8k", "maxdata=8k", "maxlen=8k"],
        ),
        ("nbd-server", &["-C", "SETTINGS", "-p", "PID"]),
        ("qemu-nbd", &["-f", "raw", "-t", "--shared=4", "-k", "SOCKET", "DATA"]),
    ];
    at_once(SERVERS, |(program, arguments)| {
        let foreign = Foreign::start(program, arguments);
        let uri = foreign.uri_of(if program == "nbd-server" { "data" } else { "" });
        for (rw, more, ios) in [
            ("randread", "", 400),
            ("randwrite", "", 400),
            ("randrw", "", 400),
            ("write", "", 400),
            ("randrw", "--numjobs=3 --group_reporting --path_tx_queue=mp-ring", 1200),
            ("randrw", "--numjobs=3 --group_reporting --path_tx_queue=ring-task --submitters=2", 1200),
        ] {
            let options = format!(
                "run --name=f --ioengine=nbd --uri={uri} --rw={rw} --bs=4k,16k --iodepth=16 --number_ios=400 --fsync=100 {more}"
            );
            let found = foreign.folder.measured(options.trim());
            let job = &found["jobs"][0];
            assert_eq!(
                (whole(&job["ios"]), whole(&job["errors"])),
                (ios, 0),
                "{program} {arguments:?} {rw} {more}: {job}"
            );
        }
    });
}

#[test]
fn a_server_s_errors_and_its_end_are_errors_of_the_job() {
    let wrong = Foreign::start("nbdkit", &["-f", "-U", "SOCKET", "--filter=error", "memory", "8m", "error-rate=100%"]);
    let job = |foreign: &Foreign, more: &str| {
        let uri = foreign.uri();
        let words =
            format!("run --background 200ms --no-save --quiet --format json --name=f --ioengine=nbd --uri={uri}");
        foreign.folder.iotoll(&format!("{words} --rw=randread --bs=4k {more}"))
    };
    let ended = job(&wrong, "--number_ios=10").run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("'f'") || ended.stdout.contains("\"errors\""), "{ended:?}");
    let mut dying = Foreign::start("nbdkit", &["-f", "-U", "SOCKET", "memory", "8m"]);
    let running = job(&dying, "--time_based --runtime=30").start();
    assert!(eventually(|| running.has_threads("job f", 1)));
    std::thread::sleep(std::time::Duration::from_millis(500));
    dying.peer.end();
    let ended = running.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("connection") || ended.stderr.contains("connection"), "{ended:?}");
    let gone = job(&dying, "--number_ios=10").run();
    gone.refused(2, &["'f'", "connecting to", "is the server running?"]);
}

/// The wait for a server that never answers again is limited, and the results are saved.
#[test]
fn a_silent_server_fails_the_job_after_the_job_is_asked_to_end() {
    let silent = Foreign::start("nbdkit", &["-f", "-U", "SOCKET", "--filter=delay", "memory", "8m", "rdelay=3600"]);
    let words = format!(
        "run --background 200ms --quiet --out kept --name=f --ioengine=nbd --uri={} --rw=randread --bs=4k --iodepth=4 --runtime=600 \
         --time_based",
        silent.uri()
    );
    let running = silent.folder.iotoll(&words).start();
    assert!(eventually(|| running.has_threads("job f", 1)));
    std::thread::sleep(std::time::Duration::from_millis(500));
    let ended = running.ended_by(Signal::TERM);
    assert!(matches!(ended.code, Some(1 | 130)), "{ended:?}");
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert!(output.contains("has been silent") && output.contains("4 requests not answered"), "{ended:?}");
    assert!(silent.folder.exists("kept/record.jsonl"), "{ended:?}");
}

/// The user must respect a server's limits; this is checked before anything is sent.
#[test]
fn requests_beyond_a_server_s_limits_are_refused_with_the_limits() {
    let limits = "-f -U SOCKET --filter=blocksize-policy memory 8m blocksize-minimum=4k blocksize-maximum=64k \
                  blocksize-error-policy=error";
    let foreign = Foreign::start("nbdkit", &limits.split_whitespace().collect::<Vec<_>>());
    let job = |options: &str| {
        let words = format!("run --no-save --quiet --name=f --ioengine=nbd --uri={} {options}", foreign.uri());
        foreign.folder.iotoll(&words).run()
    };
    job("--rw=randread --bs=512").refused(2, &["'f'", "multiples of 4096 bytes", "bs="]);
    job("--rw=randread --bs=128k").refused(2, &["'f'", "bs=131072", "path_max_payload=65536"]);
    job("--rw=randrw --bs=128k --path_max_payload=64k --number_ios=20 --background 200ms").done();
}
