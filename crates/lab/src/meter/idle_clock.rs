//! The kernel's tick-less idle clock, in nanoseconds (root only).
//!
//! Idle entry and exit count as idle here, interrupts taken while idle do not. The definition differs from cpuidle's,
//! so the two bracket the cost of a load that sleeps.
//!
//! The clock of a CPU advances at the end of each sleep. A sleep that lasts is added, so no CPU is woken to bring it up to date. A program
//! in the kernel reads the clocks of all CPUs in some microseconds ([`KernelMemory`]); where it cannot, they are in /proc/timer_list,
//! which takes 22 µs a CPU to read, and says only of a CPU whose tick is stopped that it sleeps.

use super::kernel_types::{KernelTypes, Place};
use super::{Cpus, Online, Opened};
use model::record::{Count, Mode};
use model::unit::Nanos;
use std::fs::File;
use std::io::{Read, Seek};
use std::sync::atomic::Ordering;
use std::time::Duration;
use sys::bpf::{ArrayMap, Assembler, Code, Condition, Helper, Operation, Program, Register, Width};
use sys::clock::monotonic_nanos;

use Condition::{Below, Equal, NotEqual};
use Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use Width::{Eight, Four};

/// Reading takes at most one part in this many of the time of a window.
const SHARE: u64 = 50;

/// Opens it, and says how it is read.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    IdleClock::open(&cpus.online).map(|clock| Opened::IdleClock(Box::new(clock)))
}

/// The clocks of all CPUs.
pub(super) struct IdleClock {
    list: TimerList,
    /// Why it is read from there if it is not read from memory.
    memory: Result<KernelMemory, String>,
    online: Online,
    /// Duration of a reading: the fastest of several, because slower ones were delayed.
    cost: Nanos,
    latest: Option<(Mode, Nanos)>,
    /// A CPU came or went since this was asked last.
    changed: bool,
}

/// The idle clock of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuClock {
    /// The sleeps that have ended. The kernel separates those with and without a task that waits for I/O.
    slept: u64,
    /// When the present one began.
    since: Option<u64>,
}

impl CpuClock {
    fn at(self, now: u64) -> u64 {
        self.slept.saturating_add(self.since.map_or(0, |since| now.saturating_sub(since)))
    }
}

impl IdleClock {
    fn open(online: &[u32]) -> Result<Self, String> {
        let mut list = TimerList::open()?;
        let memory = KernelMemory::open(online, &mut list);
        let mut clock = Self {
            list,
            memory,
            online: Online::open().map_err(|error| format!("listing CPUs: {error}"))?,
            cost: Nanos(0),
            latest: None,
            changed: false,
        };
        clock.cost = clock.time().ok_or("/proc/timer_list ended early")?;
        Ok(clock)
    }

    /// How long a reading takes.
    fn time(&mut self) -> Option<Nanos> {
        const READINGS: usize = 5;
        let took = |_| {
            let began = Nanos(monotonic_nanos());
            self.read_all().map(|_| Nanos(monotonic_nanos()).since(began))
        };
        (0..READINGS).filter_map(took).min()
    }

    /// How it is read.
    pub(super) fn way(&self) -> String {
        let micros = self.cost.as_f64() / 1e3;
        match &self.memory {
            Ok(_) => format!("read in {micros:.0} µs by a program in the kernel"),
            Err(why) => format!("read in {micros:.0} µs from /proc/timer_list ({why})"),
        }
    }

    /// The shortest window in which reading does not dominate.
    pub(super) fn shortest_window(&self) -> Duration {
        Duration::from_nanos(self.cost.0.saturating_mul(SHARE))
    }

    /// Whether a CPU came or went since the last call.
    pub(super) fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Reads it at a snapshot now, which time in `mode` follows, if it is due.
    pub(super) fn read_if_due(&mut self, mode: Mode) -> Option<Count> {
        let now = Nanos(monotonic_nanos());
        let shortest = self.shortest_window();
        let is_early = |(before, at): &(Mode, Nanos)| *before == mode && now.since(*at).duration() < shortest;
        if self.latest.as_ref().is_some_and(is_early) {
            return None;
        }
        self.latest = Some((mode, now));
        self.read()
    }

    /// Reads it. If a CPU came or went since the last reading, no CPU is counted, which ends a window.
    pub(super) fn read(&mut self) -> Option<Count> {
        if let Some(online) = self.online.changed() {
            self.changed = true;
            if self.memory.is_ok() {
                self.memory = KernelMemory::open(&online, &mut self.list);
                self.cost = self.time().unwrap_or(self.cost);
            }
            return Some(Count::default());
        }
        self.read_all()
    }

