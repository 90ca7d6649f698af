//! Checks of jobs whose I/Os other threads perform (`io_submit_mode=offload`).

use super::Complaint;
use crate::plan::job::{EngineKind, JobPlan, Medium};

/// What threads of a job cannot do for it.
pub(super) fn complaint(job: &JobPlan) -> Option<Complaint> {
    if !job.calls.offloaded {
        return None;
    }
    let engine = job.engine.name();
    if job.engine == EngineKind::Posixaio {
        let why = "ioengine=posixaio has threads of the C library, which know only the files of jobs; leave it out";
        return Some(("io_submit_mode", why.to_owned()));
    }
    let shares = matches!(job.engine.medium(), Medium::Files | Medium::Names)
        || matches!(job.engine, EngineKind::Null | EngineKind::Spin | EngineKind::Work);
    if !shares {
        let why = format!("ioengine={engine} has a connection or memory that threads cannot share; leave it out");
        return Some(("io_submit_mode", why));
    }
    if let Some(option) = job.logs.first_option().or(job.replay.is_in_force().then_some("read_iolog")) {
        let why =
            "stamps and requests of several threads are not put into one order; leave it or io_submit_mode=offload out";
        return Some((option, why.to_owned()));
    }
    let making = job.files.making;
    let content = &job.content;
    let given = [
        (job.verify.method.is_some(), "verify"),
        (job.latency.has_target(), "latency_target"),
        (job.priorities.percent != [0, 0], "cmdprio_percentage"),
        (job.priorities.is_in_force(), "cmdprio_bssplit"),
        (content.refill, "refill_buffers"),
        (content.scramble, "scramble_buffers"),
        (content.compress_percent > 0, "buffer_compress_percentage"),
        (content.dedupe_percent > 0, "dedupe_percentage"),
        (job.fsync_every > 0, "fsync"),
        (job.fdatasync_every > 0, "fdatasync"),
        (job.end_fsync, "end_fsync"),
        (job.files.syncing.on_close, "fsync_on_close"),
        (job.files.syncing.range.is_some(), "sync_file_range"),
        (job.files.open > 0 && (job.files.open as usize) < job.file_count(), "openfiles"),
        (making.on_open, "create_on_open"),
        (making.unlink_each_loop, "unlink_each_loop"),
    ];
    let (_, option) = given.into_iter().find(|(given, _)| *given)?;
    // An operation on a name opens nothing.
    if option == "openfiles" && job.engine.medium() == Medium::Names {
        return None;
    }
    let why = format!(
        "{option} needs one thread for all I/Os of the job, and io_submit_mode=offload has several; leave one of them out"
    );
    Some((option, why))
}

#[cfg(test)]
mod tests {
    use crate::plan::{Settings, parse};

    #[test]
    fn what_several_threads_cannot_do_is_refused_with_the_mend() {
        let parsed = |options: &str| {
            let text = format!("--name=a --rw=write --size=1m --io_submit_mode=offload {options}");
            let flags: Vec<String> = text.split(' ').map(str::to_owned).collect();
            parse::flags(&flags, &Settings::default()).map_err(|error| error.to_string())
        };
        for (options, says) in [
            ("--verify=md5", "verify needs one thread"),
            ("--fsync=4", "fsync needs one thread"),
            ("--nrfiles=4 --openfiles=2", "openfiles needs one thread"),
            ("--ioengine=mem", "threads cannot share"),
            ("--ioengine=posixaio", "threads of the C library"),
            ("--write_lat_log=l", "not put into one order"),
            ("--read_iolog=t", "not put into one order"),
        ] {
            let why = parsed(options).unwrap_err();
            assert!(why.contains(says) && why.contains("leave"), "{options}: {why}");
        }
        // Threads make a queue of an engine that has none.
        let plan = parsed("--ioengine=psync --iodepth=8").unwrap();
        assert_eq!((plan.phases[0].jobs[0].depth.in_flight, plan.warnings.len()), (8, 0));
        assert!(plan.only_for_run().unwrap().contains("io_submit_mode"));
    }
}
