//! Requests and responses with an echo server: an I/O sends a block and receives as many bytes. Over UDP, TCP and Unix
//! sockets; with a connection for all exchanges, or one for each.

use super::{OpenEngine, Queue, Stages, Sync, noisy_slots};
use crate::echo::resolved;
use crate::worker_pool::JobCopy;
use crate::workload::request_source::Request;
use lab::error::{Error, Result};
use model::plan::Peer;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use sys::buffer::AlignedBuffer;
use sys::clock::ticks;

/// Longest wait for a connection, for room to send, and for a response.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most memory of socket buffers in flight: with more, both ends could wait for room in each other's, or lose datagrams.
const MOST_IN_FLIGHT: u64 = 128 << 10;
/// What the kernel takes from a buffer for a message, beside its bytes.
const OVERHEAD: u64 = 1 << 10;
const LONGEST_DATAGRAM: u64 = 65_507;

pub(super) fn open(copy: &JobCopy) -> Result<OpenEngine> {
    let plan = copy.plan;
    let Some(peer) = plan.own.rr_peer.clone() else {
        let why = format_args!("ioengine=rr needs an echo server; add rr_peer={}", Peer::FORM);
        return Err(Error::refused(plan, why));
    };
    let block = plan.buffer_bytes();
    let depth = plan.depth.in_flight;
    if depth > 1 && block.saturating_add(OVERHEAD).saturating_mul(depth.into()) > MOST_IN_FLIGHT
        || block > MOST_IN_FLIGHT
    {
        let why = "with 1 KiB each for the kernel are more than 128 KiB in flight, for which both ends could wait forever; use a smaller \
                   bs or iodepth";
        return Err(Error::refused(plan, format_args!("{depth} × {block} bytes {why}")));
    }
    if matches!(peer, Peer::Udp(_)) && block > LONGEST_DATAGRAM {
        let why = format_args!("a datagram has at most {LONGEST_DATAGRAM} bytes; use a smaller bs");
        return Err(Error::refused(plan, why));
    }
    let target = Target::find(&peer)?;
    let socket = target.connect().map_err(|error| {
        let mend = format_args!("start one there: iotoll serve --echo {peer}");
        Error::refused(plan, format_args!("{peer}: no echo server answers ({error}); {mend}"))
    })?;
    if depth > 1 && plan.own.rr_connect {
        return Err(Error::refused(plan, "rr_connect has one exchange per connection; use iodepth=1"));
    }
    let mut exchanges = Exchanges {
        request: noisy_slots(plan, 1)?,
        response: vec![0; usize::try_from(MOST_IN_FLIGHT).unwrap_or(usize::MAX)],
        socket,
        anew: plan.own.rr_connect.then_some(target),
        used: false,
        syscalls: 0,
        waiting: VecDeque::new(),
        arrived: 0,
        done: Vec::with_capacity(depth as usize),
    };
    Ok(Box::new(move |worker| worker.run_queued(&mut exchanges)))
}

/// A resolved peer.
#[derive(Clone, Debug)]
enum Target {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    Unix(String),
}

impl Target {
    fn find(peer: &Peer) -> Result<Self> {
        Ok(match peer {
            Peer::Tcp(address) => Self::Tcp(resolved(peer, address)?),
            Peer::Udp(address) => Self::Udp(resolved(peer, address)?),
            Peer::Unix(path) => Self::Unix(path.clone()),
        })
    }

    fn connect(&self) -> io::Result<Socket> {
        let (fd, is_stream): (OwnedFd, bool) = match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, PATIENCE)?;
                stream.set_nodelay(true)?;
                (stream.into(), true)
            }
            Self::Udp(address) => {
                let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
                socket.connect(address)?;
                (socket.into(), false)
            }
            Self::Unix(path) => (UnixStream::connect(path)?.into(), true),
        };
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&fd, direction, Some(PATIENCE))?;
        }
        Ok(Socket { fd, is_stream })
    }
}

struct Socket {
    fd: OwnedFd,
    is_stream: bool,
}

impl Socket {
    fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match recv(&self.fd, bytes, RecvFlags::empty())? {
            (0, _) if self.is_stream => Err(ErrorKind::ConnectionReset.into()),
            (length, _) => Ok(length),
        }
    }
}

