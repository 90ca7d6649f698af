//! A process that is not iotoll's worker: a command that iotoll starts and ends, or one that runs already.

use super::amount::Counted;
use super::process_io::{Children, of_process};
use super::subject::{Ending, Subject};
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::guardian::processes::Processes;
use crate::placing::pinned;
use crate::probe::{MOST_THREADS, WorkerTask, threads_of};
use model::plan::Access;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use sys::process::How;

/// Time that a command has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// A process that runs already. It is only watched.
pub(super) struct Watched {
    process: u32,
    name: String,
    ends: OwnedFd,
    children: Option<Children>,
}

impl Watched {
    /// Finds it.
    ///
    /// # Errors
    /// Refused, when there is no such process.
    pub fn find(process: u32) -> Result<Self> {
        let gone =
            || Error::Refused(format!("--pid {process}: there is no process {process}; pgrep finds processes by name"));
        let name = fs::read_to_string(format!("/proc/{process}/comm")).map_err(|_| gone())?;
        if process == std::process::id() {
            return Err(Error::Refused(format!("--pid {process}: is this iotoll itself")));
        }
        Ok(Self { process, name: name.trim().to_owned(), ends: pidfd(process).map_err(|_| gone())?, children: None })
    }
}

impl Subject for Watched {
    fn words(&self) -> String {
        let threads = match threads_of(self.process).len() {
            0 | 1 => String::new(),
            threads if threads > MOST_THREADS => format!(", its {threads} threads together, {MOST_THREADS} also alone"),
            threads => format!(", its {threads} threads together"),
        };
        format!("process {} ({}){threads}", self.process, self.name)
    }

    fn task(&self) -> WorkerTask {
        WorkerTask::Process(self.process)
    }

    fn counted(&mut self, access: Access) -> Result<Counted> {
        let (counted, children) = of_process(self.process, access)?;
        self.children = Some(children);
        Ok(counted)
    }

    fn look_around(&mut self) {
        self.children.iter_mut().for_each(Children::look);
    }

    fn begin(&mut self) {}

    fn wait(&mut self, timeout: Duration) -> bool {
        has_ended(&self.ends, timeout)
    }

    fn end(self: Box<Self>) -> Ending {
        Ending::default()
    }
}

/// A command that iotoll has started. It is killed with all its children when this is dropped, or iotoll is killed.
pub(super) struct Started {
    words: Vec<String>,
    child: Option<Child>,
    process: u32,
    ends: OwnedFd,
    processes: Processes,
    children: Option<Children>,
}

