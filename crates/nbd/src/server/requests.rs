//! The transmission phase of one connection: bytes of requests go in, replies come out. The socket is somebody else's.
//!
//! Nothing here waits and nothing grows with what a client sends: a write's payload goes to the storage as it arrives
//! ([`writing`]), and a long reply is made piece by piece as the one before is sent ([`reading`]). [`check`] refuses what makes no
//! sense before anything is done.

mod check;
mod reading;
mod writing;

use super::counters::Counters;
use crate::backends::{Backend, Outcome, Zeroing};
use crate::filters::crc::CHECKSUM_BYTES;
use crate::filters::delay::Layer;
use crate::handshake::BASE_ALLOCATION_ID;
use crate::tuning::Tuning;
use crate::wire::{
    Chunk, ChunkKind, Command, MAX_PAYLOAD, REQUEST_BYTES, Request, WireError, command_flag, simple_reply,
};
pub use check::Rights;
use reading::Reading;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::byte_store::ByteStore;
use sys::send_batch::SendBatch;
use writing::Writing;

/// A batch that holds so many bytes of its own is sent before more is put into it.
const MAX_OWN_BYTES: usize = 256 << 10;
/// The same of all bytes where some are sent from the page cache: they may have to be read first, and others wait meanwhile.
const MAX_MAPPED: usize = 512 << 10;
/// The same of all bytes, copied or not: sending them takes some milliseconds, if they do not come from a disk.
const MAX_UNSENT: usize = 8 << 20;
/// After so long with requests of one client it is the others' turn.
pub(super) const TURN: Duration = Duration::from_millis(5);
/// A delay of a request that others would notice, in ticks: some tens of microseconds.
const LONG_DELAY: u64 = 100_000;

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes of the client.
    Receive,
    /// That its batch is sent. Then it goes on with the bytes that it has.
    Send,
    /// The same, when other connections had their turn: it has taken long.
    Yield,
    /// That it is closed once its batch is sent, and why if that is worth a line.
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
    /// Whether somebody receives the replies.
    replying: bool,
    /// When the first request of this turn began that may take long.
    slow_since: Option<Instant>,
    /// What it did.
    pub counters: Counters,
}

impl Requests {
    /// A connection to `backend`.
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

    /// From now on only what changes or secures the storage is done: nobody receives the replies.
    pub fn leave_out_replies(&mut self) {
        (self.replying, self.reading) = (false, None);
    }

    /// Where in the storage the rest of a write's payload may be received to, begin and length, and what that storage is.
    pub fn in_place(&self) -> Option<(&Arc<ByteStore>, usize, usize)> {
        let (Backend::Memory(store), Some(writing)) = (&self.backend, &self.writing) else { return None };
        let (begin, length) = writing.in_place()?;
        let straight = length > self.tuning.copy_out as usize || self.tuning.framing.most_received().is_some();
        straight.then_some((store, begin, length))
    }

    /// So many bytes at most are received next, `there` being the begin of a request that has come.
    pub fn most_to_receive(&self, there: usize) -> usize {
        let Some(most) = self.tuning.framing.most_received() else { return usize::MAX };
        let rest_of_request = match &self.writing {
            Some(writing) if writing.rest() == 0 => CHECKSUM_BYTES.saturating_sub(there),
            Some(writing) => writing.rest() as usize,
            None => REQUEST_BYTES.saturating_sub(there),
        };
        most.min(rest_of_request)
    }

    /// Whether nothing is begun that is not ended.
    pub fn is_between_requests(&self) -> bool {
        self.writing.is_none() && self.reading.is_none()
    }

    /// So many bytes were received there.
    pub fn received_in_place(&mut self, count: usize, batch: &mut SendBatch) {
        let Some(writing) = &mut self.writing else { return };
        writing.pass(count);
        self.counters.in_place_bytes += count as u64;
        if writing.rest() == 0 {
            self.end_writing(batch);
        }
    }

    /// Does what the bytes ask for and puts the replies into `batch`. Gives how many bytes were taken.
    pub fn advance(&mut self, input: &[u8], batch: &mut SendBatch) -> (usize, Next) {
        let mut rest = input;
        self.slow_since = None;
        let next = loop {
            // A client of which all is done does not wait for its turn: it may disconnect now.
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
                break Next::End(Some("no request begins where one has to"));
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
            // Its payload would have to be read over first.
            (Command::Write, _) if request.length > MAX_PAYLOAD => {
                return Next::End(Some("a write larger than any that is allowed"));
            }
            (Command::Write, outcome) => self.writing = Some(Writing::new(request, outcome, self.rights.checksums)),
            (Command::Read | Command::BlockStatus | Command::Cache, _) if !self.replying => {}
            (Command::Read, Ok(())) => self.begin_reading(request, batch),
            (Command::BlockStatus, Ok(())) => self.block_status(request, batch),
            (_, Ok(())) => {
                let outcome = self.execute(request);
                self.reply(request, outcome, batch);
            }
            (_, Err(error)) => self.reply(request, Err(error), batch),
        }
        Next::Receive
    }

