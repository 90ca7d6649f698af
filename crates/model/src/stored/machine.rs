//! Known differences between the machines of two records, in words: "kernel 6.9.1 → 6.18.44".

use crate::kind::Envelope;
use crate::number::{self, NANOS};
use crate::record::{Canaries, Host};
use crate::storage::Storage;
use crate::unit::Bytes;
use std::collections::BTreeMap;

/// Smaller changes of a canary are not reported: canaries move by a few percent within a minute on any machine.
const MOVED: f64 = 0.1;
/// Smaller changes of memory are not reported: the kernel reserves a little memory, and how much depends on its
/// version.
const MEMORY: f64 = 0.01;
/// Smaller changes of a clock's rate are not reported; rates are measured more precisely than this.
const CLOCK: f64 = 1e-3;
/// Maximum number of mitigations to name. A new kernel may change the wording of all of them.
const MITIGATIONS: usize = 3;

/// Where a measurement ran, and its canaries.
#[derive(Debug)]
pub struct Machine<'a> {
    pub host: &'a Host,
    pub canaries: Vec<&'a Canaries>,
    pub iotoll_version: &'a str,
}

impl<'a> Machine<'a> {
    /// One without canaries.
    pub fn of(host: &'a Host, envelope: &'a Envelope) -> Self {
        Self { host, canaries: Vec::new(), iotoll_version: &envelope.iotoll_version }
    }

    /// All differences from this machine (then) to `now`, the most important first.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let (from, to) = (self.host, now.host);
        let none = || "none".to_owned();
        let mut found: Vec<Option<String>> = vec![
            word("kernel", &from.kernel, &to.kernel),
            word("CPU", &from.cpu_model, &to.cpu_model),
            word("CPUs", &from.cpus.to_string(), &to.cpus.to_string()),
            figure("memory", from.memory.as_f64(), to.memory.as_f64(), MEMORY, |bytes| gibibytes(Bytes(bytes as u64))),
            word(
                "hypervisor",
                &from.hypervisor.clone().unwrap_or_else(none),
                &to.hypervisor.clone().unwrap_or_else(none),
            ),
            word("governor", &from.governor, &to.governor),
            word("SMT", &from.smt, &to.smt),
            word("idle driver", &from.idle_driver, &to.idle_driver),
            word("clocksource", &from.clocksource, &to.clocksource),
            figure("TSC", from.tsc_hertz, to.tsc_hertz, CLOCK, |hertz| format!("{:.3} GHz", hertz / 1e9)),
        ];
        found.extend(storage(&from.storage, &to.storage));
        found.extend(mitigations(&from.mitigations, &to.mitigations).into_iter().map(Some));
        let speed = |name: &str, of: fn(&Canaries) -> Option<f64>, words: fn(f64) -> String| {
            figure(name, self.speed(of)?, now.speed(of)?, MOVED, words)
        };
        found.extend([
            speed("system call", |canaries| Some(canaries.null_system_call_nanos), nanos),
            speed("context switch", |canaries| canaries.context_switch_nanos.taken().copied(), nanos),
            speed("wake-up", |canaries| canaries.wake_up_nanos.taken().copied(), nanos),
            speed("clock reading", |canaries| Some(canaries.clock_read_nanos), nanos),
            speed(
                "memory copy",
                |canaries| Some(canaries.memcpy_gigabytes_per_second),
                |speed| format!("{speed:.1} GB/s"),
            ),
        ]);
        found.push(word("iotoll", self.iotoll_version, now.iotoll_version));
        found.into_iter().flatten().collect()
    }

    /// The mean of a canary; `None` if it was not measured.
    fn speed(&self, of: impl Fn(&Canaries) -> Option<f64>) -> Option<f64> {
        let speeds: Vec<f64> = self.canaries.iter().copied().filter_map(of).collect();
        (!speeds.is_empty()).then(|| speeds.iter().sum::<f64>() / speeds.len() as f64)
    }
}

fn word(name: &str, then: &str, now: &str) -> Option<String> {
    (then != now).then(|| format!("{name} {then} → {now}"))
}

/// Two figures, if they differ by more than the fraction `least` of the first.
fn figure(name: &str, then: f64, now: f64, least: f64, words: impl Fn(f64) -> String) -> Option<String> {
    let moved = (now - then).abs() > least * then.abs();
    moved.then(|| format!("{name} {} → {}", words(then), words(now)))
}

fn gibibytes(bytes: Bytes) -> String {
    if bytes.0 == 0 { "unknown".to_owned() } else { format!("{:.1} GiB", bytes.as_f64() / 1_073_741_824.0) }
}

