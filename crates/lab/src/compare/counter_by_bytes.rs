//! Which counter sees what carries the bytes of a command that does not report what it does. Pure: rates enter, a choice leaves.
//!
//! Every counter is blind to some kinds of I/O, and moves a little for what is not the work: log lines, a control connection,
//! a ring for timers. So the counter is not the first one that moves, but the one that moves most of the bytes.

use model::experiment::work_counter::{COUNTERS_BY_PREFERENCE, Counted};

/// Counters of bytes agree up to this fraction: buffers and acknowledgements are on their way.
const ALIKE: f64 = 0.1;
/// A counter with less than this part of the bytes is beside the work: log lines, a control connection.
const BESIDE: f64 = 0.02;
/// A typical call that moves fewer bytes is like a log line.
const LOG_LINE: f64 = 512.0;
/// Where one kind of I/O is this many times as frequent as another, the other one is beside the work.
const FREQUENT: f64 = 20.0;
/// Largest plausible I/O of a ring.
const LARGEST_IO: f64 = 4.0 * 1024.0 * 1024.0;
/// With less than this part of the bytes of datagrams, what a command reads and writes is beside them.
const BESIDE_DATAGRAMS: f64 = 0.3;
/// Storage that moves more than this many times as much as the command does more than read ahead.
const READ_AHEAD: f64 = 2.0;
/// A command that makes this many times as many system calls as reads and writes does something else with most of them.
const MOSTLY_OTHER: f64 = 2.0;
/// Other system calls for each I/O of a ring that show that the ring did not do the work.
const OTHER_CALLS: f64 = 4.0;
/// Bytes of the headers of a datagram.
const HEADERS: f64 = 28.0;

/// What a command does per second at work.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// The arm and the command, for messages.
    pub name: String,
    /// Of each counter of [`COUNTERS_BY_PREFERENCE`].
    pub counts: Vec<f64>,
    /// Calls of read, write and their like.
    pub calls: f64,
    /// Bytes of a typical call. A mean would be that of a rare large one, such as a file that is read again now and then.
    pub call_bytes: f64,
    /// Bytes of IP packets of its network namespaces, of all their processes; 0 if it has no UDP socket.
    pub octets: f64,
}

/// The choice for one command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Carrier {
    /// The place of the counter in [`COUNTERS_BY_PREFERENCE`], and what makes it doubtful.
    Known { place: usize, doubt: Option<String> },
    /// Why none can be chosen.
    Ambiguous(String),
    /// None moves.
    Nothing,
}

/// The place of a counter.
fn place_of(name: &str) -> usize {
    COUNTERS_BY_PREFERENCE.iter().position(|row| row.name == name).unwrap_or(COUNTERS_BY_PREFERENCE.len())
}

impl Rates {
    fn of(&self, name: &str) -> f64 {
        self.counts.get(place_of(name)).copied().unwrap_or(0.0)
    }

    /// A counter and its rate, in words.
    fn says(&self, name: &str) -> String {
        let rate = self.of(name);
        match COUNTERS_BY_PREFERENCE.get(place_of(name)).map(|row| row.counts) {
            Some(Counted::Bytes) if name.starts_with("task:") && self.calls > 0.0 => {
                format!("{name} {} in {}", per_second(rate, "B"), per_second(self.calls, " calls"))
            }
            Some(Counted::Bytes) => format!("{name} {}", per_second(rate, "B")),
            _ => format!("{name} {}", per_second(rate, "")),
        }
    }

    /// The counters that move, in words.
    pub fn all(&self) -> String {
        let moving = ["io_uring", "task:both", "task:storage", "tcp", "udp", "syscalls"];
        let moving: Vec<String> =
            moving.into_iter().filter(|name| self.of(name) > 0.0).map(|name| self.says(name)).collect();
        moving.join(", ")
    }

    /// Bytes of datagrams, at least: on loopback the namespace counts each of them twice.
    fn datagram_bytes(&self) -> f64 {
        let of_tcp = self.of("tcp") * 2.0 * (1.0 + ALIKE);
        if self.of("udp") > 0.0 { (self.octets - of_tcp - HEADERS * self.of("udp")).max(0.0) / 2.0 } else { 0.0 }
    }

    /// What is said of this command.
    fn named(&self, why: &str) -> String {
        format!("{}: {why}", self.name)
    }

    /// Whether what it reads and writes looks like log lines.
    fn logs(&self) -> bool {
        self.calls > 0.0 && self.call_bytes < LOG_LINE
    }

