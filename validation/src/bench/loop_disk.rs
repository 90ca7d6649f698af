//! A loop device over a file: workers of the kernel do its I/O.

use anyhow::{Context, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// The device; dropping it detaches it.
pub struct LoopDisk {
    device: String,
}

impl LoopDisk {
    /// # Errors
    /// Without root, losetup, or a kernel with loop devices.
    pub fn attach(file: &Path) -> anyhow::Result<Self> {
        let mut losetup = Command::new("losetup");
        losetup.args(["--read-only", "--find", "--show"]).arg(file).stdin(Stdio::null());
        let output = losetup.output().context("cannot run losetup; install it")?;
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        ensure!(output.status.success(), "a loop device needs root: {stderr}");
        Ok(Self { device: String::from_utf8_lossy(&output.stdout).trim().to_owned() })
    }

    pub fn path(&self) -> &str {
        &self.device
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // What cannot be detached here is a device without a user.
        let _ = Command::new("losetup").args(["--detach", &self.device]).stdin(Stdio::null()).status();
    }
}
