//! Streams through io_uring: what is to be sent and where is to be received are handed over with the system call that waits.
//!
//! What the kernel uses after that call belongs to the ring until it is done with it: batches and memory are moved in, and come
//! back with an [`Event`].

use crate::receive_batch::ReceiveBatch;
use crate::send_batch::SendBatch;
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// So many operations at most are handed over with one system call.
const ENTRIES: u32 = 256;
/// So often what is staged is handed over in vain.
const IN_VAIN: usize = 16;
/// Completions that wait to be taken, at most.
const MOST_COMPLETIONS: u32 = 1 << 15;
/// Of an operation that is given up, how long it is waited for when the ring goes.
const FAREWELL: Duration = Duration::from_secs(1);
/// Wait until the socket is readable before it is tried (IORING_RECVSEND_POLL_FIRST, Linux 5.19): what is too little for its low-water mark
/// is not received then.
const POLL_FIRST: u16 = 1;

/// Where bytes are received to.
#[derive(Debug)]
pub enum Receiving {
    /// At most `most` bytes behind the first `from` of the memory.
    Bytes {
        /// The memory.
        memory: Vec<u8>,
        /// What is there already.
        from: usize,
        /// Bytes.
        most: usize,
    },
    /// To the places of a batch.
    Places(ReceiveBatch),
}

/// What came of something that was staged.
#[derive(Debug)]
pub enum Event {
    /// A batch, and whether the socket has taken all that was handed over. What it has taken the batch knows.
    Sent(SendBatch, io::Result<bool>),
    /// Bytes that came, 0 at the end of the stream.
    Received(Receiving, io::Result<usize>),
    /// What was looked for is there, or will never be.
    Ready,
}

/// How long a crossing may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// What is staged is handed over; without it, nothing is done that takes a system call and can be told beforehand.
    Never,
    /// Until there is an event.
    UntilSome,
    /// The same, but not longer.
    For(Duration),
}

/// What is staged or in flight of one stream.
#[derive(Debug, Default)]
struct Slot {
    state: State,
    sending: Option<Sending>,
    receiving: Option<Held>,
    looking: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    Used,
    /// It was removed, and the kernel is not done with it.
    Leaving,
}

#[derive(Debug)]
struct Sending {
    batch: SendBatch,
    message: Box<libc::msghdr>,
    /// Bytes that the message has.
    aimed: usize,
    /// What the kernel said, if not that all is sent.
    said: Option<i32>,
}

#[derive(Debug)]
struct Held {
    what: Receiving,
    /// Of places.
    message: Option<Box<libc::msghdr>>,
}

impl Slot {
    fn is_idle(&self) -> bool {
        self.sending.is_none() && self.receiving.is_none() && !self.looking
    }
}

/// What an operation is, beside its stream.
const SEND: u64 = 0;
const RECEIVE: u64 = 1;
const LOOK: u64 = 2;
const CANCEL: u64 = 3;

fn name(kind: u64, stream: u32) -> u64 {
    kind << 32 | u64::from(stream)
}

/// An io_uring for streams, of which the first thread that uses it is the only one.
pub struct StreamRing {
    // Dropped before `slots`: what was not handed over is never done then.
    ring: IoUring,
    slots: Vec<Slot>,
    most: u32,
    /// The thread that it belongs to, once it is used: the kernel knows a ring by an index of the thread's own.
    owner: Option<ThreadId>,
    /// Streams that were removed since the last [`enter`](Self::enter), or that the kernel was not done with then.
    leaving: Vec<u32>,
    /// Streams whose batch is staged.
    staged: Vec<u32>,
    events: VecDeque<(u32, Event)>,
    /// Memory for those that come behind what was sent.
    came: VecDeque<(u32, Event)>,
    crossings: u64,
}

// SAFETY: its pointers lead to memory that it owns itself and that does not move with it.
unsafe impl Send for StreamRing {}

