//! Whole rounds: each case once, with its own workers, followed by a sync of its written data.

use super::drawn_cpus::Drawn;
use super::{Measured, RoundRunner, at_once};
use crate::error::Result;
use model::comparison::record::{CaseLatency, Schedule};
use model::plan::{Access, Phase};
use model::unit::Nanos;
use std::time::Duration;

/// Long enough that a sync at its end is a small part, short enough for many rounds.
const SLICE: Duration = Duration::from_secs(1);
/// Settings that take longer to switch are switched once per round: shorter slices would be too short for them.
pub(super) const SLOW_SWITCH: Duration = Duration::from_millis(20);
/// Warm-up I/O after a toggle.
const WARM_UP: Duration = Duration::from_millis(100);

/// The schedule of such rounds, with the length `asked` if given; no slice is longer than `longest`.
pub(super) fn schedule(asked: Option<Duration>, longest: Option<Duration>) -> Schedule {
    let slice = asked.unwrap_or(SLICE);
    let slice = longest.map_or(slice, |longest| longest.min(slice));
    Schedule::WholeRounds { slice_nanos: Nanos(u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX)) }
}

impl RoundRunner<'_> {
    /// Measures one round; `None` if it was interrupted.
    pub(super) fn whole_round(&mut self, length: Duration) -> Result<Option<Measured>> {
        let drawn = self.draw_cpus()?;
        let measured = self.round_of_turns(|runner, case| {
            let mut worker_process = runner.worker_process(case, synced)?;
            worker_process.ready()?;
            let _aside = drawn.as_ref().map(Drawn::step_aside).transpose()?;
            let slice = at_once(|| runner.slice(case, &mut worker_process, length, WARM_UP))?;
            Ok((
                slice,
                Some(CaseLatency { case, injected_ns: worker_process.injected(), ticks: worker_process.finish()? }),
            ))
        })?;
        let cpus = drawn.map(|drawn| drawn.cpus).unwrap_or_default();
        Ok(measured.map(|measured| Measured { cpus, ..measured }))
    }
}

/// The kernel writes data back for seconds afterwards; the sync charges that to the job.
fn synced(mut phase: Phase) -> Phase {
    for job in phase.jobs.iter_mut().filter(|job| job.access != Access::Read) {
        job.end_fsync = true;
    }
    phase
}
