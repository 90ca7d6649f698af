//! The options of a job's files: names, how they are made and opened, when they are synced.

use super::MANY;
use crate::plan::job::Fallocate;
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::files::{self, show_service, show_size};
use crate::plan::value::{Wrong, choice, file_names, list_words, typed, word};

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "filename",
        help: "Use these files or devices, shared by all copies of the job. As in fio, another filename adds to them",
        default: Default::Words("JOB.COPY.0, a file for each copy"),
        role: Role::Extent,
        example: "/tmp/a:/tmp/b",
        bad_example: "a::b",
        get: |job| typed::names(&job.target.files),
        set: Text("file names separated by ':', a ':' within a name as '\\:'", |draft, text| {
            file_names(text).map(|files| draft.job.target.files.extend(files))
        }),
        ..PLAIN
    },
    JobOption {
        name: "directory",
        help: "Prefix file names with this directory. Of several, copies of a job without filename take turns among them",
        default: Default::Words("the current directory"),
        role: Role::Extent,
        example: "/tmp",
        bad_example: "/a::/b",
        get: |job| {
            let folders: Vec<&String> = job.target.directory.iter().chain(&job.target.more_directories).collect();
            typed::names(&folders)
        },
        set: Text("directories separated by ':', a ':' within a name as '\\:'", |draft, text| {
            let mut directories = file_names(text)?.into_iter();
            draft.job.target.directory = directories.next();
            draft.job.target.more_directories = directories.collect();
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "nrfiles",
        aliases: &["nr_files"],
        help: "Number of files of each copy of a job without filename. size is divided among them; of opendir, take the first of this number",
        default: Default::Words("1; of opendir all"),
        role: Role::Extent,
        example: "4",
        bad_example: "0",
        get: |job| job.files.count.map(|count| count.to_string()),
        set: Count("files", 1..=MANY, |draft, files| draft.job.files.count = Some(files)),
        ..PLAIN
    },
    JobOption {
        name: "filesize",
        help: "Size of each file. Of a range, each file gets a random size in whole blocks, the same in each run. With size, the job moves at most that much in each pass",
        default: Default::Words("an equal part of size"),
        role: Role::Extent,
        example: "4k-1m",
        bad_example: "1m-4k",
        get: |job| job.files.each.map(show_size),
        set: Text("a size in bytes, or two as LEAST-MOST", |draft, text| {
            files::size(text).map(|size| draft.job.files.each = Some(size))
        }),
        ..PLAIN
    },
    JobOption {
        name: "openfiles",
        help: "Keep at most this number of files open at the same time: a file is closed when it is done, and the next one is opened in the measured loop. 0 means all, before the loop",
        default: Default::Value("0"),
        example: "16",
        bad_example: "-1",
        get: |job| Some(job.files.open.to_string()),
        set: Count("files", 0..=MANY, |draft, files| draft.job.files.open = files),
        ..PLAIN
    },
    JobOption {
        name: "file_service_type",
        help: "Which file is next. roundrobin and random switch after N I/Os, 1 by default; zipf, pareto, normal and gauss take a parameter (1.1, 0.2, 0, 0 by default)",
        default: Default::Value("roundrobin"),
        example: "random:16",
        bad_example: "shuffled",
        get: |job| Some(show_service(job.files.service)),
        set: Text(
            "roundrobin[:N], sequential, random[:N], zipf[:THETA], pareto[:POWER], normal[:PERCENT] or gauss[:PERCENT]",
            |draft, text| files::service(text).map(|service| draft.job.files.service = service),
        ),
        ..PLAIN
    },
    JobOption {
        name: "filename_format",
        help: "Names of the files of a job without filename; $jobname, $jobnum and $filenum are replaced, $clientuid by nothing",
        default: Default::Words("$jobname.$jobnum.$filenum"),
        role: Role::Extent,
        example: "$jobname/$jobnum.$filenum",
        bad_example: "$host.$filenum",
        get: |job| job.files.name_format.clone(),
        set: Text("a name with $jobname, $jobnum, $filenum, $clientuid", |draft, text| {
            files::name_format(text).map(|format| draft.job.files.name_format = Some(format))
        }),
        ..PLAIN
    },
    JobOption {
        name: "opendir",
        help: "Use the files in this folder and the folders in it, in order of their names, before those of filename",
        default: Default::Words("none"),
        role: Role::Extent,
        example: "/tmp/many",
        bad_example: "a\tb",
        get: |job| job.files.folder.clone(),
        set: Text("a folder", |draft, text| files::folder(text).map(|folder| draft.job.files.folder = Some(folder))),
        ..PLAIN
    },
    JobOption {
        name: "direct",
        help: "Bypass the page cache with O_DIRECT",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "yes",
        get: |job| Some(typed::switch(job.direct)),
        set: Boolean(|draft, on| {
            draft.job.direct = on;
            draft.cache.direct = Some(on);
        }),
        ..PLAIN
    },
    JobOption {
        name: "buffered",
        help: "Use the page cache; the opposite of direct",
        default: Default::Value("1"),
        role: Role::Other,
        example: "0",
        bad_example: "2",
        get: |_| None,
        set: Boolean(|draft, on| {
            draft.job.direct = !on;
            draft.cache.buffered = Some(on);
        }),
        ..PLAIN
    },
    JobOption {
        name: "ioscheduler",
        help: "Let the devices below the files have this I/O scheduler while the job runs; unlike in fio they get theirs back",
        default: Default::Words("that of the device"),
        role: Role::Work,
        example: "none",
        bad_example: "mq/deadline",
        get: |job| job.files.scheduler.clone(),
        set: Text("the name of a scheduler, as in /sys/block/DEVICE/queue/scheduler", |draft, text| {
            let plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
            if !plain {
                return Err(Wrong::because(text, "is no name of a scheduler"));
            }
            draft.job.files.scheduler = Some(text.to_owned());
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "invalidate",
        help: "Drop the file from the page cache before the job",
        default: Default::Words("1; in a comparison, `--cache` decides"),
        role: Role::Work,
        example: "0",
        bad_example: "2",
        get: |job| job.invalidate.map(typed::switch),
        set: Boolean(|draft, on| draft.job.invalidate = Some(on)),
        ..PLAIN
    },
    JobOption {
        name: "unlink",
        help: "Remove the job's files when the measurement ends; unlike in fio only those that it made",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.unlink)),
        set: Boolean(|draft, on| draft.job.unlink = on),
        ..PLAIN
    },
    JobOption {
        name: "fallocate",
        help: "Select how to preallocate a file that is laid out",
        default: Default::Value("native"),
        role: Role::Work,
        example: "none",
        bad_example: "always",
        get: |job| Some(word(job.fallocate).to_owned()),
        set: Choice(list_words::<Fallocate>, |draft, text| choice(text).map(|how| draft.job.fallocate = how)),
        ..PLAIN
    },
    JobOption {
        name: "fsync",
        help: "Call fsync after every N writes. 0 means never",
        default: Default::Value("0"),
        role: Role::Work,
        example: "32",
        bad_example: "-1",
        get: |job| Some(job.fsync_every.to_string()),
        set: Count("writes", 0..=MANY, |draft, writes| draft.job.fsync_every = writes),
        ..PLAIN
    },
    JobOption {
        name: "fdatasync",
        help: "Call fdatasync after every N writes. 0 means never",
        default: Default::Value("0"),
        role: Role::Work,
        example: "32",
        bad_example: "-1",
        get: |job| Some(job.fdatasync_every.to_string()),
        set: Count("writes", 0..=MANY, |draft, writes| draft.job.fdatasync_every = writes),
        ..PLAIN
    },
    JobOption {
        name: "end_fsync",
        help: "Call fsync once when the job has written everything",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.end_fsync)),
        set: Boolean(|draft, on| draft.job.end_fsync = on),
        ..PLAIN
    },
];
