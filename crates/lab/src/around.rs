//! Shell commands around a measurement: setup before all, prepare before each execution, cleanup after all.

use crate::error::{Error, Result};
use crate::guardian::processes::Processes;
use crate::guardian::undo::Undo;
use crate::guardian::{Guardian, UndoGuard};
use crate::shell;
use crate::wait_limit::WaitLimit;
use model::experiment::{Around as Plan, Cell};

/// A measurement whose setup has run. Its cleanup runs at the end, on drop, or when this process is killed.
pub(crate) struct Around {
    plan: Plan,
    limit: WaitLimit,
    processes: Processes,
    /// The guardian runs cleanup if this process is killed.
    guarded: UndoGuard,
}

impl Around {
    /// Runs setup. A command that takes longer than the limit is killed.
    ///
    /// # Errors
    /// When setup fails; cleanup has run by then.
    pub fn begin(plan: Plan, guardian: &Guardian, limit: WaitLimit) -> Result<Self> {
        let guarded = match plan.cleanup.clone().filter(|_| !guardian.is_absent()) {
            Some(command) => {
                let directory = std::env::current_dir()
                    .map_err(|error| Error::instrument("reading the working directory", error))?;
                guardian.arm(Undo::Run { command, directory, longest_seconds: limit.longest.as_secs_f64() })?
            }
            None => UndoGuard::default(),
        };
        let shells = plan.setup.is_some() || plan.prepare.is_some() || plan.cleanup.is_some();
        let processes = if shells { guardian.passing_processes()? } else { Processes::default() };
        let around = Self { plan, limit, processes, guarded };
        match &around.plan.setup {
            Some(setup) => around.run("setup", setup, &around.limit).map(|()| around),
            None => Ok(around),
        }
    }

    /// Runs prepare, with the values of this point of a sweep.
    ///
    /// # Errors
    /// When it fails: the execution would not be the one that the user asked for.
    pub fn before_execution(&self, cell: &Cell) -> Result<()> {
        let Some(prepare) = &self.plan.prepare else { return Ok(()) };
        let prepare = cell.fill_in_shell(prepare).map_err(|why| Error::Refused(format!("prepare: {why}")))?;
        self.run("prepare", &prepare, &self.limit)
    }

    /// Runs cleanup.
    ///
    /// # Errors
    /// When it fails.
    pub fn end(mut self) -> Result<()> {
        self.clean_up()
    }

    fn clean_up(&mut self) -> Result<()> {
        let Some(cleanup) = self.plan.cleanup.take() else { return Ok(()) };
        let limit = self.limit.to_the_end();
        let cleaned = self.run("cleanup", &cleanup, &limit);
        self.guarded = UndoGuard::default();
        cleaned
    }

    fn run(&self, what: &str, command: &str, limit: &WaitLimit) -> Result<()> {
        let ended = shell::run(what, command, limit, &self.processes)?;
        if ended.success { Ok(()) } else { Err(ended.failure(what, command)) }
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        // The earlier error is the one to report.
        let _ = self.clean_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn limit() -> WaitLimit {
        WaitLimit::new(None, Arc::default())
    }

    #[test]
    fn cleanup_runs_at_the_end_and_when_setup_fails() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let append = |text: &str| Some(format!("echo {text} >> {}", mark.display()));
        let plan = Plan { setup: append("setup"), prepare: append("prepare{n}"), cleanup: append("cleanup") };
        let around = Around::begin(plan.clone(), &Guardian::default(), limit()).unwrap();
        around.before_execution(&Cell::default()).unwrap();
        around.before_execution(&Cell { values: [("n".to_owned(), "4".to_owned())].into() }).unwrap();
        around.end().unwrap();
        let log = || std::fs::read_to_string(&mark).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(log(), ["setup", "prepare{n}", "prepare4", "cleanup"]);
        let broken = Plan { setup: Some("echo no such thing >&2; exit 3".to_owned()), ..plan };
        let error = Around::begin(broken, &Guardian::default(), limit()).err().unwrap().to_string();
        assert!(error.contains("setup") && error.contains("no such thing"), "{error}");
        assert_eq!(log().last().unwrap(), "cleanup");
        assert_eq!(log().len(), 5);
    }
}
