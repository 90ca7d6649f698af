//! One connection for several threads: no request is lost or mixed up, and every thread is notified of its end.

use super::*;
use crate::client::shared_client::{Queueing, SharedClient, SharedOptions, Submitter};
use crate::tuning::Framing;

const ALL: [Queueing; 4] = [Queueing::Lock, Queueing::RingTask, Queueing::MpRing, Queueing::SwapAll];
const DEPTH: u32 = 4;
const SLOT: usize = 70_000;

fn shared_options(queueing: Queueing) -> SharedOptions {
    SharedOptions {
        tuning: Tuning::default(),
        queueing,
        silence: Duration::from_secs(60),
        task_cpus: Vec::new(),
        handshake_timeout: Duration::from_secs(10),
    }
}

/// Writes blocks of its own part of the storage, reads them back, and compares.
fn play(submitter: &mut Submitter, part: u64, turns: u32) {
    // From short payloads, which are copied, to long ones, which are not.
    let lengths = [512, 5000, SLOT as u32, 100];
    for turn in 0..turns {
        for ask in [Ask::Write, Ask::Read] {
            let mut left = [true; DEPTH as usize];
            for (slot, length) in lengths.iter().enumerate() {
                let fill = if ask == Ask::Write { (part * 31 + u64::from(turn) + slot as u64) as u8 } else { 0 };
                submitter.arena().write(submitter.begin(slot as u32), &vec![fill; *length as usize]);
                let offset = part * (SIZE / 8) + slot as u64 * SLOT as u64;
                submitter.stage(slot as u32, ask, offset, *length).unwrap();
            }
            assert!(submitter.stage(0, Ask::Read, 0, 1).is_err(), "one request a slot");
            assert!(submitter.staged_bytes() > 0);
            submitter.submit(|_| ()).unwrap();
            assert_eq!(submitter.staged_bytes(), 0);
            let begun = Instant::now();
            while submitter.in_flight() > 0 {
                let done = |done: crate::client::Done| {
                    assert_eq!((done.error, done.length), (None, lengths[done.slot as usize]));
                    assert!(std::mem::take(&mut left[done.slot as usize]), "completed twice");
                    assert!(done.handed_over > 0 && done.answered >= done.handed_over);
                };
                submitter.exchange(done).unwrap();
                assert!(begun.elapsed() < Duration::from_secs(60), "{} are missing", submitter.in_flight());
            }
            assert_eq!(left, [false; DEPTH as usize]);
        }
        for (slot, length) in lengths.iter().enumerate() {
            let mut found = vec![0; *length as usize];
            submitter.arena().read(submitter.begin(slot as u32), &mut found);
            let expected = (part * 31 + u64::from(turn) + slot as u64) as u8;
            assert!(found.iter().all(|byte| *byte == expected), "part {part}, slot {slot}");
        }
    }
}

#[test]
fn threads_on_a_shared_connection_get_their_own_replies() {
    for queueing in ALL {
        let served = Served::memory();
        let client = SharedClient::connect(&served.uri, 8, DEPTH, SLOT, shared_options(queueing)).unwrap();
        let submitters: Vec<Submitter> = (0..8).map(|_| client.submitter().unwrap()).collect();
        assert!(client.submitter().is_none(), "all are in use");
        std::thread::scope(|scope| {
            for (part, mut submitter) in submitters.into_iter().enumerate() {
                scope.spawn(move || play(&mut submitter, part as u64, 40));
            }
        });
        let syscalls = client.syscalls();
        assert!(client.submitter().is_some(), "a submitter with nothing in flight becomes free again");
        drop(client);
        let (counters, notes) = served.ended();
        // And the disconnect.
        assert_eq!((counters.requests, counters.errors, notes), (8 * 40 * 8 + 1, 0, Vec::new()), "{queueing:?}");
        assert!(syscalls.sends > 0 && syscalls.receives > 0, "{queueing:?}: {syscalls:?}");
    }
}

