//! Notices that a CPU goes offline or comes online: a reading takes a microsecond.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Which CPUs are online, as the kernel writes it.
#[derive(Debug)]
pub(super) struct Online {
    file: File,
    text: Vec<u8>,
}

impl Online {
    /// # Errors
    /// When the kernel does not tell.
    pub(super) fn open() -> io::Result<Self> {
        let file = File::open("/sys/devices/system/cpu/online")?;
        let mut online = Self { file, text: Vec::new() };
        online.changed();
        Ok(online)
    }

    /// The CPUs, if they changed since the last call.
    pub(super) fn changed(&mut self) -> Option<Vec<u32>> {
        let mut text = [0; 256];
        let length = self.file.read_at(&mut text, 0).unwrap_or(0);
        let text = text.get(..length).filter(|text| *text != self.text)?;
        let cpus = sys::schedule::online_cpus().ok()?;
        self.text = text.to_vec();
        Some(cpus)
    }
}
