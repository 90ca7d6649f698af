//! The options of engine nbd: the server, and how the client sends and receives.

use super::*;

const fn nbd(name: &'static str, kind: Kind, default: Default, good: &'static str, bad: &'static str) -> JobOption {
    work(name, kind, default, good, bad).of(&[EngineKind::Nbd])
}

pub(super) static OPTIONS: &[JobOption] = &[
    nbd("uri", text(parsed!(path.uri, any)), Required, "nbd://127.0.0.1:10809", "")
        .form("an NBD URI")
        .help("Connect to this server and export, nbd://HOST[:PORT][/EXPORT] or nbd+unix:///[EXPORT]?socket=PATH"),
    nbd("path_send", text(parsed!(path.send, PathSend::parse)), Is("pull-up:2048"), "gather", "gather:4k")
        .form(PathSend::FORM)
        .help(
            "Send payloads by copying them behind the header (pull-up), from their buffer (gather), or as pages \
             without a copy (zero-copy)",
        ),
    nbd("path_receive", text(parsed!(path.receive, PathReceive::parse)), Is("copy:4096"), "in-place", "in-place:4k")
        .form(PathReceive::FORM)
        .help(
            "Receive payloads into a shared buffer and copy them (copy), or directly into the destination \
             (in-place)",
        ),
    nbd("path_framing", word_of!(path.framing), Is("one-go"), "page-at-a-time", "page").help(
        "Send and receive everything available per system call (one-go), send each header and segment \
         separately (segment-at-a-time), or send and receive each header and page separately (page-at-a-time)",
    ),
    nbd("path_segment", text(parsed!(path.segment, PathSegment::parse)), Is("whole"), "4k", "16")
        .form(PathSegment::FORM)
        .help("Split payloads that are not copied into segments of this size, as if they were scattered in memory"),
    nbd("path_max_payload", number("bytes", 512..=MOST_PAYLOAD as u64, PATH_MAX_PAYLOAD), Is("32m"), "64k", "64m")
        .help("Split larger I/Os into several requests"),
    nbd("path_copy", word_of!(path.copy), Is("rep-movsb"), "non-temporal", "memcpy")
        .help("Copy method: plain, rep-movsb, or non-temporal (bypasses the caches)"),
    nbd("path_crc", word_of!(path.crc), Is("off"), "on", "crc32")
        .help("Append a CRC-32C to each payload and verify the other side's, which must have the same option"),
    nbd("path_in_flight", word_of!(path.in_flight), Is("none"), "shared", "both").help(
        "Count requests in flight in one counter for each job (per-thread), in one counter for all jobs \
         (shared), or not at all (none)",
    ),
    nbd("path_null", words(list_words::<PathNull>, parsed!(path.null, of_client)), Is("none"), "wire", "storage")
        .help("Skip the network (wire): requests complete without being sent, and reads return garbage"),
    nbd("path_tx_queue", word_of!(path.tx_queue), Is("none"), "mp-ring", "drbr").help(
        "Share a connection between jobs, under a lock (lock) or through a queue (ring-task, mp-ring, \
         swap-all); none gives each job its own connection",
    ),
    nbd("tx_task_cpus", text(parsed!(path.tx_task_cpus, TxTaskCpus::parse)), Is("any"), "other", "3-0")
        .form("any, same, other or a list of CPUs")
        .help(
            "CPUs of the thread that drains the queue of path_tx_queue=ring-task, relative to cpus_allowed or by \
             number",
        ),
    nbd("submitters", number("jobs", 1..=MOST_SUBMITTERS as u64, field!(path.submitters)), Is("64"), "4", "0")
        .help("With path_tx_queue, let at most this many jobs share one connection"),
    nbd("path_coalesce", time(Microseconds, field!(path.coalesce)), Is("500"), "100", "50k")
        .help("After the first message, wait at most this long for more of those in flight. 0 disables the wait"),
    nbd("path_busy_poll", time(Microseconds, field!(path.busy_poll)), Is("0"), "50", "50k")
        .help("Busy-poll this long before sleeping. Uses CPU time, saves wake-ups"),
];

// Places that are no fields.
const PATH_MAX_PAYLOAD: Place<Set<u64>> = place(
    |job| typed::shown(&Bytes(job.path.max_payload.into())),
    |draft, bytes| draft.job.path.max_payload = bytes as u32,
);

fn of_client(text: &str) -> Result<PathNull, Wrong> {
    match choice(text)? {
        PathNull::Server => Err(Wrong::because(text, "is the server's: iotoll serve --path-null server")),
        null => Ok(null),
    }
}
