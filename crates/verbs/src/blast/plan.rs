//! What to send, how, and from how many threads.

use model::elided_list::distinct;
use model::placement::Place;
use model::unit::Nanos;
use serde::{Deserialize, Serialize};

/// Longest payload: that of a UDP datagram over IPv4.
pub const LONGEST_PAYLOAD: u32 = 65_507;
/// Shortest payload whose numbers tell the order: with fewer bytes, a gap of a few hundred packets looks like a step back.
pub const ORDERED_PAYLOAD: u32 = 4;
/// Most datagrams that the kernel cuts from one send (UDP_MAX_SEGMENTS before 6.9).
pub const MOST_SEGMENTS: u32 = 64;
/// Most datagrams of one call.
pub const MOST_BATCHED: u32 = 1024;
/// Datagrams of one call, unless it is said.
pub const BATCH: u32 = 64;
/// Most sending threads.
pub const MOST_SUBMITTERS: u32 = 1024;

/// How a submitter gives packets to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A system call for each packet.
    Sendto,
    /// A system call for a batch of packets.
    Sendmmsg,
    /// One send for a batch, which the kernel or the device cuts into packets.
    Gso,
    /// A batch of sends through an io_uring.
    #[serde(rename = "io_uring")]
    IoUring,
    /// One socket for all submitters: each sends its packet under a lock.
    Lock,
    /// One socket, fed by a ring, which a thread of its own drains.
    RingTask,
    /// One socket, fed by a ring, which the submitter that finds it idle drains, up to a budget.
    MpRing,
    /// One socket, fed by a list, which the submitter that finds it idle takes as a whole.
    SwapAll,
}

impl Method {
    /// Every method with its name on the command line and in reports. The first four have a socket for each submitter, the others one
    /// socket for all submitters: the transmit queues of seed 004.
    pub const ALL: [(&str, Self); 8] = [
        ("sendto", Self::Sendto),
        ("sendmmsg", Self::Sendmmsg),
        ("gso", Self::Gso),
        ("io_uring", Self::IoUring),
        ("lock", Self::Lock),
        ("ring-task", Self::RingTask),
        ("mp-ring", Self::MpRing),
        ("swap-all", Self::SwapAll),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }
}

/// A plan for `iotoll blast`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlastPlan {
    /// Host and port of the receiver; `None` if iotoll starts one on loopback.
    pub target: Option<String>,
    /// Bytes of payload in each packet.
    pub payload: u32,
    /// The methods.
    pub methods: Vec<Method>,
    /// The numbers of sending threads.
    pub submitters: Vec<u32>,
    /// Packets of one call, for methods that take several.
    pub batch: u32,
    /// Length of one slice of a point.
    pub slice: Nanos,
    /// Time before each slice that does not count.
    pub warm_up: Nanos,
    /// Rounds: each has one slice of every point, in random order.
    pub rounds: u32,
    /// CPUs of the submitters, in turn; empty if the scheduler chooses.
    pub submitter_cpus: Vec<u32>,
    /// CPUs of the thread that drains the ring of `ring-task`, each a point of its own; `None` if the scheduler chooses.
    pub task_cpus: Vec<Option<u32>>,
    /// CPU of the receiver that iotoll starts; `None` if the scheduler chooses.
    pub receiver_cpu: Option<u32>,
    /// Receive buffer of the receiver that iotoll starts, in bytes; `None` for the system's default.
    pub receive_buffer: Option<u32>,
    /// Seed of the order of slices.
    pub seed: u64,
    /// Published figures to show beside the measured ones.
    pub published: Vec<PublishedPackets>,
}

/// A published packet rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPackets {
    /// The method that stands for what was published.
    pub method: Method,
    /// Number of sending threads.
    pub submitters: u32,
    /// CPU of the thread that drains the ring of `ring-task`, if that matters.
    pub task_cpu: Option<u32>,
    /// Thousands of packets per second, sent and refused, as netblast's users write them: `1377+0`.
    pub kpps: String,
    /// Who published it, and what it was measured on.
    pub source: String,
}

