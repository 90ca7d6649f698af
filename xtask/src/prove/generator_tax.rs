//! What a generator takes for itself: `null` against fio's, reads from the page cache against fio's io_uring and
//! against bare pread loops.

mod cached;
mod null;
mod psync;

use super::bench::Bench;
use super::evidence::Evidence;

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let mut evidence = Evidence::default();
    null::prove(bench, &mut evidence)?;
    let files = [
        cached::File { path: bench.file("cached-16m", 16)?, mebibytes: 16 },
        cached::File { path: bench.file("cached-512m", 512)?, mebibytes: 512 },
    ];
    psync::prove(bench, &files, &mut evidence)?;
    cached::prove(bench, &files, &mut evidence)?;
    Ok(evidence)
}
