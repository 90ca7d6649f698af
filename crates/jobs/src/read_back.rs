//! Reads back what jobs wrote, after the measurement: neither its I/Os nor its time belong to what was measured.

use crate::cached_files::set_cache;
use crate::engine::worker::{Control, Worker, Written};
use crate::worker_pool::{JobCopy, Left, with_engine};
use crate::workload::request_source::{Kind, Request};
use lab::error::{Error, Result};
use lab::interruption::Interruption;
use model::plan::{Access, Content, Depth, Duration, FilePlan, Inject, JobPlan, Making, Pace, SyncPlan, Together};
use model::record::{JobRecord, Verified};
use model::unit::Hertz;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Blocks that are read between two looks at the interruption.
const BATCH: usize = 4096;

/// Reads back what each copy has written, all at the same time as they wrote it. Adds to their records, and returns the
/// first failure.
pub fn all(
    left: Vec<Left>,
    copies: &[JobCopy],
    clock: Hertz,
    interruption: &Interruption,
) -> (Vec<JobRecord>, Option<Error>) {
    std::thread::scope(|scope| {
        let begun = left.into_iter().zip(copies).map(|(Left { record, written, .. }, copy)| {
            let shared = is_shared(copy, copies);
            let thread = written.map(|written| {
                std::thread::Builder::new()
                    .name(format!("verify {}", copy.plan.name))
                    .spawn_scoped(scope, move || read_back(copy, written, shared, clock, interruption))
            });
            (record, thread)
        });
        let begun: Vec<_> = begun.collect();
        let mut failure = None;
        let ended = begun.into_iter().map(|(mut record, thread)| {
            let Some(thread) = thread else { return record };
            let outcome = match thread {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|_| Err(Error::Failed("a thread that reads back panicked".to_owned())))
                }
                Err(error) => Err(Error::instrument("starting a thread that reads back", error)),
            };
            match outcome {
                Ok((verified, error)) => {
                    record.verified = Some(record.verified.unwrap_or_default().and(verified));
                    record.errors = record.errors.saturating_add(verified.wrong);
                    failure = failure.take().or(error);
                }
                Err(error) => failure = failure.take().or(Some(error)),
            }
            record
        });
        let records = ended.collect();
        (records, failure)
    })
}

/// Whether other copies or jobs write to its files, or to its export.
fn is_shared(copy: &JobCopy, copies: &[JobCopy]) -> bool {
    let place = |copy: &JobCopy| -> Vec<_> {
        let paths = copy.targets.iter().map(|target| target.path.clone());
        paths.filter(|path| !path.as_os_str().is_empty()).collect()
    };
    let own = place(copy);
    copies.iter().filter(|other| !std::ptr::eq(*other, copy) && other.plan.access.changes()).any(|other| {
        let same = copy.plan.path.uri.is_some() && other.plan.path.uri == copy.plan.path.uri;
        same || place(other).iter().any(|path| own.contains(path))
    })
}

/// Reads back what one copy has written: what was checked, and the failure that ended it.
fn read_back(
    copy: &JobCopy,
    written: Written,
    shared: bool,
    clock: Hertz,
    interruption: &Interruption,
) -> Result<(Verified, Option<Error>)> {
    let plan = reading(copy.plan);
    let copy = JobCopy { plan: &plan, number: copy.number, targets: copy.targets.clone(), replay: None };
    set_cache(&copy, interruption)?;
    let spans: Vec<_> = copy.targets.iter().map(|target| target.span).collect();
    let source = crate::workload::request_source::RequestSource::new(&plan, &spans, copy.number);
    let source = source.ok_or_else(|| Error::refused(&plan, "nothing to read back"))?;
    let (blocks, payload) = blocks(written);
    let mut worker = Worker::new(&plan, source, Arc::default(), Arc::<Control>::default(), clock);
    let before = payload.verified;
    worker.carry(&plan, payload.reading_back(shared));
    let outcome = with_engine(&copy, |engine| {
        for (done, batch) in (0..).step_by(BATCH).zip(blocks.chunks(BATCH)) {
            if interruption.is_requested() {
                let all = blocks.len();
                return Err(Error::Failed(format!(
                    "job '{}': verify: interrupted after {done} of {all} blocks",
                    plan.name
                )));
            }
            let requests = batch.iter().rev().map(|(request, _)| *request).collect();
            worker.read_back(requests, batch.iter().map(|(_, number)| *number).collect());
            engine(&mut worker)?;
        }
        Ok(())
    });
    let all = worker.verified().unwrap_or_default();
    let verified = Verified {
        ios: all.ios - before.ios,
        bytes: model::unit::Bytes(all.bytes.0 - before.bytes.0),
        wrong: all.wrong - before.wrong,
    };
    Ok((verified, outcome.err()))
}

/// The job that reads what `plan` wrote: with its engine and depth, and without what slows it down or ends it.
fn reading(plan: &JobPlan) -> JobPlan {
    let mut sizes = plan.block_sizes;
    sizes.read = sizes.write;
    // The files are there, and stay.
    let files = FilePlan { making: Making::default(), ..plan.files.clone() };
    JobPlan {
        access: Access::Read,
        files,
        together: Together::default(),
        block_sizes: sizes,
        duration: Duration::default(),
        sync: SyncPlan::default(),
        pace: Pace::default(),
        depth: Depth { low: None, ..plan.depth },
        inject: Inject::default(),
        content: Content::default(),
        ..plan.clone()
    }
}

/// The blocks, each with the number of its last write, by file and place: an earlier write that a later one overlaps is gone.
fn blocks(written: Written) -> (Vec<(Request, u64)>, crate::workload::payload::Payload) {
    let Written { mut payload, source, drawn, rest } = written;
    let read = |request: Request| Request { kind: Kind::Read, ..request };
    let Some(mut source) = source else {
        let numbers = payload.numbers();
        return (rest.into_iter().map(read).zip(numbers).collect(), *payload);
    };
    let mut last: BTreeMap<(u32, u64), (u32, u64)> = BTreeMap::new();
    let (mut left, mut number) = (drawn, 0);
    while left > 0 {
        let sure = source.following().min(left);
        if sure == 0 {
            break;
        }
        left -= sure;
        for _ in 0..sure {
            let request = source.draw();
            if request.kind != Kind::Write {
                continue;
            }
            let (file, offset, end) = (request.file, request.offset, request.offset + u64::from(request.length));
            // Those that begin before it may reach into it; blocks that were kept do not overlap each other.
            let before = last.range(..(file, offset)).next_back();
            let reaches = before.filter(|((of, at), (length, _))| *of == file && at + u64::from(*length) > offset);
            let mut gone: Vec<(u32, u64)> = reaches.map(|(place, _)| *place).into_iter().collect();
            gone.extend(last.range((file, offset)..(file, end)).map(|(place, _)| *place));
            for place in gone {
                last.remove(&place);
            }
            last.insert((file, offset), (request.length, number));
            number += 1;
        }
    }
    let blocks = last
        .into_iter()
        .map(|((file, offset), (length, number))| (Request { kind: Kind::Read, file, offset, length }, number));
    (blocks.collect(), *payload)
}
