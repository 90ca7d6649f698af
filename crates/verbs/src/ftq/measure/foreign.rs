//! A process that is not iotoll's worker: a command that iotoll starts and ends, or one that runs already. Its amount is the bytes of
//! the system calls of the process, its threads and its children, from /proc/PID/io.
//!
//! The kernel adds the bytes of a child to its parent when the parent has waited for it. A child that lives is read beside
//! its parent, so that its bytes count when they are moved. It does not see io_uring and memory maps, and sendfile(2) counts as
//! reading and as writing.

use super::own::{Counted, Ending, Subject};
use lab::error::{Error, Result};
use lab::guardian::Guardian;
use lab::guardian::processes::Processes;
use lab::placing::pinned;
use lab::probe::{ProbeSet, WorkerTask};
use lab::proc_files::{children_of, pid, threads_of};
use lab::shell::our_stderr;
use model::plan::Access;
use model::probe::{Descriptor, Field, Kind, Place, Probe, Scope};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use sys::process::How;

/// Time that a command has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Most children that are read one by one: each takes 2 µs of a quantum. Further ones count when they end.
const MOST_CHILDREN: usize = 64;

/// A process.
pub(super) struct Foreign {
    words: String,
    process: u32,
    ends: OwnedFd,
    children: Option<Children>,
    /// If iotoll has started it: it is killed with all its children when this is dropped, or iotoll is killed. Otherwise it is
    /// only watched.
    started: Option<(Child, Processes)>,
}

