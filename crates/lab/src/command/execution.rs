//! One execution of a command: starts it, watches it to its end, parses its output.

use super::output_parser::{CLOCK_SLACK, Prepared, ProgramReport, prepared};
use super::running::Running;
use super::{CommandPlan, Count, Isolation};
use crate::error::{Error, Result};
use crate::guardian::processes::Processes;
use crate::interruption::Interruption;
use crate::meter::{MeterSet, Owners};
use crate::page_cache::dirty;
use crate::progress::{Observer, Progress};
use crate::shell::{last_line, scratch};
use crate::store::GrowingWindows;
use crate::watch::watch;
use model::record::{Direction, Execution, Exit, IoInterval, JobRecord, Stretch};
use model::unit::{Bytes, Nanos};
use model::warning::{Code, Warning, add_once};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use sys::process::How;

/// What an execution needs besides its plan.
pub struct Surroundings<'a> {
    pub meters: &'a mut MeterSet,
    pub interruption: &'a Interruption,
    pub warnings: &'a mut Vec<Warning>,
    /// The CPUs of the command; empty means any.
    pub cpus: &'a [u32],
    /// The group that the command and its children belong to.
    pub processes: &'a Processes,
    /// Saves its windows while it runs.
    pub windows: Option<GrowingWindows>,
}

/// An execution, and why it counts as failed.
pub struct Executed {
    pub execution: Execution,
    pub failure: Option<String>,
    /// A process of it was in another network namespace than iotoll.
    pub elsewhere: bool,
}

/// Executes the command once.
///
/// # Errors
/// When it cannot be started or waited for. A command that fails is not an error.
pub fn execute(
    plan: &CommandPlan,
    number: usize,
    surroundings: &mut Surroundings,
    observer: Observer,
) -> Result<Executed> {
    let Prepared { command, stdout, mut output } = prepared(plan)?;
    let (program, arguments) = command.split_first().ok_or_else(|| Error::Refused("there is no command".to_owned()))?;
    let mut child = Command::new(program);
    child.args(arguments).stdout(stdout);
    let mut complaints = set_apart(&mut child, plan.custody)?;
    surroundings.processes.mark(&mut child);
    let before = surroundings.meters.scan_tasks();
    let unix_less_monotonic = unix_less_monotonic();
    let mut running = Running::new(plan, number, child, surroundings.interruption, observer);
    (running.cpus, running.processes) = (surroundings.cpus, Some(surroundings.processes));
    running.windows = surroundings.windows.take();
    let dirty_before = dirty();
    let mut stretch = watch(surroundings.meters, &mut running);
    let dirtied = dirty_before.zip(dirty()).map(|(before, after)| after.since(before));
    running.note_servers(&mut stretch.snapshots);
    let ended = running.end()?;
    let owners = Owners { command: running.process, ..Owners::default() };
    let tasks = surroundings.meters.scan_tasks().since(&before, &owners);
    let mut report = output.report().unwrap_or_else(|why| {
        let message = format!("{program} did not report its I/O: {why}; use --ios, --bytes or --count");
        add_once(surroundings.warnings, Warning::new(Code::WorkUnknown, message));
        ProgramReport::default()
    });
    if !report.text.is_empty() && plan.printed {
        (running.observer)(Progress::Printed(&report.text));
    }
    let exit = match ended.how {
        How::Status(status) => Exit::Status(status),
        How::Signal(signal) => Exit::Signal(signal),
    };
    let failure = failure(program, exit, &report, running.is_overdue());
    let failure = failure.map(|failure| match complaints.as_mut().and_then(last_line) {
        Some(line) => format!("{failure}: {line}"),
        None => failure,
    });
    let notes = report.notes.drain(..).map(|note| Warning::new(Code::Unknown, note));
    notes.for_each(|note| add_once(surroundings.warnings, note));
    let io_interval = io_interval(program, &report, &stretch, unix_less_monotonic).unwrap_or_else(|warning| {
        add_once(surroundings.warnings, warning);
        None
    });
    if let Some(why) = report.uncounted.as_ref().filter(|_| plan.count == Count::Program) {
        add_once(surroundings.warnings, Warning::new(Code::WorkUnknown, why.clone()));
    }
    let execution = Execution {
        jobs: jobs(plan, report, &stretch),
        stretch: Stretch { tasks: Some(tasks), ..stretch },
        io_interval,
        command_cpu_nanos: Some(Nanos(ended.cpu_nanos)),
        exit: Some(exit),
        jobs_ended_nanos: None,
        page_cache: None,
        dirtied,
    };
    Ok(Executed { execution, failure, elsewhere: running.elsewhere })
}

