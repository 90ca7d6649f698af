//! `iotoll cost -- CMD`: what a foreign command costs the whole machine.
//!
//! The command is run as it is; where it can say in JSON how many I/Os it did, the flag for that is added.
//! /proc/PID/io is not used: it misses what io_uring does.

mod counter;
mod fio;
mod iperf3;

pub use counter::Counter;

use crate::error::{Error, Result};
use crate::meter::{Owners, Panel, TaskScan, Work};
use crate::run::{Observer, Progress, Session, Settings, iops};
use crate::watch::{Step, Subject, watch};
use model::record::{Done, Execution, Exit, IoInterval, JobRecord, Outcome, PhaseRecord, Record, Source, Stretch};
use model::unit::{Bytes, Nanos};
use model::warning::{Code, Warning, add_once};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use sys::process::{Ended, How};

/// How far a program's clock may be off: its grain, and what passes between its last I/O and its report.
const CLOCK_SLACK: Nanos = Nanos(100_000_000);

/// A command and where its I/O count comes from.
#[derive(Clone, Debug)]
pub struct CommandPlan {
    /// Program and arguments; not empty.
    pub command: Vec<String>,
    /// How I/Os are counted.
    pub count: Count,
    /// How many times it is executed.
    pub repeat: u32,
    /// Where what it prints for people goes.
    pub printed: Printed,
    /// When it is to have ended. Then the command has a process group of its own, no input, and whatever of it
    /// still runs at its end, or after this time, is killed.
    pub longest: Option<Duration>,
}

/// Where what a command prints on its standard output goes. Never to ours, which holds the result alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// To our standard error.
    ToStderr,
    /// Nowhere.
    Nowhere,
}

impl Printed {
    fn stdio(self) -> Stdio {
        let stderr = || std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
        match self {
            Self::ToStderr => stderr(),
            Self::Nowhere => Stdio::null(),
        }
    }
}

/// How the I/Os of a command are counted.
#[derive(Clone, Debug)]
pub enum Count {
    /// By the program itself, when it is one that can: fio, iperf3.
    Program,
    /// Stated by the user, for each execution.
    Stated {
        /// I/Os.
        ios: Option<u64>,
        /// Bytes.
        bytes: Option<u64>,
    },
    /// By a counter of the kernel.
    Kernel(Counter),
}

/// A program that can say what it did.
trait Talker {
    /// The command with what makes it talk, and where its standard output goes.
    fn prepare(&mut self, command: &[String], printed: Printed) -> Result<(Vec<String>, Stdio)>;
    /// What it said, after it ended.
    fn jobs(&mut self) -> std::result::Result<Said, String>;
}

/// What a program said of itself.
#[derive(Debug, Default)]
struct Said {
    jobs: Vec<JobRecord>,
    /// When it did I/O, on the clock of the day, where it says so.
    io_unix_nanos: Option<(u64, u64)>,
    /// The text that it meant for a person.
    text: String,
    /// Why it failed, from a program whose exit status does not say that it did.
    failure: Option<String>,
}

/// A program whose output is not understood.
struct Mute;

impl Talker for Mute {
    fn prepare(&mut self, command: &[String], printed: Printed) -> Result<(Vec<String>, Stdio)> {
        Ok((command.to_vec(), printed.stdio()))
    }

    fn jobs(&mut self) -> std::result::Result<Said, String> {
        Ok(Said::default())
    }
}

fn talker(plan: &CommandPlan) -> Box<dyn Talker> {
    let program = plan.command.first().map(std::path::Path::new).and_then(|path| path.file_name());
    match (&plan.count, program.and_then(|name| name.to_str())) {
        (Count::Program, Some("fio")) => Box::new(fio::Fio::default()),
        (Count::Program, Some("iperf3")) => Box::new(iperf3::Iperf3::default()),
        _ => Box::new(Mute),
    }
}

fn counted_by(plan: &CommandPlan) -> String {
    let program = plan.command.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
    match &plan.count {
        Count::Program => match program {
            "fio" => "fio's JSON".to_owned(),
            "iperf3" => "iperf3's JSON: I/Os are blocks (TCP) or packets (UDP)".to_owned(),
            _ => "nothing: give --ios, --bytes or --count".to_owned(),
        },
        Count::Stated { .. } => "stated on the command line".to_owned(),
        Count::Kernel(counter) => format!("the kernel's counters of {counter}, whoever caused them"),
    }
}

