//! A command that takes turns: started frozen, thawed for its slices, and ended so that it reports what it did.

use super::drawn_cpus::ThreadTimes;
use super::work_counter::{Source, WorkReader};
use crate::compare::record::CommandReading;
use lab::command::{CommandPlan, Isolation, Output, Prepared, prepared, set_apart};
use lab::error::{Error, Result};
use lab::freezer::Freezable;
use lab::meter::Owners;
use lab::network_namespace;
use lab::placing::pinned;
use lab::proc_files::pid;
use lab::shell::{last_line, short};
use lab::whereabouts;
use model::experiment::EndSignal;
use model::record::Done;
use model::unit::Bytes;
use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};
use std::fs::File;
use std::io;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The shell stops itself and becomes the command when it continues, so that nothing of the command runs before.
const STARTER: &str = "kill -STOP $$; exec \"$@\"";
/// How long the shell may take to stop itself.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a command may take to end after its signal.
const END_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A running command. Dropping it kills it.
pub(super) struct SlicedCommand<'a> {
    /// The arm and the command, for messages.
    pub name: String,
    /// The cases that it runs for.
    pub cases: Vec<usize>,
    child: Child,
    place: &'a mut Freezable,
    output: Output,
    complaints: Option<File>,
    reader: WorkReader,
    members: Vec<u32>,
    begun: Instant,
    awake: bool,
    /// When it was frozen last.
    pub frozen: Instant,
}

/// What a command reports of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnTotal {
    pub done: Done,
    /// Of its bytes, those that it read.
    pub read: Bytes,
}

/// How a command ended by itself.
pub(super) struct Gone {
    /// It succeeded, so it may only have been too short.
    pub well: bool,
    /// What happened, in words.
    pub why: String,
}

impl<'a> SlicedCommand<'a> {
    /// Starts it, frozen, on these CPUs (any, if there are none), to be counted by `chosen`, or by every counter.
    ///
    /// # Errors
    /// When it cannot be started or frozen.
    pub fn start(
        arm: &str,
        cases: Vec<usize>,
        plan: &CommandPlan,
        cpus: &[u32],
        place: &'a mut Freezable,
        chosen: Option<&Source>,
    ) -> Result<Self> {
        let Prepared { command, stdout, output } = prepared(plan)?;
        let name = format!("{arm} (`{}`)", short(&plan.command.join(" ")));
        let mut shell = Command::new("sh");
        shell.args(["-c", STARTER, "sh"]).args(&command).stdout(stdout);
        let complaints = set_apart(&mut shell, Isolation::Alone { longest: Duration::MAX })?;
        place.processes.mark(&mut shell);
        let child =
            pinned(cpus, || shell.spawn()).map_err(|error| Error::instrument("sh: cannot be started", error))?;
        let members = vec![child.id()];
        let mut command = Self {
            name,
            cases,
            child,
            place,
            output,
            complaints,
            reader: WorkReader::default(),
            members,
            begun: Instant::now(),
            awake: false,
            frozen: Instant::now(),
        };
        command.wait_until_stopped()?;
        command.reader.begin(command.child.id(), chosen);
        command
            .place
            .adopt(command.child.id())
            .map_err(|why| command.failed(&format!("could not be frozen: {why}")))?;
        Ok(command)
    }

