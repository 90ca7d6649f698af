//! `--place`: the CPUs of each thread of the workload.
//!
//! The flag and the machine enter, CPUs for each thread leave. `decide` chooses the CPUs of clients, `decide_services` those of
//! servers that iotoll starts itself.

use crate::error::{Error, Result};
use crate::whereabouts::servers::{Address, Listening};
use model::placement::Place;
use model::plan::service::Service;
use model::plan::{JobPlan, ThreadPlan};
use nbd::client::{self, Uri};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use sys::schedule::{allowed_cpus, allowed_cpus_of, online_cpus, pin_to};

/// The CPUs of each thread of the workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placing {
    /// Of the first thread, the second…, then repeated from the start; empty without `--place`.
    of_threads: Vec<Vec<u32>>,
}

impl Placing {
    /// Resolves `place` on this machine, for a workload whose servers listen at `servers`.
    ///
    /// # Errors
    /// Refused, when a CPU does not exist.
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
                "--place {place}: the cpuset of this process does not allow all of these CPUs; it allows CPUs {}",
                all.join(",")
            )));
        }
        Ok(Self { of_threads })
    }

    /// Each thread has one of these.
    pub fn one_each(cpus: &[u32]) -> Self {
        Self { of_threads: cpus.iter().map(|cpu| vec![*cpu]).collect() }
    }

    /// The CPUs of the thread with this number; empty means any.
    pub fn of(&self, thread: usize) -> &[u32] {
        self.of_threads.iter().cycle().nth(thread % self.of_threads.len().max(1)).map_or(&[], Vec::as_slice)
    }

    /// Pins the job of a thread to its CPUs.
    pub fn apply(&self, job: &mut JobPlan, thread: usize) {
        if !self.of_threads.is_empty() {
            job.thread.cpus_allowed = self.of(thread).to_vec();
        }
    }
}

/// Checks that the CPUs that a plan names are online. It starts nothing and looks for no server, so it suits a plan that is only
/// read.
///
/// # Errors
/// Refused, when a CPU is not online, or this process may not use it.
pub fn check<'a>(
    place: Option<&Place>,
    services: &[Service],
    jobs: impl IntoIterator<Item = &'a JobPlan>,
) -> Result<()> {
    of_services(None, services)?;
    Placing::resolve(place.filter(|place| matches!(place, Place::Cpus(_))), &[])?;
    let online = online_cpus().map_err(|error| Error::instrument("listing CPUs", error))?;
    for JobPlan { name, thread: ThreadPlan { cpus_allowed, .. }, .. } in jobs {
        // As fio: a thread runs on those of its CPUs that there are.
        if !cpus_allowed.is_empty() && !cpus_allowed.iter().any(|cpu| online.contains(cpu)) {
            let cpus: Vec<String> = cpus_allowed.iter().map(ToString::to_string).collect();
            return Err(Error::Refused(format!(
                "job '{name}': cpus_allowed={}: not online; lscpu lists the CPUs that are",
                cpus.join(",")
            )));
        }
    }
    Ok(())
}

/// The CPUs of each service to start; empty for no pinning.
///
/// # Errors
/// Refused, when a CPU is not online, or this machine cannot satisfy `place`.
pub(crate) fn of_services(place: Option<&Place>, services: &[Service]) -> Result<Vec<Vec<u32>>> {
    let failed = |error| Error::instrument("listing CPUs", error);
    let (allowed, online) = (allowed_cpus().map_err(failed)?, online_cpus().map_err(failed)?);
    for service in services {
        if let Some(missing) = service.cpus.iter().find(|cpu| !online.contains(cpu)) {
            let name = &service.name;
            return Err(Error::Refused(format!(
                "service '{name}': CPU {missing} is not online; lscpu lists those that are"
            )));
        }
    }
    if !services.is_empty() {
        Placing::resolve(place, &[])?;
    }
    Ok(decide_services(place, services, &allowed))
}

