//! Server and client against each other and against a model, and the server against clients that mean no good.

use crate::backends::Backend;
use crate::client::{self, Address, Ask, Client, Uri};
use crate::handshake::server::{ExportInfo, Negotiation, greeting};
use crate::handshake::{OPTION_MAGIC, option};
use crate::server::{Access, Counters, Exports, Listener, Observer, Options, ServerHandle, serve};
use crate::tuning::Tuning;
use crate::wire::{Command, MAX_PAYLOAD, Request, WireError, command_flag};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SIZE: u64 = 4 << 20;

mod checksums;
mod connection_limit;
mod failing_storage;
mod shared_client;
mod shutdown;
mod tuning;
mod unix_socket_coalescing;

/// What was not tested, and why.
pub(crate) fn note_skipped(test: &str, why: &str) {
    let line = format!("SKIP {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Some(path) = std::env::var_os("IOTOLL_SKIP_LOG") {
        let log = std::fs::File::options().create(true).append(true).open(path);
        log.and_then(|mut log| log.write_all(line.as_bytes())).unwrap();
    }
}

struct Noted(Arc<Mutex<Vec<String>>>);

impl Observer for Noted {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    fn so_far(&self, counters: &Counters) {
        self.note(&format!("{} requests so far", counters.requests));
    }
}

