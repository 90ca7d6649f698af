//! Switching the system for an arm, and back: files of the kernel, and pairs of shell commands.
//!
//! What a file held is read before anything is measured. It is put back after each slice, when something fails, on
//! Ctrl-C, and when this is dropped. Against SIGKILL and a power cut there is nothing; files of the kernel forget those.

mod found;

use super::shell;
use super::team::Patience;
use crate::error::{Error, Result};
use found::{Found, beside, same, write};
use model::experiment::{ArmPlan, Setting};
use model::warning::{Code, Warning, add_once};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// The switches of all arms.
pub(super) struct Toggles {
    /// What each file held.
    found: Vec<Found>,
    /// Others that the kernel changes with them, and what those held.
    coupled: Vec<Found>,
    /// The arm that is switched on: its settings and how to leave it.
    on: Option<On>,
    patience: Patience,
}

struct On {
    settings: Vec<PathBuf>,
    leave: Option<String>,
}

impl Toggles {
    /// Reads what is to be put back, and makes sure that it can be. What a reader has to know goes to `warnings`.
    ///
    /// # Errors
    /// When a file is not there, cannot be written, or refuses a value that an arm would set.
    pub fn prepare(arms: &[ArmPlan], patience: Patience, warnings: &mut Vec<Warning>) -> Result<Self> {
        let mut toggles = Self { found: Vec::new(), coupled: Vec::new(), on: None, patience };
        let mut others = BTreeMap::new();
        for arm in arms {
            same_file_twice(arm)?;
        }
        for setting in arms.iter().flat_map(|arm| &arm.settings) {
            if toggles.found.iter().any(|found| found.path == setting.path) {
                continue;
            }
            let refused = |what: &str, error: std::io::Error| {
                Error::Refused(format!(
                    "{setting}: {what} {}: {error}; run as root, check the name",
                    setting.path.display()
                ))
            };
            let found = Found::read(&setting.path).map_err(|error| refused("reading", error))?;
            let writable = fs::OpenOptions::new().write(true).open(&setting.path);
            writable.map_err(|error| refused("opening for writing", error))?;
            if found.kernel {
                others.append(&mut beside(&setting.path));
            }
            toggles.found.push(found);
        }
        toggles.found.iter().for_each(|found| _ = others.remove(&found.path));
        // Each arm once, so that what is refused or cannot be put back is known before anything is measured.
        for arm in arms.iter().filter(|arm| !arm.settings.is_empty()) {
            toggles.rehearse(arm, &others, warnings)?;
        }
        Ok(toggles)
    }

    fn rehearse(
        &mut self,
        arm: &ArmPlan,
        others: &BTreeMap<PathBuf, String>,
        warnings: &mut Vec<Warning>,
    ) -> Result<()> {
        self.on = Some(On { settings: paths(&arm.settings), leave: None });
        let applied = self.apply(&arm.settings);
        if applied.is_ok() {
            self.note_oddities(arm, warnings);
        }
        let mut left = self.leave();
        let before = self.coupled.len();
        for (path, value) in others {
            let other = Found { path: path.clone(), value: value.clone(), kernel: true };
            if !self.coupled.contains(&other) && !other.differs().is_ok_and(|now| now.is_none()) {
                let also = format!("{} changes with what arm '{}' sets, and is put back too", path.display(), arm.name);
                add_once(warnings, Warning::new(Code::OptionDiffers, also));
                self.coupled.push(other);
            }
        }
        if self.coupled.len() > before {
            // Now that it is known what goes with it.
            self.on = Some(On { settings: paths(&arm.settings), leave: None });
            left = self.leave();
        }
        left?;
        applied
    }

    /// What an arm sets and is so already, and what the kernel makes of other values.
    fn note_oddities(&self, arm: &ArmPlan, warnings: &mut Vec<Warning>) {
        for setting in &arm.settings {
            let Some(found) = self.found.iter().find(|found| found.path == setting.path && found.kernel) else {
                continue;
            };
            let now = fs::read_to_string(&setting.path).map(|text| found::present(&text)).unwrap_or_default();
            let odd = if same(&found.value, &setting.value) {
                format!("arm '{}': {setting} is so already: it changes nothing", arm.name)
            } else if !same(&now, &setting.value) {
                format!("arm '{}': {setting}: the kernel made '{now}' of it", arm.name)
            } else {
                continue;
            };
            add_once(warnings, Warning::new(Code::OptionDiffers, odd));
        }
    }

