//! Events per I/O: counted in windows or rounds of their own, because each count takes time (some 0.1 µs, and as much for a system
//! call: docs/method/events.md).
//!
//! The programs are attached before the first count of such a window and detached after its last. Between two counts iotoll does nothing
//! but wait, so that what it does to read, save and show is in none of them. I/Os are read together with the counts. Rounds of slices hold
//! them from before the first slice until after the last.

mod named;

use super::Work;
use crate::canary::null_system_call_nanos;
use crate::error::Result;
use crate::event_counters::{Counters, Counts};
use model::events::{ALL, Event, Events, HARDWARE, SYSTEM_CALLS, Wanted};
use model::reading::Reading;
use model::record::{Done, EventCounts, Mode};
use model::unit::Nanos;
use named::{Calls, Named, Names, call_name};
use std::collections::BTreeMap;
use sys::clock::monotonic_nanos;
use sys::perf::HardwareCounter;

/// Tracepoints that are counted in the same windows.
const MOST_AT_ONCE: usize = 32;

/// What is counted, or why nothing is.
pub(super) struct EventMeter {
    sets: Vec<Set>,
    pub(super) status: Events,
    /// The set whose programs are attached.
    attached: Option<usize>,
    /// They stay attached between windows.
    held: bool,
    window: Window,
}

/// Events that are counted in the same windows.
struct Set {
    counters: Counters,
    /// The full names of its tracepoints.
    tracepoints: Vec<String>,
    /// How many of them the kernel has.
    available: usize,
    calls: Calls,
    hardware: Vec<OfHardware>,
}

/// What the hardware counts, on each CPU. It counts all the time, which slows nothing.
struct OfHardware {
    name: String,
    counters: Vec<HardwareCounter>,
}

/// The present window.
#[derive(Default)]
pub struct Window {
    last: Option<Look>,
    /// What the kernel had left out before.
    left_out: Vec<u64>,
    counted: Vec<EventCounts>,
}

/// Counts at an instant, and the work until then.
struct Look {
    at_nanos: Nanos,
    counts: Counts,
    /// In the order of the set.
    hardware: Vec<u64>,
    done: Option<Done>,
}

impl EventMeter {
    /// Loads the programs of what is wanted, and shows what can be counted here. `asked` says whether the user named it.
    ///
    /// # Errors
    /// Refused, when a name is none of this machine's.
    pub(super) fn open(wanted: &[Wanted], asked: bool) -> Result<Self> {
        let names = named::resolve(wanted)?;
        let mut status = Events { asked, ..Events::default() };
        let sets = Self::sets(names, &mut status).unwrap_or_else(|error| {
            status = Events { asked, reason: Some(error.to_string()), ..Events::default() };
            Vec::new()
        });
        Ok(Self { sets, status, attached: None, held: false, window: Window::default() })
    }

    fn sets(names: Names, status: &mut Events) -> std::result::Result<Vec<Set>, sys::bpf::Error> {
        status.nanos_per_count = Some(nanos_per_count()?);
        let Names { tracepoints, mut calls, hardware, unavailable } = names;
        status.events.extend(unavailable.into_iter().map(|(name, reason)| Event {
            name,
            named: true,
            set: Reading::Unavailable(reason),
        }));
        let mut hardware = OfHardware::open(&hardware, status);
        let mut sets: Vec<Set> = Vec::new();
        let without_tracepoints: &[Named] = &[];
        let chunks = tracepoints.chunks(MOST_AT_ONCE);
        for chunk in chunks.chain(tracepoints.is_empty().then_some(without_tracepoints)) {
            let Ok(number) = u8::try_from(sets.len()) else { break };
            // System calls and the hardware are counted in the first windows.
            let mut set = Set::open(number, chunk, std::mem::take(&mut calls), status)?;
            set.hardware = std::mem::take(&mut hardware);
            sets.extend(Some(set).filter(Set::counts));
        }
        Ok(sets)
    }

