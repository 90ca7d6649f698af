//! NBD servers and clients: `iotoll serve` with common clients and with our own, and engine `nbd` with common servers.

use super::iotoll::{Ended, Folder, Iotoll, Running, at_once, eventually, whole};
use super::machine::{skip, tool};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Resource, Signal, getrlimit, setrlimit};
use std::fs;
use std::io::{ErrorKind, PipeReader, Read, Write, pipe};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const SIZE: usize = 8 << 20;

/// A server in a folder of its own, in which `data` is full of noise; ended on drop.
pub struct Server {
    pub folder: Folder,
    running: Option<Running>,
    pub uri: String,
}

impl Server {
    /// One of ours.
    pub fn new(options: &str) -> Self {
        Self::ours(options, |iotoll| iotoll)
    }

    /// On one CPU.
    pub fn on_cpu(options: &str, cpu: u32) -> Self {
        Self::ours(options, |iotoll| iotoll.under(&["taskset", "-c", &cpu.to_string()]))
    }

    fn ours(options: &str, with: impl FnOnce(Iotoll) -> Iotoll) -> Self {
        let folder = Folder::temporary();
        folder.write("data", noise());
        let output = fs::File::create(folder.path("said")).unwrap();
        let running = with(folder.iotoll(&format!("serve {options}"))).stdout(output).start();
        let listens = || folder.text("said").starts_with("listening on ") && folder.text("said").ends_with('\n');
        let running = running.when(|_| listens());
        let uri = folder.text("said").trim().trim_start_matches("listening on ").to_owned();
        Self { folder, running: Some(running), uri }
    }

    /// A foreign one, on the socket `s`. nbd-server reads its configuration from `settings`.
    pub fn foreign(command: &str) -> Self {
        let folder = Folder::temporary();
        folder.write("data", noise());
        let [socket, data, pid] = ["s", "data", "pid"].map(|name| folder.name(name));
        let export = format!("[data]\nexportname = {data}\nflush = true\nfua = true\n");
        folder.write("settings", format!("[generic]\nunixsock = {socket}\npidfilename = {pid}\n{export}"));
        let running = folder.command(&command.replace("SOCKET", &socket)).start();
        // The socket exists some time before the server listens. nbd-server goes to the background: only then it serves many clients.
        assert!(eventually(|| UnixStream::connect(&socket).is_ok()), "{command} does not listen");
        let name = if command.starts_with("nbd-server") { "data" } else { "" };
        Self { uri: format!("nbd+unix:///{name}?socket={socket}"), folder, running: Some(running) }
    }

    pub fn process(&self) -> u32 {
        self.running.as_ref().unwrap().id()
    }

