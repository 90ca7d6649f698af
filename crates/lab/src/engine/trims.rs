//! Trims as fio makes them: of a device with BLKDISCARD, of a file by punching a hole. One system call each.

use super::{Setup, result_of};
use crate::workload::request_source::Request;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;

/// How each file of a job is trimmed.
pub(super) struct Trims {
    /// Whether it is a device: found out before the first I/O, so that no trim has to ask.
    devices: Vec<bool>,
    calls: u64,
}

impl Trims {
    pub(super) fn of(setup: &Setup) -> Self {
        let is_device = |path| std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
        Self { devices: setup.targets.iter().map(|target| is_device(&target.path)).collect(), calls: 0 }
    }

    /// Not inlined, so that the loops of reads and writes stay small.
    #[inline(never)]
    pub(super) fn perform(&mut self, file: &File, request: &Request) -> i32 {
        let (offset, length) = (request.offset, u64::from(request.length));
        self.calls += 1;
        let outcome = if self.devices.get(request.file as usize) == Some(&true) {
            sys::device::discard(file, offset, length)
        } else {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(file, hole, offset, length).map_err(Into::into)
        };
        result_of(outcome.map(|()| request.length as usize))
    }

    /// System calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }
}
