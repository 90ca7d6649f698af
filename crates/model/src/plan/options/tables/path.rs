//! The options of engine nbd: the server, and how the client sends and receives.

use crate::plan::job::{
    EngineKind, MOST_PAYLOAD, MOST_SUBMITTERS, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathReceive,
    PathSegment, PathSend, PathTxQueue, TxTaskCpus,
};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::TimeUnit::Microseconds;
use crate::plan::value::{Wrong, choice, cpus, list_words, typed, word};

/// What most of these rows have in common.
const OF_NBD: JobOption = JobOption { engines: &[EngineKind::Nbd], ..PLAIN };

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "uri",
        help: "Connect to this server and export, nbd://HOST[:PORT][/EXPORT] or nbd+unix:///[EXPORT]?socket=PATH",
        default: Default::Required,
        role: Role::Work,
        example: "nbd://127.0.0.1:10809",
        bad_example: "",
        get: |job| job.uri.clone(),
        set: Text("an NBD URI", |draft, text| {
            draft.job.uri = Some(text.to_owned());
            Ok(())
        }),
        ..OF_NBD
    },
    JobOption {
        name: "path_send",
        help: "Send write payloads by copying them behind the header (pull-up), from their buffer (gather), or as pages without a copy (zero-copy)",
        default: Default::Value("pull-up:2048"),
        role: Role::Work,
        example: "gather",
        bad_example: "gather:4k",
        get: |job| Some(job.path.send.to_string()),
        set: Text(PathSend::FORM, |draft, text| PathSend::parse(text).map(|send| draft.job.path.send = send)),
        ..OF_NBD
    },
    JobOption {
        name: "path_receive",
        help: "Receive read payloads into a shared buffer and copy them (copy), or directly into the destination (in-place)",
        default: Default::Value("copy:4096"),
        role: Role::Work,
        example: "in-place",
        bad_example: "in-place:4k",
        get: |job| Some(job.path.receive.to_string()),
        set: Text(PathReceive::FORM, |draft, text| {
            PathReceive::parse(text).map(|receive| draft.job.path.receive = receive)
        }),
        ..OF_NBD
    },
    JobOption {
        name: "path_framing",
        help: "Send and receive everything available per system call (one-go), send each header and segment separately (segment-at-a-time), or send and receive each header and page separately (page-at-a-time)",
        default: Default::Value("one-go"),
        role: Role::Work,
        example: "page-at-a-time",
        bad_example: "page",
        get: |job| Some(word(job.path.framing).to_owned()),
        set: Choice(list_words::<PathFraming>, |draft, text| {
            choice(text).map(|framing| draft.job.path.framing = framing)
        }),
        ..OF_NBD
    },
    JobOption {
        name: "path_segment",
        help: "Split write payloads that are not copied into segments of this size, as if they were scattered in memory",
        default: Default::Value("whole"),
        role: Role::Work,
        example: "4k",
        bad_example: "16",
        get: |job| Some(job.path.segment.to_string()),
        set: Text(PathSegment::FORM, |draft, text| {
            PathSegment::parse(text).map(|segment| draft.job.path.segment = segment)
        }),
        ..OF_NBD
    },
    JobOption {
        name: "path_max_payload",
        help: "Split larger I/Os into several requests",
        default: Default::Value("32m"),
        role: Role::Work,
        example: "64k",
        bad_example: "64m",
        get: |job| Some(typed::bytes(u64::from(job.path.max_payload))),
        set: Number("bytes", 512..=MOST_PAYLOAD as u64, |draft, bytes| draft.job.path.max_payload = bytes as u32),
        ..OF_NBD
    },
    JobOption {
        name: "path_copy",
        help: "Copy method: plain, rep-movsb, or non-temporal (bypasses the caches)",
        default: Default::Value("rep-movsb"),
        role: Role::Work,
        example: "non-temporal",
        bad_example: "memcpy",
        get: |job| Some(word(job.path.copy).to_owned()),
        set: Choice(list_words::<PathCopy>, |draft, text| choice(text).map(|copy| draft.job.path.copy = copy)),
        ..OF_NBD
    },
    JobOption {
        name: "path_crc",
        help: "Append a CRC-32C to each payload and verify the server's. Requires iotoll serve --path-crc on",
        default: Default::Value("off"),
        role: Role::Work,
        example: "on",
        bad_example: "crc32",
        get: |job| Some(word(job.path.crc).to_owned()),
        set: Choice(list_words::<PathCrc>, |draft, text| choice(text).map(|crc| draft.job.path.crc = crc)),
        ..OF_NBD
    },
    JobOption {
        name: "path_in_flight",
        help: "Count requests in flight in one counter for each job (per-thread), in one counter for all jobs (shared), or not at all (none)",
        default: Default::Value("none"),
        role: Role::Work,
        example: "shared",
        bad_example: "both",
        get: |job| Some(word(job.path.in_flight).to_owned()),
        set: Choice(list_words::<PathInFlight>, |draft, text| {
            choice(text).map(|in_flight| draft.job.path.in_flight = in_flight)
        }),
        ..OF_NBD
    },
    JobOption {
        name: "path_null",
        help: "Skip the network (wire): requests complete without being sent, and reads return garbage",
        default: Default::Value("none"),
        role: Role::Work,
        example: "wire",
        bad_example: "storage",
        get: |job| Some(word(job.path.null).to_owned()),
        set: Choice(list_words::<PathNull>, |draft, text| match choice(text)? {
            PathNull::Server => Err(Wrong::because(text, "is the server's: iotoll serve --path-null server")),
            null => {
                draft.job.path.null = null;
                Ok(())
            }
        }),
        ..OF_NBD
    },
    JobOption {
        name: "path_tx_queue",
        help: "Share a connection between jobs, under a lock (lock) or through a queue (ring-task, mp-ring, swap-all); none gives each job its own connection",
        default: Default::Value("none"),
        role: Role::Work,
        example: "mp-ring",
        bad_example: "drbr",
        get: |job| Some(word(job.path.tx_queue).to_owned()),
        set: Choice(list_words::<PathTxQueue>, |draft, text| choice(text).map(|queue| draft.job.path.tx_queue = queue)),
        ..OF_NBD
    },
    JobOption {
        name: "tx_task_cpus",
        help: "CPUs of the thread that drains the queue of path_tx_queue=ring-task, relative to cpus_allowed or by number",
        default: Default::Value("any"),
        role: Role::Work,
        example: "other",
        bad_example: "3-0",
        get: |job| Some(job.path.tx_task_cpus.to_string()),
        set: Text("any, same, other or a list of CPUs", |draft, text| {
            let cpus = match text {
                "any" => TxTaskCpus::Any,
                "same" => TxTaskCpus::Same,
                "other" => TxTaskCpus::Other,
                list => TxTaskCpus::List(cpus(list)?),
            };
            draft.job.path.tx_task_cpus = cpus;
            Ok(())
        }),
        ..OF_NBD
    },
    JobOption {
        name: "submitters",
        help: "With path_tx_queue, let at most this many jobs share one connection",
        default: Default::Value("64"),
        role: Role::Work,
        example: "4",
        bad_example: "0",
        get: |job| Some(job.path.submitters.to_string()),
        set: Number("jobs", 1..=MOST_SUBMITTERS as u64, |draft, jobs| draft.job.path.submitters = jobs as u32),
        ..OF_NBD
    },
    JobOption {
        name: "path_coalesce",
        help: "After the first reply, wait at most this long for half of the requests in flight. 0 disables the wait",
        default: Default::Value("500"),
        role: Role::Work,
        example: "100",
        bad_example: "50k",
        get: |job| Some(typed::time(job.path.coalesce)),
        set: Time(Microseconds, |draft, time| draft.job.path.coalesce = time),
        ..OF_NBD
    },
    JobOption {
        name: "path_busy_poll",
        help: "Busy-poll for a reply this long before sleeping. Uses CPU time, saves wake-ups",
        default: Default::Value("0"),
        role: Role::Work,
        example: "50",
        bad_example: "50k",
        get: |job| Some(typed::time(job.path.busy_poll)),
        set: Time(Microseconds, |draft, time| draft.job.path.busy_poll = time),
        ..OF_NBD
    },
];
