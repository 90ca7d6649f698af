//! How the machine is booted for each arm, and what each boot needs to know about the start of the experiment.

use crate::plan::value::Wrong;
use crate::record::Selection;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// How the machine is booted for each arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootPlan {
    /// Number of boots of each arm. Boots are the units of every interval.
    pub each: u32,
    /// A shell command that boots the next arm.
    pub hook: Option<String>,
    /// Where and how the experiment was started. `None` until then.
    pub begun: Option<Begun>,
}

/// Where and how an experiment was started. Every boot continues there, independent of its own working directory and
/// flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The absolute path of the directory in which it was started. File names in jobs, hooks and test commands are
    /// relative to it.
    pub directory: PathBuf,
    /// Which meters may run.
    pub meters: Selection,
    /// The earlier comparison to show beside it, as given.
    pub stored: Option<PathBuf>,
}

impl BootPlan {
    /// Default number of boots of each arm.
    pub const EACH: u32 = 5;
    /// One boot has no spread. More than 100 is probably a typing error.
    pub const BOOTS: RangeInclusive<u32> = 2..=100;

    /// Checks the plan.
    ///
    /// # Errors
    /// What is out of range, and what was expected.
    pub fn check(&self) -> Result<(), Wrong> {
        let (fewest, most) = (Self::BOOTS.start(), Self::BOOTS.end());
        match self.each {
            each if Self::BOOTS.contains(&each) => Ok(()),
            each => Err(Wrong::new(format!("boots = {each}: expected {fewest} to {most}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Meter;

    #[test]
    fn old_plans_have_no_start() {
        let plan: BootPlan = serde_json::from_str(r#"{"each":5,"hook":null}"#).unwrap();
        assert_eq!((plan.begun.as_ref(), plan.check()), (None, Ok(())));
        let begun = Begun { directory: "/srv/x".into(), meters: Selection::Only(vec![Meter::Idle]), stored: None };
        let plan = BootPlan { begun: Some(begun), ..plan };
        let again: BootPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(again, plan);
    }

    #[test]
    fn too_few_and_too_many_boots_are_refused() {
        for each in [0, 1, 101, u32::MAX] {
            let why = BootPlan { each, hook: None, begun: None }.check().unwrap_err().to_string();
            assert!(why.contains(&format!("boots = {each}: expected 2 to 100")), "{why}");
        }
    }
}
