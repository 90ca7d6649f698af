//! iperf3: reports its I/O in JSON with the right flag.
//!
//! What this side of a test did, client or server, follows from the JSON itself: its `start` says which side it is and which
//! way the data went, its `end` has a sum for what a side sent and one for what came.

use super::output_parser::ProgramReport;
use model::record::{Direction, JobRecord, Latency, Lost};
use model::unit::{Bytes, Nanos};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Whether an argument hides iperf3's JSON, lets it end before its work does, or leaves out seconds. Among other letters (`-ZO1`) they are
/// found by what iperf3 prints.
pub(super) fn is_in_the_way(argument: &str) -> bool {
    let flags = ["-O", "-D", "--omit", "--daemon", "--logfile", "--json-stream"];
    flags.iter().any(|flag| argument.starts_with(flag))
}

/// A server prints a text for each of its clients.
pub(super) fn parse(text: &str) -> std::result::Result<ProgramReport, String> {
    let tests = texts(text)?;
    if serde_json::Deserializer::from_str(text).into_iter::<EndsOnce>().any(|test| test.is_err()) {
        return Err(
            "it tells both directions of --bidir by one name; use iperf3 3.11 or later, or count with --ios".to_owned()
        );
    }
    let mut report = ProgramReport::default();
    for (group, test) in tests.iter().enumerate() {
        let error = test.get("error").and_then(Value::as_str);
        match (error, Traffic::of(test)) {
            (None, Err(why)) => return Err(why),
            (None, Ok(traffic)) => traffic.add_to(&mut report, group),
            // With --json it exits with status 0 even then. It still reports what it did until then, but the two sides have not told each
            // other what they counted.
            (Some(error), traffic) => {
                if let Ok(traffic) = traffic {
                    traffic.untold().add_to(&mut report, group);
                }
                report.failure = Some(error.to_owned());
            }
        }
    }
    Ok(report)
}

/// A test whose sums come once each: versions 3.7 to 3.10 give those of both directions of `--bidir` one name.
#[derive(Deserialize)]
struct EndsOnce {
    #[serde(rename = "end")]
    _end: Option<SumsOnce>,
}

#[derive(Deserialize)]
struct SumsOnce {
    #[serde(rename = "sum")]
    _both: Option<IgnoredAny>,
    #[serde(rename = "sum_sent")]
    _sent: Option<IgnoredAny>,
    #[serde(rename = "sum_received")]
    _received: Option<IgnoredAny>,
}

/// What its JSON says of the traffic of one test.
struct Traffic {
    protocol: String,
    sent: Option<Sum>,
    came: Option<Sum>,
    /// Seconds at the begin that its counts leave out.
    omitted: u64,
}

/// What this side did in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    ios: u64,
    bytes: u64,
    /// Packets that were sent and did not arrive; `None` if this side does not learn it.
    lost: Option<u64>,
    seconds: f64,
}

impl Traffic {
    fn of(test: &Value) -> std::result::Result<Self, String> {
        let end = test.get("end").ok_or("its JSON has no end")?;
        let start = test.pointer("/start/test_start").ok_or("its JSON has no test_start")?;
        let number = |name: &str| start.get(name).and_then(Value::as_u64);
        let protocol = start.get("protocol").and_then(Value::as_str).unwrap_or("TCP").to_owned();
        let block = number("blksize").filter(|block| *block > 0);
        let is_client = test.pointer("/start/connecting_to").is_some();
        // The client sends, unless the test is reversed.
        let sends = is_client == (number("reverse").unwrap_or(0) == 0);
        let (mut sent, mut came) = (None, None);
        for (suffix, sends) in [("", sends), (SECOND, !sends)] {
            let find = |name: &str| end.get(format!("{name}{suffix}"));
            let sums = Sums { own: find(if sends { "sum_sent" } else { "sum_received" }), both: find("sum") };
            let found = if protocol == "UDP" { sums.packets(sends, block)? } else { sums.stream(block) };
            // The receiver counts what is lost. A client is told at the end, a server is not, and writes 0.
            let untold = protocol == "UDP" && sends && !is_client;
            let found = found.map(|sum| if untold { Sum { lost: None, ..sum } } else { sum });
            *(if sends { &mut sent } else { &mut came }) = found;
        }
        if sent.is_none() && came.is_none() {
            return Err("its JSON has no sum of bytes".to_owned());
        }
        Ok(Self { protocol, sent, came, omitted: number("omit").unwrap_or(0) })
    }

