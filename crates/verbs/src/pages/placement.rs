//! The placement of threads, in words.

use model::elided_list::grouped;
use model::finding::{PhaseFinding, RunFinding};
use model::placement::{BUSY, CasePlacement, Mode, ModeFinding, PeerPlacement, PlacementFinding};
use report::document::tied;
use report::number;
use std::collections::BTreeMap;

/// Maximum number of CPUs to name for a process.
const CPUS: usize = 4;
/// Maximum number of other processes to name.
const PEERS: usize = 3;

/// "worker on CPU 1 (100 %), server nbdkit on CPU 0 (97 %): apart".
pub fn of_phase(finding: &RunFinding, phase: &PhaseFinding) -> Option<String> {
    let placement = phase.placement.as_ref()?;
    let mut parts = Vec::new();
    let own = if phase.exits.is_empty() { "worker" } else { "command" };
    parts.extend(on(&placement.cpus).map(|cpus| format!("{own} {cpus}")));
    let related = related(finding, phase, &placement.peers);
    let peers = related.iter().take(PEERS).enumerate().filter_map(|(place, peer)| {
        // Whom a command talks to is unknown, unless iotoll started it.
        let is_server = peer.server && (phase.exits.is_empty() || is_service(finding, peer));
        let beside = if place == 0 && !is_server { "also " } else { "" };
        let server = if is_server { "server " } else { "" };
        Some(format!("{beside}{server}{} {}", peer.name, on(&peer.cpus)?))
    });
    parts.extend(peers);
    let more = related.len().saturating_sub(PEERS);
    parts.extend((more > 0).then(|| format!("and {more} more")));
    if parts.is_empty() {
        return None;
    }
    let mode = mode(placement).map(|mode| format!(": {mode}")).unwrap_or_default();
    Some(format!("{}{mode}", parts.join(", ")))
}

fn is_service(finding: &RunFinding, peer: &PeerPlacement) -> bool {
    finding.head.services.iter().any(|service| peer.name.starts_with(&format!("'{}'", service.name)))
}

/// The other processes that may be part of the load: none of a job that uses files, otherwise its services, otherwise
/// servers of a job, otherwise those that were not busy anyway.
fn related<'a>(finding: &RunFinding, phase: &PhaseFinding, peers: &'a [PeerPlacement]) -> Vec<&'a PeerPlacement> {
    let mut jobs = finding.merged_jobs.iter().filter(|job| phase.jobs.contains(&job.name)).peekable();
    let planned = jobs.peek().is_some() && phase.exits.is_empty();
    if planned && jobs.all(|job| job.plan.as_ref().is_some_and(|plan| plan.path.uri.is_none())) {
        return Vec::new();
    }
    let anyway = |peer: &PeerPlacement| {
        let least = BUSY / finding.head.host.cpus.max(1) as f64;
        finding.background.tasks.iter().any(|task| task.name == peer.name && task.busy_fraction >= least)
    };
    let of: Vec<&PeerPlacement> = peers.iter().filter(|peer| is_service(finding, peer)).collect();
    let of =
        if of.is_empty() && phase.exits.is_empty() { peers.iter().filter(|peer| peer.server).collect() } else { of };
    if of.is_empty() { peers.iter().filter(|peer| !anyway(peer)).collect() } else { of }
}

/// "on CPU 1 (100 %)", "on CPUs 0 (52 %) and 1 (48 %)".
fn on(cpus: &BTreeMap<u32, f64>) -> Option<String> {
    let mut parts: Vec<(u32, f64)> = cpus.iter().map(|(cpu, part)| (*cpu, *part)).collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let more = parts.len().saturating_sub(CPUS);
    parts.truncate(CPUS);
    let name = |(cpu, part): &(u32, f64)| tied(&format!("{cpu} ({})", number::percent(*part)));
    match parts.as_slice() {
        [] => None,
        [only] => Some(tied(&format!("on CPU {}", name(only)))),
        [first, rest @ ..] => {
            let rest: Vec<String> = rest.iter().map(name).collect();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Some(format!("on CPUs {} and {}{more}", name(first), rest.join(" and ")))
        }
    }
}

fn mode(placement: &PlacementFinding) -> Option<String> {
    Some(match placement.mode? {
        Mode::Same => "on one CPU".to_owned(),
        Mode::Apart => "apart".to_owned(),
        Mode::Mixed => format!("on one CPU in {} of the time", number::percent(same_part(&placement.modes)?)),
    })
}

fn same_part(modes: &[ModeFinding]) -> Option<f64> {
    let all: f64 = modes.iter().map(|mode| mode.seconds).sum();
    let same: f64 = modes.iter().filter(|mode| mode.mode == Mode::Same).map(|mode| mode.seconds).sum();
    (all > 0.0).then(|| same / all)
}

