//! Server and client against each other and against a model, and the server against clients that mean no good.

use crate::backend::Backend;
use crate::client::{self, Accounting, Address, Ask, Client, Uri, Wire};
use crate::handshake::server::{ExportInfo, Negotiation, greeting};
use crate::handshake::{OPTION_MAGIC, option};
use crate::server::{Access, Counters, Exports, Listener, Observer, Options, Orders, serve};
use crate::switches::{Framing, Switches};
use crate::wire::{Command, MAX_PAYLOAD, REQUEST_BYTES, Request, WireError, command_flag, simple_reply};
use proptest::prelude::*;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SIZE: u64 = 4 << 20;

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
    orders: Arc<Orders>,
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
        let (orders, notes) = (Arc::new(Orders::new().unwrap()), Arc::new(Mutex::new(Vec::new())));
        let (told, noted) = (orders.clone(), Noted(notes.clone()));
        let thread = std::thread::spawn(move || {
            let exports = Exports::new(vec![String::new(), "named".to_owned()], backend, access);
            serve(&listener, &exports, &options, &told, &noted).unwrap()
        });
        let path = unix.then_some(path);
        Self { uri: uri.parse().unwrap(), path, orders, thread: Some(thread), notes, _folder: folder }
    }

    fn memory() -> Self {
        Self::new(Backend::memory(SIZE).unwrap(), Access::ReadWrite, Options::default(), true)
    }

    fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path.as_ref().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn ended(mut self) -> (Counters, Vec<String>) {
        self.orders.stop();
        let counters = self.thread.take().unwrap().join().unwrap();
        let notes = self.notes.lock().unwrap().clone();
        (counters, notes)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.orders.stop();
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

/// The server's side of a handshake with our client, by hand.
fn agreeing(listener: &UnixListener) -> UnixStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&greeting()).unwrap();
    let name = String::new();
    let exports = [ExportInfo { name: name.clone(), description: name, size: SIZE, flags: 1, preferred_block: 4096 }];
    let mut hello = [0; 4 + 16 + 8];
    stream.read_exact(&mut hello).unwrap();
    let mut out = Vec::new();
    Negotiation::resume(&exports, Default::default()).advance(&hello, &mut out);
    stream.write_all(&out).unwrap();
    stream
}

fn ask(command: Command, flags: u16, offset: u64, length: u32) -> [u8; 28] {
    Request { flags, command, cookie: 7, offset, length }.encode()
}

/// The error of the next simple reply; 0 is none.
fn error(stream: &mut impl Read) -> u32 {
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!((&reply[..4], &reply[8..]), (&[0x67, 0x44, 0x66, 0x98][..], &7_u64.to_be_bytes()[..]));
    u32::from_be_bytes(reply[4..8].try_into().unwrap())
}

fn backends(folder: &tempfile::TempDir) -> Vec<Backend> {
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(folder.path().join("f")).unwrap();
    file.set_len(SIZE).unwrap();
    let memory = [Backend::memory(SIZE).unwrap(), Backend::memory_file(SIZE).unwrap()];
    memory.into_iter().chain([Backend::file(file).unwrap()]).collect()
}

/// What one request of a random workload is.
#[derive(Clone, Copy, Debug)]
struct Step {
    ask: Ask,
    offset: u64,
    length: u32,
    fill: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lengths = prop_oneof![4 => 1_u32..10_000, 2 => 10_000_u32..300_000, 1 => 300_000_u32..1_200_000];
    let asks = prop_oneof![3 => Just(Ask::Read), 3 => Just(Ask::Write), 1 => Just(Ask::Trim), 1 => Just(Ask::Flush)];
    let step = (asks, 0..SIZE, lengths, 1_u8..).prop_map(|(ask, offset, length, fill)| {
        let length = length.min((SIZE - offset) as u32).max(1);
        Step { ask, offset, length, fill }
    });
    prop::collection::vec(step, 1..60)
}

