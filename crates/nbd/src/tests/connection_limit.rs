//! More clients than there is room for.

use super::{SIZE, Served, ask, error, shaken};
use crate::backends::Backend;
use crate::client::Address;
use crate::filters::delay::{Delay, Layer};
use crate::server::{Access, BACKLOG, Options};
use crate::tuning::Tuning;
use crate::wire::Command;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The thread looks at nobody for a second or so.
#[test]
fn clients_are_turned_away_while_the_event_loop_is_busy() {
    const ALLOWED: usize = 4;
    const COMING: usize = 60;
    let delay = Delay::new(Layer::Server, 3_000_000_000);
    let tuning = Tuning { delay, ..Tuning::default() };
    let options = Options { tuning, connections: ALLOWED, threads: 1, ..Options::default() };
    let served = Served::new(Backend::memory(SIZE, &tuning).unwrap(), Access::ReadWrite, options, false);
    let Address::Tcp { host, port } = served.uri.address.clone() else { unreachable!() };
    let connect = || TcpStream::connect((host.as_str(), port)).unwrap();
    let mut first = shaken(connect());
    first.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let others: Vec<TcpStream> = (0..COMING).map(|_| connect()).collect();
    std::thread::sleep(Duration::from_millis(300));
    let gone = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        match stream.read(&mut [0; 64]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    };
    let gone = others.iter().filter(|stream| gone(stream)).count();
    assert!(gone >= COMING - ALLOWED - BACKLOG, "{gone}");
    assert_eq!(error(&mut first), 0);
}
