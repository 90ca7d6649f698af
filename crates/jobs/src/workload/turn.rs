//! The file of the next request, where files do not simply take turns: `file_service_type=random`, as in fio.

use super::permutation::{below, split_mix};
use model::plan::JobPlan;

/// The files that are in service, and whose turn it is.
#[derive(Clone, Debug)]
pub struct Turn {
    files: usize,
    /// Requests of a turn.
    requests: u64,
    /// Of those, the ones that are still to come.
    left: u64,
    /// Files that are not done.
    active: Vec<u32>,
    /// Index in `active` of the file whose turn it is.
    at: usize,
    dice: u64,
}

impl Turn {
    /// `None` if all files take turns after each request.
    pub fn new(plan: &JobPlan, files: usize, seed: u64) -> Option<Self> {
        let requests = plan.files.service.filter(|_| files > 1)?.into();
        let mut turn = Self { files, requests, left: 0, active: Vec::with_capacity(files), at: 0, dice: seed };
        turn.begin_pass();
        Some(turn)
    }

    /// All files are to be served again.
    pub fn begin_pass(&mut self) {
        self.left = 0;
        self.active.clear();
        self.active.extend(0..self.files as u32);
    }

    /// The file of the next request; `None` if all are done.
    pub fn choose(&mut self) -> Option<usize> {
        if self.left == 0 {
            self.left = self.requests;
            self.at = below(split_mix(&mut self.dice), self.active.len() as u64) as usize;
        }
        self.active.get(self.at).map(|file| *file as usize)
    }

    /// Requests of this turn that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// This number of requests is made of the file that was chosen.
    pub fn spend(&mut self, requests: u64) {
        self.left = self.left.saturating_sub(requests);
    }

    /// The file that was chosen has no block left.
    pub fn finish(&mut self) {
        self.left = 0;
        if self.at < self.active.len() {
            self.active.remove(self.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_order_serves_each_block_once() {
        let mut plan = JobPlan::default();
        assert!(Turn::new(&plan, 9, 7).is_none());
        plan.files.service = Some(3);
        let mut turn = Turn::new(&plan, 10, 7).unwrap();
        let (mut left, mut order) = (vec![4; 10], Vec::new());
        while let Some(file) = turn.choose() {
            if left[file] == 0 {
                turn.finish();
                continue;
            }
            left[file] -= 1;
            order.push(file);
            turn.spend(1);
        }
        assert!((0..10).all(|file| order.iter().filter(|served| **served == file).count() == 4), "{order:?}");
    }
}
