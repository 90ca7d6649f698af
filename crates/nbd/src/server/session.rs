//! One connection after the handshake: bytes of requests go in, replies come out. The socket is somebody else's.
//!
//! Nothing here waits and nothing grows with what a client sends: a write's payload goes to the storage as it arrives, and a
//! long reply is made piece by piece as the one before is sent.

use super::counters::Counters;
use super::residency::Residency;
use super::staging::Staging;
use crate::backend::{Backend, Outcome, Zeroing};
use crate::checksum::{CHECKSUM_BYTES, Checksum};
use crate::handshake::BASE_ALLOCATION_ID;
use crate::switches::{Layer, Sending, Switches};
use crate::wire::{
    Chunk, ChunkKind, Command, MAX_PAYLOAD, REQUEST_BYTES, Request, WireError, command_flag, data_chunk, simple_reply,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::byte_store::ByteStore;
use sys::process::major_faults;
use sys::send_batch::SendBatch;

/// A batch that holds so many bytes of its own is sent before more is put into it.
const MAX_OWN_BYTES: usize = 256 << 10;
/// The same of all bytes where there are some of a file that may have to be read after all, a page at a time, so that others need not wait for
/// all that a client can ask for. As much as 128 reads of 4 KiB: fewer at one time are dearer.
const MAX_MAPPED: usize = 512 << 10;
/// And so many pieces, for the same reason: a header and a payload for each reply.
const MAX_MAPPED_PIECES: usize = 2 * 128;
/// The same of all bytes, copied or not: sending them takes some milliseconds, if they do not come from a disk.
const MAX_UNSENT: usize = 8 << 20;
/// After so long with requests of one client it is the others' turn.
pub(super) const TURN: Duration = Duration::from_millis(5);
/// Busy work for a request that others would notice, in ticks: some tens of microseconds.
const LONG_INJECTION: u64 = 100_000;
/// Longer replies whose payload is copied are made in pieces of this size.
const PIECE: u32 = 128 << 10;

/// What the connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether replies to reads are structured.
    pub structured: bool,
    /// Whether block status may be asked for.
    pub base_allocation: bool,
    /// Whether payloads are followed by their checksums.
    pub checksums: bool,
    /// Larger payloads are refused.
    pub max_payload: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes of the client are needed.
    Receive,
    /// The batch has to be sent first; then this is to be called again, with the same bytes.
    Send,
    /// It has taken long, and others wait: the batch is sent, and this called again with the same bytes, when they had
    /// their turn.
    Yield,
    /// The client said good-bye: what is in the batch is sent, and that is all.
    Disconnect,
    /// The two ends have lost each other, and nothing can be said about it any more.
    Lost(&'static str),
}

/// A connection's state.
#[derive(Debug)]
pub struct Session {
    backend: Backend,
    rights: Rights,
    switches: Switches,
    writing: Option<Writing>,
    reading: Option<Reading>,
    staging: Staging,
    residency: Residency,
    /// Whether somebody hears the replies.
    heard: bool,
    /// When the first request of this turn began that may take long.
    long_since: Option<Instant>,
    /// What it did.
    pub counters: Counters,
}

/// How durable a write is when it is replied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// As durable as the storage makes it by itself.
    Later,
    /// Durable now (FUA).
    Now,
}

/// A write whose payload is on its way.
#[derive(Clone, Copy, Debug)]
struct Writing {
    cookie: u64,
    offset: u64,
    rest: u32,
    durability: Durability,
    outcome: Outcome,
    /// Of what has come, where it is to be checked.
    sum: Option<Checksum>,
}

/// A read of which a part has been put out.
#[derive(Clone, Copy, Debug)]
struct Reading {
    cookie: u64,
    offset: u64,
    rest: u32,
    /// Whether each piece is a chunk of its own.
    chunks: bool,
    /// What the header of all pieces answers to; it goes out with the first, which may fail.
    header: Option<Request>,
    /// Of what was put out, where it is to follow.
    sum: Option<Checksum>,
}

impl Session {
    /// A connection to `backend`.
    pub fn new(backend: Backend, rights: Rights, switches: Switches) -> Self {
        Self {
            backend,
            rights,
            switches,
            writing: None,
            reading: None,
            staging: Staging::default(),
            residency: Residency::default(),
            heard: true,
            long_since: None,
            counters: Counters::default(),
        }
    }

    /// An empty batch for this connection's replies.
    pub fn batch(&self) -> SendBatch {
        self.backend.batch().in_pieces_of(self.switches.most_sent()).in_segments_of(self.switches.segment as usize)
    }

    /// Something of a mapped file was sent, which may have had to be read for that.
    #[inline]
    pub fn sent_mapped(&mut self) {
        if self.residency.is_due() {
            self.backend.is_whole();
            self.residency.sent(major_faults());
        }
    }

