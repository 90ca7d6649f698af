//! Reads blocks of a file in random order as most programs would: the C library's pread in a loop, with offsets from a
//! table. With O_DIRECT it bypasses the page cache.

use super::argument;
use anyhow::{bail, ensure};
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::bench::seeded::Seeded;

/// Alignment of the buffer, as in every engine.
const PAGE: usize = 4096;
/// Reads between two clock readings.
const READS_PER_LOOK: usize = 256;
/// Any constant, so that runs are alike.
const SEED: u64 = 1;

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let flags = match arguments.get(3) {
        Some(&"cached") => OFlags::empty(),
        Some(&"direct") => OFlags::DIRECT,
        other => bail!("CACHE must be 'cached' or 'direct', not '{}'", other.unwrap_or(&"")),
    };
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(argument::<PathBuf>(arguments, 0)?)?;
    let length = Duration::try_from_secs_f64(argument(arguments, 1)?)?;
    let block: usize = argument(arguments, 2)?;
    let metadata = file.metadata()?;
    let size = if metadata.file_type().is_block_device() { sys::device::size(&file)? } else { metadata.len() };
    let offsets = offsets(size, block as u64);
    ensure!(block > 0 && !offsets.is_empty(), "the file is shorter than a block of {block} bytes");
    let mut memory = vec![1; block + PAGE];
    let aligned = memory.as_ptr().align_offset(PAGE);
    let buffer = memory.get_mut(aligned..aligned + block).unwrap_or_default();
    let begin = Instant::now();
    let mut reads = 0;
    let mut rest = offsets.iter().copied().cycle();
    while begin.elapsed() < length {
        for offset in rest.by_ref().take(READS_PER_LOOK) {
            let read = file.read_at(buffer, offset)?;
            ensure!(read == block, "short read: {read} bytes instead of {block}");
        }
        reads += READS_PER_LOOK;
    }
    println!("{{\"iops\": {}}}", reads as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}

/// Every block of the file once, in random order.
fn offsets(size: u64, block: u64) -> Vec<u64> {
    let mut offsets: Vec<u64> = (0..size.checked_div(block).unwrap_or(0)).map(|number| number * block).collect();
    Seeded::new(SEED).shuffle(&mut offsets);
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_whole_block_is_read_once_and_not_in_order() {
        let found = offsets(4096 * 64 + 100, 4096);
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..64).map(|number| number * 4096).collect::<Vec<u64>>());
        assert_ne!(found, sorted);
        assert!(offsets(100, 4096).is_empty() && offsets(100, 0).is_empty());
    }
}
