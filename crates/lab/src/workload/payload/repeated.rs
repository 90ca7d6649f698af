//! Patterns in memory.

use crate::error::{Error, Result};
use model::plan::{LONGEST_PATTERN, Pattern, PatternPiece};
use std::io::Read;

/// The bytes of a pattern, and where the offset of the block is in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeated {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl Repeated {
    /// Reads the files that it names.
    pub fn new(job: &str, option: &str, pattern: &Pattern) -> Result<Self> {
        let refused = |name: &str, why: &dyn std::fmt::Display| {
            Error::Refused(format!("job '{job}': {option}: {name}: {why}; name a file that can be read"))
        };
        let mut found = Self::default();
        for part in pattern.pieces() {
            match part {
                PatternPiece::Bytes(bytes) => found.bytes.extend_from_slice(bytes),
                PatternPiece::Offset => {
                    found.offsets.push(found.bytes.len());
                    found.bytes.extend_from_slice(&[0; 8]);
                }
                PatternPiece::File(name) => {
                    let file = std::fs::File::open(name).map_err(|error| refused(name, &error))?;
                    // As in fio, as much of it as there is room for.
                    let room = LONGEST_PATTERN.saturating_sub(found.bytes.len()) as u64;
                    let read = file.take(room).read_to_end(&mut found.bytes).map_err(|error| refused(name, &error))?;
                    if read == 0 {
                        return Err(refused(name, &"has no bytes, or none for which there is room"));
                    }
                }
            }
        }
        Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_pattern_repeats_with_the_offset_of_its_block() {
        let mut memory = [0; 28];
        Repeated::new("a", "verify_pattern", &pattern("\"ab\"%o")).unwrap().fill(&mut memory, 0x1234);
        assert_eq!(&memory, b"ab\x34\x12\0\0\0\0\0\0ab\x34\x12\0\0\0\0\0\0ab\x34\x12\0\0\0\0");
        let mut short = [0; 5];
        Repeated::new("a", "verify_pattern", &pattern("\"ab\"%o")).unwrap().fill(&mut short, 0x1234);
        assert_eq!(&short, b"ab\x34\x12\0");
    }

    #[test]
    fn a_file_is_read_and_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let text = format!("0xff'{}'", path.display());
        let error = Repeated::new("a", "buffer_pattern", &pattern(&text)).unwrap_err().to_string();
        assert!(error.contains("job 'a': buffer_pattern: ") && error.contains("No such file"), "{error}");
        std::fs::write(&path, [7; 600]).unwrap();
        assert_eq!(Repeated::new("a", "buffer_pattern", &pattern(&text)).unwrap().bytes.len(), 512);
    }
}
