//! The headers of blocks, as fio 3.33 writes them: 40 bytes, all numbers with their lowest byte first, and the checksum of the bytes
//! that follow.
//!
//! | Bytes | |
//! |---|---|
//! | 0 | `0xacca` |
//! | 2 | the method's number |
//! | 4 | bytes that the header covers, itself included |
//! | 8 | the seed of the content |
//! | 16 | offset in the file |
//! | 24, 28 | seconds and nanoseconds since the job began |
//! | 32 | number of the job, from 1 |
//! | 34 | number of the write, from 0, in 16 bits |
//! | 36 | CRC-32C of the bytes before it |

use super::digest;
use model::plan::{HEADER_BYTES, JobPlan, VERIFY_METHODS, VerifyMethod, WRONG_BLOCK};

const HEADER: usize = HEADER_BYTES as usize;
const MAGIC: u16 = 0xacca;
const CRC_AT: usize = 36;

/// Marks blocks and checks marks.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    method: VerifyMethod,
    number: u16,
    /// Bytes of header and checksum.
    header: usize,
    interval: Option<usize>,
    offset: usize,
    thread: u16,
}

/// What a header says of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub seed: u64,
    pub number: u64,
    /// Nanoseconds since the job began.
    pub nanos: u64,
}

impl Marks {
    /// `None` if blocks have no headers.
    pub fn new(plan: &JobPlan, copy: u32) -> Option<Self> {
        let method = plan.verify.method?;
        Some(Self {
            method,
            number: method.row()?.number?,
            header: method.header()? as usize,
            interval: plan
                .verify
                .interval
                .and_then(|interval| usize::try_from(interval.0).ok())
                .filter(|bytes| *bytes > 0),
            offset: usize::try_from(plan.verify.offset.0).unwrap_or(usize::MAX),
            thread: (copy as u16).wrapping_add(1),
        })
    }

    /// Bytes that a header covers in a block of this length.
    pub fn interval(&self, length: usize) -> usize {
        self.interval.filter(|interval| length.is_multiple_of(*interval)).unwrap_or(length).max(1)
    }

    /// Marks a block that is complete but for its headers.
    pub fn mark(&self, memory: &mut [u8], offset: u64, write: Write) {
        let interval = self.interval(memory.len());
        for (part, at) in memory.chunks_mut(interval).zip((offset..).step_by(interval)) {
            let length = part.len();
            let Some((header, data)) = part.split_at_mut_checked(self.header) else { return };
            let (front, sum) = header.split_at_mut(HEADER);
            digest::write(self.method, data, sum);
            let fields: [&[u8]; 9] = [
                &MAGIC.to_le_bytes(),
                &self.number.to_le_bytes(),
                &(length as u32).to_le_bytes(),
                &write.seed.to_le_bytes(),
                &at.to_le_bytes(),
                &((write.nanos / 1_000_000_000) as u32).to_le_bytes(),
                &((write.nanos % 1_000_000_000) as u32).to_le_bytes(),
                &self.thread.to_le_bytes(),
                &(write.number as u16).to_le_bytes(),
            ];
            let bytes = fields.into_iter().flatten();
            front.iter_mut().zip(bytes).for_each(|(byte, field)| *byte = *field);
            let (before, crc) = front.split_at_mut(CRC_AT);
            crc.copy_from_slice(&digest::crc32c(before).to_le_bytes());
            self.exchange(part);
        }
    }

    /// Exchanges the header with what is at `verify_offset`.
    fn exchange(&self, part: &mut [u8]) {
        if self.offset < self.header {
            return;
        }
        let (front, behind) = part.split_at_mut(self.offset);
        if let (Some(front), Some(there)) = (front.get_mut(..self.header), behind.get_mut(..self.header)) {
            front.swap_with_slice(there);
        }
    }

