//! The I/O schedulers that jobs ask for (`ioscheduler`): each phase sets those of the devices below its files, and puts the earlier ones back.

use crate::error::{Error, Result};
use crate::host::storage;
use crate::session::Session;
use crate::toggle::Toggles;
use crate::wait_limit::WaitLimit;
use model::experiment::{ArmPlan, Setting};
use model::plan::{Phase, Plan};
use model::warning::{Code, Warning};

/// The schedulers of the phases of a plan.
pub(crate) struct Schedulers {
    toggles: Toggles,
    /// Of each phase.
    phases: Vec<ArmPlan>,
}

impl Schedulers {
    /// Finds the devices, and tries each scheduler once. `None` if no job asks for one.
    ///
    /// # Errors
    /// A scheduler that the kernel does not have, or that may not be set; or two for one device at the same time.
    pub(crate) fn prepare(plan: &Plan, session: &Session, warnings: &mut Vec<Warning>) -> Result<Option<Self>> {
        let phases = plan.phases.iter().map(|phase| of_phase(phase, warnings)).collect::<Result<Vec<_>>>()?;
        if phases.iter().all(|phase| phase.settings.is_empty()) {
            return Ok(None);
        }
        let settings = session.settings;
        let limit = WaitLimit::new(settings.longest_shell, settings.interruption.clone());
        let toggles = Toggles::prepare("job", &phases, limit, &settings.guardian, warnings)?;
        Ok(Some(Self { toggles, phases }))
    }

    /// Sets those of this phase.
    ///
    /// # Errors
    /// When the kernel refuses it now, or another process has changed one meanwhile.
    pub(crate) fn switch_on(&mut self, phase: usize) -> Result<()> {
        self.phases.get(phase).map_or(Ok(()), |phase| self.toggles.switch_on(phase))
    }

    /// Puts back what was there before.
    ///
    /// # Errors
    /// What could not be put back.
    pub(crate) fn switch_off(&mut self) -> Result<()> {
        self.toggles.switch_off()
    }
}

/// The settings of a phase, in the form of those of an arm.
fn of_phase(phase: &Phase, warnings: &mut Vec<Warning>) -> Result<ArmPlan> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for job in &phase.jobs {
        let Some(scheduler) = &job.files.scheduler else { continue };
        names.push(&job.name);
        let files = storage::schedulers_of(job);
        if files.is_empty() {
            // As in fio, it is ignored.
            let why = format!(
                "job '{}': ioscheduler has no effect: no device with a scheduler is known to hold its files",
                job.name
            );
            warnings.push(Warning::new(Code::OptionIgnored, why));
        }
        for path in files {
            let setting = Setting { name: "ioscheduler".to_owned(), path, value: scheduler.clone() };
            match settings.iter().find(|other| other.path == setting.path) {
                None => settings.push(setting),
                Some(other) if other.value == setting.value => {}
                Some(other) => {
                    let (name, path, other) = (&job.name, setting.path.display(), &other.value);
                    return Err(Error::Refused(format!(
                        "job '{name}': ioscheduler={scheduler}: another job that runs at the same time sets {path} to '{other}'; use stonewall"
                    )));
                }
            }
        }
    }
    Ok(ArmPlan { name: names.join(", "), settings, ..ArmPlan::default() })
}
