//! Arms that are boots of the machine: each boot measures one arm, in random order.
//!
//! An experiment continues from its record: the measured boots show which one is next. A boot is the unit of the
//! intervals, so everything measured in one boot is one part of a round.

use crate::calibration::Calibration;
use crate::canary;
use crate::error::{Error, Result};
use crate::host;
use crate::interruption::WaitLimit;
use crate::meter::MeterSet;
use crate::progress::Observer;
use crate::session;
use crate::shell;
use crate::store::{RecordFile, Saver};
use crate::workload::permutation::Shuffler;
use model::comparison::record::BootLine;
use model::comparison::record::{BootRecord, End, Header, RoundRecord, Schedule};
use model::comparison::{CompareRecord, boots};
use model::envelope::{Envelope, Kind};
use model::experiment::{Case, Experiment};
use model::record::Outcome;
use std::path::Path;
use std::time::Duration;
use {super::Settings, super::compare, super::turns};

/// The header, before the first boot is measured.
///
/// # Errors
/// When the meters cannot be opened.
pub fn begin(experiment: Experiment, settings: &Settings) -> Result<Header> {
    let calibration = Calibration::begin();
    let meters = MeterSet::open_for_rounds(settings.session.meters.clone())?;
    let canaries = canary::run();
    let (hertz, source) = calibration.end();
    let storage = host::storage::of_experiment(&experiment);
    Ok(Header {
        envelope: Envelope::new(Kind::Compare, host::now(), settings.session.command_line.clone()),
        experiment,
        seed: settings.seed,
        schedule: Schedule::Boots,
        host: host::with_storage(storage, hertz, &source),
        meters: meters.statuses().to_vec(),
        canaries,
        page_cache: None,
        work_counter: None,
        probes: Vec::new(),
        events: None,
    })
}

/// Continues the experiment at `path`, its folder or its record. Returns what saves it, and the record.
///
/// # Errors
/// When there is none, it is complete, or no arm of it is a boot.
pub fn resume(path: &Path) -> Result<(Saver, CompareRecord)> {
    let shown = path.display();
    let (file, record) = RecordFile::resume(path, |record: &CompareRecord| {
        let refused = |why: String| Err(Error::Refused(format!("{shown}: {why}")));
        if record.end.is_some() {
            return refused(format!("this experiment is complete; to show it: iotoll report {shown}"));
        }
        let experiment = &record.header.experiment;
        let Some(plan) = &experiment.boots else {
            return refused(format!(
                "no arm of this comparison is a boot, so it cannot be resumed; to show it: iotoll report {shown}"
            ));
        };
        // Apply the limits of an experiment file also to a header that was edited.
        let checked = plan.check().and_then(|()| experiment.rules.check());
        checked.or_else(|why| refused(format!("its header was changed: {why}; start a new experiment")))
    })?;
    Ok((file.into(), record))
}

/// Adds a boot to a record.
///
/// # Errors
/// When it cannot be written.
pub fn add(saver: &Saver, boot: &BootRecord, round: &RoundRecord) -> Result<()> {
    saver.append("boot", &BootLine { boot, round })
}

/// The arm of each boot, from the first to the last: each round contains every arm once, in an order drawn from the
/// seed.
pub fn order(header: &Header) -> Vec<usize> {
    let each = header.experiment.boots.as_ref().map_or(0, |plan| plan.each);
    let mut shuffler = Shuffler::new(header.seed);
    (0..each).flat_map(|_| shuffler.shuffled(0..header.experiment.arms.len())).collect()
}

/// The arms that are booted now, according to their test commands.
///
/// # Errors
/// When a test command cannot be run, or hangs.
pub fn booted(experiment: &Experiment, settings: &Settings) -> Result<Vec<usize>> {
    let limit = limit(experiment, settings);
    let mut booted = Vec::new();
    for (place, arm) in experiment.arms.iter().enumerate() {
        let Some(when) = &arm.when else { continue };
        let ended = shell::run(
            &format!("arm '{}': when", arm.name),
            &when.command,
            &limit,
            &settings.session.guardian.passing_processes()?,
        )?;
        if when.holds(ended.success, &ended.printed) {
            booted.push(place);
        }
    }
    Ok(booted)
}

/// Runs the hook, which boots the next arm. Environment variables name the arm and the folder to resume.
///
/// # Errors
/// When it fails.
pub fn call(hook: &str, arm: &str, folder: &Path, experiment: &Experiment, settings: &Settings) -> Result<()> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let variables = format!("IOTOLL_ARM={} IOTOLL_RESUME={}", quoted(arm), quoted(&folder.display().to_string()));
    let processes = settings.session.guardian.passing_processes()?;
    let command = format!("export {variables}; {hook}");
    shell::run("hook", &command, &limit(experiment, settings), &processes)?.succeeded("hook", hook)
}

/// Measures the booted arm, for the budget.
///
/// # Errors
/// When it fails or is interrupted: an incomplete boot does not count.
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
        // A different order in each boot, but the same one when a boot is repeated.
        seed: header.seed.wrapping_add(measured.len() as u64 + 1),
        // As in the first boot, so that all arms are cut alike.
        schedule: measured
            .first()
            .map(|first| first.within)
            .or((toggled && jobs).then(|| turns::whole_rounds(None, None))),
        // A boot is saved only when it is complete.
        session: session::Settings { saver: Saver::default(), ..settings.session.clone() },
        ..settings.clone()
    };
    let record = compare(alone, &settings, observer)?;
    let end = record.end.ok_or_else(|| Error::Failed("this boot was not measured completely".to_owned()))?;
    match end.outcome {
        Outcome::Completed => {}
        Outcome::Interrupted => return Err(Error::Interrupted("before this boot was measured completely".to_owned())),
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

/// The end of an experiment of boots, when none is left.
pub fn end(header: &Header) -> End {
    End {
        outcome: Outcome::Completed,
        reason: "all boots were measured".to_owned(),
        tsc_hertz: header.host.tsc_hertz,
        canaries: canary::run(),
        warnings: Vec::new(),
    }
}

/// Indices of an arm's cases.
fn places(experiment: &Experiment, arm: usize) -> impl Iterator<Item = usize> {
    experiment.cases.iter().enumerate().filter(move |(_, case)| case.arm == arm).map(|(place, _)| place)
}

/// The experiment in one boot: one arm's cases. The settings of other arms may not exist in this boot.
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
    WaitLimit::new(longest, settings.session.interruption.clone())
}
