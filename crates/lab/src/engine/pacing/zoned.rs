//! What a job does with zones (`zonemode=zbd`): each request goes to a zone that can take it, and holds the zone until it completes. A
//! zone that is full is reset before it is written again.

use crate::error::Result;
use crate::workload::ROOM_AT_FIRST;
use crate::workload::request_source::{Kind, Request};
use crate::workload::target::Target;
use crate::workload::zones::{Choice, Wish, ZonedFile};
use model::plan::{Access, JobPlan, Order};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Longest reaction time of a job that waits for a zone to a stop, or to the end of its time.
const NAP: Duration = Duration::from_millis(20);

/// Jobs of this process that use zones have numbers.
static JOBS: AtomicU32 = AtomicU32::new(0);

/// An I/O in flight.
#[derive(Clone, Copy)]
struct Inside {
    file: usize,
    /// The zone that it holds.
    zone: Option<usize>,
    /// It fills the zone.
    fills: bool,
}

/// A zone that is held for the request that comes next.
#[derive(Clone, Copy)]
struct Reserved {
    file: usize,
    zone: usize,
    is_reset: bool,
}

struct Part {
    zones: Arc<ZonedFile>,
    target: Target,
    wish: Wish,
}

/// The zones of a job.
pub(in crate::engine) struct Zoned {
    plan: JobPlan,
    parts: Vec<Part>,
    /// By slot.
    in_flight: Vec<Option<Inside>>,
    count: usize,
    /// The slot of the next request.
    slot: usize,
    /// A pass over the files begins.
    begins: bool,
    /// The zone that the job holds for a request that waits until it is reset.
    reserved: Option<Reserved>,
    /// What is to be read back, if it is when all is written: this pass's writes, and the number of the first.
    writes: Option<(Vec<Request>, u64)>,
    /// System calls that reset zones.
    pub calls: u64,
    /// Zones that were reset.
    pub resets: u64,
}

/// What becomes of a request.
pub(in crate::engine) enum InZone {
    /// It is this one; in sequential order, the next one is at this place of the region.
    Issue(Request, u64),
    /// Ask again, with a new time.
    Again,
    /// Ask again when nothing is in flight.
    Settle,
    /// The pass over its file is over.
    End,
}

