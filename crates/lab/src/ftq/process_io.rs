//! The bytes of the system calls of a process, its threads and its children, from /proc/PID/io.
//!
//! The kernel adds the bytes of a child to its parent when the parent has waited for it. A child that lives is read beside
//! its parent, so that its bytes count when they are moved. It does not see io_uring and memory maps, and sendfile(2) counts as
//! reading and as writing.

use super::amount::{Amount, Counted};
use crate::error::{Error, Result};
use crate::probe::{MOST_THREADS, threads_of};
use model::plan::Access;
use model::probe::{Descriptor, Field, Kind, Place, Probe, Scope};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Most children that are read one by one: each takes 2 µs of a quantum. Further ones count when they end.
const MOST_CHILDREN: usize = 64;

/// /proc/PID/io, open.
struct IoFile {
    file: File,
    reads: bool,
    writes: bool,
}

impl IoFile {
    fn open(process: u32, access: Access) -> io::Result<Self> {
        let (reads, writes) = (access != Access::Write, access != Access::Read);
        Ok(Self { file: File::open(format!("/proc/{process}/io"))?, reads, writes })
    }

    /// Bytes so far. Does not allocate.
    fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 512];
        let length = self.file.read_at(&mut bytes, 0)?;
        let text = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        let of = |key: &str| {
            let number = text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
            number.ok_or(io::Error::from(ErrorKind::InvalidData))
        };
        let read = if self.reads { of("rchar:")? } else { 0 };
        let wrote = if self.writes { of("wchar:")? } else { 0 };
        Ok(read + wrote)
    }
}

/// A process and its children, for the recorder.
pub(super) struct ProcessTree {
    root: IoFile,
    children: Vec<IoFile>,
    found: Receiver<IoFile>,
    /// Bytes that children had moved when they were found. They never count, so that the amount does not jump, neither then
    /// nor when their parent waits for them.
    uncounted: u64,
    /// The latest amount: between two readings a child may have ended, and its bytes be in neither.
    latest: u64,
}

impl ProcessTree {
    /// The amount now; `None` if the process is gone. Does not allocate.
    pub fn read(&mut self) -> Option<u64> {
        while let Ok(child) = self.found.try_recv() {
            if let Ok(bytes) = child.read()
                && self.children.len() < MOST_CHILDREN
            {
                self.uncounted += bytes;
                self.children.push(child);
            }
        }
        let mut sum = self.root.read().ok()?;
        self.children.retain(|child| {
            let bytes = child.read();
            sum += bytes.as_ref().copied().unwrap_or(0);
            bytes.is_ok()
        });
        self.latest = self.latest.max(sum.saturating_sub(self.uncounted));
        Some(self.latest)
    }
}

/// Finds the children of a process while it is recorded.
pub(super) struct Children {
    process: u32,
    access: Access,
    known: BTreeSet<u32>,
    tell: Sender<IoFile>,
}

impl Children {
    /// Hands new children and their children to the recorder.
    pub fn look(&mut self) {
        let mut parents = vec![self.process];
        while let Some(parent) = parents.pop() {
            for child in children_of(parent) {
                parents.push(child);
                if self.known.insert(child)
                    && let Ok(io) = IoFile::open(child, self.access)
                {
                    // The recorder may have ended.
                    let _ = self.tell.send(io);
                }
            }
        }
    }
}

/// The processes that the threads of a process have started, where the kernel lists them (CONFIG_PROC_CHILDREN).
fn children_of(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let words = |list: String| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>();
    lists.flat_map(words).collect()
}

