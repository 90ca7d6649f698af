//! `iotoll blast`: sends small packets and counts what arrives, or receives them (`--serve`).

use crate::arguments::{self, List, MeterArguments, Output, SessionArguments};
use crate::failure::{self, BadInput, bad};
use crate::input::is_toml;
use crate::measure::{self, Asked, Earlier, Measurement, fresh_seed, measure};
use crate::signals::{self, LeftBehind};
use clap::Args;
use lab::session::Settings;
use model::unit::Nanos;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use verbs::blast::measure::{Allowed, Packets, resolve};
use verbs::blast::plan::{self, BATCH, LONGEST_PAYLOAD, MOST_BATCHED};
use verbs::blast::{BlastPlan, Method, experiment};

/// `iotoll blast`.
#[derive(Args, Clone, Debug)]
pub struct BlastArguments {
    /// Address of the receiver, which may be a service: 127.0.0.1:{NAME.port} [default: a receiver that iotoll starts on loopback, and ends after]; or an experiment file, NAME.toml,
    /// with kind = "blast"
    #[arg(value_name = "HOST:PORT|EXPERIMENT")]
    pub target: Option<String>,
    /// Receive instead: count the packets that arrive at this address, until Ctrl-C; port 0 picks a free one
    #[arg(long, help_heading = "Receiving", value_name = "HOST:PORT", value_parser = listening, conflicts_with_all = ["target", "payload", "submitters", "method", "batch",
        "duration", "rounds", "submitter_cpus", "task_cpu", "target_is_mine", "stored", "fail_on", "seed", "meters", "events", "probe", "service", "setup", "prepare", "cleanup", "out", "no_save", "format"])]
    pub serve: Option<SocketAddr>,
    /// Bytes of payload in each packet, 0 to 65507
    #[arg(long, help_heading = "Sending", value_name = "BYTES", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=i64::from(LONGEST_PAYLOAD)))]
    pub payload: u32,
    /// Numbers of threads that send: 4, 1,2,4 or 1..8
    #[arg(long, help_heading = "Sending", value_name = "N,…", default_value = "1", value_parser = plan::submitters)]
    pub submitters: List<u32>,
    /// How packets are given to the kernel: sendto, sendmmsg, gso, io_uring ('own': all four), each submitter by a socket of its
    /// own; or lock, ring-task, mp-ring, swap-all ('shared'), by one socket with this transmit queue; several to compare them
    #[arg(long, help_heading = "Sending", value_name = "METHOD,…", default_value = "sendto", value_parser = plan::methods)]
    pub method: List<Method>,
    /// Packets of one call, for methods that take several, 1 to 1024; gso takes at most 64, and those of one call have at most 65507
    /// bytes [default: 64; of gso as many as it takes]
    #[arg(long, help_heading = "Sending", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_BATCHED)))]
    pub batch: Option<u32>,
    /// Measured time of each method with each number of submitters, divided among the rounds; a plain number is seconds
    #[arg(long, help_heading = "Measurement", value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,
    /// Rounds, 2 to 1000: each has a slice of every method with every number of submitters, in random order
    #[arg(long, help_heading = "Measurement", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub rounds: u32,
    /// Pin the submitters to these CPUs, in turn: 0,2-3 [default: the scheduler decides]
    #[arg(long, help_heading = "Sending", value_name = "CPUS", value_parser = plan::cpus)]
    pub submitter_cpus: Option<List<u32>>,
    /// Pin the thread that drains the ring of ring-task to this CPU; several to compare them: any,0,1 [default: any, as the scheduler
    /// decides]
    #[arg(long, help_heading = "Sending", value_name = "CPU,…", value_parser = plan::task_cpus)]
    pub task_cpu: Option<List<Option<u32>>>,
    /// Pin the receiver to this CPU [default: the scheduler decides]
    #[arg(long, help_heading = "Receiving", value_name = "CPU")]
    pub receiver_cpu: Option<u32>,
    /// Receive buffer of the receiver, as 4m; beyond net.core.rmem_max only as root [default: the system's]
    #[arg(long, help_heading = "Receiving", value_name = "BYTES", value_parser = buffer)]
    pub receive_buffer: Option<u32>,
    /// Send to a public address: only to a machine and over a network that are yours
    #[arg(long, help_heading = "Sending")]
    pub target_is_mine: bool,
    /// Seed of the order of slices [default: a new one each time; it is in the record]
    #[arg(long, help_heading = "Measurement", value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub meters: MeterArguments,
    #[command(flatten)]
    pub session: SessionArguments,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
}

