//! The operating system behind safe functions, and the only unsafe code of the project.
//!
//! What is here is what the standard library and rustix do not offer: the time-stamp counter, perf
//! events, the rings of libaio and io_uring with buffers that outlive what is in flight, scheduling
//! classes, memory shared between processes, and the resource use of a child.

pub mod aio;
pub mod availability;
pub mod block;
pub mod buffer;
pub mod burner;
pub mod byte_store;
pub mod clock;
pub mod device;
pub mod mapped_file;
pub mod page_cache;
pub mod perf;
pub mod process;
pub mod receive_batch;
pub mod schedule;
pub mod send_batch;
pub mod shared_copy;
pub mod shared_words;
pub mod socket;
pub mod uring;
