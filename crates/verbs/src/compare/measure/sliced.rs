//! Rounds of sliced commands: every command of a cell is started frozen, and they take turns, one thawed at a time.

use super::drawn_cpus::{Deck, Drawn};
use super::rehearsal::Rehearsal;
use super::sliced_command::{Gone, SlicedCommand};
use super::work_counter::{Source, counted};
use super::{RoundRunner, Tasks};
use crate::compare::record::{CommandReading, CommandTotal, RoundRecord, Schedule, SliceReading, SliceRecord};
use lab::canary;
use lab::error::{Error, Result};
use lab::freezer::{Freezable, Freezer};
use model::experiment::{Slices, Work, hindrance};
use model::unit::Nanos;
use model::warning::{Code, Warning, add_once};
use std::time::{Duration, Instant};

/// Length of a slice. Measured on identical programs: docs/method/commands.md.
const SLICE: Duration = Duration::from_millis(50);
/// Discarded time after each switch, as a part of a slice: caches and queues belong to the command again after it.
const GUARD_SHARE: u32 = 10;
/// Least discarded time.
const LEAST_GUARD: Duration = Duration::from_millis(5);
/// Approximate length of a round, without its start. A round with its start is shorter than the life that the rehearsal
/// has seen.
const ROUND: Duration = Duration::from_millis(2000);
/// More blocks per round gain less than another round.
const MOST_BLOCKS: u32 = 100;
/// A command at work has at least this part of the rate that the rehearsal saw.
const AT_WORK: f64 = 0.5;
/// The rate of a starting command is taken over this time.
const START_WINDOW: Duration = Duration::from_millis(50);
/// Time that a command runs after it is at work, before the first slice.
const SETTLE: Duration = Duration::from_millis(50);
/// Least time that a command has to be at work; more if the rehearsal took longer.
const LEAST_START_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What commands that take turns need during all rounds.
pub(super) struct SlicedCommands {
    /// One for each command of a cell. Dropped before the freezer, which removes their groups.
    places: Vec<Freezable>,
    _freezer: Freezer,
    pub rehearsed: Rehearsal,
    /// The turns so far of the command of each case; a command of several cases has them at the first.
    turns: Vec<Turns>,
}

/// The part of the rate that is still asked for after a part of the timeout. In the first half, a command still starts, as it did
/// in the rehearsal; one that is slower for longer has neighbours that the rehearsal did not have.
fn patience(elapsed: f64) -> f64 {
    const LEAST: f64 = 0.1;
    (2.0 - 2.0 * elapsed).clamp(LEAST, 1.0)
}

