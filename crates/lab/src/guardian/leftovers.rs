//! What iotolls left behind that were killed together with their guardians: found in their ledgers, told, put back.

use super::ledger::{self, Holder};
use super::processes;
use super::setting_file::{self, SettingFile};
use super::undo::{Switched, Undo};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a guardian that is at work is waited for.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What is left behind, a line each. Nothing is changed.
pub fn found() -> Vec<String> {
    let mut lines = Vec::new();
    for ledger in ledger::all() {
        match ledger.holder {
            Holder::Iotoll => {}
            Holder::Guardian(process) => lines.push(at_work(process)),
            Holder::Gone => lines.extend(remnants(&ledger).iter().map(Remnant::found)),
        }
    }
    lines
}

/// Puts back what is left behind: what was found and done, a line each.
pub fn put_back() -> Vec<String> {
    let begun = Instant::now();
    let mut ledgers = ledger::all();
    while ledgers.iter().any(|ledger| matches!(ledger.holder, Holder::Guardian(_))) && begun.elapsed() < TIMEOUT {
        // Whoever stopped it did not mean it to keep what it has.
        ledgers.iter().for_each(ledger::Found::wake_guardian);
        drop(ledgers);
        std::thread::sleep(Duration::from_millis(10));
        ledgers = ledger::all();
    }
    let mut lines = Vec::new();
    for ledger in ledgers {
        match ledger.holder {
            Holder::Iotoll => {}
            Holder::Guardian(process) => lines.push(at_work(process)),
            Holder::Gone => {
                let prefix = format!("left behind by '{}', which was killed: ", ledger.header.command_line.join(" "));
                lines.extend(act(remnants(&ledger)).into_iter().map(|line| prefix.clone() + &line));
                // Nobody but a person knows when what a command switched on is off.
                let by_hand: Vec<Undo> =
                    ledger.entries.iter().filter(|undo| matches!(undo, Undo::MayBeOn { .. })).cloned().collect();
                if by_hand.is_empty() || ledger.keep(&by_hand).is_err() {
                    ledger.remove();
                }
            }
        }
    }
    lines
}

/// A file among these that an iotoll which lives switches, and who that is.
pub(crate) fn switched_by_another(paths: &[&Path]) -> Option<(PathBuf, String)> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let ours: Vec<PathBuf> = paths.iter().map(|path| real(path)).collect();
    let others = ledger::all().into_iter().filter(|ledger| ledger.holder == Holder::Iotoll && !ledger.is_own());
    others.into_iter().find_map(|ledger| {
        let switched = ledger.entries.iter().filter_map(|undo| match undo {
            Undo::Restore(files) => Some(files),
            _ => None,
        });
        let file = switched.flatten().find(|file| ours.contains(&real(&file.found.path)))?;
        Some((file.found.path.clone(), ledger.header.command_line.join(" ")))
    })
}

fn at_work(process: u32) -> String {
    format!("the guardian (process {process}) of an iotoll that was killed is still undoing what that one did")
}

