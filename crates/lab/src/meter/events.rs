//! Exact counts of events on each CPU: passes of tracepoints, system calls by number, softirqs by vector.
//!
//! A program at each raw tracepoint adds 1 to a word of its CPU, which takes some 10 ns a pass. Because every system
//! call passes `sys_enter`, and enters and leaves the kernel more slowly then (50 to 100 ns), system calls are a set of
//! their own.

use super::accounts::SOFTIRQS;
use std::sync::atomic::{AtomicU64, Ordering};
use sys::bpf::{ArrayMap, Assembler, AssemblyError, Code, Condition, Error, Helper, Link, Operation, Program};
use sys::bpf::{Register, Width};

/// What to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSet {
    /// Passes of raw tracepoints, by their names without a group (`sched_switch`).
    Tracepoints(Vec<String>),
    /// System calls by number.
    SystemCalls,
    /// Softirqs by vector.
    Softirqs,
}

/// What was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Tracepoint(String),
    /// By its number on this architecture.
    SystemCall(u32),
    /// With a number that no system call has.
    OtherSystemCalls,
    Softirq(&'static str),
}

/// How often an event happened since the events were attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCount {
    pub event: Event,
    /// By the number of the CPU.
    pub of_cpus: Vec<u64>,
    /// Passes on unknown CPUs: an interrupt passed the tracepoint while its program ran.
    pub elsewhere: u64,
}

/// Counts since the events were attached. Each is read at an instant of its own, within microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// In the order of the set; system calls and softirqs only if they happened.
    pub events: Vec<EventCount>,
    /// System calls or softirqs that are not among the events, because it is unknown which they were.
    pub unknown: u64,
    /// Tracepoints that cannot be counted here, and why.
    pub unavailable: Vec<(String, String)>,
}

/// Counters of events: programs loaded, memory made.
#[derive(Debug)]
pub struct Events {
    set: EventSet,
    /// One value per CPU, with one word per event.
    counts: ArrayMap,
    counters: Vec<Counter>,
    attached: Option<Attached>,
}

#[derive(Debug)]
struct Counter {
    tracepoint: String,
    program: Program,
}

#[derive(Debug)]
struct Attached {
    _links: Vec<Link>,
    unavailable: Vec<(String, String)>,
    /// What the kernel had left out before, of each counter.
    left_out_before: Vec<u64>,
}

/// System calls have smaller numbers.
const SYSTEM_CALLS: i32 = 512;
/// Places of system calls and softirqs in the arguments of their tracepoints.
const NUMBER_OF_SYSTEM_CALL: i16 = 8;
const VECTOR_OF_SOFTIRQ: i16 = 0;

impl Events {
    /// Makes the memory and loads the programs.
    ///
    /// # Errors
    /// Why they cannot run here, and what helps.
    pub fn open(set: EventSet) -> Result<Self, String> {
        Self::load(set).map_err(|error| error.to_string())
    }

