//! Shell commands of an experiment: run to their end, or killed after the time limit.

use crate::error::{Error, Result};
use crate::guardian::processes::Processes;
use crate::interruption::WaitLimit;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Interval at which a running command is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Our standard error, as the standard output of a command.
pub fn our_stderr() -> Stdio {
    std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from)
}

/// Runs a shell command, which must succeed, to its end. It may leave processes running; their output is not waited for. If iotoll is killed
/// meanwhile, the guardian of `processes` kills the command.
///
/// # Errors
/// When it cannot be started, fails, or exceeds the limit and is killed.
pub(crate) fn run(what: &str, command: &str, limit: &WaitLimit, processes: &Processes) -> Result<()> {
    run_while(&format!("running {what}"), what, (command, command), limit, processes)
}

/// The same for a command with a verb of its own: `doing` follows "while" in a message, which shows the command as `shown`.
///
/// # Errors
/// As above.
pub(crate) fn run_while(
    doing: &str,
    what: &str,
    (command, shown): (&str, &str),
    limit: &WaitLimit,
    processes: &Processes,
) -> Result<()> {
    let failed = |why: String| Error::Failed(format!("{what}: `{shown}` {why}"));
    let (mut complained, stderr) =
        scratch().map_err(|error| failed(format!("could not get a temporary file for its output: {error}")))?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    // Ctrl-C must not end it halfway.
    shell.process_group(0);
    processes.mark(&mut shell);
    let mut child = shell.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
    processes.led_by(child.id());
    let _awaited = limit.note(&format!("{what}: `{shown}`"), child.id());
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => match limit.ends(begun, doing) {
                None => std::thread::sleep(POLL_INTERVAL),
                Some(error) => {
                    let killed = processes.kill_with_all_it_began(child.id());
                    let _ = child.wait();
                    killed.map_err(failed)?;
                    return Err(match error {
                        Error::Failed(why) => {
                            failed(format!("was killed: {why}; start long-running processes in the background"))
                        }
                        error => error,
                    });
                }
            },
            Err(error) => return Err(failed(format!("could not be waited for: {error}"))),
        }
    };
    let complaint = last_line(&mut complained).map_or_else(String::new, |line| format!(": {}", short(&line)));
    if status.success() { Ok(()) } else { Err(failed(format!("failed ({status}){complaint}"))) }
}

/// A file for a command's output, twice, to read and to pass on: in memory if there is no usable temporary folder, so that no command
/// fails because of that.
pub(crate) fn scratch() -> std::io::Result<(File, File)> {
    let file = tempfile::tempfile().or_else(|_| memfd_create("iotoll", MemfdFlags::CLOEXEC).map(File::from))?;
    Ok((file.try_clone()?, file))
}

/// The last line of a command's output that says something.
pub fn last_line(file: &mut File) -> Option<String> {
    text(file).lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
}

/// The end of a file. It only explains a failure, so read errors are ignored.
fn text(file: &mut File) -> String {
    const MOST: u64 = 64 << 10;
    let mut bytes = Vec::new();
    let end = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = file.seek(SeekFrom::Start(end.saturating_sub(MOST))).and_then(|_| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A line cut to fit into a message.
pub fn short(line: &str) -> String {
    const MOST: usize = 200;
    let begin: String = line.chars().take(MOST).collect();
    if begin.len() < line.len() { begin + "…" } else { begin }
}
