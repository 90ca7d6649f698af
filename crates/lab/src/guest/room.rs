//! What guests need of the machine: memory, and space for the cache and for temporary files.

use super::cache::Cache;
use super::machine::MEMORY_MIB;
use crate::error::{Error, Result};
use crate::memory;
use crate::sysroot::Sysroot;
use std::path::Path;

/// Space that must be free in the cache: a guest's image, and two guests that are being saved.
const FREE_BYTES: u64 = 600 << 20;
/// Space that must be free in the folder for temporary files: what two guests print and count.
const FREE_TEMPORARY_BYTES: u64 = 64 << 20;
/// Memory that QEMU needs beside the guest's.
const EMULATOR_MIB: u64 = 300;

/// How many guests may run at once.
pub(super) fn at_once() -> Result<usize> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    fitting(cpus, memory::available(&Sysroot::at(Path::new("/"))))
}

/// Number of guests that run at once: one on each CPU, as far as the available memory (bytes; `None` if unknown) suffices.
fn fitting(cpus: usize, available: Option<u64>) -> Result<usize> {
    let each = u64::from(MEMORY_MIB) + EMULATOR_MIB;
    let Some(available) = available.map(|bytes| bytes >> 20) else { return Ok(1) };
    if available < each {
        return Err(Error::Refused(format!(
            "{available} MiB of memory are available, a guest needs {each} MiB; end other programs, or raise the limit of \
             this container or control group"
        )));
    }
    Ok(cpus.min(usize::try_from(available / each).unwrap_or(1)).max(1))
}

/// Refuses when a folder that guests write to has too little space.
pub(super) fn enough_space(cache: &Cache) -> Result<()> {
    let temporary = std::env::temp_dir();
    for (folder, variable, needed) in
        [(cache.folder(), "XDG_CACHE_HOME", FREE_BYTES), (temporary.as_path(), "TMPDIR", FREE_TEMPORARY_BYTES)]
    {
        let shown = folder.display();
        let state = rustix::fs::statvfs(folder).map_err(|error| {
            let error = std::io::Error::from(error);
            Error::Refused(format!("{shown}: reading its free space: {error}; {variable} names another folder"))
        })?;
        let (free, needed) = (state.f_bavail.saturating_mul(state.f_frsize) >> 20, needed >> 20);
        if free < needed {
            return Err(Error::Refused(format!(
                "{shown}: {free} MiB are free, guests need {needed} MiB; free some, or name another folder in {variable}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_guests_run_at_once_as_fit() {
        let guests = |cpus, mib: u64| fitting(cpus, Some(mib << 20));
        assert_eq!(guests(4, 100_000).unwrap(), 4);
        assert_eq!(guests(4, 2 * 940).unwrap(), 2);
        assert_eq!(guests(4, 940).unwrap(), 1);
        assert_eq!(fitting(4, None).unwrap(), 1);
        let error = guests(4, 939).unwrap_err().to_string();
        assert!(error.starts_with("939 MiB of memory are available, a guest needs 940 MiB"), "{error}");
    }
}