impl PublishedPackets {
    /// Packets per second that were sent; `None` if `kpps` is not written as `1377+0`.
    pub fn sent_per_second(&self) -> Option<f64> {
        let (sent, refused) = self.kpps.split_once('+')?;
        let thousands = |text: &str| text.parse::<u32>().ok().map(f64::from);
        thousands(refused)?;
        thousands(sent).filter(|sent| *sent > 0.0).map(|sent| sent * 1e3)
    }

    /// Whether it stands beside a point.
    pub fn is_of(&self, point: Point) -> bool {
        (self.method, self.submitters) == (point.method, point.submitters)
            && self.task_cpu.is_none_or(|cpu| point.task_cpu == Some(cpu))
    }
}

/// A method with a number of submitters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The method.
    pub method: Method,
    /// Number of sending threads.
    pub submitters: u32,
    /// CPU of the thread that drains the ring of `ring-task`; `None` if the scheduler chooses, and for other methods.
    pub task_cpu: Option<u32>,
}

impl Point {
    /// Its method, and where the thread of `ring-task` runs: `ring-task on CPU 1`.
    pub fn way(&self) -> String {
        way(self.method, self.task_cpu)
    }
}

/// A method, and the CPU of its thread.
pub(super) fn way(method: Method, task_cpu: Option<u32>) -> String {
    let place = task_cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
    format!("{}{place}", method.name())
}

impl BlastPlan {
    /// The methods, `ring-task` once for each CPU of its thread.
    pub fn ways(&self) -> Vec<(Method, Option<u32>)> {
        let places = |method: &Method| match method {
            Method::RingTask if !self.task_cpus.is_empty() => self.task_cpus.clone(),
            _ => vec![None],
        };
        self.methods.iter().flat_map(|method| places(method).into_iter().map(move |cpu| (*method, cpu))).collect()
    }

    /// Every method with every number of submitters.
    pub fn points(&self) -> Vec<Point> {
        let with = |(method, task_cpu): (Method, Option<u32>)| {
            self.submitters.iter().map(move |submitters| Point { method, submitters: *submitters, task_cpu })
        };
        self.ways().into_iter().flat_map(with).collect()
    }

    /// Why a batch that the user asked for cannot be sent as asked, if it cannot.
    pub fn refuses_batch(&self) -> Option<String> {
        let (asked, payload) = (self.batch, self.payload);
        let takes = |method: &&Method| self.batch_of(**method) == asked;
        if asked > 1 && self.methods.contains(&Method::Gso) && !takes(&&Method::Gso) {
            let most = self.batch_of(Method::Gso);
            let limit = match (payload, most) {
                (0, _) => "the kernel cannot cut a datagram without payload".to_owned(),
                (_, MOST_SEGMENTS) => format!("UDP_MAX_SEGMENTS of the kernel is {MOST_SEGMENTS}"),
                _ => format!("all packets of one send have at most {LONGEST_PAYLOAD} bytes"),
            };
            return Some(format!(
                "batch {asked}: gso sends at most {most} packets of {payload} bytes in one call, because {limit}; use {most} or less, \
                 or leave gso out"
            ));
        }
        let none = asked > 1 && !self.methods.iter().any(|method| takes(&method));
        none.then(|| {
            let names: Vec<&str> = self.methods.iter().map(|method| method.name()).collect();
            format!(
                "batch {asked}: {} takes one packet for each call; leave it out, or add another method",
                names.join(", ")
            )
        })
    }

    /// Packets of one call.
    pub fn batch_of(&self, method: Method) -> u32 {
        match method {
            Method::Sendto | Method::Lock => 1,
            Method::Sendmmsg | Method::IoUring | Method::RingTask | Method::MpRing | Method::SwapAll => self.batch,
            // All segments of one send are one datagram of at most 64 KiB for the kernel; nothing cannot be cut.
            Method::Gso if self.payload == 0 => 1,
            Method::Gso => self.batch.min(MOST_SEGMENTS).min(LONGEST_PAYLOAD / self.payload).max(1),
        }
    }
}

