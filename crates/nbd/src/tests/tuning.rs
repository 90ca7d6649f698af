//! Data are correct under any tuning, and each switch has the effect it names.

use super::*;
use crate::backends::Backend;
use crate::client::{Accounting, Wire};
use crate::server::Counters;
use crate::tuning::Framing;
use proptest::prelude::*;
use sys::shared_copy::Copying;

fn backends(folder: &tempfile::TempDir, tuning: &Tuning) -> Vec<Backend> {
    let mut options = std::fs::File::options();
    options.read(true).write(true);
    let file = |name| {
        let file = options.clone().create_new(true).open(folder.path().join(name)).unwrap();
        file.set_len(SIZE).unwrap();
        file
    };
    // One file in memory that is mapped, one that is read.
    let mapped = file("m");
    mapped.write_all_at(&vec![0; SIZE as usize], 0).unwrap();
    [Backend::memory(SIZE, tuning), Backend::page_cache(mapped), Backend::file(file("f"))].map(Result::unwrap).to_vec()
}

/// One request of a random workload.
#[derive(Clone, Copy, Debug)]
struct Step {
    ask: Ask,
    offset: u64,
    length: u32,
    fill: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lengths = prop_oneof![4 => 1_u32..10_000, 2 => 10_000_u32..300_000, 1 => 300_000_u32..1_200_000];
    let asks = prop_oneof![3 => Just(Ask::Read), 3 => Just(Ask::Write), 1 => Just(Ask::Trim), 1 => Just(Ask::Flush)];
    let step = (asks, 0..SIZE, lengths, 1_u8..).prop_map(|(ask, offset, length, fill)| {
        let length = length.min((SIZE - offset) as u32).max(1);
        Step { ask, offset, length, fill }
    });
    prop::collection::vec(step, 1..60)
}

/// Submits and waits until every request is completed.
fn finish(client: &mut Client, mut each: impl FnMut(client::Done)) {
    client.submit(&mut each).unwrap();
    let begun = Instant::now();
    while client.in_flight() > 0 {
        client.wait(&mut each).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(60), "wait never ends");
    }
}

fn succeeds(done: client::Done) {
    assert_eq!(done.error, None);
}

