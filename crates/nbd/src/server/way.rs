//! How a thread of the server learns what its connections can do next, and moves their bytes.

use super::Options;
use super::connection::{Connection, Going, Staged};
use crate::error::{Error, Result};
use crate::socket::Socket;
use crate::switches::{Switches, Transport};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use sys::send_batch::SendBatch;
use sys::stream_ring::{Event, Receiving, StreamRing, Wait};

/// Names the bell among what epoll waits for.
const BELL: u64 = u64::MAX;
/// So many events of epoll are taken at one time.
const MOST_EVENTS: usize = 256;
/// Streams of a ring beside the clients: the bell, and those that have gone and that the kernel is not done with.
const SPARE_STREAMS: u32 = 64;

/// What happened to a connection.
#[derive(Debug)]
pub(super) enum Happened {
    /// Its turn has come.
    Turn,
    /// It can be received from, or sent to.
    Ready,
    /// The client has gone.
    Gone,
    /// A batch was handed over, and whether the socket took all.
    Sent(SendBatch, io::Result<bool>),
    /// Something was received.
    Received(Receiving, io::Result<usize>),
    /// Not to a connection: the inbox rang.
    Rang,
}

/// The way to the clients.
#[derive(Debug)]
pub(super) enum Way {
    /// Sockets are watched, and connections send and receive by calls of their own.
    Epoll {
        /// The watch.
        epoll: OwnedFd,
    },
    /// A ring sends and receives.
    Ring {
        /// The ring.
        ring: Box<StreamRing>,
        /// The inbox's, and its name in the ring once that is used.
        bell: (OwnedFd, Option<u32>),
        /// Whether there is more to do once the ring was entered.
        more_follows: bool,
        /// System calls of the ring that were told.
        told: u64,
    },
}

impl Way {
    /// A way to nobody yet; `bell` is readable when the inbox rang.
    pub(super) fn new(bell: &OwnedFd, options: &Options) -> Result<Self> {
        match options.switches.transport {
            Transport::Sockets => {
                let failed = |error: rustix::io::Errno| Error::system("making an epoll", error.into());
                let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
                epoll::add(&epoll, bell, EventData::new_u64(BELL), EventFlags::IN).map_err(failed)?;
                Ok(Self::Epoll { epoll })
            }
            Transport::IoUring => {
                let failed = |error| Error::system("making an io_uring (it takes Linux 6.1)", error);
                let most = u32::try_from(options.connections).unwrap_or(u32::MAX).saturating_add(SPARE_STREAMS);
                let ring = StreamRing::new(most).map_err(failed)?;
                let bell = (bell.try_clone().map_err(failed)?, None);
                Ok(Self::Ring { ring: Box::new(ring), bell, more_follows: false, told: 0 })
            }
        }
    }

    /// Adds a connection. Its place: `free`, or one that is free as well.
    pub(super) fn add(&mut self, socket: &Socket, free: usize) -> io::Result<usize> {
        match self {
            Self::Epoll { epoll } => {
                epoll::add(epoll, socket, EventData::new_u64(free as u64), EventFlags::IN)?;
                Ok(free)
            }
            Self::Ring { ring, .. } => Ok(ring.add(socket)? as usize),
        }
    }

    /// Forgets a connection.
    pub(super) fn remove(&mut self, place: usize, connection: &Connection) {
        match self {
            Self::Epoll { epoll } => _ = epoll::delete(epoll, connection.socket().as_fd()),
            Self::Ring { ring, .. } => ring.remove(place as u32),
        }
    }

    /// Sees to what a connection waits for next.
    ///
    /// # Errors
    /// In words, when that is not possible.
    pub(super) fn stage(
        &mut self,
        place: usize,
        connection: &mut Connection,
        going: Going,
        switches: Switches,
    ) -> std::result::Result<(), &'static str> {
        match self {
            Self::Epoll { epoll } => {
                let interest = if going == Going::Sending { EventFlags::OUT } else { EventFlags::IN };
                if connection.interest() != interest {
                    connection.set_interest(interest);
                    let name = EventData::new_u64(place as u64);
                    let modified = epoll::modify(epoll, connection.socket(), name, interest);
                    modified.map_err(|_| "it cannot be waited for")?;
                }
            }
            Self::Ring { ring, more_follows, .. } => {
                let staged = connection.stage(ring, place as u32, switches)?;
                *more_follows |= staged == Staged::AndMoreFollows;
            }
        }
        Ok(())
    }

    /// Waits until something has happened, but not longer than `limit`. System calls that it took.
    ///
    /// # Errors
    /// What io_uring_enter says. A signal is none.
    pub(super) fn wait(&mut self, happened: &mut Vec<(usize, Happened)>, limit: Option<Duration>) -> io::Result<u64> {
        match self {
            Self::Epoll { epoll } => {
                let mut calls = 1;
                let mut limit = limit;
                if let Some(short) = limit.filter(|limit| !limit.is_zero() && limit.subsec_nanos() > 0) {
                    // epoll_wait knows milliseconds only.
                    let _ = poll(&mut [PollFd::new(&*epoll, PollFlags::IN)], Some(&timespec(short)));
                    (calls, limit) = (2, Some(Duration::ZERO));
                }
                let limit = limit.map(timespec);
                // A signal, or out of memory: who waits goes on either way.
                let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; MOST_EVENTS];
                if let Ok((events, _)) = epoll::wait(&*epoll, &mut events[..], limit.as_ref()) {
                    happened.extend(events.iter().map(|&epoll::Event { flags, data }| match data.u64() {
                        BELL => (0, Happened::Rang),
                        place if flags.intersects(EventFlags::HUP | EventFlags::ERR) => {
                            (place as usize, Happened::Gone)
                        }
                        place => (place as usize, Happened::Ready),
                    }));
                }
                Ok(calls)
            }
            Self::Ring { ring, bell: (bell, name), more_follows, told } => {
                let name = match *name {
                    Some(name) => name,
                    None => *name.insert(ring.add(bell)?),
                };
                ring.look(name, PollFlags::IN)?;
                let wait = match limit {
                    _ if *more_follows => Wait::Never,
                    Some(limit) if limit.is_zero() => Wait::Never,
                    Some(limit) => Wait::For(limit),
                    None => Wait::UntilSome,
                };
                ring.enter(wait)?;
                *more_follows = false;
                while let Some((stream, event)) = ring.take_event() {
                    let what = match event {
                        Event::Sent(batch, taken) => Happened::Sent(batch, taken),
                        Event::Received(lent, count) => Happened::Received(lent, count),
                        Event::Ready if stream == name => Happened::Rang,
                        Event::Ready => Happened::Ready,
                    };
                    happened.push((stream as usize, what));
                }
                // Some were made while things were staged.
                Ok(ring.crossings() - std::mem::replace(told, ring.crossings()))
            }
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}
