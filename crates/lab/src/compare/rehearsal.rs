//! The rehearsal of commands: whether they can take turns, and which counter tells what they do.

use super::RoundRunner;
use super::one_cpu::keeps_one_thread_busy;
use super::sliced_command::SlicedCommand;
use super::work_counter::{self, Source};
use crate::error::{Error, Result};
use crate::freezer::Freezable;
use model::experiment::WorkCounter;
use model::experiment::work_counter::{Counted, ROWS};
use model::record::Done;
use std::time::{Duration, Instant};

/// Time that each command runs alone.
const AWAKE: Duration = Duration::from_secs(1);
/// A command has to live this long beside the others: longer than a round.
const LEAST_LIFE: Duration = Duration::from_secs(3);
/// A command that has done no I/O yet runs this many times as long in the next try: it may still lay out its files.
const LONGER: u32 = 6;
/// Number of tries.
const TRIES: u32 = 3;
/// The rate at work is taken over this time, at the end.
const AT_WORK: Duration = Duration::from_millis(300);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A counter agrees with a command's own total up to this fraction.
const AGREEMENT: f64 = 0.02;
/// Counters that see one kind of I/O only.
const OF_ONE_KIND: [&str; 2] = ["io_uring", "tcp"];

/// The outcome.
pub(super) enum Rehearsed {
    /// They can take turns.
    Sliceable(Rehearsal),
    /// Why they cannot.
    Not(String),
}

/// What a rehearsal learns.
pub(super) struct Rehearsal {
    pub source: Source,
    pub counter: WorkCounter,
    /// The rate of each case at work, counts per second, and how long it took to get there.
    pub paces: Vec<(f64, Duration)>,
    /// All commands of a round may run on one CPU.
    pub shares_a_cpu: bool,
}

/// Every counter: those of [`ROWS`], then the machine's, if the user named one.
type Counts = Vec<Option<u64>>;

/// What one command did.
struct Trial {
    name: String,
    cases: Vec<usize>,
    own: Option<Done>,
    /// Since its start, while it was awake.
    course: Vec<(Duration, Counts)>,
    /// At its end.
    total: Counts,
    /// It keeps one thread busy, and no other, and has no sockets.
    shares_a_cpu: bool,
}

/// The outcome of one try of a cell.
enum Tried {
    All(Vec<Trial>),
    Not(String),
}

