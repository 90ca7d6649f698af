//! Data between memory and files through a pipe: splice(2) and vmsplice(2).

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};

/// What a pipe holds.
const PIECE: usize = 64 << 10;

/// A pipe that is empty between two transfers.
#[derive(Debug)]
pub struct SplicePipe {
    reader: PipeReader,
    writer: PipeWriter,
    syscalls: u64,
}

impl SplicePipe {
    /// A new pipe.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer, syscalls: 0 })
    }

    /// System calls so far.
    pub fn syscalls(&self) -> u64 {
        self.syscalls
    }

    /// Reads from a place of a file: splices pages into the pipe, and copies them to memory. Fewer bytes where the file ends.
    pub fn read(&mut self, file: &File, offset: u64, memory: &mut [u8]) -> io::Result<usize> {
        let outcome = self.read_pieces(file, offset, memory);
        self.emptied(outcome)
    }

    /// Writes to a place of a file: maps memory into the pipe, and splices that to the file.
    pub fn write(&mut self, file: &File, offset: u64, memory: &[u8]) -> io::Result<usize> {
        let outcome = self.write_pieces(file, offset, memory);
        self.emptied(outcome)
    }

    /// After a failure, what is left in the pipe goes with it.
    fn emptied(&mut self, outcome: io::Result<usize>) -> io::Result<usize> {
        if outcome.is_err() {
            (self.reader, self.writer) = io::pipe()?;
        }
        outcome
    }

    fn read_pieces(&mut self, file: &File, offset: u64, memory: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < memory.len() {
            let rest = memory.len() - done;
            let more = if rest > PIECE { libc::SPLICE_F_MORE } else { 0 };
            let (from, to) = (file.as_raw_fd(), self.writer.as_raw_fd());
            let moved = self.splice((from, Some(offset + done as u64)), (to, None), rest.min(PIECE), more)?;
            if moved == 0 {
                break;
            }
            let piece = memory.get_mut(done..done + moved).unwrap_or_default();
            let mut taken = 0;
            while taken < piece.len() {
                let part = piece.get_mut(taken..).unwrap_or_default();
                let vector = libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
                taken += self.vmsplice(self.reader.as_raw_fd(), &vector, libc::SPLICE_F_MOVE)?;
            }
            done += moved;
        }
        Ok(done)
    }

    fn write_pieces(&mut self, file: &File, offset: u64, memory: &[u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < memory.len() {
            let rest = memory.get(done..).unwrap_or_default();
            let vector = libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
            let mapped = self.vmsplice(self.writer.as_raw_fd(), &vector, libc::SPLICE_F_NONBLOCK)?;
            let mut passed = 0;
            while passed < mapped {
                let at = offset + (done + passed) as u64;
                let (from, to) = (self.reader.as_raw_fd(), file.as_raw_fd());
                let moved = self.splice((from, None), (to, Some(at)), mapped - passed, 0)?;
                if moved == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                passed += moved;
            }
            done += mapped;
        }
        Ok(done)
    }

    fn splice(
        &mut self,
        (from, from_offset): (RawFd, Option<u64>),
        (to, to_offset): (RawFd, Option<u64>),
        length: usize,
        flags: libc::c_uint,
    ) -> io::Result<usize> {
        let (mut from_offset, mut to_offset) = (from_offset.map(u64::cast_signed), to_offset.map(u64::cast_signed));
        let pointer = |offset: &mut Option<i64>| offset.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
        loop {
            self.syscalls += 1;
            // SAFETY: both descriptors are open, and each offset is null or points to one that lives through the call.
            let moved =
                unsafe { libc::splice(from, pointer(&mut from_offset), to, pointer(&mut to_offset), length, flags) };
            match usize::try_from(moved) {
                Ok(moved) => return Ok(moved),
                Err(_) => not_interrupted()?,
            }
        }
    }

    /// Bytes moved, at least one.
    fn vmsplice(&mut self, pipe: RawFd, vector: &libc::iovec, flags: libc::c_uint) -> io::Result<usize> {
        loop {
            self.syscalls += 1;
            // SAFETY: the vector is that of a slice of the caller: exclusive if `pipe` is the end for reading, into which the kernel
            // copies; otherwise the kernel only reads it, until the pipe is empty or gone, which is before the transfer returns.
            let moved = unsafe { libc::vmsplice(pipe, vector, 1, flags) };
            match usize::try_from(moved) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(moved) => return Ok(moved),
                Err(_) => not_interrupted()?,
            }
        }
    }
}

fn not_interrupted() -> io::Result<()> {
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_also_beyond_what_the_pipe_holds() {
        let path = std::env::temp_dir().join(format!("iotoll-splice-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let mut pipe = SplicePipe::new().unwrap();
        let data: Vec<u8> = (0..200_001u32).map(|number| (number % 251) as u8).collect();
        assert_eq!(pipe.write(&file, 4096, &data).unwrap(), data.len());
        let mut read = vec![0; data.len() + 100];
        assert_eq!(pipe.read(&file, 4096, &mut read).unwrap(), data.len(), "up to the end");
        assert!(read[..data.len()] == data);
        assert!(pipe.write(&File::open("/dev/null").unwrap(), 0, &data).is_err(), "not open to be written");
        assert_eq!(pipe.write(&file, 0, b"new").unwrap(), 3);
        assert_eq!(pipe.read(&file, 0, &mut read[..3]).unwrap(), 3);
        assert_eq!(&read[..3], b"new", "nothing of the failed one is left");
    }
}
