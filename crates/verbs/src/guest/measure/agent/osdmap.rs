//! The flag `creating` of a pool of a Ceph cluster. A monitor sets it for a pool that is made by a command, and an OSD makes
//! the placement groups of such pools only. The pool of osdmaptool(8) does not have it, and its first I/O would wait for ever.
//!
//! The map's encoding is that of Ceph 14 to 19 as its sources describe it (`OSDMap::encode`, `pg_pool_t::encode`): little
//! endian; a frame is a version, the oldest version that can read it, and the length of what follows.

use lab::error::{Error, Result};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// `pg_pool_t::FLAG_CREATING`.
const CREATING: u64 = 1 << 15;
/// Flags of pools that are known: a number above is no set of flags, so the place is wrong.
const KNOWN_FLAGS: u64 = 1 << 24;
const FRAME: usize = 1 + 1 + 4;
/// In the frame of what clients read: id of the cluster, epoch, times of creation and change; then the number of pools.
const POOLS: usize = FRAME + FRAME + 16 + 4 + 8 + 8;
/// From the number of pools to the first pool's number of snapshots: id; its frame; type, size, rule, hash; two numbers of
/// placement groups and two of local ones; epoch of the last change; number and epoch of the last snapshot.
const SNAPSHOTS: usize = POOLS + 4 + 8 + FRAME + 4 + 4 * 4 + 4 + 8 + 4;
/// From there, if there are none: the empty lists of snapshots and of removed ones, and the owner.
const FLAGS: usize = SNAPSHOTS + 4 + 4 + 8;

/// Marks the only pool of the map in a file as being created.
pub(super) fn create_pool(path: &Path) -> Result<()> {
    let map = fs::read(path).map_err(|error| Error::file(path, "reading", error))?;
    let marked = marked(map).map_err(|why| {
        Error::Failed(format!(
            "{}: a map of a Ceph cluster that is not understood: {why}; use Ceph 14 to 19",
            path.display()
        ))
    })?;
    fs::write(path, marked).map_err(|error| Error::file(path, "writing", error))
}

/// The map with the flag, or what is wrong with it.
fn marked(mut map: Vec<u8>) -> std::result::Result<Vec<u8>, &'static str> {
    let short = "it is too short";
    let end = map.len().checked_sub(4).ok_or(short)?;
    let number = |map: &[u8], at: usize| {
        let bytes = map.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_le_bytes).ok_or(short)
    };
    if usize::try_from(number(&map, 2)?).ok().and_then(|length| length.checked_add(FRAME)) != Some(map.len()) {
        return Err("its length is not the one that it states");
    }
    if number(&map, end)? != crc(map.get(..end).ok_or(short)?) {
        return Err("its CRC is wrong");
    }
    if number(&map, POOLS)? != 1 {
        return Err("it has not one pool");
    }
    if number(&map, SNAPSHOTS)? != 0 || number(&map, SNAPSHOTS + 4)? != 0 {
        return Err("its pool has snapshots");
    }
    let place: Range<usize> = FLAGS..FLAGS + 8;
    let flags = map.get(place.clone()).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes).ok_or(short)?;
    if flags >= KNOWN_FLAGS {
        return Err("the flags of its pool are not where they are expected");
    }
    map.get_mut(place).ok_or(short)?.copy_from_slice(&(flags | CREATING).to_le_bytes());
    let crc = crc(map.get(..end).ok_or(short)?);
    map.get_mut(end..).ok_or(short)?.copy_from_slice(&crc.to_le_bytes());
    Ok(map)
}

/// CRC-32C as Ceph computes it: not inverted at the end.
fn crc(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map of this many bytes with one pool.
    fn map(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut map = vec![0; 400];
        map[0] = 8;
        map[2..6].copy_from_slice(&394_u32.to_le_bytes());
        map[POOLS] = 1;
        map[FLAGS] = 1;
        change(&mut map);
        let crc = crc(&map[..396]);
        map[396..].copy_from_slice(&crc.to_le_bytes());
        map
    }

    #[test]
    fn the_flag_is_set_and_the_crc_renewed() {
        let before = map(|_| ());
        let after = marked(before.clone()).unwrap();
        assert_eq!(after[FLAGS..FLAGS + 2], [1, 0x80]);
        assert_eq!(crc(&after[..396]).to_le_bytes(), after[396..]);
        let differ: Vec<usize> = (0..400).filter(|place| before[*place] != after[*place]).collect();
        assert!(differ.iter().all(|place| *place == FLAGS + 1 || *place >= 396), "{differ:?}");
    }

    #[test]
    fn another_encoding_is_refused() {
        let mut damaged = map(|_| ());
        damaged[100] ^= 1;
        let mut longer = map(|_| ());
        longer.push(0);
        for (map, why) in [
            (vec![1, 2], "it is too short"),
            (vec![0; 50], "its length is not the one that it states"),
            (longer, "its length is not the one that it states"),
            (damaged, "its CRC is wrong"),
            (map(|map| map[POOLS] = 2), "it has not one pool"),
            (map(|map| map[SNAPSHOTS] = 1), "its pool has snapshots"),
            (map(|map| map[FLAGS + 6] = 1), "the flags of its pool are not where they are expected"),
        ] {
            assert_eq!(marked(map), Err(why));
        }
    }
}