    fn load(set: EventSet) -> Result<Self, Error> {
        /// Words of a cache line: CPUs share none.
        const LINE: usize = 8;
        let listing = |error| Error::Failed { attempt: "listing CPUs", error };
        let possible = sys::schedule::possible_cpus().map_err(listing)?;
        let cpus = possible.iter().max().and_then(|highest| usize::try_from(highest + 1).ok()).unwrap_or(1);
        let counts = ArrayMap::create("iotoll_events", set.words().next_multiple_of(LINE), cpus)?;
        let counter = |tracepoint: &str, code: Result<Code<'_>, AssemblyError>| {
            Ok(Counter { tracepoint: tracepoint.to_owned(), program: Program::load(tracepoint, &code?)? })
        };
        let counters = match &set {
            EventSet::Tracepoints(names) => {
                let numbered = names.iter().zip(0i16..);
                numbered.map(|(name, index)| counter(name, counting(&counts, index))).collect::<Result<_, Error>>()?
            }
            EventSet::SystemCalls => {
                let code = counting_by_argument(&counts, NUMBER_OF_SYSTEM_CALL, SYSTEM_CALLS);
                vec![counter("sys_enter", code)?]
            }
            EventSet::Softirqs => {
                let vectors = i32::try_from(SOFTIRQS.len()).unwrap_or(0);
                vec![counter("softirq_entry", counting_by_argument(&counts, VECTOR_OF_SOFTIRQ, vectors))?]
            }
        };
        Ok(Self { set, counts, counters, attached: None })
    }

    /// Attaches the programs, and starts all counts at 0.
    ///
    /// # Errors
    /// When no event of the set can be counted here.
    pub fn attach(&mut self) -> Result<(), String> {
        self.detach();
        self.counts.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let left_out_before = self.left_out()?;
        let (mut links, mut unavailable) = (Vec::new(), Vec::new());
        for counter in &self.counters {
            match counter.program.attach(&counter.tracepoint) {
                Ok(link) => links.push(link),
                Err(error) => unavailable.push((counter.tracepoint.clone(), error.to_string())),
            }
        }
        match unavailable.first() {
            Some((_, reason)) if links.is_empty() => Err(reason.clone()),
            _ => {
                self.attached = Some(Attached { _links: links, unavailable, left_out_before });
                Ok(())
            }
        }
    }

    /// Reads all counts.
    ///
    /// # Errors
    /// When the programs are not attached.
    pub fn read(&self) -> Result<EventCounts, String> {
        let Some(attached) = &self.attached else {
            return Err("the events are not attached".to_owned());
        };
        let before = attached.left_out_before.iter();
        let left_out: Vec<u64> =
            self.left_out()?.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect();
        let count = |index: usize, event: Event, elsewhere: u64| {
            let of_cpu = |words: &[AtomicU64]| words.get(index).map_or(0, |word| word.load(Ordering::Relaxed));
            EventCount { event, of_cpus: self.counts.values().map(of_cpu).collect(), elsewhere }
        };
        let mut counts = EventCounts { unavailable: attached.unavailable.clone(), ..EventCounts::default() };
        match &self.set {
            EventSet::Tracepoints(names) => {
                let available = |name: &String| attached.unavailable.iter().all(|(missing, _)| missing != name);
                let counted = names.iter().zip(left_out).enumerate().filter(|(_, (name, _))| available(name));
                let event = |(index, (name, left_out)): (usize, (&String, u64))| {
                    count(index, Event::Tracepoint(name.clone()), left_out)
                };
                counts.events = counted.map(event).collect();
            }
            EventSet::SystemCalls => {
                let numbers = (0..SYSTEM_CALLS.unsigned_abs()).map(Event::SystemCall);
                let events = numbers.chain([Event::OtherSystemCalls]).enumerate();
                counts.events = events.map(|(index, event)| count(index, event, 0)).collect();
                counts.unknown = left_out.iter().sum();
            }
            EventSet::Softirqs => {
                let events = SOFTIRQS.into_iter().enumerate();
                counts.events = events.map(|(index, vector)| count(index, Event::Softirq(vector), 0)).collect();
                counts.unknown = left_out.iter().sum();
            }
        }
        if !matches!(self.set, EventSet::Tracepoints(_)) {
            counts.events.retain(|event| event.total() > 0);
        }
        Ok(counts)
    }

    /// Detaches the programs; they stay loaded.
    pub fn detach(&mut self) {
        self.attached = None;
    }

    fn left_out(&self) -> Result<Vec<u64>, String> {
        let left_out = self.counters.iter().map(|counter| Ok(counter.program.statistics()?.left_out));
        left_out.collect::<Result<_, Error>>().map_err(|error| error.to_string())
    }
}

impl EventSet {
    /// Words that one CPU needs.
    fn words(&self) -> usize {
        match self {
            Self::Tracepoints(names) => names.len().max(1),
            // And one for all others.
            Self::SystemCalls => usize::try_from(SYSTEM_CALLS).unwrap_or(0) + 1,
            Self::Softirqs => SOFTIRQS.len() + 1,
        }
    }
}

impl EventCount {
    /// On all CPUs.
    pub fn total(&self) -> u64 {
        self.of_cpus.iter().sum::<u64>() + self.elsewhere
    }
}

/// Finds the words of this CPU, in R0, and keeps the arguments in R6.
fn at_words_of_cpu(counts: &ArrayMap) -> (Assembler<'_>, sys::bpf::Label) {
    use Register::{R0, R1, R2, R6, R10};
    const CPU: i16 = -4;
    let mut code = Assembler::new();
    let end = code.label();
    code.copy(R6, R1).call(Helper::ThisCpu).store(Width::Four, R10, CPU, R0);
    code.address(R2, R10, CPU.into()).map(R1, counts).call(Helper::MapLookup);
    code.jump_if_constant(R0, Condition::Equal, 0, end);
    (code, end)
}

