//! Mixed random reads and writes of a remote block device, every block of which says what it is: where it belongs, which
//! write put it there, and a CRC of all of it. A read that finds anything else ends this.

use super::argument;
use crate::bench::seeded::Seeded;
use anyhow::{Context, bail, ensure};
use nbd::client::{Ask, Client, Done, Options, Uri};
use std::time::{Duration, Instant};

/// What a block's content is checked in.
const BLOCK: usize = 512;
/// Blocks of one I/O at most: some are longer than what is copied on the way, and one block is not.
const MOST_BLOCKS: u64 = 128;
/// Of the device, so many are used: few enough to be written many times over.
const BLOCKS: u64 = (64 << 20) / BLOCK as u64;
/// A server that says nothing for so long has lost something.
const TIMEOUT: Duration = Duration::from_secs(20);
/// A CRC-32C is at the end of a block.
const CRC: usize = 4;

/// An I/O in flight.
#[derive(Clone, Copy)]
struct Flight {
    ask: Ask,
    first: u64,
    count: u64,
}

/// What every block must hold.
struct Disk {
    /// Writes of each block so far; of 0 nobody knows what it holds.
    versions: Vec<u32>,
    /// No two I/Os of one block are in flight at one time: which of them came first, nobody could tell.
    busy: Vec<bool>,
    seeded: Seeded,
    scratch: Vec<u8>,
}

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let uri: Uri = argument(arguments, 0)?;
    let ios: u64 = argument(arguments, 1)?;
    let depth: u32 = argument(arguments, 2)?;
    // Beside the blocks in flight there must always be some that are not.
    let most = BLOCKS / MOST_BLOCKS / 2;
    ensure!((1..=most).contains(&u64::from(depth)), "a depth of {depth} is not from 1 to {most}");
    let slot_bytes = BLOCK * MOST_BLOCKS as usize;
    let mut client = Client::connect(&uri, depth, slot_bytes, Options::default())?;
    let size = client.export().size;
    ensure!(size >= BLOCKS * BLOCK as u64, "{size} bytes are too few, {} are wanted", BLOCKS * BLOCK as u64);
    ensure!(client.takes(Ask::Write), "nothing can be written there");
    let mut disk = Disk::new(argument(arguments, 3)?);
    let mut flights: Vec<Option<Flight>> = vec![None; depth as usize];
    let mut free: Vec<u32> = (0..depth).collect();
    let (mut begun, mut reads, mut writes, mut verified) = (0, 0_u64, 0_u64, 0);
    let mut done: Vec<Done> = Vec::new();
    let mut last = Instant::now();
    while begun < ios || free.len() < depth as usize {
        while begun < ios
            && let Some(slot) = free.pop()
        {
            let flight = disk.draw();
            if flight.ask == Ask::Write {
                disk.fill(&client, slot as usize * slot_bytes, &flight);
            }
            client.stage(slot, flight.ask, flight.first * BLOCK as u64, flight.count as u32 * BLOCK as u32)?;
            *flights.get_mut(slot as usize).context("a slot that is not there")? = Some(flight);
            begun += 1;
        }
        client.exchange(|reply| done.push(reply))?;
        if !done.is_empty() {
            last = Instant::now();
        }
        ensure!(last.elapsed() < TIMEOUT, "{} I/Os were never replied to", client.in_flight());
        for reply in done.drain(..) {
            let flight = flights.get_mut(reply.slot as usize).and_then(Option::take);
            let flight = flight.with_context(|| format!("a reply to slot {}, which asked for nothing", reply.slot))?;
            if let Some(error) = reply.error {
                bail!("{:?} of block {}: {error:?}", flight.ask, flight.first);
            }
            match flight.ask {
                Ask::Read => {
                    reads += 1;
                    verified += disk.check(&client, reply.slot as usize * slot_bytes, &flight)?;
                }
                _ => writes += 1,
            }
            disk.release(&flight);
            free.push(reply.slot);
        }
    }
    // What was written last, nobody may have read yet.
    for flight in disk.all() {
        client.stage(0, flight.ask, flight.first * BLOCK as u64, flight.count as u32 * BLOCK as u32)?;
        client.submit(|reply| done.push(reply))?;
        let asked = Instant::now();
        while done.is_empty() {
            client.wait(|reply| done.push(reply))?;
            ensure!(asked.elapsed() < TIMEOUT, "the last reads were never replied to");
        }
        ensure!(done.drain(..).all(|reply| reply.error.is_none()), "the last reads failed");
        verified += disk.check(&client, 0, &flight)?;
    }
    ensure!(verified >= reads / 2, "{verified} blocks were verified in {reads} reads");
    println!("{}", serde_json::json!({ "reads": reads, "writes": writes, "verified_blocks": verified }));
    Ok(())
}

impl Disk {
    fn new(seed: u64) -> Self {
        let blocks = BLOCKS as usize;
        let seeded = Seeded::new(seed);
        Self { versions: vec![0; blocks], busy: vec![false; blocks], seeded, scratch: vec![0; BLOCK] }
    }

