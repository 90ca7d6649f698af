//! The client's end of the negotiation: bytes from the server go in, bytes to send come out, until an export is
//! negotiated. No I/O.

use super::{
    Fields, MAGIC, MAX_STRING, OPTION_MAGIC, OPTION_REPLY_MAGIC, handshake_flag, info, option, option_bytes, reply,
};
use crate::wire::MAX_PAYLOAD;

/// Replies with more data are refused: the longest valid reply contains two strings.
const MAX_REPLY: usize = 3 * MAX_STRING;

/// Size of the input buffer that fits every valid reply.
pub const INPUT_BYTES: usize = 20 + MAX_REPLY;

/// The server's description of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Size in bytes.
    pub size: u64,
    /// Bits of [`super::transmission_flag`].
    pub flags: u16,
    /// Minimum block size in bytes: offsets and lengths are multiples of it.
    pub least_block: u32,
    /// Maximum payload in bytes that the server accepts.
    pub max_payload: u32,
}

/// The state after the bytes received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The server's next bytes are needed.
    Continue,
    /// The negotiation succeeded: requests may be sent.
    Ready(Export),
    /// The negotiation failed; the reason as text.
    Failed(String),
}

/// The negotiation of one export.
#[derive(Debug)]
pub struct Negotiation {
    name: String,
    /// Whether checksums are required and have not been agreed on.
    pub wants_checksums: bool,
    greeted: bool,
    export: Export,
    /// Whether the server has sent the size and the flags.
    described: bool,
}

impl Negotiation {
    /// Negotiates the export of this name. A server reports names longer than [`MAX_STRING`] bytes as unknown.
    pub fn new(name: impl Into<String>) -> Self {
        let export = Export { size: 0, flags: 0, least_block: 1, max_payload: MAX_PAYLOAD };
        Self { name: name.into(), wants_checksums: false, greeted: false, export, described: false }
    }

    /// Consumes complete messages from the front of `input` and appends the bytes to send to `out`. Returns the number
    /// of bytes consumed.
    pub fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let mut rest = Fields(input);
        loop {
            let before = rest;
            let step = if self.greeted { self.reply(&mut rest) } else { self.greeting(&mut rest, out) };
            let Some(step) = step else { return (input.len() - before.0.len(), Step::Continue) };
            if step != Step::Continue {
                return (input.len() - rest.0.len(), step);
            }
        }
    }

    fn greeting(&mut self, rest: &mut Fields, out: &mut Vec<u8>) -> Option<Step> {
        let (first, second, flags) = (rest.u64()?, rest.u64()?, rest.u16()?);
        if first != MAGIC || second != OPTION_MAGIC {
            return failed("this is not an NBD server, or it supports only the oldstyle handshake");
        }
        if flags & handshake_flag::FIXED_NEWSTYLE == 0 {
            return failed("the server does not support the fixed newstyle handshake");
        }
        let ours = flags & (handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
        out.extend_from_slice(&u32::from(ours).to_be_bytes());
        if self.wants_checksums {
            out.extend(option_bytes(option::CHECKSUMS, &[]));
        }
        let (name, types) = (self.name.as_bytes(), [1, info::BLOCK_SIZE].map(u16::to_be_bytes));
        let data = [&(name.len() as u32).to_be_bytes()[..], name, types.as_flattened()].concat();
        out.extend(option_bytes(option::GO, &data));
        self.greeted = true;
        Some(Step::Continue)
    }

    fn reply(&mut self, rest: &mut Fields) -> Option<Step> {
        let (magic, number, kind, length) = (rest.u64()?, rest.u32()?, rest.u32()?, rest.u32()?);
        let asked = if self.wants_checksums { option::CHECKSUMS } else { option::GO };
        if magic != OPTION_REPLY_MAGIC || number != asked {
            return failed("the server replies to an option that was not sent");
        }
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= MAX_REPLY) else {
            return failed("the server sends a reply longer than the protocol allows");
        };
        let data = rest.bytes(length)?;
        if asked == option::CHECKSUMS {
            if kind != reply::ACK {
                return failed("the server offers no checksums; start `iotoll serve` with --path-crc on");
            }
            self.wants_checksums = false;
            return Some(Step::Continue);
        }
        match kind {
            reply::INFO => self.info(Fields(data)),
            reply::ACK if self.described => Some(Step::Ready(self.export)),
            reply::ACK => failed("the server accepts the export without sending its size"),
            reply::ERR_UNKNOWN => failed(&format!("the server has no export '{}'", self.name)),
            reply::ERR_TLS_REQD => failed("the server requires TLS, which is not supported"),
            reply::ERR_UNSUP => failed("the server does not support NBD_OPT_GO"),
            reply::ERR_POLICY => failed("the server refuses this client by policy"),
            kind if kind & reply::ERROR != 0 => {
                let text: String =
                    String::from_utf8_lossy(data).chars().filter(|letter| !letter.is_control()).take(200).collect();
                failed(&format!("the server refuses the export (error {}): {text}", kind & !reply::ERROR))
            }
            _ => failed("the server sends an unexpected reply"),
        }
    }

    fn info(&mut self, mut data: Fields) -> Option<Step> {
        let understood = match data.u16() {
            Some(info::EXPORT) => data.u64().zip(data.u16()).map(|(size, flags)| {
                (self.export.size, self.export.flags, self.described) = (size, flags, true);
            }),
            Some(info::BLOCK_SIZE) => self.block_sizes(&mut data),
            // A server may also send information that was not requested.
            Some(_) => return Some(Step::Continue),
            None => None,
        };
        match understood {
            Some(()) if self.export.size <= i64::MAX as u64 => Some(Step::Continue),
            _ => failed("the server sends an invalid description of the export"),
        }
    }

    /// Minimum, preferred, and maximum payload: powers of two, the minimum at most 64 KiB, as the specification
    /// requires.
    fn block_sizes(&mut self, data: &mut Fields) -> Option<()> {
        let (least, _preferred, payload) = (data.u32()?, data.u32()?, data.u32()?);
        if !least.is_power_of_two() || least > 1 << 16 || payload < least {
            return None;
        }
        (self.export.least_block, self.export.max_payload) = (least, payload.min(MAX_PAYLOAD));
        Some(())
    }
}

fn failed(why: &str) -> Option<Step> {
    Some(Step::Failed(why.to_owned()))
}