/// Why a wait in which no request is completed fails.
fn failure(submitter: &mut Submitter) -> String {
    let mut error = None;
    until(|| {
        error = submitter.exchange(|_| panic!("no request was completed")).err();
        error.is_some()
    });
    error.unwrap().to_string()
}

#[test]
fn every_thread_is_notified_of_a_lost_shared_connection() {
    for queueing in ALL {
        let (_folder, listener, uri) = by_hand();
        for (lie, expected) in
            [(vec![], "closed"), (vec![0; 16], "magic 0x0"), (simple_reply(99, None).to_vec(), "not in flight")]
        {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut stream = agreeing(&listener);
                    // Unread data at close would turn the end of the connection into a reset.
                    stream.read_exact(&mut [0; 2 * 28]).unwrap();
                    stream.write_all(&lie).unwrap();
                });
                let client = SharedClient::connect(&uri, 2, 1, 4096, shared_options(queueing)).unwrap();
                for mut submitter in [client.submitter().unwrap(), client.submitter().unwrap()] {
                    let expected = expected.to_owned();
                    scope.spawn(move || {
                        submitter.stage(0, Ask::Read, 0, 4096).unwrap();
                        let error = failure(&mut submitter);
                        assert!(error.contains(&expected), "{error}");
                    });
                }
            });
        }
    }
}

#[test]
fn tuning_that_shared_connections_lack_is_refused() {
    let served = Served::memory();
    let default = Tuning::default();
    for (tuning, word) in [
        (Tuning { zero_copy: 0, ..default }, "zero copy"),
        (Tuning { checksums: true, ..default }, "checksum"),
        (Tuning { framing: Framing::PageAtATime, ..default }, "framing"),
        (Tuning { segment: 4096, ..default }, "segments"),
        (Tuning { busy_poll: Duration::from_micros(1), ..default }, "busy"),
    ] {
        let options = SharedOptions { tuning, ..shared_options(Queueing::Lock) };
        let error = SharedClient::connect(&served.uri, 1, 1, 512, options).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let many = SharedClient::connect(&served.uri, 64, 1024, 512, shared_options(Queueing::MpRing));
    assert!(many.unwrap_err().to_string().contains("exceed the limit"));
}

/// The thread that drains the queue does not wait forever.
#[test]
fn a_server_that_accepts_no_data_times_out() {
    const BIG: usize = 4 << 20;
    for queueing in ALL {
        let (_folder, listener, uri) = by_hand();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let listener = &listener;
            scope.spawn(move || {
                let stream = agreeing(listener);
                let _ = ended.recv();
                drop(stream);
            });
            let options = SharedOptions { silence: Duration::from_millis(300), ..shared_options(queueing) };
            let client = SharedClient::connect(&uri, 1, 2, BIG, options).unwrap();
            let mut submitter = client.submitter().unwrap();
            for slot in 0..2 {
                submitter.stage(slot, Ask::Write, 0, BIG as u32).unwrap();
            }
            let error = failure(&mut submitter);
            assert!(error.contains("accepted no data for 0.3 s"), "{queueing:?}: {error}");
            end.send(()).unwrap();
        });
    }
}

/// A server that predicts a cookie cannot free a queued slot.
#[test]
fn a_reply_to_a_queued_request_is_an_error() {
    let (_folder, listener, uri) = by_hand();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = agreeing(&listener);
            stream.read_exact(&mut [0; 1]).unwrap();
            // To the first request of slot 1, which is staged and not submitted.
            stream.write_all(&simple_reply(1 | 1 << 32, None)).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let client = SharedClient::connect(&uri, 1, 2, 512, shared_options(Queueing::SwapAll)).unwrap();
        let mut submitter = client.submitter().unwrap();
        submitter.stage(0, Ask::Read, 0, 512).unwrap();
        submitter.submit(|_| ()).unwrap();
        submitter.stage(1, Ask::Read, 0, 512).unwrap();
        // Not `wait`, which would submit first.
        until(|| submitter.shared().lost().is_some());
        assert!(submitter.shared().lost().unwrap().contains("not in flight"));
    });
}
