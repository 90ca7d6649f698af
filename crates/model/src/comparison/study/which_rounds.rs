//! Which rounds the answer uses: those of the last regime, without the warm-up.

use super::View;
use super::regimes::Regimes;
use super::warm_up::{self, WarmUp};
use crate::comparison::record::{CompareRecord, Header, RoundRecord, Schedule};
use crate::measured::Rounds;
use crate::record::Meter;
use crate::slice::rounds::{Choice, MeasuredSlices};

/// What the slices of these rounds of a record measured, by a meter that is chosen so.
pub(super) fn measured(header: &Header, choice: Choice, rounds: &[RoundRecord]) -> MeasuredSlices {
    let (cases, counter) = (header.experiment.cases.len(), header.work_counter.as_ref());
    MeasuredSlices::of(cases, &header.host, counter, (choice, rounds))
}

/// A record, divided into what the answer uses and what it does not.
pub(crate) struct RoundsOfTheAnswer<'a> {
    /// The rounds that the answer uses: those after the warm-up.
    pub(super) view: View<'a>,
    /// What they measured.
    pub(super) slices: MeasuredSlices,
    /// What all rounds measured.
    pub(super) whole: MeasuredSlices,
    pub(super) regimes: Regimes,
    pub(super) warm_up: WarmUp,
}

impl<'a> RoundsOfTheAnswer<'a> {
    /// With the first meter that read every slice.
    pub fn of(record: &'a CompareRecord) -> Self {
        let all = View::of(record);
        let whole = measured(all.header, Choice::AllRounds, all.rounds);
        // Across boots there are no regimes: each boot is a round, and its speed may differ.
        let regimes = match record.header.schedule {
            Schedule::Boots => Regimes::default(),
            schedule => Regimes::of(&whole.rounds, schedule),
        };
        let last = all.after(regimes.left_out());
        let warm_up = warm_up::warm_up(last);
        let view = last.after(warm_up.rounds);
        Self { view, slices: whole.after(view.skipped), whole, regimes, warm_up }
    }

    /// What the rounds of the answer measured.
    pub fn rounds(self) -> Rounds {
        self.slices.rounds
    }

    /// The same by another meter.
    pub fn rounds_by(&self, meter: Option<Meter>) -> Rounds {
        measured(self.view.header, Choice::Fixed(meter), self.view.rounds).rounds
    }

    /// Whether one regime gives an answer.
    pub fn answers(&self) -> bool {
        self.regimes.answers()
    }
}
