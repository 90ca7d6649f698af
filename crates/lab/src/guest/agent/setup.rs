//! Steps that a stack is set up with.

use super::super::protocol::MODULE_LIST;
use super::super::stack::Step;
use super::{kernel_log, osdmap, services};
use crate::error::{Error, Result};
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
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
    steps.into_iter().try_for_each(|step| Setup::default().perform(step))
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
            Err(error) => {
                let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
                return Err(kernel_log::explained(failed(error.into()), &[&name]));
            }
        }
    }
    Ok(())
}

pub(super) fn set_sysctl(name: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    write(&path, value).map_err(|error| Error::instrument(format!("sysctl {name}={value}"), error))
}

/// What steps are performed with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Setup<'a> {
    /// Environment of programs, beside that of every program.
    pub environment: &'a [(&'a str, &'a str)],
    /// Mount options of the assignment, appended where a step takes them.
    pub options: &'a str,
}

impl Setup<'_> {
    pub(super) fn perform(self, step: Step) -> Result<()> {
        let failed = |what: String| move |error: std::io::Error| Error::instrument(what, error);
        match step {
            Step::Folder(path) => make_folder(path),
            Step::Mount(kind, source, folder, own) => mounted(kind, source, folder, own, ""),
            Step::MountWithOptions(kind, source, folder, own) => mounted(kind, source, folder, own, self.options),
            Step::Write(path, text) => {
                write(path, text).map_err(failed(format!("writing '{}' to {path}", text.trim())))
            }
            Step::WriteWithOptions { path, before, after } => {
                let comma = if self.options.is_empty() { "" } else { "," };
                let text = format!("{before}{comma}{}{after}", self.options);
                let written = write(path, &text).map_err(failed(format!("writing '{text}' to {path}")));
                written.map_err(|error| kernel_log::explained(error, &["libceph", "rbd"]))
            }
            Step::Link(to, at) => std::os::unix::fs::symlink(to, at).map_err(failed(format!("linking {at}"))),
            Step::Run(line) => self.run(line),
            Step::RunWithin(line, seconds, else_wrong) => {
                self.run_within(line, Duration::from_secs(seconds), else_wrong)
            }
            Step::Start(line) => services::start(line, self.command(line)),
            Step::CreatePool(path) => osdmap::create_pool(Path::new(path)),
            Step::Settle(seconds) => {
                std::thread::sleep(Duration::from_secs(seconds));
                Ok(())
            }
            Step::Await(path) => wait_for(path, || Path::new(path).exists()),
            Step::AwaitPort(port) => wait_for(&format!("a server at port {port}"), || {
                TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Duration::from_secs(1))
                    .is_ok()
            }),
        }
    }

    fn command(self, line: &str) -> Command {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).env("PATH", SEARCH_PATH).env("HOME", "/").envs(self.environment.iter().copied());
        command.stdin(Stdio::null());
        command
    }

    fn run(self, line: &str) -> Result<()> {
        let output = self.command(line).output();
        let output = output.map_err(|error| Error::instrument(format!("running `{line}`"), error))?;
        ended(line, output.status, &String::from_utf8_lossy(&output.stderr))
    }

    /// Runs a program that would wait for ever if something else is wrong: `else_wrong`.
    fn run_within(self, line: &str, longest: Duration, else_wrong: &str) -> Result<()> {
        let failed = |error| Error::instrument(format!("running `{line}`"), error);
        // A file and no pipe, which would be full some day.
        let said = File::create(SAID).map_err(failed)?;
        let mut child = self.command(line).stdout(Stdio::null()).stderr(said).spawn().map_err(failed)?;
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                let said = fs::read(SAID).unwrap_or_default();
                return ended(line, status, &String::from_utf8_lossy(&said));
            }
            if begun.elapsed() > longest {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Failed(format!(
                    "{else_wrong}: `{line}` does not end within {} s of the guest's clock{}",
                    longest.as_secs(),
                    services::last_words()
                )));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Where a program's complaints go.
const SAID: &str = "/run/iotoll-said";
/// Of the guest's clock.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The error of a program that failed.
fn ended(line: &str, status: ExitStatus, said: &str) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let said = services::last_line(said).unwrap_or_else(|| "it printed nothing".to_owned());
    Err(Error::Failed(format!("`{line}` failed ({status}): {said}")))
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

fn wait_for(what: &str, mut there: impl FnMut() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !there() {
        if begun.elapsed() > LONGEST_WAIT {
            return Err(Error::Failed(format!("{what} does not appear within {} s", LONGEST_WAIT.as_secs())));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