    /// Ends it. Returns what it left behind, and its result.
    pub fn terminated(mut self) -> (Vec<String>, Ended) {
        let ended = self.running.take().unwrap().ended_by(Signal::TERM);
        (self.folder.listing().into_keys().collect(), ended)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.running.take());
        for (process, _) in self.folder.processes() {
            // What has gone to the background.
            let _ = rustix::process::kill_process(process, Signal::TERM);
        }
        if !std::thread::panicking() {
            self.folder.assert_no_processes();
        }
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

/// Runs a script with the Python that Debian's libnbd is built for, as nbdsh does.
#[track_caller]
fn libnbd(uri: &str, script: &str) {
    done("/usr/bin/python3", &["-c", &format!("import errno, nbd\nuri = '{uri}'\nh = nbd.NBD()\n{script}")]);
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
fn common_clients_work_with_it() {
    at_once(WAYS, |way| {
        let served = Server::new(way);
        others_work(&served);
        let (left, ended) = served.terminated();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains(" 0 failed") && ended.stderr.contains(" bytes pulled up"), "{ended:?}");
        assert!(!left.contains(&"s".to_owned()), "the socket is removed");
    });
}

/// What nbdinfo, nbdcopy, qemu-io, qemu-img and fio read is what they have written.
#[track_caller]
fn others_work(served: &Server) {
    let (uri, data) = (served.uri.as_str(), served.folder.name("fresh"));
    let info: serde_json::Value = serde_json::from_str(&done("nbdinfo", &["--json", uri])).unwrap();
    let export = &info["exports"][0];
    assert_eq!((whole(&export["export-size"]), export["can_multi_conn"].as_bool()), (SIZE as u64, Some(true)));
    assert_eq!(done("nbdinfo", &["--size", uri]), SIZE.to_string());
    // Writes may change the file that is served.
    served.folder.write("fresh", noise());
    done("nbdcopy", &["--connections=4", "--flush", &data, uri]);
    done("nbdcopy", &["--connections=4", uri, &served.folder.name("back")]);
    assert!(served.folder.read("back") == noise());
    let commands = "write -P 5 0 1M,read -P 5 0 1M,write -f -P 6 4097 511,read -P 6 4097 511,discard 0 1M,\
                    write -z 2M 64k,read -P 0 2M 64k,write -z -u 3M 64k,read -P 0 3M 64k,flush";
    let words: Vec<&str> = commands.split(',').flat_map(|command| ["-c", command]).collect();
    let output = done("qemu-io", &[&["-f", "raw"], words.as_slice(), &[uri]].concat());
    assert!(!output.contains("Pattern verification failed") && !output.contains("rror"), "{output}");
    done("qemu-img", &["convert", "-n", "-f", "raw", &data, "-O", "raw", uri]);
    done("qemu-img", &["compare", "-f", "raw", "-F", "raw", &data, uri]);
    done("qemu-img", &["bench", "-f", "raw", "-c", "2000", "-d", "32", uri]);
    let uri = format!("--uri={uri}");
    let fixed = ["--name=v", "--ioengine=nbd", &uri, "--iodepth=32", "--verify=crc32c", "--verify_state_save=0"];
    for more in [["--rw=randwrite", "--bs=4k", "--size=8m"], ["--rw=randrw", "--bs=512-64k", "--size=8m"]] {
        done("fio", &[&fixed[..], &more].concat());
    }
}

#[test]
fn libnbd_gets_the_errors_of_the_protocol() {
    let served = Server::new("--backend memory:1m --unix s --read-only --export a");
    let script = r#"
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
    libnbd(&served.uri.replace("/?", "/a?"), script);
    let names = done("nbdinfo", &["--list", &served.uri]);
    assert!(names.contains("export=\"a\""), "{names}");
    assert!(tool("nbdinfo", &[&served.uri.replace("/?", "/nowhere?")]).is_err());
}

/// Clients that would like structured replies, holes or fast zeros go on without.
#[test]
fn libnbd_reads_a_file_in_one_piece_without_what_is_not_offered() {
    let served = Server::new("--backend file:data --unix s");
    let script = r#"
h.add_meta_context("base:allocation")
h.connect_uri(uri)
expected = open(uri.split("=")[1][:-1] + "data", "rb").read()
assert h.pread(len(expected), 0) == expected
assert not h.can_meta_context("base:allocation") and not h.can_fast_zero() and not h.can_cache()
h.zero(1 << 20, 4 << 20)
assert h.pread(1 << 20, 4 << 20) == bytearray(1 << 20)
"#;
    libnbd(&served.uri, script);
}

/// A client of the default export that has shaken hands.
fn client(served: &Server) -> UnixStream {
    let mut client = UnixStream::connect(served.folder.path("s")).unwrap();
    client.read_exact(&mut [0; 18]).unwrap();
    client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    client.read_exact(&mut [0; 10]).unwrap();
    client
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
    let served = Server::new("--backend memory:1m --unix s --threads 1");
    let stalled = (0..MANY).map(|number| {
        if number.is_multiple_of(2) {
            let mut stopped = UnixStream::connect(served.folder.path("s")).unwrap();
            stopped.write_all(&[0, 0, 0]).unwrap();
            return stopped;
        }
        // The start of a write of 32 MiB.
        let mut stopped = client(&served);
        stopped.write_all(b"\x25\x60\x95\x13\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0half").unwrap();
        stopped
    });
    let stalled: Vec<UnixStream> = stalled.collect();
    let script = "assert all(h.pwrite(b'x' * 4096, 4096 * i) is None and h.pread(4096, 4096 * i) for i in range(200))";
    libnbd(&served.uri, &format!("h.connect_uri(uri)\n{script}"));
    let bytes = status_bytes(served.process(), "VmHWM:").unwrap();
    assert!(bytes < OWN + MANY as u64 * EACH, "{bytes} bytes");
    drop(stalled);
}

/// A line of /proc/PID/status. VmHWM is the peak; RssAnon leaves out the program's own pages, of which an engine touches more than another.
pub fn status_bytes(process: u32, line: &str) -> Option<u64> {
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
    // What a Unix socket buffers if nothing reads from it.
    let (mut ours, _theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let held: usize = std::iter::from_fn(|| ours.write(&[0; 28 * 2000]).ok()).sum();
    at_once(COPIED, |way| {
        let served = Server::new(way);
        let [before, own] = ["VmHWM:", "RssAnon:"].map(|line| status_bytes(served.process(), line).unwrap());
        assert!(own < 12 << 20, "{way}: {own} bytes without anybody");
        let ask = |number: u64| {
            let mut client = client(&served);
            // Reads of 256 KiB and 8 MiB in turn, many at a time, until the server accepts no more for a tenth of a second.
            let length = [256_u32 << 10, 8 << 20][number as usize % 2].to_be_bytes();
            let requests = [&b"\x25\x60\x95\x13\0\0\0\0cookie 8\0\0\0\0\0\0\0\0"[..], &length].concat().repeat(2000);
            client.set_nonblocking(true).unwrap();
            let (mut taken, mut refused) = (0, 0);
            while refused < 20 || taken <= held {
                match client.write(&requests[taken % requests.len()..]) {
                    Ok(count) => (taken, refused) = (taken + count, 0),
                    Err(_) => {
                        refused += 1;
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                assert!(taken < 64 << 20 && refused < 10_000, "{way}: {taken} bytes taken, refused {refused} times");
            }
            client
        };
        let clients: Vec<UnixStream> = (0..MANY).map(ask).collect();
        let most = status_bytes(served.process(), "VmHWM:").unwrap();
        // Served memory counts when it is read; a file does not.
        let storage = if way.contains("memory") { 8 << 20 } else { 0 };
        assert!(most < before + storage + (MANY << 20), "{way}: {before}, then {most} bytes for {}", clients.len());
    });
}

#[test]
fn a_name_with_odd_characters_gives_a_usable_address() {
    let served = Server::new("--backend memory:1m --unix 'a b%c?d'");
    done("nbdinfo", &["--size", &served.uri]);
    let job = "run --name=f --ioengine=nbd --rw=read --bs=4k --number_ios=10";
    served.folder.measured(&format!("{job} --uri={}", served.uri));
    let (left, ended) = served.terminated();
    assert!(ended.code == Some(0) && !left.contains(&"a b%c?d".to_owned()), "{left:?}");
}

/// Refusals of a job on a server: its words, and what is named.
#[track_caller]
fn refused(served: &Server, cases: &[(&str, &[&str])]) {
    for (options, named) in cases {
        let words = format!("run --no-save --quiet --name=f --ioengine=nbd --uri={} --bs=4k {options}", served.uri);
        served.folder.iotoll(&words).run().refused(2, named);
    }
}

#[test]
fn our_client_is_refused_unsupported_requests() {
    let cases: [(&str, &[&str]); 8] = [
        ("--rw=write", &["'f'", "does not allow Write"]),
        ("--size=2m", &["1048576 bytes", "use a smaller size="]),
        ("--path_crc=on", &["no checksums", "--path-crc on"]),
        ("--path_null=server", &["path_null", "iotoll serve --path-null server"]),
        ("--path_tx_queue=ring-task --tx_task_cpus=same", &["tx_task_cpus=same", "cpus_allowed"]),
        ("--path_tx_queue=lock --path_framing=page-at-a-time", &["framing other than one-go"]),
        ("--path_tx_queue=lock --path_null=wire", &["path_null", "leave out path_tx_queue"]),
        ("--path_tx_queue=lock --submitters=65", &["--submitters", "1 to 64"]),
    ];
    refused(&Server::new("--backend memory:1m --unix s --read-only"), &cases);
}

/// I/Os beyond the server's limit are split into several requests, also with path_null=server and with checksums.
#[test]
fn large_ios_are_split_whatever_the_server_does_with_them() {
    const SMALL: &str = "--backend memory:8m --path-max-payload 16k";
    at_once(
        [
            (format!("{SMALL} --unix s"), ""),
            (format!("{SMALL} --unix s"), "--path_tx_queue=mp-ring"),
            (format!("{SMALL} --listen 127.0.0.1:0 --path-crc on"), "--path_crc=on"),
            ("--backend null:1t --listen 127.0.0.1:0 --path-null server".to_owned(), "--size=8m"),
        ],
        |(way, more)| {
            let served = Server::new(&way);
            if way.contains("--path-max-payload") {
                refused(&served, &[(&format!("--bs=64k {more}"), &["bs=65536", "path_max_payload=16384"])]);
            }
            let words = format!("--rw=randrw --bs=64k --iodepth=8 {more} --path_max_payload=16k --number_ios=100");
            let found = served.folder.measured(&format!("run --name=f --ioengine=nbd --uri={} {words}", served.uri));
            let job = &found["jobs"][0];
            assert_eq!((whole(&job["ios"]), whole(&job["errors"])), (100, 0), "{way}: {job}");
            let (_, ended) = served.terminated();
            // Four per I/O, and a disconnect of each connection.
            let requests: u64 = ended.stderr.split(' ').nth(1).unwrap().parse().unwrap();
            assert!((400..=404).contains(&requests), "{way}: {ended:?}");
        },
    );
}

#[test]
fn another_server_s_socket_stays() {
    let first = Server::new("--backend memory:1m --unix s");
    fs::remove_file(first.folder.path("s")).unwrap();
    let _another = std::os::unix::net::UnixListener::bind(first.folder.path("s")).unwrap();
    let (left, _) = first.terminated();
    assert!(left.contains(&"s".to_owned()), "{left:?}");
}

#[test]
fn a_server_outlives_its_terminal_with_nohup() {
    for (under, goes) in [("env", true), ("nohup", false)] {
        let mut served = Server::ours("--backend memory:1m --unix s", |serve| serve.under(&[under]));
        let running = served.running.as_mut().unwrap();
        running.signal(Signal::HUP);
        if !goes {
            // Long enough to catch most errors.
            std::thread::sleep(Duration::from_millis(300));
            assert!(!running.ended());
            running.signal(Signal::TERM);
        }
        assert!(eventually(|| running.ended()));
    }
}

/// The number of event loops, and what the server's threads have waited for.
fn threads(served: &Server) -> (usize, Vec<String>) {
    let tasks = fs::read_dir(format!("/proc/{}/task", served.process())).unwrap();
    let statuses = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let statuses: Vec<String> = statuses.collect();
    let loops = statuses.iter().filter(|status| status.starts_with("Name:\tiotoll-serve"));
    let waits = statuses.iter().flat_map(|status| status.lines()).filter(|line| line.contains("ctxt_switches"));
    (loops.count(), waits.map(str::to_owned).collect())
}

#[test]
fn a_server_has_a_thread_for_each_cpu_that_it_may_use() {
    let cpus = std::thread::available_parallelism().unwrap().get().min(256);
    let options = "--backend memory:1m --unix s";
    // It listens before all of its threads have their names.
    let has = |served: Server, loops: usize| eventually(|| threads(&served).0 == loops);
    assert!(has(Server::new(options), cpus));
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..).find(|&cpu| allowed.is_set(cpu)).unwrap();
    assert!(has(Server::on_cpu(options, cpu as u32), 1));
}

#[test]
fn threads_without_clients_sleep_until_the_server_ends() {
    let served = Server::new("--backend file:data --unix s --threads 64");
    let of = || threads(&served);
    // Until all of them sleep.
    assert!(eventually(|| {
        let before = of();
        std::thread::sleep(Duration::from_millis(100));
        before == of() && before.0 == 64
    }));
    let before = of();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(of(), before, "nothing wakes them");
    let begun = Instant::now();
    let (_, ended) = served.terminated();
    // Without the five seconds that clients may have.
    assert!(ended.code == Some(0) && begun.elapsed() < Duration::from_secs(5), "{:?} {ended:?}", begun.elapsed());
}

/// A server whose standard error is a pipe that takes nothing more.
fn unread() -> (Server, PipeReader) {
    let (reader, mut writer) = pipe().unwrap();
    fill(&mut writer);
    (Server::ours("--backend memory:1m --unix s", |serve| serve.stderr(writer)), reader)
}

/// Fills a pipe page by page, then byte by byte.
pub fn fill(writer: &mut std::io::PipeWriter) {
    fcntl_setfl(&*writer, OFlags::NONBLOCK).unwrap();
    for part in [4096, 1] {
        while writer.write(&vec![b'\n'; part]).is_ok() {}
    }
    // The program's writes wait, as they do on every pipe.
    fcntl_setfl(&*writer, OFlags::empty()).unwrap();
}

/// Waits until the server has closed the connection of a client that breaks the protocol.
fn be_bad(served: &Server) {
    let mut stream = UnixStream::connect(served.folder.path("s")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _ = stream.write_all(&[0; 64]);
    let stopped = stream.read_to_end(&mut Vec::new()).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(!stopped, "the server has stopped serving");
}

#[test]
fn a_server_whose_standard_error_nobody_reads_serves_on_and_ends() {
    let (served, _reader) = unread();
    // Without a limit, more lines than a pipe has room for.
    (0..1000).for_each(|_| be_bad(&served));
    be_bad(&served);
    let (left, ended) = served.terminated();
    assert!(ended.code == Some(0) && !left.contains(&"s".to_owned()), "{left:?}");
}

#[test]
fn a_server_counts_the_lines_about_bad_clients_that_it_does_not_show() {
    let (served, mut reader) = unread();
    (0..100).for_each(|_| be_bad(&served));
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).map(|_| text)
    });
    // There is room then.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(served.terminated().1.code, Some(0));
    let text = reading.join().unwrap().unwrap();
    assert!(text.contains(" more lines not shown"), "{text}");
    assert!(text.contains(" requests in "), "the report at the end: {text}");
}

#[test]
fn our_client_works_with_common_servers() {
    const SERVERS: [&str; 6] = [
        "nbdkit -f -U s memory 8m",
        "nbdkit -f -U s file data",
        "nbdkit -f -U s --filter=delay memory 8m rdelay=1ms",
        // Servers truncate and pad data that does not fit their storage.
        "nbdkit -f -U s --filter=blocksize memory 8m minblock=8k maxdata=8k maxlen=8k",
        "nbd-server -C settings -p pid",
        "qemu-nbd -f raw -t --shared=4 -k SOCKET data",
    ];
    at_once(SERVERS, |command| {
        let served = Server::foreign(command);
        let shared = "rw=randrw\nnumjobs=3\ngroup_reporting\npath_tx_queue";
        let jobs = ["rw=randread", "rw=randwrite", "rw=randrw", "rw=write"].map(str::to_owned).into_iter();
        let jobs = jobs.chain([format!("{shared}=mp-ring"), format!("{shared}=ring-task\nsubmitters=2")]);
        let sections: String = jobs.map(|options| format!("[f]\nstonewall\n{options}\n")).collect();
        let global = "bs=4k,16k\niodepth=16\nnumber_ios=400\nfsync=100\nioengine=nbd";
        let found = served.folder.measured_job(&format!("[global]\nuri={}\n{global}\n{sections}", served.uri));
        for (number, job) in found["jobs"].as_array().unwrap().iter().enumerate() {
            let ios = if number < 4 { 400 } else { 1200 };
            assert_eq!((whole(&job["ios"]), whole(&job["errors"])), (ios, 0), "{command}: {job}");
        }
    });
}

/// A job on a server, that reads.
fn reader(served: &Server, more: &str) -> Iotoll {
    let words = format!("run --background 200ms --quiet --format json --name=f --ioengine=nbd --uri={}", served.uri);
    served.folder.iotoll(&format!("{words} --rw=randread --bs=4k {more}"))
}

#[test]
fn a_server_s_errors_and_its_end_are_errors_of_the_job() {
    let wrong = Server::foreign("nbdkit -f -U s --filter=error memory 8m error-rate=100%");
    let ended = reader(&wrong, "--no-save --number_ios=10").run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("'f'") || ended.stdout.contains("\"errors\""), "{ended:?}");
    let mut dying = Server::foreign("nbdkit -f -U s memory 8m");
    let running = reader(&dying, "--no-save --time_based --runtime=30").start();
    let running = running.when(|running| running.has_threads("job f", 1));
    std::thread::sleep(Duration::from_millis(300));
    dying.running.take().unwrap().ended_by(Signal::KILL);
    let ended = running.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("connection") || ended.stderr.contains("connection"), "{ended:?}");
    refused(&dying, &[("--number_ios=10", &["'f'", "connecting to", "is the server running?"])]);
}

