//! A guest as a QEMU process whose clock counts instructions: started, saved to a file, restored, watched and ended.

use super::boot_files::Guest;
use super::protocol::{ASSIGNMENT, ASSIGNMENT_BYTES, Done, Reply};
use super::snapshot;
use super::tool::Care;
use lab::error::{Error, Result};
use lab::guardian::folder::OwnFolder;
use lab::guardian::processes::Processes;
use lab::interruption::Interruption;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const QEMU: &str = "qemu-system-x86_64";
/// Memory of a guest in MiB: what the largest stack needs beside 128 MiB of emulated persistent memory.
pub(super) const MEMORY_MIB: u32 = 640;
/// The CPU: string instructions count one a repetition, so the kernel is told that they are slow and uses loops of words. The kernel chooses some of
/// its loops by the vendor, and QEMU 10 has another one by default than QEMU 7.
pub(super) const CPU: &str = "max,-erms,-fsrm,vendor=GenuineIntel,family=6,model=6,stepping=3";
/// Parameters of every guest's kernel.
const KERNEL_PARAMETERS: &str = "console=ttyS0 quiet mitigations=off tsc=reliable panic=-1";
/// Time between two checks of a state.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What a guest that is to be restored measures with.
#[derive(Clone, Copy)]
pub(super) struct Measuring<'a> {
    /// The plugin's library.
    pub plugin: &'a Path,
    pub assignment: &'a [u8],
}

/// A running guest. It ends when dropped.
#[derive(Debug)]
pub(super) struct Machine {
    child: Child,
    ended: Option<ExitStatus>,
    processes: Processes,
    folder: OwnFolder,
    /// How long it may take: CPU time, so that a busy host does not make it look hung, and as long without any.
    timeout: Duration,
    /// The CPU time that QEMU had spent, and since when it has spent none.
    seen: Cell<(u64, Instant)>,
    interruption: Arc<Interruption>,
    what: String,
    qmp: Option<Qmp>,
}

