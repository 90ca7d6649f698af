//! Opens files as a job's engine needs them.

use super::{Target, device, reads, writes};
use crate::error::{Error, Result};
use model::plan::{EngineKind, FileAdvice, JobPlan, Order, WriteSync};
use rustix::fs::{Advice, FileType, OFlags};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

/// asm-generic/fcntl.h. The constant of that name in rustix is O_SYNC.
const O_DSYNC: u32 = 0o10_000;

/// Opens a target for a job's engine, and advises the kernel of its access pattern as fio does by default
/// (fadvise_hint), which decides the read-ahead.
///
/// # Errors
/// Also when O_DIRECT is not supported, or the job's block sizes or offset are not multiples of its alignment.
pub fn open(plan: &JobPlan, target: &Target) -> Result<File> {
    open_with(plan, target, false)
}

/// The same in the measured loop, for a file that the job may have to make.
///
/// # Errors
/// As for [`open`].
pub fn open_anew(plan: &JobPlan, target: &Target) -> Result<File> {
    open_with(plan, target, target.to_be_made && writes(plan))
}

fn open_with(plan: &JobPlan, target: &Target, make: bool) -> Result<File> {
    let path = &target.path;
    let opening = plan.files.opening;
    let mut options = OpenOptions::new();
    // Access times are updated, as for fio and most programs: the cost of that is part of a read.
    // A mapping that is written is read, too.
    options
        .read(reads(plan) || plan.verify.reads_between() || plan.engine == EngineKind::Mmap)
        .write(writes(plan))
        .create(make)
        .truncate(false);
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, plan.direct);
    flags |= match opening.sync {
        WriteSync::None => OFlags::empty(),
        WriteSync::Sync => OFlags::SYNC,
        WriteSync::DataSync => OFlags::from_bits_retain(O_DSYNC),
    };
    options.custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|error| match (plan.direct, error.raw_os_error()) {
        (true, Some(22)) => Error::Refused(format!(
            "job '{}': the file system of {} has no O_DIRECT; use direct=0 or another filename=",
            plan.name,
            path.display()
        )),
        (_, Some(24)) => Error::Refused(format!(
            "job '{}': this process may not open more files; use fewer files, or raise ulimit -n",
            plan.name
        )),
        _ => Error::file(path, "opening", error),
    })?;
    if plan.direct {
        device::refuse_misalignment(plan, target, &file)?;
    }
    let advice = match (opening.advice, plan.order) {
        (FileAdvice::None, _) => None,
        (FileAdvice::Random, _) | (FileAdvice::Order, Order::Random) => Some(Advice::Random),
        (FileAdvice::Sequential, _) | (FileAdvice::Order, Order::Sequential) => Some(Advice::Sequential),
        (FileAdvice::NoReuse, _) => Some(Advice::NoReuse),
    };
    if let Some(advice) = advice {
        // Only advice: a failure changes nothing else.
        let _ = rustix::fs::fadvise(&file, target.span.begin, std::num::NonZeroU64::new(target.span.length), advice);
    }
    Ok(file)
}

/// Whether this part of the file has holes; reading a hole does not reach the device.
pub fn has_holes(target: &Target) -> bool {
    let Ok(file) = File::open(&target.path) else { return false };
    let regular = rustix::fs::fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
    let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(target.span.begin));
    regular && hole.is_ok_and(|hole| hole < target.span.begin + target.span.length)
}