/// One thing that is left behind.
#[derive(Debug)]
enum Remnant {
    /// A file that holds what iotoll had set.
    Switched { found: SettingFile, now: String },
    /// A file that holds neither that nor what it had held.
    Foreign { found: SettingFile, now: String },
    /// What a command may have switched on.
    MayBeOn { command: String, directory: PathBuf, ledger: PathBuf },
    /// Something that is undone as the guardian would have.
    Other { what: String, done: &'static str, undo: Undo },
}

impl Remnant {
    fn found(&self) -> String {
        match self {
            Self::Switched { found, now } => {
                format!("{} is '{now}', it was '{}'", found.path.display(), found.value)
            }
            Self::Foreign { found, now } => format!(
                "{} is '{now}', neither what iotoll had found ('{}') nor what it had set",
                found.path.display(),
                found.value
            ),
            Self::MayBeOn { command, directory, ledger } => {
                format!("may still be on: run `{command}` in {}, then remove {}", directory.display(), ledger.display())
            }
            Self::Other { what, .. } => what.clone(),
        }
    }
}

/// What a ledger's entries come to now.
fn remnants(ledger: &ledger::Found) -> Vec<Remnant> {
    let same_boot = crate::host::boot_id().is_ok_and(|now| now == ledger.header.boot_id);
    let (first, rest): (Vec<&Undo>, Vec<&Undo>) = ledger.entries.iter().partition(|undo| undo.is_first());
    first.into_iter().chain(rest).flat_map(|undo| remnants_of(undo, ledger, same_boot)).collect()
}

fn remnants_of(undo: &Undo, ledger: &ledger::Found, same_boot: bool) -> Vec<Remnant> {
    let other = |what: String, done| vec![Remnant::Other { what, done, undo: undo.clone() }];
    match undo {
        Undo::Restore(files) => files.iter().filter_map(|file| switched(file, same_boot)).collect(),
        // What a command does to the kernel is forgotten with it; what it does elsewhere nobody knows.
        Undo::Run { command, .. } | Undo::MayBeOn { command } => vec![Remnant::MayBeOn {
            command: command.clone(),
            directory: ledger.header.directory.clone(),
            ledger: ledger.path.clone(),
        }],
        Undo::RemoveFile { path, made } if made.lies_at(path) => {
            other(format!("the file {}", path.display()), "removed")
        }
        Undo::RemoveFolder { path, made } if made.lies_at(path) => {
            other(format!("the folder {}", path.display()), "removed")
        }
        Undo::Shorten { path, lengthened } if lengthened.lies_at(path) => {
            other(format!("{}, made longer", path.display()), "as long again as it was")
        }
        Undo::Kill { mark, leader } if same_boot => match processes::found(mark, *leader).as_slice() {
            [] => Vec::new(),
            some => {
                let numbers: Vec<String> = some.iter().map(|one| one.process.to_string()).collect();
                other(format!("running processes ({})", numbers.join(", ")), "killed")
            }
        },
        Undo::RemoveFile { .. } | Undo::RemoveFolder { .. } | Undo::Shorten { .. } | Undo::Kill { .. } => Vec::new(),
    }
}

/// What became of a file that was switched; nothing where it is as it was.
fn switched(file: &Switched, same_boot: bool) -> Option<Remnant> {
    let found = file.found.clone();
    if found.kernel && !same_boot {
        return None;
    }
    let now = found.now().ok()?;
    if found.is(&now, &found.value) {
        return None;
    }
    // A file that keeps bytes is emptied before it is written to.
    let ours = file.set.iter().any(|set| found.is(&now, set)) || (!found.kernel && now.is_empty());
    Some(if ours { Remnant::Switched { found, now } } else { Remnant::Foreign { found, now } })
}

/// Puts back what is known to be iotoll's, and says so.
fn act(remnants: Vec<Remnant>) -> Vec<String> {
    // Together, because the kernel may take one back only after another.
    let files = remnants.iter().filter_map(|remnant| match remnant {
        Remnant::Switched { found, .. } => Some(found),
        _ => None,
    });
    let mut refused: Vec<(&Path, String)> = Vec::new();
    for (found, why) in setting_file::put_back(files) {
        refused.push((&found.path, why));
    }
    let line = |remnant: &Remnant| {
        let is = remnant.found();
        match remnant {
            Remnant::Switched { found, .. } => match refused.iter().find(|(path, _)| *path == found.path) {
                Some((_, why)) => format!("{is}; it could not be set back: {why}; set it by hand"),
                None => format!("{is}; set back"),
            },
            Remnant::Foreign { .. } => format!("{is}; left as it is"),
            Remnant::MayBeOn { .. } => is,
            Remnant::Other { done, undo, .. } => match undo.perform() {
                Ok(()) => format!("{is}; {done}"),
                Err(why) => format!("{is}; not {done}: {why}"),
            },
        }
    };
    remnants.iter().map(line).collect()
}
