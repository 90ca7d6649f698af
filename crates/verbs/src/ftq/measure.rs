//! `iotoll ftq`: records what a worker does in each quantum of time, and the kernel's counters beside it.
//!
//! A plan enters, a record leaves. Three threads: the worker, the recorder on another CPU, and this one, which saves the
//! readings in pieces of about a second. Nothing is computed from them here.

mod foreign;
mod own;
mod recorder;

use crate::ftq::record::{Chunk, End, Header, Worker};
use crate::ftq::{FtqPlan, FtqRecord};
use foreign::Foreign;
use jobs::demand;
use lab::created::Created;
use lab::error::{Error, Result};
use lab::group_limits::GroupLimits;
use lab::guardian::Guardian;
use lab::host;
use lab::probe::{ProbeSet, WorkerTask};
use lab::progress::{Observer, Progress};
use lab::session::{Session, Settings};
use model::experiment::Cell;
use model::kind::Recorded;
use model::plan::Access;
use model::probe::{Place, Probe};
use model::record::Outcome;
use model::stats::basics::Random;
use model::storage::Storage;
use model::unit::Nanos;
use model::warning::{Code, Warning};
use own::{Counted, Own, Subject, Surroundings};
use recorder::{Recorder, Task};
use std::time::{Duration, Instant};
use sys::schedule::{allowed_cpus, pin_to};

/// How often the readings are collected and shown.
const LOOK: Duration = Duration::from_millis(200);
/// Shortest and longest time between two pieces of the record. It varies, because saving at a fixed interval could be found
/// as a period of the machine.
const PIECE: (Duration, Duration) = (Duration::from_millis(700), Duration::from_millis(1500));
/// The ring holds the readings of this time: a disk that writes nothing for longer is as good as gone.
const BACKLOG: Duration = Duration::from_secs(20);
/// Most and fewest readings that it holds.
const MOST_ROWS: u64 = 1 << 20;
const FEWEST_ROWS: u64 = 1 << 10;
/// The rate of the time-stamp counter is known to 10 ppm after this time.
const CALIBRATION: Duration = Duration::from_millis(10);

/// A recording, and what is read beside it. No meter of the settings runs, and the CPUs of worker and recorder are those of the plan.
pub struct Quanta<'a> {
    pub plan: &'a FtqPlan,
    /// Probes that are read too, if this machine has them.
    pub optional_probes: Vec<Probe>,
    /// Counts the worker's amount by a probe.
    pub count: Option<Probe>,
    /// Which system calls of a foreign process count.
    pub access: Access,
}

/// What holds the files of the worker, as far as the plan names them.
fn storage(plan: &FtqPlan) -> Vec<Storage> {
    match &plan.worker {
        Worker::Job(plan) => host::storage::of_plan(plan),
        Worker::Command(words) => host::storage::of_command(words),
        Worker::Cpu | Worker::Process(_) => Vec::new(),
    }
}

impl Quanta<'_> {
    pub fn measure(&self, settings: Settings, created: &Created, observer: Observer) -> Result<FtqRecord> {
        if let Worker::Job(plan) = &self.plan.worker {
            demand::check(&plan.phases)?;
        }
        let mut asked = settings.probes.iter().chain(&self.count);
        asked.try_for_each(|probe| refuse_pressure(probe, self.plan.quantum))?;
        let allowed = allowed_cpus().map_err(|error| Error::instrument("listing CPUs", error))?;
        let cpus = Cpus::choose(self.plan, &allowed).map_err(Error::Refused)?;
        let session = Session::open(&settings, &[], &mut |service| observer(Progress::Starting { service }))?;
        let mut measured = measure(self, &session, cpus, created, observer);
        session.close_with_end(measured.as_mut().map(|(_, end)| end), created, |end| &mut end.outcome);
        measured.map(|(record, end)| FtqRecord { end: Some(end), ..record })
    }
}

/// The CPUs of a recording: different ones, if there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpus {
    recorder: u32,
    /// Of the worker; `None` if the scheduler or its own job chooses.
    worker: Option<u32>,
}

