//! Filters between a client and a storage that can be switched on, like nbdkit's: checksums verify payloads, and a null wire
//! claims that requests are done.
//!
//! NBD itself has no checksums and relies on TCP. If they are negotiated ([`CHECKSUMS`](crate::handshake::option::CHECKSUMS)),
//! the payload of each write and of each successful reply to a read is followed by its CRC-32C (Castagnoli): four bytes,
//! big-endian. On a mismatch a server replies EIO (the storage may then contain the received data, as after any failed
//! write), and a client closes the connection.

use sys::byte_store::ByteStore;

/// Size of a checksum.
pub const CHECKSUM_BYTES: usize = 4;

/// Bytes copied out per step; they stay in the L1 cache.
const PART: usize = 4096;

/// A running checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(u32);

impl Checksum {
    /// The checksum of a range of a store.
    ///
    /// # Panics
    /// When the range is out of bounds.
    pub fn of(store: &ByteStore, begin: usize, length: usize) -> Self {
        let mut sum = Self::default();
        sum.add_stored(store, begin, length);
        sum
    }

    /// Adds a range of a store.
    ///
    /// # Panics
    /// When the range is out of bounds.
    pub fn add_stored(&mut self, store: &ByteStore, begin: usize, length: usize) {
        let (mut part, mut done) = ([0; PART], 0);
        while done < length {
            let (part, _) = part.split_at_mut(PART.min(length - done));
            store.read(begin + done, part);
            self.add(part);
            done += part.len();
        }
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// The checksum as it is sent.
    pub fn bytes(self) -> [u8; CHECKSUM_BYTES] {
        self.0.to_be_bytes()
    }
}

/// What connects a client to its server (`path_null`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A socket.
    Real,
    /// Nothing: after the handshake, the client claims that requests were sent and replied to. Shows the cost of the
    /// client alone.
    Null,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value in CRC catalogues (of "123456789"), and 32 zeros from RFC 3720, B.4, which lists the bytes in
    /// the other order.
    #[test]
    fn the_polynomial_is_castagnoli_and_pieces_give_the_sum_of_the_whole() {
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
