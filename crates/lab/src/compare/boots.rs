//! Arms that are boots of the machine: one arm is measured in each boot, and the order of boots is drawn.
//!
//! An experiment goes on from its record: which boots were measured says which is next. A boot is the unit of the
//! intervals, so all that was measured in one is one part of a round.

use super::shuffler::Shuffler;
use super::{Observer, RecordWriter, Settings, compare, whole};
use crate::calibration::Calibration;
use crate::canary;
use crate::error::{Error, Result};
use crate::host;
use crate::meter::MeterSet;
use crate::shell;
use crate::store::RecordFile;
use crate::wait_limit::WaitLimit;
use model::comparison::CompareRecord;
use model::comparison::boots;
use model::comparison::record::{BootRecord, End, Header, RoundRecord, Schedule};
use model::envelope::{Envelope, Kind};
use model::experiment::{Case, Experiment};
use model::kind::compare::BootLine;
use model::record::Outcome;
use std::path::Path;
use std::time::Duration;

/// What is known before the first boot is measured.
///
/// # Errors
/// When the meters cannot be opened.
pub fn begin(experiment: Experiment, settings: &Settings) -> Result<Header> {
    let calibration = Calibration::begin();
    let meters = MeterSet::open(settings.measuring.meters.clone())?;
    let canaries = canary::run();
    let (hertz, source) = calibration.end();
    Ok(Header {
        envelope: Envelope::new(Kind::Compare, host::now(), settings.measuring.command_line.clone()),
        experiment,
        seed: settings.seed,
        schedule: Schedule::Boots,
        host: host::read(Path::new("/"), hertz, &source),
        meters: meters.statuses().to_vec(),
        canaries,
        page_cache: None,
    })
}

/// Goes on with the experiment at `path`, its folder or its record: the record's file, and what is in it.
///
/// # Errors
/// When there is none, it is complete, or no arm of it is a boot.
pub fn resume(path: &Path) -> Result<(RecordFile, CompareRecord)> {
    let shown = path.display();
    RecordFile::resume(path, |record: &CompareRecord| {
        let refused = |why: String| Err(Error::Refused(format!("{shown}: {why}")));
        if record.end.is_some() {
            return refused(format!("this experiment is complete; show it: iotoll report {shown}"));
        }
        let experiment = &record.header.experiment;
        let Some(plan) = &experiment.boots else {
            return refused(format!(
                "no arm of this comparison is a boot, so it cannot be gone on with; show it: iotoll report {shown}"
            ));
        };
        // What was written by hand into the header goes no further than a file of TOML would.
        let checked = plan.check().and_then(|()| experiment.rules.check());
        checked.or_else(|why| refused(format!("its header was changed: {why}; begin it anew")))
    })
}

/// Adds a boot to a record.
///
/// # Errors
/// When the disk does not take it.
pub fn add(file: &mut RecordFile, boot: &BootRecord, round: &RoundRecord) -> Result<()> {
    file.append("boot", &BootLine { boot, round })
}

/// The arm of each boot, from the first to the last: in each round every arm once, in an order drawn from the seed.
pub fn order(header: &Header) -> Vec<usize> {
    let each = header.experiment.boots.as_ref().map_or(0, |plan| plan.each);
    let mut shuffler = Shuffler::new(header.seed);
    (0..each).flat_map(|_| shuffler.shuffled(0..header.experiment.arms.len())).collect()
}

/// Which arms are booted now, by what they say of themselves.
///
/// # Errors
/// When a test command cannot be run, or does not end.
pub fn booted(experiment: &Experiment, settings: &Settings) -> Result<Vec<usize>> {
    let limit = limit(experiment, settings);
    let mut booted = Vec::new();
    for (place, arm) in experiment.arms.iter().enumerate() {
        let Some(when) = &arm.when else { continue };
        let ended = shell::run(
            &format!("arm '{}': when", arm.name),
            &when.command,
            &limit,
            &settings.guardian.passing_processes()?,
        )?;
        if when.holds(ended.success, &ended.printed) {
            booted.push(place);
        }
    }
    Ok(booted)
}

