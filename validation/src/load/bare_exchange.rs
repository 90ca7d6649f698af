//! The minimum cost of a remote read on a machine: a client sends as many bytes as requests have, a server replies with
//! as many as replies have, gathered from random places in memory, a whole queue depth at a time. No protocol,
//! bookkeeping, or latency measurement: only the kernel's path between the two processes remains.

use super::argument;
use anyhow::ensure;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, recv};
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use sys::socket::wake_when_readable;

use crate::bench::seeded::Seeded;

/// Size of the memory to read from; the same as that of the servers that it is compared with.
const BYTES: usize = 256 << 20;
/// Sizes of a request and of a reply's header in NBD.
const REQUEST: usize = 28;
const HEADER: usize = 16;
/// Largest number of bytes to wait for: part of what a socket buffer has room for.
const MOST_WAITED_FOR: usize = 256 << 10;
const SEED: u64 = 1;

/// Serves one client at a time; prints its address as the first line. An address with a slash is a Unix socket.
pub fn serve(arguments: &[&str]) -> anyhow::Result<()> {
    let address: String = argument(arguments, 0)?;
    let (block, depth): (usize, usize) = (argument(arguments, 1)?, argument(arguments, 2)?);
    check(block, depth)?;
    let mut seeded = Seeded::new(SEED);
    let mut memory = vec![0; BYTES];
    memory.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&seeded.below(u64::MAX).to_ne_bytes()));
    let mut serve = |client: &mut dyn Stream| answer(client, &memory, block, depth, &mut seeded);
    if address.contains('/') {
        let listener = UnixListener::bind(&address)?;
        println!("{address}");
        loop {
            serve(&mut listener.accept()?.0);
        }
    }
    let listener = TcpListener::bind(address)?;
    println!("{}", listener.local_addr()?);
    loop {
        let (mut client, _) = listener.accept()?;
        client.set_nodelay(true)?;
        serve(&mut client);
    }
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// Replies until the client disconnects.
fn answer(client: &mut dyn Stream, memory: &[u8], block: usize, depth: usize, seeded: &mut Seeded) {
    let mut asked = vec![0; REQUEST * depth];
    while client.read_exact(&mut asked).is_ok() {
        let blocks: Vec<&[u8]> =
            (0..depth).map(|_| place(memory, block, seeded.below((BYTES / block) as u64))).collect();
        let mut slices: Vec<IoSlice> =
            blocks.iter().flat_map(|block| [IoSlice::new(&[0; HEADER]), IoSlice::new(block)]).collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            let Ok(count) = client.write_vectored(rest) else { return };
            IoSlice::advance_slices(&mut rest, count);
        }
    }
}

fn check(block: usize, depth: usize) -> anyhow::Result<()> {
    let fits = (1..=512).contains(&depth) && (1..=BYTES).contains(&block);
    ensure!(fits, "DEPTH must be from 1 to 512, and BLOCK from 1 to {BYTES} bytes");
    Ok(())
}

fn place(memory: &[u8], block: usize, number: u64) -> &[u8] {
    let begin = number as usize * block;
    memory.get(begin..begin + block).unwrap_or_default()
}

/// Requests a number of blocks.
pub fn ask(arguments: &[&str]) -> anyhow::Result<()> {
    let server: String = argument(arguments, 0)?;
    let (block, depth, blocks): (usize, usize, usize) =
        (argument(arguments, 1)?, argument(arguments, 2)?, argument(arguments, 3)?);
    check(block, depth)?;
    if server.contains('/') {
        return exchange(UnixStream::connect(server)?, block, depth, blocks);
    }
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    exchange(stream, block, depth, blocks)
}

fn exchange(mut stream: impl Write + AsFd, block: usize, depth: usize, blocks: usize) -> anyhow::Result<()> {
    let (asked, mut memory) = (vec![0; REQUEST * depth], vec![0; (HEADER + block) * depth]);
    let mut low_water = 1;
    for _ in 0..blocks.div_ceil(depth) {
        stream.write_all(&asked)?;
        let mut there = 0;
        while let Some(rest) = memory.get_mut(there..).filter(|rest| !rest.is_empty()) {
            let wanted = (rest.len()).min(MOST_WAITED_FOR);
            if low_water > wanted || low_water * 2 < wanted {
                wake_when_readable(&stream, wanted)?;
                low_water = wanted;
            }
            poll(&mut [PollFd::new(&stream, PollFlags::IN)], None)?;
            match recv(&stream, rest, RecvFlags::DONTWAIT) {
                Ok((0, _)) => anyhow::bail!("the server closed the connection"),
                Ok((count, _)) => there += count,
                Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_within_the_memory() {
        let memory = vec![0; BYTES];
        for block in [1, 4096, 1 << 20, BYTES] {
            let blocks = (BYTES / block) as u64;
            assert!([0, blocks / 2, blocks - 1].iter().all(|number| place(&memory, block, *number).len() == block));
            assert!(place(&memory, block, blocks).is_empty(), "{block}");
        }
    }
}