impl Foreign {
    /// Finds a process that runs already.
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
        let words = format!("process {process} ({})", name.trim());
        Ok(Self { words, process, ends: pidfd(process).map_err(|_| gone())?, children: None, started: None })
    }

    /// Starts a command on a CPU, or anywhere, and stops it before it does much, until [`begin`](Subject::begin). Its standard
    /// output goes to our standard error, because ours contains only the result.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(words: &[String], cpu: Option<u32>, guardian: &Guardian) -> Result<Self> {
        let (program, arguments) =
            words.split_first().ok_or_else(|| Error::Refused("there is no command".to_owned()))?;
        let processes = guardian.passing_processes()?;
        let mut command = Command::new(program);
        // Not the terminal: a process group of its own may not read from it.
        command.args(arguments).stdin(Stdio::null()).stdout(our_stderr()).process_group(0);
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
        let words = format!("the command {}", words.join(" "));
        let started = Self { words, process, ends, children: None, started: Some((child, processes)) };
        // Opening its counters takes some milliseconds, in which it could do much.
        started.signal(Signal::STOP);
        Ok(started)
    }

    /// Ends the command, its process group, and all that it started. Returns how it ended by itself; `None` if it was ended, or is
    /// only watched.
    fn kill(&mut self) -> Option<io::Result<How>> {
        let (child, processes) = self.started.take()?;
        let alone = has_ended(&self.ends, Duration::ZERO);
        if !alone {
            self.signal(Signal::TERM);
            self.signal(Signal::CONT);
            has_ended(&self.ends, GRACE);
        }
        // Before it is reaped, so that its id, which is also its group's, is still its own.
        self.signal(Signal::KILL);
        let _ = processes.kill_with_all_it_began(self.process);
        let ended = sys::process::wait(child).map(|ended| ended.how);
        alone.then_some(ended)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = pid(self.process) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Subject for Foreign {
    fn words(&self) -> &str {
        &self.words
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
        if self.started.is_some() {
            self.signal(Signal::CONT);
        }
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

/// A process and its children, for the recorder.
struct ProcessTree {
    root: ProbeSet,
    children: Vec<ProbeSet>,
    found: Receiver<ProbeSet>,
    /// Bytes that children had moved when they were found. They never count, so that the amount does not jump, neither then
    /// nor when their parent waits for them.
    uncounted: u64,
    /// The latest amount: between two readings a child may have ended, and its bytes be in neither.
    latest: u64,
}

impl ProcessTree {
    /// The amount now; `None` if the process is gone. Does not allocate.
    fn read(&mut self) -> Option<u64> {
        while let Ok(mut child) = self.found.try_recv() {
            if let Some(bytes) = bytes(&mut child)
                && self.children.len() < MOST_CHILDREN
            {
                self.uncounted += bytes;
                self.children.push(child);
            }
        }
        let mut sum = bytes(&mut self.root)?;
        self.children.retain_mut(|child| {
            let bytes = bytes(child);
            sum += bytes.unwrap_or(0);
            bytes.is_some()
        });
        self.latest = self.latest.max(sum.saturating_sub(self.uncounted));
        Some(self.latest)
    }
}

fn bytes(io: &mut ProbeSet) -> Option<u64> {
    let mut bytes = [None];
    io.read_into(&mut bytes);
    bytes[0].map(|bytes| bytes as u64)
}

/// Finds the children of a process while it is recorded.
struct Children {
    process: u32,
    access: Access,
    known: BTreeSet<u32>,
    tell: Sender<ProbeSet>,
}

impl Children {
    /// Hands new children and their children to the recorder.
    fn look(&mut self) {
        let mut parents = vec![self.process];
        while let Some(parent) = parents.pop() {
            for child in threads_of(parent).flat_map(|(_, thread)| children_of(parent, thread)) {
                parents.push(child);
                if self.known.insert(child)
                    && let Ok(io) = ProbeSet::open(&[of_task(&format!("/proc/{child}"), self.access)])
                {
                    // The recorder may have ended.
                    let _ = self.tell.send(io);
                }
            }
        }
    }
}

/// The bytes of the system calls of the task with this folder, in these directions.
fn of_task(folder: &str, access: Access) -> Probe {
    let rows: &'static [&'static str] = match access {
        Access::Read => &["rchar:"],
        Access::Write => &["wchar:"],
        _ => &["rchar:", "wchar:"],
    };
    let descriptor = Descriptor {
        name: format!("{folder}/io"),
        meaning: String::new(),
        unit: "bytes".to_owned(),
        kind: Kind::Counter,
        scope: Scope::Worker,
    };
    let place = Place::File { path: descriptor.name.clone(), field: Field::Rows(rows) };
    Probe { descriptor, place, factor: 1.0 }
}

/// The amount of a process by its system calls in these directions, and the finder of its children.
///
/// # Errors
/// Refused, when there is no such process, or this user may not see its I/O.
fn of_process(process: u32, access: Access) -> Result<(Counted, Children)> {
    let by = match access {
        Access::Read => "read (/proc/PID/io, rchar)",
        Access::Write => "wrote (/proc/PID/io, wchar)",
        _ => "read and wrote (/proc/PID/io, rchar + wchar)",
    };
    let refused = |error: io::Error| {
        Error::Refused(match error.kind() {
            ErrorKind::NotFound => format!("there is no process {process}; pgrep finds processes by name"),
            ErrorKind::PermissionDenied => format!(
                "/proc/{process}/io: {error}; it belongs to another user: run as root, or name a counter with --count"
            ),
            _ => format!("/proc/{process}/io: {error}; name a counter with --count"),
        })
    };
    let folder = format!("/proc/{process}");
    fs::read_to_string(format!("{folder}/io")).map_err(refused)?;
    let root = ProbeSet::open(&[of_task(&folder, access)])?;
    let (tell, found) = channel();
    let mut children = Children { process, access, known: BTreeSet::new(), tell };
    children.look();
    let mut tree = ProcessTree { root, children: Vec::with_capacity(MOST_CHILDREN), found, uncounted: 0, latest: 0 };
    let by = format!("bytes that the system calls of it and its children {by}");
    Ok((Counted { amount: Box::new(move || tree.read()), by, unit: "bytes".to_owned() }, children))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_process_is_counted_by_direction() {
        let (mut wrote, _) = of_process(std::process::id(), Access::Write).unwrap();
        let (mut both, _) = of_process(std::process::id(), Access::ReadWrite).unwrap();
        let (before, before_both) = (wrote.amount.as_mut()().unwrap(), both.amount.as_mut()().unwrap());
        tempfile::tempfile().unwrap().write_all(&[1; 100_000]).unwrap();
        let after = wrote.amount.as_mut()().unwrap();
        // Other tests run in this process.
        assert!(after - before >= 100_000, "{before} {after}");
        assert!(both.amount.as_mut()().unwrap() >= before_both + 100_000);
    }

    #[test]
    fn a_child_counts_while_it_lives_and_once_after_its_end() {
        // The child writes 300,000 bytes and waits for a line; then its parent, who waited for it, does.
        let script = "sh -c 'head -c 300000 /dev/zero; echo >&2; read line'; echo >&2; read line";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut signs, mut orders) = (shell.stderr.take().unwrap(), shell.stdin.take().unwrap());
        let mut sign = [0];
        let (mut counted, mut children) = of_process(shell.id(), Access::Write).unwrap();
        let begin = counted.amount.as_mut()().unwrap();
        signs.read_exact(&mut sign).unwrap();
        children.look();
        let found = counted.amount.as_mut()().unwrap();
        orders.write_all(b"\n").unwrap();
        signs.read_exact(&mut sign).unwrap();
        let after = counted.amount.as_mut()().unwrap();
        // Whether the child was found before or after it wrote: nothing counts twice.
        assert!(begin <= found && found <= after && after - begin < 301_000, "{begin} {found} {after}");
        drop(orders);
        shell.wait().unwrap();
        assert_eq!(counted.amount.as_mut()(), None, "it is gone");
    }
}
