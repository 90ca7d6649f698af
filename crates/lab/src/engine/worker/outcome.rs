//! What a worker leaves: errors, and the blocks that are to be read back.

use super::Worker;
use crate::engine::pacing::Backlog;
use crate::error::{Error, Result};
use crate::io_log::IoLog;
use crate::workload::payload::Payload;
use crate::workload::request_source::{Kind, Request, RequestSource};
use model::plan::JobPlan;
use model::record::Verified;
use std::io;

/// What a job wrote and did not read back.
pub struct Written {
    pub payload: Box<Payload>,
    /// Draws the requests of the job again.
    pub source: Option<Box<RequestSource>>,
    /// The number of them.
    pub drawn: u64,
    /// Writes that failed: file and offset.
    pub failed: Vec<(u32, u64)>,
    /// Instead of the source: the last writes, in order.
    pub rest: Vec<Request>,
}

impl Worker {
    /// Sets what the job writes, and how it checks what it reads.
    pub fn carry(&mut self, plan: &JobPlan, payload: Payload) {
        if let Some(backlog) = &mut self.pacing.backlog {
            backlog.tell(payload.due());
        } else if plan.verify.method.is_some() && plan.verify.after && plan.access.writes() {
            self.first = Some(Box::new(self.source.clone()));
        }
        self.payload = Some(Box::new(payload));
    }

    /// Logs its I/Os.
    pub(crate) fn keep_log(&mut self, log: IoLog) {
        self.log = Some(Box::new(log));
    }

    /// What was logged, when the job has ended.
    pub(crate) fn take_log(&mut self) -> Option<IoLog> {
        let mut log = self.log.take()?;
        log.finish(self.ledger.end_ticks);
        Some(*log)
    }

    /// The next run of the engine reads these blocks, which have these numbers.
    pub fn read_back(&mut self, requests: Vec<Request>, numbers: Vec<u64>) {
        if let Some(payload) = &mut self.payload {
            payload.expect(numbers);
        }
        self.source.list(requests);
    }

    /// Blocks that were checked so far; `None` if the job does not verify.
    pub fn verified(&self) -> Option<Verified> {
        self.payload.as_ref().map(|payload| payload.verified).filter(|verified| verified.ios > 0)
    }

    /// What is still to be read back; `None` if the job did not issue all of its requests, as in fio.
    pub fn written(&mut self) -> Option<Written> {
        let (source, rest) = (self.first.take(), self.pacing.backlog.as_mut().map(Backlog::rest));
        if !self.complete || source.is_none() && rest.as_ref().is_none_or(Vec::is_empty) {
            return None;
        }
        let failed = std::mem::take(&mut self.failed_writes);
        let rest = rest.unwrap_or_default();
        Some(Written { payload: self.payload.take()?, source, drawn: self.drawn, failed, rest })
    }

    /// A wrong block is the error of a job, also if the job went on after it; then other jobs go on too.
    pub(super) fn put_back(&mut self, payload: Box<Payload>, outcome: Result<()>) -> Result<()> {
        let (wrong, goes_on) = (payload.complaint(), payload.goes_on());
        self.payload = Some(payload);
        match wrong {
            Some(wrong) if goes_on => outcome.and(Err(Error::WrongBlocks(wrong))),
            Some(wrong) => Err(Error::Failed(wrong)),
            None => outcome,
        }
    }

    #[cold]
    pub(super) fn too_slow(&self, why: String) -> Error {
        Error::job(&self.job, "keeping its rate", io::Error::other(why))
    }

    #[cold]
    pub(super) fn hand_over_failed(&self, error: io::Error) -> Error {
        Error::job(&self.job, "submitting I/O", error)
    }

    /// An I/O moved nothing, or failed: that ends the job, unless its options say that it goes on.
    #[cold]
    pub(super) fn failed(&mut self, request: &Request, result: i32, latency: u64) -> Result<u64> {
        const EIO: u16 = 5;
        if result == 0 && self.moves_nothing {
            self.ledger.count(request.kind, 0, 0, latency);
            return Ok(0);
        }
        let number = u16::try_from(-result).unwrap_or(0);
        let (ignored, goes_on) = match request.kind {
            Kind::Read => (&self.errors.ignored.read, self.errors.goes_on.after_reads()),
            Kind::Write | Kind::Trim => (&self.errors.ignored.write, self.errors.goes_on.after_writes()),
        };
        let error = self.request_failed(request, result);
        if number == 0 || !(ignored.contains(&number) || goes_on && number == EIO) {
            return Err(error);
        }
        self.first_error.get_or_insert_with(|| error.to_string());
        if request.kind == Kind::Write && self.first.is_some() {
            self.failed_writes.push((request.file, request.offset));
        }
        self.ledger.count_error(request.kind, latency);
        Ok(0)
    }

    fn request_failed(&self, request: &Request, result: i32) -> Error {
        let verb = ["read", "write", "trim"][request.kind as usize];
        let what = format!("{verb} of {} bytes at offset {} of file {}", request.length, request.offset, request.file);
        let error = match result {
            0 => io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "nothing was moved: the file ends before (was it truncated?)",
            ),
            error => io::Error::from_raw_os_error(-error),
        };
        Error::job(&self.job, what, error)
    }
}