fn nanos(nanos: f64) -> String {
    number::with_unit(NANOS, nanos)
}

/// What holds the files, if both are known.
fn storage(then: &[Storage], now: &[Storage]) -> [Option<String>; 2] {
    let each =
        |all: &[Storage], of: fn(&Storage) -> Option<String>| all.iter().filter_map(of).collect::<Vec<_>>().join(", ");
    let differs = |name: &str, of: fn(&Storage) -> Option<String>| {
        let (then, now) = (each(then, of), each(now, of));
        if then.is_empty() || now.is_empty() { None } else { word(name, &then, &now) }
    };
    let what = |storage: &Storage| {
        let device = storage.device.as_ref().or(storage.source.as_ref());
        let parts = [storage.file_system.as_ref(), device, storage.model.as_ref(), storage.scheduler.as_ref()];
        Some(parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" "))
    };
    [differs("storage", what), differs("mount options", |storage| storage.mount_options.clone())]
}

/// Changed mitigations as `NAME: STATUS`. Mitigations that were added or removed come first.
fn mitigations(then: &[String], now: &[String]) -> Vec<String> {
    fn by_name(mitigations: &[String]) -> BTreeMap<&str, &str> {
        mitigations.iter().map(|line| line.split_once(": ").unwrap_or((line, "on"))).collect()
    }
    let (then, now) = (by_name(then), by_name(now));
    let names: std::collections::BTreeSet<&str> = then.keys().chain(now.keys()).copied().collect();
    let status = |of: &BTreeMap<&str, &str>, name: &str| of.get(name).copied().unwrap_or("none").to_owned();
    let mut changed: Vec<&str> = names.into_iter().filter(|name| then.get(name) != now.get(name)).collect();
    changed.sort_by_key(|name| then.contains_key(name) && now.contains_key(name));
    let named = changed.iter().take(MITIGATIONS);
    let mut words: Vec<String> =
        named.map(|name| format!("mitigation of {name} {} → {}", status(&then, name), status(&now, name))).collect();
    let more = changed.len().saturating_sub(MITIGATIONS);
    words.extend((more > 0).then(|| format!("mitigations of {more} more")));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_of_figures_are_ignored() {
        let call = |then: f64, now: f64| figure("system call", then, now, MOVED, nanos);
        assert_eq!(call(209.0, 260.0).as_deref(), Some("system call 209 ns → 260 ns"));
        assert_eq!(call(209.0, 220.0), None);
        assert_eq!(call(209.0, f64::NAN), None);
        let memory = |then: u64, now: u64| {
            figure("memory", then as f64, now as f64, MEMORY, |bytes| gibibytes(Bytes(bytes as u64)))
        };
        assert_eq!(memory(16 << 30, (16 << 30) - (8 << 20)), None);
        assert_eq!(memory(16 << 30, 32 << 30).as_deref(), Some("memory 16.0 GiB → 32.0 GiB"));
        assert_eq!(memory(0, 32 << 30).as_deref(), Some("memory unknown → 32.0 GiB"));
        assert_eq!([nanos(25.04), nanos(209.3), nanos(1234.0)], ["25.0 ns", "209 ns", "1.23 µs"]);
    }

    #[test]
    fn another_device_or_file_system_is_named() {
        let on = |device: &str, options: &str| {
            let word = |text: &str| Some(text.to_owned());
            let (file_system, scheduler) = (word("ext4"), word("none"));
            vec![Storage {
                file_system,
                device: word(device),
                scheduler,
                mount_options: word(options),
                ..Storage::default()
            }]
        };
        let found = storage(&on("vda", "rw"), &on("nvme0n1", "rw,noatime")).map(Option::unwrap);
        assert_eq!(found, ["storage ext4 vda none → ext4 nvme0n1 none", "mount options rw → rw,noatime"]);
        assert_eq!(storage(&on("vda", "rw"), &on("vda", "rw")), [None, None]);
        assert_eq!(storage(&[], &on("vda", "rw")), [None, None], "unknown");
    }

    #[test]
    fn added_or_removed_mitigations_come_first_and_many_are_counted() {
        let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
        let then = lines(&["a: one", "b: one", "c: one", "d: one", "meltdown: PTI"]);
        let now = lines(&["a: two", "b: two", "c: two", "d: one", "srso: Safe RET"]);
        assert_eq!(
            mitigations(&then, &now),
            [
                "mitigation of meltdown PTI → none",
                "mitigation of srso none → Safe RET",
                "mitigation of a one → two",
                "mitigations of 2 more"
            ]
        );
        assert!(mitigations(&then, &then).is_empty());
    }
}