/// A server that ends with this.
struct Served {
    uri: Uri,
    path: Option<PathBuf>,
    handle: Arc<ServerHandle>,
    thread: Option<JoinHandle<Counters>>,
    notes: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Served {
    fn new(backend: Backend, access: Access, options: Options, unix: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let (listener, uri) = if unix {
            let listener = Listener::Unix(UnixListener::bind(&path).unwrap());
            (listener, format!("nbd+unix:///?socket={}", path.display()))
        } else {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let uri = format!("nbd://{}", listener.local_addr().unwrap());
            (Listener::Tcp(listener), uri)
        };
        let (handle, notes) = (Arc::new(ServerHandle::new().unwrap()), Arc::new(Mutex::new(Vec::new())));
        let (told, noted) = (handle.clone(), Noted(notes.clone()));
        let thread = std::thread::spawn(move || {
            let exports = Exports::new(vec![String::new(), "named".to_owned()], backend, access);
            serve(&listener, &exports, &options, &told, &noted).unwrap()
        });
        let path = unix.then_some(path);
        Self { uri: uri.parse().unwrap(), path, handle, thread: Some(thread), notes, _folder: folder }
    }

    fn memory() -> Self {
        Self::new(Backend::memory(SIZE, &Tuning::default()).unwrap(), Access::ReadWrite, Options::default(), true)
    }

    fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path.as_ref().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn ended(mut self) -> (Counters, Vec<String>) {
        self.handle.stop();
        let counters = self.thread.take().unwrap().join().unwrap();
        let notes = self.notes.lock().unwrap().clone();
        (counters, notes)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client by hand, after the handshake; replies are simple.
fn agreed(served: &Served) -> UnixStream {
    shaken(served.raw())
}

/// The handshake by hand.
fn shaken<S: Read + Write>(mut stream: S) -> S {
    stream.read_exact(&mut [0; 18]).unwrap();
    let mut hello = 3_u32.to_be_bytes().to_vec();
    hello.extend(OPTION_MAGIC.to_be_bytes());
    hello.extend(option::EXPORT_NAME.to_be_bytes());
    hello.extend(0_u32.to_be_bytes());
    stream.write_all(&hello).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

/// Where a server by hand listens, gone with the folder.
fn by_hand() -> (tempfile::TempDir, UnixListener, Uri) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let uri = format!("nbd+unix:///?socket={}", path.display()).parse().unwrap();
    (folder, UnixListener::bind(&path).unwrap(), uri)
}

/// The server's side of a handshake with our client, by hand.
fn agreeing(listener: &UnixListener) -> UnixStream {
    agreeing_on(listener, false)
}

/// The same with one that asks for checksums, or not.
fn agreeing_on(listener: &UnixListener, checksums: bool) -> UnixStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&greeting()).unwrap();
    let name = String::new();
    let exports = [ExportInfo {
        name: name.clone(),
        description: name,
        size: SIZE,
        flags: 1,
        preferred_block: 4096,
        max_payload: MAX_PAYLOAD,
    }];
    let mut hello = vec![0; 4 + 16 + 8 + if checksums { 16 } else { 0 }];
    stream.read_exact(&mut hello).unwrap();
    let mut out = Vec::new();
    Negotiation::resume(&exports, Default::default()).with_checksums(checksums).advance(&hello, &mut out);
    stream.write_all(&out).unwrap();
    stream
}

fn ask(command: Command, flags: u16, offset: u64, length: u32) -> [u8; 28] {
    Request { flags, command, cookie: 7, offset, length }.encode()
}

/// After two requests that came together the server waits for a second one, and answers both when it comes.
fn assert_two_flushes_are_coalesced<S: Read + Write + AsFd>(stream: &mut S) {
    let flush = ask(Command::Flush, 0, 0, 0);
    stream.write_all(&[flush, flush].concat()).unwrap();
    assert_eq!((error(stream), error(stream)), (0, 0));
    stream.write_all(&flush).unwrap();
    rustix::io::ioctl_fionbio(&*stream, true).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(stream.read(&mut [0; 16]).unwrap_err().kind(), ErrorKind::WouldBlock);
    rustix::io::ioctl_fionbio(&*stream, false).unwrap();
    stream.write_all(&flush).unwrap();
    assert_eq!((error(stream), error(stream)), (0, 0));
}

/// The error of the next simple reply; 0 is none.
fn error(stream: &mut impl Read) -> u32 {
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!((&reply[..4], &reply[8..]), (&[0x67, 0x44, 0x66, 0x98][..], &7_u64.to_be_bytes()[..]));
    u32::from_be_bytes(reply[4..8].try_into().unwrap())
}

#[test]
fn requests_that_make_no_sense_get_their_error_and_the_next_is_served() {
    let served = Served::memory();
    let mut stream = agreed(&served);
    let (end, big) = (SIZE, MAX_PAYLOAD);
    for (request, payload, expected) in [
        (ask(Command::Read, 0, end - 10, 11), 0, WireError::EINVAL),
        (ask(Command::Write, 0, end - 10, 11), 11, WireError::ENOSPC),
        (ask(Command::Write, 0, u64::MAX, 5), 5, WireError::ENOSPC),
        (ask(Command::Trim, 0, u64::MAX - 3, u32::MAX), 0, WireError::EINVAL),
        (ask(Command::Read, 0, 0, 0), 0, WireError::EINVAL),
        (ask(Command::Read, 0, 0, big + 1), 0, WireError::EINVAL),
        (ask(Command::Read, command_flag::DF, 0, 1), 0, WireError::EINVAL),
        (ask(Command::BlockStatus, 0, 0, 1), 0, WireError::EINVAL),
        (ask(Command::Unknown(99), 0, 0, 1), 0, WireError::EINVAL),
        (ask(Command::Flush, 1 << 9, 0, 0), 0, WireError::EINVAL),
    ] {
        stream.write_all(&request).unwrap();
        stream.write_all(&vec![1; payload]).unwrap();
        assert_eq!(error(&mut stream), expected.number(), "{request:?}");
        stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
        assert_eq!(error(&mut stream), 0);
    }
    drop(stream);
    assert_eq!(served.ended().0.errors, 10);
}

#[test]
fn a_read_only_export_refuses_every_change() {
    let served =
        Served::new(Backend::memory(SIZE, &Tuning::default()).unwrap(), Access::ReadOnly, Options::default(), true);
    let mut stream = agreed(&served);
    for (command, payload) in [(Command::Write, 4096), (Command::Trim, 0), (Command::WriteZeroes, 0)] {
        stream.write_all(&ask(command, 0, 0, 4096)).unwrap();
        stream.write_all(&vec![1; payload]).unwrap();
        assert_eq!(error(&mut stream), WireError::EPERM.number());
    }
    stream.write_all(&ask(Command::Read, 0, 0, 4096)).unwrap();
    assert_eq!(error(&mut stream), 0);
    let mut data = [9; 4096];
    stream.read_exact(&mut data).unwrap();
    assert_eq!(data, [0; 4096]);
    assert!(!Client::connect(&served.uri, 1, 1, client::Options::default()).unwrap().takes(Ask::Write));
}

#[test]
fn a_client_that_breaks_the_protocol_is_disconnected_and_no_other() {
    let served = Served::memory();
    let mut good = agreed(&served);
    let oversized = ask(Command::Write, 0, 0, MAX_PAYLOAD + 1);
    for bad in [vec![0xff; 28], oversized.to_vec()] {
        let mut stream = agreed(&served);
        stream.write_all(&bad).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "dropped");
    }
    for bad in [vec![0; 64], [3_u32.to_be_bytes(), [0xff; 4]].concat().repeat(4)] {
        let mut stream = served.raw();
        stream.write_all(&bad).unwrap();
        let mut received = Vec::new();
        // Reset or closed, after the greeting.
        let _ = stream.read_to_end(&mut received);
        assert_eq!(received.len(), 18);
    }
    good.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    assert_eq!(error(&mut good), 0);
    assert_eq!(served.ended().1.len(), 4);
}