    /// The modes of the windows that it needs.
    pub(super) fn modes(&self) -> impl Iterator<Item = Mode> {
        (0u8..).zip(&self.sets).map(|(set, _)| Mode::Events(set))
    }

    /// Before a snapshot that is followed by time in this mode. Ends the window before.
    pub(super) fn before(&mut self, next: Mode) -> Vec<EventCounts> {
        let counted = self.end();
        let next = match next {
            Mode::Events(set) => Some(usize::from(set)).filter(|set| *set < self.sets.len()),
            Mode::Quiet | Mode::Alone(_) | Mode::Gap => None,
        };
        if !self.held && next != self.attached {
            // Where it fails, the window has no counts.
            self.attach(next);
        }
        counted
    }

    /// Keeps a set attached from now on, also between windows. Returns whether it is.
    pub(super) fn hold(&mut self, set: u8) -> bool {
        self.attach(Some(usize::from(set)));
        self.held = self.attached.is_some();
        self.held
    }

    /// Detaches it.
    pub(super) fn release(&mut self) {
        (self.held, self.window) = (false, Window::default());
        self.attach(None);
    }

    /// Attaches a set, and detaches the others.
    fn attach(&mut self, next: Option<usize>) {
        self.sets.iter_mut().for_each(|set| set.counters.detach());
        self.attached = next.filter(|next| self.sets.get_mut(*next).is_some_and(|set| set.counters.attach().is_ok()));
    }

    /// Begins to count, if programs are attached.
    pub(super) fn begin(&mut self, work: &dyn Work) {
        self.window = Window::default();
        if let Some(set) = self.attached.and_then(|set| self.sets.get(set))
            && let Ok(left_out) = set.counters.left_out()
        {
            self.window = Window { left_out, last: Look::now(set, work), counted: Vec::new() };
        }
    }

    /// Notes what happened since the last time.
    pub(super) fn note(&mut self, work: &dyn Work) {
        let Some(set) = self.attached.and_then(|set| self.sets.get(set)) else { return };
        let Some(last) = self.window.last.take() else { return };
        // Counts from which some are missing are none.
        let Some(now) = Look::now(set, work) else { return };
        self.window.counted.push(EventCounts {
            begin_nanos: last.at_nanos,
            end_nanos: now.at_nanos,
            done: last.done.zip(now.done).map(|(before, after)| Done {
                ios: after.ios.saturating_sub(before.ios),
                bytes: after.bytes.since(before.bytes),
            }),
            counts: set.named(&now, &last),
        });
        self.window.last = Some(now);
    }

    /// What was counted in the window that ends.
    fn end(&mut self) -> Vec<EventCounts> {
        let Window { last, left_out: before, mut counted } = std::mem::take(&mut self.window);
        let set = self.attached.and_then(|set| self.sets.get(set)).filter(|_| last.is_some());
        let Some((set, last)) = set.zip(counted.last_mut()) else { return Vec::new() };
        let Ok(after) = set.counters.left_out() else { return Vec::new() };
        for ((name, after), before) in set.tracepoints.iter().zip(after).zip(before) {
            let left_out = after.saturating_sub(before);
            if left_out > 0 {
                let count = last.counts.entry(name.clone()).or_default();
                *count = count.saturating_add(left_out);
            }
        }
        counted
    }
}

impl Look {
    /// `None` if the hardware gives no count: another program took its counters.
    fn now(set: &Set, work: &dyn Work) -> Option<Self> {
        let (at_nanos, counts) = (Nanos(monotonic_nanos()), set.counters.read());
        let hardware = set.hardware.iter().map(|counted| counted.read().ok()).collect::<Option<_>>()?;
        Some(Self { at_nanos, counts, hardware, done: work.done() })
    }
}

