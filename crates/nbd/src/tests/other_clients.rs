//! What other clients notice of one client's requests, and what becomes of them when the server ends.

use super::*;

const GIB: u64 = 1 << 30;
/// Far above the 50 ms that the guide names, because the machine may be busy with other things.
const LIMIT: Duration = Duration::from_secs(2);

/// A read that must succeed. Returns how long it took.
fn read(client: &mut UnixStream) -> Duration {
    let begun = Instant::now();
    assert_eq!(reply(client, &ask(Command::Read, 0, 0, 512)), 0);
    client.read_exact(&mut [0; 512]).unwrap();
    begun.elapsed()
}

/// Three clients have many long requests, and one has small ones: it does not wait for a turn of each.
#[test]
fn a_client_that_becomes_ready_waits_for_one_turn_only() {
    let (_file, served) = in_memory(GIB, Tuning::default(), true);
    let mut slow: Vec<UnixStream> = (0..3).map(|_| agreed(&served)).collect();
    let zero = ask(Command::WriteZeroes, command_flag::NO_HOLE, 0, 2 << 20).repeat(100);
    slow.iter_mut().for_each(|slow| slow.write_all(&zero).unwrap());
    let mut other = agreed(&served);
    for _ in 0..20 {
        assert!(read(&mut other) < LIMIT);
    }
    slow.iter_mut().for_each(|slow| (0..100).for_each(|_| assert_eq!(error(slow), 0)));
}

/// Within its time limit.
#[test]
fn a_server_that_is_told_to_end_leaves_zeroing_that_takes_long() {
    const BYTES: u64 = 256 << 20;
    let (_file, served) = in_memory(BYTES, Tuning::default(), true);
    let mut client = agreed(&served);
    // More than the fastest machine does within the time limit.
    client.write_all(&ask(Command::WriteZeroes, command_flag::NO_HOLE, 0, BYTES as u32).repeat(2000)).unwrap();
    read(&mut agreed(&served));
    let begun = Instant::now();
    let (_, notes) = served.ended();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let said = notes.iter().any(|note| note.contains("the server shut down before its requests finished"));
    assert!(said, "{notes:?}");
}
