//! Limits of latencies: what ends the job, and what its queue depth follows.

use super::super::pacing::Search;
use super::Worker;
use super::step::Next;
use crate::error::{Error, Result};
use crate::workload::request_source::Kind;
use model::record::DepthSearched;
use std::io;

/// ETIMEDOUT: fio ends a job with it.
const TIMED_OUT: i32 = 110;

impl Worker {
    /// Where the search for a depth is; `None` if the depth of the job stays.
    pub fn searched(&self) -> Option<DepthSearched> {
        self.pacing.search.as_ref().map(|search| search.searched(self.done()))
    }

    /// I/Os that are done, those of a ramp included.
    fn done(&self) -> u64 {
        self.live.ios().saturating_sub(self.done_before)
    }

    /// The job begins to search.
    pub(super) fn begin_search(&mut self, now: u64) {
        self.done_before = self.live.ios();
        if let Some(search) = &mut self.pacing.search {
            search.begin(now, 0);
        }
    }

    /// What the limits ask for instead of the next request.
    pub(super) fn limited(&mut self, now: u64) -> Option<Next> {
        if let Err(error) = self.within_limits() {
            return Some(Next::Fail(Box::new(error)));
        }
        let done = self.done();
        let search = self.pacing.search.as_mut()?;
        // As in fio, nothing is judged before the ramp is over.
        if self.ramping {
            search.begin(now, done);
        } else {
            match search.step(now, done) {
                Search::Nothing => {}
                Search::Settle => return Some(Next::Settle),
                Search::CountAnew => {
                    self.begin_counting(now);
                    return Some(Next::Count);
                }
                Search::Done => return Some(self.finish()),
                Search::Fail => {
                    let what = "latency_target at queue depth 1, which an I/O exceeded";
                    return Some(Next::Fail(Box::new(self.timed_out(what.to_owned()))));
                }
            }
        }
        search.is_full(done).then_some(Next::Full)
    }

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
                return Err(self.timed_out(format!("max_latency={most:.0}us, but a {word} took {slowest:.0} µs")));
            }
        }
        Ok(())
    }

    fn timed_out(&self, what: String) -> Error {
        Error::job(&self.job, what, io::Error::from_raw_os_error(TIMED_OUT))
    }
}
