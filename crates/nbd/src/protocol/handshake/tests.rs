//! Both ends against each other, and each against invalid input.

use super::client::{self, Export};
use super::server::{self, ExportInfo, Negotiation, State, Step};
use super::*;
use proptest::prelude::*;

fn export() -> ExportInfo {
    ExportInfo {
        name: "other".to_owned(),
        size: 1 << 30,
        flags: transmission_flag::HAS_FLAGS | transmission_flag::SEND_FLUSH,
        preferred_block: 4096,
        max_payload: crate::wire::MAX_PAYLOAD,
    }
}

/// The server's complete output for these bytes, and its last step.
fn served(input: &[u8]) -> (Vec<u8>, Step) {
    let export = export();
    let mut negotiation = Negotiation { export: &export, state: State::default(), offers_checksums: false };
    let mut out = Vec::new();
    let (taken, step) = negotiation.advance(input, &mut out);
    assert!(taken <= input.len());
    (out, step)
}

fn flags() -> Vec<u8> {
    3_u32.to_be_bytes().to_vec()
}

fn named(name: &str, rest: &[u8]) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes()[..], name.as_bytes(), rest].concat()
}

/// The reply types in a server's output.
fn kinds(mut out: &[u8]) -> Vec<u32> {
    let mut kinds = Vec::new();
    while !out.is_empty() {
        let mut fields = Fields(out);
        assert_eq!(fields.u64(), Some(OPTION_REPLY_MAGIC));
        fields.u32().unwrap();
        kinds.push(fields.u32().unwrap());
        let length = fields.u32().unwrap() as usize;
        fields.bytes(length).unwrap();
        out = fields.0;
    }
    kinds
}

/// Both ends, with the server's output delivered in parts or at once.
fn meet(name: &str, at_once: usize) -> (client::Step, Option<bool>) {
    let export = export();
    let mut client = client::Negotiation::new(name);
    let mut server = Negotiation { export: &export, state: State::default(), offers_checksums: false };
    let (mut from_server, mut arrived, mut from_client, mut agreed) =
        (server::greeting(), Vec::new(), Vec::new(), None);
    loop {
        assert!(!from_server.is_empty(), "the negotiation does not end");
        let part = from_server.len().min(at_once);
        arrived.extend(from_server.drain(..part));
        let (taken, step) = client.advance(&arrived, &mut from_client);
        if step != client::Step::Continue {
            return (step, agreed);
        }
        arrived.drain(..taken);
        let (taken, step) = server.advance(&from_client, &mut from_server);
        from_client.drain(..taken);
        match step {
            Step::Agreed { checksums } => agreed = Some(checksums),
            Step::End(why) => panic!("{why:?}"),
            Step::Continue => {}
        }
    }
}

#[test]
fn both_ends_agree() {
    for at_once in [1, 7, usize::MAX] {
        let (step, agreed) = meet("other", at_once);
        let flags = transmission_flag::HAS_FLAGS | transmission_flag::SEND_FLUSH;
        let export = Export { size: 1 << 30, flags, least_block: 1, max_payload: crate::wire::MAX_PAYLOAD };
        assert_eq!(step, client::Step::Ready(export));
        assert_eq!(agreed, Some(false));
    }
    assert!(matches!(meet("nowhere", 64).0, client::Step::Failed(why) if why.contains("no export 'nowhere'")));
}

#[test]
fn export_name_sends_124_zeros_unless_declined() {
    let (out, step) = served(&[flags(), option_bytes(option::EXPORT_NAME, b"other")].concat());
    assert_eq!((out.len(), &out[..8]), (10, &(1_u64 << 30).to_be_bytes()[..]));
    assert!(matches!(step, Step::Agreed { .. }));
    let zeros = [1_u32.to_be_bytes().to_vec(), option_bytes(option::EXPORT_NAME, b"")].concat();
    assert_eq!(served(&zeros).0.len(), 134);
    assert!(
        matches!(served(&[flags(), option_bytes(option::EXPORT_NAME, b"no")].concat()), (out, Step::End(Some(_))) if out.is_empty())
    );
}

