//! The transmission phase of one connection: bytes of requests go in, replies come out. It does no I/O on the socket.
//!
//! Nothing here waits for the client, and nothing grows with what a client sends: a write's payload goes to the storage
//! as it arrives ([`writing`]), and a long reply is produced piece by piece as earlier pieces are sent ([`reading`]).
//! No request occupies the thread for long: a range is zeroed, trimmed or prefetched piece by piece ([`sweeping`]), and
//! what cannot be cut into pieces is left to a worker ([`awaiting`]). [`check`] refuses invalid requests before anything is executed.

mod awaiting;
mod check;
mod reading;
mod sweeping;
mod writing;

use super::counters::Counters;
use crate::backends::{Backend, Extent, Outcome};
use crate::filters::crc::CHECKSUM_BYTES;
use crate::filters::delay::Layer;
use crate::handshake::BASE_ALLOCATION_ID;
use crate::tuning::Tuning;
use crate::wire::{
    Chunk, ChunkKind, Command, MAX_PAYLOAD, REQUEST_BYTES, Request, WireError, command_flag, simple_reply,
};
use awaiting::Awaiting;
pub use awaiting::{Done, Work};
pub use check::Rights;
use reading::Reading;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sweeping::Sweeping;
use sys::byte_store::ByteStore;
use sys::send_batch::SendBatch;
use writing::Writing;

/// A batch with this many bytes copied into it is sent before more is added.
const MAX_OWN_BYTES: usize = 256 << 10;
/// The same limit on all bytes, if some are sent from the page cache: the kernel may have to read them from the device,
/// and other clients wait meanwhile.
const MAX_MAPPED: usize = 512 << 10;
/// The same limit on all bytes: sending them takes some milliseconds if they do not come from a device.
const MAX_UNSENT: usize = 8 << 20;
/// After this long with requests of one client, other clients have their turn.
pub(super) const TURN: Duration = Duration::from_millis(5);
/// Busy work per request that other clients would notice, in ticks: some tens of microseconds.
const LONG_DELAY: u64 = 100_000;

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes from the client.
    Receive,
    /// Its batch sent; then it continues with the bytes it has.
    Send,
    /// The same, after the turn of other connections, because this one has taken long.
    Yield,
    /// Its batch sent, and what a worker does for it ([`Requests::take_work`], [`Requests::resume`]); then it continues
    /// with the bytes it has.
    Wait,
    /// To be closed once its batch is sent; a reason if that is worth a log line.
    End(Option<&'static str>),
}

/// A connection's transmission phase.
#[derive(Debug)]
pub struct Requests {
    backend: Backend,
    rights: Rights,
    tuning: Tuning,
    writing: Option<Writing>,
    reading: Option<Reading>,
    sweeping: Option<Sweeping>,
    awaiting: Option<Awaiting>,
    /// Whether the client still receives replies.
    replying: bool,
    /// When the first possibly slow request of this turn started.
    slow_since: Option<Instant>,
    /// Counters of this connection.
    pub counters: Counters,
}

impl Requests {
    /// The transmission phase of a connection to `backend`.
    pub fn new(backend: Backend, rights: Rights, tuning: Tuning) -> Self {
        Self {
            backend,
            rights,
            tuning,
            writing: None,
            reading: None,
            sweeping: None,
            awaiting: None,
            replying: true,
            slow_since: None,
            counters: Counters::default(),
        }
    }

    /// An empty batch for this connection's replies.
    pub fn batch(&self) -> SendBatch {
        self.backend.batch().in_pieces_of(self.tuning.most_sent()).in_segments_of(self.tuning.segment as usize)
    }

    /// Stops replying, because the client has disconnected: from now on only requests that change or flush the storage
    /// are executed.
    pub fn suppress_replies(&mut self) {
        (self.replying, self.reading) = (false, None);
        self.sweeping = self.sweeping.take().filter(Sweeping::changes_storage);
    }

    /// The place in memory where the rest of a write's payload may be received (start and length), and the memory
    /// itself. `None` if it cannot be received in place.
    pub fn in_place(&self) -> Option<(&Arc<ByteStore>, usize, usize)> {
        let (Backend::Memory(store), Some(writing)) = (&self.backend, &self.writing) else { return None };
        let (begin, length) = writing.in_place()?;
        let straight = length > self.tuning.copy_out as usize || self.tuning.framing.most_received().is_some();
        straight.then_some((store, begin, length))
    }

    /// Limit of the next receive call, given that `there` bytes of a message have arrived.
    pub fn most_to_receive(&self, there: usize) -> usize {
        let Some(most) = self.tuning.framing.most_received() else { return usize::MAX };
        let rest_of_request = match &self.writing {
            Some(writing) if writing.rest() == 0 => CHECKSUM_BYTES.saturating_sub(there),
            Some(writing) => writing.rest() as usize,
            None => REQUEST_BYTES.saturating_sub(there),
        };
        most.min(rest_of_request)
    }

