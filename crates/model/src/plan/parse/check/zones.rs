//! Checks of the options of zones.

use super::Complaint;
use crate::plan::draft::Draft;
use crate::plan::job::{Access, Distribution, EngineKind, JobPlan, Medium, Order, Sizes};
use crate::plan::options;
use crate::unit::Bytes;

/// The smallest zone, as in fio: a sector.
const LEAST_ZONE: u64 = 512;

/// Replaces numbers of zones (`size=8z`) by bytes.
pub(super) fn in_bytes(draft: &mut Draft) -> Option<Complaint> {
    let size = draft.job.requests.zones.size.0;
    for (name, zones) in std::mem::take(&mut draft.in_zones) {
        let option = options::find(name)?;
        if size == 0 {
            let why =
                format!("{zones}z counts zones, and their size is not given; add zonesize=, or give {name} in bytes");
            return Some((option.name, why));
        }
        let bytes = zones.saturating_mul(size).to_string();
        if let Err(wrong) = option.apply(draft, Some(&bytes)) {
            return Some((option.name, wrong.reason));
        }
    }
    None
}

/// Zones that would have no effect, never end, or cannot be written.
pub(super) fn complaint(job: &JobPlan) -> Option<Complaint> {
    if job.requests.zones.device.on { written_in_order(job) } else { strided(job) }
}

/// Zones that would have no effect, or never end.
fn strided(job: &JobPlan) -> Option<Complaint> {
    let zones = job.requests.zones;
    match (zones.strided, zones.size) {
        (false, Bytes(1..)) => {
            let why = "it has no effect without zones; add zonemode=strided or zonemode=zbd, or leave it out";
            Some(("zonesize", why.to_owned()))
        }
        (true, Bytes(0)) => Some((
            "zonemode",
            "zonemode=strided needs a size of the zones; add one, for example zonesize=1m".to_owned(),
        )),
        (true, _) if job.requests.skip != 0 && job.order == Order::Sequential => {
            Some(("rw", "zones have a distance of their own, zoneskip; leave out what is behind the ':'".to_owned()))
        }
        (true, _) if job.requests.distribution != Distribution::Random && job.order == Order::Random => {
            let why = "random_distribution is over the whole file, but zonemode=strided goes from zone to zone; leave one out";
            Some(("random_distribution", why.to_owned()))
        }
        (true, _) if job.file_count() > 1 || job.files.folder.is_some() => {
            let why = "zonemode=strided over several files: fio counts one zone for all of them; use one file for each job \
                       (iotoll cost -- fio … measures what fio does)";
            Some(("zonemode", why.to_owned()))
        }
        (true, Bytes(size)) => {
            let range = if zones.range.0 == 0 { size } else { zones.range.0 };
            let block = job.largest_block().0;
            (block > range).then(|| {
                let option = if zones.range.0 == 0 { "zonesize" } else { "zonerange" };
                (option, format!("a block of {block} bytes does not fit into {option}={range}; use a larger {option} or a smaller bs"))
            })
        }
        (false, _) => None,
    }
}

/// `zonemode=zbd`: what fio 3.33 refuses too, or never ends, or leaves bytes of each zone out.
fn written_in_order(job: &JobPlan) -> Option<Complaint> {
    let zones = job.requests.zones;
    let (size, capacity) = (zones.size.0, zones.device.capacity.0);
    let said = |option, why: &str| Some((option, why.to_owned()));
    let engine = job.engine.name();
    let moves_data = !matches!(job.engine, EngineKind::Falloc | EngineKind::Ftruncate | EngineKind::Splice);
    if job.engine.medium() != Medium::Files || !moves_data {
        let why = format!(
            "zonemode=zbd needs an engine that reads and writes files, and ioengine={engine} does not; use psync, libaio or io_uring"
        );
        return Some(("zonemode", why));
    }
    if (1..LEAST_ZONE).contains(&size) {
        return Some(("zonesize", format!("a zone has at least {LEAST_ZONE} bytes; use a larger zonesize")));
    }
    if size > 0 && capacity > size {
        return Some(("zonecapacity", format!("it is larger than zonesize={size}; use a smaller one")));
    }
    if size > 0 && !zones.skip.0.is_multiple_of(size) {
        return Some((
            "zoneskip",
            format!("whole zones are skipped; use a multiple of zonesize={size}, for example 1z"),
        ));
    }
    let device = zones.device;
    if device.job_max_open > device.max_open && device.max_open > 0 {
        return said("job_max_open_zones", "it is larger than max_open_zones; use a smaller one");
    }
    if device.reset_frequency > 0.0 && job.verify.method.is_some() {
        return said(
            "zone_reset_frequency",
            "it resets zones whose blocks are to be read back; leave it or verify out",
        );
    }
    if job.access == Access::TrimWrite {
        return said("rw", "zones are trimmed as a whole; use rw=randtrim, and a job of its own that writes");
    }
    if job.requests.skip != 0 && job.order == Order::Sequential {
        return said("rw", "zones are used in order; leave out what is behind the ':', or use zoneskip");
    }
    if job.requests.unaligned {
        return said("bs_unaligned", "what is written to a zone ends at multiples of the smallest block; leave it out");
    }
    let files = &job.files;
    if files.making.on_open || files.making.unlink_each_loop || files.open > 0 {
        let option = if files.open > 0 {
            "openfiles"
        } else if files.making.on_open {
            "create_on_open"
        } else {
            "unlink_each_loop"
        };
        return said(option, "files with zones are open from the beginning to the end; leave it out");
    }
    if files.making.append || files.making.fill {
        let option = if files.making.append { "file_append" } else { "fill_device" };
        return said(option, "files with zones keep their size; leave it out");
    }
    if job.calls.offloaded {
        return said("io_submit_mode", "writes of a zone follow each other, and threads would mix them; leave it out");
    }
    if !job.replay.traces.is_empty() {
        return said("read_iolog", "a trace has offsets of its own; use zonemode=none");
    }
    if job.verify.only {
        return said(
            "verify_only",
            "the places of blocks in zones are known only to the job that wrote them; use rw=read or randread",
        );
    }
    blocks(job, size, if capacity > 0 { capacity } else { size })
}

/// Blocks fit into zones of this size and capacity, if they are known.
fn blocks(job: &JobPlan, size: u64, capacity: u64) -> Option<Complaint> {
    let [_, writes, trims] = job.sizes(job.order);
    if job.access == Access::Trim && size > 0 && !matches!(trims, Sizes::One(bytes) if bytes == size) {
        return Some(("bs", format!("a trim resets a whole zone; use bs={size}, as zonesize")));
    }
    if size == 0 || !job.access.writes() {
        return None;
    }
    let (least, most) = (writes.least().max(1), writes.most());
    if most > capacity {
        let why = format!(
            "a block of {most} bytes does not fit into a zone of {capacity}; use a larger zonesize, or a smaller bs"
        );
        return Some(("bs", why));
    }
    (!capacity.is_multiple_of(least)).then(|| {
        let option = if capacity == size { "zonesize" } else { "zonecapacity" };
        let why = format!("{capacity} bytes are not a multiple of blocks of {least}, so that a zone would never be full; use a multiple");
        (option, why)
    })
}
