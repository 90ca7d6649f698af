//! NBD's transmission phase as bytes: requests, replies, errors. Bytes go in, values come out; no I/O.
//!
//! Numbers and layouts are those of the specification, `doc/proto.md` of the NBD project
//! (<https://github.com/NetworkBlockDevice/nbd>); constants have its names. All fields are big-endian.

use super::handshake::Fields;
use rustix::io::Errno;
use std::num::NonZeroU32;

/// Starts each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Starts each simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Starts each chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Size of a request's header; a write's payload follows it.
pub const REQUEST_BYTES: usize = 28;
/// Size of a simple reply's header; a read's payload follows it.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Maximum payload accepted and sent in bytes: the most that portable clients use, according to the specification.
pub const MAX_PAYLOAD: u32 = 32 << 20;

/// The command of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read `length` bytes at `offset`.
    Read,
    /// Write the payload at `offset`.
    Write,
    /// Disconnect after requests in flight have finished; there is no reply.
    Disconnect,
    /// All writes completed before are durable after the reply.
    Flush,
    /// Discard the range.
    Trim,
    /// Make the range read as zeros.
    WriteZeroes,
    /// A command that this end does not know.
    Unknown(u16),
}

/// The known commands, with their numbers on the wire.
const COMMANDS: [(Command, u16); 6] = [
    (Command::Read, 0),
    (Command::Write, 1),
    (Command::Disconnect, 2),
    (Command::Flush, 3),
    (Command::Trim, 4),
    (Command::WriteZeroes, 6),
];

impl Command {
    fn decode(number: u16) -> Self {
        COMMANDS.iter().find(|(_, known)| *known == number).map_or(Self::Unknown(number), |(command, _)| *command)
    }

    #[inline]
    fn encode(self) -> u16 {
        match self {
            Self::Unknown(number) => number,
            known => COMMANDS.iter().find(|(command, _)| *command == known).map_or(0, |(_, number)| *number),
        }
    }
}

/// Bits of a request's flags.
pub mod command_flag {
    /// Force unit access: durable before the reply.
    pub const FUA: u16 = 1;
    /// Keep the blocks allocated: do not punch a hole.
    pub const NO_HOLE: u16 = 1 << 1;
}

/// A request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bits of [`command_flag`].
    pub flags: u16,
    pub command: Command,
    /// The client's identifier of the request, returned in each reply.
    pub cookie: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl Request {
    /// Disconnects a client that has nothing in flight.
    pub const DISCONNECT: Self = Self { flags: 0, command: Command::Disconnect, cookie: 0, offset: 0, length: 0 };

    /// `None` if the magic number is wrong: the stream is out of step, and nothing that follows can be trusted.
    #[inline]
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        let (flags, command) = (fields.u16()?, Command::decode(fields.u16()?));
        Some(Self { flags, command, cookie: fields.u64()?, offset: fields.u64()?, length: fields.u32()? })
    }

    /// Encodes the header.
    #[inline]
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let word = u32::from(self.flags) << 16 | u32::from(self.command.encode());
        let mut bytes = header(REQUEST_MAGIC, word, self.cookie);
        put(&mut bytes, 16, self.offset.to_be_bytes());
        put(&mut bytes, 24, self.length.to_be_bytes());
        bytes
    }
}

/// Why a request failed, as an error number of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError(NonZeroU32);

impl WireError {
    /// Operation not permitted: a write to a read-only export.
    pub const EPERM: Self = Self::constant(1);
    /// I/O error of the storage.
    pub const EIO: Self = Self::constant(5);
    /// Out of memory.
    pub const ENOMEM: Self = Self::constant(12);
    /// Invalid request.
    pub const EINVAL: Self = Self::constant(22);
    /// Write beyond the end, or the storage is full.
    pub const ENOSPC: Self = Self::constant(28);
    /// Not supported.
    pub const ENOTSUP: Self = Self::constant(95);

    const fn constant(number: u32) -> Self {
        match NonZeroU32::new(number) {
            Some(number) => Self(number),
            // Unreachable: every caller passes a constant above 0.
            None => Self(NonZeroU32::MIN),
        }
    }

    /// The number on the wire.
    pub fn number(self) -> u32 {
        self.0.get()
    }

    /// Decodes an error number from the wire: numbers that the specification does not list count as EINVAL.
    pub fn received(number: u32) -> Option<Self> {
        let number = NonZeroU32::new(number)?;
        // And two that no server here sends: EOVERFLOW and ESHUTDOWN.
        let known = matches!(number.get(), 1 | 5 | 12 | 22 | 28 | 75 | 95 | 108);
        Some(if known { Self(number) } else { Self::EINVAL })
    }

    /// The closest error of the protocol to an operating system error.
    pub fn from_system(error: &std::io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::PERM | Errno::ROFS) => Self::EPERM,
            Some(Errno::NOMEM) => Self::ENOMEM,
            Some(Errno::INVAL) => Self::EINVAL,
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Self::ENOSPC,
            Some(Errno::OPNOTSUPP) => Self::ENOTSUP,
            _ => Self::EIO,
        }
    }
}

/// Encodes a simple reply's header; a read's payload follows it unless there is an error.
#[inline]
pub fn simple_reply(cookie: u64, error: Option<WireError>) -> [u8; SIMPLE_REPLY_BYTES] {
    header(SIMPLE_REPLY_MAGIC, error.map_or(0, WireError::number), cookie)
}

/// Decodes the header of the simple reply at the start of `bytes`: cookie and error; `None` while it is incomplete.
///
/// # Errors
/// The magic number, when it is not that of a simple reply.
#[inline]
pub fn decode_simple_reply(bytes: &[u8]) -> Result<Option<(u64, Option<WireError>)>, u32> {
    let mut fields = Fields(bytes);
    match fields.u32() {
        Some(SIMPLE_REPLY_MAGIC) => {
            Ok(fields.u32().zip(fields.u64()).map(|(error, cookie)| (cookie, WireError::received(error))))
        }
        Some(other) => Err(other),
        None => Ok(None),
    }
}

/// A header of this size that starts, as all do, with a magic number, a word of two numbers or one, and a cookie.
#[inline(always)]
fn header<const N: usize>(magic: u32, word: u32, cookie: u64) -> [u8; N] {
    let mut bytes = [0; N];
    put(&mut bytes, 0, magic.to_be_bytes());
    put(&mut bytes, 4, word.to_be_bytes());
    put(&mut bytes, 8, cookie.to_be_bytes());
    bytes
}

/// Copies a field into a header. The positions are constants, so the compiler removes the bounds checks.
#[inline(always)]
fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..at + N) {
        place.copy_from_slice(&field);
    }
}
