//! Mixed random reads and writes of a remote block device. Every block contains its position, the number of the write
//! that wrote it, and a CRC of the whole block. A read that finds anything else is an error.

use super::argument;
use crate::bench::seeded::Seeded;
use anyhow::{Context, bail, ensure};
use nbd::client::{Ask, Client, Connection, Done, Options, Uri};
use std::time::{Duration, Instant};

/// Size of a verified block.
const BLOCK: usize = 512;
/// Maximum blocks per I/O: large enough that some payloads exceed the copy thresholds, while a single block does not.
const MOST_BLOCKS: u64 = 128;
/// Number of blocks used: few enough to be rewritten many times.
const BLOCKS: u64 = (64 << 20) / BLOCK as u64;
/// A server that sends nothing for this long has lost a request.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Size of the CRC-32C at the end of a block.
const CRC: usize = 4;

/// An I/O in flight.
#[derive(Clone, Copy)]
struct Flight {
    ask: Ask,
    first: u64,
    count: u64,
}

/// The expected content of every block.
struct Disk {
    /// Writes of each block so far; at 0 the content is unknown.
    versions: Vec<u32>,
    /// Blocks in flight. No two I/Os of one block are in flight at a time, because their order would be unknown.
    busy: Vec<bool>,
    seeded: Seeded,
    scratch: Vec<u8>,
}

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let uri: Uri = argument(arguments, 0)?;
    let ios: u64 = argument(arguments, 1)?;
    let depth: u32 = argument(arguments, 2)?;
    // Some blocks must always remain that are not in flight.
    let most = BLOCKS / MOST_BLOCKS / 2;
    ensure!((1..=most).contains(&u64::from(depth)), "DEPTH {depth} is not from 1 to {most}");
    let slot_bytes = BLOCK * MOST_BLOCKS as usize;
    let mut client = Client::connect(&uri, depth, slot_bytes, Options::default())?;
    let size = client.export().size;
    ensure!(size >= BLOCKS * BLOCK as u64, "the export has {size} bytes; {} are needed", BLOCKS * BLOCK as u64);
    ensure!(client.takes(Ask::Write), "the export is read-only");
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
            *flights.get_mut(slot as usize).context("no such slot")? = Some(flight);
            begun += 1;
        }
        client.exchange(|reply| done.push(reply))?;
        if !done.is_empty() {
            last = Instant::now();
        }
        ensure!(last.elapsed() < TIMEOUT, "{} I/Os got no reply", client.in_flight());
        for reply in done.drain(..) {
            let flight = flights.get_mut(reply.slot as usize).and_then(Option::take);
            let flight = flight.with_context(|| format!("a reply to slot {}, which has no request", reply.slot))?;
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
    // The last writes may not have been read yet.
    for flight in disk.all() {
        client.stage(0, flight.ask, flight.first * BLOCK as u64, flight.count as u32 * BLOCK as u32)?;
        client.submit(|reply| done.push(reply))?;
        let asked = Instant::now();
        while done.is_empty() {
            client.wait(|reply| done.push(reply))?;
            ensure!(asked.elapsed() < TIMEOUT, "the last reads got no reply");
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

    /// The next I/O: one block for half of them, up to [`MOST_BLOCKS`] for the others.
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

    /// Reads of all blocks.
    fn all(&self) -> Vec<Flight> {
        let first = (0..BLOCKS / MOST_BLOCKS).map(|number| number * MOST_BLOCKS);
        first.map(|first| Flight { ask: Ask::Read, first, count: MOST_BLOCKS }).collect()
    }

    fn release(&mut self, flight: &Flight) {
        self.busy.get_mut(flight.range()).unwrap_or_default().fill(false);
    }

    /// Writes the next version of each block into a slot.
    fn fill(&mut self, client: &Client, slot: usize, flight: &Flight) {
        for (place, block) in flight.range().enumerate() {
            let Some(version) = self.versions.get_mut(block) else { continue };
            *version += 1;
            make(&mut self.scratch, block as u64, *version);
            client.arena().write(slot + place * BLOCK, &self.scratch);
        }
    }

    /// Verifies the blocks of a slot. Returns how many had a known content.
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

/// Fills a block: its position, its version, data derived from both, and the CRC.
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
        (true, (false, _)) => bail!("block {place}, version {version}: found another block"),
        (true, (true, false)) => bail!("block {place}: version {version} was written, found another version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_version_of_a_block_verifies() {
        let mut block = vec![0; BLOCK];
        make(&mut block, 7, 3);
        verify(&block, 7, 3).unwrap();
        let error_at = |place, version| verify(&block, place, version).unwrap_err().to_string();
        assert!(error_at(8, 3).contains("found another block"));
        assert!(error_at(7, 4).contains("version 4 was written"));
        for place in [0, 8, 12, 200, BLOCK - CRC - 1, BLOCK - 1] {
            let mut torn = block.clone();
            torn[place] ^= 1;
            assert!(verify(&torn, 7, 3).unwrap_err().to_string().contains("the CRC is wrong"), "{place}");
        }
        // A mix of two writes.
        let mut older = vec![0; BLOCK];
        make(&mut older, 7, 2);
        older[..BLOCK / 2].copy_from_slice(&block[..BLOCK / 2]);
        assert!(verify(&older, 7, 3).is_err());
    }

    #[test]
    fn ios_in_flight_do_not_overlap() {
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
