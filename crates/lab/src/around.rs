//! Shell commands around a measurement: setup before all, prepare before each execution, cleanup after all.

use crate::error::{Error, Result};
use crate::guardian::processes::Processes;
use crate::guardian::undo::Undo;
use crate::guardian::{Guardian, Held};
use crate::interruption::Interruption;
use crate::shell;
use crate::wait_limit::WaitLimit;
use model::experiment::Around as Plan;
use std::sync::Arc;
use std::time::Duration;

/// A measurement whose setup has run. Its cleanup runs at the end, also when this is dropped, or when this process is killed.
pub(crate) struct Around {
    plan: Plan,
    limit: WaitLimit,
    processes: Processes,
    /// The guardian runs cleanup in our place.
    guarded: Held,
}

impl Around {
    /// Runs setup. A command that takes longer than `longest` is killed.
    ///
    /// # Errors
    /// When it fails; cleanup has run then.
    pub fn begin(plan: Plan, guardian: &Guardian, longest: Duration, interruption: Arc<Interruption>) -> Result<Self> {
        let guarded = match plan.cleanup.clone().filter(|_| !guardian.is_absent()) {
            Some(command) => {
                let directory =
                    std::env::current_dir().map_err(|error| Error::instrument("the working folder", error))?;
                guardian.arm(Undo::Run { command, directory, longest_seconds: longest.as_secs_f64() })?
            }
            None => Held::default(),
        };
        let shells = plan.setup.is_some() || plan.prepare.is_some() || plan.cleanup.is_some();
        let processes = if shells { guardian.passing_processes()? } else { Processes::default() };
        let around = Self { plan, limit: WaitLimit::new(longest, interruption), processes, guarded };
        match &around.plan.setup {
            Some(setup) => around.run("setup", setup, &around.limit).map(|()| around),
            None => Ok(around),
        }
    }

    /// Runs prepare.
    ///
    /// # Errors
    /// When it fails: what follows would not be what was asked for.
    pub fn before_execution(&self) -> Result<()> {
        self.plan.prepare.as_ref().map_or(Ok(()), |prepare| self.run("prepare", prepare, &self.limit))
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
        self.guarded = Held::default();
        cleaned
    }

    fn run(&self, what: &str, command: &str, limit: &WaitLimit) -> Result<()> {
        let ended = shell::run(what, command, limit, &self.processes)?;
        if ended.success { Ok(()) } else { Err(ended.failure(what, command)) }
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        // What went wrong before is what is reported.
        let _ = self.clean_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn cleanup_runs_at_the_end_and_when_setup_fails() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let append = |text: &str| Some(format!("echo {text} >> {}", mark.display()));
        let plan = Plan { setup: append("setup"), prepare: append("prepare"), cleanup: append("cleanup") };
        let around = Around::begin(plan.clone(), &Guardian::default(), LONG, Arc::default()).unwrap();
        around.before_execution().unwrap();
        around.before_execution().unwrap();
        around.end().unwrap();
        let log = || std::fs::read_to_string(&mark).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(log(), ["setup", "prepare", "prepare", "cleanup"]);
        let broken = Plan { setup: Some("echo no such thing >&2; exit 3".to_owned()), ..plan };
        let error = Around::begin(broken, &Guardian::default(), LONG, Arc::default()).err().unwrap().to_string();
        assert!(error.contains("setup") && error.contains("no such thing"), "{error}");
        assert_eq!(log().last().unwrap(), "cleanup");
        assert_eq!(log().len(), 5);
    }
}
