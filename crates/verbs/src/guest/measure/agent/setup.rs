//! Steps that a stack is set up with; its programs that stay; and what the kernel logged about a failure.

use super::osdmap;
use super::{ports, send};
use crate::guest::measure::protocol::{MODULE_LIST, Reply};
use crate::guest::measure::stack::Step;
use lab::error::{Error, Result};
use rustix::mount::{MountFlags, mount};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest time of the guest's clock for something to appear.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// Where programs are.
const SEARCH_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The file systems that every Linux program expects.
pub(super) fn file_systems() -> Result<()> {
    let own = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/run")];
    own.into_iter().try_for_each(|(kind, folder)| mounted(kind, kind, folder, "", ""))?;
    write("/etc/mtab", "").map_err(|error| Error::file(Path::new("/etc/mtab"), "writing", error))
}

/// Makes this boot differ from those with another number: processes that come and go, memory that stays, which it returns, the phase of the
/// timer's tick.
pub(super) fn perturb(number: u32) -> Vec<Vec<u8>> {
    for _ in 0..number.saturating_mul(7) {
        let _ = Command::new("/init").arg("--version").stdout(Stdio::null()).status();
    }
    let held = (0..number).map(|part| vec![1; 4096 * (part as usize * 13 + 5) + 100]).collect();
    std::thread::sleep(Duration::from_micros(u64::from(number) * 100_037));
    held
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
                return Err(explained(failed(error.into()), &[&name]));
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup<'a> {
    /// Environment of programs, beside that of every program.
    pub environment: &'a BTreeMap<String, String>,
    /// Mount options of the assignment, appended where a step takes them.
    pub options: &'a str,
}

impl Setup<'_> {
    pub(super) fn perform(self, step: &Step) -> Result<()> {
        let failed = |what: String| move |error: std::io::Error| Error::instrument(what, error);
        match step {
            Step::Folder(path) => make_folder(path),
            Step::Mount(kind, source, folder, own) => mounted(kind, source, folder, own, ""),
            Step::MountWithOptions(kind, source, folder, own) => mounted(kind, source, folder, own, self.options),
            Step::Write(path, text) => {
                write(path, text).map_err(failed(format!("writing '{}' to {path}", text.trim())))
            }
            Step::WriteWithOptions(path, before, after) => {
                let comma = if self.options.is_empty() { "" } else { "," };
                let text = format!("{before}{comma}{}{after}", self.options);
                let written = write(path, &text).map_err(failed(format!("writing '{text}' to {path}")));
                written.map_err(|error| explained(error, &["libceph", "rbd"]))
            }
            Step::Link(to, at) => std::os::unix::fs::symlink(to, at).map_err(failed(format!("linking {at}"))),
            Step::Run(line) => self.run(line, None),
            Step::RunWithin(line, seconds, else_wrong) => self.run(line, Some((*seconds, else_wrong))),
            Step::Start(line) => start(line, self.command(line)),
            Step::CreatePool(path) => osdmap::create_pool(Path::new(path)),
            Step::Settle(seconds) => {
                std::thread::sleep(Duration::from_secs(*seconds));
                Ok(())
            }
            Step::Await(path) => wait_for(path, || Path::new(path).exists()),
            Step::AwaitPort(port) => wait_for(&format!("a server at port {port}"), || {
                TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, *port)), Duration::from_secs(1))
                    .is_ok()
            }),
        }
    }

    fn command(self, line: &str) -> Command {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).env("PATH", SEARCH_PATH).env("HOME", "/").envs(self.environment);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a program to its end; `within` if it would wait for ever if something else is wrong: seconds, and what.
    fn run(self, line: &str, within: Option<(u64, &str)>) -> Result<()> {
        let failed = |error| Error::instrument(format!("running `{line}`"), error);
        // A file and no pipe, which would be full some day.
        let said = File::create(SAID).map_err(failed)?;
        let mut child = self.command(line).stdout(Stdio::null()).stderr(said).spawn().map_err(failed)?;
        let begun = Instant::now();
        let status = loop {
            let Some((longest, else_wrong)) = within else { break child.wait().map_err(failed)? };
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if begun.elapsed() > Duration::from_secs(longest) {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Failed(format!(
                    "{else_wrong}: `{line}` does not end within {longest} s of the guest's clock{}",
                    last_words()
                )));
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        if status.success() {
            return Ok(());
        }
        let said = complaint(Path::new(SAID)).unwrap_or_else(|| "it printed nothing".to_owned());
        Err(Error::Failed(format!("`{line}` failed ({status}): {said}")))
    }
}

