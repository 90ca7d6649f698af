//! What is sent, received and given up through a ring.

use super::*;
use crate::byte_store::ByteStore;
use rustix::event::PollFlags;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// `None`, and noted, where io_uring is not to be had.
fn ring() -> Option<StreamRing> {
    ring_of(8)
}

fn ring_of(most: u32) -> Option<StreamRing> {
    match StreamRing::new(most) {
        Ok(ring) => Some(ring),
        Err(error) => {
            let line = format!("SKIP stream_ring: no io_uring: {error}\n");
            io::stderr().write_all(line.as_bytes()).unwrap();
            if let Some(path) = std::env::var_os("IOTOLL_SKIP_LOG") {
                let log = std::fs::File::options().create(true).append(true).open(path);
                log.and_then(|mut log| log.write_all(line.as_bytes())).unwrap();
            }
            None
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn memory(length: usize) -> Receiving {
    Receiving::Bytes { memory: vec![0; length], from: 0, most: length }
}

/// The next event, which is one of this stream.
fn next(ring: &mut StreamRing, stream: u32) -> Event {
    loop {
        if let Some((whose, event)) = ring.take_event() {
            assert_eq!(whose, stream);
            return event;
        }
        ring.enter(Wait::UntilSome).unwrap();
    }
}

#[test]
fn one_crossing_sends_and_receives() {
    let Some(mut ring) = ring() else { return };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let stream = ring.add(&ours).unwrap();
    let mut batch = SendBatch::new(None);
    batch.put(b"question");
    assert!(ring.send(stream, &ours, batch).unwrap());
    ring.receive(stream, Receiving::Bytes { memory: b"an ......".to_vec(), from: 3, most: 4 }).unwrap();
    theirs.write_all(b"answer").unwrap();
    let before = ring.crossings();
    ring.enter(Wait::UntilSome).unwrap();
    assert_eq!(ring.crossings() - before, 1);
    let Event::Sent(batch, Ok(true)) = next(&mut ring, stream) else { panic!("it is sent first") };
    assert_eq!(batch.unsent(), 0);
    let Event::Received(Receiving::Bytes { memory, .. }, Ok(4)) = next(&mut ring, stream) else { panic!() };
    assert_eq!(memory, b"an answ..");
    let mut question = [0; 8];
    theirs.read_exact(&mut question).unwrap();
    assert_eq!(&question, b"question");
}

#[test]
fn what_the_socket_does_not_take_stays_in_the_batch() {
    for in_pieces in [None, Some(100_000)] {
        let Some(mut ring) = ring() else { return };
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let stream = ring.add(&ours).unwrap();
        let data = pattern(4 << 20);
        let store = Arc::new(ByteStore::in_file(data.len()).unwrap());
        store.write(0, &data);
        let mut batch =
            SendBatch::new(Some(store.clone())).with_pages_of(store.file().cloned()).in_pieces_of(in_pieces);
        let mut expected = Vec::new();
        for part in 0..2000 {
            let (begin, length) = (part * 2000, 1 + part * 7 % 1999);
            batch.put(&data[..5]);
            match part % 100 {
                99 => batch.hand_over(begin, length),
                _ => batch.gather(begin, length),
            }
            expected.extend_from_slice(&data[..5]);
            expected.extend_from_slice(&data[begin..begin + length]);
        }
        // Nobody reads before the socket is full.
        let (begin, begun) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            begun.recv().unwrap();
            let mut found = Vec::new();
            theirs.read_to_end(&mut found).unwrap();
            found
        });
        let mut blocked = 0;
        while batch.unsent() > 0 {
            ring.send(stream, &ours, batch).unwrap();
            ring.enter(Wait::Never).unwrap();
            let Event::Sent(back, taken) = next(&mut ring, stream) else { panic!() };
            batch = back;
            if !taken.unwrap() {
                blocked += 1;
                let _ = begin.send(());
                ring.look(stream, PollFlags::OUT).unwrap();
                ring.look(stream, PollFlags::OUT).unwrap();
                assert!(matches!(next(&mut ring, stream), Event::Ready));
            }
        }
        assert!(blocked > 0, "more than a socket holds");
        ring.remove(stream);
        drop((ring, ours));
        assert!(reader.join().unwrap() == expected);
    }
}

#[test]
fn less_than_the_low_water_mark_is_not_received() {
    let Some(mut ring) = ring() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    let stream = ring.add(&ours).unwrap();
    crate::socket::wake_when_readable(&ours, 10).unwrap();
    theirs.write_all(b"123456789").unwrap();
    ring.receive(stream, memory(100)).unwrap();
    ring.enter(Wait::For(Duration::from_millis(5))).unwrap();
    assert!(ring.take_event().is_none());
    theirs.write_all(b"0").unwrap();
    let Event::Received(_, Ok(10)) = next(&mut ring, stream) else { panic!() };
    // A lower mark is heeded by a receive that waits already.
    ring.receive(stream, memory(100)).unwrap();
    theirs.write_all(b"12").unwrap();
    ring.enter(Wait::For(Duration::from_millis(5))).unwrap();
    assert!(ring.take_event().is_none());
    crate::socket::wake_when_readable(&ours, 1).unwrap();
    assert!(matches!(next(&mut ring, stream), Event::Received(_, Ok(2))));
}

#[test]
fn places_are_received_to() {
    let Some(mut ring) = ring() else { return };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let stream = ring.add(&ours).unwrap();
    let store = Arc::new(ByteStore::zeroed(100).unwrap());
    let mut places = ReceiveBatch::new(store.clone());
    places.keep(2);
    places.store(50, 3);
    ring.receive(stream, Receiving::Places(places)).unwrap();
    ring.enter(Wait::Never).unwrap();
    theirs.write_all(b"abcdefgh").unwrap();
    let Event::Received(Receiving::Places(places), Ok(5)) = next(&mut ring, stream) else { panic!() };
    let mut found = [0; 3];
    store.read(50, &mut found);
    assert_eq!((places.own(), &found), (&b"ab"[..], b"cde"));
    drop(theirs);
    ring.receive(stream, memory(10)).unwrap();
    assert!(matches!(next(&mut ring, stream), Event::Received(_, Ok(3))));
    ring.receive(stream, memory(10)).unwrap();
    assert!(matches!(next(&mut ring, stream), Event::Received(_, Ok(0))));
    let mut batch = SendBatch::new(None);
    batch.put(b"x");
    ring.send(stream, &ours, batch).unwrap();
    let Event::Sent(_, Err(error)) = next(&mut ring, stream) else { panic!() };
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn who_was_removed_is_not_heard_of_and_makes_room() {
    let Some(mut ring) = ring() else { return };
    let mut pairs = Vec::new();
    for _ in 0..100 {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        // Those that the kernel is not done with go away with a crossing.
        ring.enter(Wait::Never).unwrap();
        let stream = ring.add(&ours).unwrap();
        ring.receive(stream, memory(10)).unwrap();
        ring.look(stream, PollFlags::HUP).unwrap();
        if pairs.len() % 2 == 0 {
            ring.enter(Wait::Never).unwrap();
        }
        let mut batch = SendBatch::new(None);
        batch.put(b"never");
        ring.send(stream, &ours, batch).unwrap();
        theirs.write_all(b"for nobody").unwrap();
        ring.remove(stream);
        pairs.push((ours, theirs));
    }
    ring.enter(Wait::For(Duration::from_millis(5))).unwrap();
    assert!(ring.take_event().is_none());
    for (ours, mut theirs) in pairs {
        drop(ours);
        let mut found = Vec::new();
        // What was on the way to us when the end came makes the end a reset.
        let _ = theirs.read_to_end(&mut found);
        assert!(found.is_empty(), "what was not handed over is not sent");
    }
    assert!(ring.receive(0, memory(10)).is_err());
}

#[test]
fn what_cannot_be_done_is_an_error_and_nothing_else() {
    let Some(mut ring) = ring() else { return };
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let stream = ring.add(&ours).unwrap();
    let outside = Receiving::Bytes { memory: vec![0; 10], from: 5, most: 6 };
    assert!(ring.receive(stream, outside).is_err());
    ring.receive(stream, memory(10)).unwrap();
    assert!(ring.receive(stream, memory(10)).is_err());
    for _ in 1..8 {
        ring.add(&ours).unwrap();
    }
    assert!(ring.add(&ours).is_err());
    ring.enter(Wait::Never).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(ring.enter(Wait::For(Duration::from_millis(1))).is_err(), "it has its thread");
        });
    });
}

