//! The options of engine nbd: the server, and the switches of the path to it.

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
        help: "Engine nbd: the server and its export, nbd://HOST[:PORT][/EXPORT] or nbd+unix:///[EXPORT]?socket=PATH",
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
        help: "Engine nbd: how payloads of writes get behind their headers: copied, sent from where they lie, or as pages",
        example: "gather",
        bad_example: "gather:4k",
        value: Text(PathSend::FORM, |draft, text| PathSend::parse(text).map(|send| draft.job.path.send = send)),
    },
    JobOption {
        name: "path_receive",
        aliases: &[],
        help: "Engine nbd: how payloads of reads get to where they belong: received together and copied, or straight",
        example: "in-place",
        bad_example: "in-place:4k",
        value: Text(PathReceive::FORM, |draft, text| {
            PathReceive::parse(text).map(|receive| draft.job.path.receive = receive)
        }),
    },
    JobOption {
        name: "path_framing",
        aliases: &[],
        help: "Engine nbd: whether all that is there is sent and received at one go, or each header and segment is sent by itself, or each header and page sent and received",
        example: "page-at-a-time",
        bad_example: "page",
        value: Choice(list_words::<PathFraming>, |draft, text| {
            choice(text).map(|framing| draft.job.path.framing = framing)
        }),
    },
    JobOption {
        name: "path_segment",
        aliases: &[],
        help: "Engine nbd: payloads of writes that are sent from where they lie are sent as if they lay in pieces of so many bytes",
        example: "4k",
        bad_example: "16",
        value: Text(PathSegment::FORM, |draft, text| {
            PathSegment::parse(text).map(|segment| draft.job.path.segment = segment)
        }),
    },
    JobOption {
        name: "path_max_payload",
        aliases: &[],
        help: "Engine nbd: I/Os larger than this are several requests, and done when all of them are",
        example: "64k",
        bad_example: "64m",
        value: Number("bytes", 512..=MOST_PAYLOAD as u64, |draft, bytes| draft.job.path.max_payload = bytes as u32),
    },
    JobOption {
        name: "path_copy",
        aliases: &[],
        help: "Engine nbd: how what is copied is copied: through the caches, as the processor likes, or past them",
        example: "non-temporal",
        bad_example: "memcpy",
        value: Choice(list_words::<PathCopy>, |draft, text| choice(text).map(|copy| draft.job.path.copy = copy)),
    },
    JobOption {
        name: "path_crc",
        aliases: &[],
        help: "Engine nbd: whether payloads are followed by their checksums (CRC-32C), which are checked; only iotoll serve --path-crc on knows them",
        example: "on",
        bad_example: "crc32",
        value: Choice(list_words::<PathCrc>, |draft, text| choice(text).map(|crc| draft.job.path.crc = crc)),
    },
    JobOption {
        name: "path_in_flight",
        aliases: &[],
        help: "Engine nbd: who counts requests in flight, up and down with each: nobody, each job by itself, or all together",
        example: "shared",
        bad_example: "both",
        value: Choice(list_words::<PathInFlight>, |draft, text| {
            choice(text).map(|in_flight| draft.job.path.in_flight = in_flight)
        }),
    },
    JobOption {
        name: "path_null",
        aliases: &[],
        help: "Engine nbd: what is only claimed to be done: nothing, or the way to the server and back; reads are garbage then",
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
        help: "Engine nbd: how the requests of several jobs get to one connection: none (each has its own), under a lock, or through a queue",
        example: "mp-ring",
        bad_example: "drbr",
        value: Choice(list_words::<PathTxQueue>, |draft, text| {
            choice(text).map(|queue| draft.job.path.tx_queue = queue)
        }),
    },
    JobOption {
        name: "tx_task_cpus",
        aliases: &[],
        help: "Engine nbd: where the thread runs that drains the queue of path_tx_queue=ring-task, relative to cpus_allowed or by number",
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
        help: "Engine nbd: with a path_tx_queue, how many jobs share one connection at most; the next begin another",
        example: "4",
        bad_example: "0",
        value: Number("jobs", 1..=MOST_SUBMITTERS as u64, |draft, jobs| draft.job.path.submitters = jobs as u32),
    },
    JobOption {
        name: "path_coalesce",
        aliases: &[],
        help: "Engine nbd: how long a wait for half of what is in flight may go on after the first reply; 0: not at all",
        example: "100",
        bad_example: "50k",
        value: Time(Microseconds, |draft, time| draft.job.path.coalesce = time),
    },
    JobOption {
        name: "path_busy_poll",
        aliases: &[],
        help: "Engine nbd: how long a reply is looked for again and again before it is slept for: burns CPU, saves wake-ups",
        example: "50",
        bad_example: "50k",
        value: Time(Microseconds, |draft, time| draft.job.path.busy_poll = time),
    },
];
