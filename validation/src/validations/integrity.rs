//! No remote I/O is lost or mixed up: mixed random reads and writes in which every block read is identified and
//! verified by a CRC.

use super::remote::{Place, Served, Server, Socket, Storage, Wanted};
use crate::bench::Bench;
use crate::bench::evidence::Evidence;
use anyhow::{Context, ensure};
use std::time::Instant;

/// Requests in flight.
const DEPTH: &str = "64";
/// Size of the file; the memory backend is larger.
const MEBIBYTES: usize = 64;

/// One server, and the number of I/Os for it.
struct Row {
    name: &'static str,
    server: Server,
    socket: Socket,
    storage: Storage,
    ios: u64,
}

/// Ten million for iotoll's server.
const ROWS: [Row; 4] = [
    Row {
        name: "iotoll serve, memory, TCP",
        server: Server::Iotoll,
        socket: Socket::Tcp,
        storage: Storage::Memory,
        ios: 6_000_000,
    },
    Row {
        name: "iotoll serve, memory, Unix socket",
        server: Server::Iotoll,
        socket: Socket::Unix,
        storage: Storage::Memory,
        ios: 2_000_000,
    },
    Row {
        name: "iotoll serve, file, TCP",
        server: Server::Iotoll,
        socket: Socket::Tcp,
        storage: Storage::File,
        ios: 2_000_000,
    },
    Row {
        name: "nbdkit, memory, TCP",
        server: Server::Nbdkit,
        socket: Socket::Tcp,
        storage: Storage::Memory,
        ios: 1_000_000,
    },
];

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let data = bench.file("integrity", MEBIBYTES)?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    let mut own = 0;
    for row in &ROWS {
        bench.progress(row.name);
        let wanted = Wanted { server: row.server, socket: row.socket, place: Place::Anywhere, storage: row.storage };
        let served = Served::start(bench, &wanted, &data)?;
        let (ios, seed) = (row.ios.to_string(), bench.options.seed.to_string());
        let words = bench.load(&["remote-verify", &served.uri, &ios, DEPTH, &seed]);
        let (program, arguments) = words.split_first().context("no load")?;
        let begun = Instant::now();
        let output = bench.output(bench.command(program).args(arguments))?;
        let seconds = begun.elapsed().as_secs_f64();
        let output: serde_json::Value =
            serde_json::from_str(&output).context("the load's output has another format")?;
        let count = |name: &str| output.get(name).and_then(serde_json::Value::as_u64).context("a count is missing");
        let (reads, writes, verified) = (count("reads")?, count("writes")?, count("verified_blocks")?);
        ensure!(reads + writes == row.ios, "{}: {} I/Os of {}", row.name, reads + writes, row.ios);
        own += if row.server == Server::Nbdkit { 0 } else { row.ios };
        let numbers = [reads, writes, verified].map(|number| number.to_string());
        rows.push([vec![row.name.to_owned()], numbers.to_vec(), vec![format!("{seconds:.0}")]].concat());
    }
    evidence.note(format!(
        "Half reads, half writes of 512 bytes to 64 KiB at random offsets in 64 MiB, {DEPTH} in flight, by iotoll's client. Every block of 512 bytes \
          read contains its position, the number of the write that wrote it, and a CRC-32C. At the end everything is read."
    ));
    evidence.table(&["server", "reads", "writes", "blocks verified", "seconds"], &rows);
    // An error ends the load, and with it this validation.
    evidence.criterion(
        own >= 10_000_000,
        format!("iotoll's server replied to {own} I/Os, and every read returned the data written last"),
    );
    Ok(evidence)
}
