//! Priorities of single requests: only loops of engines that are [`PRIORITIZED`](super::Queue::PRIORITIZED) call this.

use super::super::priorities::Priorities;
use super::Worker;
use crate::workload::request_source::{Kind, Request};
use model::plan::JobPlan;

impl Worker {
    /// Gives its requests priorities, if the job says so.
    pub(crate) fn prioritize(&mut self, plan: &JobPlan, copy: u32) {
        if let Some((priorities, ledgers)) = Priorities::new(plan, copy) {
            (self.priorities, self.ledger.by_priority) = (Some(Box::new(priorities)), ledgers);
        }
    }

    /// The priority of a request; 0 means that of the thread.
    pub(super) fn priority_of(&mut self, slot: u32, request: &Request) -> u16 {
        self.priorities.as_mut().map_or(0, |priorities| priorities.draw(slot, request))
    }

    /// Counts the latency of the request of a slot.
    pub(super) fn count_priority(&mut self, slot: u32, kind: Kind, latency: u64) {
        if let Some(priorities) = &self.priorities {
            priorities.count(slot, kind, latency, &mut self.ledger.by_priority);
        }
    }
}
