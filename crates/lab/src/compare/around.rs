//! Shell commands around a measurement: setup before all, prepare before each execution, cleanup after all.

use super::shell;
use super::team::Patience;
use crate::error::Result;
use crate::interruption::Interruption;
use model::experiment::Around as Plan;
use std::sync::Arc;
use std::time::Duration;

/// A measurement whose setup has run. Its cleanup runs at the end, also when this is dropped.
pub(crate) struct Around {
    plan: Plan,
    patience: Patience,
}

impl Around {
    /// Runs setup. A command that takes longer than `longest` is killed.
    ///
    /// # Errors
    /// When it fails; cleanup has run then.
    pub fn begin(plan: Plan, longest: Duration, interruption: Arc<Interruption>) -> Result<Self> {
        let around = Self { plan, patience: Patience { longest, interruption } };
        match &around.plan.setup {
            Some(setup) => run("setup", setup, &around.patience).map(|()| around),
            None => Ok(around),
        }
    }

    /// Runs prepare.
    ///
    /// # Errors
    /// When it fails: what follows would not be what was asked for.
    pub fn before_execution(&self) -> Result<()> {
        self.plan.prepare.as_ref().map_or(Ok(()), |prepare| run("prepare", prepare, &self.patience))
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
        // An interruption does not shorten this.
        let patience = Patience { interruption: Arc::default(), ..self.patience.clone() };
        run("cleanup", &cleanup, &patience)
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        // What went wrong before is what is reported.
        let _ = self.clean_up();
    }
}

fn run(what: &str, command: &str, patience: &Patience) -> Result<()> {
    let ended = shell::run(what, command, patience)?;
    if ended.success { Ok(()) } else { Err(ended.failure(what, command)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn cleanup_runs_at_the_end_and_when_setup_fails() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let said = |text: &str| Some(format!("echo {text} >> {}", mark.display()));
        let plan = Plan { setup: said("setup"), prepare: said("prepare"), cleanup: said("cleanup") };
        let around = Around::begin(plan.clone(), LONG, Arc::default()).unwrap();
        around.before_execution().unwrap();
        around.before_execution().unwrap();
        around.end().unwrap();
        let log = || std::fs::read_to_string(&mark).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(log(), ["setup", "prepare", "prepare", "cleanup"]);
        let broken = Plan { setup: Some("echo no such thing >&2; exit 3".to_owned()), ..plan };
        let error = Around::begin(broken, LONG, Arc::default()).err().unwrap().to_string();
        assert!(error.contains("setup") && error.contains("no such thing"), "{error}");
        assert_eq!(log().last().unwrap(), "cleanup");
        assert_eq!(log().len(), 5);
    }
}
