//! NBD's fixed newstyle negotiation of an export, as bytes. No I/O.
//!
//! [`server::Negotiation`] and [`client::Negotiation`] are the two ends. Constants have the names of the specification
//! (`doc/proto.md` of the NBD project) without `NBD_`.

pub mod client;
pub mod server;

/// Starts the server's greeting: "NBDMAGIC".
pub const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Follows [`MAGIC`] in the newstyle greeting, and starts each option: "IHAVEOPT".
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Starts each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// Longest name of an export, and longest description, in bytes.
pub const MAX_STRING: usize = 4096;

/// Handshake flags of both ends.
pub mod handshake_flag {
    /// The server replies to unknown options instead of closing the connection.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// Omit the 124 zero bytes after EXPORT_NAME.
    pub const NO_ZEROES: u16 = 1 << 1;
}

pub mod option {
    /// Selects an export and ends the negotiation; the server cannot reply with an error.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the connection.
    pub const ABORT: u32 = 2;
    /// Lists the exports.
    pub const LIST: u32 = 3;
    /// Switches to TLS.
    pub const STARTTLS: u32 = 5;
    /// Requests information about an export.
    pub const INFO: u32 = 6;
    /// Requests information about an export and enters the transmission phase.
    pub const GO: u32 = 7;
    /// Negotiates checksums behind payloads ([`crate::filters`]). Not in the specification, which does not use the
    /// number ("iocs").
    pub const CHECKSUMS: u32 = u32::from_be_bytes(*b"iocs");
}

/// Replies to options.
pub mod reply {
    /// Success, or the end of a list.
    pub const ACK: u32 = 1;
    /// The name of an export.
    pub const SERVER: u32 = 2;
    /// Information about an export.
    pub const INFO: u32 = 3;
    /// Replies with this bit are errors.
    pub const ERROR: u32 = 1 << 31;
    /// Unknown option.
    pub const ERR_UNSUP: u32 = ERROR | 1;
    /// Refused by policy.
    pub const ERR_POLICY: u32 = ERROR | 2;
    /// Malformed option data.
    pub const ERR_INVALID: u32 = ERROR | 3;
    /// The server requires TLS.
    pub const ERR_TLS_REQD: u32 = ERROR | 5;
    /// No such export.
    pub const ERR_UNKNOWN: u32 = ERROR | 6;
}

/// Type of the information in a [`reply::INFO`].
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Block sizes: minimum, preferred, maximum payload.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export.
pub mod transmission_flag {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1;
    /// The export is read-only.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The FUA flag is supported.
    pub const SEND_FUA: u16 = 1 << 3;
    /// TRIM is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// A flush on one connection covers completed writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// An option as a client sends it.
pub(crate) fn option_bytes(number: u32, data: &[u8]) -> Vec<u8> {
    [&OPTION_MAGIC.to_be_bytes()[..], &number.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}

/// Reads fields from the front of a message; each method returns `None` if the message is too short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A length-prefixed string of at most [`MAX_STRING`] bytes.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        if length > MAX_STRING { None } else { self.bytes(length) }
    }
}

#[cfg(test)]
mod tests;
