//! Filters between a client and a storage that can be switched on, like nbdkit's: [`crc`] verifies payloads, [`delay`]
//! adds busy work to requests, [`null`] claims that requests are done.

pub mod crc;
pub mod delay;
pub mod null;
