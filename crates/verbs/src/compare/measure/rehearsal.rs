//! The rehearsal of commands: whether they can take turns, and which counter tells what they do.

use super::RoundRunner;
use super::drawn_cpus::keeps_one_thread_busy;
use super::sliced_command::SlicedCommand;
use super::work_counter::{self, Source};
use lab::error::{Error, Result};
use lab::freezer::Freezable;
use model::experiment::WorkCounter;
use model::experiment::work_counter::{COUNTERS_BY_PREFERENCE, Counted, SYSTEM_CALLS};
use model::record::Done;
use std::time::{Duration, Instant};

/// Time that each command runs alone.
const AWAKE: Duration = Duration::from_secs(1);
/// A command has to live this long beside the others: longer than a round.
const LEAST_LIFE: Duration = Duration::from_secs(3);
/// A command that has done no I/O yet runs this many times as long in the next try: it may still lay out its files.
const LONGER: u32 = 6;
const TRIES: u32 = 3;
/// Time that each command runs when it has its turn again.
const AT_WORK: Duration = Duration::from_millis(300);
/// The rate at work is taken over this time, at the end: a command that catches up what it missed has done so before.
const RATE_TIME: Duration = Duration::from_millis(150);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A counter agrees with a command's own total up to this fraction.
const AGREEMENT: f64 = 0.02;
/// A counter with less than this part of the most that one of its unit counts is beside the work: log lines, a control connection, a ring
/// for timers.
const BESIDE: f64 = 0.02;

/// What commands that can take turns have shown, or why they cannot.
pub(super) type Shown<T> = std::result::Result<T, String>;

/// What a rehearsal learns.
pub(super) struct Rehearsal {
    pub source: Source,
    pub counter: WorkCounter,
    /// The rate of each case at work, counts per second, and how long it took to get there.
    pub paces: Vec<(f64, Duration)>,
    /// All commands of a round may run on one CPU.
    pub shares_a_cpu: bool,
}

/// Every counter: those of [`COUNTERS_BY_PREFERENCE`], then the machine's, if the user named one.
struct Point {
    /// Since the command's start, while it was awake.
    at: Duration,
    counts: Vec<Option<u64>>,
}

/// What one command did.
struct Trial {
    name: String,
    cases: Vec<usize>,
    own: Option<Done>,
    course: Vec<Point>,
    /// Every counter at its end.
    total: Vec<Option<u64>>,
    /// Why its sockets are not counted, if they are not.
    out_of_reach: Option<String>,
    /// It keeps one thread busy, and no other, and has no sockets.
    shares_a_cpu: bool,
}