/// The CPUs of each service: its own `cpus`, or those that follow from `place`.
fn decide_services(place: Option<&Place>, services: &[Service], allowed: &[u32]) -> Vec<Vec<u32>> {
    // The clients follow or avoid the services with CPUs of their own, so the other services join those.
    let mut said = services.iter().map(|service| service.cpus.as_slice()).filter(|cpus| !cpus.is_empty());
    let confined = match said.next() {
        Some([cpu]) if said.all(|cpus| cpus == [*cpu]) => Some(*cpu),
        _ => None,
    };
    let one = |cpu: Option<&u32>| confined.or(cpu.copied()).into_iter().collect();
    let others: Vec<u32> = match place {
        None => Vec::new(),
        Some(Place::Cpus(cpus)) => cpus.clone(),
        Some(Place::Same) => one(allowed.first()),
        Some(Place::Apart) => one(allowed.last()),
    };
    let of = |service: &Service| if service.cpus.is_empty() { others.clone() } else { service.cpus.clone() };
    services.iter().map(of).collect()
}

/// The CPUs of each thread. `confined` is the CPU of a server of the workload that may use only one CPU.
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
        // On the CPU of a server that is confined to it, otherwise anywhere: an unpinned server may follow the workload
        // or not.
        Place::Same => Ok(each(confined.or(allowed.first().copied()).into_iter().collect())),
        Place::Apart => {
            let others: Vec<u32> = allowed.iter().copied().filter(|cpu| Some(*cpu) != confined).collect();
            // With a server that is confined to another CPU, one CPU is enough.
            if others.len() + usize::from(confined.is_some()) < 2 || others.is_empty() {
                let cpus: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                return Err(format!(
                    "--place apart needs two CPUs, but this process may use only CPU {}; leave it out, or widen the affinity mask \
                     (taskset)",
                    cpus.join(",")
                ));
            }
            Ok(each(others))
        }
    }
}

/// Whether a thread of this process may run on all of these CPUs: a control group may allow fewer.
fn can_run_on(cpus: &BTreeSet<u32>) -> bool {
    let list: Vec<u32> = cpus.iter().copied().collect();
    let tried = move || pin_to(&list).is_ok() && allowed_cpus().is_ok_and(|now| now == list);
    // Without a thread it cannot be known, and pinning the workload shows it.
    std::thread::Builder::new().spawn(tried).map_or(true, |tried| tried.join().unwrap_or(false))
}

/// The one CPU that all servers at these addresses are confined to; `None` if they are not confined, or to several.
fn cpu_of(addresses: &[Address]) -> Option<u32> {
    // On a machine with one CPU, every process is confined to it.
    if addresses.is_empty() || online_cpus().is_ok_and(|online| online.len() < 2) {
        return None;
    }
    let (mut found, mut listening) = (BTreeSet::new(), Listening::default());
    for process in crate::whereabouts::processes() {
        // The threads of a server usually share the affinity of the first one, because a server is pinned before it
        // starts.
        if let Ok([cpu]) = allowed_cpus_of(process).as_deref()
            && listening.of(process).iter().any(|address| addresses.contains(address))
        {
            found.insert(*cpu);
        }
    }
    if found.len() == 1 { found.first().copied() } else { None }
}

/// Where the servers of jobs listen, if they are on this machine.
pub fn servers_of<'a>(jobs: impl IntoIterator<Item = &'a JobPlan>) -> Vec<Address> {
    jobs.into_iter().filter_map(|job| local(job.path.uri.as_deref()?)).collect()
}

