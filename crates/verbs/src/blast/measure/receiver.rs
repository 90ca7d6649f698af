//! Counts packets one by one, in this process or for submitters on other machines.

use super::Receiving;
use super::drop_counters::DropCounters;
use super::remote::{BEGIN, COUNTS, DROPS, Reply};
use crate::blast::plan::ORDERED_PAYLOAD;
use jobs::echo::Connections;
use lab::error::{Error, Result};
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::datagrams::{Arrived, ManyReceiver};

/// Packets of one receiving call.
const BATCH: usize = 64;
/// Longest reaction time to the end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Most connections that ask for counts.
const MOST_CONNECTIONS: usize = 64;
/// Longest question.
const LONGEST_LINE: u64 = 64;

/// What a receiver had counted at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Packets that arrived.
    pub received: u64,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
    /// Packets that its socket dropped; wraps.
    pub dropped: u32,
}

/// Written by the receiving thread, but for `executions`.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Live {
    received: AtomicU64,
    reordered: AtomicU64,
    /// Counts the executions that others began.
    executions: AtomicU64,
    /// Id of the thread; 0 before it begins.
    thread: AtomicU32,
}

/// A receiver in this process.
pub(super) struct CountingReceiver {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
    live: Arc<Live>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CountingReceiver {
    /// Opens its socket and starts its thread.
    pub fn bind(address: SocketAddr, cpu: Option<u32>, buffer: Option<u32>) -> Result<Self> {
        let failed = |error| Error::instrument(format!("opening the receiver's UDP socket at {address}"), error);
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_read_timeout(Some(POLL_INTERVAL)).map_err(failed)?;
        if let Some(bytes) = buffer {
            let bytes = bytes as usize;
            // Beyond the limit of users (net.core.rmem_max) if that is allowed.
            let set = sockopt::set_socket_recv_buffer_size_force(&socket, bytes);
            let set = set.or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, bytes));
            set.map_err(|error| failed(error.into()))?;
        }
        let address = socket.local_addr().map_err(failed)?;
        let (socket, live, stop) = (Arc::new(socket), Arc::new(Live::default()), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::Builder::new().name("receiver".to_owned());
        let (own, counts, ended) = (socket.clone(), live.clone(), stop.clone());
        let thread = thread.spawn(move || {
            if let Some(cpu) = cpu {
                // Refused only for a CPU that was allowed when the plan was made.
                let _ = sys::schedule::pin_to(&[cpu]);
            }
            // A shared table of files costs each call two atomic operations.
            let _ = sys::process::unshare_descriptors();
            counts.thread.store(sys::schedule::thread_id().unsigned_abs(), Ordering::Relaxed);
            receive(&own, &counts, &ended);
        });
        let thread = thread.map_err(|error| Error::instrument("starting the receiver's thread", error))?;
        Ok(Self { socket, address, live, stop, thread: Some(thread) })
    }

    /// Bytes of its receive buffer, as the kernel counts them.
    pub fn receive_buffer(&self) -> Option<u32> {
        rustix::net::sockopt::socket_recv_buffer_size(&self.socket).ok().and_then(|bytes| u32::try_from(bytes).ok())
    }
}

impl Receiving for CountingReceiver {
    fn address(&self) -> SocketAddr {
        self.address
    }

    /// The ports of new submitters may be those of earlier ones, whose numbers are forgotten.
    fn begin(&self) -> Result<Counts> {
        self.live.executions.fetch_add(1, Ordering::Relaxed);
        self.counts()
    }

    fn counts(&self) -> Result<Counts> {
        Ok(Counts {
            received: self.live.received.load(Ordering::Relaxed),
            reordered: self.live.reordered.load(Ordering::Relaxed),
            dropped: sys::socket::dropped(&self.socket).unwrap_or(0),
        })
    }

    fn thread(&self) -> Option<u32> {
        Some(self.live.thread.load(Ordering::Relaxed))
    }

    fn about(&self) -> (bool, bool, Option<u32>) {
        (true, true, self.receive_buffer())
    }
}

impl Drop for CountingReceiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has already printed the reason.
            let _ = thread.join();
        }
    }
}

/// Counts until it is to stop.
fn receive(socket: &UdpSocket, live: &Live, stop: &AtomicBool) {
    let mut batch = ManyReceiver::new(BATCH);
    let mut order = Order::default();
    let (mut received, mut reordered, mut executions) = (0_u64, 0_u64, 0);
    while !stop.load(Ordering::Relaxed) {
        let taken = batch.receive(socket, |packet| {
            // Begun before its first packet was sent.
            if live.executions.load(Ordering::Relaxed) != executions {
                (executions, order) = (live.executions.load(Ordering::Relaxed), Order::default());
            }
            reordered += u64::from(order.is_late(&packet));
        });
        match taken {
            Ok(taken) => received += taken as u64,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            // An error that the network reports is of no packet that arrived.
            Err(_) => std::thread::yield_now(),
        }
        live.received.store(received, Ordering::Relaxed);
        live.reordered.store(reordered, Ordering::Relaxed);
    }
}

/// The highest number from each source, by its port: a packet costs no more if its sender takes turns with others.
struct Order(Vec<Option<(IpAddr, u64)>>);

impl Default for Order {
    fn default() -> Self {
        Self(vec![None; usize::from(u16::MAX) + 1])
    }
}

impl Order {
    /// Whether a packet with a higher number came before. Of two machines that send from the same port, the order is not told.
    #[inline]
    fn is_late(&mut self, packet: &Arrived) -> bool {
        let told = packet.bytes.len() >= ORDERED_PAYLOAD as usize;
        let Some(source) = packet.source.filter(|_| told) else { return false };
        let Some(place) = self.0.get_mut(usize::from(source.port())) else { return false };
        let highest = place.filter(|(address, _)| *address == source.ip()).map(|(_, highest)| highest);
        let number = number_near(packet.bytes, highest.unwrap_or(0));
        let late = highest.is_some_and(|highest| number <= highest);
        if !late {
            *place = Some((source.ip(), number));
        }
        late
    }
}

