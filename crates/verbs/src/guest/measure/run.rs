//! `iotoll guest run`: boots what the cache does not have, restores each guest, measures, and appends to the record.

use super::boot_files::{self, Guest, Image};
use super::cache::{Cache, Part, touch};
use super::kernel::{self, Kernel};
use super::machine::{CPU, MEMORY_MIB, Machine, Measuring};
use super::modules;
use super::programs::own_program;
use super::protocol::{ASSIGNMENT_BYTES, Assignment, Done, SYMBOLS};
use super::stack::{self, Expected, Stack};
use super::tool::{self, Care, Emulator, at_once, enough_space};
use crate::guest::GuestPlan;
use crate::guest::plan::Point;
use crate::guest::record::{End, FunctionCount, GuestRecord, Header, InstructionCount, KernelIdentity, Measured};
use lab::created::Created;
use lab::error::{Error, Result};
use lab::host;
use lab::names::{KERNEL_BEGIN, KernelFunctions, Mapping, Program, UNKNOWN, kernel_function, mapping};
use lab::progress::{Observer, Progress};
use lab::session::{Settings, outcome_of};
use model::kind::CommandLine;
use model::kind::{Envelope, Recorded};
use model::plan::Medium;
use model::record::Outcome;
use model::warning::{Code, Warning, add_once};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A plan of guests.
pub struct Guests<'a> {
    pub plan: &'a GuestPlan,
    /// Longest time for one guest: CPU time, or time without any.
    pub timeout: Duration,
    /// Boot again also what the cache has.
    pub fresh: bool,
}

impl Guests<'_> {
    pub fn measure(&self, settings: Settings, _: &Created, observer: Observer) -> Result<GuestRecord> {
        let begun = Instant::now();
        let observer = &mut |text: String| observer(Progress::Guests(&text));
        let Settings { interruption, guardian, command_line, saver, .. } = settings;
        let prepared = Prepared::new(self, Care { guardian, interruption }, observer)?;
        let mut record = GuestRecord { header: prepared.header(command_line), measured: Vec::new(), end: None };
        saver.begin(&record.header.envelope, &record.header)?;
        let mut warnings = Vec::new();
        let outcome = prepared.each_guest(observer, &mut |(measured, caveat)| {
            caveat.into_iter().for_each(|caveat| add_once(&mut warnings, caveat));
            saver.append("measured", &measured)?;
            record.measured.push(measured);
            Ok(())
        });
        let outcome = match outcome {
            Ok(()) => Outcome::Completed,
            Err(error) if record.measured.is_empty() => return Err(error),
            Err(error) => outcome_of(&error),
        };
        let end = End { outcome, warnings, seconds: begun.elapsed().as_secs_f64() };
        saver.append("end", &end)?;
        record.end = Some(end);
        Ok(record)
    }
}

/// What a guest counted at a point, and a caveat of it.
type Counted = (Measured, Option<Warning>);

struct Prepared<'a> {
    asked: &'a Guests<'a>,
    /// Ends QEMU, and programs that make something for the cache.
    care: Care,
    cache: Cache,
    emulator: Emulator,
    plugin: PathBuf,
    kernels: BTreeMap<String, Kernel>,
    /// Hashes of the modules that replace those of the kernels.
    modules: BTreeMap<String, String>,
    /// Each with the points that it measures.
    guests: Vec<(Guest, Vec<usize>)>,
}

