//! Groups of fio's jobs: which ran at the same time, when, and what fio's figures leave open.
//!
//! fio reports how long each job did I/O, not when. Jobs behind a `stonewall` start when all before them have ended, those behind a
//! `new_group` do not wait, and the JSON has neither option. So the lives of fio's processes tell which jobs ran at the same time.

use super::super::running::Life;
use super::{unsigned, wall_millis};
use model::record::{IoInterval, JobGroup};
use model::unit::Nanos;
use serde_json::Value;
use std::collections::BTreeSet;

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
pub(super) fn reads_only_back(report: &Value, job: &Value) -> bool {
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
pub(super) fn unclear(report: &Value, jobs: &[Value], sequential: bool) -> Option<&'static str> {
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
pub(super) fn uncounted(report: &Value, jobs: &[Value], sequential: bool) -> Option<&'static str> {
    let ramps = values(report, jobs, "ramp_time");
    (ramps.iter().any(Option::is_some) && (sequential || ramps.len() > 1)).then_some(
        "fio's counts leave out the ramp_time of jobs that ramp at different times, but the machine paid for it, so there is no cost \
         per I/O; fio's own counts of the jobs are right",
    )
}

/// Jobs that ran at the same time, from the first beginning to the last end.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    tasks: usize,
    begin: Nanos,
    seen: Nanos,
    missed: Nanos,
}

/// The groups of jobs that ran one after the other, each with the time of its I/O. Empty if the lives do not tell which job ran when.
pub(super) fn groups(report: &Value, jobs: &[Value], lives: &[Life]) -> Vec<JobGroup> {
    let clusters = clusters(&of_jobs(lives));
    let counts = split(report, jobs, &clusters).unwrap_or_default();
    if counts.len() > 1 && (delays_differ(report, jobs) || values(report, jobs, "wait_for").iter().any(Option::is_some))
    {
        // Jobs need not have started in their order.
        return Vec::new();
    }
    let mut rest = jobs;
    let mut found = Vec::new();
    for (count, cluster) in counts.iter().zip(&clusters) {
        let (own, later) = rest.split_at(*count);
        let Some(group) = group(report, own, cluster) else { return Vec::new() };
        found.push(group);
        rest = later;
    }
    found
}

/// One group. `None` if its jobs cannot have done their I/O within the cluster.
fn group(report: &Value, jobs: &[Value], cluster: &Cluster) -> Option<JobGroup> {
    /// A begin is up to 10 ms early (a tick of the kernel), and fio rounds to milliseconds.
    const SLACK: Nanos = Nanos(20_000_000);
    let runtime = Nanos::from_millis(jobs.iter().map(|job| wall_millis(report, job)).max().unwrap_or(0));
    if cluster.missed.since(cluster.begin) + SLACK < runtime {
        return None;
    }
    let (begin, end) = if unclear(report, jobs, false).is_some() {
        // All of its I/O is in this time.
        (cluster.begin, cluster.missed)
    } else {
        // A job sets up before its run time, and ends soon after it.
        let earliest = cluster.seen.max(cluster.begin + runtime).min(cluster.missed);
        let end = earliest + Nanos(cluster.missed.since(earliest).0 / 2);
        (Nanos(end.0.saturating_sub(runtime.0)), end)
    };
    Some(JobGroup {
        jobs: jobs.len(),
        io_interval: IoInterval { begin_nanos: begin, end_nanos: end },
        uncounted: uncounted(report, jobs, false).is_some(),
    })
}

/// The lives of jobs. A job is a process of its own, or with `thread` a thread; fio has one more thread, which begins before all jobs and
/// ends after them.
fn of_jobs(lives: &[Life]) -> Vec<Life> {
    if lives.iter().any(|life| !life.thread) {
        return lives.iter().filter(|life| !life.thread).copied().collect();
    }
    let last = lives.iter().map(|life| life.missed).max().unwrap_or_default();
    let helper = lives.iter().position(|life| life.missed == last);
    let others = lives.iter().enumerate().filter(|(place, _)| Some(*place) > helper);
    others.map(|(_, life)| *life).collect()
}

