//! How a machine is booted for each arm, and what each boot has to know of where it all began.

use crate::plan::value::Wrong;
use crate::record::Selection;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// How a machine is booted for each arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootPlan {
    /// Boots of each arm: the units of every interval.
    pub each: u32,
    /// A shell command that boots the arm that is next.
    pub hook: Option<String>,
    /// Where and how it was begun; `None` before that.
    #[serde(default)]
    pub begun: Option<Begun>,
}

/// Where and how an experiment was begun: every boot goes on there and so, whoever starts it and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The folder in which it was begun, from the root: names of files in jobs, hooks and test commands are below it.
    pub directory: PathBuf,
    /// Which meters may run.
    pub meters: Selection,
    /// The earlier comparison that it stands beside, as given.
    pub stored: Option<PathBuf>,
}

impl BootPlan {
    /// Boots of each arm unless it is said.
    pub const EACH: u32 = 5;
    /// One boot has no spread; more than these are surely a slip of the hand.
    pub const BOOTS: RangeInclusive<u32> = 2..=100;

    /// Whether it can be booted so.
    ///
    /// # Errors
    /// What cannot be, and what was expected.
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
    fn plans_of_before_know_nothing_of_where_they_began() {
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
