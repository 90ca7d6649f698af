//! The measured part: the jobs of an assignment, warm, between two marks.

use super::super::protocol::{Assignment, Done};
use super::super::stack::{Counter, Stack, Target as Place};
use super::counters;
use crate::engine;
use crate::engine::worker::Worker;
use crate::error::{Error, Result};
use crate::worker_pool::{build_worker, with_engine};
use crate::workload::job_copy::JobCopy;
use crate::workload::target::{Created, Target};
use model::plan::{JobPlan, Medium};
use model::unit::Hertz;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use sys::guest::{mark_begin, mark_end};

/// QEMU's `-icount shift=0`: an instruction is a nanosecond, and the time-stamp counter counts nanoseconds.
const CLOCK: Hertz = Hertz(1e9);

/// Runs the jobs: first to warm up, then measured.
pub(super) fn measure(stack: &Stack, assignment: &Assignment) -> Result<Done> {
    let mut jobs: Vec<JobPlan> = assignment.phase.jobs.clone();
    jobs.iter_mut().for_each(|job| place(job, stack.target));
    // Nothing is undone: the guest ends with this process.
    let created = Created::default();
    let mut copies = Vec::new();
    for job in &jobs {
        for number in 0..job.copies.max(1) {
            let targets = engine::prepare(job, number, &created, &mut |_, _, _| true)?;
            match stack.target {
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
    let proof: Vec<Counter> = stack.counters().copied().collect();
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
fn place(job: &mut JobPlan, target: Place) {
    if job.engine.medium() != Medium::Files {
        return;
    }
    match target {
        Place::Device(device) | Place::Sparse(device) => {
            job.target.files = vec![device.to_owned()];
            job.target.directory = None;
            job.target.more_directories.clear();
            job.allow_device_write = true;
        }
        Place::Folder(folder) => {
            let base = |file: &String| file.rsplit('/').next().unwrap_or(file).to_owned();
            job.target.files = job.target.files.iter().map(base).collect();
            job.target.directory = Some(folder.to_owned());
            job.target.more_directories.clear();
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
    fn work(self, proof: &[Counter], file: Option<&Path>) -> Result<Done> {
        let (plan, number, targets) = &self.copy;
        let copy = JobCopy { plan, number: *number, targets: targets.clone(), replay: None };
        let mut worker = build_worker(&copy, Arc::default(), Arc::default(), CLOCK)?;
        with_engine(&copy, CLOCK, |engine| {
            worker.limit_to(self.assignment.warm_up_ios);
            engine(&mut worker)?;
            worker.limit_to(self.assignment.ios);
            let leads = self.meet();
            let before = if leads { counters::read(proof, file) } else { Default::default() };
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
            let mut done = done_by(&worker);
            // Everybody has ended before the counters are read again, and the one who read them first reads them again.
            if !alone {
                self.barrier.wait();
            }
            if leads {
                done.counters = counters::increases(proof, &before, &counters::read(proof, file));
            }
            Ok(done)
        })
    }

    /// Waits for all threads. Returns whether this one leads.
    fn meet(&self) -> bool {
        self.alone || self.barrier.wait().is_leader()
    }
}

fn done_by(worker: &Worker) -> Done {
    let kinds = &worker.ledger.kinds;
    Done {
        ios: kinds.iter().map(|kind| kind.latency.total()).sum(),
        bytes: kinds.iter().map(|kind| kind.bytes).sum(),
        clock_ticks: worker.ledger.end_ticks.saturating_sub(worker.ledger.begin_ticks),
        ..Done::default()
    }
}
