//! What a pread from the page cache takes by itself, when its caller touches so many pages of its own before each: caches and
//! translations that the kernel left there are gone then, as after a caller that does much between its calls.

use super::argument;
use super::bare_pread::offsets;
use anyhow::ensure;
use std::fs::File;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};
use sys::clock::ticks;

const BLOCK: usize = 4096;
const PAGE: usize = 4096;
/// Lines of a page that are touched: the place in the page differs from page to page, or all would fall into few sets of a cache.
const LINE: usize = 64;
/// Reads between two looks at the clock.
const READS_PER_LOOK: usize = 256;

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let file = File::open(argument::<PathBuf>(arguments, 0)?)?;
    let length = Duration::try_from_secs_f64(argument(arguments, 1)?)?;
    let pages: usize = argument(arguments, 2)?;
    let offsets = offsets(file.metadata()?.len(), BLOCK as u64);
    ensure!(!offsets.is_empty(), "the file holds no block of {BLOCK} bytes");
    let mut own = vec![1_u8; (pages + 1) * PAGE];
    let mut buffer = vec![1; BLOCK + PAGE];
    let aligned = buffer.as_ptr().align_offset(PAGE);
    let buffer = buffer.get_mut(aligned..aligned + BLOCK).unwrap_or_default();
    let begin = Instant::now();
    let (mut calls, mut cycles) = (0_u64, 0_u64);
    let mut rest = offsets.iter().copied().cycle();
    while begin.elapsed() < length {
        for offset in rest.by_ref().take(READS_PER_LOOK) {
            for page in 0..pages {
                let place = page * PAGE + page * LINE % PAGE;
                if let Some(byte) = own.get_mut(place) {
                    *byte = black_box(byte.wrapping_add(1));
                }
            }
            // What was touched is there before the call begins.
            fence(Ordering::SeqCst);
            let before = ticks();
            let read = rustix::io::pread(&file, &mut *buffer, offset)?;
            cycles += ticks().saturating_sub(before);
            calls += 1;
            ensure!(read == BLOCK, "a read of {read} bytes, not {BLOCK}");
        }
    }
    black_box(&own);
    ensure!(calls > 0, "no time to read anything");
    println!("{}", cycles as f64 / calls as f64);
    Ok(())
}