impl Cpus {
    /// What the plan asks for, and otherwise the last CPU that this process may use for the recorder, and the first for a
    /// worker of iotoll.
    ///
    /// # Errors
    /// Refused, when a CPU may not be used, or the plan would move a process that iotoll did not start.
    fn choose(plan: &FtqPlan, allowed: &[u32]) -> std::result::Result<Self, String> {
        for (flag, cpu) in [("--recorder-cpu", plan.recorder_cpu), ("--worker-cpu", plan.worker_cpu)] {
            if let Some(cpu) = cpu.filter(|cpu| !allowed.contains(cpu)) {
                let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                return Err(format!("{flag} {cpu}: this process may not use it; it may use CPUs {}", list.join(",")));
            }
        }
        let (own, starts): (&[u32], bool) = match &plan.worker {
            Worker::Job(job) => (
                job.phases.iter().flat_map(|phase| &phase.jobs).next().map_or(&[], |job| &job.thread.cpus_allowed),
                true,
            ),
            Worker::Cpu => (&[], true),
            Worker::Command(_) | Worker::Process(_) => (&[], false),
        };
        let free = |cpu: &u32| plan.worker_cpu.map_or_else(|| !own.contains(cpu), |taken| *cpu != taken);
        let last = || allowed.iter().rev().copied().find(free).or(allowed.last().copied());
        let recorder = plan.recorder_cpu.or_else(last).unwrap_or(0);
        let worker = plan.worker_cpu.or(match own {
            [] if starts => allowed.iter().copied().find(|cpu| *cpu != recorder).or(Some(recorder)),
            // A job that names one CPU is on it.
            [cpu] => Some(*cpu),
            _ => None,
        });
        Ok(Self { recorder, worker })
    }
}

fn measure(
    asked: &Quanta,
    session: &Session,
    cpus: Cpus,
    created: &Created,
    observer: Observer,
) -> Result<(FtqRecord, End)> {
    let (plan, settings) = (asked.plan, session.settings);
    session.around.prepare(&Cell::default())?;
    let mut warnings = if let Worker::Job(job) = &plan.worker { job.warnings.clone() } else { Vec::new() };
    let clock = || {
        session.calibration.wait(CALIBRATION);
        session.clock()
    };
    let surroundings = Surroundings {
        cpu: cpus.worker,
        created,
        interruption: &settings.interruption,
        clock: &clock,
        warnings: &mut warnings,
    };
    let mut subject = open(plan, surroundings, &settings.guardian, observer)?;
    let (probes, counted) = sources(asked, &settings.probes, subject.as_mut())?;
    session.calibration.wait(CALIBRATION);
    let header = Header {
        envelope: session.envelope(FtqRecord::KIND),
        plan: FtqPlan { recorder_cpu: Some(cpus.recorder), worker_cpu: cpus.worker, ..plan.clone() },
        host: session.host(storage(plan)),
        worker: subject.words().to_owned(),
        counted_by: counted.by.clone(),
        unit: counted.unit.clone(),
        probes: probes.descriptors(),
        services: session.services.started.clone(),
    };
    let quanta = plan.duration.0 / plan.quantum.0.max(1);
    let task = Task { counted, probes, quantum: plan.quantum, quanta, cpu: cpus.recorder };
    let recorder = Recorder::start(task, rows(plan.quantum))?;
    settings.saver.begin(&header.envelope, &header)?;
    // Saving takes CPU time of the recorder's CPU, not of the worker's. A recorder with real-time priority comes first.
    let own_cpu: Vec<u32> = if cpus.worker == Some(cpus.recorder) { Vec::new() } else { vec![cpus.recorder] };
    let recording =
        Recording { header, recorder, subject, settings, observer, warnings, chunks: Vec::new(), saving: None };
    near(&own_cpu, || recording.run())
}

/// Refuses to read pressure more often than the kernel can bear: it weighs what was added since the last reading by the CPUs'
/// busy time in whole jiffies (collect_percpu_times in kernel/sched/psi.c), so what it adds between two readings less than a
/// jiffy apart is lost, for all readers. At quanta of 1 ms it stood still here, at 4 ms half of it was lost.
fn refuse_pressure(probe: &Probe, quantum: Nanos) -> Result<()> {
    const SHORTEST: Nanos = Nanos(20_000_000);
    match &probe.place {
        Place::File { path, .. } if path.starts_with("/proc/pressure/") && quantum < SHORTEST => {
            Err(Error::Refused(format!(
                "probe '{}': the kernel loses pressure that it counts between two readings less than a jiffy apart, for all readers; leave \
                 it out, or use --quantum 20ms or longer",
                probe.descriptor.name
            )))
        }
        _ => Ok(()),
    }
}

