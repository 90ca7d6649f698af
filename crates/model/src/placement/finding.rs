//! What is found of where threads ran; a part of the JSON of `run`, `cost` and `compare`.

use super::Place;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether the two busiest threads of the load shared a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They did.
    Same,
    /// Each had a CPU of its own.
    Apart,
    /// Now the one and now the other: each in more than a tenth of the time.
    Mixed,
}

/// Where a phase's threads ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacementFinding {
    /// Which part of the workload's CPU time each CPU had, 0 to 1.
    pub cpus: BTreeMap<u32, f64>,
    /// Other processes that were busy meanwhile: servers first, then the busiest.
    pub peers: Vec<PeerPlacement>,
    /// How often the kernel moved a thread of the workload to another CPU; `null` where it does not tell.
    pub migrations_per_second: Option<f64>,
    /// Whether the two busiest threads of workload and peers shared a CPU; `null` where fewer than two were busy.
    pub mode: Option<Mode>,
    /// What was done in either mode.
    pub modes: Vec<ModeFinding>,
}

/// Where another process ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerPlacement {
    /// Its name.
    pub name: String,
    /// Its id.
    pub process: Option<u32>,
    /// It listens on a socket.
    pub server: bool,
    /// Which part of its CPU time each CPU had, 0 to 1.
    pub cpus: BTreeMap<u32, f64>,
}

/// What was done in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeFinding {
    /// Which: `same` or `apart`.
    pub mode: Mode,
    /// Windows; slices or executions of a comparison.
    pub windows: usize,
    /// How long they were together.
    pub seconds: f64,
    /// I/Os per second in them.
    pub iops: Option<f64>,
    /// Net cycles of the whole machine per I/O in them.
    pub cycles_per_io: Option<f64>,
}

/// Where a case of a comparison ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CasePlacement {
    /// Its arm.
    pub arm: String,
    /// Its point of the sweep: option and value; empty without a sweep.
    pub cell: BTreeMap<String, String>,
    /// In which part of its slices, or of the windows of its executions, the two busiest threads shared a CPU, 0 to 1; of
    /// those in which two were busy.
    pub same_fraction: f64,
    /// What was done in either mode.
    pub modes: Vec<ModeFinding>,
}

/// From this difference on, two rates are not one load's.
const RATES_APART: f64 = 0.25;
/// A mode is known from this many windows.
const ENOUGH_WINDOWS: usize = 3;

/// Both modes, where each is known and the faster one's rate is so much above the other's that one mean describes neither.
pub(crate) fn two_rates(modes: &[ModeFinding]) -> Option<[&ModeFinding; 2]> {
    let of = |mode: Mode| modes.iter().find(|found| found.mode == mode && found.windows >= ENOUGH_WINDOWS);
    let (same, apart) = (of(Mode::Same)?, of(Mode::Apart)?);
    let (low, high) = (same.iops?.min(apart.iops?), same.iops?.max(apart.iops?));
    (low > 0.0 && high / low - 1.0 > RATES_APART).then_some([same, apart])
}

/// What a reader can do about two rates.
pub(crate) fn mend(place: Option<&Place>) -> String {
    match place {
        None => "pin them: --place same, or --place apart".to_owned(),
        Some(place) => {
            format!(
                "pin what --place {place} does not place: a server (taskset), or with CPUs each thread (cpus_allowed)"
            )
        }
    }
}

/// "1 CPU for 5.1 s (148000 IOPS, 17.2 kcycles/IO)".
pub(crate) fn in_words(found: &ModeFinding) -> String {
    let iops = found.iops.map(|iops| format!("{iops:.0} IOPS"));
    let cycles = found.cycles_per_io.map(|cycles| match cycles {
        // Less than the background was left of them.
        none if none < 0.5 => "≈ 0 cycles/IO".to_owned(),
        few if few < 1000.0 => format!("{few:.0} cycles/IO"),
        many => format!("{:.1} kcycles/IO", many / 1e3),
    });
    let figures: Vec<String> = [iops, cycles].into_iter().flatten().collect();
    format!("{:.1} s, {}", found.seconds, figures.join(" and "))
}