impl Set {
    /// Loads its programs, and notes which can be attached.
    fn open(
        number: u8,
        tracepoints: &[Named],
        calls: Calls,
        status: &mut Events,
    ) -> std::result::Result<Self, sys::bpf::Error> {
        let names: Vec<&str> = tracepoints.iter().map(|tracepoint| tracepoint.name.as_str()).collect();
        let mut counters = Counters::load(&names, calls != Calls::None)?;
        let missing = counters.attach()?;
        counters.detach();
        for (index, tracepoint) in tracepoints.iter().enumerate() {
            let reason = missing.iter().find(|(other, _)| *other == index);
            let set = reason.map_or(Reading::Taken(number), |(_, reason)| Reading::Unavailable(reason.clone()));
            status.events.push(Event { name: tracepoint.full_name(), named: tracepoint.named, set });
        }
        let of_calls = |name: &str, named| {
            let set = Reading::Taken(number);
            Event { name: format!("{SYSTEM_CALLS}:{name}"), named, set }
        };
        match &calls {
            Calls::None => {}
            Calls::All => status.events.push(of_calls(ALL, false)),
            Calls::Only(names) => status.events.extend(names.iter().map(|name| of_calls(name, true))),
        }
        let available = tracepoints.len() - missing.len();
        let tracepoints = tracepoints.iter().map(Named::full_name).collect();
        Ok(Self { counters, tracepoints, available, calls, hardware: Vec::new() })
    }

    /// Whether there is anything to count.
    fn counts(&self) -> bool {
        self.available > 0 || self.calls != Calls::None || !self.hardware.is_empty()
    }

    /// What happened between two looks, by the full names of the events.
    fn named(&self, now: &Look, last: &Look) -> BTreeMap<String, u64> {
        let counts = now.counts.since(&last.counts);
        let tracepoints = self.tracepoints.iter().enumerate().map(|(index, name)| (name.clone(), counts.of(index)));
        let mut named: BTreeMap<String, u64> = tracepoints.filter(|(_, count)| *count > 0).collect();
        for (number, count) in counts.system_calls() {
            let name = call_name(number);
            if self.calls.has(&name) {
                named.insert(format!("{SYSTEM_CALLS}:{name}"), count);
            }
        }
        for ((counted, now), last) in self.hardware.iter().zip(&now.hardware).zip(&last.hardware) {
            named.insert(format!("{HARDWARE}:{}", counted.name), now.saturating_sub(*last));
        }
        named
    }
}

impl OfHardware {
    /// Opens what this machine has, and notes which it is.
    fn open(names: &[(String, bool)], status: &mut Events) -> Vec<Self> {
        let mut opened = Vec::new();
        for (name, named) in names {
            let of_it = Self::open_one(name);
            let set = of_it.as_ref().map_or_else(|why| Reading::unavailable(why.as_str()), |_| Reading::Taken(0));
            status.events.push(Event { name: format!("{HARDWARE}:{name}"), named: *named, set });
            opened.extend(of_it);
        }
        opened
    }

    fn open_one(name: &str) -> std::result::Result<Self, String> {
        let counted = named::hardware(name).ok_or("iotoll does not know this counter")?;
        let cpus = sys::schedule::online_cpus().map_err(|error| error.to_string())?;
        let open = |cpu: &u32| HardwareCounter::open_cpu(*cpu, counted).map_err(|error| error.to_string());
        let counters = cpus.iter().map(open).collect::<std::result::Result<_, _>>()?;
        let opened = Self { name: name.to_owned(), counters };
        // All of its counters may be in use.
        opened.read().map_err(|error| error.to_string())?;
        Ok(opened)
    }

    fn read(&self) -> std::io::Result<u64> {
        self.counters.iter().map(HardwareCounter::read).sum()
    }
}

