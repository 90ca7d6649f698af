//! fio: reports its I/O in JSON with the right flag.

use super::output_parser::{ProgramReport, impossible};
use model::record::{Direction, JobRecord, Latency};
use model::unit::{Bytes, Nanos};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Whether an argument would hide fio's JSON, print more than one, or let fio end before its work does. fio accepts its
/// long options with one dash too.
pub(super) fn is_in_the_way(argument: &str) -> bool {
    if !argument.starts_with('-') {
        return false;
    }
    let name = argument.trim_start_matches('-');
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    name.starts_with("output") || matches!(name, "minimal" | "status-interval" | "daemonize")
}

/// fio prints its JSON first or last, and errors before it; the object starts on its own line. With status output at
/// intervals, the last object covers the whole run.
pub(super) fn parse(text: &str) -> std::result::Result<ProgramReport, String> {
    // Braces within the object are indented. fio's progress lines end with a carriage return.
    let mut braces = text.rmatch_indices("{\n").map(|(place, _)| place);
    let is_first =
        |place: &usize| text.get(..*place).is_some_and(|before| before.is_empty() || before.ends_with(['\n', '\r']));
    let begin = braces.find(is_first).ok_or("its output has no JSON")?;
    let rest = text.get(begin..).unwrap_or_default();
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let value = values.next().ok_or("its JSON is empty")?.map_err(|error| format!("its JSON is broken: {error}"))?;
    let after = rest.get(values.byte_offset()..).unwrap_or_default();
    let jobs = value.get("jobs").and_then(Value::as_array).ok_or("its JSON has no jobs")?;
    let mut report =
        ProgramReport { text: format!("{}{after}", text.get(..begin).unwrap_or_default()), ..ProgramReport::default() };
    // Jobs of one group run together, groups (after a stonewall) one after the other.
    let mut group_millis: BTreeMap<u64, u64> = BTreeMap::new();
    for job in jobs {
        let millis = wall_millis(&value, job);
        let group = group_millis.entry(unsigned(job, "groupid")).or_default();
        *group = millis.max(*group);
        report.jobs.push(record(job, millis, &mut report.notes));
    }
    let runtime: u64 = group_millis.values().sum();
    let end = unsigned(&value, "timestamp_ms").saturating_mul(1_000_000);
    if end > 0 && runtime > 0 {
        // fio's times have a resolution of a millisecond, and it prints within a few of the end.
        report.io_unix_nanos = Some((end.saturating_sub(runtime.saturating_mul(1_000_000)), end));
    }
    let sequential = group_millis.len() > 1;
    report.unclear = unclear(&value, jobs, sequential).map(str::to_owned);
    report.uncounted = uncounted(&value, jobs, sequential).map(str::to_owned);
    if report.uncounted.is_some() {
        // A cost per counted I/O would be too high, because the I/O of the ramps is paid for but not counted.
        report.io_unix_nanos = None;
    }
    Ok(report)
}

/// The parts of a job in fio's JSON. With unified_rw_reporting there is only the last, which is the sum of the others where there are
/// others (`both`).
const DIRECTIONS: [&str; 4] = ["read", "write", "trim", MIXED];
const MIXED: &str = "mixed";

/// Duration of a job. In a reported group, `job_runtime` is the sum over its members, which run at the same time; the
/// run times of the directions are those of the longest member. Directions share that time, unless all reads read back what was
/// written before.
fn wall_millis(report: &Value, job: &Value) -> u64 {
    let of_direction = |name| job.get(name).map_or(0, |part| unsigned(part, "runtime"));
    let millis = match reads_only_back(report, job) {
        true => of_direction("read").saturating_add(of_direction("write")).max(of_direction(MIXED)),
        false => DIRECTIONS.into_iter().map(of_direction).max().unwrap_or(0),
    };
    if millis > 0 { millis } else { unsigned(job, "job_runtime") }
}

