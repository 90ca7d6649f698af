//! `iotoll serve` with common clients and with our own.

use super::iotoll::{Ended, Folder, Running, at_once, eventually, whole};
use super::machine::{skip, tool};
use rustix::process::{Resource, Signal, getrlimit, setrlimit};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

const SIZE: usize = 8 << 20;

/// A server of ours in a folder of its own, ended on drop. Its path is short, because paths of Unix sockets must be.
pub struct Served {
    pub folder: Folder,
    running: Option<Running>,
    pub uri: String,
}

impl Served {
    pub fn new(options: &str) -> Self {
        Self::under(&[], options)
    }

    /// On one CPU.
    pub fn on_cpu(options: &str, cpu: u32) -> Self {
        Self::under(&["taskset", "-c", &cpu.to_string()], options)
    }

    fn under(command: &[&str], options: &str) -> Self {
        let folder = Folder::within(&std::env::temp_dir());
        folder.write("data", noise());
        let output = folder.path("said");
        let serve = folder.iotoll(&format!("serve {options}")).under(command);
        let running = serve.stdout(fs::File::create(&output).unwrap()).start();
        let mut uri = None;
        assert!(eventually(|| {
            let text = fs::read_to_string(&output).unwrap();
            uri = text.strip_prefix("listening on ").and_then(|text| text.strip_suffix('\n')).map(str::to_owned);
            uri.is_some()
        }));
        Self { folder, running: Some(running), uri: uri.unwrap() }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path(name).display().to_string()
    }

    /// Its process id.
    pub fn process(&self) -> u32 {
        self.running.as_ref().unwrap().id()
    }

    /// Ends it. Returns what it left behind, and its result.
    pub fn terminated(mut self) -> (Vec<String>, Ended) {
        let running = self.running.take().unwrap();
        let ended = running.ended_by(Signal::TERM);
        (self.folder.listing().into_keys().collect(), ended)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Its parts end what runs; another panic would end all tests.
            return;
        }
        if let Some(running) = self.running.take() {
            running.ended_by(Signal::TERM);
        }
        self.folder.assert_no_processes();
    }
}

/// Bytes that neither repeat nor are zero.
pub fn noise() -> Vec<u8> {
    (0..SIZE as u64).map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 | 1).collect()
}

#[track_caller]
fn done(program: &str, arguments: &[&str]) -> String {
    tool(program, arguments).unwrap()
}

/// Runs a script with the Python that Debian's libnbd is built for, as nbdsh does.
#[track_caller]
fn libnbd(script: &str) {
    done("/usr/bin/python3", &["-c", &format!("import nbd\nh = nbd.NBD()\n{script}")]);
}

/// TCP and Unix sockets, memory and files.
const WAYS: [&str; 6] = [
    "--backend memory:8m --unix s",
    "--backend memory:8m --listen 127.0.0.1:0 --path-send gather",
    "--backend file:data --listen 127.0.0.1:0 --threads 2",
    "--backend memory:8m --listen 127.0.0.1:0 --path-send zero-copy --path-receive in-place --path-copy non-temporal",
    "--backend file:data --unix s --path-send zero-copy:16k --path-framing page-at-a-time --path-copy plain",
    "--backend memory:8m --unix s --path-send gather --path-framing segment-at-a-time --path-segment 700 --path-crc on",
];

#[test]
fn nbdcopy_and_nbdinfo_work_with_it() {
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
        assert!(ended.stderr.contains(" 0 failed") && ended.stderr.contains(" bytes pulled up"), "{ended:?}");
        assert!(!left.contains(&"s".to_owned()), "the socket is removed");
    });
}

/// Bytes of a file that are in the page cache.
fn cached(path: &str) -> u64 {
    let output = done("fincore", &["--bytes", "--noheadings", "--output", "RES", path]);
    output.trim().parse().unwrap()
}

