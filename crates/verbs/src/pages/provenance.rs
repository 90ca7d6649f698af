//! What every report says about where its numbers come from: the machine, what holds the files, the program and the date.

use model::elided_list::elided_list;
use model::finding::Background;
use model::kind::Head;
use model::plan::service::Service;
use model::reading::Reading;
use model::record::{Canaries, Host};
use model::storage::Storage;
use report::document::{Audience, Fact, tied};
use report::number;
use report::phrase;
use report::shell::command;

/// The machine for `reader`; its settings and mitigations for those who do not sit at it; what holds the files.
pub fn of_host(host: &Host, reader: Audience) -> Vec<Fact> {
    let away = Audience::POST.or(Audience::PAGE);
    let mut facts = vec![Fact::of(reader, "Machine", machine(host))];
    facts.push(Fact::of(away, "Settings", settings(host)));
    facts.push(Fact::of(away, "Mitigations", mitigations(host)));
    facts.extend(host.storage.iter().map(|storage| Fact::new("Storage", self::storage(storage))));
    facts
}

/// "iotoll 0.1.0, method version 2, 2025-05-03 12:00:00 UTC".
pub fn made_by(head: &Head) -> Fact {
    let version = head.origin.iotoll_version.as_deref().unwrap_or("of an unknown version");
    let began = phrase::time(head.started_unix_seconds).unwrap_or_else(|| "at an unknown time".to_owned());
    Fact::new("Made by", format!("iotoll {version}, method version {}, {began}", head.method_version))
}

/// "data: ext4 on /srv (/dev/vda1, rw,noatime); device vda1, model X, scheduler none".
fn storage(storage: &Storage) -> String {
    let Storage { files, file_system, mount_point, mount_options, source, device, model, scheduler } = storage;
    let within: Vec<&str> = [source, mount_options].into_iter().flatten().map(String::as_str).collect();
    let within = if within.is_empty() { String::new() } else { format!(" ({})", within.join(", ")) };
    let held = file_system.as_ref().map(|kind| {
        let at = mount_point.as_ref().map(|point| format!(" on {point}")).unwrap_or_default();
        format!("{kind}{at}{within}")
    });
    let model = model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
    let scheduler = scheduler.as_ref().map(|scheduler| format!(", scheduler {scheduler}")).unwrap_or_default();
    let device = device.as_ref().map(|device| format!("device {device}{model}{scheduler}"));
    let parts: Vec<String> = held.into_iter().chain(device).collect();
    let parts = if parts.is_empty() { "unknown".to_owned() } else { parts.join("; ") };
    format!("{}: {parts}", elided_list(files, ", "))
}

/// Maximum number of background tasks to name.
const NAMED: usize = 4;
/// Maximum number of mitigations to name.
const MITIGATIONS: usize = 6;

/// What the machine did without the workload.
pub fn background(background: &Background) -> String {
    let percent = |fraction| tied(&number::percent(fraction));
    let Some(busy) = background.busy_fraction else { return format!("{} not measured", number::MISSING) };
    let mut text = format!("{} of the machine", percent(busy));
    if let (Some(low), Some(high)) = (background.busy_fraction_low, background.busy_fraction_high) {
        text += &tied(&format!(" [{}, {}]", percent(low), percent(high)));
    }
    if let Some(before) = background.busy_fraction_before {
        text += &format!(", {} before the workload", percent(before));
    }
    if let Some(after) = background.busy_fraction_after {
        text += &format!(", {} after it", percent(after));
    }
    text += &format!("; measured for {}", tied(&number::seconds(background.seconds)));
    if let Some(switches) = background.context_switches_per_second {
        text += &format!("; {} context switches/s", number::with_unit(number::COUNT, switches));
    }
    let tasks = background.tasks.iter().take(NAMED);
    let tasks: Vec<_> = tasks.map(|task| format!("{} {}", task.name, percent(task.busy_fraction))).collect();
    // The tasks have clocks of their own, whose error may make them more than the whole.
    let together: f64 = background.tasks.iter().take(NAMED).map(|task| task.busy_fraction).sum();
    let of = if together > busy * 1.01 { "by the tasks' own clocks, whose sum is higher:" } else { "mainly" };
    if !tasks.is_empty() {
        text += &format!("; {of} {}", tasks.join(", "));
    }
    text
}

