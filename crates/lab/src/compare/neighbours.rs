//! Where the threads of slices ran: the workers say it themselves, the processes beside them are sampled around each slice.

use super::team::Team;
use crate::whereabouts::{PlacementWatch, Workload, summed};
use model::placement::Whereabouts;
use std::collections::BTreeSet;

/// The processes beside the workers, and how many slices each case had.
pub(super) struct Neighbours {
    placement_watch: PlacementWatch,
    slices: Vec<u32>,
}

impl Neighbours {
    pub fn new(cases: usize) -> Self {
        Self { placement_watch: PlacementWatch::new(Workload::Threads(BTreeSet::new())), slices: vec![0; cases] }
    }

    /// Before a slice begins.
    pub fn before(&mut self, case: usize) {
        // What it says is of other slices; the next time it is asked it says what this one did.
        self.placement_watch.look_at(None, self.looks_around(case));
    }

    /// After a slice has ended: where the workers and those beside them ran in it.
    pub fn after(&mut self, case: usize, team: &Team) -> Option<Box<Whereabouts>> {
        let looks_around = self.looks_around(case);
        let beside = self.placement_watch.look_at(None, looks_around)?;
        let servers = if looks_around { self.placement_watch.servers() } else { Vec::new() };
        if let Some(count) = self.slices.get_mut(case) {
            *count = count.saturating_add(1);
        }
        let ran = team.ran().into_iter().chain(beside.ran).collect();
        Some(Box::new(Whereabouts { ran: summed(ran), migrations: None, servers }))
    }

    /// Whether all processes are looked at around this slice, which takes longer: a case has its own server, so each case's
    /// first slices, and others more and more seldom.
    fn looks_around(&self, case: usize) -> bool {
        self.slices.get(case).is_some_and(|count| *count == 0 || count.is_power_of_two())
    }
}
