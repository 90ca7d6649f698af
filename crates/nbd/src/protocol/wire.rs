//! NBD's transmission phase as bytes: requests, replies, errors. No I/O: bytes go in, values come out.
//!
//! Numbers and layouts are of the protocol's specification, `doc/proto.md` of the NBD project
//! (<https://github.com/NetworkBlockDevice/nbd>), whose names the constants keep. All fields are big-endian.

use std::num::NonZeroU32;

/// Begins each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Begins each simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Begins each chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Bytes of a request, before a write's payload.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply, before a read's payload.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of a chunk's header, before its payload.
pub const CHUNK_BYTES: usize = 20;
/// Bytes of a chunk's header with the offset that begins its data.
pub const DATA_CHUNK_BYTES: usize = CHUNK_BYTES + 8;

/// The largest payload that is accepted and sent: what the specification says portable clients use at most.
pub const MAX_PAYLOAD: u32 = 32 << 20;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read `length` bytes at `offset`.
    Read,
    /// Write the payload at `offset`.
    Write,
    /// The end: what is in flight is finished, nothing is replied.
    Disconnect,
    /// Everything written and replied to before is durable after the reply.
    Flush,
    /// The range may be forgotten.
    Trim,
    /// The range is going to be read.
    Cache,
    /// The range reads as zeros from now on.
    WriteZeroes,
    /// What of the range is allocated.
    BlockStatus,
    /// Something that this end does not know.
    Unknown(u16),
}

impl Command {
    fn decode(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Unknown(other),
        }
    }

    fn encode(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::BlockStatus => 7,
            Self::Unknown(number) => number,
        }
    }
}

/// Bits of a request's flags.
pub mod command_flag {
    /// Durable before the reply.
    pub const FUA: u16 = 1;
    /// Write zeros, do not punch a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Reply to a read in one piece.
    pub const DF: u16 = 1 << 2;
    /// Reply to a block status with one extent.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Fail when zeros cannot be had faster than by writing them.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// A request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bits of [`command_flag`].
    pub flags: u16,
    /// What is asked for.
    pub command: Command,
    /// The client's name for the request, sent back with each reply.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl Request {
    /// `None` when the magic number is wrong: the two ends have lost each other, and nothing that follows can be trusted.
    #[inline]
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        if be32(bytes, 0) != REQUEST_MAGIC {
            return None;
        }
        Some(Self {
            flags: be16(bytes, 4),
            command: Command::decode(be16(bytes, 6)),
            cookie: be64(bytes, 8),
            offset: be64(bytes, 16),
            length: be32(bytes, 24),
        })
    }

    /// The bytes of this header.
    #[inline]
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        put(&mut bytes, 0, REQUEST_MAGIC.to_be_bytes());
        put(&mut bytes, 4, self.flags.to_be_bytes());
        put(&mut bytes, 6, self.command.encode().to_be_bytes());
        put(&mut bytes, 8, self.cookie.to_be_bytes());
        put(&mut bytes, 16, self.offset.to_be_bytes());
        put(&mut bytes, 24, self.length.to_be_bytes());
        bytes
    }

    /// Bytes that follow the header.
    pub fn payload(&self) -> u32 {
        if self.command == Command::Write { self.length } else { 0 }
    }
}

/// Why a request failed, by the numbers that the protocol knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError(NonZeroU32);

impl WireError {
    /// Not allowed: a write to a read-only export.
    pub const EPERM: Self = Self::constant(1);
    /// The storage failed.
    pub const EIO: Self = Self::constant(5);
    /// Not enough memory.
    pub const ENOMEM: Self = Self::constant(12);
    /// The request makes no sense.
    pub const EINVAL: Self = Self::constant(22);
    /// Beyond the end, or the storage is full.
    pub const ENOSPC: Self = Self::constant(28);
    /// The reply does not fit one chunk.
    pub const EOVERFLOW: Self = Self::constant(75);
    /// Not supported, or not fast.
    pub const ENOTSUP: Self = Self::constant(95);
    /// The server is about to end.
    pub const ESHUTDOWN: Self = Self::constant(108);

    const fn constant(number: u32) -> Self {
        match NonZeroU32::new(number) {
            Some(number) => Self(number),
            // Never: every caller passes a number above 0, and the compiler evaluates it.
            None => Self(NonZeroU32::MIN),
        }
    }

    /// The number on the wire.
    pub fn number(self) -> u32 {
        self.0.get()
    }

    /// What a client may make of an error number it was sent: those not in the specification count as EINVAL.
    pub fn received(number: u32) -> Option<Self> {
        let known = [1, 5, 12, 22, 28, 75, 95, 108];
        let number = if number == 0 || known.contains(&number) { number } else { 22 };
        NonZeroU32::new(number).map(Self)
    }

    /// An operating system's error, as near as the protocol can say it.
    pub fn from_system(error: &std::io::Error) -> Self {
        match error.raw_os_error().unwrap_or(0) {
            libc_number::EPERM | libc_number::EROFS => Self::EPERM,
            libc_number::ENOMEM => Self::ENOMEM,
            libc_number::EINVAL => Self::EINVAL,
            libc_number::ENOSPC | libc_number::EDQUOT | libc_number::EFBIG => Self::ENOSPC,
            libc_number::EOPNOTSUPP => Self::ENOTSUP,
            _ => Self::EIO,
        }
    }
}

