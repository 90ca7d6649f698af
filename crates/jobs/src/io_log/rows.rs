//! The rows of log files, in fio's format.

use super::sums::Sums;
use super::{Entry, IoLog};
use crate::workload::request_source::Kind;
use model::plan::{JobPlan, LogKind, LogPlan, Queue};
use model::unit::Ticks;
use std::io::{self, Write};
use std::path::PathBuf;

/// Writes the rows of one file. `files` are those of the job, for a trace.
pub(super) fn write(
    log: &IoLog,
    plan: &JobPlan,
    kind: LogKind,
    files: &[PathBuf],
    out: &mut impl Write,
) -> io::Result<()> {
    // An engine that performs each I/O at once has no submission of its own, as in fio.
    if kind == LogKind::Submission && plan.engine.queue() == Queue::One {
        return Ok(());
    }
    if kind == LogKind::Trace {
        let Some(trace) = &log.trace else { return Ok(()) };
        return trace.write(files, log.clock, log.end, out);
    }
    let rows = Rows { log, logs: &plan.logs, kind };
    match kind {
        _ if plan.logs.window > 0 => rows.of_windows(out),
        _ => rows.of_ios(out),
    }
}

struct Rows<'a> {
    log: &'a IoLog,
    logs: &'a LogPlan,
    kind: LogKind,
}

impl Rows<'_> {
    /// Milliseconds from the start to an instant.
    fn time(&self, at: u64) -> u64 {
        self.log.clock.nanos(Ticks(at.saturating_sub(self.log.begin))).0 / 1_000_000
    }

    fn of_ios(&self, out: &mut impl Write) -> io::Result<()> {
        let submission = self.kind == LogKind::Submission;
        let mut entries: Vec<&Entry> = self.log.each.iter().flatten().collect();
        if submission {
            entries.sort_by_key(|entry| entry.handed);
        }
        for entry in entries {
            let latencies = entry.latencies().map(|ticks| self.log.clock.nanos(Ticks(ticks)).0);
            let [latency, submitting, completion] = latencies;
            let value = match self.kind {
                LogKind::Bandwidth => rate(f64::from(entry.length) / 1024.0, completion as f64 / 1e9),
                LogKind::Iops => 1,
                LogKind::Completion => completion,
                LogKind::Submission => submitting,
                LogKind::Latency | LogKind::Trace => latency,
            };
            let at = if submission { entry.handed } else { entry.done };
            row(out, self.time(at), value, entry.kind, entry.length)?;
        }
        Ok(())
    }

    /// The time of the end of a window, and its length in seconds. The last one ends with the job.
    fn end_of(&self, window: u64) -> (u64, f64) {
        let length = u64::from(self.logs.window);
        let end = (window + 1).saturating_mul(length);
        let job = self.log.clock.nanos(Ticks(self.log.end.saturating_sub(self.log.begin))).0;
        let (end_nanos, begin_nanos) = (end.saturating_mul(1_000_000), (end - length).saturating_mul(1_000_000));
        let nanos = job.min(end_nanos).saturating_sub(begin_nanos);
        (end.min(job / 1_000_000), nanos as f64 / 1e9)
    }

    fn of_windows(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(windows) = &self.log.windows else { return Ok(()) };
        let Some(last) = windows.rows.last() else { return Ok(()) };
        let kinds: Vec<Kind> =
            Kind::ALL.into_iter().filter(|kind| windows.rows.iter().any(|row| row.kind == *kind)).collect();
        let mut rows = windows.rows.iter().peekable();
        let mut number = 0;
        // After the last window with I/Os, more may have passed.
        while number <= last.number || self.log.full.is_none() && self.end_of(number).1 > 0.0 {
            let (time, seconds) = self.end_of(number);
            for kind in &kinds {
                let sums = rows.next_if(|row| row.number == number && row.kind == *kind).map(|row| row.sums);
                if let Some(value) = self.value(sums.unwrap_or_default(), seconds) {
                    row(out, time, value, *kind, 0)?;
                }
            }
            number += 1;
        }
        Ok(())
    }

    /// What a row says of a window; `None` if there is nothing to say.
    fn value(&self, sums: Sums, seconds: f64) -> Option<u64> {
        let latency = |which: usize| {
            let ticks = sums.ticks.get(which)?.checked_div(sums.ios)?;
            Some(self.log.clock.nanos(Ticks(ticks)).0)
        };
        match self.kind {
            LogKind::Bandwidth => Some(rate(sums.bytes as f64 / 1024.0, seconds)),
            LogKind::Iops => Some(rate(sums.ios as f64, seconds)),
            LogKind::Latency | LogKind::Trace => latency(0),
            LogKind::Submission => latency(1),
            LogKind::Completion => latency(2),
        }
    }
}

