//! The requested placement of the load: `--place`.

use crate::plan::JobPlan;
use crate::plan::value::{self, Wrong};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The requested placement of the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// All threads on one CPU.
    Same,
    /// Each thread on its own CPU, as far as possible.
    Apart,
    /// All threads on these CPUs.
    Cpus(Vec<u32>),
}

impl Place {
    pub const FORM: &'static str = "same, apart, or CPUs such as 0,2-3";

    /// Parses `--place`.
    ///
    /// # Errors
    /// The accepted values, in words.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        match text {
            "same" => Ok(Self::Same),
            "apart" => Ok(Self::Apart),
            cpus => value::cpus(cpus)
                .map(Self::Cpus)
                .map_err(|_| Wrong::because(text, format_args!("is not a placement: expected {}", Self::FORM))),
        }
    }

    /// Why this placement is impossible for a foreign command.
    pub fn refuses_command(&self) -> Option<String> {
        (*self == Self::Apart).then(|| {
            "--place apart only works with jobs, because the threads of a command cannot be pinned one by one; pin them in \
             the command (taskset), or use --place 0,1"
                .to_owned()
        })
    }

    /// Why this placement is impossible for these jobs: one of them has its own `cpus_allowed`.
    pub fn refuses_jobs<'a>(&self, jobs: impl IntoIterator<Item = &'a JobPlan>) -> Option<String> {
        let job = jobs.into_iter().find(|job| !job.cpus_allowed.is_empty())?;
        Some(format!("--place {self}: job '{}' already sets cpus_allowed; use only one of them", job.name))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Same => formatter.write_str("same"),
            Self::Apart => formatter.write_str("apart"),
            Self::Cpus(cpus) => {
                let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                formatter.write_str(&cpus.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_words_or_cpus() {
        assert_eq!(Place::parse("same"), Ok(Place::Same));
        assert_eq!(Place::parse("apart"), Ok(Place::Apart));
        assert_eq!(Place::parse("0,2-3"), Ok(Place::Cpus(vec![0, 2, 3])));
        assert_eq!(Place::parse("0,2-3").unwrap().to_string(), "0,2,3");
        for wrong in ["", "both", "3-0", "0,", "-1", "99999"] {
            let refused = Place::parse(wrong).unwrap_err().to_string();
            assert!(refused.contains(&format!("'{wrong}'")) && refused.contains("same, apart"), "{refused}");
        }
    }

    #[test]
    fn a_job_with_its_own_cpus_is_not_placed() {
        let job = JobPlan { name: "a".to_owned(), ..JobPlan::default() };
        assert_eq!(Place::Same.refuses_jobs([&job]), None);
        let pinned = JobPlan { name: "b".to_owned(), cpus_allowed: vec![1], ..JobPlan::default() };
        let refused = Place::Same.refuses_jobs([&job, &pinned]).unwrap();
        assert!(refused.contains("job 'b'") && refused.contains("cpus_allowed"), "{refused}");
        assert!(Place::Apart.refuses_command().is_some() && Place::Same.refuses_command().is_none());
    }
}
