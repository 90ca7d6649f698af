//! One line for the cost of a phase, and one for its rates.

use super::conditions;
use model::elided_list::grouped;
use model::experiment::Metric;
use model::finding::{PhaseFinding, RunFinding};
use model::page_cache::CacheState;
use model::record::Exit;
use report::document::{Block, Body, Figure, Note, Section, Tone};
use report::number::{self, COUNT, CYCLES, NANOS, Scale, Units};

/// Regimes with a row each on one screen.
const FEW_REGIMES: usize = 3;

/// The headline of the phase at `index`.
pub fn section(finding: &RunFinding, index: usize, phase: &PhaseFinding) -> Section {
    let title = match finding.phases.len() {
        1 => String::new(),
        many => format!("Phase {} of {many}: {}", index + 1, phase.jobs.join(", ")),
    };
    let mut figures = Vec::new();
    if phase.regimes.is_empty() || phase.cycles_per_io().is_some() {
        figures.push(cost(phase));
    }
    figures.push(work(finding, index, phase));
    let figures = Block::new("", Body::Figures(figures));
    let regimes = Block::new("", Body::Notes).with(conditions::regimes_in_words(phase).into_iter().collect());
    let mut blocks = vec![regimes, figures, Block::new("", Body::Notes).with(notes(finding, phase))];
    let regimes = Block::new("Regimes", Body::Table(conditions::table(phase)));
    blocks.push(if phase.regimes.len() > FEW_REGIMES { regimes.in_full() } else { regimes });
    Section::new(title, blocks)
}

fn notes(finding: &RunFinding, phase: &PhaseFinding) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(phase.page_cache.as_ref().map(|cache| {
        let sentence = if finding.counted_by.is_some() { conditions::storage } else { conditions::page_cache };
        Note::new(cache_tone(cache.state), sentence(cache))
    }));
    notes.extend(shared(finding, phase).map(Note::remark));
    let per_io = phase.cycles_per_io().or(phase.value(Metric::Cycles)).filter(|_| phase.regimes.is_empty());
    if per_io.is_some_and(number::is_about_0) {
        notes.push(Note::remark("≈ 0: below the noise of the background"));
    }
    let switches = phase.figures.of(Metric::ContextSwitchesPerIo).why_not;
    let reason = switches.filter(|_| phase.ios.is_some() && phase.regimes.is_empty());
    notes.extend(reason.map(|reason| Note::remark(format!("Context switches: {reason}"))));
    // A program whose report of its I/Os is missing has no count by it.
    let counted_by = finding.counted_by.iter().filter(|by| phase.ios.is_some() || by.starts_with("nothing"));
    notes.extend(counted_by.map(|counted_by| Note::remark(format!("I/O count: {counted_by}"))));
    notes
}

/// Which jobs share the cost.
fn shared(finding: &RunFinding, phase: &PhaseFinding) -> Option<String> {
    let (jobs, groups) = (phase.jobs.len(), phase.groups);
    Some(match (jobs, groups) {
        (0 | 1, 0 | 1) => return None,
        (_, 0 | 1) if finding.counted_by.is_some() => {
            format!("The cost is shared by {jobs} jobs of one command; it is not divided among them.")
        }
        (_, 0 | 1) => {
            format!("The cost is shared by {jobs} jobs of one phase; it is not divided among them.")
        }
        _ => format!(
            "The cost is a mean over {groups} groups of jobs; to measure each alone: fio's --section, or iotoll run."
        ),
    })
}

/// A mixture of cached and uncached reads is highlighted.
fn cache_tone(state: CacheState) -> Tone {
    match state {
        CacheState::Warming | CacheState::Partial | CacheState::Unknown | CacheState::DirectFromMemory => Tone::Notice,
        CacheState::Warm | CacheState::Cold | CacheState::Written | CacheState::Bypassed => Tone::Plain,
    }
}

