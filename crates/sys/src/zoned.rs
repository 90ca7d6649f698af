//! Zoned block devices: what their zones are, and resetting them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// _IOWR(0x12, 130, struct blk_zone_report), linux/blkzoned.h.
const BLKREPORTZONE: libc::c_ulong = 0xc010_1282;
/// _IOW(0x12, 131, struct blk_zone_range), linux/blkzoned.h.
const BLKRESETZONE: libc::c_ulong = 0x4010_1283;
/// The kernel has filled in the capacities.
const BLK_ZONE_REP_CAPACITY: u32 = 1;
const SECTOR: u64 = 512;
/// Zones of one call.
const BATCH: usize = 1024;
/// 64-bit words of a `struct blk_zone`, and of what is in front of the first one.
const ZONE: usize = 8;
const HEADER: usize = 2;

/// A zone, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its first byte.
    pub start: u64,
    /// Bytes to the next zone.
    pub length: u64,
    /// Bytes that can be written.
    pub capacity: u64,
    /// Where the next write must be, if it has a write pointer.
    pub write_pointer: u64,
    /// Its type: 1 conventional, 2 sequential write required, 3 sequential write preferred.
    pub kind: u8,
    /// Its condition: 0 no write pointer, 1 empty, 2 and 3 open, 4 closed, 13 read-only, 14 full, 15 offline.
    pub condition: u8,
}

/// All zones of a device.
///
/// # Errors
/// ENOTTY or EOPNOTSUPP if it has none.
pub fn report(device: &File) -> io::Result<Vec<Zone>> {
    let mut zones: Vec<Zone> = Vec::new();
    let mut words = vec![0u64; HEADER + BATCH * ZONE];
    loop {
        let next = zones.last().map_or(0, |zone| zone.start.saturating_add(zone.length));
        words.fill(0);
        // struct blk_zone_report: the first sector as u64, the number of zones and flags as u32, and the zones.
        if let [sector, count, ..] = words.as_mut_slice() {
            (*sector, *count) = (next / SECTOR, BATCH as u64);
        }
        // SAFETY: the kernel reads the header and writes at most the number of zones that is in it, for which there is room. The
        // words are aligned as the structure is.
        if unsafe { libc::ioctl(device.as_raw_fd(), BLKREPORTZONE, words.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let header = words.get(1).copied().unwrap_or_default();
        let (count, flags) = (header as u32 as usize, (header >> 32) as u32);
        let has_capacity = flags & BLK_ZONE_REP_CAPACITY != 0;
        let found = words.get(HEADER..).unwrap_or_default().chunks_exact(ZONE).take(count);
        let before = zones.len();
        zones.extend(found.filter_map(|words| zone(words, has_capacity)));
        if zones.len() == before {
            return Ok(zones);
        }
    }
}

/// struct blk_zone: start, length and write pointer in sectors, four bytes with type and condition, and the capacity.
fn zone(words: &[u64], has_capacity: bool) -> Option<Zone> {
    let &[start, length, write_pointer, bytes, capacity, ..] = words else { return None };
    let [kind, condition, ..] = bytes.to_ne_bytes();
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
    let capacity = if has_capacity { capacity } else { length };
    Some(Zone {
        start: bytes(start),
        length: bytes(length),
        capacity: bytes(capacity),
        write_pointer: bytes(write_pointer),
        kind,
        condition,
    })
}

/// Resets the write pointers of whole zones. Their data is gone.
///
/// # Errors
/// As the kernel says.
pub fn reset(device: &File, offset: u64, length: u64) -> io::Result<()> {
    let range = [offset / SECTOR, length / SECTOR];
    // SAFETY: BLKRESETZONE reads two u64 from the pointer.
    if unsafe { libc::ioctl(device.as_raw_fd(), BLKRESETZONE, range.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_file_has_no_zones() {
        let file = tempfile::tempfile().unwrap();
        assert!(report(&file).is_err() && reset(&file, 0, 4096).is_err());
    }

    #[test]
    fn a_zone_is_read_as_the_kernel_writes_it() {
        let bytes = u64::from_ne_bytes([2, 4, 0, 0, 0, 0, 0, 0]);
        let words = [8, 8, 11, bytes, 6, 0, 0, 0];
        let zone = |has_capacity| zone(&words, has_capacity).unwrap();
        let all = Zone { start: 4096, length: 4096, capacity: 3072, write_pointer: 5632, kind: 2, condition: 4 };
        assert_eq!((zone(true), zone(false)), (all, Zone { capacity: 4096, ..all }));
    }
}
