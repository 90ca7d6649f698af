//! What a job logs of its I/Os, in memory that is reserved before the first of them: nothing here allocates while the job runs. The files
//! are written when the run has ended.

pub mod files;
mod rows;
mod sums;

use crate::engine::Sync;
use crate::workload::replay::{Step, VERSION_3, What};
use crate::workload::request_source::{Kind, Request};
use lab::error::{Error, Result};
use lab::memory;
use lab::sysroot::Sysroot;
pub(crate) use model::plan::{JobPlan, Plan};
use model::unit::{Hertz, Ticks};
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use sums::Windows;
use sys::clock::ticks;

/// Most memory of the logs of a run.
const MOST_MEMORY: u64 = 1 << 30;
/// The part of the machine's memory that they may take.
const PART_OF_MEMORY: u64 = 4;

/// An I/O that succeeded. Times are in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub kind: Kind,
    pub offset: u64,
    /// Bytes that were moved.
    pub length: u32,
    /// The request was made.
    pub issued: u64,
    /// It was handed over.
    pub handed: u64,
    pub done: u64,
}

/// The log of one copy of a job.
#[derive(Debug)]
pub struct IoLog {
    clock: Hertz,
    begin: u64,
    /// When the job ended.
    end: u64,
    each: Option<Vec<Entry>>,
    windows: Option<Windows>,
    trace: Option<Trace>,
    /// The first I/O that found no room, if any; nothing is logged from then on.
    full: Option<u64>,
}

impl IoLog {
    /// A log for a copy of `plan`, in that number of bytes; `None` if the job has none.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub(crate) fn new(plan: &JobPlan, clock: Hertz, bytes: u64) -> Result<Option<Self>> {
        let logs = &plan.logs;
        if logs.first_option().is_none() {
            return Ok(None);
        }
        let failed = || Error::job(&plan.name, "reserving memory for its logs", std::io::ErrorKind::OutOfMemory.into());
        let (each, windows) = (logs.has_rows() && logs.window == 0, logs.has_rows() && logs.window > 0);
        let parts = [logs.has_rows(), logs.trace.is_some()].into_iter().filter(|part| *part).count();
        let bytes = bytes / u64::try_from(parts.max(1)).unwrap_or(1);
        Ok(Some(Self {
            clock,
            begin: 0,
            end: 0,
            each: part(each, bytes, |list| list).ok_or_else(failed)?,
            windows: part(windows, bytes, |rows| Windows::new(logs.window, clock, rows)).ok_or_else(failed)?,
            trace: part(logs.trace.is_some(), bytes, Trace::new).ok_or_else(failed)?,
            full: None,
        }))
    }

    /// The log begins: what was before is discarded.
    pub(crate) fn count_from(&mut self, now: u64) {
        (self.begin, self.end, self.full) = (now, now, None);
        self.each.iter_mut().for_each(Vec::clear);
        self.windows.iter_mut().for_each(|windows| windows.begin(now));
        // The requests of a ramp are part of a trace.
        self.trace.iter_mut().for_each(|trace| trace.begin(now));
    }

    /// Notes a request that is issued now.
    #[inline]
    pub(crate) fn note_request(&mut self, request: &Request, now: u64) {
        if let Some(trace) = &mut self.trace {
            trace.note(Step { at: now, what: What::Io(*request) });
        }
    }

    /// Notes a sync, of everything or of data.
    pub(crate) fn note_sync(&mut self, file: u32, what: Sync) {
        if let Some(trace) = &mut self.trace {
            trace.note(Step { at: ticks(), what: What::Sync(file, what) });
        }
    }

    /// Notes an I/O that is done.
    #[inline]
    pub(crate) fn note(&mut self, entry: &Entry) {
        if self.full.is_some() {
            return;
        }
        let mut room = true;
        if let Some(each) = &mut self.each {
            room = each.len() < each.capacity();
            if room {
                each.push(*entry);
            }
        }
        if let Some(windows) = &mut self.windows {
            room &= windows.note(entry);
        }
        if !room {
            self.full = Some(entry.done);
        }
    }

    /// The job has ended.
    pub(crate) fn finish(&mut self, end: u64) {
        self.end = self.full.unwrap_or(end);
        self.windows.iter_mut().for_each(|windows| _ = windows.finish());
    }

    /// Milliseconds from the start to when there was no more room, if that happened.
    pub(crate) fn full_after_ms(&self) -> Option<u64> {
        let full = self.full.or_else(|| self.trace.as_ref()?.full);
        full.map(|full| self.clock.nanos(model::unit::Ticks(full.saturating_sub(self.begin))).0 / 1_000_000)
    }
}

/// A part of a log, if it is wanted; `None` if there is no memory for it.
fn part<T, P>(wanted: bool, bytes: u64, of: impl FnOnce(Vec<T>) -> P) -> Option<Option<P>> {
    if wanted { reserved(bytes).map(|list| Some(of(list))) } else { Some(None) }
}

