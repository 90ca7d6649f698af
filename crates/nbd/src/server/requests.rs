//! The transmission phase of one connection: bytes of requests go in, replies come out. It does no I/O on the socket.
//!
//! Nothing here waits for the client, and nothing grows with what a client sends: a write's payload goes to the storage
//! as it arrives ([`Writing`]), and a long reply is produced piece by piece as earlier pieces are sent ([`Reading`]).
//! [`check`] refuses invalid requests before anything is executed.

use crate::backends::{Backend, Outcome};
use crate::filters::{CHECKSUM_BYTES, Checksum};
use crate::tuning::{Sending, Tuning};
use crate::wire::{Command, MAX_PAYLOAD, REQUEST_BYTES, Request, WireError, command_flag, simple_reply};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::byte_store::ByteStore;
use sys::send_batch::SendBatch;

/// A batch with this many bytes copied into it is sent before more is added.
const MAX_OWN_BYTES: usize = 256 << 10;
/// The same limit on all bytes, if some are sent from the page cache: the kernel may have to read them from the device,
/// and other clients wait meanwhile.
const MAX_MAPPED: usize = 512 << 10;
/// The same limit on all bytes: sending them takes some milliseconds if they do not come from a device.
const MAX_UNSENT: usize = 8 << 20;
/// After this long with requests of one client, other clients have their turn.
pub(super) const TURN: Duration = Duration::from_millis(5);

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes from the client.
    Receive,
    /// Its batch sent; then it continues with the bytes it has.
    Send,
    /// The same, after the turn of other connections, because this one has taken long.
    Yield,
    /// To be closed once its batch is sent; a reason if that is worth a log line.
    End(Option<&'static str>),
}

/// Counters of one connection, or sums over all: requests, bytes, and system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// All requests, including failed ones.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Payload bytes of reads.
    pub read_bytes: u64,
    /// Of these, bytes copied behind their header before sending.
    pub pulled_up_bytes: u64,
    /// Of these, bytes sent as pages (zero copy).
    pub zero_copy_bytes: u64,
    /// Payload bytes of writes received in place.
    pub in_place_bytes: u64,
    /// System calls that waited or polled for input.
    pub waits: u64,
    /// Receiving system calls.
    pub receives: u64,
    /// Sending system calls.
    pub sends: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

impl Counters {
    #[inline]
    fn read(&mut self, length: u32, sending: Sending) {
        let length = u64::from(length);
        self.read_bytes += length;
        match sending {
            Sending::PullUp => self.pulled_up_bytes += length,
            Sending::Gather => {}
            Sending::ZeroCopy => self.zero_copy_bytes += length,
        }
    }

    /// Adds another connection's counters.
    pub fn add(&mut self, other: &Self) {
        *self = Self {
            requests: self.requests + other.requests,
            errors: self.errors + other.errors,
            read_bytes: self.read_bytes + other.read_bytes,
            pulled_up_bytes: self.pulled_up_bytes + other.pulled_up_bytes,
            zero_copy_bytes: self.zero_copy_bytes + other.zero_copy_bytes,
            in_place_bytes: self.in_place_bytes + other.in_place_bytes,
            waits: self.waits + other.waits,
            receives: self.receives + other.receives,
            sends: self.sends + other.sends,
            received_bytes: self.received_bytes + other.received_bytes,
            sent_bytes: self.sent_bytes + other.sent_bytes,
        };
    }
}

/// What a connection is allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether checksums follow payloads.
    pub checksums: bool,
    /// Maximum payload in bytes; longer ones are refused.
    pub max_payload: u32,
}

