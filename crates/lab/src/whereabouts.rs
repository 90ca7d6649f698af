//! Where the workload's threads run: sampled at the boundaries of windows, for the workload and for other processes
//! that are busy.
//!
//! Thread ids or a command's process id enter, a [`Whereabouts`] for each boundary leaves. Reading a thread takes 4 µs;
//! walking a command's processes takes 10 µs a thread;
//! a scan of all processes takes 250 µs for 120 of them and happens at the 1st, 2nd, 4th, 8th… boundary (measured on
//! Zen 3). All of this stops after [`MOST`], and continues with the remaining threads at the next boundary.

mod peers;
pub mod servers;
mod thread;

use crate::proc_files::{numbered, threads_of};
use model::placement::{RanOn, Side, Whereabouts};
use model::record::Snapshot;
use model::unit::Nanos;
use peers::{Peers, Processes};
use servers::Listening;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use thread::Thread;

/// Time limit for reading threads at one boundary: a 200th of the shortest window.
const MOST: Duration = Duration::from_micros(500);
/// Most threads to watch; each has two open files.
const MOST_THREADS: usize = 64;
/// Threads that a boundary lists individually.
const ONE_BY_ONE: usize = 16;

/// The threads of the workload.
pub enum Workload {
    /// Threads of this process.
    Threads(BTreeSet<u32>),
    /// A command with all its descendants, once it is started.
    Command,
}

/// The watched threads, and the last reading of each.
pub struct PlacementWatch {
    workload: Workload,
    threads: BTreeMap<(u32, u32), Thread>,
    peers: Peers,
    /// Whether a peer is a server.
    servers: BTreeMap<u32, bool>,
    boundaries: u32,
    /// Index of the thread that is read first, so that none is always left out.
    turn: usize,
    /// Time of the last walk of a command's processes: a large tree is not walked at each boundary.
    walk_took: Duration,
}

impl PlacementWatch {
    /// For one phase or execution; call it at each boundary from the first on.
    pub fn new(workload: Workload) -> Self {
        Self {
            workload,
            threads: BTreeMap::new(),
            peers: Peers::default(),
            servers: BTreeMap::new(),
            boundaries: 0,
            turn: 0,
            walk_took: Duration::ZERO,
        }
    }

    /// Where threads ran since the last boundary; `command` is the process of a command that has started.
    pub fn look(&mut self, command: Option<u32>) -> Option<Box<Whereabouts>> {
        self.look_at(command, self.boundaries == 0 || self.boundaries.is_power_of_two())
    }

    /// The same; `looks_around` says whether to scan all processes of the machine.
    pub fn look_at(&mut self, command: Option<u32>, looks_around: bool) -> Option<Box<Whereabouts>> {
        let begun = Instant::now();
        let number = self.boundaries;
        self.boundaries = number.saturating_add(1);
        let own = self.workload_now(command, looks_around);
        self.watch(own.iter().map(|&(process, thread)| (Side::Workload, process, thread, None)), number == 0);
        if looks_around {
            let members: BTreeSet<u32> = own.iter().map(|(process, _)| *process).collect();
            self.peers.look_around(Processes::now(), &members);
        }
        // A server may have a thread for each connection.
        let names: Vec<(u32, String)> = self.peers.known().map(|(process, name)| (process, name.to_owned())).collect();
        let of_peers = names.iter().flat_map(|(process, name)| {
            threads_of(*process).map(|(process, id)| (Side::Peer, process, id, Some(name.clone())))
        });
        self.watch(of_peers, false);
        let ran = self.read(begun);
        Some(Box::new(Whereabouts { ran: summed(ran), servers: Vec::new() }))
    }

    /// The peers that are servers. Looking at a new one takes milliseconds, so call it after the measurement.
    pub fn servers(&mut self) -> Vec<u32> {
        let (mut listening, servers) = (Listening::default(), &mut self.servers);
        let mut serves = |process| !listening.of(process).is_empty() || servers::service_of(process).is_some();
        let known = self.peers.known().map(|(process, _)| process);
        known.filter(|process| *servers.entry(*process).or_insert_with(|| serves(*process))).collect()
    }

    /// Notes the servers in the last snapshot.
    pub fn note_servers(&mut self, snapshots: &mut [Snapshot]) {
        if let Some(last) = snapshots.last_mut().and_then(|last| last.whereabouts.as_mut()) {
            last.servers = self.servers();
        }
    }

    /// The workload's live threads: process and thread.
    fn workload_now(&mut self, command: Option<u32>, looks_around: bool) -> Vec<(u32, u32)> {
        let us = std::process::id();
        match (&self.workload, command) {
            (Workload::Threads(ids), _) => {
                let mut own: Vec<(u32, u32)> = ids.iter().map(|&thread| (us, thread)).collect();
                // The kernel's workers of our io_uring engines are threads of this process.
                if looks_around {
                    own.extend(threads_of(us).filter(|(_, id)| thread::name(us, *id).starts_with("iou-")));
                }
                own
            }
            (Workload::Command, Some(command)) if looks_around || self.walk_took < MOST / 3 => {
                let begun = Instant::now();
                let family = peers::family(command, MOST_THREADS);
                self.walk_took = begun.elapsed();
                family
            }
            (Workload::Command, _) => Vec::new(),
        }
    }

    /// Watches threads that are not watched yet. `before` means that they have not started to work.
    fn watch(&mut self, threads: impl Iterator<Item = (Side, u32, u32, Option<String>)>, before: bool) {
        for (side, process, id, name) in threads {
            if self.threads.contains_key(&(process, id)) || self.threads.len() >= MOST_THREADS {
                continue;
            }
            // A thread that started after the first boundary has done nothing before it.
            let new = side == Side::Workload && !before;
            self.threads.extend(Thread::open(side, process, id, name, new).map(|thread| ((process, id), thread)));
        }
    }

