//! Trims as fio makes them: of a device with BLKDISCARD, of a file by punching a hole, of a zone by resetting it. One system call each,
//! and none for a zone of a file.

use super::{Setup, result_of};
use crate::error::Result;
use crate::workload::request_source::Request;
use crate::workload::zones::ZonedFile;
use model::plan::Access;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

/// How each file of a job is trimmed.
pub(super) struct Trims {
    /// Whether it is a device: found out before the first I/O, so that no trim has to ask.
    devices: Vec<bool>,
    /// Their zones, if they have any.
    zones: Vec<Arc<ZonedFile>>,
    calls: u64,
}

impl Trims {
    /// # Errors
    /// What a file with zones cannot do.
    pub(super) fn of(setup: &Setup) -> Result<Self> {
        let is_device = |path| std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
        let zoned = setup.plan.requests.zones.device.on && setup.plan.access == Access::Trim;
        let zones = setup.targets.iter().filter(|_| zoned).map(|target| ZonedFile::of(setup.plan, target));
        let zones = zones.collect::<Result<_>>()?;
        Ok(Self { devices: setup.targets.iter().map(|target| is_device(&target.path)).collect(), zones, calls: 0 })
    }

    /// Not inlined, so that the loops of reads and writes stay small.
    #[inline(never)]
    pub(super) fn perform(&mut self, file: &File, request: &Request) -> i32 {
        let (offset, length) = (request.offset, u64::from(request.length));
        if let Some(outcome) = self.zones.get(request.file as usize).and_then(|zones| zones.trim(offset)) {
            return result_of(outcome.map(|calls| {
                self.calls += calls;
                request.length as usize
            }));
        }
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
