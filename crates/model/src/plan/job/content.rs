//! What a job writes.

use super::Choice;
use crate::plan::value::{Quoted, Wrong};
use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

part! {
    /// The content of the blocks that a job writes. By default each I/O buffer is filled with noise once.
    Content {
        /// `zero_buffers`: zeros instead of noise.
        zero: bool = false,
        /// `refill_buffers`: new noise for each write.
        refill: bool = false,
        /// `buffer_pattern`, repeated, instead of noise.
        pattern: Option<Pattern> = None,
        /// `buffer_compress_percentage`: the part of each chunk that is zeros, or `buffer_pattern`, in percent.
        compress_percent: u8 = 0,
        /// `buffer_compress_chunk`: bytes of a chunk; 0 means a block.
        compress_chunk: Bytes = Bytes(512),
        /// `dedupe_percentage`: writes that repeat the last one that is no repetition, in percent.
        dedupe_percent: u8 = 0,
    }
}

part! {
    /// Whether what was written is read back right: how blocks are marked when they are written, and checked when they are read.
    Verify {
        /// `verify`; `None` means that blocks are neither marked nor checked.
        method: Option<VerifyMethod> = None,
        /// `do_verify`: a job that writes reads its blocks back when all are written.
        after: bool = true,
        /// `verify_pattern`: the content of the blocks instead of noise.
        pattern: Option<Pattern> = None,
        /// `verify_backlog`: read back after this number of writes; 0 means when all are written.
        backlog: u32 = 0,
    }
}

impl Verify {
    /// The blocks are read back while the job still writes.
    pub fn reads_between(&self) -> bool {
        self.method.is_some() && self.after && self.backlog > 0
    }
}

words! {
    /// What a block is checked by.
    VerifyMethod {
        /// MD5.
        #[default]
        Md5: "md5",
        /// A checksum of 32 bits, for which processors have an instruction.
        Crc32c: "crc32c",
        /// A checksum of 32 bits.
        Crc32: "crc32",
        /// SHA-1.
        Sha1: "sha1",
        /// xxHash of 32 bits.
        Xxhash: "xxhash",
        /// Its content, a pattern. It has no header.
        Pattern: "pattern",
    }
}

impl Choice for Option<VerifyMethod> {
    fn words() -> Vec<(&'static str, Self)> {
        let methods = VerifyMethod::words().into_iter().map(|(word, method)| (word, Some(method)));
        [("0", None), ("none", None)].into_iter().chain(methods).collect()
    }
}

/// Bytes of a header, before the checksum.
pub const HEADER_BYTES: u32 = 40;

impl VerifyMethod {
    /// Its number in headers, and the bytes of header and checksum; `None` if blocks have none.
    pub fn header(self) -> Option<(u16, u32)> {
        let (number, digest) = match self {
            Self::Md5 => (2, 16),
            Self::Crc32c => (5, 4),
            Self::Crc32 => (4, 4),
            Self::Sha1 => (16, 20),
            Self::Xxhash => (15, 4),
            Self::Pattern => return None,
        };
        Some((number, HEADER_BYTES + digest))
    }
}

/// Bytes that are repeated: texts, numbers, and the offset of the block. It is stored as it was typed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    bytes: Vec<u8>,
    /// Places of `%o`: the offset of the block in its file, in 8 bytes, the lowest first.
    offsets: Vec<usize>,
}

/// The longest pattern, as in fio.
const LONGEST_PATTERN: usize = 512;

impl Pattern {
    /// How a pattern is typed.
    pub(crate) const FORM: &'static str =
        "\"text\", 0xHEX or a decimal number, or several of them in a row, up to 512 bytes";

