//! The client's end of the negotiation. Bytes of the server go in, what to send comes out, until an export is agreed on.

use super::{Fields, MAGIC, MAX_STRING, OPTION_MAGIC, OPTION_REPLY_MAGIC, handshake_flag, info, option, reply};
use crate::wire::MAX_PAYLOAD;

/// Replies with more data than this are no replies: two strings are the longest that there is.
const MAX_REPLY: usize = 3 * MAX_STRING;

/// Bytes that a client has to be able to hold, so that every reply that makes sense fits.
pub const INPUT_BYTES: usize = 20 + MAX_REPLY;

/// What the server said of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Bytes.
    pub size: u64,
    /// Bits of [`super::transmission_flag`].
    pub flags: u16,
    /// Offsets and lengths have to be multiples of this many bytes.
    pub least_block: u32,
    /// The largest payload that the server takes.
    pub max_payload: u32,
}

/// What came of the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes are needed.
    Continue,
    /// Requests may be sent.
    Ready(Export),
    /// It came to nothing; why, in words.
    Failed(String),
}

/// One negotiation for one export.
#[derive(Debug)]
pub struct Negotiation {
    name: String,
    checksums: Checksums,
    greeted: bool,
    export: Option<(u64, u16)>,
    least_block: u32,
    max_payload: u32,
}

/// Whether checksums are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checksums {
    Off,
    /// They are, and nothing else will do.
    Wanted,
    Agreed,
}

impl Negotiation {
    /// For the export of this name; at most [`MAX_STRING`] bytes, or the server will say that it is not there.
    pub fn new(name: impl Into<String>) -> Self {
        let (name, checksums) = (name.into(), Checksums::Off);
        Self { name, checksums, greeted: false, export: None, least_block: 1, max_payload: MAX_PAYLOAD }
    }

    /// Whether payloads are to be followed by their checksums.
    pub fn with_checksums(self, wanted: bool) -> Self {
        Self { checksums: if wanted { Checksums::Wanted } else { Checksums::Off }, ..self }
    }

    /// Takes complete messages off the front of `input`, and puts what is to be sent at the end of `out`. Gives how many bytes
    /// were taken.
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
            return failed("this is no NBD server, or one that knows the oldest handshake only");
        }
        if flags & handshake_flag::FIXED_NEWSTYLE == 0 {
            return failed("the server does not know the fixed newstyle handshake");
        }
        let ours = flags & (handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
        out.extend_from_slice(&u32::from(ours).to_be_bytes());
        if self.checksums == Checksums::Wanted {
            out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
            out.extend_from_slice(&option::CHECKSUMS.to_be_bytes());
            out.extend_from_slice(&0_u32.to_be_bytes());
        }
        let mut data = Vec::with_capacity(self.name.len() + 8);
        data.extend_from_slice(&(self.name.len() as u32).to_be_bytes());
        data.extend_from_slice(self.name.as_bytes());
        data.extend_from_slice(&1_u16.to_be_bytes());
        data.extend_from_slice(&info::BLOCK_SIZE.to_be_bytes());
        out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&option::GO.to_be_bytes());
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(&data);
        self.greeted = true;
        Some(Step::Continue)
    }

    fn reply(&mut self, rest: &mut Fields) -> Option<Step> {
        let (magic, number, kind, length) = (rest.u64()?, rest.u32()?, rest.u32()?, rest.u32()?);
        let asked = if self.checksums == Checksums::Wanted { option::CHECKSUMS } else { option::GO };
        if magic != OPTION_REPLY_MAGIC || number != asked {
            return failed("the server replies to something that was not asked");
        }
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= MAX_REPLY) else {
            return failed("the server sends a reply of absurd length");
        };
        let data = rest.bytes(length)?;
        if asked == option::CHECKSUMS {
            if kind != reply::ACK {
                return failed("the server gives no checksums; `iotoll serve --path-crc on` does");
            }
            self.checksums = Checksums::Agreed;
            return Some(Step::Continue);
        }
        match kind {
            reply::INFO => self.info(Fields(data)),
            reply::ACK => match self.export {
                Some((size, flags)) => {
                    let (least_block, max_payload) = (self.least_block, self.max_payload);
                    Some(Step::Ready(Export { size, flags, least_block, max_payload }))
                }
                None => failed("the server agrees without saying how large the export is"),
            },
            reply::ERR_UNKNOWN => failed(&format!("the server has no export '{}'", self.name)),
            reply::ERR_TLS_REQD => failed("the server wants TLS, which is not supported yet"),
            reply::ERR_UNSUP => failed("the server does not know NBD_OPT_GO"),
            reply::ERR_POLICY => failed("the server does not allow it"),
            kind if kind & reply::ERROR != 0 => {
                let text: String =
                    String::from_utf8_lossy(data).chars().filter(|letter| !letter.is_control()).take(200).collect();
                failed(&format!("the server refuses (error {}): {text}", kind & !reply::ERROR))
            }
            _ => failed("the server sends a reply that does not belong here"),
        }
    }

    fn info(&mut self, mut data: Fields) -> Option<Step> {
        let understood = match data.u16() {
            Some(info::EXPORT) => data.u64().zip(data.u16()).map(|export| self.export = Some(export)),
            Some(info::BLOCK_SIZE) => self.block_sizes(&mut data),
            // What was not asked for may be sent all the same.
            Some(_) => return Some(Step::Continue),
            None => None,
        };
        match understood {
            Some(()) if self.export.is_none_or(|(size, _)| size <= i64::MAX as u64) => Some(Step::Continue),
            _ => failed("the server describes the export in a way that makes no sense"),
        }
    }

    /// Least, preferred, largest: powers of two, the least at most 64 KiB, as the specification has it.
    fn block_sizes(&mut self, data: &mut Fields) -> Option<()> {
        let (least, _preferred, payload) = (data.u32()?, data.u32()?, data.u32()?);
        if !least.is_power_of_two() || least > 1 << 16 || payload < least {
            return None;
        }
        (self.least_block, self.max_payload) = (least, payload.min(MAX_PAYLOAD));
        Some(())
    }
}

fn failed(why: &str) -> Option<Step> {
    Some(Step::Failed(why.to_owned()))
}
