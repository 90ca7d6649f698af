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

use crc::{Algorithm, Crc, Table};
use md5::Digest;
use model::plan::value::{Choice, word};
use model::plan::{HEADER_BYTES, JobPlan, VerifyMethod};

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
        let (number, header) = method.header()?;
        Some(Self { method, number, header: header as usize, thread: (copy as u16).wrapping_add(1) })
    }

    /// Marks a block that is complete but for its header.
    pub fn mark(&self, memory: &mut [u8], offset: u64, write: Write) {
        let length = memory.len();
        let Some((header, data)) = memory.split_at_mut_checked(self.header) else { return };
        let (front, sum) = header.split_at_mut(HEADER);
        checksum(self.method, data, sum);
        let fields: [&[u8]; 9] = [
            &MAGIC.to_le_bytes(),
            &self.number.to_le_bytes(),
            &(length as u32).to_le_bytes(),
            &write.seed.to_le_bytes(),
            &offset.to_le_bytes(),
            &((write.nanos / 1_000_000_000) as u32).to_le_bytes(),
            &((write.nanos % 1_000_000_000) as u32).to_le_bytes(),
            &self.thread.to_le_bytes(),
            &(write.number as u16).to_le_bytes(),
        ];
        let bytes = fields.into_iter().flatten();
        front.iter_mut().zip(bytes).for_each(|(byte, field)| *byte = *field);
        let (before, crc) = front.split_at_mut(CRC_AT);
        crc.copy_from_slice(&crc32c(before).to_le_bytes());
    }

    /// Checks a block. `expected`: seed and number of its write, if known.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self, part: &[u8], offset: u64, expected: Option<(u64, u64)>) -> Result<(), String> {
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
        let crc = u64::from(crc32c(front.get(..CRC_AT).unwrap_or_default()));
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
        if field(2, 2) != u64::from(self.number) {
            let mut methods = VerifyMethod::words().into_iter();
            let there =
                methods.find(|(_, method)| method.header().is_some_and(|(number, _)| u64::from(number) == field(2, 2)));
            let there = there.map_or_else(|| format!("method {}", field(2, 2)), |(word, _)| word.to_owned());
            return Err(format!("was written with verify={there}"));
        }
        let mut computed = [0; 128];
        let computed = computed.get_mut(..sum.len()).unwrap_or_default();
        checksum(self.method, data, computed);
        if computed != sum {
            let word = word(self.method);
            return Err(format!("the {word} of its data is {}, expected {}", hexadecimal(computed), hexadecimal(sum)));
        }
        Ok(())
    }
}

/// −EILSEQ, as the engines report errors.
pub(super) const WRONG: i32 = -84;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// The checksums of fio 3.33, with its own parameters: what fio stores is what counts, and tests read its files.

/// Neither the usual start nor the usual end, and not reflected.
static CRC32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0,
    residue: 0,
});

/// CRC-32C without the last exclusive or.
fn crc32c(data: &[u8]) -> u32 {
    !::crc32c::crc32c(data)
}

/// Writes the checksum of `data` to `out`, which has the length that the method's row says.
fn checksum(method: VerifyMethod, data: &[u8], out: &mut [u8]) {
    match method {
        VerifyMethod::Pattern => {}
        VerifyMethod::Crc32 => put(out, &CRC32.checksum(data).to_le_bytes()),
        VerifyMethod::Crc32c => put(out, &crc32c(data).to_le_bytes()),
        VerifyMethod::Md5 => put(out, &md5::Md5::digest(data)),
        VerifyMethod::Sha1 => {
            let mut digest = sha1::Sha1::digest(data);
            digest.chunks_mut(4).for_each(<[u8]>::reverse);
            put(out, &digest);
        }
        VerifyMethod::Xxhash => put(out, &xxhash_rust::xxh32::xxh32(data, 1).to_le_bytes()),
    }
}

fn put(out: &mut [u8], digest: &[u8]) {
    out.iter_mut().zip(digest).for_each(|(out, byte)| *out = *byte);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Verify;

    fn marks(method: VerifyMethod) -> Option<Marks> {
        let verify = Verify { method: Some(method), ..Verify::default() };
        Marks::new(&JobPlan { verify, ..JobPlan::default() }, 0)
    }

    #[test]
    fn each_changed_byte_is_found() {
        let write = Write { seed: 9, number: 70_000, nanos: 5_000_000_007 };
        for (word, method) in VerifyMethod::words() {
            let Some(marks) = marks(method) else { continue };
            let mut memory: Vec<u8> = (0..2048_u32).map(|byte| (byte * 7) as u8).collect();
            marks.mark(&mut memory, 4096, write);
            let check = |memory: &[u8], expected| marks.check(memory, 4096, expected);
            assert_eq!(check(&memory, Some((9, 70_000))), Ok(()), "{word}");
            assert!(check(&memory, Some((9, 70_001))).unwrap_err().contains("number of the write"));
            assert!(check(&memory, Some((8, 70_000))).unwrap_err().contains("not of this run"));
            for at in (0..2048).step_by(37) {
                let mut wrong = memory.clone();
                wrong[at] ^= 4;
                assert!(check(&wrong, None).is_err(), "{word} {at}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let of = |word: &str| marks(model::plan::value::choice(word).unwrap()).unwrap();
        let mut memory = vec![7; 512];
        assert_eq!(
            of("md5").check(&memory, 0, None).unwrap_err(),
            "has no header: it begins with 0x0707, expected 0xacca"
        );
        of("md5").mark(&mut memory, 1024, Write { seed: 0, number: 0, nanos: 0 });
        let check = |word, offset| of(word).check(&memory, offset, None);
        assert_eq!(check("md5", 0).unwrap_err(), "the offset in the header is 1024, expected 0");
        assert_eq!(check("crc32", 1024).unwrap_err(), "was written with verify=md5");
        memory[300] = 8;
        let wrong = of("md5").check(&memory, 1024, None).unwrap_err();
        assert!(wrong.starts_with("the md5 of its data is ") && wrong.contains(", expected "), "{wrong}");
    }
}