/// Adds 1 to a word at an offset from R0. Plain instructions suffice: the kernel leaves a program out that would
/// interrupt itself, and says how often.
fn finished((mut code, end): (Assembler<'_>, sys::bpf::Label), offset: i16) -> Result<Code<'_>, AssemblyError> {
    use Register::{R0, R1};
    code.load(Width::Eight, R1, R0, offset).compute_constant(Operation::Add, R1, 1);
    code.store(Width::Eight, R0, offset, R1).bind(end).set(R0, 0).exit();
    code.finish()
}

/// Counts passes in a word.
fn counting(counts: &ArrayMap, index: i16) -> Result<Code<'_>, AssemblyError> {
    let offset = index.checked_mul(8).ok_or(AssemblyError::TooFar)?;
    finished(at_words_of_cpu(counts), offset)
}

/// Counts passes in the word that an argument says; in the word `limit` if the argument is not below it.
fn counting_by_argument(counts: &ArrayMap, argument: i16, limit: i32) -> Result<Code<'_>, AssemblyError> {
    use Register::{R0, R1, R6};
    let (mut code, end) = at_words_of_cpu(counts);
    let known = code.label();
    code.load(Width::Eight, R1, R6, argument).jump_if_constant(R1, Condition::Below, limit, known).set(R1, limit);
    code.bind(known).compute_constant(Operation::ShiftLeft, R1, 3).compute(Operation::Add, R0, R1);
    finished((code, end), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipping::note_skipped;
    use std::net::UdpSocket;
    use std::os::unix::fs::FileExt;
    use std::time::Duration;

    /// Attached events, or the printed reason why this machine has none.
    fn attached(test: &str, set: EventSet) -> Option<Events> {
        match Events::load(set) {
            Ok(mut events) => {
                events.attach().unwrap();
                Some(events)
            }
            Err(error @ (Error::Refused { .. } | Error::NoBpf | Error::Unsupported { .. })) => {
                note_skipped(test, &error.to_string());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn total(events: &Events, event: &Event) -> u64 {
        events.read().unwrap().events.iter().find(|count| count.event == *event).map_or(0, EventCount::total)
    }

    #[test]
    fn each_system_call_counts_once() {
        const CALLS: u64 = 2000;
        let Some(events) = attached("events: each system call counts once", EventSet::SystemCalls) else { return };
        let pread = Event::SystemCall(if cfg!(target_arch = "x86_64") { 17 } else { 67 });
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let counted = |_| {
            let before = total(&events, &pread);
            (0..CALLS).for_each(|_| {
                file.read_at(&mut [0; 8], 0).unwrap();
            });
            total(&events, &pread) - before
        };
        // Other programs read files too, but not all the time.
        let counts: Vec<u64> = (0..50).map(counted).collect();
        assert_eq!(counts.iter().min(), Some(&CALLS), "{counts:?}");
    }

    #[test]
    fn a_sleeping_thread_passes_tracepoints() {
        let names = ["sched_switch", "no_such_tracepoint", "hrtimer_start"].map(str::to_owned);
        let set = EventSet::Tracepoints(names.to_vec());
        let Some(mut events) = attached("events: a sleeping thread passes tracepoints", set) else { return };
        (0..100).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
        let counts = events.read().unwrap();
        let found: Vec<&Event> = counts.events.iter().map(|count| &count.event).collect();
        let expected = ["sched_switch", "hrtimer_start"].map(|name| Event::Tracepoint(name.to_owned()));
        assert_eq!(found, expected.iter().collect::<Vec<_>>());
        assert!(counts.events.iter().all(|count| count.total() >= 100), "{counts:?}");
        let [(name, reason)] = counts.unavailable.as_slice() else { panic!("{counts:?}") };
        assert!(name == "no_such_tracepoint" && reason.contains(name), "{reason}");
        events.detach();
        assert!(events.read().is_err());
        events.attach().unwrap();
        assert!(total(&events, &Event::Tracepoint("hrtimer_start".to_owned())) < 1_000_000);
    }

    #[test]
    fn received_packets_raise_softirqs() {
        const PACKETS: u64 = 3000;
        let Some(events) = attached("events: received packets raise softirqs", EventSet::Softirqs) else { return };
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..PACKETS {
            sender.send_to(&[0; 64], receiver.local_addr().unwrap()).unwrap();
        }
        assert!(total(&events, &Event::Softirq("net_rx")) >= PACKETS / 10, "{:?}", events.read());
        let ids: Vec<u32> = events.counters.iter().map(|counter| counter.program.statistics().unwrap().id).collect();
        drop(events);
        let gone = |_| {
            std::thread::sleep(Duration::from_millis(10));
            sys::bpf::loaded_programs().unwrap().iter().all(|id| !ids.contains(id))
        };
        assert!((0..500).any(gone), "{ids:?} stay");
    }

    #[test]
    fn without_any_event_attaching_says_why() {
        let set = EventSet::Tracepoints(vec!["no_such_tracepoint".to_owned()]);
        match Events::load(set) {
            Ok(mut events) => assert!(events.attach().unwrap_err().contains("no_such_tracepoint")),
            Err(error) => note_skipped("events: without any event", &error.to_string()),
        }
    }
}