#[test]
fn more_may_be_staged_than_the_ring_has_entries() {
    const STREAMS: usize = 300;
    crate::process::raise_open_file_limit();
    let Some(mut ring) = ring_of(STREAMS as u32) else { return };
    let mut pairs = Vec::new();
    for number in 0..STREAMS {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let stream = ring.add(&ours).unwrap();
        let mut batch = SendBatch::new(None);
        batch.put(&(number as u32).to_be_bytes());
        ring.send(stream, &ours, batch).unwrap();
        ring.receive(stream, memory(10)).unwrap();
        pairs.push((stream, ours, theirs));
    }
    ring.enter(Wait::Never).unwrap();
    for (number, (_, _, theirs)) in pairs.iter_mut().enumerate() {
        let mut found = [0; 4];
        theirs.read_exact(&mut found).unwrap();
        assert_eq!(u32::from_be_bytes(found), number as u32);
        theirs.write_all(b"x").unwrap();
    }
    let (mut sent, mut received) = (0, 0);
    while received < STREAMS {
        ring.enter(Wait::UntilSome).unwrap();
        while let Some((_, event)) = ring.take_event() {
            match event {
                Event::Sent(batch, taken) => {
                    assert!(taken.unwrap() && batch.unsent() == 0);
                    sent += 1;
                }
                Event::Received(_, count) => received += count.unwrap(),
                Event::Ready => panic!("nothing was looked for"),
            }
        }
    }
    assert_eq!((sent, received), (STREAMS, STREAMS));
}

