//! Feeds arbitrary traces of fio to a job that replays them.

#![no_main]

use fuzz::{file_of, split};
use iotoll_fuzz as fuzz;
use jobs::replaying::Replays;
use libfuzzer_sys::fuzz_target;
use model::plan::parse::{Settings, job_file};

/// Those that change what a trace means.
const OPTIONS: [&str; 3] = ["replay_redirect=d", "replay_no_stall=1", "numjobs=2"];

fuzz_target!(|data: &[u8]| {
    let Some(([choice], trace)) = split::<1>(data) else { return };
    let chosen = (0..).zip(OPTIONS).filter(|(bit, _)| choice >> bit & 1 != 0).map(|(_, option)| option);
    let text = format!("[a]\nread_iolog={}\n{}", file_of(trace).0, chosen.collect::<Vec<_>>().join("\n"));
    let mut plan = job_file("a.fio", &text, &Settings::default()).expect("the job is valid");
    let job = &mut plan.phases[0].jobs[0];
    if Replays::default().read(0, 0, job).is_ok() {
        assert!((1..2 << 30).contains(&job.block_sizes.read.0) && !job.target.files.is_empty(), "{job:?}");
    }
});
