//! Blocks that a job reads back while it still writes (`verify_backlog`).

use crate::workload::ROOM_AT_FIRST;
use crate::workload::request_source::{Kind, Request};
use model::plan::JobPlan;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The writes that were not read back yet.
pub struct Backlog {
    writes: VecDeque<Request>,
    most: usize,
    batch: usize,
    /// Of a batch that has begun, the blocks that are still to be read.
    left: usize,
    /// Whether nothing must be in flight before the next step: a block is read after it was written, and written again
    /// after it was read.
    settles: bool,
    /// Tells the payload which reads are these.
    due: Arc<AtomicU64>,
}

/// The next step of a batch.
pub enum Step {
    /// Wait until nothing is in flight.
    Settle,
    Read(Request),
}

impl Backlog {
    /// `None` if the job reads back when it has written everything, or not at all.
    pub fn new(plan: &JobPlan) -> Option<Self> {
        if !plan.verify.reads_between() || !plan.access.writes() {
            return None;
        }
        let most = plan.verify.backlog as usize;
        let batch = plan.verify.batch.map_or(most, |batch| batch as usize);
        let writes = VecDeque::with_capacity(most.saturating_add(1).min(ROOM_AT_FIRST));
        Some(Self { writes, most, batch, left: 0, settles: false, due: Arc::default() })
    }

    /// The counter of the payload that checks what is read.
    pub fn tell(&mut self, due: Arc<AtomicU64>) {
        self.due = due;
    }

    pub fn note_written(&mut self, request: &Request) {
        self.writes.push_back(*request);
    }

    /// The next step of a batch, if one is due or has begun.
    pub fn step(&mut self) -> Option<Step> {
        if self.left == 0 && self.writes.len() >= self.most && !self.settles {
            (self.left, self.settles) = (self.batch.min(self.writes.len()), true);
        }
        if std::mem::take(&mut self.settles) {
            return Some(Step::Settle);
        }
        self.left = self.left.checked_sub(1)?;
        let read = self.writes.pop_front()?;
        self.settles = self.left == 0;
        self.due.fetch_add(1, Relaxed);
        Some(Step::Read(Request { kind: Kind::Read, ..read }))
    }

    /// What was not read back when the job has written everything.
    pub fn rest(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.writes).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Access, Verify, VerifyMethod};

    fn backlog(most: u32, batch: Option<u32>) -> Backlog {
        let verify = Verify { method: Some(VerifyMethod::Md5), backlog: most, batch, ..Verify::default() };
        Backlog::new(&JobPlan { access: Access::Write, verify, ..JobPlan::default() }).unwrap()
    }

    /// The steps of eight writes: the offsets of the reads, and `-` where nothing is in flight.
    fn steps(mut backlog: Backlog) -> String {
        let mut text = String::new();
        for offset in 0..8 {
            backlog.note_written(&Request { kind: Kind::Write, file: 0, offset, length: 1 });
            text += "w";
            while let Some(step) = backlog.step() {
                match step {
                    Step::Settle => text += "-",
                    Step::Read(request) => text += &request.offset.to_string(),
                }
            }
        }
        let rest: Vec<String> = backlog.rest().iter().map(|request| request.offset.to_string()).collect();
        format!("{text} {}", rest.concat())
    }

    /// As strace shows of fio 3.33.
    #[test]
    fn batches_are_read_in_the_order_of_their_writes() {
        assert_eq!(steps(backlog(4, None)), "wwww-0123-wwww-4567- ");
        assert_eq!(steps(backlog(4, Some(2))), "wwww-01-ww-23-ww-45- 67");
        assert_eq!(steps(backlog(3, Some(9))), "www-012-www-345-ww 67");
    }
}
