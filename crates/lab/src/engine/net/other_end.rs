//! How the two ends of a transfer meet. Jobs of one measurement wait for each other, so that their order does not matter; for another
//! program a job waits a while.

use super::{LOOK, OPEN};
use crate::engine::worker::Control;
use crate::error::{Error, Result};
use model::plan::{JobPlan, NetProtocol};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect as connect_to, connect_unspec, listen, recvfrom, send, socket_with,
};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a job waits for another program.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it waits for another job to listen.
const SOON: Duration = Duration::from_secs(10);
/// How soon the kernel tells that nobody listens at a port of UDP.
const REFUSAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Where jobs of this measurement wait for another end, and whether they listen there already.
static PLACES: Mutex<BTreeMap<(NetProtocol, String), bool>> = Mutex::new(BTreeMap::new());
static CHANGED: Condvar = Condvar::new();

fn places() -> MutexGuard<'static, BTreeMap<(NetProtocol, String), bool>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job that is prepared will wait for its other end.
pub(crate) fn expect(plan: &JobPlan, copy: u32) {
    if plan.waits_for_other_end() {
        places().insert(plan.net.place(copy), false);
    }
}

/// An address or a path.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Path(PathBuf),
    Address(NetProtocol, SocketAddr),
}

impl Place {
    /// Where a copy of a job listens or connects to.
    ///
    /// # Errors
    /// Refused, when the host has no address.
    pub(super) fn of(plan: &JobPlan, copy: u32) -> Result<Self> {
        let (net, name) = (&plan.net, &plan.name);
        let protocol = net.protocol;
        if protocol == NetProtocol::Unix {
            return Ok(Self::Path(PathBuf::from(net.host.clone().unwrap_or_default())));
        }
        let port = u16::try_from(u32::from(net.port).saturating_add(copy));
        let port =
            port.map_err(|_| Error::Refused(format!("job '{name}': there is no port above 65535; use a smaller one")))?;
        let six = matches!(protocol, NetProtocol::Tcpv6 | NetProtocol::Udpv6);
        let Some(host) = &net.host else {
            let any = if six { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
            return Ok(Self::Address(protocol, SocketAddr::new(any, port)));
        };
        let found = (host.as_str(), port).to_socket_addrs().ok();
        let found = found.and_then(|mut all| all.find(|address| address.is_ipv6() == six));
        let family = if six { "IPv6" } else { "IPv4" };
        let none =
            || Error::Refused(format!("job '{name}': hostname={host}: it has no {family} address; give an IP address"));
        found.map(|address| Self::Address(protocol, address)).ok_or_else(none)
    }

    pub(super) fn protocol(&self) -> NetProtocol {
        match self {
            Self::Path(_) => NetProtocol::Unix,
            Self::Address(protocol, _) => *protocol,
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Path(path) => format!("unix {}", path.display()),
            Self::Address(protocol, address) => format!("{} {address}", protocol.name()),
        }
    }

    fn socket(&self) -> io::Result<OwnedFd> {
        let (family, kind) = match self {
            Self::Path(_) => (AddressFamily::UNIX, SocketType::STREAM),
            Self::Address(protocol, address) => (
                if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET },
                if protocol.is_udp() { SocketType::DGRAM } else { SocketType::STREAM },
            ),
        };
        Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
    }
}

fn refused(plan: &JobPlan, place: &Place, why: &str, error: Option<&io::Error>) -> Error {
    let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
    Error::Refused(format!("job '{}': {}: {why}{error}", plan.name, place.in_words()))
}

/// Sets what the job says of its socket.
fn set_up(plan: &JobPlan, socket: &OwnedFd, protocol: NetProtocol) -> io::Result<()> {
    let net = &plan.net;
    let waits = net.waits(plan.access);
    if net.window_size > 0 {
        let bytes = net.window_size as usize;
        if waits || net.pingpong {
            sockopt::set_socket_recv_buffer_size(socket, bytes)?;
        }
        if !waits || net.pingpong {
            sockopt::set_socket_send_buffer_size(socket, bytes)?;
        }
    }
    if protocol.is_tcp() {
        if net.mss > 0 {
            sys::socket::set_largest_segment(socket, net.mss)?;
        }
        if net.nodelay {
            sockopt::set_tcp_nodelay(socket, true)?;
        }
    }
    Ok(())
}

/// Makes calls on the socket return after this time, though nothing has happened.
pub(super) fn look_often(socket: &OwnedFd, time: Duration) -> io::Result<()> {
    sockopt::set_socket_timeout(socket, Timeout::Recv, Some(time))?;
    Ok(sockopt::set_socket_timeout(socket, Timeout::Send, Some(time))?)
}