    fn read_all(&mut self) -> Option<Count> {
        let (now, clocks) = match &self.memory {
            Ok(memory) => memory.read()?,
            Err(_) => self.list.read()?,
        };
        let total = clocks.iter().fold(0_u64, |sum, clock| sum.wrapping_add(clock.at(now)));
        Some(Count { at_nanos: Nanos(now), cpus: u32::try_from(clocks.len()).ok()?, total })
    }
}

/// The open file and a reusable buffer.
struct TimerList {
    file: File,
    text: String,
}

impl TimerList {
    /// Opens the file and tries to parse it.
    fn open() -> Result<Self, String> {
        let file = File::open("/proc/timer_list").map_err(|error| format!("/proc/timer_list: {error}; run as root"))?;
        let mut list = Self { file, text: String::new() };
        match list.read() {
            Some(_) => Ok(list),
            None => Err("/proc/timer_list has no idle_sleeptime for each CPU (a kernel without NO_HZ)".to_owned()),
        }
    }

    /// The kernel's time, and the clock of each CPU that is online.
    fn read(&mut self) -> Option<(u64, Vec<CpuClock>)> {
        self.text.clear();
        self.file.rewind().ok()?;
        self.file.read_to_string(&mut self.text).ok()?;
        parse(&self.text)
    }
}

/// What a CPU's part says.
#[derive(Default)]
struct Part {
    slept: Option<u64>,
    tick_is_stopped: bool,
    entered: u64,
    woken: u64,
    left: u64,
}

fn parse(text: &str) -> Option<(u64, Vec<CpuClock>)> {
    let mut now = None;
    let mut parts: Vec<Part> = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("cpu: ") {
            parts.push(Part::default());
        }
        now = now.or_else(|| line.strip_prefix("now at ")?.split(' ').next()?.parse().ok());
        let Some(part) = parts.last_mut() else { continue };
        let value = || line.split_once(':')?.1.split_whitespace().next()?.parse::<u64>().ok();
        // The names end with spaces or the colon.
        match line.split([' ', ':']).next() {
            Some(".idle_sleeptime" | ".iowait_sleeptime") => {
                part.slept = part.slept.unwrap_or(0).checked_add(value()?);
            }
            Some(".tick_stopped") => part.tick_is_stopped = value()? == 1,
            Some(".idle_entrytime") => part.entered = value()?,
            Some(".idle_waketime") => part.woken = value()?,
            Some(".idle_exittime") => part.left = value()?,
            _ => {}
        }
    }
    // The time of an entry is also set at the end of a sleep, to that of the interrupt or the exit.
    let since = |part: &Part| {
        (part.tick_is_stopped && part.entered > part.woken && part.entered > part.left).then_some(part.entered)
    };
    let clocks = parts.iter().map(|part| Some(CpuClock { slept: part.slept?, since: since(part) }));
    Some((now?, clocks.collect::<Option<Vec<_>>>()?)).filter(|(_, clocks)| !clocks.is_empty())
}

/// Words of a CPU: where its clock is, when it was copied, and two copies.
const ADDRESS: i16 = 0;
const AT: i16 = 8;
const COPIES: i16 = 16;
/// Bytes of a structure that are copied at most; today's kernels need some 200.
const MOST_BYTES: u32 = 512;
/// A reading of all CPUs that takes longer was interrupted.
const LONGEST_NANOS: u64 = 100_000;
const ATTEMPTS: usize = 4;

/// Idle clocks in the kernel's memory, copied by a program that the kernel runs once for each reading.
///
/// The kernel has the clock of a CPU in a variable of that CPU, `tick_cpu_sched`. Its place is known from another such variable, the run
/// queue, which the current task points to, and from the kernel's description of its types. Each clock is copied twice, and
/// again if it changed in between.
#[derive(Debug)]
struct KernelMemory {
    map: ArrayMap,
    copy: Program,
    layout: Layout,
}

/// The part of `tick_sched` that is copied, and its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Bytes before the part, and of it.
    begin: u32,
    bytes: u32,
    slept: [u32; 2],
    entered: u32,
    /// The bit that says whether the CPU sleeps.
    asleep: Place,
}

