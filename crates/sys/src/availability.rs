//! Whether the kernel grants this process a facility, asked by using it once.

use std::io;

/// Sets up a small io_uring and gives it back. A sysctl, a seccomp profile or the kernel's build can
/// each refuse it, and only trying tells.
pub fn io_uring() -> io::Result<()> {
    const ENTRIES: u32 = 2;
    io_uring::IoUring::new(ENTRIES).map(drop)
}

#[cfg(test)]
mod tests {
    #[test]
    fn asking_twice_gives_the_same_answer() {
        assert_eq!(super::io_uring().is_ok(), super::io_uring().is_ok());
    }
}
