//! Two threads on two CPUs exchange 64-byte messages over TCP, one in flight. Every round trip is written to a file
//! with its end time, so that it can be assigned to a window of a meter.

use super::argument;
use anyhow::Context;
use std::io::{BufWriter, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use sys::clock::monotonic_nanos;

const MESSAGE: usize = 64;
/// More than any machine reaches, so that the list never grows during the measurement.
const TRIPS_PER_SECOND: f64 = 300_000.0;

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// CLOCK_MONOTONIC at its end.
    pub end_nanos: u64,
    /// Its duration.
    pub nanos: u64,
}

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let seconds: f64 = argument(arguments, 0)?;
    let path: PathBuf = argument(arguments, 1)?;
    let cpus = sys::schedule::online_cpus()?;
    let (first, last) = (cpus.first().copied().unwrap_or(0), cpus.last().copied().unwrap_or(0));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        sys::schedule::pin_to(&[last])?;
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut message = [0; MESSAGE];
        // The other thread closes the connection when it is done, which ends the loop.
        while stream.read_exact(&mut message).is_ok() {
            stream.write_all(&message)?;
        }
        Ok(())
    });
    sys::schedule::pin_to(&[first])?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let trips = trips(&mut stream, seconds)?;
    drop(stream);
    echo.join().unwrap_or_else(|_| Err(std::io::Error::other("the echo thread panicked")))?;
    let mut file = BufWriter::new(std::fs::File::create(&path).with_context(|| path.display().to_string())?);
    for trip in &trips {
        file.write_all(&trip.end_nanos.to_le_bytes())?;
        file.write_all(&trip.nanos.to_le_bytes())?;
    }
    file.flush()?;
    println!("{:.0} round trips a second", trips.len() as f64 / seconds);
    Ok(())
}

fn trips(stream: &mut TcpStream, seconds: f64) -> std::io::Result<Vec<Trip>> {
    let mut trips = Vec::with_capacity((seconds * TRIPS_PER_SECOND) as usize);
    let mut message = [0; MESSAGE];
    let begin = monotonic_nanos();
    let mut before = begin;
    while ((before - begin) as f64) < seconds * 1e9 {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        let end_nanos = monotonic_nanos();
        trips.push(Trip { end_nanos, nanos: end_nanos - before });
        before = end_nanos;
    }
    Ok(trips)
}

/// Reads the round trips that a run wrote.
pub fn read_trips(path: &Path) -> anyhow::Result<Vec<Trip>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let (numbers, _) = bytes.as_chunks::<8>();
    let (pairs, _) = numbers.as_chunks::<2>();
    let trip =
        |[end, nanos]: &[[u8; 8]; 2]| Trip { end_nanos: u64::from_le_bytes(*end), nanos: u64::from_le_bytes(*nanos) };
    Ok(pairs.iter().map(trip).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trips_written_are_read_back() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("trips");
        run(&["0.01", path.to_str().unwrap()]).unwrap();
        let trips = read_trips(&path).unwrap();
        assert!(!trips.is_empty());
        assert!(trips.windows(2).all(|pair| pair[1].end_nanos - pair[1].nanos == pair[0].end_nanos));
    }
}
