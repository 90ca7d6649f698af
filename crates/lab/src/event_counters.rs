//! Exact counts of events on all CPUs: passes of tracepoints, and system calls by number.
//!
//! A program at each raw tracepoint adds 1 to a word of its CPU. Unlike the counters of perf, programs see what the idle tasks do.

use std::sync::atomic::{AtomicU64, Ordering};
use sys::bpf::{ArrayMap, Assembler, Code, Condition, Error, Helper, Label, Link, Operation, Program, Register, Width};

/// System calls have smaller numbers.
pub(crate) const NUMBERED_CALLS: i32 = 512;
/// Place of its number in the arguments of the tracepoint.
const NUMBER_OF_SYSTEM_CALL: i16 = 8;
/// Words of a cache line: CPUs share none.
const LINE: usize = 8;

/// Counters of one set of events: programs loaded, memory made. Each index is a tracepoint's, in the order in which they were named.
#[derive(Debug)]
pub(crate) struct Counters {
    /// One value per CPU: a word per tracepoint, then those of system calls by number, if they are counted.
    counts: ArrayMap,
    tracepoints: Vec<(String, Program)>,
    system_calls: Option<Program>,
    links: Vec<Link>,
}

/// Counts at an instant; their differences are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    words: Vec<u64>,
    tracepoints: usize,
}

impl Counters {
    /// Makes the memory and loads the programs.
    ///
    /// # Errors
    /// Without the right, the memory, or the kernel's support.
    pub(crate) fn load(tracepoints: &[&str], system_calls: bool) -> Result<Self, Error> {
        let listing = |error| Error::because(format!("listing CPUs failed: {error}"));
        let possible = sys::schedule::possible_cpus().map_err(listing)?;
        let cpus = possible.iter().max().and_then(|highest| usize::try_from(highest + 1).ok()).unwrap_or(1);
        // And one for numbers that no system call has.
        let of_calls = if system_calls { usize::try_from(NUMBERED_CALLS).unwrap_or(0) + 1 } else { 0 };
        let words = (tracepoints.len() + of_calls).max(1).next_multiple_of(LINE);
        let counts = ArrayMap::create("iotoll_events", words, cpus)?;
        let too_many = |_| Error::because("a BPF program reaches at most 4096 counters of a CPU; name fewer events");
        let offset = |index: usize| i16::try_from(8 * index).map_err(too_many);
        let load = |name: &str, code: Code<'_>| Program::load(&format!("iotoll_{name}"), &code);
        let counting = |(index, name): (usize, &&str)| {
            let code = finished(at_words_of_cpu(&counts), offset(index)?);
            Ok(((*name).to_owned(), load(name, code)?))
        };
        let programs = tracepoints.iter().enumerate().map(counting).collect::<Result<_, Error>>()?;
        let by_number = || load("sys_enter", calls(&counts, offset(tracepoints.len())?));
        let system_calls = system_calls.then(by_number).transpose()?;
        Ok(Self { counts, tracepoints: programs, system_calls, links: Vec::new() })
    }

    /// Attaches all programs. Returns the indices of tracepoints that the kernel does not have, with the reasons.
    ///
    /// # Errors
    /// When system calls cannot be counted.
    pub(crate) fn attach(&mut self) -> Result<Vec<(usize, String)>, Error> {
        self.detach();
        let mut missing = Vec::new();
        for (index, (name, program)) in self.tracepoints.iter().enumerate() {
            match program.attach(name) {
                Ok(link) => self.links.push(link),
                Err(error) => missing.push((index, error.to_string())),
            }
        }
        if let Some(program) = &self.system_calls {
            self.links.push(program.attach("sys_enter")?);
        }
        Ok(missing)
    }

    /// Detaches the programs; they stay loaded.
    pub(crate) fn detach(&mut self) {
        self.links.clear();
    }

    /// The counts now. Takes microseconds, and no system call.
    pub(crate) fn read(&self) -> Counts {
        let mut values = self.counts.values();
        let value = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let mut words: Vec<u64> = values.next().unwrap_or_default().iter().map(value).collect();
        for of_cpu in values {
            words.iter_mut().zip(of_cpu).for_each(|(sum, word)| *sum = sum.wrapping_add(value(word)));
        }
        Counts { words, tracepoints: self.tracepoints.len() }
    }

