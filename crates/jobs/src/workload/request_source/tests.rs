//! The requests of a job, in order.

use super::*;
use model::plan::{Duration, EngineKind};
use model::unit::Bytes;
use std::collections::BTreeSet;

fn plan(access: Access, order: Order, read: u64, write: u64) -> JobPlan {
    let block_sizes = Each { read: Bytes(read), write: Bytes(write), trim: Bytes(write) };
    JobPlan { access, order, block_sizes, ..JobPlan::default() }
}

fn spans(lengths: &[u64]) -> Vec<Span> {
    lengths.iter().map(|&length| Span { begin: 8192, length, beyond: 0 }).collect()
}

#[test]
fn random_visits_each_block_of_each_file_once_a_pass() {
    let mut source =
        RequestSource::new(&plan(Access::ReadWrite, Order::Random, 512, 512), &spans(&[51_200, 51_200]), 3).unwrap();
    let seen: BTreeSet<_> = (0..200).map(|_| source.draw()).map(|r| (r.file, r.offset)).collect();
    assert_eq!(seen.len(), 200);
    assert!(seen.iter().all(|(_, offset)| (8192..8192 + 51_200).contains(offset)));
}

#[test]
fn the_mix_is_what_was_asked_for() {
    let mut job = plan(Access::ReadWrite, Order::Random, 4096, 8192);
    job.requests.read_percent = 70;
    let mut source = RequestSource::new(&job, &spans(&[1 << 30]), 0).unwrap();
    let reads = (0..100_000).map(|_| source.draw()).filter(|request| request.kind == Kind::Read).count();
    assert!((69_000..71_000).contains(&reads), "{reads}");
}

#[test]
fn a_trimmed_block_is_then_written() {
    let mut source =
        RequestSource::new(&plan(Access::TrimWrite, Order::Random, 4096, 4096), &spans(&[1 << 20]), 0).unwrap();
    for _ in 0..100 {
        let (trim, write) = (source.draw(), source.draw());
        assert_eq!((trim.kind, write.kind), (Kind::Trim, Kind::Write));
        assert_eq!((trim.offset, trim.length), (write.offset, write.length));
    }
}

#[test]
fn copies_differ_and_repeat() {
    let job = plan(Access::Read, Order::Random, 4096, 4096);
    let draw = |copy| {
        let mut source = RequestSource::new(&job, &spans(&[1 << 24]), copy).unwrap();
        (0..16).map(|_| source.draw().offset).collect::<Vec<_>>()
    };
    assert_eq!(draw(0), draw(0));
    assert_ne!(draw(0), draw(1));
}

/// All requests of a job.
fn requests(plan: &JobPlan, spans: &[Span]) -> Vec<Request> {
    let mut source = RequestSource::new(plan, spans, 0).unwrap();
    let mut requests = Vec::new();
    loop {
        let sure = source.following().min(1000);
        if sure == 0 {
            return requests;
        }
        requests.extend((0..sure).map(|_| source.draw()));
    }
}

/// The same: file, offset in blocks of 4 KiB.
fn all(plan: &JobPlan, spans: &[Span]) -> Vec<(u32, u64)> {
    requests(plan, spans).into_iter().map(|request| (request.file, request.offset / 4096)).collect()
}

const KIB: u64 = 1024;

fn span(kib: u64, beyond: u64) -> Span {
    Span { begin: 0, length: kib * KIB, beyond: beyond * KIB }
}

#[test]
fn the_last_block_of_a_sequential_pass_reaches_into_the_file_behind_it() {
    let mut job = plan(Access::Read, Order::Sequential, 4096, 4096);
    assert_eq!(all(&job, &[span(10, 0)]), [(0, 0), (0, 1)]);
    assert_eq!(all(&job, &[span(10, 2)]), [(0, 0), (0, 1), (0, 2)]);
    job.order = Order::Random;
    assert_eq!(all(&job, &[span(10, 2)]).len(), 2);
}

#[test]
fn the_size_of_an_unused_direction_changes_nothing() {
    assert_eq!(all(&plan(Access::Read, Order::Sequential, 4096, 1000), &[span(10, 0)]).len(), 2);
    assert_eq!(all(&plan(Access::Write, Order::Sequential, 4096, 65_536), &[span(100, 0)]).len(), 1);
}

#[test]
fn a_short_file_is_done_while_a_longer_one_goes_on() {
    let mut job = plan(Access::Read, Order::Sequential, 4096, 4096);
    let spans = [span(8, 0), span(16, 0)];
    let pass = [(0, 0), (1, 0), (0, 1), (1, 1), (1, 2), (1, 3)];
    assert_eq!(all(&job, &spans), pass);
    job.duration.loops = 2;
    assert_eq!(all(&job, &spans), [pass, pass].concat());
    job.order = Order::Random;
    assert_eq!(all(&job, &spans).into_iter().collect::<BTreeSet<_>>().len(), 6);
}

