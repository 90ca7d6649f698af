//! Where threads ran during slices: workers report it themselves, other processes are sampled around each slice.

use super::worker_process::WorkerProcess;
use crate::whereabouts::{PlacementWatch, Workload, summed};
use model::placement::Whereabouts;
use std::collections::BTreeSet;

/// The processes beside the workers, and the number of slices of each case.
pub(super) struct Neighbours {
    placement_watch: PlacementWatch,
    slices: Vec<u32>,
}

impl Neighbours {
    pub fn new(cases: usize) -> Self {
        Self { placement_watch: PlacementWatch::new(Workload::Threads(BTreeSet::new())), slices: vec![0; cases] }
    }

    /// Before a slice starts.
    pub fn before(&mut self, case: usize) {
        // Discard the time since the last slice; the next call covers this slice.
        self.placement_watch.look_at(None, self.looks_around(case));
    }

    /// After a slice has ended: where the workers and the processes beside them ran.
    pub fn after(&mut self, case: usize, worker_process: &WorkerProcess) -> Option<Box<Whereabouts>> {
        let looks_around = self.looks_around(case);
        let beside = self.placement_watch.look_at(None, looks_around)?;
        let servers = if looks_around { self.placement_watch.servers() } else { Vec::new() };
        if let Some(count) = self.slices.get_mut(case) {
            *count = count.saturating_add(1);
        }
        let ran = worker_process.ran().into_iter().chain(beside.ran).collect();
        Some(Box::new(Whereabouts { ran: summed(ran), migrations: None, servers }))
    }

    /// Whether to scan all processes around this slice, which takes longer. Each case has its own server, so this
    /// happens at each case's first slices, and then less and less often.
    fn looks_around(&self, case: usize) -> bool {
        self.slices.get(case).is_some_and(|count| *count == 0 || count.is_power_of_two())
    }
}
