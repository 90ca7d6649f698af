//! One suite that loops over the table of engines, so that none is left out.

use super::tally::LiveCounters;
use super::worker::{Control, Worker};
use super::{OpenEngine, TABLE, open, prepare};
use crate::worker_pool::{JobCopy, build_worker};
use lab::created::Created;
use model::plan::{
    Access, CallPlan, Depth, ENGINES, EngineKind, JobPlan, Medium, Order, Peer, Size, Target, Verify, VerifyMethod,
};
use model::unit::{Bytes, Hertz};
use std::path::Path;
use std::sync::Arc;

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 64;

fn job(engine: EngineKind, directory: &Path, access: Access) -> JobPlan {
    let target = Target {
        directory: Some(directory.to_str().unwrap().to_owned()),
        size: Some(Size::Bytes(Bytes(BLOCK * BLOCKS))),
        ..Target::default()
    };
    let depth = Depth { in_flight: 8, low: Some(5), submit: 3, complete_min: 2, complete_max: 8 };
    let name = format!("{engine:?}");
    let block_sizes = Bytes(BLOCK).into();
    let mut job =
        JobPlan { name, engine, access, order: Order::Random, block_sizes, target, depth, ..JobPlan::default() };
    job.path.uri = (engine.medium() == Medium::Remote).then(|| server(directory));
    job.own.rr_peer = (engine == EngineKind::Rr).then(|| echo(directory));
    job
}

/// In the temporary folder, because paths of sockets must be short.
fn socket(directory: &Path) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("iotoll{}", directory.file_name().unwrap().display()))
}

