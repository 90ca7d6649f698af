//! A remote export, by iotoll's own NBD client: one connection per job, or one for several jobs.

mod connections;

use super::worker::Control;
use super::{OpenEngine, Queue, Stages, Sync, slot_bytes};
use crate::worker_pool::JobCopy;
use crate::workload::payload::fill_once;
use crate::workload::request_source::{Kind, Request};
use crate::workload::target::{self, Share, Span};
use connections::{Split, join};
use lab::error::{Error, Result};
use model::plan::{JobPlan, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathPlan, PathTxQueue};
use nbd::client::{Accounting, Ask, Client, Connection, Done, Options, POLL_INTERVAL, Uri, Wire};
use nbd::{Copying, Framing, Tuning};
use std::io;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest silence of a server that has requests.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The same after the job was asked to end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Staged requests are sent at the next wait, or when they exceed this many bytes.
const MOST_STAGED: usize = 256 << 10;

struct Remote<C> {
    client: C,
    /// Replies that were not reaped yet: slot, bytes or minus the error number, and times.
    done: Vec<(u32, i32, Stages)>,
    /// Whether requests are submitted in batches.
    batches: bool,
    /// Start of the silence, while replies are expected.
    silent_since: Option<Instant>,
    control: Arc<Control>,
    uri: String,
    /// The content of a slot, for a job that looks at it.
    copy: Vec<u8>,
}

pub(super) fn open(copy: &JobCopy) -> Result<OpenEngine> {
    let (plan, depth) = (copy.plan, copy.plan.depth.in_flight);
    let (part, block) = (plan.path.max_payload, slot_bytes(plan));
    let parts = u32::try_from(block.div_ceil(part as usize)).unwrap_or(u32::MAX);
    let slots = depth.checked_mul(parts).ok_or_else(|| {
        let why = "splits an I/O into too many requests; use a larger value";
        Error::refused(plan, format_args!("path_max_payload={part} {why}"))
    })?;
    let bytes = if parts == 1 { block } else { part as usize };
    let options = options(&plan.path);
    match plan.path.tx_queue {
        PathTxQueue::None => split(plan, connect(plan, slots, bytes, options)?, parts),
        PathTxQueue::Lock | PathTxQueue::RingTask | PathTxQueue::MpRing | PathTxQueue::SwapAll => {
            split(plan, join(plan, slots, bytes, options)?, parts)
        }
    }
}

/// The engine, with `parts` requests for the largest I/O.
fn split(plan: &JobPlan, client: impl Connection + 'static, parts: u32) -> Result<OpenEngine> {
    if parts == 1 {
        return ready(plan, client);
    }
    ready(plan, Split::new(client, plan.depth.in_flight, parts, plan.path.max_payload))
}

fn ready(plan: &JobPlan, client: impl Connection + 'static) -> Result<OpenEngine> {
    let (slot, slots) = (slot_bytes(plan), plan.depth.in_flight);
    let mut noise = vec![0; slot];
    let mut seed = 0x5eed;
    for place in 0..slots {
        fill_once(plan, &mut noise, slot, |memory| target::fill_with_noise(memory, &mut seed));
        client.arena().write(client.begin(place), &noise);
    }
    let mut engine = Remote {
        client,
        done: Vec::with_capacity(slots as usize),
        batches: plan.path.coalesce.0 > 0 && plan.path.framing != PathFraming::PageAtATime,
        silent_since: None,
        control: Arc::default(),
        uri: uri(plan).to_owned(),
        copy: noise,
    };
    Ok(Box::new(move |worker| {
        engine.control = worker.control();
        // Make waits as long as requested, not 50 µs longer. If that fails, they are longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        worker.run_queued(&mut engine)
    }))
}