/// A connection's transmission phase.
#[derive(Debug)]
pub struct Requests {
    backend: Backend,
    rights: Rights,
    tuning: Tuning,
    writing: Option<Writing>,
    reading: Option<Reading>,
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
            Some(writing) if writing.rest == 0 => CHECKSUM_BYTES.saturating_sub(there),
            Some(writing) => writing.rest as usize,
            None => REQUEST_BYTES.saturating_sub(there),
        };
        most.min(rest_of_request)
    }

    /// Whether no request is partly processed.
    pub fn is_between_requests(&self) -> bool {
        self.writing.is_none() && self.reading.is_none()
    }

    /// Records that `count` bytes were received in place.
    pub fn received_in_place(&mut self, count: usize, batch: &mut SendBatch) {
        let Some(writing) = &mut self.writing else { return };
        writing.pass(count);
        self.counters.in_place_bytes += count as u64;
        if writing.rest == 0 {
            self.end_writing(batch);
        }
    }

    /// Executes the requests in `input` and appends the replies to `batch`. Returns the number of bytes used.
    pub fn advance(&mut self, input: &[u8], batch: &mut SendBatch) -> (usize, Next) {
        let mut rest = input;
        self.slow_since = None;
        let next = loop {
            // A client with nothing left does not yield: it may disconnect now.
            let more = !rest.is_empty() || self.reading.is_some();
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
        let outcome = check(request, &self.rights, self.backend.size());
        #[cfg(test)]
        if request.command != Command::Disconnect && !self.tuning.slow.is_zero() {
            self.may_be_slow();
            std::thread::sleep(self.tuning.slow);
        }
        match (request.command, outcome) {
            (Command::Disconnect, _) => return Next::End(None),
            // Skipping the payload would take too long.
            (Command::Write, _) if request.length > MAX_PAYLOAD => {
                return Next::End(Some("write exceeds the maximum payload"));
            }
            (Command::Write, outcome) => self.writing = Some(Writing::new(request, outcome, self.rights.checksums)),
            (Command::Read, _) if !self.replying => {}
            (Command::Read, Ok(())) => self.begin_reading(request, batch),
            (command, Ok(())) => {
                self.may_be_slow();
                let Request { offset, length, flags, .. } = *request;
                let outcome = match command {
                    Command::Trim => self.backend.trim(offset, length),
                    Command::WriteZeroes => self.backend.zero(offset, length, flags & command_flag::NO_HOLE != 0),
                    _ => Ok(()),
                };
                self.finish(request.cookie, outcome, command == Command::Flush || is_durable(request), batch);
            }
            (_, Err(error)) => self.reply(request.cookie, Err(error), batch),
        }
        Next::Receive
    }

    /// Replies to a request that is done, once it is durable if it has to be.
    fn finish(&mut self, cookie: u64, done: Outcome, durable: bool, batch: &mut SendBatch) {
        let outcome = if durable { done.and_then(|()| self.backend.flush()) } else { done };
        self.reply(cookie, outcome, batch);
    }

    /// Starts counting toward the turn limit, because the request may be slow.
    fn may_be_slow(&mut self) {
        self.slow_since.get_or_insert_with(Instant::now);
    }

    /// Replies without payload.
    fn reply(&mut self, cookie: u64, outcome: Outcome, batch: &mut SendBatch) {
        self.counters.errors += u64::from(outcome.is_err());
        batch.put(&simple_reply(cookie, outcome.err()));
    }
}

