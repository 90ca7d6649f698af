//! What an I/O to a remote block device costs the whole machine: our server and nbdkit, each under our client and under
//! fio's (libnbd), side by side.

use super::bench::{Bench, Beside};
use super::evidence::{self, Evidence};
use super::iotoll::{self, Measuring};
use super::{fio, rounds};
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

const MEASURING: Measuring = Measuring { meters: "idle,thread", background_millis: 500, out: None };
/// Of the storage, all of it written before it is read.
const MEBIBYTES: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    Nbdkit,
    Iotoll,
    /// With a bounded busy poll.
    Polling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Libnbd,
    Iotoll,
    /// With a bounded busy poll.
    Polling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Socket {
    Tcp,
    Unix,
}

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    socket: Socket,
    rw: &'static str,
    block: &'static str,
    depth: u32,
    ours: Ours,
    /// Both ours take at most so much of both theirs.
    goal: Option<f64>,
}

/// How both of ours wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    Sleeping,
    Polling,
}

impl Ours {
    fn both(self) -> (Server, Client) {
        match self {
            Self::Sleeping => (Server::Iotoll, Client::Iotoll),
            Self::Polling => (Server::Polling, Client::Polling),
        }
    }
}

/// For how long the polling ones look, in microseconds: longer than a round trip.
const POLL: &str = "100";

const fn load(socket: Socket, rw: &'static str, block: &'static str, depth: u32, goal: Option<f64>) -> Load {
    Load { socket, rw, block, depth, ours: Ours::Sleeping, goal }
}

const LOADS: [Load; 9] = [
    load(Socket::Tcp, "randread", "4k", 32, Some(1.0 / 14.0)),
    load(Socket::Tcp, "randwrite", "4k", 32, Some(1.0 / 14.0)),
    load(Socket::Tcp, "randread", "4k", 128, Some(1.0 / 18.0)),
    load(Socket::Unix, "randread", "4k", 32, Some(1.0 / 10.0)),
    load(Socket::Tcp, "randread", "64k", 32, Some(1.0 / 3.5)),
    load(Socket::Tcp, "randwrite", "64k", 32, None),
    load(Socket::Tcp, "randread", "1m", 8, Some(1.0 / 1.8)),
    load(Socket::Tcp, "randread", "4k", 1, Some(0.7)),
    Load { ours: Ours::Polling, ..load(Socket::Tcp, "randread", "4k", 1, Some(0.4)) },
];

/// Our server with foreign clients is to take at most this part of what nbdkit takes with them.
const SERVER_GOAL: f64 = 1.0 / 1.5;

/// One run.
#[derive(Clone, Copy, Debug)]
struct Cell {
    load: usize,
    server: Server,
    client: Client,
}

/// What one run found.
#[derive(Clone, Copy, Debug)]
struct Found {
    cycles: f64,
    iops: f64,
    p50_micros: Option<f64>,
    per_crossing: Option<f64>,
}