/// Where a program's complaints go.
const SAID: &str = "/run/iotoll-said";
/// Of the guest's clock.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

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

/// Where complaints of programs that stay go.
const FOLDER: &str = "/run/iotoll";

/// The name of each program that stays, and its file of complaints.
static STARTED: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// Starts a program that stays. A thread waits for its end, and executes nothing until then. If it ends, the guest ends with its last words:
/// its clients would wait for ever.
fn start(line: &str, mut command: Command) -> Result<()> {
    let failed = |error| Error::instrument(format!("starting `{line}`"), error);
    fs::create_dir_all(FOLDER).map_err(failed)?;
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let said = PathBuf::from(format!("{FOLDER}/{}", started.len()));
    let file = File::create(&said).map_err(failed)?;
    let child = command.stdout(Stdio::null()).stderr(file).spawn().map_err(failed)?;
    started.push((program(line).to_owned(), said.clone()));
    let line = line.to_owned();
    std::thread::Builder::new().spawn(move || watch(&line, child, &said)).map_err(failed)?;
    Ok(())
}

/// Waits until the program ends, and ends the guest.
fn watch(line: &str, mut child: Child, said: &Path) {
    let how = match child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let words = complaint(said).map_or_else(String::new, |words| format!(": {words}"));
    let why = format!("`{}` has ended ({how}){words}", program(line));
    if let Ok(ports) = ports() {
        send(&ports, &Reply::Failed(why));
        ports.exit(0);
    }
}

/// What the programs said last, for the error of a client that waits for them; empty if they said nothing.
fn last_words() -> String {
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let words = started.iter().filter_map(|(name, said)| Some(format!("; {name} says: {}", complaint(said)?)));
    words.collect()
}

fn complaint(said: &Path) -> Option<String> {
    last_line(&String::from_utf8_lossy(&fs::read(said).unwrap_or_default()))
}

/// The last line that says something.
fn last_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

fn program(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or(line)
}

/// Longest record of /dev/kmsg.
const RECORD_BYTES: usize = 8 << 10;

/// The error with the kernel's last message about one of these names, if there is one: an error number alone does not say which of many reasons
/// it was.
fn explained(error: Error, about: &[&str]) -> Error {
    match last_about(&records(), about) {
        Some(message) => Error::Failed(format!("{error}; the kernel says: {message}")),
        None => error,
    }
}

/// The records of the kernel's log, one read(2) each.
fn records() -> Vec<String> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().try_into().unwrap_or_default();
    let Ok(mut log) = OpenOptions::new().read(true).custom_flags(nonblocking).open("/dev/kmsg") else {
        return Vec::new();
    };
    let mut records = Vec::new();
    let mut buffer = vec![0; RECORD_BYTES];
    while let Ok(length) = log.read(&mut buffer)
        && length > 0
    {
        records.push(String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned());
    }
    records
}

/// The last message that begins with one of the names: `6,1234,5678,-;MESSAGE`, then lines of properties.
fn last_about(records: &[String], about: &[&str]) -> Option<String> {
    let messages = records.iter().rev().filter_map(|record| record.split_once(';')?.1.lines().next());
    let mut own = messages.filter(|message| about.iter().any(|name| message.starts_with(name)));
    own.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_last_line_that_says_something() {
        assert_eq!(last_line("one\n two \n\n").as_deref(), Some("two"));
        assert_eq!(last_line(" \n"), None);
        assert_eq!(program("ceph-osd -i 0"), "ceph-osd");
    }

    #[test]
    fn the_last_message_about_a_name_explains() {
        let records = [
            "6,1,2,-;libceph: bad option at 'x'\n SUBSYSTEM=ceph\n".to_owned(),
            "6,2,3,-;rbd: Unknown parameter 'y'\n".to_owned(),
            "6,3,4,-;eth0: up\n".to_owned(),
        ];
        assert_eq!(last_about(&records, &["libceph", "rbd"]).as_deref(), Some("rbd: Unknown parameter 'y'"));
        assert_eq!(last_about(&records, &["libceph"]).as_deref(), Some("libceph: bad option at 'x'"));
        assert_eq!(last_about(&records, &["nfs"]), None);
    }
}
