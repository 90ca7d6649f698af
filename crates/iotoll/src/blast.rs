//! `iotoll blast`: sends small packets and counts what arrives, or receives them (`--serve`).

use crate::arguments::{BlastArguments, Target, read_target};
use crate::failure::{self, BadInput, bad};
use crate::measure::{Asked, Measurement, Services, fresh_seed, measure};
use crate::progress::ProgressLine;
use crate::signals::{self, LeftBehind};
use crate::stdout;
use lab::blast::{Allowed, Settings, resolve};
use lab::session::Settings as Session;
use lab::workload::target::Created;
use model::blast::plan::BATCH;
use model::blast::{BlastPlan, Method, experiment};
use model::unit::Nanos;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Time before each slice that does not count: until queues and caches are as they will be.
const WARM_UP: Duration = Duration::from_millis(100);
/// Probes that every kernel has, and that say how often the network interrupts.
const DEFAULT_PROBES: &str = "softirqs.net_rx,softirqs.net_tx";

pub fn blast(arguments: &BlastArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(address) = arguments.serve {
        return serve(address, arguments);
    }
    let asked = Asked::of(words, &arguments.output, &arguments.earlier, &arguments.session)?;
    let target = receiver(arguments, &asked.services)?;
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
    let lab = |session: Session, _: &Created, line: &ProgressLine| {
        Ok(lab::blast::blast(&plan, &Settings { session, target }, &mut |event| line.show_packets(&event))?)
    };
    let session = &arguments.session;
    let blast = Measurement {
        settings: Session {
            meters: arguments.meters.meters.clone(),
            events: arguments.events.events.clone(),
            probes: [session.probes(), session.default_probes(DEFAULT_PROBES)].concat(),
            ..Session::default()
        },
        after_failure: &|_| Some("; the rounds before are kept"),
        ..Measurement::growing("blast", &plan, lab)
    };
    measure(blast, asked)
}

/// The target, with references to services replaced.
fn receiver(arguments: &BlastArguments, services: &Services) -> anyhow::Result<Option<Target>> {
    let Some(Target::OfService(text)) = &arguments.target else { return Ok(arguments.target.clone()) };
    match read_target(&services.fill_in_one(text)?) {
        Ok(Target::OfService(text)) => {
            Err(bad(format!("'{text}': a receiver is HOST:PORT, or a service, as 127.0.0.1:{{NAME.port}}")))
        }
        Ok(target) => Ok(Some(target)),
        Err(why) => Err(bad(format!("'{text}': {why}"))),
    }
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
        told = stdout::write(&format!("receiving at {address}\n"));
        told.is_ok()
    };
    let stop = || interruption.is_requested();
    let received = lab::blast::serve(address, arguments.receiver_cpu, arguments.receive_buffer, ready, &stop)?;
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
}
