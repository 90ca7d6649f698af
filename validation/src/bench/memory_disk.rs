//! A disk in memory: direct I/O to it passes the whole block layer, and no device behind it adds noise of its own.

use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CONTROL: &str = "/sys/class/zram-control";

/// An ext4 on a zram device of its own; both are gone when this is dropped.
pub struct MemoryDisk {
    device: u32,
    mounted: Option<PathBuf>,
}

impl MemoryDisk {
    /// Makes the device and mounts it at `path`.
    ///
    /// # Errors
    /// Without root, without zram in the kernel, or without mkfs.ext4.
    pub fn mount(path: PathBuf, mebibytes: usize) -> anyhow::Result<Self> {
        // Reading makes a device: the kernel says its number.
        let number =
            fs::read_to_string(format!("{CONTROL}/hot_add")).context("a disk in memory takes root and zram")?;
        let mut disk = Self { device: number.trim().parse()?, mounted: None };
        fs::write(disk.attribute("disksize"), format!("{mebibytes}M"))?;
        let device = format!("/dev/zram{}", disk.device);
        tool("mkfs.ext4", &["-q", "-O", "^has_journal", &device])?;
        fs::create_dir_all(&path)?;
        tool("mount", &[&device, &path.display().to_string()])?;
        disk.mounted = Some(path);
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.mounted.as_deref().unwrap_or(Path::new(""))
    }

    fn attribute(&self, name: &str) -> String {
        format!("/sys/block/zram{}/{name}", self.device)
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        // A validation that failed is told why already; what cannot be undone here is a device without a user.
        let _ = self.mounted.take().map(|path| tool("umount", &[&path.display().to_string()]));
        let _ = fs::write(self.attribute("reset"), "1");
        let _ = fs::write(format!("{CONTROL}/hot_remove"), self.device.to_string());
    }
}

fn tool(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{program} cannot be run; install it"))?;
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{program} {}: {stderr}", arguments.join(" "));
    Ok(())
}
