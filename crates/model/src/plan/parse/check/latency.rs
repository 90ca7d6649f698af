//! Checks the limits of latencies and the priorities of requests.

use super::{Complaint, Draft};
use crate::unit::Nanos;

/// What cannot be judged, and priorities that contradict each other.
pub(super) fn complaint(draft: &Draft) -> Option<Complaint> {
    let job = &draft.job;
    if job.latency.has_target() && job.latency.window == Nanos(0) {
        let why =
            "latency_target needs a time for which each depth is tried; add one, for example latency_window=500ms";
        return Some(("latency_target", why.to_owned()));
    }
    let priorities = &job.priorities;
    let both = priorities.percent != [0, 0] && priorities.splits.iter().any(|split| !split.is_empty());
    both.then(|| {
        let why =
            "cmdprio_percentage and cmdprio_bssplit both say which requests have a priority; leave one of them out";
        ("cmdprio_bssplit", why.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use crate::plan::{Plan, Settings, parse};

    fn parsed(options: &str) -> Result<Plan, String> {
        let flags: Vec<String> = format!("--name=a --size=1m {options}").split(' ').map(str::to_owned).collect();
        parse::flags(&flags, &Settings::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_the_mend() {
        for (options, says) in [
            ("--latency_target=1ms", "add one, for example latency_window"),
            ("--cmdprio_percentage=1 --cmdprio_bssplit=4k/1", "leave one of them out"),
            ("--cmdprio_percentage=1 --ioengine=libaio --io_submit_mode=offload", "leave one of them out"),
            ("--latency_target=1ms --latency_window=1s --io_submit_mode=offload", "leave one of them out"),
            (
                "--cmdprio_percentage=0 --cmdprio_bssplit=4k/1 --ioengine=libaio --io_submit_mode=offload",
                "leave one of them out",
            ),
        ] {
            let why = parsed(options).unwrap_err();
            assert!(why.contains(says), "{options}: {why}");
        }
        parsed("--max_latency=1s,2s --io_submit_mode=offload").unwrap();
    }

    #[test]
    fn a_search_is_for_runs_alone() {
        let plan = parsed("--latency_target=1ms --latency_window=1s").unwrap();
        assert!(plan.only_for_run().unwrap().contains("latency_target"));
    }
}
