//! What a job that verifies had written when it ended, in a file of fio 3.33: all numbers with their lowest byte first.
//!
//! | Bytes | |
//! |---|---|
//! | 0 | 3, the version |
//! | 8 | bytes behind the third number |
//! | 16 | CRC-32C of these |
//! | 24 | number of the last writes that follow |
//! | 32, 36 | I/Os in flight at most, and number of files: the product is the number of places for last writes |
//! | 40 | number of writes |
//! | 48 | number of the job, from 0 |
//! | 56 | the state of fio's random numbers, which nothing reads |
//! | 112 | name of the job, 64 bytes |
//! | 176 | last writes: number of the file, and offset |

use super::job_copy::JobCopy;
use super::payload::digest_of_state;
use super::request_source::{Request, RequestSource};
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use model::plan::{JobPlan, Plan};
use std::path::{Path, PathBuf};

const VERSION: u64 = 3;
const HEADER: usize = 24;
const FIXED: usize = 152;
const NAME: std::ops::Range<usize> = 88..152;
/// More than any job has in flight.
const MOST_RECENT: u64 = 1 << 20;

/// How much was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyState {
    pub writes: u64,
    /// The last writes: file and offset.
    pub recent: Vec<(u32, u64)>,
}

/// The file of a copy in the folder of states, by its number among those of the run, from 0. As in fio, a slash in the name becomes a
/// dot.
fn path(folder: &Path, plan: &JobPlan, number: usize) -> PathBuf {
    folder.join(format!("local-{}-{number}-verify.state", plan.name.replace('/', ".")))
}

/// A pipe or a device at the place of a state has no end.
fn refuse_others(plan: &JobPlan, path: &Path) -> Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let why =
            "is no file, so it has no state of a verification; remove it, or choose another folder with --aux-path";
        return Err(Error::Refused(format!("job '{}': {} {why}", plan.name, path.display())));
    }
    Ok(())
}

