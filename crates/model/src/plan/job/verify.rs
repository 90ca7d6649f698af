//! Whether what was written is read back right.

use super::content::Pattern;
use serde::{Deserialize, Serialize};

/// How blocks are marked when they are written, and checked when they are read. With fio's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verify {
    /// `verify`; `None` means that blocks are neither marked nor checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<VerifyMethod>,
    /// `do_verify`: a job that writes reads its blocks back when all are written.
    pub after: bool,
    /// `verify_pattern`: the content of the blocks instead of noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// `verify_dump`: blocks with errors are written to files.
    pub dump: bool,
    /// `verify_backlog`: read back after this number of writes; 0 means when all are written.
    pub backlog: u32,
}

impl Default for Verify {
    fn default() -> Self {
        Self { method: None, after: true, pattern: None, dump: false, backlog: 0 }
    }
}

impl Verify {
    /// The blocks are read back while the job still writes.
    pub fn reads_between(&self) -> bool {
        self.method.is_some() && self.after && self.backlog > 0
    }
}

/// What a block is checked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifyMethod {
    /// Its content, a pattern. It has no header.
    Pattern,
    /// A checksum of 32 bits.
    Crc32,
    /// A checksum of 32 bits, for which processors have an instruction.
    Crc32c,
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// xxHash of 32 bits.
    Xxhash,
}

/// Bytes of a header, before the checksum.
pub const HEADER_BYTES: u32 = 40;

/// A method: its value, its word, its number in headers, and the bytes of its checksum.
pub struct VerifyRow {
    pub method: VerifyMethod,
    pub word: &'static str,
    /// `None` if there is no header.
    pub number: Option<u16>,
    /// Bytes of the checksum behind the header.
    pub digest: u32,
}

const fn row(method: VerifyMethod, word: &'static str, number: u16, digest: u32) -> VerifyRow {
    VerifyRow { method, word, number: Some(number), digest }
}

/// All methods.
pub const VERIFY_METHODS: [VerifyRow; 6] = [
    row(VerifyMethod::Md5, "md5", 2, 16),
    row(VerifyMethod::Crc32c, "crc32c", 5, 4),
    row(VerifyMethod::Crc32, "crc32", 4, 4),
    row(VerifyMethod::Sha1, "sha1", 16, 20),
    row(VerifyMethod::Xxhash, "xxhash", 15, 4),
    VerifyRow { method: VerifyMethod::Pattern, word: "pattern", number: None, digest: 0 },
];

impl VerifyMethod {
    /// Its word in `verify=`.
    pub fn word(self) -> &'static str {
        self.row().map_or("", |row| row.word)
    }

    /// Bytes of header and checksum; `None` if blocks have none.
    pub fn header(self) -> Option<u32> {
        self.row().filter(|row| row.number.is_some()).map(|row| HEADER_BYTES + row.digest)
    }

    /// Its row in the table.
    pub fn row(self) -> Option<&'static VerifyRow> {
        VERIFY_METHODS.iter().find(|row| row.method == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_its_word_in_records() {
        for row in &VERIFY_METHODS {
            assert_eq!(serde_json::to_string(&row.method).unwrap(), format!("\"{}\"", row.word));
            assert_eq!(row.method.word(), row.word);
        }
        assert_eq!((VerifyMethod::Md5.header(), VerifyMethod::Pattern.header()), (Some(56), None));
    }
}