    /// Passes of each tracepoint that the kernel did not count so far, because an interrupt passed it while its program ran. The same
    /// cannot happen to system calls.
    ///
    /// # Errors
    /// As bpf(2).
    pub(crate) fn left_out(&self) -> Result<Vec<u64>, Error> {
        self.tracepoints.iter().map(|(_, program)| program.left_out()).collect()
    }

    /// All passes of a tracepoint so far, with those that the kernel did not count by itself. Does not allocate.
    ///
    /// # Errors
    /// As bpf(2).
    pub(crate) fn passes(&self, index: usize) -> Result<u64, Error> {
        let of_cpu = |words: &[AtomicU64]| words.get(index).map_or(0, |word| word.load(Ordering::Relaxed));
        let counted = self.counts.values().map(of_cpu).fold(0, u64::wrapping_add);
        let left_out = self.tracepoints.get(index).map_or(Ok(0), |(_, program)| program.left_out())?;
        Ok(counted.wrapping_add(left_out))
    }

    /// The count of one tracepoint on each CPU.
    #[cfg(test)]
    pub(crate) fn on_each_cpu(&self, index: usize) -> Vec<u64> {
        self.counts.values().map(|words| words[index].load(Ordering::Relaxed)).collect()
    }
}

impl Counts {
    /// What came after an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let words = self.words.iter().zip(&earlier.words).map(|(now, then)| now.wrapping_sub(*then));
        Self { words: words.collect(), tracepoints: self.tracepoints }
    }

    /// Passes of a tracepoint, by its index.
    pub(crate) fn of(&self, tracepoint: usize) -> u64 {
        self.words.get(tracepoint).filter(|_| tracepoint < self.tracepoints).copied().unwrap_or(0)
    }

    /// System calls that happened, by number; the highest stands for all numbers that no system call has.
    pub(crate) fn system_calls(&self) -> impl Iterator<Item = (u32, u64)> {
        let calls = self.words.get(self.tracepoints..).unwrap_or_default().iter().copied();
        (0..=NUMBERED_CALLS.unsigned_abs()).zip(calls).filter(|(_, count)| *count > 0)
    }
}

/// Finds the words of this CPU, in R0, and keeps the arguments in R6.
fn at_words_of_cpu(counts: &ArrayMap) -> (Assembler<'_>, Label) {
    use Register::{R0, R1, R2, R6, R10};
    const CPU: i16 = -4;
    let mut code = Assembler::new();
    let end = code.label();
    code.copy(R6, R1).call(Helper::ThisCpu).store(Width::Four, R10, CPU, R0);
    code.address(R2, R10, CPU.into()).map(R1, counts).call(Helper::MapLookup);
    code.jump_if_constant(R0, Condition::Equal, 0, end);
    (code, end)
}

