//! Switches the system for an arm of a comparison, and back: files of the kernel, and pairs of shell commands.
//!
//! The original value of a file is read before the measurement. It is restored after each slice, after a failure, on
//! Ctrl-C, and on drop; if this process is killed, the guardian restores it.

use crate::error::{Error, Result};
use crate::guardian::setting_file::{Left, SettingFile, beside, put_back, same, shown};
use crate::guardian::undo::{Switched, Undo};
use crate::guardian::{Guardian, UndoGuard, leftovers};
use crate::interruption::WaitLimit;
use crate::shell::run as shell;
use model::experiment::{ArmPlan, Setting};
use model::warning::{Code, Warning, add_once};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The switches of all arms.
pub struct Toggles {
    /// Original value of each file.
    found: Vec<SettingFile>,
    /// Other files that the kernel changes with them, and their original values.
    coupled: Vec<SettingFile>,
    /// The arm that is on: its settings and its cleanup command.
    on: Option<On>,
    /// Longest time that switching the settings of an arm on or off took.
    pub slowest_switch: Duration,
    limit: WaitLimit,
    guarded: Guarded,
}

/// Undo actions that survive this process.
#[derive(Default)]
struct Guarded {
    guardian: Guardian,
    /// Restores the original values of the files.
    files: UndoGuard,
    /// For each file that is switched or changes with one, its values while it is switched.
    set: BTreeMap<PathBuf, Vec<String>>,
    /// Runs the cleanup command of the arm that is on.
    cleanup: UndoGuard,
    /// Records of such commands.
    commands: Vec<UndoGuard>,
}

struct On {
    settings: Vec<PathBuf>,
    cleanup: Option<String>,
}

