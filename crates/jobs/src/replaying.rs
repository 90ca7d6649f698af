//! Jobs that replay traces: reads these before the measurement, and says what the jobs do then.

use crate::workload::replay::{Replay, What};
use crate::workload::request_source::Kind;
use crate::workload::target::{self, LayoutProgress, Target};
use lab::bounded_file;
use lab::created::Created;
use lab::error::{Error, Result};
use model::plan::{
    Access, Duration, FilePlan, JobPlan, Order, Pace, RequestPlan, Size, SyncPlan, Target as PlannedTarget,
};
use model::unit::Bytes;
use model::warning::{Code, Warning};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The traces of a run, by the number of the phase, of the job in it, and of the copy.
#[derive(Clone, Debug, Default)]
pub struct Replays(BTreeMap<(usize, usize, u32), Arc<Replay>>);

impl Replays {
    /// The trace of a copy of a job, if it replays one.
    pub fn of(&self, phase: usize, job: usize, copy: u32) -> Option<Arc<Replay>> {
        self.0.get(&(phase, job, copy)).cloned()
    }

    /// Reads the traces of a job, given the number of its phase and its own in it, and says in the job what it does then.
    ///
    /// # Errors
    /// A trace that cannot be read, or is none.
    pub fn read(&mut self, phase: usize, number: usize, job: &mut JobPlan) -> Result<Option<Warning>> {
        let mut read: BTreeMap<String, Arc<Replay>> = BTreeMap::new();
        for copy in 0..job.copies.max(1) {
            let Some(trace) = job.replay.trace_of(copy) else { continue };
            let replay = match read.get(trace) {
                Some(replay) => replay.clone(),
                None => Arc::new(parsed(job, trace)?),
            };
            read.insert(trace.to_owned(), replay.clone());
            self.0.insert((phase, number, copy), replay);
        }
        let replayed = as_replayed(job, &read.into_values().collect::<Vec<_>>());
        let warning = other_files(job, &replayed);
        *job = replayed;
        Ok(warning)
    }
}

/// As in fio, a trace names its files, and `filename` has no effect.
fn other_files(job: &JobPlan, replayed: &JobPlan) -> Option<Warning> {
    let named = &job.target.files;
    let mut others = replayed.target.files.iter().filter(|file| !named.contains(file));
    let (first, more) = (others.next()?, others.count());
    let given = named.first()?;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!(
        "job '{}': filename={given} has no effect: the trace names its own files, {first}{more}; replay_redirect={given} replays it there",
        job.name
    );
    Some(Warning::new(Code::OptionIgnored, message))
}

/// A trace may come from another person: it changes only what lies below the folders of the job's `directory` and `filename`, or the current
/// one if there is neither, and what `replay_redirect` names.
fn within_its_folders(job: &JobPlan, trace: &str, replay: &Replay) -> Result<()> {
    if job.replay.redirect.is_some() {
        return Ok(());
    }
    // A file that does not exist yet lies in its folder.
    let real = |path: &Path| {
        let folder = || path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new(".")).canonicalize();
        path.canonicalize().or_else(|_| Ok::<_, std::io::Error>(folder()?.join(path.file_name().unwrap_or_default())))
    };
    let target = &job.target;
    let folders = target.directory.iter().map(|folder| real(Path::new(folder)));
    let of_files = target
        .files
        .iter()
        .map(|file| real(Path::new(file)).map(|file| file.parent().map(Path::to_owned).unwrap_or(file)));
    let mut allowed: Vec<PathBuf> = folders.chain(of_files).flatten().collect();
    if allowed.is_empty() {
        allowed.extend(Path::new(".").canonicalize());
    }
    let written: BTreeSet<usize> = replay
        .steps
        .iter()
        .filter_map(|step| match step.what {
            What::Io(request) if request.kind != Kind::Read => Some(request.file as usize),
            _ => None,
        })
        .collect();
    for (number, (name, end)) in replay.files.iter().enumerate() {
        // A file that is too short is lengthened.
        let changes = written.contains(&number)
            || !std::fs::metadata(name).is_ok_and(|found| !found.is_file() || found.len() >= *end);
        let is_below = || real(Path::new(name)).is_ok_and(|file| allowed.iter().any(|folder| file.starts_with(folder)));
        if changes && !is_below() {
            let folders: Vec<String> = allowed.iter().map(|folder| folder.display().to_string()).collect();
            let folder = Path::new(name).parent().unwrap_or(Path::new("/")).display();
            let mend =
                format!("add directory={folder} if that is meant, or replay_redirect=FILE to change another file");
            let why = format!("it changes {name}, which is not below {}; {mend}", folders.join(" or "));
            return Err(Error::refused(job, format_args!("read_iolog: {trace}: {why}")));
        }
    }
    Ok(())
}