/// Whole blocks bypass the cache, and all other requests work too.
#[test]
fn direct_bypasses_the_page_cache() {
    let folder = Folder::within(&std::env::temp_dir());
    folder.write("data", b"1");
    let usable = folder.iotoll("serve --backend file:data --direct --unix /nowhere/s").run();
    if usable.stderr.contains("has no O_DIRECT") {
        return skip("the temporary folder's file system has no O_DIRECT");
    }
    let fresh = |served: &Served| {
        served.folder.write("other", noise());
        done("sync", &[&served.path("data")]);
        let out = format!("of={}", served.path("data"));
        done("dd", &[&out, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
        cached(&served.path("data"))
    };
    let served = Served::new("--backend file:data --direct --listen 127.0.0.1:0");
    if fresh(&served) > 0 {
        return skip("files of the temporary folder are only in the page cache");
    }
    done("nbdcopy", &["--flush", &served.path("other"), &served.uri]);
    done("nbdcopy", &[&served.uri, &served.path("back")]);
    assert!(served.folder.read("back") == noise());
    assert_eq!(cached(&served.path("data")), 0);
    drop(served);

    let served = Served::new("--backend file:data --listen 127.0.0.1:0");
    assert_eq!(fresh(&served), 0);
    done("nbdcopy", &[&served.uri, &served.path("back")]);
    assert_eq!(cached(&served.path("data")), SIZE as u64, "through the cache, all of it is cached");
    drop(served);
    remote_qemu("--backend file:data --direct --unix s");
}

#[test]
fn qemu_reads_writes_discards_and_compares() {
    at_once(WAYS, remote_qemu);
}

fn remote_qemu(way: &str) {
    let served = Served::new(way);
    let uri = served.uri.as_str();
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
    let output = done("qemu-io", &[&["-f", "raw"], words.as_slice(), &[uri]].concat());
    assert!(!output.contains("Pattern verification failed") && !output.contains("rror"), "{way}: {output}");
    // Writes may have changed the file that it is compared with.
    served.folder.write("fresh", noise());
    done("qemu-img", &["convert", "-n", "-f", "raw", &served.path("fresh"), "-O", "raw", uri]);
    done("qemu-img", &["compare", "-f", "raw", "-F", "raw", &served.path("fresh"), uri]);
    done("qemu-img", &["bench", "-f", "raw", "-c", "2000", "-d", "32", uri]);
}

#[test]
fn libnbd_gets_the_errors_of_the_protocol() {
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

/// Clients that would like structured replies, holes or fast zeros go on without.
#[test]
fn libnbd_reads_a_file_in_one_piece_without_what_is_not_offered() {
    let served = Served::new("--backend file:data --unix s");
    let script = r#"
h.add_meta_context("base:allocation")
h.connect_uri(uri)
expected = open(data, "rb").read()
assert h.pread(len(expected), 0) == expected
assert not h.can_meta_context("base:allocation") and not h.can_fast_zero() and not h.can_cache()
h.zero(1 << 20, 4 << 20)
assert h.pread(1 << 20, 4 << 20) == bytearray(1 << 20)
"#;
    libnbd(&format!("uri = '{}'\ndata = '{}'\n{script}", served.uri, served.path("data")));
}

#[test]
fn fio_verifies_its_writes_on_one_and_many_connections() {
    at_once(WAYS, |way| {
        let served = Served::new(way);
        let uri = format!("--uri={}", served.uri);
        let fixed = ["--name=v", "--ioengine=nbd", &uri, "--iodepth=32", "--verify=crc32c", "--verify_state_save=0"];
        for more in [["--rw=randwrite", "--bs=4k", "--size=8m"], ["--rw=randrw", "--bs=512-64k", "--size=8m"]] {
            done("fio", &[&fixed[..], &more].concat());
        }
    });
}

/// A thousand clients that stop in the middle of a message, half of them in the handshake and half in a request.
#[test]
fn a_thousand_clients_that_stop_half_way_stall_no_other_and_cost_little() {
    const MANY: usize = 1000;
    /// Allowed memory besides the storage, and per connection.
    const OWN: u64 = 16 << 20;
    const EACH: u64 = 16 << 10;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    if limit.current.is_some_and(|limit| limit < 2 * MANY as u64) {
        return skip("the limit of descriptors is too low");
    }
    let served = Served::new("--backend memory:1m --unix s --threads 1");
    let mut stalled: Vec<UnixStream> = Vec::new();
    for number in 0..MANY {
        let mut client = UnixStream::connect(served.path("s")).unwrap();
        client.read_exact(&mut [0; 18]).unwrap();
        if number.is_multiple_of(2) {
            client.write_all(&[0, 0, 0]).unwrap();
        } else {
            // EXPORT_NAME of the default export, and the start of a write of 32 MiB.
            client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
            client.read_exact(&mut [0; 10]).unwrap();
            client.write_all(b"\x25\x60\x95\x13\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0half").unwrap();
        }
        stalled.push(client);
    }
    let script = "assert all(h.pwrite(b'x' * 4096, 4096 * i) is None and h.pread(4096, 4096 * i) for i in range(200))";
    libnbd(&format!("h.connect_uri('{}')\n{script}", served.uri));
    let bytes = most_resident(served.running.as_ref().unwrap().id()).unwrap();
    assert!(bytes < OWN + MANY as u64 * EACH, "{bytes} bytes");
    drop(stalled);
}

/// Peak memory of a live process.
fn most_resident(process: u32) -> Option<u64> {
    status_bytes(process, "VmHWM:")
}

/// A line of /proc/PID/status. RssAnon leaves out the program's own pages, of which an engine touches more than another.
fn status_bytes(process: u32, line: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib = status.lines().find_map(|found| found.strip_prefix(line)?.trim().strip_suffix(" kB"))?;
    Some(kib.parse::<u64>().unwrap() << 10)
}

/// A client that requests much and reads no replies is not served any more; less than a mebibyte is buffered for it.
/// The worst case are copied payloads: a storage that must be copied, and memory with pull-up.
#[test]
fn clients_that_do_not_read_cost_less_than_a_mebibyte_each() {
    const MANY: u64 = 64;
    const COPIED: [&str; 2] = [
        "--backend file:data --unix s --threads 1",
        "--backend memory:8m --unix s --threads 1 --path-send pull-up:32m",
    ];
    at_once(COPIED, |way| {
        let served = Served::new(way);
        let process = served.running.as_ref().unwrap().id();
        let (before, own) = (most_resident(process).unwrap(), status_bytes(process, "RssAnon:").unwrap());
        assert!(own < 12 << 20, "{way}: {own} bytes without anybody");
        let held = held_by_a_socket();
        let clients: Vec<UnixStream> = (0..MANY)
            .map(|number| {
                let mut client = UnixStream::connect(served.path("s")).unwrap();
                client.read_exact(&mut [0; 18]).unwrap();
                client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
                client.read_exact(&mut [0; 10]).unwrap();
                // Reads of 256 KiB and 8 MiB in turn, many at a time, until the server accepts no more.
                let length = [256_u32 << 10, 8 << 20][number as usize % 2].to_be_bytes();
                let request = [&b"\x25\x60\x95\x13\0\0\0\0cookie 8\0\0\0\0\0\0\0\0"[..], &length].concat();
                let requests = request.repeat(2000);
                client.set_nonblocking(true).unwrap();
                let (mut taken, mut from) = (0, 0);
                let mut rests_at = || {
                    while within_a_tenth(|| match client.write(&requests[from..]) {
                        Ok(count) => {
                            taken += count;
                            from = (from + count) % requests.len();
                            true
                        }
                        Err(_) => false,
                    }) {
                        assert!(taken < 64 << 20, "{way}: the server takes everything");
                    }
                    taken
                };
                assert!(eventually(|| rests_at() > held), "{way}: the server reads nothing");
                client
            })
            .collect();
        let most = most_resident(served.running.as_ref().unwrap().id()).unwrap();
        // Served memory counts when it is read; a file does not.
        let storage = if way.contains("memory") { 8 << 20 } else { 0 };
        assert!(most < before + storage + (MANY << 20), "{way}: {before}, then {most} bytes for {}", clients.len());
    });
}

/// Bytes that a Unix socket buffers if nothing reads from it.
fn held_by_a_socket() -> usize {
    let (mut ours, _theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    std::iter::from_fn(|| ours.write(&[0; 28 * 2000]).ok()).sum()
}

/// Whether `holds` becomes true within a tenth of a second.
fn within_a_tenth(mut holds: impl FnMut() -> bool) -> bool {
    (0..20).any(|number| {
        if number > 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        holds()
    })
}

#[test]
fn a_name_with_odd_characters_gives_a_usable_address() {
    let folder = Folder::within(&std::env::temp_dir());
    folder.write("said", b"");
    let output = fs::File::create(folder.path("said")).unwrap();
    let running = folder.iotoll("serve --backend memory:1m --unix").word("a b%c?d").stdout(output).start();
    let text = || String::from_utf8(folder.read("said")).unwrap();
    assert!(eventually(|| text().ends_with('\n')));
    let uri = text().trim().strip_prefix("listening on ").unwrap().to_owned();
    done("nbdinfo", &["--size", &uri]);
    let words = format!(
        "run --background 200ms --no-save --quiet --name=f --ioengine=nbd --rw=read --bs=4k --number_ios=10 --uri={uri}"
    );
    folder.iotoll(&words).run().done();
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
    assert!(!folder.exists("a b%c?d"));
}

#[test]
fn our_client_is_refused_unsupported_requests() {
    let served = Served::new("--backend memory:1m --unix s --read-only");
    let refused = |options: &str, named: &[&str]| {
        let words = format!("run --no-save --quiet --name=f --ioengine=nbd --uri={} {options}", served.uri);
        served.folder.iotoll(&words).run().refused(2, named);
    };
    refused("--rw=write --bs=4k", &["'f'", "does not allow Write"]);
    refused("--rw=read --bs=4k --size=2m", &["1048576 bytes", "use a smaller size="]);
    refused("--rw=read --bs=4k --path_crc=on", &["no checksums", "--path-crc on"]);
    refused("--rw=read --bs=4k --path_null=server", &["path_null", "iotoll serve --path-null server"]);
    refused("--rw=read --bs=4k --inject_at=server", &["inject_at", "iotoll serve --inject-ns N --inject-at server"]);
    let shared = |more: &str, named: &[&str]| refused(&format!("--rw=read --bs=4k --path_tx_queue={more}"), named);
    shared("ring-task --tx_task_cpus=same", &["tx_task_cpus=same", "cpus_allowed"]);
    shared("lock --path_framing=page-at-a-time", &["framing other than one-go"]);
    shared("lock --inject_at=wire --inject_ns=1", &["inject_at=wire"]);
    shared("lock --path_null=wire", &["path_null", "leave out path_tx_queue"]);
    shared("lock --submitters=65", &["--submitters", "1 to 64"]);
}

/// I/Os beyond the server's limit are split into several requests, also with path_null=server and with checksums.
#[test]
fn large_ios_are_split_whatever_the_server_does_with_them() {
    for (way, more) in [
        ("--backend memory:8m --unix s --path-max-payload 16k", ""),
        ("--backend memory:8m --unix s --path-max-payload 16k", "--path_tx_queue=mp-ring"),
        ("--backend memory:8m --listen 127.0.0.1:0 --path-max-payload 16k --path-crc on", "--path_crc=on"),
        ("--backend null:1t --listen 127.0.0.1:0 --path-null server", "--size=8m"),
    ] {
        let served = Served::new(way);
        let words = format!("run --name=f --ioengine=nbd --uri={} --rw=randrw --bs=64k --iodepth=8 {more}", served.uri);
        if way.contains("--path-max-payload") {
            let output = served.folder.iotoll(&format!("{} --no-save --quiet", words.trim())).run();
            output.refused(2, &["bs=65536", "path_max_payload=16384"]);
        }
        let found = served.folder.measured(&format!("{} --path_max_payload=16k --number_ios=100", words.trim()));
        let job = &found["jobs"][0];
        assert_eq!((whole(&job["ios"]), whole(&job["errors"])), (100, 0), "{way}: {job}");
        let (_, ended) = served.terminated();
        // Four per I/O, and a disconnect of each connection.
        let requests: u64 = ended.stderr.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((400..=404).contains(&requests), "{way}: {ended:?}");
    }
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    /// Besides iotoll's own memory: as much as is in flight, and a mebibyte.
    #[test]
    fn a_client_needs_its_data_in_flight_and_a_mebibyte() {
        let served = Served::new("--backend memory:8m --unix s");
        let most = |engine: &str, block: &str| {
            let words = "run --name=m --rw=randrw --size=8m --iodepth=32 --runtime=2s --time_based --no-save --quiet";
            let running = served.folder.iotoll(&format!("{words} {engine} --bs={block}")).start();
            let mut most = 0;
            assert!(eventually(|| {
                let anonymous = status_bytes(running.id(), "RssAnon:");
                most = most.max(anonymous.unwrap_or(0));
                anonymous.is_none()
            }));
            running.wait().done();
            most
        };
        let without = most("--ioengine=null", "512");
        for (block, bytes) in [("4k", 4 << 10), ("256k", 256 << 10)] {
            let with = most(&format!("--ioengine=nbd --uri={}", served.uri), block);
            assert!(with < without + 32 * bytes + (1 << 20), "{block}: {with} bytes, {without} without");
        }
    }
}