/// The machine in a line.
pub fn machine(host: &Host) -> String {
    let cpus = if host.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", host.cpus) };
    let mut parts = vec![format!("Linux {}", host.kernel), host.cpu_model.clone(), tied(&cpus)];
    parts.extend(host.hypervisor.iter().map(|hypervisor| format!("under {hypervisor}")));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// The canaries, each as it was first, and as it was last if they were taken several times.
pub fn canaries(taken: &[Canaries]) -> Vec<(&'static str, String)> {
    let Some((first, last)) = taken.first().zip(taken.last()) else { return Vec::new() };
    let nanos = |nanos: f64| number::with_unit(number::NANOS, nanos);
    let read = |reading: &Reading<f64>| match reading {
        Reading::Taken(value) => nanos(*value),
        Reading::Unavailable(reason) => reason.clone(),
    };
    let all = |canaries: &Canaries| {
        [
            ("system call", nanos(canaries.null_system_call_nanos)),
            ("context switch", read(&canaries.context_switch_nanos)),
            ("wake-up", read(&canaries.wake_up_nanos)),
            ("clock reading", nanos(canaries.clock_read_nanos)),
            ("memory copy", format!("{} GB/s", number::significant(canaries.memcpy_gigabytes_per_second))),
        ]
    };
    let moved =
        |((name, before), (_, after))| (name, if before == after { before } else { format!("{before} → {after}") });
    all(first).into_iter().zip(all(last)).map(moved).collect()
}

fn settings(host: &Host) -> String {
    let Host { governor, smt, clocksource, idle_driver, .. } = host;
    format!("governor {governor}, SMT {smt}, clocksource {clocksource}, idle {idle_driver}")
}

/// The names of its mitigations.
fn mitigations(host: &Host) -> String {
    let names: Vec<_> = host.mitigations.iter().filter_map(|line| line.split(':').next()).map(str::trim).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    let more = names.len().saturating_sub(MITIGATIONS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.iter().take(MITIGATIONS).copied().collect::<Vec<_>>().join(", ") + &more
}

/// What a cycle means on a host, counted by the processor or derived from the clock.
pub fn cycles(host: &Host, by_pmu: bool) -> String {
    if by_pmu {
        return "counted by the PMU on all CPUs, user and kernel mode".to_owned();
    }
    let guest = if host.hypervisor.is_some() { "guest reference cycles" } else { "reference cycles" };
    format!("{guest}: TSC {} × CPU time of the whole machine", tied(&number::gigahertz(host.tsc_hertz)))
}

/// A fact for each: "server: iotoll serve --listen 127.0.0.1:4242, on CPU 1".
pub fn services(services: &[Service]) -> impl Iterator<Item = Fact> + '_ {
    services.iter().map(|service| Fact::new("Service", sentence(service)))
}

fn sentence(service: &Service) -> String {
    let mut text = format!("{}: {}", service.name, command(&service.command));
    let cpus: Vec<String> = service.cpus.iter().map(ToString::to_string).collect();
    match cpus.as_slice() {
        [] => {}
        [cpu] => text += &format!(", {}", tied(&format!("on CPU {cpu}"))),
        several => text += &format!(", {}", tied(&format!("on CPUs {}", several.join(",")))),
    }
    if let Some(arm) = &service.arm {
        text += &format!(", for arm {arm} alone");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::origin::Origin;
    use model::plan::service::{Address, ServicePlan, resolve};

    #[test]
    fn storage_names_the_file_system_and_the_device() {
        let text = |text: &str| Some(text.to_owned());
        let disk = Storage {
            files: vec!["data".to_owned()],
            file_system: text("ext4"),
            mount_point: text("/srv"),
            mount_options: text("rw,noatime"),
            source: text("/dev/nvme0n1p1"),
            device: text("nvme0n1p1"),
            model: text("Samsung SSD 990"),
            scheduler: text("none"),
        };
        assert_eq!(
            storage(&disk),
            "data: ext4 on /srv (/dev/nvme0n1p1, rw,noatime); device nvme0n1p1, Samsung SSD 990, scheduler none"
        );
        let bare = Storage { files: vec!["/dev/sdb".to_owned()], device: text("sdb"), ..Storage::default() };
        assert_eq!(storage(&bare), "/dev/sdb: device sdb");
        assert_eq!(storage(&Storage { files: vec!["x".to_owned()], ..Storage::default() }), "x: unknown");
    }

    #[test]
    fn the_program_and_the_date_are_named() {
        let origin = Origin { iotoll_version: Some("0.1.0".to_owned()), ..Origin::default() };
        let head = Head { origin, method_version: 2, ..Head::default() };
        assert_eq!(made_by(&head).text, "iotoll 0.1.0, method version 2, 1970-01-01 00:00:00 UTC");
        let unknown = Head { origin: Origin::default(), started_unix_seconds: f64::NAN, ..head };
        assert_eq!(made_by(&unknown).text, "iotoll of an unknown version, method version 2, at an unknown time");
    }

    #[test]
    fn a_service_is_named_with_its_command_and_its_cpus() {
        let plan = ServicePlan::parse("a=iotoll serve --listen 127.0.0.1:{port} --backend 'file:/my data'").unwrap();
        let more = ServicePlan { name: "b".to_owned(), cpus: vec![0, 2], arm: Some("slow".to_owned()), ..plan.clone() };
        let one = ServicePlan { cpus: vec![1], ..plan };
        let started = resolve(&[one, more], &[], &|_| Address { port: 4242, directory: "/tmp/a".to_owned() }).unwrap();
        let texts: Vec<String> = services(&started).map(|fact| fact.text.replace('\u{a0}', " ")).collect();
        let command = "iotoll serve --listen 127.0.0.1:4242 --backend 'file:/my data'";
        assert_eq!(
            texts,
            [format!("a: {command}, on CPU 1"), format!("b: {command}, on CPUs 0,2, for arm slow alone")]
        );
    }
}