/// Measures a command. What the program printed for people is given to `print`.
///
/// # Errors
/// When the command cannot be started. A command that fails is in the record.
pub fn cost(
    plan: &CommandPlan,
    settings: &Settings,
    observer: Observer,
    print: &mut dyn FnMut(&str),
) -> Result<Record> {
    let source = Source::Cost { command: plan.command.clone(), counted_by: counted_by(plan) };
    let mut session = Session::open(settings, source)?;
    if let Count::Kernel(counter) = &plan.count {
        counter.read().map_err(|error| Error::Refused(format!("--count {counter}: {error}")))?;
    }
    session.watch_background(observer);
    let mut phase = PhaseRecord::default();
    for number in 0..plan.repeat.max(1) as usize {
        if session.interrupted() || session.record.outcome != Outcome::Completed {
            break;
        }
        let mut surroundings = Surroundings {
            panel: &mut session.panel,
            interrupted: &session.settings.interrupted,
            warnings: &mut session.record.warnings,
        };
        let Executed { execution, failure } = match execute(plan, number, &mut surroundings, observer, print) {
            Ok(executed) => executed,
            Err(error) if phase.executions.is_empty() => return Err(error),
            // What the executions before it cost is known.
            Err(error) => {
                session.note_outcome(Outcome::Failed(error.to_string()));
                break;
            }
        };
        if let Some(failure) = failure {
            session.note_outcome(Outcome::Failed(failure));
        }
        phase.executions.push(execution);
    }
    if phase.executions.is_empty() {
        return Err(Error::Interrupted("before the command was started".to_owned()));
    }
    session.record.phases.push(phase);
    session.watch_background(observer);
    Ok(session.close())
}

fn describe(exit: Exit) -> String {
    match exit {
        Exit::Status(status) => format!("the command ended with status {status}"),
        Exit::Signal(signal) => format!("the command was ended by signal {signal}"),
    }
}

/// What an execution needs besides its plan.
pub(crate) struct Surroundings<'a> {
    pub(crate) panel: &'a mut Panel,
    pub(crate) interrupted: &'a AtomicBool,
    pub(crate) warnings: &'a mut Vec<Warning>,
}

/// An execution, and why it counts as failed.
pub(crate) struct Executed {
    pub(crate) execution: Execution,
    pub(crate) failure: Option<String>,
}