impl RoundRunner<'_> {
    /// Runs every command beside the others of its cell for some seconds.
    ///
    /// # Errors
    /// When a counter that the user named is not there or does not move, or the user interrupts.
    pub(super) fn rehearse_commands(&mut self, places: &mut [Freezable]) -> Result<Shown<Rehearsal>> {
        let mut named = self.experiment.rules.count.as_deref().map(work_counter::named).transpose()?;
        let mut trials = Vec::new();
        for cell in 0..self.experiment.cells.len() {
            let (mut awake, mut tries) = (AWAKE, 1);
            loop {
                match self.rehearse_cell(cell, places, awake, named.as_mut().map(|(source, _)| source))? {
                    Err(why) => return Ok(Err(why)),
                    Ok(found) if tries < TRIES && found.iter().any(Trial::has_done_nothing) => {
                        (awake, tries) = (awake * LONGER, tries + 1);
                    }
                    Ok(found) => {
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
                    Source::Kernel(_) => COUNTERS_BY_PREFERENCE.len(),
                };
                if let Some(still) = trials.iter().find(|trial| !trial.moves(place)) {
                    let (name, why) = (&counter.name, still.out_of_reach.as_ref());
                    let why = why.map(|why| format!("; {why}")).unwrap_or_default();
                    return Err(Error::Refused(format!(
                        "--count {name}: it did not move while {} ran{why}",
                        still.name
                    )));
                }
                Some((place, source, counter))
            }
            None => choose(&trials)?,
        };
        let Some((place, source, mut counter)) = chosen else {
            return Ok(Err(
                "no counter shows what the commands do (--count names one, --ios or --bytes states it)".to_owned()
            ));
        };
        counter.nanos_per_count = source.nanos_per_count();
        let mut paces = vec![(0.0, Duration::ZERO); self.experiment.cases.len()];
        for (case, pace) in paces.iter_mut().enumerate() {
            if let Some(trial) = trials.iter().find(|trial| trial.cases.contains(&case)) {
                *pace = trial.pace(place);
            }
        }
        let shares_a_cpu = trials.iter().all(|trial| trial.shares_a_cpu);
        Ok(Ok(Rehearsal { source, counter, paces, shares_a_cpu }))
    }

    fn rehearse_cell(
        &mut self,
        cell: usize,
        places: &mut [Freezable],
        awake: Duration,
        mut named: Option<&mut Source>,
    ) -> Result<Shown<Vec<Trial>>> {
        let mut commands = self.start_commands(cell, places, None, None)?;
        let mut courses: Vec<(Vec<Point>, bool)> = commands.iter().map(|_| (Vec::new(), false)).collect();
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
                    return Ok(Err(format!("{} {}: {why}", command.name, gone.why)));
                }
            }
            if stretch == AT_WORK && begun.elapsed() >= LEAST_LIFE {
                break;
            }
            stretch = AT_WORK;
        }
        let signal = self.experiment.rules.end_signal;
        let mut trials = Vec::new();
        for (mut command, (course, shares_a_cpu)) in commands.into_iter().zip(courses) {
            let (name, cases) = (command.name.to_owned(), command.cases.clone());
            let (out_of_reach, elsewhere) = (command.out_of_reach(), command.is_elsewhere());
            let words = cases.first().map(|case| self.command_plan(*case).command).unwrap_or_default();
            self.note_namespace(&words, elsewhere);
            let (own, total) = command.end(signal, || self.heed(), |command| point(command, named.as_deref_mut()))?;
            let (own, total) = (own.map(|own| own.done), total.counts);
            trials.push(Trial { name, cases, own, course, total, out_of_reach, shares_a_cpu });
        }
        Ok(Ok(trials))
    }

    /// Lets one command run, and notes every counter; whether it may share a CPU with the others.
    fn watch(
        &mut self,
        command: &mut SlicedCommand,
        course: &mut Vec<Point>,
        length: Duration,
        mut named: Option<&mut Source>,
    ) -> Result<bool> {
        let before = command.thread_times();
        let begun = Instant::now();
        command.thaw(named.as_deref_mut())?;
        while begun.elapsed() < length && command.gone().is_none() {
            std::thread::sleep(POLL_INTERVAL);
            self.heed()?;
            course.push(point(command, named.as_deref_mut()));
        }
        let (after, time) = (command.thread_times(), begun.elapsed());
        let shares = keeps_one_thread_busy(&before, &after, time) && !command.has_sockets();
        command.freeze(named)?;
        Ok(shares)
    }
}

fn point(command: &mut SlicedCommand, named: Option<&mut Source>) -> Point {
    let mut counts = command.read_all();
    counts.push(named.filter(|source| !matches!(source, Source::Own(_))).and_then(|source| command.read(source).count));
    Point { at: command.lived(), counts }
}

impl Trial {
    /// It reports that it has done nothing yet.
    fn has_done_nothing(&self) -> bool {
        self.own.is_some_and(|own| own == Done::default())
    }

    /// The counter at an instant of the course.
    fn at(&self, index: usize, place: usize) -> Option<(Duration, u64)> {
        let point = self.course.get(index)?;
        Some((point.at, point.counts.get(place).copied().flatten()?))
    }

    /// Counts per second at the end of the course.
    fn rate(&self, place: usize) -> f64 {
        self.rate_in(RATE_TIME, place)
    }

    /// Counts per second in this time before the end of the course.
    fn rate_in(&self, time: Duration, place: usize) -> f64 {
        // The last one that was taken is the end.
        let mut taken = (0..self.course.len()).rev().filter_map(|index| self.at(index, place));
        let Some((end, total)) = taken.next() else { return 0.0 };
        let Some((begin, earlier)) = taken.take_while(|(at, _)| end - *at <= time).last() else { return 0.0 };
        total.saturating_sub(earlier) as f64 / (end - begin).as_secs_f64()
    }