impl RoundRunner<'_> {
    /// Runs every command beside the others of its cell for some seconds.
    ///
    /// # Errors
    /// When a counter that the user named is not there or does not move, or the user interrupts.
    pub(super) fn rehearse_commands(&mut self, places: &mut [Freezable]) -> Result<Rehearsed> {
        let mut named = self.experiment.commands.count.as_deref().map(work_counter::named).transpose()?;
        let mut trials = Vec::new();
        for cell in 0..self.experiment.cells.len() {
            let (mut awake, mut tries) = (AWAKE, 1);
            loop {
                match self.rehearse_cell(cell, places, awake, named.as_mut().map(|(source, _)| source))? {
                    Tried::Not(why) => return Ok(Rehearsed::Not(why)),
                    Tried::All(found) if tries < TRIES && found.iter().any(Trial::has_done_nothing) => {
                        (awake, tries) = (awake * LONGER, tries + 1);
                    }
                    Tried::All(found) => {
                        trials.extend(found);
                        break;
                    }
                }
            }
        }
        let chosen = match named {
            Some((source, counter)) => {
                let place = match &source {
                    Source::Own(place) => *place,
                    Source::Kernel(_) | Source::Probe(_) => ROWS.len(),
                };
                if let Some(still) = trials.iter().find(|trial| !trial.moves(place)) {
                    let name = &counter.name;
                    return Err(Error::Refused(format!("--count {name}: it did not move while {} ran", still.name)));
                }
                Some((place, source, counter))
            }
            None if differ_in_kind(&trials) => {
                let why = "some commands use io_uring or sockets and others do not, and none says what it does; name a counter that \
                           sees both with --count";
                return Ok(Rehearsed::Not(why.to_owned()));
            }
            None => choose(&trials),
        };
        let Some((place, source, mut counter)) = chosen else {
            return Ok(Rehearsed::Not("no counter shows what the commands do (--count names one)".to_owned()));
        };
        counter.nanos_per_count = source.nanos_per_count();
        let mut paces = vec![(0.0, Duration::ZERO); self.experiment.cases.len()];
        for (case, pace) in paces.iter_mut().enumerate() {
            if let Some(trial) = trials.iter().find(|trial| trial.cases.contains(&case)) {
                *pace = trial.pace(place);
            }
        }
        let shares_a_cpu = trials.iter().all(|trial| trial.shares_a_cpu);
        Ok(Rehearsed::Sliceable(Rehearsal { source, counter, paces, shares_a_cpu }))
    }

    fn rehearse_cell(
        &mut self,
        cell: usize,
        places: &mut [Freezable],
        awake: Duration,
        mut named: Option<&mut Source>,
    ) -> Result<Tried> {
        let mut commands = self.start_commands(cell, places, None, None)?;
        let mut courses = vec![(Vec::new(), false); commands.len()];
        let begun = Instant::now();
        let mut stretch = awake;
        // Each alone for a while, then in turn until all have lived long enough.
        loop {
            for place in 0..commands.len() {
                let Some((command, course)) = commands.get_mut(place).zip(courses.get_mut(place)) else { continue };
                let (course, shares_a_cpu) = course;
                // At the end, after the start.
                *shares_a_cpu = self.watch(command, course, stretch, named.as_deref_mut())?;
                let gone = commands.iter_mut().find_map(|command| Some((command.gone()?, command)));
                if let Some((gone, command)) = gone {
                    let why = if gone.well {
                        "let it run longer (fio: --time_based --runtime=60; iperf3: -t 60)"
                    } else {
                        "if it cannot run beside the other arms, give each a server or file of its own"
                    };
                    return Ok(Tried::Not(format!("{} {}: {why}", command.name(), gone.why)));
                }
            }
            if stretch == AT_WORK && begun.elapsed() >= LEAST_LIFE {
                break;
            }
            stretch = AT_WORK;
        }
        let signal = self.experiment.commands.end_signal;
        let mut trials = Vec::new();
        for (command, (course, shares_a_cpu)) in commands.into_iter().zip(courses) {
            let (name, cases) = (command.name().to_owned(), command.cases().to_vec());
            let interrupted = || self.interrupted();
            let (own, total) = command.end(signal, interrupted, |command| counts(command, named.as_deref_mut()))?;
            let own = own.map(|own| own.done);
            trials.push(Trial { name, cases, own, course, total, shares_a_cpu });
        }
        Ok(Tried::All(trials))
    }

    /// Lets one command run, and notes every counter; whether it may share a CPU with the others.
    fn watch(
        &mut self,
        command: &mut SlicedCommand,
        course: &mut Vec<(Duration, Counts)>,
        length: Duration,
        mut named: Option<&mut Source>,
    ) -> Result<bool> {
        let before = command.thread_times();
        let begun = Instant::now();
        command.thaw(named.as_deref_mut())?;
        while begun.elapsed() < length && command.gone().is_none() {
            std::thread::sleep(POLL_INTERVAL);
            if self.interrupted() {
                return Err(Error::Interrupted("before the first round".to_owned()));
            }
            course.push((command.lived(), counts(command, named.as_deref_mut())));
        }
        let (after, time) = (command.thread_times(), begun.elapsed());
        let shares = keeps_one_thread_busy(&before, &after, time) && !command.has_sockets();
        command.freeze(named)?;
        Ok(shares)
    }
}

fn counts(command: &mut SlicedCommand, named: Option<&mut Source>) -> Counts {
    let mut counts = command.read_all();
    counts.push(named.filter(|source| !matches!(source, Source::Own(_))).and_then(|source| command.read(source).count));
    counts
}

