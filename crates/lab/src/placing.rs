//! `--place`: on which CPUs each thread of the load is put.
//!
//! What was asked for and the machine enter, CPUs for each thread leave. [`decide`] is the one function that says so; a server
//! that iotoll starts itself belongs there too, beside the CPU of one that is there already.

use crate::error::{Error, Result};
use crate::whereabouts::servers::{Address, listens};
use model::placement::Place;
use model::plan::JobPlan;
use nbd::client::{self, Uri};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use sys::schedule::{allowed_cpus, allowed_cpus_of, online_cpus, pin_to};

/// The CPUs of each thread of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placing {
    /// Of the first thread, the second…, and from the beginning again; empty where nothing was asked for.
    of_threads: Vec<Vec<u32>>,
}

impl Placing {
    /// What `place` means on this machine for a load whose servers are at `servers`.
    ///
    /// # Errors
    /// Refused, when a CPU is not there.
    pub fn resolve(place: Option<&Place>, servers: &[Address]) -> Result<Self> {
        let Some(place) = place else { return Ok(Self::default()) };
        let failed = |error| Error::instrument("listing CPUs", error);
        let (allowed, online) = (allowed_cpus().map_err(failed)?, online_cpus().map_err(failed)?);
        let confined = if matches!(place, Place::Cpus(_)) { None } else { cpu_of(servers) };
        let of_threads = decide(place, &allowed, &online, confined).map_err(Error::Refused)?;
        let wanted: BTreeSet<u32> = of_threads.iter().flatten().copied().collect();
        if !can_run_on(&wanted) {
            let all: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            return Err(Error::Refused(format!(
                "--place {place}: the kernel does not let this process run on all of these CPUs (its cpuset); CPUs {} are allowed",
                all.join(",")
            )));
        }
        Ok(Self { of_threads })
    }

    /// The CPUs of the load's thread with this number; none in particular where that is empty.
    pub fn of(&self, thread: usize) -> &[u32] {
        self.of_threads.iter().cycle().nth(thread % self.of_threads.len().max(1)).map_or(&[], Vec::as_slice)
    }

    /// Puts a thread's job there.
    pub fn apply(&self, job: &mut JobPlan, thread: usize) {
        if !self.of_threads.is_empty() {
            job.cpus_allowed = self.of(thread).to_vec();
        }
    }
}

/// The CPUs of each thread. `confined` is the one CPU that a server of the load may use, where it is confined to one.
fn decide(
    place: &Place,
    allowed: &[u32],
    online: &[u32],
    confined: Option<u32>,
) -> std::result::Result<Vec<Vec<u32>>, String> {
    let each = |cpus: Vec<u32>| cpus.into_iter().map(|cpu| vec![cpu]).collect();
    match place {
        Place::Cpus(cpus) => match cpus.iter().find(|cpu| !online.contains(cpu)) {
            None => Ok(vec![cpus.clone()]),
            Some(missing) => Err(format!("--place {place}: CPU {missing} is not online; lscpu lists those that are")),
        },
        // With the server where it cannot leave, and otherwise anywhere: a server that may go everywhere comes along or does not.
        Place::Same => Ok(each(confined.or(allowed.first().copied()).into_iter().collect())),
        Place::Apart => {
            let others: Vec<u32> = allowed.iter().copied().filter(|cpu| Some(*cpu) != confined).collect();
            // Beside a server that is confined to another CPU, one is enough.
            if others.len() + usize::from(confined.is_some()) < 2 || others.is_empty() {
                let cpus: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                return Err(format!(
                    "--place apart takes two CPUs, and this process may use CPU {} alone; leave it out, or widen the affinity mask \
                     (taskset)",
                    cpus.join(",")
                ));
            }
            Ok(each(others))
        }
    }
}

/// Whether a thread of this process may be put on these CPUs, all of them: a control group may leave it fewer.
fn can_run_on(cpus: &BTreeSet<u32>) -> bool {
    let list: Vec<u32> = cpus.iter().copied().collect();
    let tried = std::thread::spawn(move || pin_to(&list).is_ok() && allowed_cpus().is_ok_and(|now| now == list));
    tried.join().unwrap_or(false)
}

/// The one CPU to which the servers that listen at these addresses are confined; `None` where they are not, or to several.
fn cpu_of(addresses: &[Address]) -> Option<u32> {
    // Where there is one CPU, everybody is confined to it.
    if addresses.is_empty() || online_cpus().is_ok_and(|online| online.len() < 2) {
        return None;
    }
    let mut found = BTreeSet::new();
    for process in crate::whereabouts::processes() {
        // The threads of a server are where its first one is, as a rule: who pins it does so before it begins.
        if let Ok([cpu]) = allowed_cpus_of(process).as_deref()
            && listens(process).iter().any(|address| addresses.contains(address))
        {
            found.insert(*cpu);
        }
    }
    if found.len() == 1 { found.first().copied() } else { None }
}

/// Where the servers of jobs listen, those on this machine.
pub(crate) fn servers_of<'a>(jobs: impl IntoIterator<Item = &'a JobPlan>) -> Vec<Address> {
    jobs.into_iter().filter_map(|job| local(job.uri.as_deref()?)).collect()
}

