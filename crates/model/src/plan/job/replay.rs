//! A trace that a job replays.

use crate::plan::value::Wrong;
use serde::{Deserialize, Serialize};

/// What a job replays, and how. With fio's defaults: nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayPlan {
    /// `read_iolog`: copies of the job take turns among these traces.
    pub traces: Vec<String>,
    /// `replay_no_stall`: without the times of the trace.
    pub no_stall: bool,
    /// `replay_time_scale`: the rate, in percent of that of the trace.
    pub time_scale: u32,
    /// `replay_redirect`: the file of all requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// `replay_align`: offsets are rounded down to multiples of this power of 2; 0 leaves them.
    pub align: u64,
    /// `replay_scale`: offsets are divided by this.
    pub scale: u32,
    /// `replay_skip`: what is left out.
    pub skip: Skipped,
}

/// Actions of a trace that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// Trims.
    pub trim: bool,
    /// Syncs.
    pub sync: bool,
}

impl Default for ReplayPlan {
    fn default() -> Self {
        Self {
            traces: Vec::new(),
            no_stall: false,
            time_scale: 100,
            redirect: None,
            align: 0,
            scale: 1,
            skip: Skipped::default(),
        }
    }
}

impl ReplayPlan {
    /// Whether a job replays a trace.
    pub fn is_in_force(&self) -> bool {
        !self.traces.is_empty()
    }

    /// The trace of a copy.
    pub fn trace_of(&self, copy: u32) -> Option<&str> {
        let turn = (copy as usize).checked_rem(self.traces.len())?;
        self.traces.get(turn).map(String::as_str)
    }
}

impl Skipped {
    /// Parses "write,sync".
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        let mut skipped = Self::default();
        for word in text.split(',') {
            match word {
                "read" => skipped.read = true,
                "write" => skipped.write = true,
                "trim" => skipped.trim = true,
                "sync" => skipped.sync = true,
                _ => return Err(Wrong::because(text, "names no action")),
            }
        }
        Ok(skipped)
    }

    /// As it is typed.
    pub(crate) fn text(self) -> Option<String> {
        let given = [(self.read, "read"), (self.write, "write"), (self.trim, "trim"), (self.sync, "sync")];
        let words: Vec<&str> = given.into_iter().filter(|(given, _)| *given).map(|(_, word)| word).collect();
        (!words.is_empty()).then(|| words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_turns_among_traces() {
        let replay = ReplayPlan { traces: vec!["a".to_owned(), "b".to_owned()], ..ReplayPlan::default() };
        assert_eq!([0, 1, 2].map(|copy| replay.trace_of(copy)), [Some("a"), Some("b"), Some("a")]);
        assert_eq!(ReplayPlan::default().trace_of(0), None);
    }

    #[test]
    fn what_is_skipped_has_words() {
        assert_eq!(Skipped::parse("sync,write").unwrap().text().unwrap(), "write,sync");
        assert!(Skipped::parse("flush").is_err());
    }
}