/// Linux's numbers of the errors that become another on the wire.
mod libc_number {
    pub const EPERM: i32 = 1;
    pub const ENOMEM: i32 = 12;
    pub const EINVAL: i32 = 22;
    pub const EFBIG: i32 = 27;
    pub const ENOSPC: i32 = 28;
    pub const EROFS: i32 = 30;
    pub const EOPNOTSUPP: i32 = 95;
    pub const EDQUOT: i32 = 122;
}

/// The header of a simple reply; a read's payload follows when there is no error.
#[inline]
pub fn simple_reply(cookie: u64, error: Option<WireError>) -> [u8; SIMPLE_REPLY_BYTES] {
    let mut bytes = [0; SIMPLE_REPLY_BYTES];
    put(&mut bytes, 0, SIMPLE_REPLY_MAGIC.to_be_bytes());
    put(&mut bytes, 4, error.map_or(0, WireError::number).to_be_bytes());
    put(&mut bytes, 8, cookie.to_be_bytes());
    bytes
}

/// What a chunk of a structured reply holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Nothing: the end of a reply, or its only chunk.
    None,
    /// An offset and data.
    Data,
    /// An offset and a length that reads as zeros.
    Hole,
    /// Extents.
    BlockStatus,
    /// An error for the whole request.
    Error,
    /// An error at one offset.
    ErrorAt,
    /// A kind that this end does not know; from bit 15 on it is an error.
    Unknown(u16),
}

impl ChunkKind {
    fn decode(number: u16) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Data,
            2 => Self::Hole,
            5 => Self::BlockStatus,
            0x8001 => Self::Error,
            0x8002 => Self::ErrorAt,
            other => Self::Unknown(other),
        }
    }

    fn encode(self) -> u16 {
        match self {
            Self::None => 0,
            Self::Data => 1,
            Self::Hole => 2,
            Self::BlockStatus => 5,
            Self::Error => 0x8001,
            Self::ErrorAt => 0x8002,
            Self::Unknown(number) => number,
        }
    }
}

/// The header of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Whether this is the reply's last chunk.
    pub done: bool,
    /// What follows.
    pub kind: ChunkKind,
    /// The request's.
    pub cookie: u64,
    /// Bytes that follow.
    pub length: u32,
}

impl Chunk {
    /// The bytes of this header.
    #[inline]
    pub fn encode(&self) -> [u8; CHUNK_BYTES] {
        let mut bytes = [0; CHUNK_BYTES];
        put(&mut bytes, 0, CHUNK_MAGIC.to_be_bytes());
        put(&mut bytes, 4, u16::from(self.done).to_be_bytes());
        put(&mut bytes, 6, self.kind.encode().to_be_bytes());
        put(&mut bytes, 8, self.cookie.to_be_bytes());
        put(&mut bytes, 16, self.length.to_be_bytes());
        bytes
    }

    /// What follows a magic number that said "chunk". Unknown flags are left out, as the specification asks.
    #[inline]
    fn decode(bytes: &[u8; CHUNK_BYTES]) -> Self {
        Self {
            done: be16(bytes, 4) & 1 != 0,
            kind: ChunkKind::decode(be16(bytes, 6)),
            cookie: be64(bytes, 8),
            length: be32(bytes, 16),
        }
    }
}

/// The only chunk of a read's reply: header and offset, which `length` bytes of data follow.
#[inline]
pub fn data_chunk(cookie: u64, offset: u64, length: u32) -> [u8; DATA_CHUNK_BYTES] {
    let chunk = Chunk { done: true, kind: ChunkKind::Data, cookie, length: length.saturating_add(8) };
    let mut bytes = [0; DATA_CHUNK_BYTES];
    put(&mut bytes, 0, chunk.encode());
    put(&mut bytes, CHUNK_BYTES, offset.to_be_bytes());
    bytes
}

/// What begins the next message from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyHeader {
    /// A simple reply.
    Simple {
        /// The request's.
        cookie: u64,
        /// What went wrong, if anything.
        error: Option<WireError>,
    },
    /// One chunk of a structured reply.
    Chunk(Chunk),
}

/// Why bytes are not a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMagic(pub u32);

impl ReplyHeader {
    /// The header at the start of `bytes` and its length; `None` while it is not complete.
    ///
    /// # Errors
    /// When no reply begins here.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadMagic> {
        let Some(magic) = bytes.first_chunk::<4>() else { return Ok(None) };
        match u32::from_be_bytes(*magic) {
            SIMPLE_REPLY_MAGIC => Ok(bytes.first_chunk::<SIMPLE_REPLY_BYTES>().map(|header| {
                let (error, cookie) = (WireError::received(be32(header, 4)), be64(header, 8));
                (Self::Simple { cookie, error }, SIMPLE_REPLY_BYTES)
            })),
            CHUNK_MAGIC => {
                Ok(bytes.first_chunk::<CHUNK_BYTES>().map(|header| (Self::Chunk(Chunk::decode(header)), CHUNK_BYTES)))
            }
            other => Err(BadMagic(other)),
        }
    }
}

/// Copies a field into a header. The places are constants, so the compiler checks them away.
#[inline(always)]
fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..at + N) {
        place.copy_from_slice(&field);
    }
}

#[inline(always)]
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

#[inline(always)]
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(field(bytes, at))
}

#[inline(always)]
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(field(bytes, at))
}

#[inline(always)]
fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(field(bytes, at))
}
