//! Checks the limits of latencies and the priorities of requests.

use super::{Complaint, Draft};
use crate::plan::value::Quoted;
use crate::unit::Nanos;
use crate::warning::{Code, Warning};

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

/// What has no effect without another option, as in fio.
pub(super) fn ignored(draft: &Draft) -> impl Iterator<Item = Warning> {
    let job = &draft.job;
    let (target, priorities) = (job.latency.has_target(), job.priorities.is_in_force());
    let given = [
        ("latency_window", target, "latency_target"),
        ("latency_percentile", target, "latency_target"),
        ("latency_run", target, "latency_target"),
        ("cmdprio_class", priorities, "cmdprio_percentage or cmdprio_bssplit"),
        ("cmdprio", priorities, "cmdprio_percentage or cmdprio_bssplit"),
    ];
    let given = given.into_iter().filter(|(name, works, _)| !works && draft.origin(name).is_some());
    let name = Quoted(&job.name).to_string();
    let said = given.map(move |(option, _, other)| {
        Warning::new(Code::OptionIgnored, format!("job {name}: {option} has no effect without {other}, as in fio"))
    });
    said.collect::<Vec<_>>().into_iter()
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
        ] {
            let why = parsed(options).unwrap_err();
            assert!(why.contains(says), "{options}: {why}");
        }
        parsed("--cmdprio_percentage=0 --cmdprio_bssplit=4k/1 --max_latency=1s,2s --io_submit_mode=offload --ioengine=psync")
            .unwrap_err();
        parsed("--max_latency=1s,2s --io_submit_mode=offload").unwrap();
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let warned = |options| parsed(options).unwrap().warnings.into_iter().map(|one| one.message).collect::<Vec<_>>();
        for (options, says) in [
            ("--latency_window=1s", "latency_window has no effect without latency_target"),
            ("--ioengine=libaio --cmdprio_class=2", "cmdprio_class has no effect without cmdprio_percentage"),
            ("--cmdprio_percentage=20", "cmdprio_percentage has no effect with ioengine=psync"),
            ("--rw=write --trim_percentage=20", "trim_percentage has no effect without a job that verifies"),
            (
                "--rw=write --verify=md5 --trim_backlog=2 --do_verify=0 --trim_percentage=9",
                "without a job that verifies",
            ),
            ("--rw=write --verify=md5 --trim_percentage=20", "trim_percentage has no effect without trim_backlog"),
            ("--rw=write --verify=md5 --trim_backlog=2", "trim_backlog has no effect without trim_percentage"),
        ] {
            let said = warned(options);
            assert!(said.len() == 1 && said[0].contains(says), "{options}: {said:?}");
        }
        assert!(warned("--ioengine=io_uring --cmdprio_percentage=20 --cmdprio=3").is_empty());
        let plan = parsed("--latency_target=1ms --latency_window=1s").unwrap();
        assert!(plan.warnings.is_empty() && plan.only_for_run().unwrap().contains("latency_target"));
    }
}
