//! Checks what a job says about its files.

use super::Complaint;
use crate::plan::job::{Access, EngineKind, JobPlan, Medium, Order, Size};
use crate::plan::value::Quoted;
use crate::unit::Bytes;
use crate::warning::{Code, Warning};

/// A name that fio reads as standard input or output, an addition without a size, data that could never be there.
pub(super) fn complaint(job: &JobPlan) -> Option<Complaint> {
    if job.engine.medium() != Medium::Files {
        return None;
    }
    let making = job.files.making;
    if job.target.files.iter().any(|name| name == "-") {
        let why =
            "'-' means standard input or output to fio, which are no storage; use a file, './-' if that is its name";
        return Some(("filename", why.to_owned()));
    }
    if job.engine == EngineKind::Mmap && (making.on_open || making.unlink_each_loop) {
        let option = if making.on_open { "create_on_open" } else { "unlink_each_loop" };
        return Some((
            option,
            "ioengine=mmap maps all files before the first I/O; leave it out, or use psync".to_owned(),
        ));
    }
    if making.append && !job.access.writes() {
        return Some((
            "file_append",
            "the job does not write, and there is nothing behind the end; leave it out".to_owned(),
        ));
    }
    if making.append && job.files.each.is_none() && !matches!(job.target.size, Some(Size::Bytes(_))) {
        return Some(("file_append", "add size= in bytes, how much is added".to_owned()));
    }
    if let Some(option) = beside_append(job) {
        let why = "beside file_append it makes fio write elsewhere than once behind the end; leave one of them out \
                   (iotoll cost -- fio … measures what fio does)";
        return Some((option, why.to_owned()));
    }
    if making.fill && job.access != Access::Write {
        return Some(("fill_device", "only a job of writes fills a device; use rw=write or leave it out".to_owned()));
    }
    None
}

/// An option with which a job that appends does not write once behind the end of each file.
fn beside_append(job: &JobPlan) -> Option<&'static str> {
    let more = match (job.duration.io_size, job.target.size) {
        (Some(Size::Bytes(moved)), Some(Size::Bytes(added))) => moved > added,
        (io_size, _) => io_size.is_some(),
    };
    let options = [
        (job.requests.skip != 0 && job.order == Order::Sequential, "rw"),
        (job.target.offset != Size::Bytes(Bytes(0)), "offset"),
        (more, "io_size"),
    ];
    options.into_iter().find_map(|(given, option)| (given && job.files.making.append).then_some(option))
}

/// What has no effect beside `filename`, as in fio.
pub(super) fn ignored(job: &JobPlan) -> impl Iterator<Item = Warning> {
    let given = [
        (job.files.count.is_some() && job.files.folder.is_none(), "nrfiles"),
        (job.files.name_format.is_some(), "filename_format"),
    ];
    let given = given.into_iter().filter(|(given, _)| *given && !job.target.files.is_empty());
    given.map(|(_, name)| {
        let why = format!("job {}: {name} has no effect beside filename, as in fio", Quoted(&job.name));
        Warning::new(Code::OptionIgnored, why)
    })
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