/// Runs the hook, which boots the arm that is next. Its surroundings say which that is, and what goes on there.
///
/// # Errors
/// When it fails.
pub fn call(hook: &str, arm: &str, folder: &Path, experiment: &Experiment, settings: &Settings) -> Result<()> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let variables = format!("IOTOLL_ARM={} IOTOLL_RESUME={}", quoted(arm), quoted(&folder.display().to_string()));
    let processes = settings.guardian.passing_processes()?;
    let ended = shell::run("hook", &format!("export {variables}; {hook}"), &limit(experiment, settings), &processes)?;
    if ended.success { Ok(()) } else { Err(ended.failure("hook", hook)) }
}

/// Measures the arm that is booted, for the budget.
///
/// # Errors
/// When it fails or is interrupted: a boot that was not measured to its end does not count.
pub fn measure(
    header: &Header,
    measured: &[BootRecord],
    arm: usize,
    settings: &Settings,
    observer: Observer,
) -> Result<(BootRecord, RoundRecord)> {
    let started_unix_seconds = host::now();
    let alone = alone(&header.experiment, arm);
    let toggled = header.experiment.arms.iter().any(|arm| arm.is_toggled());
    let jobs = header.experiment.cases.iter().all(|case| case.work.phase().is_some());
    let settings = Settings {
        // Another order in each boot, and the same one when it is done again.
        seed: header.seed.wrapping_add(measured.len() as u64 + 1),
        // As in the first boot: an arm is not to be cut otherwise than another.
        schedule: measured.first().map(|first| first.within).or((toggled && jobs).then(|| whole::schedule(None, None))),
        ..settings.clone()
    };
    let record = compare(alone, &settings, &mut Unsaved, observer)?;
    let end = record.end.ok_or_else(|| Error::Failed("the boot was not measured to its end".to_owned()))?;
    match end.outcome {
        Outcome::Completed => {}
        Outcome::Interrupted => return Err(Error::Interrupted("before this boot was measured to its end".to_owned())),
        Outcome::Failed(why) => return Err(Error::Failed(why)),
    }
    let boot = BootRecord {
        round: measured.len() / header.experiment.arms.len().max(1),
        arm,
        boot_id: host::boot_id()?,
        started_unix_seconds,
        host: record.header.host,
        within: record.header.schedule,
        canaries: record.header.canaries,
        warnings: end.warnings,
    };
    let mut round = boots::within(record.rounds);
    let cases: Vec<usize> = places(&header.experiment, arm).collect();
    let place = |case: usize| cases.get(case).copied().unwrap_or(usize::MAX);
    round.slices.iter_mut().for_each(|slice| slice.case = slice.case.map(place));
    round.latencies.iter_mut().for_each(|latency| latency.case = place(latency.case));
    Ok((boot, round))
}

/// How an experiment of boots ends: there is none left.
pub fn end(header: &Header) -> End {
    End {
        outcome: Outcome::Completed,
        reason: "all boots were measured".to_owned(),
        tsc_hertz: header.host.tsc_hertz,
        canaries: canary::run(),
        warnings: Vec::new(),
    }
}

/// The places of an arm's cases among all.
fn places(experiment: &Experiment, arm: usize) -> impl Iterator<Item = usize> {
    experiment.cases.iter().enumerate().filter(move |(_, case)| case.arm == arm).map(|(place, _)| place)
}

/// The experiment in one boot: one arm's cases. What the other arms switch may not even be there in this boot.
fn alone(experiment: &Experiment, arm: usize) -> Experiment {
    let mut alone = experiment.clone();
    alone.cases.retain(|case: &Case| case.arm == arm);
    for (_, other) in alone.arms.iter_mut().enumerate().filter(|(place, _)| *place != arm) {
        other.settings.clear();
        (other.setup, other.cleanup) = (None, None);
    }
    alone
}

fn limit(experiment: &Experiment, settings: &Settings) -> WaitLimit {
    let longest = Duration::from_secs_f64(experiment.rules.hang_timeout());
    WaitLimit::new(longest, settings.measuring.interruption.clone())
}

/// What a boot measures is kept when it is complete, and not before.
struct Unsaved;

impl RecordWriter for Unsaved {
    fn header(&mut self, _: &Header) -> Result<()> {
        Ok(())
    }

    fn round(&mut self, _: &RoundRecord) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &End) -> Result<()> {
        Ok(())
    }
}
