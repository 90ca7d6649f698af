//! Server and client against each other and against a model, and the server against misbehaving clients.

use crate::backends::Backend;
use crate::client::{self, Address, Ask, Client, Connection, Uri};
use crate::handshake::server::{ExportInfo, Negotiation, greeting};
use crate::handshake::{option, option_bytes};
use crate::server::{Counters, Export, Listener, Observer, Options, ServerHandle, serve};
use crate::tuning::Tuning;
use crate::wire::{Command, MAX_PAYLOAD, REQUEST_BYTES, Request, WireError, command_flag, simple_reply};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SIZE: u64 = 4 << 20;

mod checksums;
mod coalescing;
mod failing_storage;
mod other_clients;
mod shared_client;
mod shutdown;
mod tuning;

struct Noted(Arc<Mutex<Vec<String>>>);

impl Observer for Noted {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// A running server that stops when this is dropped.
struct Served {
    uri: Uri,
    path: Option<PathBuf>,
    handle: Arc<ServerHandle>,
    thread: Option<JoinHandle<Counters>>,
    notes: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Served {
    fn new(backend: Backend, read_only: bool, options: Options, unix: bool) -> Self {
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
            let export = Export::new(String::new(), backend, read_only, MAX_PAYLOAD);
            serve(&listener, &export, &options, &told, &noted).unwrap()
        });
        let path = unix.then_some(path);
        Self { uri: uri.parse().unwrap(), path, handle, thread: Some(thread), notes, _folder: folder }
    }

    /// A server of memory.
    fn with(options: Options, unix: bool) -> Self {
        Self::new(Backend::memory(SIZE, &options.tuning).unwrap(), false, options, unix)
    }

    fn tuned(tuning: Tuning, unix: bool) -> Self {
        Self::with(Options { tuning, ..Options::default() }, unix)
    }

    fn memory() -> Self {
        Self::with(Options::default(), true)
    }

