//! What a server does before it goes, and when a client has gone.

use super::{SIZE, Served, Transport, ask, error, has_rings, options, shaken};
use crate::backend::Backend;
use crate::client::Address;
use crate::server::{Access, Options};
use crate::switches::{Inject, Layer, Switches};
use crate::wire::Command;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

over_both! {
    the_end_finishes_all_that_has_arrived,
    replies_that_are_on_the_way_at_the_end_arrive,
    who_goes_without_waiting_for_the_replies_has_his_requests_done,
}

/// A server that is busy for so many ticks with each request.
fn busy(transport: Transport, ticks: u64) -> Served {
    let inject = Inject { at: Layer::Server, ticks };
    let switches = Switches { inject, transport, ..Switches::default() };
    let options = Options { switches, ..options(transport) };
    Served::new(Backend::memory(SIZE, &switches).unwrap(), Access::ReadWrite, options, false)
}

fn connected(served: &Served) -> TcpStream {
    let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
    let stream = shaken(TcpStream::connect((host.as_str(), port)).unwrap());
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn write(offset: u64, payload: &[u8]) -> Vec<u8> {
    [&ask(Command::Write, 0, offset, payload.len() as u32)[..], payload].concat()
}

/// More than is received at one go, in one that is busy while it arrives.
fn the_end_finishes_all_that_has_arrived(transport: Transport) {
    const WRITES: usize = 12;
    let served = busy(transport, 40_000_000);
    let mut stream = connected(&served);
    // All of it is in the sockets' memory when this returns.
    stream.write_all(&write(0, &vec![7; 128 << 10]).repeat(WRITES)).unwrap();
    let reader = std::thread::spawn(move || (0..WRITES).map(|_| error(&mut stream)).collect::<Vec<_>>());
    assert_eq!(served.ended().0.requests, WRITES as u64);
    assert_eq!(reader.join().unwrap(), [0; WRITES]);
}

/// A connection that is closed while something lies unread is reset, and what the other end has no room for is lost.
fn replies_that_are_on_the_way_at_the_end_arrive(transport: Transport) {
    const READS: usize = 8;
    const BYTES: usize = 64 << 10;
    let served =
        Served::new(Backend::memory(SIZE, &Switches::default()).unwrap(), Access::ReadWrite, options(transport), false);
    let mut stream = connected(&served);
    set_socket_recv_buffer_size(&stream, 64 << 10).unwrap();
    stream.write_all(&ask(Command::Read, 0, 0, BYTES as u32).repeat(READS)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let reader = std::thread::spawn(move || {
        // By now the end has begun, and this is not heard.
        std::thread::sleep(Duration::from_millis(200));
        stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let mut replies = vec![0; READS * (16 + BYTES)];
        stream.read_exact(&mut replies).map(|()| stream)
    });
    let begun = Instant::now();
    let (done, _) = served.ended();
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    reader.join().unwrap().unwrap();
    assert!(done.requests >= READS as u64, "{done:?}");
}

fn who_goes_without_waiting_for_the_replies_has_his_requests_done(transport: Transport) {
    const WRITES: u64 = 16;
    const BYTES: u64 = 1 << 10;
    for good_bye in [true, false] {
        let served = busy(transport, 20_000_000);
        let mut stream = connected(&served);
        let mut requests: Vec<u8> =
            (0..WRITES).flat_map(|number| write(number * BYTES, &vec![number as u8 + 1; BYTES as usize])).collect();
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
