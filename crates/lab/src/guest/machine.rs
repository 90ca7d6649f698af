//! A guest as a QEMU process whose clock counts instructions: started, saved to a file, restored, watched and ended.

use super::protocol::Reply;
use super::qmp::Qmp;
use super::snapshot;
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::guardian::folder::OwnFolder;
use crate::guardian::processes::Processes;
use crate::interruption::Interruption;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fs::{self, File};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const QEMU: &str = "qemu-system-x86_64";
/// Memory of a guest in MiB: what the largest stack needs beside 128 MiB of emulated persistent memory.
pub const MEMORY_MIB: u32 = 640;
/// The CPU: string instructions count one a repetition, so the kernel is told that they are slow and uses loops of words. The kernel chooses some of
/// its loops by the vendor, and QEMU 10 has another one by default than QEMU 7.
pub const CPU: &str = "max,-erms,-fsrm,vendor=GenuineIntel,family=6,model=6,stepping=3";
/// Parameters of every guest's kernel.
const KERNEL_PARAMETERS: &str = "console=ttyS0 quiet mitigations=off tsc=reliable panic=-1";

/// What every guest of a measurement has in common.
#[derive(Clone, Debug)]
pub struct Common {
    /// Kills QEMU if iotoll is killed.
    pub guardian: Guardian,
    /// Longest time for one guest ([`Patience`]).
    pub timeout: Duration,
    /// The plugin's library.
    pub plugin: PathBuf,
    /// Ends the guests.
    pub interruption: Arc<Interruption>,
}

#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// Kernel image.
    pub image: &'a Path,
    /// Its first file system.
    pub initramfs: &'a Path,
    /// Kernel parameters beside those of every guest.
    pub parameters: String,
    /// Seed of QEMU's random numbers: the kernel's layout, its hash keys.
    pub seed: u32,
}

/// What a guest is started for.
#[derive(Clone, Copy)]
enum Purpose<'a> {
    Save,
    /// To be restored and to measure.
    Measure {
        assignment: &'a [u8],
        chains: bool,
    },
    /// To look around in it.
    Look,
}

/// A running guest. It ends when dropped.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    ended: Option<ExitStatus>,
    processes: Processes,
    folder: OwnFolder,
    patience: Patience,
    what: String,
}

/// How long a guest may take: CPU time, so that a busy host does not make it look hung, and as long without any.
#[derive(Debug)]
struct Patience {
    timeout: Duration,
    /// The CPU time that QEMU had spent, and since when it has spent none.
    seen: Cell<(u64, Instant)>,
}

impl Patience {
    fn new(timeout: Duration) -> Self {
        Self { timeout, seen: Cell::new((0, Instant::now())) }
    }

    /// Whether a process has spent it.
    fn is_spent_by(&self, process: u32) -> bool {
        let (seen, mut since) = self.seen.get();
        // A process that has ended tells nothing more.
        let spent = sys::clock::process_nanos(process).unwrap_or(seen);
        if spent != seen {
            since = Instant::now();
        }
        self.seen.set((spent, since));
        Duration::from_nanos(spent) > self.timeout || since.elapsed() > self.timeout
    }
}

impl Machine {
    pub fn boot(boot: &Boot, common: &Common, what: &str) -> Result<Self> {
        Self::start(boot, common, what, Purpose::Save)
    }

    /// Boots a guest whose console is this program's terminal. Its clock is the host's.
    pub(super) fn look(boot: &Boot, common: &Common, what: &str) -> Result<Self> {
        Self::start(boot, common, what, Purpose::Look)
    }

    /// Restores a guest from the file that it was saved to. It is paused then, and gets this assignment when it goes on.
    pub(super) fn restore(
        boot: &Boot,
        saved: &Path,
        assignment: &[u8],
        chains: bool,
        common: &Common,
        what: &str,
    ) -> Result<Restored> {
        let mut machine = Self::start(boot, common, what, Purpose::Measure { assignment, chains })?;
        match machine.fed(saved, &common.interruption) {
            Ok(qmp) => Ok(Restored::Waits(Waiting { machine, qmp })),
            Err(error @ (Error::Interrupted(_) | Error::Hung(_))) => Err(error),
            Err(error) => Ok(Restored::Damaged(error)),
        }
    }

