//! Steps that a stack is set up with.

use super::super::protocol::MODULE_LIST;
use super::super::stack::Step;
use crate::error::{Error, Result};
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time of the guest's clock for something to appear.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// Where programs are.
pub(super) const SEARCH_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The file systems that every Linux program expects.
pub(super) fn file_systems() -> Result<()> {
    let steps = [
        Step::Mount("proc", "proc", "/proc", ""),
        Step::Mount("sysfs", "sysfs", "/sys", ""),
        Step::Mount("devtmpfs", "devtmpfs", "/dev", ""),
        Step::Mount("tmpfs", "tmpfs", "/tmp", ""),
        Step::Mount("tmpfs", "tmpfs", "/run", ""),
        Step::Write("/etc/mtab", ""),
    ];
    steps.into_iter().try_for_each(|step| perform(step, ""))
}

/// What a replicate holds to differ from the others.
pub(super) struct Perturbation(#[allow(dead_code, reason = "the memory is held")] Vec<Vec<u8>>);

/// Makes this boot differ from those with another number: processes that come and go, memory that stays, the phase of the
/// timer's tick.
pub(super) fn perturb(number: u32) -> Perturbation {
    for _ in 0..number.saturating_mul(7) {
        let _ = Command::new("/init").arg("--version").stdout(Stdio::null()).status();
    }
    let held = (0..number).map(|part| vec![1; 4096 * (part as usize * 13 + 5) + 100]).collect();
    std::thread::sleep(Duration::from_micros(u64::from(number) * 100_037));
    Perturbation(held)
}

/// Loads the modules of the list, in order.
pub(super) fn load_modules() -> Result<()> {
    let list =
        fs::read_to_string(MODULE_LIST).map_err(|error| Error::file(Path::new(MODULE_LIST), "reading", error))?;
    for line in list.lines() {
        let (path, parameters) = line.split_once(' ').unwrap_or((line, ""));
        let failed = |error: std::io::Error| Error::instrument(format!("loading module {path}"), error);
        let file = File::open(path).map_err(failed)?;
        let parameters = CString::new(parameters).map_err(|error| failed(error.into()))?;
        match rustix::system::finit_module(&file, &parameters, 0) {
            // It is built in, or another module has asked for it.
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
    Ok(())
}

pub(super) fn set_sysctl(name: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    write(&path, value).map_err(|error| Error::instrument(format!("sysctl {name}={value}"), error))
}

/// Performs a step; `options` are appended where the step takes them.
pub(super) fn perform(step: Step, options: &str) -> Result<()> {
    let failed = |what: String| move |error: std::io::Error| Error::instrument(what, error);
    match step {
        Step::Folder(path) => make_folder(path),
        Step::Mount(kind, source, folder, own) => mounted(kind, source, folder, own, ""),
        Step::MountWithOptions(kind, source, folder, own) => mounted(kind, source, folder, own, options),
        Step::Write(path, text) => write(path, text).map_err(failed(format!("writing '{}' to {path}", text.trim()))),
        Step::Link(to, at) => std::os::unix::fs::symlink(to, at).map_err(failed(format!("linking {at}"))),
        Step::Run(line) => run(line),
        Step::Start(line) => {
            let spawned = command(line).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            spawned.map(drop).map_err(failed(format!("starting `{line}`")))
        }
        Step::Await(path) => wait_for(path, || Path::new(path).exists()),
        Step::AwaitPort(port) => wait_for(&format!("a server at port {port}"), || {
            TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Duration::from_secs(1)).is_ok()
        }),
    }
}

fn make_folder(path: &str) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Error::file(Path::new(path), "making the folder", error))
}

/// mkdir(2) in configfs and sysfs has the effect; elsewhere the folder may exist.
fn mounted(kind: &str, source: &str, folder: &str, own: &str, more: &str) -> Result<()> {
    if !Path::new(folder).exists() {
        make_folder(folder)?;
    }
    let all: Vec<&str> = own.split(',').chain(more.split(',')).filter(|word| !word.is_empty()).collect();
    let flags = if all.contains(&"noatime") { MountFlags::NOATIME } else { MountFlags::empty() };
    let data = all.into_iter().filter(|word| *word != "noatime").collect::<Vec<_>>().join(",");
    let failed = |error| Error::instrument(format!("mounting {source} ({kind}) at {folder} with '{data}'"), error);
    let text = CString::new(data.as_str()).map_err(|error| failed(error.into()))?;
    match mount(source, folder, kind, flags, text.as_c_str()) {
        // The kernel has mounted it already, as it may do with devtmpfs.
        Ok(()) | Err(rustix::io::Errno::BUSY) => Ok(()),
        Err(error) => Err(failed(error.into())),
    }
}

/// Writes with one write(2), as files of the kernel need it.
fn write(path: &str, text: &str) -> std::io::Result<()> {
    if let Some(folder) = Path::new(path).parent().filter(|folder| !folder.exists()) {
        fs::create_dir_all(folder)?;
    }
    let kernel = ["/proc", "/sys", "/dev"].iter().any(|root| path.starts_with(root));
    OpenOptions::new().write(true).create(!kernel).truncate(!kernel).open(path)?.write_all(text.as_bytes())
}

fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env("PATH", SEARCH_PATH).env("HOME", "/");
    command
}

fn run(line: &str) -> Result<()> {
    let output = command(line).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Error::instrument(format!("running `{line}`"), error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next_back().unwrap_or("it printed nothing");
    Err(Error::Failed(format!("`{line}` failed ({}): {said}", output.status)))
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !there() {
        if begun.elapsed() > LONGEST_WAIT {
            return Err(Error::Failed(format!("{what} does not appear within {} s", LONGEST_WAIT.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
