//! What a server does before it goes.

use super::{SIZE, Served, ask, error, shaken};
use crate::backend::Backend;
use crate::client::Address;
use crate::server::{Access, Options};
use crate::switches::{Inject, Layer, Switches};
use crate::wire::Command;
use std::io::Write;
use std::net::TcpStream;

/// More than is received at one go, in one that is busy while it arrives.
#[test]
fn the_end_finishes_all_that_has_arrived() {
    const WRITES: usize = 12;
    const BYTES: usize = 128 << 10;
    let inject = Inject { at: Layer::Server, ticks: 40_000_000 };
    let switches = Switches { inject, ..Switches::default() };
    let options = Options { switches, ..Options::default() };
    let served = Served::new(Backend::memory(SIZE, &switches).unwrap(), Access::ReadWrite, options, false);
    let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
    let mut stream = shaken(TcpStream::connect((host.as_str(), port)).unwrap());
    let write = [&ask(Command::Write, 0, 0, BYTES as u32)[..], &vec![7; BYTES]].concat();
    // All of it is in the sockets' memory when this returns.
    stream.write_all(&write.repeat(WRITES)).unwrap();
    let reader = std::thread::spawn(move || (0..WRITES).map(|_| error(&mut stream)).collect::<Vec<_>>());
    assert_eq!(served.ended().0.requests, WRITES as u64);
    assert_eq!(reader.join().unwrap(), [0; WRITES]);
}
