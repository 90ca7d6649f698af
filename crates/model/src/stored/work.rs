//! Differences between the work of two measurements, in words: "bs 4096 → 8192". Names, files and seeds are ignored.

use crate::plan::service::{Service, named_in};
use crate::plan::{JobPlan, Plan, options};
use std::fmt::Display;

/// Maximum number of differences to name.
const NAMED: usize = 6;

/// The first differences, and the number of further ones.
pub(crate) fn named(mut found: Vec<String>) -> Vec<String> {
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    found.extend((more > 0).then(|| format!("and {more} more")));
    found
}

/// "bs 4096 → 8192".
pub fn differs(name: &str, then: impl Display, now: impl Display) -> Option<String> {
    let (then, now) = (then.to_string(), now.to_string());
    (then != now).then(|| format!("{name} {then} → {now}"))
}

/// Differences between the commands of services with the same name.
pub fn of_services(then: &[Service], now: &[Service]) -> Vec<String> {
    let command = |services: &[Service], service: &Service| named_in(services, &service.command.join(" "));
    let pairs = now.iter().filter_map(|today| Some((then.iter().find(|before| before.name == today.name)?, today)));
    pairs
        .filter_map(|(before, today)| {
            differs(&format!("service '{}'", today.name), command(then, before), command(now, today))
        })
        .collect()
}

/// Differences between the jobs of two plans, each with its services.
pub fn of_plans((then, before): (&Plan, &[Service]), (now, today): (&Plan, &[Service])) -> Vec<String> {
    let (before, today) = (jobs(then, before), jobs(now, today));
    if before.len() != today.len() {
        return vec![format!("jobs {} → {}", before.len(), today.len())];
    }
    before.into_iter().zip(today).flat_map(|(before, today)| of_jobs(&before, &today)).collect()
}

/// Jobs that name the services they use: a service has another address each time.
fn jobs(plan: &Plan, services: &[Service]) -> Vec<JobPlan> {
    let named = |job: &JobPlan| {
        let mut job = job.clone();
        job.path.uri = job.path.uri.map(|uri| named_in(services, &uri));
        job
    };
    plan.phases.iter().flat_map(|phase| &phase.jobs).map(named).collect()
}

/// The words of two commands that differ. If the number of words differs, both commands.
pub fn of_words((then, before): (&[String], &[Service]), (now, today): (&[String], &[Service])) -> Vec<String> {
    let named = |words: &[String], services| words.iter().map(|word| named_in(services, word)).collect::<Vec<_>>();
    let (then, now) = (named(then, before), named(now, today));
    if then.len() != now.len() {
        return vec![format!("command `{}` → `{}`", then.join(" "), now.join(" "))];
    }
    then.iter().zip(&now).filter_map(|(then, now)| differs("word", then, now)).collect()
}

/// The options that define the work, under fio's names.
fn of_jobs(then: &JobPlan, now: &JobPlan) -> Vec<String> {
    let files = JobPlan::file_count;
    let options = options::of_work(then).zip(options::of_work(now));
    let options = options.filter_map(|((name, then), (_, now))| differs(name, then, now));
    differs("files", files(then), files(now)).into_iter().chain(options).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{CallPlan, Depth};
    use crate::unit::{Bytes, Nanos};

    #[test]
    fn differing_options_have_fio_names_and_others_are_ignored() {
        let then = JobPlan::default();
        let mut same = JobPlan { name: "other".to_owned(), ..then.clone() };
        (same.requests.seed, same.together.start_delay) = (Some(7), Nanos(5));
        same.target.files = vec!["elsewhere".to_owned()];
        assert!(of_jobs(&then, &same).is_empty());
        let other = JobPlan {
            block_sizes: Bytes(8192).into(),
            depth: Depth { in_flight: 8, ..Depth::default() },
            calls: CallPlan { fixed_buffers: Some(true), ..CallPlan::default() },
            ..same
        };
        let expected = ["bs 4k → 8k", "iodepth 1 → 8", "fixedbufs default → 1"];
        assert_eq!(of_jobs(&then, &other), expected);
    }

    #[test]
    fn the_port_of_a_service_is_no_difference_but_its_command_is() {
        use crate::plan::service::{Address, ServicePlan, resolve};
        let at = |port, command: &str| {
            let plan = ServicePlan::parse(&format!("s={command} {{port}}")).unwrap();
            resolve(&[plan], &[], &|_| Address { port, directory: format!("/tmp/{port}") }).unwrap()
        };
        let plan = |services: &[Service]| {
            let mut job = JobPlan::default();
            job.path.uri = services[0].uri.clone();
            Plan { phases: vec![crate::plan::Phase { jobs: vec![job] }], ..Plan::default() }
        };
        let (then, now) = (at(1111, "serve"), at(2222, "serve"));
        assert!(of_services(&then, &now).is_empty());
        assert!(of_plans((&plan(&then), &then), (&plan(&now), &now)).is_empty());
        let words = |services: &[Service]| vec![services[0].port.to_string(), format!("{}/x", services[0].directory)];
        assert!(of_words((&words(&then), &then), (&words(&now), &now)).is_empty());
        assert_eq!(of_services(&then, &at(2222, "sink")), ["service 's' serve {s.port} → sink {s.port}"]);
    }

    #[test]
    fn differing_words_of_commands_are_listed() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let of_words = |then, now| of_words((&words(then), &[]), (&words(now), &[]));
        assert_eq!(of_words("fio a.fio", "fio b.fio"), ["word a.fio → b.fio"]);
        assert_eq!(of_words("fio a", "fio a b"), ["command `fio a` → `fio a b`"]);
    }
}