/// A row. The I/O is not of the real-time class of priorities.
fn row(out: &mut impl Write, time: u64, value: u64, kind: Kind, length: u32) -> io::Result<()> {
    writeln!(out, "{time}, {value}, {}, {length}, 0", kind as usize)
}

/// The nearest whole number of an amount per second: fio's programs read nothing else.
fn rate(amount: f64, seconds: f64) -> u64 {
    (amount / seconds.max(1e-9)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::EngineKind;
    use model::unit::Hertz;

    /// What a job with these options logs of these I/Os: direction, then milliseconds of issue, hand-over and completion.
    fn logged(logs: LogPlan, ios: &[(Kind, [u64; 3])], end: u64, kind: LogKind) -> String {
        let named = Some(String::new());
        let logs = LogPlan { latency: named.clone(), bandwidth: named.clone(), iops: named, ..logs };
        let plan = JobPlan { logs, engine: EngineKind::Libaio, ..JobPlan::default() };
        let mut log = IoLog::new(&plan, Hertz(1e6), 1 << 20).unwrap().unwrap();
        let ticks = |milliseconds: u64| 7_000_000 + milliseconds * 1000;
        log.count_from(ticks(0));
        for (kind, times) in ios {
            let [issued, handed, done] = times.map(ticks);
            log.note(&Entry { kind: *kind, offset: 8192, length: 4096, issued, handed, done });
        }
        log.finish(ticks(end));
        let mut text = Vec::new();
        write(&log, &plan, kind, &[], &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    const IOS: [(Kind, [u64; 3]); 4] =
        [(Kind::Read, [0, 1, 5]), (Kind::Write, [1, 2, 9]), (Kind::Read, [5, 8, 20]), (Kind::Read, [61, 62, 65])];

    #[test]
    fn each_io_has_a_row() {
        let each = |kind| logged(LogPlan::default(), &IOS, 70, kind);
        assert_eq!(
            each(LogKind::Completion),
            "5, 4000000, 0, 4096, 0\n9, 7000000, 1, 4096, 0\n20, 12000000, 0, 4096, 0\n65, 3000000, 0, 4096, 0\n"
        );
        assert_eq!(
            each(LogKind::Bandwidth),
            "5, 1000, 0, 4096, 0\n9, 571, 1, 4096, 0\n20, 333, 0, 4096, 0\n65, 1333, 0, 4096, 0\n"
        );
        assert_eq!(each(LogKind::Iops).lines().next(), Some("5, 1, 0, 4096, 0"));
        assert_eq!(each(LogKind::Submission).lines().next(), Some("1, 1000000, 0, 4096, 0"));
        assert_eq!(each(LogKind::Latency).lines().next(), Some("5, 5000000, 0, 4096, 0"));
    }

    #[test]
    fn each_window_has_a_row_for_each_direction_also_without_ios() {
        let window = |kind| logged(LogPlan { window: 30, ..LogPlan::default() }, &IOS, 70, kind);
        assert_eq!(
            window(LogKind::Iops),
            "30, 67, 0, 0, 0\n30, 33, 1, 0, 0\n60, 0, 0, 0, 0\n60, 0, 1, 0, 0\n70, 100, 0, 0, 0\n70, 0, 1, 0, 0\n"
        );
        assert_eq!(window(LogKind::Bandwidth).lines().next(), Some("30, 267, 0, 0, 0"));
        assert_eq!(window(LogKind::Completion), "30, 8000000, 0, 0, 0\n30, 7000000, 1, 0, 0\n70, 3000000, 0, 0, 0\n");
        // The job goes on after its last I/O.
        let late = logged(LogPlan { window: 10, ..LogPlan::default() }, &IOS[..1], 25, LogKind::Iops);
        assert_eq!(late, "10, 100, 0, 0, 0\n20, 0, 0, 0, 0\n25, 0, 0, 0, 0\n");
    }

    #[test]
    fn a_synchronous_engine_has_no_submission() {
        let logs = LogPlan { latency: Some(String::new()), ..LogPlan::default() };
        let plan = JobPlan { logs, ..JobPlan::default() };
        let mut log = IoLog::new(&plan, Hertz(1e6), 0).unwrap().unwrap();
        log.note(&Entry { kind: Kind::Trim, offset: 0, length: 1, issued: 1, handed: 1, done: 2 });
        let mut text = Vec::new();
        write(&log, &plan, LogKind::Submission, &[], &mut text).unwrap();
        assert_eq!(text, b"");
    }
}
