//! Checksums of payloads, for clients and servers that both want them: NBD itself has none and leaves it to TCP.
//!
//! Where it was agreed on ([`CHECKSUMS`](crate::handshake::option::CHECKSUMS)), the payload of each write and of each reply to a read
//! that went well is followed by its CRC-32C (Castagnoli), four bytes, the most significant first. A server that finds another one
//! replies with EIO; what it has stored by then is whatever came, as after any failed write. A client that finds another one gives
//! the connection up.

use sys::byte_store::ByteStore;

/// Bytes of one.
pub const CHECKSUM_BYTES: usize = 4;

/// Copied out at a time to be summed; it stays in the first cache.
const PART: usize = 4096;

/// A sum that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(u32);

impl Checksum {
    /// Of what is in a store.
    ///
    /// # Panics
    /// When the range is not inside.
    pub fn of(store: &ByteStore, begin: usize, length: usize) -> Self {
        let mut sum = Self::default();
        sum.add_stored(store, begin, length);
        sum
    }

    /// What is in a store follows.
    ///
    /// # Panics
    /// When the range is not inside.
    pub fn add_stored(&mut self, store: &ByteStore, begin: usize, length: usize) {
        let (mut part, mut done) = ([0; PART], 0);
        while done < length {
            let (part, _) = part.split_at_mut(PART.min(length - done));
            store.read(begin + done, part);
            self.add(part);
            done += part.len();
        }
    }

    /// These bytes follow.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// As it is sent.
    pub fn bytes(self) -> [u8; CHECKSUM_BYTES] {
        self.0.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the catalogues of CRCs (of "123456789"), and 32 zeros of RFC 3720, B.4, where its bytes are in the other order.
    #[test]
    fn it_is_the_castagnoli_polynomial_however_it_is_cut() {
        let mut sum = Checksum::default();
        sum.add(b"1234");
        sum.add(b"56789");
        assert_eq!(sum.bytes(), [0xe3, 0x06, 0x92, 0x83]);
        let store = ByteStore::zeroed(3 * PART).unwrap();
        assert_eq!(Checksum::of(&store, 0, 32).bytes(), [0x8a, 0x91, 0x36, 0xaa]);
        let data: Vec<u8> = (0..2 * PART + 77).map(|place| place as u8).collect();
        store.write(5, &data);
        let mut whole = Checksum::default();
        whole.add(&data);
        assert_eq!(Checksum::of(&store, 5, data.len()), whole);
        assert_eq!(Checksum::of(&store, 0, 0), Checksum::default());
    }
}
