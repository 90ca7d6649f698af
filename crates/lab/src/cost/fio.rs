//! fio says what it did in JSON, when it is asked to.

use super::{Printed, Said, Talker, scratch};
use crate::error::{Error, Result};
use model::record::{Direction, JobRecord, Latency};
use model::unit::{Bytes, Nanos};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::process::Stdio;

/// fio, and the file in which it says what it did.
#[derive(Default)]
pub(super) struct Fio {
    file: Option<(tempfile::NamedTempFile, File)>,
}

impl Talker for Fio {
    fn prepare(&mut self, command: &[String], printed: Printed) -> Result<(Vec<String>, Stdio)> {
        let taken = |argument: &&String| argument.starts_with("--output") || argument.as_str() == "--minimal";
        if let Some(argument) = command.iter().find(taken) {
            return Err(Error::Refused(format!(
                "fio's {argument} is in the way: iotoll reads fio's output as JSON; leave it out, or count with --ios"
            )));
        }
        let (file, reader) = scratch("fio's JSON")?;
        let mut command = command.to_vec();
        // Both: JSON for us, and what a person would have read.
        command.insert(1, "--output-format=normal,json".to_owned());
        command.insert(2, format!("--output={}", file.path().display()));
        self.file = Some((file, reader));
        Ok((command, printed.stdio()))
    }

    fn jobs(&mut self) -> std::result::Result<Said, String> {
        let (_file, mut reader) = self.file.take().ok_or("it was not asked")?;
        let mut text = String::new();
        reader.read_to_string(&mut text).map_err(|error| error.to_string())?;
        parse(&text)
    }
}

/// fio prints its JSON first or last, and errors before it; the object begins on a line of its own.
fn parse(text: &str) -> std::result::Result<Said, String> {
    let begin = text.find("{\n").ok_or("there is no JSON in its output")?;
    let rest = text.get(begin..).unwrap_or_default();
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let value = values.next().ok_or("its JSON is empty")?.map_err(|error| format!("its JSON is broken: {error}"))?;
    let after = rest.get(values.byte_offset()..).unwrap_or_default();
    let jobs = value.get("jobs").and_then(Value::as_array).ok_or("its JSON has no jobs")?;
    let mut said = Said { text: format!("{}{after}", text.get(..begin).unwrap_or_default()), ..Said::default() };
    // Jobs of one group run together, groups (after a stonewall) one after the other.
    let mut group_millis: BTreeMap<u64, u64> = BTreeMap::new();
    for job in jobs {
        let millis = unsigned(job, "job_runtime");
        let group = group_millis.entry(unsigned(job, "groupid")).or_default();
        *group = millis.max(*group);
        said.jobs.push(record(job, millis));
    }
    let runtime: u64 = group_millis.values().sum();
    let end = unsigned(&value, "timestamp_ms").saturating_mul(1_000_000);
    if end > 0 && runtime > 0 {
        // fio's times have a grain of a millisecond, and it prints within a few of the end.
        said.io_unix_nanos = Some((end.saturating_sub(runtime * 1_000_000), end));
    }
    Ok(said)
}

fn record(job: &Value, millis: u64) -> JobRecord {
    let fraction = (number(job, "usr_cpu") + number(job, "sys_cpu")) / 100.0;
    let options = job.get("job options");
    let error = unsigned(job, "error");
    JobRecord {
        name: job.get("jobname").and_then(Value::as_str).unwrap_or("fio").to_owned(),
        engine: format!("fio {}", options.and_then(|options| options.get("ioengine")?.as_str()).unwrap_or(""))
            .trim()
            .into(),
        read: direction(job, "read"),
        write: direction(job, "write"),
        trim: direction(job, "trim"),
        errors: unsigned(job, "total_err"),
        error: (error > 0).then(|| format!("fio reports error {error}")),
        wall_nanos: Nanos::from_millis(millis),
        // usr_cpu and sys_cpu are of fio's own threads, in percent of the job's run time.
        thread_nanos: (fraction > 0.0).then_some(Nanos((fraction * millis as f64 * 1e6) as u64)),
        ..JobRecord::default()
    }
}

fn direction(job: &Value, name: &str) -> Direction {
    let Some(part) = job.get(name) else { return Direction::default() };
    let ios = unsigned(part, "total_ios");
    let clat = part.get("clat_ns").filter(|_| ios > 0);
    let latency = clat.map_or(Latency::None, |clat| Latency::Reported {
        mean_nanos: number(clat, "mean"),
        max_nanos: Nanos(unsigned(clat, "max")),
        percentiles: clat.get("percentile").and_then(Value::as_object).map_or_else(Vec::new, |table| {
            table.iter().filter_map(|(p, value)| Some((p.parse().ok()?, Nanos(value.as_u64()?)))).collect()
        }),
    });
    Direction { ios, bytes: Bytes(unsigned(part, "io_bytes")), short: unsigned(part, "short_ios"), latency }
}

fn unsigned(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn number(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_the_time_of_io_are_found_between_other_text() {
        let text = "fio: a note\n{\n \"timestamp_ms\": 5000, \"jobs\": [\
            {\"jobname\": \"a\", \"groupid\": 0, \"job_runtime\": 1000, \"usr_cpu\": 10.0, \"sys_cpu\": 40.0,\
             \"job options\": {\"ioengine\": \"psync\"},\
             \"read\": {\"total_ios\": 7, \"io_bytes\": 28672, \"clat_ns\": {\"mean\": 5.5, \"max\": 9,\
             \"percentile\": {\"50.000000\": 5}}}},\
            {\"jobname\": \"b\", \"groupid\": 1, \"job_runtime\": 2000}]}\nRun status\n";
        let said = parse(text).unwrap();
        assert_eq!(said.io_unix_nanos, Some((2_000_000_000, 5_000_000_000)));
        assert_eq!(said.text, "fio: a note\n\nRun status\n");
        let job = &said.jobs[0];
        assert_eq!((job.read.ios, job.read.bytes, job.engine.as_str()), (7, Bytes(28_672), "fio psync"));
        assert_eq!(job.thread_nanos, Some(Nanos::from_millis(500)));
        assert!(parse("no json").is_err());
        assert!(parse("{\n \"jobs\": 5}").is_err());
        assert!(parse("{\n broken").is_err());
    }

    #[test]
    fn flags_that_would_hide_the_output_are_refused() {
        let command = ["fio", "--output=x", "j.fio"].map(str::to_owned);
        assert!(Fio::default().prepare(&command, Printed::Nowhere).unwrap_err().to_string().contains("--output=x"));
    }
}
