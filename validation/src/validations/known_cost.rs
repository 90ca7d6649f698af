//! Each meter compared with a known cost: `spin` burns a given number of cycles per I/O, and `null`, which burns none,
//! is the floor to subtract. On a quiet machine, and with a hog on the other CPU.

use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{fio, rounds};
use anyhow::{Context, ensure};
use model::finding::RunFinding;

/// Cycles burnt per I/O.
const TRUTHS: [u32; 3] = [1_000, 10_000, 100_000];
/// Meters that run together. Soaker and sampler run alone: beside others they get only the windows between those, and a
/// short run has few of them.
const METER_SETS: [&str; 3] = ["idle,timer_list,proc_stat,thread", "soaker", "sampler"];
/// The meter set that also measures how busy the machine is without the load.
const CLOCKS: usize = 0;
/// Meters, the set in which each runs, and its largest error; those without a bound are only shown.
const METERS: [(&str, usize, Option<f64>); 6] = [
    ("idle", CLOCKS, Some(0.03)),
    ("timer_list", CLOCKS, Some(0.03)),
    ("proc_stat", CLOCKS, None),
    ("soaker", 1, Some(0.03)),
    ("sampler", 2, Some(0.10)),
    ("thread", CLOCKS, None),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    Quiet,
    Hog,
}

impl Machine {
    const BOTH: [Self; 2] = [Self::Quiet, Self::Hog];

    fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Hog => "hog on the other CPU",
        }
    }
}

/// A run: the machine, the index of [`METER_SETS`], and the cycles burnt; `None` is the floor.
type Cell = (Machine, usize, Option<u32>);

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let cpus = sys::schedule::online_cpus()?;
    let allowed = sys::schedule::allowed_cpus()?;
    let [ours, theirs, ..] = allowed.as_slice() else {
        anyhow::bail!("this validation needs two CPUs: one for the load, one for the hog");
    };
    let (ours, theirs) = (*ours, theirs.to_string());
    let mut cells: Vec<Cell> = Vec::new();
    for (machine, meter_set) in
        Machine::BOTH.into_iter().flat_map(|machine| (0..METER_SETS.len()).map(move |meter_set| (machine, meter_set)))
    {
        cells.push((machine, meter_set, None));
        cells.extend(TRUTHS.map(|truth| (machine, meter_set, Some(truth))));
    }
    let block = |(machine, meter_set, _): &Cell| usize::from(*machine == Machine::Hog) * METER_SETS.len() + meter_set;
    let named = |(machine, meter_set, truth): &Cell| {
        let load = truth.map_or("null".to_owned(), |truth| format!("spin {truth}"));
        format!("{load}, {}, {}", METER_SETS.get(*meter_set).unwrap_or(&""), machine.name())
    };
    let found = bench.in_rounds(&cells, block, named, |bench, (machine, meter_set, truth)| {
        // The hog starts before iotoll measures the background and ends after it has measured it again.
        let _hog = (*machine == Machine::Hog).then(|| bench.beside(&["hog", &theirs])).transpose()?;
        spin(bench, METER_SETS.get(*meter_set).context("no such meter_set")?, *truth, ours)
    })?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for machine in Machine::BOTH {
        let runs = |meter_set, truth| {
            let place = cells.iter().position(|cell| *cell == (machine, meter_set, truth));
            place.and_then(|place| found.get(place)).context("a cell was not measured")
        };
        let mut errors: Vec<Vec<f64>> = METERS.iter().map(|_| Vec::new()).collect();
        for truth in TRUTHS {
            let mut row = vec![machine.name().to_owned(), truth.to_string(), busy(runs(CLOCKS, Some(truth))?)];
            for ((meter, meter_set, _), errors) in METERS.iter().zip(&mut errors) {
                let (spins, floors) = (runs(*meter_set, Some(truth))?, runs(*meter_set, None)?);
                let error = error(spins, floors, meter, f64::from(truth));
                row.push(error.as_deref().map_or("–".to_owned(), |error| {
                    format!("{:+.1} ({})", rounds::median(error) * 100.0, evidence::percent(&rounds::mean(error)))
                }));
                errors.extend(error.as_deref().map(rounds::median));
            }
            rows.push(row);
        }
        for ((meter, _, bound), errors) in METERS.iter().zip(&errors) {
            let Some(bound) = bound else { continue };
            let met = errors.len() == TRUTHS.len() && errors.iter().all(|error| error.abs() <= *bound);
            let worst = errors.iter().map(|error| error.abs()).fold(0.0, f64::max);
            let text = format!(
                "{}: {meter} is within {:.0} % of the true cost at {TRUTHS:?} cycles (medians at most {:.1} % off{})",
                machine.name(),
                bound * 100.0,
                worst * 100.0,
                if errors.len() == TRUTHS.len() { "" } else { "; not measured everywhere" }
            );
            evidence.criterion(met, text);
        }
    }
    let (quiet, hogged) = (mean_busy(&cells, &found, Machine::Quiet), mean_busy(&cells, &found, Machine::Hog));
    // The hog adds one CPU; a tenth of it is allowed for other activity of the machine.
    let told = hogged - quiet >= 0.9 / cpus.len() as f64;
    evidence.criterion(
        told,
        format!("the background shows the hog: {:.1} % busy with it, {:.1} % without", hogged * 100.0, quiet * 100.0),
    );
    let meters = METERS.map(|(meter, ..)| meter);
    let header: Vec<&str> = ["machine", "true cost, cycles", "background busy"].into_iter().chain(meters).collect();
    evidence.note(
        "Net cycles per I/O of `spin` minus those of `null`, compared with the cycles burnt: error, the median of \
         the rounds and in brackets their mean. If a hypervisor takes the CPU away during a spin, more is burnt than \
         requested; that moves the mean.",
    );
    evidence.table(&header, &rows);
    Ok(evidence)
}