impl<'a> Prepared<'a> {
    fn new(asked: &'a Guests, care: Care, observer: &mut dyn FnMut(String)) -> Result<Self> {
        let plan = asked.plan;
        let emulator = Emulator::find(&care)?;
        let cache = Cache::open(care.clone())?;
        enough_space(&cache)?;
        let plugin = emulator.plugin(&cache)?;
        let mut kernels = BTreeMap::new();
        for point in &plan.points {
            if !kernels.contains_key(&point.place.kernel) {
                kernels.insert(point.place.kernel.clone(), kernel::locate(&point.place.kernel, &cache, observer)?);
            }
        }
        let mut images: BTreeMap<[&str; 3], Image> = BTreeMap::new();
        let mut modules = BTreeMap::new();
        let mut guests: Vec<(Guest, Vec<usize>)> = Vec::new();
        // By replicate, so that a measurement that is interrupted has the first of each point.
        let replicates =
            (0..plan.replicates).flat_map(|replicate| plan.points.iter().enumerate().map(move |it| (replicate, it)));
        for (replicate, (number, point)) in replicates {
            if care.interruption.is_requested() {
                return Err(Error::Interrupted("while guests were prepared".to_owned()));
            }
            let Some(kernel) = kernels.get(&point.place.kernel) else { continue };
            let stack = stack::named(&point.place.stack)?;
            if let Some(options) = point.mount_options.as_ref().filter(|_| !stack.takes_mount_options()) {
                return Err(Error::Refused(format!(
                    "mount options '{options}': stack '{}' takes none; leave them out for it",
                    stack.name
                )));
            }
            let key = [&point.place.kernel, &point.module, &point.place.stack].map(String::as_str);
            let image = match images.entry(key) {
                Entry::Occupied(image) => image.into_mut(),
                Entry::Vacant(place) => {
                    let replaced = modules::replaced(&point.module, kernel)?;
                    for module in &replaced {
                        modules.insert(module.to_string(), tool::hash(&tool::read(&module.file)?));
                    }
                    let kernel = &Kernel { replaced, ..kernel.clone() };
                    place.insert(boot_files::make(kernel, stack, &emulator.name, &cache, observer)?)
                }
            };
            let with = if point.module.is_empty() { String::new() } else { format!(" with {}", point.module) };
            let guest = Guest {
                what: format!(
                    "the guest of {} on {}{with}, replicate {}",
                    point.place.stack,
                    kernel.release,
                    replicate + 1
                ),
                image: image.clone(),
                parameters: point.place.parameters.clone(),
                replicate,
            };
            match guests.iter_mut().find(|(other, _)| other.name() == guest.name()) {
                Some((_, points)) => points.push(number),
                None => guests.push((guest, vec![number])),
            }
        }
        Ok(Self { asked, care, cache, emulator, plugin, kernels, modules, guests })
    }

    fn header(&self, command_line: CommandLine) -> Header {
        let identity = |kernel: &Kernel| {
            let hash = tool::hash(&fs::read(&kernel.image).unwrap_or_default());
            KernelIdentity { release: kernel.release.clone(), hash }
        };
        Header {
            envelope: Envelope::new(GuestRecord::KIND, host::now(), command_line),
            plan: self.asked.plan.clone(),
            emulator: self.emulator.name.clone(),
            cpu: CPU.to_owned(),
            memory_mib: MEMORY_MIB,
            host: host::read(Path::new("/"), 0.0, "not measured"),
            kernels: self.kernels.iter().map(|(name, kernel)| (name.clone(), identity(kernel))).collect(),
            modules: self.modules.clone(),
        }
    }