/// The number whose low bytes these are, and that is nearest to `near`.
fn number_near(bytes: &[u8], near: u64) -> u64 {
    let mut whole = [0; 8];
    whole.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let low = u64::from_le_bytes(whole);
    let Some(span) = 1_u64.checked_shl(8 * u32::try_from(bytes.len()).unwrap_or(u32::MAX)) else { return low };
    let same = (near / span).saturating_mul(span).saturating_add(low);
    let others = [same.checked_sub(span), same.checked_add(span)];
    let candidates = others.into_iter().flatten().chain([same]);
    candidates.min_by_key(|number| number.abs_diff(near)).unwrap_or(same)
}

/// Counts packets at an address and answers submitters that ask for the counts by TCP, until `stop` says so. Calls `ready`
/// with the address once it listens, and returns at once if nobody could be told.
///
/// # Errors
/// When the address is in use or not of this machine.
pub fn serve(
    address: SocketAddr,
    cpu: Option<u32>,
    buffer: Option<u32>,
    ready: impl FnOnce(SocketAddr) -> bool,
    stop: &dyn Fn() -> bool,
) -> Result<u64> {
    let refused = |error: std::io::Error| match error.kind() {
        ErrorKind::AddrInUse => Error::Refused(format!("{address}: is in use; choose another port, or 0 for any")),
        ErrorKind::AddrNotAvailable => Error::Refused(format!("{address}: is not an address of this machine")),
        ErrorKind::PermissionDenied => Error::Refused(format!("{address}: needs root; choose a port above 1023")),
        _ => Error::instrument(format!("listening on {address}"), error),
    };
    super::refuse_cpus(cpu.iter())?;
    let listener = TcpListener::bind(address).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let receiver = match CountingReceiver::bind(address, cpu, buffer) {
        Err(Error::Instrument { source, .. }) => return Err(refused(source)),
        other => Arc::new(other?),
    };
    listener.set_nonblocking(true).map_err(refused)?;
    let heard = ready(address);
    let connections = Connections::at_most(MOST_CONNECTIONS);
    while heard && !stop() {
        match listener.accept() {
            Ok((stream, _)) => {
                let receiver = receiver.clone();
                connections.serve("receiver's counts", 256 << 10, move || {
                    // The counts must not wait behind the packets. Without the permission they come a little later.
                    let _ = sys::schedule::set_class(sys::schedule::Class::RealTime);
                    // A submitter that goes away needs no answer.
                    let _ = answer(stream, &receiver);
                });
            }
            Err(_) => std::thread::sleep(POLL_INTERVAL / 10),
        }
    }
    Ok(receiver.counts()?.received)
}

/// Answers until the other end closes, or asks what nobody knows.
fn answer(stream: TcpStream, receiver: &CountingReceiver) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if (&mut lines).take(LONGEST_LINE).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (counts, drops) = match line.trim_end() {
            BEGIN => (receiver.begin(), DropCounters::default()),
            COUNTS => (receiver.counts(), DropCounters::default()),
            DROPS => (receiver.counts(), DropCounters::read()),
            _ => return Ok(()),
        };
        let Ok(counts) = counts else { return Ok(()) };
        let reply = Reply::new(counts, drops, receiver.receive_buffer());
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        stream.write_all(&text)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: u16, bytes: &[u8]) -> Arrived<'_> {
        Arrived { source: Some(SocketAddr::from(([127, 0, 0, 1], source))), bytes, length: bytes.len() }
    }

    #[test]
    fn a_lower_number_of_the_same_source_is_late() {
        let mut order = Order::default();
        let late = |(source, number): &(u16, u32)| order.is_late(&packet(*source, &number.to_le_bytes()));
        let packets = [(1, 0), (1, 1), (2, 9), (1, 3), (1, 2), (1, 3), (2, 10), (1, 4)];
        assert_eq!(
            packets.iter().map(late).collect::<Vec<_>>(),
            [false, false, false, false, true, true, false, false]
        );
    }

    #[test]
    fn few_bytes_count_on() {
        let mut order = Order::default();
        for number in 0..70_000_u64 {
            assert!(!order.is_late(&packet(1, &number.to_le_bytes()[..4])), "{number}");
            assert!(!order.is_late(&packet(2, &number.to_le_bytes()[..5])), "{number}");
            // Too few bytes to tell: a gap of 128 packets looks like a step back.
            assert!(!order.is_late(&packet(3, &[0])));
        }
        assert_eq!(number_near(&[255], 256), 255);
        assert_eq!(number_near(&[1], 255), 257);
        assert_eq!(number_near(&u64::MAX.to_le_bytes(), 0), u64::MAX);
        assert_eq!(number_near(&[7], u64::MAX), u64::MAX - 255 + 7);
    }

    #[test]
    fn packets_are_counted_and_the_thread_ends() {
        let receiver = CountingReceiver::bind(SocketAddr::from(([127, 0, 0, 1], 0)), None, Some(1 << 20)).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(&[1, 2, 3, 4], receiver.address()).unwrap();
        }
        let since = std::time::Instant::now();
        while receiver.counts().unwrap().received < 100 {
            assert!(since.elapsed().as_secs() < 60, "{:?}", receiver.counts().unwrap());
            std::thread::yield_now();
        }
        assert_eq!(receiver.counts().unwrap(), Counts { received: 100, reordered: 99, dropped: 0 });
        assert!(receiver.receive_buffer().unwrap() >= 1 << 20);
    }
}