fn spin(bench: &Bench, meters: &'static str, truth: Option<u32>, cpu: u32) -> anyhow::Result<RunFinding> {
    let (pin, burn) = (format!("--cpus_allowed={cpu}"), truth.map(|truth| format!("--spin_cycles={truth}")));
    let mut options = vec!["--bs=4k", "--size=64m", &pin];
    options.extend(burn.as_deref());
    let engine = if truth.is_some() { "spin" } else { "null" };
    let measuring = Measuring { meters, background_millis: 1000, out: None };
    let finding = iotoll::run(bench, &measuring, &fio::job(engine, bench.options.seconds, &options))?;
    ensure!(iotoll::phase(&finding)?.ios.is_some_and(|ios| ios > 0), "no I/O was performed");
    Ok(finding)
}

/// (spin − null − truth) ÷ truth in each round; `None` if the meter did not run in each.
fn error(spins: &[RunFinding], floors: &[RunFinding], meter: &str, truth: f64) -> Option<Vec<f64>> {
    let (spins, floors) = (by_meter(spins, meter)?, by_meter(floors, meter)?);
    Some(rounds::differences(&spins, &floors).iter().map(|found| (found - truth) / truth).collect())
}

fn by_meter(runs: &[RunFinding], meter: &str) -> Option<Vec<f64>> {
    runs.iter().map(|run| run.phases.first()?.by_meter.get(meter).copied().flatten()).collect()
}

fn busy(runs: &[RunFinding]) -> String {
    let fractions: Option<Vec<f64>> = runs.iter().map(|run| run.background.busy_fraction).collect();
    fractions.map_or("–".to_owned(), |fractions| format!("{:.1} %", rounds::mean(&fractions).value * 100.0))
}

fn mean_busy(cells: &[Cell], found: &[Vec<RunFinding>], machine: Machine) -> f64 {
    let of_machine = cells.iter().zip(found).filter(|((on, meter_set, _), _)| *on == machine && *meter_set == CLOCKS);
    let fractions: Vec<f64> =
        of_machine.flat_map(|(_, runs)| runs).filter_map(|run| run.background.busy_fraction).collect();
    rounds::mean(&fractions).value
}
