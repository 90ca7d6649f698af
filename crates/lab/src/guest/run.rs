//! `iotoll guest run`: boots what the cache does not have, restores each guest, measures, and appends to the record.

use super::boot_files::{self, Image};
use super::cache::{Cache, Part};
use super::counts;
use super::kept;
use super::kernel::{self, Kernel};
use super::machine::{Boot, CPU, Common, MEMORY_MIB, Machine, QEMU, Restored, Waiting};
use super::modules::replaced;
use super::protocol::{ALL_SYMBOLS, ASSIGNMENT_BYTES, Assignment, Done, MODULE_SYMBOLS, NO_SYMBOLS};
use super::room::{at_once, enough_space};
use super::stack::{self, Expected, Stack};
use super::symbols::{self, Symbols};
use super::tool::{self, Care};
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::host;
use crate::interruption::Interruption;
use crate::session::outcome_of;
use crate::store::Saver;
use model::envelope::{Envelope, Kind};
use model::guest::GuestPlan;
use model::guest::plan::Point;
use model::guest::record::{End, GuestRecord, Header, KernelIdentity, Measured};
use model::origin::CommandLine;
use model::plan::Medium;
use model::record::Outcome;
use model::warning::{Code, Warning, add_once};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct Settings {
    /// Ends QEMU if iotoll is killed.
    pub guardian: Guardian,
    /// Ends the measurement.
    pub interruption: Arc<Interruption>,
    /// As typed.
    pub command_line: CommandLine,
    /// Longest time for one guest.
    pub timeout: Duration,
    /// Boot again also what the cache has.
    pub fresh: bool,
    /// Limit for all saved guests, in bytes.
    pub cache_limit: u64,
    /// Saves the record guest by guest.
    pub saver: Saver,
}

impl Settings {
    /// For programs that make something for the cache.
    pub(super) fn care(&self) -> Care {
        Care { guardian: self.guardian.clone(), interruption: self.interruption.clone() }
    }
}

/// What happens, for an observer.
#[derive(Clone, Debug)]
pub enum Event {
    /// Something is downloaded, unpacked or made.
    Preparing(String),
    /// This number of guests of all is done.
    Measured(usize, usize),
}

/// A guest that is booted once: a stack of a kernel with parameters, perturbed.
struct Guest {
    image: Image,
    parameters: String,
    replicate: u32,
    /// For people: "nfs-rdma on 6.1.0-50-amd64, replicate 2".
    what: String,
    /// The points that it measures.
    points: Vec<usize>,
}

/// Measures a plan.
///
/// # Errors
/// When nothing could be measured: no emulator, kernel, module, program; a guest that fails.
pub fn run(plan: &GuestPlan, settings: &Settings, observer: &mut dyn FnMut(Event)) -> Result<GuestRecord> {
    let begun = Instant::now();
    let prepared = Prepared::new(plan, settings, observer)?;
    let mut record = GuestRecord { header: prepared.header(plan, settings), measured: Vec::new(), end: None };
    settings.saver.begin(&record.header.envelope, &record.header)?;
    let mut warnings = Vec::new();
    let outcome = prepared.measure(plan, settings, observer, &mut |measured, caveat| {
        caveat.into_iter().for_each(|caveat| add_once(&mut warnings, caveat));
        settings.saver.append("measured", &measured)?;
        record.measured.push(measured);
        Ok(())
    });
    let outcome = match outcome {
        Ok(()) => Outcome::Completed,
        Err(error) if record.measured.is_empty() => return Err(error),
        Err(error) => outcome_of(&error),
    };
    let end = End { outcome, warnings, seconds: begun.elapsed().as_secs_f64() };
    settings.saver.append("end", &end)?;
    record.end = Some(end);
    Ok(record)
}

/// Prepares the guests of a plan: everything but the measurement. Returns their number.
///
/// # Errors
/// As [`run`].
pub fn prepare(plan: &GuestPlan, settings: &Settings, observer: &mut dyn FnMut(Event)) -> Result<usize> {
    let prepared = Prepared::new(plan, settings, observer)?;
    prepared.each_guest(
        settings,
        observer,
        |guest, common, _| {
            prepared.booted(guest, settings.fresh, common)?;
            let bytes = prepared.trim(settings);
            if bytes > settings.cache_limit {
                return Err(Error::Refused(format!(
                    "the guests need more than the {} MiB that --cache-limit allows; raise it, or prepare fewer",
                    settings.cache_limit >> 20
                )));
            }
            Ok(())
        },
        &mut |_, _| Ok(()),
    )?;
    Ok(prepared.guests.len())
}

