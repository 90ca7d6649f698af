//! What a server does before it goes, and when a client has gone.

use super::{SIZE, Served, agreed, ask, error, shaken};
use crate::backends::Backend;
use crate::client::Address;
use crate::filters::delay::{Delay, Layer};
use crate::server::{Access, Options};
use crate::tuning::Tuning;
use crate::wire::Command;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A server that is busy for so many ticks with each request.
fn busy(ticks: u64) -> Served {
    let delay = Delay::new(Layer::Server, ticks);
    let tuning = Tuning { delay, ..Tuning::default() };
    let options = Options { tuning, ..Options::default() };
    Served::new(Backend::memory(SIZE, &tuning).unwrap(), Access::ReadWrite, options, false)
}

fn connected(served: &Served) -> TcpStream {
    let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
    let stream = shaken(TcpStream::connect((host.as_str(), port)).unwrap());
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// A server, and a client whose socket takes few replies.
fn with_little_room() -> (Served, TcpStream) {
    let backend = Backend::memory(SIZE, &Tuning::default()).unwrap();
    let served = Served::new(backend, Access::ReadWrite, Options::default(), false);
    let stream = connected(&served);
    set_socket_recv_buffer_size(&stream, 64 << 10).unwrap();
    (served, stream)
}

fn write(offset: u64, payload: &[u8]) -> Vec<u8> {
    [&ask(Command::Write, 0, offset, payload.len() as u32)[..], payload].concat()
}

#[test]
fn server_finishes_requests_that_arrived() {
    let served = Served::memory();
    let mut stream = agreed(&served);
    for _ in 0..100 {
        stream.write_all(&ask(Command::Read, 0, 0, 1000)).unwrap();
    }
    let reader = std::thread::spawn(move || {
        let mut received = Vec::new();
        stream.read_to_end(&mut received).map(|_| received.len())
    });
    assert_eq!(served.ended().0.requests, 100);
    assert_eq!(reader.join().unwrap().unwrap(), 100 * 1016);
}

/// More than is received at one go, in one that is busy while it arrives.
#[test]
fn server_finishes_all_that_arrived() {
    const WRITES: usize = 12;
    // More than a second in all.
    let served = busy(300_000_000);
    let mut stream = connected(&served);
    // All of it is in the sockets' memory when this returns.
    stream.write_all(&write(0, &vec![7; 128 << 10]).repeat(WRITES)).unwrap();
    let reader = std::thread::spawn(move || (0..WRITES).map(|_| error(&mut stream)).collect::<Vec<_>>());
    assert_eq!(served.ended().0.requests, WRITES as u64);
    assert_eq!(reader.join().unwrap(), [0; WRITES]);
}

/// A connection that is closed while something lies unread is reset, and what the other end has no room for is lost.
#[test]
fn replies_on_the_way_at_shutdown_are_delivered() {
    const READS: usize = 8;
    const BYTES: usize = 64 << 10;
    let (served, mut stream) = with_little_room();
    stream.write_all(&ask(Command::Read, 0, 0, BYTES as u32).repeat(READS)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    let reader = std::thread::spawn(move || {
        // By now the end has begun, and this is not heard.
        std::thread::sleep(Duration::from_millis(200));
        stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let mut replies = vec![0; READS * (16 + BYTES)];
        stream.read_exact(&mut replies).map(|()| stream)
    });
    let (done, _) = served.ended();
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    reader.join().unwrap().unwrap();
    assert!(done.requests >= READS as u64, "{done:?}");
}

/// What lies behind replies that a client is slow to take has arrived as well.
#[test]
fn requests_behind_replies_that_are_not_taken_are_finished() {
    // More than a socket has room for.
    const READS: usize = 200;
    // More than is received at one go.
    const WRITES: usize = 8;
    const BYTES: usize = 64 << 10;
    let (served, mut stream) = with_little_room();
    stream.write_all(&ask(Command::Read, 0, 0, BYTES as u32).repeat(READS)).unwrap();
    stream.write_all(&write(0, &[7; BYTES]).repeat(WRITES)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let reader = std::thread::spawn(move || {
        // By now the end has begun, and there was a pause in it.
        std::thread::sleep(Duration::from_millis(500));
        stream.read_exact(&mut vec![0; READS * (16 + BYTES)]).unwrap();
        (0..WRITES).map(|_| error(&mut stream)).collect::<Vec<_>>()
    });
    assert_eq!(served.ended().0.requests, (READS + WRITES) as u64);
    assert_eq!(reader.join().unwrap(), [0; WRITES]);
}

/// One request is received while nothing can be sent, and one lies behind it.
#[test]
fn requests_that_arrive_while_replies_are_not_taken_are_finished() {
    // In one batch, which is more than a socket has room for.
    const READS: usize = 100;
    const BYTES: usize = 64 << 10;
    let (served, mut stream) = with_little_room();
    stream.write_all(&ask(Command::Read, 0, 0, BYTES as u32).repeat(READS)).unwrap();
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(100));
        stream.write_all(&write(0, &[7; 1000])).unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    let reader = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stream.read_exact(&mut vec![0; READS * (16 + BYTES)]).unwrap();
        (error(&mut stream), error(&mut stream))
    });
    assert_eq!(served.ended().0.requests, READS as u64 + 2);
    assert_eq!(reader.join().unwrap(), (0, 0));
}

