//! A generator's own overhead: `null` compared with fio's, and reads from the page cache compared with fio's io_uring
//! and with bare pread loops.

mod cached;
mod null;
mod psync;

use crate::bench::Bench;
use crate::bench::evidence::Evidence;

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let mut evidence = Evidence::default();
    null::validate(bench, &mut evidence)?;
    let files = [
        cached::File { path: bench.file("cached-16m", 16)?, mebibytes: 16 },
        cached::File { path: bench.file("cached-512m", 512)?, mebibytes: 512 },
    ];
    psync::validate(bench, &files, &mut evidence)?;
    cached::validate(bench, &files, &mut evidence)?;
    Ok(evidence)
}