/// Where packets go, or what says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A host, without brackets, and a port.
    Receiver(String, u16),
    /// An experiment file.
    Experiment(String),
}

/// Shortest measured time of a point.
const SHORTEST: Duration = Duration::from_millis(200);
/// Longest.
const LONGEST: Duration = Duration::from_secs(3600);

/// The host and the port of `HOST:PORT` or `[IPv6]:PORT`.
fn address(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bracketed.or_else(|| (!host.contains([':', '[', ']'])).then_some(host))?;
    Some((host, port.parse().ok()?)).filter(|(host, _)| !host.is_empty())
}

/// Reads the receiver or the file.
fn target_of(text: &str) -> Result<Target, String> {
    if is_toml(text) {
        return Ok(Target::Experiment(text.to_owned()));
    }
    let found = address(text).filter(|(_, port)| *port > 0);
    let found = found.map(|(host, port)| Target::Receiver(host.to_owned(), port));
    found.ok_or_else(|| {
        format!(
            "'{text}': expected HOST:PORT, as 192.168.1.7:5001, [fd00::7]:5001 or 127.0.0.1:{{SERVICE.port}}, or an experiment file, NAME.toml"
        )
    })
}

/// An address of this machine: names would have several.
fn listening(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address and a port, as 0.0.0.0:5001 or [::]:5001".to_owned())
}