fn record(job: &Value, millis: u64, notes: &mut Vec<String>) -> JobRecord {
    let fraction = (number(job, "usr_cpu") + number(job, "sys_cpu")) / 100.0;
    let options = job.get("job options");
    let error = unsigned(job, "error");
    let mut direction = |name| direction(job, name, Nanos::from_millis(millis), notes);
    JobRecord {
        name: job.get("jobname").and_then(Value::as_str).unwrap_or("fio").to_owned(),
        // Its copies share one name.
        group_reporting: true,
        group: u32::try_from(unsigned(job, "groupid")).unwrap_or(u32::MAX),
        engine: format!("fio {}", options.and_then(|options| options.get("ioengine")?.as_str()).unwrap_or(""))
            .trim()
            .into(),
        read: direction("read"),
        write: direction("write"),
        trim: direction("trim"),
        mixed: (job.get("read").is_none() && job.get(MIXED).is_some()).then(|| Box::new(direction(MIXED))),
        errors: unsigned(job, "total_err"),
        error: (error > 0).then(|| format!("fio reports error {error}")),
        wall_nanos: Nanos::from_millis(millis),
        // usr_cpu and sys_cpu cover only fio's own threads, in percent of their run time, summed over a group.
        thread_nanos: (fraction > 0.0).then_some(Nanos((fraction * unsigned(job, "job_runtime") as f64 * 1e6) as u64)),
        ..JobRecord::default()
    }
}

fn direction(job: &Value, name: &str, wall: Nanos, notes: &mut Vec<String>) -> Direction {
    let Some(part) = job.get(name) else { return Direction::default() };
    let ios = unsigned(part, "total_ios");
    let latency = if ios > 0 { latency(part, ios, wall, most_in_flight(job, wall), notes) } else { Latency::None };
    Direction { ios, bytes: Bytes(unsigned(part, "io_bytes")), short: unsigned(part, "short_ios"), latency }
}

/// The completion latency, or the total latency if only that has percentiles or can be. The notes tell of a latency that is not the first.
fn latency(part: &Value, ios: u64, wall: Nanos, in_flight: Option<f64>, notes: &mut Vec<String>) -> Latency {
    let read = |name: &str| {
        let found = part.get(name).filter(|found| found.get("N").is_none_or(|count| count.as_u64() != Some(0)));
        let found = found.ok_or("was not measured")?;
        let table = found.get("percentile").and_then(Value::as_object);
        let row = |(percent, value): (&String, &Value)| Some((percent.parse().ok()?, Nanos(value.as_u64()?)));
        let percentiles = table.into_iter().flatten().filter_map(row).collect();
        let (mean_nanos, max_nanos) = (number(found, "mean"), Nanos(unsigned(found, "max")));
        let latency = Latency::Reported { mean_nanos, max_nanos, percentiles };
        impossible(&latency, ios, wall, in_flight).map_or(Ok((latency, table.is_some())), Err)
    };
    let (latency, note) = match (read("clat_ns"), read("lat_ns")) {
        (Ok((completion, true)), _) | (Ok((completion, false)), Ok((_, false)) | Err(_)) => return completion,
        (completion, Ok((total, _))) => {
            let why = completion.err().unwrap_or("has no percentiles");
            (total, format!("fio's clat_ns {why}; its lat_ns, which contains the submission, is shown"))
        }
        (Err(why), Err(of_total)) => (Latency::None, format!("no latency: fio's clat_ns {why}, its lat_ns {of_total}")),
    };
    if !notes.contains(&note) {
        notes.push(note);
    }
    latency
}

/// The most I/Os of a job that were in flight at a time, from the distribution that fio reports: of powers of two, each up to the next.
/// `None` where the last one, which has no end, was reached.
fn most_in_flight(job: &Value, wall: Nanos) -> Option<f64> {
    let levels = job.get("iodepth_level")?.as_object()?;
    let reached =
        levels.iter().filter(|(_, percent)| percent.as_f64() > Some(0.0)).map(|(level, _)| level.parse::<u32>());
    let deepest = reached.collect::<std::result::Result<Vec<_>, _>>().ok()?.into_iter().max()?;
    // The members of a reported group, which run at the same time.
    let members = Nanos::from_millis(unsigned(job, "job_runtime")).as_f64() / wall.as_f64().max(1.0);
    Some(2.0 * f64::from(deepest) * members.ceil().max(1.0))
}