impl RoundRunner<'_> {
    /// How rounds of commands are cut.
    pub(super) fn schedule_of_commands(&mut self) -> Result<Schedule> {
        let rules = self.experiment.rules.clone();
        let experiment = self.experiment;
        let arms = &experiment.arms;
        let asked = match rules.slices {
            Slices::Off => return Ok(Schedule::Executions),
            Slices::Of(seconds) => Some(Duration::from_secs_f64(seconds)),
            Slices::Auto => None,
        };
        if rules.states_work() {
            return self.executions(asked, "--ios and --bytes are of whole executions");
        }
        let all_commands = self.experiment.cases.iter().all(|case| matches!(case.work, Work::Command(_)));
        if arms.len() < 2 || !all_commands {
            return Ok(Schedule::Executions);
        }
        let prepared = self.experiment.around.prepare.is_some() && asked.is_none();
        if let Some(why) = hindrance(arms, prepared) {
            return self.executions(asked, &why);
        }
        let freezer = Freezer::open(&self.settings.guardian)?;
        let mut places = Vec::new();
        let most = (0..self.experiment.cells.len()).map(|cell| self.commands_of(cell).len()).max().unwrap_or(0);
        for number in 0..most {
            places.push(freezer.place(&format!("command{number}"), self.settings.guardian.processes()?));
        }
        let rehearsed = match self.rehearse_commands(&mut places)? {
            Ok(rehearsal) => rehearsal,
            Err(why) => return self.executions(asked, &why),
        };
        let slice = asked.unwrap_or(SLICE.max(self.meters.shortest_slice()));
        let guard = LEAST_GUARD.max(slice / GUARD_SHARE);
        let turns = u32::try_from(arms.len()).unwrap_or(u32::MAX).saturating_add(1);
        let block = (slice + guard) * turns;
        let blocks = (ROUND.as_secs_f64() / block.as_secs_f64()).floor().clamp(1.0, MOST_BLOCKS.into()) as u32;
        let one_cpu = experiment.place.is_none() && experiment.services.is_empty() && rehearsed.shares_a_cpu;
        self.deck = one_cpu.then(Deck::default);
        self.sliced = Some(SlicedCommands {
            places,
            _freezer: freezer,
            rehearsed,
            turns: vec![Turns::default(); experiment.cases.len()],
        });
        Ok(Schedule::SlicedCommands { slice_nanos: Nanos::from(slice), guard_nanos: Nanos::from(guard), blocks })
    }

    /// Whole executions, because slices are not possible. That is an error if the user asked for slices.
    fn executions(&mut self, asked: Option<Duration>, why: &str) -> Result<Schedule> {
        if asked.is_some() {
            return Err(Error::Refused(format!("--slices: {why}; leave it out, or use --slices off")));
        }
        let message = format!(
            "each slice is a whole execution of a command, because {why}; slices of commands that keep running answer in a \
             fraction of the time"
        );
        add_once(&mut self.warnings, Warning::new(Code::ExecutionsOnly, message));
        Ok(Schedule::Executions)
    }

    /// The cases of a cell by the command that runs for them: arms that differ only by settings share one.
    pub(super) fn commands_of(&self, cell: usize) -> Vec<Vec<usize>> {
        let mut commands: Vec<Vec<usize>> = Vec::new();
        for (place, case) in self.experiment.cases.iter().enumerate().filter(|(_, case)| case.cell == cell) {
            let Work::Command(words) = &case.work else { continue };
            let toggled = |place: usize| {
                let arm = self.experiment.cases.get(place).and_then(|case| self.experiment.arms.get(case.arm));
                arm.is_some_and(|arm| !arm.settings.is_empty())
            };
            let shared = commands.iter_mut().find(|cases| {
                let same = |other: &usize| {
                    let other = self.experiment.cases.get(*other);
                    other.is_some_and(|other| matches!(&other.work, Work::Command(theirs) if theirs == words))
                };
                cases.iter().all(same) && (toggled(place) || cases.iter().any(|other| toggled(*other)))
            });
            match shared {
                Some(cases) => cases.push(place),
                None => commands.push(vec![place]),
            }
        }
        commands
    }

    /// Starts every command of a cell in random order, frozen, on this CPU or where `--place` puts them.
    pub(super) fn start_commands<'a>(
        &mut self,
        cell: usize,
        places: &'a mut [Freezable],
        chosen: Option<&Source>,
        cpus: Option<&[u32]>,
    ) -> Result<Vec<SlicedCommand<'a>>> {
        let commands = self.commands_of(cell).into_iter().zip(places);
        let mut started = Vec::new();
        let cpus = cpus.unwrap_or(self.session.placing.of(0)).to_vec();
        for (cases, place) in self.shuffler.shuffled(commands) {
            let Some(&first) = cases.first() else { continue };
            self.session.around.prepare(&self.cell(first))?;
            let (name, plan) = (self.name(first), self.command_plan(first));
            let cpus = cpus.as_slice();
            let alone = cases.len() == 1;
            let start = move |_: &mut Self| SlicedCommand::start(&name, cases, &plan, cpus, place, chosen);
            // A command of several arms starts without their settings.
            started.push(if alone { self.switched(first, start)? } else { start(self)? });
        }
        Ok(started)
    }

    /// Measures one round.
    pub(super) fn round_of_sliced_commands(
        &mut self,
        slice: Duration,
        guard: Duration,
        blocks: u32,
    ) -> Result<RoundRecord> {
        let Some(mut sliced) = self.sliced.take() else {
            return Err(Error::Refused("sliced commands need a rehearsal".to_owned()));
        };
        let drawn = self.deck.as_mut().map(|deck| deck.draw(1, &mut self.shuffler)).transpose()?;
        let cpus = drawn.as_ref().map(|drawn| drawn.cpus.clone()).unwrap_or_default();
        let mut measured = RoundRecord { cpus, ..RoundRecord::default() };
        let cells = self.shuffler.shuffled(0..self.experiment.cells.len());
        let outcome = cells.into_iter().try_for_each(|cell| {
            self.round_of_cell(cell, drawn.as_ref(), &mut sliced, (slice, guard, blocks), &mut measured)
        });
        self.sliced = Some(sliced);
        outcome.map(|()| measured)
    }

    /// Measures one cell, with its commands on one CPU if there is one.
    fn round_of_cell(
        &mut self,
        cell: usize,
        drawn: Option<&Drawn>,
        sliced: &mut SlicedCommands,
        (slice, guard, blocks): (Duration, Duration, u32),
        measured: &mut RoundRecord,
    ) -> Result<()> {
        let SlicedCommands { places, rehearsed: Rehearsal { source, paces, .. }, turns: histories, .. } = sliced;
        let mut commands = self.start_commands(cell, places, Some(source), drawn.map(|drawn| drawn.cpus.as_slice()))?;
        let _aside = drawn.map(Drawn::step_aside).transpose()?;
        // The rehearsal chose no CPU; this one may be slower.
        let part = if drawn.is_some() { AT_WORK / 2.0 } else { AT_WORK };
        for command in &mut commands {
            self.at_work(command, source, paces, part)?;
            self.meters.follow(command.process());
        }
        let turns: Vec<Option<(usize, usize)>> = commands
            .iter()
            .enumerate()
            .flat_map(|(place, command)| command.cases.iter().map(move |case| Some((place, *case))))
            .chain([None])
            .collect();
        for _ in 0..blocks {
            for turn in self.shuffler.shuffled(turns.iter().copied()) {
                self.heed()?;
                let Some((place, case)) = turn else {
                    std::thread::sleep(guard);
                    // With the same readings as in a slice.
                    let mut first = commands.first_mut();
                    let look = || _ = first.as_deref_mut().map(|command| command.read(source));
                    measured.slices.push(self.alone(slice, Tasks::Unread, look));
                    continue;
                };
                let Some(command) = commands.get_mut(place) else { continue };
                let history = command.cases.first().and_then(|first| histories.get_mut(*first));
                let measure = |runner: &mut Self| runner.command_slice(case, command, source, (slice, guard), history);
                measured.slices.push(self.switched(case, measure)?);
                still_there(&mut commands)?;
            }
            commands.iter_mut().for_each(SlicedCommand::look_around);
        }
        for command in &commands {
            let history = command.cases.first().and_then(|first| histories.get(*first));
            if let Some(times) = history.and_then(Turns::catch_up) {
                return Err(Error::Misleading(format!(
                    "{} does {times:.1} times as much work right after a thaw as later, and the more the longer the freeze was: it \
                     catches up on what it missed, or reads from the page cache what another arm has read meanwhile (then give each arm \
                     files of its own), so its slices would mislead; use --slices off",
                    command.name
                )));
            }
        }
        let signal = self.experiment.rules.end_signal;
        for command in self.shuffler.shuffled(commands) {
            let cases = command.cases.clone();
            let (own, last) = command.end(signal, || self.heed(), |command| command.read(source))?;
            // A count of 0 has no scale, so its slices have no costs per I/O.
            let count = last.count.unwrap_or(0);
            let (own, own_read) = (own.map(|own| own.done), own.map(|own| own.read));
            measured.commands.push(CommandTotal { cases, own, own_read, count });
        }
        Ok(())
    }

    /// Lets a command run until it has a part of the rehearsal's rate.
    fn at_work(
        &mut self,
        command: &mut SlicedCommand,
        source: &mut Source,
        paces: &[(f64, Duration)],
        part: f64,
    ) -> Result<()> {
        let pace = command.cases.first().and_then(|case| paces.get(*case)).copied();
        let (rate, took) = pace.unwrap_or((0.0, Duration::ZERO));
        let timeout = LEAST_START_TIMEOUT.max(took * 4);
        let begun = Instant::now();
        command.thaw(Some(source))?;
        command.look_around();
        let mut earlier = command.read(source);
        loop {
            std::thread::sleep(POLL_INTERVAL);
            self.heed()?;
            if let Some(gone) = command.gone() {
                return Err(ended_early(command, &gone));
            }
            command.look_around();
            let now = command.read(source);
            let seconds = now.at_nanos.since(earlier.at_nanos).seconds();
            if seconds >= START_WINDOW.as_secs_f64() {
                let part = part * patience(begun.elapsed().div_duration_f64(timeout));
                if counted(earlier, now).is_some_and(|count| count as f64 >= part * rate * seconds) {
                    break;
                }
                earlier = now;
            }
            if begun.elapsed() > timeout {
                return Err(command.failed(&format!(
                    "is still idle after {:.0} s; in the rehearsal it did {rate:.3e} counts per second by then",
                    timeout.as_secs_f64()
                )));
            }
        }
        std::thread::sleep(SETTLE);
        command.look_around();
        command.freeze(Some(source))
    }

    fn command_slice(
        &mut self,
        case: usize,
        command: &mut SlicedCommand,
        source: &mut Source,
        (slice, guard): (Duration, Duration),
        history: Option<&mut Turns>,
    ) -> Result<SliceRecord> {
        let missed = command.frozen.elapsed();
        command.thaw(Some(source))?;
        let woke = command.read(source);
        std::thread::sleep(guard);
        // The counter before the clocks at both ends, so that both cover the same length.
        let first = command.read(source);
        let before = Box::new(self.meters.begin_slice());
        // Events are counted from here on.
        let first = if self.meters.counts_events() { command.read(source) } else { first };
        self.sleep(slice);
        let last = command.read(source);
        let after = Box::new(self.meters.end_slice(command.owners()));
        command.freeze(Some(source))?;
        if let Some(history) = history {
            history.add(missed, [woke, first, last]);
        }
        Ok(SliceRecord { case: Some(case), reading: SliceReading::Command { before, first, last, after } })
    }
}