/// Executes every step against a server, several at a time if they do not overlap, and compares reads with a model.
fn play(steps: &[Step], client: &mut Client, slot_bytes: usize) {
    let mut model = vec![0_u8; SIZE as usize];
    for group in steps.chunks(4) {
        let mut used: Vec<Step> = Vec::new();
        for step in group {
            let apart = |other: &&Step| {
                step.offset >= other.offset + u64::from(other.length)
                    || other.offset >= step.offset + u64::from(step.length)
            };
            if used.iter().all(|other| apart(&other)) {
                used.push(*step);
            }
        }
        for (slot, step) in used.iter().enumerate() {
            if step.ask == Ask::Write {
                client.arena().write(slot * slot_bytes, &vec![step.fill; step.length as usize]);
            }
            client.stage(slot as u32, step.ask, step.offset, step.length).unwrap();
        }
        let mut left: Vec<u32> = (0..used.len() as u32).collect();
        let mut done = |done: client::Done| {
            assert_eq!(done.error, None);
            left.retain(|slot| *slot != done.slot);
        };
        finish(client, &mut done);
        assert!(left.is_empty());
        for (slot, step) in used.iter().enumerate() {
            let range = step.offset as usize..step.offset as usize + step.length as usize;
            match step.ask {
                Ask::Write => model[range].fill(step.fill),
                Ask::Trim => model[range].fill(0),
                Ask::Flush => {}
                Ask::Read => {
                    let mut found = vec![0; step.length as usize];
                    client.arena().read(slot * slot_bytes, &mut found);
                    assert!(found == model[range], "{step:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Every switch and both kinds of socket.
    #[test]
    fn data_read_back_match_under_any_tuning(steps in steps(), pull_up in prop_oneof![Just(0), Just(2048), Just(u32::MAX)],
        zero_copy in prop_oneof![Just(0), Just(4096), Just(u32::MAX)],
        copy_out in prop_oneof![Just(0), Just(2048), Just(u32::MAX)],
        framing in prop_oneof![2 => Just(Framing::OneGo), 1 => Just(Framing::SegmentAtATime), 1 => Just(Framing::PageAtATime)],
        segment in prop_oneof![2 => Just(u32::MAX), 1 => Just(512), 1 => Just(5000)],
        checksums in any::<bool>(),
        copying in prop_oneof![Just(Copying::Plain), Just(Copying::RepMovsb), Just(Copying::NonTemporal)],
        hold in prop_oneof![Just(0), Just(50), Just(2000)], unix in any::<bool>()) {
        const SLOT: usize = 1_200_000;
        let folder = tempfile::tempdir().unwrap();
        let tuning = Tuning {
            pull_up,
            zero_copy,
            copy_out,
            copying,
            checksums,
            framing,
            segment,
            coalesce: Duration::from_micros(hold),
            busy_poll: Duration::from_micros(hold / 10),
            ..Tuning::default()
        };
        for backend in backends(&folder, &tuning) {
            let options = Options { tuning, threads: 2, ..Options::default() };
            let served = Served::new(backend, false, options, unix);
            let mut client = tuned_client(&served.uri, 4, SLOT, tuning).unwrap();
            play(&steps, &mut client, SLOT);
            drop(client);
            let (counters, notes) = served.ended();
            prop_assert_eq!((counters.errors, notes), (0, Vec::<String>::new()));
        }
    }
}

/// The content that a hand-written server has at an offset.
fn content(offset: u64, length: u32) -> Vec<u8> {
    (offset..offset + u64::from(length)).map(|place| (place.wrapping_mul(0x9e37_79b9) >> 16) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A server may reply in any order, with errors in between, and its data may arrive in any pieces.
    #[test]
    fn replies_in_any_order_and_any_pieces_reach_their_slots(
        order in prop_oneof![Just((0..8_usize).collect::<Vec<_>>()), Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle()],
        lengths in prop::collection::vec(prop_oneof![1_u32..5000, 40_000_u32..90_000], 8),
        writes in prop::collection::vec(prop::bool::weighted(0.2), 8),
        errors in prop::collection::vec(prop::bool::weighted(0.1), 8),
        cuts in prop::collection::vec(prop_oneof![1_usize..40, 40_usize..60_000], 1..20),
        copy_out in prop_oneof![Just(0), Just(u32::MAX)],
        framing in prop_oneof![2 => Just(Framing::OneGo), 1 => Just(Framing::PageAtATime)],
    ) {
        const SLOT: usize = 90_000;
        let (_folder, listener, uri) = by_hand();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = agreeing(&listener);
                for _ in 0..3 {
                    let mut requests = Vec::new();
                    for (write, length) in writes.iter().zip(&lengths) {
                        let mut request = [0; REQUEST_BYTES];
                        stream.read_exact(&mut request).unwrap();
                        requests.push(Request::decode(&request).unwrap());
                        if *write {
                            stream.read_exact(&mut vec![0; *length as usize]).unwrap();
                        }
                    }
                    let mut received = Vec::new();
                    for place in &order {
                        let request = &requests[*place];
                        received.extend(simple_reply(request.cookie, errors[*place].then_some(WireError::EIO)));
                        if request.command == Command::Read && !errors[*place] {
                            received.extend(content(request.offset, request.length));
                        }
                    }
                    let (mut rest, mut cuts) = (&received[..], cuts.iter().cycle());
                    while !rest.is_empty() {
                        let (now, later) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                        stream.write_all(now).unwrap();
                        rest = later;
                    }
                }
            });
            let tuning = Tuning { copy_out, framing, ..Tuning::default() };
            let mut client = tuned_client(&uri, 8, SLOT, tuning).unwrap();
            for turn in 0..3 {
                for (slot, length) in lengths.iter().enumerate() {
                    let ask = if writes[slot] { Ask::Write } else { Ask::Read };
                    client.stage(slot as u32, ask, turn * 1000 + slot as u64 * 100_000, *length).unwrap();
                }
                let mut done = Vec::new();
                finish(&mut client, |reply| done.push(reply));
                assert_eq!(done.iter().map(|reply| reply.slot as usize).collect::<Vec<_>>(), order);
                for reply in done {
                    let slot = reply.slot as usize;
                    assert_eq!(reply.error, errors[slot].then_some(WireError::EIO));
                    let mut found = vec![0; lengths[slot] as usize];
                    client.arena().read(slot * SLOT, &mut found);
                    if !writes[slot] && !errors[slot] {
                        assert!(found == content(turn * 1000 + slot as u64 * 100_000, lengths[slot]), "slot {slot}");
                    }
                }
            }
        });
    }
}

/// No other test of this process uses the shared counter.
#[test]
fn in_flight_counters_count_per_thread_or_shared() {
    let served = Served::memory();
    let connect = |in_flight| {
        let options = client::Options { in_flight, ..client::Options::default() };
        Client::connect(&served.uri, 4, 512, options).unwrap()
    };
    let counts = |clients: &[Client]| clients.iter().map(Client::counted_in_flight).collect::<Vec<_>>();
    for (in_flight, both_ask, one_is_done) in [
        (Accounting::None, [None; 2], [None; 2]),
        (Accounting::PerThread, [Some(2), Some(2)], [Some(0), Some(2)]),
        (Accounting::Shared, [Some(4); 2], [Some(2); 2]),
    ] {
        let mut clients = [connect(in_flight), connect(in_flight)];
        for client in &mut clients {
            (0..2).for_each(|slot| client.stage(slot, Ask::Read, 0, 512).unwrap());
        }
        assert_eq!(counts(&clients), both_ask);
        finish(&mut clients[0], succeeds);
        assert_eq!(counts(&clients), one_is_done);
    }
    // The clients were dropped with two requests that were never sent.
    assert_eq!(connect(Accounting::Shared).counted_in_flight(), Some(0));
}

#[test]
fn a_null_wire_sends_nothing_and_claims_every_request() {
    let served = Served::memory();
    let options = client::Options { wire: Wire::Null, ..client::Options::default() };
    let mut client = Client::connect(&served.uri, 4, 4096, options).unwrap();
    for turn in 0..3 {
        for slot in 0..3 {
            client.stage(slot, if slot == 0 { Ask::Write } else { Ask::Read }, 0, 4096).unwrap();
        }
        let mut done = Vec::new();
        assert!(client.submit(|reply| done.push((reply.slot, reply.error))).unwrap(), "{turn}");
        assert_eq!(done, [(0, None), (1, None), (2, None)]);
        assert!(client.wait(|_| panic!("all requests were claimed")).unwrap());
    }
    assert_eq!(client.syscalls().sends, 0);
    drop(client);
    // The disconnect.
    assert_eq!(served.ended().0.requests, 1);
}

/// Writes and reads 64 KiB; returns what both ends count.
fn once(tuning: Tuning) -> (client::Syscalls, Counters) {
    const LENGTH: usize = 64 << 10;
    let served = Served::tuned(tuning, false);
    let mut client = tuned_client(&served.uri, 1, LENGTH, tuning).unwrap();
    client.arena().write(0, &[7; LENGTH]);
    for ask in [Ask::Write, Ask::Read] {
        client.stage(0, ask, 0, LENGTH as u32).unwrap();
        finish(&mut client, succeeds);
    }
    let mut found = vec![0; LENGTH];
    client.arena().read(0, &mut found);
    assert!(found == [7; LENGTH]);
    let syscalls = client.syscalls();
    drop(client);
    (syscalls, served.ended().0)
}

#[test]
fn tuning_changes_how_payloads_are_moved() {
    const LENGTH: u64 = 64 << 10;
    let default = Tuning::default();
    let (client, server) = once(Tuning { pull_up: u32::MAX, copy_out: u32::MAX, ..default });
    assert_eq!((client.pulled_up_bytes, client.in_place_bytes), (LENGTH, 0));
    assert_eq!((server.pulled_up_bytes, server.zero_copy_bytes, server.in_place_bytes), (LENGTH, 0, 0));

    let (client, server) = once(Tuning { pull_up: 0, copy_out: 0, ..default });
    assert_eq!((client.pulled_up_bytes, client.in_place_bytes), (0, LENGTH));
    assert_eq!((server.pulled_up_bytes, server.zero_copy_bytes), (0, 0));
    // All but the bytes that arrived with the header.
    assert!(server.in_place_bytes > 0 && server.in_place_bytes <= LENGTH, "{server:?}");
    assert!(client.sends < 17 && server.sends < 17, "{client:?} {server:?}");

    let (_, server) = once(Tuning { pull_up: 0, zero_copy: 0, ..default });
    assert_eq!((server.pulled_up_bytes, server.zero_copy_bytes), (0, LENGTH));

    // A header and sixteen segments per payload: one call each, or gathered in few calls.
    let segments = Tuning { segment: 4096, framing: Framing::SegmentAtATime, ..default };
    let (client, server) = once(segments);
    assert!(client.sends >= 18 && server.sends >= 18, "{client:?} {server:?}");
    let (client, server) = once(Tuning { framing: Framing::OneGo, ..segments });
    assert!(client.sends < 17 && server.sends < 17, "{client:?} {server:?}");

    let (client, server) = once(Tuning { framing: Framing::PageAtATime, ..default });
    // A header and sixteen pages per payload, one call each, and the messages of the other direction.
    assert!(client.sends >= 18 && client.receives >= 17, "{client:?}");
    assert!(server.sends >= 18 && server.receives >= 17, "{server:?}");
}

#[test]
fn a_null_backend_discards_writes_and_reads_zeros() {
    for unix in [false, true] {
        for checksums in [false, true] {
            let tuning = Tuning { checksums, ..Tuning::default() };
            let options = Options { tuning, ..Options::default() };
            let served = Served::new(Backend::null(SIZE).unwrap(), false, options, unix);
            let mut client = tuned_client(&served.uri, 4, 1 << 20, tuning).unwrap();
            client.arena().write(0, &vec![1; 4 << 20]);
            for ask in [Ask::Write, Ask::Read] {
                for turn in 0..40_u32 {
                    let slot = turn % 4;
                    // Shorter and longer than what arrives together with a header.
                    let length = [1, 3000, 70_000, 1 << 20][(turn / 4) as usize % 4];
                    client.stage(slot, ask, 0, length).unwrap();
                    if slot == 3 {
                        finish(&mut client, succeeds);
                    }
                }
            }
            let mut found = vec![1; 4 << 20];
            client.arena().read(0, &mut found);
            assert!(found.iter().all(|byte| *byte == 0));
            drop(client);
            assert_eq!(served.ended().0.errors, 0);
        }
    }
}

/// More replies than one scatter list has room for.
#[test]
fn replies_to_many_requests_in_flight_reach_their_slots() {
    const SLOTS: u32 = 200;
    const BLOCK: u32 = 8192;
    let served = Served::with(Options::default(), false);
    let mut client = Client::connect(&served.uri, SLOTS, BLOCK as usize, client::Options::default()).unwrap();
    for ask in [Ask::Write, Ask::Read] {
        for slot in 0..SLOTS {
            let place = (slot * BLOCK) as usize;
            client.arena().write(place, &vec![if ask == Ask::Write { slot as u8 } else { 0 }; BLOCK as usize]);
            client.stage(slot, ask, u64::from(slot * BLOCK), BLOCK).unwrap();
        }
        finish(&mut client, succeeds);
    }
    for slot in 0..SLOTS {
        let mut found = vec![0; BLOCK as usize];
        client.arena().read((slot * BLOCK) as usize, &mut found);
        assert!(found.iter().all(|byte| *byte == slot as u8), "slot {slot}");
    }
}
