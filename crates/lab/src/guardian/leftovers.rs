//! What killed iotoll processes left behind when their guardians were killed too: finds it in their ledgers, reports
//! it, restores it.

use super::ledger::{self, Holder};
use super::processes;
use super::setting_file::{self, SettingFile, shown};
use super::undo::{Switched, Undo};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is left behind, one line each. Changes nothing.
pub fn found() -> Vec<String> {
    let found = |ledger: &ledger::Found| remnants(ledger).into_iter().map(|remnant| remnant.is).collect();
    told(ledger::all(), found, |_| {})
}

/// For a guardian that is undoing, and for processes that the kernel is ending.
const ENDING: Duration = Duration::from_secs(2);

/// Restores what is left behind. Returns what was found and done, one line each.
pub fn put_back() -> Vec<String> {
    let begun = Instant::now();
    let mut ledgers = ledger::all();
    while ledgers.found.iter().any(|ledger| ledger.holder == Holder::Another) && begun.elapsed() < ENDING {
        drop(ledgers);
        std::thread::sleep(Duration::from_millis(10));
        ledgers = ledger::all();
    }
    let done = |ledger: &ledger::Found| {
        let prefix = format!("left behind by '{}', which was killed: ", ledger.header.command_line.join(" "));
        act(remnants(ledger)).into_iter().map(|line| prefix.clone() + &line).collect()
    };
    told(ledgers, done, |ledger| {
        // Only the user can know when the effect of a command is off.
        let by_hand: Vec<Undo> =
            ledger.entries.iter().filter(|undo| matches!(undo, Undo::MayBeOn { .. })).cloned().collect();
        // What was put back stays so if it is put back again.
        match by_hand.is_empty() {
            true => ledger.remove(),
            false => _ = ledger.keep(&by_hand),
        }
    })
}

/// The lines of ledgers: `gone` tells those of one that no process owns, and `after` ends it.
fn told(
    ledgers: ledger::Ledgers,
    gone: impl Fn(&ledger::Found) -> Vec<String>,
    after: impl Fn(&ledger::Found),
) -> Vec<String> {
    let mut lines = ledgers.refused;
    for ledger in ledgers.found {
        match ledger.holder {
            Holder::Iotoll => {}
            Holder::Another => lines.push(format!(
                "{}: its iotoll was killed, and what it leaves is still being undone, or it runs in another container; left as it is",
                ledger.path.display()
            )),
            Holder::Gone => {
                lines.extend(gone(&ledger));
                after(&ledger);
            }
        }
    }
    lines
}

/// A file among these that another running iotoll switches, and the command line of that iotoll.
pub(crate) fn switched_by_another(paths: &[&Path]) -> Option<(PathBuf, String)> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let ours: Vec<PathBuf> = paths.iter().map(|path| real(path)).collect();
    let others = ledger::all().found.into_iter();
    let others = others.filter(|ledger| ledger.holder != Holder::Gone && !ledger.is_own());
    others.into_iter().find_map(|ledger| {
        let switched = ledger.entries.iter().filter_map(|undo| match undo {
            Undo::Restore(files) => Some(files),
            _ => None,
        });
        let file = switched.flatten().find(|file| ours.contains(&real(&file.found.path)))?;
        Some((file.found.path.clone(), ledger.header.command_line.join(" ")))
    })
}

/// One thing that is left behind, and what becomes of it.
#[derive(Debug)]
struct Remnant {
    is: String,
    then: Then,
}