    /// Checks what one header covers, and puts it back in front. `expected`: seed and number of its write, if known.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self, part: &mut [u8], offset: u64, expected: Option<(u64, u64)>) -> Result<(), String> {
        self.exchange(part);
        let Some((header, data)) = part.split_at_checked(self.header) else {
            return Err(format!("has {} bytes, less than a header", part.len()));
        };
        let (front, sum) = header.split_at(HEADER);
        let field = |at: usize, bytes: usize| {
            let bytes = front.get(at..at + bytes).unwrap_or_default();
            bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let wrong = |what: &str, found: u64, wanted: u64| Err(format!("{what} is {found}, expected {wanted}"));
        if field(0, 2) != u64::from(MAGIC) {
            return Err(format!("has no header: it begins with {:#06x}, expected {MAGIC:#06x}", field(0, 2)));
        }
        let crc = u64::from(digest::crc32c(front.get(..CRC_AT).unwrap_or_default()));
        if field(CRC_AT, 4) != crc {
            return Err(format!("the header's checksum is {:#010x}, expected {crc:#010x}", field(CRC_AT, 4)));
        }
        if field(4, 4) != part.len() as u64 {
            return wrong("the length in the header", field(4, 4), part.len() as u64);
        }
        if field(16, 8) != offset {
            return wrong("the offset in the header", field(16, 8), offset);
        }
        if let Some((seed, number)) = expected {
            if field(34, 2) != number & 0xffff {
                return wrong("the number of the write in the header", field(34, 2), number & 0xffff);
            }
            if field(8, 8) != seed {
                return Err(format!(
                    "is not of this run: the seed in its header is {:#x}, expected {seed:#x}",
                    field(8, 8)
                ));
            }
        }
        if self.method == VerifyMethod::Meta {
            return Ok(());
        }
        if field(2, 2) != u64::from(self.number) && !self.is_twin(field(2, 2)) {
            let there = VERIFY_METHODS.iter().find(|row| row.number.map(u64::from) == Some(field(2, 2)));
            let there = there.map_or_else(|| format!("method {}", field(2, 2)), |row| row.word.to_owned());
            return Err(format!("was written with verify={there}"));
        }
        let mut computed = [0; 128];
        let computed = computed.get_mut(..sum.len()).unwrap_or_default();
        digest::write(self.method, data, computed);
        if computed != sum {
            let word = self.method.word();
            return Err(format!("the {word} of its data is {}, expected {}", hexadecimal(computed), hexadecimal(sum)));
        }
        Ok(())
    }

    /// CRC-32C has two numbers.
    fn is_twin(&self, number: u64) -> bool {
        matches!(self.method, VerifyMethod::Crc32c | VerifyMethod::Crc32cIntel) && (5..=6).contains(&number)
    }
}

/// EILSEQ, as the engines report errors.
pub(super) const WRONG: i32 = -(WRONG_BLOCK as i32);

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Verify;
    use model::unit::Bytes;

    fn marks(row: &model::plan::VerifyRow, interval: Option<u64>, offset: u64) -> Option<Marks> {
        let verify = Verify {
            method: Some(row.method),
            interval: interval.map(Bytes),
            offset: Bytes(offset),
            ..Verify::default()
        };
        Marks::new(&JobPlan { verify, ..JobPlan::default() }, 0)
    }

    #[test]
    fn each_changed_byte_is_found() {
        let write = Write { seed: 9, number: 70_000, nanos: 5_000_000_007 };
        for row in &VERIFY_METHODS {
            for (interval, offset) in [(None, 0), (Some(512), 0), (Some(512), 200), (Some(1000), 300)] {
                let Some(marks) = marks(row, interval, offset) else { continue };
                let mut memory: Vec<u8> = (0..2048_u32).map(|byte| (byte * 7) as u8).collect();
                marks.mark(&mut memory, 4096, write);
                let covers = marks.interval(memory.len());
                assert_eq!(covers, if interval == Some(512) { 512 } else { 2048 });
                let check = |memory: &[u8], expected| {
                    let mut memory = memory.to_vec();
                    let parts = memory.chunks_mut(covers).zip((4096..).step_by(covers));
                    parts.map(|(part, at)| marks.check(part, at, expected)).find(Result::is_err).unwrap_or(Ok(()))
                };
                assert_eq!(check(&memory, Some((9, 70_000))), Ok(()), "{}", row.word);
                assert!(check(&memory, Some((9, 70_001))).unwrap_err().contains("number of the write"));
                assert!(check(&memory, Some((8, 70_000))).unwrap_err().contains("not of this run"));
                for at in (0..2048).step_by(37) {
                    let mut wrong = memory.clone();
                    wrong[at] ^= 4;
                    let found = check(&wrong, None).is_err();
                    assert!(found || row.method == VerifyMethod::Meta, "{} {at}", row.word);
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let of = |word: &str| marks(VERIFY_METHODS.iter().find(|row| row.word == word).unwrap(), None, 0).unwrap();
        let mut memory = vec![7; 512];
        assert_eq!(
            of("md5").check(&mut memory, 0, None).unwrap_err(),
            "has no header: it begins with 0x0707, expected 0xacca"
        );
        of("md5").mark(&mut memory, 1024, Write { seed: 0, number: 0, nanos: 0 });
        let mut check = |word, offset| of(word).check(&mut memory, offset, None);
        assert_eq!(check("md5", 0).unwrap_err(), "the offset in the header is 1024, expected 0");
        assert_eq!(check("sha1", 1024).unwrap_err(), "was written with verify=md5");
        assert_eq!(check("meta", 1024), Ok(()));
        memory[300] = 8;
        let wrong = of("md5").check(&mut memory, 1024, None).unwrap_err();
        assert!(wrong.starts_with("the md5 of its data is ") && wrong.contains(", expected "), "{wrong}");
    }
}