impl VerifyState {
    fn encode(&self, plan: &JobPlan, number: usize) -> Vec<u8> {
        let depth = u64::from(plan.depth.in_flight.max(1)).max(self.recent.len() as u64);
        let files = plan.file_count().max(1) as u64;
        let mut body = Vec::with_capacity(FIXED + (depth * files) as usize * 16);
        body.extend((self.recent.len() as u64).to_le_bytes());
        body.extend((depth as u32).to_le_bytes());
        body.extend((files as u32).to_le_bytes());
        body.extend(self.writes.to_le_bytes());
        body.extend((number as u64).to_le_bytes());
        body.resize(NAME.start, 0);
        // A name ends with a zero.
        body.extend(plan.name.bytes().take(NAME.len() - 1));
        body.resize(FIXED, 0);
        for (file, offset) in &self.recent {
            body.extend(u64::from(*file).to_le_bytes());
            body.extend(offset.to_le_bytes());
        }
        body.resize(FIXED + (depth * files) as usize * 16, 0);
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(u64::from(digest_of_state(&body)).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// What is wrong, in words.
    fn decode(bytes: &[u8]) -> std::result::Result<Self, String> {
        let number = |at: usize, length: usize| {
            let bytes = bytes.get(at..at + length)?;
            Some(bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
        };
        let short = || "ends too early".to_owned();
        let version = number(0, 8).ok_or_else(short)?;
        if version != VERSION {
            return Err(format!("has version {version}; fio 3.33 and iotoll have version {VERSION}"));
        }
        let (length, sum) = (number(8, 8).ok_or_else(short)?, number(16, 8).ok_or_else(short)?);
        let body = bytes.get(HEADER..).unwrap_or_default();
        if body.len() as u64 != length || body.len() < FIXED {
            return Err(short());
        }
        if u64::from(digest_of_state(body)) != sum {
            return Err("is damaged: its checksum is wrong".to_owned());
        }
        let count = number(HEADER, 8).unwrap_or(0);
        if count > MOST_RECENT || FIXED as u64 + count * 16 > length {
            return Err(short());
        }
        let recent = (0..count as usize).map(|at| {
            let at = HEADER + FIXED + at * 16;
            Some((u32::try_from(number(at, 8)?).ok()?, number(at + 8, 8)?))
        });
        let recent: Option<_> = recent.collect();
        let recent = recent.ok_or("is damaged: a file has a number above those of any job")?;
        Ok(Self { writes: number(HEADER + 16, 8).unwrap_or(0), recent })
    }

    /// Loads the state of a copy from the folder of states, and makes sure that the copy reads in the order of the writes.
    ///
    /// # Errors
    /// When there is none, or it is another job's.
    pub fn load(copy: &JobCopy, folder: &Path, number: usize, interruption: &Interruption) -> Result<Self> {
        /// More than the latest writes of a job with the most files take.
        const LONGEST: u64 = 64 << 20;
        let (plan, path) = (copy.plan, path(folder, copy.plan, number));
        refuse_others(plan, &path)?;
        let bytes = crate::bounded_file::read(&path, LONGEST).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::Refused(format!(
                "job '{}': verify_state_load=1: {} does not exist; run the job that writes with verify_state_save=1",
                plan.name,
                path.display()
            )),
            _ => Error::file(&path, "reading the state", error),
        })?;
        let refused = |what: String| Error::Refused(format!("job '{}': {} {what}", plan.name, path.display()));
        let state = Self::decode(&bytes).map_err(refused)?;
        let spans: Vec<_> = copy.targets.iter().map(|target| target.span).collect();
        let mut source = RequestSource::new(plan, &spans, copy.number)
            .ok_or_else(|| refused("is of a job with larger files".to_owned()))?;
        let is_of_order = state.is_order_of(&mut source, interruption);
        if interruption.is_requested() {
            return Err(Error::Interrupted("before the first I/O".to_owned()));
        }
        if is_of_order {
            return Ok(state);
        }
        Err(refused(
            "was saved by a job that wrote in another order: fio's random order is not iotoll's, and the name, bs, size, seed and files of both \
             jobs have to be the same; verify without verify_state_load, or write with iotoll"
                .to_owned(),
        ))
    }

    /// Whether the last writes are where this source is after as many requests.
    fn is_order_of(&self, source: &mut RequestSource, interruption: &Interruption) -> bool {
        // In a queue, some may have overtaken others.
        let recent = self.recent.len() as u64;
        let window = if recent > 1 { 2 * recent } else { recent };
        let mut found = vec![false; self.recent.len()];
        let mut drawn = 0;
        while drawn < self.writes {
            let sure = source.following().min(self.writes - drawn);
            if sure == 0 {
                break;
            }
            for _ in 0..sure {
                // A state may have any number of writes.
                if drawn.is_multiple_of(1 << 20) && interruption.is_requested() {
                    return false;
                }
                let request = source.draw();
                drawn += 1;
                if self.writes - drawn >= window {
                    continue;
                }
                let place = self.recent.iter().position(|recent| *recent == (request.file, request.offset));
                place.and_then(|place| found.get_mut(place)).into_iter().for_each(|found| *found = true);
            }
        }
        drawn == self.writes && found.into_iter().all(|found| found)
    }
}

/// Saves the states of copies in a folder, by their numbers from 1 among those of the run.
///
/// # Errors
/// The first file that cannot be written; the others are written.
pub(crate) fn save(plan: &Plan, folder: &Path, states: &[(usize, VerifyState)]) -> Result<()> {
    let mut failure = None;
    for (number, job) in plan.copies() {
        let Some((_, state)) = states.iter().find(|(of, _)| *of == number) else { continue };
        let number = number.saturating_sub(1);
        let path = path(folder, job, number);
        let written = refuse_others(job, &path).and_then(|()| {
            std::fs::write(&path, state.encode(job, number)).map_err(|error| {
                Error::Failed(format!("job '{}': {}: saving the state: {error}", job.name, path.display()))
            })
        });
        if let Err(error) = written {
            failure.get_or_insert(error);
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Where a job stops that reads what another one wrote. The rule is fio's: near the end, only what is among the last writes is read.
#[derive(Clone, Debug)]
pub(crate) struct Resume {
    state: VerifyState,
    depth: u64,
    reads: u64,
}

impl Resume {
    pub fn new(state: &VerifyState) -> Self {
        Self { depth: state.recent.len() as u64, state: state.clone(), reads: 0 }
    }

    /// Whether the job stops instead of this request; otherwise it is read.
    pub fn stops(&mut self, request: &Request) -> bool {
        let before = self.state.writes.checked_sub(self.reads).is_some_and(|left| left > self.depth);
        let stops = !before && !self.state.recent.contains(&(request.file, request.offset));
        self.reads += 1;
        stops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::request_source::Kind;

    fn state() -> VerifyState {
        VerifyState { writes: 40, recent: vec![(0, 155_648), (0, 159_744)] }
    }

    #[test]
    fn a_state_is_read_as_it_was_written_and_a_damaged_one_is_named() {
        let mut plan = JobPlan { name: "a/b".to_owned(), ..JobPlan::default() };
        plan.depth.in_flight = 2;
        let bytes = state().encode(&plan, 1);
        assert_eq!((bytes.len(), VerifyState::decode(&bytes)), (24 + 152 + 32, Ok(state())));
        assert_eq!(path(Path::new("f"), &plan, 1), PathBuf::from("f/local-a.b-1-verify.state"));
        for (at, says) in [(0, "version"), (8, "too early"), (41, "damaged"), (200, "damaged")] {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert!(VerifyState::decode(&wrong).unwrap_err().contains(says), "{at}");
        }
        for length in 0..bytes.len() {
            assert!(VerifyState::decode(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn a_job_stops_where_the_one_that_wrote_did() {
        let mut resume = Resume::new(&state());
        let read = |block: u64| Request { kind: Kind::Read, file: 0, offset: block * 4096, length: 4096 };
        assert_eq!((0..100).find(|block| resume.stops(&read(*block))), Some(40));
        let mut nothing = Resume::new(&VerifyState { writes: 0, recent: Vec::new() });
        assert!(nothing.stops(&read(0)));
    }
}