/// Most numbers of submitters in one measurement.
const MOST_NUMBERS: usize = 64;
/// The word for a CPU that the scheduler chooses.
const ANY: &str = "any";

/// Numbers of submitters, ascending: `4`, `1,2,4` or `1..8`.
///
/// # Errors
/// What was expected.
pub fn submitters(text: &str) -> Result<Vec<u32>, String> {
    let expected = || format!("expected numbers from 1 to {MOST_SUBMITTERS}, as 4, 1,2,4 or 1..8");
    let number = |text: &str| {
        let number = text.parse().ok().filter(|number| (1..=MOST_SUBMITTERS).contains(number));
        number.ok_or_else(expected)
    };
    let mut found = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to.trim_start_matches('='))?);
                found.extend(from..=to);
                if from > to {
                    return Err(expected());
                }
            }
            None => found.push(number(part)?),
        }
    }
    found.sort_unstable();
    found.dedup();
    if found.len() > MOST_NUMBERS { Err(format!("at most {MOST_NUMBERS} numbers")) } else { Ok(found) }
}

/// Methods, each once: names separated by commas, `own` or `shared`.
///
/// # Errors
/// What was expected.
pub fn methods(text: &str) -> Result<Vec<Method>, String> {
    const OF_OWN_SOCKETS: usize = 4;
    let mut found: Vec<Method> = Vec::new();
    for name in text.split(',') {
        let is_named = |place: usize, word: &str| match name {
            "own" => place < OF_OWN_SOCKETS,
            "shared" => place >= OF_OWN_SOCKETS,
            name => word == name,
        };
        let named = Method::ALL.iter().enumerate().filter(|(place, (word, _))| is_named(*place, word));
        let before = found.len();
        found.extend(named.map(|(_, (_, method))| *method));
        if found.len() == before {
            return Err(format!("expected {}, own, or shared", Method::ALL.map(|(name, _)| name).join(", ")));
        }
    }
    Ok(distinct(found))
}

/// CPUs in the order given: `0,2-3`.
///
/// # Errors
/// What was expected.
pub fn cpus(text: &str) -> Result<Vec<u32>, String> {
    match Place::parse(text) {
        Ok(Place::Cpus(cpus)) => Ok(cpus),
        Ok(_) | Err(_) => Err("expected a list of CPUs, as 0,2-3".to_owned()),
    }
}

/// CPUs of a thread, one after the other, each once: `any,0,1`; `None` is `any`.
///
/// # Errors
/// What was expected.
pub fn task_cpus(text: &str) -> Result<Vec<Option<u32>>, String> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let named = if part == ANY {
            vec![None]
        } else {
            let expected = |_| format!("expected CPUs or {ANY}, as {ANY},0,1");
            cpus(part).map_err(expected)?.into_iter().map(Some).collect()
        };
        found.extend(named);
    }
    Ok(distinct(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_lists_and_ranges() {
        assert_eq!(submitters("1..4,16,2"), Ok(vec![1, 2, 3, 4, 16]));
        for wrong in ["", "0", "4..1", "1..", "2000", "1..2000", "a", "1..100"] {
            assert!(submitters(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn methods_are_named_once() {
        assert_eq!(methods("gso,sendto,gso"), Ok(vec![Method::Gso, Method::Sendto]));
        assert_eq!(methods("own,lock").map(|methods| methods.len()), Ok(5));
        assert!(methods("sendfile").unwrap_err().contains("sendmmsg"));
    }

    #[test]
    fn a_task_has_cpus_or_none() {
        assert_eq!(task_cpus("any,1,0-1"), Ok(vec![None, Some(1), Some(0)]));
        for wrong in ["", "any,", "other", "-1"] {
            assert!(task_cpus(wrong).unwrap_err().contains("any,0,1"), "{wrong}");
        }
    }
}
