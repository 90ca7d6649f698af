//! Checks what a job says about its files.

use super::caveat;
use crate::plan::job::{JobPlan, Medium};
use crate::warning::{Code, Warning};

/// What has no effect beside `filename`, as in fio.
pub(super) fn ignored(job: &JobPlan) -> impl Iterator<Item = Warning> {
    let given = [
        (job.files.count.is_some() && job.files.folder.is_none(), "nrfiles"),
        (job.files.name_format.is_some(), "filename_format"),
    ];
    let given = given.into_iter().filter(|(given, _)| *given && !job.target.files.is_empty());
    given.map(|(_, name)| caveat(Code::OptionIgnored, job, &format!("{name} has no effect beside filename, as in fio")))
}

/// Files stay open from pass to pass; fio closes and opens them again.
pub(super) fn closed_once(job: &JobPlan) -> Option<String> {
    let several = job.duration.loops > 1 || job.duration.io_size.is_some() || job.duration.time_based;
    let differs = job.files.syncing.on_close && job.access.writes() && several && job.engine.medium() == Medium::Files;
    let what = if job.files.open > 0 {
        "fsync_on_close calls fsync when a file gives its place to another, and at the end; fio after each pass too"
    } else {
        "fsync_on_close calls fsync once for each file, at the end; fio closes files after each pass"
    };
    differs.then(|| what.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::plan::{Plan, Settings, parse};

    fn parsed(options: &str) -> Result<Plan, String> {
        let flags: Vec<String> = format!("--name=a --rw=write {options}").split(' ').map(str::to_owned).collect();
        parse::flags(&flags, &Settings::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_cannot_be_done_with_files_is_refused_with_the_mend() {
        for (options, says) in [
            ("--filename=- --size=1m", "'-' means standard input"),
            ("--file_append=1", "add size= in bytes"),
            ("--file_append=1 --size=1m --rw=read", "leave it out"),
            ("--file_append=1 --size=1m --rw=write:4k", "iotoll cost -- fio … measures"),
            ("--file_append=1 --size=1m --rw=write:-4k", "option '--rw'"),
            ("--file_append=1 --size=1m --io_size=2m", "option '--io_size'"),
            ("--file_append=1 --size=1m --offset=4k", "option '--offset'"),
            ("--fill_device=1 --rw=randread", "only a job of writes"),
            ("--ioengine=mmap --size=64k --unlink_each_loop=1", "ioengine=mmap maps all files before the first I/O"),
            ("--filesize=2k", "does not fit into a file of"),
            ("--nrfiles=3 --size=8k", "does not fit into a file of"),
            ("--ioscheduler=../x", "is no name of a scheduler"),
            ("--lockfile=exclusive", "use stonewall"),
        ] {
            let why = parsed(options).unwrap_err();
            assert!(why.contains(says), "{options}: {why}");
        }
        let plan = parsed("--size=1m --ioscheduler=bfq").unwrap();
        assert!(plan.only_for_run().unwrap().contains("--candidate-set file:/sys/block/DEVICE/queue/scheduler=bfq"));
        for options in [
            "--filename=./- --size=1m",
            "--file_append=1 --size=1m",
            "--file_append=1 --size=1m --io_size=64k",
            "--ioengine=null --filesize=1m --nrfiles=4",
        ] {
            parsed(options).unwrap();
        }
    }

    #[test]
    fn what_has_no_effect_or_differs_is_said() {
        let warned =
            |options| parsed(options).unwrap().warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>();
        assert!(warned("--size=1m --nrfiles=2").is_empty());
        let both = warned("--size=1m --nrfiles=2 --filename_format=x --filename=y");
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both.iter().all(|message| message.contains("no effect beside filename")));
        assert!(warned("--size=1m --loops=2 --fsync_on_close=1")[0].contains("closes files after each pass"));
        assert!(
            warned("--size=1m --sync_file_range=write:2 --nrfiles=2")[0]
                .contains("sync_file_range after every 2 writes")
        );
    }
}
