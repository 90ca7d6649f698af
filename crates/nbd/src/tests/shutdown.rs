//! What a server finishes before it exits, and after a client has disconnected.

use super::*;
use rustix::net::sockopt::set_socket_recv_buffer_size;

/// A server that spends this many milliseconds on each request.
fn busy(milliseconds: u64) -> Served {
    Served::tuned(Tuning { slow: Duration::from_millis(milliseconds), ..Tuning::default() }, false)
}

fn connected(served: &Served) -> TcpStream {
    shaken(served.tcp())
}

/// A server, and a client with a small receive buffer.
fn with_little_room() -> (Served, TcpStream) {
    let served = Served::with(Options::default(), false);
    let stream = connected(&served);
    set_socket_recv_buffer_size(&stream, 64 << 10).unwrap();
    (served, stream)
}

/// More data than one receive call takes, arriving while the server is busy.
#[test]
fn server_finishes_all_that_arrived() {
    const WRITES: usize = 12;
    // More than a second in total.
    let served = busy(100);
    let mut stream = connected(&served);
    // All of it is in the socket buffers when this returns.
    stream.write_all(&write(0, &vec![7; 128 << 10]).repeat(WRITES)).unwrap();
    let reader = std::thread::spawn(move || (0..WRITES).map(|_| error(&mut stream)).collect::<Vec<_>>());
    assert_eq!(served.ended().0.requests, WRITES as u64);
    assert_eq!(reader.join().unwrap(), [0; WRITES]);
}

/// Closing a connection with unread data resets it, and replies that the other end has no room for are lost.
#[test]
fn replies_on_the_way_at_shutdown_are_delivered() {
    const READS: usize = 8;
    const BYTES: usize = 64 << 10;
    let (served, mut stream) = with_little_room();
    stream.write_all(&ask(Command::Read, 0, 0, BYTES as u32).repeat(READS)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    let reader = std::thread::spawn(move || {
        // Shutdown has started by now, so the server does not read this.
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

/// Requests behind replies that a slow client has not received are executed and replied to, whether they arrived together
/// with the reads or while the server could send nothing.
#[test]
fn requests_behind_unreceived_replies_are_finished() {
    const BYTES: usize = 64 << 10;
    // The replies are more than a socket buffer has room for. The first writes are more than one receive call takes; the
    // second reads are one batch, and one of their writes is received while nothing can be sent.
    for (reads, writes, length, pause) in [(200, 8, BYTES, Duration::ZERO), (100, 2, 1000, Duration::from_millis(100))]
    {
        let (served, mut stream) = with_little_room();
        stream.write_all(&ask(Command::Read, 0, 0, BYTES as u32).repeat(reads)).unwrap();
        for _ in 0..writes {
            std::thread::sleep(pause);
            stream.write_all(&write(0, &vec![7; length])).unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
        let reader = std::thread::spawn(move || {
            // Shutdown has started by now, and there was a pause in it.
            std::thread::sleep(Duration::from_millis(500));
            stream.read_exact(&mut vec![0; reads * (16 + BYTES)]).unwrap();
            (0..writes).map(|_| error(&mut stream)).collect::<Vec<_>>()
        });
        assert_eq!(served.ended().0.requests, (reads + writes) as u64);
        assert_eq!(reader.join().unwrap(), vec![0; writes]);
    }
}

/// One client never stops sending, and one stopped in the middle of a request.
#[test]
fn misbehaving_clients_do_not_delay_shutdown() {
    let served = Served::with(Options::default(), false);
    let (mut busy, mut silent) = (connected(&served), connected(&served));
    silent.write_all(&write(0, &[7; 4096])[..100]).unwrap();
    let idle = connected(&served);
    let mut replies = busy.try_clone().unwrap();
    let reader = std::thread::spawn(move || while replies.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
    let writer = std::thread::spawn(move || while busy.write_all(&write(0, &[7; 4096]).repeat(4)).is_ok() {});
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    let (done, notes) = served.ended();
    // Five seconds, plus the delays of a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(done.requests > 0);
    assert!(notes.iter().any(|note| note.contains("the server shut down")), "{notes:?}");
    reader.join().unwrap();
    writer.join().unwrap();
    drop((idle, silent));
}

#[test]
fn requests_of_a_disconnected_client_are_dropped_after_the_limit() {
    let served = busy(130);
    let mut stream = connected(&served);
    stream.write_all(&write(0, &[7; 512]).repeat(200)).unwrap();
    drop(stream);
    until(|| served.notes.lock().unwrap().iter().any(|note| note.contains("before its requests finished")));
    assert!(served.ended().0.requests < 200);
}

#[test]
fn requests_of_a_disconnected_client_are_executed() {
    // Together less than TCP's first window: the kernel of a client that has gone drops what it could not send yet.
    const WRITES: u64 = 4;
    // More than the copy-out threshold.
    const BYTES: u64 = 8 << 10;
    for good_bye in [true, false] {
        let served = busy(7);
        let mut stream = connected(&served);
        let mut requests: Vec<u8> =
            (0..WRITES).flat_map(|number| write(number * BYTES, &vec![number as u8 + 1; BYTES as usize])).collect();
        // A refused write has a payload too.
        requests.splice(0..0, write(SIZE, &[9; BYTES as usize]));
        // Its reply is long; nobody receives it.
        requests.splice(0..0, ask(Command::Read, 0, 0, 64 << 10));
        if good_bye {
            requests.extend(ask(Command::Disconnect, 0, 0, 0));
        }
        stream.write_all(&requests).unwrap();
        drop(stream);
        let mut other = connected(&served);
        for number in 0..WRITES {
            let mut found = vec![0; BYTES as usize];
            until(|| {
                assert_eq!(reply(&mut other, &ask(Command::Read, 0, number * BYTES, BYTES as u32)), 0);
                other.read_exact(&mut found).unwrap();
                found == vec![number as u8 + 1; BYTES as usize]
            });
        }
        drop(other);
        let (_, notes) = served.ended();
        let complained = notes.iter().any(|note| note.contains("client disconnected"));
        assert_eq!(complained, !good_bye, "{notes:?}");
    }
}