impl std::fmt::Debug for StreamRing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StreamRing").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl StreamRing {
    /// A ring for at most so many streams at the same time.
    ///
    /// # Errors
    /// What io_uring_setup says: EPERM or ENOSYS where io_uring is not allowed, EINVAL from kernels before 6.1.
    pub fn new(most: u32) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            // Whoever uses it first becomes its thread.
            .setup_r_disabled()
            // A stream has a receive and a look; what does not fit is kept by the kernel, and taken later.
            .setup_cqsize((ENTRIES * 4).max(most.saturating_mul(2)).min(MOST_COMPLETIONS))
            .build(ENTRIES)?;
        let (slots, staged, events, came) = (Vec::new(), Vec::new(), VecDeque::new(), VecDeque::new());
        Ok(Self { ring, slots, most, owner: None, leaving: Vec::new(), staged, events, came, crossings: 0 })
    }

    /// Makes it this thread's, unless it is another's.
    fn start(&mut self) -> io::Result<()> {
        let here = std::thread::current().id();
        match self.owner {
            Some(owner) if owner == here => return Ok(()),
            Some(_) => return Err(io::Error::other("an io_uring of another thread")),
            None => {}
        }
        self.ring.submitter().register_enable_rings()?;
        self.owner = Some(here);
        self.ring.submitter().register_files_sparse(self.most)?;
        // Saves the descriptor look-up of each crossing. A kernel without it works as well.
        let _ = self.ring.submitter().register_ring_fd();
        Ok(())
    }

    /// A name for a stream, under which it is known here until it is removed. The ring keeps it open.
    ///
    /// # Errors
    /// When there are too many, or what io_uring_register says.
    pub fn add(&mut self, stream: &impl AsFd) -> io::Result<u32> {
        self.start()?;
        let free = self.slots.iter().position(|slot| slot.state == State::Free);
        let place = free.unwrap_or(self.slots.len());
        let name = u32::try_from(place).ok().filter(|name| *name < self.most);
        let name = name.ok_or_else(|| io::Error::other("more streams than the ring has place for"))?;
        self.ring.submitter().register_files_update(name, &[stream.as_fd().as_raw_fd()])?;
        let used = Slot { state: State::Used, ..Slot::default() };
        match self.slots.get_mut(place) {
            Some(slot) => *slot = used,
            None => self.slots.push(used),
        }
        Ok(name)
    }

    /// Forgets a stream: what is staged or in flight is given up, and no event of it comes any more. Its name is nobody's until the next
    /// [`enter`](Self::enter), so events that were taken before are not mistaken for another's.
    pub fn remove(&mut self, stream: u32) {
        if self.start().is_err() {
            return;
        }
        let Some(slot) = self.slots.get_mut(stream as usize) else { return };
        if slot.state != State::Used {
            return;
        }
        slot.state = State::Leaving;
        self.leaving.push(stream);
        let (receiving, looking) = (slot.receiving.is_some(), slot.looking);
        self.events.retain(|(other, _)| *other != stream);
        // What is staged finds no file then. It can only fail where there is none already.
        let _ = self.ring.submitter().register_files_update(stream, &[-1]);
        for (wanted, kind) in [(receiving, RECEIVE), (looking, LOOK)] {
            if wanted {
                // When it cannot be staged, the operation ends with the stream.
                let _ = self.cancel(name(kind, stream));
            }
        }
    }

    fn cancel(&mut self, operation: u64) -> io::Result<()> {
        self.make_room()?;
        let entry = opcode::AsyncCancel::new(operation).build().user_data(name(CANCEL, 0));
        // SAFETY: it refers to no memory.
        unsafe { self.push(&entry.flags(squeue::Flags::SKIP_SUCCESS)) }
    }

    /// Room for one more entry. Before anything is noted of that one: this hands over, and takes for done, what is staged.
    fn make_room(&mut self) -> io::Result<()> {
        if self.ring.submission().is_full() { self.hand_over(Wait::Never) } else { Ok(()) }
    }

    /// # Safety
    /// What the entry refers to lives until its completion has come.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: as the caller promises.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.map_err(|_| io::Error::other("the submission ring is full"))
    }

    fn used(&mut self, stream: u32) -> io::Result<&mut Slot> {
        let slot = self.slots.get_mut(stream as usize).filter(|slot| slot.state == State::Used);
        slot.ok_or_else(|| io::Error::other("a stream that the ring does not have"))
    }

    /// Stages what is in the batch, or the first part of it. Whether it is all. It comes back with an event of the next crossing, and is not waited
    /// for: what the socket does not take at once stays in the batch.
    ///
    /// Pages are sent at once, by a system call of their own; `socket` is the stream, and must be one that never waits for that.
    ///
    /// # Errors
    /// When a batch of the stream is staged already.
    pub fn send(&mut self, stream: u32, socket: &impl AsFd, mut batch: SendBatch) -> io::Result<bool> {
        if self.used(stream)?.sending.is_some() {
            return Err(io::Error::other("two batches of one stream at the same time"));
        }
        if batch.sends_pages() {
            self.crossings += 1;
            let unsent = batch.unsent();
            let taken = match batch.send(socket) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
                Err(error) => Err(error),
            };
            let all = batch.unsent() == 0 || batch.unsent() == unsent;
            self.events.push_back((stream, Event::Sent(batch, taken)));
            return Ok(all);
        }
        self.make_room()?;
        let unsent = batch.unsent();
        let (message, more) = batch.message();
        let aimed = batch.aimed();
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL | more;
        let sending =
            self.used(stream)?.sending.insert(Sending { batch, message: Box::new(message), aimed, said: None });
        // With both flags it is done within the crossing, wholly or not, and only what is not whole is told.
        let entry = opcode::SendMsg::new(types::Fixed(stream), &raw const *sending.message)
            .flags(flags.cast_unsigned())
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(name(SEND, stream));
        self.staged.push(stream);
        // SAFETY: the slot keeps the message and the batch that its pieces are of until the entry was handed over, and the kernel is
        // done with them then.
        let pushed = unsafe { self.push(&entry) };
        if let Err(error) = pushed {
            self.staged.retain(|other| *other != stream);
            self.used(stream)?.sending = None;
            return Err(error);
        }
        Ok(aimed == unsent)
    }

    /// Stages a receive. It waits until the stream is readable, and comes back with an event.
    ///
    /// # Errors
    /// When one of the stream is staged or in flight already, or the range is not inside the memory.
    pub fn receive(&mut self, stream: u32, what: Receiving) -> io::Result<()> {
        self.make_room()?;
        let slot = self.used(stream)?;
        if slot.receiving.is_some() {
            return Err(io::Error::other("two receives of one stream at the same time"));
        }
        let Held { what, message } = slot.receiving.insert(Held { what, message: None });
        let file = types::Fixed(stream);
        let entry = match what {
            Receiving::Bytes { memory, from, most } => {
                let Some(range) = memory.get_mut(*from..from.saturating_add(*most)) else {
                    slot.receiving = None;
                    return Err(io::Error::other("a receive outside of its memory"));
                };
                let length = u32::try_from(range.len()).unwrap_or(u32::MAX);
                opcode::Recv::new(file, range.as_mut_ptr(), length).ioprio(POLL_FIRST).build()
            }
            Receiving::Places(batch) => {
                let message = message.insert(Box::new(batch.message()));
                opcode::RecvMsg::new(file, &raw mut **message).ioprio(POLL_FIRST).build()
            }
        };
        // SAFETY: the slot keeps memory, places and message until the completion has come, and nobody reaches them there.
        let pushed = unsafe { self.push(&entry.user_data(name(RECEIVE, stream))) };
        if let Err(error) = pushed {
            self.used(stream)?.receiving = None;
            return Err(error);
        }
        Ok(())
    }

    /// Looks for what poll(2) knows as these events, unless it does already.
    ///
    /// # Errors
    /// When it cannot be staged.
    pub fn look(&mut self, stream: u32, events: rustix::event::PollFlags) -> io::Result<()> {
        self.make_room()?;
        let slot = self.used(stream)?;
        if std::mem::replace(&mut slot.looking, true) {
            return Ok(());
        }
        let entry = opcode::PollAdd::new(types::Fixed(stream), events.bits().into()).build();
        // SAFETY: it refers to no memory.
        let pushed = unsafe { self.push(&entry.user_data(name(LOOK, stream))) };
        if pushed.is_err() {
            self.used(stream)?.looking = false;
        }
        pushed
    }

    /// Hands over what is staged, and waits as it is told unless there are events already.
    ///
    /// # Errors
    /// What io_uring_enter says, or that it is another thread's. A signal is no error.
    pub fn enter(&mut self, wait: Wait) -> io::Result<()> {
        self.start()?;
        let (slots, leaving) = (&mut self.slots, &mut self.leaving);
        leaving.retain(|stream| slots.get_mut(*stream as usize).is_some_and(|slot| !slot.leave()));
        self.hand_over(wait)
    }

    /// See [`enter`](Self::enter). When it is `Ok`, all that was staged was handed over, and what was sent is known.
    fn hand_over(&mut self, wait: Wait) -> io::Result<()> {
        let mut in_vain = 0;
        loop {
            let submission = self.ring.submission();
            let (staged, taskrun, overflow) = (!submission.is_empty(), submission.taskrun(), submission.cq_overflow());
            drop(submission);
            let there = !self.events.is_empty() || !self.ring.completion().is_empty();
            let want = usize::from(wait != Wait::Never && !there);
            if staged || taskrun || overflow || want > 0 {
                self.crossings += 1;
                let entered = match wait {
                    Wait::For(limit) if want > 0 => {
                        let limit = types::Timespec::from(limit);
                        self.ring.submitter().submit_with_args(want, &types::SubmitArgs::new().timespec(&limit))
                    }
                    Wait::For(_) | Wait::Never | Wait::UntilSome => self.ring.submit_and_wait(want),
                };
                match entered {
                    Ok(_) => {}
                    // The time is over, or there was a signal; or the kernel is short of memory for requests, or completions have to be
                    // taken first.
                    Err(error)
                        if matches!(
                            error.raw_os_error(),
                            Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)
                        ) => {}
                    Err(error) => return Err(error),
                }
            }
            self.collect();
            if self.ring.submission().is_empty() && self.staged.is_empty() {
                return Ok(());
            }
            in_vain += 1;
            if in_vain > IN_VAIN {
                return Err(io::Error::other("io_uring does not take what is handed over"));
            }
        }
    }

    /// Turns completions into events.
    fn collect(&mut self) {
        let mut came = std::mem::take(&mut self.came);
        for entry in self.ring.completion() {
            let (kind, stream) = (entry.user_data() >> 32, entry.user_data() as u32);
            let Some(slot) = self.slots.get_mut(stream as usize).filter(|_| kind != CANCEL) else { continue };
            let used = slot.state == State::Used;
            match kind {
                SEND => {
                    if let Some(sending) = &mut slot.sending {
                        sending.said = Some(entry.result());
                    }
                }
                RECEIVE => {
                    if let Some(Held { mut what, .. }) = slot.receiving.take()
                        && used
                    {
                        if let Receiving::Places(batch) = &mut what {
                            batch.received();
                        }
                        came.push_back((stream, Event::Received(what, outcome(entry.result()))));
                    }
                }
                _ => {
                    slot.looking = false;
                    if used {
                        came.push_back((stream, Event::Ready));
                    }
                }
            }
        }
        let submission = self.ring.submission();
        // What the kernel keeps for later may say of a batch that it was not sent.
        if submission.is_empty() && !submission.cq_overflow() {
            drop(submission);
            for stream in self.staged.drain(..) {
                let Some(slot) = self.slots.get_mut(stream as usize) else { continue };
                if let Some(sending) = slot.sending.take()
                    && slot.state == State::Used
                {
                    let (batch, taken) = sending.done();
                    self.events.push_back((stream, Event::Sent(batch, taken)));
                }
            }
        }
        self.events.append(&mut came);
        self.came = came;
    }

    /// The next event, and whose it is. What was sent comes before what was received by the same crossing.
    pub fn take_event(&mut self) -> Option<(u32, Event)> {
        self.events.pop_front()
    }

    /// Whether there is an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// System calls so far that handed over or waited.
    pub fn crossings(&self) -> u64 {
        self.crossings
    }

    fn is_idle(&self) -> bool {
        self.slots.iter().all(Slot::is_idle)
    }
}