/// Separates a command from iotoll if its custody requires that. Its standard error then goes to the returned file.
pub fn set_apart(child: &mut Command, custody: Isolation) -> Result<Option<File>> {
    if custody == Isolation::Shared {
        return Ok(None);
    }
    let (kept, stderr) = scratch()
        .map_err(|error| Error::instrument("making a temporary file for the command's standard error", error))?;
    child.stdin(Stdio::null()).stderr(stderr).process_group(0);
    Ok(Some(kept))
}

/// Why an execution counts as failed: it took too long, it reports a failure, or its status shows one.
fn failure(program: &str, exit: Exit, report: &ProgramReport, overdue: Option<Duration>) -> Option<String> {
    match (overdue, &report.failure, exit) {
        (Some(longest), ..) => Some(format!(
            "{program}: did not end within {:.0} s and was killed; --hang-timeout sets this limit",
            longest.as_secs_f64()
        )),
        (None, Some(failure), _) => Some(format!("{program}: {failure}")),
        (None, None, Exit::Status(0)) => None,
        (None, None, Exit::Status(status)) => Some(format!("the command ended with status {status}")),
        (None, None, Exit::Signal(signal)) => Some(format!("the command was ended by signal {signal}")),
    }
}

/// The I/O of the command, from the source that the plan names.
fn jobs(plan: &CommandPlan, report: ProgramReport, stretch: &Stretch) -> Vec<JobRecord> {
    let mut jobs = match &plan.count {
        Count::Program => {
            let uncounted = report.uncounted.is_some();
            report.jobs.into_iter().map(|job| JobRecord { uncounted, ..job }).collect()
        }
        Count::Stated { ios, bytes } => vec![stated(*ios, *bytes)],
        Count::Kernel(counter) => counter.job(stretch).into_iter().collect(),
    };
    // A job without a duration that can be worked all the time.
    if let [first, .., last] = stretch.snapshots.as_slice() {
        let wall = last.at_nanos.since(first.at_nanos);
        let possible = Nanos(1)..=wall + CLOCK_SLACK;
        jobs.iter_mut().filter(|job| !possible.contains(&job.wall_nanos)).for_each(|job| job.wall_nanos = wall);
    }
    jobs
}

fn stated(ios: Option<u64>, bytes: Option<u64>) -> JobRecord {
    let (ios, bytes) = (ios.unwrap_or(0), Bytes(bytes.unwrap_or(0)));
    JobRecord {
        name: "stated".to_owned(),
        engine: "stated".to_owned(),
        mixed: Some(Box::new(Direction { ios, bytes, ..Direction::default() })),
        ..JobRecord::default()
    }
}

fn unix_less_monotonic() -> u64 {
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let unix = unix.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
    unix.saturating_sub(sys::clock::monotonic_nanos())
}

