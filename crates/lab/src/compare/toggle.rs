//! Switching the system for an arm, and back: files of the kernel, and pairs of shell commands.
//!
//! What a file held is read before anything is measured. It is put back after each slice, when something fails, on
//! Ctrl-C, and when this is dropped. Against SIGKILL and a power cut there is nothing; files of the kernel forget those.

use super::shell;
use super::team::Patience;
use crate::error::{Error, Result};
use model::experiment::{ArmPlan, Setting};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The switches of all arms.
pub(super) struct Toggles {
    /// What each file held.
    found: Vec<Found>,
    /// The arm that is switched on: its settings and how to leave it.
    on: Option<On>,
    patience: Patience,
}

struct Found {
    path: PathBuf,
    value: String,
    /// It is a file of the kernel, which takes a value whole; not a file that keeps bytes.
    kernel: bool,
}

struct On {
    settings: Vec<PathBuf>,
    leave: Option<String>,
}

impl Toggles {
    /// Reads what is to be put back, and makes sure that it can be.
    ///
    /// # Errors
    /// When a file is not there, cannot be written, or refuses a value that an arm would set.
    pub fn prepare(arms: &[ArmPlan], patience: Patience) -> Result<Self> {
        let mut toggles = Self { found: Vec::new(), on: None, patience };
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
            let text = fs::read_to_string(&setting.path).map_err(|error| refused("reading", error))?;
            let kernel = is_of_the_kernel(&setting.path).map_err(|error| refused("looking at", error))?;
            let found = Found { path: setting.path.clone(), value: if kernel { present(&text) } else { text }, kernel };
            if kernel {
                found.restore().map_err(|error| refused("writing back what was found in", error))?;
            } else {
                let writable = fs::OpenOptions::new().write(true).open(&setting.path);
                writable.map_err(|error| refused("opening for writing", error))?;
            }
            toggles.found.push(found);
        }
        // Each arm once, so that a value that is refused is known before anything is measured.
        for arm in arms.iter().filter(|arm| !arm.settings.is_empty()) {
            toggles.on = Some(On { settings: paths(&arm.settings), leave: None });
            let applied = toggles.apply(&arm.settings);
            toggles.leave()?;
            applied?;
        }
        Ok(toggles)
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
            let now = fs::read_to_string(&setting.path).map_err(|error| failed(format!("reading back: {error}")))?;
            if same(&present(&now), &found.value) {
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
        let patience = Patience { interrupted: Arc::default(), ..self.patience.clone() };
        let left = on.leave.map_or(Ok(()), |leave| shell("leave", &leave, &patience));
        let mut outcome = left;
        let mut still_on = Vec::new();
        for path in on.settings.iter().rev() {
            let Some(found) = self.found.iter().find(|found| found.path == *path) else { continue };
            let (value, path) = (&found.value, path.display());
            let restored = found.restore().map_err(|error| {
                still_on.push(found.path.clone());
                Error::Failed(format!("{path}: could not be set back to '{value}': {error}; set it by hand"))
            });
            outcome = outcome.and(restored);
        }
        // To be tried once more at the end.
        self.on = (!still_on.is_empty()).then_some(On { settings: still_on, leave: None });
        outcome
    }
}

impl Found {
    fn restore(&self) -> std::io::Result<()> {
        write(&self.path, &self.value, self.kernel)?;
        if self.kernel && !same(&present(&fs::read_to_string(&self.path)?), &self.value) {
            return Err(std::io::Error::other("the kernel holds another value"));
        }
        Ok(())
    }
}

/// Files of the kernel get a line, because an empty value would otherwise be no write at all.
fn write(path: &Path, value: &str, kernel: bool) -> std::io::Result<()> {
    if kernel { fs::write(path, format!("{value}\n")) } else { fs::write(path, value) }
}

/// Whether two texts are the same value, however it is spaced.
fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// Whether a path lies in a file system whose files are the kernel's own.
fn is_of_the_kernel(path: &Path) -> std::io::Result<bool> {
    /// proc, sysfs, cgroup2, cgroup, debugfs, tracefs, configfs (linux/magic.h).
    const KINDS: [i64; 7] = [0x9fa0, 0x6265_6572, 0x6367_7270, 0x0027_e0eb, 0x6462_6720, 0x7472_6163, 0x6265_6570];
    Ok(KINDS.contains(&rustix::fs::statfs(path)?.f_type))
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

/// What a file of the kernel holds, as it can be written back: of `none [mq-deadline] bfq` the word in brackets.
fn present(text: &str) -> String {
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or_else(|| text.trim_end_matches('\n')).to_owned()
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
        Patience { longest, interrupted: Arc::default() }
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
        let mut toggles = Toggles::prepare(&[good.clone(), bad.clone()], patience(LONG)).unwrap();
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
        let error = Toggles::prepare(&[arm(&[missing], None, None)], patience(LONG)).err().unwrap().to_string();
        assert!(error.contains("sysctl:no.such.knob=1") && error.contains("/proc/sys/no/such/knob"), "{error}");
    }

    #[test]
    fn of_several_choices_the_one_in_brackets_is_present() {
        assert_eq!(present("none [mq-deadline] bfq\n"), "mq-deadline");
        assert_eq!(present("10\n"), "10");
        assert_eq!(present("4096\t87380\t6291456\n"), "4096\t87380\t6291456");
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
        let interrupted = Patience { longest: LONG, interrupted: Arc::new(true.into()) };
        let mut toggles = Toggles::prepare(&[], interrupted).unwrap();
        let begun = Instant::now();
        let error = toggles.enter(&arm(&[], Some("sleep 1000"), Some(&leave))).unwrap_err();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        assert!(begun.elapsed() < LONG);
        assert!(mark.exists(), "leave ran to its end");
    }
}
