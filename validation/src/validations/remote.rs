//! The whole machine's cost of a remote I/O: iotoll's server and nbdkit, each under iotoll's client and under fio's
//! (libnbd), side by side.

mod serving;

use serving::{MEBIBYTES, POLL, on_cpu};
pub use serving::{Place, Served, Server, Socket, Storage, Wanted};

use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{fio, rounds};
use anyhow::{Context, bail, ensure};
use model::stats::Estimate;

/// Further attempts at a measurement without a cost.
const RETRIES: usize = 3;
const MEASURING: Measuring = Measuring { meters: "idle,thread", background_millis: 500, out: None };
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Libnbd,
    Iotoll,
    /// With a bounded busy poll.
    Polling,
    /// The client of the bare exchange.
    Bare,
}

impl Storage {
    /// The established server for this storage.
    fn theirs(self) -> Server {
        match self {
            Self::Memory => Server::Nbdkit,
            Self::File => Server::QemuNbd,
        }
    }

    /// Largest allowed cost of iotoll's server as a fraction of the other server's, under the same client.
    fn server_goal(self) -> f64 {
        match self {
            Self::Memory => 1.0 / 1.5,
            Self::File => 0.1,
        }
    }
}

/// A load on a server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    socket: Socket,
    rw: &'static str,
    kibibytes: u32,
    depth: u32,
    ours: Ours,
    place: Place,
    storage: Storage,
    /// Largest allowed cost of iotoll's server and client as a fraction of the others' cost.
    goal: Option<f64>,
}

/// How iotoll's server and client wait.
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

const fn load(socket: Socket, rw: &'static str, kibibytes: u32, depth: u32, goal: Option<f64>) -> Load {
    let (ours, place, storage) = (Ours::Sleeping, Place::Anywhere, Storage::Memory);
    Load { socket, rw, kibibytes, depth, ours, place, storage, goal }
}

const LOADS: [Load; 14] = [
    load(Socket::Tcp, "randread", 4, 32, Some(1.0 / 14.0)),
    load(Socket::Tcp, "randwrite", 4, 32, Some(1.0 / 14.0)),
    load(Socket::Tcp, "randread", 4, 128, Some(1.0 / 18.0)),
    load(Socket::Unix, "randread", 4, 32, Some(1.0 / 10.0)),
    load(Socket::Tcp, "randread", 64, 32, Some(1.0 / 3.5)),
    load(Socket::Tcp, "randwrite", 64, 32, None),
    load(Socket::Tcp, "randread", 1024, 8, Some(1.0 / 1.8)),
    load(Socket::Tcp, "randread", 4, 1, Some(0.7)),
    Load { ours: Ours::Polling, ..load(Socket::Tcp, "randread", 4, 1, Some(0.4)) },
    Load { place: Place::OneCpu, ..load(Socket::Tcp, "randread", 4, 32, None) },
    Load { place: Place::OneCpu, ..load(Socket::Tcp, "randread", 4, 1, None) },
    Load { place: Place::Apart, ..load(Socket::Tcp, "randread", 4, 1, None) },
    Load { storage: Storage::File, ..load(Socket::Tcp, "randread", 4, 32, None) },
    Load { storage: Storage::File, place: Place::OneCpu, ..load(Socket::Tcp, "randread", 4, 32, None) },
];