/// Adds 1 to a word at an offset from R0. Plain instructions suffice: the kernel leaves a program out that would interrupt itself, and
/// says how often.
fn finished((mut code, end): (Assembler<'_>, Label), offset: i16) -> Code<'_> {
    use Register::{R0, R1};
    code.load(Width::Eight, R1, R0, offset).compute_constant(Operation::Add, R1, 1);
    code.store(Width::Eight, R0, offset, R1).bind(end).set(R0, 0).exit();
    code.finish()
}

/// Counts system calls by number in the words from `offset` on.
fn calls(counts: &ArrayMap, offset: i16) -> Code<'_> {
    use Register::{R0, R1, R6};
    let (mut code, end) = at_words_of_cpu(counts);
    let known = code.label();
    code.load(Width::Eight, R1, R6, NUMBER_OF_SYSTEM_CALL);
    code.jump_if_constant(R1, Condition::Below, NUMBERED_CALLS, known).set(R1, NUMBERED_CALLS).bind(known);
    code.compute_constant(Operation::ShiftLeft, R1, 3).compute(Operation::Add, R0, R1);
    finished((code, end), offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipping::{allowed, note_skipped};
    use std::net::UdpSocket;
    use std::os::unix::fs::FileExt;
    use std::time::{Duration, Instant};

    /// Attached counters, or the printed reason why this machine has none.
    fn attached(test: &str, tracepoints: &[&str], system_calls: bool) -> Option<Counters> {
        let mut counters = allowed(test, Counters::load(tracepoints, system_calls))?;
        counters.attach().unwrap();
        Some(counters)
    }

    /// The least of what happened in some repetitions: other programs do the same at times, but not always.
    fn least(counters: &Counters, of: impl Fn(&Counts) -> u64, work: impl Fn()) -> u64 {
        let counted = |_| {
            let before = counters.read();
            work();
            of(&counters.read().since(&before))
        };
        (0..50).map(counted).min().unwrap()
    }

    #[test]
    fn each_system_call_counts_once() {
        const CALLS: u64 = 2000;
        let Some(counters) = attached("events: each system call counts once", &["sched_switch"], true) else { return };
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let pread = if cfg!(target_arch = "x86_64") { 17 } else { 67 };
        let preads = |counts: &Counts| counts.system_calls().find(|(number, _)| *number == pread).map_or(0, |it| it.1);
        let counted = least(&counters, preads, || {
            (0..CALLS).for_each(|_| assert_eq!(file.read_at(&mut [0; 8], 0).unwrap(), 8));
        });
        assert_eq!(counted, CALLS);
    }

    #[test]
    fn each_packet_counts_once() {
        const PACKETS: u64 = 500;
        let names = ["net_dev_xmit", "netif_receive_skb"];
        let Some(counters) = attached("events: each packet counts once", &names, false) else { return };
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = receiver.local_addr().unwrap();
        for (index, name) in names.iter().enumerate() {
            let counted = least(
                &counters,
                |counts| counts.of(index),
                || {
                    for _ in 0..PACKETS {
                        sender.send_to(&[0; 64], address).unwrap();
                    }
                    // Received, not only sent.
                    receiver.recv(&mut [0; 64]).unwrap();
                },
            );
            // The last ones may be received later, by a softirq that was interrupted.
            assert!((PACKETS - 5..=PACKETS).contains(&counted), "{name}: {counted}");
        }
    }

    #[test]
    fn idle_tasks_are_seen_on_each_cpu() {
        const TEST: &str = "events: idle tasks are seen on each CPU";
        let Some(counters) = attached(TEST, &["cpu_idle"], false) else { return };
        let cpus = sys::schedule::allowed_cpus().unwrap();
        // The tests beside it take some ten seconds.
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            let before = counters.on_each_cpu(0);
            for cpu in cpus.clone() {
                let sleeper = std::thread::spawn(move || {
                    sys::schedule::pin_to(&[cpu]).unwrap();
                    (0..20).for_each(|_| std::thread::sleep(Duration::from_micros(200)));
                });
                sleeper.join().unwrap();
            }
            let grown: Vec<u64> = before.iter().zip(counters.on_each_cpu(0)).map(|(then, now)| now - then).collect();
            if cpus.iter().all(|cpu| grown[*cpu as usize] > 0) {
                return;
            }
        }
        note_skipped(TEST, "other programs left no CPU idle");
    }

    #[test]
    fn a_missing_tracepoint_has_a_reason_and_the_others_are_counted() {
        let names = ["sched_switch", "no_such_tracepoint", "hrtimer_start"];
        let Some(mut counters) = attached("events: a missing tracepoint", &names, false) else { return };
        let missing = counters.attach().unwrap();
        assert!(matches!(missing.as_slice(), [(1, reason)] if reason.contains("no_such_tracepoint")), "{missing:?}");
        let before = counters.read();
        (0..100).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
        let counts = counters.read().since(&before);
        assert!(counters.passes(0).unwrap() >= counts.of(0));
        assert!(counts.of(0) >= 100 && counts.of(1) == 0 && counts.of(2) >= 100, "{counts:?}");
        assert_eq!((counts.of(3), counters.left_out().unwrap().len()), (0, 3));
        counters.detach();
        let stands = |_| {
            let detached = counters.read();
            std::thread::sleep(Duration::from_millis(5));
            counters.read() == detached
        };
        // A program that another test starts holds them until it is executed.
        assert!((0..200).any(stands), "{:?}", counters.read());
    }
}
