//! Where threads run, measured and requested.
//!
//! Two communicating threads may cost several times as much on two CPUs as on one (a wake-up of an idle CPU instead of
//! a switch), or several times as little, so a cost is only meaningful together with the placement.

mod finding;

use crate::plan::value::Wrong;
use crate::plan::{JobPlan, value};
use crate::unit::Nanos;
pub use finding::{CasePlacement, Mode, ModeFinding, PeerPlacement, PlacementFinding};
pub use finding::{in_words, mend, two_rates};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Threads that use a smaller fraction of a CPU are not busy: they are helpers, and their placement does not matter.
pub const BUSY: f64 = 0.05;

/// Where the load's threads ran since the previous snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The busiest threads one by one; other threads with the same name and CPU are one entry. The busiest first.
    pub ran: Vec<RanOn>,
    /// Process IDs of the peers that are servers (they listen on a socket), determined once at the end of a phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<u32>,
}

/// CPU time of threads, and the CPU that they ran on last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanOn {
    /// Their owner.
    pub side: Side,
    /// The name of the thread; for peers, the name of the process.
    pub name: String,
    /// The process ID of a peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub threads: u32,
    pub cpu: u32,
    /// Whether it is known to have run on another CPU before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moved: bool,
    /// CPU time.
    pub nanos: Nanos,
}

/// The owner of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The workload: a worker thread, or the measured command and its children.
    Workload,
    /// Another process that was busy at the same time, usually a server.
    Peer,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

impl Whereabouts {
    /// Whether the workload's busiest thread shared a CPU with the busiest other thread of the load, which is its own
    /// or a server's. `None` if there are not two such threads, or the CPU of one is unknown. A process that is not a
    /// known server counts if there is no known server, because the sockets of a server may be invisible. If `servers`
    /// is `None`, no other process is part of the load.
    pub fn mode(&self, length: Nanos, servers: Option<&BTreeSet<u32>>) -> Option<Mode> {
        let least = length.as_f64() * BUSY;
        let is_busy = |ran: &&RanOn| ran.threads == 1 && ran.nanos.as_f64() >= least && ran.nanos.0 > 0;
        let mut busy: Vec<&RanOn> = self.ran.iter().filter(is_busy).collect();
        busy.sort_by_key(|ran| std::cmp::Reverse(ran.nanos));
        let own = busy.iter().position(|ran| ran.side == Side::Workload)?;
        let own = busy.remove(own);
        let is_server = |process: u32| servers.is_some_and(|servers| servers.contains(&process));
        let of_load = |ran: &&&RanOn| ran.process.is_none_or(is_server);
        let unknown = busy.first().filter(|_| servers.is_some_and(BTreeSet::is_empty));
        let other = busy.iter().find(of_load).or(unknown)?;
        (!own.moved && !other.moved).then_some(if own.cpu == other.cpu { Mode::Same } else { Mode::Apart })
    }
}

/// The requested placement of the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// All threads on one CPU.
    Same,
    /// Each thread on its own CPU, as far as possible.
    Apart,
    /// All threads on these CPUs.
    Cpus(Vec<u32>),
}

impl Place {
    pub const FORM: &'static str = "same, apart, or CPUs such as 0,2-3";

