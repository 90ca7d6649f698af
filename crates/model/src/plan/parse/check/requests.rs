//! Checks the options of sizes and positions of requests.

use super::Complaint;
use crate::plan::job::{Access, Distribution, JobPlan, Medium, Order, Size};
use crate::unit::Bytes;

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
    let random = job.order == Order::Random;
    let normal = (random && matches!(job.requests.distribution, Distribution::Normal(_))).then(|| {
        "the offsets of random_distribution=normal are a normal distribution around its centre; fio scatters them over the \
         file, and its deviation is at least 8%"
            .to_owned()
    });
    let begins = job.target.offset != Size::Bytes(Bytes(0)) || job.region.increment != Size::Bytes(Bytes(0));
    let back = (job.requests.skip < 0 && begins).then(|| {
        "a sequential order that goes back begins at offset; fio begins elsewhere, at the size of the region".to_owned()
    });
    let gaps = (job.requests.skip > 0 && begins && job.order == Order::Sequential).then(|| {
        "a sequential order with gaps begins again at offset until size is moved; fio may end before, because it compares places within \
         the region with the length of the file"
            .to_owned()
    });
    let sizes = (job.access == Access::TrimWrite && job.block_sizes.write != job.block_sizes.trim)
        .then(|| "each block that is trimmed is written whole; fio writes blocks of the size of writes".to_owned());
    [map, normal, back, gaps, sizes].into_iter().flatten()
}
