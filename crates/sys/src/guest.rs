//! What a guest of QEMU sees of its host: a file to read, a place to write, a pause and the end.
//!
//! I/O ports of QEMU's fw_cfg, debugcon, pvpanic and isa-debug-exit devices. An access is an instruction of the guest, so it
//! happens at the same instruction each time, unlike a serial line.

#[cfg_attr(target_arch = "x86_64", path = "guest/ports.rs")]
#[cfg_attr(not(target_arch = "x86_64"), path = "guest/no_ports.rs")]
mod ports;

pub use ports::{Ports, mark_begin, mark_end};

/// Size of the clock that [`Ports::pause`] writes: the time stamp counter, which is the clock of QEMU's devices too if that counts instructions.
pub const CLOCK_BYTES: usize = 8;

/// The QEMU plugin that counts instructions between the marks, a shared library for QEMU of this major version; `None` if it cannot load one.
pub fn plugin(major: u32) -> Option<&'static [u8]> {
    match major {
        // Version 1 of the plugin interface, which QEMU 9 dropped.
        6..=8 => Some(include_bytes!(concat!(env!("OUT_DIR"), "/count-of-old.so"))),
        9..=10 => Some(include_bytes!(concat!(env!("OUT_DIR"), "/count.so"))),
        _ => None,
    }
}