impl Started {
    /// Starts a command on a CPU, or anywhere, and stops it before it does much, until [`begin`](Subject::begin). Its standard output goes to our standard error, because ours contains only the
    /// result.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(words: &[String], cpu: Option<u32>, guardian: &Guardian) -> Result<Self> {
        let (program, arguments) =
            words.split_first().ok_or_else(|| Error::Refused("there is no command".to_owned()))?;
        let processes = guardian.passing_processes()?;
        let stdout = io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
        let mut command = Command::new(program);
        // Not the terminal: a process group of its own may not read from it.
        command.args(arguments).stdin(Stdio::null()).stdout(stdout).process_group(0);
        processes.mark(&mut command);
        let cpus: Vec<u32> = cpu.into_iter().collect();
        let mut child = pinned(&cpus, || command.spawn())
            .map_err(|source| Error::NotStarted { program: program.clone(), source })?;
        let process = child.id();
        let ends = pidfd(process).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        });
        let ends = ends.map_err(|error| Error::instrument(format!("{program}: watching the command"), error))?;
        processes.led_by(process);
        let started = Self { words: words.to_vec(), child: Some(child), process, ends, processes, children: None };
        // Opening its counters takes some milliseconds, in which it could do much.
        started.signal(Signal::STOP);
        Ok(started)
    }

    /// Ends the command, its process group, and all that it started. Returns how it ended by itself; `None` if it was ended.
    fn kill(&mut self) -> Option<io::Result<How>> {
        let child = self.child.take()?;
        let alone = has_ended(&self.ends, Duration::ZERO);
        if !alone {
            self.signal(Signal::TERM);
            self.signal(Signal::CONT);
            has_ended(&self.ends, GRACE);
        }
        // Before it is reaped, so that its id, which is also its group's, is still its own.
        self.signal(Signal::KILL);
        let _ = self.processes.kill_with_all_it_began(self.process);
        let ended = sys::process::wait(child).map(|ended| ended.how);
        alone.then_some(ended)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = pid(self.process) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Subject for Started {
    fn words(&self) -> String {
        format!("the command {}", self.words.join(" "))
    }

    fn task(&self) -> WorkerTask {
        WorkerTask::Process(self.process)
    }

    fn counted(&mut self, access: Access) -> Result<Counted> {
        let (counted, children) = of_process(self.process, access)?;
        self.children = Some(children);
        Ok(counted)
    }

    fn look_around(&mut self) {
        self.children.iter_mut().for_each(Children::look);
    }

    fn begin(&mut self) {
        self.signal(Signal::CONT);
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        has_ended(&self.ends, timeout)
    }

    fn end(mut self: Box<Self>) -> Ending {
        let failure = match self.kill() {
            None | Some(Ok(How::Status(0))) => None,
            Some(Ok(How::Status(status))) => Some(format!("the command ended with status {status}")),
            Some(Ok(How::Signal(signal))) => Some(format!("the command was ended by signal {signal}")),
            Some(Err(error)) => Some(format!("the command could not be waited for: {error}")),
        };
        Ending { failure, ios: None }
    }
}

fn pid(process: u32) -> Option<Pid> {
    i32::try_from(process).ok().and_then(Pid::from_raw)
}

fn pidfd(process: u32) -> io::Result<OwnedFd> {
    let process = pid(process).ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}

/// Waits until the process of a pidfd has ended, also if nobody has reaped it, or `timeout` has passed.
fn has_ended(ends: &OwnedFd, timeout: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // A signal ends the wait early, which only makes the caller look again.
    poll(&mut [PollFd::new(ends, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_that_ends_is_seen_and_its_status_told() {
        let mut fails = Started::start(&words("false"), None, &Guardian::default()).unwrap();
        fails.begin();
        while !fails.wait(Duration::from_secs(1)) {}
        assert_eq!(Box::new(fails).end().failure.as_deref(), Some("the command ended with status 1"));
        let none = Started::start(&words("/no/such/program"), None, &Guardian::default());
        assert!(matches!(none.err(), Some(Error::NotStarted { .. })));
    }

    #[test]
    fn a_command_is_ended_with_its_children() {
        let script = ["sh", "-c", "trap '' TERM; sleep 1000 & echo; wait"].map(str::to_owned);
        let mut started = Started::start(&script, None, &Guardian::default()).unwrap();
        started.begin();
        let group = pid(started.process).unwrap();
        assert_eq!(Box::new(started).end().failure, None, "it was ended, and has not failed");
        // A killed child is in the group until the first process of the system has reaped it.
        let group_is_left = || rustix::process::test_kill_process_group(group).is_ok();
        for _ in 0..1000 {
            if group_is_left() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        assert!(!group_is_left(), "a process of its group is left");
    }

    #[test]
    fn a_process_is_watched_and_left_alone() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        // The child has its new name some time after its memory is the program's.
        while std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap() != "sleep\n" {
            std::thread::yield_now();
        }
        let mut watched = Watched::find(child.id()).unwrap();
        assert!(watched.words().contains("(sleep)"));
        assert!(!watched.wait(Duration::from_millis(1)));
        child.kill().unwrap();
        while !watched.wait(Duration::from_secs(1)) {}
        child.wait().unwrap();
        assert!(Watched::find(child.id()).is_err());
    }
}