    /// A connected TCP client before the handshake.
    fn tcp(&self) -> TcpStream {
        let Address::Tcp { host, port } = &self.uri.address else { unreachable!() };
        let stream = TcpStream::connect((host.as_str(), *port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
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

/// A file in memory, and a server of it.
fn in_memory(bytes: u64, tuning: Tuning, unix: bool) -> (File, Served) {
    let file = File::from(memfd_create("file", MemfdFlags::CLOEXEC).unwrap());
    file.set_len(bytes).unwrap();
    let backend = Backend::file(file.try_clone().unwrap()).unwrap();
    (file, Served::new(backend, false, Options { tuning, ..Options::default() }, unix))
}

fn tuned_client(uri: &Uri, slots: u32, slot_bytes: usize, tuning: Tuning) -> crate::Result<Client> {
    Client::connect(uri, slots, slot_bytes, client::Options { tuning, ..client::Options::default() })
}

/// Waits until something is so.
fn until(mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "this never happens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A hand-written client after the handshake, with simple replies.
fn agreed(served: &Served) -> UnixStream {
    shaken(served.raw())
}

/// A hand-written client's handshake.
fn shaken<S: Read + Write>(mut stream: S) -> S {
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(&[&3_u32.to_be_bytes()[..], &option_bytes(option::EXPORT_NAME, &[])].concat()).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

/// The listening socket of a hand-written server, removed with the folder.
fn by_hand() -> (tempfile::TempDir, UnixListener, Uri) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let uri = format!("nbd+unix:///?socket={}", path.display()).parse().unwrap();
    (folder, UnixListener::bind(&path).unwrap(), uri)
}

/// A hand-written server's side of the handshake with this crate's client.
fn agreeing(listener: &UnixListener) -> UnixStream {
    agreeing_on(listener, false)
}

/// The same with a client that requests checksums, or does not.
fn agreeing_on(listener: &UnixListener, checksums: bool) -> UnixStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&greeting()).unwrap();
    let name = String::new();
    let export = ExportInfo { name, size: SIZE, flags: 1, preferred_block: 4096, max_payload: MAX_PAYLOAD };
    let mut hello = vec![0; 4 + 16 + 8 + if checksums { 16 } else { 0 }];
    stream.read_exact(&mut hello).unwrap();
    let mut out = Vec::new();
    let state = Default::default();
    Negotiation { export: &export, state, offers_checksums: checksums }.advance(&hello, &mut out);
    stream.write_all(&out).unwrap();
    stream
}

fn ask(command: Command, flags: u16, offset: u64, length: u32) -> [u8; 28] {
    Request { flags, command, cookie: 7, offset, length }.encode()
}

/// A request to write, with its payload.
fn write(offset: u64, payload: &[u8]) -> Vec<u8> {
    [&ask(Command::Write, 0, offset, payload.len() as u32)[..], payload].concat()
}

/// The error of the next simple reply; 0: none.
fn error(stream: &mut impl Read) -> u32 {
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!((&reply[..4], &reply[8..]), (&[0x67, 0x44, 0x66, 0x98][..], &7_u64.to_be_bytes()[..]));
    u32::from_be_bytes(reply[4..8].try_into().unwrap())
}

/// Sends a request and returns the error of its reply.
fn reply(stream: &mut (impl Read + Write), request: &[u8]) -> u32 {
    stream.write_all(request).unwrap();
    error(stream)
}

/// Sends flushes together, all of which must succeed.
fn flush(stream: &mut (impl Read + Write), count: usize) {
    stream.write_all(&ask(Command::Flush, 0, 0, 0).repeat(count)).unwrap();
    (0..count).for_each(|_| assert_eq!(error(stream), 0));
}

#[test]
fn invalid_requests_get_their_error_and_the_next_is_served() {
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
        // DF, and block status, need structured replies.
        (ask(Command::Read, 1 << 2, 0, 1), 0, WireError::EINVAL),
        (ask(Command::Unknown(7), 0, 0, 1), 0, WireError::EINVAL),
        (ask(Command::Unknown(99), 0, 0, 1), 0, WireError::EINVAL),
        (ask(Command::Flush, 1 << 9, 0, 0), 0, WireError::EINVAL),
    ] {
        let whole = [&request[..], &vec![1; payload]].concat();
        assert_eq!(reply(&mut stream, &whole), expected.number(), "{request:?}");
        flush(&mut stream, 1);
    }
    drop(stream);
    assert_eq!(served.ended().0.errors, 10);
}

#[test]
fn a_read_only_export_refuses_every_change() {
    let served = Served::new(Backend::memory(SIZE, &Tuning::default()).unwrap(), true, Options::default(), true);
    let mut stream = agreed(&served);
    let [trim, zero] = [Command::Trim, Command::WriteZeroes].map(|command| ask(command, 0, 0, 4096).to_vec());
    for change in [write(0, &[1; 4096]), trim, zero] {
        assert_eq!(reply(&mut stream, &change), WireError::EPERM.number());
    }
    assert_eq!(reply(&mut stream, &ask(Command::Read, 0, 0, 4096)), 0);
    let mut data = [9; 4096];
    stream.read_exact(&mut data).unwrap();
    assert_eq!(data, [0; 4096]);
    assert!(!Client::connect(&served.uri, 1, 1, client::Options::default()).unwrap().takes(Ask::Write));
}

#[test]
fn only_the_client_that_breaks_the_protocol_is_disconnected() {
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
    flush(&mut good, 1);
    assert_eq!(served.ended().1.len(), 4);
}

#[test]
fn slow_handshakes_time_out_and_stall_no_other_client() {
    let options = Options { handshake_timeout: Duration::from_millis(300), ..Options::default() };
    let served = Served::with(options, true);
    let mut slow: Vec<UnixStream> = (0..100).map(|_| served.raw()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(&[0, 0]).unwrap());
    let mut stuck: Vec<UnixStream> = (0..100).map(|_| agreed(&served)).collect();
    for stream in &mut stuck {
        stream.write_all(&write(0, &vec![1; 1 << 20])[..REQUEST_BYTES + 1000]).unwrap();
    }
    let mut good = agreed(&served);
    let begun = Instant::now();
    for _ in 0..100 {
        flush(&mut good, 1);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    for stream in &mut slow {
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        assert_eq!(received.len(), 18, "the greeting and nothing else");
    }
    // A client that stopped in the middle of a write stays connected.
    stuck[0].write_all(&vec![2; (1 << 20) - 1000]).unwrap();
    assert_eq!(error(&mut stuck[0]), 0);
}

/// The others are served on.
#[test]
fn a_client_over_the_limit_is_refused() {
    let served = Served::with(Options { connections: 2, ..Options::default() }, true);
    let mut good: Vec<UnixStream> = (0..2).map(|_| agreed(&served)).collect();
    let mut received = Vec::new();
    let _ = served.raw().read_to_end(&mut received);
    assert!(received.is_empty(), "{received:?}");
    good.iter_mut().for_each(|stream| flush(stream, 1));
    drop(good.pop());
    // Its place is free.
    until(|| served.raw().read(&mut [0; 8]).is_ok_and(|bytes| bytes > 0));
    let (_, notes) = served.ended();
    assert!(notes.iter().any(|note| note.ends_with(" refused: too many clients")), "{notes:?}");
}

#[test]
fn the_server_stops_reading_from_a_client_that_does_not_receive() {
    let served = Served::memory();
    let mut stream = agreed(&served);
    stream.set_nonblocking(true).unwrap();
    let request = ask(Command::Read, 0, 0, 1 << 20);
    // Until the server stops reading.
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
        assert!(asked < 1_000_000, "the server never stops reading");
    }
    stream.set_nonblocking(false).unwrap();
    let mut data = vec![0; 1 << 20];
    for _ in 0..asked {
        assert_eq!(error(&mut stream), 0);
        stream.read_exact(&mut data).unwrap();
    }
}

/// A byte at a time resets no timeout.
#[test]
fn the_client_gives_up_a_handshake_that_never_ends() {
    let (_folder, listener, uri) = by_hand();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            // Until the client disconnects.
            while stream.write_all(b"N").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let options = client::Options { handshake_timeout: Duration::from_millis(300), ..client::Options::default() };
        let received = Client::connect(&uri, 1, 1, options).unwrap_err().to_string();
        assert!(received.contains("did not finish within 0.3 s") || received.contains("sent nothing"), "{received}");
    });
}

#[test]
fn invalid_replies_are_an_error_of_the_client() {
    let nowhere = "nbd+unix:///?socket=/nowhere/s".parse().unwrap();
    let refused = Client::connect(&nowhere, 1, 1, client::Options::default()).unwrap_err().to_string();
    assert!(refused.contains("connecting to"), "{refused}");
    let (_folder, listener, uri) = by_hand();
    for (lie, expected) in [
        (vec![0; 16], "magic 0x0"),
        // A cookie that the client did not use.
        (simple_reply(99, None).to_vec(), "not in flight"),
        // The right slot with an old generation.
        (simple_reply(0, None).to_vec(), "not in flight"),
        ([&[0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1][..], &[0; 12]].concat(), "structured"),
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
            client.submit(|_| panic!("no request was completed")).unwrap();
            let received = client.wait(|_| panic!("no request was completed")).unwrap_err().to_string();
            assert!(received.contains(expected), "{received}");
        });
    }
}
