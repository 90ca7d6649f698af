//! Two threads on two CPUs exchange 64-byte messages over TCP, one in flight. What the round trips took is
//! written to a file.

use super::argument;
use crate::bench::rounds::percentile;
use anyhow::Context;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use sys::clock::monotonic_nanos;

const MESSAGE: usize = 64;
/// More than any machine reaches, so that the list never grows during the measurement.
const TRIPS_PER_SECOND: f64 = 300_000.0;

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
    let mut nanos: Vec<f64> = trips.iter().map(|nanos| *nanos as f64).collect();
    let per_second = nanos.len() as f64 * 1e9 / nanos.iter().sum::<f64>();
    let [p50, p99] = [50.0, 99.0].map(|percent| percentile(&mut nanos, percent));
    let text = json!({ "per_second": per_second, "p50_nanos": p50, "p99_nanos": p99 }).to_string();
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

fn trips(stream: &mut TcpStream, seconds: f64) -> std::io::Result<Vec<u64>> {
    let mut trips = Vec::with_capacity((seconds * TRIPS_PER_SECOND) as usize);
    let mut message = [0; MESSAGE];
    let begin = monotonic_nanos();
    let mut before = begin;
    while ((before - begin) as f64) < seconds * 1e9 {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        let end_nanos = monotonic_nanos();
        trips.push(end_nanos - before);
        before = end_nanos;
    }
    Ok(trips)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_take_time() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("trips");
        run(&["0.01", path.to_str().unwrap()]).unwrap();
        let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(found["p99_nanos"].as_f64() >= found["p50_nanos"].as_f64() && found["per_second"].as_f64() > Some(0.0));
    }
}