impl Layout {
    fn of(types: &KernelTypes) -> Result<Self, String> {
        let member = |name| types.member("tick_sched", name);
        let slept = [member("idle_sleeptime")?, member("iowait_sleeptime")?];
        let entered = member("idle_entrytime")?;
        // A field of its own, and since 6.10 a bit of the flags (TS_FLAG_IDLE_ACTIVE, kernel/time/tick-sched.h).
        let asleep =
            member("idle_active").or_else(|_| member("flags").map(|flags| Place { bit: flags.bit + 2, ..flags }))?;
        let places = [slept[0], slept[1], entered, asleep];
        let first = places.iter().map(|place| place.byte).min().unwrap_or(0);
        let last = places.iter().map(|place| place.byte).max().unwrap_or(0);
        let begin = first - first % 8;
        let layout = Self {
            begin,
            bytes: (last - begin + 8).next_multiple_of(8),
            slept: slept.map(|place| (place.byte - begin) / 8),
            entered: (entered.byte - begin) / 8,
            asleep: Place { byte: asleep.byte - begin, ..asleep },
        };
        if layout.bytes > MOST_BYTES { Err("the kernel's tick_sched is too long".to_owned()) } else { Ok(layout) }
    }

    /// The clock, and whether it is the same in both copies.
    fn reading(&self, words: &[u64]) -> Option<(bool, CpuClock)> {
        let (first, second) = words.split_at_checked(usize::try_from(self.bytes / 8).ok()?)?;
        let word = |at: u32| second.get(usize::try_from(at).ok()?).copied();
        let [idle, waiting] = self.slept;
        let bit = self.asleep.byte % 8 * 8 + self.asleep.bit;
        let asleep = word(self.asleep.byte / 8)? >> bit & 1 == 1;
        let reading =
            CpuClock { slept: word(idle)?.wrapping_add(word(waiting)?), since: asleep.then_some(word(self.entered)?) };
        Some((first == second, reading))
    }
}

impl KernelMemory {
    /// Finds the clocks of these CPUs, and compares them with those of the list.
    ///
    /// # Errors
    /// Why they cannot be read here.
    fn open(cpus: &[u32], list: &mut TimerList) -> Result<Self, String> {
        let structures = ["tick_sched", "task_struct", "sched_entity", "cfs_rq", "rq"];
        let types = KernelTypes::of_this_kernel(&structures, &["tick_cpu_sched", "runqueues"])?;
        let memory = Self::find(cpus, &types)?;
        let mut listed = || list.read().map(|(_, clocks)| clocks).ok_or("/proc/timer_list ended early");
        let (before, own, after) = (listed()?, memory.read().map(|(_, clocks)| clocks), listed()?);
        let own = own.ok_or("the kernel's idle clocks cannot be copied")?;
        // Clocks only advance, and a CPU that sleeps all the time does so in all three.
        let agree = |((before, own), after): ((&CpuClock, &CpuClock), &CpuClock)| {
            let slept = (before.slept..=after.slept).contains(&own.slept);
            slept && (before.since.is_none() || before != after || own == before)
        };
        let same = before.len() == own.len() && before.iter().zip(&own).zip(&after).all(agree);
        let differ = "the kernel's memory has other idle clocks than /proc/timer_list";
        if same { Ok(memory) } else { Err(differ.to_owned()) }
    }

    fn find(cpus: &[u32], types: &KernelTypes) -> Result<Self, String> {
        let layout = Layout::of(types)?;
        let words = usize::from(COPIES.unsigned_abs()) / 8 + 2 * usize::try_from(layout.bytes / 8).unwrap_or(0);
        let failed = |error: sys::bpf::Error| error.to_string();
        let map = ArrayMap::create("iotoll_idle", words, cpus.len()).map_err(failed)?;
        let locate = Program::load("iotoll_locate", &locate(&map, layout, types)?).map_err(failed)?;
        for (place, cpu) in (0u64..).zip(cpus) {
            locate.run_on(*cpu, &[place, u64::from(*cpu)]).map_err(failed)?;
        }
        if map.values().any(|words| words.first().is_none_or(|address| address.load(Ordering::Relaxed) == 0)) {
            return Err("the kernel's run queues are not where its types say".to_owned());
        }
        let copy = Program::load("iotoll_idle", &copy(&map, layout, cpus.len())).map_err(failed)?;
        Ok(Self { map, copy, layout })
    }

    /// The kernel's time, and the clock of each CPU. A clock that changed while it was copied is copied again, and so are all if something
    /// interrupted that.
    fn read(&self) -> Option<(u64, Vec<CpuClock>)> {
        let mut kept = self.attempt()?;
        for _ in 1..ATTEMPTS {
            if kept.took_nanos < LONGEST_NANOS && kept.clocks.iter().all(|(steady, _)| *steady) {
                break;
            }
            let again = self.attempt()?;
            if kept.took_nanos >= LONGEST_NANOS {
                kept = again;
            } else if again.took_nanos < LONGEST_NANOS {
                let unsteady = kept.clocks.iter_mut().zip(again.clocks).filter(|((steady, _), _)| !steady);
                unsteady.for_each(|(kept, again)| *kept = again);
            }
        }
        Some((kept.begun_nanos, kept.clocks.into_iter().map(|(_, clock)| clock).collect()))
    }

