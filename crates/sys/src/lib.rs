//! Safe wrappers of operating system interfaces, and the project's only unsafe code.
//!
//! It contains what the standard library and rustix lack: the time-stamp counter, perf events, programs in the kernel
//! (BPF), the rings of libaio and io_uring with buffers that outlive the I/O in flight, scheduling classes, memory shared
//! between processes, and the resource usage of a child. It knows nothing of measurements.

pub mod aio;
pub mod bpf;
pub mod buffer;
pub mod burner;
pub mod byte_store;
pub mod clock;
pub mod datagrams;
pub mod device;
pub mod guest;
pub mod page_cache;
pub mod perf;
pub mod process;
pub mod receive_batch;
pub mod ring_slots;
pub mod schedule;
pub mod send_batch;
pub mod shared_copy;
pub mod shared_words;
pub mod socket;
pub mod uring;