/// Does every step against a server, several at a time as long as they do not touch, and holds reads against a model.
fn play(steps: &[Step], client: &mut Client, slot_bytes: usize) {
    let mut model = vec![0_u8; SIZE as usize];
    for group in steps.chunks(4) {
        let mut used: Vec<Step> = Vec::new();
        for step in group {
            let apart = |other: &&Step| {
                step.offset >= other.offset + u64::from(other.length)
                    || other.offset >= step.offset + u64::from(step.length)
            };
            if used.iter().all(|other| apart(&other)) {
                used.push(*step);
            }
        }
        for (slot, step) in used.iter().enumerate() {
            if step.ask == Ask::Write {
                client.arena().write(slot * slot_bytes, &vec![step.fill; step.length as usize]);
            }
            client.stage(slot as u32, step.ask, step.offset, step.length).unwrap();
        }
        let mut left: Vec<u32> = (0..used.len() as u32).collect();
        let mut done = |done: crate::client::Done| {
            assert_eq!(done.error, None);
            left.retain(|slot| *slot != done.slot);
        };
        client.submit(&mut done).unwrap();
        while client.in_flight() > 0 {
            client.wait(&mut done).unwrap();
        }
        assert!(left.is_empty());
        for (slot, step) in used.iter().enumerate() {
            let range = step.offset as usize..step.offset as usize + step.length as usize;
            match step.ask {
                Ask::Write => model[range].fill(step.fill),
                Ask::Trim => model[range].fill(0),
                Ask::Flush => {}
                Ask::Read => {
                    let mut found = vec![0; step.length as usize];
                    client.arena().read(slot * slot_bytes, &mut found);
                    assert!(found == model[range], "{step:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Every switch and both kinds of socket: data are what they should be.
    #[test]
    fn what_is_written_is_read(steps in steps(), pull_up in prop_oneof![Just(0), Just(2048), Just(u32::MAX)],
        zero_copy in prop_oneof![Just(0), Just(4096), Just(u32::MAX)],
        copy_out in prop_oneof![Just(0), Just(2048), Just(u32::MAX)],
        framing in prop_oneof![2 => Just(Framing::OneGo), 1 => Just(Framing::PageAtATime)],
        hold in prop_oneof![Just(0), Just(50), Just(2000)], unix in any::<bool>()) {
        const SLOT: usize = 1_200_000;
        let folder = tempfile::tempdir().unwrap();
        for backend in backends(&folder) {
            let switches = Switches {
                pull_up,
                zero_copy,
                copy_out,
                framing,
                hold: Duration::from_micros(hold),
                busy_poll: Duration::from_micros(hold / 10),
            };
            let options = Options { switches, threads: 2, ..Options::default() };
            let served = Served::new(backend, Access::ReadWrite, options, unix);
            let mut client = Client::connect(&served.uri, 4, SLOT, client::Options { switches, ..client::Options::default() }).unwrap();
            play(&steps, &mut client, SLOT);
            drop(client);
            let (counters, notes) = served.ended();
            prop_assert_eq!((counters.errors, notes), (0, Vec::<String>::new()));
        }
    }
}

/// What a server that is not ours has at an offset.
fn content(offset: u64, length: u32) -> Vec<u8> {
    (offset..offset + u64::from(length)).map(|place| (place.wrapping_mul(0x9e37_79b9) >> 16) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A server may reply in any order, with errors between, and what it sends arrives cut anywhere.
    #[test]
    fn replies_in_any_order_and_cut_anywhere_come_to_their_slots(
        order in prop_oneof![Just((0..8_usize).collect::<Vec<_>>()), Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle()],
        lengths in prop::collection::vec(prop_oneof![1_u32..5000, 40_000_u32..90_000], 8),
        writes in prop::collection::vec(prop::bool::weighted(0.2), 8),
        errors in prop::collection::vec(prop::bool::weighted(0.1), 8),
        cuts in prop::collection::vec(prop_oneof![1_usize..40, 40_usize..60_000], 1..20),
        copy_out in prop_oneof![Just(0), Just(u32::MAX)],
        framing in prop_oneof![2 => Just(Framing::OneGo), 1 => Just(Framing::PageAtATime)],
    ) {
        const SLOT: usize = 90_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let uri: Uri = format!("nbd+unix:///?socket={}", path.display()).parse().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = agreeing(&listener);
                for _ in 0..3 {
                    let mut requests = Vec::new();
                    for (write, length) in writes.iter().zip(&lengths) {
                        let mut request = [0; REQUEST_BYTES];
                        stream.read_exact(&mut request).unwrap();
                        requests.push(Request::decode(&request).unwrap());
                        if *write {
                            stream.read_exact(&mut vec![0; *length as usize]).unwrap();
                        }
                    }
                    let mut said = Vec::new();
                    for place in &order {
                        let request = &requests[*place];
                        said.extend(simple_reply(request.cookie, errors[*place].then_some(WireError::EIO)));
                        if request.command == Command::Read && !errors[*place] {
                            said.extend(content(request.offset, request.length));
                        }
                    }
                    let (mut rest, mut cuts) = (&said[..], cuts.iter().cycle());
                    while !rest.is_empty() {
                        let (now, later) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                        stream.write_all(now).unwrap();
                        rest = later;
                    }
                }
            });
            let switches = Switches { copy_out, framing, ..Switches::default() };
            let mut client =
                Client::connect(&uri, 8, SLOT, client::Options { switches, ..client::Options::default() }).unwrap();
            for turn in 0..3 {
                for (slot, length) in lengths.iter().enumerate() {
                    let ask = if writes[slot] { Ask::Write } else { Ask::Read };
                    client.stage(slot as u32, ask, turn * 1000 + slot as u64 * 100_000, *length).unwrap();
                }
                let mut done = Vec::new();
                client.submit(|reply| done.push(reply)).unwrap();
                while client.in_flight() > 0 {
                    client.wait(|reply| done.push(reply)).unwrap();
                }
                assert_eq!(done.iter().map(|reply| reply.slot as usize).collect::<Vec<_>>(), order);
                for reply in done {
                    let slot = reply.slot as usize;
                    assert_eq!(reply.error, errors[slot].then_some(WireError::EIO));
                    let mut found = vec![0; lengths[slot] as usize];
                    client.arena().read(slot * SLOT, &mut found);
                    if !writes[slot] && !errors[slot] {
                        assert!(found == content(turn * 1000 + slot as u64 * 100_000, lengths[slot]), "slot {slot}");
                    }
                }
            }
        });
    }
}

/// Nobody else of this process counts in the shared word.
#[test]
fn what_is_in_flight_is_counted_by_whom_it_is_wanted() {
    let served = Served::memory();
    let connect = |in_flight| {
        let options = client::Options { in_flight, ..client::Options::default() };
        Client::connect(&served.uri, 4, 512, options).unwrap()
    };
    let counts = |clients: &[Client]| clients.iter().map(Client::counted_in_flight).collect::<Vec<_>>();
    for (in_flight, both_ask, one_is_done, all_are_gone) in [
        (Accounting::None, [None; 2], [None; 2], None),
        (Accounting::PerThread, [Some(2), Some(2)], [Some(0), Some(2)], Some(0)),
        (Accounting::Shared, [Some(4); 2], [Some(2); 2], Some(0)),
    ] {
        let mut clients = [connect(in_flight), connect(in_flight)];
        for client in &mut clients {
            (0..2).for_each(|slot| client.stage(slot, Ask::Read, 0, 512).unwrap());
        }
        assert_eq!(counts(&clients), both_ask);
        clients[0].submit(|_| {}).unwrap();
        while clients[0].in_flight() > 0 {
            clients[0].wait(|_| {}).unwrap();
        }
        assert_eq!(counts(&clients), one_is_done);
        // With two that were never handed over.
        drop(clients);
        assert_eq!(connect(in_flight).counted_in_flight(), all_are_gone);
    }
}

#[test]
fn without_a_wire_nothing_is_sent_and_all_is_claimed() {
    let served = Served::memory();
    let options = client::Options { wire: Wire::Null, ..client::Options::default() };
    let mut client = Client::connect(&served.uri, 4, 4096, options).unwrap();
    for turn in 0..3 {
        for slot in 0..3 {
            client.stage(slot, if slot == 0 { Ask::Write } else { Ask::Read }, 0, 4096).unwrap();
        }
        let mut done = Vec::new();
        assert!(client.submit(|reply| done.push((reply.slot, reply.error))).unwrap(), "{turn}");
        assert_eq!(done, [(0, None), (1, None), (2, None)]);
        assert!(client.wait(|_| panic!("all was claimed")).unwrap());
    }
    assert_eq!(client.crossings().sends, 0);
    drop(client);
    // The good-bye.
    assert_eq!(served.ended().0.requests, 1);
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
        (ask(Command::Trim, 0, u64::MAX - 3, u32::MAX), 0, WireError::ENOSPC),
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
    let served = Served::new(Backend::memory(SIZE).unwrap(), Access::ReadOnly, Options::default(), true);
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
fn who_has_lost_the_thread_is_dropped_and_nobody_else() {
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
        let mut said = Vec::new();
        // Reset or closed, after the greeting.
        let _ = stream.read_to_end(&mut said);
        assert_eq!(said.len(), 18);
    }
    good.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    assert_eq!(error(&mut good), 0);
    assert_eq!(served.ended().1.len(), 4);
}

#[test]
fn the_slow_go_and_do_not_stall_the_others() {
    let options = Options { patience: Duration::from_millis(300), ..Options::default() };
    let served = Served::new(Backend::memory(SIZE).unwrap(), Access::ReadWrite, options, true);
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
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert_eq!(said.len(), 18, "the greeting and nothing else");
    }
    // Who stopped in the middle of a write is let be.
    stuck[0].write_all(&vec![2; (1 << 20) - 1000]).unwrap();
    assert_eq!(error(&mut stuck[0]), 0);
}

#[test]
fn who_has_several_in_flight_is_waited_for_and_who_has_one_is_not() {
    let connect = |hold| {
        let options = Options { switches: Switches { hold, ..Switches::default() }, ..Options::default() };
        let served = Served::new(Backend::memory(SIZE).unwrap(), Access::ReadWrite, options, false);
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
    stream.write_all(&[flush, flush].concat()).unwrap();
    assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
    // Two came together, so two are waited for.
    stream.write_all(&flush).unwrap();
    stream.set_nonblocking(true).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(stream.read(&mut [0; 16]).unwrap_err().kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    stream.write_all(&flush).unwrap();
    assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
    // Nor does the end wait for the second.
    stream.write_all(&flush).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(served.ended().0.requests, 8);
    assert_eq!(error(&mut stream), 0);

    let (_served, mut stream) = connect(Duration::from_millis(1));
    for _ in 0..3 {
        stream.write_all(&[flush, flush].concat()).unwrap();
        assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
        stream.write_all(&flush).unwrap();
        assert_eq!(error(&mut stream), 0);
    }
}

/// Who had several in flight and now has none is not looked after every 50 µs.
#[test]
fn a_client_that_rests_costs_nothing() {
    let served = Served::new(Backend::memory(SIZE).unwrap(), Access::ReadWrite, Options::default(), false);
    let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
    let mut stream = shaken(TcpStream::connect((host.as_str(), port)).unwrap());
    for _ in 0..10 {
        stream.write_all(&ask(Command::Flush, 0, 0, 0).repeat(8)).unwrap();
        stream.read_exact(&mut [0; 8 * 16]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    let waits = served.ended().0.waits;
    // Some 30 for what was done; 6,000 if it were looked after.
    assert!((10..500).contains(&waits), "{waits}");
}

#[test]
fn one_client_s_slow_requests_leave_the_others_their_turn() {
    const BIG: u64 = 64 << 20;
    const QUEUED: usize = 4000;
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
    drop(slow);
    let (counters, _) = served.ended();
    assert!(counters.requests < QUEUED as u64 / 2, "{}", counters.requests);
}

#[test]
fn too_many_clients_push_out_those_that_negotiate() {
    let options = Options { connections: 4, ..Options::default() };
    let served = Served::new(Backend::memory(SIZE).unwrap(), Access::ReadWrite, options, true);
    let _idle: Vec<UnixStream> = (0..4).map(|_| served.raw()).collect();
    let mut good: Vec<UnixStream> = (0..4).map(|_| agreed(&served)).collect();
    for stream in &mut good {
        stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
        assert_eq!(error(stream), 0);
    }
    let mut one_more = served.raw();
    let mut said = Vec::new();
    let _ = one_more.read_to_end(&mut said);
    assert!(said.is_empty(), "turned away");
}

#[test]
fn a_client_that_takes_no_replies_costs_no_more_than_its_share() {
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
fn what_was_done_is_told_when_it_is_asked_for() {
    let served = Served::memory();
    let mut stream = agreed(&served);
    stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    assert_eq!(error(&mut stream), 0);
    served.orders.report();
    let end = Instant::now() + Duration::from_secs(20);
    while served.notes.lock().unwrap().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(served.ended().1, ["1 requests so far"]);
}

#[test]
fn the_end_finishes_what_has_arrived() {
    let served = Served::memory();
    let mut stream = agreed(&served);
    for _ in 0..100 {
        stream.write_all(&ask(Command::Read, 0, 0, 1000)).unwrap();
    }
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).map(|_| said.len())
    });
    assert_eq!(served.ended().0.requests, 100);
    assert_eq!(reader.join().unwrap().unwrap(), 100 * 1016);
}

/// However little of it at a time.
#[test]
fn a_server_that_never_ends_the_handshake_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let uri: Uri = format!("nbd+unix:///?socket={}", path.display()).parse().unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            // Until the client has gone.
            while stream.write_all(b"N").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let options = client::Options { patience: Duration::from_millis(300), ..client::Options::default() };
        let said = Client::connect(&uri, 1, 1, options).unwrap_err().to_string();
        assert!(said.contains("did not end within 0.3 s") || said.contains("says nothing"), "{said}");
    });
}

#[test]
fn a_server_that_makes_no_sense_is_an_error_of_the_client() {
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
            let said = client.wait(|_| panic!("nothing was replied to")).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        });
    }
}
