//! How an engine asks the kernel for I/O: flags of its calls, and threads that submit.

use serde::{Deserialize, Serialize};

/// Options of single engines about their system calls. With fio's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallPlan {
    /// `hipri`: the device is polled instead of waiting for its interrupt.
    pub polled: bool,
    /// `nowait`: an I/O that would have to wait fails.
    pub nowait: bool,
    /// `uncached`: pages leave the page cache after the I/O (RWF_DONTCACHE).
    pub uncached: bool,
    /// `sqthread_poll`: a kernel thread takes submissions.
    pub submission_thread: bool,
    /// `sqthread_poll_cpu`: its CPU.
    pub submission_cpu: Option<u32>,
    /// `force_async`: this many I/Os at least are handed to a worker of the kernel; 0 means none.
    pub force_async: u32,
}
