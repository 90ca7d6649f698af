//! Guests are of x86-64 and run this program, so one of another architecture has no ports.

use std::convert::Infallible;
use std::io;

/// Never opened.
#[derive(Debug)]
pub struct Ports {
    never: Infallible,
}

impl Ports {
    /// # Errors
    /// Always.
    pub fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never called.
    pub fn write(&self, _: &[u8]) {
        match self.never {}
    }

    /// Never called.
    pub fn pause(&self) {
        match self.never {}
    }

    /// Never called.
    pub fn exit(&self, _: u8) {
        match self.never {}
    }

    /// Never called.
    pub fn read(&self, _: &str) -> Option<Vec<u8>> {
        match self.never {}
    }
}

/// No plugin looks for a mark.
pub fn mark_begin() {}

/// As above.
pub fn mark_end() {}
