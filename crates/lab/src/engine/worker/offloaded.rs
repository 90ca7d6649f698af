//! A loop that hands its I/Os to other threads, and the requests of such a thread.

use super::super::offload::{Feed, Pool};
use super::super::posixaio::Share;
use super::step::Next;
use super::{InFlight, Worker};
use crate::error::{Error, Result};
use crate::workload::request_source::{Kind, Request};
use model::unit::Nanos;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::clock::{ThreadClock, ticks};

/// Longest reaction time to a stop.
const NAP: Duration = Duration::from_millis(50);

/// Threads that perform the I/Os of a job.
pub(super) enum Helpers {
    /// Its own.
    Pool(Arc<Pool>),
    /// Those of the C library: its part of them.
    Library(Arc<Share>),
}

impl Helpers {
    fn nanos(&self) -> u64 {
        match self {
            Self::Pool(pool) => pool.nanos(),
            Self::Library(share) => share.nanos(),
        }
    }

    fn clocks(&self) -> &[(u32, ThreadClock)] {
        match self {
            Self::Pool(pool) => pool.clocks(),
            // These come and go.
            Self::Library(_) => &[],
        }
    }
}

impl Worker {
    /// Gets its requests from a job instead of drawing them.
    pub(in super::super) fn take_from(&mut self, feed: Feed) {
        self.feed = Some(Box::new(feed));
        self.paced = true;
    }

    /// The next request of the job. The last one has completed.
    #[cold]
    pub(super) fn fed(&mut self, now: u64) -> Next {
        let moved = self.ledger.kinds.iter().map(|kind| kind.bytes).sum();
        let request = self.feed.as_mut().and_then(|feed| feed.next(moved, now));
        request.map_or(Next::Done, Next::Issue)
    }

    /// CPU time of this thread and of those that perform its I/Os.
    pub fn all_nanos(&self) -> Nanos {
        let helpers = self.helpers.as_ref().map_or(0, Helpers::nanos);
        Nanos(sys::clock::own_thread_nanos().saturating_add(helpers))
    }

    /// The threads that perform its I/Os.
    pub(super) fn clocks_of_helpers(&self) -> &[(u32, ThreadClock)] {
        self.helpers.as_ref().map_or(&[], Helpers::clocks)
    }

    fn help(&mut self, helpers: Helpers) {
        self.helpers = Some(helpers);
        // What the kernel counts for a thread would be that of this one alone.
        self.reads_usage = false;
    }

    /// Threads of the C library perform the I/Os.
    pub(in super::super) fn helped_by_library(&mut self, share: &Arc<Share>) {
        self.help(Helpers::Library(share.clone()));
    }

    /// Runs with threads that perform the I/Os. They end with this worker.
    ///
    /// # Errors
    /// The first request that fails ends the job, after the I/Os in flight.
    pub(in super::super) fn run_offloaded(&mut self, pool: &Arc<Pool>) -> Result<()> {
        self.help(Helpers::Pool(pool.clone()));
        let outcome = self.offloaded_loop(pool).and_then(|()| self.within_limits());
        outcome.or_else(|error| self.filled(error))
    }

    fn offloaded_loop(&mut self, pool: &Pool) -> Result<()> {
        let depth = pool.depth();
        let nothing = InFlight { request: Request { kind: Kind::Read, file: 0, offset: 0, length: 0 }, stamp: 0 };
        let mut table = vec![nothing; depth as usize];
        let mut free: Vec<u32> = (0..depth).rev().collect();
        let mut stamp = self.begin();
        let mut outcome = None;
        loop {
            let completed = pool.completed();
            if let Err(error) = self.take_completions(pool, &table, &mut free) {
                outcome.get_or_insert(Err(error));
            }
            if free.len() == depth as usize
                && let Some(outcome) = outcome.take()
            {
                self.ledger.end_ticks = ticks();
                return outcome;
            }
            let Some(&slot) = free.last().filter(|_| outcome.is_none()) else {
                pool.wait(completed, NAP);
                stamp = ticks();
                continue;
            };
            match self.next(stamp) {
                Next::Issue(request) => {
                    free.pop();
                    self.inject();
                    stamp = ticks();
                    if let Some(entry) = table.get_mut(slot as usize) {
                        *entry = InFlight { request, stamp };
                    }
                    pool.hand_over(slot, &request);
                }
                Next::Pause(rest) => {
                    while ticks() < rest.busy_until && !self.control.stopped() {
                        std::hint::spin_loop();
                    }
                    let spun = self.clock.nanos(model::unit::Ticks(rest.busy_until.saturating_sub(stamp))).duration();
                    let end = Instant::now() + rest.duration.saturating_sub(spun);
                    let mut completed = completed;
                    while !self.control.stopped() && outcome.is_none() {
                        let left = end.saturating_duration_since(Instant::now());
                        if left.is_zero() {
                            break;
                        }
                        pool.wait(completed, left.min(NAP));
                        completed = pool.completed();
                        if let Err(error) = self.take_completions(pool, &table, &mut free) {
                            outcome = Some(Err(error));
                        }
                    }
                    stamp = ticks();
                }
                Next::Fail(error) => outcome = Some(Err(*error)),
                Next::Done => outcome = Some(Ok(())),
                Next::Count | Next::Settle => {}
                // Parsing has refused what asks for these.
                Next::Sync | Next::Open(_) | Next::Full => {
                    let why = std::io::Error::from(std::io::ErrorKind::Unsupported);
                    outcome = Some(Err(Error::job(&self.job, "offloading a sync, an opening or a search", why)));
                }
            }
        }
    }

    fn take_completions(&mut self, pool: &Pool, table: &[InFlight], free: &mut Vec<u32>) -> Result<()> {
        let mut failure = None;
        pool.take(|slot, result, end| {
            let Some(entry) = table.get(slot as usize) else { return };
            free.push(slot);
            match self.count(&entry.request, result, end.saturating_sub(entry.stamp)) {
                Ok(moved) => self.live.add(1, moved),
                Err(error) => failure = failure.take().or(Some(error)),
            }
            self.ledger.end_ticks = self.ledger.end_ticks.max(end);
        });
        failure.map_or(Ok(()), Err)
    }
}