    /// The counter of this command.
    pub fn carrier(&self) -> Carrier {
        let (by_bytes, most, doubt) = self.by_bytes();
        let ring = self.of("io_uring");
        if ring > 0.0 {
            let others = self.of("syscalls") - self.calls;
            let rare = ring * FREQUENT <= self.calls && !self.logs();
            // Something else did that, by more system calls than the ring can have needed.
            let aside =
                most > LARGEST_IO * ring || (most > 0.0 && by_bytes != "task:both" && others > OTHER_CALLS * ring);
            let frequent = ring >= FREQUENT * self.calls || (ring >= self.calls && self.logs());
            if rare || aside {
                return Carrier::Known { place: place_of(by_bytes), doubt };
            }
            if frequent {
                return Carrier::Known { place: place_of("io_uring"), doubt: None };
            }
            return Carrier::Ambiguous(format!("it uses io_uring and other calls alike ({})", self.all()));
        }
        if most <= 0.0 {
            if self.of("syscalls") <= 0.0 {
                return Carrier::Nothing;
            }
            // libaio, a timer, or a line of threads for a lock: a call may be an I/O, many, or none.
            let doubt = format!("no counter of bytes moves, only its system calls ({})", self.all());
            return Carrier::Known { place: place_of("syscalls"), doubt: Some(doubt) };
        }
        // A socket that sees the same shows that they are no lines.
        let alone = self.of("tcp") <= BESIDE * most && self.of("udp") <= 0.0;
        if by_bytes == "task:both" && alone && self.logs() {
            // libaio, recvmsg on a socket of another kind, and others.
            if self.of("syscalls") > MOSTLY_OTHER * self.calls {
                return Carrier::Ambiguous(format!(
                    "its reads and writes look like log messages, and most of its system calls do something else ({})",
                    self.all()
                ));
            }
            // Or its lines, while it reads a file through a memory map, which no counter sees.
            let doubt = format!("its reads and writes look like log messages ({})", self.all());
            return Carrier::Known { place: place_of(by_bytes), doubt: Some(doubt) };
        }
        Carrier::Known { place: place_of(by_bytes), doubt }
    }

    /// The counter with most of the bytes, its bytes, and another one that differs by more than a little.
    fn by_bytes(&self) -> (&'static str, f64, Option<String>) {
        let (both, tcp, storage, datagrams) =
            (self.of("task:both"), self.of("tcp"), self.of("task:storage"), self.datagram_bytes());
        let doubt = |what: &str| Some(format!("{what} ({})", self.all()));
        let (name, bytes) = if datagrams > both.max(tcp) / BESIDE_DATAGRAMS {
            ("udp", datagrams)
        } else if tcp > both * (1.0 + ALIKE) {
            ("tcp", tcp)
        } else {
            ("task:both", both)
        };
        if bytes < BESIDE * storage {
            return ("task:storage", storage, None);
        }
        let apart = |other: f64| other > BESIDE * bytes && (other - bytes).abs() > ALIKE * bytes;
        let differs = match name {
            "udp" => [("task:both", both), ("tcp", tcp)].iter().any(|(_, other)| *other > BESIDE * bytes),
            "tcp" => apart(both),
            _ => apart(tcp),
        };
        if differs {
            return (name, bytes, doubt("its counters disagree about how much it moves"));
        }
        // What storage moves for a call may be more than what the call moves: whole pages, and what is read ahead.
        if storage > bytes * READ_AHEAD {
            return (name, bytes, doubt("storage moves much more than it does"));
        }
        (name, bytes, None)
    }

    /// Whether a counter sees the same as the one that carries the bytes.
    fn sees_the_same(&self, place: usize, carrier: usize) -> bool {
        let both = [place, carrier]
            .map(|place| (COUNTERS_BY_PREFERENCE.get(place).map(|row| row.counts), self.counts.get(place)));
        match both {
            [(Some(Counted::Bytes), Some(rate)), (Some(Counted::Bytes), Some(carried))] => {
                (rate - carried).abs() <= ALIKE * carried
            }
            _ => place == carrier,
        }
    }
}

