//! Two threads on one CPU wake each other through pipes, one byte in flight: two switches and two wake-ups for a round trip. Their CPU time,
//! which other programs hardly change, is written to a file.

use super::argument;
use anyhow::Context;
use std::io::{Read, Write, pipe};
use std::path::PathBuf;
use sys::clock::process_nanos;

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let (cpu, trips) = (argument(arguments, 0)?, argument::<u64>(arguments, 1)?);
    let path: PathBuf = argument(arguments, 2)?;
    sys::schedule::pin_to(&[cpu])?;
    let ((mut there, mut to), (mut back, mut from)) = (pipe()?, pipe()?);
    // Threads inherit the CPU.
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let mut byte = [0];
        // The other thread closes its pipe when it is done, which ends the loop.
        while there.read(&mut byte)? == 1 {
            from.write_all(&byte)?;
        }
        Ok(())
    });
    let own = || process_nanos(std::process::id()).context("the clock of this process");
    let (mut byte, begin) = ([1], own()?);
    for _ in 0..trips {
        to.write_all(&byte)?;
        back.read_exact(&mut byte)?;
    }
    let nanos = own()? - begin;
    drop(to);
    echo.join().unwrap_or_else(|_| Err(std::io::Error::other("the echo thread panicked")))?;
    std::fs::write(&path, format!("{{\"nanos_per_switch\": {}}}", nanos as f64 / trips as f64 / 2.0))
        .with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_takes_time() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("nanos");
        let cpu = sys::schedule::allowed_cpus().unwrap()[0].to_string();
        std::thread::scope(|scope| {
            // In a thread of its own, because it is pinned.
            scope.spawn(|| run(&[&cpu, "100", path.to_str().unwrap()]).unwrap());
        });
        let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(found["nanos_per_switch"].as_f64() > Some(0.0));
    }
}