/// Every command still runs.
fn still_there(commands: &mut [SlicedCommand]) -> Result<()> {
    match commands.iter_mut().find_map(|command| Some((command.gone()?, command))) {
        Some((gone, command)) => Err(ended_early(command, &gone)),
        None => Ok(()),
    }
}

/// One that succeeded may only have been too short.
fn ended_early(command: &SlicedCommand, gone: &Gone) -> Error {
    let advice = if gone.well { ", before the round was over; let it run longer, or use --slices off" } else { "" };
    command.failed(&format!("{}{advice}", gone.why))
}

/// A command that catches up does this many times as much per second just after it was thawed as in its slices.
const BURST: f64 = 2.0;
/// And it does at least this part of the work that it missed.
const MADE_UP: f64 = 0.5;
/// Fewer turns or counts say nothing.
const FEWEST_TURNS: usize = 8;
const FEWEST_COUNTS: u64 = 200;
/// These say enough: later turns are not looked at.
const ENOUGH_TURNS: usize = 40;

/// One turn of a command.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// How long it was frozen before.
    missed: f64,
    /// How long it ran.
    seconds: f64,
    counts: f64,
}

/// The turns of a command, and whether it catches up what it missed while it was frozen: then its slices show that, not what an I/O costs.
///
/// A closed loop waits for its I/Os and misses nothing, so what it does in a turn does not depend on how long it was frozen before. A
/// program that follows a clock does more in a turn, the longer it was frozen. Turns come in random order, so the time before
/// them differs. Speed alone tells nothing: on a busy machine, the scheduler favours every program that has just woken, and a
/// neighbour may have slowed the rehearsal.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    turns: Vec<Turn>,
    /// Counts and seconds just after it was thawed, in the discarded time.
    early: (u64, f64),
    /// In its slices.
    late: (u64, f64),
}

