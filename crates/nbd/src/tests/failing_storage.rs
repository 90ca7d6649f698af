//! What a client is told when the storage fails.

use super::{Served, Transport, agreed, ask, error, has_rings, options};
use crate::backend::Backend;
use crate::server::{Access, Options};
use crate::wire::{Command, WireError};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

over_both! {
    what_a_file_has_lost_of_its_last_page_is_noticed_soon,
    what_cannot_be_sent_from_memory_any_more_ends_one_connection_and_is_an_error_for_the_others,
}

/// Short and long reads of a file that somebody made shorter: EIO, and the next request is served. A long one of which a part is on the
/// way already ends the connection.
#[test]
fn a_read_that_fails_before_any_data_is_on_the_way_is_an_error_and_no_more() {
    let file = memfd_create("short", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, 2 << 20).unwrap();
    let ours = file.try_clone().unwrap();
    let backend = Backend::file(file.into()).unwrap();
    let served = Served::new(backend, Access::ReadWrite, Options::default(), true);
    let mut client = agreed(&served);
    ftruncate(&ours, 1 << 20).unwrap();
    for length in [4096, 256 << 10, 1 << 20] {
        client.write_all(&ask(Command::Read, 0, 1 << 20, length)).unwrap();
        assert_eq!(error(&mut client), WireError::EIO.number(), "{length}");
    }
    client.write_all(&ask(Command::Read, 0, 0, 512 << 10)).unwrap();
    assert_eq!(error(&mut client), 0);
    client.read_exact(&mut vec![0; 512 << 10]).unwrap();
    client.write_all(&ask(Command::Read, 0, 512 << 10, 1 << 20)).unwrap();
    assert_eq!(error(&mut client), 0);
    assert!(client.read_exact(&mut vec![0; 1 << 20]).is_err());
}

/// In memory it is still there, as zeros.
fn what_a_file_has_lost_of_its_last_page_is_noticed_soon(transport: Transport) {
    const BYTES: u32 = 512;
    let file = File::from(memfd_create("short", MemfdFlags::CLOEXEC).unwrap());
    file.write_all_at(&vec![7; 1 << 20], 0).unwrap();
    let backend = Backend::file_mapped(file.try_clone().unwrap());
    let served = Served::new(backend, Access::ReadWrite, options(transport), true);
    let read = |client: &mut UnixStream, offset| {
        client.write_all(&ask(Command::Read, 0, offset, BYTES)).unwrap();
        let error = error(client);
        if error == 0 {
            client.read_exact(&mut [0; BYTES as usize]).unwrap();
        }
        error
    };
    let (mut first, mut second) = (agreed(&served), agreed(&served));
    (0..40).for_each(|_| assert_eq!(read(&mut first, 5120), 0));
    file.set_len(5000).unwrap();
    let unnoticed = (0..100).take_while(|_| read(&mut first, 5120) == 0).count();
    assert!(unnoticed <= 64, "{unnoticed}");
    file.set_len(1 << 20).unwrap();
    assert_eq!((read(&mut first, 5120), read(&mut second, 5120)), (0, 0));
}

/// The same, by one who has read nothing before.
#[test]
fn what_a_file_has_lost_is_noticed_by_the_first_who_asks_for_it() {
    let file = File::from(memfd_create("short", MemfdFlags::CLOEXEC).unwrap());
    file.write_all_at(&vec![7; 1 << 20], 0).unwrap();
    let backend = Backend::file_mapped(file.try_clone().unwrap());
    let served = Served::new(backend, Access::ReadWrite, Options::default(), true);
    file.set_len(5000).unwrap();
    let mut client = agreed(&served);
    client.write_all(&ask(Command::Read, 0, 5120, 512)).unwrap();
    assert_eq!(error(&mut client), WireError::EIO.number());
}

/// What was in memory is sent from there. Once that has failed everything is read first.
fn what_cannot_be_sent_from_memory_any_more_ends_one_connection_and_is_an_error_for_the_others(transport: Transport) {
    const BYTES: u32 = 4096;
    const READS: u64 = 40;
    let file = File::from(memfd_create("short", MemfdFlags::CLOEXEC).unwrap());
    file.write_all_at(&vec![7; 2 << 20], 0).unwrap();
    let backend = Backend::file_mapped(file.try_clone().unwrap());
    let served = Served::new(backend, Access::ReadWrite, options(transport), true);
    let read = |client: &mut UnixStream| {
        client.write_all(&ask(Command::Read, 0, 0, BYTES)).unwrap();
        let (error, mut found) = (error(client), [0; BYTES as usize]);
        client.read_exact(&mut found).unwrap();
        assert_eq!((error, found), (0, [7; BYTES as usize]));
    };
    let (mut first, mut second) = (agreed(&served), agreed(&served));
    (0..READS).for_each(|_| read(&mut first));
    file.set_len(1 << 20).unwrap();
    first.write_all(&ask(Command::Read, 0, 1 << 20, BYTES)).unwrap();
    // With a header and not all of the payload, or with nothing.
    assert!(first.read_exact(&mut [0; 16 + BYTES as usize]).is_err());
    second.write_all(&ask(Command::Read, 0, 1 << 20, BYTES)).unwrap();
    assert_eq!(error(&mut second), WireError::EIO.number());
    read(&mut second);
    let (done, notes) = served.ended();
    assert!(notes.iter().any(|note| note.contains("the storage failed in the middle of a reply")), "{notes:?}");
    assert_eq!(done.pulled_up_bytes, u64::from(BYTES), "what was read first: the last one");
    assert_eq!(done.read_bytes, (READS + 2) * u64::from(BYTES));
}