/// Where a command's servers listen, as far as its words say: the URIs in it, and whatever could be a port.
pub(crate) fn servers_named(words: &[String]) -> Vec<Address> {
    // iperf3's own, which nobody writes down.
    let usual = words.iter().any(|word| word.rsplit('/').next() == Some("iperf3")).then_some(Address::Port(5201));
    let named = words.iter().flat_map(|word| {
        let uri = word.find("nbd").and_then(|at| local(word.get(at..)?));
        let numbers = word.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok());
        // A port below this is nobody's server here, but many a number of jobs or seconds.
        let ports = numbers.filter(|port| *port >= 1024).map(Address::Port);
        uri.into_iter().chain(ports).collect::<Vec<_>>()
    });
    usual.into_iter().chain(named).collect()
}

fn local(uri: &str) -> Option<Address> {
    match uri.parse::<Uri>().ok()?.address {
        client::Address::Unix(path) => Some(Address::Path(path.to_str()?.to_owned())),
        client::Address::Tcp { host, port } => {
            let loopback =
                host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
            loopback.then_some(Address::Port(port))
        }
    }
}

/// Does something on these CPUs, where any are given: who is begun in it is there too.
///
/// # Errors
/// When this thread may not go there; nothing was done then.
pub(crate) fn pinned<T>(cpus: &[u32], what: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if cpus.is_empty() {
        return what();
    }
    let before = allowed_cpus()?;
    pin_to(cpus)?;
    let outcome = what();
    pin_to(&before)?;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(place: &Place, confined: Option<u32>) -> Vec<Vec<u32>> {
        decide(place, &[2, 3, 5], &[0, 1, 2, 3, 5], confined).unwrap()
    }

    #[test]
    fn all_on_one_cpu_is_the_first_or_that_of_a_server_that_cannot_leave() {
        assert_eq!(cpus(&Place::Same, None), [[2]]);
        assert_eq!(cpus(&Place::Same, Some(5)), [[5]]);
        assert_eq!(cpus(&Place::Same, Some(0)), [[0]], "also where this process was not allowed");
    }

    #[test]
    fn each_on_its_own_leaves_a_server_its_cpu_if_that_can_be() {
        assert_eq!(cpus(&Place::Apart, None), [[2], [3], [5]]);
        assert_eq!(cpus(&Place::Apart, Some(3)), [[2], [5]]);
        assert_eq!(decide(&Place::Apart, &[1], &[0, 1], Some(0)), Ok(vec![vec![1]]));
        for confined in [None, Some(1)] {
            let refused = decide(&Place::Apart, &[1], &[0, 1], confined).unwrap_err();
            assert!(refused.contains("takes two CPUs") && refused.contains("CPU 1 alone"), "{refused}");
        }
        let placing = Placing { of_threads: cpus(&Place::Apart, None) };
        assert_eq!((placing.of(1), placing.of(3)), (&[3][..], &[2][..]), "from the beginning again");
        assert_eq!(Placing::default().of(1), &[] as &[u32]);
    }

    #[test]
    fn a_list_is_for_all_and_must_be_there() {
        assert_eq!(cpus(&Place::Cpus(vec![0, 3]), Some(2)), [[0, 3]]);
        let refused = decide(&Place::Cpus(vec![0, 9]), &[0], &[0, 1], None).unwrap_err();
        assert!(refused.contains("--place 0,9") && refused.contains("CPU 9"), "{refused}");
    }

    #[test]
    fn servers_are_where_jobs_and_commands_say() {
        let job = |uri: &str| JobPlan { uri: Some(uri.to_owned()), ..JobPlan::default() };
        let jobs = [job("nbd://127.0.0.1:10999"), job("nbd://[::1]/x"), job("nbd://10.0.0.1"), JobPlan::default()];
        assert_eq!(servers_of(&jobs), [Address::Port(10_999), Address::Port(10_809)]);
        let unix = job("nbd+unix:///?socket=/run/n%20bd");
        assert_eq!(servers_of([&unix]), [Address::Path("/run/n bd".to_owned())]);
        let words = |line: &str| servers_named(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(
            words("fio --name=a --uri=nbd://localhost:7777 --bs=4k"),
            [Address::Port(7777), Address::Port(7777)]
        );
        assert_eq!(words("/usr/bin/iperf3 -c 127.0.0.1 -t 10"), [Address::Port(5201)]);
    }

    #[test]
    fn a_thread_that_is_begun_on_a_cpu_stays_there_and_the_one_that_began_it_does_not() {
        std::thread::spawn(|| {
            let all = allowed_cpus().unwrap();
            let last = *all.last().unwrap();
            let begun = pinned(&[last], || Ok(std::thread::spawn(allowed_cpus))).unwrap();
            assert_eq!(begun.join().unwrap().unwrap(), [last]);
            assert_eq!(allowed_cpus().unwrap(), all);
            assert!(pinned(&[1023], || Ok(())).is_err());
        })
        .join()
        .unwrap();
    }
}