impl Turns {
    /// Adds a turn: the time before it, and the readings when the command was thawed, at the begin of the slice, and at its end.
    pub fn add(&mut self, missed: Duration, [woke, first, last]: [CommandReading; 3]) {
        let since = |from: CommandReading, to: CommandReading| {
            Some((counted(from, to)?, to.at_nanos.since(from.at_nanos).seconds()))
        };
        let Some((early, late)) = since(woke, first).zip(since(first, last)) else { return };
        if self.turns.len() >= ENOUGH_TURNS {
            return;
        }
        self.early = (self.early.0 + early.0, self.early.1 + early.1);
        self.late = (self.late.0 + late.0, self.late.1 + late.1);
        self.turns.push(Turn {
            missed: missed.as_secs_f64(),
            seconds: early.1 + late.1,
            counts: (early.0 + late.0) as f64,
        });
    }

    /// How many times as fast it is just after it was thawed, if it catches up.
    pub fn catch_up(&self) -> Option<f64> {
        let ((early, early_seconds), (late, late_seconds)) = (self.early, self.late);
        let times = (early as f64 / early_seconds) / (late as f64 / late_seconds);
        let enough = self.turns.len() >= FEWEST_TURNS && early + late >= FEWEST_COUNTS;
        (enough && times > BURST && self.makes_up()).then_some(times)
    }