/// Whether an export of `size` bytes can execute this request for a client with these rights; if not, the error to
/// reply.
fn check(request: &Request, rights: &Rights, size: u64) -> Outcome {
    let known = match request.command {
        Command::WriteZeroes => command_flag::NO_HOLE,
        Command::Unknown(_) => return Err(WireError::EINVAL),
        _ => 0,
    };
    // FUA is allowed with every command and affects those that write.
    if request.flags & !(known | command_flag::FUA) != 0 {
        return Err(WireError::EINVAL);
    }
    let writes = matches!(request.command, Command::Write | Command::Trim | Command::WriteZeroes);
    if writes && rights.read_only {
        return Err(WireError::EPERM);
    }
    if matches!(request.command, Command::Flush | Command::Disconnect) {
        return Ok(());
    }
    let end = request.offset.checked_add(u64::from(request.length));
    if end.is_none_or(|end| end > size) {
        // Trimming stores nothing, so it cannot run out of space.
        let stores = matches!(request.command, Command::Write | Command::WriteZeroes);
        return Err(if stores { WireError::ENOSPC } else { WireError::EINVAL });
    }
    let moves = matches!(request.command, Command::Read | Command::Write);
    let too_large = moves && request.length > rights.max_payload;
    if request.length == 0 || too_large { Err(WireError::EINVAL) } else { Ok(()) }
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

/// Longer payloads that are copied are produced in pieces of this size.
const PIECE: u32 = 128 << 10;

/// A read whose reply is partly produced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Of the request; the header goes out with the first piece, which may fail.
    cookie: u64,
    offset: u64,
    rest: u32,
    /// Nothing has gone out.
    first: bool,
    /// Checksum of the pieces so far, if one follows the payload.
    sum: Option<Checksum>,
    /// Bytes still to be read once before the header promises them: behind a header, the server cannot report that the
    /// storage failed. Zero for memory.
    unverified: u32,
}

impl Requests {
    pub(super) fn begin_reading(&mut self, request: &Request, batch: &mut SendBatch) {
        let Request { cookie, offset, length, .. } = *request;
        let sending = self.sending(length);
        if length <= PIECE || sending != Sending::PullUp {
            return self.read_at_once(request, sending, batch);
        }
        let sum = self.rights.checksums.then(Checksum::default);
        let unverified = if self.backend.may_wait() { length } else { 0 };
        self.reading = Some(Reading { cookie, offset, rest: length, first: true, sum, unverified });
    }

    /// How to send a payload from this storage. A payload with a checksum is copied, because it has to be sent exactly
    /// as summed.
    #[inline]
    fn sending(&self, length: u32) -> Sending {
        if self.rights.checksums { Sending::PullUp } else { self.backend.sending(self.tuning.sending(length)) }
    }

    /// Puts header and payload, or an error instead.
    #[inline]
    fn read_at_once(&mut self, request: &Request, sending: Sending, batch: &mut SendBatch) {
        if self.backend.may_wait() && sending != Sending::Gather {
            self.may_be_slow();
        }
        let mark = batch.mark();
        batch.put(&simple_reply(request.cookie, None));
        match self.backend.read(request.offset, request.length, sending, batch) {
            Ok(()) => {
                if self.rights.checksums {
                    let mut sum = Checksum::default();
                    sum.add(last_of(batch, request.length));
                    batch.put(&sum.bytes());
                }
                self.counters.read(request.length, sending);
            }
            Err(error) => {
                batch.take_back(mark);
                self.reply(request.cookie, Err(error), batch);
            }
        }
    }

    /// Reads the next piece of a long read for the first time: it enters the page cache, or the reply is an error.
    fn verify(&mut self, batch: &mut SendBatch) {
        let Some(reading) = &mut self.reading else { return };
        let length = reading.unverified.min(PIECE);
        let offset = reading.offset + u64::from(reading.rest - reading.unverified);
        reading.unverified -= length;
        let (cookie, mark) = (reading.cookie, batch.mark());
        let outcome = self.backend.read(offset, length, Sending::PullUp, batch);
        batch.take_back(mark);
        if let Err(error) = outcome {
            self.reading = None;
            self.reply(cookie, Err(error), batch);
        }
    }

    /// Puts the next piece of a long read.
    pub(super) fn read_on(&mut self, batch: &mut SendBatch) -> Result<(), &'static str> {
        if self.backend.may_wait() {
            self.may_be_slow();
        }
        let Some(reading) = &mut self.reading else { return Ok(()) };
        if reading.unverified > 0 {
            self.verify(batch);
            return Ok(());
        }
        let length = reading.rest.min(PIECE);
        let Reading { cookie, offset, first, sum, .. } = *reading;
        reading.first = false;
        reading.offset += u64::from(length);
        reading.rest -= length;
        if reading.rest == 0 {
            self.reading = None;
        }
        let mark = batch.mark();
        if first {
            batch.put(&simple_reply(cookie, None));
        }
        match self.backend.read(offset, length, Sending::PullUp, batch) {
            Ok(()) => {
                self.counters.read(length, Sending::PullUp);
                if let Some(mut sum) = sum {
                    sum.add(last_of(batch, length));
                    match &mut self.reading {
                        Some(reading) => reading.sum = Some(sum),
                        None => batch.put(&sum.bytes()),
                    }
                }
            }
            // The header has promised data, and some of them are already sent.
            Err(_) if !first => return Err("the storage failed in the middle of a reply"),
            Err(error) => {
                batch.take_back(mark);
                self.reading = None;
                self.reply(cookie, Err(error), batch);
            }
        }
        Ok(())
    }
}

