//! Copies between the job's buffer and memory that stands for a device, as a driver of storage class memory does.
//! Each copy of a job has its own memory. The counter of I/Os in flight may be one for all, as that of an inode is.

use super::{OpenEngine, Perform, nbd, noisy_slots};
use crate::worker_pool::JobCopy;
use crate::workload::request_source::{Kind, Request};
use ::nbd::client::Account;
use lab::error::{Error, Result};
use lab::memory;
use lab::sysroot::Sysroot;
use std::path::Path;
use sys::buffer::AlignedBuffer;
use sys::byte_store::ByteStore;

struct Mem {
    device: ByteStore,
    buffer: AlignedBuffer,
    in_flight: Account,
}

pub(super) fn open(copy: &JobCopy) -> Result<OpenEngine> {
    let plan = copy.plan;
    let bytes = copy.targets.iter().map(|target| target.span.begin + target.span.length).max().unwrap_or(0);
    let failed = |error| Error::job(&plan.name, format!("{bytes} bytes of memory, its device"), error);
    let length = usize::try_from(bytes).map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?;
    // The kernel promises more than it has, and kills who touches it.
    if memory::available(&Sysroot::at(Path::new("/"))).is_some_and(|available| available < bytes) {
        return Err(failed(std::io::ErrorKind::OutOfMemory.into()));
    }
    let device = ByteStore::zeroed(length).map_err(failed)?.copied(nbd::copying(plan.own.mem_copy));
    let buffer = noisy_slots(plan, 1)?;
    // All pages are there before the first I/O, as those of a device are.
    for begin in (0..length).step_by(buffer.len()) {
        device.write(begin, buffer.get(..buffer.len().min(length - begin)).unwrap_or_default());
    }
    let in_flight = Account::new(nbd::accounting(plan.own.mem_in_flight));
    let mut engine = Mem { device, buffer, in_flight };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Mem {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let (offset, length) = (request.offset as usize, request.length as usize);
        let memory = match self.buffer.get_mut(..length) {
            Some(memory) => memory,
            // A job that only trims has no memory.
            None if request.kind == Kind::Trim => &mut [],
            None => return -14,
        };
        self.in_flight.begin();
        match request.kind {
            Kind::Read => self.device.read(offset, memory),
            Kind::Write => self.device.write(offset, memory),
            Kind::Trim => self.device.zero(offset, length),
        }
        self.in_flight.end();
        request.length.cast_signed()
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.buffer.get_mut(..length as usize).into_iter().for_each(work);
    }
}