/// A request without a complete response.
#[derive(Clone, Copy)]
struct Waiting {
    slot: u32,
    length: usize,
    /// When its first byte was sent, and when all were, in ticks.
    handed_over: u64,
    sent: u64,
}

/// Exchanges in flight. Responses come in the order of the requests; a datagram that is lost makes the job fail.
struct Exchanges {
    request: AlignedBuffer,
    response: Vec<u8>,
    socket: Socket,
    /// Where to connect for each exchange.
    anew: Option<Target>,
    /// The first connection has had its exchange.
    used: bool,
    syscalls: u64,
    /// In the order of the requests.
    waiting: VecDeque<Waiting>,
    /// Bytes that have arrived for the first of them.
    arrived: usize,
    done: Vec<(u32, i32, Stages)>,
}

impl Exchanges {
    fn connect_anew(&mut self) -> io::Result<()> {
        if let Some(target) = &self.anew
            && std::mem::replace(&mut self.used, true)
        {
            self.socket = target.connect()?;
        }
        Ok(())
    }

    fn send(&mut self, length: usize) -> io::Result<()> {
        let mut sent = 0;
        loop {
            self.syscalls += 1;
            sent += send(&self.socket.fd, self.request.get(sent..length).unwrap_or_default(), SendFlags::NOSIGNAL)?;
            if sent >= length {
                return Ok(());
            }
        }
    }

    /// Receives once.
    fn receive(&mut self) -> io::Result<()> {
        self.syscalls += 1;
        let mut length = self.socket.receive(&mut self.response)?;
        let answered = ticks();
        if let (false, Some(first)) = (self.socket.is_stream, self.waiting.front().copied()) {
            self.finish(first, length.min(first.length), answered);
            return Ok(());
        }
        while let Some(first) = self.waiting.front().copied() {
            let rest = first.length - self.arrived;
            if length < rest {
                self.arrived += length;
                return Ok(());
            }
            length -= rest;
            self.arrived = 0;
            self.finish(first, first.length, answered);
        }
        Ok(())
    }

    /// The connection is of no use any more: none of the requests in flight has a response.
    fn fail_all(&mut self, error: io::Error) {
        let (result, now) = (super::failed(late(error)), ticks());
        self.arrived = 0;
        for Waiting { slot, .. } in self.waiting.drain(..) {
            self.done.push((slot, result, Stages { handed_over: now, sent: None, answered: now }));
        }
    }

    /// The response of the first request is complete.
    fn finish(&mut self, first: Waiting, moved: usize, answered: u64) {
        let Waiting { slot, handed_over, sent, .. } = first;
        self.waiting.pop_front();
        let stages = Stages { handed_over, sent: Some(sent), answered };
        self.done.push((slot, i32::try_from(moved).unwrap_or(i32::MAX), stages));
    }
}

impl Queue for Exchanges {
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        let length = request.length as usize;
        self.connect_anew().map_err(late)?;
        let handed_over = ticks();
        self.send(length).map_err(late)?;
        self.waiting.push_back(Waiting { slot, length, handed_over, sent: ticks() });
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, least: u32, _: u32) -> io::Result<()> {
        while self.done.len() < least as usize && !self.waiting.is_empty() {
            if let Err(error) = self.receive() {
                self.fail_all(error);
            }
        }
        Ok(())
    }

    fn reap(&mut self, most: u32, each: &mut dyn FnMut(u32, i32, Option<Stages>)) {
        let count = self.done.len().min(most as usize);
        self.done.drain(..count).for_each(|(slot, result, stages)| each(slot, result, Some(stages)));
    }

    /// All requests are sent from one block, each when it is staged.
    fn with_memory(&mut self, _: u32, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.request.get_mut(..length as usize).into_iter().for_each(work);
    }

    fn sync(&mut self, _: u32, _: Sync) -> io::Result<bool> {
        Ok(true)
    }

    fn syscalls(&self) -> Option<u64> {
        // Those of connecting and closing are not counted.
        self.anew.is_none().then_some(self.syscalls)
    }
}

/// The time is over without a response: to a user that is no full buffer.
fn late(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => io::Error::from_raw_os_error(rustix::io::Errno::TIMEDOUT.raw_os_error()),
        ErrorKind::ConnectionReset => io::Error::from_raw_os_error(rustix::io::Errno::CONNRESET.raw_os_error()),
        _ => error,
    }
}