    /// Switches on what `arm` asks for; what was switched on before it failed is switched off again.
    pub fn enter(&mut self, arm: &ArmPlan) -> Result<()> {
        if !arm.is_toggled() {
            return Ok(());
        }
        self.on = Some(On { settings: paths(&arm.settings), leave: arm.leave.clone() });
        let entered = self.apply(&arm.settings).and_then(|()| match &arm.enter {
            Some(enter) => shell(&format!("arm '{}': enter", arm.name), enter, &self.patience),
            None => Ok(()),
        });
        match entered {
            Ok(()) => Ok(()),
            failed => and_left(failed, self.leave()),
        }
    }

    /// Writes what the settings ask for, and sees that it made a difference.
    fn apply(&self, settings: &[Setting]) -> Result<()> {
        for setting in settings {
            let failed = |what: String| Error::Failed(format!("{setting}: {}: {what}", setting.path.display()));
            let found = self.found.iter().find(|found| found.path == setting.path);
            let kernel = found.is_some_and(|found| found.kernel);
            write(&setting.path, &setting.value, kernel).map_err(|error| failed(format!("writing: {error}")))?;
            let Some(found) = found.filter(|found| kernel && !same(&found.value, &setting.value)) else { continue };
            let differs = found.differs().map_err(|error| failed(format!("reading back: {error}")))?;
            if differs.is_none() {
                return Err(failed(format!("it still is '{}' after writing: the kernel ignored it", found.value)));
            }
        }
        Ok(())
    }

    /// Switches everything off again, whatever fails on the way.
    ///
    /// # Errors
    /// The first thing that could not be put back.
    pub fn leave(&mut self) -> Result<()> {
        let Some(on) = self.on.take() else { return Ok(()) };
        // An interruption does not shorten this: what was switched on is switched off.
        let patience = Patience { interruption: Arc::default(), ..self.patience.clone() };
        let mut outcome = on.leave.map_or(Ok(()), |leave| shell("leave", &leave, &patience));
        let switched = self.found.iter().filter(|found| on.settings.contains(&found.path));
        // The kernel may take a value back only after what goes with it (0 of vm.dirty_bytes is refused, and comes of
        // vm.dirty_ratio), so it counts what is there at the end.
        let written: Vec<(&Found, std::io::Result<()>)> =
            switched.rev().chain(&self.coupled).map(|found| (found, restore(found))).collect();
        let mut still_on = Vec::new();
        for (found, written) in written {
            let (value, path) = (&found.value, found.path.display());
            // What a file that keeps bytes holds is what was written.
            let why = match (found.kernel, written, found.differs()) {
                (false, Ok(()), _) | (true, _, Ok(None)) => continue,
                (_, Err(error), _) | (_, _, Err(error)) => error.to_string(),
                (_, Ok(()), Ok(Some(now))) => format!("the kernel made '{now}' of it"),
            };
            if on.settings.contains(&found.path) {
                still_on.push(found.path.clone());
            }
            outcome = outcome
                .and(Err(Error::Failed(format!("{path}: could not be set back to '{value}': {why}; set it by hand"))));
        }
        // To be tried once more at the end.
        self.on = (!still_on.is_empty()).then_some(On { settings: still_on, leave: None });
        outcome
    }
}

/// Two names of one file in an arm would leave it with the second value only.
fn same_file_twice(arm: &ArmPlan) -> Result<()> {
    let real = |setting: &Setting| setting.path.canonicalize().unwrap_or_else(|_| setting.path.clone());
    for (place, setting) in arm.settings.iter().enumerate() {
        if let Some(other) = arm.settings.iter().take(place).find(|other| real(other) == real(setting)) {
            return Err(Error::Refused(format!("{setting} and {other} are the same file; set it once")));
        }
    }
    Ok(())
}

/// Writes back what is not so already.
fn restore(found: &Found) -> std::io::Result<()> {
    if found.kernel && found.differs()?.is_none() { Ok(()) } else { found.write_back() }
}

