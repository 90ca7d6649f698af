//! The options of a job's files: names, sizes, how they are made, opened and synced.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    extent("filename", text(FILENAME), Words("JOB.COPY.0, a file for each copy"), "/tmp/a:/tmp/b", "a::b")
        .form("file names separated by ':', a ':' within a name as '\\:'")
        .help("Use these files or devices, shared by all copies of the job. As in fio, another filename adds to them"),
    extent("directory", text(DIRECTORY), Words("the current directory"), "/tmp", "/a:/b")
        .form("a directory, a ':' within its name as '\\:'")
        .help("Prefix file names with this directory"),
    extent("nrfiles", count("files", 1..=MANY, field!(files.count)), Words("1"), "4", "0")
        .also(&["nr_files"])
        .help("Number of files of each copy of a job without filename. size is divided among them"),
    extent(
        "filesize",
        number("bytes", 1..=LARGEST_FILE, field!(files.each)),
        Words("an equal part of size"),
        "1m",
        "4k-1m",
    )
    .help("Size of each file. With size, the job moves at most that much in each pass"),
    said("openfiles", "all files of a job are open from its first I/O to its last"),
    work("file_service_type", text(SERVICE), Is("roundrobin"), "random:16", "shuffled")
        .form("roundrobin or random[:N]")
        .help("Which file is next. random switches after N I/Os, 1 by default"),
    extent(
        "filename_format",
        text(parsed!(files.name_format, name_format)),
        Required,
        "$jobname/$jobnum.$filenum",
        "$host.$filenum",
    )
    .otherwise("$jobname.$jobnum.$filenum")
    .form("a name with $jobname, $jobnum, $filenum, $clientuid")
    .help(
        "Names of the files of a job without filename; $jobname, $jobnum and $filenum are replaced, $clientuid \
         by nothing",
    ),
    work("direct", boolean(DIRECT), Is("0"), "1", "yes").help("Bypass the page cache with O_DIRECT"),
    other("buffered", boolean(BUFFERED), Is("1"), "0", "2").help("Use the page cache; the opposite of direct"),
    work("invalidate", boolean(field!(files.invalidate)), Words("1; in a comparison, `--cache` decides"), "0", "2")
        .help("Drop the file from the page cache before the job"),
    other("unlink", boolean(field!(files.unlink)), Is("0"), "1", "2")
        .help("Remove the job's files when the measurement ends; unlike in fio only those that it made"),
    work("fallocate", word_of!(files.fallocate), Is("native"), "none", "always")
        .help("Select how to preallocate a file that is laid out"),
    work("fsync", count("writes", 0..=MANY, field!(sync.every)), Is("0"), "32", "-1")
        .help("Call fsync after every N writes. 0 means never"),
    work("fdatasync", count("writes", 0..=MANY, field!(sync.data_every)), Is("0"), "32", "-1")
        .help("Call fdatasync after every N writes. 0 means never"),
    work("end_fsync", boolean(field!(sync.at_end)), Is("0"), "1", "2")
        .help("Call fsync once when the job has written everything"),
];

pub(super) static CALLS: &[JobOption] = &[
    work("overwrite", boolean(field!(files.making.overwrite)), Is("0"), "1", "2")
        .help("Write all of a file that is made for a job of writes before the job, so that the job overwrites data"),
    work("create_on_open", boolean(field!(files.making.on_open)), Is("0"), "1", "2")
        .help("Make missing files empty, instead of laying them out"),
    other("allow_file_create", boolean(field_not!(files.making.forbidden)), Is("1"), "0", "2")
        .help("Make files that are missing or too short; with 0 they are an error"),
    work("pre_read", boolean(field!(files.opening.pre_read)), Is("0"), "1", "2")
        .help("Read the files into the page cache before the job, and do not drop them"),
    work("fadvise_hint", boolean(field!(files.opening.advises)), Is("1"), "0", "2")
        .help("Tell the kernel the order of the I/O"),
    work("sync", word_of!(files.opening.sync), Is("none"), "dsync", "2")
        .help("Open the files with O_SYNC (sync, 1) or O_DSYNC (dsync), so that each write is durable when it returns"),
    work("fsync_on_close", boolean(field!(sync.on_close)), Is("0"), "1", "2")
        .help("Call fsync for each file that the job may write to when it is closed"),
    nothing("create_serialize", "files are made one after the other, before the measurement"),
    nothing("allow_mounted_write", "iotoll never writes to a device that is mounted or in use otherwise"),
];

// Places that are no fields.
const FILENAME: Place<SetText> = place(
    |job| typed::shown(&job.target.files),
    |draft, text| {
        let files = file_names(text)?;
        draft.more_files = !draft.job.target.files.is_empty();
        draft.job.target.files.extend(files);
        Ok(())
    },
);
const DIRECTORY: Place<SetText> = place(
    |job| typed::shown(&job.target.directory.iter().cloned().collect::<Vec<_>>()),
    |draft, text| match file_names(text)?.as_slice() {
        [one] => {
            draft.job.target.directory = Some(one.clone());
            Ok(())
        }
        _ => Err(Wrong::because(text, "has several directories; write a job for each")),
    },
);
const DIRECT: Place<Set<bool>> = place(
    |job| typed::shown(&job.direct),
    |draft, on| {
        draft.job.direct = on;
        draft.cache.direct = Some(on);
    },
);
const BUFFERED: Place<Set<bool>> = unshown(|draft, on| {
    draft.job.direct = !on;
    draft.cache.buffered = Some(on);
});

const SERVICE: Place<SetText> = place(
    |job| Some(job.files.service.map_or_else(|| "roundrobin".to_owned(), |ios| format!("random:{ios}"))),
    |draft, text| {
        draft.job.files.service = match text.split_once(':') {
            None if text == "roundrobin" => None,
            None if text == "random" => Some(1),
            Some(("random", ios)) => Some(count_in(ios, &(1..=MANY))?),
            _ => return Err(Wrong::because(text, "is not supported")),
        };
        Ok(())
    },
);
