//! Threads that perform the I/Os of a job, one each at a time (`io_submit_mode=offload`). Each has an engine of its own and runs the
//! measured loop with it, which gets its requests from here instead of drawing them.
//!
//! The thread of the job hands a request over in the slot of a thread, and goes on; the thread notes when the request completed. So
//! requests begin when the job says, whether earlier ones have completed or not.

use super::posixaio::ended_beside;
use super::serialized::collide;
use super::worker::Worker;
use super::{OpenEngine, Setup};
use crate::error::{Error, Result};
use crate::workload::request_source::{Kind, Request, RequestSource};
use crate::workload::target::Target;
use model::plan::{CallPlan, Depth, Duration as Length, JobPlan, LatencyPlan, Pace, Rates, Together};
use model::unit::{Hertz, Nanos};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::clock::{ThreadClock, ticks};
use sys::shared_words::{wait_while, wake_all};

/// Nothing to do.
const IDLE: u32 = 0;
/// A request is there.
const POSTED: u32 = 1;
/// The thread shall end.
const QUIT: u32 = 2;

/// Longest sleep; the sleeper then looks again.
const LONG: Duration = Duration::from_secs(3600);
/// Input or output error, of a thread that has failed.
const EIO: i32 = -5;

/// Where a thread gets its requests.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    state: AtomicU32,
    kind: AtomicU32,
    file: AtomicU32,
    length: AtomicU32,
    offset: AtomicU64,
    result: AtomicI32,
    /// When it completed, in ticks.
    end: AtomicU64,
}

#[derive(Debug)]
struct Slots {
    slots: Vec<Slot>,
    /// A bit for each slot whose request has completed.
    done: Vec<AtomicU64>,
    completed: AtomicU32,
    /// The thread of the job sleeps.
    sleeps: AtomicU32,
}

