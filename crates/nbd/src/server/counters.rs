//! Counters of a server: requests, bytes, and system calls.

use crate::tuning::Sending;

/// Counters of one connection, or sums over all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// All requests, including failed ones.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Payload bytes of reads.
    pub read_bytes: u64,
    /// Of these, bytes copied behind their header before sending.
    pub pulled_up_bytes: u64,
    /// Of these, bytes sent as pages (zero copy).
    pub zero_copy_bytes: u64,
    /// Payload bytes of writes received in place.
    pub in_place_bytes: u64,
    /// System calls that waited or polled for input.
    pub waits: u64,
    /// Receiving system calls.
    pub receives: u64,
    /// Sending system calls.
    pub sends: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

impl Counters {
    #[inline]
    pub(super) fn read(&mut self, length: u32, sending: Sending) {
        let length = u64::from(length);
        self.read_bytes += length;
        match sending {
            Sending::PullUp => self.pulled_up_bytes += length,
            Sending::Gather => {}
            Sending::ZeroCopy => self.zero_copy_bytes += length,
        }
    }

    /// Adds another connection's counters.
    pub fn add(&mut self, other: &Self) {
        let Self {
            requests,
            errors,
            read_bytes,
            pulled_up_bytes,
            zero_copy_bytes,
            in_place_bytes,
            waits,
            receives,
            sends,
            received_bytes,
            sent_bytes,
        } = other;
        self.requests += requests;
        self.errors += errors;
        self.read_bytes += read_bytes;
        self.pulled_up_bytes += pulled_up_bytes;
        self.zero_copy_bytes += zero_copy_bytes;
        self.in_place_bytes += in_place_bytes;
        self.waits += waits;
        self.receives += receives;
        self.sends += sends;
        self.received_bytes += received_bytes;
        self.sent_bytes += sent_bytes;
    }
}
