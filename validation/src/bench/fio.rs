//! Runs fio with jobs that iotoll accepts too, parses its JSON, and counts its system calls with perf or strace.

use super::Bench;
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::PathBuf;

/// A job as flags that both fio and iotoll accept.
pub fn job(engine: &str, seconds: f64, options: &[&str]) -> Vec<String> {
    let fixed = [
        "--name=validation".to_owned(),
        format!("--ioengine={engine}"),
        "--rw=randread".to_owned(),
        "--time_based".to_owned(),
        format!("--runtime={}ms", (seconds * 1e3).round()),
    ];
    fixed.into_iter().chain(options.iter().map(|&option| option.to_owned())).collect()
}

/// The result of one fio run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    pub ios: f64,
    /// I/Os per second.
    pub iops: f64,
}

pub fn run(bench: &Bench, job: &[String]) -> anyhow::Result<Ran> {
    run_with(bench, job, &[])
}

/// Runs fio with additional environment variables.
pub fn run_with(bench: &Bench, job: &[String], variables: &[(&str, &PathBuf)]) -> anyhow::Result<Ran> {
    let mut fio = bench.command("fio");
    parse(&bench.output(fio.arg("--output-format=json").args(job).envs(variables.iter().copied()))?)
}

/// Extracts the number of calls of a system call from a counter's output.
type Count = fn(&str, &str) -> Option<f64>;

/// I/Os per call of `system_call`, counted by perf, or by strace if perf is not permitted; `None` if neither works.
/// Counting slows fio, so this is a separate run.
pub fn per_syscall(bench: &Bench, job: &[String], system_call: &str) -> anyhow::Result<Option<f64>> {
    let counts = bench.path("counts");
    let fio = |mut command: std::process::Command| {
        let command = command.arg("-o").arg(&counts);
        command.args(["--", "fio", "--output-format=json"]).args(job);
        bench.output(command)
    };
    let mut perf = bench.command("perf");
    perf.args(["stat", "-x,", "-e", &format!("syscalls:sys_enter_{system_call}")]);
    let mut strace = bench.command("strace");
    strace.args(["-f", "-c", "-e", &format!("trace={system_call}")]);
    for (counter, count) in [(perf, perf_count as Count), (strace, strace_count)] {
        let Ok(said) = fio(counter) else {
            bench.check()?;
            continue;
        };
        let calls = count(&std::fs::read_to_string(&counts).unwrap_or_default(), system_call);
        if let (Some(calls), Ok(ran)) = (calls.filter(|calls| *calls > 0.0), parse(&said)) {
            return Ok(Some(ran.ios / calls));
        }
    }
    Ok(None)
}

/// fio may print notes before its JSON.
pub fn json(text: &str) -> anyhow::Result<Value> {
    let json = text.find("{\n").and_then(|begin| text.get(begin..)).context("fio printed no JSON")?;
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    values.next().context("fio printed no JSON")?.context("fio's JSON")
}

fn parse(text: &str) -> anyhow::Result<Ran> {
    let value = json(text)?;
    let read = |key: &str| value.pointer(&format!("/jobs/0/read/{key}")).and_then(Value::as_f64);
    let (Some(ios), Some(iops)) = (read("total_ios"), read("iops")) else { bail!("fio's JSON has no reads") };
    Ok(Ran { ios, iops })
}

/// `perf stat -x,`: the count, a unit, the event.
fn perf_count(text: &str, system_call: &str) -> Option<f64> {
    let event = format!("syscalls:sys_enter_{system_call}");
    let line = text.lines().find(|line| line.split(',').nth(2) == Some(&event))?;
    line.split(',').next()?.parse().ok()
}

/// `strace -c`: % time, seconds, µs per call, calls, errors (if any), the name.
fn strace_count(text: &str, system_call: &str) -> Option<f64> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let words = lines.find(|words| words.last() == Some(&system_call))?;
    words.get(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_behind_notes() {
        let text = "note: both iodepth >= 1 and synchronous I/O engine are selected\n{\n  \"jobs\": [{\"read\": \
                    {\"total_ios\": 77, \"iops\": 38.5}}]}\n";
        assert_eq!(parse(text).unwrap(), Ran { ios: 77.0, iops: 38.5 });
        assert!(parse("fio: file not found").is_err());
        assert!(parse("{\n \"jobs\": []}").is_err());
    }

    #[test]
    fn calls_are_read_from_perf() {
        let text = "# started on Sat Nov 21 20:00:00 2026\n\n\
                    65536,,syscalls:sys_enter_io_uring_enter,1503296512,100.00,,\n";
        assert_eq!(perf_count(text, "io_uring_enter"), Some(65536.0));
        assert_eq!(perf_count("<not supported>,,syscalls:sys_enter_io_uring_enter,0,0,,\n", "io_uring_enter"), None);
    }

    #[test]
    fn calls_are_read_from_strace_with_and_without_errors() {
        let head = "% time     seconds  usecs/call     calls    errors syscall\n";
        let without = format!("{head}100.00    0.004321           4      1234           io_uring_enter\n");
        let with = format!("{head}100.00    0.004321           4      1234         5 io_uring_enter\n");
        assert_eq!(strace_count(&without, "io_uring_enter"), Some(1234.0));
        assert_eq!(strace_count(&with, "io_uring_enter"), Some(1234.0));
        assert_eq!(strace_count(head, "io_uring_enter"), None);
    }

    #[test]
    fn a_job_becomes_flags() {
        let job = job("psync", 0.5, &["--bs=4k"]);
        assert_eq!(
            job,
            ["--name=validation", "--ioengine=psync", "--rw=randread", "--time_based", "--runtime=500ms", "--bs=4k"]
        );
    }
}