/// Lives that overlap; they are in the order of their beginnings.
fn clusters(lives: &[Life]) -> Vec<Cluster> {
    let mut found: Vec<Cluster> = Vec::new();
    for life in lives {
        match found.last_mut() {
            Some(open) if life.begin <= open.seen => {
                open.tasks += 1;
                open.seen = open.seen.max(life.seen);
                open.missed = open.missed.max(life.missed);
            }
            _ => found.push(Cluster { tasks: 1, begin: life.begin, seen: life.seen, missed: life.missed }),
        }
    }
    found
}

/// Number of entries of the report in each cluster: their tasks tell, or that each group has one cluster. `None` if neither fits.
fn split(report: &Value, jobs: &[Value], clusters: &[Cluster]) -> Option<Vec<usize>> {
    let group = |job: &Value| unsigned(job, "groupid");
    let groups: Vec<usize> = jobs.chunk_by(|a, b| group(a) == group(b)).map(<[Value]>::len).collect();
    if groups.len() == clusters.len() {
        return Some(groups);
    }
    let ends = |counts: &[usize]| -> Vec<usize> {
        let sums = counts.iter().scan(0_usize, |sum, count| {
            *sum = sum.saturating_add(*count);
            Some(*sum)
        });
        sums.collect()
    };
    // Entries up to the end of each cluster. fio does not tell whether copies share an entry (group_reporting): without that, each entry
    // is a task.
    let of_clusters = ends(&clusters.iter().map(|it| it.tasks).collect::<Vec<_>>());
    let cut = |tasks: &[usize]| -> Option<Vec<usize>> {
        let of_entries = ends(tasks);
        of_clusters.iter().map(|end| of_entries.binary_search(end).ok().map(|place| place + 1)).collect()
    };
    let copies: Vec<usize> = jobs.iter().map(|job| copies(report, job)).collect();
    let all = |cut: &Vec<usize>| cut.last() == Some(&jobs.len());
    let cut = cut(&vec![1; jobs.len()]).filter(all).or_else(|| cut(&copies).filter(all))?;
    // No group is in two clusters, and none is left over.
    let bounds = ends(&groups);
    let whole = cut.iter().all(|end| bounds.binary_search(end).is_ok());
    let starts = std::iter::once(0).chain(cut.iter().copied());
    whole.then(|| cut.iter().zip(starts).map(|(end, start)| end - start).collect())
}

