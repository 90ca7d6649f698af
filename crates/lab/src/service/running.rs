//! A running service.

use super::ServiceSettings;
use super::output::Output;
use crate::error::{Error, Result};
use crate::guardian::processes::{Leader, Processes};
use crate::interruption::{Interruption, WaitLimit};
use crate::placing::pinned;
use crate::proc_files::pid;
use crate::shell;
use crate::whereabouts::servers;
use crate::whereabouts::servers::{Address, listening};
use model::plan::service::{Ready, Service};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The first process of a service.
#[derive(Debug)]
pub(super) struct Running {
    name: String,
    child: Child,
    leader: Option<Leader>,
    processes: Processes,
    output: Output,
    /// iotoll has asked it to end, so its exit is no failure.
    ending: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts it.
    ///
    /// # Errors
    /// When the program cannot be started, or cannot be pinned.
    pub fn start(service: &Service, settings: &ServiceSettings) -> Result<Self> {
        let name = &service.name;
        let failed = |error| Error::instrument(format!("service '{name}': a pipe for its output"), error);
        let wanted = match &service.ready {
            Ready::Says(text) => Some(text.as_str()),
            Ready::Port(_) | Ready::Socket(_) => None,
        };
        let (output, writer) = Output::new(wanted).map_err(failed)?;
        let program = service.command.first().map_or("", String::as_str);
        let path = if program == "iotoll" { own_program(&settings.program) } else { PathBuf::from(program) };
        let mut command = Command::new(path);
        command
            .args(service.command.iter().skip(1))
            .env(servers::SERVICE, servers::service_value(name))
            .process_group(0);
        command.stdin(Stdio::null());
        command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let processes = settings.guardian.processes()?;
        processes.mark(&mut command);
        settings.addresses.release(service.port);
        let child = pinned(&service.cpus, || command.spawn()).map_err(|error| {
            Error::Refused(format!("service '{name}': {program}: cannot be started: {error}; check its command"))
        })?;
        processes.led_by(child.id());
        let leader = Leader::of(child.id());
        let ending = Arc::new(AtomicBool::new(false));
        Ok(Self { name: name.clone(), child, leader, processes, output, ending, watcher: None })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn is_ready(&self, service: &Service) -> bool {
        is_ready(&service.ready, self.child.id(), &self.output)
    }

    /// The error of a service that was not ready in time.
    pub fn not_ready(&self, service: &Service) -> Error {
        let (name, seconds, command) = (&self.name, service.timeout_seconds, service.command.join(" "));
        let awaited = match &service.ready {
            Ready::Says(text) => format!("no line of its output contains '{text}'"),
            Ready::Port(port) => format!("nothing listens on port {port}"),
            Ready::Socket(path) => format!("nothing listens on {path}"),
        };
        let output = self.output.last_lines();
        Error::Failed(format!("service '{name}' is not ready after {seconds} s: {awaited}; `{command}`{output}"))
    }

    /// Runs the shell command that fills it.
    pub fn fill(&self, service: &Service, settings: &ServiceSettings, limit: &WaitLimit) -> Result<()> {
        let Some(fill) = &service.fill else { return Ok(()) };
        let what = format!("filling service '{}'", self.name);
        let processes = settings.guardian.passing_processes()?;
        shell::run_while(&what, &what, (&in_shell(fill, &settings.program), fill), limit, &processes)
    }

    /// Watches for its exit, which ends the measurement.
    pub fn watch(&mut self, interruption: &Arc<Interruption>) -> Result<()> {
        let (ending, interruption) = (self.ending.clone(), interruption.clone());
        let Some(process) = pid(self.child.id()) else { return Ok(()) };
        let watcher = std::thread::Builder::new().name("iotoll-service".to_owned()).stack_size(128 << 10);
        let watcher = watcher.spawn(move || {
            // NOWAIT: the process stays a zombie until `clear_away` reaps it.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(process), options), Err(Errno::INTR)) {}
            if !ending.load(Ordering::Acquire) {
                interruption.request_by_failure();
            }
        });
        let failed = |error| Error::instrument(format!("watching service '{}'", self.name), error);
        self.watcher = Some(watcher.map_err(failed)?);
        Ok(())
    }

    /// The error of a service that has exited by itself.
    pub fn death(&self) -> Option<Error> {
        if self.lives() || self.ending.load(Ordering::Acquire) {
            return None;
        }
        let how = match pid(self.child.id()).and_then(how_it_ended) {
            Some(how) => format!(" ({how})"),
            None => String::new(),
        };
        let stay = if how.contains("status 0") { ", and a service has to stay in the foreground" } else { "" };
        Some(Error::Failed(format!("service '{}' ended by itself{how}{stay}{}", self.name, self.output.last_lines())))
    }

    pub fn lives(&self) -> bool {
        self.leader.is_some_and(Leader::lives)
    }

    /// Sends SIGTERM to its process group.
    pub fn ask_to_end(&self) {
        self.ending.store(true, Ordering::Release);
        if let Some(group) = pid(self.child.id()) {
            // It may have exited already. A stopped process needs SIGCONT to act on SIGTERM.
            let _ = kill_process_group(group, Signal::TERM);
            let _ = kill_process_group(group, Signal::CONT);
        }
    }

    /// Kills what is left of its processes and reaps it.
    pub fn clear_away(&mut self) -> Result<()> {
        let killed = self.processes.kill_with_all_it_began(self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        killed.map_err(|why| Error::Failed(format!("ending service '{}': {why}", self.name)))
    }
}

/// Whether a service with this first process has printed a text, or listens by the kernel's tables. iotoll does not connect to find out:
/// some servers exit after their first client, and a connection to a free local port can connect to itself.
pub(super) fn is_ready(ready: &Ready, process: u32, output: &Output) -> bool {
    match ready {
        Ready::Says(_) => output.is_wanted(),
        Ready::Port(port) => listening(process, &Address::Port(*port)),
        Ready::Socket(path) => listening(process, &Address::Path(path.clone())),
    }
}

/// How a zombie exited.
fn how_it_ended(process: Pid) -> Option<String> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(process), options).ok()??;
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => Some(format!("exit status {status}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        (None, None) => None,
    }
}

/// The path of this program, so that process lists show its name; `otherwise` if another file has replaced it.
fn own_program(otherwise: &Path) -> PathBuf {
    let identity = |path: &Path| fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()));
    let same = |path: &PathBuf| identity(path).is_some_and(|this| Some(this) == identity(otherwise));
    std::env::current_exe().ok().filter(same).unwrap_or_else(|| otherwise.to_owned())
}

/// A shell command, with `iotoll` as the first word replaced by the path of this program.
fn in_shell(command: &str, program: &Path) -> String {
    match command.trim_start().strip_prefix("iotoll ") {
        Some(rest) => {
            // /proc/self would be the shell.
            let path = own_program(program).display().to_string();
            let path = path.replace("/proc/self/", &format!("/proc/{}/", std::process::id()));
            format!("'{}' {rest}", path.replace('\'', r"'\''"))
        }
        None => command.to_owned(),
    }
}
