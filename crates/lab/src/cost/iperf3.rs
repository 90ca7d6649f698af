//! iperf3: reports its I/O in JSON with the right flag.

use super::Printed;
use super::output_parser::{CapturedOutput, OutputParser, ProgramReport};
use crate::error::{Error, Result};
use model::record::{Direction, JobRecord, Latency};
use model::unit::{Bytes, Nanos};
use serde_json::Value;
use std::process::Stdio;

/// iperf3, and its standard output.
#[derive(Default)]
pub(super) struct Iperf3 {
    stdout: CapturedOutput,
}

impl OutputParser for Iperf3 {
    fn prepare(&mut self, command: &[String], _: Printed) -> Result<(Vec<String>, Stdio)> {
        if let Some(argument) = command.iter().skip(1).find(|argument| omits(argument)) {
            return Err(Error::Refused(format!(
                "iperf3's {argument} omits seconds from its count that the machine pays for; leave it out and run longer, or \
                 count with --ios"
            )));
        }
        let mut command = command.to_vec();
        if !command.iter().any(|argument| argument == "-J" || argument == "--json") {
            command.push("--json".to_owned());
        }
        Ok((command, self.stdout.capture()?))
    }

    fn jobs(&mut self) -> std::result::Result<ProgramReport, String> {
        parse(&self.stdout.take()?)
    }
}

/// Whether an argument omits the first seconds. Names of long options may be abbreviated.
fn omits(argument: &str) -> bool {
    let long = argument.strip_prefix("--").map(|name| name.split_once('=').map_or(name, |(name, _)| name));
    argument.starts_with("-O") || long.is_some_and(|name| !name.is_empty() && "omit".starts_with(name))
}

fn parse(text: &str) -> std::result::Result<ProgramReport, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("its JSON is broken: {error}"))?;
    let Some(error) = value.get("error").and_then(Value::as_str) else { return traffic(&value) };
    // With --json it exits with status 0 even then. If a signal ended it, it still reports what it did until then.
    let jobs = if error.starts_with("interrupt") { traffic(&value).unwrap_or_default().jobs } else { Vec::new() };
    Ok(ProgramReport { failure: Some(error.to_owned()), jobs, ..ProgramReport::default() })
}

/// What its JSON says of the traffic.
fn traffic(value: &Value) -> std::result::Result<ProgramReport, String> {
    let end = value.get("end").ok_or("its JSON has no end")?;
    let test = value.pointer("/start/test_start").ok_or("its JSON has no test_start")?;
    let protocol = test.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
    let block = test.get("blksize").and_then(Value::as_u64).filter(|block| *block > 0);
    let (write, seconds) = direction(end, ["sum_sent", "sum"], block).ok_or("its JSON has no sum of bytes")?;
    // With --bidir: the traffic in the other direction at the same time.
    let back = direction(end, ["sum_sent_bidir_reverse", "sum_bidir_reverse"], block);
    let job = JobRecord {
        name: format!("iperf3 {protocol}"),
        engine: "iperf3".to_owned(),
        read: back.map(|(read, _)| read).unwrap_or_default(),
        write,
        wall_nanos: Nanos((seconds * 1e9) as u64),
        ..JobRecord::default()
    };
    Ok(ProgramReport { jobs: vec![job], ..ProgramReport::default() })
}

/// The traffic of one direction, from the first of these sums that exists, and its seconds.
fn direction(end: &Value, sums: [&str; 2], block: Option<u64>) -> Option<(Direction, f64)> {
    let sum = sums.iter().find_map(|name| end.get(name))?;
    let bytes = sum.get("bytes").and_then(Value::as_u64)?;
    // The packets of UDP are only in `sum`.
    let packets = sums.iter().find_map(|name| end.get(name)?.get("packets")?.as_u64());
    // TCP has no I/Os of its own: one write of iperf3 is a block.
    let ios = packets.or_else(|| block.map(|block| bytes / block)).unwrap_or(0);
    let seconds = sum.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
    Some((Direction { ios, bytes: Bytes(bytes), short: 0, latency: Latency::None }, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitting_seconds_is_refused() {
        for flag in ["-O", "-O2", "--omit", "--omit=2", "--om"] {
            let command = ["iperf3", "-c", "127.0.0.1", flag].map(str::to_owned);
            let refused = Iperf3::default().prepare(&command, Printed::Nowhere).unwrap_err().to_string();
            assert!(refused.contains(flag), "{refused}");
        }
        let harmless = ["iperf3", "-c", "Omit", "--one-off", "-o"].map(str::to_owned);
        assert!(Iperf3::default().prepare(&harmless, Printed::Nowhere).is_ok());
    }

    #[test]
    fn blocks_for_tcp_packets_for_udp() {
        let tcp = r#"{"start":{"test_start":{"protocol":"TCP","blksize":131072}},"end":{"sum_sent":{"bytes":1310720,"seconds":2.0}}}"#;
        let job = &parse(tcp).unwrap().jobs[0];
        assert_eq!((job.write.ios, job.write.bytes.0, job.wall_nanos), (10, 1_310_720, Nanos::from_secs(2)));
        let udp = r#"{"start":{"test_start":{"protocol":"UDP","blksize":1448}},"end":{"sum":{"bytes":2896,"seconds":1.0,"packets":2}}}"#;
        assert_eq!(parse(udp).unwrap().jobs[0].write.ios, 2);
        let both = r#"{"start":{"test_start":{"protocol":"TCP","blksize":1024}},"end":{"sum_sent":{"bytes":4096,"seconds":2.0},
            "sum_sent_bidir_reverse":{"bytes":2048,"seconds":2.0}}}"#;
        let job = &parse(both).unwrap().jobs[0];
        assert_eq!((job.write.ios, job.read.ios, job.read.bytes.0), (4, 2, 2048));
        let failed = parse(r#"{"error":"unable to connect"}"#).unwrap();
        assert_eq!((failed.jobs.len(), failed.failure.as_deref()), (0, Some("unable to connect")));
        assert!(parse("").is_err());
    }
}