    /// Reads as many threads as the time limit allows.
    fn read(&mut self, begun: Instant) -> Vec<RanOn> {
        let keys: Vec<(u32, u32)> = self.threads.keys().copied().collect();
        let count = keys.len();
        let first = if count == 0 { 0 } else { self.turn % count };
        let mut ran = Vec::new();
        for (place, key) in keys.iter().cycle().skip(first).take(count).enumerate() {
            if begun.elapsed() > MOST {
                // The remaining threads come first the next time, and their readings cover both windows.
                self.turn = first + place;
                break;
            }
            let Some(thread) = self.threads.get_mut(key) else { continue };
            match thread.read() {
                Ok(read) => ran.extend(read),
                Err(_) => drop(self.threads.remove(key)),
            }
        }
        ran
    }
}

/// All live processes.
pub(crate) fn processes() -> Vec<u32> {
    numbered(std::path::Path::new("/proc"))
}

/// CPU time of each thread of these processes, by process and thread, in nanoseconds.
pub fn thread_times(processes: &[u32]) -> BTreeMap<(u32, u32), u64> {
    let threads = processes.iter().flat_map(|process| threads_of(*process));
    threads.filter_map(|(process, id)| Some(((process, id), thread::cpu_nanos_of(process, id)?))).collect()
}

/// Lists the busiest threads individually and sums the others by name and CPU.
pub fn summed(mut ran: Vec<RanOn>) -> Vec<RanOn> {
    ran.retain(|ran| ran.nanos > Nanos(0));
    ran.sort_by_key(|ran| std::cmp::Reverse(ran.nanos));
    for one in ran.split_off(ran.len().min(ONE_BY_ONE)) {
        let same = |other: &&mut RanOn| (other.side, other.process, other.cpu) == (one.side, one.process, one.cpu);
        let others = ran.iter_mut().skip(ONE_BY_ONE);
        match others.filter(|other| other.name == one.name).find(same) {
            Some(sum) => {
                sum.threads = sum.threads.saturating_add(one.threads);
                sum.nanos += one.nanos;
            }
            None => ran.push(one),
        }
    }
    ran
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    fn ran(name: &str, cpu: u32, nanos: u64) -> RanOn {
        RanOn {
            side: Side::Workload,
            name: name.to_owned(),
            process: None,
            threads: 1,
            cpu,
            moved: false,
            nanos: Nanos(nanos),
        }
    }

    #[test]
    fn the_busiest_threads_are_listed_and_the_rest_summed_by_name_and_cpu() {
        let many = (0..20).map(|number| ran(if number % 2 == 0 { "a" } else { "b" }, 0, 100 + number));
        let found = summed(many.chain([ran("idle", 1, 0)]).collect());
        assert_eq!(found.len(), ONE_BY_ONE + 2);
        assert_eq!((found[0].nanos, found[0].threads), (Nanos(119), 1));
        let rest: Vec<_> =
            found.iter().skip(ONE_BY_ONE).map(|ran| (ran.name.as_str(), ran.threads, ran.nanos.0)).collect();
        assert_eq!(rest, [("b", 2, 101 + 103), ("a", 2, 100 + 102)]);
    }

    #[test]
    fn a_thread_that_is_pinned_is_seen_where_it_is() {
        let cpu = *sys::schedule::allowed_cpus().unwrap().last().unwrap();
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("pinned-bee".to_owned()).spawn(move || {
            sys::schedule::pin_to(&[cpu]).unwrap();
            tell.send(sys::schedule::thread_id().unsigned_abs()).unwrap();
            while !stopped.load(Ordering::Relaxed) {}
        });
        let id = told.recv().unwrap();
        let mut placement_watch = PlacementWatch::new(Workload::Threads([id].into()));
        placement_watch.look(None);
        let mut found = None;
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(10));
            let seen = placement_watch.look(None).unwrap();
            found = seen.ran.into_iter().find(|ran| ran.side == Side::Workload).or(found);
            if found.as_ref().is_some_and(|ran| ran.nanos > Nanos(0)) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        thread.unwrap().join().unwrap();
        let found = found.unwrap();
        assert_eq!((found.name.as_str(), found.cpu, found.process), ("pinned-bee", cpu, None));
    }

    #[test]
    fn a_busy_process_is_a_peer_where_it_is_not_the_workload() {
        use std::io::{BufRead, BufReader};
        // The child of a shell, so not a child of this process.
        let script = "sh -c 'while :; do :; done' & echo $!; wait";
        let mut shell = std::process::Command::new("sh");
        let mut child = shell.args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let busy: u32 = line.trim().parse().unwrap();
        let mut beside = PlacementWatch::new(Workload::Threads(BTreeSet::new()));
        let mut within = PlacementWatch::new(Workload::Command);
        let sides = |seen: Option<Box<Whereabouts>>| -> BTreeSet<(Side, Option<u32>)> {
            seen.unwrap().ran.into_iter().map(|ran| (ran.side, ran.process)).collect()
        };
        let (mut peer, mut own) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..400 {
            std::thread::sleep(Duration::from_millis(20));
            peer.extend(sides(beside.look(None)));
            own.extend(sides(within.look(Some(child.id()))));
            if peer.contains(&(Side::Peer, Some(busy))) && own.contains(&(Side::Workload, None)) {
                break;
            }
        }
        std::process::Command::new("kill").args(["-9", &busy.to_string()]).status().unwrap();
        child.wait().unwrap();
        assert!(peer.contains(&(Side::Peer, Some(busy))), "{peer:?}");
        assert!(own.contains(&(Side::Workload, None)) && !own.contains(&(Side::Peer, Some(busy))), "{own:?}");
    }
}
