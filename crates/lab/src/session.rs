//! What surrounds every measurement on this machine: [`Settings`] enter, a `Session` begins before the first reading and ends after the
//! last, always in one order.
//!
//! It begins with the limit of open files and the calibration of the clock, then checks the placing, makes the folders of
//! services, runs setup, starts the services, and decides the placing again, because servers are there now. It ends the
//! services, keeps the files that were made or removes them, runs cleanup, removes the folders, and saves the end of the record. What
//! fails on the way is in the outcome of the record.

use crate::calibration::Calibration;
use crate::created::Created;
use crate::error::{Error, Result};
use crate::guardian::processes::Processes;
use crate::guardian::{Guardian, OwnFolder, UndoGuard};
use crate::host;
use crate::interruption::{Interruption, WaitLimit};
use crate::meter::{MeterSet, Selection};
use crate::placing::Placing;
use crate::probe::ProbeSet;
use crate::service::{ServiceSettings, Services, make_folders};
use crate::shell;
use crate::store::Saver;
use crate::whereabouts::servers::Address;
use model::events::Wanted;
use model::experiment;
use model::experiment::Cell;
use model::kind::CommandLine;
use model::kind::{Envelope, Kind};
use model::placement::Place;
use model::probe::Probe;
use model::record::{Host, Outcome};
use model::storage::Storage;
use model::unit::Hertz;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// How to measure, whatever is measured.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Meters that may run.
    pub meters: Selection,
    /// Probes that are read at the same time.
    pub probes: Vec<Probe>,
    /// Events that are counted per I/O (`--events` of `run`, `cost`, `compare` and `blast`); `None` for the default ones.
    pub events: Option<Vec<Wanted>>,
    /// How long to measure the machine without the workload, before and again after (`run` and `cost`).
    pub background: Duration,
    /// A request to end and keep the readings.
    pub interruption: Arc<Interruption>,
    /// The command line, for the record.
    pub command_line: CommandLine,
    /// The CPUs of the workload (`--place`).
    pub place: Option<Place>,
    /// Servers that are started for it.
    pub services: ServiceSettings,
    /// Shell commands before, during and after it.
    pub around: experiment::Around,
    /// Longest time of such a command, and of one that fills a service, for verbs with `--hang-timeout`; after that it counts as hung.
    pub longest_shell: Option<Duration>,
    /// Undoes changes, files and processes if iotoll is killed.
    pub guardian: Guardian,
    /// Saves the record while it grows.
    pub saver: Saver,
}

/// The surroundings of a measurement. If it is dropped before it is closed, everything is put back all the same; the fields are in the
/// order in which that happens.
pub struct Session<'a> {
    pub settings: &'a Settings,
    pub placing: Placing,
    pub calibration: Calibration,
    /// Seconds since 1970.
    started: f64,
    pub services: Services,
    pub around: Around,
    folders: Option<OwnFolder>,
}

impl<'a> Session<'a> {
    /// Begins. `servers` are those that the workload talks to, as far as they are known.
    ///
    /// # Errors
    /// When something cannot be set up or started; all is put back then.
    pub fn open(settings: &'a Settings, servers: &[Address], starting: &mut dyn FnMut(&str)) -> Result<Self> {
        sys::process::raise_open_file_limit();
        let (calibration, started) = (Calibration::begin(), host::now());
        let (place, interruption) = (settings.place.as_ref(), &settings.interruption);
        let limit = WaitLimit::new(settings.longest_shell, interruption.clone());
        let mut placing = Placing::resolve(place, servers)?;
        let folders = make_folders(&settings.services)?;
        let around = Around::begin(settings.around.clone(), &settings.guardian, limit.clone())?;
        let services = Services::start(&settings.services, place, &limit, interruption, starting)?;
        if !services.started.is_empty() {
            placing = Placing::resolve(place, servers)?;
        }
        Ok(Self { settings, placing, calibration, started, services, around, folders })
    }

    /// Ends it. Files that were made stay if the measurement was completed; they go before cleanup, which may unmount what they are on.
    ///
    /// A failure on the way is the outcome of what was measured. If nothing was, a service that exited is the error.
    pub fn close(mut self, mut measured: Result<&mut Outcome, &mut Error>, created: &Created) {
        let ended = self.services.conclude(matches!(measured, Ok(Outcome::Completed)));
        match (ended, &mut measured) {
            (Ok(()), _) => {}
            (Err(error), Ok(outcome)) => **outcome = Outcome::Failed(error.to_string()),
            (Err(error), Err(earlier)) => **earlier = error,
        }
        match measured {
            Ok(Outcome::Completed) => created.keep(),
            Ok(_) | Err(_) => created.undo(),
        }
        let Ok(outcome) = measured else { return };
        if let Err(error) = self.around.clean_up().and_then(|()| self.folders.map_or(Ok(()), OwnFolder::close)) {
            note_failure(outcome, &error);
        }
    }

    /// The same, and saves the end of the record as its last line.
    pub fn close_with_end<E: Serialize>(
        self,
        measured: Result<&mut E, &mut Error>,
        created: &Created,
        outcome: impl Fn(&mut E) -> &mut Outcome,
    ) {
        let saver = &self.settings.saver;
        let end = match measured {
            Ok(end) => end,
            Err(error) => return self.close(Err(error), created),
        };
        self.close(Ok(outcome(end)), created);
        // What was measured is on disk and is shown; only that it ended well is not there.
        if let Err(error) = saver.append("end", end)
            && *outcome(end) == Outcome::Completed
        {
            *outcome(end) = Outcome::Failed(error.to_string());
        }
    }

