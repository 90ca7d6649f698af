//! What a test needs of the machine, and gives back: skips, root, loop devices, file systems.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Says why a test does not run here: on standard error, and where `./check` counts it.
pub fn skip(test: &str, reason: &str) {
    let line = format!("SKIP {test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("IOTOLL_SKIP_LOG").filter(|path| !path.is_empty()) {
        let mut log = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program can be started at all.
pub fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Runs a tool of the system: what it printed, or why it failed.
pub fn tool(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// A program of somebody else that runs until this is dropped.
pub struct Peer(Child);

impl Peer {
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap_or_else(|error| panic!("{program} must be installed: {error}")))
    }

    /// Ends it now.
    pub fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.end();
    }
}

/// A loop device, detached when dropped.
pub struct LoopDevice {
    pub path: String,
}

impl LoopDevice {
    /// A device over `backing`, or why there can be none.
    pub fn attach(backing: &Path, options: &[&str]) -> Result<Self, String> {
        if !is_root() {
            return Err("attaching a loop device takes root".to_owned());
        }
        let backing = backing.display().to_string();
        let arguments: Vec<&str> = options.iter().copied().chain(["--find", "--show", &backing]).collect();
        Ok(Self { path: tool("losetup", &arguments)? })
    }

    /// Its name as the kernel's.
    pub fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // A panic here would hide the one that unwinds.
        let _ = tool("losetup", &["--detach", &self.path]);
    }
}

/// A file system, unmounted when dropped.
pub struct Mount {
    pub path: PathBuf,
}

impl Mount {
    /// Mounts with mount(8), or says why not.
    pub fn new(path: PathBuf, arguments: &[&str]) -> Result<Self, String> {
        if !is_root() {
            return Err("mounting takes root".to_owned());
        }
        fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        let place = path.display().to_string();
        let arguments: Vec<&str> = arguments.iter().copied().chain([place.as_str()]).collect();
        tool("mount", &arguments)?;
        Ok(Self { path })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // As above; what is still in use goes when its last user does.
        let _ = tool("umount", &["--lazy", &self.path.display().to_string()]);
    }
}
