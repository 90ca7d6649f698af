//! Busy work that is added to I/Os: a known cost.

use super::Worker;
use model::injected::Injected;
use model::plan::JobPlan;
use model::unit::Hertz;
use sys::burner::Burner;
use sys::clock::ticks;

impl Worker {
    /// Measures how long the busy work takes in this thread, if there is any and it is not known yet. Takes some
    /// milliseconds.
    pub fn calibrate(&mut self) {
        if let (Some(burner), None) = (self.inject, self.burnt_ticks) {
            let calibrated = Burner::calibrated(burner.asked_ticks());
            (self.inject, self.burnt_ticks) = (Some(calibrated.burner), Some(calibrated.burnt_ticks));
        }
    }

    /// The busy work added to each I/O; `None` if it is added once in a time.
    pub fn injected(&self, plan: &JobPlan, clock: Hertz) -> Option<Injected> {
        if self.inject_every > 0 {
            return None;
        }
        Some(Injected { asked: plan.inject.as_f64(), burnt: self.burnt_ticks? * 1e9 / clock.0 })
    }

    #[inline(always)]
    pub(super) fn inject(&mut self) {
        if let Some(burner) = self.inject
            && (self.inject_every == 0 || self.inject_is_due())
        {
            burner.burn();
        }
    }

    /// Whether busy work is due now. The times are multiples of the period from the start, so that the period is exact
    /// however late each is.
    fn inject_is_due(&mut self) -> bool {
        let now = ticks();
        let due = now >= self.inject_due;
        if due {
            let missed = now.saturating_sub(self.inject_due) / self.inject_every.max(1);
            self.inject_due = self.inject_due.saturating_add((missed + 1).saturating_mul(self.inject_every));
        }
        due
    }
}