/// Runs `what` on these CPUs, if there are any and it is allowed.
fn near<T>(cpus: &[u32], what: impl FnOnce() -> T) -> T {
    let before = allowed_cpus().ok().filter(|_| !cpus.is_empty() && pin_to(cpus).is_ok());
    let outcome = what();
    if let Some(before) = before {
        // They were allowed before.
        let _ = pin_to(&before);
    }
    outcome
}

/// Finds or starts the worker. One of iotoll waits at its gate.
fn open(
    plan: &FtqPlan,
    surroundings: Surroundings,
    guardian: &Guardian,
    observer: Observer,
) -> Result<Box<dyn Subject>> {
    Ok(match &plan.worker {
        Worker::Job(job) => Box::new(Own::of_job(job, surroundings, observer)?),
        Worker::Cpu => Box::new(Own::computing(surroundings, observer)?),
        Worker::Command(words) => Box::new(Foreign::start(words, surroundings.cpu, guardian)?),
        Worker::Process(process) => {
            if plan.worker_cpu.is_some() {
                let why = "--worker-cpu places only a worker that iotoll starts; move a running process with taskset";
                return Err(Error::Refused(why.to_owned()));
            }
            Box::new(Foreign::find(*process)?)
        }
    })
}

/// The probes and the worker's amount, all opened and read once.
fn sources(asked: &Quanta, probes: &[Probe], subject: &mut dyn Subject) -> Result<(ProbeSet, Counted)> {
    let task = subject.task();
    let counted = match &asked.count {
        Some(probe) => own::of_probe(probe, task)?,
        None => subject.counted(asked.access)?,
    };
    let mut probes = probes.to_vec();
    // The machine may lack any of these, and nobody has asked for them.
    probes.extend(asked.optional_probes.iter().filter(|probe| is_there(probe, task)).cloned());
    Ok((ProbeSet::open_beside(&probes, Some(task))?, counted))
}

fn is_there(probe: &Probe, task: WorkerTask) -> bool {
    ProbeSet::open_beside(std::slice::from_ref(probe), Some(task)).is_ok()
}

/// Rows of the ring.
fn rows(quantum: Nanos) -> usize {
    let rows = Nanos::from_secs(BACKLOG.as_secs()).0 / quantum.0.max(1);
    usize::try_from(rows.clamp(FEWEST_ROWS, MOST_ROWS)).unwrap_or(usize::MAX)
}

/// A recording that begins, and what becomes of its readings.
struct Recording<'a> {
    header: Header,
    recorder: Recorder,
    subject: Box<dyn Subject>,
    settings: &'a Settings,
    observer: Observer<'a>,
    warnings: Vec<Warning>,
    /// The readings, as they were saved.
    chunks: Vec<Chunk>,
    /// Why they could not be saved any more.
    saving: Option<Error>,
}