#[derive(Clone, Copy, Debug)]
struct Cell {
    load: usize,
    server: Server,
    client: Client,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
struct Found {
    cycles: f64,
    /// Cycles of the client's own threads.
    clients: Option<f64>,
    iops: f64,
    p50_micros: Option<f64>,
    per_syscall: Option<f64>,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let data = bench.file("remote", MEBIBYTES)?;
    let mut servers = Vec::new();
    for load in LOADS {
        for server in [load.storage.theirs(), load.ours.both().0] {
            let kind = load.kind(server);
            if servers.iter().all(|(other, _)| *other != kind) {
                let served = Served::start(bench, &load.wanted(server), &data)?;
                if load.storage == Storage::Memory {
                    bench.output(bench.command("nbdcopy").arg(&data).arg(&served.uri))?;
                }
                servers.push((kind, served));
            }
        }
        if load.has_floor() {
            servers.push((load.kind(Server::Bare), load.bare(bench)?));
        }
    }
    let mut cells = Vec::new();
    for (load, of) in LOADS.iter().enumerate() {
        let (our_server, our_client) = of.ours.both();
        for server in [of.storage.theirs(), our_server] {
            cells.extend([Client::Libnbd, our_client].map(|client| Cell { load, server, client }));
        }
        if of.has_floor() {
            cells.push(Cell { load, server: Server::Bare, client: Client::Bare });
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
            let kind = load.kind(cell.server);
            let server = servers.iter().find(|(other, _)| *other == kind);
            let uri = &server.context("no such server")?.1.uri;
            if cell.client == Client::Bare {
                measure_bare(bench, load, uri)
            } else {
                if load.storage == Storage::File {
                    // Rounds take minutes, and a kernel that reclaims cold pages may drop some of the file meanwhile.
                    std::io::copy(&mut std::fs::File::open(&data)?, &mut std::io::sink())?;
                }
                measure(bench, load, cell.client, uri)
            }
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
        let their_server = load.storage.theirs();
        let theirs = of(number, their_server, Client::Libnbd)?;
        let mut cost = vec![load.name(), evidence::number(Some(mean(theirs, |found| found.cycles)), 0)];
        let mut rate = vec![load.name(), evidence::rate(mean(theirs, |found| found.iops))];
        let (our_server, our_client) = load.ours.both();
        for (server, client) in [(our_server, Client::Libnbd), (their_server, our_client), (our_server, our_client)] {
            let found = of(number, server, client)?;
            let part = evidence::interval(&part(found, theirs), 3);
            cost.push(cycles(found, &part));
            if client == Client::Libnbd {
                cost.push(own(found, theirs)?);
            }
            rate.push(evidence::rate(mean(found, |found| found.iops)));
        }
        let mut hold = |goal: f64, what: &str, ours: &[Found], theirs: &[Found]| {
            let part = part(ours, theirs);
            let text = format!("{}: {what}: {}, at most {goal:.3}", load.name(), evidence::interval(&part, 3));
            evidence.criterion(part.value <= goal, text);
        };
        if let Some(goal) = load.goal {
            hold(goal, "iotoll's server and client, relative to theirs", of(number, our_server, our_client)?, theirs);
        }
        if load.ours == Ours::Sleeping {
            let goal = load.storage.server_goal();
            hold(
                goal,
                "iotoll's server under libnbd, relative to theirs",
                of(number, our_server, Client::Libnbd)?,
                theirs,
            );
            if load.storage == Storage::File {
                let [ours, theirs] = [our_server, their_server].map(|server| of(number, server, our_client));
                hold(goal, "iotoll's server under iotoll's client, relative to theirs", ours?, theirs?);
            }
        }
        let ours = of(number, our_server, our_client)?;
        let known = |of: fn(&Found) -> Option<f64>, found: &[Found]| {
            let values: Option<Vec<f64>> = found.iter().map(of).collect();
            values.map(|values| rounds::mean(&values).value)
        };
        rate.push(evidence::number(known(|found| found.per_syscall, ours), 1));
        rate.push(evidence::number(known(|found| found.p50_micros, theirs), 1));
        rate.push(evidence::number(known(|found| found.p50_micros, ours), 1));
        cost.push(match load.has_floor() {
            true => {
                let found = of(number, Server::Bare, Client::Bare)?;
                cycles(found, &evidence::interval(&part(found, theirs), 3))
            }
            false => "–".to_owned(),
        });
        costs.push(cost);
        rates.push(rate);
    }
    evidence.note(format!(
        "Net cycles of the whole machine per I/O, including client, server, and network; means over rounds, in brackets the \
         ratio to theirs under libnbd with its interval. {MEBIBYTES} MiB, filled with data, over loopback; theirs: nbdkit's memory plugin, \
         and qemu-nbd for a file in the page cache; libnbd: fio's engine nbd; one connection. Bare: the same bytes in both directions, from random offsets in the same amount of memory, a whole queue depth at \
         a time, without protocol, bookkeeping, or latencies: the kernel's cost of the path. Libnbd's own: gross cycles of the threads of fio \
         under iotoll's server, including their system calls."
    ));
    costs_and_rates(&mut evidence, &costs, &rates);
    Ok(evidence)
}

fn costs_and_rates(evidence: &mut Evidence, costs: &[Vec<String>], rates: &[Vec<String>]) {
    let header = [
        "",
        "theirs, libnbd",
        "iotoll serve, libnbd",
        "libnbd's own",
        "theirs, iotoll's client",
        "iotoll's both",
        "bare",
    ];
    evidence.table(&header, costs);
    evidence
        .note("I/Os per second, I/Os per system call of iotoll's client with iotoll's server, and the median round trip in µs.");
    let header = [
        "",
        "theirs, libnbd",
        "iotoll serve, libnbd",
        "theirs, iotoll's client",
        "iotoll's both",
        "I/Os per syscall",
        "p50: theirs, libnbd",
        "p50: iotoll's both",
    ];
    evidence.table(&header, rates);
}

impl Load {
    fn name(&self) -> String {
        let socket = if self.socket == Socket::Unix { ", Unix socket" } else { "" };
        let polling = if self.ours == Ours::Polling { ", iotoll with busy poll" } else { "" };
        let place = match self.place {
            Place::Anywhere => "",
            Place::OneCpu => ", all on one CPU",
            Place::Apart => ", client and server on separate CPUs",
        };
        let block =
            if self.kibibytes < 1024 { format!("{}k", self.kibibytes) } else { format!("{}m", self.kibibytes / 1024) };
        let storage = if self.storage == Storage::File { " of a file" } else { "" };
        format!("{block} {}{storage}, depth {}{socket}{polling}{place}", self.rw, self.depth)
    }

    fn wanted(&self, server: Server) -> Wanted {
        Wanted { server, socket: self.socket, place: self.place, storage: self.storage }
    }

