//! Adds up what the programs have written at each reading, since the accounts started.

use super::calibration::split;
use super::instructions::TASK_WORDS;
use std::collections::{BTreeMap, HashMap};

/// Nanoseconds and count of an account; sums wrap, as the kernel's clock may step back by some nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) nanos: u64,
    pub(super) count: u64,
}

impl Sum {
    pub(super) fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.wrapping_add(other.nanos), count: self.count.wrapping_add(other.count) }
    }
}

/// Everything since the start.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// All accounts at the latest closing of each bank.
    closed: [Vec<Sum>; 2],
    /// By process and thread.
    pub(super) tasks: BTreeMap<(u32, u32), TaskTotal>,
    /// The parent of each process that was forked.
    pub(super) parents: HashMap<u32, u32>,
    /// By waker and process.
    pub(super) wakes: HashMap<u64, u64>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TaskTotal {
    pub(super) name: String,
    pub(super) nanos: u64,
    /// Time after the boundary of the latest reading that was read with it.
    ahead: u64,
}

impl Totals {
    /// A bank was closed with these accounts.
    pub(super) fn close(&mut self, bank: usize, accounts: Vec<Sum>) {
        if let Some(closed) = self.closed.get_mut(bank) {
            *closed = accounts;
        }
    }

    /// An account: what each bank had when it was last closed.
    pub(super) fn account(&self, index: usize) -> Sum {
        let closed = self.closed.iter().filter_map(|bank| bank.get(index));
        closed.fold(Sum::default(), |sum, other| sum.plus(*other))
    }

    /// Tasks that were taken out of the kernel's table after `bank` was closed.
    pub(super) fn add_tasks(&mut self, bank: usize, drained: &[(u64, [u64; TASK_WORDS])]) {
        for task in self.tasks.values_mut() {
            task.nanos = task.nanos.wrapping_add(std::mem::take(&mut task.ahead));
        }
        for &(key, [first, second, name @ ..]) in drained {
            let task = self.tasks.entry(split(key)).or_default();
            let (closed, ahead) = if bank == 0 { (first, second) } else { (second, first) };
            task.nanos = task.nanos.wrapping_add(closed);
            task.ahead = task.ahead.wrapping_add(ahead);
            task.name = text(name);
        }
    }

    /// What a closed bank's table of tasks had. Each has an entry, which was made when it got its place.
    pub(super) fn add_places(&mut self, places: &[(u64, u64)]) {
        for &(key, nanos) in places {
            let task = self.tasks.entry(split(key)).or_default();
            task.nanos = task.nanos.wrapping_add(nanos);
        }
    }

    /// Processes that were forked.
    pub(super) fn add_parents(&mut self, drained: &[(u64, [u64; 1])]) {
        self.parents.extend(drained.iter().map(|&(child, [parent])| (split(child).1, split(parent).1)));
    }
}

impl Totals {
    /// Wake-ups since the last reading.
    pub(super) fn add_wakes(&mut self, counts: impl Iterator<Item = (u64, u64)>) {
        for (key, count) in counts {
            let sum = self.wakes.entry(key).or_default();
            *sum = sum.wrapping_add(count);
        }
    }
}

/// A name that ends with 0.
fn text(words: [u64; 2]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(process: u64, first: u64, second: u64) -> (u64, [u64; TASK_WORDS]) {
        let name = u64::from_ne_bytes(*b"server\0\0");
        (process << 32 | process, [first, second, name, 0])
    }

    #[test]
    fn time_after_a_boundary_belongs_to_the_next_reading() {
        let mut totals = Totals::default();
        totals.add_tasks(0, &[entry(7, 100, 5)]);
        assert_eq!(totals.tasks[&(7, 7)].nanos, 100);
        totals.add_tasks(1, &[entry(7, 3, 20)]);
        assert_eq!(totals.tasks[&(7, 7)].nanos, 125);
        // Its last 3 ns were after the second boundary; it did not run since.
        totals.add_tasks(0, &[]);
        assert_eq!(totals.tasks[&(7, 7)].nanos, 128);
        assert_eq!(totals.tasks[&(7, 7)].name, "server");
    }

    #[test]
    fn a_task_has_what_the_tables_of_all_cpus_have() {
        let mut totals = Totals::default();
        totals.add_tasks(0, &[entry(7, 100, 5)]);
        totals.add_places(&[(7 << 32 | 7, 30), (7 << 32 | 7, 4)]);
        totals.add_tasks(1, &[]);
        assert_eq!((totals.tasks[&(7, 7)].nanos, totals.tasks[&(7, 7)].name.as_str()), (139, "server"));
    }

    #[test]
    fn an_account_is_the_sum_of_both_banks_at_their_closing() {
        let mut totals = Totals::default();
        let sum = |nanos| Sum { nanos, count: 1 };
        totals.close(0, vec![sum(10)]);
        assert_eq!(totals.account(0), sum(10));
        totals.close(1, vec![sum(5)]);
        assert_eq!(totals.account(0).nanos, 15);
        totals.close(0, vec![sum(30)]);
        assert_eq!(totals.account(0).nanos, 35);
        assert_eq!(totals.account(1), Sum::default());
    }

    #[test]
    fn parents_stay_known() {
        let mut totals = Totals::default();
        totals.add_parents(&[(8, [7])]);
        totals.add_parents(&[(9, [8])]);
        assert_eq!((totals.parents.get(&8), totals.parents.get(&9)), (Some(&7), Some(&8)));
    }
}
