//! A trial of undoing: iotoll is ended in the middle of a toggle, and its settings must be restored.

use super::argument;
use crate::bench::Beside;
use crate::bench::seeded::Seeded;
use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A kernel setting that does not affect the loads of this trial; used if writable.
const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_autocorking";
/// An environment variable that all processes of a trial inherit.
const MARK: &str = "IOTOLL_PROVE_MARK";
/// Time limit for any condition.
const TIMEOUT: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_micros(200);

/// `WAY SEED`: a signal, or `terminal` to close iotoll's; the seed draws the moment, after the toggle was seen to be on.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let signal = match arguments.first() {
        Some(&"KILL") => Some(Signal::KILL),
        Some(&"TERM") => Some(Signal::TERM),
        Some(&"ABRT") => Some(Signal::ABORT),
        Some(&"terminal") => None,
        other => bail!("WAY '{}' is none of KILL, TERM, ABRT, terminal", other.unwrap_or(&"")),
    };
    let later = Duration::from_millis(Seeded::new(argument(arguments, 1)?).below(512));
    let sysctl = fs::read_to_string(SYSCTL).ok().filter(|before| fs::write(SYSCTL, before).is_ok());
    let (millis, left) = trial(signal, sysctl.as_deref(), later)?;
    // Also if it was not restored.
    sysctl.map_or(Ok(()), |before| fs::write(SYSCTL, before))?;
    println!("{}", json!({ "restored": millis.is_some(), "millis": millis, "left": left }));
    Ok(())
}

/// Milliseconds until the setting was restored, and how many processes and ledgers were left behind.
fn trial(signal: Option<Signal>, sysctl: Option<&str>, later: Duration) -> anyhow::Result<(Option<f64>, usize)> {
    let scratch = tempfile::tempdir_in(".")?;
    let (knob, state) = (std::path::absolute(scratch.path().join("knob"))?, scratch.path().join("state"));
    fs::write(&knob, "found")?;
    let other = sysctl.map(|before| u8::from(before.trim() == "0"));
    let other = other.map(|other| format!(" --candidate-set=sysctl:net.ipv4.tcp_autocorking={other}"));
    let line = format!(
        "exec iotoll compare --quiet --no-save --ioengine=spin --size=1m --spin_cycles=20000 --budget 60s --precision 0.01% \
         --candidate-set=file:{}=changed{}",
        knob.display(),
        other.unwrap_or_default()
    );
    let mut command = Command::new(if signal.is_some() { "sh" } else { "script" });
    match signal {
        Some(_) => command.args(["-c", &line]),
        // In its own terminal, which is closed.
        None => command.args(["-qec", &line.replacen("exec", "exec env --default-signal=HUP", 1), "/dev/null"]),
    };
    let mark = format!("{}-{later:?}", std::process::id());
    command.env("XDG_STATE_HOME", std::path::absolute(&state)?).env(MARK, &mark);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Beside { child: command.spawn().context("starting iotoll")? };
    let is = |value: &str| fs::read_to_string(&knob).is_ok_and(|text| text == value);
    // The rehearsal is over once a worker exists.
    let measures = || is("changed") && marked(&mark).iter().any(|id| name(*id) == "exe");
    ensure!(eventually(measures), "the toggle never was on");
    std::thread::sleep(later);
    ensure!(eventually(measures), "the toggle never was on again");
    let begin = Instant::now();
    match signal {
        Some(signal) => {
            let id = i32::try_from(child.child.id()).ok().and_then(Pid::from_raw).context("its process ID")?;
            kill_process(id, signal)?;
        }
        None => child.child.kill()?,
    }
    let back = || is("found") && sysctl.is_none_or(|before| fs::read_to_string(SYSCTL).is_ok_and(|now| now == before));
    let millis = eventually(back).then(|| begin.elapsed().as_secs_f64() * 1e3);
    child.child.wait()?;
    let ledgers = || fs::read_dir(state.join("iotoll")).map_or(0, Iterator::count);
    eventually(|| marked(&mark).is_empty() && ledgers() == 0);
    Ok((millis, marked(&mark).len() + ledgers()))
}

/// Whether a condition became true within the time limit.
fn eventually(so: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < TIMEOUT {
        if so() {
            return true;
        }
        std::thread::sleep(GLANCE);
    }
    false
}

/// Processes that inherited the mark.
fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let bears = |id: &u32| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(bears).collect()
}

fn name(id: u32) -> String {
    fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_inherited_mark() {
        let mark = format!("{}-test", std::process::id());
        assert!(marked(&mark).is_empty());
        let child = Command::new("sleep").arg("60").env(MARK, &mark).spawn().unwrap();
        let mut sleep = Beside { child };
        // Between fork and exec, the child has the parent's environment.
        let found = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            marked(&mark) == [sleep.child.id()] && name(sleep.child.id()) == "sleep"
        });
        assert!(found);
        sleep.child.kill().unwrap();
    }
}