    fn wait_until_stopped(&self) -> Result<()> {
        let begun = Instant::now();
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while self.wait_status(options).is_none() {
            if begun.elapsed() > START_TIMEOUT {
                return Err(self.failed(&format!("its shell did not start within {} s", START_TIMEOUT.as_secs())));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    fn wait_status(&self, options: WaitIdOptions) -> Option<rustix::process::WaitIdStatus> {
        waitid(WaitId::Pid(pid(self.child.id())?), options).ok().flatten()
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The tasks that are the workload.
    pub fn owners(&self) -> Owners {
        Owners { command: Some(self.process()), ..Owners::default() }
    }

    /// Time since it was started.
    pub fn lived(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Lets it run.
    ///
    /// # Errors
    /// When it cannot be thawed.
    pub fn thaw(&mut self, source: Option<&mut Source>) -> Result<()> {
        self.reader.wake(source);
        self.awake = true;
        self.place.thaw().map_err(|why| self.failed(&why))
    }

    /// Freezes it, and waits until nothing of it runs.
    ///
    /// # Errors
    /// When something of it still runs.
    pub fn freeze(&mut self, source: Option<&mut Source>) -> Result<()> {
        let frozen = self.place.freeze();
        (self.awake, self.frozen) = (false, Instant::now());
        self.reader.sleep(source);
        // A command that has ended cannot be frozen; that is reported where its life is checked.
        if self.gone().is_some() { Ok(()) } else { frozen.map_err(|why| self.failed(&why)) }
    }

    /// Whether it has ended by itself.
    pub fn gone(&mut self) -> Option<Gone> {
        let status = self.wait_status(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG)?;
        let lived = self.begun.elapsed();
        let while_frozen = if self.awake { "" } else { " while it was frozen" };
        let (well, how) = match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) => (true, "status 0".to_owned()),
            (Some(status), _) => (false, format!("status {status}")),
            (None, signal) => (false, format!("signal {}{while_frozen}", signal.unwrap_or(0))),
        };
        let complaint = self.complaints.as_mut().and_then(last_line).filter(|_| !well);
        let complaint = complaint.map(|line| format!(": {}", short(&line))).unwrap_or_default();
        let ended = if well { "ended by itself" } else { "failed" };
        Some(Gone { well, why: format!("{ended} after {:.1} s with {how}{complaint}", lived.as_secs_f64()) })
    }

    /// Finds processes and rings that are new. It takes longer than a reading, so it is done between slices.
    pub fn look_around(&mut self) {
        self.find_members();
        self.reader.look_around(&self.members);
    }

    /// What it has done so far.
    pub fn read(&mut self, source: &mut Source) -> CommandReading {
        self.reader.read(&self.members, source)
    }

    /// Every counter of its own processes.
    pub fn read_all(&mut self) -> Vec<Option<u64>> {
        self.find_members();
        self.reader.all(&self.members)
    }

    /// CPU time of each of its threads, by process and thread, in nanoseconds.
    pub fn thread_times(&mut self) -> ThreadTimes {
        self.find_members();
        whereabouts::thread_times(&self.members)
    }

    /// Whether it has, or had, sockets: then others may do a part of its work.
    pub fn has_sockets(&self) -> bool {
        self.reader.has_sockets()
    }

    /// Why its sockets are not counted, if they are not.
    pub fn out_of_reach(&self) -> Option<String> {
        self.reader.out_of_reach()
    }

    /// Whether a process of it is in another network namespace than iotoll.
    pub fn is_elsewhere(&mut self) -> bool {
        self.find_members();
        network_namespace::any_elsewhere(self.members.iter().copied())
    }

    fn find_members(&mut self) {
        self.place.look_around();
        self.members = self.place.members_now();
        // A control group does not list a zombie, whose accounting includes the children that it waited for.
        if !self.members.contains(&self.child.id()) {
            self.members.push(self.child.id());
        }
    }

    /// An error of this command.
    pub fn failed(&self, why: &str) -> Error {
        Error::Failed(format!("{}: {why}", self.name))
    }

    /// Ends it with a signal, waits until it has ended, and returns what it reports and what `watch` read last.
    ///
    /// # Errors
    /// When it does not end in time, or reports that it failed, or what `heed` returns meanwhile.
    pub fn end<T>(
        mut self,
        signal: EndSignal,
        heed: impl Fn() -> Result<()>,
        mut watch: impl FnMut(&mut Self) -> T,
    ) -> Result<(Option<OwnTotal>, T)> {
        // Frozen, so that the reading is exact; what it does until it has ended is little.
        watch(&mut self);
        Signal::from_named_raw(signal as i32).into_iter().for_each(|signal| self.place.signal_group(signal));
        self.thaw(None)?;
        let begun = Instant::now();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while self.wait_status(options).is_none() {
            heed()?;
            if begun.elapsed() > END_TIMEOUT {
                return Err(self.failed(&format!(
                    "did not end within {} s after {}; --end-signal names another one",
                    END_TIMEOUT.as_secs(),
                    signal.name()
                )));
            }
            watch(&mut self);
            std::thread::sleep(POLL_INTERVAL);
        }
        // The accounting of a zombie includes the children that it waited for.
        let last = watch(&mut self);
        self.clear_away()?;
        let own = self.own_total()?;
        Ok((own, last))
    }

    /// What it reports of itself; `None` if it does not report.
    fn own_total(&mut self) -> Result<Option<OwnTotal>> {
        let report = self.output.report().map_err(|why| self.failed(&format!("did not report its I/O: {why}")))?;
        if let Some(why) = report.failure.filter(|_| report.jobs.is_empty()) {
            return Err(self.failed(&why));
        }
        if let Some(why) = report.jobs.iter().find_map(|job| job.error.as_deref()) {
            return Err(self.failed(why));
        }
        if report.uncounted.is_some() {
            return Ok(None);
        }
        let ios = report.jobs.iter().map(|job| job.ios()).fold(0, u64::saturating_add);
        let bytes = report.jobs.iter().map(|job| job.bytes()).fold(Bytes(0), |sum, more| sum + more);
        // What iperf3 reads comes from the network, which has no page cache.
        let of_files = report.jobs.iter().filter(|job| job.engine.starts_with("fio"));
        let read = of_files.map(|job| job.read.bytes).fold(Bytes(0), |sum, more| sum + more);
        Ok((!report.jobs.is_empty()).then_some(OwnTotal { done: Done { ios, bytes }, read }))
    }

    /// Kills what is left of it, and reaps it.
    fn clear_away(&mut self) -> Result<()> {
        let killed = self.place.kill();
        let _ = self.child.kill();
        let reaped = self.child.wait().map(|_| ());
        killed.and(reaped.map_err(|error: io::Error| Error::instrument(format!("waiting for {}", self.name), error)))
    }
}

impl Drop for SlicedCommand<'_> {
    fn drop(&mut self) {
        // The earlier error is the one to report.
        let _ = self.clear_away();
    }
}