    /// Whether no request is partly processed.
    pub fn is_between_requests(&self) -> bool {
        self.writing.is_none() && self.reading.is_none() && self.sweeping.is_none() && self.awaiting.is_none()
    }

    /// Records that `count` bytes were received in place.
    pub fn received_in_place(&mut self, count: usize, batch: &mut SendBatch) {
        let Some(writing) = &mut self.writing else { return };
        writing.pass(count);
        self.counters.in_place_bytes += count as u64;
        if writing.rest() == 0 {
            self.end_writing(batch);
        }
    }

    /// Executes the requests in `input` and appends the replies to `batch`. Returns the number of bytes used.
    pub fn advance(&mut self, input: &[u8], batch: &mut SendBatch) -> (usize, Next) {
        let mut rest = input;
        self.slow_since = None;
        let next = loop {
            if self.awaiting.is_some() {
                break Next::Wait;
            }
            // A client with nothing left does not yield: it may disconnect now.
            let more = !rest.is_empty() || self.reading.is_some() || self.sweeping.is_some();
            if more && self.slow_since.is_some_and(|begin| begin.elapsed() >= TURN) {
                break Next::Yield;
            }
            if is_full(batch) {
                break Next::Send;
            }
            if self.reading.is_some() {
                match self.read_on(batch) {
                    Ok(()) => continue,
                    Err(why) => break Next::End(Some(why)),
                }
            }
            if self.sweeping.is_some() {
                self.sweep_on(batch);
                continue;
            }
            if self.writing.is_some() {
                rest = self.write_on(rest);
                if !self.has_payload(&mut rest) {
                    break Next::Receive;
                }
                self.end_writing(batch);
                continue;
            }
            let Some((header, behind)) = rest.split_first_chunk::<REQUEST_BYTES>() else { break Next::Receive };
            let Some(request) = Request::decode(header) else {
                break Next::End(Some("expected a request, got something else"));
            };
            rest = behind;
            match self.request(&request, batch) {
                Next::Receive => {}
                next => break next,
            }
        };
        (input.len() - rest.len(), next)
    }

    fn request(&mut self, request: &Request, batch: &mut SendBatch) -> Next {
        self.counters.requests += 1;
        let outcome = check::check(request, &self.rights, self.backend.size());
        if request.command != Command::Disconnect {
            self.delay(Layer::Server);
        }
        match (request.command, outcome) {
            (Command::Disconnect, _) => return Next::End(None),
            // Skipping the payload would take too long.
            (Command::Write, _) if request.length > MAX_PAYLOAD => {
                return Next::End(Some("write exceeds the maximum payload"));
            }
            (Command::Write, outcome) => self.writing = Some(Writing::new(request, outcome, self.rights.checksums)),
            (Command::Read | Command::BlockStatus | Command::Cache, _) if !self.replying => {}
            (Command::Read, Ok(())) => self.begin_reading(request, batch),
            (Command::BlockStatus, Ok(())) => self.block_status(request, batch),
            (Command::Flush, Ok(())) => {
                self.delay(Layer::Storage);
                self.flush(request.cookie, batch);
            }
            (_, Ok(())) => self.begin_sweeping(request),
            (_, Err(error)) => self.reply(request, Err(error), batch),
        }
        Next::Receive
    }

    /// Adds the configured busy work, if it belongs to this layer.
    #[inline]
    fn delay(&mut self, layer: Layer) {
        let delay = self.tuning.delay;
        if delay.burner.is_some_and(|burner| burner.asked_ticks() >= LONG_DELAY) {
            // Counts toward the turn limit, so that other clients get their turn. For short delays, reading the clock
            // would add to the measured delay.
            self.may_be_slow();
        }
        delay.at(layer);
    }

    /// Starts counting toward the turn limit, because the request may be slow.
    fn may_be_slow(&mut self) {
        self.slow_since.get_or_insert_with(Instant::now);
    }

    /// Makes completed writes durable, and replies. A file may take any time, so a worker does it.
    fn flush(&mut self, cookie: u64, batch: &mut SendBatch) {
        if self.backend.may_wait() {
            self.awaiting = Some(Awaiting::new(cookie, Work::Flush));
        } else {
            let outcome = self.backend.flush();
            self.reply_simply(cookie, outcome, batch);
        }
    }