/// A server that ends with this.
struct Served {
    uri: String,
    _process: Beside,
}

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let data = bench.file("remote", MEBIBYTES)?;
    let mut servers = Vec::new();
    for server in [Server::Nbdkit, Server::Iotoll, Server::Polling] {
        for socket in [Socket::Tcp, Socket::Unix] {
            let served = start(bench, server, socket)?;
            bench.output(bench.command("nbdcopy").arg(&data).arg(&served.uri))?;
            servers.push((server, socket, served));
        }
    }
    let mut cells = Vec::new();
    for (load, of) in LOADS.iter().enumerate() {
        let (our_server, our_client) = of.ours.both();
        for server in [Server::Nbdkit, our_server] {
            cells.extend([Client::Libnbd, our_client].map(|client| Cell { load, server, client }));
        }
    }
    let named = |cell: &Cell| {
        let load = LOADS.get(cell.load).map_or_else(String::new, Load::name);
        format!("{:?} under {:?}, {load}", cell.server, cell.client)
    };
    let found = bench.in_rounds(
        &cells,
        |cell| cell.load,
        named,
        |bench, cell| {
            let load = LOADS.get(cell.load).context("no such load")?;
            let server = servers.iter().find(|(server, socket, _)| (*server, *socket) == (cell.server, load.socket));
            measure(bench, load, cell.client, &server.context("no such server")?.2.uri)
        },
    )?;
    let of = |load: usize, server: Server, client: Client| {
        let same = |cell: &Cell| (cell.load, cell.server, cell.client) == (load, server, client);
        let place = cells.iter().position(same);
        place.and_then(|place| found.get(place)).context("a cell was not measured")
    };
    let mut evidence = Evidence::default();
    let (mut costs, mut rates) = (Vec::new(), Vec::new());
    for (number, load) in LOADS.iter().enumerate() {
        let theirs = of(number, Server::Nbdkit, Client::Libnbd)?;
        let mut cost = vec![load.name(), evidence::number(Some(mean(theirs, |found| found.cycles)), 0)];
        let mut rate = vec![load.name(), evidence::rate(mean(theirs, |found| found.iops))];
        let (our_server, our_client) = load.ours.both();
        for (server, client) in [(our_server, Client::Libnbd), (Server::Nbdkit, our_client), (our_server, our_client)] {
            let found = of(number, server, client)?;
            let values = |found: &[Found]| found.iter().map(|found| found.cycles).collect::<Vec<_>>();
            let ratio = rounds::ratio(&values(found), &values(theirs));
            let part = evidence::interval(&ratio, 3);
            cost.push(format!("{} ({part})", evidence::number(Some(mean(found, |found| found.cycles)), 0)));
            rate.push(evidence::rate(mean(found, |found| found.iops)));
            let goal = match (server, client) {
                (server, client) if (server, client) == (our_server, our_client) => {
                    load.goal.map(|goal| ("both ours", goal))
                }
                (Server::Iotoll, Client::Libnbd) => Some(("our server under libnbd", SERVER_GOAL)),
                _ => None,
            };
            if let Some((what, goal)) = goal {
                let text =
                    format!("{}: {what} takes {part} of nbdkit's cycles under libnbd, at most {goal:.3}", load.name());
                evidence.criterion(ratio.value <= goal, text);
            }
        }
        let ours = of(number, our_server, our_client)?;
        let known = |of: fn(&Found) -> Option<f64>, found: &[Found]| {
            let values: Option<Vec<f64>> = found.iter().map(of).collect();
            values.map(|values| rounds::mean(&values).value)
        };
        rate.push(evidence::number(known(|found| found.per_crossing, ours), 1));
        rate.push(evidence::number(known(|found| found.p50_micros, theirs), 1));
        rate.push(evidence::number(known(|found| found.p50_micros, ours), 1));
        costs.push(cost);
        rates.push(rate);
    }
    evidence.note(format!(
        "Cycles of the whole machine per I/O, client and server and what is between them, net; means over rounds, in brackets the \
         part of nbdkit's under libnbd with its interval. {MEBIBYTES} MiB in memory, filled with data, over loopback; libnbd is \
         fio's engine nbd; one connection."
    ));
    costs_and_rates(&mut evidence, &costs, &rates);
    Ok(evidence)
}

fn costs_and_rates(evidence: &mut Evidence, costs: &[Vec<String>], rates: &[Vec<String>]) {
    let header = ["", "nbdkit, libnbd", "our server, libnbd", "nbdkit, our client", "both ours"];
    evidence.table(&header, costs);
    evidence
        .note("I/Os per second, I/Os per system call of our client with our server, and the median round trip in µs.");
    let header = [
        "",
        "nbdkit, libnbd",
        "our server, libnbd",
        "nbdkit, our client",
        "both ours",
        "I/Os per crossing",
        "p50: nbdkit, libnbd",
        "p50: both ours",
    ];
    evidence.table(&header, rates);
}

