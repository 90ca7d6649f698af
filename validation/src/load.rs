//! `validation load NAME …`: the programs with known behaviour that validations measure.

mod accounted;
mod bare_exchange;
mod bare_pread;
mod bare_sendto;
mod burner;
mod hostile;
mod ping_pong;
mod pipe_pair;
mod planted;
mod remote_verify;
mod simulated_clock;
mod sleeper;
mod turns;
mod udp_loopback;
mod undo;

use anyhow::Context;
use std::process::ExitCode;
use std::str::FromStr;

/// Its name, its arguments, and what it does.
type Load = (&'static str, &'static [&'static str], fn(&[&str]) -> anyhow::Result<()>);

/// Also as many more words as there are.
const MORE: &str = "WORD…";

const LOADS: [Load; 23] = [
    ("simulated-clock", &["CPUS", "WAKE_UPS", "NANOS", "KNOWN", "SLICE", "SEED"], simulated_clock::run),
    ("turns", &["PERCENT", "SECONDS", "ROUNDS"], turns::run),
    ("undo", &["WAY", "SEED"], undo::run),
    ("hostile", &["AREA", "SEED"], hostile::run),
    ("burner", &["PERCENT"], burner::run),
    ("compute", &["MILLIS"], burner::compute),
    ("sleeper", &["IOS"], sleeper::run),
    ("udp-loopback", &["DATAGRAMS"], udp_loopback::run),
    ("bare-pread", &["FILE", "SECONDS", "BLOCK", "CACHE"], bare_pread::run),
    ("bare-sendto", &["ADDRESS", "BYTES", "SECONDS"], bare_sendto::run),
    ("bare-server", &["ADDRESS", "BLOCK", "DEPTH"], bare_exchange::serve),
    ("bare-client", &["ADDRESS", "BLOCK", "DEPTH", "BLOCKS"], bare_exchange::ask),
    ("remote-verify", &["URI", "IOS", "DEPTH", "SEED"], remote_verify::run),
    ("planted", &["IOS"], planted::run),
    ("contended", &["IOS"], planted::contend),
    ("known-spin", &["SECONDS", "FILE"], accounted::spin),
    ("known-system-calls", &["SECONDS", "FILE"], accounted::system_calls),
    ("known-datagrams", &["DATAGRAMS", "FILE"], accounted::datagrams),
    ("known-timers", &["SECONDS", "FILE", "MICROS"], accounted::timers),
    ("known-ring-workers", &["SECONDS", "FILE", MORE], accounted::ring_workers),
    ("known-kernel-workers", &["SECONDS", "FILE", "DEVICE"], accounted::kernel_workers),
    ("pipe-pair", &["CPU", "TRIPS", "FILE"], pipe_pair::run),
    ("ping-pong", &["SECONDS", "FILE"], ping_pong::run),
];

pub fn usage() -> String {
    let lines = LOADS.iter().map(|load| format!("       validation load {} {}", load.0, load.1.join(" ")));
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs the load named by the first argument.
pub fn main(arguments: &[&str]) -> anyhow::Result<ExitCode> {
    let named = arguments.split_first().and_then(|(name, rest)| {
        let (_, arguments, run) = LOADS.iter().find(|load| load.0 == *name)?;
        let more = arguments.last() == Some(&MORE) && rest.len() > arguments.len();
        (more || rest.len() == arguments.len()).then_some((name, run, rest))
    });
    let Some((name, run, rest)) = named else {
        eprintln!("usage:\n{}", usage());
        return Ok(ExitCode::from(2));
    };
    run(rest).with_context(|| format!("load {name}")).map(|()| ExitCode::SUCCESS)
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
