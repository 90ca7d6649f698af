//! Programs of the host that unpack, download and strip: run to their end, their output returned.

use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::interruption::Interruption;
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// What ends a program early. By default nothing does.
#[derive(Clone, Debug, Default)]
pub struct Care {
    /// Kills it if iotoll is killed.
    pub guardian: Guardian,
    /// Kills it when the user asks for an end.
    pub interruption: Arc<Interruption>,
}

/// Time between two checks whether a program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a program to its end and returns its standard output. `what` says what it is run for; `mend` says what to do if
/// the host does not have it.
///
/// # Errors
/// When the host does not have it, it fails, or the user asks for an end.
pub(super) fn output(command: &mut Command, what: &str, mend: &str, care: &Care) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let processes = care.guardian.passing_processes()?;
    processes.mark(command);
    // English messages, for the error below. A group of its own: a Ctrl-C at the terminal reaches iotoll alone.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env("LC_ALL", "C").process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Error::Refused(format!("{what}: the program `{program}` is not found on this system; {mend}"))
        }
        _ => Error::Failed(format!("{what}: `{program}` cannot be started: {error}")),
    })?;
    processes.led_by(child.id());
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let waited = |error| Error::Failed(format!("{what}: waiting for `{program}`: {error}"));
    let (status, printed, complained) = std::thread::scope(|scope| {
        // Without a thread its pipe is closed, and the program ends.
        let thread = std::thread::Builder::new;
        let printed = thread().spawn_scoped(scope, move || all_of(stdout.as_mut()));
        let complained = thread().spawn_scoped(scope, move || all_of(stderr.as_mut()));
        let status = loop {
            match child.try_wait().map_err(waited) {
                Ok(None) if care.interruption.is_requested() => {
                    let _ = processes.kill_with_all_it_began(child.id());
                    let _ = child.wait();
                    break Err(Error::Interrupted(format!("while {what}")));
                }
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(error),
            }
        };
        let whole =
            |thread: std::io::Result<ScopedJoinHandle<Vec<u8>>>| thread.map(|thread| thread.join().unwrap_or_default());
        (status, whole(printed), whole(complained))
    });
    let status = status?;
    let unread = |error| Error::instrument(format!("{what}: reading what `{program}` prints"), error);
    let (printed, complained) = (printed.map_err(unread)?, complained.map_err(unread)?);
    if status.success() {
        return Ok(printed);
    }
    let complaint = complaint(&String::from_utf8_lossy(&complained));
    Err(Error::Failed(format!("{what}: `{program}` failed ({status}){complaint}")))
}

/// What a program writes, to its end.
fn all_of(pipe: Option<&mut impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

/// A file of the host cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Refused(format!("{}: cannot be read: {error}", path.display()))
}

/// The last line of a program's standard error; the last that apt calls an error, if there is one.
fn complaint(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().rfind(|line| line.starts_with("E: ")).or_else(|| lines().next_back());
    line.map_or_else(String::new, |line| format!(": {}", line.strip_prefix("E: ").unwrap_or(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_in_one_line() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo E: no such thing >&2; echo more >&2; exit 3"]);
        let error = output(&mut shell, "asking", "install it", &Care::default()).unwrap_err().to_string();
        assert_eq!(error, "asking: `sh` failed (exit status: 3): no such thing");
        let error =
            output(&mut Command::new("no-such-program-here"), "asking", "install it", &Care::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "asking: the program `no-such-program-here` is not found on this system; install it"
        );
    }

    #[test]
    fn the_user_can_end_it() {
        let care = Care::default();
        care.interruption.request();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & wait"]);
        let error = output(&mut shell, "asking", "install it", &care).unwrap_err();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
    }
}
