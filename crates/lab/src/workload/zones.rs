//! Zones of devices, and of files that stand for zoned devices (`zonemode=zbd`): where their write pointers are, which are open, and
//! which job uses one. Jobs of one process share what they know of a file, as fio's do.
//!
//! What a job does with them is in [`crate::engine::pacing`]. All of this is behind one lock, which only jobs with zones take.

mod choice;
mod device;

use crate::error::{Error, Result};
use crate::workload::target::{Span, Target};
use model::plan::{Access, JobPlan, Order};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

pub(crate) use choice::{Choice, Wish};
use device::Model;

/// A zone. Offsets are those of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    pub start: u64,
    /// Behind the last byte that is written.
    pub capacity_end: u64,
    /// Where the next write is.
    pub write_pointer: u64,
    /// It has a write pointer.
    pub sequential: bool,
    pub offline: bool,
    /// It is among those that count against a limit, and this job began to write it.
    opened_by: Option<u32>,
    /// The job that has I/Os in it, and how many.
    holder: u32,
    held: u32,
    /// It is to be reset before the next write.
    pub reset_due: bool,
    /// The device is to reset it for the trim that follows.
    trim_due: bool,
}

impl Zone {
    /// Bytes that were written since it was reset.
    pub fn written(&self) -> u64 {
        self.write_pointer.saturating_sub(self.start)
    }

    fn is_free_for(&self, job: u32) -> bool {
        self.held == 0 || self.holder == job
    }

    /// Whether a block of this size no longer fits.
    pub fn is_full(&self, block: u64) -> bool {
        self.write_pointer.saturating_add(block) > self.capacity_end
    }
}

/// What changes while jobs run.
#[derive(Debug, Default)]
pub(crate) struct State {
    zones: Vec<Zone>,
    /// Zones that count against a limit, in the order in which they were opened.
    open: Vec<u32>,
    /// Bytes written in the region of the job that began last, as in fio: in all zones, and in those with write pointers.
    data: u64,
    sequential_data: u64,
    /// Writes until the next reset of `zone_reset_frequency`.
    until_reset: u32,
    /// Jobs that wait for a zone.
    waiting: u32,
}

impl State {
    /// Bytes of a zone that are written, of a file that stands for a device.
    fn capacity(&self) -> u64 {
        self.zones.first().map_or(0, |zone| zone.capacity_end - zone.start)
    }
}

/// A file with zones.
#[derive(Debug)]
pub(crate) struct ZonedFile {
    /// Device and inode, or the number of a device.
    identity: (u64, u64),
    /// Bytes from zone to zone.
    pub size: u64,
    /// Zones that may be open; 0 means any number.
    most_open: u32,
    /// It has zones of its own, which calls reset.
    is_device: bool,
    /// For these calls.
    resetting: OnceLock<File>,
    state: Mutex<State>,
    freed: Condvar,
}

/// A file that stands for a zoned device may have this number of zones: each takes some 60 bytes of memory, and disks have 100,000.
const MOST_ZONES: u64 = 1 << 22;

/// What the jobs of this process know of files.
static KNOWN: Mutex<Vec<Arc<ZonedFile>>> = Mutex::new(Vec::new());

/// A job's part of a file in whole zones, as fio rounds it: a job that only reads, in order, may begin and end within one.
///
/// # Errors
/// What the file or device cannot do, in one line.
pub(crate) fn fit(plan: &JobPlan, path: &Path, span: &mut Span) -> Result<()> {
    let file = ZonedFile::look(plan, path)?;
    if plan.access == Access::Read && plan.order != Order::Random {
        return Ok(());
    }
    span.beyond = 0;
    let state = file.state();
    let end = span.begin.saturating_add(span.length);
    let has_pointer = |zone: &&Zone| zone.sequential && zone.start < end && zone.start + file.size > span.begin;
    if state.zones.iter().find(has_pointer).is_none() {
        return Ok(());
    }
    let begin = span.begin.next_multiple_of(file.size);
    let end = end / file.size * file.size;
    if end <= begin {
        let (size, path) = (file.size, path.display());
        return Err(Error::Refused(format!(
            "job '{}': of {path}, the job has {} bytes from {} on, and no whole zone of {size} bytes; use a larger size=, for example \
             size=1z, or a smaller zonesize=",
            plan.name, span.length, span.begin
        )));
    }
    (span.begin, span.length) = (begin, end - begin);
    Ok(())
}

