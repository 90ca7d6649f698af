//! Commands that took turns in slices: what a count of their counter is worth.
//!
//! A counter shows how the work of a command was spread over its slices. If the command reports its own total of a round,
//! that is the truth, and the counts are scaled to it; otherwise a count stands for itself.

use super::{CommandReading, CommandTotal};
use crate::experiment::WorkCounter;
use crate::experiment::work_counter::{self, Counted};
use crate::record::Done;
use crate::unit::Bytes;

/// The commands of a round that took turns, and what counted their I/Os.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Commands<'a> {
    pub counter: Option<&'a WorkCounter>,
    pub totals: &'a [CommandTotal],
}

/// What one count of a sliced command is worth; `None` where that is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CommandScale {
    /// I/Os per count.
    ios: Option<f64>,
    /// Bytes per count.
    bytes: Option<f64>,
    /// An I/O is a read or write call.
    ios_are_calls: bool,
    /// Task accounting sees all that the command reads. It misses io_uring, libaio and sockets.
    sees_reads: bool,
    /// The part of its bytes that the command read, if it says so itself.
    read_part: Option<f64>,
}

impl CommandScale {
    /// The scale of a case in a round.
    pub fn of(commands: Commands, case: Option<usize>) -> Self {
        let Some((counter, case)) = commands.counter.zip(case) else { return Self::default() };
        let Some(total) = commands.totals.iter().find(|total| total.cases.contains(&case)) else {
            return Self::default();
        };
        let sees_reads = work_counter::is_of_system_calls(&counter.name);
        let part = |own: Done| (own.bytes.0 > 0).then(|| total.own_read.map(|read| read.as_f64() / own.bytes.as_f64()));
        let read_part = total.own.and_then(part).flatten();
        let scale = Self { sees_reads, read_part, ..Self::default() };
        match (total.own, counter.counts) {
            (Some(_), _) if total.count == 0 => scale,
            (Some(own), _) => {
                let each = |done: u64| (done > 0).then(|| done as f64 / total.count as f64);
                Self { ios: each(own.ios), bytes: each(own.bytes.0), ..scale }
            }
            (None, Counted::Bytes) => Self { bytes: Some(1.0), ios_are_calls: true, ..scale },
            (None, Counted::Ios) => Self { ios: Some(1.0), ..scale },
        }
    }

    /// I/Os between two readings.
    pub fn ios(&self, first: &CommandReading, last: &CommandReading) -> Option<f64> {
        let calls = || Some(last.calls?.saturating_sub(first.calls?) as f64);
        if self.ios_are_calls { calls() } else { Some(self.ios? * counts(first, last)?) }
    }

    /// Bytes between two readings.
    pub fn bytes(&self, first: &CommandReading, last: &CommandReading) -> Option<f64> {
        Some(self.bytes? * counts(first, last)?)
    }

    /// Bytes that its processes read between two readings. What task accounting misses is known only from what the command reports.
    pub fn read_bytes(&self, first: &CommandReading, last: &CommandReading) -> Option<f64> {
        let accounted = between(first.read_bytes, last.read_bytes)?;
        if self.sees_reads {
            return Some(accounted);
        }
        Some((self.bytes(first, last)? * self.read_part?).max(accounted))
    }
}

/// The count between two readings.
pub fn counts(first: &CommandReading, last: &CommandReading) -> Option<f64> {
    Some(last.count?.saturating_sub(first.count?) as f64)
}

/// Bytes of a mean call, or segment, between two readings of a counter of bytes.
pub fn bytes_of_a_message(first: &CommandReading, last: &CommandReading) -> Option<f64> {
    let (before, after) = first.calls.zip(last.calls).or(first.segments.zip(last.segments))?;
    let messages = after.saturating_sub(before);
    (messages > 0).then_some(counts(first, last)? / messages as f64)
}