    /// Opens the meters, with the probes that are read beside them.
    ///
    /// # Errors
    /// Refused, when a probe cannot be read; or no reader of meters can be started.
    pub fn meters(&self) -> Result<MeterSet> {
        self.meters_by(MeterSet::open)?.counting(self.settings.events.as_deref())
    }

    /// The same, for rounds.
    ///
    /// # Errors
    /// Likewise.
    pub fn meters_of_rounds(&self) -> Result<MeterSet> {
        self.meters_by(MeterSet::open_for_rounds)
    }

    /// The meters also read the limits of services in other control groups than iotoll's.
    fn meters_by(&self, open: fn(Selection) -> Result<MeterSet>) -> Result<MeterSet> {
        let probes = ProbeSet::open(&self.settings.probes)?;
        let mut meters = open(self.settings.meters.clone())?;
        meters.probes = probes;
        self.services.processes().for_each(|process| meters.follow(process));
        Ok(meters)
    }

    pub fn interrupted(&self) -> bool {
        self.settings.interruption.is_requested()
    }

    /// The first line of a record.
    pub fn envelope(&self, kind: Kind) -> Envelope {
        Envelope::new(kind, self.started, self.settings.command_line.clone())
    }

    /// Rate of the time-stamp counter since the session began.
    pub fn clock(&self) -> Hertz {
        Hertz(self.calibration.end().0)
    }

    /// The machine, with what holds the files of the workload.
    pub fn host(&self, storage: Vec<Storage>) -> Host {
        let (hertz, source) = self.calibration.end();
        host::with_storage(storage, hertz, &source)
    }
}

/// The outcome of a measurement that this error ends early.
pub fn outcome_of(error: &Error) -> Outcome {
    match error {
        Error::Interrupted(_) => Outcome::Interrupted,
        error => Outcome::Failed(error.to_string()),
    }
}

/// Notes a failure that comes after others.
pub fn note_failure(outcome: &mut Outcome, error: &Error) {
    let error = error.to_string();
    *outcome = match std::mem::replace(outcome, Outcome::Completed) {
        // Tried again, and failed in the same way.
        Outcome::Failed(why) if why.contains(&error) => Outcome::Failed(why),
        Outcome::Failed(why) => Outcome::Failed(format!("{why}; besides: {error}")),
        Outcome::Completed | Outcome::Interrupted => Outcome::Failed(error),
    };
}

/// A measurement whose setup has run. Its cleanup runs at the end, on drop, or when this process is killed.
pub struct Around {
    plan: experiment::Around,
    limit: WaitLimit,
    processes: Processes,
    /// The guardian runs cleanup if this process is killed.
    guarded: UndoGuard,
}

impl Around {
    /// Runs setup. A command that takes longer than the limit is killed.
    ///
    /// # Errors
    /// When setup fails; cleanup has run by then.
    pub fn begin(plan: experiment::Around, guardian: &Guardian, limit: WaitLimit) -> Result<Self> {
        let guarded = guardian.arm_cleanup(plan.cleanup.as_ref(), limit.longest)?;
        let shells = plan.setup.is_some() || plan.prepare.is_some() || plan.cleanup.is_some();
        let processes = if shells { guardian.passing_processes()? } else { Processes::default() };
        let around = Self { plan, limit, processes, guarded };
        match &around.plan.setup {
            Some(setup) => around.run("setup", setup, &around.limit).map(|()| around),
            None => Ok(around),
        }
    }

    /// Runs prepare, with the values of this point of a sweep.
    ///
    /// # Errors
    /// When it fails: the execution would not be the one that the user asked for.
    pub fn prepare(&self, cell: &Cell) -> Result<()> {
        let Some(prepare) = &self.plan.prepare else { return Ok(()) };
        let prepare = cell.fill_in_shell(prepare).map_err(|why| Error::Refused(format!("prepare: {why}")))?;
        self.run("prepare", &prepare, &self.limit)
    }

    /// Runs cleanup.
    ///
    /// # Errors
    /// When it fails.
    fn clean_up(&mut self) -> Result<()> {
        let Some(cleanup) = self.plan.cleanup.take() else { return Ok(()) };
        let limit = self.limit.to_the_end();
        let cleaned = self.run("cleanup", &cleanup, &limit);
        self.guarded = UndoGuard::default();
        cleaned
    }

    fn run(&self, what: &str, command: &str, limit: &WaitLimit) -> Result<()> {
        shell::run(what, command, limit, &self.processes)
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        // The earlier error is the one to report.
        let _ = self.clean_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_later_failure_does_not_hide_the_first() {
        let failed = |why: &str| Outcome::Failed(why.to_owned());
        let noted = |mut outcome: Outcome, why: &str| {
            note_failure(&mut outcome, &Error::Failed(why.to_owned()));
            outcome
        };
        assert_eq!(noted(Outcome::Completed, "b"), failed("b"));
        assert_eq!(noted(Outcome::Interrupted, "b"), failed("b"));
        assert_eq!(noted(failed("a"), "b"), failed("a; besides: b"));
        assert_eq!(noted(failed("a; besides: b"), "b"), failed("a; besides: b"));
    }

    #[test]
    fn prepare_gets_the_values_of_the_point() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let prepare = Some(format!("echo prepare{{n}} >> {}", mark.display()));
        let plan = experiment::Around { prepare, ..experiment::Around::default() };
        let around = Around::begin(plan, &Guardian::default(), WaitLimit::new(None, Arc::default())).unwrap();
        around.prepare(&Cell::default()).unwrap();
        around.prepare(&Cell { values: [("n".to_owned(), "4".to_owned())].into() }).unwrap();
        assert_eq!(std::fs::read_to_string(&mark).unwrap(), "prepare{n}\nprepare4\n");
    }
}