    /// Parses `--place`.
    ///
    /// # Errors
    /// The accepted values, in words.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        match text {
            "same" => Ok(Self::Same),
            "apart" => Ok(Self::Apart),
            cpus => value::cpus(cpus)
                .map(Self::Cpus)
                .map_err(|_| Wrong::because(text, format_args!("is not a placement: expected {}", Self::FORM))),
        }
    }

    /// Why this placement is impossible for a foreign command.
    pub fn refuses_command(&self) -> Option<String> {
        (*self == Self::Apart).then(|| {
            "--place apart only works with jobs, because the threads of a command cannot be pinned one by one; pin them in \
             the command (taskset), or use --place 0,1"
                .to_owned()
        })
    }

    /// Why this placement is impossible for these jobs: one of them has its own `cpus_allowed`.
    pub fn refuses_jobs<'a>(&self, jobs: impl IntoIterator<Item = &'a JobPlan>) -> Option<String> {
        let job = jobs.into_iter().find(|job| !job.thread.cpus_allowed.is_empty())?;
        Some(format!("--place {self}: job '{}' already sets cpus_allowed; use only one of them", job.name))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Same => formatter.write_str("same"),
            Self::Apart => formatter.write_str("apart"),
            Self::Cpus(cpus) => {
                let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                formatter.write_str(&cpus.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(cpu: u32, millis: u64) -> RanOn {
        RanOn {
            side: Side::Workload,
            name: "a".to_owned(),
            process: None,
            threads: 1,
            cpu,
            moved: false,
            nanos: Nanos::from_millis(millis),
        }
    }

    fn mode(ran: Vec<RanOn>) -> Option<Mode> {
        Whereabouts { ran, ..Whereabouts::default() }.mode(Nanos::from_millis(100), Some(&BTreeSet::new()))
    }

    #[test]
    fn the_two_busiest_threads_say_whether_a_cpu_was_shared() {
        assert_eq!(mode(vec![ran(0, 40), ran(0, 50)]), Some(Mode::Same));
        assert_eq!(mode(vec![ran(0, 6), ran(1, 40), ran(0, 50)]), Some(Mode::Apart), "whoever stands first");
        assert_eq!(mode(vec![ran(0, 60), ran(1, 4)]), None, "one helps now and then");
        assert_eq!(mode(vec![ran(0, 60)]), None);
        assert_eq!(mode(vec![ran(0, 60), RanOn { moved: true, ..ran(0, 40) }]), None, "it was on both");
        assert_eq!(
            mode(vec![ran(0, 60), RanOn { threads: 9, ..ran(1, 40) }]),
            None,
            "none of nine is known to be busy"
        );
    }

    #[test]
    fn other_processes_are_ignored_if_there_is_a_server() {
        let peer = |process, cpu, millis| RanOn { side: Side::Peer, process: Some(process), ..ran(cpu, millis) };
        let found = Whereabouts { ran: vec![peer(9, 1, 99), ran(0, 30), peer(7, 0, 20)], ..Whereabouts::default() };
        let mode = |servers: &[u32]| found.mode(Nanos::from_millis(100), Some(&servers.iter().copied().collect()));
        assert_eq!((mode(&[]), mode(&[7]), mode(&[8])), (Some(Mode::Apart), Some(Mode::Same), None));
        let two = Whereabouts { ran: vec![peer(9, 1, 99), ran(0, 30), ran(0, 20)], ..Whereabouts::default() };
        assert_eq!(found.mode(Nanos::from_millis(100), None), None, "the load has no server");
        assert_eq!(two.mode(Nanos::from_millis(100), None), Some(Mode::Same));
        assert_eq!(
            two.mode(Nanos::from_millis(100), Some(&BTreeSet::new())),
            Some(Mode::Same),
            "a neighbour is beside both"
        );
        let others = Whereabouts { ran: vec![peer(9, 1, 99), peer(7, 0, 90)], ..Whereabouts::default() };
        assert_eq!(others.mode(Nanos::from_millis(100), Some(&BTreeSet::new())), None, "none of the workload's");
    }

    #[test]
    fn a_mode_without_net_cost_is_about_0() {
        let words = |cycles| {
            let found =
                ModeFinding { mode: Mode::Same, windows: 3, seconds: 1.0, iops: None, cycles_per_io: Some(cycles) };
            in_words(&found)
        };
        assert_eq!(
            [-1e-12, 420.0, 58_100.0].map(words),
            ["1.0 s, ≈ 0 cycles/IO", "1.0 s, 420 cycles/IO", "1.0 s, 58.1 kcycles/IO"]
        );
    }

    #[test]
    fn default_values_are_not_serialized_but_restored() {
        let json = serde_json::to_string(&ran(1, 2)).unwrap();
        assert_eq!(json, r#"{"side":"workload","name":"a","cpu":1,"nanos":2000000}"#);
        assert_eq!(serde_json::from_str::<RanOn>(&json).unwrap(), ran(1, 2));
    }

    #[test]
    fn places_are_words_or_cpus() {
        assert_eq!(Place::parse("same"), Ok(Place::Same));
        assert_eq!(Place::parse("apart"), Ok(Place::Apart));
        assert_eq!(Place::parse("0,2-3"), Ok(Place::Cpus(vec![0, 2, 3])));
        assert_eq!(Place::parse("0,2-3").unwrap().to_string(), "0,2,3");
        for wrong in ["", "both", "3-0", "0,", "-1", "99999"] {
            let refused = Place::parse(wrong).unwrap_err().to_string();
            assert!(refused.contains(&format!("'{wrong}'")) && refused.contains("same, apart"), "{refused}");
        }
    }

    #[test]
    fn a_job_with_its_own_cpus_is_not_placed() {
        let job = JobPlan { name: "a".to_owned(), ..JobPlan::default() };
        assert_eq!(Place::Same.refuses_jobs([&job]), None);
        let pinned = JobPlan {
            name: "b".to_owned(),
            thread: crate::plan::ThreadPlan { cpus_allowed: vec![1], ..Default::default() },
            ..JobPlan::default()
        };
        let refused = Place::Same.refuses_jobs([&job, &pinned]).unwrap();
        assert!(refused.contains("job 'b'") && refused.contains("cpus_allowed"), "{refused}");
        assert!(Place::Apart.refuses_command().is_some() && Place::Same.refuses_command().is_none());
    }
}
