//! What a server waits for on a Unix socket, where no mark says how much is enough.

use super::{SIZE, Served, agreed, ask, assert_two_flushes_are_coalesced, error};
use crate::backends::Backend;
use crate::server::{Access, Options};
use crate::tuning::Tuning;
use crate::wire::Command;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A server that waits for minutes for what usually comes, and a client.
fn patient() -> (Served, UnixStream) {
    let tuning = Tuning { coalesce: Duration::from_secs(600), ..Options::default().tuning };
    let backend = Backend::memory(SIZE, &tuning).unwrap();
    let served = Served::new(backend, Access::ReadWrite, Options { tuning, ..Options::default() }, true);
    let stream = agreed(&served);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (served, stream)
}

/// What usually comes together is not waited for in the middle of a payload.
#[test]
fn the_rest_of_a_payload_is_used_as_soon_as_it_is_there() {
    // Twice that is waited for what usually takes as long.
    const USUAL: Duration = Duration::from_secs(3);
    let (served, mut stream) = patient();
    let write = |bytes: usize| [&ask(Command::Write, 0, 0, bytes as u32)[..], &vec![7; bytes]].concat();
    stream.write_all(&write(3000).repeat(2)).unwrap();
    assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
    std::thread::sleep(USUAL);
    let long = write(20_000);
    let (begin, rest) = long.split_at(15_000);
    stream.write_all(begin).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    stream.write_all(rest).unwrap();
    let begun = Instant::now();
    assert_eq!(error(&mut stream), 0);
    assert!(begun.elapsed() < USUAL, "{:?}", begun.elapsed());
    assert_eq!(served.ended().0.in_place_bytes, 5028);
}

#[test]
fn two_requests_that_usually_come_together_are_waited_for_as_two() {
    let (served, mut stream) = patient();
    let flush = ask(Command::Flush, 0, 0, 0);
    assert_two_flushes_are_coalesced(&mut stream);
    // Nor does the end wait for the second.
    stream.write_all(&flush).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(served.ended().0.requests, 5);
    assert_eq!(error(&mut stream), 0);
}