#[test]
fn slow_handshakes_time_out_and_stall_no_other_client() {
    let options = Options { handshake_timeout: Duration::from_millis(300), ..Options::default() };
    let served = Served::new(Backend::memory(SIZE, &Tuning::default()).unwrap(), Access::ReadWrite, options, true);
    let mut slow: Vec<UnixStream> = (0..100).map(|_| served.raw()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(&[0, 0]).unwrap());
    let mut stuck: Vec<UnixStream> = (0..100).map(|_| agreed(&served)).collect();
    for stream in &mut stuck {
        stream.write_all(&ask(Command::Write, 0, 0, 1 << 20)).unwrap();
        stream.write_all(&[1; 1000]).unwrap();
    }
    let mut good = agreed(&served);
    let begun = Instant::now();
    for _ in 0..100 {
        good.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
        assert_eq!(error(&mut good), 0);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    for stream in &mut slow {
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        assert_eq!(received.len(), 18, "the greeting and nothing else");
    }
    // Who stopped in the middle of a write is let be.
    stuck[0].write_all(&vec![2; (1 << 20) - 1000]).unwrap();
    assert_eq!(error(&mut stuck[0]), 0);
}

#[test]
fn requests_of_clients_with_several_in_flight_are_coalesced() {
    let connect = |coalesce| {
        let options = Options { tuning: Tuning { coalesce, ..Tuning::default() }, ..Options::default() };
        let served = Served::new(Backend::memory(SIZE, &Tuning::default()).unwrap(), Access::ReadWrite, options, false);
        let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
        let stream = shaken(TcpStream::connect((host.as_str(), port)).unwrap());
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (served, stream)
    };
    let flush = ask(Command::Flush, 0, 0, 0);
    let (served, mut stream) = connect(Duration::from_secs(600));
    for _ in 0..3 {
        stream.write_all(&flush).unwrap();
        assert_eq!(error(&mut stream), 0);
    }
    assert_two_flushes_are_coalesced(&mut stream);
    drop(served);
    // Nor does the end wait for the second: until now it is not known how long that takes.
    let (served, mut stream) = connect(Duration::from_secs(600));
    stream.write_all(&[flush, flush].concat()).unwrap();
    assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
    stream.write_all(&flush).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    let begun = Instant::now();
    assert_eq!(served.ended().0.requests, 3);
    assert_eq!(error(&mut stream), 0);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());

    let (_served, mut stream) = connect(Duration::from_millis(1));
    for _ in 0..3 {
        stream.write_all(&[flush, flush].concat()).unwrap();
        assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
        stream.write_all(&flush).unwrap();
        assert_eq!(error(&mut stream), 0);
    }
}

