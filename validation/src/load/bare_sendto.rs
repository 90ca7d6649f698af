//! The fewest instructions that send datagrams one by one: a socket, a buffer, a loop. Prints how many the kernel accepted
//! in a second.

use super::argument;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Datagrams between two looks at the clock.
const BETWEEN: u32 = 256;

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let target: SocketAddr = argument(arguments, 0)?;
    let (bytes, seconds): (usize, f64) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let socket = UdpSocket::bind((if target.is_ipv4() { "0.0.0.0" } else { "::" }, 0))?;
    socket.connect(target)?;
    let (payload, length) = (vec![0; bytes], Duration::from_secs_f64(seconds));
    let (mut sent, begun) = (0_u64, Instant::now());
    while begun.elapsed() < length {
        for _ in 0..BETWEEN {
            sent += u64::from(socket.send(&payload).is_ok());
        }
    }
    println!("{{\"per_second\": {}}}", sent as f64 / begun.elapsed().as_secs_f64());
    Ok(())
}