    /// Something of it could not be read.
    pub fn map_no_more(&self) {
        self.backend.map_no_more();
    }

    /// From now on only what changes or secures the storage is done: nobody hears the replies.
    pub fn leave_out_replies(&mut self) {
        (self.heard, self.reading) = (false, None);
    }

    /// Where in the storage the rest of a write's payload may be received to, begin and length, and what that storage is.
    pub fn in_place(&self) -> Option<(&Arc<ByteStore>, usize, usize)> {
        let (Backend::Memory(store), Some(writing)) = (&self.backend, &self.writing) else { return None };
        let straight = writing.rest > self.switches.copy_out || self.switches.framing.most_received().is_some();
        // What is summed is summed before anybody else can change it. The rest is within the storage's size, which is a usize.
        (writing.outcome.is_ok() && straight && writing.sum.is_none()).then_some((
            store,
            writing.offset as usize,
            writing.rest as usize,
        ))
    }

    /// So many bytes at most are received next, `there` being the begin of a request that has come.
    pub fn most_to_receive(&self, there: usize) -> usize {
        let most = self.switches.framing.most_received();
        most.map_or(usize::MAX, |most| most.min(self.rest_of_request(there)))
    }

    /// Bytes of the request that has begun that have not come yet, or of the next one's header.
    pub fn rest_of_request(&self, there: usize) -> usize {
        match &self.writing {
            Some(writing) if writing.rest == 0 => CHECKSUM_BYTES.saturating_sub(there),
            Some(writing) => writing.rest as usize,
            None => REQUEST_BYTES.saturating_sub(there),
        }
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
        if writing.rest == 0 {
            self.end_writing(batch);
        }
    }

    /// Does what the bytes ask for and puts the replies into `batch`. Gives how many bytes were taken.
    pub fn advance(&mut self, input: &[u8], batch: &mut SendBatch) -> (usize, Next) {
        let mut rest = input;
        self.long_since = None;
        loop {
            // Who has nothing more to be done waits for nobody: he may say good-bye now.
            let more = !rest.is_empty() || self.reading.is_some();
            if more && self.long_since.is_some_and(|begin| begin.elapsed() >= TURN) {
                return (input.len() - rest.len(), Next::Yield);
            }
            let mapped = batch.has_mapped() && (batch.unsent() >= MAX_MAPPED || batch.pieces() >= MAX_MAPPED_PIECES);
            if batch.own_bytes() >= MAX_OWN_BYTES || batch.unsent() >= MAX_UNSENT || !batch.has_room() || mapped {
                return (input.len() - rest.len(), Next::Send);
            }
            if self.reading.is_some() {
                match self.read_on(batch) {
                    Ok(()) => continue,
                    Err(why) => return (input.len() - rest.len(), Next::Lost(why)),
                }
            }
            if let Some(writing) = &mut self.writing {
                if self.backend.may_wait() {
                    self.long_since.get_or_insert_with(Instant::now);
                }
                let (now, later) = rest.split_at(rest.len().min(writing.rest as usize));
                rest = later;
                writing.take(now, &self.backend, &mut self.staging);
                if writing.rest > 0 {
                    return (input.len() - rest.len(), Next::Receive);
                }
                if let Some(sum) = writing.sum {
                    let Some((found, later)) = rest.split_first_chunk::<CHECKSUM_BYTES>() else {
                        return (input.len() - rest.len(), Next::Receive);
                    };
                    rest = later;
                    writing.outcome =
                        writing.outcome.and(if *found == sum.bytes() { Ok(()) } else { Err(WireError::EIO) });
                }
                self.end_writing(batch);
                continue;
            }
            let Some((header, behind)) = rest.split_first_chunk::<REQUEST_BYTES>() else {
                return (input.len() - rest.len(), Next::Receive);
            };
            let Some(request) = Request::decode(header) else {
                return (input.len() - rest.len(), Next::Lost("no request begins where one has to"));
            };
            rest = behind;
            match self.request(&request, batch) {
                Next::Receive => {}
                next => return (input.len() - rest.len(), next),
            }
        }
    }