impl Slots {
    fn post(&self, number: usize, result: i32, end: u64) {
        let Some(slot) = self.slots.get(number) else { return };
        slot.result.store(result, Ordering::Relaxed);
        slot.end.store(end, Ordering::Relaxed);
        if slot.state.compare_exchange(POSTED, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        if let Some(word) = self.done.get(number / 64) {
            word.fetch_or(1 << (number % 64), Ordering::Release);
        }
        self.completed.fetch_add(1, Ordering::SeqCst);
        if self.sleeps.load(Ordering::SeqCst) != 0 {
            wake_all(&self.completed);
        }
    }

    /// Waits for a request; `None` if the thread shall end.
    fn take(&self, number: usize) -> Option<Request> {
        let slot = self.slots.get(number)?;
        loop {
            match slot.state.load(Ordering::Acquire) {
                POSTED => break,
                QUIT => return None,
                _ => wait_while(&slot.state, IDLE, LONG),
            }
        }
        let kind = *Kind::ALL.get(slot.kind.load(Ordering::Relaxed) as usize)?;
        let (file, length) = (slot.file.load(Ordering::Relaxed), slot.length.load(Ordering::Relaxed));
        Some(Request { kind, file, offset: slot.offset.load(Ordering::Relaxed), length })
    }
}

/// The threads of one copy of a job. They end when it is dropped.
pub struct Pool {
    slots: Arc<Slots>,
    threads: Vec<JoinHandle<()>>,
    clocks: Vec<(u32, ThreadClock)>,
}

impl Pool {
    fn start(setup: &Setup) -> Result<Self> {
        let plan = setup.plan;
        let depth = plan.depth.in_flight.max(1) as usize;
        let slots = Slots {
            slots: (0..depth).map(|_| Slot::default()).collect(),
            done: (0..depth.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            completed: AtomicU32::new(0),
            sleeps: AtomicU32::new(0),
        };
        let mut pool = Self { slots: Arc::new(slots), threads: Vec::new(), clocks: Vec::new() };
        let (tell, news) = channel();
        let files = if plan.calls.serialized { identities(setup.targets) } else { Vec::new() };
        for number in 0..depth {
            let (slots, tell, files) = (pool.slots.clone(), tell.clone(), files.clone());
            let (plan, targets, clock) = (plan_of_a_thread(plan), setup.targets.to_vec(), setup.clock);
            let thread = std::thread::Builder::new().name(format!("io {}", plan.name)).stack_size(256 << 10);
            let feed = Feed { slots, number, moved: 0, failed: None, request: None, files };
            let thread = thread.spawn(move || work(&plan, &targets, clock, feed, &tell));
            pool.threads.push(thread.map_err(|error| Error::instrument("starting a thread for I/Os", error))?);
        }
        drop(tell);
        for _ in 0..depth {
            let ready =
                news.recv().map_err(|_| Error::Refused("a thread for I/Os ended; please report this".to_owned()))?;
            pool.clocks.push(ready?);
        }
        Ok(pool)
    }

    pub fn depth(&self) -> u32 {
        u32::try_from(self.threads.len()).unwrap_or(u32::MAX)
    }

    /// The threads' ids and clocks.
    pub fn clocks(&self) -> &[(u32, ThreadClock)] {
        &self.clocks
    }

    /// CPU time of all threads so far.
    pub fn nanos(&self) -> u64 {
        self.clocks.iter().filter_map(|(_, clock)| clock.nanos().ok()).sum()
    }

    /// Hands a request to the thread of a free slot.
    pub fn hand_over(&self, number: u32, request: &Request) {
        let Some(slot) = self.slots.slots.get(number as usize) else { return };
        slot.kind.store(request.kind as u32, Ordering::Relaxed);
        slot.file.store(request.file, Ordering::Relaxed);
        slot.length.store(request.length, Ordering::Relaxed);
        slot.offset.store(request.offset, Ordering::Relaxed);
        slot.state.store(POSTED, Ordering::Release);
        wake_all(&slot.state);
    }

    /// Completions so far, to be read before [`take`](Self::take) and passed to [`wait`](Self::wait).
    pub fn completed(&self) -> u32 {
        self.slots.completed.load(Ordering::SeqCst)
    }

    /// Takes completions: slot, result, and when they completed.
    pub fn take(&self, mut each: impl FnMut(u32, i32, u64)) {
        for (place, word) in self.slots.done.iter().enumerate() {
            let mut bits = word.swap(0, Ordering::Acquire);
            while bits != 0 {
                let number = place * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let Some(slot) = self.slots.slots.get(number) else { continue };
                let (result, end) = (slot.result.load(Ordering::Relaxed), slot.end.load(Ordering::Relaxed));
                each(u32::try_from(number).unwrap_or(u32::MAX), result, end);
            }
        }
    }

    /// Sleeps until another request has completed, at most for this time.
    pub fn wait(&self, completed: u32, most: Duration) {
        self.slots.sleeps.store(1, Ordering::SeqCst);
        wait_while(&self.slots.completed, completed, most);
        self.slots.sleeps.store(0, Ordering::SeqCst);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for slot in &self.slots.slots {
            slot.state.store(QUIT, Ordering::Release);
            wake_all(&slot.state);
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has already printed the reason.
            let _ = thread.join();
        }
    }
}

/// The requests of one thread.
pub struct Feed {
    slots: Arc<Slots>,
    number: usize,
    /// Bytes moved before the last request.
    moved: u64,
    /// The last request failed with this result.
    failed: Option<i32>,
    request: Option<Request>,
    /// Device and inode of each file, if overlapping requests wait for each other.
    files: Vec<(u64, u64)>,
}

impl Feed {
    /// The last request failed.
    pub fn failed(&mut self, result: i32) {
        self.failed = Some(result);
    }

