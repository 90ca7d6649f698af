//! The requests of a job in the order in which it issues them, in the format of fio's traces, version 3.

use crate::workload::replay::{Action, VERSION_3};
use crate::workload::request_source::Request;
use model::unit::{Hertz, Ticks};
use std::io::{self, Write};
use std::path::PathBuf;

/// A request or a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    at: u64,
    action: Action,
    file: u32,
    offset: u64,
    length: u32,
}

#[derive(Debug)]
pub(super) struct Trace {
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

    #[inline]
    pub fn note_request(&mut self, request: &Request, at: u64) {
        let action = Action::Io(request.kind);
        self.note(Step { at, action, file: request.file, offset: request.offset, length: request.length });
    }

    pub fn note_sync(&mut self, file: u32, of_data: bool, at: u64) {
        let action = if of_data { Action::DataSync } else { Action::Sync };
        self.note(Step { at, action, file, offset: 0, length: 0 });
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
        for Step { at, action, file, offset, length } in &self.steps {
            let Some(file) = files.get(*file as usize) else { continue };
            writeln!(out, "{} {} {} {offset} {length}", micros(*at), file.display(), action.word())?;
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

    #[test]
    fn a_trace_has_each_request_with_its_time_and_ends_where_the_memory_ends() {
        let mut trace = Trace::new(Vec::with_capacity(3));
        trace.begin(1000);
        trace.begin(5000);
        let request = |kind, offset| Request { kind, file: 1, offset, length: 512 };
        trace.note_request(&request(Kind::Read, 0), 1500);
        trace.note_sync(0, true, 2000);
        trace.note_request(&request(Kind::Trim, 4096), 3000);
        trace.note_request(&request(Kind::Write, 0), 4000);
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
