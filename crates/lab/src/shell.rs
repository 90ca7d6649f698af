//! Shell commands of an experiment file: run to their end, or ended when they take too long.

use crate::error::{Error, Result};
use crate::guardian::processes::Processes;
use crate::wait_limit::WaitLimit;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often a command that runs is looked after.
const GLANCE: Duration = Duration::from_millis(2);

/// How a command ended.
pub(crate) struct Ended {
    pub success: bool,
    status: String,
    /// What it printed.
    pub printed: String,
    /// The last thing that it complained of.
    complaint: String,
}

impl Ended {
    /// In one line.
    pub fn failure(&self, what: &str, command: &str) -> Error {
        let Self { status, complaint, .. } = self;
        let detail = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
        Error::Failed(format!("{what}: `{command}` failed ({status}){detail}"))
    }
}

/// Runs a shell command to its end. What it starts and leaves running is its own affair, but its output is not waited
/// for. When we are killed meanwhile, the guardian of `processes` kills it.
///
/// # Errors
/// When it cannot be started, or takes too long and is ended.
pub(crate) fn run(what: &str, command: &str, limit: &WaitLimit, processes: &Processes) -> Result<Ended> {
    let failed = |why: String| Error::Failed(format!("{what}: `{command}` {why}"));
    let scratch = || scratch().and_then(|file| Ok((file.try_clone()?, file)));
    let scratch = || scratch().map_err(|error| failed(format!("has no place for what it says: {error}")));
    let ((mut printed, stdout), (mut complained, stderr)) = (scratch()?, scratch()?);
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    // Ctrl-C must not end it half-way.
    shell.process_group(0);
    processes.mark(&mut shell);
    let mut child = shell.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
    processes.led_by(child.id());
    let _awaited = limit.note(&format!("{what}: `{command}`"), child.id());
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => match limit.ends(begun, &format!("running {what}")) {
                None => std::thread::sleep(GLANCE),
                Some(error) => {
                    let killed = processes.kill_with_all_it_began(child.id());
                    let _ = child.wait();
                    killed.map_err(failed)?;
                    return Err(match error {
                        Error::Failed(why) => {
                            failed(format!("was killed: {why}; put what runs on into the background"))
                        }
                        error => error,
                    });
                }
            },
            Err(error) => return Err(failed(format!("was lost sight of: {error}"))),
        }
    };
    let complaint = text(&mut complained).lines().rfind(|line| !line.trim().is_empty()).map_or_else(String::new, short);
    Ok(Ended { success: status.success(), status: status.to_string(), printed: text(&mut printed), complaint })
}

/// Where a command's words go. Leaving what was entered must not fail because there is no folder for temporary files.
fn scratch() -> std::io::Result<File> {
    tempfile::tempfile().or_else(|_| Ok(memfd_create("iotoll", MemfdFlags::CLOEXEC)?.into()))
}

/// The last of what was written to a file; it only explains, so what cannot be read is left out.
fn text(file: &mut File) -> String {
    const MOST: u64 = 64 << 10;
    let mut bytes = Vec::new();
    let end = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = file.seek(SeekFrom::Start(end.saturating_sub(MOST))).and_then(|_| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A line that fits into a message.
fn short(line: &str) -> String {
    const MOST: usize = 200;
    let begin: String = line.chars().take(MOST).collect();
    if begin.len() < line.len() { begin + "…" } else { begin }
}
