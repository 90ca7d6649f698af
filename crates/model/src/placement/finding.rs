//! The placement of threads as part of the JSON of `run`, `cost` and `compare`.

use super::Place;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether the two busiest threads of the load shared a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They shared a CPU.
    Same,
    /// Each had its own CPU.
    Apart,
    /// Both, each in more than a tenth of the time.
    Mixed,
}

/// The placement of a phase's threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacementFinding {
    /// Fraction of the workload's CPU time on each CPU, 0 to 1.
    pub cpus: BTreeMap<u32, f64>,
    /// Other processes that were busy at the same time: servers first, then the busiest.
    pub peers: Vec<PeerPlacement>,
    /// Whether the two busiest threads of workload and peers shared a CPU; `null` if fewer than two were busy.
    pub mode: Option<Mode>,
    /// Rates and costs in each mode.
    pub modes: Vec<ModeFinding>,
}

/// The placement of another process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerPlacement {
    /// Name of the process.
    pub name: String,
    /// Process ID.
    pub process: Option<u32>,
    /// Whether it listens on a socket.
    pub server: bool,
    /// Fraction of its CPU time on each CPU, 0 to 1.
    pub cpus: BTreeMap<u32, f64>,
}

/// Rate and cost in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeFinding {
    /// The mode: `same` or `apart`.
    pub mode: Mode,
    /// Number of windows; for a comparison, slices or executions.
    pub windows: usize,
    /// Total length of the windows, in seconds.
    pub seconds: f64,
    /// I/Os per second in these windows.
    pub iops: Option<f64>,
    /// Cycles of the whole machine per I/O in these windows, net of the background.
    pub cycles_per_io: Option<f64>,
}

/// The placement of a case of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CasePlacement {
    /// Name of the arm.
    pub arm: String,
    /// The cell: option and value; empty without a sweep.
    pub cell: BTreeMap<String, String>,
    /// Fraction of its slices, or of the windows of its executions, in which the two busiest threads shared a CPU, 0 to
    /// 1; of those in which two were busy.
    pub same_fraction: f64,
    /// Rates and costs in each mode.
    pub modes: Vec<ModeFinding>,
}

/// Minimum relative difference between two rates that one mean does not describe.
const RATES_APART: f64 = 0.25;
/// Minimum number of windows for a mode.
const ENOUGH_WINDOWS: usize = 3;

/// Both modes, if each has enough windows and their rates differ so much that one mean describes neither.
pub fn two_rates(modes: &[ModeFinding]) -> Option<[&ModeFinding; 2]> {
    let of = |mode: Mode| modes.iter().find(|found| found.mode == mode && found.windows >= ENOUGH_WINDOWS);
    let (same, apart) = (of(Mode::Same)?, of(Mode::Apart)?);
    let (low, high) = (same.iops?.min(apart.iops?), same.iops?.max(apart.iops?));
    (low > 0.0 && high / low - 1.0 > RATES_APART).then_some([same, apart])
}

/// What the user can do about two rates.
pub fn mend(place: Option<&Place>) -> String {
    match place {
        None => "pin them with --place same or --place apart".to_owned(),
        Some(place) => {
            format!("pin what --place {place} does not: the server (taskset), or each thread (cpus_allowed)")
        }
    }
}

/// "1 CPU for 5.1 s (148000 IOPS, 17.2 kcycles/IO)".
pub fn in_words(found: &ModeFinding) -> String {
    let iops = found.iops.map(|iops| format!("{iops:.0} IOPS"));
    let cycles = found.cycles_per_io.map(|cycles| match cycles {
        // Rounds to 0, or is negative because of the background's error.
        none if none < 0.5 => "≈ 0 cycles/IO".to_owned(),
        few if few < 1000.0 => format!("{few:.0} cycles/IO"),
        many => format!("{:.1} kcycles/IO", many / 1e3),
    });
    let figures: Vec<String> = [iops, cycles].into_iter().flatten().collect();
    format!("{:.1} s, {}", found.seconds, figures.join(" and "))
}
