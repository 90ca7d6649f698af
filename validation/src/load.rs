//! `validation load NAME …`: the programs with known behaviour that validations measure.

mod accounted;
mod bare_exchange;
mod bare_pread;
mod bare_sendto;
mod burner;
mod hog;
mod ping_pong;
mod pipe_pair;
mod planted;
mod remote_verify;
mod restless_hog;
mod short_processes;
mod sleeper;
mod udp_loopback;

use anyhow::Context;
use std::process::ExitCode;
use std::str::FromStr;

pub use accounted::Truth;
pub use pipe_pair::read_nanos;

struct Load {
    name: &'static str,
    arguments: &'static [&'static str],
    run: fn(&[&str]) -> anyhow::Result<()>,
}

/// Also as many more words as there are.
const MORE: &str = "WORD…";

const LOADS: [Load; 22] = [
    Load { name: "burner", arguments: &["PERCENT"], run: burner::run },
    Load { name: "hog", arguments: &["CPU"], run: hog::run },
    Load { name: "restless-hog", arguments: &["CPU"], run: restless_hog::run },
    Load { name: "short-processes", arguments: &["THREADS", "MILLIS", "PAUSE"], run: short_processes::run },
    Load { name: "compute", arguments: &["MILLIS"], run: short_processes::compute },
    Load { name: "sleeper", arguments: &["IOS"], run: sleeper::run },
    Load { name: "udp-loopback", arguments: &["DATAGRAMS"], run: udp_loopback::run },
    Load { name: "bare-pread", arguments: &["FILE", "SECONDS", "BLOCK", "CACHE"], run: bare_pread::run },
    Load { name: "bare-sendto", arguments: &["ADDRESS", "BYTES", "SECONDS"], run: bare_sendto::run },
    Load { name: "bare-server", arguments: &["ADDRESS", "BLOCK", "DEPTH"], run: bare_exchange::serve },
    Load { name: "bare-client", arguments: &["ADDRESS", "BLOCK", "DEPTH", "BLOCKS"], run: bare_exchange::ask },
    Load { name: "remote-verify", arguments: &["URI", "IOS", "DEPTH", "SEED"], run: remote_verify::run },
    Load { name: "planted", arguments: &["IOS"], run: planted::run },
    Load { name: "contended", arguments: &["IOS"], run: planted::contend },
    Load { name: "known-spin", arguments: &["SECONDS", "FILE"], run: accounted::spin },
    Load { name: "known-system-calls", arguments: &["SECONDS", "FILE"], run: accounted::system_calls },
    Load { name: "known-datagrams", arguments: &["DATAGRAMS", "FILE"], run: accounted::datagrams },
    Load { name: "known-timers", arguments: &["SECONDS", "FILE", "MICROS"], run: accounted::timers },
    Load { name: "known-ring-workers", arguments: &["SECONDS", "FILE", MORE], run: accounted::ring_workers },
    Load { name: "known-kernel-workers", arguments: &["SECONDS", "FILE", "DEVICE"], run: accounted::kernel_workers },
    Load { name: "pipe-pair", arguments: &["CPU", "TRIPS", "FILE"], run: pipe_pair::run },
    Load { name: "ping-pong", arguments: &["SECONDS", "FILE"], run: ping_pong::run },
];

pub fn usage() -> String {
    let lines = LOADS.iter().map(|load| format!("       validation load {} {}", load.name, load.arguments.join(" ")));
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs the load named by the first argument.
pub fn main(arguments: &[&str]) -> ExitCode {
    let named = arguments.split_first().and_then(|(name, rest)| {
        let load = LOADS.iter().find(|load| load.name == *name)?;
        let more = load.arguments.last() == Some(&MORE) && rest.len() > load.arguments.len();
        (more || rest.len() == load.arguments.len()).then_some((load, rest))
    });
    let Some((load, rest)) = named else {
        eprintln!("usage:\n{}", usage());
        return ExitCode::from(2);
    };
    match (load.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load {}: {error:#}", load.name);
            ExitCode::FAILURE
        }
    }
}

/// Parses the argument at `place`; [`main`] has checked their number.
fn argument<T>(arguments: &[&str], place: usize) -> anyhow::Result<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text = arguments.get(place).copied().unwrap_or_default();
    text.parse().with_context(|| format!("argument {} is invalid: '{text}'", place + 1))
}