/// What a count adds to a system call, which is the most that one adds: it makes the way into the kernel longer, too.
fn nanos_per_count() -> std::result::Result<f64, sys::bpf::Error> {
    let mut counters = Counters::load(&[], true)?;
    let without = null_system_call_nanos();
    counters.attach()?;
    let with = null_system_call_nanos();
    counters.detach();
    Ok((with - without).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::NoWork;
    use crate::skipping::{available, note_skipped};
    use std::cell::Cell;

    /// A load whose I/Os are system calls.
    struct Caller(Cell<u64>);

    impl Work for Caller {
        fn done(&self) -> Option<Done> {
            Some(Done { ios: self.0.get(), ..Done::default() })
        }
    }

    impl Caller {
        fn call(&self, times: u64) {
            (0..times).for_each(|_| {
                // No other test calls it.
                let _ = std::hint::black_box(rustix::process::getpriority_process(None));
            });
            self.0.set(self.0.get() + times);
        }
    }

    fn open(test: &str, wanted: &str) -> Option<EventMeter> {
        let meter = EventMeter::open(&Wanted::parse_list(wanted).unwrap(), true).unwrap();
        available(test, meter.status.reason.clone().map_or(Ok(meter), Err))
    }

    #[test]
    fn counts_stand_beside_the_work_of_the_same_time() {
        let Some(mut meter) = open("events: counts beside the work", "sched:sched_switch,syscalls:getpriority") else {
            return;
        };
        let work = Caller(Cell::new(100));
        assert_eq!(meter.modes().collect::<Vec<_>>(), [Mode::Events(0)]);
        assert!(meter.before(Mode::Events(0)).is_empty());
        work.call(50);
        meter.begin(&work);
        for _ in 0..3 {
            work.call(1000);
            meter.note(&work);
        }
        work.call(50);
        let counted = meter.before(Mode::Gap);
        assert_eq!(counted.len(), 3);
        for counts in &counted {
            assert_eq!(counts.done.unwrap().ios, 1000);
            let calls = counts.counts["syscalls:getpriority"];
            assert!((1000..1200).contains(&calls), "{counts:?}");
            assert!(counts.counts.keys().all(|name| name == "sched:sched_switch" || name == "syscalls:getpriority"));
            assert!(counts.begin_nanos < counts.end_nanos);
        }
        // Detached, nothing is counted.
        meter.begin(&NoWork);
        meter.note(&NoWork);
        assert!(meter.before(Mode::Quiet).is_empty());
    }

    #[test]
    fn many_events_are_counted_in_turn() {
        let Some(meter) = open("events: many are counted in turn", "sched,timer,mm,block,net,io_uring,syscalls") else {
            return;
        };
        assert!(meter.modes().count() > 1);
        let set = |name: &str| meter.status.events.iter().find(|event| event.name == name).unwrap().set.clone();
        assert_eq!((set("syscalls:*"), set("sched:sched_switch")), (Reading::Taken(0), Reading::Taken(0)));
        let sets: Vec<u8> = meter.status.events.iter().filter_map(|event| event.set.taken()).copied().collect();
        assert_eq!(usize::from(*sets.iter().max().unwrap()) + 1, meter.modes().count());
        assert!(meter.status.nanos_per_count.unwrap() < 10_000.0);
    }

    #[test]
    fn the_hardware_counts_or_has_a_reason() {
        let Some(mut meter) = open("events: the hardware counts", "hw:instructions") else { return };
        if meter.modes().count() == 0 {
            let reason = meter.status.events[0].set.reason().unwrap();
            assert!(reason.contains("hardware"), "{reason}");
            return;
        }
        meter.before(Mode::Events(0));
        meter.begin(&NoWork);
        meter.note(&NoWork);
        let counted = meter.before(Mode::Quiet);
        assert!(counted[0].counts["hw:instructions"] > 0, "{counted:?}");
    }

    #[test]
    fn what_the_kernel_lacks_has_a_reason() {
        let known =
            Wanted::Tracepoint { subsystem: "nfs".to_owned(), name: "nfs_initiate_nothing".to_owned(), named: false };
        // As a tracepoint of a group that another version of the kernel has.
        let meter = EventMeter::open(&[known], false).unwrap();
        match &meter.status.reason {
            Some(reason) => note_skipped("events: what the kernel lacks", reason),
            None => {
                let reason = meter.status.events[0].set.reason().unwrap();
                assert!(reason.contains("no raw tracepoint nfs_initiate_nothing"), "{reason}");
                assert_eq!(meter.modes().count(), 0, "nothing to count");
            }
        }
    }
}