/// The part of the export that a job uses. Asks the server, and refuses the job if the server does not support it.
///
/// # Errors
/// Refused, with the fix.
pub(crate) fn span(plan: &JobPlan, copy: u32) -> Result<Span> {
    let client = connect(plan, 1, 1, options(&plan.path))?;
    let refused = |why: String| Err(Error::refused(plan, format_args!("{}: {why}", uri(plan))));
    let asks = [Ask::Read, Ask::Write, Ask::Trim].into_iter().zip(plan.access.directions());
    if let Some((ask, _)) = asks.filter(|(_, used)| *used).find(|(ask, _)| !client.takes(*ask)) {
        return refused(format!("the server does not allow {ask:?} on this export; choose another rw= or export"));
    }
    let export = client.export();
    let block = plan.largest_block().0;
    let payload = block.min(plan.path.max_payload.into());
    if payload < block && !payload.is_multiple_of(512) {
        return refused(format!("path_max_payload={payload} splits I/Os within a sector; use a multiple of 512"));
    }
    if payload > u64::from(export.max_payload) {
        return refused(format!(
            "bs={block} exceeds the server's limit for one request; use path_max_payload={}",
            export.max_payload
        ));
    }
    let mut span = target::span(plan, Path::new(uri(plan)), Share { copy, ..Share::ALL }, true, export.size)?;
    span.beyond = export.size.saturating_sub(span.begin.saturating_add(span.length));
    if span.begin.saturating_add(span.length) > export.size {
        return refused(format!("has {} bytes, but offset + size is more; use a smaller size=", export.size));
    }
    let least = u64::from(export.least_block);
    if !payload.is_multiple_of(least) || !block.is_multiple_of(least) || !span.begin.is_multiple_of(least) {
        return refused(format!("requires multiples of {least} bytes; change bs=, path_max_payload= or offset="));
    }
    Ok(span)
}

fn uri(plan: &JobPlan) -> &str {
    plan.path.uri.as_deref().unwrap_or_default()
}

fn connect(plan: &JobPlan, slots: u32, slot_bytes: usize, mut options: Options) -> Result<Client> {
    if !plan.access.writes() {
        // The job sends no payload, so zero-copy buffers are useless.
        options.tuning.zero_copy = u32::MAX;
    }
    Client::connect(&place(plan)?, slots, slot_bytes, options).map_err(|error| unreachable_server(plan, &error))
}

fn place(plan: &JobPlan) -> Result<Uri> {
    uri(plan).parse().map_err(|error: nbd::client::BadUri| Error::refused(plan, format_args!("uri={error}")))
}

fn unreachable_server(plan: &JobPlan, error: &nbd::Error) -> Error {
    let hint = if matches!(error, nbd::Error::System { .. }) { "; is the server running?" } else { "" };
    Error::refused(plan, format_args!("uri={}: {error}{hint}", uri(plan)))
}

/// The tuning of a client or a server for these options.
pub fn tuning(path: &PathPlan) -> Tuning {
    Tuning {
        pull_up: path.send.pull_up,
        zero_copy: path.send.zero_copy,
        copy_out: path.receive.copy,
        copying: copying(path.copy),
        checksums: path.crc == PathCrc::On,
        framing: match path.framing {
            PathFraming::OneGo => Framing::OneGo,
            PathFraming::SegmentAtATime => Framing::SegmentAtATime,
            PathFraming::PageAtATime => Framing::PageAtATime,
        },
        segment: path.segment.bytes,
        coalesce: path.coalesce.duration(),
        busy_poll: path.busy_poll.duration(),
    }
}

/// The copy method that an option names.
pub(super) fn copying(copy: PathCopy) -> Copying {
    match copy {
        PathCopy::Plain => Copying::Plain,
        PathCopy::RepMovsb => Copying::RepMovsb,
        PathCopy::NonTemporal => Copying::NonTemporal,
    }
}

/// The counter that an option names.
pub(super) fn accounting(in_flight: PathInFlight) -> Accounting {
    match in_flight {
        PathInFlight::None => Accounting::None,
        PathInFlight::PerThread => Accounting::PerThread,
        PathInFlight::Shared => Accounting::Shared,
    }
}

fn options(path: &PathPlan) -> Options {
    let in_flight = accounting(path.in_flight);
    let wire = match path.null {
        // The client does not see what the server leaves out.
        PathNull::None | PathNull::Server => Wire::Real,
        PathNull::Wire => Wire::Null,
    };
    Options { tuning: tuning(path), in_flight, wire, ..Options::default() }
}

fn lost(error: nbd::Error) -> io::Error {
    io::Error::other(error)
}

impl<C: Connection> Remote<C> {
    fn hand_over(&mut self) -> io::Result<()> {
        loop {
            let Self { client, done, .. } = self;
            let moved = client.submit(|reply| Self::note(done, reply)).map_err(lost)?;
            self.heed_silence(moved)?;
            if moved {
                return Ok(());
            }
        }
    }

    /// Sends, and waits until something has arrived.
    fn exchange(&mut self) -> io::Result<()> {
        let Self { client, done, .. } = self;
        let came = client.exchange(|reply| Self::note(done, reply)).map_err(lost)?;
        self.heed_silence(came)
    }

