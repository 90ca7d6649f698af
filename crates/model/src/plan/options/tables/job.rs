//! The options of a job as a whole: its name, its copies, when it starts, what is reported.

use crate::plan::draft::Start;
use crate::plan::job::EngineKind;
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*, engine};
use crate::plan::value::TimeUnit::Seconds;
use crate::plan::value::{list_words, percentiles, typed};

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "name",
        help: "Name the job. As a flag, start a new job",
        default: Default::Words("the section's name; job, as a flag"),
        role: Role::Other,
        example: "writer",
        bad_example: "",
        get: |_| None,
        set: Text("a name", |draft, text| {
            draft.job.name = text.to_owned();
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "description",
        help: "Describe the job. Has no effect",
        default: Default::Words("none"),
        role: Role::Nothing,
        example: "nightly run",
        bad_example: "",
        get: |_| None,
        set: Text("any text", |_, _| Ok(())),
        ..PLAIN
    },
    JobOption {
        name: "ioengine",
        help: "Select the I/O engine",
        default: Default::Value("psync"),
        role: Role::Work,
        example: "io_uring",
        bad_example: "tape",
        get: |job| Some(job.engine.name().to_owned()),
        set: Choice(list_words::<EngineKind>, |draft, text| engine(text).map(|engine| draft.job.engine = engine)),
        ..PLAIN
    },
    JobOption {
        name: "numjobs",
        help: "Run this many copies of the job at the same time",
        default: Default::Value("1"),
        role: Role::Work,
        example: "4",
        bad_example: "0",
        get: |job| Some(job.copies.to_string()),
        set: Count("copies", 1..=4096, |draft, copies| draft.job.copies = copies),
        ..PLAIN
    },
    JobOption {
        name: "thread",
        aliases: &["threads"],
        help: "Accepted for compatibility with fio. Jobs are always threads",
        default: Default::Value("1"),
        role: Role::Nothing,
        example: "1",
        bad_example: "2",
        get: |_| None,
        set: Switch(|_, _| {}),
        ..PLAIN
    },
    JobOption {
        name: "group_reporting",
        help: "Report all copies as one job in fio's formats and in jobs of the JSON; reports for people always do",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "yes",
        get: |job| Some(typed::switch(job.group_reporting)),
        set: Switch(|draft, on| draft.job.group_reporting = on),
        ..PLAIN
    },
    JobOption {
        name: "stonewall",
        aliases: &["wait_for_previous"],
        help: "Wait for all previous jobs to end before starting",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |_| None,
        set: Switch(|draft, on| draft.start = if on { Start::AfterPrevious } else { Start::Together }),
        ..PLAIN
    },
    JobOption {
        name: "startdelay",
        help: "Wait this long before the job's first I/O",
        default: Default::Value("0"),
        role: Role::Other,
        example: "5s",
        bad_example: "1-5",
        get: |job| Some(typed::time(job.start_delay)),
        set: Time(Seconds, |draft, time| draft.job.start_delay = time),
        ..PLAIN
    },
    JobOption {
        name: "percentile_list",
        help: "Report these latency percentiles",
        default: Default::Words("fio's: 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99"),
        role: Role::Other,
        example: "50:99:99.9",
        bad_example: "nan",
        get: |job| typed::list(&job.percentiles, ":"),
        set: Text("up to 20 percentiles separated by ':', above 0 and up to 100", |draft, text| {
            percentiles(text).map(|percentiles| draft.job.percentiles = percentiles)
        }),
        ..PLAIN
    },
];
