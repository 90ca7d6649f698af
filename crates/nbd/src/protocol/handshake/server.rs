//! The server's end of the negotiation. Bytes of the client go in, replies come out, until an export is agreed on.

use super::{
    BASE_ALLOCATION, BASE_ALLOCATION_ID, Fields, MAGIC, MAX_STRING, OPTION_MAGIC, OPTION_REPLY_MAGIC, handshake_flag,
    info, option, reply, transmission_flag,
};

/// Bytes of an option's header.
const OPTION_HEADER: usize = 16;
/// Options with more data than this are refused: the longest that makes sense holds a name and a few dozen contexts.
const MAX_OPTION: usize = 2 * MAX_STRING;
/// Data of a refused option that are still read over; who sends more is no client.
const MAX_SKIPPED: u32 = 1 << 20;
/// While this much waits to be sent, no further option is looked at.
const MAX_UNSENT: usize = 64 << 10;

/// What a client is told of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// Its name; the empty name is the default export.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// Bytes.
    pub size: u64,
    /// Bits of [`super::transmission_flag`].
    pub flags: u16,
    /// Requests should be multiples of this many bytes.
    pub preferred_block: u32,
    /// The largest payload of a request.
    pub max_payload: u32,
}

/// What both ends agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Index of the export.
    pub export: usize,
    /// Whether replies are structured.
    pub structured: bool,
    /// Whether block status may be asked for.
    pub base_allocation: bool,
    /// Whether payloads are followed by their checksums.
    pub checksums: bool,
}

/// What came of the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes are needed, or what waits has to be sent first.
    Continue,
    /// Requests follow. What was put out last has to be sent first.
    Agreed(Agreed),
    /// The connection ends, once what was put out has been sent; a reason where it is the client's fault.
    End(Option<&'static str>),
}

/// One client's negotiation.
#[derive(Debug)]
pub struct Negotiation<'a> {
    exports: &'a [ExportInfo],
    state: State,
    offers_checksums: bool,
}

/// What has been settled; kept by whoever keeps the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    flags: Option<u32>,
    structured: bool,
    checksums: bool,
    /// The export for which `base:allocation` was chosen.
    context_of: Option<usize>,
    /// Bytes of a refused option that are still to be read over.
    skip: u32,
}

/// What the server says first.
pub fn greeting() -> [u8; 18] {
    let mut bytes = [0; 18];
    let (magics, flags) = bytes.split_at_mut(16);
    let (first, second) = magics.split_at_mut(8);
    first.copy_from_slice(&MAGIC.to_be_bytes());
    second.copy_from_slice(&OPTION_MAGIC.to_be_bytes());
    flags.copy_from_slice(&(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES).to_be_bytes());
    bytes
}

impl<'a> Negotiation<'a> {
    /// Goes on where `state` says.
    pub fn resume(exports: &'a [ExportInfo], state: State) -> Self {
        Self { exports, state, offers_checksums: false }
    }

    /// Whether checksums may be had.
    pub fn with_checksums(self, offered: bool) -> Self {
        Self { offers_checksums: offered, ..self }
    }

    /// Where it is, to be resumed.
    pub fn state(&self) -> State {
        self.state
    }