    /// Makes a request dearer, if that is wanted here.
    #[inline]
    fn delay(&mut self, layer: Layer) {
        let delay = self.tuning.delay;
        if delay.burner.is_some_and(|burner| burner.asked_ticks() >= LONG_DELAY) {
            // It counts to the turn, after which it is the others'. A look at the clock would be a part of what is added.
            self.may_be_slow();
        }
        delay.at(layer);
    }

    /// What begins now may take long: it counts to the turn.
    fn may_be_slow(&mut self) {
        self.slow_since.get_or_insert_with(Instant::now);
    }

    /// Whatever has no payload.
    fn execute(&mut self, request: &Request) -> Outcome {
        self.may_be_slow();
        self.delay(Layer::Storage);
        let (offset, length) = (request.offset, request.length);
        match request.command {
            Command::Flush => return self.backend.flush(),
            Command::Cache => return self.backend.cache(offset, length),
            Command::Trim => self.backend.trim(offset, length)?,
            Command::WriteZeroes => {
                let asked = |flag: u16| request.flags & flag != 0;
                let how = Zeroing { allocated: asked(command_flag::NO_HOLE), fast: asked(command_flag::FAST_ZERO) };
                self.backend.zero(offset, length, how)?;
            }
            _ => return Err(WireError::EINVAL),
        }
        if is_durable(request) { self.backend.flush() } else { Ok(()) }
    }

    fn block_status(&mut self, request: &Request, batch: &mut SendBatch) {
        self.may_be_slow();
        self.delay(Layer::Storage);
        let one = request.flags & command_flag::REQ_ONE != 0;
        let extents = self.backend.extents(request.offset, request.length, if one { 1 } else { 128 });
        let length = 4 + 8 * extents.len() as u32;
        batch.put(&Chunk { done: true, kind: ChunkKind::BlockStatus, cookie: request.cookie, length }.encode());
        batch.put(&BASE_ALLOCATION_ID.to_be_bytes());
        for extent in extents {
            batch.put(&extent.length.to_be_bytes());
            batch.put(&extent.kind.bits().to_be_bytes());
        }
    }

    /// A reply without payload. Reads and block status get errors as chunks where replies are structured.
    fn reply(&mut self, request: &Request, outcome: Outcome, batch: &mut SendBatch) {
        let chunk = self.rights.structured && matches!(request.command, Command::Read | Command::BlockStatus);
        match outcome {
            Err(error) if chunk => self.put_error(request.cookie, error, batch),
            outcome => {
                self.counters.errors += u64::from(outcome.is_err());
                batch.put(&simple_reply(request.cookie, outcome.err()));
            }
        }
    }

    fn put_error(&mut self, cookie: u64, error: WireError, batch: &mut SendBatch) {
        self.counters.errors += 1;
        batch.put(&Chunk { done: true, kind: ChunkKind::Error, cookie, length: 6 }.encode());
        batch.put(&error.number().to_be_bytes());
        // No words.
        batch.put(&0_u16.to_be_bytes());
    }
}

/// Whether the request has to be durable before its reply (FUA).
fn is_durable(request: &Request) -> bool {
    request.flags & command_flag::FUA != 0
}

/// Whether a batch is to be sent before more is put into it.
fn is_full(batch: &SendBatch) -> bool {
    let mapped = batch.has_mapped() && batch.unsent() >= MAX_MAPPED;
    batch.own_bytes() >= MAX_OWN_BYTES || batch.unsent() >= MAX_UNSENT || !batch.has_room() || mapped
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

    /// A storage that takes hours for each request is not asked for what is refused, and a server that takes some time takes it for that too.
    #[test]
    fn busy_work_of_storage_is_for_what_it_is_asked_and_that_of_the_server_for_all() {
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

    /// However payloads are sent, a server's memory does not grow with what is asked for.
    #[test]
    fn long_replies_that_are_copied_are_made_in_pieces() {
        let tuning = Tuning { pull_up: u32::MAX, ..Tuning::default() };
        let backend = Backend::memory(u64::from(MAX_PAYLOAD), &tuning).unwrap();
        let mut requests = Requests::new(backend, RIGHTS, tuning);
        let mut batch = requests.batch();
        let request = Request { flags: 0, command: Command::Read, cookie: 1, offset: 0, length: MAX_PAYLOAD }.encode();
        assert_eq!(requests.advance(&request, &mut batch), (REQUEST_BYTES, Next::Send));
        assert!(batch.own_bytes() < 1 << 20, "{}", batch.own_bytes());
    }
}