/// Whoever takes events and removes a stream because of one may have more of it in hand.
#[test]
fn a_name_is_not_given_again_before_the_next_crossing() {
    let Some(mut ring) = ring() else { return };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let first = ring.add(&ours).unwrap();
    ring.receive(first, memory(10)).unwrap();
    theirs.write_all(b"x").unwrap();
    assert!(matches!(next(&mut ring, first), Event::Received(_, Ok(1))));
    ring.remove(first);
    assert_ne!(ring.add(&ours).unwrap(), first);
    ring.enter(Wait::Never).unwrap();
    assert_eq!(ring.add(&ours).unwrap(), first);
}

#[test]
fn another_thread_s_ring_is_left_alone() {
    let (Some(mut ours), Some(mut theirs)) = (ring(), ring()) else { return };
    let (socket, _peer) = UnixStream::pair().unwrap();
    let stream = ours.add(&socket).unwrap();
    ours.receive(stream, memory(10)).unwrap();
    ours.enter(Wait::Never).unwrap();
    std::thread::spawn(move || {
        // One of its own, which has the same index here.
        let (socket, mut peer) = UnixStream::pair().unwrap();
        let stream = theirs.add(&socket).unwrap();
        theirs.receive(stream, memory(10)).unwrap();
        drop(ours);
        peer.write_all(b"still there").unwrap();
        assert!(matches!(next(&mut theirs, stream), Event::Received(_, Ok(10))));
    })
    .join()
    .unwrap();
}