    /// Parses fio's syntax.
    ///
    /// # Errors
    /// What is wrong, without the form.
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        let mut pattern = Self { text: text.to_owned(), bytes: Vec::new(), offsets: Vec::new() };
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix("%o") {
                pattern.offsets.push(pattern.bytes.len());
                pattern.bytes.extend([0; 8]);
                rest = behind;
                continue;
            }
            let (bytes, behind) = part(rest).map_err(|is| Wrong::because(text, is))?;
            pattern.bytes.extend(bytes);
            rest = behind;
        }
        match pattern.bytes.len() {
            0 => Err(Wrong::because(text, "has no bytes")),
            1..=LONGEST_PATTERN => Ok(pattern),
            length => Err(Wrong::because(text, format_args!("has {length} bytes"))),
        }
    }

    /// As it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it differs from block to block.
    pub fn has_offset(&self) -> bool {
        !self.offsets.is_empty()
    }

    /// Fills memory that belongs at `offset`.
    pub fn fill(&self, memory: &mut [u8], offset: u64) {
        let first = self.bytes.len().min(memory.len());
        let (unit, _) = memory.split_at_mut(first);
        unit.copy_from_slice(self.bytes.get(..first).unwrap_or_default());
        for place in &self.offsets {
            let bytes = unit.iter_mut().skip(*place).zip(offset.to_le_bytes());
            bytes.for_each(|(byte, offset)| *byte = offset);
        }
        // Each copy doubles the part that is filled.
        let mut done = first;
        while done < memory.len() && done > 0 {
            let next = done.min(memory.len() - done);
            memory.copy_within(..next, done);
            done += next;
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = Wrong;
    fn try_from(text: String) -> Result<Self, Wrong> {
        Self::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

/// The bytes of the first part of a text that is not empty, and what follows it.
fn part(text: &str) -> Result<(Vec<u8>, &str), String> {
    if text.starts_with('\'') {
        return Err("has a file, of which iotoll reads no pattern; write its bytes behind 0x".to_owned());
    }
    if let Some(inside) = text.strip_prefix('"') {
        let (inside, behind) = inside.split_once('"').ok_or("lacks the second '\"' of a text")?;
        return Ok((inside.as_bytes().to_vec(), behind));
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = digits.find(|character: char| !character.is_ascii_hexdigit()).unwrap_or(digits.len());
        let (digits, behind) = digits.split_at(end);
        let bytes = hexadecimal(digits).filter(|bytes| !bytes.is_empty()).ok_or("has no digits behind 0x")?;
        return Ok((bytes, behind));
    }
    decimal(text).ok_or_else(|| format!("has a part that is none: {}", Quoted(text)))
}

/// The first of an odd number of digits is a byte of its own.
fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    (0..padded.len()).step_by(2).map(|at| u8::from_str_radix(padded.get(at..at + 2)?, 16).ok()).collect()
}

/// A decimal number, the lowest byte first: a negative one has four bytes, others as many as they need.
fn decimal(text: &str) -> Option<(Vec<u8>, &str)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - digits.len();
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    // The 0 of "120xff" begins a hexadecimal number.
    let borrowed =
        end > 1 && digits.get(end - 1..).is_some_and(|rest| rest.starts_with("0x") || rest.starts_with("0X"));
    let (number, behind) = text.split_at_checked(sign + end - usize::from(borrowed))?;
    let value: i64 = number.parse().ok()?;
    let bytes = if value < 0 {
        i32::try_from(value).ok()?.to_le_bytes().to_vec()
    } else {
        let all = u32::try_from(value).ok()?.to_le_bytes();
        let used = all.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        all.get(..used)?.to_vec()
    };
    Some((bytes, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 writes them.
    #[test]
    fn a_pattern_has_the_bytes_of_fio() {
        let bytes = |text: &str| {
            let pattern = Pattern::parse(text).unwrap();
            let mut memory = vec![0; pattern.bytes.len()];
            pattern.fill(&mut memory, 0x1234);
            memory.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let pairs = "\"abcd\" => 61626364 | 12 => 0c | 0 => 00 | 300 => 2c01 | 70000 => 701101 | \
                     17000000 => 40660301 | -12 => f4ffffff | 0xaaa => 0aaa | 0xdeadface => deadface | \
                     0x123456789abcdef0 => 123456789abcdef0 | \
                     \"abcd\"-120xdeadface => 61626364f4ffffffdeadface | \
                     0xff%o\"ab\"-16 => ff34120000000000006162f0ffffff";
        for pair in pairs.split(" | ") {
            let (text, expected) = pair.split_once(" => ").unwrap();
            assert_eq!(bytes(text), expected, "{text}");
        }
        for text in ["abcd", "\"ab", "'x'", "0x", "4294967296", "-3000000000", "\"\"", "%x", "-"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        assert!(Pattern::parse(&format!("0x{}", "ab".repeat(513))).unwrap_err().reason.contains("513 bytes"));
    }

    #[test]
    fn a_pattern_repeats_with_the_offset_of_its_block() {
        let pattern = Pattern::parse("\"ab\"%o").unwrap();
        let (mut memory, mut short) = ([0; 28], [0; 5]);
        pattern.fill(&mut memory, 0x1234);
        assert_eq!(&memory, b"ab\x34\x12\0\0\0\0\0\0ab\x34\x12\0\0\0\0\0\0ab\x34\x12\0\0\0\0");
        pattern.fill(&mut short, 0x1234);
        assert_eq!(&short, b"ab\x34\x12\0");
    }

    #[test]
    fn blocks_have_a_header_and_its_checksum_unless_their_content_is_checked() {
        assert_eq!((VerifyMethod::Md5.header(), VerifyMethod::Pattern.header()), (Some((2, 56)), None));
    }
}