/// What guests are.
const GUEST_ARCHITECTURE: &str = "x86_64";

/// The version of the emulator: "QEMU 7.2.22".
///
/// # Errors
/// When there is none, or guests do not run in it.
pub fn emulator(care: &Care) -> Result<String> {
    let host = std::env::consts::ARCH;
    if host != GUEST_ARCHITECTURE {
        return Err(Error::Refused(format!(
            "guests need an {GUEST_ARCHITECTURE} host, because they run this very program; this one is for {host}; use another machine, or a virtual one"
        )));
    }
    let mut command = Command::new(QEMU);
    command.arg("--version");
    let mend = "install it (Debian: apt install qemu-system-x86)";
    let output = tool::output(&mut command, "asking the emulator for its version", mend, care)?;
    let text = String::from_utf8_lossy(&output);
    let Some(version) = text.split_whitespace().skip_while(|word| *word != "version").nth(1) else {
        return Err(Error::Refused(format!("`{QEMU} --version` prints no version: is it QEMU?")));
    };
    let named = format!("QEMU {version}");
    library(&named)?;
    Ok(named)
}

/// The plugin for an emulator.
fn library(emulator: &str) -> Result<&'static [u8]> {
    let version = emulator.strip_prefix("QEMU ").unwrap_or(emulator);
    let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    sys::guest::plugin(major).ok_or_else(|| {
        Error::Refused(format!(
            "{QEMU} {version}: guests need QEMU 6 to 10, whose plugins iotoll has; install one of these (Debian 12 has 7.2, Debian 13 has 10.0)"
        ))
    })
}

/// What a thread that measures guests tells.
enum News {
    Measured(Box<Measured>, Option<Warning>),
    /// A guest has measured all its points.
    GuestDone,
}

struct Prepared {
    cache: Cache,
    emulator: String,
    plugin: PathBuf,
    kernels: BTreeMap<String, Kernel>,
    /// Hashes of the modules that replace those of the kernels.
    modules: BTreeMap<String, String>,
    guests: Vec<Guest>,
    /// What must stay in the cache.
    needed: Mutex<BTreeSet<String>>,
}

impl Prepared {
    fn new(plan: &GuestPlan, settings: &Settings, observer: &mut dyn FnMut(Event)) -> Result<Self> {
        let care = settings.care();
        let emulator = emulator(&care)?;
        let cache = Cache::open(care)?;
        enough_space(&cache)?;
        let plugin = plugin(&cache, library(&emulator)?)?;
        let mut observe = |text: String| observer(Event::Preparing(text));
        let mut kernels = BTreeMap::new();
        for point in &plan.points {
            if !kernels.contains_key(&point.kernel) {
                kernels.insert(point.kernel.clone(), kernel::locate(&point.kernel, &cache, &mut observe)?);
            }
        }
        let mut images: BTreeMap<(String, String, String), Image> = BTreeMap::new();
        let mut modules = BTreeMap::new();
        let mut guests: Vec<Guest> = Vec::new();
        // By replicate, so that a measurement that is interrupted has the first of each point.
        for replicate in 0..plan.replicates {
            for (number, point) in plan.points.iter().enumerate() {
                if settings.interruption.is_requested() {
                    return Err(Error::Interrupted("while guests were prepared".to_owned()));
                }
                let Some(kernel) = kernels.get(&point.kernel) else { continue };
                let stack = known_stack(&point.stack)?;
                if let Some(options) = point.mount_options.as_ref().filter(|_| !stack.takes_mount_options()) {
                    return Err(Error::Refused(format!(
                        "mount options '{options}': stack '{}' takes none; leave them out for it",
                        stack.name
                    )));
                }
                let key = (point.kernel.clone(), point.module.clone(), point.stack.clone());
                let image = match images.get(&key) {
                    Some(image) => image.clone(),
                    None => {
                        let replaced = replaced::read_all(&point.module, kernel)?;
                        for module in &replaced {
                            modules.insert(module.to_string(), module.hash()?);
                        }
                        let kernel = &Kernel { replaced, ..kernel.clone() };
                        let image = boot_files::make(kernel, stack, &emulator, &[], &cache, &mut observe)?;
                        images.insert(key, image.clone());
                        image
                    }
                };
                let same = |guest: &Guest| {
                    guest.replicate == replicate
                        && guest.parameters == point.parameters
                        && guest.image.guest("", 0) == image.guest("", 0)
                };
                match guests.iter_mut().find(|guest| same(guest)) {
                    Some(guest) => guest.points.push(number),
                    None => guests.push(Guest {
                        what: format!(
                            "the guest of {} on {}{}, replicate {}",
                            point.stack,
                            kernel.release,
                            if point.module.is_empty() { String::new() } else { format!(" with {}", point.module) },
                            replicate + 1
                        ),
                        image,
                        parameters: point.parameters.clone(),
                        replicate,
                        points: vec![number],
                    }),
                }
            }
        }
        let names = guests.iter().flat_map(|guest| [guest.name(), guest.image.stem()]);
        let needed = Mutex::new(names.collect());
        Ok(Self { cache, emulator, plugin, kernels, modules, guests, needed })
    }