/// The address of the interface for multicast.
fn interface(plan: &JobPlan) -> Option<Ipv4Addr> {
    plan.net.interface.as_ref().and_then(|text| text.parse().ok())
}

/// A socket that waits for another end.
pub(super) struct Listening {
    socket: OwnedFd,
    key: (NetProtocol, String),
    made: Option<MadeSocket>,
}

/// A Unix socket in a folder, by its device and inode.
struct MadeSocket {
    path: PathBuf,
    identity: (u64, u64),
}

impl MadeSocket {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity_of(path)? })
    }
}

fn identity_of(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl Drop for Listening {
    fn drop(&mut self) {
        places().remove(&self.key);
        // Another program may have its own there by now.
        if let Some(made) = self.made.as_ref().filter(|made| identity_of(&made.path).ok() == Some(made.identity)) {
            let _ = std::fs::remove_file(&made.path);
        }
    }
}

impl Listening {
    /// Listens at a place.
    ///
    /// # Errors
    /// Refused, when the place is taken or may not be used.
    pub(super) fn begin(plan: &JobPlan, place: &Place) -> Result<Self> {
        let failed = |error: io::Error| {
            let why = match (place, error.kind()) {
                (Place::Path(_), ErrorKind::AlreadyExists) => "another program listens there; choose another path",
                (Place::Path(_), ErrorKind::AddrInUse) => "something is there that is no socket; choose another path",
                (Place::Path(_), ErrorKind::InvalidInput) => "the path is too long; choose one of at most 107 bytes",
                (Place::Path(_), _) => "cannot be made; choose another path",
                (_, ErrorKind::AddrInUse) => "is in use; choose another port",
                (_, ErrorKind::PermissionDenied) => "may not be used without root; choose a port above 1023",
                _ => "cannot be listened at; choose another port",
            };
            refused(plan, place, why, Some(&error))
        };
        let protocol = place.protocol();
        let socket = place.socket().map_err(failed)?;
        let listened = || -> io::Result<Option<MadeSocket>> {
            set_up(plan, &socket, protocol)?;
            let made = match place {
                Place::Path(path) => {
                    let address = SocketAddrUnix::new(path.as_path()).map_err(|_| ErrorKind::InvalidInput)?;
                    // As in fio, a socket that another program left is removed; not one at which it still listens.
                    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
                        if !is_left(&address)? {
                            return Err(ErrorKind::AlreadyExists.into());
                        }
                        std::fs::remove_file(path)?;
                    }
                    bind(&socket, &address)?;
                    Some(MadeSocket::of(path)?)
                }
                Place::Address(_, address) => {
                    // Two programs would share a port of UDP.
                    sockopt::set_socket_reuseaddr(&socket, protocol.is_tcp() || address.ip().is_multicast())?;
                    if let IpAddr::V4(group) = address.ip()
                        && group.is_multicast()
                    {
                        let at = interface(plan).unwrap_or(Ipv4Addr::UNSPECIFIED);
                        sockopt::set_ip_add_membership(&socket, &group, &at)?;
                    }
                    bind(&socket, address)?;
                    None
                }
            };
            if !protocol.is_udp() {
                listen(&socket, 10)?;
            }
            Ok(made)
        };
        let made = listened().map_err(failed)?;
        let copy = match place {
            Place::Address(_, address) => u32::from(address.port().saturating_sub(plan.net.port)),
            Place::Path(_) => 0,
        };
        let key = plan.net.place(copy);
        places().insert(key.clone(), true);
        CHANGED.notify_all();
        Ok(Self { socket, key, made })
    }

    /// Waits for the other end: the socket for the transfer, and for datagrams where they come from.
    ///
    /// # Errors
    /// Refused, when nobody comes in time, or the measurement ends.
    pub(super) fn await_other_end(
        &self,
        plan: &JobPlan,
        place: &Place,
        control: &Control,
    ) -> Result<(OwnedFd, Option<SocketAddr>)> {
        let failed = |error: Errno| Error::job(&plan.name, "waiting for the other end", error.into());
        let begun = Instant::now();
        let most = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        loop {
            if control.stopped() {
                return Err(refused(plan, place, "ended before the other end came", None));
            }
            if begun.elapsed() > PATIENCE {
                let why = "the other end did not come within 60 s; start it: a job that connects, or fio";
                return Err(refused(plan, place, why, None));
            }
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&most)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(failed(error)),
            }
            if !place.protocol().is_udp() {
                let socket = accept_with(&self.socket, SocketFlags::CLOEXEC).map_err(failed)?;
                if place.protocol().is_tcp() && plan.net.nodelay {
                    sockopt::set_tcp_nodelay(&socket, true).map_err(failed)?;
                }
                return Ok((socket, None));
            }
            let mut message = [0; OPEN.len()];
            let (_, count, from) = recvfrom(&self.socket, &mut message, RecvFlags::empty()).map_err(failed)?;
            // What an earlier transfer has left is no beginning.
            if count == OPEN.len() && message == OPEN {
                let socket =
                    self.socket.try_clone().map_err(|error| Error::job(&plan.name, "sharing a socket", error))?;
                return Ok((socket, from.and_then(|from| from.try_into().ok())));
            }
        }
    }
}

