//! The measured part: the jobs of an assignment, warm, between two marks; and the kernel's counters that show which path the I/O took.

use crate::guest::measure::protocol::{Assignment, Done};
use crate::guest::measure::stack::{Counter, Source, Stack, Target as Place};
use jobs::engine;
use jobs::worker_pool::{JobCopy, build_worker, with_engine};
use jobs::workload::target::Target;
use lab::created::Created;
use lab::error::{Error, Result};
use model::plan::{JobPlan, Medium};
use model::unit::Hertz;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use sys::guest::{mark_begin, mark_end};

/// QEMU's `-icount shift=0`: an instruction is a nanosecond, and the time-stamp counter counts nanoseconds.
const CLOCK: Hertz = Hertz(1e9);

/// Runs the jobs: first to warm up, then measured.
pub(super) fn measure(stack: &'static Stack, assignment: &Assignment) -> Result<Done> {
    let mut jobs: Vec<JobPlan> = assignment.phase.jobs.clone();
    jobs.iter_mut().for_each(|job| place(job, &stack.target));
    // Nothing is undone: the guest ends with this process.
    let created = Created::default();
    let mut copies = Vec::new();
    for job in &jobs {
        for number in 0..job.copies.max(1) {
            let targets = engine::prepare(job, number, &created, &mut |_, _, _| true)?;
            match &stack.target {
                Place::Folder(_) => targets.iter().try_for_each(fill)?,
                Place::Sparse(_) => targets.iter().try_for_each(|target| {
                    fill(target)?;
                    leave_page_cache(target)
                })?,
                Place::Device(_) => {}
            }
            copies.push((job.clone(), number, targets));
        }
    }
    let_the_clock_tick();
    let file = copies.iter().flat_map(|(_, _, targets)| targets).map(|target| target.path.clone()).next();
    let file = file.as_deref().filter(|path| path.exists());
    let proof: Vec<&'static Counter> = stack.counters().collect();
    let barrier = Arc::new(Barrier::new(copies.len()));
    let (tell, news) = channel();
    let count = copies.len();
    for copy in copies {
        let member = Member { copy, barrier: barrier.clone(), alone: count == 1, assignment: assignment.clone() };
        let (tell, proof, file) = (tell.clone(), proof.clone(), file.map(Path::to_owned));
        let thread = std::thread::Builder::new().name("job".to_owned());
        let thread = thread.spawn(move || tell.send(member.work(&proof, file.as_deref())));
        thread.map_err(|error| Error::instrument("starting a worker thread", error))?;
    }
    drop(tell);
    // The first failure ends the guest, and with it the threads that wait for the one that failed.
    let mut all = Done::default();
    for done in news {
        let done = done?;
        all.ios += done.ios;
        all.bytes += done.bytes;
        all.clock_ticks = all.clock_ticks.max(done.clock_ticks);
        all.counters.extend(done.counters);
    }
    Ok(all)
}

/// Puts a job's files where the stack is.
fn place(job: &mut JobPlan, target: &Place) {
    if job.engine.medium() != Medium::Files {
        return;
    }
    match target {
        Place::Device(device) | Place::Sparse(device) => {
            job.target.files = vec![device.clone()];
            job.target.directory = None;
            job.target.allow_device_write = true;
        }
        Place::Folder(folder) => {
            let base = |file: &String| file.rsplit('/').next().unwrap_or(file).to_owned();
            job.target.files = job.target.files.iter().map(base).collect();
            job.target.directory = Some(folder.clone());
        }
    }
}

/// Writes all of a file, because a write that has to allocate its block costs more than one that does not.
fn fill(target: &Target) -> Result<()> {
    if target.path.as_os_str().is_empty() {
        return Ok(());
    }
    let failed = |error| Error::file(&target.path, "writing it once", error);
    let file: File = OpenOptions::new().write(true).open(&target.path).map_err(failed)?;
    let block = vec![0x5a; 64 << 10];
    let (mut at, end) = (target.span.begin, target.span.begin + target.span.length);
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(block.len());
        file.write_all_at(block.get(..length).unwrap_or_default(), at).map_err(failed)?;
        at += length as u64;
    }
    file.sync_all().map_err(failed)
}

/// Removes what was written to a device from the page cache: direct I/O would look for it there.
fn leave_page_cache(target: &Target) -> Result<()> {
    let failed = |error| Error::file(&target.path, "removing it from the page cache", error);
    let file = File::open(&target.path).map_err(failed)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).map_err(|error| failed(error.into()))
}

/// Sleeps until the clock that stamps files has passed what was written, and then to the same place between two of its ticks: the
/// kernel takes another way where a file was read in the tick in which it was written, or where a tick falls into the measured part.
fn let_the_clock_tick() {
    /// A whole number of ticks at every rate that kernels have (100, 250, 300 and 1000 Hz).
    const TICKS: u64 = 100_000_000;
    let now = sys::clock::monotonic_nanos();
    std::thread::sleep(Duration::from_nanos(2 * TICKS - now % TICKS));
}

/// One worker thread.
struct Member {
    copy: (JobPlan, u32, Vec<Target>),
    barrier: Arc<Barrier>,
    /// There is no other thread, so this one waits for none.
    alone: bool,
    assignment: Assignment,
}