impl Zoned {
    /// The zones of the files of a job.
    ///
    /// # Errors
    /// What a file cannot do.
    pub fn new(plan: &JobPlan, targets: &[Target]) -> Result<Self> {
        let job = JOBS.fetch_add(1, Ordering::Relaxed);
        let device = plan.requests.zones.device;
        let keeps = plan.verify.method.is_some() && plan.access.writes();
        let least = plan.sizes(plan.order).map(|sizes| sizes.least());
        let parts = targets.iter().map(|target| {
            let span = target.span;
            let wish = Wish {
                job,
                begin: span.begin,
                end: span.begin.saturating_add(span.length),
                least,
                random: plan.order == Order::Random,
                reads_beyond: device.reads_beyond,
                keeps,
                job_max_open: device.job_max_open,
                threshold: device.reset_threshold * span.length as f64,
                frequency: device.reset_frequency,
                in_flight: false,
            };
            Ok(Part { zones: ZonedFile::of(plan, target)?, target: target.clone(), wish })
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let reads_back = keeps && plan.verify.after && plan.verify.backlog == 0;
        // No zone is reset while blocks are to be read back, so that a pass has at most these.
        let blocks: u64 = targets.iter().map(|target| target.span.length / least[1].max(1)).sum();
        let room = usize::try_from(blocks).unwrap_or(usize::MAX).min(ROOM_AT_FIRST);
        Ok(Self {
            plan: plan.clone(),
            parts,
            in_flight: vec![None; plan.depth.in_flight.max(1) as usize],
            count: 0,
            slot: 0,
            begins: true,
            reserved: None,
            writes: reads_back.then(|| (Vec::with_capacity(room), 0)),
            calls: 0,
            resets: 0,
        })
    }

    /// Takes over what devices say of their zones: others may have written there.
    ///
    /// # Errors
    /// When they do not say it.
    pub fn refresh(&mut self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.zones.refresh(&self.plan, &part.target))
    }

    /// A pass over the files begins with the next request.
    pub fn begin_pass(&mut self) {
        self.begins = true;
    }

    /// Whether no zone is reset but when a pass begins.
    pub fn keeps(&self) -> bool {
        self.parts.iter().any(|part| part.wish.keeps)
    }

    /// The I/Os of these slots have completed. The next request has the last one.
    pub fn completed(&mut self, free: &[u32]) {
        for slot in free {
            self.complete(*slot as usize);
        }
        self.slot = free.last().map_or(0, |slot| *slot as usize);
    }

    /// All I/Os have completed.
    pub fn all_completed(&mut self) {
        for slot in 0..self.in_flight.len() {
            self.complete(slot);
        }
        self.slot = 0;
    }

    /// The job does not go on: it leaves all zones.
    pub fn leave(&mut self) {
        self.all_completed();
        if let Some(reserved) = self.reserved.take()
            && let Some(part) = self.parts.get(reserved.file)
        {
            part.zones.leave(reserved.zone, false);
        }
    }

    /// A pass begins: what was written counts anew, or is gone.
    fn begin(&mut self) -> io::Result<()> {
        for part in self.parts.iter().filter(|_| self.plan.access.writes()) {
            let wish = &part.wish;
            let resets = part.zones.begin_pass((wish.begin, wish.end), wish.frequency, wish.keeps)?;
            self.resets += resets;
            self.calls += if part.zones.resets_by_calls() { resets } else { 0 };
        }
        if let Some((writes, before)) = &mut self.writes {
            *before += writes.len() as u64;
            writes.clear();
        }
        self.begins = false;
        Ok(())
    }

    /// The writes of the last pass, in order, and the number of the first one; `None` if they are not read back at the end.
    pub fn written(&mut self) -> Option<(Vec<Request>, u64)> {
        self.writes.take()
    }

    fn complete(&mut self, slot: usize) {
        let Some(inside) = self.in_flight.get_mut(slot).and_then(Option::take) else { return };
        self.count -= 1;
        if let (Some(zone), Some(part)) = (inside.zone, self.parts.get(inside.file)) {
            part.zones.leave(zone, inside.fills);
        }
    }

    /// A mix of reads and writes begins with a write where nothing can be read, as in fio.
    pub fn lacks_data(&self) -> bool {
        self.plan.access == Access::ReadWrite
            && !self.plan.requests.zones.device.reads_beyond
            && !self.parts.iter().any(|part| part.zones.has_data())
    }

    /// Finds a zone for a request.
    ///
    /// # Errors
    /// When a device does not reset a zone.
    pub fn step(&mut self, drawn: &Request) -> io::Result<InZone> {
        if self.begins {
            if self.keeps() && self.count > 0 {
                return Ok(InZone::Settle);
            }
            self.begin()?;
        }
        let file = drawn.file as usize;
        let Some(part) = self.parts.get(file) else { return Ok(InZone::End) };
        let wish = Wish { in_flight: self.count > 0, ..part.wish };
        let choice = match &mut self.reserved {
            None => part.zones.choose(&wish, drawn),
            Some(_) if wish.in_flight => return Ok(InZone::Settle),
            Some(reserved) if !reserved.is_reset => {
                reserved.is_reset = true;
                let resets = part.zones.reset(reserved.zone)?;
                self.resets += resets;
                self.calls += if part.zones.resets_by_calls() { resets } else { 0 };
                // The time of the reset is not that of the write.
                return Ok(InZone::Again);
            }
            Some(reserved) => {
                let zone = reserved.zone;
                self.reserved = None;
                part.zones.write_after_reset(&wish, zone, drawn)
            }
        };
        Ok(match choice {
            Choice::Issue { request, zone, fills } => {
                if let Some(place) = self.in_flight.get_mut(self.slot) {
                    *place = Some(Inside { file, zone, fills });
                    self.count += 1;
                }
                if let Some((writes, _)) = self.writes.as_mut().filter(|_| request.kind == Kind::Write) {
                    writes.push(request);
                }
                let next = part.zones.following(&wish, &request, self.plan.requests.zones.skip.0);
                InZone::Issue(request, next)
            }
            Choice::Reset(zone) => {
                self.reserved = Some(Reserved { file, zone, is_reset: false });
                if wish.in_flight { InZone::Settle } else { InZone::Again }
            }
            Choice::Settle => InZone::Settle,
            Choice::Wait => {
                part.zones.wait(NAP);
                InZone::Again
            }
            Choice::End => InZone::End,
        })
    }
}

impl Drop for Zoned {
    fn drop(&mut self) {
        self.leave();
    }
}