/// What a job has for an option, by itself or from `[global]`.
fn value(report: &Value, job: &Value, name: &str) -> Option<String> {
    let given = |options: Option<&Value>| options.and_then(|options| options.get(name)?.as_str()).map(str::to_owned);
    given(job.get("job options")).or_else(|| given(report.get("global options")))
}

/// Whether a job reads back what it wrote.
fn reads_back(report: &Value, job: &Value) -> bool {
    value(report, job, "verify").is_some_and(|how| how != "none" && how != "0")
        && value(report, job, "do_verify").as_deref() != Some("0")
}

/// Whether all reads of a job read back what it wrote, after it has written.
fn reads_only_back(report: &Value, job: &Value) -> bool {
    let way = value(report, job, "rw").or_else(|| value(report, job, "readwrite")).unwrap_or_default();
    reads_back(report, job) && way.contains("write") && !way.contains("readwrite")
}

/// The values of an option in these jobs; `None` among them if a job does not have it. An option that is 0 is not given.
fn values(report: &Value, jobs: &[Value], name: &str) -> BTreeSet<Option<String>> {
    jobs.iter().map(|job| value(report, job, name).filter(|value| value != "0")).collect()
}

/// Whether the jobs wait for different times before they start. Each copy draws its own from a range.
fn delays_differ(report: &Value, jobs: &[Value]) -> bool {
    let delays = values(report, jobs, "startdelay");
    delays.len() > 1 || delays.iter().flatten().any(|delay| delay.contains('-'))
}

/// Why fio's run times do not tell when these jobs did I/O, if an option makes it so. `sequential` jobs include groups that ran one
/// after the other.
fn unclear(report: &Value, jobs: &[Value], sequential: bool) -> Option<&'static str> {
    let given = |name: &str| values(report, jobs, name).iter().any(Option::is_some);
    if given("startdelay") && (sequential || delays_differ(report, jobs)) {
        Some("fio's run times leave out its startdelay")
    } else if jobs.iter().any(|job| reads_back(report, job)) {
        Some("fio's run times of writing and of reading it back (verify) follow each other")
    } else if ["wait_for", "exec_prerun", "exec_postrun"].into_iter().any(given) {
        Some("fio's run times leave out what it waits for (wait_for, exec_prerun, exec_postrun)")
    } else {
        None
    }
}

/// Why fio's counts leave out I/O of these jobs, if an option makes it so.
fn uncounted(report: &Value, jobs: &[Value], sequential: bool) -> Option<&'static str> {
    let ramps = values(report, jobs, "ramp_time");
    (ramps.iter().any(Option::is_some) && (sequential || ramps.len() > 1)).then_some(
        "fio's counts leave out the ramp_time of jobs that ramp at different times, but the machine paid for it, so there is no cost \
         per I/O; fio's own counts of the jobs are right",
    )
}

