//! I/O priorities of single requests (`cmdprio_percentage`, `cmdprio_bssplit`).

use super::JobPlan;
use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

/// The class of a priority without one.
const REAL_TIME: u8 = 1;

/// An I/O priority, as ioprio_set(2) has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Priority {
    /// 0 none, 1 real time, 2 best effort, 3 idle.
    pub class: u8,
    /// 0 (highest) to 7.
    pub level: u8,
    /// A hint for the device, 0 to 1023; 0 is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hint: u16,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

impl Priority {
    /// As the kernel has it: the class in bits 13 to 15, the hint in bits 3 to 12, the level in bits 0 to 2.
    pub fn number(self) -> u16 {
        u16::from(self.class & 7) << 13 | (self.hint & 1023) << 3 | u16::from(self.level & 7)
    }
}

impl From<(u8, u8)> for Priority {
    fn from((class, level): (u8, u8)) -> Self {
        Self { class, level, hint: 0 }
    }
}

/// Which requests have another priority than the job's thread. Of reads and writes, in this order: trims have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PriorityPlan {
    /// `cmdprio_percentage`.
    pub percent: [u8; 2],
    /// `cmdprio_class`; 0 means real time.
    pub class: [u8; 2],
    /// `cmdprio`.
    pub level: [u8; 2],
    /// `cmdprio_bssplit`.
    pub splits: [Vec<PriorityShare>; 2],
}

/// A part of the requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PriorityShare {
    /// Their size.
    pub size: Bytes,
    /// The percentage of them that has the priority.
    pub percent: u8,
    /// `None` means `cmdprio_class` and `cmdprio`.
    pub priority: Option<Priority>,
}

impl PriorityPlan {
    /// Whether no option of these is given.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether any request may have a priority of its own.
    pub fn is_in_force(&self) -> bool {
        self.percent.iter().any(|percent| *percent > 0) || self.splits.iter().any(|split| !split.is_empty())
    }

    /// The priority of `cmdprio_class` and `cmdprio`.
    fn usual(&self, direction: usize) -> Priority {
        let of = |values: &[u8; 2]| values.get(direction).copied().unwrap_or(0);
        let class = if of(&self.class) == 0 { REAL_TIME } else { of(&self.class) };
        Priority::from((class, of(&self.level)))
    }

    /// What the requests of a direction have: for a size, or for any, parts in percent with their priority. The rest has that of the thread.
    /// `direction` is 0 for reads and 1 for writes.
    pub fn parts(&self, direction: usize) -> Vec<(Option<Bytes>, u8, Priority)> {
        let usual = self.usual(direction);
        let percent = self.percent.get(direction).copied().filter(|percent| *percent > 0);
        let split = self.splits.get(direction).into_iter().flatten();
        let split = split.map(|share| (Some(share.size), share.percent, share.priority.unwrap_or(usual)));
        percent.map(|percent| (None, percent, usual)).into_iter().chain(split).collect()
    }
}

impl JobPlan {
    /// The priority of requests without one of their own.
    pub fn thread_priority(&self) -> Priority {
        self.thread.io_priority.map(Priority::from).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_kernel() {
        assert_eq!(Priority::from((1, 0)).number(), 0x2000);
        assert_eq!(Priority { class: 2, level: 3, hint: 1 }.number(), 0x400b);
    }

    #[test]
    fn the_class_is_real_time_unless_given() {
        let plan = PriorityPlan { percent: [20, 0], level: [0, 4], class: [0, 2], ..PriorityPlan::default() };
        assert_eq!(plan.parts(0), [(None, 20, Priority::from((1, 0)))]);
        assert!(plan.parts(1).is_empty() && plan.is_in_force());
        let share = |priority| PriorityShare { size: Bytes(4096), percent: 10, priority };
        let splits = [Vec::new(), vec![share(None), share(Some(Priority::from((3, 1))))]];
        let plan = PriorityPlan { percent: [0, 0], splits, ..plan };
        assert_eq!(
            plan.parts(1),
            [(Some(Bytes(4096)), 10, Priority::from((2, 4))), (Some(Bytes(4096)), 10, Priority::from((3, 1)))]
        );
    }
}
