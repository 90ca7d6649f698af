//! Feeds arbitrary requests to the server after the handshake. However they are cut, and wherever a write's payload is
//! received, the replies and the content of the storage are the same.

#![no_main]

use fuzz::{MOST_UNHEARD, arrive, pieces, split};
use iotoll_fuzz as fuzz;
use libfuzzer_sys::fuzz_target;
use nbd::Tuning;
use nbd::backends::Backend;
use nbd::server::Counters;
use nbd::server::requests::{Next, Requests, Rights};
use nbd::wire::MAX_PAYLOAD;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

/// Small, so that random requests are sometimes within it.
const BYTES: u64 = 64 << 10;
/// Large enough for a reply in pieces.
const NULL_BYTES: u64 = 512 << 10;

/// A file that all runs of a process share: creating one takes longer than a run.
fn file() -> &'static File {
    static FILE: OnceLock<File> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("iotoll-fuzz-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).expect("creating a file");
        std::fs::remove_file(&path).expect("removing the file");
        file
    })
}

/// Resets the file to zeros.
fn emptied() -> File {
    let file = file();
    file.set_len(0).and_then(|()| file.set_len(BYTES)).expect("truncating the file");
    file.try_clone().expect("duplicating a descriptor")
}

fn backend(choice: u8, tuning: &Tuning) -> Backend {
    match choice & (8 | 64) {
        8 => Backend::null(NULL_BYTES).expect("allocating address space"),
        64 => Backend::file(emptied()).expect("reading the file's size"),
        _ => Backend::memory(BYTES, tuning).expect("allocating memory"),
    }
}

fn content(backend: &Backend) -> Vec<u8> {
    let mut content = vec![0; BYTES as usize];
    match backend {
        Backend::Memory(store) => store.read(0, &mut content),
        Backend::File(_) => file().read_exact_at(&mut content, 0).expect("reading the file"),
        Backend::Null { .. } => {}
    }
    content
}

/// The result of a run.
#[derive(Debug, PartialEq)]
struct End {
    replies: Vec<u8>,
    next: Option<Next>,
    requests: u64,
    errors: u64,
    content: Vec<u8>,
}

fn play(choice: u8, said: &[u8], piece: usize, copy_out: u32) -> End {
    // All replies are copied into the batch, where they can be compared.
    let all = u32::MAX;
    let tuning = Tuning { pull_up: all, copy_out, ..Tuning::default() };
    let backend = backend(choice, &tuning);
    let [read_only, checksums] = [1, 16].map(|bit| choice & bit != 0);
    let rights = Rights { read_only, checksums, max_payload: if choice & 32 == 0 { MAX_PAYLOAD } else { 48 << 10 } };
    let mut requests = Requests::new(backend.clone(), rights, tuning);
    let mut batch = requests.batch();
    let (mut replies, mut end) = (Vec::new(), None);
    arrive(said, piece, |there| {
        let place = requests.in_place().map(|(store, begin, length)| (Arc::clone(store), begin, length));
        if let Some((store, begin, length)) = place {
            let count = length.min(there.len());
            store.write(begin, &there[..count]);
            requests.received_in_place(count, &mut batch);
            return (count, true);
        }
        let mut taken = 0;
        loop {
            let (more, next) = requests.advance(&there[taken..], &mut batch);
            taken += more;
            assert!(batch.own().len() < MOST_UNHEARD && batch.unsent() == batch.own().len());
            replies.extend_from_slice(batch.own());
            batch.clear();
            match next {
                Next::Send | Next::Yield => {}
                Next::Receive => return (taken, true),
                Next::End(_) => {
                    end = Some(next);
                    return (taken, false);
                }
            }
        }
    });
    replies.extend_from_slice(batch.own());
    let content = content(&backend);
    let Counters { requests, errors, .. } = requests.counters;
    End { replies, next: end, requests, errors, content }
}

fuzz_target!(|data: &[u8]| {
    let Some(([choice, piece], said)) = split::<2>(data) else { return };
    let [all, part] = pieces(piece);
    let whole = play(choice, said, all, u32::MAX);
    assert_eq!(whole, play(choice, said, part, u32::MAX), "cut");
    assert_eq!(whole, play(choice, said, part, 0), "in place");
});