fn unsigned(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn number(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_the_time_of_io_are_found_between_other_text() {
        let text = "fio: a note\n{\n \"timestamp_ms\": 5000, \"jobs\": [\
            {\"jobname\": \"a\", \"groupid\": 0, \"job_runtime\": 1000, \"usr_cpu\": 10.0, \"sys_cpu\": 40.0,\
             \"job options\": {\"ioengine\": \"psync\"},\
             \"read\": {\"total_ios\": 7, \"io_bytes\": 28672, \"clat_ns\": {\"mean\": 5.5, \"max\": 9,\
             \"percentile\": {\"50.000000\": 5}}}},\
            {\"jobname\": \"b\", \"groupid\": 1, \"job_runtime\": 2000}]}\nRun status\n";
        let report = parse(text).unwrap();
        assert_eq!(report.io_unix_nanos, Some((2_000_000_000, 5_000_000_000)));
        assert_eq!(report.text, "fio: a note\n\nRun status\n");
        let job = &report.jobs[0];
        assert_eq!((job.read.ios, job.read.bytes, job.engine.as_str()), (7, Bytes(28_672), "fio psync"));
        assert_eq!(job.thread_nanos, Some(Nanos::from_millis(500)));
        assert!(parse("no json").is_err());
        assert!(parse("{\n \"jobs\": 5}").is_err());
        assert!(parse("{\n broken").is_err());
    }

    #[test]
    fn options_that_leave_gaps_are_named() {
        let unclear = |global: &str, jobs: &[(u64, &str)]| {
            let job = |(group, options): &(u64, &str)| {
                format!("{{\"groupid\": {group}, \"job_runtime\": 1000, \"job options\": {{{options}}}}}")
            };
            let jobs = jobs.iter().map(job).collect::<Vec<_>>().join(",");
            let text = format!("{{\n \"timestamp_ms\": 9000, \"global options\": {{{global}}}, \"jobs\": [{jobs}]}}\n");
            let report = parse(&text).unwrap();
            report.unclear.or(report.uncounted).unwrap_or_default()
        };
        let (delay, ramp) = ("\"startdelay\": \"1\"", "\"ramp_time\": \"1\"");
        // A start delay of all jobs, or a ramp of all at the same time, comes before all I/O.
        for (global, jobs) in [
            ("", &[(0, ""), (1, "")][..]),
            (delay, &[(0, ""), (0, "")]),
            (ramp, &[(0, ""), (0, "")]),
            (ramp, &[(0, delay)]),
        ] {
            assert_eq!(unclear(global, jobs), "", "{global} {jobs:?}");
        }
        for (global, jobs, named) in [
            ("", &[(0, ""), (0, delay)][..], "startdelay"),
            (delay, &[(0, ""), (1, "")], "startdelay"),
            ("\"startdelay\": \"1-2\"", &[(0, "")], "startdelay"),
            (ramp, &[(0, ""), (1, "")], "ramp_time"),
            ("", &[(0, ramp), (0, "")], "ramp_time"),
            ("", &[(0, "\"verify\": \"crc32c\"")], "verify"),
            ("", &[(0, "\"exec_prerun\": \"sleep 1\"")], "exec_prerun"),
        ] {
            assert!(unclear(global, jobs).contains(named), "{global} {jobs:?}");
        }
    }

    #[test]
    fn a_ramp_is_uncounted_beside_a_delay_too() {
        let job = |group: u64, options| serde_json::json!({"groupid": group, "job options": options});
        let report = serde_json::json!({});
        let jobs = [
            job(0, serde_json::json!({"startdelay": "1"})),
            job(1, serde_json::json!({"ramp_time": "3"})),
            job(1, serde_json::json!({"verify": "md5", "do_verify": "0"})),
        ];
        assert!(uncounted(&report, &jobs, true).is_some() && unclear(&report, &jobs, true).is_some());
        assert!(uncounted(&report, &jobs[..1], true).is_none() && unclear(&report, &jobs[1..], true).is_none());
    }

    #[test]
    fn members_of_a_reported_group_run_at_the_same_time() {
        let text = "{\n \"timestamp_ms\": 9000, \"jobs\": [{\"jobname\": \"a\", \"groupid\": 0,\
             \"job_runtime\": 8000, \"usr_cpu\": 10.0, \"sys_cpu\": 40.0,\
             \"read\": {\"total_ios\": 7, \"runtime\": 2000}, \"write\": {\"runtime\": 1990}}]}\n";
        let report = parse(text).unwrap();
        assert_eq!(report.io_unix_nanos, Some((7_000_000_000, 9_000_000_000)));
        assert_eq!(report.jobs[0].wall_nanos, Nanos::from_millis(2000));
        assert_eq!(report.jobs[0].thread_nanos, Some(Nanos::from_millis(4000)), "half of four CPUs' two seconds");
    }

    /// The latency of a report of 2505 reads in 2.004 s at depth 4 to 7, and what is said of it.
    fn told(latencies: &str) -> (Latency, Vec<String>) {
        let text = format!(
            "{{\n \"jobs\": [{{\"job_runtime\": 2004, \"iodepth_level\": {{\"1\": 0.1, \"4\": 99.9, \"8\": 0.0, \">=64\": 0.0}},\
             \"read\": {{\"total_ios\": 2505, \"runtime\": 2004, {latencies}}}}}]}}\n"
        );
        let mut report = parse(&text).unwrap();
        (report.jobs.remove(0).read.latency, report.notes)
    }

    #[test]
    fn a_latency_that_cannot_be_is_replaced_or_left_out_with_a_reason() {
        let table = |value: u64| format!("\"percentile\": {{\"50.000000\": {value}}}");
        let latency = |name: &str, count: u64, mean: f64, max: u64, more: &str| {
            format!("\"{name}\": {{\"N\": {count}, \"mean\": {mean}, \"max\": {max}{more}}}")
        };
        let right = latency("lat_ns", 2505, 3.2e6, 16_060_991, "");
        let with_table = |name: &str| latency(name, 2505, 3.1e6, 16_060_000, &format!(", {}", table(400_000)));
        let unmeasured = |name: &str| latency(name, 0, 0.0, 0, "");
        // sqthread_poll=1: the mean is within the run, and needs a thousand I/Os in flight.
        let many = latency("clat_ns", 2505, 814e6, 2_000_000_000, &format!(", {}", table(408_944_640)));
        let long = latency("clat_ns", 2505, 5e3, 1_330_000_000_000, "");
        let long_percentile = latency("clat_ns", 2505, 5e3, 6_000, &format!(", {}", table(9_000_000_000)));
        for (completion, total, mean, said) in [
            (many, right.clone(), 3.2e6, "would take more I/Os in flight than there were; its lat_ns"),
            (long, right.clone(), 3.2e6, "is longer than the run; its lat_ns"),
            (long_percentile, right.clone(), 3.2e6, "is longer than the run; its lat_ns"),
            // disable_clat=1; lat_percentiles=1 with clat_percentiles=0; the usual report.
            (unmeasured("clat_ns"), right.clone(), 3.2e6, "was not measured; its lat_ns"),
            (latency("clat_ns", 2505, 3.0e6, 16_000_000, ""), with_table("lat_ns"), 3.1e6, "has no percentiles"),
            (with_table("clat_ns"), right, 3.1e6, ""),
        ] {
            let (latency, notes) = told(&format!("{completion}, {total}"));
            let Latency::Reported { mean_nanos, .. } = latency else { panic!("{said}: {latency:?}") };
            assert_eq!(mean_nanos, mean, "{said}");
            assert_eq!(notes.len(), usize::from(!said.is_empty()), "{notes:?}");
            assert!(notes.concat().contains(said), "{notes:?}");
        }
        // gtod_reduce=1.
        let (latency, notes) = told(&format!("{}, {}", unmeasured("clat_ns"), unmeasured("lat_ns")));
        assert!(matches!(latency, Latency::None), "{latency:?}");
        assert_eq!(notes, ["no latency: fio's clat_ns was not measured, its lat_ns was not measured"]);
    }

    #[test]
    fn reading_back_follows_the_writing_and_other_reads_do_not() {
        let wall = |options: &str| {
            let text = format!(
                "{{\n \"jobs\": [{{\"job options\": {{{options}}}, \"read\": {{\"runtime\": 79}}, \"write\": {{\"runtime\": 71}}}}]}}\n"
            );
            parse(&text).unwrap().jobs[0].wall_nanos
        };
        assert_eq!(wall("\"rw\": \"write\", \"verify\": \"crc32c\""), Nanos::from_millis(150));
        assert_eq!(wall("\"rw\": \"randrw\", \"verify\": \"crc32c\""), Nanos::from_millis(79));
        assert_eq!(wall("\"rw\": \"randrw\""), Nanos::from_millis(79));
    }

    #[test]
    fn the_last_report_counts() {
        let report =
            |ios| format!("{{\n  \"jobs\" : [\n    {{\n \"read\": {{\n\"total_ios\": {ios}\n}}\n    }}\n  ]\n}}\n");
        let report = parse(&format!("{}{}done\n", report(1), report(5))).unwrap();
        assert_eq!((report.jobs.len(), report.jobs[0].read.ios), (1, 5));
    }

    #[test]
    fn flags_that_would_hide_the_output_are_refused() {
        for flag in
            ["--output=x", "-output=x", "--output-format=terse", "-minimal", "--status-interval=1", "--daemonize=p"]
        {
            assert!(is_in_the_way(flag), "{flag}");
        }
        assert!(!is_in_the_way("output.fio") && !is_in_the_way("--minimise=1"));
    }
}
