//! Small programs that the kernel runs at its tracepoints, and the memory that they share with this process (bpf(2)).
//!
//! An [`Assembler`] makes the code of a program, the kernel verifies and compiles it ([`Program`]), and a [`Link`] runs
//! it at each pass of a raw tracepoint until it is dropped. Programs write to an [`ArrayMap`], which this process reads
//! as memory, or to a [`HashMap`]. Nothing is pinned: whatever ends the process also ends its programs.
//!
//! Programs can write only to maps, because [`Helper`] has no function that writes anywhere else.

mod assembler;
mod error;
mod map;
mod program;

pub use assembler::{Assembler, Code, Condition, Helper, Label, Operation, Register, Width};
pub use error::Error;
pub use map::{ArrayMap, HashMap};
pub use program::{Link, Program};

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Commands of bpf(2).
#[derive(Clone, Copy)]
enum Command {
    MapCreate = 0,
    ProgramLoad = 5,
    ProgramTestRun = 10,
    ObjectInfo = 15,
    RawTracepointOpen = 17,
    MapLookupAndDeleteBatch = 25,
}

/// Calls bpf(2) with the first `size` bytes of the attributes.
///
/// # Safety
/// `A` is `repr(C)` and the part of `union bpf_attr` of this command, without padding. Every address in it is valid for
/// what the command does with it, and `size` is at most the size of `A`.
unsafe fn call<A>(command: Command, attributes: &mut A, size: usize) -> io::Result<libc::c_int> {
    // SAFETY: the attributes live during the call, the kernel reads and writes at most `size` bytes of them, and the
    // caller vouches for the addresses in them.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_int, std::ptr::from_mut(attributes), size) };
    match libc::c_int::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

/// As [`call`], for commands that return a new descriptor.
///
/// # Safety
/// As [`call`], and the command returns a descriptor.
unsafe fn open<A>(command: Command, attributes: &mut A, size: usize) -> io::Result<OwnedFd> {
    // SAFETY: the caller keeps the conditions of `call`.
    let descriptor = unsafe { call(command, attributes, size) }?;
    // SAFETY: the kernel has just created this descriptor, close-on-exec, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A name as the kernel accepts it: at most 15 letters, digits, dots and underscores.
fn object_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let allowed = name.bytes().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'.');
    bytes.iter_mut().zip(allowed.take(15)).for_each(|(to, byte)| *to = byte);
    bytes
}

/// An address for the kernel.
fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>().expose_provenance() as u64
}

/// An address that the kernel writes to.
fn address_mut<T: ?Sized>(of: &mut T) -> u64 {
    std::ptr::from_mut(of).cast::<u8>().expose_provenance() as u64
}

#[cfg(test)]
mod tests;
