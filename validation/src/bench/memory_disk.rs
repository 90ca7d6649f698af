//! A disk in memory (zram): direct I/O to it uses the complete block layer without the noise of a device.

use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CONTROL: &str = "/sys/class/zram-control";

/// An ext4 file system on a new zram device; dropping it removes both.
pub struct MemoryDisk {
    device: u32,
    mounted: Option<PathBuf>,
}

impl MemoryDisk {
    /// Creates the device and mounts it at `path`.
    /// # Errors
    /// Without root, zram support in the kernel, or mkfs.ext4.
    pub fn mount(path: PathBuf, mebibytes: usize) -> anyhow::Result<Self> {
        // Reading the file creates a device and returns its number.
        let number =
            fs::read_to_string(format!("{CONTROL}/hot_add")).context("a disk in memory needs root and zram")?;
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
        // Errors were reported already; what cannot be undone here is a device without a user.
        let _ = self.mounted.take().map(|path| tool("umount", &[&path.display().to_string()]));
        let _ = fs::write(self.attribute("reset"), "1");
        let _ = fs::write(format!("{CONTROL}/hot_remove"), self.device.to_string());
    }
}

fn tool(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {program}; install it"))?;
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{program} {}: {stderr}", arguments.join(" "));
    Ok(())
}