/// Executes the command once.
pub(crate) fn execute(
    plan: &CommandPlan,
    number: usize,
    surroundings: &mut Surroundings,
    observer: Observer,
    print: &mut dyn FnMut(&str),
) -> Result<Executed> {
    let mut talker = talker(plan);
    let (command, stdout) = talker.prepare(&plan.command, plan.printed)?;
    let (program, arguments) = command.split_first().ok_or_else(|| Error::Refused("there is no command".to_owned()))?;
    let mut child = Command::new(program);
    child.args(arguments).stdout(stdout);
    let mut complaints = None;
    if plan.longest.is_some() {
        let (kept, stderr) = quietly()?;
        child.stdin(Stdio::null()).stderr(stderr).process_group(0);
        complaints = Some(kept);
    }
    let before = TaskScan::now();
    let unix_less_monotonic = unix_less_monotonic();
    let counter = match &plan.count {
        Count::Kernel(counter) => Some(counter),
        Count::Program | Count::Stated { .. } => None,
    };
    let mut running = Running {
        child: Some(child),
        process: None,
        news: None,
        ended: None,
        failure: None,
        counter,
        first: counter.and_then(|counter| counter.read().ok()),
        interrupted: surroundings.interrupted,
        told_to_end: None,
        longest: plan.longest,
        overdue: false,
        begun: Instant::now(),
        observer,
        number,
        count: plan.repeat.max(1) as usize,
    };
    let stretch = watch(surroundings.panel, &mut running);
    running.end_what_is_left();
    if let Some(failure) = running.failure {
        return Err(Error::Refused(format!("{program}: cannot be started: {failure}; check the command after --")));
    }
    let owners = Owners { command: running.process, ..Owners::default() };
    let tasks = TaskScan::now().since(&before, &owners);
    let ended = running.ended.ok_or_else(|| Error::Refused(format!("{program}: lost sight of the command")))?;
    let said = talker.jobs();
    let said = said.unwrap_or_else(|why| {
        let message = format!("{program} did not say what it did: {why}; --ios, --bytes or --count say it instead");
        add_once(surroundings.warnings, Warning::new(Code::WorkUnknown, message));
        Said::default()
    });
    let exit = match ended.how {
        How::Status(status) => Exit::Status(status),
        How::Signal(signal) => Exit::Signal(signal),
    };
    let failure = match (running.is_overdue(), &said.failure) {
        (Some(longest), _) => Some(format!(
            "{program}: did not end within {:.0} s and was killed; --patience says how long it may take",
            longest.as_secs_f64()
        )),
        (None, Some(failure)) => Some(format!("{program}: {failure}")),
        (None, None) => (exit != Exit::Status(0)).then(|| describe(exit)),
    };
    let failure = failure.map(|failure| match complaints.as_mut().and_then(last_line) {
        Some(line) => format!("{failure}: {line}"),
        None => failure,
    });
    if !said.text.is_empty() && plan.printed == Printed::ToStderr {
        print(&said.text);
    }
    let mut jobs = match (&plan.count, counter) {
        (Count::Stated { ios, bytes }, _) => vec![stated(*ios, *bytes)],
        (_, Some(counter)) => counter.job(&stretch).into_iter().collect(),
        _ => said.jobs,
    };
    // Who does not say how long it worked, worked all the time.
    if let [first, .., last] = stretch.snapshots.as_slice() {
        let wall = last.at_nanos.since(first.at_nanos);
        jobs.iter_mut().filter(|job| job.wall_nanos == Nanos(0)).for_each(|job| job.wall_nanos = wall);
    }
    let on_monotonic = |unix: u64| Nanos(unix.saturating_sub(unix_less_monotonic));
    let io_interval = said
        .io_unix_nanos
        .map(|(begin, end)| IoInterval { begin_nanos: on_monotonic(begin), end_nanos: on_monotonic(end) });
    let io_interval = match (io_interval, stretch.snapshots.first()) {
        (Some(interval), Some(first)) if first.at_nanos.since(interval.begin_nanos) > CLOCK_SLACK => {
            let message = format!(
                "{program} says that its I/O began {:.1} s before it was started; when it did I/O is unknown, and \
                 all of its time counts",
                first.at_nanos.since(interval.begin_nanos).seconds()
            );
            add_once(surroundings.warnings, Warning::new(Code::Unknown, message));
            None
        }
        (interval, _) => interval,
    };
    let execution = Execution {
        jobs,
        stretch: Stretch { tasks: Some(tasks), ..stretch },
        io_interval,
        command_cpu_nanos: Some(Nanos(ended.cpu_nanos)),
        exit: Some(exit),
    };
    Ok(Executed { execution, failure })
}

/// A file for what a command says on standard error, where it would otherwise be said again and again.
fn quietly() -> Result<(File, File)> {
    let made = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
    made.map_err(|error| Error::instrument("a temporary file for what the command says", error))
}

/// The last thing that was written to a file.
fn last_line(file: &mut File) -> Option<String> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
}

fn unix_less_monotonic() -> u64 {
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let unix = unix.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
    unix.saturating_sub(sys::clock::monotonic_nanos())
}

fn stated(ios: Option<u64>, bytes: Option<u64>) -> JobRecord {
    let mut job = JobRecord { name: "stated".to_owned(), engine: "stated".to_owned(), ..JobRecord::default() };
    job.read.ios = ios.unwrap_or(0);
    job.read.bytes = Bytes(bytes.unwrap_or(0));
    job
}

/// A command that runs.
struct Running<'a> {
    child: Option<Command>,
    process: Option<u32>,
    news: Option<Receiver<std::io::Result<Ended>>>,
    ended: Option<Ended>,
    failure: Option<std::io::Error>,
    counter: Option<&'a Counter>,
    first: Option<Done>,
    interrupted: &'a AtomicBool,
    told_to_end: Option<Instant>,
    longest: Option<Duration>,
    /// It was ended because it took longer than that.
    overdue: bool,
    begun: Instant,
    observer: Observer<'a>,
    number: usize,
    count: usize,
}

