//! `iotoll serve` and the clients that people have; engine `nbd` and the servers that people have.

use super::iotoll::{Ended, Folder, Running, at_once, eventually, whole};
use super::machine::{Peer, tool};
use rustix::process::Signal;
use std::fs;
use std::process::Command;

const SIZE: usize = 8 << 20;

/// A server of ours in a folder of its own, ended when dropped. Its path is short, as the names of Unix sockets have to be.
struct Served {
    folder: Folder,
    running: Option<Running>,
    uri: String,
}

impl Served {
    fn new(options: &str) -> Self {
        let folder = Folder::within(&std::env::temp_dir());
        folder.write("data", noise());
        let said = folder.path("said");
        let running = folder.iotoll(&format!("serve {options}")).stdout(fs::File::create(&said).unwrap()).start();
        let mut uri = None;
        assert!(eventually(|| {
            let text = fs::read_to_string(&said).unwrap();
            uri = text.strip_prefix("listening on ").and_then(|text| text.strip_suffix('\n')).map(str::to_owned);
            uri.is_some()
        }));
        Self { folder, running: Some(running), uri: uri.unwrap() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name).display().to_string()
    }

    /// Ends it: what it said, and what it left behind.
    fn terminated(mut self) -> (Vec<String>, Ended) {
        let running = self.running.take().unwrap();
        running.signal(Signal::TERM);
        let ended = running.wait();
        (self.folder.listing().into_keys().collect(), ended)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal(Signal::TERM);
            running.wait();
        }
        self.folder.assert_no_processes();
    }
}

/// Bytes that neither repeat nor are zero.
fn noise() -> Vec<u8> {
    (0..SIZE as u64).map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 | 1).collect()
}

#[track_caller]
fn done(program: &str, arguments: &[&str]) -> String {
    tool(program, arguments).unwrap()
}

/// What nbdsh does, with the Python that Debian's libnbd is built for.
#[track_caller]
fn libnbd(script: &str) {
    done("/usr/bin/python3", &["-c", &format!("import nbd\nh = nbd.NBD()\n{script}")]);
}

/// TCP and Unix sockets, memory and files.
const WAYS: [&str; 3] = [
    "--backend memory:8m --unix s",
    "--backend memory:8m --listen 127.0.0.1:0 --path-send gather",
    "--backend file:data --listen 127.0.0.1:0 --threads 2",
];

#[test]
fn nbdcopy_and_nbdinfo_find_what_they_expect() {
    at_once(WAYS, |way| {
        let served = Served::new(way);
        let (uri, back) = (served.uri.as_str(), served.path("back"));
        let info = done("nbdinfo", &["--json", uri]);
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        let export = &info["exports"][0];
        assert_eq!((whole(&export["export-size"]), export["can_multi_conn"].as_bool()), (SIZE as u64, Some(true)));
        assert_eq!(done("nbdinfo", &["--size", uri]), SIZE.to_string());
        done("nbdcopy", &["--connections=4", "--flush", &served.path("data"), uri]);
        done("nbdcopy", &["--connections=4", uri, &back]);
        assert!(served.folder.read("back") == noise(), "{way}");
        let (left, ended) = served.terminated();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains(" 0 with an error") && ended.stderr.contains("total pull-up was"), "{ended:?}");
        assert!(!left.contains(&"s".to_owned()), "the socket is removed");
    });
}

#[test]
fn qemu_reads_writes_discards_and_compares() {
    at_once(WAYS, |way| {
        let served = Served::new(way);
        let (uri, data) = (served.uri.as_str(), served.path("data"));
        let commands = [
            "write -P 5 0 1M",
            "read -P 5 0 1M",
            "write -f -P 6 4097 511",
            "read -P 6 4097 511",
            "discard 0 1M",
            "write -z 2M 64k",
            "read -P 0 2M 64k",
            "write -z -u 3M 64k",
            "read -P 0 3M 64k",
            "flush",
        ];
        let words: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
        let said = done("qemu-io", &[&["-f", "raw"], words.as_slice(), &[uri]].concat());
        assert!(!said.contains("Pattern verification failed") && !said.contains("rror"), "{way}: {said}");
        // What was written may have changed the file that it is held against.
        served.folder.write("fresh", noise());
        done("qemu-img", &["convert", "-n", "-f", "raw", &served.path("fresh"), "-O", "raw", uri]);
        done("qemu-img", &["compare", "-f", "raw", "-F", "raw", &served.path("fresh"), uri]);
        done("qemu-img", &["bench", "-f", "raw", "-c", "2000", "-d", "32", uri]);
        drop(data);
    });
}

#[test]
fn libnbd_gets_the_errors_that_the_protocol_has() {
    let served = Served::new("--backend memory:1m --unix s --read-only --export a --export b");
    let script = r#"
import errno
h.set_strict_mode(0)
h.connect_uri(uri)
assert h.get_size() == 1 << 20 and h.is_read_only()
assert h.pread(512, 0) == bytearray(512)
for wrong, number in [(lambda: h.pwrite(b"x", 0), errno.EPERM), (lambda: h.pread(2, (1 << 20) - 1), errno.EINVAL),
                      (lambda: h.trim(512, 0), errno.EPERM), (lambda: h.zero(512, 0), errno.EPERM)]:
    try:
        wrong()
    except nbd.Error as error:
        assert error.errnum == number, (error.errnum, number)
    else:
        raise SystemExit("that was allowed")
h.flush()
h.shutdown()
"#;
    libnbd(&format!("uri = '{}'\n{script}", served.uri.replace("/?", "/b?")));
    let names = done("nbdinfo", &["--list", &served.uri]);
    assert!(names.contains("export=\"a\"") && names.contains("export=\"b\""), "{names}");
    let wrong = served.uri.replace("/?", "/nowhere?");
    assert!(tool("nbdinfo", &[&wrong]).is_err());
}

