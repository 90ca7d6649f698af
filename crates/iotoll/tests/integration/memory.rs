//! Memory of a run besides its buffers, and of a client besides its data in flight.

use super::iotoll::{Folder, at_once, eventually};
use super::servers::{Server, status_bytes};
use std::fs;

/// Most memory of a run of 32 jobs of depth 32 besides its I/O buffers.
const LIMIT_KIB: u64 = 64 << 10;
const BUFFERS_KIB: u64 = 32 * 32 * 4;

/// The resident memory of a process, without what the kernel adds by backing a few touched bytes with a huge page, where
/// transparent huge pages are on: that is its choice, and it grows with the alignment of each thread's stack.
fn resident_kib(process: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let kib = |key: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(kib("Rss:")? - kib("AnonHugePages:")?)
}

#[track_caller]
fn peak_of(engine: &str, options: &str) -> u64 {
    let folder = Folder::new();
    let run = "run --background 200ms --quiet --format json --out kept --name=m --numjobs=32 --iodepth=32 --bs=4k --rw=randread";
    let mut running =
        folder.iotoll(&format!("{run} --ioengine={engine} {options} --runtime=500ms --time_based")).start();
    let (mut peak, mut threads) = (0, false);
    assert!(eventually(|| {
        threads |= running.has_threads("job m", 32);
        peak = peak.max(resident_kib(running.id()).unwrap_or(0));
        running.ended()
    }));
    running.wait().done();
    assert!(threads, "{engine}: the workers were never seen, so the peak was missed");
    peak
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn thirty_two_jobs_of_depth_thirty_two_fit_beside_their_buffers() {
        at_once([("null", "--size=1t"), ("io_uring", "--size=64k"), ("libaio", "--size=64k")], |(engine, options)| {
            let peak = peak_of(engine, options);
            assert!(peak > 0 && peak < LIMIT_KIB + BUFFERS_KIB, "{engine}: {peak} KiB");
        });
    }

    /// Besides iotoll's own memory: as much as is in flight, and a mebibyte.
    #[test]
    fn a_client_needs_its_data_in_flight_and_a_mebibyte() {
        let served = Server::new("--backend memory:8m --unix s");
        let most = |engine: &str, block: &str| {
            let words = "run --name=m --rw=randrw --size=8m --iodepth=32 --runtime=2s --time_based --no-save --quiet";
            let running = served.folder.iotoll(&format!("{words} {engine} --bs={block}")).start();
            let mut most = 0;
            assert!(eventually(|| {
                let anonymous = status_bytes(running.id(), "RssAnon:");
                most = most.max(anonymous.unwrap_or(0));
                anonymous.is_none()
            }));
            running.wait().done();
            most
        };
        let without = most("--ioengine=null", "512");
        for (block, bytes) in [("4k", 4 << 10), ("256k", 256 << 10)] {
            let with = most(&format!("--ioengine=nbd --uri={}", served.uri), block);
            assert!(with < without + 32 * bytes + (1 << 20), "{block}: {with} bytes, {without} without");
        }
    }
}
