//! Feeds arbitrary bytes from a client to the server's handshake. However they are cut, the replies and the end are the
//! same.

#![no_main]

use fuzz::{MOST_UNHEARD_IN_HANDSHAKE, arrive, pieces, split};
use iotoll_fuzz as fuzz;
use libfuzzer_sys::fuzz_target;
use nbd::handshake::server::{ExportInfo, Negotiation, State, Step};

fn exports() -> [ExportInfo; 2] {
    let export = |name: &str, size| ExportInfo {
        name: name.to_owned(),
        description: "some words".to_owned(),
        size,
        flags: 0xffff,
        preferred_block: 4096,
        max_payload: 1 << 20,
    };
    [export("", 1 << 30), export("other", u64::MAX >> 1)]
}

fn play(exports: &[ExportInfo], said: &[u8], piece: usize, checksums: bool) -> (Vec<u8>, Step) {
    let (mut replies, mut end, mut state) = (Vec::new(), Step::Continue, State::default());
    arrive(said, piece, |there| {
        let mut negotiation = Negotiation { exports, state, offers_checksums: checksums };
        let mut out = Vec::new();
        let (taken, step) = negotiation.advance(there, &mut out);
        state = negotiation.state;
        assert!(out.len() < MOST_UNHEARD_IN_HANDSHAKE);
        // Pending output is sent.
        replies.append(&mut out);
        end = step;
        (taken, end == Step::Continue)
    });
    (replies, end)
}

fuzz_target!(|data: &[u8]| {
    let Some(([choice], said)) = split::<1>(data) else { return };
    let exports = exports();
    let [whole, cut] = pieces(choice).map(|piece| play(&exports, said, piece, choice & 128 != 0));
    assert_eq!(whole, cut);
    if let Step::Agreed(agreed) = whole.1 {
        assert!(agreed.export < exports.len());
    }
});
