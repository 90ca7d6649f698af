//! What a client receives when the storage fails.

use super::*;

/// Short and long reads of a truncated file: EIO, and the next request is served.
#[test]
fn reads_that_fail_get_eio_and_the_connection_goes_on() {
    let (file, served) = in_memory(2 << 20, Tuning::default(), true);
    let mut client = agreed(&served);
    file.set_len(1 << 20).unwrap();
    for length in [4096, 256 << 10, 1 << 20] {
        assert_eq!(reply(&mut client, &ask(Command::Read, 0, 1 << 20, length)), WireError::EIO.number(), "{length}");
    }
    assert_eq!(reply(&mut client, &ask(Command::Read, 0, 0, 512 << 10)), 0);
    client.read_exact(&mut vec![0; 512 << 10]).unwrap();
    // Its second half is beyond the new end.
    assert_eq!(reply(&mut client, &ask(Command::Read, 0, 512 << 10, 1 << 20)), WireError::EIO.number());
    assert_eq!(reply(&mut client, &ask(Command::Read, 0, 0, 512)), 0);
}

/// Sending from the page cache is opt-in: a storage failure then shows only behind the header.
#[test]
fn a_page_that_cannot_be_sent_from_the_page_cache_ends_that_connection_only() {
    const BYTES: u32 = 4096;
    let file = File::from(memfd_create("short", MemfdFlags::CLOEXEC).unwrap());
    file.write_all_at(&vec![7; 2 << 20], 0).unwrap();
    let backend = Backend::page_cache(file.try_clone().unwrap()).unwrap();
    let options = Options { tuning: Tuning { pull_up: 0, ..Tuning::default() }, ..Options::default() };
    let served = Served::new(backend, false, options, true);
    let read = |client: &mut UnixStream| {
        client.write_all(&ask(Command::Read, 0, 0, BYTES)).unwrap();
        let (error, mut found) = (error(client), [0; BYTES as usize]);
        client.read_exact(&mut found).unwrap();
        assert_eq!((error, found), (0, [7; BYTES as usize]));
    };
    let (mut first, mut second) = (agreed(&served), agreed(&served));
    read(&mut first);
    file.set_len(1 << 20).unwrap();
    first.write_all(&ask(Command::Read, 0, 1 << 20, BYTES)).unwrap();
    // A header and part of the payload, or nothing.
    assert!(first.read_exact(&mut [0; 16 + BYTES as usize]).is_err());
    read(&mut second);
    let (done, notes) = served.ended();
    assert!(notes.iter().any(|note| note.contains("the storage failed in the middle of a reply")), "{notes:?}");
    assert_eq!(done.pulled_up_bytes, 0);
}