/// Bytes of a trace, which is kept in memory: some twenty million requests.
const LONGEST_TRACE: u64 = 1 << 30;

fn parsed(job: &JobPlan, trace: &str) -> Result<Replay> {
    let refused = |why: String| Error::refused(job, format_args!("read_iolog: {trace}:{why}"));
    let text = bounded_file::read(Path::new(trace), LONGEST_TRACE)
        .map_err(|error| refused(format!(" {error}; give the name of a trace that can be read")))?;
    let replay = Replay::parse(&text, &job.replay).map_err(refused)?;
    within_its_folders(job, trace, &replay).map(|()| replay)
}

/// The job with the directions, sizes and files of its traces. What else says which requests follow has no effect.
fn as_replayed(job: &JobPlan, replays: &[Arc<Replay>]) -> JobPlan {
    let steps = || replays.iter().flat_map(|replay| &replay.steps);
    let requests = || {
        steps().filter_map(|step| match step.what {
            What::Io(request) => Some(request),
            What::Sync(..) => None,
        })
    };
    let [reads, writes, trims] = Kind::ALL.map(|kind| requests().any(|request| request.kind == kind));
    let access = match (reads, writes, trims) {
        (true, true, false) => Access::ReadWrite,
        (false, true, false) => Access::Write,
        (false, false, true) => Access::Trim,
        (_, _, true) => Access::TrimWrite,
        (_, false, false) => Access::Read,
    };
    let longest = Bytes(requests().map(|request| u64::from(request.length)).max().unwrap_or(1));
    let names = replays.iter().flat_map(|replay| &replay.files).map(|(file, _)| file);
    let mut seen = BTreeSet::new();
    let files = names.filter(|file| seen.insert(*file)).cloned().collect();
    let PlannedTarget { section, allow_device_write, .. } = job.target.clone();
    let FilePlan { opening, fallocate, invalidate, unlink, .. } = job.files;
    JobPlan {
        access,
        order: Order::Sequential,
        block_sizes: longest.into(),
        requests: RequestPlan {
            repeatable: job.requests.repeatable,
            seed: job.requests.seed,
            ..RequestPlan::default()
        },
        target: PlannedTarget { files, section, allow_device_write, ..PlannedTarget::default() },
        files: FilePlan { opening, fallocate, invalidate, unlink, ..FilePlan::default() },
        duration: Duration { runtime: job.duration.runtime, ramp: job.duration.ramp, ..Duration::default() },
        sync: SyncPlan::default(),
        pace: Pace::default(),
        ..job.clone()
    }
}

/// Finds or makes the files of a trace, each up to the end of its last request.
///
/// # Errors
/// Refused or failed, with the fix; files made so far are in `created`.
pub(crate) fn targets(
    job: &JobPlan,
    replay: &Replay,
    created: &Created,
    progress: LayoutProgress,
) -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for (file, end) in &replay.files {
        let size = Some(Size::Bytes(Bytes(*end)));
        let target = PlannedTarget { files: vec![file.clone()], size, ..job.target.clone() };
        let of_file = JobPlan { target, ..job.clone() };
        targets.extend(target::prepare(&of_file, 0, created, progress)?);
    }
    Ok(targets)
}
