//! Checks of jobs whose I/Os are operations on names: each file has one, and no data is moved.

use super::{Complaint, differs};
use crate::plan::draft::Draft;
use crate::plan::job::{
    Access, BlockSizes, FileSize, JobPlan, Medium, Opening, RegionPlan, RequestPlan, Service, Size, Syncing,
};
use crate::unit::Bytes;
use crate::warning::Warning;

/// What such a job cannot do.
pub(super) fn complaint(job: &JobPlan) -> Option<Complaint> {
    if job.engine.medium() != Medium::Names {
        return None;
    }
    let engine = job.engine.name();
    if matches!(job.access, Access::Trim | Access::TrimWrite) {
        return Some(("rw", format!("ioengine={engine} has no blocks to trim; use rw=read or leave it out")));
    }
    if job.files.making.unlink_each_loop {
        let why = format!("ioengine={engine} has no files to remove between passes; leave it out");
        return Some(("unlink_each_loop", why));
    }
    if job.files.making.on_open && !job.engine.makes_names() {
        let why = format!("ioengine={engine} opens no file, so that none would be made; leave it out");
        return Some(("create_on_open", why));
    }
    if !job.engine.makes_names() && !job.engine.uses_up_names() {
        return None;
    }
    let again = |option| {
        let what = if job.engine.makes_names() { "made" } else { "removed" };
        let why =
            format!("ioengine={engine} finds each file {what} after one pass; leave {option} out, and raise nrfiles=");
        Some((option, why))
    };
    if job.duration.loops > 1 {
        return again("loops");
    }
    if job.duration.time_based {
        return again("time_based");
    }
    let repeats = matches!(job.files.service, Service::Zipf { .. } | Service::Pareto { .. } | Service::Gauss { .. });
    if repeats { again("file_service_type") } else { None }
}

/// Gives each file one request, and says where that is otherwise than the options say.
pub(super) fn one_request_each(draft: &mut Draft) -> Vec<Warning> {
    /// Options about data.
    const WITHOUT_EFFECT: [&str; 22] = [
        "bsrange",
        "bssplit",
        "blockalign",
        "offset",
        "offset_increment",
        "io_size",
        "percentage_random",
        "random_distribution",
        "zonemode",
        "direct",
        "sync",
        "fsync",
        "fdatasync",
        "end_fsync",
        "fsync_on_close",
        "sync_file_range",
        "file_append",
        "fill_device",
        "overwrite",
        "pre_read",
        "fadvise_hint",
        "write_hint",
    ];
    if draft.job.engine.medium() != Medium::Names {
        return Vec::new();
    }
    let engine = draft.job.engine.name();
    let given = WITHOUT_EFFECT.into_iter().filter(|name| draft.origin(name).is_some());
    let mut warnings: Vec<Warning> =
        given.map(|name| differs(&draft.job, format!("{name} has no effect with ioengine={engine}"))).collect();
    let job = &mut draft.job;
    if job.files.each.is_none()
        && let Some(Size::Bytes(all)) = job.target.size
    {
        let each = Bytes(all.0 / (job.file_count() as u64).max(1));
        job.files.each = Some(FileSize { least: each, most: each });
    }
    let block = if job.access == Access::Write { job.block_sizes.write } else { job.block_sizes.read };
    let blocks = job.files.each.map_or(1, |each| each.most.0 / block.0.max(1));
    if blocks > 1 {
        let what = format!("each file has one I/O; fio counts {blocks}, of which the first does all");
        warnings.push(differs(job, what));
    }
    job.block_sizes = BlockSizes::default();
    (job.requests, job.region, job.random_run) = (RequestPlan::default(), RegionPlan::default(), 1);
    (job.target.size, job.target.offset, job.duration.io_size) = (None, Size::Bytes(Bytes(0)), None);
    (job.direct, job.fsync_every, job.fdatasync_every, job.end_fsync) = (false, 0, 0, false);
    (job.files.syncing, job.files.opening) = (Syncing::default(), Opening::default());
    let making = &mut job.files.making;
    (making.append, making.fill, making.overwrite) = (false, false, false);
    warnings
}

#[cfg(test)]
mod tests {
    use crate::plan::{JobPlan, Settings, parse};
    use crate::unit::Bytes;

    fn parsed(options: &str) -> Result<(JobPlan, String), String> {
        let flags: Vec<String> = format!("--name=a --nrfiles=3 {options}").split(' ').map(str::to_owned).collect();
        let plan = parse::flags(&flags, &Settings::default()).map_err(|error| error.to_string())?;
        let said = plan.warnings.iter().map(|warning| warning.message.clone()).collect::<Vec<_>>().join("\n");
        Ok((plan.phases[0].jobs[0].clone(), said))
    }

    #[test]
    fn each_file_has_one_request_whatever_its_size() {
        let (job, said) = parsed("--ioengine=filestat --filesize=16k").unwrap();
        assert_eq!((job.block_sizes.read, job.files.each.unwrap().most), (Bytes(4096), Bytes(16 << 10)));
        assert!(said.contains("fio counts 4"), "{said}");
        let (job, said) = parsed("--ioengine=filecreate --size=12k").unwrap();
        assert_eq!((job.files.each.unwrap().most, said.as_str()), (Bytes(4096), ""));
        let (_, said) = parsed("--ioengine=filedelete --filesize=512 --bs=512 --direct=1").unwrap();
        assert_eq!(said, "job 'a': direct has no effect with ioengine=filedelete");
        parsed("--ioengine=dirstat --loops=3 --stat_type=statx").unwrap();
    }

    #[test]
    fn what_names_cannot_do_is_refused_with_the_mend() {
        for (options, says) in [
            ("--ioengine=filedelete --loops=2", "raise nrfiles="),
            ("--ioengine=filecreate --time_based --runtime=1s", "leave time_based out"),
            ("--ioengine=dircreate --file_service_type=zipf", "leave file_service_type out"),
            ("--ioengine=filestat --create_on_open=1", "opens no file"),
            ("--ioengine=filestat --unlink_each_loop=1", "leave it out"),
            ("--ioengine=dirdelete --rw=trim", "no blocks to trim"),
            ("--ioengine=filestat --verify=md5", "keeps nothing"),
        ] {
            let why = parsed(options).unwrap_err();
            assert!(why.contains(says), "{options}: {why}");
        }
    }
}