impl ZonedFile {
    /// What is known of a job's file, together with the other jobs of this process.
    ///
    /// # Errors
    /// A job that sees other zones in it than an earlier one; what the file cannot do.
    pub fn of(plan: &JobPlan, target: &Target) -> Result<Arc<Self>> {
        let path = &target.path;
        let found = Self::look(plan, path)?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match known.iter().find(|file| file.identity == found.identity) {
            Some(file) => {
                file.refuse_difference(plan, path, &found)?;
                // It may have become longer.
                let mut zones = std::mem::take(&mut found.state().zones);
                let mut state = file.state();
                let more = zones.split_off(state.zones.len().min(zones.len()));
                state.zones.extend(more);
                drop(state);
                file.clone()
            }
            None => {
                let file = Arc::new(found);
                known.push(file.clone());
                file
            }
        };
        drop(known);
        if plan.requests.zones.device.job_max_open > 0 && file.most_open == 0 {
            let why = "needs a limit for all jobs of the file; add max_open_zones=";
            return Err(Error::Refused(format!("job '{}': job_max_open_zones {why}", plan.name)));
        }
        if file.is_device && plan.access.changes() && file.resetting.get().is_none() {
            let opened = OpenOptions::new().read(true).write(true).open(path);
            let opened = opened.map_err(|error| Error::file(path, "opening it to reset zones", error))?;
            // Another job may have been faster.
            let _ = file.resetting.set(opened);
        }
        Ok(file)
    }

    /// A file as it is now.
    fn look(plan: &JobPlan, path: &Path) -> Result<Self> {
        let failed = |what| move |error| Error::file(path, what, error);
        let metadata = std::fs::metadata(path).map_err(failed("reading the file's metadata"))?;
        let block_device = metadata.file_type().is_block_device();
        let model = if block_device { Model::of(metadata.rdev()) } else { Model::None };
        let wanted = plan.requests.zones;
        let refused = |why: String| Error::Refused(format!("job '{}': {}: {why}", plan.name, path.display()));
        let (size, zones) = match model {
            Model::None => {
                let length = if block_device {
                    let device = File::open(path).map_err(failed("opening the device"))?;
                    sys::device::size(&device).map_err(failed("reading the device's size"))?
                } else {
                    metadata.size()
                };
                let size = wanted.size.0;
                if size == 0 {
                    let why = "has no zones of its own, and zonemode=zbd then needs their size; add zonesize=, for example zonesize=1m";
                    return Err(refused(why.to_owned()));
                }
                if length < size {
                    let why = format!(
                        "has {length} bytes, less than a zone of {size}; use a smaller zonesize=, or make it larger"
                    );
                    return Err(refused(why));
                }
                if length / size > MOST_ZONES {
                    let why = format!("has {} zones of {size} bytes; use a larger zonesize=", length / size);
                    return Err(refused(why));
                }
                let capacity = if wanted.device.capacity.0 == 0 { size } else { wanted.device.capacity.0 };
                (size, device::emulated(length, size, capacity))
            }
            Model::Aware | Model::Managed => {
                if model == Model::Managed && plan.access.writes() && !plan.direct {
                    return Err(refused(
                        "is a zoned device, which is written in order only with direct=1; add it".to_owned(),
                    ));
                }
                let device = File::open(path).map_err(failed("opening the device"))?;
                device::reported(&device, plan, path)?
            }
        };
        let limit = match model {
            Model::Managed if !wanted.device.ignores_limits => device::most_open(metadata.rdev()),
            _ => 0,
        };
        let asked = wanted.device.max_open;
        if limit > 0 && asked > limit {
            return Err(refused(format!(
                "max_open_zones={asked} is more than the {limit} that the device allows; use {limit} or less, or ignore_zone_limits=1"
            )));
        }
        let identity = if block_device { (u64::MAX, metadata.rdev()) } else { (metadata.dev(), metadata.ino()) };
        Ok(Self {
            identity,
            size,
            most_open: if asked > 0 { asked } else { limit },
            is_device: model != Model::None,
            resetting: OnceLock::new(),
            state: Mutex::new(State { zones, ..State::default() }),
            freed: Condvar::new(),
        })
    }