/// A counter for each thread of a process that has several, of the bytes of its system calls in these directions. It counts a thread's own
/// calls only, so no child.
pub(super) fn of_threads(process: u32, access: Access) -> Vec<Probe> {
    let rows: &'static [&'static str] = match access {
        Access::Read => &["rchar:"],
        Access::Write => &["wchar:"],
        _ => &["rchar:", "wchar:"],
    };
    let probe = |thread: u32| {
        let folder = format!("/proc/{process}/task/{thread}");
        let name = fs::read_to_string(format!("{folder}/comm")).ok()?;
        let descriptor = Descriptor {
            name: format!("thread.{thread}"),
            meaning: format!("thread {thread} ({})", name.trim()),
            unit: "bytes".to_owned(),
            kind: Kind::Counter,
            scope: Scope::Thread,
        };
        let place = Place::File { path: format!("{folder}/io"), field: Field::Rows(rows) };
        Some(Probe { descriptor, place, factor: 1.0 })
    };
    let threads = threads_of(process);
    if threads.len() < 2 { Vec::new() } else { threads.into_iter().take(MOST_THREADS).filter_map(probe).collect() }
}

/// The amount of a process by its system calls in these directions, and the finder of its children.
///
/// # Errors
/// Refused, when there is no such process, or this user may not see its I/O.
pub(super) fn of_process(process: u32, access: Access) -> Result<(Counted, Children)> {
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
    let root = IoFile::open(process, access).map_err(refused)?;
    // Opening succeeds without the permission to read.
    root.read().map_err(refused)?;
    let (tell, found) = channel();
    let mut children = Children { process, access, known: BTreeSet::new(), tell };
    children.look();
    let tree = ProcessTree { root, children: Vec::with_capacity(MOST_CHILDREN), found, uncounted: 0, latest: 0 };
    let by = format!("bytes that the system calls of it and its children {by}");
    Ok((Counted { amount: Amount::Process(tree), by, unit: "bytes".to_owned() }, children))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_counted_by_direction() {
        let (mut wrote, _) = of_process(std::process::id(), Access::Write).unwrap();
        let (mut both, _) = of_process(std::process::id(), Access::ReadWrite).unwrap();
        let (before, before_both) = (wrote.amount.read().unwrap(), both.amount.read().unwrap());
        tempfile::tempfile().unwrap().write_all(&[1; 100_000]).unwrap();
        let after = wrote.amount.read().unwrap();
        // Other tests run in this process.
        assert!(after - before >= 100_000, "{before} {after}");
        assert!(both.amount.read().unwrap() >= before_both + 100_000);
    }

    #[test]
    fn each_thread_of_a_process_has_its_own_bytes() {
        let ((orders, ordered), (did, done)) = (channel::<()>(), channel());
        let writer = std::thread::spawn(move || {
            did.send(sys::schedule::thread_id()).unwrap();
            ordered.recv().unwrap();
            tempfile::tempfile().unwrap().write_all(&[1; 100_000]).unwrap();
            did.send(0).unwrap();
            let _ = ordered.recv();
        });
        let name = format!("thread.{}", done.recv().unwrap());
        // Threads of other tests end meanwhile.
        let mut probes = of_threads(std::process::id(), Access::Write);
        probes.retain(|probe| probe.descriptor.name == name);
        let mut set = crate::probe::ProbeSet::open(&probes).unwrap();
        let mut read = || set.read().unwrap().values[0];
        let before = read().unwrap();
        orders.send(()).unwrap();
        done.recv().unwrap();
        assert_eq!(read().unwrap() - before, 100_000.0);
        drop(orders);
        writer.join().unwrap();
        assert_eq!(read(), None, "it has ended");
    }

    #[test]
    fn a_process_that_is_not_there_is_refused() {
        let why = of_process(u32::MAX / 4, Access::Write).err().unwrap().to_string();
        assert!(why.contains("there is no process"), "{why}");
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
        let begin = counted.amount.read().unwrap();
        signs.read_exact(&mut sign).unwrap();
        children.look();
        let found = counted.amount.read().unwrap();
        orders.write_all(b"\n").unwrap();
        signs.read_exact(&mut sign).unwrap();
        let after = counted.amount.read().unwrap();
        // Whether the child was found before or after it wrote: nothing counts twice.
        assert!(begin <= found && found <= after && after - begin < 301_000, "{begin} {found} {after}");
        drop(orders);
        shell.wait().unwrap();
        assert_eq!(counted.amount.read(), None, "it is gone");
    }
}