#[test]
fn a_mix_ends_with_its_bytes_in_each_loop() {
    for (order, engine, loops) in [
        (Order::Sequential, EngineKind::Psync, 1),
        (Order::Sequential, EngineKind::Libaio, 3),
        (Order::Random, EngineKind::Psync, 3),
    ] {
        let mut job = JobPlan { engine, ..plan(Access::ReadWrite, order, 4096, 4096) };
        job.duration.loops = loops;
        assert_eq!(all(&job, &[span(64, 0)]).len() as u32, 16 * loops);
        job.requests.read_percent = 100;
        assert_eq!(all(&job, &[span(66, 0)]).len() as u32, 16 * loops);
    }
}

#[test]
fn the_size_limits_a_pass_over_files_of_their_own_size() {
    let mut job = JobPlan::default();
    job.files.each = Some(Bytes(8192));
    job.target.size = Some(Size::Bytes(Bytes(12_288)));
    job.duration.loops = 2;
    let files = [span(8, 0), span(8, 0)];
    assert_eq!(all(&job, &files), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (1, 0)]);
    job.target.size = Some(Size::Bytes(Bytes(1 << 20)));
    assert_eq!(all(&job, &files).len(), 8);
}

#[test]
fn time_repeats_what_a_pass_does() {
    let mut job = plan(Access::Read, Order::Sequential, 4096, 4096);
    job.duration.time_based = true;
    let mut source = RequestSource::new(&job, &[span(8, 0), span(16, 0)], 0).unwrap();
    let mut files = Vec::new();
    while files.len() < 12 {
        assert!(source.following() > 0);
        files.push(source.draw().file);
    }
    assert_eq!(files, [0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1]);
}

#[test]
fn a_file_without_room_for_a_block_is_refused() {
    assert!(RequestSource::new(&plan(Access::Read, Order::Random, 4096, 4096), &spans(&[4095]), 0).is_none());
}

/// The job of these options.
fn parsed(options: &str) -> JobPlan {
    let text = format!("[a]\nfilename=x\n{options}\n");
    let mut plan = model::plan::parse::job_file("a", &text, &model::plan::Settings::default()).unwrap();
    plan.phases.remove(0).jobs.remove(0)
}

/// The requests of a job that these options make of a file: offset and length in KiB.
fn of_file(options: &str, file: Span) -> Vec<(u64, u64)> {
    let requests = requests(&parsed(options), &[file]).into_iter();
    requests.map(|request| (request.offset / KIB, u64::from(request.length) / KIB)).collect()
}

fn offsets(options: &str, file: Span) -> Vec<u64> {
    of_file(options, file).into_iter().map(|(offset, _)| offset).collect()
}

/// What fio 3.33 does with the same jobs.
#[test]
fn random_requests_of_several_sizes_use_each_block_once() {
    for options in [
        "bssplit=4k/50:16k/50",
        "bsrange=4k-20k",
        "bssplit=4k/10:12k/90\nloops=2",
        "bssplit=8k/:4k/\nrw=randrw",
        "bsrange=4k-8k\nrw=randwrite",
        "bsrange=4k-8k\nrw=randtrim",
    ] {
        let requests = of_file(&format!("rw=randread\n{options}"), span(4096, 0));
        // A pass has each block once.
        let passes = if options.contains("loops") { 2 } else { 1 };
        let mut left = requests.as_slice();
        for pass in 0..passes {
            let mut bytes = 0;
            let end = left.iter().position(|(_, length)| {
                bytes += length;
                bytes == 4096
            });
            let (here, rest) = left.split_at(end.expect(options) + 1);
            let mut sorted = here.to_vec();
            sorted.sort_unstable();
            let apart = sorted.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0);
            assert!(apart && sorted[0].0 == 0, "{options}, pass {pass}");
            left = rest;
            assert_eq!(left.is_empty(), pass + 1 == passes, "{options}");
        }
    }
}

#[test]
fn sequential_requests_of_several_sizes_follow_each_other() {
    for options in ["bsrange=4k-16k", "bssplit=4k/50:8k/50", "bssplit=4k/:8k/:16k/\nrw=write"] {
        let requests = of_file(options, span(1 << 20, 0));
        let mut end = 0;
        for (offset, length) in &requests {
            assert_eq!(*offset, end, "{options}");
            end += length;
        }
        assert_eq!(end, 1 << 20, "{options}");
    }
}

#[test]
fn a_part_of_a_random_order_follows_the_request_before_it() {
    let follow = |options: &str| {
        let blocks = offsets(&format!("rw=randread\n{options}"), span(1 << 20, 0));
        assert_eq!(blocks.len(), 1 << 18, "{options}");
        blocks.windows(2).filter(|pair| pair[1] == pair[0] + 4).count() as f64 / blocks.len() as f64
    };
    // The standard deviation is 0.001.
    assert!((follow("percentage_random=75") - 0.25).abs() < 0.006);
    assert!((follow("percentage_random=10,50") - 0.9).abs() < 0.006);
    assert!(follow("percentage_random=0") > 0.999_99);
    assert!(follow("percentage_random=100,0,0") < 0.001);
}

