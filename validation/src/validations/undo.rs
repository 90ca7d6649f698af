//! A killed iotoll restores its settings: it is ended in the middle of a toggle, in four ways, and the setting must be
//! restored.

use crate::bench::evidence::{self, Evidence};
use crate::bench::rounds::percentile;
use crate::bench::{Bench, Beside};
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A kernel setting that does not affect the loads of this validation; used if writable.
const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_autocorking";
/// An environment variable that all processes of a trial inherit.
const MARK: &str = "IOTOLL_PROVE_MARK";
/// Time limit for any condition.
const TIMEOUT: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_micros(200);

/// How iotoll is ended.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    /// The signal; none to close its terminal.
    signal: Option<Signal>,
}

const WAYS: [Way; 4] = [
    Way { name: "kill -9", signal: Some(Signal::KILL) },
    Way { name: "SIGTERM", signal: Some(Signal::TERM) },
    Way { name: "closed terminal (SIGHUP)", signal: None },
    Way { name: "crash (SIGABRT)", signal: Some(Signal::ABORT) },
];

/// The result of one trial.
struct Trial {
    /// Time until the setting was restored; `None` if it never was.
    millis: Option<f64>,
    /// Processes and ledgers left behind.
    left: usize,
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let sysctl = std::fs::read_to_string(SYSCTL).ok().filter(|before| std::fs::write(SYSCTL, before).is_ok());
    let seed = bench.options.seed;
    let mut number = seed;
    let rounds = bench.options.rounds;
    let found = bench.in_rounds(
        rounds,
        &WAYS,
        |_| 0,
        |way| way.name.to_owned(),
        |bench, way, _| {
            number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let trial = trial(bench, *way, sysctl.as_deref(), Duration::from_millis(number >> 32 & 511));
            if let Some(before) = &sysctl {
                // Also if it was not restored.
                std::fs::write(SYSCTL, before)?;
            }
            trial
        },
    )?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (way, trials) in WAYS.iter().zip(&found) {
        let mut millis: Vec<f64> = trials.iter().filter_map(|trial| trial.millis).collect();
        let left: usize = trials.iter().map(|trial| trial.left).sum();
        let (back, all) = (millis.len(), trials.len());
        let median = percentile(&mut millis, 50.0);
        let slowest = millis.iter().copied().reduce(f64::max);
        let number = |value| evidence::number(value, 1);
        rows.push(vec![
            way.name.to_owned(),
            format!("{back} of {all}"),
            number(median),
            number(slowest),
            left.to_string(),
        ]);
        evidence.criterion(
            back == all && left == 0,
            format!("{}: restored {back} of {all} times, {left} processes or ledgers left", way.name),
        );
    }
    let switched = if sysctl.is_some() { "a file and a sysctl" } else { "a file" };
    evidence.note(format!(
        "`iotoll compare` with {switched} changed for the candidate, ended at a random time within the candidate's slice: ms \
         until the settings are restored; processes and ledgers left after at most {} s.",
        TIMEOUT.as_secs()
    ));
    evidence.table(&["ended by", "restored", "median", "slowest", "left"], &rows);
    Ok(evidence)
}

/// Ends iotoll in the middle of a toggle, `later` after the toggle was seen to be on.
fn trial(bench: &Bench, way: Way, sysctl: Option<&str>, later: Duration) -> anyhow::Result<Trial> {
    let (knob, state) = (bench.path("knob"), bench.path("state"));
    std::fs::write(&knob, "found")?;
    let mut words =
        "compare --quiet --no-save --ioengine=spin --size=1m --spin_cycles=20000 --budget 60s --precision 0.01%"
            .split(' ')
            .map(str::to_owned)
            .collect::<Vec<_>>();
    words.push(format!("--candidate-set=file:{}=changed", knob.display()));
    if let Some(before) = sysctl {
        let other = u8::from(before.trim() == "0");
        words.push(format!("--candidate-set=sysctl:net.ipv4.tcp_autocorking={other}"));
    }
    let mark = format!("{}-{later:?}", std::process::id());
    let mut command = begun(bench, way, &words);
    command.env("XDG_STATE_HOME", &state).env(MARK, &mark).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Beside { child: command.spawn().context("starting iotoll")? };
    let is = |value: &str| std::fs::read_to_string(&knob).is_ok_and(|text| text == value);
    // The rehearsal is over once a worker exists.
    let measures = || is("changed") && marked(&mark).iter().any(|id| name(*id) == "exe");
    ensure!(eventually(bench, measures)?, "the toggle never was on");
    std::thread::sleep(later);
    ensure!(eventually(bench, measures)?, "the toggle never was on again");
    let begin = Instant::now();
    match way.signal {
        Some(signal) => {
            let id = i32::try_from(child.child.id()).ok().and_then(Pid::from_raw).context("its process ID")?;
            kill_process(id, signal)?;
        }
        None => child.child.kill()?,
    }
    let back =
        || is("found") && sysctl.is_none_or(|before| std::fs::read_to_string(SYSCTL).is_ok_and(|now| now == before));
    let millis = eventually(bench, back)?.then(|| begin.elapsed().as_secs_f64() * 1e3);
    child.child.wait()?;
    let ledgers = || std::fs::read_dir(state.join("iotoll")).map_or(0, Iterator::count);
    eventually(bench, || marked(&mark).is_empty() && ledgers() == 0)?;
    Ok(Trial { millis, left: marked(&mark).len() + ledgers() })
}

/// The command that starts iotoll: in its own terminal if that is to be closed.
fn begun(bench: &Bench, way: Way, words: &[String]) -> Command {
    if way.signal.is_some() {
        let mut iotoll = bench.iotoll();
        iotoll.args(words);
        return iotoll;
    }
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let program = bench.iotoll().get_program().to_string_lossy().into_owned();
    let line: Vec<String> = std::iter::once(&program).chain(words).map(|word| quoted(word)).collect();
    let mut script = bench.command(Path::new("script"));
    script.args(["-qec", &format!("exec env --default-signal=HUP {}", line.join(" ")), "/dev/null"]);
    script
}

/// Whether a condition became true within the time limit.
fn eventually(bench: &Bench, so: impl Fn() -> bool) -> anyhow::Result<bool> {
    let begin = Instant::now();
    while begin.elapsed() < TIMEOUT {
        if so() {
            return Ok(true);
        }
        bench.check()?;
        std::thread::sleep(GLANCE);
    }
    Ok(false)
}

/// Processes that inherited the mark.
fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let bears = |id: &u32| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(bears).collect()
}

fn name(id: u32) -> String {
    std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default().trim().to_owned()
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
