//! Block devices: size, discard, and the alignment that direct I/O requires.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// _IOR(0x12, 114, size_t), linux/fs.h.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
/// _IO(0x12, 119), linux/fs.h.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Size of a block device in bytes.
pub fn size(device: &File) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: BLKGETSIZE64 writes one u64 to the pointer.
    if unsafe { libc::ioctl(device.as_raw_fd(), BLKGETSIZE64, &mut bytes) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes)
}

/// Discards a range of a block device.
pub fn discard(device: &File, offset: u64, length: u64) -> io::Result<()> {
    let range = [offset, length];
    // SAFETY: BLKDISCARD reads two u64 from the pointer.
    if unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Tells the kernel how long the data of a file is expected to live: 1 no expectation, 2 short, 3 medium, 4 long,
/// 5 extreme.
pub fn set_write_hint(file: &File, life: u64) -> io::Result<()> {
    /// linux/fcntl.h
    const F_SET_RW_HINT: libc::c_int = 1024 + 12;
    // SAFETY: F_SET_RW_HINT reads one u64 from the pointer.
    if unsafe { libc::fcntl(file.as_raw_fd(), F_SET_RW_HINT, &raw const life) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Hands a range of a file over to its device, sync_file_range(2). `flags`: 1 wait before, 2 write, 4 wait after.
pub fn sync_range(file: &File, offset: u64, length: u64, flags: u32) -> io::Result<()> {
    let (offset, length) = (offset.cast_signed(), length.cast_signed());
    // SAFETY: the call takes only numbers.
    if unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, flags) } != 0 {
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
    /// linux/stat.h
    const STATX_DIOALIGN: libc::c_uint = 0x2000;
    // SAFETY: all-zero is a valid statx structure, which the kernel then fills.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    let empty = c"";
    // SAFETY: the path is a valid string, AT_EMPTY_PATH makes the call refer to the descriptor, and `answer` is valid
    // for the kernel to write.
    let done =
        unsafe { libc::statx(file.as_raw_fd(), empty.as_ptr(), libc::AT_EMPTY_PATH, STATX_DIOALIGN, &mut answer) };
    let told = done == 0 && answer.stx_mask & STATX_DIOALIGN != 0;
    match answer.stx_dio_offset_align {
        _ if !told => Ok(None),
        0 => Err(io::ErrorKind::InvalidInput.into()),
        align => Ok(Some(align.into())),
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

    #[test]
    fn a_file_takes_a_hint_and_a_sync_of_a_range() {
        let file = tempfile::tempfile().unwrap();
        super::set_write_hint(&file, 2).unwrap();
        assert!(super::set_write_hint(&file, 99).is_err());
        super::sync_range(&file, 0, 4096, 7).unwrap();
        assert!(super::sync_range(&file, 0, 4096, 8).is_err());
    }
}