impl Member {
    fn work(self, proof: &[&'static Counter], file: Option<&Path>) -> Result<Done> {
        let (plan, number, targets) = &self.copy;
        let copy = JobCopy { plan, number: *number, targets: targets.clone(), replay: None };
        let mut worker = build_worker(&copy, Arc::default(), Arc::default(), CLOCK)?;
        with_engine(&copy, |engine| {
            worker.limit_to(self.assignment.warm_up_ios);
            engine(&mut worker)?;
            worker.limit_to(self.assignment.ios);
            let leads = self.meet();
            let before = if leads { counters(proof, file) } else { Default::default() };
            let (barrier, alone) = (self.barrier.clone(), self.alone);
            worker.at_start(move || {
                if alone || barrier.wait().is_leader() {
                    mark_begin();
                }
                if !alone {
                    barrier.wait();
                }
            });
            engine(&mut worker)?;
            if self.meet() {
                mark_end();
            }
            let kinds = &worker.tally.kinds;
            let mut done = Done {
                ios: kinds.iter().map(|kind| kind.latency.total()).sum(),
                bytes: kinds.iter().map(|kind| kind.bytes).sum(),
                clock_ticks: worker.tally.end_ticks.saturating_sub(worker.tally.begin_ticks),
                ..Done::default()
            };
            // Everybody has ended before the counters are read again, and the one who read them first reads them again.
            if !alone {
                self.barrier.wait();
            }
            if leads {
                done.counters = increases(proof, &before, &counters(proof, file));
            }
            Ok(done)
        })
    }

    /// Waits for all threads. Returns whether this one leads.
    fn meet(&self) -> bool {
        self.alone || self.barrier.wait().is_leader()
    }
}

/// Reads each counter; those that cannot be read are absent. `file` is one of the job's.
fn counters(counters: &[&'static Counter], file: Option<&Path>) -> BTreeMap<&'static str, i64> {
    counters.iter().filter_map(|counter| Some((counter.name.as_str(), value(&counter.source, file)?))).collect()
}

/// The increases between two readings. States stay as they are.
fn increases(
    counters: &[&'static Counter],
    before: &BTreeMap<&'static str, i64>,
    after: &BTreeMap<&'static str, i64>,
) -> BTreeMap<String, i64> {
    let increase = |counter: &&'static Counter| {
        let name = counter.name.as_str();
        let after = *after.get(name)?;
        let is_state = matches!(counter.source, Source::Dax | Source::FileSystem(_));
        let value = if is_state { after } else { after - before.get(name)? };
        Some((name.to_owned(), value))
    };
    counters.iter().filter_map(increase).collect()
}

/// All counters of a program of Ceph, from the socket of its administration: a command ends with a zero, an answer begins with
/// its length.
fn administration(socket: &str) -> Option<serde_json::Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(b"{\"prefix\": \"perf dump\"}\0").ok()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut answer = Vec::new();
    stream.take(u64::from(u32::from_be_bytes(length))).read_to_end(&mut answer).ok()?;
    serde_json::from_slice(&answer).ok()
}

/// A counter's sum over the sections that begin so; `None` if none has it.
fn ceph(all: &serde_json::Value, section: &str, name: &str) -> Option<i64> {
    let sections = all.as_object()?.iter().filter(|(key, _)| key.starts_with(section));
    let values: Vec<i64> = sections.filter_map(|(_, counters)| counters.get(name)?.as_i64()).collect();
    (!values.is_empty()).then(|| values.into_iter().sum())
}

/// A number in a file: of the first line that begins with these words, the field behind them.
fn field(path: &str, words: &[&str], number: usize) -> Option<i64> {
    let text = fs::read_to_string(path).ok()?;
    let behind = |line: &'_ str| {
        let rest = words.iter().try_fold(line.trim(), |rest, word| Some(rest.strip_prefix(word)?.trim_start()))?;
        rest.split_whitespace().nth(number).map(str::to_owned)
    };
    text.lines().find_map(behind)?.parse().ok()
}

fn value(source: &Source, file: Option<&Path>) -> Option<i64> {
    match source {
        Source::Block(device, number) => field(&format!("/sys/block/{device}/stat"), &[], *number),
        Source::BlockIos(device) => {
            let number = |number| field(&format!("/sys/block/{device}/stat"), &[], number);
            Some(number(0)? + number(4)? + number(11).unwrap_or(0))
        }
        Source::Sectors(names) => {
            let text = fs::read_to_string("/proc/vmstat").ok()?;
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            let kibs = lines
                .filter(|(name, _)| names.iter().any(|own| own == name))
                .filter_map(|(_, value)| value.parse::<i64>().ok());
            Some(kibs.sum::<i64>() * 2)
        }
        Source::Transport(name, number) => field("/proc/self/mountstats", &["xprt:", name], *number),
        Source::Operation(name, number) => field("/proc/self/mountstats", &[name, ":"], *number),
        Source::File(path) => field(path, &[], 0),
        // Behind eight fields of what was received.
        Source::BytesSent(interface) => field("/proc/net/dev", &[interface, ":"], 8),
        Source::Ceph(socket, section, name) => ceph(&administration(socket)?, section, name),
        Source::Dax => {
            let state = rustix::fs::statx(CWD, file?, AtFlags::empty(), StatxFlags::BASIC_STATS).ok()?;
            Some(i64::from(state.stx_attributes.contains(StatxAttributes::DAX)))
        }
        Source::FileSystem(kind) => {
            let state = rustix::fs::statfs(file?).ok()?;
            Some(i64::from(u64::try_from(state.f_type).ok() == Some(*kind)))
        }
    }
}
