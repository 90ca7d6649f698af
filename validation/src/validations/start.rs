//! Time to the first I/O: from the execution of iotoll to its first pread, minus the background measurement.

use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::Measuring;
use crate::bench::{fio, rounds};
use std::path::Path;
use std::time::Instant;

const MOST_MILLIS: f64 = 50.0;

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("one", 1)?;
    let background_millis = (bench.options.seconds * 1e3).round() as u64;
    let measuring = Measuring { meters: "default", background_millis, out: None };
    let words = [format!("--filename={}", file.display())];
    let mut job = fio::job("psync", 1.0, &["--bs=4k", "--size=4k", "--number_ios=1", &words[0]]);
    job.retain(|option| !option.starts_with("--time_based") && !option.starts_with("--runtime"));
    let (mut whole, mut first) = (Vec::new(), Vec::new());
    for round in 1..=bench.options.rounds {
        bench.progress(&format!("start {round} of {}", bench.options.rounds));
        let begin = Instant::now();
        bench.output(bench.iotoll().arg("run").args(measuring.flags()).args(&job))?;
        whole.push(begin.elapsed().as_secs_f64() * 1e3 - 2.0 * background_millis as f64);
        first.extend(traced(bench, &measuring, &job, &file)?.map(|millis| millis - background_millis as f64));
    }
    let median = |values: &mut Vec<f64>| rounds::percentile(values, 50.0);
    let (whole_median, first_median) = (median(&mut whole), median(&mut first));
    let row = |name: &str, values: &[f64], median: Option<f64>| {
        let (least, most) = (values.first().copied(), values.last().copied());
        vec![name.to_owned(), evidence::number(median, 1), evidence::number(least, 1), evidence::number(most, 1)]
    };
    let mut evidence = Evidence::default();
    evidence.note(format!(
        "One 4 KiB psync read, minus the background measurement of {background_millis} ms before and after, {} runs: ms.",
        bench.options.rounds
    ));
    let rows = [
        row("execve to first pread, under strace", &first, first_median),
        row("whole process, start to end", &whole, whole_median),
    ];
    evidence.table(&["from … to", "median", "least", "most"], &rows);
    // Neither is shorter than what a user waits for: one is slowed by the tracer, the other includes the end.
    let bound = [whole_median, first_median].into_iter().flatten().fold(f64::INFINITY, f64::min);
    let text = format!("the first I/O starts at most {bound:.1} ms after the program, below {MOST_MILLIS}");
    evidence.criterion(bound < MOST_MILLIS, text);
    Ok(evidence)
}

/// Milliseconds from execve to the first pread of the file; `None` if strace is not available. Tracing slows the start,
/// so the result is an upper bound.
fn traced(bench: &Bench, measuring: &Measuring, job: &[String], file: &Path) -> anyhow::Result<Option<f64>> {
    let trace = bench.path("trace");
    let iotoll = bench.iotoll();
    let mut strace = bench.command("strace");
    strace.args(["-f", "--seccomp-bpf", "-ttt", "-y", "-e", "trace=execve,pread64", "-o"]).arg(&trace);
    strace.arg("--").arg(iotoll.get_program()).arg("run").args(measuring.flags()).args(job);
    if bench.output(&mut strace).is_err() {
        bench.check()?;
        return Ok(None);
    }
    Ok(first_pread(&std::fs::read_to_string(&trace)?, &file.display().to_string()))
}

/// Lines are `PID SECONDS CALL(…`.
fn first_pread(trace: &str, path: &str) -> Option<f64> {
    let when = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
    let begin = when(trace.lines().find(|line| line.contains("execve("))?)?;
    let read = trace.lines().find(|line| line.contains("pread64(") && line.contains(&format!("<{path}>")))?;
    Some((when(read)? - begin) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_read_of_the_file_is_found() {
        let trace = "10 100.000000 execve(\"/x/iotoll\", [\"iotoll\"], 0x7 /* 9 vars */) = 0\n\
                     10 100.001000 pread64(3</lib/libc.so.6>, \"\", 784, 64) = 784\n\
                     12 100.230500 pread64(7</s/one>, \"\", 4096, 0) = 4096\n\
                     12 100.231000 pread64(7</s/one>, \"\", 4096, 0) = 4096\n";
        let found = first_pread(trace, "/s/one").unwrap();
        assert!((found - 230.5).abs() < 1e-3, "{found}");
        assert_eq!(first_pread(trace, "/s/other"), None);
    }
}