    fn attempt(&self) -> Option<Attempt> {
        self.copy.run_here(&[]).ok()?;
        let (mut clocks, mut begun, mut ended) = (Vec::with_capacity(self.map.values().len()), u64::MAX, 0);
        for words in self.map.values() {
            let words: Vec<u64> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            let (head, copies) = words.split_at_checked(usize::from(COPIES.unsigned_abs()) / 8)?;
            let at = *head.get(usize::from(AT.unsigned_abs()) / 8)?;
            (begun, ended) = (begun.min(at), ended.max(at));
            clocks.push(self.layout.reading(copies)?);
        }
        Some(Attempt { begun_nanos: begun, took_nanos: ended.saturating_sub(begun), clocks })
    }
}

/// Copies of all clocks.
struct Attempt {
    begun_nanos: u64,
    took_nanos: u64,
    /// Each with whether it stayed the same while it was copied.
    clocks: Vec<(bool, CpuClock)>,
}

/// Notes where the clock of the CPU is that the program runs on: its arguments are the place in the map and the number of the CPU.
fn locate<'maps>(map: &'maps ArrayMap, layout: Layout, types: &KernelTypes) -> Result<Code<'maps>, String> {
    let at = |place: Place| i32::try_from(place.byte).map_err(|_| "the kernel's structures are too long".to_owned());
    let queue_of_task = at(types.member("task_struct", "se")?)? + at(types.member("sched_entity", "cfs_rq")?)?;
    let (run_queue, cpu) = (at(types.member("cfs_rq", "rq")?)?, at(types.member("rq", "cpu")?)?);
    let (queues, clocks) = (types.of_each_cpu("runqueues")?, types.of_each_cpu("tick_cpu_sched")?);
    let further = i64::from(clocks) + i64::from(layout.begin) - i64::from(queues);
    let further = i32::try_from(further).map_err(|_| "the kernel's variables are too far apart".to_owned())?;
    const KEY: i16 = -4;
    const READ: i16 = -16;
    let mut code = Assembler::new();
    let end = code.label();
    code.copy(R6, R1).load(Eight, R1, R6, 0).store(Four, R10, KEY, R1);
    code.address(R2, R10, KEY.into())
        .map(R1, map)
        .call(Helper::MapLookup)
        .jump_if_constant(R0, Equal, 0, end)
        .copy(R7, R0);
    // From the task to the queue of its group, and to the run queue of the CPU.
    code.call(Helper::Task).copy(R8, R0);
    for offset in [queue_of_task, run_queue] {
        code.address(R1, R10, READ.into()).set(R2, 8).address(R3, R8, offset).call(Helper::ReadKernel);
        code.jump_if_constant(R0, NotEqual, 0, end).load(Eight, R8, R10, READ);
    }
    code.address(R1, R10, READ.into()).set(R2, 4).address(R3, R8, cpu).call(Helper::ReadKernel);
    code.jump_if_constant(R0, NotEqual, 0, end).load(Four, R1, R10, READ).load(Eight, R2, R6, 8);
    code.jump_if(R1, NotEqual, R2, end).compute_constant(Operation::Add, R8, further).store(Eight, R7, ADDRESS, R8);
    code.bind(end).set(R0, 0).exit();
    Ok(code.finish())
}

/// Copies the clocks of this number of CPUs, each twice.
fn copy(map: &ArrayMap, layout: Layout, cpus: usize) -> Code<'_> {
    const KEY: i16 = -4;
    let mut code = Assembler::new();
    let (next, end) = (code.label(), code.label());
    let bytes = i32::try_from(layout.bytes).unwrap_or(0);
    code.set(R9, 0).bind(next).store(Four, R10, KEY, R9);
    code.address(R2, R10, KEY.into())
        .map(R1, map)
        .call(Helper::MapLookup)
        .jump_if_constant(R0, Equal, 0, end)
        .copy(R7, R0);
    code.call(Helper::Nanoseconds).store(Eight, R7, AT, R0);
    for first in [i32::from(COPIES), i32::from(COPIES) + bytes] {
        code.address(R1, R7, first).set(R2, bytes).load(Eight, R3, R7, ADDRESS).call(Helper::ReadKernel);
    }
    code.compute_constant(Operation::Add, R9, 1);
    code.jump_if_constant(R9, Below, i32::try_from(cpus).unwrap_or(0), next).bind(end).set(R0, 0).exit();
    code.finish()
}

#[cfg(test)]
mod tests;