/// One never stops sending, and one stopped in the middle of a request.
#[test]
fn misbehaving_clients_do_not_keep_the_server() {
    let served =
        Served::new(Backend::memory(SIZE, &Tuning::default()).unwrap(), Access::ReadWrite, Options::default(), false);
    let (mut busy, mut silent) = (connected(&served), connected(&served));
    silent.write_all(&write(0, &[7; 4096])[..100]).unwrap();
    let idle = connected(&served);
    let mut replies = busy.try_clone().unwrap();
    let reader = std::thread::spawn(move || while replies.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
    let writer = std::thread::spawn(move || while busy.write_all(&write(0, &[7; 4096]).repeat(4)).is_ok() {});
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    let (done, notes) = served.ended();
    // Five seconds, and what a busy machine adds.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(done.requests > 0);
    assert!(notes.iter().any(|note| note.contains("the server shut down")), "{notes:?}");
    reader.join().unwrap();
    writer.join().unwrap();
    drop((idle, silent));
}

#[test]
fn requests_of_a_client_that_left_are_given_up_after_the_limit() {
    let served = busy(400_000_000);
    let mut stream = connected(&served);
    stream.write_all(&write(0, &[7; 512]).repeat(200)).unwrap();
    drop(stream);
    let begun = Instant::now();
    while !served.notes.lock().unwrap().iter().any(|note| note.contains("before all that it asked for was done")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", served.notes.lock().unwrap());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(served.ended().0.requests < 200);
}

#[test]
fn requests_of_a_client_that_left_are_done() {
    const WRITES: u64 = 16;
    // More than is copied.
    const BYTES: u64 = 8 << 10;
    for good_bye in [true, false] {
        let served = busy(20_000_000);
        let mut stream = connected(&served);
        let mut requests: Vec<u8> =
            (0..WRITES).flat_map(|number| write(number * BYTES, &vec![number as u8 + 1; BYTES as usize])).collect();
        // One that is refused has a payload too.
        requests.splice(0..0, write(SIZE, &[9; BYTES as usize]));
        // Its reply is longer than anybody would send who is not heard.
        requests.splice(0..0, ask(Command::Read, 0, 0, 64 << 10));
        if good_bye {
            requests.extend(ask(Command::Disconnect, 0, 0, 0));
        }
        stream.write_all(&requests).unwrap();
        drop(stream);
        let mut other = connected(&served);
        let begun = Instant::now();
        for number in 0..WRITES {
            let mut found = vec![0; BYTES as usize];
            while found != vec![number as u8 + 1; BYTES as usize] {
                assert!(begun.elapsed() < Duration::from_secs(60), "write {number} is not there, good-bye {good_bye}");
                other.write_all(&ask(Command::Read, 0, number * BYTES, BYTES as u32)).unwrap();
                assert_eq!(error(&mut other), 0);
                other.read_exact(&mut found).unwrap();
            }
        }
        drop(other);
        let (_, notes) = served.ended();
        let complained = notes.iter().any(|note| note.contains("went away"));
        assert_eq!(complained, !good_bye, "{notes:?}");
    }
}