    fn refuse_difference(&self, plan: &JobPlan, path: &Path, other: &Self) -> Result<()> {
        let (name, path) = (&plan.name, path.display());
        if self.size != other.size {
            let (size, known) = (other.size, self.size);
            return Err(Error::Refused(format!(
                "job '{name}': {path} has zones of {known} bytes for an earlier job, and of {size} for this one; use the same zonesize="
            )));
        }
        let (capacity, known) = (other.state().capacity(), self.state().capacity());
        if capacity != known && !self.is_device {
            return Err(Error::Refused(format!(
                "job '{name}': {path} has zones with {known} bytes to write for an earlier job, and with {capacity} for this one; use the \
                 same zonecapacity="
            )));
        }
        let asked = plan.requests.zones.device.max_open;
        if asked > 0 && asked != self.most_open {
            let known = self.most_open;
            return Err(Error::Refused(format!(
                "job '{name}': max_open_zones is one number for all jobs of {path}, and an earlier job has {known}; use the same"
            )));
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the zone at an offset.
    fn index(&self, offset: u64) -> usize {
        usize::try_from(offset / self.size.max(1)).unwrap_or(usize::MAX)
    }

    /// Takes over what the device says of its zones, when no job has I/Os in them. Those of the job
    /// that are open count, and beyond the limit they are reset, as by fio.
    ///
    /// # Errors
    /// When it cannot be read, or a zone not be reset.
    pub fn refresh(&self, plan: &JobPlan, target: &Target) -> Result<()> {
        if !self.is_device {
            return Ok(());
        }
        let path = &target.path;
        let device = File::open(path).map_err(|error| Error::file(path, "opening the device", error))?;
        let (_, zones) = device::reported(&device, plan, path)?;
        let mut state = self.state();
        if state.zones.iter().any(|zone| zone.held > 0) {
            return Ok(());
        }
        state.open.clear();
        state.zones = zones;
        if self.most_open == 0 || !plan.access.writes() {
            return Ok(());
        }
        let open = device::open_zones(&device).map_err(|error| Error::file(path, "reading its zones", error))?;
        let region = target.span.begin..target.span.begin.saturating_add(target.span.length);
        for number in open {
            // What is outside of the job's region neither counts nor changes.
            let start = state.zones.get(number).map(|zone| zone.start).filter(|start| region.contains(start));
            let Some(start) = start else { continue };
            if state.open.len() < self.most_open as usize {
                state.note_open(number, u32::MAX);
                continue;
            }
            if let Some(zone) = state.zones.get_mut(number) {
                zone.write_pointer = start;
            }
            let what = "resetting a zone that is open beyond the limit";
            self.reset_device(start).map_err(|error| Error::file(path, what, error))?;
        }
        Ok(())
    }

    fn reset_device(&self, start: u64) -> io::Result<()> {
        match self.resetting.get() {
            Some(device) => sys::zoned::reset(device, start, self.size),
            None => Ok(()),
        }
    }

    /// A job begins a pass over its region: what is written in it counts from here on. With `reset`, nothing is left of it.
    ///
    /// # Errors
    /// When the device does not reset a zone.
    pub fn begin_pass(&self, (begin, end): (u64, u64), frequency: f64, reset: bool) -> io::Result<u64> {
        let mut state = self.state();
        let (mut resets, mut data, mut sequential) = (0, 0, 0);
        let zones = self.index(begin)..self.index(end.saturating_add(self.size - 1));
        for number in zones {
            if reset {
                state.close(number);
            }
            let Some(zone) = state.zones.get_mut(number) else { break };
            if reset && zone.sequential && zone.written() > 0 {
                let start = zone.start;
                zone.write_pointer = start;
                self.reset_device(start)?;
                resets += 1;
            }
            let Some(zone) = state.zones.get(number) else { break };
            data += zone.written();
            sequential += if zone.sequential { zone.written() } else { 0 };
        }
        (state.data, state.sequential_data, state.until_reset) = (data, sequential, period(frequency));
        Ok(resets)
    }

    /// Whether something was written that can be read.
    pub fn has_data(&self) -> bool {
        self.state().data > 0
    }

    /// Performs a trim: a device resets the zone, and a file that stands for one keeps its data, as in fio. Returns the number of calls;
    /// `None` if the zone has no write pointer, so that it is trimmed as anything else.
    pub fn trim(&self, offset: u64) -> Option<io::Result<u64>> {
        let mut state = self.state();
        let zone = state.zones.get_mut(self.index(offset)).filter(|zone| zone.sequential)?;
        let (due, start) = (std::mem::take(&mut zone.trim_due), zone.start);
        drop(state);
        if !(due && self.is_device) {
            return Some(Ok(0));
        }
        Some(self.reset_device(start).map(|()| 1))
    }

    /// An I/O in this zone has completed. One that filled it closes it.
    pub fn leave(&self, zone: usize, closes: bool) {
        let mut state = self.state();
        if closes {
            state.close(zone);
        }
        if let Some(zone) = state.zones.get_mut(zone) {
            zone.held = zone.held.saturating_sub(1);
        }
        if state.waiting > 0 {
            self.freed.notify_all();
        }
    }

    /// Waits until a zone may have become free, at most for this time.
    pub fn wait(&self, most: Duration) {
        let mut state = self.state();
        state.waiting += 1;
        let (mut state, _) = self.freed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
    }

    /// Resets a zone that the caller holds, before it writes there. Returns the number of calls.
    ///
    /// # Errors
    /// When the device does not.
    pub fn reset(&self, zone: usize) -> io::Result<u64> {
        let mut state = self.state();
        let Some(found) = state.zones.get_mut(zone) else { return Ok(0) };
        let (start, written) = (found.start, found.written());
        found.reset_due = false;
        if written == 0 {
            return Ok(0);
        }
        state.forget(zone);
        // The zone is held, so that nobody else uses it meanwhile.
        drop(state);
        self.reset_device(start)?;
        Ok(1)
    }

    /// Whether a reset is a system call.
    pub fn resets_by_calls(&self) -> bool {
        self.is_device
    }
}

/// Writes from one reset to the next.
fn period(frequency: f64) -> u32 {
    if frequency > 0.0 { (1.0 / frequency).min(f64::from(u32::MAX)) as u32 } else { u32::MAX }
}

impl State {
    fn note_open(&mut self, zone: usize, job: u32) {
        if let (Ok(number), Some(zone)) = (u32::try_from(zone), self.zones.get_mut(zone)) {
            zone.opened_by = Some(job);
            self.open.push(number);
        }
    }

    /// Nothing is written in a zone any more.
    fn forget(&mut self, zone: usize) {
        let Some(zone) = self.zones.get_mut(zone) else { return };
        let written = zone.written();
        zone.write_pointer = zone.start;
        self.data = self.data.saturating_sub(written);
        self.sequential_data = self.sequential_data.saturating_sub(written);
    }

    fn close(&mut self, zone: usize) {
        if self.zones.get_mut(zone).and_then(|zone| zone.opened_by.take()).is_some() {
            self.open.retain(|number| *number as usize != zone);
        }
    }
}

#[cfg(test)]
mod tests;
