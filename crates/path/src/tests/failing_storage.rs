//! What a client is told when the storage fails.

use super::{Served, agreed, ask, error};
use crate::backend::Backend;
use crate::server::{Access, Options};
use crate::wire::{Command, WireError};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::io::{Read, Write};

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
