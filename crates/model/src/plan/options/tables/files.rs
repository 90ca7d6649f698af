//! The options of a job's files: names, how they are made and opened, when they are synced.

use super::MANY;
use crate::plan::job::Fallocate;
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{choice, file_names, list_words, typed, word};

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