impl Machine {
    /// Starts a guest: to be saved, or to be restored and to measure. What `ends` it early is also how long it may take.
    pub(super) fn start(guest: &Guest, ends: (&Care, Duration), measuring: Option<Measuring>) -> Result<Self> {
        let (care, timeout) = ends;
        let folder = OwnFolder::make(&care.guardian, &std::env::temp_dir(), "iotoll-guest-")?;
        let at = |name: &str| folder.path().join(name);
        let assigned = at("assignment");
        // Of the same size also where nothing is assigned yet: a device of the same guest.
        let text = measuring.map_or_else(|| vec![b' '; ASSIGNMENT_BYTES], |measuring| measuring.assignment.to_vec());
        fs::write(&assigned, text).map_err(|error| Error::file(&assigned, "writing", error))?;
        let mut command = Command::new(QEMU);
        command.args(["-M", "q35", "-accel", "tcg", "-cpu", CPU, "-m", &MEMORY_MIB.to_string(), "-smp", "1"]);
        command.args(["-icount", "shift=0,sleep=off", "-rtc", "base=2020-01-01T00:00:00,clock=vm"]);
        // Of QEMU's random numbers: the kernel's layout, its hash keys.
        let seed = guest.replicate + 1;
        command.args(["-seed", &seed.to_string(), "-display", "none"]);
        command.args(["-no-reboot", "-nodefaults", "-no-user-config", "-device", "pvpanic"]);
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-action", "panic=pause"]);
        command.arg("-kernel").arg(&guest.image.kernel).arg("-initrd").arg(&guest.image.initramfs);
        command.args(["-append", &format!("{KERNEL_PARAMETERS} {}", guest.all_parameters())]);
        // Its own files are named from its folder: some of these options end a path at a comma, others do not.
        command.current_dir(folder.path());
        command.args(["-serial", "file:console", "-debugcon", "file:replies", "-qmp", "unix:qmp,server=on,wait=off"]);
        command.args(["-fw_cfg", &format!("name={ASSIGNMENT},file=assignment")]);
        if let Some(Measuring { plugin, .. }) = measuring {
            // A comma ends a path inside an option unless it is doubled.
            let plugin = plugin.display().to_string().replace(',', ",,");
            command.args(["-plugin", &format!("{plugin},out=counts"), "-incoming", "unix:incoming"]);
        }
        let failed = |error| Error::instrument("the guest's error file", error);
        command.stderr(File::create(at("errors")).map_err(failed)?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let processes = care.guardian.passing_processes()?;
        processes.mark(&mut command);
        let child = command.spawn().map_err(|error| {
            Error::Refused(format!("{QEMU}: cannot be started: {error}; install it (Debian: qemu-system-x86)"))
        })?;
        processes.led_by(child.id());
        Ok(Self {
            child,
            ended: None,
            processes,
            folder,
            timeout,
            seen: Cell::new((0, Instant::now())),
            interruption: care.interruption.clone(),
            what: guest.what.clone(),
            qmp: None,
        })
    }

    /// Restores a guest from the file that it was saved to. It is paused then, and gets its assignment when it goes on.
    pub(super) fn restore(guest: &Guest, ends: (&Care, Duration), measuring: Measuring, saved: &Path) -> Result<Self> {
        let mut machine = Self::start(guest, ends, Some(measuring))?;
        let socket = machine.path("incoming");
        let stream = machine.appearing(|| UnixStream::connect(&socket).ok())?;
        snapshot::feed(saved, stream, &mut || machine.check_patience())?;
        machine.wait_for_pause()?;
        Ok(machine)
    }

    /// Waits until the guest pauses itself, ready for an assignment, saves it to a file, and ends it.
    pub(super) fn save(mut self, path: &Path) -> Result<()> {
        self.wait_for_pause()?;
        let Some(Reply::Ready) = self.reply()? else { return Err(self.without_result()) };
        // Its clock follows its reply.
        let (_, after) = self.replies();
        let clock = after.first_chunk::<{ sys::guest::CLOCK_BYTES }>().map(|bytes| u64::from_le_bytes(*bytes));
        let without = || Error::Failed(format!("{}: paused without telling its clock", self.what));
        let clock = clock.ok_or_else(without)?;
        let failed = |error| Error::instrument("the socket that a guest is saved through", error);
        let listener = UnixListener::bind(self.path("outgoing")).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        // As fast as it can.
        self.ask("migrate-set-parameters", json!({ "max-bandwidth": 1_u64 << 40 }))?;
        self.ask("migrate", json!({ "uri": "unix:outgoing" }))?;
        let (stream, _) = self.appearing(|| listener.accept().ok())?;
        snapshot::store(stream, path, clock, &mut || self.check_patience())?;
        self.wait_for_status("query-migrate", "completed")
    }

    /// Lets a restored guest go on, and waits until it has ended. Returns its reply, what the plugin counted, and the kernel's symbols, if they
    /// were asked for.
    pub(super) fn finish(mut self) -> Result<(Done, Vec<u8>, Vec<u8>)> {
        match self.ask("cont", json!({})) {
            // It may have ended before QEMU answered.
            Err(_) if self.ended.is_some() => {}
            answer => _ = answer?,
        }
        self.until(|machine| Ok(machine.has_ended()?.then_some(())))?;
        let Some(Reply::Done(done)) = self.reply()? else { return Err(self.without_result()) };
        let (_, symbols) = self.replies();
        if symbols.len() as u64 != done.symbols_bytes {
            return Err(Error::Failed(format!(
                "{}: its output is incomplete; check that {} has space, or set TMPDIR to another folder",
                self.what,
                std::env::temp_dir().display()
            )));
        }
        Ok((done, fs::read(self.path("counts")).unwrap_or_default(), symbols))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Asks QEMU, and says why it has ended if it has.
    fn ask(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let mut qmp = match self.qmp.take() {
            Some(qmp) => qmp,
            None => {
                let path = self.path("qmp");
                self.appearing(|| Qmp::connect(&path))?
            }
        };
        let answer = qmp.command(command, arguments, &mut || self.check_patience());
        self.qmp = Some(qmp);
        match answer {
            Err(Error::Instrument { .. }) if self.ends_soon()? => Err(self.without_result()),
            answer => answer,
        }
    }

    /// Waits until the guest pauses itself, which QEMU takes for a panic.
    fn wait_for_pause(&mut self) -> Result<()> {
        self.wait_for_status("query-status", "guest-panicked")
    }

    fn wait_for_status(&mut self, query: &str, wanted: &str) -> Result<()> {
        self.until(|machine| {
            let answer = machine.ask(query, json!({}))?;
            match answer.get("status").and_then(Value::as_str) {
                Some("failed") => Err(Error::Failed(format!("{}: QEMU could not save the guest", machine.what))),
                status => Ok((status == Some(wanted)).then_some(())),
            }
        })
    }

    /// Waits for something that QEMU makes.
    fn appearing<T>(&mut self, mut there: impl FnMut() -> Option<T>) -> Result<T> {
        self.until(|machine| match there() {
            None if machine.has_ended()? => Err(machine.without_result()),
            found => Ok(found),
        })
    }

    fn until<T>(&mut self, mut there: impl FnMut(&mut Self) -> Result<Option<T>>) -> Result<T> {
        loop {
            if let Some(found) = there(self)? {
                return Ok(found);
            }
            self.check_patience()?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether QEMU, which has closed a socket, ends.
    fn ends_soon(&mut self) -> Result<bool> {
        const SOON: Duration = Duration::from_secs(2);
        let begun = Instant::now();
        while !self.has_ended()? && begun.elapsed() < SOON {
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(self.ended.is_some())
    }

    fn check_patience(&self) -> Result<()> {
        if self.interruption.is_requested() {
            return Err(Error::Interrupted(format!("while {} ran", self.what)));
        }
        let (seen, mut since) = self.seen.get();
        // A process that has ended tells nothing more.
        let spent = sys::clock::process_nanos(self.child.id()).unwrap_or(seen);
        if spent != seen {
            since = Instant::now();
        }
        self.seen.set((spent, since));
        if Duration::from_nanos(spent) > self.timeout || since.elapsed() > self.timeout {
            let seconds = self.timeout.as_secs();
            return Err(Error::Hung(format!(
                "{} does not answer after {seconds} s of CPU time, or without any, and was killed; {}; --hang-timeout gives it longer",
                self.what,
                self.last_line()
            )));
        }
        Ok(())
    }

    fn has_ended(&mut self) -> Result<bool> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().map_err(|error| Error::instrument("waiting for QEMU", error))?;
        }
        Ok(self.ended.is_some())
    }

    /// The first line from the guest, if it is complete, and what follows it.
    fn replies(&self) -> (Option<Vec<u8>>, Vec<u8>) {
        let mut line = fs::read(self.path("replies")).unwrap_or_default();
        match line.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                let after = line.split_off(end + 1);
                (Some(line), after)
            }
            None => (None, line),
        }
    }

    fn reply(&self) -> Result<Option<Reply>> {
        let broken = |error: serde_json::Error| Error::Failed(format!("{}: unreadable reply: {error}", self.what));
        self.replies().0.map(|line| serde_json::from_slice(&line).map_err(broken)).transpose()
    }

    /// The error of a guest that ended or stopped before its result: its own, if it sent one.
    fn without_result(&self) -> Error {
        let what = &self.what;
        match self.reply() {
            Ok(Some(Reply::Failed(why))) => return Error::Failed(format!("{what}: {why}")),
            Err(error) => return error,
            Ok(_) => {}
        }
        match self.ended.and_then(|status| status.signal()) {
            // The kernel's, when memory is short.
            Some(9) => Error::Failed(format!(
                "{what}: QEMU was killed by SIGKILL, perhaps because memory was short; see dmesg"
            )),
            Some(signal) => Error::Failed(format!("{what}: QEMU was killed by signal {signal}")),
            None => Error::Failed(format!("{what} ended without a result; {}", self.last_line())),
        }
    }

    /// What the guest's kernel or QEMU printed that explains it best.
    fn last_line(&self) -> String {
        let read = |name: &str| {
            let bytes = fs::read(self.path(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (errors, console) = (read("errors"), read("console"));
        if let Some(line) = errors.lines().rfind(|line| !line.trim().is_empty()) {
            return format!("QEMU says: {}", line.trim());
        }
        let telling = console.lines().find(|line| line.contains("Kernel panic") || line.contains("BUG:"));
        match telling.or_else(|| console.lines().rfind(|line| !line.trim().is_empty())) {
            Some(line) => format!("its kernel says: {}", line.trim()),
            None => "its kernel printed nothing".to_owned(),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = &self.processes;
    }
}

/// How often patience is asked for while QEMU does not answer.
pub(super) const ASK_INTERVAL: Duration = Duration::from_millis(20);

/// Says whether to go on waiting for QEMU, which may hang.
pub(super) type Patience<'a> = dyn FnMut() -> Result<()> + 'a;

/// QEMU's control socket: one command at a time, and its answer.
#[derive(Debug)]
struct Qmp {
    stream: UnixStream,
    /// What has been read and is no complete line yet.
    read: Vec<u8>,
    greeted: bool,
}

impl Qmp {
    /// Connects, if QEMU listens already.
    fn connect(path: &Path) -> Option<Self> {
        let stream = UnixStream::connect(path).ok()?;
        stream.set_read_timeout(Some(ASK_INTERVAL)).ok()?;
        Some(Self { stream, read: Vec::new(), greeted: false })
    }

    /// Sends a command and returns its answer.
    fn command(&mut self, name: &str, arguments: Value, patience: &mut Patience) -> Result<Value> {
        if !self.greeted {
            let failed = |error| Error::instrument("QEMU's greeting", error);
            self.line(&failed, patience)?;
            self.greeted = true;
            self.command("qmp_capabilities", json!({}), patience)?;
        }
        let failed = |error| Error::instrument(format!("QEMU's control command {name}"), error);
        let text = json!({ "execute": name, "arguments": arguments }).to_string();
        self.stream.write_all(text.as_bytes()).map_err(failed)?;
        loop {
            let mut answer = self.line(&failed, patience)?;
            if let Some(error) = answer.get("error") {
                let why = error.get("desc").and_then(Value::as_str).unwrap_or("no reason given").to_owned();
                return Err(failed(std::io::Error::other(why)));
            }
            // Events come between.
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    fn line(&mut self, failed: &dyn Fn(std::io::Error) -> Error, patience: &mut Patience) -> Result<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|error| failed(std::io::Error::other(error)));
            }
            let mut some = [0; 4096];
            match self.stream.read(&mut some) {
                Ok(0) => return Err(failed(std::io::Error::new(ErrorKind::UnexpectedEof, "QEMU has ended"))),
                Ok(count) => self.read.extend(some.iter().take(count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => patience()?,
                Err(error) => return Err(failed(error)),
            }
        }
    }
}
