//! The events that names stand for on this machine.

use crate::error::{Error, Result};
use crate::event_counters;
use model::events::{ALL, HARDWARE, SYSTEM_CALLS, Wanted, unknown};
use sys::perf::{Hardware, available_tracepoints};
use syscalls::Sysno;

/// What is to be counted.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) tracepoints: Vec<Named>,
    pub(super) calls: Calls,
    /// Counters of the hardware, by name, and whether the user named each.
    pub(super) hardware: Vec<(String, bool)>,
    /// What is unknown because the machine does not tell its names, and why.
    pub(super) unavailable: Vec<(String, String)>,
}

/// A tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) subsystem: String,
    pub(super) name: String,
    /// Whether the user named it, and not a group that contains it.
    pub(super) named: bool,
}

/// System calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Calls {
    #[default]
    None,
    Only(Vec<String>),
    All,
}

impl Named {
    pub(super) fn full_name(&self) -> String {
        format!("{}:{}", self.subsystem, self.name)
    }
}

impl Calls {
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Only(names) => names.iter().any(|only| only == name),
            Self::All => true,
        }
    }

    fn add(&mut self, name: &str) {
        match self {
            Self::None => *self = Self::Only(vec![name.to_owned()]),
            Self::Only(names) => names.push(name.to_owned()),
            Self::All => {}
        }
    }
}

/// The name of a system call of this architecture. Numbers from `NUMBERED_CALLS` on share the name `others`. A 32-bit program has other numbers, so
/// its names are wrong.
pub(super) fn call_name(number: u32) -> String {
    if number >= event_counters::NUMBERED_CALLS.unsigned_abs() {
        return "others".to_owned();
    }
    let known = usize::try_from(number).ok().and_then(Sysno::new);
    known.map_or_else(|| format!("number_{number}"), |call| call.name().to_owned())
}

/// A counter of the hardware, by the name that perf gives it.
pub(super) fn hardware(name: &str) -> Option<Hardware> {
    Some(match name {
        "cycles" => Hardware::Cycles,
        "instructions" => Hardware::Instructions,
        "cache-misses" => Hardware::CacheMisses,
        "branch-misses" => Hardware::BranchMisses,
        "dTLB-load-misses" => Hardware::DataTlbMisses,
        _ => return None,
    })
}

/// Finds what is wanted.
///
/// # Errors
/// Refused, when the machine does not have what the user named.
pub(super) fn resolve(wanted: &[Wanted]) -> Result<Names> {
    let mut names = Names::default();
    // Read only if a name is not one that iotoll knows.
    let available = std::cell::LazyCell::new(available_tracepoints);
    for wanted in wanted {
        match wanted {
            Wanted::Tracepoint { subsystem, name, named } if subsystem == HARDWARE => {
                names.hardware.push((name.clone(), *named));
            }
            Wanted::Tracepoint { subsystem, name, named } => {
                let tracepoint = Named { subsystem: subsystem.clone(), name: name.clone(), named: *named };
                let full_name = tracepoint.full_name();
                if *named && model::events::meaning(&full_name).is_empty() {
                    // Where they may not be listed, attaching shows whether there is one.
                    if let Ok(available) = available.as_ref()
                        && !available.contains(&full_name)
                    {
                        return Err(refused(&full_name, available.iter().map(String::as_str)));
                    }
                }
                names.add(tracepoint);
            }
            Wanted::Subsystem(subsystem) => match available.as_ref() {
                Ok(available) => {
                    let prefix = format!("{subsystem}:");
                    let of_it: Vec<&str> = available.iter().filter_map(|name| name.strip_prefix(&prefix)).collect();
                    if of_it.is_empty() {
                        let subsystems = available.iter().filter_map(|name| Some(name.split_once(':')?.0));
                        return Err(refused(subsystem, subsystems));
                    }
                    for name in of_it {
                        names.add(Named { subsystem: subsystem.clone(), name: name.to_owned(), named: false });
                    }
                }
                Err(error) => names.unavailable.push((format!("{subsystem}:{ALL}"), error.to_string())),
            },
            Wanted::SystemCalls => names.calls = Calls::All,
            Wanted::SystemCall(name) => {
                if !Sysno::iter().any(|call| call.name() == name) {
                    let full_name = format!("{SYSTEM_CALLS}:{name}");
                    let all: Vec<String> =
                        Sysno::iter().map(|call| format!("{SYSTEM_CALLS}:{}", call.name())).collect();
                    return Err(refused(&full_name, all.iter().map(String::as_str)));
                }
                names.calls.add(name);
            }
        }
    }
    Ok(names)
}

/// There is none of this name, but others.
fn refused<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Error {
    Error::Refused(format!("--events: {}", unknown(name, names)))
}

impl Names {
    /// A tracepoint that the user named beside its subsystem stays named.
    fn add(&mut self, tracepoint: Named) {
        let same = |other: &&mut Named| (&other.subsystem, &other.name) == (&tracepoint.subsystem, &tracepoint.name);
        match self.tracepoints.iter_mut().find(same) {
            Some(other) => other.named |= tracepoint.named,
            None => self.tracepoints.push(tracepoint),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<Names> {
        resolve(&Wanted::parse_list(text).unwrap())
    }

    #[test]
    fn system_calls_have_the_names_of_this_architecture() {
        for (number, name) in [(libc_number(), "pread64"), (511, "number_511"), (512, "others")] {
            assert_eq!(call_name(number), name);
        }
        let names = resolved("syscalls:pread64,syscalls:sys_enter_fsync").unwrap();
        assert!(names.calls.has("pread64") && names.calls.has("fsync") && !names.calls.has("read"));
        assert!(resolved("syscalls:read,syscalls").unwrap().calls.has("write"));
        let refused = resolved("syscalls:pread46").unwrap_err().to_string();
        assert!(refused.contains("did you mean 'syscalls:pread64'?"), "{refused}");
    }

    #[test]
    fn every_counter_of_the_hardware_is_known() {
        let names = resolved("hw,hw:cycles").unwrap().hardware;
        assert!(names.len() > 3 && names.iter().all(|(name, _)| hardware(name).is_some()), "{names:?}");
        assert_eq!(names.iter().filter(|(_, named)| *named).count(), 1);
    }

    fn libc_number() -> u32 {
        if cfg!(target_arch = "x86_64") { 17 } else { 67 }
    }

    #[test]
    fn what_the_machine_lacks_is_refused_with_the_nearest_name() {
        if let Err(error) = available_tracepoints() {
            return crate::skipping::note_skipped("events: names of this machine", &error.to_string());
        }
        let refused = resolved("sched:sched_wakin").unwrap_err().to_string();
        assert!(refused.contains("'sched:sched_wakin' here; did you mean 'sched:sched_waking'?"), "{refused}");
        let refused = resolved("shed:*").unwrap_err().to_string();
        assert!(refused.contains("did you mean 'sched'?"), "{refused}");
        let all = resolved("sched:sched_switch,sched:*").unwrap();
        let switch = all.tracepoints.iter().filter(|it| it.name == "sched_switch").collect::<Vec<_>>();
        assert!(matches!(switch.as_slice(), [Named { named: true, .. }]), "{switch:?}");
        assert!(all.tracepoints.len() > 5);
    }
}
