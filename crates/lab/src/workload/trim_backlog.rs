//! Which written blocks a job trims (`trim_backlog`). It depends on nothing but the order of the writes, so that what reads the blocks
//! back finds out once more which are trimmed.

use super::ROOM_AT_FIRST;
use super::permutation::{below, split_mix};
use super::request_source::{Kind, Request};
use model::plan::JobPlan;
use std::collections::VecDeque;

/// The blocks that are to be trimmed.
#[derive(Clone, Debug)]
pub(crate) struct TrimBacklog {
    blocks: VecDeque<Request>,
    /// The oldest go when more would be kept than two batches.
    most: usize,
    percent: u64,
    every: u64,
    batch: usize,
    /// Writes since the last batch.
    writes: u64,
    /// Of a batch that has begun, the blocks that are still to be trimmed.
    left: usize,
    /// Nothing must be in flight before the next step.
    settles: bool,
    chance: u64,
}

/// The next step of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait until nothing is in flight.
    Settle,
    Trim(Request),
}

impl TrimBacklog {
    /// `None` if the job trims nothing that it wrote.
    pub fn new(plan: &JobPlan) -> Option<Self> {
        let trims = plan.verify.trims;
        if !plan.verify.trims_blocks() || !plan.access.writes() {
            return None;
        }
        let batch = trims.batch.unwrap_or(trims.backlog) as usize;
        let most = (trims.backlog as usize).saturating_add(batch);
        Some(Self {
            blocks: VecDeque::with_capacity(most.min(ROOM_AT_FIRST)),
            most,
            percent: trims.percent.into(),
            every: trims.backlog.into(),
            batch,
            writes: 0,
            left: 0,
            settles: false,
            chance: 0x7217,
        })
    }

    pub fn note_written(&mut self, request: &Request) {
        self.writes += 1;
        if below(split_mix(&mut self.chance), 100) < self.percent {
            if self.blocks.len() >= self.most {
                self.blocks.pop_front();
            }
            self.blocks.push_back(*request);
        }
    }

    /// The next step of a batch, if one is due or has begun.
    pub fn step(&mut self) -> Option<Step> {
        if self.left == 0 && !self.settles && self.writes >= self.every {
            self.writes = 0;
            self.left = self.batch.min(self.blocks.len());
            self.settles = self.left > 0;
        }
        if std::mem::take(&mut self.settles) {
            return Some(Step::Settle);
        }
        self.left = self.left.checked_sub(1)?;
        let block = self.blocks.pop_front()?;
        // What is written next may be the same block.
        self.settles = self.left == 0;
        Some(Step::Trim(Request { kind: Kind::Trim, ..block }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Access, Verify, VerifyMethod};

    /// The steps of eight writes: `w`, the trimmed blocks, and `-` where nothing is in flight.
    fn steps(percent: u8, backlog: u32, batch: Option<u32>) -> String {
        let trims = model::plan::TrimBacklog { percent, backlog, batch, zeros: true };
        let verify = Verify { method: Some(VerifyMethod::Md5), trims, ..Verify::default() };
        let plan = JobPlan { access: Access::Write, verify, ..JobPlan::default() };
        let mut trims = TrimBacklog::new(&plan).unwrap();
        let mut text = String::new();
        for offset in 0..8 {
            trims.note_written(&Request { kind: Kind::Write, file: 0, offset, length: 1 });
            text += "w";
            while let Some(step) = trims.step() {
                match step {
                    Step::Settle => text += "-",
                    Step::Trim(request) => text += &request.offset.to_string(),
                }
            }
        }
        text
    }

    #[test]
    fn batches_of_written_blocks_are_trimmed_the_oldest_first() {
        assert_eq!(steps(100, 4, None), "wwww-0123-wwww-4567-");
        assert_eq!(steps(100, 4, Some(2)), "wwww-01-wwww-23-");
        assert_eq!(steps(100, 3, Some(9)), "www-012-www-345-ww");
        let some = steps(40, 4, None);
        let trimmed = some.chars().filter(char::is_ascii_digit).count();
        assert!((1..8).contains(&trimmed) && some == steps(40, 4, None), "{some}");
    }
}