    fn request(&mut self, request: &Request, batch: &mut SendBatch) -> Next {
        self.counters.requests += 1;
        let outcome = self.check(request);
        if request.command != Command::Disconnect {
            self.inject(Layer::Server);
        }
        match (request.command, outcome) {
            (Command::Disconnect, _) => return Next::Disconnect,
            // Its payload would have to be read over first.
            (Command::Write, _) if request.length > MAX_PAYLOAD => {
                return Next::Lost("a write larger than any that is allowed");
            }
            (Command::Write, outcome) => {
                let durability = durability(request);
                let (cookie, offset, rest) = (request.cookie, request.offset, request.length);
                let sum = self.rights.checksums.then(Checksum::default);
                self.writing = Some(Writing { cookie, offset, rest, durability, outcome, sum });
            }
            (Command::Read | Command::BlockStatus | Command::Cache, _) if !self.heard => {}
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
    fn inject(&mut self, layer: Layer) {
        let inject = self.switches.inject;
        if inject.burner.is_some_and(|burner| burner.asked_ticks() >= LONG_INJECTION) {
            // It counts to the turn, after which it is the others'. A look at the clock would be a part of what is injected.
            self.long_since.get_or_insert_with(Instant::now);
        }
        inject.at(layer);
    }

    /// Whether the request makes sense, before anything is done.
    fn check(&self, request: &Request) -> Outcome {
        use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
        let known = match request.command {
            Command::Read if self.rights.structured => DF,
            Command::WriteZeroes => NO_HOLE | FAST_ZERO,
            Command::BlockStatus => REQ_ONE,
            Command::Unknown(_) => return Err(WireError::EINVAL),
            _ => 0,
        };
        // FUA is allowed with every command and means something with those that write.
        if request.flags & !(known | FUA) != 0 {
            return Err(WireError::EINVAL);
        }
        let writes = matches!(request.command, Command::Write | Command::Trim | Command::WriteZeroes);
        if writes && self.rights.read_only {
            return Err(WireError::EPERM);
        }
        if matches!(request.command, Command::Flush | Command::Disconnect) {
            return Ok(());
        }
        let end = request.offset.checked_add(u64::from(request.length));
        if end.is_none_or(|end| end > self.backend.size()) {
            // Of a range that is trimmed nothing is to be stored.
            let stores = matches!(request.command, Command::Write | Command::WriteZeroes);
            return Err(if stores { WireError::ENOSPC } else { WireError::EINVAL });
        }
        let moves = matches!(request.command, Command::Read | Command::Write);
        let too_large = moves && request.length > self.rights.max_payload;
        let unasked = request.command == Command::BlockStatus && !self.rights.base_allocation;
        if request.length == 0 || too_large || unasked { Err(WireError::EINVAL) } else { Ok(()) }
    }

    /// Whatever has no payload.
    fn execute(&mut self, request: &Request) -> Outcome {
        self.long_since.get_or_insert_with(Instant::now);
        self.inject(Layer::Storage);
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
        if durability(request) == Durability::Now { self.backend.flush() } else { Ok(()) }
    }

    fn begin_reading(&mut self, request: &Request, batch: &mut SendBatch) {
        self.inject(Layer::Storage);
        let Request { cookie, offset, length, .. } = *request;
        let sending = self.sending(offset, length);
        if length <= PIECE || sending != Sending::PullUp {
            return self.read_at_once(request, sending, batch);
        }
        let chunks = self.rights.structured && request.flags & command_flag::DF == 0;
        let header = (!chunks).then_some(*request);
        let sum = self.rights.checksums.then(Checksum::default);
        self.reading = Some(Reading { cookie, offset, rest: length, chunks, header, sum });
    }

    /// How a payload is sent from this storage. What is summed is copied, because it has to be sent as it was summed; of a file, what may not
    /// be in memory.
    #[inline]
    fn sending(&mut self, offset: u64, length: u32) -> Sending {
        if self.rights.checksums {
            return Sending::PullUp;
        }
        let Some(file) = self.backend.mapped() else {
            return self.backend.sending(self.switches.sending(length));
        };
        let sending = self.switches.sending_of_file(length);
        if sending != Sending::Gather {
            return sending;
        }
        // Within the size, which was mapped.
        let look = || file.is_cached(offset as usize, length as usize) && self.backend.is_whole();
        if self.residency.has(look, major_faults) { Sending::Gather } else { Sending::PullUp }
    }

    fn put_read_header(&self, request: &Request, batch: &mut SendBatch) {
        if self.rights.structured {
            batch.put(&data_chunk(request.cookie, request.offset, request.length));
        } else {
            batch.put(&simple_reply(request.cookie, None));
        }
    }

    /// Header and payload, or the error in their place.
    #[inline]
    fn read_at_once(&mut self, request: &Request, sending: Sending, batch: &mut SendBatch) {
        if self.backend.may_wait() && sending != Sending::Gather {
            self.long_since.get_or_insert_with(Instant::now);
        }
        let mark = batch.mark();
        self.put_read_header(request, batch);
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
                self.reply(request, Err(error), batch);
            }
        }
    }

