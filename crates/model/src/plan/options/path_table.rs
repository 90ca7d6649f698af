//! The options of engine nbd: the server, and how the client sends and receives.

use super::{JobOption, Value::*};
use crate::plan::job::{
    MOST_PAYLOAD, MOST_SUBMITTERS, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathReceive, PathSegment,
    PathSend, PathTxQueue, TxTaskCpus,
};
use crate::plan::value::TimeUnit::Microseconds;
use crate::plan::value::{Wrong, choice, cpus, list_words};

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "uri",
        aliases: &[],
        help: "Engine nbd: connect to this server and export, nbd://HOST[:PORT][/EXPORT] or nbd+unix:///[EXPORT]?socket=PATH",
        example: "nbd://127.0.0.1:10809",
        bad_example: "",
        value: Text("an NBD URI", |draft, text| {
            draft.job.uri = Some(text.to_owned());
            Ok(())
        }),
    },
    JobOption {
        name: "path_send",
        aliases: &[],
        help: "Engine nbd: send write payloads by copying them behind the header (pull-up), from their buffer (gather), or as pages without a copy (zero-copy) [default: pull-up:2048]",
        example: "gather",
        bad_example: "gather:4k",
        value: Text(PathSend::FORM, |draft, text| PathSend::parse(text).map(|send| draft.job.path.send = send)),
    },
    JobOption {
        name: "path_receive",
        aliases: &[],
        help: "Engine nbd: receive read payloads into a shared buffer and copy them (copy), or directly into the destination (in-place) [default: copy:4096]",
        example: "in-place",
        bad_example: "in-place:4k",
        value: Text(PathReceive::FORM, |draft, text| {
            PathReceive::parse(text).map(|receive| draft.job.path.receive = receive)
        }),
    },
    JobOption {
        name: "path_framing",
        aliases: &[],
        help: "Engine nbd: send and receive everything available per system call (one-go), send each header and segment separately (segment-at-a-time), or send and receive each header and page separately (page-at-a-time) [default: one-go]",
        example: "page-at-a-time",
        bad_example: "page",
        value: Choice(list_words::<PathFraming>, |draft, text| {
            choice(text).map(|framing| draft.job.path.framing = framing)
        }),
    },
    JobOption {
        name: "path_segment",
        aliases: &[],
        help: "Engine nbd: split write payloads that are not copied into segments of this size, as if they were scattered in memory [default: whole]",
        example: "4k",
        bad_example: "16",
        value: Text(PathSegment::FORM, |draft, text| {
            PathSegment::parse(text).map(|segment| draft.job.path.segment = segment)
        }),
    },
    JobOption {
        name: "path_max_payload",
        aliases: &[],
        help: "Engine nbd: split larger I/Os into several requests [default: 32m]",
        example: "64k",
        bad_example: "64m",
        value: Number("bytes", 512..=MOST_PAYLOAD as u64, |draft, bytes| draft.job.path.max_payload = bytes as u32),
    },
    JobOption {
        name: "path_copy",
        aliases: &[],
        help: "Engine nbd: copy method: plain, rep-movsb, or non-temporal (bypasses the caches) [default: rep-movsb]",
        example: "non-temporal",
        bad_example: "memcpy",
        value: Choice(list_words::<PathCopy>, |draft, text| choice(text).map(|copy| draft.job.path.copy = copy)),
    },
    JobOption {
        name: "path_crc",
        aliases: &[],
        help: "Engine nbd: append a CRC-32C to each payload and verify the server's. Requires iotoll serve --path-crc on [default: off]",
        example: "on",
        bad_example: "crc32",
        value: Choice(list_words::<PathCrc>, |draft, text| choice(text).map(|crc| draft.job.path.crc = crc)),
    },
    JobOption {
        name: "path_in_flight",
        aliases: &[],
        help: "Engine nbd: count requests in flight in one counter for each job (per-thread), in one counter for all jobs (shared), or not at all (none) [default: none]",
        example: "shared",
        bad_example: "both",
        value: Choice(list_words::<PathInFlight>, |draft, text| {
            choice(text).map(|in_flight| draft.job.path.in_flight = in_flight)
        }),
    },
    JobOption {
        name: "path_null",
        aliases: &[],
        help: "Engine nbd: skip the network (wire): requests complete without being sent, and reads return garbage [default: none]",
        example: "wire",
        bad_example: "storage",
        value: Choice(list_words::<PathNull>, |draft, text| match choice(text)? {
            PathNull::Server => Err(Wrong::because(text, "is the server's: iotoll serve --path-null server")),
            null => {
                draft.job.path.null = null;
                Ok(())
            }
        }),
    },
    JobOption {
        name: "path_tx_queue",
        aliases: &[],
        help: "Engine nbd: share a connection between jobs, under a lock (lock) or through a queue (ring-task, mp-ring, swap-all); none gives each job its own connection [default: none]",
        example: "mp-ring",
        bad_example: "drbr",
        value: Choice(list_words::<PathTxQueue>, |draft, text| {
            choice(text).map(|queue| draft.job.path.tx_queue = queue)
        }),
    },
    JobOption {
        name: "tx_task_cpus",
        aliases: &[],
        help: "Engine nbd: CPUs of the thread that drains the queue of path_tx_queue=ring-task, relative to cpus_allowed or by number [default: any]",
        example: "other",
        bad_example: "3-0",
        value: Text("any, same, other or a list of CPUs", |draft, text| {
            let cpus = match text {
                "any" => TxTaskCpus::Any,
                "same" => TxTaskCpus::Same,
                "other" => TxTaskCpus::Other,
                list => TxTaskCpus::List(cpus(list)?),
            };
            draft.job.path.tx_task_cpus = cpus;
            Ok(())
        }),
    },
    JobOption {
        name: "submitters",
        aliases: &[],
        help: "Engine nbd: with path_tx_queue, let at most this many jobs share one connection [default: 64]",
        example: "4",
        bad_example: "0",
        value: Number("jobs", 1..=MOST_SUBMITTERS as u64, |draft, jobs| draft.job.path.submitters = jobs as u32),
    },
    JobOption {
        name: "path_coalesce",
        aliases: &[],
        help: "Engine nbd: after the first reply, wait at most this long for half of the requests in flight. 0 disables the wait [default: 500]",
        example: "100",
        bad_example: "50k",
        value: Time(Microseconds, |draft, time| draft.job.path.coalesce = time),
    },
    JobOption {
        name: "path_busy_poll",
        aliases: &[],
        help: "Engine nbd: busy-poll for a reply this long before sleeping. Uses CPU time, saves wake-ups [default: 0]",
        example: "50",
        bad_example: "50k",
        value: Time(Microseconds, |draft, time| draft.job.path.busy_poll = time),
    },
];