/// "baseline on one CPU in 34 %, candidate in 100 %"; a range if there are several cells.
pub fn of_cases(cases: &[CasePlacement]) -> Option<String> {
    let arms = grouped(cases.iter().map(|case| (&case.arm, case.same_fraction)));
    let part = |(arm, fractions): &(&String, Vec<f64>)| {
        let end = |of: fn(f64, f64) -> f64| number::percent(fractions.iter().copied().reduce(of).unwrap_or_default());
        let (low, high) = (end(f64::min), end(f64::max));
        let range = if low == high { low } else { format!("{low} to {high}") };
        format!("{arm} {}", tied(&range))
    };
    let parts: Vec<String> = arms.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("the two busiest threads shared a CPU: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::page::fixture;
    use model::finding::BackgroundTask;
    use model::record::Exit;

    fn plain(text: Option<String>) -> String {
        text.unwrap_or_default().replace('\u{a0}', " ")
    }

    fn phase(placement: PlacementFinding) -> PhaseFinding {
        let mut phase = fixture::named("psync_4k").phases.remove(0);
        phase.placement = Some(placement);
        phase
    }

    fn told(placement: PlacementFinding) -> String {
        plain(of_phase(&fixture::named("psync_4k"), &phase(placement)))
    }

    fn two(mode: Mode) -> PlacementFinding {
        let found = |mode, seconds| ModeFinding { mode, windows: 9, seconds, iops: None, cycles_per_io: None };
        PlacementFinding {
            cpus: [(1, 1.0)].into(),
            peers: vec![PeerPlacement {
                name: "nbdkit".to_owned(),
                process: Some(77),
                server: true,
                cpus: [(0, 0.97), (1, 0.03)].into(),
            }],
            mode: Some(mode),
            modes: vec![found(Mode::Same, 6.1), found(Mode::Apart, 3.9)],
        }
    }

    #[test]
    fn a_phase_names_the_cpus_of_each_thread() {
        assert_eq!(
            told(two(Mode::Apart)),
            "worker on CPU 1 (100 %), server nbdkit on CPUs 0 (97 %) and 1 (3.0 %): apart"
        );
        assert!(told(two(Mode::Mixed)).contains(": on one CPU in 61 % of the time"));
        let many =
            PlacementFinding { cpus: (0..9).map(|cpu| (cpu, 1.0 / 9.0)).collect(), ..PlacementFinding::default() };
        assert!(told(many).ends_with("and 5 more"));
        assert_eq!(told(PlacementFinding::default()), "");
    }

    #[test]
    fn processes_that_do_not_belong_to_the_load_are_not_named() {
        let peer = |name: &str, server| PeerPlacement {
            name: name.to_owned(),
            process: Some(7),
            server,
            cpus: [(0, 1.0)].into(),
        };
        let names = |finding: &RunFinding, peers: &[PeerPlacement]| {
            let related = related(finding, &finding.phases[0], peers);
            related.iter().map(|peer| peer.name.clone()).collect::<Vec<_>>()
        };
        let mut finding = fixture::named("psync_4k");
        let peers = [peer("rustc", false), peer("containerd", false), peer("nbdkit", true)];
        assert_eq!(names(&finding, &peers), ["nbdkit"], "a server");
        finding.background.tasks = vec![BackgroundTask { name: "rustc".to_owned(), busy_fraction: 0.4 }];
        assert_eq!(names(&finding, &peers[..2]), ["containerd"], "not what ran anyway");
        finding.phases[0].exits = vec![Exit::Status(0)];
        assert_eq!(names(&finding, &peers), ["containerd", "nbdkit"], "a command may use any of them");
        finding.phases[0].placement = Some(PlacementFinding { peers: peers.to_vec(), ..PlacementFinding::default() });
        let told = plain(of_phase(&finding, &finding.phases[0]));
        assert_eq!(told, "also containerd on CPU 0 (100 %), nbdkit on CPU 0 (100 %)");
        finding.phases[0].exits.clear();
        finding.merged_jobs.iter_mut().for_each(|job| job.plan = Some(Box::default()));
        assert!(names(&finding, &peers).is_empty(), "a job that uses files has no server");
    }

    #[test]
    fn arms_say_how_often_a_cpu_was_shared() {
        let case = |arm: &str, same_fraction| CasePlacement {
            arm: arm.to_owned(),
            cell: BTreeMap::new(),
            same_fraction,
            modes: Vec::new(),
        };
        let cases = [case("baseline", 0.34), case("candidate", 1.0), case("baseline", 0.5)];
        assert_eq!(
            plain(of_cases(&cases)),
            "the two busiest threads shared a CPU: baseline 34 % to 50 %, candidate 100 %"
        );
        assert_eq!(of_cases(&[]), None);
    }
}