impl Drop for Toggles {
    fn drop(&mut self) {
        // Whoever could be told has been told by then, or a panic is under way.
        let _ = self.leave();
    }
}

fn paths(settings: &[Setting]) -> Vec<PathBuf> {
    settings.iter().map(|setting| setting.path.clone()).collect()
}

/// Runs a shell command of a toggle, which must succeed.
fn shell(what: &str, command: &str, patience: &Patience) -> Result<()> {
    let ended = shell::run(what, command, patience)?;
    if ended.success { Ok(()) } else { Err(ended.failure(what, command)) }
}

/// What was measured, when switching off after it went well too; else all that went wrong.
pub(super) fn and_left<T>(measured: Result<T>, left: Result<()>) -> Result<T> {
    match (measured, left) {
        (Ok(measured), Ok(())) => Ok(measured),
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        (Err(error), Err(other)) => Err(Error::Failed(format!("{error}; besides: {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn arm(settings: &[Setting], enter: Option<&str>, leave: Option<&str>) -> ArmPlan {
        ArmPlan {
            name: "candidate".to_owned(),
            settings: settings.to_vec(),
            enter: enter.map(str::to_owned),
            leave: leave.map(str::to_owned),
            ..ArmPlan::default()
        }
    }

    fn setting(path: &std::path::Path, value: &str) -> Setting {
        Setting::parse(&format!("file:{}={value}", path.display())).unwrap()
    }

    fn patience(longest: Duration) -> Patience {
        Patience { longest, interruption: Arc::default() }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_was_found_is_put_back_also_when_enter_fails_and_when_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let (file, mark) = (directory.path().join("knob"), directory.path().join("left"));
        fs::write(&file, "old\n").unwrap();
        let good = arm(&[setting(&file, "new")], None, None);
        let leave = format!("touch {}", mark.display());
        let bad = arm(&[setting(&file, "new")], Some("echo broken knob >&2; exit 3"), Some(&leave));
        let mut toggles = Toggles::prepare(&[good.clone(), bad.clone()], patience(LONG), &mut Vec::new()).unwrap();
        let holds = || fs::read_to_string(&file).unwrap().trim_end().to_owned();
        assert_eq!(holds(), "old");
        toggles.enter(&good).unwrap();
        assert_eq!(holds(), "new");
        toggles.leave().unwrap();
        assert_eq!(holds(), "old");
        let error = toggles.enter(&bad).unwrap_err().to_string();
        assert!(error.contains("broken knob") && error.contains("exit status: 3"), "{error}");
        assert!(mark.exists(), "leave ran");
        assert_eq!(holds(), "old");
        toggles.enter(&good).unwrap();
        drop(toggles);
        assert_eq!(holds(), "old");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_before_anything_is_measured() {
        let missing = Setting::parse("sysctl:no.such.knob=1").unwrap();
        let error = Toggles::prepare(&[arm(&[missing], None, None)], patience(LONG), &mut Vec::new())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("sysctl:no.such.knob=1") && error.contains("/proc/sys/no/such/knob"), "{error}");
    }

    #[test]
    fn what_a_command_leaves_running_is_not_waited_for() {
        let begun = Instant::now();
        let pid = tempfile::NamedTempFile::new().unwrap();
        shell("enter", &format!("sleep 30 & echo $! > {}", pid.path().display()), &patience(LONG)).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20));
        shell("leave", &format!("kill $(cat {})", pid.path().display()), &patience(LONG)).unwrap();
    }

    #[test]
    fn a_command_that_hangs_is_killed_and_ctrl_c_ends_an_enter_but_not_a_leave() {
        let error = shell("enter", "sleep 1000", &patience(Duration::from_millis(50))).unwrap_err().to_string();
        assert!(error.contains("sleep 1000") && error.contains("--patience"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("left");
        let leave = format!("sleep 1.5; touch {}", mark.display());
        let interrupted = Patience { longest: LONG, interruption: Arc::default() };
        interrupted.interruption.ask();
        let mut toggles = Toggles::prepare(&[], interrupted, &mut Vec::new()).unwrap();
        let begun = Instant::now();
        let error = toggles.enter(&arm(&[], Some("sleep 1000"), Some(&leave))).unwrap_err();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        assert!(begun.elapsed() < LONG);
        assert!(mark.exists(), "leave ran to its end");
    }
}
