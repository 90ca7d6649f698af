//! Peak memory of a run: 32 jobs at depth 32, short and long, with and without real I/O.

use crate::bench::evidence::Evidence;
use crate::bench::fio;
use crate::bench::iotoll::Measuring;
use crate::bench::{Bench, Beside};
use anyhow::{Context, ensure};
use std::process::Stdio;
use std::time::Duration;

/// Jobs × depth × block.
const BUFFERS_MEBIBYTES: f64 = 32.0 * 32.0 * 4.0 / 1024.0;
/// Largest memory besides the buffers.
const MOST_MEBIBYTES: f64 = 64.0;
/// Largest growth of a long run over a short one.
const GROWTH: f64 = 0.10;
const GLANCE: Duration = Duration::from_millis(5);

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("cached", 64)?;
    let file = format!("--filename={}", file.display());
    let (short, long) = (bench.options.seconds, 600.0);
    let runs = [("null", short), ("io_uring", short), ("null", long)];
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    let mut peaks = Vec::new();
    for (engine, seconds) in runs {
        bench.progress(&format!("{engine}, {seconds} s"));
        let mut options = vec!["--numjobs=32", "--iodepth=32", "--bs=4k", "--size=64m", "--group_reporting"];
        if engine == "io_uring" {
            options.extend([file.as_str(), "--invalidate=0"]);
        }
        let out = bench.path(&format!("record-{engine}-{seconds}"));
        // All meters, with a saved record: the most memory.
        let measuring = Measuring { meters: "all", background_millis: 1000, out: Some(out.clone()) };
        let peak = peak(bench, &measuring, &fio::job(engine, seconds, &options))?;
        let record = std::fs::metadata(out.join("record.jsonl")).map_or(0, |file| file.len());
        let beside = peak - BUFFERS_MEBIBYTES;
        let record = format!("{:.1}", record as f64 / 1024.0 / 1024.0);
        rows.push(vec![engine.to_owned(), seconds.to_string(), format!("{peak:.1}"), format!("{beside:.1}"), record]);
        let text =
            format!("{engine}, {seconds} s: {beside:.1} MiB in addition to the I/O buffers, below {MOST_MEBIBYTES}");
        evidence.criterion(beside < MOST_MEBIBYTES, text);
        peaks.push(peak);
    }
    if let [short_peak, _, long_peak] = peaks.as_slice() {
        let growth = long_peak / short_peak - 1.0;
        let text = format!(
            "null, {long} s: peak {:+.1} % compared with {short} s, at most ±{:.0} %",
            growth * 100.0,
            GROWTH * 100.0
        );
        evidence.criterion(growth.abs() <= GROWTH, text);
    }
    evidence.note(format!(
        "32 jobs × depth 32 × 4 KiB ({BUFFERS_MEBIBYTES} MiB of I/O buffers), all meters, record saved: peak resident \
         memory, MiB."
    ));
    evidence.table(&["engine", "seconds", "peak", "besides buffers", "record"], &rows);
    Ok(evidence)
}

/// Peak resident memory of a run, MiB.
fn peak(bench: &Bench, measuring: &Measuring, job: &[String]) -> anyhow::Result<f64> {
    let mut iotoll = bench.iotoll();
    iotoll.arg("run").args(measuring.flags()).args(job);
    let child = iotoll.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().context("starting iotoll")?;
    let mut child = Beside { child };
    let path = format!("/proc/{}/status", child.child.id());
    let mut peak = None;
    loop {
        // The line disappears when the process has exited and was not waited for.
        peak = std::fs::read_to_string(&path).ok().and_then(|text| high_water(&text)).or(peak);
        if let Some(status) = child.child.try_wait()? {
            bench.check()?;
            ensure!(status.success(), "iotoll exited with {status}");
            return peak.map(mebibytes).context("/proc/PID/status has no VmHWM");
        }
        bench.check()?;
        std::thread::sleep(GLANCE);
    }
}

fn mebibytes(kibibytes: f64) -> f64 {
    kibibytes / 1024.0
}

/// Kibibytes in a line such as `VmHWM: 12345 kB`.
fn high_water(status: &str) -> Option<f64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_found() {
        let status = "Name:\tiotoll\nVmPeak:\t  99999 kB\nVmHWM:\t   12288 kB\nVmRSS:\t   1000 kB\n";
        assert_eq!(high_water(status).map(mebibytes), Some(12.0));
        assert_eq!(high_water("Name:\tiotoll\nState:\tZ (zombie)\n"), None);
        assert!(high_water(&std::fs::read_to_string("/proc/self/status").unwrap()).unwrap() > 100.0);
    }
}
