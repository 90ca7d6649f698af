//! What a server did.

use crate::tuning::Sending;

/// Sums over one connection, or over all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests, good and bad.
    pub requests: u64,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Bytes of storage sent.
    pub read_bytes: u64,
    /// Of these, bytes that were copied behind their header before they were sent.
    pub pulled_up_bytes: u64,
    /// Of these, bytes that were sent as pages.
    pub zero_copy_bytes: u64,
    /// Bytes of writes that were received to where they belong.
    pub in_place_bytes: u64,
    /// System calls that waited for something to receive, or looked whether there was.
    pub waits: u64,
    /// System calls that received something.
    pub receives: u64,
    /// System calls that sent something.
    pub sends: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
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

    /// Adds what another connection did.
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
