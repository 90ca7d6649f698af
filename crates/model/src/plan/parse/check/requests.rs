//! Checks the options of sizes and positions of requests.

use super::Complaint;
use crate::plan::job::{Access, JobPlan, Medium, Order};

/// The most that the kernel moves in one call: MAX_RW_COUNT.
const MOST_MOVED: u64 = 0x7fff_f000;

/// A read or write that the kernel would cut.
pub(super) fn too_long(job: &JobPlan) -> Option<Complaint> {
    let calls = matches!(job.engine.medium(), Medium::Files | Medium::Remote);
    let moves = job.access != Access::Trim;
    (calls && moves && job.largest_block().0 > MOST_MOVED).then(|| {
        let why = format!(
            "a read or write moves at most {MOST_MOVED} bytes in one call; use bs={MOST_MOVED} or less, or rw=trim"
        );
        ("bs", why)
    })
}

/// Where requests are deliberately others than fio 3.33's.
pub(super) fn unlike_fio(job: &JobPlan) -> impl Iterator<Item = String> {
    // fio's map has blocks of the smallest size, also if that is the size of a direction that the job does not use.
    let smallest = job.smallest_block().0;
    let unequal =
        job.order == Order::Random && job.has_random_map() && job.used_sizes().any(|sizes| sizes.least() > smallest);
    let map = unequal.then(|| {
        let visits = match job.access {
            Access::ReadWrite => "reads and writes each visit every block of their size, so both may visit the same bytes",
            _ => "every block is visited",
        };
        format!("bs has different sizes, and {visits}; fio leaves blocks out, because its map has blocks of the smallest size")
    });
    let sizes = (job.access == Access::TrimWrite && job.block_sizes.write != job.block_sizes.trim)
        .then(|| "each block that is trimmed is written whole; fio writes blocks of the size of writes".to_owned());
    [map, sizes].into_iter().flatten()
}