    fn block_status(&mut self, request: &Request, batch: &mut SendBatch) {
        self.delay(Layer::Storage);
        let Request { cookie, offset, length, .. } = *request;
        let most = if request.flags & command_flag::REQ_ONE != 0 { 1 } else { 128 };
        if self.backend.may_wait() {
            // A file system may have to look at every page of the file.
            self.awaiting = Some(Awaiting::new(cookie, Work::FindExtents { offset, length, most }));
        } else {
            let extents = self.backend.extents(offset, length, most);
            Self::put_extents(cookie, &extents, batch);
        }
    }

    fn put_extents(cookie: u64, extents: &[Extent], batch: &mut SendBatch) {
        let length = 4 + 8 * extents.len() as u32;
        batch.put(&Chunk { done: true, kind: ChunkKind::BlockStatus, cookie, length }.encode());
        batch.put(&BASE_ALLOCATION_ID.to_be_bytes());
        for extent in extents {
            batch.put(&extent.length.to_be_bytes());
            batch.put(&extent.kind.bits().to_be_bytes());
        }
    }

    /// Replies without payload. Reads and block status report errors as chunks if replies are structured.
    fn reply(&mut self, request: &Request, outcome: Outcome, batch: &mut SendBatch) {
        let chunk = self.rights.structured && matches!(request.command, Command::Read | Command::BlockStatus);
        match outcome {
            Err(error) if chunk => self.put_error(request.cookie, error, batch),
            outcome => self.reply_simply(request.cookie, outcome, batch),
        }
    }

    fn reply_simply(&mut self, cookie: u64, outcome: Outcome, batch: &mut SendBatch) {
        self.counters.errors += u64::from(outcome.is_err());
        batch.put(&simple_reply(cookie, outcome.err()));
    }

    fn put_error(&mut self, cookie: u64, error: WireError, batch: &mut SendBatch) {
        self.counters.errors += 1;
        batch.put(&Chunk { done: true, kind: ChunkKind::Error, cookie, length: 6 }.encode());
        batch.put(&error.number().to_be_bytes());
        // No message text.
        batch.put(&0_u16.to_be_bytes());
    }
}

/// Whether the request has to be durable before its reply (FUA).
fn is_durable(request: &Request) -> bool {
    request.flags & command_flag::FUA != 0
}

/// Whether the batch has to be sent before more is added.
fn is_full(batch: &SendBatch) -> bool {
    let mapped = batch.has_mapped() && batch.unsent() >= MAX_MAPPED;
    batch.own().len() >= MAX_OWN_BYTES || batch.unsent() >= MAX_UNSENT || !batch.has_room() || mapped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::delay::Delay;
    use sys::clock::ticks as ticks_now;

    const RIGHTS: Rights = Rights {
        read_only: false,
        structured: false,
        base_allocation: false,
        checksums: false,
        max_payload: MAX_PAYLOAD,
    };

    /// Busy work at the storage is not spent on requests that are refused; busy work at the server is spent on every
    /// request.
    #[test]
    fn storage_delay_applies_to_executed_requests_and_server_delay_to_all() {
        let took = |at, ticks| {
            let tuning = Tuning { delay: Delay::new(at, ticks), ..Tuning::default() };
            let backend = Backend::memory(4096, &tuning).unwrap();
            let mut requests = Requests::new(backend, Rights { read_only: true, ..RIGHTS }, tuning);
            let request = |command| Request { flags: 0, command, cookie: 1, offset: 0, length: 512 }.encode();
            let mut input = [request(Command::Write).to_vec(), vec![0; 512], request(Command::Trim).to_vec()].concat();
            input.extend(Request { offset: 4096, ..Request::decode(&request(Command::Read)).unwrap() }.encode());
            let (begun, mut batch) = (ticks_now(), requests.batch());
            assert_eq!(requests.advance(&input, &mut batch), (input.len(), Next::Receive));
            assert_eq!(requests.counters.errors, 3);
            ticks_now() - begun
        };
        took(Layer::Storage, u64::MAX);
        assert!(took(Layer::Server, 90_000) >= 3 * 90_000);
    }

    /// A server's memory does not grow with the length of a read, even if payloads are copied.
    #[test]
    fn long_copied_replies_are_produced_in_pieces() {
        let tuning = Tuning { pull_up: u32::MAX, ..Tuning::default() };
        let backend = Backend::memory(u64::from(MAX_PAYLOAD), &tuning).unwrap();
        let mut requests = Requests::new(backend, RIGHTS, tuning);
        let mut batch = requests.batch();
        let request = Request { flags: 0, command: Command::Read, cookie: 1, offset: 0, length: MAX_PAYLOAD }.encode();
        assert_eq!(requests.advance(&request, &mut batch), (REQUEST_BYTES, Next::Send));
        assert!(batch.own().len() < 1 << 20, "{}", batch.own().len());
    }
}