fn cost(phase: &PhaseFinding) -> Vec<Figure> {
    let of = |metric| phase.figures.of(metric);
    let per_io = figure("cost of one I/O", CYCLES, "/IO", &of(Metric::CyclesPerIo));
    // With known I/Os, the interval is only shown in cycles per I/O, because that per byte is the same in other units.
    let byte = figure("cost of one byte", CYCLES, "/byte", &of(Metric::CyclesPerByte));
    let byte = if phase.cycles_per_io().is_some() { Figure { interval: None, ..byte } } else { byte };
    let switches = figure("context switches", COUNT, " context switches/IO", &of(Metric::ContextSwitchesPerIo));
    let beside = [byte, switches];
    if phase.ios.is_some() || phase.cycles_per_io().is_some() {
        return std::iter::once(per_io).chain(beside).collect();
    }
    let whole = figure("cost of one execution", CYCLES, "", &of(Metric::Cycles));
    let beside = beside.into_iter().filter(|_| phase.bytes.is_some());
    [whole, Figure { tone: Tone::Plain, ..per_io }].into_iter().chain(beside).collect()
}

/// A value with the ends of its interval, which determine the unit if it is unknown or noise hides it. The unit is always shown.
fn figure(what: &str, units: Units, per: &str, known: &model::finding::Figure) -> Figure {
    let value = known.told().map(|told| told.value).filter(|value| value.is_finite());
    let ends = known.estimate.and_then(|known| known.ends());
    let widest = ends.map_or(0.0, |(low, high)| low.abs().max(high.abs()));
    let scale = Scale::of(units, value.filter(|value| *value > 0.0).unwrap_or(widest));
    let number = format!("{} {}", number::net(value, |value| scale.cell(value)), scale.unit);
    // A count that is not told apart from 0 is known by its interval.
    let ends = ends.filter(|_| value.is_some() || units == COUNT);
    let interval = ends.map(|(low, high)| scale.interval(low, high));
    Figure { what: what.to_owned(), interval, ..Figure::new(Tone::Strong, number.trim_end().to_owned() + per) }
}

fn work(finding: &RunFinding, index: usize, phase: &PhaseFinding) -> Vec<Figure> {
    let mut chips = Vec::new();
    let steady = phase.has_one_rate();
    let [iops, rate] = [Metric::Iops, Metric::BytesPerSecond].map(|rate| phase.value(rate).filter(|_| steady));
    if let Some(iops) = iops {
        chips.push(number::with_unit(COUNT, iops) + " IOPS" + &conditions::over(finding, phase));
    }
    if let Some(rate) = rate {
        // Said once, of the first rate.
        let over = if iops.is_some() { String::new() } else { conditions::over(finding, phase) };
        chips.push(number::bytes_per_second(rate) + &over);
    }
    let mut jobs = finding.merged_jobs.iter().filter(|job| job.phase == index);
    if let (Some(job), None, true) = (jobs.next(), jobs.next(), steady) {
        let known = |name: &str, value: Option<f64>| Some(format!("{name} {}", number::with_unit(NANOS, value?)));
        chips.extend(known("p50", job.all.latency_ns.p50));
        chips.extend(known("p99", job.all.latency_ns.p99));
    }
    if let Some(busy) = phase.busy_cpus {
        chips.push(format!("{} CPUs busy", number::net(Some(busy), number::significant)));
    }
    chips.push(number::seconds(phase.wall_seconds));
    let mut chips: Vec<Figure> = chips.into_iter().map(|text| Figure::new(Tone::Plain, text)).collect();
    chips.extend(exits(&phase.exits));
    if let Some(outside) = phase.cycles_outside_io {
        chips
            .push(Figure::new(Tone::Plain, format!("{} before and after the I/O", number::with_unit(CYCLES, outside))));
    }
    chips
}

/// The exit statuses of executions, equal ones together, in the order of their first occurrence.
fn exits(exits: &[Exit]) -> Vec<Figure> {
    let chip = |(exit, all): (Exit, Vec<_>)| {
        let times = if all.len() > 1 { format!(" ×{}", all.len()) } else { String::new() };
        match exit {
            Exit::Status(0) => Figure::new(Tone::Plain, format!("exit status 0{times}")),
            Exit::Status(status) => Figure::new(Tone::Bad, format!("exit status {status}{times}")),
            Exit::Signal(signal) => Figure::new(Tone::Bad, format!("killed by signal {signal}{times}")),
        }
    };
    grouped(exits.iter().map(|exit| (*exit, exit))).into_iter().map(chip).collect()
}
