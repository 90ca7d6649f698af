//! More clients than the limit.

use super::*;
use crate::filters::{Delay, Layer};
use crate::server::BACKLOG;

/// The event loop is busy with one request for about a second.
#[test]
fn clients_over_the_limit_are_refused_while_the_event_loop_is_busy() {
    const ALLOWED: usize = 4;
    const COMING: usize = 60;
    let delay = Delay::new(Layer::Server, 3_000_000_000);
    let tuning = Tuning { delay, ..Tuning::default() };
    let options = Options { tuning, connections: ALLOWED, threads: 1, ..Options::default() };
    let served = Served::with(options, false);
    let mut first = shaken(served.tcp());
    first.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let others: Vec<TcpStream> = (0..COMING).map(|_| served.tcp()).collect();
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
