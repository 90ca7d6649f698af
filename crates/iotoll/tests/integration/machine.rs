//! What a test needs of the machine: skips, root, loop devices, file systems.

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// Skips a test where one of these programs is not installed.
macro_rules! needs {
    ($($program:literal),+) => {
        if let Some(missing) = [$($program),+].into_iter().find(|program| !$crate::integration::machine::has(program)) {
            return $crate::integration::machine::skip(&format!("{missing} is not here"));
        }
    };
}
pub(super) use needs;

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

/// The same, or a skip of the test.
#[track_caller]
pub fn tool_or_skip(program: &str, arguments: &[&str]) -> Option<String> {
    if !is_root() {
        skip(&format!("{program} takes root"));
        return None;
    }
    tool(program, arguments).map_err(|reason| skip(&reason)).ok()
}

/// A loop device, detached when dropped.
pub struct LoopDevice {
    pub path: String,
}

impl LoopDevice {
    /// A device over `backing`, or a skip.
    #[track_caller]
    pub fn attach(backing: &Path, options: &[&str]) -> Option<Self> {
        let backing = backing.display().to_string();
        let arguments = [options, &["--find", "--show", &backing]].concat();
        Some(Self { path: tool_or_skip("losetup", &arguments)? })
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
    /// Mounts with mount(8), or skips.
    #[track_caller]
    pub fn new(path: PathBuf, arguments: &[&str]) -> Option<Self> {
        fs::create_dir_all(&path).unwrap();
        tool_or_skip("mount", &[arguments, &[path.to_str().unwrap()]].concat())?;
        Some(Self { path })
    }

    /// One in memory.
    #[track_caller]
    pub fn in_memory(path: PathBuf, size: &str) -> Option<Self> {
        Self::new(path, &["-t", "tmpfs", "-o", &format!("size={size}"), "iotoll-test"])
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // As above; a file system in use is unmounted after its last user.
        let _ = tool("umount", &["--lazy", &self.path.display().to_string()]);
    }
}