impl Trial {
    /// It reports that it has done nothing yet.
    fn has_done_nothing(&self) -> bool {
        self.own.is_some_and(|own| own == Done::default())
    }

    /// The counter at an instant of the course.
    fn at(&self, index: usize, place: usize) -> Option<(Duration, u64)> {
        let (at, counts) = self.course.get(index)?;
        Some((*at, counts.get(place).copied().flatten()?))
    }

    /// Counts per second during the last stretch of the course.
    fn rate(&self, place: usize) -> f64 {
        // The last one that was taken.
        let taken = |index: &usize| self.at(*index, place).is_some();
        let last = (0..self.course.len()).rev().find(taken).unwrap_or(0);
        let Some((end, total)) = self.at(last, place) else { return 0.0 };
        let from = (0..last).rev().filter_map(|index| self.at(index, place)).take_while(|(at, _)| end - *at <= AT_WORK);
        let Some((begin, earlier)) = from.last() else { return 0.0 };
        total.saturating_sub(earlier) as f64 / (end - begin).as_secs_f64()
    }

    fn moves(&self, place: usize) -> bool {
        self.rate(place) > 0.0
    }

    /// Counts per second at work, and how long it took to get to half of that.
    fn pace(&self, place: usize) -> (f64, Duration) {
        let rate = self.rate(place);
        let steps =
            (0..self.course.len()).filter_map(|index| Some((self.at(index, place)?, self.at(index + 5, place)?)));
        let fast = |((from, before), (to, after)): &((Duration, u64), (Duration, u64))| {
            after.saturating_sub(*before) as f64 >= rate / 2.0 * (*to - *from).as_secs_f64()
        };
        let begins = steps.into_iter().find(fast).map_or(Duration::ZERO, |(_, (to, _))| to);
        (rate, begins)
    }

    /// The counter divided by what the command reports itself; `None` if it does not report that.
    fn ratio(&self, place: usize) -> Option<f64> {
        let counted = self.total.get(place).copied().flatten()? as f64;
        let own = match ROWS.get(place)?.counts {
            Counted::Bytes => self.own?.bytes.as_f64(),
            Counted::Ios => self.own?.ios as f64,
        };
        (own > 0.0).then(|| counted / own)
    }
}

/// Whether a counter of one kind of I/O moves for some commands only, and no total of their own tells which counter is right: what
/// moves for all may then be a log line of one of them.
fn differ_in_kind(trials: &[Trial]) -> bool {
    let silent = trials.iter().all(|trial| trial.own.is_none());
    let of_one_kind =
        (0..ROWS.len()).filter(|place| ROWS.get(*place).is_some_and(|row| OF_ONE_KIND.contains(&row.name)));
    let mut moving = of_one_kind.map(|place| trials.iter().filter(|trial| trial.moves(place)).count());
    silent && moving.any(|count| count > 0 && count < trials.len())
}