    fn header(&self, plan: &GuestPlan, settings: &Settings) -> Header {
        let identity = |kernel: &Kernel| {
            let bytes = fs::read(&kernel.image).unwrap_or_default();
            KernelIdentity {
                release: kernel.release.clone(),
                hash: format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes)),
            }
        };
        Header {
            envelope: Envelope::new(Kind::Guest, host::now(), settings.command_line.clone()),
            plan: plan.clone(),
            emulator: self.emulator.clone(),
            cpu: CPU.to_owned(),
            memory_mib: MEMORY_MIB,
            host: Some(host::read(Path::new("/"), 0.0, "not measured")),
            kernels: self.kernels.iter().map(|(name, kernel)| (name.clone(), identity(kernel))).collect(),
            modules: self.modules.clone(),
        }
    }

    fn measure(
        &self,
        plan: &GuestPlan,
        settings: &Settings,
        observer: &mut dyn FnMut(Event),
        keep: &mut dyn FnMut(Measured, Option<Warning>) -> Result<()>,
    ) -> Result<()> {
        self.each_guest(
            settings,
            observer,
            |guest, common, tell| {
                self.booted(guest, settings.fresh, common)?;
                for number in &guest.points {
                    let Some(point) = plan.points.get(*number) else {
                        return Err(Error::Refused(format!("point {number} is not in the plan")));
                    };
                    let (measured, caveat) = self.measured(guest, *number, point, plan, common)?;
                    tell(measured, caveat);
                }
                self.needed.lock().unwrap_or_else(PoisonError::into_inner).remove(&guest.name());
                self.trim(settings);
                Ok(())
            },
            keep,
        )
    }

    /// Does `work` for each guest, as many at once as there are CPUs and memory for. `work` tells each result at once, so that
    /// a guest that fails later loses none; `keep` gets them as they come.
    fn each_guest(
        &self,
        settings: &Settings,
        observer: &mut dyn FnMut(Event),
        work: impl Fn(&Guest, &Common, &dyn Fn(Measured, Option<Warning>)) -> Result<()> + Sync,
        keep: &mut dyn FnMut(Measured, Option<Warning>) -> Result<()>,
    ) -> Result<()> {
        let at_once = at_once()?.min(self.guests.len().max(1));
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let (tell, news) = channel();
        let total = self.guests.len();
        let common = Common {
            guardian: settings.guardian.clone(),
            interruption: settings.interruption.clone(),
            timeout: settings.timeout,
            plugin: self.plugin.clone(),
        };
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                let (tell, next, failed, work, common) = (tell.clone(), &next, &failed, &work, &common);
                let worker = move || {
                    loop {
                        let stop = failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
                        let Some(guest) = self.guests.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                        if stop || settings.interruption.is_requested() {
                            return;
                        }
                        let told = |measured, caveat| _ = tell.send(News::Measured(Box::new(measured), caveat));
                        match work(guest, common, &told) {
                            Ok(()) => _ = tell.send(News::GuestDone),
                            Err(error) => {
                                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                            }
                        }
                    }
                };
                if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, worker) {
                    let error = Error::instrument("starting a thread for a guest", error);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
            drop(tell);
            let mut done = 0;
            for news in news {
                let kept = match news {
                    News::Measured(measured, caveat) => keep(*measured, caveat),
                    News::GuestDone => {
                        done += 1;
                        observer(Event::Measured(done, total));
                        Ok(())
                    }
                };
                if let Err(error) = kept {
                    // No other guest begins.
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        });
        if settings.interruption.is_requested() {
            return Err(Error::Interrupted("while guests ran".to_owned()));
        }
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// The saved guest, booted if the cache does not have it, or `again`.
    fn booted(&self, guest: &Guest, again: bool, common: &Common) -> Result<PathBuf> {
        let stem = guest.name();
        let name = format!("{stem}.state");
        let boot = |path: &Path| {
            let mut machine = Machine::boot(&guest.boot(), common, &guest.what)?;
            let control = machine.wait_until_ready(&common.interruption)?;
            machine.save(control, path, &common.interruption)?;
            guest.image.note(&guest.parameters, guest.replicate).write(&self.cache, &stem)
        };
        match again {
            true => self.cache.replace(Part::Guests, &name, boot),
            false => self.cache.make(Part::Guests, &name, boot),
        }
    }

    /// The guest restored, with an assignment. If its file is damaged or another process has removed it, it boots again.
    fn restored(&self, guest: &Guest, assignment: &[u8], chains: bool, common: &Common) -> Result<Waiting> {
        let restore = |again| {
            let saved = self.booted(guest, again, common)?;
            kept::touch(&saved);
            Machine::restore(&guest.boot(), &saved, assignment, chains, common, &guest.what)
        };
        match restore(false)? {
            Restored::Waits(waiting) => Ok(waiting),
            Restored::Damaged(_) => match restore(true)? {
                Restored::Waits(waiting) => Ok(waiting),
                Restored::Damaged(error) => Err(error),
            },
        }
    }

    /// Keeps the saved guests within their limit. Returns their size.
    fn trim(&self, settings: &Settings) -> u64 {
        kept::trim(&self.cache, settings.cache_limit, &self.needed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Symbols that the cache has, if it has all of them: of a guest, or what the guests of an image share.
    fn known_symbols(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.cache.entry(Part::Guests, &format!("{name}.symbols"))).ok()?;
        let (size, symbols) = text.split_once(" bytes\n")?;
        (size.parse() == Ok(symbols.len())).then(|| symbols.to_owned())
    }

    /// Puts symbols into the cache. Without them there, the next guest sends them again.
    fn keep_symbols(&self, name: &str, text: String) -> String {
        let _ = self.cache.replace(Part::Guests, &format!("{name}.symbols"), |path| {
            let kept = format!("{} bytes\n{text}", text.len());
            fs::write(path, kept).map_err(|error| Error::file(path, "saving the kernel's symbols", error))
        });
        text
    }

    fn measured(
        &self,
        guest: &Guest,
        number: usize,
        point: &Point,
        plan: &GuestPlan,
        common: &Common,
    ) -> Result<(Measured, Option<Warning>)> {
        let name = guest.name();
        let image = guest.image.stem();
        let shared = self.known_symbols(&image).filter(|_| plan.functions);
        let own = self.known_symbols(&name).filter(|_| shared.is_some());
        let assignment = Assignment {
            phase: point.phase.clone(),
            sysctls: point.sysctls.clone(),
            mount_options: point.mount_options.clone(),
            warm_up_ios: point.warm_up_ios,
            ios: point.ios,
        };
        let wanted = match (plan.functions, &shared, &own) {
            (false, ..) | (true, Some(_), Some(_)) => NO_SYMBOLS,
            (true, Some(_), None) => MODULE_SYMBOLS,
            (true, None, _) => ALL_SYMBOLS,
        };
        let text = padded(&assignment, wanted)?;
        let finished = self.restored(guest, &text, plan.chains, common)?.finish(&common.interruption)?;
        let symbols = if plan.functions {
            let (more, sent) = symbols::split(&String::from_utf8_lossy(&finished.symbols));
            let shared = shared.unwrap_or_else(|| self.keep_symbols(&image, more));
            let own = own.unwrap_or_else(|| self.keep_symbols(&name, sent));
            Symbols::parse((&shared, &own), &own_program()?)
        } else {
            Symbols::default()
        };
        let stack = known_stack(&point.stack)?;
        proven(stack, point, &finished.done, &guest.what)?;
        let caveat = unreached(stack, point, &finished.done);
        let measured = Measured {
            point: number,
            replicate: guest.replicate,
            ios: finished.done.ios,
            bytes: finished.done.bytes,
            clock_nanos: finished.done.clock_ticks,
            instructions: counts::read(&finished.counts, &symbols)?,
            counters: finished.done.counters,
            guest: name,
        };
        Ok((measured, caveat))
    }
}

impl Guest {
    /// Its name in the cache.
    fn name(&self) -> String {
        self.image.guest(&self.parameters, self.replicate)
    }

    fn boot(&self) -> Boot<'_> {
        Boot {
            image: &self.image.kernel,
            initramfs: &self.image.initramfs,
            parameters: self.image.parameters(&self.parameters, self.replicate),
            seed: self.replicate + 1,
        }
    }
}