/// Where the servers of a command listen, as far as its words show: URIs, and all numbers that can be ports.
pub fn servers_named(words: &[String]) -> Vec<Address> {
    // The default port of iperf3, which users leave out.
    let usual = words.iter().any(|word| word.rsplit('/').next() == Some("iperf3")).then_some(Address::Port(5201));
    let named = words.iter().flat_map(|word| {
        let uri = word.find("nbd").and_then(|at| local(word.get(at..)?));
        let numbers = word.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok());
        // Smaller numbers are more likely numbers of jobs or seconds than ports.
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

/// Runs `what` on these CPUs, if there are any; threads and processes that it starts inherit them.
///
/// # Errors
/// When this thread may not use them; `what` did not run then.
pub fn pinned<T>(cpus: &[u32], what: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
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
    fn same_is_the_first_cpu_or_that_of_a_confined_server() {
        assert_eq!(cpus(&Place::Same, None), [[2]]);
        assert_eq!(cpus(&Place::Same, Some(5)), [[5]]);
        assert_eq!(cpus(&Place::Same, Some(0)), [[0]], "also where this process was not allowed");
    }

    #[test]
    fn apart_avoids_the_cpu_of_a_confined_server() {
        assert_eq!(cpus(&Place::Apart, None), [[2], [3], [5]]);
        assert_eq!(cpus(&Place::Apart, Some(3)), [[2], [5]]);
        assert_eq!(decide(&Place::Apart, &[1], &[0, 1], Some(0)), Ok(vec![vec![1]]));
        for confined in [None, Some(1)] {
            let refused = decide(&Place::Apart, &[1], &[0, 1], confined).unwrap_err();
            assert!(refused.contains("needs two CPUs") && refused.contains("only CPU 1"), "{refused}");
        }
        let placing = Placing { of_threads: cpus(&Place::Apart, None) };
        assert_eq!((placing.of(1), placing.of(3)), (&[3][..], &[2][..]), "from the beginning again");
        assert_eq!(Placing::default().of(1), &[] as &[u32]);
    }

    #[test]
    fn a_cpu_list_applies_to_all_threads_and_must_be_online() {
        assert_eq!(cpus(&Place::Cpus(vec![0, 3]), Some(2)), [[0, 3]]);
        let refused = decide(&Place::Cpus(vec![0, 9]), &[0], &[0, 1], None).unwrap_err();
        assert!(refused.contains("--place 0,9") && refused.contains("CPU 9"), "{refused}");
    }

    #[test]
    fn services_are_with_the_clients_or_away_from_them_unless_they_say_where() {
        let service = |cpus: &[u32]| {
            let plan = model::plan::service::ServicePlan::parse("a=s {port}").unwrap();
            let resolved = model::plan::service::resolve(&[plan], &[], &|_| model::plan::service::Address::default());
            Service { cpus: cpus.to_vec(), ..resolved.unwrap().remove(0) }
        };
        let decided = |place: Option<Place>, services: &[&[u32]]| {
            let services: Vec<Service> = services.iter().map(|cpus| service(cpus)).collect();
            decide_services(place.as_ref(), &services, &[2, 3, 5])
        };
        let free: &[u32] = &[];
        assert_eq!(decided(None, &[&[1], free]), [vec![1], vec![]]);
        assert_eq!(decided(Some(Place::Same), &[free, free]), [[2], [2]]);
        assert_eq!(decided(Some(Place::Apart), &[free, free]), [[5], [5]]);
        assert_eq!(decided(Some(Place::Apart), &[&[3], free]), [[3], [3]]);
        assert_eq!(decided(Some(Place::Same), &[&[3], &[4], free]), [[3], [4], [2]]);
        assert_eq!(decided(Some(Place::Cpus(vec![0, 1])), &[&[3], free]), [vec![3], vec![0, 1]]);
    }

    #[test]
    fn servers_are_where_jobs_and_commands_say() {
        let job = |uri: &str| {
            let mut job = JobPlan::default();
            job.path.uri = Some(uri.to_owned());
            job
        };
        let jobs = [job("nbd://127.0.0.1:10999"), job("nbd://[::1]/x"), job("nbd://10.0.0.1"), JobPlan::default()];
        assert_eq!(servers_of(&jobs), [Address::Port(10_999), Address::Port(10_809)]);
        let unix = job("nbd+unix:///?socket=/run/n%20bd");
        assert_eq!(servers_of([&unix]), [Address::Path("/run/n bd".to_owned())]);
        let words = |line: &str| servers_named(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let both = [Address::Port(7777), Address::Port(7777)];
        assert_eq!(words("fio --name=a --uri=nbd://localhost:7777 --bs=4k"), both);
        assert_eq!(words("/usr/bin/iperf3 -c 127.0.0.1 -t 10"), [Address::Port(5201)]);
    }

    #[test]
    fn a_thread_started_while_pinned_stays_pinned_and_its_starter_does_not() {
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
