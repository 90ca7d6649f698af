//! One thread pinned to each CPU, woken at each boundary to read that CPU's clocks.
//!
//! Pinned, because such a clock is stale until its CPU wakes; with real-time priority if allowed, so that the reading
//! does not wait behind the workload. Each reading has its own time stamp. The idle clock of cpuidle is read so.

use super::{CpuMeter, Cpus, Opened};
use crate::error::{Error, Result};
use model::meter::Meter;
use model::record::{ByMeter, Count, Mode};
use model::unit::Nanos;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use sys::clock::monotonic_nanos;

pub(super) type CpuMeters = Vec<(Meter, Box<dyn CpuMeter>)>;

pub(super) struct CpuReaders {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
}

/// Where the readers wait for the next boundary and leave their readings.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
    asked: Condvar,
    answered: Condvar,
}

type CpuReading = (Nanos, ByMeter<u64>);

#[derive(Default)]
struct State {
    generation: u64,
    next_mode: Mode,
    /// When each CPU was read, and what its meters had.
    readings: Vec<CpuReading>,
    missing: usize,
    stopping: bool,
}

impl Board {
    /// A reader that panicked leaves a reading missing, but the state is consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CpuReaders {
    /// Starts one for each of these CPUs, with the meters that it reads there.
    pub(super) fn start(cpus: Vec<(u32, CpuMeters)>) -> Result<Self> {
        let board = Arc::new(Board::default());
        board.lock().missing = cpus.len();
        let mut readers = Self { board: board.clone(), threads: Vec::new() };
        for (place, (cpu, meters)) in cpus.into_iter().enumerate() {
            let reader = CpuReader { cpu, place, meters };
            board.lock().readings.push(CpuReading::default());
            let board = board.clone();
            let thread = std::thread::Builder::new().name(format!("iotoll-read{cpu}")).stack_size(128 << 10);
            let thread = thread.spawn(move || reader.serve(&board));
            readers.threads.push(thread.map_err(|error| Error::instrument("starting a reader", error))?);
        }
        drop(readers.wait());
        Ok(readers)
    }

    /// Wakes every reader and adds up the readings. `next_mode` is the mode of the time after them.
    pub(super) fn read(&self, next_mode: Mode) -> ByMeter<Count> {
        let mut state = self.board.lock();
        state.generation += 1;
        state.next_mode = next_mode;
        state.missing = self.threads.len();
        self.board.asked.notify_all();
        drop(state);
        sum(&self.wait().readings)
    }

    fn wait(&self) -> MutexGuard<'_, State> {
        let mut state = self.board.lock();
        while state.missing > 0 {
            state = self.board.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}

/// The sum over CPUs of each meter that every CPU has.
fn sum(readings: &[CpuReading]) -> ByMeter<Count> {
    let Some(&(first, ref counts)) = readings.first() else { return ByMeter::default() };
    let cpus = readings.len() as u64;
    let later: u64 = readings.iter().map(|(at, _)| at.since(first).0).sum();
    let earlier: u64 = readings.iter().map(|(at, _)| first.since(*at).0).sum();
    let mean = (u128::from(first.0) + u128::from(later / cpus)).saturating_sub(u128::from(earlier / cpus));
    let of = |meter: Meter| {
        let totals = readings.iter().map(|(_, counts)| counts.get(meter).copied());
        let total = totals.sum::<Option<u64>>()?;
        let at_nanos = Nanos(u64::try_from(mean).unwrap_or(u64::MAX));
        Some((meter, Count { at_nanos, cpus: u32::try_from(cpus).unwrap_or(u32::MAX), total }))
    };
    counts.iter().filter_map(|(meter, _)| of(meter)).collect()
}

impl Drop for CpuReaders {
    fn drop(&mut self) {
        self.board.lock().stopping = true;
        self.board.asked.notify_all();
        for thread in self.threads.drain(..) {
            // A reader that panicked has already printed the reason.
            let _ = thread.join();
        }
    }
}

struct CpuReader {
    cpu: u32,
    place: usize,
    meters: CpuMeters,
}

impl CpuReader {
    fn serve(mut self, board: &Board) {
        // Without pinning and priority a reading is late, not wrong: it has its own time stamp.
        let _ = sys::schedule::pin_to(&[self.cpu]);
        let _ = sys::schedule::set_class(sys::schedule::Class::Watching);
        let mut seen = 0;
        let mut state = board.lock();
        self.answer(&mut state, board, CpuReading::default());
        loop {
            while state.generation == seen && !state.stopping {
                state = board.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.stopping {
                return;
            }
            seen = state.generation;
            let mode = state.next_mode;
            drop(state);
            let reading = self.read(mode);
            state = board.lock();
            self.answer(&mut state, board, reading);
        }
    }

    fn answer(&self, state: &mut State, board: &Board, reading: CpuReading) {
        if let Some(place) = state.readings.get_mut(self.place) {
            *place = reading;
        }
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 {
            board.answered.notify_one();
        }
    }

    /// Does not allocate.
    fn read(&mut self, next: Mode) -> CpuReading {
        let at_nanos = Nanos(monotonic_nanos());
        let mut counts = ByMeter::default();
        for (meter, reader) in &mut self.meters {
            counts.set(*meter, reader.read(next));
        }
        (at_nanos, counts)
    }
}

/// The idle clock that needs no root: residency of the cpuidle states, `cpuidle/state*/time`, in microseconds.
///
/// The idle loop itself measures it, so it needs neither root nor a tick. Interrupts taken while halted count as idle
/// here (see docs/method/meters.md), and so does polling in the idle loop.
pub(super) fn idle(cpus: &Cpus) -> Result<Opened, String> {
    if let Some(why) = out_of_reach(&cpus.online) {
        return Err(why);
    }
    cpus.each(|cpu| {
        IdleFiles::open(cpu).filter(|files| files.nanos().is_some()).ok_or_else(|| {
            format!("CPU {cpu} has no readable cpuidle states under /sys (no idle driver, or a container hides them)")
        })
    })
}

/// Why this process cannot run on a CPU, for example in a container with a cpuset.
fn out_of_reach(cpus: &[u32]) -> Option<String> {
    // In a separate thread, whose affinity does not matter afterwards.
    let cpus = cpus.to_vec();
    let probe = move || cpus.into_iter().find(|cpu| sys::schedule::pin_to(&[*cpu]).is_err());
    // Without a thread, starting the reader of the CPU shows the error.
    let cpu = std::thread::Builder::new().spawn(probe).ok()?.join().ok()??;
    Some(format!(
        "may not run on CPU {cpu} (cpuset), so its idle clock cannot be brought up to date; run outside the container"
    ))
}

/// The open `time` files of one CPU's idle states.
struct IdleFiles {
    states: Vec<File>,
}

impl IdleFiles {
    /// `None` when the CPU has no idle states, or they cannot be read.
    fn open(cpu: u32) -> Option<Self> {
        let directory = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle"));
        let mut states = Vec::new();
        for entry in std::fs::read_dir(directory).ok()? {
            states.push(File::open(entry.ok()?.path().join("time")).ok()?);
        }
        (!states.is_empty()).then_some(Self { states })
    }

    /// Total residency of all states.
    fn nanos(&self) -> Option<Nanos> {
        self.states.iter().map(read_micros).sum()
    }
}

impl CpuMeter for IdleFiles {
    fn read(&mut self, _: Mode) -> Option<u64> {
        self.nanos().map(|nanos| nanos.0)
    }
}

fn read_micros(file: &File) -> Option<Nanos> {
    let mut text = [0; 24];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    text.trim_end().parse().ok().map(Nanos::from_micros)
}
