//! Programs of a stack that stay. If one ends, the guest ends with its last words: its clients would wait for ever.

use super::{ports, send};
use crate::error::{Error, Result};
use crate::guest::protocol::Reply;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Where their complaints go.
const FOLDER: &str = "/run/iotoll";

/// The name of each, and its file of complaints.
static STARTED: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// Whether the guest runs for `guest shell`: there the user may end programs, which does not end the guest.
static LOOKED_AT: AtomicBool = AtomicBool::new(false);

/// From now on the end of a program is told on the console, and does not end the guest.
pub(super) fn tell_the_user() {
    LOOKED_AT.store(true, Ordering::Relaxed);
}

/// Starts a program that stays. A thread waits for its end, and executes nothing until then.
pub(super) fn start(line: &str, mut command: Command) -> Result<()> {
    let failed = |error| Error::instrument(format!("starting `{line}`"), error);
    fs::create_dir_all(FOLDER).map_err(failed)?;
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let said = PathBuf::from(format!("{FOLDER}/{}", started.len()));
    let file = File::create(&said).map_err(failed)?;
    let child = command.stdout(Stdio::null()).stderr(file).spawn().map_err(failed)?;
    started.push((program(line).to_owned(), said.clone()));
    let line = line.to_owned();
    std::thread::Builder::new().spawn(move || watch(&line, child, &said)).map_err(failed)?;
    Ok(())
}

/// Waits until the program ends, and ends the guest.
fn watch(line: &str, mut child: Child, said: &PathBuf) {
    let how = match child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let words = complaint(said).map_or_else(String::new, |words| format!(": {words}"));
    let why = format!("`{}` has ended ({how}){words}", program(line));
    if LOOKED_AT.load(Ordering::Relaxed) {
        let _ = fs::write("/dev/console", format!("{why}\r\n"));
        return;
    }
    if let Ok(ports) = ports() {
        send(&ports, &Reply::Failed(why));
        ports.exit(0);
    }
}

/// What the programs said last, for the error of a client that waits for them; empty if they said nothing.
pub(super) fn last_words() -> String {
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let words = started.iter().filter_map(|(name, said)| Some(format!("; {name} says: {}", complaint(said)?)));
    words.collect()
}

fn complaint(said: &PathBuf) -> Option<String> {
    last_line(&String::from_utf8_lossy(&fs::read(said).unwrap_or_default()))
}

/// The last line that says something.
pub(super) fn last_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

fn program(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_last_line_that_says_something() {
        assert_eq!(last_line("one\n two \n\n").as_deref(), Some("two"));
        assert_eq!(last_line(" \n"), None);
        assert_eq!(program("ceph-osd -i 0"), "ceph-osd");
    }
}