fn buffer(text: &str) -> Result<u32, String> {
    let bytes = i32::try_from(arguments::amount(text)?).ok().map(i32::unsigned_abs);
    bytes.ok_or_else(|| "expected 1 to 2047m".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    let seconds = format!("{text}s");
    let text = if text.parse::<f64>().is_ok() { seconds.as_str() } else { text };
    arguments::within(text, SHORTEST, LONGEST, "200ms to 1h")
}

/// Time before each slice that does not count: until queues and caches are as they will be.
const WARM_UP: Duration = Duration::from_millis(100);
/// Probes that every kernel has, and that say how often the network interrupts.
const DEFAULT_PROBES: &str = "softirqs.net_rx,softirqs.net_tx";

pub fn blast(arguments: &BlastArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(address) = arguments.serve {
        return serve(address, arguments);
    }
    let asked = Asked::of(words, &arguments.output, &arguments.earlier, &arguments.session)?;
    let names = asked.services.names();
    let target =
        arguments.target.as_ref().map(|text| target_of(&names.fill_in(text)?)).transpose().map_err(BadInput)?;
    refuse_odd(arguments, target.as_ref())?;
    let plan = match &target {
        Some(Target::Experiment(file)) => {
            refuse_beside_a_file(file, words)?;
            let text = asked.inputs.experiment_file(Path::new(file))?;
            experiment::parse(file, &text, plan(arguments, None)).map_err(BadInput)?
        }
        target => plan(arguments, target.as_ref()),
    };
    if let Some(why) = arguments.batch.and_then(|_| plan.refuses_batch()) {
        return Err(bad(format!("--{why}")));
    }
    let allowed = if arguments.target_is_mine { Allowed::Any } else { Allowed::Near };
    let target = match &target {
        Some(Target::Receiver(host, port)) => Some(resolve(host, *port, allowed)?),
        _ => None,
    };
    let work = Packets { plan: &plan, target };
    let session = &arguments.session;
    let blast = Measurement {
        settings: Settings {
            meters: arguments.meters.meters.clone(),
            events: arguments.meters.events.clone(),
            probes: [session.probes(), session.default_probes(DEFAULT_PROBES)].concat(),
            ..Settings::default()
        },
        after_failure: &|_| Some("; the rounds before are kept"),
        ..Measurement::growing("blast", &plan)
    };
    measure(blast, asked, |settings, created, observer| work.measure(settings, created, observer))
}

fn plan(arguments: &BlastArguments, target: Option<&Target>) -> BlastPlan {
    let nanos = |duration: Duration| Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    BlastPlan {
        target: match target {
            Some(Target::Receiver(host, port)) if host.contains(':') => Some(format!("[{host}]:{port}")),
            Some(Target::Receiver(host, port)) => Some(format!("{host}:{port}")),
            _ => None,
        },
        payload: arguments.payload,
        methods: arguments.method.clone(),
        submitters: arguments.submitters.clone(),
        batch: arguments.batch.unwrap_or(BATCH),
        slice: nanos(arguments.duration / arguments.rounds),
        warm_up: nanos(WARM_UP),
        rounds: arguments.rounds,
        submitter_cpus: arguments.submitter_cpus.clone().unwrap_or_default(),
        task_cpus: arguments.task_cpu.clone().unwrap_or_default(),
        receiver_cpu: arguments.receiver_cpu,
        receive_buffer: arguments.receive_buffer,
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        published: Vec::new(),
    }
}

/// What the file says, or leaves at its default, is not said by flags.
fn refuse_beside_a_file(file: &str, words: &[String]) -> anyhow::Result<()> {
    const ITS: [&str; 7] =
        ["--payload", "--batch", "--method", "--submitters", "--submitter-cpus", "--task-cpu", "--receiver-cpu"];
    match words.iter().find(|word| ITS.contains(&word.split('=').next().unwrap_or_default())) {
        Some(word) => {
            let flag = word.split('=').next().unwrap_or_default();
            Err(bad(format!("{flag}: belongs in the experiment file; write it into {file}")))
        }
        None => Ok(()),
    }
}

/// Shortest slice: in a shorter one, reading the clocks and the receiver would weigh too much.
const SHORTEST_SLICE: Duration = Duration::from_millis(20);

fn refuse_odd(arguments: &BlastArguments, target: Option<&Target>) -> anyhow::Result<()> {
    let slice = arguments.duration / arguments.rounds;
    if slice < SHORTEST_SLICE {
        return Err(bad(format!(
            "--rounds: slices of {} ms are too short; measure for a longer --duration, or in fewer rounds (20 ms each or more)",
            slice.as_millis()
        )));
    }
    if arguments.task_cpu.is_some() && !arguments.method.contains(&Method::RingTask) {
        return Err(bad(
            "--task-cpu: only ring-task has a thread that drains a queue; add --method ring-task, or leave it out",
        ));
    }
    let is_remote = matches!(target, Some(Target::Receiver(..)));
    if is_remote && (arguments.receiver_cpu.is_some() || arguments.receive_buffer.is_some()) {
        return Err(bad(
            "--receiver-cpu, --receive-buffer: are options of the receiver; give them to iotoll blast --serve there",
        ));
    }
    Ok(())
}

/// Receives until Ctrl-C.
fn serve(address: SocketAddr, arguments: &BlastArguments) -> anyhow::Result<ExitCode> {
    let interruption = signals::interruption(Some(2), LeftBehind::default())?;
    let mut told = Ok(());
    let ready = |address| {
        told = measure::write(&format!("receiving at {address}\n"));
        told.is_ok()
    };
    let stop = || interruption.is_requested();
    let received =
        verbs::blast::measure::serve(address, arguments.receiver_cpu, arguments.receive_buffer, ready, &stop)?;
    told?;
    if !arguments.output.quiet {
        failure::complain(&format!("{received} packets received"));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::probe::Probe;

    #[test]
    fn the_default_probes_are_probes() {
        assert_eq!(Probe::parse_list(DEFAULT_PROBES).unwrap().len(), 2);
    }

    #[test]
    fn a_receiver_is_a_host_and_a_port() {
        let receiver = |host: &str, port| Ok(Target::Receiver(host.to_owned(), port));
        assert_eq!(target_of("192.168.1.7:5001"), receiver("192.168.1.7", 5001));
        assert_eq!(target_of("there.local:1"), receiver("there.local", 1));
        assert_eq!(target_of("[fd00::7]:5001"), receiver("fd00::7", 5001));
        assert_eq!(target_of("queues.toml"), Ok(Target::Experiment("queues.toml".to_owned())));
        for text in ["192.168.1.7", "fd00::7", "fd00::7:5001", "there:0", "there:65536", ":5001", "[]:5001", "[a:5001"]
        {
            assert!(target_of(text).unwrap_err().contains("HOST:PORT"), "{text}");
        }
        assert!(listening("[::]:0").is_ok() && listening("there:1").is_err());
    }

    #[test]
    fn a_plain_number_is_seconds() {
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert!(duration("0").is_err() && duration("2h").is_err());
    }
}