    /// Limits how long a server may be silent; less after the job was asked to end.
    fn heed_silence(&mut self, came: bool) -> io::Result<()> {
        if came {
            self.silent_since = None;
            return Ok(());
        }
        let silent = self.silent_since.get_or_insert_with(Instant::now).elapsed() + POLL_INTERVAL;
        let timeout = if self.control.stopped() { END_TIMEOUT } else { SILENCE_TIMEOUT };
        if silent < timeout {
            return Ok(());
        }
        let (uri, seconds, in_flight) = (&self.uri, silent.as_secs(), self.client.in_flight());
        let message =
            format!("{uri}: the server has been silent for {seconds} s, with {in_flight} requests not answered");
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    }

    fn note(done: &mut Vec<(u32, i32, Stages)>, reply: Done) {
        let result = match reply.error {
            Some(error) => -error.number().cast_signed(),
            None => reply.length.cast_signed(),
        };
        done.push((
            reply.slot,
            result,
            Stages { handed_over: reply.handed_over, sent: None, answered: reply.answered },
        ));
    }
}

impl<C: Connection> Queue for Remote<C> {
    #[inline]
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        let ask = match request.kind {
            Kind::Read => Ask::Read,
            Kind::Write => Ask::Write,
            Kind::Trim => Ask::Trim,
        };
        self.client.stage(slot, ask, request.offset, request.length).map_err(lost)
    }

    fn submit(&mut self) -> io::Result<()> {
        if self.batches && self.client.staged_bytes() < MOST_STAGED {
            return Ok(());
        }
        self.hand_over()
    }

    fn wait(&mut self, least: u32, _: u32) -> io::Result<()> {
        if self.batches && self.done.len() >= least as usize {
            // A job that reaps replies one at a time submits the next requests when it has reaped all.
            return self.submit();
        }
        if self.done.len() >= least as usize {
            return self.hand_over();
        }
        while self.done.len() < least as usize && self.client.in_flight() > 0 {
            self.exchange()?;
        }
        Ok(())
    }

    fn reap(&mut self, most: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>)) {
        let count = self.done.len().min(most as usize);
        self.done.drain(..count).for_each(|(slot, result, stages)| each(slot, result, Some(stages)));
    }

    /// Other connections may use the bytes of the arena, so they are copied.
    fn with_memory(&mut self, slot: u32, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        let begin = self.client.begin(slot);
        let Some(copy) = self.copy.get_mut(..length as usize) else { return };
        self.client.arena().read(begin, copy);
        work(copy);
        self.client.arena().write(begin, copy);
    }

    /// One request for both: NBD has only flush.
    fn sync(&mut self, _: u32, _: Sync) -> io::Result<bool> {
        if !self.client.takes(Ask::Flush) {
            return Ok(false);
        }
        self.client.stage(0, Ask::Flush, 0, 0).map_err(lost)?;
        self.wait(1, 1)?;
        match self.done.pop() {
            Some((_, error, _)) if error < 0 => Err(io::Error::from_raw_os_error(-error)),
            _ => Ok(true),
        }
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.client.calls())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{PathReceive, PathSegment, PathSend, TxTaskCpus};
    use model::unit::Nanos;

    /// The plan has its own defaults, which must equal those of the path.
    #[test]
    fn defaults_equal_those_of_the_path() {
        assert_eq!(options(&PathPlan::default()), Options::default());
        assert_eq!(tuning(&PathPlan::default()), nbd::server::Options::default().tuning);
    }

    #[test]
    fn every_option_reaches_the_path() {
        let path = PathPlan {
            uri: None,
            send: PathSend { pull_up: 1, zero_copy: 2 },
            receive: PathReceive { copy: 3 },
            framing: PathFraming::PageAtATime,
            segment: PathSegment { bytes: 6 },
            max_payload: 7,
            copy: PathCopy::NonTemporal,
            crc: PathCrc::On,
            coalesce: Nanos(4),
            busy_poll: Nanos(5),
            in_flight: PathInFlight::PerThread,
            null: PathNull::Wire,
            tx_queue: PathTxQueue::None,
            tx_task_cpus: TxTaskCpus::Any,
            submitters: 1,
        };
        let tuning = Tuning {
            pull_up: 1,
            zero_copy: 2,
            copy_out: 3,
            copying: Copying::NonTemporal,
            checksums: true,
            framing: Framing::PageAtATime,
            segment: 6,
            coalesce: Duration::from_nanos(4),
            busy_poll: Duration::from_nanos(5),
        };
        let handshake_timeout = Options::default().handshake_timeout;
        let expected = Options { tuning, in_flight: Accounting::PerThread, wire: Wire::Null, handshake_timeout };
        assert_eq!(options(&path), expected);
        let shared = PathPlan { in_flight: PathInFlight::Shared, copy: PathCopy::Plain, ..path };
        assert_eq!((options(&shared).in_flight, options(&shared).tuning.copying), (Accounting::Shared, Copying::Plain));
    }
}
