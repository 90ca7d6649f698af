//! The limit of latencies, which ends the job.

use super::Worker;
use crate::error::{Error, Result};
use crate::workload::request_source::Kind;
use std::io;

/// ETIMEDOUT: fio ends a job with it.
const TIMED_OUT: i32 = 110;

impl Worker {
    /// An I/O that took too long ends the job. Those of a ramp do not count.
    ///
    /// # Errors
    /// The first direction with such an I/O.
    pub(super) fn within_limits(&self) -> Result<()> {
        if !self.pacing.has_most || self.ramping {
            return Ok(());
        }
        for kind in Kind::ALL {
            let place = kind as usize;
            let (Some(most), Some(ledger)) = (self.pacing.most.get(place), self.ledger.kinds.get(place)) else {
                continue;
            };
            let slowest = ledger.latency.max();
            if slowest > *most {
                let micros = |ticks| self.clock.nanos(model::unit::Ticks(ticks)).as_f64() / 1e3;
                let word = ["read", "write", "trim"].get(place).copied().unwrap_or_default();
                let (slowest, most) = (micros(slowest), micros(*most));
                let what = format!("max_latency={most:.0}us, but a {word} took {slowest:.0} µs");
                return Err(Error::job(&self.job, what, io::Error::from_raw_os_error(TIMED_OUT)));
            }
        }
        Ok(())
    }
}