    /// Measures each guest, as many at once as there are CPUs and memory for. `keep` gets each result as it comes, so that a guest that
    /// fails later loses none.
    fn each_guest(&self, observer: &mut dyn FnMut(String), keep: &mut dyn FnMut(Counted) -> Result<()>) -> Result<()> {
        let interruption = &self.care.interruption;
        let total = self.guests.len();
        let at_once = at_once()?.min(total.max(1));
        let next = AtomicUsize::new(0);
        // No other guest begins after a failure.
        let failed = AtomicBool::new(false);
        let (tell, news) = channel();
        let mut outcome = Ok(());
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                let (own, next, failed) = (tell.clone(), &next, &failed);
                let worker = move || {
                    while let Some((guest, points)) = self.guests.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if failed.load(Ordering::Relaxed) || interruption.is_requested() {
                            return;
                        }
                        let ended = self.measure(guest, points, &own);
                        failed.fetch_or(ended.is_err(), Ordering::Relaxed);
                        let _ = own.send(ended.map(|()| None));
                    }
                };
                if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, worker) {
                    let _ = tell.send(Err(Error::instrument("starting a thread for a guest", error)));
                }
            }
            drop(tell);
            let mut done = 0;
            for news in news {
                let result = news.and_then(|counted| match counted {
                    Some(counted) => keep(counted),
                    None => {
                        done += 1;
                        observer(format!("{done} of {total} guests"));
                        Ok(())
                    }
                });
                if result.is_err() {
                    failed.store(true, Ordering::Relaxed);
                    outcome = std::mem::replace(&mut outcome, Ok(())).and(result);
                }
            }
        });
        match interruption.is_requested() {
            true => Err(Error::Interrupted("while guests ran".to_owned())),
            false => outcome,
        }
    }

    /// The saved guest, booted if the cache does not have it, or `again`.
    fn booted(&self, guest: &Guest, again: bool) -> Result<PathBuf> {
        let name = format!("{}.state", guest.name());
        let boot = |path: &Path| Machine::start(guest, (&self.care, self.asked.timeout), None)?.save(path);
        match again {
            true => self.cache.replace(Part::GUESTS, &name, boot),
            false => self.cache.make(Part::GUESTS, &name, boot),
        }
    }

    /// The guest restored, with an assignment. If its file is damaged or another process has removed it, it boots again.
    fn restored(&self, guest: &Guest, assignment: &[u8]) -> Result<Machine> {
        let restore = |saved: PathBuf| {
            touch(&saved);
            let measuring = Measuring { plugin: &self.plugin, assignment };
            Machine::restore(guest, (&self.care, self.asked.timeout), measuring, &saved)
        };
        match restore(self.booted(guest, false)?) {
            Err(Error::Failed(_) | Error::File { .. } | Error::Instrument { .. }) => restore(self.booted(guest, true)?),
            other => other,
        }
    }

    /// Symbols of a guest, if the cache has all of them.
    fn known_symbols(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.cache.entry(Part::GUESTS, &format!("{name}.symbols"))).ok()?;
        let (size, symbols) = text.split_once(" bytes\n")?;
        (size.parse() == Ok(symbols.len())).then(|| symbols.to_owned())
    }

    /// Measures the points of a guest.
    fn measure(&self, guest: &Guest, points: &[usize], tell: &Sender<Result<Option<Counted>>>) -> Result<()> {
        self.booted(guest, self.asked.fresh)?;
        for number in points {
            let Some(point) = self.asked.plan.points.get(*number) else { continue };
            let _ = tell.send(Ok(Some(self.measured(guest, *number, point)?)));
        }
        Ok(())
    }

    fn measured(&self, guest: &Guest, number: usize, point: &Point) -> Result<Counted> {
        let functions = self.asked.plan.functions;
        let name = guest.name();
        let known = self.known_symbols(&name).filter(|_| functions);
        let wanted = functions && known.is_none();
        let (done, counted, sent) = self.restored(guest, &assignment(point, wanted)?)?.finish()?;
        let sent = String::from_utf8_lossy(&sent);
        if wanted {
            // Without them there, the next measurement sends them again.
            let kept = format!("{} bytes\n{sent}", sent.len());
            let _ = self.cache.write(Part::GUESTS, &format!("{name}.symbols"), kept.as_bytes());
        }
        let symbols = match functions {
            true => Symbols::parse(known.as_deref().unwrap_or(&sent), &own_program()?),
            false => Symbols::default(),
        };
        let caveat = proven(stack::named(&point.place.stack)?, point, &done, &guest.what)?;
        let measured = Measured {
            point: number,
            replicate: guest.replicate,
            ios: done.ios,
            bytes: done.bytes,
            clock_nanos: done.clock_ticks,
            instructions: read(&counted, &symbols)?,
            counters: done.counters,
            guest: name,
        };
        Ok((measured, caveat))
    }
}

