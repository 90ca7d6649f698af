//! Receive coalescing by the server.

use super::*;

/// A timeout that no test reaches.
const PATIENT: Duration = Duration::from_secs(600);

/// A server that coalesces, and a client after the handshake.
fn connected(coalesce: Duration) -> (Served, TcpStream) {
    let served = Served::tuned(Tuning { coalesce, ..Tuning::default() }, false);
    let stream = shaken(served.tcp());
    (served, stream)
}

/// After two requests that arrived together, the server waits for a second one, and replies to both when it arrives.
#[test]
fn requests_of_clients_with_several_in_flight_are_coalesced() {
    let (served, mut stream) = connected(PATIENT);
    (0..3).for_each(|_| flush(&mut stream, 1));
    flush(&mut stream, 2);
    stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    stream.set_nonblocking(true).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(stream.read(&mut [0; 16]).unwrap_err().kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
    drop(served);

    let (_served, mut stream) = connected(Duration::from_millis(1));
    for _ in 0..3 {
        flush(&mut stream, 2);
        flush(&mut stream, 1);
    }
}

#[test]
fn shutdown_does_not_wait_for_requests_that_usually_arrive() {
    let (served, mut stream) = connected(PATIENT);
    flush(&mut stream, 2);
    stream.write_all(&ask(Command::Flush, 0, 0, 0)).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    let begun = Instant::now();
    assert_eq!(served.ended().0.requests, 3);
    assert_eq!(error(&mut stream), 0);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// Its requests are executed and its place is free long before the timeout.
#[test]
fn a_client_that_disconnects_ends_the_wait_for_its_requests() {
    let (file, served) = in_memory(4096, Tuning { coalesce: PATIENT, ..Tuning::default() }, false);
    let mut stream = shaken(served.tcp());
    flush(&mut stream, 2);
    // The server now waits for two, and one arrives.
    stream.write_all(&write(0, &[7; 512])).unwrap();
    drop(stream);
    until(|| {
        let mut last = [0];
        file.read_exact_at(&mut last, 511).unwrap();
        last == [7]
    });
}

/// The server does not wait in the middle of a payload for what usually arrives together.
#[test]
fn the_rest_of_a_payload_is_used_as_soon_as_it_is_there() {
    // The server waits for twice the usual time.
    const USUAL: Duration = Duration::from_secs(3);
    let (served, mut stream) = connected(PATIENT);
    stream.write_all(&write(0, &[7; 3000]).repeat(2)).unwrap();
    assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
    std::thread::sleep(USUAL);
    let long = write(0, &[7; 20_000]);
    let (begin, rest) = long.split_at(15_000);
    stream.write_all(begin).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    stream.write_all(rest).unwrap();
    let begun = Instant::now();
    assert_eq!(error(&mut stream), 0);
    assert!(begun.elapsed() < USUAL, "{:?}", begun.elapsed());
    assert_eq!(served.ended().0.in_place_bytes, 5028);
}

/// A client that sends a payload in small pieces does not wake the server for each.
#[test]
fn the_rest_of_a_payload_is_coalesced() {
    const PIECES: usize = 40;
    const PIECE: usize = 4096;
    let waits = |coalesce| {
        let (served, mut stream) = connected(coalesce);
        stream.set_nodelay(true).unwrap();
        stream.write_all(&ask(Command::Write, 0, 0, (PIECES * PIECE) as u32)).unwrap();
        for _ in 0..PIECES {
            std::thread::sleep(Duration::from_millis(2));
            stream.write_all(&[7; PIECE]).unwrap();
        }
        assert_eq!(error(&mut stream), 0);
        served.ended().0.waits
    };
    let (one_by_one, as_one) = (waits(Duration::ZERO), waits(PATIENT));
    // The number of pieces that arrive together depends on the machine; a busy one lowers both counts.
    assert!(as_one <= 16 && (one_by_one > as_one || one_by_one <= 16), "{one_by_one} and {as_one}");
}

/// A client that had several requests in flight and now has none is not polled.
#[test]
fn an_idle_client_costs_no_wake_ups() {
    let served = Served::with(Options::default(), false);
    let mut stream = shaken(served.tcp());
    for _ in 0..10 {
        stream.write_all(&ask(Command::Flush, 0, 0, 0).repeat(8)).unwrap();
        stream.read_exact(&mut [0; 8 * 16]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    let waits = served.ended().0.waits;
    // About 30 for the requests; 600 or more if the client were polled.
    assert!((10..500).contains(&waits), "{waits}");
}
