//! The amount that the worker has done so far, and where it is read.

use super::process_io::ProcessTree;
use crate::engine::ledger::LiveCounters;
use crate::error::{Error, Result};
use crate::probe::{ProbeSet, WorkerTask};
use model::probe::{Descriptor, Kind, Probe};
use std::sync::Arc;

/// Where the amount of a worker is read.
pub(super) enum Amount {
    /// Bytes that a worker thread of iotoll has done.
    Bytes(Arc<LiveCounters>),
    /// Steps that a worker thread of iotoll has computed.
    Steps(Arc<LiveCounters>),
    /// Bytes of the system calls of a process and its children.
    Process(ProcessTree),
    /// A probe that the user named.
    Probe(ProbeSet),
}

/// An amount with its words for the record.
pub(super) struct Counted {
    pub amount: Amount,
    /// Where it is read, in words.
    pub by: String,
    /// What is counted.
    pub unit: String,
}

impl Amount {
    /// The amount now; `None` if the worker or its counter is gone. Does not allocate.
    pub fn read(&mut self) -> Option<u64> {
        match self {
            Self::Bytes(live) => Some(live.bytes()),
            Self::Steps(live) => Some(live.ios()),
            Self::Process(tree) => tree.read(),
            Self::Probe(probes) => {
                let mut value = [None];
                probes.read_into(&mut value);
                let [value] = value;
                value.map(|value| value as u64)
            }
        }
    }
}

/// The amount by a probe that the user named.
///
/// # Errors
/// Refused, when it cannot be read, or is not a counter.
pub(super) fn of_probe(probe: &Probe, task: WorkerTask) -> Result<Counted> {
    let descriptor = &probe.descriptor;
    if descriptor.kind != Kind::Counter {
        let name = &descriptor.name;
        return Err(Error::Refused(format!("--count {name}: is a gauge; name a counter, which only grows")));
    }
    let probes = ProbeSet::open_beside(std::slice::from_ref(probe), Some(task))?;
    let shortfall = probes.descriptors().first().and_then(Descriptor::shortfall);
    let shortfall = shortfall.map_or_else(String::new, |shortfall| format!("; {shortfall}"));
    let unit = if descriptor.unit.is_empty() { "counts" } else { &descriptor.unit };
    Ok(Counted {
        amount: Amount::Probe(probes),
        by: format!("{} (probe {}){shortfall}", descriptor.meaning, descriptor.name),
        unit: unit.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_counter_counts() {
        let task = WorkerTask::Process(std::process::id());
        let of = |name: &str| of_probe(&Probe::parse(name).unwrap(), task);
        assert!(of("dirty").err().unwrap().to_string().contains("is a gauge"));
        let mut faults = of("page_faults").unwrap();
        assert!(faults.amount.read() > Some(0));
        assert_eq!(faults.unit, "faults");
    }
}