/// Whether no program listens at a Unix socket any more.
fn is_left(address: &SocketAddrUnix) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(connect_to(&socket, address) == Err(Errno::CONNREFUSED))
}

/// Connects a socket. A queue of connections that is full, or a network that is silent, may take long: the end of the measurement is
/// heeded meanwhile.
fn connect_within(socket: &OwnedFd, address: &impl SocketAddrArg, control: &Control) -> io::Result<()> {
    ioctl_fionbio(socket, true)?;
    let begun = Instant::now();
    let most = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    let mut under_way = false;
    loop {
        if !under_way {
            match connect_to(socket, address) {
                Ok(()) => break,
                Err(Errno::INPROGRESS) => under_way = true,
                Err(Errno::AGAIN) => std::thread::sleep(LOOK),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        } else if !matches!(poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&most)), Ok(0) | Err(Errno::INTR)) {
            sockopt::socket_error(socket)??;
            break;
        }
        if control.stopped() {
            return Err(io::Error::new(ErrorKind::Interrupted, "the measurement ended"));
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::new(ErrorKind::TimedOut, "no answer within 60 s"));
        }
    }
    Ok(ioctl_fionbio(socket, false)?)
}

/// Connects to the other end.
///
/// # Errors
/// Refused, when nobody listens there.
pub(super) fn connect(plan: &JobPlan, place: &Place, control: &Control) -> Result<(OwnedFd, Option<SocketAddr>)> {
    await_listener(plan, place, control);
    let failed = |error: io::Error| {
        let why = match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
                "nobody listens there; start the other end first: a job that waits, or fio"
            }
            ErrorKind::InvalidInput => "the path is too long; choose one of at most 107 bytes",
            _ => "cannot be connected to; check hostname and port",
        };
        refused(plan, place, why, Some(&error))
    };
    let connected = || -> io::Result<(OwnedFd, Option<SocketAddr>)> {
        let socket = place.socket()?;
        set_up(plan, &socket, place.protocol())?;
        match place {
            Place::Path(path) => {
                let address = SocketAddrUnix::new(path.as_path()).map_err(|_| ErrorKind::InvalidInput)?;
                connect_within(&socket, &address, control)?;
                Ok((socket, None))
            }
            Place::Address(protocol, address) if protocol.is_tcp() => {
                connect_within(&socket, address, control)?;
                Ok((socket, None))
            }
            Place::Address(_, address) => {
                begin_datagrams(plan, &socket, *address)?;
                Ok((socket, Some(*address)))
            }
        }
    };
    connected().map_err(failed)
}

/// Tells the other end that datagrams follow. Only a connected socket learns that nobody listens; the datagrams themselves go through one
/// that is not connected, as in fio.
fn begin_datagrams(plan: &JobPlan, socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    let any = if address.is_ipv6() { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    // Keeps its port when it is connected no longer.
    bind(socket, &SocketAddr::new(any, 0))?;
    if address.ip().is_multicast() {
        if let Some(interface) = interface(plan) {
            sockopt::set_ip_multicast_if(socket, &interface)?;
        }
        sockopt::set_ip_multicast_ttl(socket, plan.net.ttl)?;
        rustix::net::sendto(socket, &OPEN, SendFlags::NOSIGNAL, &address)?;
        return Ok(());
    }
    connect_to(socket, &address)?;
    send(socket, &OPEN, SendFlags::NOSIGNAL)?;
    let _ = poll(&mut [PollFd::new(socket, PollFlags::empty())], Some(&REFUSAL));
    sockopt::socket_error(socket)??;
    Ok(connect_unspec(socket)?)
}

/// If a job of this measurement will listen there, waits until it does.
fn await_listener(plan: &JobPlan, place: &Place, control: &Control) {
    let copy = match place {
        Place::Address(_, address) => u32::from(address.port().saturating_sub(plan.net.port)),
        Place::Path(_) => 0,
    };
    let key = plan.net.place(copy);
    let begun = Instant::now();
    let mut known = places();
    while known.get(&key) == Some(&false) && begun.elapsed() < SOON && !control.stopped() {
        known = CHANGED.wait_timeout(known, LOOK).unwrap_or_else(PoisonError::into_inner).0;
    }
}