/// What it had sent is done, and its place is free, long before the hold would end.
#[test]
fn a_client_that_disconnects_ends_the_wait_for_its_requests() {
    let tuning = Tuning { coalesce: Duration::from_secs(600), ..Tuning::default() };
    let options = Options { tuning, ..Options::default() };
    let served = Served::new(Backend::memory(SIZE, &tuning).unwrap(), Access::ReadWrite, options, false);
    let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
    let mut stream = shaken(TcpStream::connect((host.as_str(), port)).unwrap());
    let flush = ask(Command::Flush, 0, 0, 0);
    stream.write_all(&flush.repeat(2)).unwrap();
    assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
    // Two are waited for now, and one comes.
    stream.write_all(&flush).unwrap();
    drop(stream);
    let begun = Instant::now();
    let done = || {
        served.handle.report();
        std::thread::sleep(Duration::from_millis(10));
        served.notes.lock().unwrap().contains(&"3 requests so far".to_owned())
    };
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

/// A client that sends a payload in small pieces does not wake the server for each.
#[test]
fn the_rest_of_a_payload_is_waited_for_as_one() {
    const PIECES: usize = 40;
    const PIECE: usize = 4096;
    let waits = |coalesce| {
        let tuning = Tuning { coalesce, ..Tuning::default() };
        let options = Options { tuning, ..Options::default() };
        let served = Served::new(Backend::memory(SIZE, &tuning).unwrap(), Access::ReadWrite, options, false);
        let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
        let mut stream = shaken(TcpStream::connect((host.as_str(), port)).unwrap());
        stream.set_nodelay(true).unwrap();
        stream.write_all(&ask(Command::Write, 0, 0, (PIECES * PIECE) as u32)).unwrap();
        for _ in 0..PIECES {
            std::thread::sleep(Duration::from_millis(2));
            stream.write_all(&[7; PIECE]).unwrap();
        }
        assert_eq!(error(&mut stream), 0);
        served.ended().0.waits
    };
    let (one_by_one, as_one) = (waits(Duration::ZERO), waits(Duration::from_secs(600)));
    // How many pieces come together is the machine's to say; a busy one makes it fewer of both.
    assert!(as_one <= 16 && (one_by_one > as_one || one_by_one <= 16), "{one_by_one} and {as_one}");
}

/// Who had several in flight and now has none is not looked after all the time.
#[test]
fn an_idle_client_costs_no_wake_ups() {
    let served =
        Served::new(Backend::memory(SIZE, &Tuning::default()).unwrap(), Access::ReadWrite, Options::default(), false);
    let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
    let mut stream = shaken(TcpStream::connect((host.as_str(), port)).unwrap());
    for _ in 0..10 {
        stream.write_all(&ask(Command::Flush, 0, 0, 0).repeat(8)).unwrap();
        stream.read_exact(&mut [0; 8 * 16]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    let waits = served.ended().0.waits;
    // Some 30 for what was done; 600 or more if it were looked after.
    assert!((10..500).contains(&waits), "{waits}");
}

#[test]
fn slow_requests_of_one_client_leave_the_others_their_turn() {
    const BIG: u64 = 64 << 20;
    const QUEUED: usize = 100;
    let file = rustix::fs::memfd_create("slow", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, BIG).unwrap();
    let backend = Backend::file(file.into()).unwrap();
    let served = Served::new(backend, Access::ReadWrite, Options::default(), true);
    let (mut slow, mut other) = (agreed(&served), agreed(&served));
    // Milliseconds each: a file in memory has no other way to zeros that are allocated than writing them.
    let zero = ask(Command::WriteZeroes, command_flag::NO_HOLE, 0, BIG as u32);
    slow.write_all(&zero.repeat(QUEUED)).unwrap();
    // Long before all of them are done.
    other.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    assert_eq!(error(&mut other), 0);
    served.handle.report();
    let done = |note: &String| note.strip_suffix(" requests so far").and_then(|number| number.parse::<usize>().ok());
    let begun = Instant::now();
    let done = loop {
        let told = served.notes.lock().unwrap().iter().find_map(done);
        if let Some(told) = told {
            break told;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was told");
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(done < QUEUED / 2, "{done}");
    drop(slow);
    served.ended();
}

/// A file in memory can punch holes, and cannot have zeros that are allocated without writing them.
#[test]
fn fast_zeros_are_fast_or_refused_and_nothing_is_written_then() {
    let file = std::fs::File::from(rustix::fs::memfd_create("fast", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    std::os::unix::fs::FileExt::write_all_at(&file, &[1; 8192], 0).unwrap();
    let backend = Backend::file(file.try_clone().unwrap()).unwrap();
    let served = Served::new(backend, Access::ReadWrite, Options::default(), true);
    let mut client = agreed(&served);
    let mut zero = |flags, offset| {
        client.write_all(&ask(Command::WriteZeroes, flags, offset, 4096)).unwrap();
        error(&mut client)
    };
    let content = |offset| {
        let mut byte = [9];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, offset).unwrap();
        byte[0]
    };
    assert_eq!(zero(command_flag::FAST_ZERO | command_flag::NO_HOLE, 0), WireError::ENOTSUP.number());
    assert_eq!((content(0), content(4096)), (1, 1));
    assert_eq!(zero(command_flag::FAST_ZERO, 4096), 0);
    assert_eq!((content(0), content(4096)), (1, 0));
    assert_eq!(zero(command_flag::NO_HOLE, 0), 0);
    assert_eq!(content(0), 0);
}

#[test]
fn clients_in_the_handshake_make_room_when_there_are_too_many() {
    let options = Options { connections: 4, ..Options::default() };
    let served = Served::new(Backend::memory(SIZE, &Tuning::default()).unwrap(), Access::ReadWrite, options, true);
    let _idle: Vec<UnixStream> = (0..4).map(|_| served.raw()).collect();
    let mut good: Vec<UnixStream> = (0..4).map(|_| agreed(&served)).collect();
    for stream in &mut good {
        stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
        assert_eq!(error(stream), 0);
    }
    let mut one_more = served.raw();
    let mut received = Vec::new();
    let _ = one_more.read_to_end(&mut received);
    assert!(received.is_empty(), "turned away");
}

#[test]
fn the_server_stops_reading_from_a_client_that_takes_no_replies() {
    let served = Served::memory();
    let mut stream = agreed(&served);
    stream.set_nonblocking(true).unwrap();
    let request = ask(Command::Read, 0, 0, 1 << 20);
    // Until the server reads no more.
    let mut asked = 0;
    let mut quiet = 0;
    while quiet < 20 {
        match stream.write(&request) {
            Ok(28) => (asked, quiet) = (asked + 1, 0),
            Ok(count) => panic!("a part of a request: {count}"),
            Err(_) => {
                quiet += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        assert!(asked < 1_000_000, "the server takes everything");
    }
    stream.set_nonblocking(false).unwrap();
    let mut data = vec![0; 1 << 20];
    for _ in 0..asked {
        assert_eq!(error(&mut stream), 0);
        stream.read_exact(&mut data).unwrap();
    }
}

#[test]
fn the_server_reports_counters_when_asked() {
    let served = Served::memory();
    let mut stream = agreed(&served);
    stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    assert_eq!(error(&mut stream), 0);
    served.handle.report();
    let end = Instant::now() + Duration::from_secs(20);
    while served.notes.lock().unwrap().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(served.ended().1, ["1 requests so far"]);
}

/// However little of it at a time.
#[test]
fn the_client_gives_up_a_handshake_that_never_ends() {
    let (_folder, listener, uri) = by_hand();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            // Until the client has gone.
            while stream.write_all(b"N").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let options = client::Options { handshake_timeout: Duration::from_millis(300), ..client::Options::default() };
        let received = Client::connect(&uri, 1, 1, options).unwrap_err().to_string();
        assert!(received.contains("did not end within 0.3 s") || received.contains("says nothing"), "{received}");
    });
}

#[test]
fn replies_that_make_no_sense_are_an_error_of_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let uri: Uri = format!("nbd+unix:///?socket={}", path.display()).parse().unwrap();
    assert!(Client::connect(&uri, 1, 1, client::Options::default()).unwrap_err().to_string().contains("connecting to"));
    let listener = UnixListener::bind(&path).unwrap();
    for (lie, expected) in [
        (vec![0; 16], "magic 0x0"),
        // CVE-like: a cookie that nobody gave.
        ([&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0][..], &99_u64.to_be_bytes()].concat(), "not asked"),
        // The right slot with an old count.
        ([&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0][..], &0_u64.to_be_bytes()].concat(), "not asked"),
        ([&[0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1][..], &[0; 12]].concat(), "structured"),
        // The begin of one, longer than a simple reply, and the rest later.
        ([&[0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1][..], &[0; 10]].concat(), "closed"),
        (vec![], "closed"),
    ] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = agreeing(&listener);
                stream.read_exact(&mut [0; 28]).unwrap();
                stream.write_all(&lie).unwrap();
            });
            let mut client = Client::connect(&uri, 1, 4096, client::Options::default()).unwrap();
            client.stage(0, Ask::Read, 0, 4096).unwrap();
            assert!(client.stage(0, Ask::Read, 0, 4096).is_err(), "one request a slot");
            client.submit(|_| panic!("nothing was replied to")).unwrap();
            let received = client.wait(|_| panic!("nothing was replied to")).unwrap_err().to_string();
            assert!(received.contains(expected), "{received}");
        });
    }
}