impl Recording<'_> {
    fn run(mut self) -> Result<(FtqRecord, End)> {
        let mut limits = GroupLimits::own();
        if let WorkerTask::Process(process) = self.subject.task() {
            limits.follow(process);
        }
        let before = limits.read();
        self.subject.begin();
        self.recorder.begin();
        let mut random = Random(self.header.plan.seed);
        let mut due = Instant::now() + until_next_piece(&mut random);
        let (begun, total) = (Instant::now(), Some(self.header.plan.duration.duration()));
        let mut pending = self.empty();
        let mut ended = false;
        while !ended {
            ended = self.subject.wait(LOOK) || self.recorder.is_over() || self.settings.interruption.is_requested();
            self.subject.look_around();
            self.recorder.ring().drain(&mut pending);
            let elapsed = begun.elapsed();
            (self.observer)(Progress::Running { number: 0, count: 1, elapsed, total, iops: None });
            if Instant::now() >= due {
                due = Instant::now() + until_next_piece(&mut random);
                let piece = std::mem::replace(&mut pending, self.empty());
                self.save(piece);
                ended |= self.saving.is_some();
            }
        }
        let recorder = self.recorder.end();
        let group_limits = if before.is_empty() { Vec::new() } else { vec![before, limits.read()] };
        self.recorder.ring().drain(&mut pending);
        self.save(pending);
        let lost = self.recorder.lost();
        if lost > 0 {
            let message =
                format!("{lost} readings were lost, because the disk did not take them in time; they are gaps");
            self.warnings.push(Warning::new(Code::ReadingsLost, message));
        }
        let ending = self.subject.end();
        let interrupted = self.settings.interruption.is_requested();
        let outcome = match (&self.saving, ending.failure) {
            (Some(error), _) => Outcome::Failed(error.to_string()),
            // A command of the same terminal is interrupted too, which is no failure.
            (None, Some(failure)) if !interrupted => Outcome::Failed(failure),
            _ if interrupted => Outcome::Interrupted,
            _ => Outcome::Completed,
        };
        if self.chunks.iter().all(|chunk| chunk.at.is_empty()) {
            return Err(nothing(outcome));
        }
        let end = End { outcome, warnings: self.warnings, recorder, ios: ending.ios, group_limits };
        Ok((FtqRecord { header: self.header, chunks: self.chunks, end: None }, end))
    }

    fn empty(&self) -> Chunk {
        Chunk { probes: vec![Vec::new(); self.header.probes.len()], ..Chunk::default() }
    }

    /// Saves a piece, and keeps it. After a failure it only keeps it.
    fn save(&mut self, piece: Chunk) {
        if piece.at.is_empty() {
            return;
        }
        if self.saving.is_none() {
            self.saving = self.settings.saver.append_unsynced("chunk", &piece).err();
        }
        self.chunks.push(piece);
    }
}

/// Why there is no reading at all.
fn nothing(outcome: Outcome) -> Error {
    match outcome {
        Outcome::Failed(why) => Error::Failed(why),
        Outcome::Interrupted => Error::Interrupted("before the first reading".to_owned()),
        Outcome::Completed => Error::Failed("the worker ended before the first reading".to_owned()),
    }
}

/// When the next piece is saved.
fn until_next_piece(random: &mut Random) -> Duration {
    let (shortest, longest) = PIECE;
    shortest + (longest - shortest).mul_f64(random.part())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{JobPlan, Phase, Plan};

    #[test]
    fn pieces_have_no_period() {
        let mut random = Random(1);
        let lengths: Vec<Duration> = (0..100).map(|_| until_next_piece(&mut random)).collect();
        let (shortest, longest) = (*lengths.iter().min().unwrap(), *lengths.iter().max().unwrap());
        assert!(shortest >= PIECE.0 && longest <= PIECE.1 && longest - shortest > Duration::from_millis(400));
    }

    fn plan(worker: Worker) -> FtqPlan {
        FtqPlan { worker, ..FtqPlan::default() }
    }

    fn cpus(plan: &FtqPlan, allowed: &[u32]) -> (u32, Option<u32>) {
        let cpus = Cpus::choose(plan, allowed).unwrap();
        (cpus.recorder, cpus.worker)
    }

    #[test]
    fn recorder_and_worker_are_apart_where_they_can_be() {
        let own = plan(Worker::Cpu);
        assert_eq!(cpus(&own, &[2, 3, 5]), (5, Some(2)));
        assert_eq!(cpus(&own, &[2]), (2, Some(2)));
        assert_eq!(cpus(&FtqPlan { worker_cpu: Some(5), ..own.clone() }, &[2, 3, 5]), (3, Some(5)));
        assert_eq!(cpus(&FtqPlan { recorder_cpu: Some(2), ..own.clone() }, &[2, 3, 5]), (2, Some(3)));
        assert_eq!(cpus(&plan(Worker::Process(1)), &[2, 3]), (3, None));
        let mut job = JobPlan::default();
        job.thread.cpus_allowed = vec![3];
        let job = Plan { phases: vec![Phase { jobs: vec![job] }], warnings: Vec::new() };
        assert_eq!(cpus(&plan(Worker::Job(Box::new(job))), &[2, 3]), (2, Some(3)), "the job says where it is");
    }
}