/// The counter for all commands, with what makes it doubtful; an error says why there is none.
pub(super) fn choose(commands: &[Rates]) -> Result<Option<(usize, Vec<String>)>, String> {
    let mut found = Vec::new();
    let mut doubts = Vec::new();
    for rates in commands {
        match rates.carrier() {
            Carrier::Known { place, doubt } => {
                doubts.extend(doubt.map(|why| rates.named(&why)));
                found.push((rates, place));
            }
            Carrier::Ambiguous(why) => return Err(rates.named(&why)),
            Carrier::Nothing => return Ok(None),
        }
    }
    let fits = |place: usize| found.iter().all(|(rates, carrier)| rates.sees_the_same(place, *carrier));
    if let Some(place) = (0..COUNTERS_BY_PREFERENCE.len())
        .find(|place| fits(*place) && found.iter().any(|(_, carrier)| carrier == place))
    {
        return Ok(Some((place, doubts)));
    }
    let each: Vec<String> = found.iter().map(|(rates, _)| format!("{}: {}", rates.name, rates.all())).collect();
    Err(format!("the commands do different kinds of I/O, which no counter sees alike; {}", each.join("; ")))
}

/// Whether a counter that other commands have shown to be right sees what this command does.
pub(super) fn fits(rates: &Rates, place: usize) -> bool {
    match rates.carrier() {
        Carrier::Known { place: carrier, .. } => rates.sees_the_same(place, carrier),
        Carrier::Ambiguous(_) => false,
        Carrier::Nothing => true,
    }
}

/// What makes the counter of a command doubtful, in words.
pub(super) fn doubt(rates: &Rates) -> Option<String> {
    match rates.carrier() {
        Carrier::Known { doubt, .. } => doubt.map(|why| rates.named(&why)),
        Carrier::Ambiguous(_) | Carrier::Nothing => None,
    }
}

