//! The checksums of fio 3.33, with its own parameters: what fio stores is what counts, and tests read its files.

use crc::{Algorithm, Crc, Table};
use md5::Digest;
use model::plan::VerifyMethod;

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
pub(super) fn crc32c(data: &[u8]) -> u32 {
    !::crc32c::crc32c(data)
}

/// Writes the checksum of `data` to `out`, which has the length that the method's row says.
pub(super) fn write(method: VerifyMethod, data: &[u8], out: &mut [u8]) {
    match method {
        VerifyMethod::Meta | VerifyMethod::Pattern | VerifyMethod::Null => {}
        VerifyMethod::Crc32 => put(out, &CRC32.checksum(data).to_le_bytes()),
        VerifyMethod::Crc32c | VerifyMethod::Crc32cIntel => put(out, &crc32c(data).to_le_bytes()),
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