/// Refuses a measurement whose I/O did not take the path that the stack says. Returns a caveat if the guest's page cache served most of it,
/// which then is not the stack's cost.
fn proven(stack: &'static Stack, point: &Point, done: &Done, what: &str) -> Result<Option<Warning>> {
    let jobs = &point.phase.jobs;
    // Engines that only compute take no path.
    if jobs.iter().all(|job| job.engine.medium() != Medium::Files) {
        return Ok(None);
    }
    let direct = jobs.iter().all(|job| job.direct);
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for counter in stack.counters() {
        let value = done.counters.get(&counter.name).copied();
        let (least, most) = match counter.expected {
            Expected::EachDirectIo if direct => (whole(done.ios), i64::MAX),
            Expected::EachDirectByte if direct => (whole(done.bytes), i64::MAX),
            Expected::Some => (1, i64::MAX),
            Expected::None => (0, 0),
            Expected::EachDirectIo | Expected::EachDirectByte | Expected::Any => continue,
        };
        let is_absent = most == 0 && value.is_none();
        if is_absent || value.is_some_and(|value| (least..=most).contains(&value)) {
            continue;
        }
        let value = value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
        let wrong = match most {
            0 => format!("{value}, and 0 was expected"),
            _ => format!("{value} for {} I/Os, and at least {least} was expected", done.ios),
        };
        return Err(Error::Failed(format!(
            "{what}: the I/O did not take the path of stack '{}': {} is {wrong}; check the options of the job and the mount options",
            stack.name, counter.name
        )));
    }
    let counter = stack.counters().find(|counter| counter.expected == Expected::EachDirectIo);
    let counted = counter.and_then(|counter| Some((counter.name.as_str(), *done.counters.get(&counter.name)?)));
    let is_buffered = jobs.iter().all(|job| !job.direct && job.engine.medium() == Medium::Files);
    Ok(counted.filter(|(_, value)| is_buffered && *value < whole(done.ios / 2)).map(|(name, value)| {
        let message = format!(
            "job '{}' on stack '{}': {name} is {value} for {} I/Os; the guest's page cache served the others, and the figure is \
             not the cost of the stack; use direct=1 to measure it",
            point.place.job, stack.name, done.ios
        );
        Warning::new(Code::StackNotReached, message)
    }))
}

/// The assignment of a point, of the size that all have, and whether symbols are wanted.
fn assignment(point: &Point, symbols: bool) -> Result<Vec<u8>> {
    let assignment = Assignment {
        phase: point.phase.clone(),
        sysctls: point.sysctls.clone(),
        mount_options: point.mount_options.clone(),
        warm_up_ios: point.warm_up_ios,
        ios: point.ios,
    };
    let mut text = serde_json::to_vec(&assignment).unwrap_or_default();
    if text.len() >= ASSIGNMENT_BYTES {
        return Err(Error::Refused(format!(
            "the jobs are too long for a guest: {} bytes, and {ASSIGNMENT_BYTES} fit; give fewer jobs",
            text.len()
        )));
    }
    text.resize(ASSIGNMENT_BYTES - 1, b' ');
    text.push(if symbols { SYMBOLS } else { b' ' });
    Ok(text)
}