pub(super) fn known_stack(name: &str) -> Result<&'static Stack> {
    stack::named(name).ok_or_else(|| {
        let names: Vec<_> = stack::STACKS.iter().map(|stack| stack.name).collect();
        Error::Refused(format!("stack '{name}': there is no such stack; there are {}", names.join(", ")))
    })
}

/// Refuses a measurement whose I/O did not take the path that the stack says.
fn proven(stack: &Stack, point: &Point, done: &Done, what: &str) -> Result<()> {
    // Engines that only compute take no path.
    if point.phase.jobs.iter().all(|job| job.engine.medium() != Medium::Files) {
        return Ok(());
    }
    let direct = point.phase.jobs.iter().all(|job| job.direct);
    for counter in stack.counters() {
        let value = done.counters.get(counter.name).copied();
        let least = match counter.expected {
            Expected::EachDirectIo if direct => i64::try_from(done.ios).unwrap_or(i64::MAX),
            Expected::EachDirectByte if direct => i64::try_from(done.bytes).unwrap_or(i64::MAX),
            Expected::Some => 1,
            Expected::None if value.is_some_and(|value| value != 0) => {
                return Err(Error::Failed(format!(
                    "{what}: the I/O did not take the path of stack '{}': {} is {}, and 0 was expected; check the options of the job and the mount options",
                    stack.name,
                    counter.name,
                    value.unwrap_or(0)
                )));
            }
            Expected::EachDirectIo | Expected::EachDirectByte | Expected::None | Expected::Any => continue,
        };
        if value.is_none_or(|value| value < least) {
            let value = value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
            return Err(Error::Failed(format!(
                "{what}: the I/O did not take the path of stack '{}': {} is {value} for {} I/Os, and at least {least} was \
                 expected; check the options of the job and the mount options",
                stack.name, counter.name, done.ios
            )));
        }
    }
    Ok(())
}

