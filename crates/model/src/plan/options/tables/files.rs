//! The options of a job's files: names, how they are made and opened, when they are synced.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    extent("filename", Words("JOB.COPY.0, a file for each copy"), "/tmp/a:/tmp/b", "a::b")
        .help("Use these files or devices, shared by all copies of the job. As in fio, another filename adds to them")
        .text(
            "file names separated by ':', a ':' within a name as '\\:'",
            place(
                |job| shown(&job.target.files),
                |draft, text| file_names(text).map(|files| draft.job.target.files.extend(files)),
            ),
        ),
    extent("directory", Words("the current directory"), "/tmp", "/a::/b")
        .help(
            "Prefix file names with this directory. Of several, copies of a job without filename take turns among \
             them",
        )
        .text(
            "directories separated by ':', a ':' within a name as '\\:'",
            place(
                |job| {
                    shown(&job.target.directory.iter().chain(&job.target.more_directories).cloned().collect::<Vec<_>>())
                },
                |draft, text| {
                    let mut directories = file_names(text)?.into_iter();
                    draft.job.target.directory = directories.next();
                    draft.job.target.more_directories = directories.collect();
                    Ok(())
                },
            ),
        ),
    extent("nrfiles", Words("1; of opendir all"), "4", "0")
        .help(
            "Number of files of each copy of a job without filename. size is divided among them; of opendir, take \
             the first of this number",
        )
        .also(&["nr_files"])
        .count("files", 1..=MANY, field!(files.count)),
    extent("filesize", Words("an equal part of size"), "4k-1m", "1m-4k")
        .help(
            "Size of each file. Of a range, each file gets a random size in whole blocks, the same in each run. \
             With size, the job moves at most that much in each pass",
        )
        .text("a size in bytes, or two as LEAST-MOST", parsed!(files.each, value::files::size)),
    work("openfiles", Is("0"), "16", "-1")
        .help(
            "Keep at most this number of files open at the same time: a file is closed when it is done, and the \
             next one is opened in the measured loop. 0 means all, before the loop",
        )
        .count("files", 0..=MANY, field!(files.open)),
    work("file_service_type", Is("roundrobin"), "random:16", "shuffled")
        .help(
            "Which file is next. roundrobin and random switch after N I/Os, 1 by default; zipf, pareto, normal and \
             gauss take a parameter (1.1, 0.2, 0, 0 by default)",
        )
        .text(
            "roundrobin[:N], sequential, random[:N], zipf[:THETA], pareto[:POWER], normal[:PERCENT] or gauss[:PERCENT]",
            parsed!(files.service, value::files::service),
        ),
    extent("filename_format", Words("$jobname.$jobnum.$filenum"), "$jobname/$jobnum.$filenum", "$host.$filenum")
        .help(
            "Names of the files of a job without filename; $jobname, $jobnum and $filenum are replaced, $clientuid \
             by nothing",
        )
        .text(
            "a name with $jobname, $jobnum, $filenum, $clientuid",
            parsed!(files.name_format, value::files::name_format),
        ),
    extent("opendir", Words("none"), "/tmp/many", "a\tb")
        .help("Use the files in this folder and the folders in it, in order of their names, before those of filename")
        .text("a folder", parsed!(files.folder, value::files::folder)),
    work("direct", Is("0"), "1", "yes").help("Bypass the page cache with O_DIRECT").boolean(place(
        |job| shown(&job.direct),
        |draft, on| {
            draft.job.direct = on;
            draft.cache.direct = Some(on);
        },
    )),
    other("buffered", Is("1"), "0", "2").help("Use the page cache; the opposite of direct").boolean(unshown(
        |draft, on| {
            draft.job.direct = !on;
            draft.cache.buffered = Some(on);
        },
    )),
    work("ioscheduler", Words("that of the device"), "none", "mq/deadline")
        .help(
            "Let the devices below the files have this I/O scheduler while the job runs; unlike in fio they get \
             theirs back",
        )
        .text("the name of a scheduler, as in /sys/block/DEVICE/queue/scheduler", parsed!(files.scheduler, scheduler)),
    work("invalidate", Words("1; in a comparison, `--cache` decides"), "0", "2")
        .help("Drop the file from the page cache before the job")
        .boolean(field!(invalidate)),
    other("unlink", Is("0"), "1", "2")
        .help("Remove the job's files when the measurement ends; unlike in fio only those that it made")
        .boolean(field!(unlink)),
    work("fallocate", Is("native"), "none", "always")
        .help("Select how to preallocate a file that is laid out")
        .choice(word_of!(fallocate)),
    work("fsync", Is("0"), "32", "-1").help("Call fsync after every N writes. 0 means never").count(
        "writes",
        0..=MANY,
        field!(fsync_every),
    ),
    work("fdatasync", Is("0"), "32", "-1").help("Call fdatasync after every N writes. 0 means never").count(
        "writes",
        0..=MANY,
        field!(fdatasync_every),
    ),
    work("end_fsync", Is("0"), "1", "2")
        .help("Call fsync once when the job has written everything")
        .boolean(field!(end_fsync)),
];

fn scheduler(text: &str) -> Result<String, Wrong> {
    let plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if plain { Ok(text.to_owned()) } else { Err(Wrong::because(text, "is no name of a scheduler")) }
}
