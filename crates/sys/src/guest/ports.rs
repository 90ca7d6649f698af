//! The I/O ports of QEMU's devices, and the marks.

use super::CLOCK_BYTES;
use std::arch::asm;
use std::io;

/// Of the device isa-debugcon, whose output QEMU writes to a file.
const OUTPUT: u16 = 0xe9;
/// Of pvpanic. QEMU pauses the machine with `-action panic=pause`.
const PAUSE: u16 = 0x505;
/// Of isa-debug-exit.
const EXIT: u16 = 0xf4;
/// Of fw_cfg: the number of a file, and its bytes.
const SELECT: u16 = 0x510;
const DATA: u16 = 0x511;
/// The number of fw_cfg's directory.
const DIRECTORY: u16 = 0x19;

/// The ports of QEMU's devices, for the thread that opened them, until it drops them: a thread that may use ports makes each
/// switch to it and from it 47 instructions more expensive, and the threads that it starts inherit the permission.
#[derive(Debug)]
pub struct Ports {
    /// The permission belongs to the thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Ports {
    /// Gets access to the ports. Only for a program that knows that it runs as the first process of a guest.
    ///
    /// # Errors
    /// When the kernel refuses iopl(2).
    pub fn open() -> io::Result<Self> {
        // SAFETY: iopl(2) takes a number and changes only this thread's permission.
        if unsafe { libc::iopl(3) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { _thread: std::marker::PhantomData })
    }

    /// Writes to the host's file.
    pub fn write(&self, bytes: &[u8]) {
        // SAFETY: `self` proves access to ports; the instruction reads `bytes.len()` bytes at `bytes`.
        unsafe {
            asm!("rep outsb", inout("rsi") bytes.as_ptr() => _, inout("rcx") bytes.len() => _, in("dx") OUTPUT, options(readonly, nostack));
        }
    }

    /// Writes the guest's clock to the host's file ([`CLOCK_BYTES`], least significant first), and pauses the machine at once, until the host lets it
    /// go on, perhaps after it was restored from a file.
    pub fn pause(&self) {
        // SAFETY: the instruction reads a counter, which every CPU of a guest has.
        let clock: [u8; CLOCK_BYTES] = unsafe { std::arch::x86_64::_rdtsc() }.to_le_bytes();
        self.write(&clock);
        self.put(PAUSE, 1);
    }

    /// Ends the machine at once. QEMU's status is `2 * status + 1`.
    pub fn exit(&self, status: u8) {
        self.put(EXIT, status);
    }

    /// Reads a file that the host passes by `-fw_cfg name=NAME,file=…`.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        const NAME_BYTES: usize = 56;
        self.select(DIRECTORY);
        let count = u32::from_be_bytes(self.take());
        let mut found = None;
        for _ in 0..count {
            let size = u32::from_be_bytes(self.take());
            let number = u16::from_be_bytes(self.take());
            let _reserved: [u8; 2] = self.take();
            let entry: [u8; NAME_BYTES] = self.take();
            let entry = entry.split(|byte| *byte == 0).next().unwrap_or_default();
            if entry == name.as_bytes() {
                found = Some((number, size));
            }
        }
        let (number, size) = found?;
        self.select(number);
        Some((0..size).map(|_| self.get(DATA)).collect())
    }

    fn take<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|_| self.get(DATA))
    }

    fn select(&self, number: u16) {
        // SAFETY: `self` proves access to ports; the instruction touches no memory.
        unsafe { asm!("out dx, ax", in("dx") SELECT, in("ax") number, options(nomem, nostack)) };
    }

    fn put(&self, port: u16, value: u8) {
        // SAFETY: as above.
        unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack)) };
    }

    fn get(&self, port: u16) -> u8 {
        let value;
        // SAFETY: as above.
        unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack)) };
        value
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // SAFETY: as above. The kernel always lets a thread give up the permission.
        unsafe { libc::iopl(0) };
    }
}

/// Tells the plugin that counts instructions: the measured part begins. A no-op anywhere else.
#[inline(always)]
pub fn mark_begin() {
    // SAFETY: `nopl 0x01544f49(%rax,%rax,1)` does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x84, 0x00, 0x49, 0x4f, 0x54, 0x01", options(nostack)) };
}

/// The measured part ends.
#[inline(always)]
pub fn mark_end() {
    // SAFETY: as above.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x84, 0x00, 0x49, 0x4f, 0x54, 0x02", options(nostack)) };
}
