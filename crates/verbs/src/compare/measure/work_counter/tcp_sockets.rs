//! Bytes that the TCP sockets of processes have moved, from the kernel's socket diagnostics (sock_diag(7)).
//!
//! Task accounting counts read and write on a socket, but neither send and recv nor what io_uring does.

use lab::network_namespace;
use lab::proc_files::sockets_of;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};
use std::collections::BTreeMap;

/// linux/sock_diag.h, linux/netlink.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const HEADER: usize = 16;
/// linux/inet_diag.h: the message, and the place of the inode in it.
const MESSAGE: usize = 72;
const INODE: usize = 68;
const INET_DIAG_INFO: u16 = 2;
/// linux/tcp.h: places in struct tcp_info (Linux 4.1).
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
/// The same (Linux 4.6).
const DATA_SEGMENTS_IN: usize = 152;
const DATA_SEGMENTS_OUT: usize = 156;
const TCP: u8 = 6;
const ALL_STATES: u32 = 0xfff;

/// What a socket has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moved {
    bytes: u64,
    /// Segments with data; 0 if the kernel does not tell.
    segments: u64,
}

/// The sockets of a command, by inode, with what each had moved when it was last seen. The kernel tells only of the
/// sockets of one network namespace.
#[derive(Debug, Default)]
pub(super) struct TcpSockets {
    sockets: BTreeMap<u64, Moved>,
    /// For each network namespace of the command that has sockets.
    diagnostics: BTreeMap<u64, std::result::Result<OwnedFd, String>>,
}

impl TcpSockets {
    /// Looks for new sockets of these processes.
    pub fn find(&mut self, processes: &[u32]) {
        for process in processes {
            let sockets = sockets_of(*process);
            if sockets.is_empty() {
                continue;
            }
            if let Some(network) = network_namespace::of(*process) {
                let open = || network_namespace::within(*process, diagnostics).map_err(|error| error.to_string());
                self.diagnostics.entry(network).or_insert_with(open);
            }
            for inode in sockets {
                self.sockets.entry(inode).or_default();
            }
        }
    }

    /// Why sockets are not counted: their network namespace may not be entered.
    pub fn out_of_reach(&self) -> Option<String> {
        let why = self.diagnostics.values().find_map(|opened| opened.as_ref().err())?;
        Some(format!("its sockets are in another network namespace, which iotoll cannot enter ({why}); run it as root"))
    }

    /// Whether one was found.
    pub fn any(&self) -> bool {
        !self.sockets.is_empty()
    }

    /// Bytes that were received, and sent and acknowledged; `None` without sockets, or if the kernel does not tell.
    pub fn moved(&mut self) -> Option<u64> {
        if self.sockets.is_empty() {
            return None;
        }
        for opened in self.diagnostics.values() {
            for family in [AddressFamily::INET, AddressFamily::INET6] {
                ask(opened.as_ref().ok()?, &mut self.sockets, family)?;
            }
        }
        Some(self.sockets.values().map(|socket| socket.bytes).sum())
    }

    /// Segments with data of these bytes; `None` if the kernel does not tell.
    pub fn segments(&self) -> Option<u64> {
        Some(self.sockets.values().map(|socket| socket.segments).sum()).filter(|segments| *segments > 0)
    }
}

/// A socket that tells of the TCP sockets of this thread's network namespace.
fn diagnostics() -> std::io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?)
}

/// Asks what all sockets of a family have moved.
fn ask(diagnostics: &OwnedFd, sockets: &mut BTreeMap<u64, Moved>, family: AddressFamily) -> Option<()> {
    rustix::io::write(diagnostics, &request(u8::try_from(family.as_raw()).ok()?)).ok()?;
    let mut buffer = vec![0; 32 << 10];
    loop {
        let length = rustix::io::read(diagnostics, &mut buffer).ok()?;
        let mut rest = buffer.get(..length)?;
        while !rest.is_empty() {
            let size = usize::try_from(word(rest, 0)?).ok()?;
            let message = rest.get(..size).filter(|message| message.len() >= HEADER)?;
            match half(message, 4)? {
                DONE => return Some(()),
                ERROR => return None,
                _ => note(sockets, message.get(HEADER..)?),
            }
            rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

/// Notes what a socket has moved, if it is one of those.
fn note(sockets: &mut BTreeMap<u64, Moved>, message: &[u8]) {
    let Some((inode, moved)) = word(message, INODE).zip(moved(message)) else { return };
    if let Some(known) = sockets.get_mut(&u64::from(inode)).filter(|known| known.bytes <= moved.bytes) {
        *known = moved;
    }
}

/// A request for all TCP sockets of a family with their tcp_info.
fn request(family: u8) -> Vec<u8> {
    const IDENTITY: usize = 48;
    let length = HEADER + 8 + IDENTITY;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or(0).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST_DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    bytes.extend(ALL_STATES.to_ne_bytes());
    bytes.extend([0; IDENTITY]);
    bytes
}

/// What a socket's message tells.
fn moved(message: &[u8]) -> Option<Moved> {
    let mut rest = message.get(MESSAGE..)?;
    loop {
        let (size, kind) = (usize::from(half(rest, 0)?), half(rest, 2)?);
        if kind == INET_DIAG_INFO {
            let info = rest.get(4..size)?;
            let segments = word(info, DATA_SEGMENTS_IN).zip(word(info, DATA_SEGMENTS_OUT));
            return Some(Moved {
                bytes: long(info, BYTES_ACKED)?.saturating_add(long(info, BYTES_RECEIVED)?),
                segments: segments.map_or(0, |(received, sent)| u64::from(received) + u64::from(sent)),
            });
        }
        rest = rest.get(size.max(4).next_multiple_of(4)..)?;
    }
}

fn half(bytes: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(place..place + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(place..place + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_own_sockets_move_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        let mut sockets = TcpSockets::default();
        assert_eq!(sockets.moved(), None, "no sockets are known");
        sockets.find(&[std::process::id()]);
        // A kernel without sock_diag.
        let Some(before) = sockets.moved() else { return };
        ours.write_all(&[7; 10_000]).unwrap();
        theirs.read_exact(&mut [0; 10_000]).unwrap();
        let since = std::time::Instant::now();
        // Both ends are ours; acknowledgements may arrive later.
        while sockets.moved().unwrap() < before + 20_000 {
            assert!(since.elapsed().as_secs() < 60);
            std::thread::yield_now();
        }
        // One was sent, and one received; on loopback they are larger than that.
        assert!((2..=20).contains(&sockets.segments().unwrap()), "{:?}", sockets.segments());
    }

    #[test]
    fn broken_messages_have_no_bytes() {
        assert_eq!(moved(&[0; MESSAGE]), None);
        assert_eq!(moved(&[0; MESSAGE + 7]), None);
    }
}
