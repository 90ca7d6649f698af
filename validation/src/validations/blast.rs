//! `iotoll blast` beside a bare loop of sends, and beside `iperf3 -u` with the same payload: packets that arrive per second, and
//! cycles of the whole machine for each, over loopback and over a veth pair whose devices cut no packets.

use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::veth_pair::{FAR, VethPair};
use crate::bench::{Bench, Beside, rounds};
use anyhow::{Context, ensure};
use model::blast::{BlastFinding, Method};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Payload of every packet: the smallest that iperf3 sends is 16 bytes, and the is 18.
const PAYLOAD: u32 = 18;
/// A sending loop that does less is slower than it must be.
const BARE: f64 = 0.95;
/// Times iperf3's packets per second that the best method should deliver.
const GOAL: f64 = 2.0;
const MEASURING: Measuring = Measuring { meters: "default", background_millis: 500, out: None };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Loopback,
    Veth,
}

const NETWORKS: [Network; 2] = [Network::Loopback, Network::Veth];

impl Network {
    fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Veth => "veth",
        }
    }

    fn address(self) -> &'static str {
        match self {
            Self::Loopback => "127.0.0.1",
            Self::Veth => FAR,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Bare,
    Iperf,
    Blast(Method),
}

impl Sender {
    fn name(self) -> String {
        match self {
            Self::Bare => "bare loop".to_owned(),
            Self::Iperf => format!("iperf3 -u -l {PAYLOAD}"),
            Self::Blast(method) => format!("blast {}", method.name()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    network: Network,
    sender: Sender,
}

/// Packets per second, and cycles for each that was delivered. What a sender does not know is NaN.
#[derive(Clone, Copy, Debug)]
struct Found {
    sent: f64,
    delivered: f64,
    cycles: f64,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let pair = VethPair::make(1)?;
    let mut receivers = Vec::new();
    for network in NETWORKS {
        receivers.push(Receiver::start(bench, &pair, network)?);
    }
    let senders = [Sender::Bare, Sender::Iperf].into_iter().chain(Method::OWN.map(Sender::Blast));
    let cells: Vec<Cell> = senders.flat_map(|sender| NETWORKS.map(|network| Cell { network, sender })).collect();
    let found = bench.in_rounds(
        &cells,
        |cell| cell.network as usize,
        |cell| format!("{}, {}", cell.network.name(), cell.sender.name()),
        |bench, cell| {
            let receiver = receivers.iter().find(|receiver| receiver.network == cell.network);
            measure(bench, &pair, receiver.context("a network has no receiver")?, cell.sender)
        },
    )?;
    let mut evidence = Evidence::default();
    evidence.note(format!(
        "One sender, payload {PAYLOAD} bytes; methods with several packets in a call take 64. Ratios are of rounds. iperf3's cycles \
         contain its start and its end."
    ));
    for network in NETWORKS {
        let values = |sender: Sender, of: fn(&Found) -> f64| -> Vec<f64> {
            let place = cells.iter().position(|cell| *cell == Cell { network, sender });
            place.and_then(|place| found.get(place)).into_iter().flatten().map(of).collect()
        };
        let mut rows = Vec::new();
        let mut best = f64::NEG_INFINITY;
        for sender in [Sender::Bare, Sender::Iperf].into_iter().chain(Method::OWN.map(Sender::Blast)) {
            let iperf = |of| rounds::ratio(&values(sender, of), &values(Sender::Iperf, of));
            let (delivered, cycles) = (iperf(|found| found.delivered), iperf(|found| found.cycles));
            if matches!(sender, Sender::Blast(_)) {
                best = best.max(delivered.low.unwrap_or(f64::NEG_INFINITY));
            }
            let mean = |of: fn(&Found) -> f64| rounds::mean(&values(sender, of)).value;
            rows.push(vec![
                sender.name(),
                number(mean(|found| found.sent) / 1e3, 0),
                number(mean(|found| found.delivered) / 1e3, 0),
                ratio(&delivered),
                number(mean(|found| found.cycles) / 1e3, 2),
                ratio(&cycles),
            ]);
        }
        evidence.note(format!("**{}**", network.name()));
        evidence.table(
            &["sender", "sent kpps", "delivered kpps", "× iperf3", "kcycles per delivered packet", "× iperf3"],
            &rows,
        );
        let sent = |found: &Found| found.sent;
        let bare = rounds::ratio(&values(Sender::Blast(Method::Sendto), sent), &values(Sender::Bare, sent));
        evidence.criterion(
            bare.value >= BARE,
            format!("{}: `sendto` sends {} × a bare loop's packets", network.name(), evidence::interval(&bare, 2)),
        );
        evidence.criterion(
            best >= GOAL,
            format!("{}: the best method delivers at least {best:.2} × iperf3's packets (goal {GOAL})", network.name()),
        );
    }
    Ok(evidence)
}

fn number(value: f64, decimals: usize) -> String {
    evidence::number(Some(value).filter(|value| value.is_finite()), decimals)
}

fn ratio(estimate: &model::stats::Estimate) -> String {
    if estimate.value.is_finite() { evidence::interval(estimate, 2) } else { "–".to_owned() }
}

fn measure(bench: &Bench, pair: &VethPair, receiver: &Receiver, sender: Sender) -> anyhow::Result<Found> {
    let (address, seconds) = (receiver.network.address(), bench.options.seconds);
    match sender {
        Sender::Bare => {
            let target = format!("{address}:{}", receiver.port);
            let words = bench.load(&["bare-sendto", &target, &PAYLOAD.to_string(), &seconds.to_string()]);
            let (program, words) = words.split_first().context("no program")?;
            let text = bench.output(bench.command(program).args(words))?;
            let (sent, took) = text.trim().split_once(' ').context("the bare loop said nothing")?;
            Ok(Found { sent: sent.parse::<f64>()? / took.parse::<f64>()?, delivered: f64::NAN, cycles: f64::NAN })
        }
        Sender::Blast(method) => {
            let mut iotoll = bench.iotoll();
            iotoll.args(["blast", &format!("{address}:{}", receiver.port), "--quiet", "--no-save", "--format=json"]);
            iotoll.args([format!("--payload={PAYLOAD}"), format!("--method={}", method.name())]);
            iotoll.args([format!("--duration={seconds}"), "--rounds=4".to_owned()]);
            let finding: BlastFinding = serde_json::from_str(&bench.output(&mut iotoll)?)?;
            let point = finding.points.first().context("a blast without a point")?;
            ensure!(point.packets.unaccounted == 0, "{} packets are unaccounted for", point.packets.unaccounted);
            let cycles = point.cycles_per_packet.map_or(f64::NAN, |cycles| cycles.value);
            Ok(Found { sent: point.sent_per_second, delivered: point.delivered_per_second, cycles })
        }
        Sender::Iperf => iperf(bench, pair, receiver, seconds),
    }
}

fn iperf(bench: &Bench, pair: &VethPair, receiver: &Receiver, seconds: f64) -> anyhow::Result<Found> {
    /// iperf3's default is 5201.
    const PORT: &str = "5311";
    let mut server = beside(pair, receiver.network, "iperf3");
    server.args(["-s", "-1", "--forceflush", "-p", PORT]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Beside { child: server.spawn().context("starting iperf3; install it")? };
    let mut lines = BufReader::new(server.child.stdout.take().context("iperf3's output")?);
    let mut line = String::new();
    while !line.contains("listening") {
        line.clear();
        ensure!(lines.read_line(&mut line)? > 0, "iperf3 -s does not listen on port {PORT}");
    }
    let log = bench.path("iperf3.json");
    let _ = std::fs::remove_file(&log);
    let words = [
        "iperf3",
        "-c",
        receiver.network.address(),
        "-p",
        PORT,
        "-u",
        "-b",
        "0",
        "-l",
        &PAYLOAD.to_string(),
        "-J",
        "-t",
    ];
    let words = words.into_iter().map(str::to_owned);
    let ends = [format!("{}", seconds.ceil()), "--logfile".to_owned(), log.display().to_string()];
    let finding = iotoll::cost(bench, &MEASURING, &["--ios=1".to_owned()], &words.chain(ends).collect::<Vec<_>>())?;
    let cycles = iotoll::phase(&finding)?.cycles.context("iotoll found no cycles of iperf3")?;
    drop(lines);
    let said: Value = serde_json::from_str(&std::fs::read_to_string(&log)?)?;
    let sum = |key: &str| {
        said.pointer(&format!("/end/sum/{key}")).and_then(Value::as_f64).with_context(|| format!("iperf3's {key}"))
    };
    let (packets, lost, took) = (sum("packets")?, sum("lost_packets")?, sum("seconds")?);
    Ok(Found { sent: packets / took, delivered: (packets - lost) / took, cycles: cycles / (packets - lost) })
}

/// `iotoll blast --serve`.
struct Receiver {
    network: Network,
    port: u16,
    _process: Beside,
}

impl Receiver {
    fn start(bench: &Bench, pair: &VethPair, network: Network) -> anyhow::Result<Self> {
        let program = bench.iotoll().get_program().to_string_lossy().into_owned();
        let (process, port) = iotoll::receiver(beside(pair, network, &program), network.address())?;
        Ok(Self { network, port, _process: process })
    }
}

/// A command at the receiver's end of a network.
fn beside(pair: &VethPair, network: Network, program: &str) -> Command {
    match network {
        Network::Loopback => Command::new(program),
        Network::Veth => pair.there(program),
    }
}