    fn fed(&mut self, saved: &Path, interruption: &Interruption) -> Result<Qmp> {
        let socket = self.folder.path().join("incoming");
        let stream = self.wait_for(|| UnixStream::connect(&socket).ok(), interruption)?;
        snapshot::feed(saved, stream, &mut || self.check_patience(interruption))?;
        let mut qmp = self.connect(interruption)?;
        self.wait_for_state(&mut qmp, "guest-panicked", interruption)?;
        Ok(qmp)
    }

    fn start(boot: &Boot, common: &Common, what: &str, purpose: Purpose) -> Result<Self> {
        let folder = OwnFolder::make(&common.guardian, &std::env::temp_dir(), "iotoll-guest-")?;
        let at = |name: &str| folder.path().join(name);
        let assigned = at("assignment");
        // Of the same size also where nothing is assigned yet: a device of the same guest.
        let text = match purpose {
            Purpose::Measure { assignment, .. } => assignment.to_vec(),
            Purpose::Save | Purpose::Look => vec![b' '; super::protocol::ASSIGNMENT_BYTES],
        };
        fs::write(&assigned, text).map_err(|error| Error::file(&assigned, "writing", error))?;
        let mut command = Command::new(QEMU);
        command.args(["-M", "q35", "-accel", "tcg", "-cpu", CPU, "-m", &MEMORY_MIB.to_string(), "-smp", "1"]);
        if !matches!(purpose, Purpose::Look) {
            command.args(["-icount", "shift=0,sleep=off", "-rtc", "base=2020-01-01T00:00:00,clock=vm"]);
        }
        command.args([
            "-seed",
            &boot.seed.to_string(),
            "-display",
            "none",
            "-no-reboot",
            "-nodefaults",
            "-no-user-config",
        ]);
        command.args([
            "-device",
            "pvpanic",
            "-device",
            "isa-debug-exit,iobase=0xf4,iosize=0x04",
            "-action",
            "panic=pause",
        ]);
        command.arg("-kernel").arg(boot.image).arg("-initrd").arg(boot.initramfs);
        command.args(["-append", &format!("{KERNEL_PARAMETERS} {}", boot.parameters)]);
        // Its own files are named from its folder: some of these options end a path at a comma, others do not.
        command.current_dir(folder.path());
        match purpose {
            Purpose::Look => command.args(["-serial", "mon:stdio"]),
            _ => command.args(["-serial", "file:console"]),
        };
        command.args(["-debugcon", "file:replies", "-qmp", "unix:qmp,server=on,wait=off"]);
        command.args(["-fw_cfg", &format!("name={},file=assignment", super::protocol::ASSIGNMENT)]);
        if let Purpose::Measure { chains, .. } = purpose {
            let (plugin, chains) = (escaped(&common.plugin), if chains { "on" } else { "off" });
            command.args(["-plugin", &format!("{plugin},out=counts,chains={chains}"), "-incoming", "unix:incoming"]);
        }
        let failed = |error| Error::instrument("the guest's error file", error);
        let errors = File::create(at("errors")).map_err(failed)?;
        command.stderr(errors);
        // At a terminal it stays in the group that may read from it.
        if !matches!(purpose, Purpose::Look) {
            command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        }
        let processes = common.guardian.passing_processes()?;
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
            patience: Patience::new(common.timeout),
            what: what.to_owned(),
        })
    }

    /// Waits until the user ends the guest.
    pub(super) fn wait_for_user(mut self, interruption: &Interruption) -> Result<()> {
        while !self.has_ended()? {
            if interruption.is_requested() {
                return Err(Error::Interrupted(format!("while {} ran", self.what)));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        if matches!(self.reply()?, Some(Reply::Ready { .. })) { Ok(()) } else { Err(self.without_result()) }
    }

    /// Waits until the guest pauses itself, ready for an assignment.
    pub(super) fn wait_until_ready(&mut self, interruption: &Interruption) -> Result<Qmp> {
        let mut qmp = self.connect(interruption)?;
        self.wait_for_state(&mut qmp, "guest-panicked", interruption)?;
        match self.reply()? {
            Some(Reply::Ready { .. }) => Ok(qmp),
            _ => Err(self.without_result()),
        }
    }

    /// Saves the guest, which is paused, to a file, and ends it.
    pub(super) fn save(mut self, mut qmp: Qmp, path: &Path, interruption: &Interruption) -> Result<()> {
        let clock = self.clock_of_pause()?;
        let socket = self.folder.path().join("outgoing");
        let failed = |error| Error::instrument("the socket that a guest is saved through", error);
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        // As fast as it can.
        self.ask(&mut qmp, "migrate-set-parameters", json!({ "max-bandwidth": 1_u64 << 40 }), interruption)?;
        self.ask(&mut qmp, "migrate", json!({ "uri": "unix:outgoing" }), interruption)?;
        snapshot::store(&listener, path, clock, &mut || self.check_patience(interruption))?;
        loop {
            let answer = self.ask(&mut qmp, "query-migrate", json!({}), interruption)?;
            match answer.get("status").and_then(Value::as_str) {
                Some("completed") => return Ok(()),
                Some("failed") => return Err(Error::Failed(format!("{}: QEMU could not save the guest", self.what))),
                _ => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// The guest's clock when it paused, which follows its reply.
    fn clock_of_pause(&self) -> Result<u64> {
        let replies = fs::read(self.folder.path().join("replies")).unwrap_or_default();
        let after = replies.iter().position(|byte| *byte == b'\n').and_then(|end| replies.get(end + 1..));
        let clock = after.and_then(|bytes| bytes.first_chunk::<{ sys::guest::CLOCK_BYTES }>());
        let without = || Error::Failed(format!("{}: paused without telling its clock", self.what));
        clock.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(without)
    }

    fn connect(&mut self, interruption: &Interruption) -> Result<Qmp> {
        let path = self.folder.path().join("qmp");
        self.wait_for(|| Qmp::connect(&path), interruption)
    }

    /// Asks QEMU, and says why it has ended if it has.
    fn ask(&mut self, qmp: &mut Qmp, command: &str, arguments: Value, interruption: &Interruption) -> Result<Value> {
        let answer = qmp.command(command, arguments, &mut || self.check_patience(interruption));
        match answer {
            Err(Error::Instrument { .. }) if self.ends_soon()? => Err(self.without_result()),
            answer => answer,
        }
    }

    /// Waits for a run state: `running`, `guest-panicked` (which is a pause), `inmigrate`…
    fn wait_for_state(&mut self, qmp: &mut Qmp, state: &str, interruption: &Interruption) -> Result<()> {
        loop {
            let answer = self.ask(qmp, "query-status", json!({}), interruption)?;
            if answer.get("status").and_then(Value::as_str) == Some(state) {
                return Ok(());
            }
            self.check_patience(interruption)?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn wait_for<T>(&mut self, mut there: impl FnMut() -> Option<T>, interruption: &Interruption) -> Result<T> {
        loop {
            if let Some(found) = there() {
                return Ok(found);
            }
            if self.has_ended()? {
                return Err(self.without_result());
            }
            self.check_patience(interruption)?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether QEMU, which has closed a socket, ends.
    fn ends_soon(&mut self) -> Result<bool> {
        const SOON: Duration = Duration::from_secs(2);
        let begun = Instant::now();
        while begun.elapsed() < SOON {
            if self.has_ended()? {
                return Ok(true);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(false)
    }

    fn check_patience(&self, interruption: &Interruption) -> Result<()> {
        if interruption.is_requested() {
            return Err(Error::Interrupted(format!("while {} ran", self.what)));
        }
        if self.patience.is_spent_by(self.child.id()) {
            let seconds = self.patience.timeout.as_secs();
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

    /// The last complete line from the guest that is a reply.
    fn reply(&self) -> Result<Option<Reply>> {
        let text = fs::read(self.folder.path().join("replies")).unwrap_or_default();
        let Some(end) = text.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line = text.get(..end).unwrap_or_default();
        let broken = |error: serde_json::Error| Error::Failed(format!("{}: unreadable reply: {error}", self.what));
        serde_json::from_slice(line).map(Some).map_err(broken)
    }

    /// The error of a guest that ended or stopped before its result: its own, if it sent one.
    fn without_result(&self) -> Error {
        match self.reply() {
            Ok(Some(Reply::Failed(why))) => Error::Failed(format!("{}: {why}", self.what)),
            Err(error) => error,
            Ok(_) => self.silent(),
        }
    }

    /// The error of a guest that ended or stopped without a reply.
    fn silent(&self) -> Error {
        let what = &self.what;
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
            let bytes = fs::read(self.folder.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (errors, console) = (read("errors"), read("console"));
        if let Some(line) = errors.lines().rfind(|line| !line.trim().is_empty()) {
            return format!("QEMU says: {}", line.trim());
        }
        let telling = console.lines().find(|line| line.contains("Kernel panic") || line.contains("BUG:"));
        match telling.or_else(|| console.lines().rfind(|line| !line.trim().is_empty())) {
            Some(line) => format!("its kernel says: {}", line.trim()),
            // The console is the terminal.
            None if !self.folder.path().join("console").exists() => "its console is shown above".to_owned(),
            None => "its kernel printed nothing".to_owned(),
        }
    }
}

/// Time between two checks of a state.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The result of a guest.
#[derive(Debug)]
pub struct Finished {
    /// What it measured itself.
    pub done: super::protocol::Done,
    /// The plugin's file.
    pub counts: Vec<u8>,
    /// The kernel's symbols, if they were asked for.
    pub symbols: Vec<u8>,
}

/// What became of a restored guest.
#[derive(Debug)]
pub(super) enum Restored {
    /// It waits to go on.
    Waits(Waiting),
    /// It could not be restored from its file: why.
    Damaged(Error),
}

/// A restored guest that waits to go on.
#[derive(Debug)]
pub(super) struct Waiting {
    machine: Machine,
    qmp: Qmp,
}

impl Waiting {
    /// Lets it go on, and waits until it has ended. Returns its reply, and what follows it.
    pub(super) fn finish(self, interruption: &Interruption) -> Result<Finished> {
        let Self { mut machine, mut qmp } = self;
        match qmp.command("cont", json!({}), &mut || machine.check_patience(interruption)) {
            // It may have ended before QEMU answered.
            Err(Error::Instrument { .. }) if machine.ends_soon()? => {}
            answer => _ = answer?,
        }
        drop(qmp);
        while !machine.has_ended()? {
            machine.check_patience(interruption)?;
            std::thread::sleep(POLL_INTERVAL);
        }
        let Some(Reply::Done(done)) = machine.reply()? else { return Err(machine.without_result()) };
        let read = |name: &str| fs::read(machine.folder.path().join(name)).unwrap_or_default();
        let replies = read("replies");
        let after = replies.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let symbols = replies.get(after..).unwrap_or_default().to_vec();
        if symbols.len() as u64 != done.symbols_bytes {
            return Err(Error::Failed(format!(
                "{}: its output is incomplete; check that {} has space, or set TMPDIR to another folder",
                machine.what,
                std::env::temp_dir().display()
            )));
        }
        Ok(Finished { done, counts: read("counts"), symbols })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = &self.processes;
    }
}

/// A path inside an option of QEMU, where a comma ends it unless it is doubled.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