impl Load {
    fn name(&self) -> String {
        let socket = if self.socket == Socket::Unix { ", Unix socket" } else { "" };
        let polling = if self.ours == Ours::Polling { ", ours with busy poll" } else { "" };
        format!("{} {}, depth {}{socket}{polling}", self.block, self.rw, self.depth)
    }
}

fn mean(found: &[Found], of: fn(&Found) -> f64) -> f64 {
    rounds::mean(&found.iter().map(of).collect::<Vec<_>>()).value
}

fn measure(bench: &Bench, load: &Load, client: Client, uri: &str) -> anyhow::Result<Found> {
    let (uri, block) = (format!("--uri={uri}"), format!("--bs={}", load.block));
    let (depth, rw, size) =
        (format!("--iodepth={}", load.depth), format!("--rw={}", load.rw), format!("--size={MEBIBYTES}m"));
    // The later of two wins, in fio as in iotoll.
    let job = fio::job("nbd", bench.options.seconds, &[&uri, &block, &depth, &rw, &size]);
    let finding = match client {
        Client::Libnbd => iotoll::cost(bench, &MEASURING, &[], &[vec!["fio".to_owned()], job].concat())?,
        Client::Iotoll => iotoll::run(bench, &MEASURING, &job)?,
        Client::Polling => iotoll::run(bench, &MEASURING, &[job, vec![format!("--path_busy_poll={POLL}")]].concat())?,
    };
    let job = iotoll::job(&finding)?;
    ensure!(job.errors == 0, "{} I/Os failed", job.errors);
    Ok(Found {
        cycles: iotoll::net(&finding)?,
        iops: job.iops,
        p50_micros: job.latency_ns.p50.map(|nanos| nanos / 1e3),
        per_crossing: job.ios_per_crossing,
    })
}

fn start(bench: &Bench, server: Server, socket: Socket) -> anyhow::Result<Served> {
    let path = bench.path(&format!("{server:?}.socket"));
    let path = path.display().to_string();
    let (process, uri) = match server {
        Server::Nbdkit => {
            let mut command = bench.command("nbdkit");
            command.args(["-f"]).stdout(Stdio::null());
            let uri = match socket {
                Socket::Unix => {
                    command.args(["-U", &path]);
                    format!("nbd+unix:///?socket={path}")
                }
                Socket::Tcp => {
                    // Nobody else takes it between here and there, on a machine on which nothing else runs.
                    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
                    command.args(["-i", "127.0.0.1", "-p", &port]);
                    format!("nbd://127.0.0.1:{port}")
                }
            };
            command.args(["memory", &format!("{MEBIBYTES}m")]);
            (Beside { child: command.spawn().context("nbdkit cannot be run; install it")? }, uri)
        }
        Server::Iotoll | Server::Polling => {
            let mut command = bench.iotoll();
            command.args(["serve", "--backend", &format!("memory:{MEBIBYTES}m")]).stderr(Stdio::null());
            if server == Server::Polling {
                command.args(["--path-busy-poll", POLL]);
            }
            match socket {
                Socket::Unix => command.args(["--unix", &path]),
                Socket::Tcp => command.args(["--listen", "127.0.0.1:0"]),
            };
            let mut process = Beside { child: command.stdout(Stdio::piped()).spawn()? };
            let mut line = String::new();
            let said = process.child.stdout.take().context("no standard output")?;
            BufReader::new(said).read_line(&mut line)?;
            let uri = line.trim().strip_prefix("listening on ").context("iotoll serve does not listen")?.to_owned();
            (process, uri)
        }
    };
    let end = Instant::now() + Duration::from_secs(10);
    let listens = || match uri.strip_prefix("nbd://") {
        Some(address) => TcpStream::connect(address).is_ok(),
        None => std::path::Path::new(&path).exists(),
    };
    while !listens() {
        ensure!(Instant::now() < end, "{server:?} does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Served { uri, _process: process })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_have_names_of_their_own() {
        let names: std::collections::BTreeSet<String> = LOADS.iter().map(Load::name).collect();
        assert_eq!(names.len(), LOADS.len());
    }
}
