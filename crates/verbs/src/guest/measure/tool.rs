//! What guests take from the machine: programs that unpack, download and strip, run to their end; an emulator, memory, and space for the cache
//! and for temporary files.

use super::cache::{Cache, Part};
use super::machine::{MEMORY_MIB, QEMU};
use lab::bounded_file::{self, LONGEST_FILE};
use lab::elf;
use lab::error::{Error, Result};
use lab::guardian::Guardian;
use lab::interruption::Interruption;
use lab::memory;
use lab::sysroot::Sysroot;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// What ends a program early. By default nothing does.
#[derive(Clone, Debug, Default)]
pub struct Care {
    /// Kills it if iotoll is killed.
    pub guardian: Guardian,
    /// Kills it when the user asks for an end.
    pub interruption: Arc<Interruption>,
}

/// Time between two checks whether a program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a program to its end and returns its standard output. `what` says what it is run for; `mend` says what to do if
/// the host does not have it.
///
/// # Errors
/// When the host does not have it, it fails, or the user asks for an end.
pub(super) fn output(command: &mut Command, what: &str, mend: &str, care: &Care) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let processes = care.guardian.passing_processes()?;
    processes.mark(command);
    // English messages, for the error below. A group of its own: a Ctrl-C at the terminal reaches iotoll alone.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env("LC_ALL", "C").process_group(0);
    let child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Error::Refused(format!("{what}: the program `{program}` is not found on this system; {mend}"))
        }
        _ => Error::Failed(format!("{what}: `{program}` cannot be started: {error}")),
    })?;
    let id = child.id();
    processes.led_by(id);
    let unread = |error| Error::instrument(format!("{what}: reading what `{program}` prints"), error);
    let ended = std::thread::Builder::new().spawn(move || child.wait_with_output()).map_err(unread)?;
    while !ended.is_finished() {
        if care.interruption.is_requested() {
            let _ = processes.kill_with_all_it_began(id);
            let _ = ended.join();
            return Err(Error::Interrupted(format!("while {what}")));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let panicked = |_| Err(io::Error::other("its reader ended"));
    let Output { status, stdout, stderr } = ended.join().unwrap_or_else(panicked).map_err(unread)?;
    if status.success() {
        return Ok(stdout);
    }
    let complaint = complaint(&String::from_utf8_lossy(&stderr));
    Err(Error::Failed(format!("{what}: `{program}` failed ({status}){complaint}")))
}

/// The same for a program that could not do it: with what to do then.
pub(super) fn mended(error: Error, mend: &str) -> Error {
    match error {
        Error::Failed(why) => Error::Failed(format!("{why}; {mend}")),
        error => error,
    }
}

/// A file of the host cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Refused(format!("{}: cannot be read: {error}", path.display()))
}

/// The contents of a file of the host that is a program, a library or a module.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    bounded_file::read(path, LONGEST_FILE).map_err(|error| unreadable(path, &error))
}

/// A program, a library or a module without its debug information, which makes a guest ten times as large. Unchanged if the host has no `strip`.
pub(super) fn stripped(bytes: Vec<u8>) -> Vec<u8> {
    if !elf::has_debug_information(&bytes) {
        return bytes;
    }
    let stripped = || {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("file");
        fs::write(&file, &bytes)?;
        let status = Command::new("strip").arg("--strip-debug").arg(&file).output()?.status;
        match status.success() {
            true => fs::read(&file),
            false => Err(io::Error::other("strip failed")),
        }
    };
    stripped().unwrap_or(bytes)
}

/// A hash as text.
pub(super) fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

/// The size and the last change of a file, for the name of what is made from it.
pub(super) fn version(path: &Path) -> io::Result<String> {
    let state = fs::metadata(path)?;
    Ok(format!("{}-{}.{}", state.len(), state.mtime(), state.mtime_nsec()))
}

/// The last line of a program's standard error; the last that apt calls an error, if there is one.
fn complaint(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().rfind(|line| line.starts_with("E: ")).or_else(|| lines().next_back());
    line.map_or_else(String::new, |line| format!(": {}", line.strip_prefix("E: ").unwrap_or(line)))
}

/// Space that must be free in the cache: a guest's image, and two guests that are being saved.
const FREE_BYTES: u64 = 600 << 20;
/// Space that must be free in the folder for temporary files: what two guests print and count.
const FREE_TEMPORARY_BYTES: u64 = 64 << 20;
/// Memory that QEMU needs beside the guest's.
const EMULATOR_MIB: u64 = 300;
/// What guests are.
const GUEST_ARCHITECTURE: &str = "x86_64";

/// The emulator.
pub(super) struct Emulator {
    /// With its version: "QEMU 7.2.22".
    pub name: String,
    /// The library of the plugin that counts in it.
    library: &'static [u8],
}

impl Emulator {
    /// Asks it for its version.
    ///
    /// # Errors
    /// When there is none, or guests do not run in it.
    pub(super) fn find(care: &Care) -> Result<Self> {
        let host = std::env::consts::ARCH;
        if host != GUEST_ARCHITECTURE {
            return Err(Error::Refused(format!(
                "guests need an {GUEST_ARCHITECTURE} host, because they run this very program; this one is for {host}; use another machine, or a virtual one"
            )));
        }
        let mend = "install it (Debian: apt install qemu-system-x86)";
        let what = "asking the emulator for its version";
        let printed = output(Command::new(QEMU).arg("--version"), what, mend, care)?;
        let text = String::from_utf8_lossy(&printed);
        let Some(version) = text.split_whitespace().skip_while(|word| *word != "version").nth(1) else {
            return Err(Error::Refused(format!("`{QEMU} --version` prints no version: is it QEMU?")));
        };
        let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
        let library = sys::guest::plugin(major).ok_or_else(|| {
            Error::Refused(format!(
                "{QEMU} {version}: guests need QEMU 6 to 10, whose plugins iotoll has; install one of these (Debian 12 has 7.2, Debian 13 has 10.0)"
            ))
        })?;
        Ok(Self { name: format!("QEMU {version}"), library })
    }

    /// Its plugin as a file.
    pub(super) fn plugin(&self, cache: &Cache) -> Result<PathBuf> {
        let name = format!("plugin-{:016x}.so", xxhash_rust::xxh3::xxh3_64(self.library));
        let path = cache.entry(Part::GUESTS, &name);
        if fs::read(&path).is_ok_and(|found| found == self.library) {
            return Ok(path);
        }
        cache.write(Part::GUESTS, &name, self.library)
    }
}
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
        [(cache.folder.as_path(), "XDG_CACHE_HOME", FREE_BYTES), (temporary.as_path(), "TMPDIR", FREE_TEMPORARY_BYTES)]
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
    fn a_failure_is_told_in_one_line() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo E: no such thing >&2; echo more >&2; exit 3"]);
        let error = output(&mut shell, "asking", "install it", &Care::default()).unwrap_err().to_string();
        assert_eq!(error, "asking: `sh` failed (exit status: 3): no such thing");
        let error =
            output(&mut Command::new("no-such-program-here"), "asking", "install it", &Care::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "asking: the program `no-such-program-here` is not found on this system; install it"
        );
    }

    #[test]
    fn the_user_can_end_it() {
        let care = Care::default();
        care.interruption.request();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & wait"]);
        let error = output(&mut shell, "asking", "install it", &care).unwrap_err();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
    }

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