    fn moves(&self, place: usize) -> bool {
        self.rate(place) > 0.0
    }

    /// Whether a counter moves more than what is beside the work: by its rate in the second half of the course, because counters differ in
    /// short times by what is on its way.
    fn carries(&self, place: usize) -> bool {
        let half = self.course.last().map_or(RATE_TIME, |last| RATE_TIME.max(last.at / 2));
        let unit = |place: usize| COUNTERS_BY_PREFERENCE.get(place).map(|row| row.counts);
        let alike = (0..COUNTERS_BY_PREFERENCE.len()).filter(|other| unit(*other) == unit(place) && self.moves(*other));
        let most = alike.map(|other| self.rate_in(half, other)).fold(0.0, f64::max);
        // A thaw before the end lets a sleeping command repeat its call.
        self.moves(place) && self.rate_in(half, place) >= BESIDE * most
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
        let own = match COUNTERS_BY_PREFERENCE.get(place)?.counts {
            Counted::Bytes => self.own?.bytes.as_f64(),
            Counted::Ios => self.own?.ios as f64,
        };
        (own > 0.0).then(|| counted / own)
    }
}

/// The first counter that carries the work of every command and agrees with what the commands report themselves; if none agrees, the one
/// that is closest; if they report nothing, the first.
///
/// # Errors
/// When the commands have only their system calls in common, and some do I/O that another counter sees.
fn choose(trials: &[Trial]) -> Result<Option<(usize, Source, WorkCounter)>> {
    let carries = |trial: &Trial, place: usize| match trial.own {
        Some(_) => trial.moves(place),
        None => trial.carries(place),
    };
    let places = 0..COUNTERS_BY_PREFERENCE.len();
    let mut common = places.clone().filter(|place| trials.iter().all(|trial| carries(trial, *place)));
    let distance = |place: usize| {
        let reports = trials.iter().filter(|trial| trial.own.is_some());
        let distances = reports.map(|trial| trial.ratio(place).map_or(f64::INFINITY, |ratio| ratio.ln().abs()));
        distances.fold(0.0, f64::max)
    };
    let (place, reason) = if trials.iter().all(|trial| trial.own.is_none()) {
        (common.next(), "it is the first that moves; the commands do not report what they do")
    } else if let Some(place) = common.clone().find(|place| distance(*place) < AGREEMENT) {
        (Some(place), "it agrees with what the commands report themselves")
    } else {
        let closest = common.min_by(|one, other| distance(*one).total_cmp(&distance(*other)));
        (closest, "no counter agrees with what the commands report themselves, this one is closest")
    };
    let Some((place, row)) = place.and_then(|place| Some((place, COUNTERS_BY_PREFERENCE.get(place)?))) else {
        return Ok(None);
    };
    let seen = |trial: &Trial| {
        let names = COUNTERS_BY_PREFERENCE.iter().zip(places.clone()).filter(|(_, place)| carries(trial, *place));
        names.map(|(row, _)| row.name).collect::<Vec<_>>().join(", ")
    };
    let sees_more = |trial: &Trial| trial.own.is_none() && seen(trial) != SYSTEM_CALLS;
    if row.name == SYSTEM_CALLS && trials.iter().any(sees_more) {
        let each: Vec<String> = trials.iter().map(|trial| format!("{}: {}", trial.name, seen(trial))).collect();
        return Err(Error::Refused(format!(
            "the commands do different kinds of I/O, which no counter sees alike; {}; name the counter that counts the work with \
             --count, or use --slices off",
            each.join("; ")
        )));
    }
    let counter = WorkCounter {
        name: row.name.to_owned(),
        counts: row.counts,
        what: row.what.to_owned(),
        reason: reason.to_owned(),
        nanos_per_count: None,
    };
    Ok(Some((place, Source::Own(place), counter)))
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
            COUNTERS_BY_PREFERENCE.iter().map(count).collect::<Vec<_>>()
        };
        let course = (0..100).map(|step| {
            let part = f64::from((step - 20).max(0)) / 80.0;
            let at = Duration::from_millis(u64::try_from(step).unwrap() * 10);
            Point { at, counts: counts(part) }
        });
        Trial {
            name: "arm".to_owned(),
            cases: vec![0],
            own,
            course: course.collect(),
            total: counts(1.0),
            out_of_reach: None,
            shares_a_cpu: true,
        }
    }

    fn chosen(trials: &[Trial]) -> Option<String> {
        choose(trials).unwrap().map(|(_, _, counter)| counter.name)
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
    fn without_a_report_the_first_counter_that_is_not_beside_the_work_is_chosen() {
        for (what, ratios, expected) in [
            ("dd from a disk", &[("task:both", 1.0), ("task:storage", 0.5), ("syscalls", 1.0)][..], "task:both"),
            ("send that prints", &[("task:both", 0.001), ("tcp", 1.0), ("syscalls", 1.0)], "tcp"),
            ("sendto that prints", &[("udp", 1.0), ("task:both", 0.001), ("syscalls", 1.2)], "udp"),
            ("a look-up by UDP", &[("udp", 0.001), ("task:both", 1.0), ("syscalls", 1.0)], "task:both"),
            ("mmap that prints", &[("task:both", 0.001), ("task:storage", 1.0), ("syscalls", 1.0)], "task:storage"),
            ("io_uring that prints", &[("io_uring", 1.0), ("task:both", 0.5), ("syscalls", 2.0)], "io_uring"),
            ("a ring for timers", &[("io_uring", 0.001), ("task:both", 1.0), ("syscalls", 1.0)], "task:both"),
            ("libaio in the page cache", &[("syscalls", 1.0)], "syscalls"),
        ] {
            assert_eq!(chosen(&[trial(None, ratios)]).as_deref(), Some(expected), "{what}");
        }
        let sends = || trial(None, &[("tcp", 1.0), ("task:both", 0.001), ("syscalls", 1.0)]);
        let writes = || trial(None, &[("tcp", 1.0), ("task:both", 1.0), ("syscalls", 1.0)]);
        assert_eq!(chosen(&[sends(), writes()]).as_deref(), Some("tcp"));
        assert_eq!(chosen(&[writes(), writes()]).as_deref(), Some("task:both"));
        let copies = trial(None, &[("task:both", 1.0), ("syscalls", 1.0)]);
        let why = choose(&[sends(), copies]).map(drop).unwrap_err().to_string();
        assert!(["different kinds of I/O", "tcp", "task:both", "--count"].iter().all(|it| why.contains(it)), "{why}");
    }

    /// Its sockets run ahead of its calls for 40 ms.
    #[test]
    fn identical_commands_do_the_same_kind_of_io_whatever_is_on_its_way_at_the_end() {
        let plain = || trial(None, &[("task:both", 1.0), ("tcp", 1.0)]);
        let mut late = plain();
        let both = COUNTERS_BY_PREFERENCE.iter().position(|row| row.name == "task:both").unwrap();
        let end = late.course.len() - 4;
        let held = late.course[end - 1].counts[both];
        late.course[end..].iter_mut().for_each(|point| point.counts[both] = held);
        assert_eq!(chosen(&[plain(), late]).as_deref(), Some("task:both"));
    }

    /// It was thawed in the second half of its course.
    #[test]
    fn a_sleeping_command_that_repeats_its_call_does_nothing() {
        let mut asleep = trial(None, &[("syscalls", 1.0)]);
        let place = COUNTERS_BY_PREFERENCE.iter().position(|row| row.name == "syscalls").unwrap();
        for (step, point) in asleep.course.iter_mut().enumerate() {
            point.counts[place] = Some(u64::from(step > 60));
        }
        assert_eq!(chosen(&[asleep]), None);
    }

    /// A total of its own shows which counter is right for one command; the other one must move its bytes by the same.
    #[test]
    fn a_silent_command_beside_one_that_reports_is_not_counted_by_its_log_lines() {
        let reports = || trial(OWN, &[("task:both", 1.0), ("tcp", 1.0)]);
        let sends = trial(None, &[("task:both", 0.001), ("tcp", 1.0)]);
        assert_eq!(chosen(&[reports(), sends]).as_deref(), Some("tcp"));
        let plain = || trial(OWN, &[("task:both", 1.0)]);
        let mapped = trial(None, &[("task:both", 0.001), ("task:storage", 1.0)]);
        assert_eq!(chosen(&[plain(), mapped]), None);
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
