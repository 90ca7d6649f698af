//! What a job runs its loop with: its engine, and around it what the job asks for beside its I/O. Each combination is compiled as a loop of
//! its own, so that a job without any of it runs the bare loop.

use super::super::carrying::Carrying;
use super::super::logging::Logging;
use super::super::traits::{Perform, Queue};
use super::Worker;
use crate::error::Result;

impl Worker {
    /// Runs with an engine that performs each request at once.
    ///
    /// # Errors
    /// The first request that fails ends the job.
    pub fn run_direct<E: Perform>(&mut self, engine: &mut E) -> Result<()> {
        let outcome = match self.log.take() {
            None => self.direct_with_payload(engine),
            Some(mut log) => {
                let outcome = self.direct_with_payload(&mut Logging::new(engine, &mut log, 0));
                self.log = Some(log);
                outcome
            }
        };
        let outcome = outcome.or_else(|error| self.filled(error)).and_then(|()| self.within_limits());
        self.syscalls = self.since_counting(engine.syscalls());
        outcome
    }

    fn direct_with_payload<E: Perform>(&mut self, engine: &mut E) -> Result<()> {
        match self.payload.take() {
            None => self.direct_loop(engine),
            Some(mut payload) => {
                let outcome = self.direct_loop(&mut Carrying::new(engine, &mut payload, 0));
                self.put_back(payload, outcome)
            }
        }
    }

    /// Runs with an engine that has several requests in flight.
    ///
    /// # Errors
    /// The first request that fails ends the job, after the I/Os in flight.
    pub fn run_queued<E: Queue>(&mut self, engine: &mut E) -> Result<()> {
        let outcome = match self.log.take() {
            None => self.queued_with_payload(engine),
            Some(mut log) => {
                let outcome = self.queued_with_payload(&mut Logging::new(engine, &mut log, self.depth.in_flight));
                self.log = Some(log);
                outcome
            }
        };
        let outcome = outcome.or_else(|error| self.filled(error)).and_then(|()| self.within_limits());
        self.syscalls = self.since_counting(engine.syscalls());
        outcome
    }

    fn queued_with_payload<E: Queue>(&mut self, engine: &mut E) -> Result<()> {
        match self.payload.take() {
            None => self.queued_loop(engine),
            Some(mut payload) => {
                let outcome = self.queued_loop(&mut Carrying::new(engine, &mut payload, self.depth.in_flight));
                self.put_back(payload, outcome)
            }
        }
    }
}