/// The time of its I/O, on our clock; `None` if it does not report one. An impossible time is ignored with a warning.
fn io_interval(
    program: &str,
    report: &ProgramReport,
    stretch: &Stretch,
    unix_less_monotonic: u64,
) -> std::result::Result<Option<IoInterval>, Warning> {
    if let Some(why) = &report.unclear {
        let message = format!("{why}: when {program} did I/O is unknown, so all of its time counts");
        return Err(Warning::new(Code::Unknown, message));
    }
    let Some((begin, end)) = report.io_unix_nanos else { return Ok(None) };
    let on_monotonic = |unix: u64| Nanos(unix.saturating_sub(unix_less_monotonic));
    let interval = IoInterval { begin_nanos: on_monotonic(begin), end_nanos: on_monotonic(end) };
    let early = stretch.snapshots.first().map_or(Nanos(0), |first| first.at_nanos.since(interval.begin_nanos));
    if early > CLOCK_SLACK {
        let message = format!(
            "{program} reports that its I/O began {:.1} s before it was started; when it did I/O is unknown, so all of its \
             time counts",
            early.seconds()
        );
        return Err(Warning::new(Code::Unknown, message));
    }
    let late = stretch.snapshots.last().map_or(Nanos(0), |last| interval.end_nanos.since(last.at_nanos));
    if late > CLOCK_SLACK {
        let message = format!(
            "{program} reports that it did I/O until {:.1} s after it had ended; when it did is unknown, so all of its time counts",
            late.seconds()
        );
        return Err(Warning::new(Code::Unknown, message));
    }
    Ok(Some(interval))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Snapshot;

    fn stretch(seconds: &[u64]) -> Stretch {
        let snapshot = |seconds: &u64| Snapshot { at_nanos: Nanos::from_secs(*seconds), ..Snapshot::default() };
        Stretch { snapshots: seconds.iter().map(snapshot).collect(), tasks: None, starved: None }
    }

    fn says(begin: u64, end: u64) -> ProgramReport {
        let nanos = |seconds| Nanos::from_secs(seconds).0;
        ProgramReport { io_unix_nanos: Some((nanos(begin), nanos(end))), ..ProgramReport::default() }
    }

    #[test]
    fn the_time_of_io_is_converted_to_our_clock_if_it_is_possible() {
        let hour = Nanos::from_secs(3600).0;
        let found = io_interval("fio", &says(3612, 3618), &stretch(&[10, 20]), hour).unwrap().unwrap();
        assert_eq!((found.begin_nanos, found.end_nanos), (Nanos::from_secs(12), Nanos::from_secs(18)));
        let warning = io_interval("fio", &says(3602, 3618), &stretch(&[10, 20]), hour).unwrap_err();
        assert!(warning.message.contains("fio reports that its I/O began 8.0 s before"), "{}", warning.message);
        let warning = io_interval("fio", &says(3612, 3628), &stretch(&[10, 20]), hour).unwrap_err();
        assert!(warning.message.contains("until 8.0 s after it had ended"), "{}", warning.message);
        let unclear = ProgramReport { unclear: Some("it pauses".to_owned()), ..says(3612, 3618) };
        let warning = io_interval("fio", &unclear, &stretch(&[10, 20]), hour).unwrap_err();
        assert!(warning.message.contains("it pauses: when fio did I/O is unknown"), "{}", warning.message);
        assert_eq!(io_interval("dd", &ProgramReport::default(), &stretch(&[10, 20]), hour), Ok(None));
    }

    #[test]
    fn a_timeout_is_the_failure_whatever_the_program_reports() {
        let sulking = ProgramReport { failure: Some("no server".to_owned()), ..ProgramReport::default() };
        let of = |exit, report: &ProgramReport, overdue| failure("prog", exit, report, overdue).unwrap_or_default();
        let overdue = of(Exit::Signal(15), &sulking, Some(Duration::from_secs(3)));
        assert!(overdue.contains("did not end within 3 s"), "{overdue}");
        assert_eq!(of(Exit::Status(0), &sulking, None), "prog: no server");
        assert_eq!(of(Exit::Signal(9), &ProgramReport::default(), None), "the command was ended by signal 9");
        assert_eq!(of(Exit::Status(0), &ProgramReport::default(), None), "");
    }
}