/// Reads the plugin's file, which must hold one region. Without symbols there are no functions.
///
/// # Errors
/// When the guest never marked a region.
pub(super) fn read(text: &[u8], symbols: &Symbols) -> Result<InstructionCount> {
    let text = String::from_utf8_lossy(text);
    let broken = || Error::Failed("the guest counted no instructions; please report this".to_owned());
    let mut lines = text.lines();
    let total = lines.next().and_then(|line| line.strip_prefix("region ")?.parse().ok()).ok_or_else(broken)?;
    let mut count = InstructionCount { total, ..InstructionCount::default() };
    let mut sum = 0;
    let mut functions: BTreeMap<_, FunctionCount> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let (first, second) =
            (words.first().copied().unwrap_or_default(), words.get(1).and_then(|word| word.parse().ok()));
        if first == "region" {
            return Err(Error::Failed("the guest marked two regions; please report this".to_owned()));
        }
        let Some(number): Option<u64> = second else { continue };
        let Ok(address) = u64::from_str_radix(first, 16) else { continue };
        let flagged = |flag: &str| if words.get(2) == Some(&flag) { number } else { 0 };
        let (string, locked) = (flagged("s"), flagged("l"));
        sum += number;
        count.programs += if address < KERNEL_BEGIN { number } else { 0 };
        count.string += string;
        count.locked += locked;
        if !symbols.is_empty() {
            let place = symbols.of(address);
            let key = (place.name, place.module, place.program);
            let function = functions.entry(key).or_insert_with(|| FunctionCount {
                name: place.name.to_owned(),
                module: place.module.map(str::to_owned),
                program: place.program.map(str::to_owned),
                ..FunctionCount::default()
            });
            function.count += number;
            function.entries += if place.begin == Some(address) && string == 0 { number } else { 0 };
        }
    }
    if sum != total {
        return Err(Error::Failed(format!(
            "the counts of a guest are incomplete: {sum} of {total} instructions; check that {} has space, or set TMPDIR to \
             another folder",
            std::env::temp_dir().display()
        )));
    }
    count.functions = functions.into_values().collect();
    Ok(count)
}

/// What programs execute, if it is not known in which file.
pub(super) const PROGRAMS: &str = "[programs]";
/// Separates the kernel's symbols from the mappings of processes in what the guest sends.
pub(super) const MAPPINGS: &str = "= mappings\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<'a> {
    pub name: &'a str,
    /// The kernel module.
    pub module: Option<&'a str>,
    /// The file of a program.
    pub program: Option<&'a str>,
    /// Its first address. Two functions of one name and module have one each.
    pub begin: Option<u64>,
}

/// All that is known of a guest's addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    kernel: KernelFunctions,
    /// Executable mappings of processes, by their first address.
    mappings: BTreeMap<u64, Mapping>,
    files: BTreeMap<String, Program>,
}

impl Symbols {
    /// Reads what the agent sends: functions of /proc/kallsyms, and the executable lines of each /proc/PID/maps. `program` is the file of the
    /// guest's /init on the host.
    pub(super) fn parse(text: &str, program: &Path) -> Self {
        let (kernel, mappings) = text.split_once(MAPPINGS).unwrap_or((text, ""));
        let kernel = kernel.lines().filter_map(kernel_function).collect();
        let mut symbols = Self { kernel, ..Self::default() };
        for line in mappings.lines() {
            let Some((begin, mapping)) = mapping(line) else { continue };
            let path = mapping.path.clone();
            symbols.mappings.insert(begin, mapping);
            symbols.files.entry(path).or_insert_with_key(|path| file(path, program));
        }
        symbols
    }

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.kernel.is_empty()
    }

    /// The function at an address.
    pub(super) fn of(&self, address: u64) -> Place<'_> {
        if address < KERNEL_BEGIN {
            return self.of_program(address);
        }
        match self.kernel.of(address) {
            Some((begin, function)) => {
                Place { name: &function.name, module: function.module.as_deref(), program: None, begin: Some(begin) }
            }
            None => Place { name: UNKNOWN, module: None, program: None, begin: None },
        }
    }

    fn of_program(&self, address: u64) -> Place<'_> {
        let unknown = Place { name: PROGRAMS, module: None, program: None, begin: None };
        let Some((begin, mapping)) = self.mappings.range(..=address).next_back() else { return unknown };
        let Some(file) = self.files.get(&mapping.path).filter(|_| address < mapping.end) else { return unknown };
        let at = address - begin + mapping.offset;
        let (name, begin) = file.function(at).map_or((PROGRAMS, None), |(name, begin)| {
            // The function's place in the file, moved to where the process has it.
            (name, file.address(at).map(|in_file| address - in_file.saturating_sub(begin)))
        });
        Place { name, module: None, program: Some(&file.name), begin }
    }
}

