//! Block devices: size, discard, and the alignment that direct I/O requires.

use rustix::fs::{AtFlags, StatxFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// _IOR(0x12, 114, size_t), linux/fs.h.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
/// _IO(0x12, 119), linux/fs.h.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Size of a block device in bytes.
pub fn size(device: &File) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: BLKGETSIZE64 writes one u64 to the pointer.
    if unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKGETSIZE64, &mut bytes) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes)
}

/// Discards a range of a block device.
pub fn discard(device: &impl AsFd, offset: u64, length: u64) -> io::Result<()> {
    let range = [offset, length];
    // SAFETY: BLKDISCARD reads two u64 from the pointer.
    if unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKDISCARD, range.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The alignment of offsets and lengths that O_DIRECT requires, from statx (Linux 6.1); `None` if the kernel does not
/// report it.
///
/// # Errors
/// InvalidInput when the kernel reports that the file does not support O_DIRECT (opening it with O_DIRECT may succeed
/// regardless).
pub fn direct_alignment(file: &File) -> io::Result<Option<u64>> {
    let answer = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let told = answer.filter(|answer| answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    match told.map(|answer| answer.stx_dio_offset_align) {
        None => Ok(None),
        Some(0) => Err(io::ErrorKind::InvalidInput.into()),
        Some(align) => Ok(Some(align.into())),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_regular_file_is_not_a_device() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(super::size(&file).is_err());
        assert!(super::discard(&file, 0, 4096).is_err());
    }
}