/// Number of copies of the job of an entry.
fn copies(report: &Value, job: &Value) -> usize {
    let numjobs = values(report, std::slice::from_ref(job), "numjobs").pop_first().flatten();
    numjobs.and_then(|count| count.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Seconds: begin, end.
    fn lives(times: &[(bool, f64, f64)]) -> Vec<Life> {
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        let life = |&(thread, begin, end): &(bool, f64, f64)| Life {
            thread,
            begin: nanos(begin),
            seen: nanos(end - 0.05),
            missed: nanos(end + 0.05),
        };
        times.iter().map(life).collect()
    }

    fn job(group: u64, millis: u64, options: Value) -> Value {
        json!({"groupid": group, "job options": options, "read": {"runtime": millis}})
    }

    /// Jobs, begin and end in milliseconds of each group.
    fn groups_of(jobs: &[Value], lives: &[Life]) -> Vec<(usize, u64, u64)> {
        let groups = groups(&json!({}), jobs, lives);
        let millis = |nanos: Nanos| nanos.0 / 1_000_000;
        groups
            .iter()
            .map(|it| (it.jobs, millis(it.io_interval.begin_nanos), millis(it.io_interval.end_nanos)))
            .collect()
    }

    #[test]
    fn groups_that_ran_one_after_the_other_are_told_apart_from_those_that_did_not_wait() {
        let none = || json!({});
        let jobs = [
            job(0, 1000, none()),
            job(1, 2000, none()),
            job(1, 2000, none()),
            job(2, 990, none()),
            job(3, 1000, none()),
        ];
        let ran = lives(&[
            (false, 10.0, 11.05),
            (false, 11.1, 13.15),
            (false, 11.12, 13.15),
            (false, 13.2, 14.25),
            (false, 13.2, 14.25),
        ]);
        // The run time ends halfway between the earliest and the latest end that is possible.
        let expected = [(1, 10_050, 11_050), (2, 11_150, 13_150), (2, 13_250, 14_250)];
        assert_eq!(groups_of(&jobs, &ran), expected);
        // Threads, beside one that is none of the jobs.
        let threads: Vec<Life> = ran.iter().map(|life| Life { thread: true, ..*life }).collect();
        let helper = lives(&[(true, 9.9, 9.95), (true, 10.0, 14.3)]);
        assert_eq!(groups_of(&jobs, &[helper, threads].concat()), expected);
        // The entry of a group stands for its copies.
        let reported =
            [job(0, 1000, none()), job(1, 2000, json!({"numjobs": "2"})), job(2, 990, none()), job(3, 1000, none())];
        assert_eq!(groups_of(&reported, &ran), [(1, 10_050, 11_050), (1, 11_150, 13_150), (2, 13_250, 14_250)]);
    }

    #[test]
    fn lives_that_do_not_fit_the_report_tell_nothing() {
        let none = || json!({});
        let jobs = [job(0, 1000, none()), job(0, 1000, none()), job(1, 1000, none())];
        // A job too short to be seen; jobs of one group that ran one after the other; a group that is longer than its tasks lived.
        let missed = lives(&[(false, 10.0, 11.0), (false, 11.2, 12.2), (false, 12.5, 13.5)]);
        assert_eq!(groups_of(&jobs, &missed), []);
        assert_eq!(groups_of(&jobs, &missed[..1]), []);
        assert_eq!(groups_of(&jobs, &[]), []);
        let short = lives(&[(false, 10.0, 11.0), (false, 10.0, 11.0), (false, 11.2, 11.5)]);
        assert_eq!(groups_of(&jobs, &short), []);
        let delayed = [job(0, 1000, json!({"startdelay": "3"})), job(1, 1000, none())];
        assert_eq!(groups_of(&delayed, &lives(&[(false, 10.0, 11.0), (false, 13.0, 14.0)])), [], "not in their order");
    }

    #[test]
    fn a_ramp_is_uncounted_beside_a_delay_too() {
        let jobs = [job(0, 1000, json!({"startdelay": "1"})), job(1, 1000, json!({"ramp_time": "3"}))];
        assert!(uncounted(&json!({}), &jobs, true).is_some() && unclear(&json!({}), &jobs, true).is_some());
        assert!(uncounted(&json!({}), &jobs[..1], true).is_none() && unclear(&json!({}), &jobs[1..], true).is_none());
    }

    #[test]
    fn a_gap_within_a_part_is_its_own() {
        let ramp = |value: &str| json!({"ramp_time": value});
        let ran = lives(&[(false, 10.0, 12.0), (false, 12.2, 14.2), (false, 12.2, 14.2)]);
        let found = |options: [Value; 3]| {
            let [a, b, c] = options;
            groups(&json!({}), &[job(0, 1000, a), job(1, 1000, b), job(1, 1000, c)], &ran)
        };
        let uncounted = |groups: &[JobGroup]| groups.iter().map(|group| group.uncounted).collect::<Vec<_>>();
        assert_eq!(uncounted(&found([ramp("1"), ramp("1"), ramp("1")])), [false, false]);
        assert_eq!(uncounted(&found([ramp("1"), ramp("1"), ramp("2")])), [false, true]);
        let one_reads_back = [json!({"verify": "md5"}), json!({"verify": "md5", "do_verify": "0"}), json!({})];
        let jobs = one_reads_back.map(|options| job(0, 1000, options));
        assert!(unclear(&json!({}), &jobs, false).is_some_and(|why| why.contains("verify")));
        assert!(unclear(&json!({}), &jobs[1..], false).is_none());
        let verified = found([json!({"verify": "crc32c"}), json!({}), json!({})]);
        let whole = verified.first().map(|group| group.io_interval.end_nanos.since(group.io_interval.begin_nanos));
        assert_eq!(whole, Some(Nanos::from_millis(2050)), "reading back is I/O too");
    }
}
