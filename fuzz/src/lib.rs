//! Common code of the targets: feeds bytes in pieces, and as a file.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::LazyLock;

/// Limit of a target's unsent output: it must not grow with the input.
pub const MOST_UNHEARD: usize = 1 << 20;
/// The same limit in a handshake: 64 KiB, and one reply.
pub const MOST_UNHEARD_IN_HANDSHAKE: usize = 80 << 10;

/// Bytes that arrive at a time: all of them, or pieces of 1 to 64.
pub fn pieces(choice: u8) -> [usize; 2] {
    [usize::MAX, 1 + usize::from(choice % 64)]
}

/// The first bytes select options; the rest is the input.
pub fn split<const CHOICES: usize>(data: &[u8]) -> Option<([u8; CHOICES], &[u8])> {
    data.split_first_chunk::<CHOICES>().map(|(choices, rest)| (*choices, rest))
}

/// Feeds `said` to `take` in pieces, each time with what has arrived and was not consumed, until everything has arrived
/// and nothing more is consumed. `take` returns the number of bytes consumed, and whether it continues.
///
/// # Panics
/// When `take` consumes more than it was given.
pub fn arrive(said: &[u8], piece: usize, mut take: impl FnMut(&[u8]) -> (usize, bool)) {
    let (mut begin, mut end) = (0, piece.min(said.len()));
    let mut idle = 0;
    loop {
        let (taken, on) = take(&said[begin..end]);
        assert!(taken <= end - begin, "{taken} bytes of {} consumed", end - begin);
        begin += taken;
        if !on {
            return;
        }
        let more = piece.min(said.len() - end);
        if taken == 0 && more == 0 {
            // One more call without progress is allowed: output may have had to be sent first.
            idle += 1;
            if idle > 1 {
                return;
            }
        } else {
            idle = 0;
        }
        end += more;
    }
}

/// The bytes as a file: its path, until the next call, and its number. It is in memory, because a disk takes longer than a run.
///
/// # Panics
/// When it cannot be made.
pub fn file_of(bytes: &[u8]) -> (String, u64) {
    static FILE: LazyLock<File> =
        LazyLock::new(|| memfd_create("iotoll-fuzz", MemfdFlags::CLOEXEC).expect("creating a file in memory").into());
    FILE.set_len(bytes.len() as u64).and_then(|()| FILE.write_all_at(bytes, 0)).expect("writing the file");
    let number = FILE.metadata().expect("reading the file's number").ino();
    (format!("/proc/self/fd/{}", FILE.as_raw_fd()), number)
}
