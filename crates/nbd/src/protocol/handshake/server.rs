//! The server's end of the negotiation: bytes from the client go in, replies come out, until an export is negotiated.
//! No I/O.

use super::{Fields, MAGIC, MAX_STRING, OPTION_MAGIC, OPTION_REPLY_MAGIC, handshake_flag, info, option, reply};

/// Size of an option's header.
const OPTION_HEADER: usize = 16;
/// A client that sends an option with more data is disconnected: the longest valid one contains a name and a few numbers.
const MAX_OPTION: usize = 2 * MAX_STRING;
/// While more output than this is unsent, no further option is processed.
const MAX_UNSENT: usize = 64 << 10;

/// The description of an export that a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// Name; the empty name is the default export.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Bits of [`super::transmission_flag`].
    pub flags: u16,
    /// Preferred block size in bytes.
    pub preferred_block: u32,
    /// Maximum payload of a request in bytes.
    pub max_payload: u32,
}

/// The state after the bytes received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes are needed, or the pending output has to be sent first.
    Continue,
    /// The negotiation succeeded: requests follow. The last output has to be sent first.
    Agreed {
        /// Whether checksums follow payloads.
        checksums: bool,
    },
    /// Close the connection once the output is sent; a reason if the client is at fault.
    End(Option<&'static str>),
}

/// One client's negotiation.
#[derive(Debug)]
pub struct Negotiation<'a> {
    pub export: &'a ExportInfo,
    pub state: State,
    pub offers_checksums: bool,
}

/// What the options have settled so far; the connection stores it between messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    flags: Option<u32>,
    checksums: bool,
}

/// The server's first message.
pub fn greeting() -> Vec<u8> {
    let flags = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    [&MAGIC.to_be_bytes()[..], &OPTION_MAGIC.to_be_bytes(), &flags.to_be_bytes()].concat()
}

impl Negotiation<'_> {
    /// Consumes complete messages from the front of `input` and appends replies to `out`. Returns the number of bytes
    /// consumed.
    pub fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let mut rest = Fields(input);
        let taken = |rest: &Fields| input.len() - rest.0.len();
        loop {
            if out.len() > MAX_UNSENT {
                return (taken(&rest), Step::Continue);
            }
            let before = rest;
            let Some(step) = self.message(&mut rest, out) else { return (taken(&before), Step::Continue) };
            if step != Step::Continue {
                return (taken(&rest), step);
            }
        }
    }

    /// Processes one message of the client; `None` while it is incomplete.
    fn message(&mut self, rest: &mut Fields, out: &mut Vec<u8>) -> Option<Step> {
        let Some(flags) = self.state.flags else {
            let flags = rest.u32()?;
            let known = u32::from(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
            self.state.flags = Some(flags);
            return Some(if flags & !known == 0 { Step::Continue } else { Step::End(Some("unknown handshake flags")) });
        };
        let (magic, number, length) = (rest.u64()?, rest.u32()?, rest.u32()?);
        if magic != OPTION_MAGIC {
            return Some(Step::End(Some("expected an option, got something else")));
        }
        let Some(wanted) = usize::try_from(length).ok().filter(|length| *length <= MAX_OPTION) else {
            return Some(Step::End(Some("option longer than the server accepts")));
        };
        let data = rest.bytes(wanted)?;
        Some(self.option(number, data, flags, out))
    }

    fn option(&mut self, number: u32, data: &[u8], flags: u32, out: &mut Vec<u8>) -> Step {
        let invalid = |out: &mut Vec<u8>, why: &str| answer(out, number, reply::ERR_INVALID, &[why.as_bytes()]);
        match number {
            option::EXPORT_NAME => return self.export_name(data, flags, out),
            option::ABORT => {
                answer(out, number, reply::ACK, &[]);
                return Step::End(None);
            }
            option::LIST if !data.is_empty() => invalid(out, "LIST has no data"),
            option::LIST => {
                let name = self.export.name.as_bytes();
                answer(out, number, reply::SERVER, &[&(name.len() as u32).to_be_bytes(), name]);
                answer(out, number, reply::ACK, &[]);
            }
            option::CHECKSUMS if !data.is_empty() => invalid(out, "CHECKSUMS has no data"),
            option::CHECKSUMS if self.offers_checksums => {
                self.state.checksums = true;
                answer(out, number, reply::ACK, &[]);
            }
            option::INFO | option::GO => match asked_name(data) {
                None => invalid(out, "expected an export name and information types"),
                Some(name) if !self.is_called(name) => answer(out, number, reply::ERR_UNKNOWN, &[b"no such export"]),
                Some(_) => {
                    describe(out, number, self.export);
                    if number == option::GO {
                        return Step::Agreed { checksums: self.state.checksums };
                    }
                }
            },
            _ => answer(out, number, reply::ERR_UNSUP, &[b"unknown option"]),
        }
        Step::Continue
    }

    /// The empty name selects the export whatever it is called.
    fn is_called(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.export.name.as_bytes()
    }

    /// EXPORT_NAME: the only reply is the export's description.
    fn export_name(&mut self, name: &[u8], flags: u32, out: &mut Vec<u8>) -> Step {
        let export = self.export;
        if !self.is_called(name) {
            return Step::End(Some("client selected an unknown export"));
        }
        out.extend_from_slice(&export.size.to_be_bytes());
        out.extend_from_slice(&export.flags.to_be_bytes());
        if flags & u32::from(handshake_flag::NO_ZEROES) == 0 {
            out.extend_from_slice(&[0; 124]);
        }
        Step::Agreed { checksums: self.state.checksums }
    }
}

/// Appends one reply to an option.
fn answer(out: &mut Vec<u8>, number: u32, kind: u32, data: &[&[u8]]) {
    let length: usize = data.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    for field in [number, kind, length as u32] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    data.iter().for_each(|part| out.extend_from_slice(part));
}

/// The export name of INFO and GO, which is followed by information types that the client would like.
fn asked_name(data: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields(data);
    let (name, count) = (fields.string()?, fields.u16()?);
    (fields.0.len() == 2 * usize::from(count)).then_some(name)
}

/// Sends what the server always sends.
fn describe(out: &mut Vec<u8>, number: u32, export: &ExportInfo) {
    let size = export.size.to_be_bytes();
    answer(out, number, reply::INFO, &[&info::EXPORT.to_be_bytes(), &size, &export.flags.to_be_bytes()]);
    let sizes = [1, export.preferred_block, export.max_payload].map(u32::to_be_bytes);
    answer(out, number, reply::INFO, &[&info::BLOCK_SIZE.to_be_bytes(), sizes.as_flattened()]);
    answer(out, number, reply::ACK, &[]);
}

/// Size of the input buffer that fits every option that is not refused for its length.
pub const INPUT_BYTES: usize = OPTION_HEADER + MAX_OPTION;