    /// Whether counts grow with the time before the turn, by at least a part of what the command does in that time. The growth is
    /// the median over pairs of turns (Theil–Sen), because the first turn of a round may follow a much longer time than all others.
    fn makes_up(&self) -> bool {
        let of = |value: fn(&Turn) -> f64| median(self.turns.iter().map(value));
        let (missed, seconds, counts) = (of(|turn| turn.missed), of(|turn| turn.seconds), of(|turn| turn.counts));
        let pairs = self.turns.iter().enumerate().flat_map(|(place, one)| {
            self.turns.iter().skip(place + 1).map(move |other| (other.missed - one.missed, other.counts - one.counts))
        });
        // Turns after times that hardly differ tell nothing.
        let apart = pairs.filter(|(missed, _)| missed.abs() >= seconds / 2.0);
        let growth = median(apart.map(|(missed, counts)| counts / missed));
        // counts = rate × (seconds + part × missed), and growth = part × rate.
        let rate = (counts - growth * missed) / seconds;
        growth > 0.0 && growth >= MADE_UP * rate
    }
}

/// The median; 0 of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() { 0.0 } else { canary::median(&mut values) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Nanos;

    const MISSED: [u64; 12] = [900, 110, 60, 0, 220, 110, 165, 55, 110, 0, 165, 110];

    /// The turns of a command, of 5 ms and 50 ms each. `work` tells how much it does in a time that it is awake after a time that it
    /// was frozen, both in ms.
    fn turns(mut work: impl FnMut(u64, u64) -> u64) -> Turns {
        let (mut turns, mut at, mut count) = (Turns::default(), 0, 0);
        let mut reading = |millis: u64, missed: u64| {
            (at, count) = (at + millis, count + work(millis, missed));
            CommandReading { at_nanos: Nanos::from_millis(at), count: Some(count), ..CommandReading::default() }
        };
        for missed in MISSED {
            turns.add(Duration::from_millis(missed), [reading(0, 0), reading(5, missed), reading(50, 0)]);
        }
        turns
    }

    /// A program that owes 10 counts per ms, and does at most this many.
    fn open_loop(most: u64) -> Turns {
        let mut owed = 0;
        turns(|millis, missed| {
            owed += 10 * (millis + missed);
            let done = owed.min(most * millis);
            owed -= done;
            done
        })
    }

    #[test]
    fn a_program_that_does_what_it_missed_catches_up() {
        for most in [200, 1000, 100_000] {
            let times = open_loop(most).catch_up();
            assert!(times.is_some_and(|times| times > BURST), "{most}: {times:?}");
        }
    }

    #[test]
    fn a_closed_loop_does_not() {
        assert_eq!(turns(|millis, _| 10 * millis).catch_up(), None);
        // The scheduler favours whoever has just woken, after whatever time.
        let favoured = turns(|millis, _| if millis == 5 { 300 } else { 200 });
        assert!(favoured.early.0 as f64 / favoured.early.1 > BURST * favoured.late.0 as f64 / favoured.late.1);
        assert_eq!(favoured.catch_up(), None);
        // And what neighbours leave to it varies.
        let mut turn = 0;
        let neighbours = turns(|millis, _| {
            turn += 1;
            if millis == 5 { 300 } else { [50, 500, 200, 350, 100][turn % 5] }
        });
        assert_eq!(neighbours.catch_up(), None);
    }

    #[test]
    fn few_turns_or_counts_say_nothing() {
        let mut few = open_loop(1000);
        few.turns.truncate(FEWEST_TURNS - 1);
        assert_eq!(few.catch_up(), None);
        // A handful of counts may fall anywhere.
        assert_eq!(turns(|_, missed| missed / 55).catch_up(), None);
    }
}