#[test]
fn invalid_options_are_refused_and_the_negotiation_continues() {
    let go = option_bytes(option::GO, &named("", &0_u16.to_be_bytes()));
    for (bad, kind) in [
        (option_bytes(999, b"what"), reply::ERR_UNSUP),
        (option_bytes(option::STARTTLS, b""), reply::ERR_UNSUP),
        // Structured replies, and the contexts that need them.
        (option_bytes(8, b""), reply::ERR_UNSUP),
        (option_bytes(10, &named("", &0_u32.to_be_bytes())), reply::ERR_UNSUP),
        (option_bytes(option::LIST, b"data"), reply::ERR_INVALID),
        (option_bytes(option::GO, &[0, 0, 0, 9, b'a']), reply::ERR_INVALID),
        (option_bytes(option::GO, &u32::MAX.to_be_bytes()), reply::ERR_INVALID),
        (option_bytes(option::GO, &named("no", &0_u16.to_be_bytes())), reply::ERR_UNKNOWN),
        // CVE-2022-26495: lengths near 2^32 that overflow.
        (option_bytes(option::INFO, &[&u32::MAX.to_be_bytes()[..], b"xx"].concat()), reply::ERR_INVALID),
    ] {
        let (out, step) = served(&[flags(), bad, go.clone()].concat());
        assert_eq!(kinds(&out)[0], kind);
        assert!(matches!(step, Step::Agreed { .. }), "{step:?}");
    }
    for fatal in [
        vec![0xff; 64],
        [flags(), option_bytes(777, &vec![0; 100_000])].concat(),
        [flags(), vec![1; 64]].concat(),
        [flags(), option_bytes(2_000_000, b"")[..12].to_vec(), vec![0x7f; 4]].concat(),
    ] {
        assert!(matches!(served(&fatal).1, Step::End(Some(_))));
    }
    assert_eq!(served(&[flags(), option_bytes(option::ABORT, b"")].concat()).1, Step::End(None));
}

#[test]
fn a_client_refuses_invalid_servers() {
    let told = |bytes: &[u8]| {
        let mut client = client::Negotiation::new("");
        let (_, step) = client.advance(&[&server::greeting()[..], bytes].concat(), &mut Vec::new());
        step
    };
    let replied = |kind: u32, data: &[u8]| {
        let mut bytes = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
        [option::GO, kind, data.len() as u32].iter().for_each(|field| bytes.extend(field.to_be_bytes()));
        bytes.extend(data);
        bytes
    };
    // CVE-2023-5215: a size that is negative as a signed number.
    let negative = [&info::EXPORT.to_be_bytes()[..], &u64::MAX.to_be_bytes(), &[0, 1]].concat();
    let odd_block = [&info::BLOCK_SIZE.to_be_bytes()[..], &[0, 0, 0, 3, 0, 0, 16, 0, 0, 1, 0, 0]].concat();
    for bytes in [
        replied(reply::ACK, b""),
        replied(reply::INFO, &negative),
        replied(reply::INFO, &odd_block),
        replied(reply::INFO, b""),
        replied(77, b""),
    ] {
        assert!(matches!(told(&bytes), client::Step::Failed(_)), "{bytes:?}");
    }
    let mut endless = replied(reply::INFO, b"");
    endless.truncate(16);
    endless.extend(u32::MAX.to_be_bytes());
    assert!(matches!(told(&endless), client::Step::Failed(why) if why.contains("longer than the protocol allows")));
}

proptest! {
    /// Any bytes in any pieces: no panic, nothing consumed twice, and the same end.
    #[test]
    fn input_may_arrive_in_any_pieces(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 1_usize..50, sane in any::<bool>()) {
        let bytes = if sane { [flags(), option_bytes(u32::from(bytes.first().copied().unwrap_or(0) % 12), &bytes)].concat() } else { bytes };
        let (whole_out, whole) = served(&bytes);
        let export = export();
        let (mut state, mut out, mut held, mut last) = (State::default(), Vec::new(), Vec::new(), Step::Continue);
        for part in bytes.chunks(cut) {
            held.extend_from_slice(part);
            let mut server = Negotiation { export: &export, state, offers_checksums: false };
            let (taken, step) = server.advance(&held, &mut out);
            state = server.state;
            held.drain(..taken);
            last = step;
            if last != Step::Continue { break; }
        }
        prop_assert_eq!(last, whole);
        prop_assert_eq!(out, whole_out);
    }

    #[test]
    fn a_client_survives_any_input(bytes in prop::collection::vec(any::<u8>(), 0..400), greeted in any::<bool>()) {
        let bytes = if greeted { [&server::greeting()[..], &bytes].concat() } else { bytes };
        let (taken, _) = client::Negotiation::new("x").advance(&bytes, &mut Vec::new());
        prop_assert!(taken <= bytes.len());
    }
}
