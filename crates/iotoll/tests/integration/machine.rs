//! What a test needs of the machine: skips, root, loop devices, file systems.

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Reports why a test does not run here: on standard error, and where `./check` counts it.
#[track_caller]
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    // The thread of a test has its name, unless tests run one at a time, in the main thread.
    let named = thread.name().filter(|name| *name != "main").map(str::to_owned);
    let line = format!("SKIP {}: {reason}\n", named.unwrap_or_else(|| Location::caller().to_string()));
    if let Some(path) = std::env::var_os("IOTOLL_SKIP_LOG").filter(|path| !path.is_empty()) {
        let mut log = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }
}

/// Skips the rest of a test whose costs cannot be known: other programs, such as tests beside it, left the machine no idle time.
#[track_caller]
pub fn skip_without_idle_time(finding: &Value) -> bool {
    let phases = finding["phases"].as_array().into_iter().flatten();
    let mut meters = phases.flat_map(|phase| phase["by_meter_detail"].as_array().into_iter().flatten());
    let saturated = meters.any(|meter| meter["reason"].as_str().is_some_and(|reason| reason.contains("never idle")));
    if saturated {
        skip("the machine was never idle, so costs are unknown");
    }
    saturated
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program can be started.
pub fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Runs a system tool: its output, or why it failed.
pub fn tool(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// A foreign program that runs until this is dropped, with the processes of its group.
pub struct Peer(Child);

impl Peer {
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0);
        Self(command.spawn().unwrap_or_else(|error| panic!("{program} must be installed: {error}")))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Ends it now.
    pub fn end(&mut self) {
        // It may have ended already; then its number, which may be another process's by now, is not used.
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        }
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

    /// Its name in the kernel.
    pub fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // A panic here would hide the original one.
        let _ = tool("losetup", &["--detach", &self.path]);
    }
}

/// A file system, unmounted when dropped.
pub struct Mount {
    pub path: PathBuf,
}

impl Mount {
    /// Mounts with mount(8), or returns why that failed.
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
        // As above; a file system in use is unmounted after its last user.
        let _ = tool("umount", &["--lazy", &self.path.display().to_string()]);
    }
}
