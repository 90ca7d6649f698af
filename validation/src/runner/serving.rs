//! Servers that run during all rounds of an experiment.

use super::{Names, fill};
use crate::bench::{Bench, Beside};
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Starts each, waits until it listens at its address, and names it.
pub fn start(bench: &Bench, servers: &BTreeMap<String, [String; 2]>, names: &mut Names) -> anyhow::Result<Vec<Beside>> {
    let mut running = Vec::new();
    for (name, [address, line]) in servers {
        // Another process could take the port before the server does, but not on a machine that runs nothing else.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let own = Names::from([("port".to_owned(), port.to_string())]);
        let here: Names = names.iter().chain(&own).map(|(name, text)| (name.clone(), text.clone())).collect();
        let address = fill(address, &here);
        let server = bench.beside(&fill(line, &here)).with_context(|| name.clone())?;
        let end = Instant::now() + Duration::from_secs(20);
        let listens = || {
            if address.starts_with('/') {
                UnixStream::connect(&address).is_ok()
            } else {
                TcpStream::connect(&address).is_ok()
            }
        };
        while !listens() {
            ensure!(Instant::now() < end, "{name} does not listen at {address}");
            bench.check()?;
            std::thread::sleep(Duration::from_millis(10));
        }
        names.insert(name.clone(), address);
        running.push(server);
    }
    Ok(running)
}
