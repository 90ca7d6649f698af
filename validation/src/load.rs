//! `validation load NAME …`: the programs with known behaviour that validations measure.

mod bare_exchange;
mod bare_pread;
mod bare_sendto;
mod burner;
mod hog;
mod ping_pong;
mod planted;
mod remote_verify;
mod restless_hog;
mod short_processes;
mod sleeper;
mod udp_loopback;

use anyhow::Context;
use std::process::ExitCode;
use std::str::FromStr;

pub use ping_pong::read_trips;

struct Load {
    name: &'static str,
    arguments: &'static [&'static str],
    run: fn(&[&str]) -> anyhow::Result<()>,
}

const LOADS: [Load; 15] = [
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
        (rest.len() == load.arguments.len()).then_some((load, rest))
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
