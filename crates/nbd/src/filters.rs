//! What stands between a client and a storage and can be switched on, as filters do in nbdkit: [`crc`] checks payloads, [`delay`]
//! makes requests dearer, [`null`] claims that they are done.

pub mod crc;
pub mod delay;
pub mod null;
