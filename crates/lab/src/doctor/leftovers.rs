//! What killed iotoll processes left behind when their guardians were killed too.

use super::MachineView;
use model::doctor::{Check, State, Topic};

/// Reads their ledgers, and what of it is still in force.
pub(super) fn left_behind(view: &MachineView) -> Check {
    let topic = Topic::LeftBehind;
    match view.left {
        [] => Check::new(topic, State::Good, "nothing left behind by a killed iotoll"),
        left => Check::new(topic, State::Poor, left.join("; "))
            .mend("run iotoll demo (or any run, cost or compare): it first restores what it can, and reports it"),
    }
}