/// The server for the test with this folder; it runs as long as the tests.
fn server(directory: &Path) -> String {
    use nbd::backends::Backend;
    use nbd::server::{Export, Listener, Observer, Options, ServerHandle, serve};
    struct Quiet;
    impl Observer for Quiet {
        fn note(&self, _: &str) {}
    }
    let socket = socket(directory);
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    if !socket.exists() {
        let listener = Listener::Unix(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        std::thread::spawn(move || {
            let memory = Backend::memory(BLOCK * BLOCKS, &nbd::Tuning::default()).unwrap();
            let export = Export::new(String::new(), memory, false, u32::MAX);
            serve(&listener, &export, &Options::default(), &ServerHandle::new().unwrap(), &Quiet)
        });
    }
    uri
}

/// An echo server for the test with this folder; it runs as long as the tests.
fn echo(directory: &Path) -> Peer {
    let path = socket(directory);
    let peer = Peer::Unix(path.display().to_string());
    if !path.exists() {
        let (listening, is_listening) = std::sync::mpsc::channel();
        let served = peer.clone();
        std::thread::spawn(move || crate::echo::serve(&served, |_| listening.send(()).is_ok(), &|| false));
        is_listening.recv().unwrap();
    }
    peer
}

/// A worker and its engine, at this clock, with their files, which stay.
fn opened(plan: &JobPlan, clock: Hertz) -> lab::Result<(Worker, OpenEngine, Arc<LiveCounters>)> {
    let created = Created::default();
    let targets = prepare(plan, 0, &created, &mut |_, _, _| true)?;
    created.keep();
    let live = Arc::new(LiveCounters::default());
    let copy = JobCopy { plan, number: 0, targets, replay: None };
    let worker = build_worker(&copy, live.clone(), Arc::new(Control::default()), clock)?;
    Ok((worker, open(&copy)?, live))
}

/// How many I/Os it did.
fn ios(worker: &Worker) -> u64 {
    worker.tally.kinds.iter().map(|kind| kind.latency.total()).sum()
}

fn run(plan: &JobPlan) -> lab::Result<Worker> {
    let (mut worker, mut engine, live) = opened(plan, Hertz(1e9))?;
    engine(&mut worker)?;
    assert_eq!(live.read(), (ios(&worker), ios(&worker) * BLOCK), "{}: live and final counts agree", plan.name);
    Ok(worker)
}

fn each_engine(mut check: impl FnMut(EngineKind, &Path)) {
    for (kind, _) in &TABLE {
        let directory = tempfile::tempdir_in(".").unwrap();
        check(*kind, directory.path());
        let _ = std::fs::remove_file(socket(directory.path()));
    }
    let all: Vec<EngineKind> = ENGINES.iter().map(|engine| engine.kind).collect();
    assert_eq!(TABLE.map(|(kind, _)| kind).to_vec(), all, "every engine can be opened");
}

#[test]
fn every_engine_does_exactly_the_requested_ios() {
    each_engine(|engine, directory| {
        for (access, kinds) in [(Access::Read, [64, 0, 0]), (Access::Write, [0, 64, 0]), (Access::Trim, [0, 0, 64])] {
            let worker = run(&job(engine, directory, access)).unwrap();
            let counts = worker.tally.kinds.each_ref().map(|kind| kind.latency.total());
            assert_eq!(counts, kinds, "{engine:?} {access:?}");
            assert!(worker.tally.kinds.iter().all(|kind| kind.short == 0));
            // A mapping is accessed without calls.
            let calls = engine.medium() == Medium::Files && access != Access::Trim && engine != EngineKind::Mmap;
            let makes_calls = engine.medium() == Medium::Remote || calls;
            assert!(!makes_calls || worker.syscalls.unwrap() > 0, "{engine:?} counts its system calls");
        }
    });
}

#[test]
fn ways_of_asking_the_kernel_do_the_same_ios() {
    let ways = [
        CallPlan { submission_thread: true, ..CallPlan::default() },
        CallPlan { submission_thread: true, force_async: 3, ..CallPlan::default() },
        CallPlan { force_async: 1, ..CallPlan::default() },
        // What was just written is in the page cache.
        CallPlan { nowait: true, ..CallPlan::default() },
    ];
    let polled = CallPlan { polled: true, nowait: true, ..CallPlan::default() };
    let of_ring = ways.map(|calls| (EngineKind::IoUring, calls));
    for (engine, calls) in of_ring.into_iter().chain([(EngineKind::Pvsync2, polled)]) {
        let directory = tempfile::tempdir_in(".").unwrap();
        run(&job(engine, directory.path(), Access::Write)).unwrap();
        let mut plan = JobPlan { calls, ..job(engine, directory.path(), Access::Read) };
        plan.files.invalidate = Some(false);
        let worker = run(&plan).unwrap();
        assert_eq!(worker.tally.kinds[0].latency.total(), BLOCKS, "{calls:?}");
        // The kernel's thread sleeps after a second without work.
        let made = worker.syscalls.unwrap();
        assert!(if calls.submission_thread { made < 8 } else { made > 0 }, "{calls:?}: {made}");
    }
}

#[test]
fn stages_add_up_to_latency() {
    each_engine(|engine, directory| {
        let mut plan = job(engine, directory, Access::ReadWrite);
        plan.depth.complete_max = 1;
        let tally = run(&plan).unwrap().tally;
        let over_sockets = engine.medium() == Medium::Remote || engine == EngineKind::Rr;
        assert_eq!(tally.stages.is_some(), over_sockets, "{engine:?}");
        let Some(stages) = tally.stages else { return };
        assert_eq!(stages.sending.is_some(), engine == EngineKind::Rr, "{engine:?}");
        let latency: u64 = tally.kinds.iter().map(|kind| kind.latency.sum()).sum();
        let parts: Vec<_> =
            [&stages.backlog_wait, &stages.round_trip, &stages.delivery].into_iter().chain(&stages.sending).collect();
        assert!(parts.iter().all(|part| part.total() == BLOCKS && part.sum() > 0), "{engine:?}");
        assert_eq!(parts.iter().map(|part| part.sum()).sum::<u64>(), latency);
    });
}

#[test]
fn every_engine_stops_at_the_number_of_ios_and_works_with_o_direct() {
    each_engine(|engine, directory| {
        for (direct, number_ios) in [(false, Some(37)), (true, None)] {
            let mut plan = job(engine, directory, Access::ReadWrite);
            (plan.direct, plan.duration.number_ios) = (direct, number_ios);
            assert_eq!(ios(&run(&plan).unwrap()), number_ios.unwrap_or(BLOCKS), "{engine:?}");
        }
    });
}

#[test]
fn every_engine_syncs_when_asked() {
    each_engine(|engine, directory| {
        let mut plan = job(engine, directory, Access::Write);
        (plan.sync.every, plan.sync.data_every, plan.sync.at_end) = (16, 0, true);
        // As in fio, no sync follows the last write; end_fsync does that.
        assert_eq!(run(&plan).unwrap().tally.syncs, 3 + 1, "{engine:?}");
    });
}

#[test]
fn a_file_truncated_during_the_run_is_one_clear_error() {
    each_engine(|engine, directory| {
        // The kernel ends a process that accesses a mapping behind the end of its file.
        if engine.medium() != Medium::Files || engine == EngineKind::Mmap {
            return;
        }
        let plan = job(engine, directory, Access::Read);
        run(&plan).unwrap();
        let (mut worker, mut engine, _) = opened(&plan, Hertz(1e9)).unwrap();
        let path = directory.join(format!("{}.0.0", plan.name));
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        let error = engine(&mut worker).unwrap_err().to_string();
        assert!(error.contains("the file ends before") && error.contains(&plan.name), "{error}");
        assert_eq!(error.lines().count(), 1);
    });
}

#[test]
fn written_data_is_in_the_file() {
    each_engine(|engine, directory| {
        if engine.medium() != Medium::Files {
            return;
        }
        let plan = job(engine, directory, Access::Write);
        run(&plan).unwrap();
        let bytes = std::fs::read(directory.join(format!("{}.0.0", plan.name))).unwrap();
        assert_eq!(bytes.len() as u64, BLOCK * BLOCKS);
        let empty = bytes.chunks(BLOCK as usize).filter(|block| block.iter().all(|byte| *byte == 0)).count();
        assert_eq!(empty, 0, "{engine:?} wrote every block once");
    });
}

#[test]
fn every_engine_reads_back_what_it_wrote() {
    each_engine(|engine, directory| {
        if engine.medium() == Medium::Nothing {
            return;
        }
        let verify = Verify { method: Some(VerifyMethod::Crc32c), ..Verify::default() };
        let through = |access| {
            let plan = JobPlan { verify: verify.clone(), ..job(engine, directory, access) };
            let (mut worker, mut engine, _) = opened(&plan, Hertz(1e9)).unwrap();
            engine(&mut worker).map(|()| worker.verified())
        };
        assert_eq!(through(Access::Write).unwrap(), None, "{engine:?}");
        let verified = through(Access::Read).unwrap().unwrap();
        assert_eq!((verified.ios, verified.bytes, verified.wrong), (BLOCKS, Bytes(BLOCK * BLOCKS), 0), "{engine:?}");
        if engine.medium() == Medium::Files {
            use std::os::unix::fs::FileExt;
            let path = directory.join(format!("{engine:?}.0.0"));
            let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, 5 * BLOCK + 600).unwrap();
            file.write_all_at(&[!byte[0]], 5 * BLOCK + 600).unwrap();
            let error = through(Access::Read).unwrap_err().to_string();
            assert!(error.contains("at offset 20480: the crc32c of its data"), "{error}");
        }
    });
}

