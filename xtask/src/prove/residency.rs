//! What it costs to ask whether a page of a file is in memory, beside reading it: why a server that sends from the page cache asks seldom
//! (`crates/nbd/src/server/residency.rs`).

use super::bench::{Bench, read_through};
use super::evidence::{self, Evidence};
use super::rounds;
use super::seeded::Seeded;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use sys::clock::own_thread_nanos;
use sys::mapped_file::MappedFile;
use sys::process::major_faults;

const MEBIBYTES: usize = 64;
const PAGE: usize = 4096;
/// Between two looks at the clock.
const CALLS: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Pread,
    Mincore,
    Getrusage,
    Getppid,
}

const ALL: [Call; 4] = [Call::Pread, Call::Mincore, Call::Getrusage, Call::Getppid];

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let path = bench.file("cached", MEBIBYTES)?;
    let file = File::open(&path)?;
    let mapped = MappedFile::new(&file, MEBIBYTES << 20)?;
    let found = bench.in_rounds(
        &ALL,
        |_| 0,
        |call| format!("{call:?}"),
        |bench, call| {
            read_through(&path)?;
            let mut order = Seeded::new(bench.options.seed);
            nanos(*call, Duration::from_secs_f64(bench.options.seconds), &file, &mapped, &mut order)
        },
    )?;
    let [read, asked, ..] = found.as_slice() else { anyhow::bail!("no calls") };
    let mut evidence = Evidence::default();
    evidence.note(format!(
        "CPU time of one thread for a call, of random pages of {MEBIBYTES} MiB in the page cache, which nobody has touched where it is mapped; means over rounds."
    ));
    let row = |(call, nanos): (&Call, &Vec<f64>)| {
        let name = match call {
            Call::Pread => "pread, 4 KiB",
            Call::Mincore => "mincore, 4 KiB",
            Call::Getrusage => "getrusage of the thread",
            Call::Getppid => "getppid, the shortest there is",
        };
        let ratio = evidence::interval(&rounds::ratio(nanos, read), 2);
        vec![name.to_owned(), evidence::interval(&rounds::mean(nanos), 0), ratio]
    };
    let rows: Vec<Vec<String>> = ALL.iter().zip(&found).map(row).collect();
    evidence.table(&["call", "ns", "of a pread"], &rows);
    let ratio = rounds::ratio(asked, read);
    let text =
        format!("to ask about a page takes at least half as long as to read it: {}", evidence::interval(&ratio, 2));
    evidence.criterion(ratio.low.is_some_and(|low| low >= 0.5), text);
    Ok(evidence)
}

/// Nanoseconds a call.
fn nanos(call: Call, long: Duration, file: &File, mapped: &MappedFile, order: &mut Seeded) -> anyhow::Result<f64> {
    let (mut page, mut calls, mut odd) = ([0; PAGE], 0, 0_u64);
    let (begun, before) = (Instant::now(), own_thread_nanos());
    while begun.elapsed() < long {
        for _ in 0..CALLS {
            let offset = order.below((MEBIBYTES << 20) as u64 / PAGE as u64) * PAGE as u64;
            match call {
                Call::Pread => file.read_exact_at(&mut page, offset)?,
                Call::Mincore => odd += u64::from(!mapped.is_cached(usize::try_from(offset)?, PAGE)),
                Call::Getrusage => odd += u64::from(major_faults() == u64::MAX),
                Call::Getppid => odd += u64::from(rustix::process::getppid().is_none()),
            }
        }
        calls += CALLS;
    }
    // Some may have been taken from memory meanwhile.
    anyhow::ensure!(odd * 1000 < calls, "{odd} of {calls} pages were not in the page cache");
    Ok((own_thread_nanos() - before) as f64 / calls as f64)
}