impl Toggles {
    /// Reads the original values, and makes sure that they can be restored. Caveats go to
    /// `warnings`.
    ///
    /// # Errors
    /// When a file does not exist, cannot be written, or refuses a value of an arm.
    pub fn prepare(
        arms: &[ArmPlan],
        limit: WaitLimit,
        guardian: &Guardian,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self> {
        let guarded = Guarded { guardian: guardian.clone(), ..Guarded::default() };
        let (found, coupled, on, slowest_switch) = (Vec::new(), Vec::new(), None, Duration::ZERO);
        let mut toggles = Self { found, coupled, on, slowest_switch, limit, guarded };
        let mut beside_them = BTreeMap::new();
        for arm in arms {
            same_file_twice(arm)?;
        }
        for setting in arms.iter().flat_map(|arm| &arm.settings) {
            if toggles.found.iter().any(|found| found.path == setting.path) {
                continue;
            }
            let refused = |what: &str, error: std::io::Error| {
                Error::Refused(format!(
                    "{setting}: {what} {}: {error}; check the name, and run as root",
                    setting.path.display()
                ))
            };
            let found = SettingFile::read(&setting.path).map_err(|error| refused("reading", error))?;
            if found.kernel {
                let mut beside =
                    beside(&setting.path).map_err(|error| refused("reading the settings beside", error))?;
                beside_them.append(&mut beside);
            }
            toggles.found.push(found);
        }
        toggles.found.iter().for_each(|found| _ = beside_them.remove(&found.path));
        let others: Vec<_> = beside_them.iter().map(|(path, value)| SettingFile::of_kernel(path, value)).collect();
        toggles.hand_over(arms, &others)?;
        toggles.refuse_what_another_switches()?;
        // Switch each arm once, so that errors show before the measurement.
        for arm in arms.iter().filter(|arm| !arm.settings.is_empty()) {
            toggles.rehearse(arm, &others, warnings)?;
        }
        if !toggles.found.is_empty() {
            toggles.guarded.files.amend(toggles.undo(&[])?)?;
        }
        if let Some(why) = guardian.ledger_trouble().filter(|_| arms.iter().any(ArmPlan::is_toggled)) {
            let lost =
                "if iotoll and its guardian are both killed, or the machine crashes, settings must be restored by hand";
            warnings.push(Warning::new(Code::NoLedger, format!("{why}: cannot write a ledger; {lost}")));
        }
        Ok(toggles)
    }

    /// Two iotolls that switch the same file would each take the other's value for the original. This check follows our
    /// entry in the ledger, so that of two that start together at least one sees the other.
    fn refuse_what_another_switches(&self) -> Result<()> {
        let paths: Vec<&Path> = self.found.iter().map(|found| found.path.as_path()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let Some((path, who)) = leftovers::switched_by_another(&paths) else { return Ok(()) };
        let path = path.display();
        Err(Error::Refused(format!("{path} is being switched by another iotoll, '{who}'; wait until it has ended")))
    }

    /// Registers the undo actions before anything is switched.
    fn hand_over(&mut self, arms: &[ArmPlan], others: &[SettingFile]) -> Result<()> {
        for setting in arms.iter().flat_map(|arm| &arm.settings) {
            self.guarded.set.entry(setting.path.clone()).or_default().push(setting.value.clone());
        }
        if !self.found.is_empty() {
            self.guarded.files = self.guarded.guardian.add(self.undo(others)?)?;
        }
        for command in arms.iter().filter_map(|arm| arm.cleanup.clone()) {
            self.guarded.commands.push(self.guarded.guardian.add(Undo::MayBeOn { command })?);
        }
        Ok(())
    }

    /// The undo action for all files, and for `others`, which may change with them.
    fn undo(&self, others: &[SettingFile]) -> Result<Undo> {
        let others = others.iter().filter(|other| !self.coupled.contains(other));
        let all = self.found.iter().rev().chain(&self.coupled).chain(others);
        let switched = all.cloned().map(|found| {
            let set = self.guarded.set.get(&found.path).cloned().unwrap_or_default();
            let path = std::path::absolute(&found.path)
                .map_err(|error| Error::file(&found.path, "resolving the path", error))?;
            Ok(Switched { found: SettingFile { path, ..found }, set })
        });
        Ok(Undo::Restore(switched.collect::<Result<_>>()?))
    }

    /// Notes the values that the kernel shows while the settings of an arm are on.
    fn note_set(&mut self, arm: &ArmPlan, others: &[SettingFile]) {
        let of_arm = self.found.iter().filter(|found| arm.settings.iter().any(|setting| setting.path == found.path));
        for found in of_arm.chain(others) {
            if let Ok(Some(now)) = found.differs() {
                self.guarded.set.entry(found.path.clone()).or_default().push(now);
            }
        }
    }

    fn rehearse(&mut self, arm: &ArmPlan, others: &[SettingFile], warnings: &mut Vec<Warning>) -> Result<()> {
        self.on = Some(On { settings: paths(&arm.settings), cleanup: None });
        let begun = Instant::now();
        let applied = self.apply(&arm.settings);
        self.slowest_switch = self.slowest_switch.max(begun.elapsed());
        if applied.is_ok() {
            self.note_oddities(arm, warnings);
            self.note_set(arm, others);
        }
        let begun = Instant::now();
        let mut left = self.switch_off();
        self.slowest_switch = self.slowest_switch.max(begun.elapsed());
        let before = self.coupled.len();
        for other in others {
            if !self.coupled.contains(other) && !other.differs().is_ok_and(|now| now.is_none()) {
                let (path, arm) = (other.path.display(), &arm.name);
                let also = format!("{path} changes with the settings of arm '{arm}', and is restored too");
                add_once(warnings, Warning::new(Code::OptionDiffers, also));
                self.coupled.push(other.clone());
            }
        }
        if self.coupled.len() > before {
            // Again, now that the related files are known.
            self.on = Some(On { settings: paths(&arm.settings), cleanup: None });
            left = self.switch_off();
        }
        left?;
        // Nothing was measured yet, so the setting itself is refused.
        applied.map_err(|error| match error {
            Error::Failed(why) => {
                Error::Refused(format!("{why}; the kernel does not accept this value; give another one"))
            }
            other => other,
        })
    }

    /// Warns about settings that are already in force, and about values that the kernel changed.
    fn note_oddities(&self, arm: &ArmPlan, warnings: &mut Vec<Warning>) {
        for setting in &arm.settings {
            let Some(found) = self.found.iter().find(|found| found.path == setting.path && found.kernel) else {
                continue;
            };
            let now = found.now().unwrap_or_default();
            let odd = if same(&found.value, &setting.value) {
                format!("arm '{}': {setting} is already in force and changes nothing", arm.name)
            } else if !same(&now, &setting.value) {
                format!("arm '{}': {setting}: the kernel changed it to '{}'", arm.name, shown(&now))
            } else {
                continue;
            };
            add_once(warnings, Warning::new(Code::OptionDiffers, odd));
        }
    }

    /// Switches on the settings of `arm`; on failure it switches them off again.
    pub fn switch_on(&mut self, arm: &ArmPlan) -> Result<()> {
        if !arm.is_toggled() {
            return Ok(());
        }
        // Before anything is switched on, the guardian would undo everything.
        self.guarded.guardian.make_sure()?;
        self.guarded.cleanup = self.guarded.guardian.arm_cleanup(arm.cleanup.as_ref(), self.limit.longest)?;
        for found in self.found.iter().filter(|found| arm.settings.iter().any(|setting| setting.path == found.path)) {
            untouched(found)?;
        }
        self.on = Some(On { settings: paths(&arm.settings), cleanup: arm.cleanup.clone() });
        let switched = self.apply(&arm.settings).and_then(|()| match &arm.setup {
            Some(setup) => {
                let processes = self.guarded.guardian.passing_processes()?;
                shell(&format!("arm '{}': setup", arm.name), setup, &self.limit, &processes)
            }
            None => Ok(()),
        });
        match switched {
            Ok(()) => Ok(()),
            failed => and_left(failed, self.switch_off()),
        }
    }

    /// Writes the original value of every file again, so that an arm without settings also follows a write to the
    /// kernel.
    ///
    /// # Errors
    /// When another process has changed one of them.
    pub fn rewrite(&self) -> Result<()> {
        for found in self.found.iter().rev() {
            untouched(found)?;
            // A value that the kernel shows but does not accept (0 in vm.dirty_bytes) stays as it is.
            let _ = found.write_back();
        }
        Ok(())
    }

    /// Writes the settings, and checks that they took effect.
    fn apply(&self, settings: &[Setting]) -> Result<()> {
        for setting in settings {
            let failed = |what: String| Error::Failed(format!("{setting}: {}: {what}", setting.path.display()));
            let Some(found) = self.found.iter().find(|found| found.path == setting.path) else { continue };
            found.write(&setting.value).map_err(|error| failed(format!("writing: {error}")))?;
            if !found.kernel || same(&found.value, &setting.value) {
                continue;
            }
            let differs = found.differs().map_err(|error| failed(format!("reading back: {error}")))?;
            if differs.is_none() {
                let value = shown(&found.value);
                return Err(failed(format!("still '{value}' after writing: the kernel ignored the value")));
            }
        }
        Ok(())
    }

    /// Switches everything off, whatever fails meanwhile.
    ///
    /// # Errors
    /// The first thing that could not be restored.
    pub fn switch_off(&mut self) -> Result<()> {
        let Some(on) = self.on.take() else { return Ok(()) };
        // An interruption does not shorten this.
        let limit = self.limit.to_the_end();
        let mut outcome = on.cleanup.map_or(Ok(()), |cleanup| {
            // The command runs even without a guardian.
            let processes = self.guarded.guardian.passing_processes().unwrap_or_default();
            shell("cleanup", &cleanup, &limit, &processes)
        });
        self.guarded.cleanup = UndoGuard::default();
        let switched = self.found.iter().filter(|found| on.settings.contains(&found.path));
        let set = &self.guarded.set;
        let files = switched
            .rev()
            .chain(&self.coupled)
            .map(|found| (found, set.get(&found.path).map_or(&[][..], Vec::as_slice)));
        let mut still_on = Vec::new();
        for Left { found, why, foreign } in put_back(files) {
            let (value, path) = (found.value.trim().escape_debug(), found.path.display());
            if on.settings.contains(&found.path) && !foreign {
                still_on.push(found.path.clone());
            }
            outcome = outcome
                .and(Err(Error::Failed(format!("{path}: could not be set back to '{value}': {why}; set it by hand"))));
        }
        // Try again at the end.
        self.on = (!still_on.is_empty()).then_some(On { settings: still_on, cleanup: None });
        outcome
    }
}

/// A value that another process has set meanwhile is neither treated as the original nor overwritten.
fn untouched(found: &SettingFile) -> Result<()> {
    match found.differs() {
        Err(error) if !found.kernel => {
            let path = found.path.display();
            Err(Error::Failed(format!("{path}: {error}: another process changed it; it is left as it is")))
        }
        Ok(Some(now)) => Err(Error::Failed(format!(
            "{} is '{}' and was '{}' when the measurement started: another process changed it; it is left as it is",
            found.path.display(),
            shown(&now),
            shown(&found.value)
        ))),
        _ => Ok(()),
    }
}

/// Two names of one file in an arm would leave the file with the second value.
fn same_file_twice(arm: &ArmPlan) -> Result<()> {
    let real = |setting: &Setting| setting.path.canonicalize().unwrap_or_else(|_| setting.path.clone());
    for (place, setting) in arm.settings.iter().enumerate() {
        if let Some(other) = arm.settings.iter().take(place).find(|other| real(other) == real(setting)) {
            return Err(Error::Refused(format!("{setting} and {other} are the same file; set it once")));
        }
    }
    Ok(())
}

impl Drop for Toggles {
    fn drop(&mut self) {
        // An error cannot be reported from here.
        let _ = self.switch_off();
        if self.on.is_some() {
            // The guardian tries again, and the ledger informs the next iotoll.
            std::mem::take(&mut self.guarded.files).abandon();
        }
    }
}

fn paths(settings: &[Setting]) -> Vec<PathBuf> {
    settings.iter().map(|setting| setting.path.clone()).collect()
}

/// The measurement, if switching off succeeded too; otherwise all errors.
pub fn and_left<T>(measured: Result<T>, left: Result<()>) -> Result<T> {
    match (measured, left) {
        (Ok(measured), Ok(())) => Ok(measured),
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        (Err(error), Err(other)) => Err(Error::Failed(format!("{error}; besides: {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardian::processes::Processes;
    use crate::interruption::Interruption;
    use std::sync::Arc;

    fn arm(setup: Option<&str>, cleanup: Option<&str>) -> ArmPlan {
        ArmPlan { setup: setup.map(str::to_owned), cleanup: cleanup.map(str::to_owned), ..ArmPlan::default() }
    }

    fn limit(longest: Duration) -> WaitLimit {
        WaitLimit::new(longest, Arc::default())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn background_processes_of_a_command_are_not_waited_for() {
        let begun = Instant::now();
        let pid = tempfile::NamedTempFile::new().unwrap();
        shell("setup", &format!("sleep 30 & echo $! > {}", pid.path().display()), &limit(LONG), &Processes::default())
            .unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20));
        shell("cleanup", &format!("kill $(cat {})", pid.path().display()), &limit(LONG), &Processes::default())
            .unwrap();
    }

    #[test]
    fn a_hung_command_is_killed_and_ctrl_c_ends_a_setup_but_not_a_cleanup() {
        let error = shell("setup", "sleep 1000", &limit(Duration::from_millis(50)), &Processes::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("sleep 1000") && error.contains("--hang-timeout"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("left");
        let cleanup = format!("sleep 1.5; touch {}", mark.display());
        let interruption = Arc::new(Interruption::default());
        interruption.request();
        let interrupted = WaitLimit::new(LONG, interruption.clone());
        let mut toggles = Toggles::prepare(&[], interrupted, &Guardian::default(), &mut Vec::new()).unwrap();
        let begun = Instant::now();
        let error = toggles.switch_on(&arm(Some("sleep 1000"), Some(&cleanup))).unwrap_err();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        assert!(begun.elapsed() < LONG);
        assert!(mark.exists(), "cleanup ran to its end");
        assert_eq!(interruption.awaited(), None);
        let hangs = arm(None, Some("sleep 1000"));
        toggles.switch_on(&hangs).unwrap();
        let waiter = std::thread::spawn(move || toggles.switch_off());
        let told = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            interruption.awaited()
        });
        let told = told.unwrap();
        assert!(told.contains("cleanup: `sleep 1000`") && told.contains("killed after 60 s"), "{told}");
        // The command from the message to the user.
        let (_, kill) = told.split_once("to end it now: ").unwrap();
        assert!(std::process::Command::new("sh").args(["-c", kill]).status().unwrap().success());
        let error = waiter.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("sleep 1000") && error.contains("signal"), "{error}");
    }
}
