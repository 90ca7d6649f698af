//! Feeds arbitrary bytes from a server to the client's handshake. However they are cut, the client reaches the same
//! end, and accepts only valid values.

#![no_main]

use fuzz::{MOST_UNHEARD_IN_HANDSHAKE, arrive, pieces, split};
use iotoll_fuzz as fuzz;
use libfuzzer_sys::fuzz_target;
use nbd::handshake::client::{INPUT_BYTES, Negotiation, Step};
use nbd::wire::MAX_PAYLOAD;

fn play(said: &[u8], piece: usize, checksums: bool) -> (Vec<u8>, Step) {
    let mut negotiation = Negotiation::new("export");
    negotiation.wants_checksums = checksums;
    let (mut out, mut end) = (Vec::new(), Step::Continue);
    arrive(said, piece, |there| {
        // No client has a larger buffer.
        let (taken, step) = negotiation.advance(&there[..there.len().min(INPUT_BYTES)], &mut out);
        end = step;
        (taken, end == Step::Continue)
    });
    assert!(out.len() < MOST_UNHEARD_IN_HANDSHAKE);
    (out, end)
}

fuzz_target!(|data: &[u8]| {
    let Some(([choice], said)) = split::<1>(data) else { return };
    let [whole, cut] = pieces(choice).map(|piece| play(said, piece, choice & 128 != 0));
    assert_eq!(whole, cut);
    if let Step::Ready(export) = whole.1 {
        assert!(i64::try_from(export.size).is_ok(), "{export:?}");
        assert!(export.least_block.is_power_of_two() && export.least_block <= 1 << 16, "{export:?}");
        assert!((export.least_block..=MAX_PAYLOAD).contains(&export.max_payload), "{export:?}");
    }
});