impl Slot {
    /// Whether the kernel is done with it: then it is free.
    fn leave(&mut self) -> bool {
        let gone = self.state == State::Leaving && self.is_idle();
        if gone {
            self.state = State::Free;
        }
        gone
    }
}

impl Sending {
    /// It was handed over.
    fn done(self) -> (SendBatch, io::Result<bool>) {
        let Self { mut batch, message, aimed, said } = self;
        drop(message);
        let taken = match said.map(outcome) {
            None => {
                batch.went(aimed);
                Ok(true)
            }
            Some(Ok(count)) => {
                batch.went(count);
                Ok(false)
            }
            Some(Err(error)) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                batch.went(0);
                Ok(false)
            }
            Some(Err(error)) => {
                batch.went(0);
                Err(error)
            }
        };
        (batch, taken)
    }
}

/// Of a completion.
fn outcome(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

impl Drop for StreamRing {
    fn drop(&mut self) {
        // On another thread nothing can be said to the kernel.
        if self.owner == Some(std::thread::current().id()) {
            for stream in 0..self.slots.len() {
                self.remove(stream as u32);
            }
            let begun = Instant::now();
            while !self.is_idle() && begun.elapsed() < FAREWELL {
                if self.enter(Wait::For(FAREWELL)).is_err() {
                    break;
                }
            }
        }
        // What was staged and not handed over is never done.
        let held = self.owner.is_some() && self.slots.iter().any(|slot| slot.receiving.is_some());
        if held {
            // The kernel may still write there: leaking the memory is the lesser evil.
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

#[cfg(test)]
mod tests;