/// The first counter that moves for every command and agrees with what the commands report themselves; if none agrees, the
/// one that is closest; if they report nothing, the first that moves.
fn choose(trials: &[Trial]) -> Option<(usize, Source, WorkCounter)> {
    let moving: Vec<usize> = (0..ROWS.len()).filter(|place| trials.iter().all(|trial| trial.moves(*place))).collect();
    let reports = trials.iter().any(|trial| trial.own.is_some());
    let distance = |place: usize| {
        let distances = trials
            .iter()
            .filter(|trial| trial.own.is_some())
            .map(|trial| trial.ratio(place).map_or(f64::INFINITY, |ratio| ratio.ln().abs()));
        distances.fold(0.0, f64::max)
    };
    let agreeing = moving.iter().copied().find(|place| distance(*place) < AGREEMENT);
    let closest = || moving.iter().copied().min_by(|one, other| distance(*one).total_cmp(&distance(*other)));
    let (place, reason) = match agreeing {
        Some(place) if reports => (place, "it agrees with what the commands report themselves"),
        Some(place) => (place, "the commands do not report what they do"),
        None => (closest()?, "no counter agrees with what the commands report themselves, this one is closest"),
    };
    let row = ROWS.get(place)?;
    let counter = WorkCounter {
        name: row.name.to_owned(),
        counts: row.counts,
        what: row.what.to_owned(),
        reason: reason.to_owned(),
        nanos_per_count: None,
    };
    Some((place, Source::Own(place), counter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::experiment::work_counter::Row;
    use model::unit::Bytes;

    /// A command that starts to work after 200 ms; its counters have these ratios to its own total.
    fn trial(own: Option<Done>, ratios: &[(&str, f64)]) -> Trial {
        let total = own.unwrap_or(Done { ios: 1000, bytes: Bytes(4_096_000) });
        let counts = |part: f64| {
            let count = |row: &Row| {
                let ratio = ratios.iter().find(|(name, _)| *name == row.name)?.1;
                let whole = match row.counts {
                    Counted::Bytes => total.bytes.as_f64(),
                    Counted::Ios => total.ios as f64,
                };
                Some((whole * ratio * part) as u64)
            };
            ROWS.iter().map(count).collect::<Counts>()
        };
        let course = (0..100).map(|step| {
            let part = f64::from((step - 20).max(0)) / 80.0;
            (Duration::from_millis(u64::try_from(step).unwrap() * 10), counts(part))
        });
        Trial {
            name: "arm".to_owned(),
            cases: vec![0],
            own,
            course: course.collect(),
            total: counts(1.0),
            shares_a_cpu: true,
        }
    }

    fn chosen(trials: &[Trial]) -> Option<String> {
        choose(trials).map(|(_, _, counter)| counter.name)
    }

    const OWN: Option<Done> = Some(Done { ios: 1000, bytes: Bytes(4_096_000) });

    #[test]
    fn the_counter_agrees_with_every_command() {
        let plain = || trial(OWN, &[("task:both", 1.001), ("task:write", 1.0)]);
        assert_eq!(chosen(&[plain()]).as_deref(), Some("task:both"));
        // sendfile counts as a read and as a write.
        let sendfile = || trial(OWN, &[("task:both", 2.0), ("task:read", 1.0), ("task:write", 1.0)]);
        assert_eq!(chosen(&[plain(), sendfile()]).as_deref(), Some("task:write"));
        // Nothing agrees: the closest.
        let far = || trial(OWN, &[("task:both", 1.5), ("syscalls", 2.0)]);
        assert_eq!(chosen(&[far()]).as_deref(), Some("task:both"));
        assert_eq!(chosen(&[plain(), trial(OWN, &[])]), None);
    }

    #[test]
    fn without_a_report_the_first_that_moves_is_chosen() {
        assert_eq!(chosen(&[trial(None, &[("task:both", 1.0), ("syscalls", 1.0)])]).as_deref(), Some("task:both"));
        assert_eq!(chosen(&[trial(None, &[("io_uring", 1.0), ("syscalls", 1.0)])]).as_deref(), Some("io_uring"));
    }

    #[test]
    fn silent_commands_that_do_different_kinds_of_io_need_a_named_counter() {
        let silent = |ratios| trial(None, ratios);
        let (ring, plain) = (&[("io_uring", 1.0), ("task:both", 0.001)], &[("task:both", 1.0)]);
        assert!(differ_in_kind(&[silent(ring), silent(plain)]));
        assert!(!differ_in_kind(&[silent(ring), silent(ring)]) && !differ_in_kind(&[silent(plain), silent(plain)]));
        // A total of its own shows which counter is right.
        assert!(!differ_in_kind(&[trial(OWN, ring), trial(OWN, plain)]));
    }

    #[test]
    fn the_pace_is_that_at_the_end_and_when_it_began() {
        let trial = trial(OWN, &[("io_uring", 1.0)]);
        let (rate, took) = trial.pace(0);
        assert!((1200.0..1300.0).contains(&rate), "{rate}");
        assert!((Duration::from_millis(200)..Duration::from_millis(280)).contains(&took), "{took:?}");
        assert!(!trial.has_done_nothing());
    }
}
