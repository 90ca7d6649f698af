//! What iotolls left behind that were killed together with their guardians.

use super::MachineView;
use model::doctor::{Check, State, Topic};

/// Their ledgers, and what of it is still so.
pub(super) fn left_behind(view: &MachineView) -> Check {
    let topic = Topic::LeftBehind;
    match view.left {
        [] => Check::new(topic, State::Good, "nothing by an iotoll that was killed"),
        left => Check::new(topic, State::Poor, left.join("; "))
            .mend("iotoll demo, or any run, cost or compare: before it begins it puts back what it can, and says what"),
    }
}