#[test]
fn an_alignment_places_random_blocks_with_repetitions() {
    let fine = offsets("rw=randread\nbs=4k\nblockalign=1k", span(4096, 0));
    assert_eq!((fine.len(), fine.iter().all(|offset| *offset <= 4092)), (1024, true));
    let odd = fine.iter().filter(|offset| !offset.is_multiple_of(4)).count();
    assert!((700..840).contains(&odd), "three of four: {odd}");
    let coarse = offsets("rw=randread\nblockalign=64k", span(4096, 0));
    assert!(coarse.len() == 1024 && coarse.iter().all(|offset| offset.is_multiple_of(64)));
    let own = offsets("rw=randread\nblockalign=4k", span(4096, 0));
    let once: BTreeSet<&u64> = own.iter().collect();
    assert_eq!((own.len(), once.len()), (1024, 1024), "that of the blocks changes nothing");
    assert_eq!(offsets("rw=read\nblockalign=64k", span(16, 0)), [0, 4, 8, 12], "only of random blocks");
}

#[test]
fn a_run_follows_its_position() {
    let runs = offsets("rw=randread:4", span(4096, 0));
    let follow = runs.chunks(4).filter(|run| run[3] == run[0] + 12).count();
    assert!(follow > 250, "all but those at the end of the file: {follow}");
}

#[test]
fn reads_and_writes_share_what_is_used_most() {
    let mut job = plan(Access::ReadWrite, Order::Random, 4096, 4096);
    job.requests.distribution = model::plan::Distribution::Zipf(1.5);
    let mut source = RequestSource::new(&job, &[span(4096, 0)], 0).unwrap();
    let mut counts = [vec![0; 1024], vec![0; 1024]];
    for request in (0..20_000).map(|_| source.draw()) {
        counts[request.kind as usize][(request.offset / 4096) as usize] += 1;
    }
    let most = counts.map(|counts| (0..1024).max_by_key(|block| counts[*block]).unwrap());
    assert_eq!(most[0], most[1]);
}

#[test]
fn a_job_that_only_time_ends_goes_on_in_every_order() {
    for options in [
        "rw=read",
        "rw=read\nbsrange=4k-16k",
        "rw=randread\nbssplit=4k/50:16k/50",
        "rw=randread\npercentage_random=30",
        "rw=randrw\nbsrange=4k-12k",
        "rw=randread:4",
        "rw=randtrimwrite\nbsrange=4k-8k",
        "rw=randread\nrandom_distribution=zipf:1.2",
    ] {
        for files in [vec![span(64, 0)], vec![span(64, 0), span(40, 8)]] {
            let mut source = RequestSource::new(&parsed(options), &files, 0).unwrap();
            source.make_endless();
            for _ in 0..500 {
                assert!(source.following() > 0, "{options}");
                let request = source.draw();
                let end = request.offset + u64::from(request.length);
                assert!(request.length >= 4096 && end <= 64 * KIB, "{options}: {request:?}");
            }
        }
    }
}

/// The lengths of the passes of a job over a file of 64 KiB that fills each pass.
fn passes(duration: Duration, access: Access) -> Vec<u64> {
    let plan = JobPlan { access, duration, engine: EngineKind::Libaio, ..JobPlan::default() };
    let mut amount = Amount::new(&plan, &[Span { begin: 0, length: 64 * KIB, beyond: 0 }]);
    let mut passes = Vec::new();
    loop {
        let here = amount.of_this_pass();
        if here > 0 {
            passes.push(here / KIB);
        }
        if !amount.begins_another(here.next_multiple_of(4 * KIB)) {
            return passes;
        }
    }
}

fn duration(io_size: Option<Size>, loops: u32) -> Duration {
    Duration { io_size, loops, ..Duration::default() }
}

#[test]
fn the_passes_are_those_of_fio() {
    let bytes = |kib: u64| Some(Size::Bytes(Bytes(kib * KIB)));
    assert_eq!(passes(duration(None, 1), Access::Read), [64]);
    assert_eq!(passes(duration(None, 3), Access::Read), [64, 64, 64]);
    assert_eq!(passes(duration(bytes(160), 1), Access::Read), [64, 64, 32]);
    assert_eq!(passes(duration(bytes(160), 2), Access::Read), [64, 64, 64]);
    assert_eq!(passes(duration(bytes(160), 3), Access::Read), [64, 64, 64], "not three times 160");
    assert_eq!(passes(duration(bytes(20), 2), Access::Read), [40]);
    assert_eq!(passes(duration(Some(Size::Percent(25)), 2), Access::Read), [16, 16]);
    assert_eq!(passes(duration(None, 1), Access::TrimWrite), [128], "each block is trimmed and written");
}

#[test]
fn a_pass_without_io_is_the_last() {
    let plan = JobPlan { duration: duration(Some(Size::Bytes(Bytes(1 << 30))), 1), ..JobPlan::default() };
    let mut amount = Amount::new(&plan, &[Span { begin: 0, length: 64 * KIB, beyond: 0 }]);
    assert!(amount.begins_another(4 * KIB));
    assert!(!amount.begins_another(0));
}