#[test]
fn libnbd_sees_holes_and_large_reads_in_pieces() {
    let served = Served::new("--backend file:data --unix s");
    let script = r#"
h.add_meta_context("base:allocation")
h.connect_uri(uri)
expected = open(data, "rb").read()
assert h.pread(len(expected), 0) == expected
h.zero(1 << 20, 4 << 20)
found = []
h.block_status(8 << 20, 0, lambda context, offset, entries, error: found.extend(entries) or 0)
assert sum(found[0::2]) == 8 << 20, found
at = 0
for length, kind in zip(found[0::2], found[1::2]):
    if 4 << 20 <= at < 5 << 20: assert kind == 3, found
    else: assert kind == 0, found
    at += length
chunks = []
h.pread_structured(1 << 20, 0, lambda data, offset, status, error: chunks.append((offset, len(data))) or 0)
assert sum(length for _, length in chunks) == 1 << 20
"#;
    libnbd(&format!("uri = '{}'\ndata = '{}'\n{script}", served.uri, served.path("data")));
}

#[test]
fn fio_verifies_what_it_wrote_and_so_do_many_connections() {
    at_once(WAYS, |way| {
        let served = Served::new(way);
        let uri = format!("--uri={}", served.uri);
        let fixed = ["--name=v", "--ioengine=nbd", &uri, "--iodepth=32", "--verify=crc32c", "--verify_state_save=0"];
        for more in [["--rw=randwrite", "--bs=4k", "--size=8m"], ["--rw=randrw", "--bs=512-64k", "--size=8m"]] {
            done("fio", &[&fixed[..], &more].concat());
        }
    });
}

#[test]
fn every_word_of_serve_that_is_wrong_is_refused_in_one_line() {
    let folder = Folder::within(&std::env::temp_dir());
    folder.write("there", b"");
    let refused = |options: &str, named: &[&str]| folder.iotoll(&format!("serve {options}")).run().refused(2, named);
    refused("--backend floppy:1m", &["--backend", "floppy:1m", "memory:SIZE"]);
    refused("--backend memory:0", &["--backend", "'0'"]);
    refused("--backend memory:many", &["'many'"]);
    refused("--backend file:nowhere", &["file:nowhere", "check the path"]);
    refused("--backend file:/tmp", &["file:/tmp", "directory"]);
    refused("--backend file:/tmp --read-only", &["file:/tmp", "is no file"]);
    refused("--backend file:/dev/zero", &["file:/dev/zero", "is no file", "--read-only"]);
    refused("--backend memory:1m --unix there", &["--unix there", "remove what is there"]);
    refused("--backend memory:1m --listen 0.0.0.0:0", &["--listen 0.0.0.0:0", "--insecure-network"]);
    refused("--backend memory:1m --export a --export a", &["--export a", "twice"]);
    refused("--backend memory:1m --path-send fast", &["'fast'", "gather"]);
    assert!(folder.exists("there"), "what others made stays");
    assert_eq!(folder.listing().len(), 1);
}

/// A server that is not ours, on a Unix socket.
struct Foreign {
    peer: Peer,
    folder: Folder,
}

impl Foreign {
    /// Of the arguments `SOCKET` is its socket and `DATA` a file that is full of data.
    fn start(program: &str, arguments: &[&str]) -> Self {
        let folder = Folder::within(&std::env::temp_dir());
        folder.write("data", noise());
        let path = |name: &str| folder.path(name).display().to_string();
        let argument = |word: &&str| match *word {
            "SOCKET" => path("s"),
            "DATA" => path("data"),
            other => other.to_owned(),
        };
        let peer = Peer::start(Command::new(program).args(arguments.iter().map(argument)));
        assert!(eventually(|| folder.exists("s")), "{program} {arguments:?} does not listen");
        Self { peer, folder }
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.folder.path("s").display())
    }
}

#[test]
fn our_client_works_with_the_servers_that_people_have() {
    const SERVERS: [(&str, &[&str]); 4] = [
        ("nbdkit", &["-f", "-U", "SOCKET", "memory", "8m"]),
        ("nbdkit", &["-f", "-U", "SOCKET", "file", "DATA"]),
        ("nbdkit", &["-f", "-U", "SOCKET", "--filter=delay", "memory", "8m", "rdelay=1ms"]),
        ("qemu-nbd", &["-f", "raw", "-t", "-k", "SOCKET", "DATA"]),
    ];
    at_once(SERVERS, |(program, arguments)| {
        let foreign = Foreign::start(program, arguments);
        for rw in ["randread", "randwrite", "randrw", "write"] {
            let options = format!(
                "run --name=f --ioengine=nbd --uri={} --rw={rw} --bs=4k,16k --iodepth=16 --number_ios=400 --fsync=100",
                foreign.uri()
            );
            let found = foreign.folder.measured(&options);
            let job = &found["jobs"][0];
            assert_eq!((whole(&job["ios"]), whole(&job["errors"])), (400, 0), "{program} {arguments:?} {rw}: {job}");
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

#[test]
fn our_client_is_refused_what_the_export_does_not_take() {
    let served = Served::new("--backend memory:1m --unix s --read-only");
    let refused = |options: &str, named: &[&str]| {
        let words = format!("run --no-save --quiet --name=f --ioengine=nbd --uri={} {options}", served.uri);
        served.folder.iotoll(&words).run().refused(2, named);
    };
    refused("--rw=write --bs=4k", &["'f'", "takes no Write"]);
    refused("--rw=read --bs=4k --size=2m", &["1048576 bytes", "ask for less"]);
    refused("--rw=read --bs=64m --size=64m", &["bs=67108864", "smaller bs="]);
}
