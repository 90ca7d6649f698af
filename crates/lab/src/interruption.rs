//! How a user asks a measurement to end: Ctrl-C, or another signal.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often the user has asked for the end. The signal thread counts; the threads that measure read.
#[derive(Debug, Default)]
pub struct Interruption {
    requests: AtomicU32,
    /// What runs to its end although the user asks.
    awaited: Mutex<Option<String>>,
}

/// Something runs to its end, as long as this lives.
#[derive(Debug)]
pub(crate) struct Awaited<'a>(&'a Interruption);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        *self.0.awaited_now() = None;
    }
}

impl Interruption {
    /// The user asks, once more. How often that was, this time included.
    pub fn request(&self) -> u32 {
        self.requests.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// End, and keep what was measured.
    pub fn is_requested(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Notes what runs to its end.
    pub(crate) fn awaits(&self, what: String) -> Awaited<'_> {
        *self.awaited_now() = Some(what);
        Awaited(self)
    }

    /// What runs to its end now although the user asks, in words, and how it is ended.
    pub fn awaited(&self) -> Option<String> {
        self.awaited_now().clone()
    }

    fn awaited_now(&self) -> MutexGuard<'_, Option<String>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user asked again: end at once what has not ended.
    pub fn is_repeated(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 1
    }
}
