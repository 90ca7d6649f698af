//! One thread pinned to each CPU, woken at each boundary to read that CPU's clocks.
//!
//! Pinned, because an idle clock is stale until its CPU wakes; real-time where that is allowed, so that
//! the reading does not wait behind the workload. Each reading carries its own time stamp, and the study
//! divides each CPU's idle time by that CPU's own window.

use super::cpuidle::IdleFiles;
use super::soaker::Soakers;
use crate::error::{Error, Result};
use model::reading::Reading;
use model::record::{CpuReading, Mode, Samples};
use model::unit::Nanos;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use sys::clock::monotonic_nanos;
use sys::perf::{CpuClockSampler, CycleCounter, DEFAULT_PERIOD_NANOS};

/// What each reader is to open.
pub(super) struct Instruments {
    pub cpuidle: bool,
    pub pmu: bool,
    pub sampler: bool,
    pub soakers: Option<Arc<Soakers>>,
}

/// Why the idle clock of some CPU cannot be read there, as in a container that may not use it.
pub(super) fn out_of_reach(cpus: &[u32]) -> Option<String> {
    // On a thread of its own, whose affinity does not matter afterwards.
    let cpus = cpus.to_vec();
    let probe = std::thread::spawn(move || cpus.into_iter().find(|cpu| sys::schedule::pin_to(&[*cpu]).is_err()));
    let cpu = probe.join().ok()??;
    Some(format!(
        "may not run on CPU {cpu}, whose idle clock stands still until it is woken there (a cpuset); run outside the container"
    ))
}

/// Whether hardware cycle counters work on all of these CPUs.
pub(super) fn pmu_status(cpus: &[u32]) -> Reading<String> {
    match cpus.iter().try_for_each(|&cpu| CycleCounter::open_cpu(cpu).map(drop)) {
        Ok(()) => Reading::Taken("cycles that the CPUs ran, counted in hardware, halted time left out".to_owned()),
        Err(error) => Reading::Unavailable(error.to_string()),
    }
}

/// Whether perf can sample all of these CPUs.
pub(super) fn sampler_status(cpus: &[u32]) -> Reading<String> {
    match cpus.iter().try_for_each(|&cpu| CpuClockSampler::open_cpu(cpu, DEFAULT_PERIOD_NANOS).map(drop)) {
        Ok(()) => Reading::Taken(
            "samples of CPUs that are not idle; ±10 % on loads that do not sleep, blind to sleepers that keep step with the timer"
                .to_owned(),
        ),
        Err(error) => Reading::Unavailable(error.to_string()),
    }
}

/// The readers of all CPUs.
pub(super) struct CpuReaders {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
}

/// Where the readers wait for the next boundary and leave what they read.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
    asked: Condvar,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    generation: u64,
    next_mode: Option<Mode>,
    readings: Vec<CpuReading>,
    missing: usize,
    stopping: bool,
}

impl Board {
    /// A reader that panicked left a reading missing, not a broken state: go on with what is there.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CpuReaders {
    pub(super) fn start(cpus: &[u32], instruments: &Instruments) -> Result<Self> {
        let board = Arc::new(Board::default());
        board.lock().missing = cpus.len();
        let mut readers = Self { board: board.clone(), threads: Vec::new() };
        for (place, &cpu) in cpus.iter().enumerate() {
            let reader = CpuReader {
                cpu,
                place,
                idle: instruments.cpuidle.then(|| IdleFiles::open(cpu)).flatten(),
                pmu: instruments.pmu.then(|| CycleCounter::open_cpu(cpu).ok()).flatten(),
                sampler: instruments
                    .sampler
                    .then(|| CpuClockSampler::open_cpu(cpu, DEFAULT_PERIOD_NANOS).ok())
                    .flatten(),
                samples: Samples { period_nanos: Nanos(DEFAULT_PERIOD_NANOS), ..Samples::default() },
                soakers: instruments.soakers.clone(),
            };
            board.lock().readings.push(CpuReading { cpu, ..CpuReading::default() });
            let board = board.clone();
            let thread = std::thread::Builder::new().name(format!("iotoll-read{cpu}")).stack_size(128 << 10);
            let thread = thread.spawn(move || reader.serve(&board));
            readers.threads.push(thread.map_err(|error| Error::instrument("starting a reader", error))?);
        }
        readers.collect();
        Ok(readers)
    }

    /// Wakes every reader and gathers what each read on its CPU. `next_mode` is what follows.
    pub(super) fn read(&self, next_mode: Mode) -> Vec<CpuReading> {
        let mut state = self.board.lock();
        state.generation += 1;
        state.next_mode = Some(next_mode);
        state.missing = self.threads.len();
        self.board.asked.notify_all();
        drop(state);
        self.collect()
    }

    fn collect(&self) -> Vec<CpuReading> {
        let mut state = self.board.lock();
        while state.missing > 0 {
            state = self.board.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.readings.clone()
    }
}

impl Drop for CpuReaders {
    fn drop(&mut self) {
        self.board.lock().stopping = true;
        self.board.asked.notify_all();
        for thread in self.threads.drain(..) {
            // A reader that panicked has printed why; there is nothing to add while dropping.
            let _ = thread.join();
        }
    }
}

struct CpuReader {
    cpu: u32,
    place: usize,
    idle: Option<IdleFiles>,
    pmu: Option<CycleCounter>,
    sampler: Option<CpuClockSampler>,
    samples: Samples,
    soakers: Option<Arc<Soakers>>,
}

impl CpuReader {
    fn serve(mut self, board: &Board) {
        // Without them a reading comes late, never wrong: it carries its own time.
        let _ = sys::schedule::pin_to(&[self.cpu]);
        let _ = sys::schedule::set_class(sys::schedule::Class::RealTime);
        let mut seen = 0;
        let mut state = board.lock();
        self.answer(&mut state, board, CpuReading { cpu: self.cpu, ..CpuReading::default() });
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
            let reading = self.read(mode == Some(Mode::Sampler));
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

    fn read(&mut self, sample_next: bool) -> CpuReading {
        let at_nanos = Nanos(monotonic_nanos());
        let idle_nanos = self.idle.as_mut().and_then(IdleFiles::read);
        let soaked_nanos = self.soakers.as_ref().and_then(|soakers| soakers.soaked(self.cpu));
        let pmu_cycles = self.pmu.as_mut().and_then(|counter| counter.read().ok());
        let samples = self.sample(sample_next);
        CpuReading { cpu: self.cpu, at_nanos, idle_nanos, soaked_nanos, pmu_cycles, samples }
    }

    fn sample(&mut self, sample_next: bool) -> Option<Samples> {
        let sampler = self.sampler.as_mut()?;
        let counts = sampler.drain();
        self.samples.user += counts.user;
        self.samples.kernel += counts.kernel;
        self.samples.lost += counts.lost;
        let switched = if sample_next { sampler.enable() } else { sampler.disable() };
        switched.ok().map(|()| self.samples)
    }
}