    /// The last request has completed, if there was one. Waits for the next; `None` if the thread shall end.
    pub fn next(&mut self, moved: u64, now: u64) -> Option<Request> {
        if let Some(request) = self.request.take() {
            let bytes = u32::try_from(moved.saturating_sub(self.moved)).unwrap_or(u32::MAX);
            let result = self.failed.take().unwrap_or(bytes.cast_signed());
            self.leave(&request);
            self.slots.post(self.number, result, now);
        }
        self.moved = moved;
        let request = self.slots.take(self.number)?;
        self.enter(&request);
        self.request = Some(request);
        Some(request)
    }

    /// As in fio, requests of all jobs with both options wait for each other.
    fn enter(&self, request: &Request) {
        let Some(file) = self.files.get(request.file as usize) else { return };
        let mut claims = CLAIMS.claims.lock().unwrap_or_else(PoisonError::into_inner);
        while claims.iter().any(|(of, other)| of == file && collide(&as_one(request), other)) {
            claims = CLAIMS.left.wait(claims).unwrap_or_else(PoisonError::into_inner);
        }
        claims.push((*file, as_one(request)));
    }

    fn leave(&self, request: &Request) {
        let Some(file) = self.files.get(request.file as usize) else { return };
        let mut claims = CLAIMS.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let place = claims.iter().position(|(of, other)| of == file && *other == as_one(request));
        if let Some(place) = place {
            claims.swap_remove(place);
        }
        CLAIMS.left.notify_all();
    }
}

/// Jobs number a file differently.
fn as_one(request: &Request) -> Request {
    Request { file: 0, ..*request }
}

struct Claims {
    claims: Mutex<Vec<((u64, u64), Request)>>,
    left: Condvar,
}

/// What is in flight, of all jobs.
static CLAIMS: Claims = Claims { claims: Mutex::new(Vec::new()), left: Condvar::new() };

fn identities(targets: &[Target]) -> Vec<(u64, u64)> {
    let identity = |target: &Target| std::fs::metadata(&target.path).map(|found| (found.dev(), found.ino()));
    targets.iter().map_while(|target| identity(target).ok()).collect()
}

/// The job as one thread does it: the thread of the job has kept its pace before.
fn plan_of_a_thread(plan: &JobPlan) -> JobPlan {
    JobPlan {
        depth: Depth::default(),
        calls: CallPlan { offloaded: false, serialized: false, ..plan.calls },
        duration: Length::default(),
        rates: Rates::default(),
        pace: Pace::default(),
        latency: LatencyPlan::default(),
        think_time: Nanos(0),
        start_delay: Nanos(0),
        inject: Nanos(0),
        together: Together::default(),
        ..plan.clone()
    }
}

/// A thread: performs what it is handed until it is asked to end.
fn work(plan: &JobPlan, targets: &[Target], clock: Hertz, feed: Feed, tell: &Sender<Result<(u32, ThreadClock)>>) {
    let (slots, number) = (feed.slots.clone(), feed.number);
    let spans: Vec<_> = targets.iter().map(|target| target.span).collect();
    let opened = super::open(&Setup { plan, targets, copy: 0, clock });
    let source = RequestSource::new(plan, &spans, 0);
    let no_room =
        || Error::Refused(format!("job '{}': a file is smaller than one block; check size= and bs=", plan.name));
    let (mut engine, source) = match opened.and_then(|engine| Ok((engine, source.ok_or_else(no_room)?))) {
        Ok(ready) => ready,
        Err(error) => {
            let _ = tell.send(Err(error));
            return;
        }
    };
    let mut worker = Worker::new(plan, source, Arc::default(), Arc::default(), clock);
    worker.take_from(feed);
    let _ = tell.send(Ok((sys::schedule::thread_id().unsigned_abs(), ThreadClock::of_caller())));
    // Without this, the job would wait forever for a thread that panicked.
    let _ = catch_unwind(AssertUnwindSafe(|| engine(&mut worker)));
    // It ended because it was asked to, or failed; then all that is left fails.
    while slots.take(number).is_some() {
        slots.post(number, EIO, ticks());
    }
    ended_beside();
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let pool = Arc::new(Pool::start(setup)?);
    Ok(Box::new(move |worker| worker.run_offloaded(&pool)))
}