    /// What comes next: of half of them one block, of the others up to [`MOST_BLOCKS`].
    fn draw(&mut self) -> Flight {
        loop {
            let count = if self.seeded.below(2) == 0 { 1 } else { 1 + self.seeded.below(MOST_BLOCKS) };
            let first = self.seeded.below(BLOCKS - count + 1);
            let ask = if self.seeded.below(2) == 0 { Ask::Read } else { Ask::Write };
            let flight = Flight { ask, first, count };
            let busy = self.busy.get_mut(flight.range()).unwrap_or_default();
            if !busy.contains(&true) {
                busy.fill(true);
                return flight;
            }
        }
    }

    /// Reads of all of it.
    fn all(&self) -> Vec<Flight> {
        let first = (0..BLOCKS / MOST_BLOCKS).map(|number| number * MOST_BLOCKS);
        first.map(|first| Flight { ask: Ask::Read, first, count: MOST_BLOCKS }).collect()
    }

    fn release(&mut self, flight: &Flight) {
        self.busy.get_mut(flight.range()).unwrap_or_default().fill(false);
    }

    /// The next version of each block, in a slot.
    fn fill(&mut self, client: &Client, slot: usize, flight: &Flight) {
        for (place, block) in flight.range().enumerate() {
            let Some(version) = self.versions.get_mut(block) else { continue };
            *version += 1;
            make(&mut self.scratch, block as u64, *version);
            client.arena().write(slot + place * BLOCK, &self.scratch);
        }
    }

    /// How many blocks of a slot were as they must be.
    fn check(&mut self, client: &Client, slot: usize, flight: &Flight) -> anyhow::Result<u64> {
        let mut known = 0;
        for (place, block) in flight.range().enumerate() {
            let version = self.versions.get(block).copied().unwrap_or(0);
            if version > 0 {
                client.arena().read(slot + place * BLOCK, &mut self.scratch);
                verify(&self.scratch, block as u64, version)?;
                known += 1;
            }
        }
        Ok(known)
    }
}

impl Flight {
    fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

/// A block: its place, its version, what follows from both, and the CRC.
fn make(block: &mut [u8], place: u64, version: u32) {
    let mut seeded = Seeded::new(place << 32 | u64::from(version));
    for eight in block.chunks_exact_mut(8) {
        eight.copy_from_slice(&seeded.below(u64::MAX).to_le_bytes());
    }
    let (content, crc) = block.split_at_mut(block.len() - CRC);
    let head = place.to_le_bytes().into_iter().chain(version.to_le_bytes());
    content.iter_mut().zip(head).for_each(|(byte, of_head)| *byte = of_head);
    crc.copy_from_slice(&crc32c::crc32c(content).to_le_bytes());
}

fn verify(block: &[u8], place: u64, version: u32) -> anyhow::Result<()> {
    let (content, crc) = block.split_at(block.len() - CRC);
    let is = |begin: usize, bytes: &[u8]| content.get(begin..begin + bytes.len()) == Some(bytes);
    let right = (is(0, &place.to_le_bytes()), is(8, &version.to_le_bytes()));
    match (crc32c::crc32c(content).to_le_bytes() == *crc, right) {
        (true, (true, true)) => Ok(()),
        (false, _) => bail!("block {place}, version {version}: the CRC is wrong"),
        (true, (false, _)) => bail!("block {place}, version {version}: another block is there"),
        (true, (true, false)) => bail!("block {place}: version {version} was written, another is there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_what_was_written_there_last_and_nothing_else() {
        let mut block = vec![0; BLOCK];
        make(&mut block, 7, 3);
        verify(&block, 7, 3).unwrap();
        let error_at = |place, version| verify(&block, place, version).unwrap_err().to_string();
        assert!(error_at(8, 3).contains("another block"));
        assert!(error_at(7, 4).contains("version 4 was written"));
        for place in [0, 8, 12, 200, BLOCK - CRC - 1, BLOCK - 1] {
            let mut torn = block.clone();
            torn[place] ^= 1;
            assert!(verify(&torn, 7, 3).unwrap_err().to_string().contains("the CRC is wrong"), "{place}");
        }
        // The second half of an older write.
        let mut older = vec![0; BLOCK];
        make(&mut older, 7, 2);
        older[..BLOCK / 2].copy_from_slice(&block[..BLOCK / 2]);
        assert!(verify(&older, 7, 3).is_err());
    }

    #[test]
    fn no_two_in_flight_have_a_block_in_common() {
        let mut disk = Disk::new(1);
        let flights: Vec<Flight> = (0..500).map(|_| disk.draw()).collect();
        let mut blocks: Vec<usize> = flights.iter().flat_map(Flight::range).collect();
        blocks.sort_unstable();
        assert!(blocks.windows(2).all(|pair| pair[0] < pair[1]) && blocks.last() < Some(&(BLOCKS as usize)));
        flights.iter().for_each(|flight| disk.release(flight));
        assert!(!disk.busy.contains(&true));
        let all: Vec<usize> = disk.all().iter().flat_map(Flight::range).collect();
        assert_eq!(all, (0..BLOCKS as usize).collect::<Vec<_>>());
    }
}