/// An empty list that has room for this number of bytes, or for less if the system does not give it. Its pages are taken when they are
/// used.
fn reserved<T>(bytes: u64) -> Option<Vec<T>> {
    /// Fewer elements are no log.
    const LEAST: usize = 1024;
    let size = u64::try_from(size_of::<T>()).unwrap_or(u64::MAX).max(1);
    let mut count = usize::try_from(bytes / size).unwrap_or(usize::MAX).max(LEAST);
    let mut list = Vec::new();
    while list.try_reserve_exact(count).is_err() {
        count /= 2;
        if count < LEAST {
            return None;
        }
    }
    Some(list)
}

/// The bytes that each logging copy of the jobs of a run may use.
pub fn share(plan: &Plan) -> u64 {
    let copies = plan.copies().filter(|(_, job)| job.logs.first_option().is_some()).count();
    let available = memory::available(&Sysroot::at(Path::new("/"))).map_or(MOST_MEMORY, |bytes| bytes / PART_OF_MEMORY);
    available.min(MOST_MEMORY) / u64::try_from(copies.max(1)).unwrap_or(u64::MAX)
}

#[derive(Debug)]
struct Trace {
    /// When the job began, the ramp included.
    begin: Option<u64>,
    steps: Vec<Step>,
    /// The first step that found no room.
    pub full: Option<u64>,
}

impl Trace {
    /// With room for steps, which does not grow.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { begin: None, steps, full: None }
    }

    pub fn begin(&mut self, now: u64) {
        self.begin.get_or_insert(now);
    }

    fn note(&mut self, step: Step) {
        if self.full.is_some() {
            return;
        }
        if self.steps.len() < self.steps.capacity() {
            self.steps.push(step);
        } else {
            self.full = Some(step.at);
        }
    }

    /// Writes the trace of a job with these files.
    pub fn write(&self, files: &[PathBuf], clock: Hertz, end: u64, out: &mut impl Write) -> io::Result<()> {
        let begin = self.begin.unwrap_or(0);
        let micros = |at: u64| clock.nanos(Ticks(at.saturating_sub(begin))).0 / 1000;
        writeln!(out, "{VERSION_3}")?;
        for action in ["add", "open"] {
            for file in files {
                writeln!(out, "0 {} {action}", file.display())?;
            }
        }
        for Step { at, what } in &self.steps {
            let (file, action, offset, length) = what.fields();
            let Some(file) = files.get(file as usize) else { continue };
            writeln!(out, "{} {} {action} {offset} {length}", micros(*at), file.display())?;
        }
        for file in files {
            writeln!(out, "{} {} close", micros(end), file.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::request_source::Kind;
    use model::plan::LogPlan;

    #[test]
    fn a_full_log_says_when_and_keeps_what_it_has() {
        let logs = LogPlan { iops: Some(String::new()), ..LogPlan::default() };
        let plan = JobPlan { logs, ..JobPlan::default() };
        let mut log = IoLog::new(&plan, Hertz(1e6), 0).unwrap().unwrap();
        log.count_from(1_000_000);
        let room = log.each.as_ref().unwrap().capacity() as u64;
        for number in 0..room + 10 {
            let at = 1_000_000 + number * 1000;
            log.note(&Entry { kind: Kind::Read, offset: 0, length: 1, issued: at, handed: at, done: at });
        }
        assert_eq!(log.each.as_ref().unwrap().len() as u64, room);
        assert_eq!(log.full_after_ms(), Some(room));
        log.count_from(0);
        assert_eq!((log.full_after_ms(), log.each.unwrap().len()), (None, 0));
    }

    #[test]
    fn a_job_without_logs_has_no_memory_for_them() {
        assert!(IoLog::new(&JobPlan::default(), Hertz(1e9), 1 << 20).unwrap().is_none());
    }

    #[test]
    fn a_trace_has_each_request_with_its_time_and_ends_where_the_memory_ends() {
        let mut trace = Trace::new(Vec::with_capacity(3));
        trace.begin(1000);
        trace.begin(5000);
        let request = |kind, offset| What::Io(Request { kind, file: 1, offset, length: 512 });
        let steps =
            [request(Kind::Read, 0), What::Sync(0, Sync::Data), request(Kind::Trim, 4096), request(Kind::Write, 0)];
        steps.into_iter().zip([1500, 2000, 3000, 4000]).for_each(|(what, at)| trace.note(Step { at, what }));
        assert_eq!(trace.full, Some(4000));
        let mut text = Vec::new();
        trace.write(&["/a".into(), "/b".into()], Hertz(1e6), 6000, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "fio version 3 iolog\n0 /a add\n0 /b add\n0 /a open\n0 /b open\n500 /b read 0 512\n1000 /a datasync 0 0\n\
             2000 /b trim 4096 512\n5000 /a close\n5000 /b close\n"
        );
    }
}