/// CPU time of the command's processes between two readings, in nanoseconds; `None` if a process ended in between, because
/// its time is lost.
pub(crate) fn thread_nanos(first: &CommandReading, last: &CommandReading) -> Option<f64> {
    let (first, last) = (first.thread_nanos?, last.thread_nanos?);
    (last >= first).then(|| last.since(first).as_f64())
}

/// Bytes that storage read for its processes.
pub(crate) fn storage_read(first: &CommandReading, last: &CommandReading) -> Option<f64> {
    between(first.storage_read, last.storage_read)
}

fn between(first: Option<Bytes>, last: Option<Bytes>) -> Option<f64> {
    Some(last?.since(first?).as_f64())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::unit::Nanos;

    pub(crate) fn counter(counts: Counted) -> WorkCounter {
        WorkCounter { name: "x".to_owned(), counts, what: String::new(), reason: String::new(), nanos_per_count: None }
    }

    pub(crate) fn reading(count: u64, calls: Option<u64>) -> CommandReading {
        CommandReading { count: Some(count), calls, thread_nanos: Some(Nanos(count)), ..CommandReading::default() }
    }

    fn scale(counts: Counted, own: Option<Done>, count: u64) -> CommandScale {
        let totals = [CommandTotal { cases: vec![1], own, own_read: None, count }];
        CommandScale::of(Commands { counter: Some(&counter(counts)), totals: &totals }, Some(1))
    }

    #[test]
    fn counts_are_scaled_to_the_own_total() {
        let own = Some(Done { ios: 100, bytes: Bytes(409_600) });
        // sendfile counts its bytes twice.
        let scale = scale(Counted::Bytes, own, 819_200);
        let (first, last) = (reading(0, None), reading(81_920, None));
        assert_eq!((scale.ios(&first, &last), scale.bytes(&first, &last)), (Some(10.0), Some(40_960.0)));
    }

    #[test]
    fn reads_that_task_accounting_misses_are_told_by_the_command() {
        let own = Some(Done { ios: 100, bytes: Bytes(409_600) });
        let named = |name: &str, own_read| {
            let (counter, totals) =
                (counter(Counted::Ios), [CommandTotal { cases: vec![1], own, own_read, count: 100 }]);
            let counter = WorkCounter { name: name.to_owned(), ..counter };
            CommandScale::of(Commands { counter: Some(&counter), totals: &totals }, Some(1))
        };
        let at = |count, read| CommandReading { read_bytes: Some(Bytes(read)), ..reading(count, None) };
        // A log file of 20 bytes, and 10 I/Os of 4 KiB.
        let read =
            |name: &str, own_read: Option<u64>| named(name, own_read.map(Bytes)).read_bytes(&at(0, 100), &at(10, 120));
        assert_eq!((read("io_uring", Some(409_600)), read("task:read", None)), (Some(40_960.0), Some(20.0)));
        // A writer reads its log file; one that does not say what it reads is unknown.
        assert_eq!((read("io_uring", Some(0)), read("task:storage", None)), (Some(20.0), None));
        assert_eq!(named("io_uring", None).read_bytes(&reading(0, None), &reading(10, None)), None);
    }

    #[test]
    fn without_an_own_total_a_count_stands_for_itself() {
        let (first, last) = (reading(4096, Some(1)), reading(12_288, Some(3)));
        let bytes = scale(Counted::Bytes, None, 1 << 20);
        assert_eq!((bytes.ios(&first, &last), bytes.bytes(&first, &last)), (Some(2.0), Some(8192.0)));
        let ios = scale(Counted::Ios, None, 1 << 20);
        assert_eq!((ios.ios(&first, &last), ios.bytes(&first, &last)), (Some(8192.0), None));
        // Of another command nothing is known.
        assert_eq!(CommandScale::of(Commands::default(), Some(0)), CommandScale::default());
    }

    #[test]
    fn time_of_an_ended_process_is_lost() {
        assert_eq!(thread_nanos(&reading(1, None), &reading(4, None)), Some(3.0));
        assert_eq!(thread_nanos(&reading(4, None), &reading(1, None)), None);
    }
}