    /// Takes complete messages off the front of `input`, and puts replies at the end of `out`. Gives how many bytes were taken.
    pub fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let mut rest = Fields(input);
        let taken = |rest: &Fields| input.len() - rest.0.len();
        loop {
            let skipped = rest.0.len().min(self.state.skip as usize);
            rest.bytes(skipped);
            self.state.skip -= skipped as u32;
            if self.state.skip > 0 || out.len() > MAX_UNSENT {
                return (taken(&rest), Step::Continue);
            }
            let before = rest;
            let Some(step) = self.message(&mut rest, out) else { return (taken(&before), Step::Continue) };
            if step != Step::Continue {
                return (taken(&rest), step);
            }
        }
    }

    /// One message of the client; `None` while it is not complete.
    fn message(&mut self, rest: &mut Fields, out: &mut Vec<u8>) -> Option<Step> {
        let Some(flags) = self.state.flags else {
            let flags = rest.u32()?;
            let known = u32::from(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
            self.state.flags = Some(flags);
            return Some(if flags & !known == 0 { Step::Continue } else { Step::End(Some("unknown handshake flags")) });
        };
        let (magic, number, length) = (rest.u64()?, rest.u32()?, rest.u32()?);
        if magic != OPTION_MAGIC {
            return Some(Step::End(Some("no option begins where one has to")));
        }
        let Some(wanted) = usize::try_from(length).ok().filter(|length| *length <= MAX_OPTION) else {
            if length > MAX_SKIPPED || number == option::EXPORT_NAME {
                return Some(Step::End(Some("an option of absurd length")));
            }
            self.state.skip = length;
            answer(out, number, reply::ERR_TOO_BIG, &[b"too long"]);
            return Some(Step::Continue);
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
                for export in self.exports {
                    let length = (export.name.len() as u32).to_be_bytes();
                    answer(
                        out,
                        number,
                        reply::SERVER,
                        &[&length, export.name.as_bytes(), export.description.as_bytes()],
                    );
                }
                answer(out, number, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if !data.is_empty() => invalid(out, "STRUCTURED_REPLY has no data"),
            option::STRUCTURED_REPLY if self.state.checksums => invalid(out, "not with checksums"),
            option::CHECKSUMS if !data.is_empty() => invalid(out, "it has no data"),
            option::CHECKSUMS if self.state.structured => invalid(out, "not with structured replies"),
            option::CHECKSUMS if self.offers_checksums => {
                self.state.checksums = true;
                answer(out, number, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY => {
                self.state.structured = true;
                answer(out, number, reply::ACK, &[]);
            }
            option::INFO | option::GO => match asked(data) {
                None => invalid(out, "a name and numbers of informations are expected"),
                Some((name, wanted)) => match self.find(name) {
                    None => answer(out, number, reply::ERR_UNKNOWN, &[b"there is no such export"]),
                    Some((index, export)) => {
                        describe(out, number, export, self.flags(export), wanted);
                        if number == option::GO {
                            return Step::Agreed(self.agreed(index));
                        }
                    }
                },
            },
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(number, data, out),
            _ => answer(out, number, reply::ERR_UNSUP, &[b"not known here"]),
        }
        Step::Continue
    }

    fn find(&self, name: &[u8]) -> Option<(usize, &'a ExportInfo)> {
        let named = self.exports.iter().position(|export| export.name.as_bytes() == name);
        // Without a name, and with no export of that name, the first is meant.
        let index = named.or_else(|| name.is_empty().then_some(0))?;
        Some((index, self.exports.get(index)?))
    }

    fn agreed(&self, export: usize) -> Agreed {
        let base_allocation = self.state.structured && self.state.context_of == Some(export);
        let State { structured, checksums, .. } = self.state;
        Agreed { export, structured, base_allocation, checksums }
    }

    /// What an export can do in the way of replying that was agreed on.
    fn flags(&self, export: &ExportInfo) -> u16 {
        // A reply in one piece is no promise where there are no others.
        if self.state.structured { export.flags } else { export.flags & !transmission_flag::SEND_DF }
    }

    /// The oldest way: there is no reply but the export itself.
    fn export_name(&mut self, name: &[u8], flags: u32, out: &mut Vec<u8>) -> Step {
        let Some((index, export)) = self.find(name) else {
            return Step::End(Some("it asked for an export that is not there"));
        };
        out.extend_from_slice(&export.size.to_be_bytes());
        out.extend_from_slice(&self.flags(export).to_be_bytes());
        if flags & u32::from(handshake_flag::NO_ZEROES) == 0 {
            out.extend_from_slice(&[0; 124]);
        }
        Step::Agreed(self.agreed(index))
    }

    fn contexts(&mut self, number: u32, data: &[u8], out: &mut Vec<u8>) {
        let set = number == option::SET_META_CONTEXT;
        if set {
            // Whatever comes of it, what was chosen before is chosen no more.
            self.state.context_of = None;
        }
        if !self.state.structured {
            return answer(out, number, reply::ERR_INVALID, &[b"STRUCTURED_REPLY comes first"]);
        }
        let Some((name, any, ours)) = queries(data) else {
            return answer(out, number, reply::ERR_INVALID, &[b"a name and queries are expected"]);
        };
        let Some((index, _)) = self.find(name) else {
            return answer(out, number, reply::ERR_UNKNOWN, &[b"there is no such export"]);
        };
        let offered = if set { ours.exact } else { !any || ours.exact || ours.namespace };
        if offered {
            let id = if set { BASE_ALLOCATION_ID } else { 0 };
            answer(out, number, reply::META_CONTEXT, &[&id.to_be_bytes(), BASE_ALLOCATION]);
            if set {
                self.state.context_of = Some(index);
            }
        }
        answer(out, number, reply::ACK, &[]);
    }
}

/// One reply to an option.
fn answer(out: &mut Vec<u8>, number: u32, kind: u32, data: &[&[u8]]) {
    let length: usize = data.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    for field in [number, kind, length as u32] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    data.iter().for_each(|part| out.extend_from_slice(part));
}

/// The name in the data of INFO and GO, and which informations are asked for.
fn asked(data: &[u8]) -> Option<(&[u8], Fields<'_>)> {
    let mut fields = Fields(data);
    let (name, count) = (fields.string()?, fields.u16()?);
    let wanted = Fields(fields.bytes(2 * usize::from(count))?);
    fields.is_empty().then_some((name, wanted))
}

/// Everything that was asked for, and what has to be said in any case.
fn describe(out: &mut Vec<u8>, number: u32, export: &ExportInfo, flags: u16, mut wanted: Fields) {
    let mut info = |kind: u16, parts: [&[u8]; 3]| {
        answer(out, number, reply::INFO, &[&kind.to_be_bytes(), parts[0], parts[1], parts[2]]);
    };
    info(info::EXPORT, [&export.size.to_be_bytes(), &flags.to_be_bytes(), &[]]);
    let (mut name, mut description) = (false, false);
    while let Some(kind) = wanted.u16() {
        name |= kind == info::NAME;
        description |= kind == info::DESCRIPTION;
    }
    if name {
        info(info::NAME, [export.name.as_bytes(), &[], &[]]);
    }
    if description && !export.description.is_empty() {
        info(info::DESCRIPTION, [export.description.as_bytes(), &[], &[]]);
    }
    let sizes = [1, export.preferred_block, export.max_payload].map(u32::to_be_bytes);
    info(info::BLOCK_SIZE, [&sizes[0], &sizes[1], &sizes[2]]);
    answer(out, number, reply::ACK, &[]);
}

/// Which queries name what is offered here.
#[derive(Clone, Copy, Default)]
struct Matching {
    exact: bool,
    namespace: bool,
}

/// The export's name, whether there is any query, and what they match; `None` when the data make no sense.
fn queries(data: &[u8]) -> Option<(&[u8], bool, Matching)> {
    let mut fields = Fields(data);
    let (name, count) = (fields.string()?, fields.u32()?);
    let mut matching = Matching::default();
    // Each query takes four bytes at least, so a false count ends with the data.
    for _ in 0..count {
        let query = fields.string()?;
        matching.exact |= query == BASE_ALLOCATION;
        matching.namespace |= query == b"base:";
    }
    fields.is_empty().then_some((name, count > 0, matching))
}

/// Bytes that a connection has to be able to hold, so that every option that is looked at fits.
pub const INPUT_BYTES: usize = OPTION_HEADER + MAX_OPTION;