/// The wait for a server that never answers again is limited, and the results are saved.
#[test]
fn a_silent_server_fails_the_job_after_the_job_is_asked_to_end() {
    let silent = Server::foreign("nbdkit -f -U s --filter=delay memory 8m rdelay=3600");
    let running = reader(&silent, "--out kept --iodepth=4 --runtime=600 --time_based").start();
    let running = running.when(|running| running.has_threads("job f", 1));
    std::thread::sleep(Duration::from_millis(300));
    let ended = running.ended_by(Signal::TERM);
    assert!(matches!(ended.code, Some(1 | 130)), "{ended:?}");
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert!(output.contains("has been silent") && output.contains("4 requests not answered"), "{ended:?}");
    assert!(silent.folder.exists("kept/record.jsonl"), "{ended:?}");
}

/// The user must respect a server's limits; this is checked before anything is sent.
#[test]
fn requests_beyond_a_server_s_limits_are_refused_with_the_limits() {
    let limits = "memory 8m blocksize-minimum=4k blocksize-maximum=64k blocksize-error-policy=error";
    let served = Server::foreign(&format!("nbdkit -f -U s --filter=blocksize-policy {limits}"));
    let too_long: &[&str] = &["'f'", "bs=131072", "path_max_payload=65536"];
    refused(&served, &[("--bs=512", &["'f'", "multiples of 4096 bytes", "bs="]), ("--bs=128k", too_long)]);
    reader(&served, "--no-save --rw=randrw --bs=128k --path_max_payload=64k --number_ios=20").run().done();
}
