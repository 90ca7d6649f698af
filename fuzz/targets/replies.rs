//! Feeds arbitrary replies to clients after the handshake. A client that copies payloads, one that receives in place,
//! and one that receives a page at a time reach the same end, and complete only requests in flight.

#![no_main]

use fuzz::split;
use iotoll_fuzz as fuzz;
use libfuzzer_sys::fuzz_target;
use nbd::client::{Address, Ask, Client, Connection, Done, Options, Uri};
use nbd::handshake::{MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, handshake_flag, info, option, reply};
use nbd::{Error, Framing, Tuning};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

const SLOTS: u32 = 4;
const SLOT_BYTES: usize = 8192;
/// The first bytes select the requests and where the replies are cut.
const CHOICES: usize = SLOTS as usize + 2;
/// Usually long enough for a client to receive one piece before the next arrives.
const PAUSE: Duration = Duration::from_micros(50);

/// A server of one client at a time, and the channel for its output.
struct Server {
    path: PathBuf,
    say: Mutex<Sender<[Vec<u8>; 3]>>,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("iotoll-fuzz-{}.socket", std::process::id()));
    // Left by an earlier process with the same ID.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("binding a socket in the temporary folder");
    let (say, said) = channel::<[Vec<u8>; 3]>();
    std::thread::spawn(move || {
        for pieces in said {
            let Ok((mut stream, _)) = listener.accept() else { return };
            for (number, piece) in pieces.iter().filter(|piece| !piece.is_empty()).enumerate() {
                if number > 0 {
                    std::thread::sleep(PAUSE);
                }
                // The client may have disconnected.
                let _ = stream.write_all(piece);
            }
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    Server { path, say: Mutex::new(say) }
});

/// The server's handshake for an export of 1 GiB.
fn handshake() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(MAGIC.to_be_bytes());
    bytes.extend(OPTION_MAGIC.to_be_bytes());
    bytes.extend((handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES).to_be_bytes());
    let mut put = |kind: u32, data: &[u8]| {
        bytes.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        bytes.extend(option::GO.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
    };
    let export = [&info::EXPORT.to_be_bytes()[..], &(1_u64 << 30).to_be_bytes(), &0xffff_u16.to_be_bytes()].concat();
    put(reply::INFO, &export);
    put(reply::ACK, &[]);
    bytes
}

/// A reply: slot, error, and data read.
type Seen = (u32, Option<u32>, Vec<u8>);

fn play(choices: [u8; CHOICES], said: &[u8], tuning: Tuning) -> (Vec<Seen>, String) {
    let server = &*SERVER;
    let [asks @ .., first, second] = choices;
    let (front, back) = said.split_at(said.len().min(usize::from(first) * 8));
    let (middle, back) = back.split_at(back.len().min(usize::from(second) * 8));
    let pieces = [[handshake(), front.to_vec()].concat(), middle.to_vec(), back.to_vec()];
    server.say.lock().expect("the lock is not poisoned").send(pieces).expect("the server runs");
    let uri = Uri { address: Address::Unix(server.path.clone()), export: String::new() };
    let options = Options { tuning, ..Options::default() };
    let mut client = Client::connect(&uri, SLOTS, SLOT_BYTES, options).expect("the handshake is valid");
    let mut asked = [None; SLOTS as usize];
    for (slot, choice) in (0..).zip(asks) {
        let ask = if choice & 1 == 0 { Ask::Read } else { Ask::Flush };
        // Short requests, and some longer than a page.
        let length = 1 + u32::from(choice >> 1) * 64;
        client.stage(slot, ask, 0, length).expect("the slot is free");
        asked[slot as usize] = Some((ask, length));
    }
    let mut done: Vec<Done> = Vec::new();
    let mut end = client.submit(|reply| done.push(reply)).map(|_| ());
    while end.is_ok() && client.in_flight() > 0 {
        end = client.wait(|reply| done.push(reply)).map(|_| ());
    }
    let seen = done.iter().map(|done| {
        let (ask, length) = asked[done.slot as usize].take().expect("the request is in flight");
        let mut bytes = vec![0; if ask == Ask::Read && done.error.is_none() { length as usize } else { 0 }];
        client.arena().read(done.slot as usize * SLOT_BYTES, &mut bytes);
        (done.slot, done.error.map(|error| error.number()), bytes)
    });
    let seen = seen.collect();
    let end = match end {
        // Whether the client sees data behind the last reply depends on how much it receives per call.
        _ if client.in_flight() == 0 => "all completed".to_owned(),
        Ok(()) => "some not completed".to_owned(),
        Err(Error::Server(why)) => why,
        // The server sends nothing more; how the client notices differs.
        Err(_) => "lost".to_owned(),
    };
    (seen, end)
}

fuzz_target!(|data: &[u8]| {
    let Some((choices, said)) = split::<CHOICES>(data) else { return };
    let copied = Tuning { copy_out: u32::MAX, ..Tuning::default() };
    let whole = play(choices, said, copied);
    assert_eq!(whole, play(choices, said, Tuning { copy_out: 0, ..copied }), "in place");
    assert_eq!(whole, play(choices, said, Tuning { framing: Framing::PageAtATime, ..copied }), "a page at a time");
});
