//! Whole rounds: each case once, with workers of its own, ended by a sync of what it wrote.

use super::{Bench, Measured, at_once};
use crate::error::Result;
use model::comparison::record::{CaseLatency, Schedule};
use model::plan::{Access, Phase};
use model::unit::Nanos;
use std::time::Duration;

/// Long enough that a sync at its end is a small part, short enough for many rounds.
const SLICE: Duration = Duration::from_secs(1);
/// I/O after a toggle that does not count.
const GUARD: Duration = Duration::from_millis(100);

/// How such rounds are cut, where a slice must not be longer than this.
pub(super) fn schedule(longest: Option<Duration>) -> Schedule {
    let slice = longest.map_or(SLICE, |longest| longest.min(SLICE));
    Schedule::WholeRounds { slice_nanos: Nanos(u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX)) }
}

impl Bench<'_> {
    /// One round; `None` when it was interrupted.
    pub(super) fn whole_round(&mut self, length: Duration) -> Result<Option<Measured>> {
        self.round_of_turns(|bench, case| {
            let mut team = bench.team(case, synced)?;
            team.ready()?;
            let slice = at_once(|| bench.slice(case, &mut team, length, GUARD))?;
            Ok((slice, Some(CaseLatency { case, injected_ns: team.injected(), ticks: team.finish()? })))
        })
    }
}

/// What was written is on its way to the device for seconds after: it is paid for by who wrote it.
fn synced(mut phase: Phase) -> Phase {
    for job in phase.jobs.iter_mut().filter(|job| job.access != Access::Read) {
        job.end_fsync = true;
    }
    phase
}