/// Says that the guest's page cache served most of a point's I/O, which then is not the stack's cost.
fn unreached(stack: &Stack, point: &Point, done: &Done) -> Option<Warning> {
    let jobs = &point.phase.jobs;
    if jobs.iter().any(|job| job.direct || job.engine.medium() != Medium::Files) {
        return None;
    }
    let each = |counter: &&stack::Counter| counter.expected == Expected::EachDirectIo;
    let counter = stack.counters().find(each)?;
    let value = done.counters.get(counter.name).copied()?;
    (value < i64::try_from(done.ios / 2).unwrap_or(i64::MAX)).then(|| {
        let message = format!(
            "job '{}' on stack '{}': {} is {value} for {} I/Os; the guest's page cache served the others, and the figure is \
             not the cost of the stack; use direct=1 to measure it",
            point.job, stack.name, counter.name, done.ios
        );
        Warning::new(Code::StackNotReached, message)
    })
}

/// An assignment of the size that all have, and the symbols that are wanted.
fn padded(assignment: &Assignment, wanted: u8) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec(assignment).unwrap_or_default();
    if text.len() >= ASSIGNMENT_BYTES {
        return Err(Error::Refused(format!(
            "the jobs are too long for a guest: {} bytes, and {ASSIGNMENT_BYTES} fit; give fewer jobs",
            text.len()
        )));
    }
    text.resize(ASSIGNMENT_BYTES - 1, b' ');
    text.push(wanted);
    Ok(text)
}

/// This program, which is also the guest's first process.
fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::instrument("finding this program", error))
}

/// The plugin as a file.
fn plugin(cache: &Cache, library: &'static [u8]) -> Result<PathBuf> {
    let name = format!("plugin-{:016x}.so", xxhash_rust::xxh3::xxh3_64(library));
    let path = cache.entry(Part::Guests, &name);
    if fs::read(&path).is_ok_and(|found| found == library) {
        return Ok(path);
    }
    cache.replace(Part::Guests, &name, |path| {
        fs::write(path, library).map_err(|error| Error::file(path, "writing the plugin", error))
    })
}
