//! The part of each file that a job uses. The rules are fio's.

use super::Span;
use crate::workload::percent_of;
use lab::error::{Error, Result};
use model::plan::{JobPlan, Size};
use std::path::Path;

/// The largest file of Linux.
const LARGEST_FILE: u64 = i64::MAX as u64;

/// Which of a job's files one is: `size` is divided among all of them.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    /// The copy of the job.
    pub copy: u32,
    pub number: u64,
    pub count: u64,
}

impl Share {
    /// The only file.
    pub const ALL: Self = Self { copy: 0, number: 0, count: 1 };

    /// The part of `size` that this file gets. As in fio, whole blocks of what remains go to the first files.
    pub(super) fn of(self, size: u64, block: u64) -> u64 {
        let each = size / self.count.max(1);
        let rest = size.saturating_sub(each.saturating_mul(self.count)) / block.max(1);
        if self.number < rest { each.saturating_add(block) } else { each }
    }
}

/// The part that a job uses of a target with `length` bytes.
pub(crate) fn span(plan: &JobPlan, path: &Path, share: Share, exists: bool, length: u64) -> Result<Span> {
    let part = |percent: u8| percent_of(length, percent);
    let block = plan.smallest_block().0.max(1);
    let each = plan.files.each.map(|size| size.0);
    let begin = begin(plan, share, each, length, block);
    let place = path.display();
    let refused = |why: String| Err(Error::refused(plan, why));
    let absolute = matches!(plan.target.size, Some(Size::Bytes(_))) || each.is_some();
    if !absolute && length > 0 && begin > length {
        return refused(format!(
            "{place} has {length} bytes, but offset={begin} is behind its end; use a smaller offset="
        ));
    }
    let wanted = match (plan.target.size, each) {
        (size, Some(file)) => of_file(file, size, begin, block),
        (Some(Size::Bytes(bytes)), _) => share.of(bytes.0, block),
        (Some(Size::Percent(percent @ ..100)), _) if length > 0 => {
            let wanted = part(percent).min(length.saturating_sub(begin));
            wanted - wanted % block
        }
        (Some(Size::Percent(_)) | None, _) if length > 0 => length.saturating_sub(begin),
        _ => {
            let what = if exists { "is empty" } else { "does not exist" };
            return refused(format!("{place} {what}; give size= in bytes"));
        }
    };
    if each.is_some() && wanted == 0 {
        return refused(format!("filesize= leaves nothing of {place} behind offset={begin}; use a smaller offset="));
    }
    if !absolute && length > 0 && wanted < block {
        return refused(format!(
            "{place} has {length} bytes; from offset={begin} on, the job has {wanted} of them, less than a block of {block} \
             bytes; use a smaller offset= or bs=, or a larger size="
        ));
    }
    if begin.checked_add(wanted).is_none_or(|end| end > LARGEST_FILE) {
        return refused("offset + size exceeds the largest possible file".to_owned());
    }
    Ok(Span { begin, length: wanted, beyond: 0 })
}

/// The first byte of the region of a copy.
fn begin(plan: &JobPlan, share: Share, each: Option<u64>, length: u64, block: u64) -> u64 {
    // Of a file that is to be made, as in fio, percentages of the increment are of its size.
    let size = match (plan.target.size, each) {
        (_, Some(file)) => file,
        (Some(Size::Bytes(bytes)), None) if length == 0 => share.of(bytes.0, block),
        _ => length,
    };
    let bytes = |amount: Size, of: u64| match amount {
        Size::Bytes(bytes) => bytes.0,
        Size::Percent(percent) => percent_of(of, percent),
    };
    let (offset, increment) = (plan.target.offset, plan.target.increment);
    let begin = bytes(increment, size).saturating_mul(share.copy.into()).saturating_add(bytes(offset, length));
    let in_percent = [offset, increment].iter().any(|amount| matches!(amount, Size::Percent(_)));
    // Whole blocks, as in fio: otherwise every I/O would touch one page more.
    let align = if plan.target.align.0 > 0 { plan.target.align.0 } else { block };
    if in_percent { begin.checked_next_multiple_of(align).unwrap_or(u64::MAX) } else { begin }
}

/// What a job with `filesize` uses of a file of that size: a percentage of it, and not what lies before `begin`.
fn of_file(file: u64, size: Option<Size>, begin: u64, block: u64) -> u64 {
    let used = match size {
        Some(Size::Percent(percent @ ..100)) => percent_of(file, percent) / block * block,
        _ => file,
    };
    used.saturating_sub(begin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Bytes;

    const KIB: u64 = 1 << 10;

    fn begins(offset: Size, (increment, align): (Size, u64), length: u64) -> [u64; 3] {
        let mut plan = JobPlan::default();
        (plan.target.offset, plan.target.size) = (offset, Some(Size::Bytes(Bytes(64 * KIB))));
        (plan.target.increment, plan.target.align) = (increment, Bytes(align * KIB));
        [0, 1, 2].map(|copy| begin(&plan, Share { copy, ..Share::ALL }, None, length, 4 * KIB) / KIB)
    }

    #[test]
    fn copies_begin_apart_by_the_increment() {
        let bytes = |kib| Size::Bytes(Bytes(kib * KIB));
        assert_eq!(begins(bytes(1), (bytes(16), 0), 100 * KIB), [1, 17, 33], "bytes are not rounded");
        assert_eq!(begins(bytes(0), (Size::Percent(30), 0), 90 * KIB), [0, 28, 56], "to whole blocks");
        assert_eq!(begins(bytes(1), (Size::Percent(10), 8), 100 * KIB), [8, 16, 24]);
        assert_eq!(begins(Size::Percent(33), (bytes(0), 8), 100 * KIB), [40, 40, 40]);
        assert_eq!(begins(Size::Percent(33), (bytes(1), 0), 100 * KIB), [36, 36, 36]);
        assert_eq!(begins(bytes(0), (Size::Percent(50), 0), 0), [0, 32, 64], "of the size of a file to be made");
    }
}