#[test]
fn a_ramp_leaves_no_trace_in_the_results() {
    each_engine(|engine, directory| {
        let mut plan = job(engine, directory, Access::Read);
        plan.duration.time_based = true;
        plan.duration.ramp = model::unit::Nanos::from_millis(50);
        plan.duration.runtime = model::unit::Nanos::from_millis(50);
        plan.files.invalidate = Some(false);
        // The real tick rate, so that times in the plan are real times.
        let begin = sys::clock::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(10));
        let clock = Hertz(sys::clock::Instant::now().hertz_since(begin).unwrap());
        let (mut worker, mut open, live) = opened(&plan, clock).unwrap();
        open(&mut worker).unwrap();
        let counted = ios(&worker);
        assert!(counted > 0 && counted < live.read().0, "{engine:?}: {counted} of {}", live.read().0);
        // Two submissions and a wait transfer the 8 in flight; system calls of the ramp do not count.
        let syscalls = worker.syscalls.unwrap_or(counted);
        // An exchange sends and receives, a random place needs an lseek.
        let calls = if matches!(engine, EngineKind::Rr | EngineKind::Sync) { 2 } else { 1 };
        assert!(syscalls <= calls * (counted + 8), "{engine:?}: {syscalls} syscalls for {counted} I/Os");
    });
}

/// Each file is made empty before the first I/O.
#[test]
fn every_engine_fills_files_that_were_not_laid_out() {
    each_engine(|engine, directory| {
        if engine.medium() != Medium::Files {
            return;
        }
        let mut plan = job(engine, directory, Access::Write);
        plan.files.count = Some(16);
        plan.sync.on_close = true;
        plan.files.making.on_open = true;
        plan.duration.loops = 2;
        let worker = run(&plan).unwrap();
        assert_eq!(ios(&worker), 2 * BLOCKS, "{engine:?}");
        assert_eq!(worker.tally.syncs, 16, "{engine:?}: each file when it is closed");
        for number in 0..16 {
            let bytes = std::fs::read(directory.join(format!("{}.0.{number}", plan.name))).unwrap();
            assert_eq!(bytes.len() as u64, BLOCK * BLOCKS / 16, "{engine:?}");
            assert!(bytes.chunks(BLOCK as usize).all(|block| block.iter().any(|byte| *byte != 0)), "{engine:?}");
        }
    });
}