/// A file of a guest, as far as the host has it at the same path.
fn file(path: &str, program: &Path) -> Program {
    Program::read(if path == "/init" { program } else { Path::new(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _text\nffffffff81000100 t alpha\nffffffff81000180 t mappings\nffffffff81000200 D data\n\
                            ffffffffc0001000 t beta\t[brd]\nffffffff81000100 t zeta\n0000000000000000 A nothing\n";

    #[test]
    fn addresses_become_functions_and_sum_to_the_total() {
        let symbols = Symbols::parse(KALLSYMS, Path::new("/none"));
        let text = "region 30\n400000 5\nffffffff81000104 7\nffffffff81000110 3 s\nffffffffc0001004 11 l\n\
                    ffffffff81000100 3\nffffffffc0001000 1 s\n";
        let count = read(text.as_bytes(), &symbols).unwrap();
        assert_eq!((count.total, count.programs, count.string, count.locked), (30, 5, 4, 11));
        let by_name = |name: &str| count.functions.iter().find(|function| function.name == name).unwrap();
        assert_eq!((by_name("alpha").count, by_name("alpha").entries), (13, 3));
        let beta = by_name("beta");
        assert_eq!((beta.count, beta.module.as_deref()), (12, Some("brd")));
        assert_eq!(beta.entries, 0, "its first instruction repeats itself");
        assert_eq!(by_name(PROGRAMS).count, 5);
        assert_eq!(count.functions.iter().map(|function| function.count).sum::<u64>(), count.total);
    }

    #[test]
    fn without_symbols_there_are_sums_only() {
        let count = read(b"region 5\n400000 5\n", &Symbols::default()).unwrap();
        assert_eq!((count.total, count.programs, count.functions.len()), (5, 5, 0));
    }

    #[test]
    fn no_region_two_or_half_a_one_are_failures() {
        for text in ["", "region", "region 1\n400000 1\nregion 1\n400000 1\n", "region 26\n400000 2"] {
            assert!(read(text.as_bytes(), &Symbols::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn kernel_addresses_have_functions_and_modules() {
        let symbols = Symbols::parse(KALLSYMS, Path::new("/none"));
        let kernel = |address| (symbols.of(address).name, symbols.of(address).module);
        assert_eq!(kernel(0xffff_ffff_8100_0104), ("alpha", None));
        assert_eq!(kernel(0xffff_ffff_c000_1004), ("beta", Some("brd")));
        assert_eq!(kernel(1 << 63), (UNKNOWN, None));
        assert_eq!(kernel(0xffff_ffff_8110_0000), (UNKNOWN, None), "far behind the last function");
        assert_eq!(symbols.of(0x40_0000).name, PROGRAMS);
        assert!(Symbols::default().is_empty() && !symbols.is_empty());
    }

    #[inline(never)]
    fn a_function_to_find() -> u64 {
        std::hint::black_box(17)
    }

    #[test]
    fn addresses_of_programs_have_functions_of_their_files() {
        a_function_to_find();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let own = std::env::current_exe().unwrap();
        let text = format!("{KALLSYMS}{MAPPINGS}{}", maps.replace(own.to_str().unwrap(), "/init"));
        let symbols = Symbols::parse(&text, &own);
        let place = symbols.of(a_function_to_find as *const () as usize as u64);
        assert!(place.name.ends_with("a_function_to_find"), "{place:?}");
        assert_eq!(place.program, own.file_name().unwrap().to_str());
    }
}
