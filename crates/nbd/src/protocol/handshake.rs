//! How a client and a server agree on an export, as bytes: NBD's fixed newstyle negotiation. No I/O.
//!
//! [`server::Negotiation`] and the client's functions in [`client`] are two ends of the same conversation. Names of constants are
//! those of the specification (`doc/proto.md` of the NBD project) without their `NBD_`.

pub mod client;
pub mod server;

/// Begins the server's greeting: "NBDMAGIC".
pub const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Follows it in the newstyle, and begins each option: "IHAVEOPT".
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Begins each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// The longest name of an export or a context, and the longest description.
pub const MAX_STRING: usize = 4096;

/// Bits of both ends' handshake flags.
pub mod handshake_flag {
    /// Unknown options are replied to instead of ending the connection.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// The 124 zeros after the oldest way to choose an export are left out.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Options.
pub mod option {
    /// Chooses an export and ends the negotiation, without a way to say no.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the connection.
    pub const ABORT: u32 = 2;
    /// Asks for the names of the exports.
    pub const LIST: u32 = 3;
    /// Goes on encrypted.
    pub const STARTTLS: u32 = 5;
    /// Asks what an export is.
    pub const INFO: u32 = 6;
    /// Asks what an export is, and begins to use it.
    pub const GO: u32 = 7;
    /// Replies may be structured.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Asks which metadata contexts there are.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Chooses metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Payloads are followed by their checksums ([`crate::filters::crc`]). Not of the specification; "iocs", which it does not use.
    pub const CHECKSUMS: u32 = u32::from_be_bytes(*b"iocs");
}

/// Replies to options.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// The name of an export.
    pub const SERVER: u32 = 2;
    /// Something about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// From here on replies are errors.
    pub const ERROR: u32 = 1 << 31;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = ERROR | 1;
    /// Not allowed.
    pub const ERR_POLICY: u32 = ERROR | 2;
    /// The option's data make no sense.
    pub const ERR_INVALID: u32 = ERROR | 3;
    /// First STARTTLS.
    pub const ERR_TLS_REQD: u32 = ERROR | 5;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = ERROR | 6;
    /// The option's data are too long.
    pub const ERR_TOO_BIG: u32 = ERROR | 9;
}

/// What a reply of kind [`reply::INFO`] is about.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The canonical name.
    pub const NAME: u16 = 1;
    /// A description.
    pub const DESCRIPTION: u16 = 2;
    /// Block sizes: least, preferred, largest payload.
    pub const BLOCK_SIZE: u16 = 3;
}

/// What a server offers for an export, as bits.
pub mod transmission_flag {
    /// Always there.
    pub const HAS_FLAGS: u16 = 1;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is known.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The FUA flag is known.
    pub const SEND_FUA: u16 = 1 << 3;
    /// TRIM is known.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is known.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The DF flag is known.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers writes replied to on all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE is known.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The FAST_ZERO flag is known.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// The only metadata context that is offered, and its number.
pub const BASE_ALLOCATION: &[u8] = b"base:allocation";
/// See [`BASE_ALLOCATION`].
pub const BASE_ALLOCATION_ID: u32 = 1;

/// Takes fields off the front of a message; `None` when it is shorter than its fields say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A length and so many bytes, not more than a string may have.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        if length > MAX_STRING { None } else { self.bytes(length) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests;
