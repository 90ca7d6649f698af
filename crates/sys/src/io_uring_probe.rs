//! Checks whether the kernel lets this process use a facility, by using it once.

use std::io;

/// Sets up a small io_uring and closes it. A sysctl, a seccomp profile, or the kernel configuration can refuse it, so
/// only an attempt shows.
pub fn io_uring() -> io::Result<()> {
    const ENTRIES: u32 = 2;
    io_uring::IoUring::new(ENTRIES).map(drop)
}

#[cfg(test)]
mod tests {
    #[test]
    fn repeated_checks_agree() {
        assert_eq!(super::io_uring().is_ok(), super::io_uring().is_ok());
    }
}