/// The bytes that were copied to the end of a batch last.
fn last_of(batch: &SendBatch, length: u32) -> &[u8] {
    let own = batch.own();
    own.get(own.len().saturating_sub(length as usize)..).unwrap_or_default()
}

/// A write whose payload is arriving.
#[derive(Debug)]
pub(super) struct Writing {
    cookie: u64,
    offset: u64,
    /// Payload bytes that have not arrived.
    pub(super) rest: u32,
    /// Flush before the reply (FUA).
    durable: bool,
    outcome: Outcome,
    /// Checksum of the payload so far, if it is to be verified.
    sum: Option<Checksum>,
}

impl Requests {
    /// Writes the payload bytes in `input`; returns what follows them.
    pub(super) fn write_on<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        if self.backend.may_wait() {
            self.may_be_slow();
        }
        let Some(writing) = &mut self.writing else { return input };
        let (now, later) = input.split_at(input.len().min(writing.rest as usize));
        writing.take(now, &self.backend);
        later
    }

    /// Whether the payload is complete, including its checksum, which is consumed from `input` and verified.
    pub(super) fn has_payload(&mut self, input: &mut &[u8]) -> bool {
        let Some(writing) = &mut self.writing else { return true };
        if writing.rest > 0 {
            return false;
        }
        if let Some(sum) = writing.sum {
            let Some((found, later)) = input.split_first_chunk::<CHECKSUM_BYTES>() else { return false };
            *input = later;
            writing.outcome = writing.outcome.and(if *found == sum.bytes() { Ok(()) } else { Err(WireError::EIO) });
        }
        true
    }

    /// Finishes a write whose payload is complete, and replies.
    pub(super) fn end_writing(&mut self, batch: &mut SendBatch) {
        let Some(writing) = self.writing.take() else { return };
        self.finish(writing.cookie, writing.outcome, writing.durable, batch);
    }
}

impl Writing {
    /// A write that is allowed or refused by `outcome`. The payload of a refused write is skipped.
    pub(super) fn new(request: &Request, outcome: Outcome, checksums: bool) -> Self {
        Self {
            cookie: request.cookie,
            offset: request.offset,
            rest: request.length,
            durable: is_durable(request),
            outcome,
            sum: checksums.then(Checksum::default),
        }
    }

    /// The place of the rest (start and length), if it may be received in place. A payload with a checksum may not: it
    /// is summed before anyone else can change it. The place is within the storage's size, which fits in a usize.
    pub(super) fn in_place(&self) -> Option<(usize, usize)> {
        (self.outcome.is_ok() && self.sum.is_none()).then_some((self.offset as usize, self.rest as usize))
    }

    /// Takes the next payload bytes.
    fn take(&mut self, data: &[u8], backend: &Backend) {
        if let Some(sum) = &mut self.sum {
            sum.add(data);
        }
        if self.outcome.is_ok() && !data.is_empty() {
            self.outcome = backend.write(self.offset, data);
        }
        self.pass(data.len());
    }

    /// Records that `count` payload bytes (at most `rest`) have been handled.
    pub(super) fn pass(&mut self, count: usize) {
        self.offset = self.offset.saturating_add(count as u64);
        self.rest -= count as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHTS: Rights = Rights { read_only: false, checksums: false, max_payload: MAX_PAYLOAD };

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
