//! The file of the next request, where files do not simply take turns: `file_service_type`. The rules are fio's.

use super::permutation::{below, split_mix};
use model::plan::{FileService, JobPlan};

/// The files that are in service, and whose turn it is.
#[derive(Clone, Debug)]
pub struct Turn {
    rule: FileService,
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
        let rule = plan.files.service;
        if files < 2 || rule == (FileService::RoundRobin { ios: 1 }) {
            return None;
        }
        let requests = match rule {
            FileService::RoundRobin { ios } | FileService::Random { ios } => ios.into(),
            FileService::Sequential => u64::MAX,
        };
        let mut turn = Self { rule, files, requests, left: 0, active: Vec::with_capacity(files), at: 0, dice: seed };
        turn.begin_pass();
        Some(turn)
    }

    /// All files are to be served again.
    pub fn begin_pass(&mut self) {
        self.left = 0;
        self.at = 0;
        self.active.clear();
        self.active.extend(0..self.files as u32);
    }

    /// The file of the next request; `None` if all are done.
    pub fn choose(&mut self) -> Option<usize> {
        if self.left == 0 && !self.active.is_empty() {
            self.left = self.requests;
            self.at = self.next();
        }
        self.active.get(self.at).map(|file| *file as usize)
    }

    /// Index in `active` of the next file.
    fn next(&mut self) -> usize {
        let count = self.active.len();
        match self.rule {
            FileService::Sequential => 0,
            // The file behind the last one; `at` is not a valid index before the first.
            FileService::RoundRobin { .. } => self.at % count,
            FileService::Random { .. } => below(split_mix(&mut self.dice), count as u64) as usize,
        }
    }

    /// Requests of this turn that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// This number of requests is made of the file that was chosen.
    pub fn spend(&mut self, requests: u64) {
        self.left = self.left.saturating_sub(requests);
        if self.left == 0 && matches!(self.rule, FileService::RoundRobin { .. }) {
            self.at += 1;
        }
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
    use model::plan::FilePlan;

    fn turn(service: FileService, files: usize) -> Option<Turn> {
        let plan = JobPlan { files: FilePlan { service, ..FilePlan::default() }, ..JobPlan::default() };
        Turn::new(&plan, files, 7)
    }

    /// The order of files of this number of blocks each.
    fn order(service: FileService, files: usize, blocks: u64) -> Vec<usize> {
        let mut turn = turn(service, files).unwrap();
        let (mut left, mut order) = (vec![blocks; files], Vec::new());
        while let Some(file) = turn.choose() {
            if left[file] == 0 {
                turn.finish();
                continue;
            }
            left[file] -= 1;
            order.push(file);
            turn.spend(1);
        }
        order
    }

    #[test]
    fn the_order_of_files_is_that_of_fio() {
        assert!(turn(FileService::RoundRobin { ios: 1 }, 9).is_none());
        assert_eq!(order(FileService::RoundRobin { ios: 2 }, 2, 3), [0, 0, 1, 1, 0, 1]);
        assert_eq!(order(FileService::Sequential, 3, 2), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn a_random_order_serves_each_block_once() {
        let order = order(FileService::Random { ios: 3 }, 10, 4);
        assert!((0..10).all(|file| order.iter().filter(|served| **served == file).count() == 4), "{order:?}");
    }
}