#[derive(Debug)]
enum Then {
    /// Nothing, as the line says in these words: only the user knows how to end it, or another process made it.
    Leave(&'static str),
    /// A file gets its original value back, which has one of these that iotoll set.
    SetBack(SettingFile, Vec<String>),
    /// It is undone the way the guardian would have, which is called so.
    Undo(&'static str, Undo),
}

/// What the entries of a ledger mean now.
fn remnants(ledger: &ledger::Found) -> Vec<Remnant> {
    let same_boot = crate::host::boot_id().is_ok_and(|now| now == ledger.header.boot_id);
    let (first, rest): (Vec<&Undo>, Vec<&Undo>) = ledger.entries.iter().partition(|undo| undo.is_first());
    first.into_iter().chain(rest).flat_map(|undo| remnants_of(undo, ledger, same_boot)).collect()
}

fn remnants_of(undo: &Undo, ledger: &ledger::Found, same_boot: bool) -> Vec<Remnant> {
    let other = |is: String, done| vec![Remnant { is, then: Then::Undo(done, undo.clone()) }];
    match undo {
        Undo::Restore(files) => files.iter().filter_map(|file| switched(file, same_boot)).collect(),
        // After a reboot the effects on the kernel have ended; other effects are unknown.
        Undo::Run { command, .. } | Undo::MayBeOn { command } => {
            let (directory, ledger) = (ledger.header.directory.display(), ledger.path.display());
            let is = format!("may still be on: run `{command}` in {directory}, then remove {ledger}");
            vec![Remnant { is, then: Then::Leave("") }]
        }
        Undo::Remove { path, made } if made.lies_at(path) => {
            let kind = if path.is_dir() { "folder" } else { "file" };
            other(format!("the {kind} {}", path.display()), "removed")
        }
        Undo::Shorten { path, lengthened } if lengthened.lies_at(path) => {
            other(format!("{}, which iotoll lengthened", path.display()), "cut to its old length")
        }
        Undo::RemoveGroup { path } if same_boot && path.exists() => {
            other(format!("the control group {}", path.display()), "removed")
        }
        Undo::Kill { mark, leader } if same_boot => {
            let found = processes::found(mark, *leader);
            let numbers: Vec<String> = found.iter().map(|one| one.process.to_string()).collect();
            match numbers.is_empty() {
                true => Vec::new(),
                false => other(format!("running processes ({})", numbers.join(", ")), "killed"),
            }
        }
        Undo::Remove { .. } | Undo::Shorten { .. } | Undo::RemoveGroup { .. } | Undo::Kill { .. } => Vec::new(),
    }
}

/// The state of a file that was switched; `None` if it has its original value.
fn switched(file: &Switched, same_boot: bool) -> Option<Remnant> {
    let found = file.found.clone();
    if found.kernel && !same_boot {
        return None;
    }
    let now = found.now().ok()?;
    if found.is(&now, &found.value) {
        return None;
    }
    let (path, was) = (found.path.display(), shown(&found.value));
    Some(if found.is_ours(&now, &file.set) {
        let is = format!("{path} is '{}', it was '{was}'", shown(&now));
        Remnant { is, then: Then::SetBack(found, file.set.clone()) }
    } else {
        let is = format!("{path} is '{}', neither its original value ('{was}') nor one that iotoll set", shown(&now));
        Remnant { is, then: Then::Leave("; left as it is") }
    })
}

/// Restores what is known to be iotoll's, and reports it.
fn act(remnants: Vec<Remnant>) -> Vec<String> {
    // Together, because the kernel may accept one value only after another.
    let files = remnants.iter().filter_map(|remnant| match &remnant.then {
        Then::SetBack(found, set) => Some((found, &**set)),
        _ => None,
    });
    let left = setting_file::put_back(files);
    let line = |Remnant { is, then }: &Remnant| match then {
        Then::Leave(words) => format!("{is}{words}"),
        Then::SetBack(found, _) => match left.iter().find(|left| left.found.path == found.path) {
            Some(left) => format!("{is}; could not be set back: {}; set it by hand", left.why),
            None => format!("{is}; set back"),
        },
        Then::Undo(done, undo) => match undo.perform() {
            Ok(()) => format!("{is}; {done}"),
            Err(why) => format!("{is}; not {done}: {why}"),
        },
    };
    remnants.iter().map(line).collect()
}