/// A rate with three digits.
fn per_second(rate: f64, unit: &str) -> String {
    let scales = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let small = if unit.starts_with(' ') || unit.is_empty() { "" } else { " " };
    let (scale, letter) = scales.into_iter().find(|(scale, _)| rate >= *scale).unwrap_or((1.0, small));
    let value = rate / scale;
    let digits = usize::from(value < 10.0) + usize::from(value < 100.0);
    format!("{value:.digits$}{letter}{unit}/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(counts: &[(&str, f64)], calls: f64) -> Rates {
        let of = |name: &str| counts.iter().find(|(of, _)| *of == name).map_or(0.0, |(_, rate)| *rate);
        Rates {
            name: "arm".to_owned(),
            counts: COUNTERS_BY_PREFERENCE.iter().map(|row| of(row.name)).collect(),
            calls,
            call_bytes: if calls > 0.0 { of("task:both") / calls } else { 0.0 },
            octets: of("octets"),
        }
    }

    fn chosen(rates: &Rates) -> (String, bool) {
        match rates.carrier() {
            Carrier::Known { place, doubt } => (COUNTERS_BY_PREFERENCE[place].name.to_owned(), doubt.is_some()),
            Carrier::Ambiguous(why) => (format!("? {why}"), false),
            Carrier::Nothing => ("nothing".to_owned(), false),
        }
    }

    #[test]
    fn what_carries_the_bytes_is_counted_and_not_a_log_line() {
        for (what, counts, calls, expected) in [
            ("dd", &[("task:both", 4e9), ("syscalls", 1e5)][..], 1e5, "task:both"),
            ("dd from a disk", &[("task:both", 4e9), ("task:storage", 2e9)], 1e5, "task:both"),
            ("write on a stream", &[("task:both", 1e9), ("tcp", 0.97e9), ("syscalls", 1e4)], 1e4, "task:both"),
            // Every fifth message is a line.
            ("send that prints", &[("task:both", 4e5), ("tcp", 1e9), ("syscalls", 1e5)], 2e4, "tcp"),
            (
                "sendto that prints",
                &[("task:both", 4e5), ("udp", 1e5), ("octets", 1.4e8), ("syscalls", 1.2e5)],
                2e4,
                "udp",
            ),
            ("write on datagrams", &[("task:both", 1e7), ("udp", 2e5), ("octets", 2.56e7)], 1e5, "task:both"),
            ("a look-up by UDP", &[("task:both", 1e9), ("udp", 5.0), ("octets", 500.0)], 1e5, "task:both"),
            (
                "mmap or libaio that prints",
                &[("task:both", 2e4), ("task:storage", 1e9), ("syscalls", 3e5)],
                1e3,
                "task:storage",
            ),
            ("io_uring", &[("io_uring", 1e5), ("syscalls", 1e5)], 0.0, "io_uring"),
            ("io_uring that prints", &[("io_uring", 1e5), ("task:both", 6e5), ("syscalls", 2e5)], 2e4, "io_uring"),
            ("io_uring on streams", &[("io_uring", 1e5), ("tcp", 1e9), ("syscalls", 1e5)], 0.0, "io_uring"),
            ("a ring for timers", &[("io_uring", 10.0), ("task:both", 1e9), ("syscalls", 1e4)], 1e4, "task:both"),
            ("a ring for timers of a sender", &[("io_uring", 10.0), ("tcp", 1e9), ("syscalls", 1e4)], 0.0, "tcp"),
            ("sleep", &[], 0.0, "nothing"),
        ] {
            assert_eq!(chosen(&rates(counts, calls)), (expected.to_owned(), false), "{what}");
        }
    }

    #[test]
    fn counters_that_disagree_are_named_with_both_values() {
        for (counts, calls, expected, words) in [
            (&[("task:both", 5e8), ("tcp", 1e9)][..], 1e4, "tcp", ["task:both 500 MB/s", "tcp 1.00 GB/s"]),
            (&[("task:both", 2e9), ("tcp", 1e9)], 1e4, "task:both", ["2.00 GB/s in 10.0 k calls/s", "tcp 1.00 GB/s"]),
            (
                &[("task:both", 1e8), ("task:storage", 1e9)],
                1e4,
                "task:both",
                ["task:both 100 MB/s", "task:storage 1.00 GB/s"],
            ),
            // A memory map in the page cache: nothing moves but a line for each 50 reads, or for each million.
            (
                &[("task:both", 3.2e6), ("syscalls", 1e5)],
                1e5,
                "task:both",
                ["messages", "task:both 3.20 MB/s in 100 k calls/s"],
            ),
            (
                &[("task:both", 2e3), ("syscalls", 1e2)],
                1e2,
                "task:both",
                ["messages", "task:both 2.00 kB/s in 100 calls/s"],
            ),
            // libaio in the page cache, or a memory map with a timer.
            (&[("syscalls", 1e5)], 0.0, "syscalls", ["only its system calls", "syscalls 100 k/s"]),
        ] {
            let rates = rates(counts, calls);
            let Carrier::Known { place, doubt: Some(doubt) } = rates.carrier() else { panic!("{counts:?}") };
            assert_eq!(COUNTERS_BY_PREFERENCE[place].name, expected);
            assert!(words.iter().all(|word| doubt.contains(word)), "{doubt}");
        }
        for (counts, calls) in [
            (&[("io_uring", 1e4), ("task:both", 1e9), ("syscalls", 3e4)][..], 1e4),
            // libaio in the page cache that prints.
            (&[("task:both", 2e5), ("syscalls", 1e5)], 1e4),
        ] {
            assert!(chosen(&rates(counts, calls)).0.starts_with('?'), "{counts:?}");
        }
    }

    #[test]
    fn a_rare_large_read_does_not_make_lines_work() {
        let lines = Rates { call_bytes: 32.0, ..rates(&[("task:both", 1e6), ("syscalls", 1e3)], 1e3) };
        assert_eq!(chosen(&lines), ("task:both".to_owned(), true));
        assert_eq!(chosen(&Rates { call_bytes: 1e3, ..lines }), ("task:both".to_owned(), false));
    }

    #[test]
    fn one_counter_sees_what_all_commands_do() {
        let name = |commands: &[Rates]| {
            choose(commands).map(|found| found.map(|(place, _)| COUNTERS_BY_PREFERENCE[place].name))
        };
        let sends = || rates(&[("tcp", 1e9), ("task:both", 1e5)], 1e4);
        let writes = || rates(&[("tcp", 1e9), ("task:both", 1e9)], 1e4);
        assert_eq!(name(&[writes(), writes()]), Ok(Some("task:both")));
        assert_eq!(name(&[sends(), writes()]), Ok(Some("tcp")));
        assert_eq!(name(&[writes(), sends()]), Ok(Some("tcp")));
        assert_eq!(name(&[rates(&[], 0.0)]), Ok(None));
        let ring = rates(&[("io_uring", 1e5)], 0.0);
        let why = name(&[ring.clone(), writes()]).unwrap_err();
        assert!(why.contains("io_uring 100 k/s") && why.contains("tcp 1.00 GB/s"), "{why}");
        let (sends, writes) = (sends(), writes());
        assert!(fits(&writes, place_of("tcp")) && fits(&writes, place_of("task:both")));
        assert!(fits(&sends, place_of("tcp")) && !fits(&sends, place_of("task:both")));
    }
}