impl Running<'_> {
    /// Passes an interruption on, once: a terminal's Ctrl-C has reached the command by itself.
    fn pass_interruption_on(&mut self) {
        if !self.interrupted.load(Ordering::Relaxed) || self.told_to_end.is_some() {
            return;
        }
        self.told_to_end = Some(Instant::now());
        self.kill(Signal::INT);
    }

    /// How long it was allowed, when it was ended because that had passed.
    fn is_overdue(&self) -> Option<Duration> {
        self.longest.filter(|_| self.overdue)
    }

    /// Ends a command that does not end, or that was asked to and does not.
    fn hurry(&mut self) {
        /// After it was asked to.
        const GRACE: Duration = Duration::from_secs(2);
        let Some(longest) = self.longest else { return };
        if self.told_to_end.is_some_and(|told| told.elapsed() > GRACE) {
            self.kill(Signal::KILL);
        }
        match self.begun.elapsed() {
            elapsed if elapsed > longest + GRACE => self.kill(Signal::KILL),
            elapsed if elapsed > longest => {
                self.overdue = true;
                self.kill(Signal::TERM);
            }
            _ => {}
        }
    }

    /// Nothing of a command with a process group of its own outlives it.
    fn end_what_is_left(&self) {
        if self.longest.is_some() {
            self.kill(Signal::KILL);
        }
    }

    /// Sends a signal to the command, or to its process group where it has one. It may have ended just now.
    fn kill(&self, signal: Signal) {
        let process = self.process.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let Some(process) = process else { return };
        let _ = match self.longest {
            Some(_) => kill_process_group(process, signal),
            None => kill_process(process, signal),
        };
    }
}

impl Work for Running<'_> {
    fn done(&self) -> Option<Done> {
        let (now, first) = (self.counter?.read().ok()?, self.first?);
        Some(Done { ios: now.ios.saturating_sub(first.ios), bytes: now.bytes.since(first.bytes) })
    }

    fn thread_nanos(&self) -> Option<Nanos> {
        None
    }
}

impl Subject for Running<'_> {
    fn begin(&mut self) {
        let Some(mut command) = self.child.take() else { return };
        match command.spawn() {
            Ok(child) => {
                self.begun = Instant::now();
                self.process = Some(child.id());
                let (tell, news) = channel();
                self.news = Some(news);
                let waiter = std::thread::Builder::new().name("iotoll-wait".to_owned()).stack_size(128 << 10);
                if let Err(error) = waiter.spawn(move || tell.send(sys::process::wait(child))) {
                    // Nobody can see it end, so it is not left to run; init, its new parent after us, reaps it.
                    self.kill(Signal::KILL);
                    self.failure = Some(error);
                }
            }
            Err(error) => self.failure = Some(error),
        }
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        /// Longest time that Ctrl-C goes unnoticed.
        const GLANCE: Duration = Duration::from_millis(100);
        let mut left = timeout;
        while !left.is_zero() {
            let Some(news) = &self.news else { return true };
            match news.recv_timeout(left.min(GLANCE)) {
                Ok(Ok(ended)) => {
                    self.ended = Some(ended);
                    return true;
                }
                Ok(Err(error)) => {
                    self.failure = Some(error);
                    return true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
            }
            self.pass_interruption_on();
            self.hurry();
            left = left.saturating_sub(GLANCE);
        }
        false
    }

    fn step(&mut self, step: Step) {
        (self.observer)(Progress::Running {
            number: self.number,
            count: self.count,
            elapsed: step.elapsed,
            total: None,
            iops: iops(&step),
        });
    }
}

/// A temporary file for what a program says, removed when dropped.
fn scratch(what: &str) -> Result<(tempfile::NamedTempFile, File)> {
    let made = tempfile::Builder::new().prefix("iotoll-").suffix(".json").tempfile();
    let made = made.and_then(|file| file.reopen().map(|again| (file, again)));
    made.map_err(|error| Error::instrument(format!("a temporary file for {what}"), error))
}
