//! Feeds arbitrary bytes from a client to the server's handshake. However they are cut, the replies and the end are the
//! same.

#![no_main]

use fuzz::{MOST_UNHEARD_IN_HANDSHAKE, arrive, pieces, split};
use iotoll_fuzz as fuzz;
use libfuzzer_sys::fuzz_target;
use nbd::handshake::server::{ExportInfo, Negotiation, State, Step};

fn export() -> ExportInfo {
    let (size, name) = (u64::MAX >> 1, "other".to_owned());
    ExportInfo { name, size, flags: 0xffff, preferred_block: 4096, max_payload: 1 << 20 }
}

fn play(export: &ExportInfo, said: &[u8], piece: usize, checksums: bool) -> (Vec<u8>, Step) {
    let (mut replies, mut end, mut state) = (Vec::new(), Step::Continue, State::default());
    arrive(said, piece, |there| {
        let mut negotiation = Negotiation { export, state, offers_checksums: checksums };
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
    let export = export();
    let [whole, cut] = pieces(choice).map(|piece| play(&export, said, piece, choice & 128 != 0));
    assert_eq!(whole, cut);
});