    /// The same if the other side has not told this one what it received.
    fn untold(self) -> Self {
        let is_packets = self.protocol == "UDP";
        Self { sent: self.sent.map(|sum| if is_packets { Sum { lost: None, ..sum } } else { sum }), ..self }
    }

    fn add_to(self, report: &mut ProgramReport, group: usize) {
        let direction = |sum: Option<Sum>| {
            let Sum { ios, bytes, .. } = sum.unwrap_or_default();
            Direction { ios, bytes: Bytes(bytes), short: 0, latency: Latency::None }
        };
        let of = |sum: Option<Sum>| sum.map_or(Some(0), |sum| sum.lost);
        let lost = Lost { read: of(self.came), write: of(self.sent) };
        let seconds = [self.sent, self.came].into_iter().flatten().map(|sum| sum.seconds).fold(0.0, f64::max);
        report.jobs.push(JobRecord {
            name: format!("iperf3 {}", self.protocol),
            engine: "iperf3".to_owned(),
            group: u32::try_from(group).unwrap_or(u32::MAX),
            lost: (lost != Lost::NONE).then_some(lost),
            read: direction(self.came),
            write: direction(self.sent),
            wall_nanos: Nanos((seconds * 1e9) as u64),
            ..JobRecord::default()
        });
        if self.omitted > 0 {
            report.uncounted = Some(format!(
                "iperf3's counts leave out the first {} s of the test (-O of the client), but the machine paid for them, so there is no \
                 cost per I/O",
                self.omitted
            ));
        }
    }
}

/// The sums of one direction: this side's own, and that of both sides.
struct Sums<'a> {
    own: Option<&'a Value>,
    both: Option<&'a Value>,
}

impl Sums<'_> {
    /// A stream has no I/Os of its own: one read or write of iperf3 is a block.
    fn stream(&self, block: Option<u64>) -> Option<Sum> {
        // Versions before 3.1 have one sum.
        let sum = self.own.or(self.both)?;
        let bytes = whole(sum, "bytes")?;
        Some(Sum { ios: block.map_or(0, |block| bytes / block), bytes, lost: Some(0), seconds: seconds(sum) })
    }

    /// Both sides report the packets that were sent, also the one that receives. A packet is a block.
    fn packets(&self, sends: bool, block: Option<u64>) -> std::result::Result<Option<Sum>, String> {
        // In the sender's own sum no packet is lost.
        let Some(both) = self.both.or(self.own) else { return Ok(None) };
        let Some(sum) = self.own.or(self.both) else { return Ok(None) };
        let lost = whole(both, "lost_packets");
        let Some(sent) = whole(sum, "packets") else { return Ok(None) };
        let came = || {
            // Its bytes, where it has a sum of its own: the loss is an estimate where packets overtake each other.
            let own = self.own.and_then(|own| Some(whole(own, "bytes")? / block?));
            own.unwrap_or(sent.saturating_sub(lost.unwrap_or(0)))
        };
        let ios = if sends { sent } else { came() };
        let bytes = match block {
            Some(block) => ios.saturating_mul(block),
            None => whole(sum, "bytes").ok_or("its JSON has no size of packets")?,
        };
        Ok(Some(Sum { ios, bytes, lost, seconds: seconds(sum) }))
    }
}

fn whole(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

fn seconds(sum: &Value) -> f64 {
    sum.get("seconds").and_then(Value::as_f64).unwrap_or(0.0)
}

/// What is appended to the names of the sums of the second direction of `--bidir`.
const SECOND: &str = "_bidir_reverse";

/// The texts that it printed one after the other.
///
/// # Errors
/// When there is none, or one is broken.
fn texts(text: &str) -> std::result::Result<Vec<Value>, String> {
    let texts = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let texts: Vec<Value> =
        texts.collect::<std::result::Result<_, _>>().map_err(|error| format!("its JSON is broken: {error}"))?;
    if texts.is_empty() { Err("its JSON is empty".to_owned()) } else { Ok(texts) }
}

#[cfg(test)]
mod tests;