    /// The next piece of a long read.
    fn read_on(&mut self, batch: &mut SendBatch) -> Result<(), &'static str> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        if self.backend.may_wait() {
            self.long_since.get_or_insert_with(Instant::now);
        }
        let length = reading.rest.min(PIECE);
        let Reading { cookie, offset, chunks, header, sum, .. } = *reading;
        reading.header = None;
        reading.offset += u64::from(length);
        reading.rest -= length;
        let last = reading.rest == 0;
        if last {
            self.reading = None;
        }
        let mark = batch.mark();
        if chunks {
            let chunk = Chunk { done: last, kind: ChunkKind::Data, cookie, length: length + 8 };
            batch.put(&chunk.encode());
            batch.put(&offset.to_be_bytes());
        }
        if let Some(request) = &header {
            self.put_read_header(request, batch);
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
            // The header has promised data, and a part of them is on the way.
            Err(_) if !chunks && header.is_none() => return Err("the storage failed in the middle of a reply"),
            Err(error) => {
                batch.take_back(mark);
                self.reading = None;
                match &header {
                    Some(request) => self.reply(request, Err(error), batch),
                    None => self.put_error(cookie, error, batch),
                }
            }
        }
        Ok(())
    }

    fn end_writing(&mut self, batch: &mut SendBatch) {
        let Some(writing) = self.writing.take() else { return };
        let mut outcome = writing.outcome;
        if outcome.is_ok() {
            self.inject(Layer::Storage);
        }
        if writing.durability == Durability::Now && outcome.is_ok() {
            self.long_since.get_or_insert_with(Instant::now);
            outcome = self.backend.flush();
        }
        self.counters.errors += u64::from(outcome.is_err());
        batch.put(&simple_reply(writing.cookie, outcome.err()));
    }

    fn block_status(&mut self, request: &Request, batch: &mut SendBatch) {
        self.long_since.get_or_insert_with(Instant::now);
        self.inject(Layer::Storage);
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

impl Writing {
    /// The next bytes of the payload. After an error they are read over.
    fn take(&mut self, data: &[u8], backend: &Backend, staging: &mut Staging) {
        if let Some(sum) = &mut self.sum {
            sum.add(data);
        }
        if self.outcome.is_ok() && !data.is_empty() {
            self.outcome = match backend.direct() {
                Some(direct) => {
                    let last = data.len() == self.rest as usize;
                    let outcome = staging.take(self.offset, data, last, backend, direct);
                    if outcome.is_err() {
                        staging.forget(direct);
                    }
                    outcome
                }
                None => backend.write(self.offset, data),
            };
        }
        self.pass(data.len());
    }

    /// So many bytes, at most `rest`, are where they belong.
    fn pass(&mut self, count: usize) {
        self.offset = self.offset.saturating_add(count as u64);
        self.rest -= count as u32;
    }
}

/// The bytes that were copied to the end of a batch last.
fn last_of(batch: &SendBatch, length: u32) -> &[u8] {
    let own = batch.own();
    own.get(own.len().saturating_sub(length as usize)..).unwrap_or_default()
}

fn durability(request: &Request) -> Durability {
    if request.flags & command_flag::FUA != 0 { Durability::Now } else { Durability::Later }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switches::Inject;
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
            let switches = Switches { inject: Inject::new(at, ticks), ..Switches::default() };
            let backend = Backend::memory(4096, &switches).unwrap();
            let mut session = Session::new(backend, Rights { read_only: true, ..RIGHTS }, switches);
            let request = |command| Request { flags: 0, command, cookie: 1, offset: 0, length: 512 }.encode();
            let mut input = [request(Command::Write).to_vec(), vec![0; 512], request(Command::Trim).to_vec()].concat();
            input.extend(Request { offset: 4096, ..Request::decode(&request(Command::Read)).unwrap() }.encode());
            let (begun, mut batch) = (ticks_now(), session.batch());
            assert_eq!(session.advance(&input, &mut batch), (input.len(), Next::Receive));
            assert_eq!(session.counters.errors, 3);
            ticks_now() - begun
        };
        took(Layer::Storage, u64::MAX);
        assert!(took(Layer::Server, 90_000) >= 3 * 90_000);
    }

    /// However payloads are sent, a server's memory does not grow with what is asked for.
    #[test]
    fn long_replies_that_are_copied_are_made_in_pieces() {
        let switches = Switches { pull_up: u32::MAX, ..Switches::default() };
        let backend = Backend::memory(u64::from(MAX_PAYLOAD), &switches).unwrap();
        let mut session = Session::new(backend, RIGHTS, switches);
        let mut batch = session.batch();
        let request = Request { flags: 0, command: Command::Read, cookie: 1, offset: 0, length: MAX_PAYLOAD }.encode();
        assert_eq!(session.advance(&request, &mut batch), (REQUEST_BYTES, Next::Send));
        assert!(batch.own_bytes() < 1 << 20, "{}", batch.own_bytes());
    }
}
