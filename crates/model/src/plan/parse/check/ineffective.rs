//! Options that have no effect without another one, as in fio.

use crate::plan::draft::Draft;
use crate::plan::value::Quoted;
use crate::warning::{Code, Warning};

/// Options, whether they have an effect, and what they lack.
type Row = (&'static [&'static str], bool, &'static str);

/// A caveat for each option that is given and has no effect.
pub(super) fn warnings(draft: &Draft) -> Vec<Warning> {
    let job = &draft.job;
    let (zones, verify) = (job.requests.zones, &job.verify);
    let priorities = job.priorities.is_in_force();
    let reads_back = verify.method.is_some() && verify.after;
    let rows: [Row; 8] = [
        (&["latency_window", "latency_percentile", "latency_run"], job.latency.has_target(), "latency_target"),
        (&["cmdprio_class", "cmdprio"], priorities, "cmdprio_percentage or cmdprio_bssplit"),
        (
            &["trim_percentage", "trim_backlog", "trim_backlog_batch", "trim_verify_zero"],
            reads_back,
            "a job that verifies what it wrote (verify, without do_verify=0)",
        ),
        (
            &["trim_percentage", "trim_backlog_batch", "trim_verify_zero"],
            !reads_back || verify.trims.backlog > 0,
            "trim_backlog",
        ),
        (
            &["trim_backlog"],
            !reads_back || verify.trims.backlog == 0 || draft.origin("trim_percentage").is_some(),
            "trim_percentage",
        ),
        (
            &[
                "zonecapacity",
                "max_open_zones",
                "job_max_open_zones",
                "read_beyond_wp",
                "ignore_zone_limits",
                "zone_reset_threshold",
                "zone_reset_frequency",
            ],
            zones.device.on,
            "zonemode=zbd",
        ),
        (&["zonerange"], zones.strided, "zonemode=strided"),
        (&["zoneskip"], zones.strided || zones.device.on, "zonemode=strided or zonemode=zbd"),
    ];
    let name = Quoted(&job.name).to_string();
    let said = |option: &str, lacks: &str| {
        Warning::new(Code::OptionIgnored, format!("job {name}: {option} has no effect without {lacks}, as in fio"))
    };
    let given = |option: &&&str| draft.origin(option).is_some();
    let rows = rows.into_iter().filter(|(_, works, _)| !works);
    rows.flat_map(|(options, _, lacks)| options.iter().filter(given).map(move |option| (*option, lacks)))
        .map(|(option, lacks)| said(option, lacks))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::plan::{Settings, parse};

    #[test]
    fn what_has_no_effect_is_said() {
        let warned = |options: &str| {
            let flags: Vec<String> = format!("--name=a --size=1m {options}").split(' ').map(str::to_owned).collect();
            let plan = parse::flags(&flags, &Settings::default()).unwrap();
            plan.warnings.into_iter().map(|one| one.message).collect::<Vec<_>>()
        };
        for (options, says) in [
            ("--latency_window=1s", "latency_window has no effect without latency_target"),
            ("--ioengine=libaio --cmdprio_class=2", "cmdprio_class has no effect without cmdprio_percentage"),
            ("--cmdprio_percentage=20", "cmdprio_percentage has no effect with ioengine=psync"),
            ("--rw=write --trim_percentage=20", "trim_percentage has no effect without a job that verifies"),
            ("--rw=write --verify=md5 --trim_backlog=2 --do_verify=0", "without a job that verifies"),
            ("--rw=write --verify=md5 --trim_percentage=20", "trim_percentage has no effect without trim_backlog"),
            ("--rw=write --verify=md5 --trim_backlog=2", "trim_backlog has no effect without trim_percentage"),
            ("--max_open_zones=2", "max_open_zones has no effect without zonemode=zbd"),
            ("--zonemode=strided --zonesize=8k --zonecapacity=4k", "zonecapacity has no effect without zonemode=zbd"),
            ("--zonemode=zbd --zonesize=8k --zonerange=8k", "zonerange has no effect without zonemode=strided"),
            ("--zoneskip=8k", "zoneskip has no effect without zonemode=strided or zonemode=zbd"),
        ] {
            let said = warned(options);
            assert!(said.len() == 1 && said[0].contains(says), "{options}: {said:?}");
        }
        for options in [
            "--ioengine=io_uring --cmdprio_percentage=20 --cmdprio=3",
            "--latency_target=1ms --latency_window=1s",
            "--rw=write --verify=md5 --trim_backlog=2 --trim_percentage=0",
            "--zonemode=strided --zonesize=8k --zonerange=16k --zoneskip=8k",
            "--zonemode=zbd --zonesize=8k --max_open_zones=2 --job_max_open_zones=1 --zoneskip=8k",
        ] {
            assert!(warned(options).is_empty(), "{options}: {:?}", warned(options));
        }
    }
}