    /// The key of the server for a load: loads with the same key share a server.
    fn kind(&self, server: Server) -> (Wanted, Option<(u32, u32)>) {
        (self.wanted(server), (server == Server::Bare).then_some((self.kibibytes, self.depth)))
    }

    /// Whether the load has an equivalent bare exchange.
    fn has_floor(&self) -> bool {
        let plain = self.ours == Ours::Sleeping && self.storage == Storage::Memory;
        plain && self.rw == "randread"
    }

    fn bare(&self, bench: &Bench) -> anyhow::Result<Served> {
        Served::bare(bench, self.socket, self.place, self.block(), self.depth)
    }

    fn block(&self) -> u64 {
        u64::from(self.kibibytes) << 10
    }
}

/// Cost of ours as a fraction of theirs, in cycles per I/O.
fn part(ours: &[Found], theirs: &[Found]) -> Estimate {
    let cycles = |found: &[Found]| found.iter().map(|found| found.cycles).collect::<Vec<_>>();
    rounds::ratio(&cycles(ours), &cycles(theirs))
}

fn mean(found: &[Found], of: fn(&Found) -> f64) -> f64 {
    rounds::mean(&found.iter().map(of).collect::<Vec<_>>()).value
}

fn measure(bench: &Bench, load: &Load, client: Client, uri: &str) -> anyhow::Result<Found> {
    let (uri, block) = (format!("--uri={uri}"), format!("--bs={}", load.block()));
    let (depth, rw, size) =
        (format!("--iodepth={}", load.depth), format!("--rw={}", load.rw), format!("--size={MEBIBYTES}m"));
    // The last of two equal options wins, in fio as in iotoll.
    // Two programs on two CPUs settle where they run within a second.
    let mut options = vec![&*uri, &block, &depth, &rw, &size, "--ramp_time=1"];
    let cpu = load.place.clients_cpu()?.map(|cpu| format!("--cpus_allowed={cpu}"));
    options.extend(cpu.as_deref());
    let job = fio::job("nbd", bench.options.seconds, &options);
    let once = || match client {
        Client::Libnbd => iotoll::cost(bench, &MEASURING, &[], &[vec!["fio".to_owned()], job.clone()].concat()),
        Client::Iotoll => iotoll::run(bench, &MEASURING, &job),
        Client::Bare => bail!("a bare exchange has no job"),
        Client::Polling => {
            iotoll::run(bench, &MEASURING, &[job.clone(), vec![format!("--path_busy_poll={POLL}")]].concat())
        }
    };
    // A rate that steps has no cost; where programs run may change once in a while.
    let mut finding = once()?;
    for _ in 0..RETRIES {
        if iotoll::net(&finding).is_ok() {
            break;
        }
        finding = once()?;
    }
    let job = iotoll::job(&finding)?;
    ensure!(job.errors == 0, "{} I/Os failed", job.errors);
    Ok(Found {
        cycles: iotoll::net(&finding)?,
        clients: iotoll::phase(&finding)?.thread_cycles_per_io,
        iops: job.iops,
        p50_micros: job.latency_ns.p50.map(|nanos| nanos / 1e3),
        per_syscall: job.ios_per_crossing,
    })
}

/// Runs as many blocks as take about the requested time, by a rough estimate.
fn measure_bare(bench: &Bench, load: &Load, address: &str) -> anyhow::Result<Found> {
    let each_micros = 80.0 / f64::from(load.depth) + 2.0 + load.block() as f64 / 4000.0;
    let blocks = (bench.options.seconds * 1e6 / each_micros) as u64;
    let blocks = blocks.next_multiple_of(load.depth.into()).to_string();
    let (block, depth) = (load.block().to_string(), load.depth.to_string());
    let command = bench.load(&["bare-client", address, &block, &depth, &blocks]);
    let command = load.place.clients_cpu()?.map(on_cpu).into_iter().flatten().chain(command).collect::<Vec<_>>();
    let flags = [format!("--ios={blocks}")];
    let finding = iotoll::cost(bench, &MEASURING, &flags, &command)?;
    let iops = iotoll::phase(&finding)?.iops.context("iotoll found no I/Os per second")?;
    Ok(Found { cycles: iotoll::net(&finding)?, clients: None, iops, p50_micros: None, per_syscall: None })
}

/// The client's own cost, and its ratio to theirs.
fn own(found: &[Found], theirs: &[Found]) -> anyhow::Result<String> {
    let own: Option<Vec<Found>> =
        found.iter().map(|found| found.clients.map(|cycles| Found { cycles, ..*found })).collect();
    let own = own.context("the cost of the client's threads is unknown")?;
    Ok(cycles(&own, &evidence::interval(&part(&own, theirs), 3)))
}

fn cycles(found: &[Found], part: &str) -> String {
    format!("{} ({part})", evidence::number(Some(mean(found, |found| found.cycles)), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_loads_are_unique() {
        let names: std::collections::BTreeSet<String> = LOADS.iter().map(Load::name).collect();
        assert_eq!(names.len(), LOADS.len());
    }
}
