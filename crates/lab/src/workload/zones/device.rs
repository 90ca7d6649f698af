//! What zones a device has, and those that stand for a device's in a file.

use super::Zone;
use crate::error::{Error, Result};
use model::plan::{Access, JobPlan};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Whether programs must write the zones of a device in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// There are none.
    None,
    /// They may; the device takes other writes too.
    Aware,
    /// They must; the device refuses other writes.
    Managed,
}

/// An attribute of a block device's queue, also of the device that a partition is on.
fn attribute(device: u64, name: &str) -> Option<String> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let folder = format!("/sys/dev/block/{major}:{minor}");
    let texts = ["queue", "../queue"].into_iter().map(|place| format!("{folder}/{place}/{name}"));
    texts.filter_map(|path| fs::read_to_string(path).ok()).map(|text| text.trim().to_owned()).next()
}

impl Model {
    pub fn of(device: u64) -> Self {
        match attribute(device, "zoned").as_deref() {
            Some("host-aware") => Self::Aware,
            Some("host-managed") => Self::Managed,
            _ => Self::None,
        }
    }
}

/// Zones that the device allows to be open; 0 means any number.
pub(super) fn most_open(device: u64) -> u32 {
    attribute(device, "max_open_zones").and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Zones of a file: all have write pointers, which are at their beginnings.
pub(super) fn emulated(length: u64, size: u64, capacity: u64) -> Vec<Zone> {
    let starts = (0..length.div_ceil(size)).map(|number| number * size);
    starts.map(|start| plain(start, start.saturating_add(capacity))).collect()
}

fn plain(start: u64, capacity_end: u64) -> Zone {
    Zone {
        start,
        capacity_end,
        write_pointer: start,
        sequential: true,
        offline: false,
        opened_by: None,
        holder: 0,
        held: 0,
        reset_due: false,
        trim_due: false,
    }
}

/// Types and conditions of linux/blkzoned.h.
const CONVENTIONAL: u8 = 1;
const NOT_WRITE_POINTER: u8 = 0;
const OPEN: std::ops::RangeInclusive<u8> = 2..=3;
const READ_ONLY: u8 = 13;
const FULL: u8 = 14;
const OFFLINE: u8 = 15;

/// Size and zones of a zoned device, if the job fits them.
pub(super) fn reported(device: &File, plan: &JobPlan, path: &Path) -> Result<(u64, Vec<Zone>)> {
    let found = sys::zoned::report(device).map_err(|error| Error::file(path, "reading its zones", error))?;
    let refused = |why: String| Error::Refused(format!("job '{}': {}: {why}", plan.name, path.display()));
    let size = found.first().map_or(0, |zone| zone.length);
    if size == 0 {
        return Err(refused("reports no zones".to_owned()));
    }
    if (0..).zip(&found).any(|(number, zone)| zone.start != size.saturating_mul(number)) {
        return Err(refused("has zones of several sizes, which zonemode=zbd cannot use".to_owned()));
    }
    let zones = plan.requests.zones;
    if zones.size.0 > 0 && zones.size.0 != size {
        return Err(refused(format!("has zones of {size} bytes, not of {}; leave zonesize= out", zones.size.0)));
    }
    if !zones.skip.0.is_multiple_of(size) {
        return Err(refused(format!("has zones of {size} bytes; use a multiple for zoneskip=")));
    }
    let [_, writes, trims] = plan.sizes(plan.order);
    if plan.access == Access::Trim && !(trims.least() == size && trims.most() == size) {
        return Err(refused(format!("has zones of {size} bytes, and a trim resets a whole one; use bs={size}")));
    }
    let block = writes.least().max(1);
    let mut capacities = found.iter().filter(|zone| zone.kind != CONVENTIONAL).map(|zone| zone.capacity);
    let uneven = capacities.find(|capacity| capacity % block != 0 || writes.most() > *capacity);
    if let Some(capacity) = uneven.filter(|_| plan.access.writes()) {
        return Err(refused(format!(
            "has zones with room for {capacity} bytes, which is not a multiple of bs={block}; use a smaller bs="
        )));
    }
    Ok((size, found.iter().map(zone).collect()))
}

fn zone(found: &sys::zoned::Zone) -> Zone {
    let end = found.start.saturating_add(found.capacity);
    let full = [NOT_WRITE_POINTER, FULL, READ_ONLY].contains(&found.condition);
    Zone {
        write_pointer: if full { end } else { found.write_pointer.clamp(found.start, end) },
        sequential: found.kind != CONVENTIONAL,
        offline: found.condition == OFFLINE,
        ..plain(found.start, end)
    }
}

/// The numbers of the zones that are open.
pub(super) fn open_zones(device: &File) -> io::Result<Vec<usize>> {
    let found = sys::zoned::report(device)?;
    Ok(found.iter().enumerate().filter(|(_, zone)| OPEN.contains(&zone.condition)).map(|(number, _)| number).collect())
}
