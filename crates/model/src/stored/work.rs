//! What differs in the work of two measurements, in words: "bs 4096 → 8192". Names, files and seeds are no work.

use crate::plan::value::word;
use crate::plan::{BlockSizes, JobPlan, Plan, Rates, Size};
use std::fmt::Display;

/// Differences that are named before the rest is only counted.
const NAMED: usize = 6;

/// The first differences, and how many more there are.
pub(crate) fn named(mut found: Vec<String>) -> Vec<String> {
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    found.extend((more > 0).then(|| format!("and {more} more")));
    found
}

/// "bs 4096 → 8192".
pub(crate) fn differs(name: &str, then: impl Display, now: impl Display) -> Option<String> {
    let (then, now) = (then.to_string(), now.to_string());
    (then != now).then(|| format!("{name} {then} → {now}"))
}

/// What differs between the jobs of two plans.
pub(crate) fn of_plans(then: &Plan, now: &Plan) -> Vec<String> {
    let (before, today) = (jobs(then), jobs(now));
    if before.len() != today.len() {
        return vec![format!("jobs {} → {}", before.len(), today.len())];
    }
    before.into_iter().zip(today).flat_map(|(before, today)| of_jobs(before, today)).collect()
}

fn jobs(plan: &Plan) -> Vec<&JobPlan> {
    plan.phases.iter().flat_map(|phase| &phase.jobs).collect()
}

/// The words that differ, where as many were said; otherwise the commands.
pub(crate) fn of_words(then: &[String], now: &[String]) -> Vec<String> {
    if then.len() != now.len() {
        return vec![format!("command `{}` → `{}`", then.join(" "), now.join(" "))];
    }
    then.iter().zip(now).filter_map(|(then, now)| differs("word", then, now)).collect()
}

fn of_jobs(then: &JobPlan, now: &JobPlan) -> Vec<String> {
    let (then, now) = (options(then), options(now));
    then.into_iter().zip(now).filter_map(|((name, then), (_, now))| differs(name, then, now)).collect()
}

/// Options that make the work what it is, with fio's names.
fn options(job: &JobPlan) -> Vec<(&'static str, String)> {
    // Taken apart whole: who adds an option says here whether it changes the work. What a comparison overrides (times,
    // delays) does not.
    let JobPlan {
        name: _,
        engine,
        access: _,
        order: _,
        read_percent,
        block_sizes,
        target,
        copies,
        group_reporting: _,
        depth,
        direct,
        duration,
        fsync_every,
        fdatasync_every,
        end_fsync,
        no_random_map,
        repeatable: _,
        seed: _,
        invalidate,
        fallocate,
        fixed_buffers,
        registered_files,
        rates,
        cpus_allowed,
        start_delay: _,
        think_time,
        percentiles: _,
        uri,
        path,
        spin_cycles,
        work_steps,
        inject,
        inject_at,
        allow_device_write: _,
    } = job;
    let chosen = |flag: &Option<bool>| flag.map_or("as the engine chooses".to_owned(), |flag| flag.to_string());
    let size = |size: &Option<Size>| size.map_or("all of the file".to_owned(), self::size);
    let cpus: Vec<String> = cpus_allowed.iter().map(ToString::to_string).collect();
    let mut options = vec![
        ("ioengine", engine.name().to_owned()),
        ("rw", job.rw().to_owned()),
        ("rwmixread", read_percent.to_string()),
        ("bs", blocks(block_sizes)),
        // One without a name is one too.
        ("files", target.files.len().max(1).to_string()),
        ("size", size(&target.size)),
        ("offset", self::size(target.offset)),
        ("numjobs", copies.to_string()),
        ("iodepth", depth.in_flight.to_string()),
        ("iodepth_batch_submit", depth.submit.to_string()),
        ("iodepth_batch_complete_min", depth.complete_min.to_string()),
        ("iodepth_batch_complete_max", depth.complete_max.to_string()),
        ("direct", direct.to_string()),
        ("io_size", size(&duration.io_size)),
        ("fsync", fsync_every.to_string()),
        ("fdatasync", fdatasync_every.to_string()),
        ("end_fsync", end_fsync.to_string()),
        ("norandommap", no_random_map.to_string()),
        ("invalidate", invalidate.map_or("not said".to_owned(), |invalidate| invalidate.to_string())),
        ("fallocate", format!("{fallocate:?}").to_lowercase()),
        ("uri", uri.clone().unwrap_or_else(|| "none".to_owned())),
        ("fixedbufs", chosen(fixed_buffers)),
        ("registerfiles", chosen(registered_files)),
        ("rate_iops", each(rates)),
        ("cpus_allowed", if cpus.is_empty() { "all".to_owned() } else { cpus.join(",") }),
        ("thinktime", format!("{} ns", think_time.0)),
        ("spin_cycles", spin_cycles.to_string()),
        ("work_steps", work_steps.to_string()),
        ("inject_ns", inject.0.to_string()),
        ("inject_at", word(*inject_at).to_owned()),
    ];
    options.extend(path.options());
    options
}

fn size(size: Size) -> String {
    match size {
        Size::Bytes(bytes) => bytes.0.to_string(),
        Size::Percent(percent) => format!("{percent}%"),
    }
}

fn blocks(sizes: &BlockSizes) -> String {
    let BlockSizes { read, write, trim } = sizes;
    if read == write && write == trim { read.0.to_string() } else { format!("{},{},{}", read.0, write.0, trim.0) }
}

fn each(rates: &Rates) -> String {
    let Rates { read, write, trim } = rates;
    format!("{read},{write},{trim}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Depth;
    use crate::unit::{Bytes, Nanos};

    #[test]
    fn what_matters_is_named_as_fio_does_and_the_rest_is_not() {
        let then = JobPlan::default();
        let same = JobPlan {
            name: "other".to_owned(),
            seed: Some(7),
            start_delay: Nanos(5),
            target: crate::plan::Target { files: vec!["elsewhere".to_owned()], ..then.target.clone() },
            ..then.clone()
        };
        assert!(of_jobs(&then, &same).is_empty());
        let other = JobPlan {
            block_sizes: BlockSizes { read: Bytes(8192), write: Bytes(8192), trim: Bytes(8192) },
            depth: Depth { in_flight: 8, ..Depth::default() },
            fixed_buffers: Some(true),
            ..same
        };
        let expected = ["bs 4096 → 8192", "iodepth 1 → 8", "fixedbufs as the engine chooses → true"];
        assert_eq!(of_jobs(&then, &other), expected);
    }

    #[test]
    fn of_commands_the_words_that_differ_are_named() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of_words(&words("fio a.fio"), &words("fio b.fio")), ["word a.fio → b.fio"]);
        assert_eq!(of_words(&words("fio a"), &words("fio a b")), ["command `fio a` → `fio a b`"]);
    }
}
