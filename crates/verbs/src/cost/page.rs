//! Renders a [`RunFinding`] as a document.
//!
//! First the caveats and the cost of an I/O, then where it went, then the evidence: all meters, the series over time, the
//! machine's background, the latencies.

mod conditions;
mod each_job;
#[cfg(test)]
pub(crate) mod fixture;
mod meters;
mod probes;
mod series;
mod spent;
mod stored;
#[cfg(test)]
mod tests;

use crate::pages::parts::{self, Kind, Part};
use crate::pages::workload::{listed, options};
use crate::pages::{limits, placement, provenance};
use model::elided_list::{distinct, elided_list, grouped};
use model::experiment::Metric;
use model::finding::{PhaseFinding, RunFinding};
use model::page_cache::CacheState;
use model::profile::{ProfileFinding, SymbolFinding};
use model::record::{Exit, Meter};
use report::document::{
    Audience, Block, Body, Calls, Document, Fact, Figure, FlameGraph, Fold, Note, Section, Table, Tone,
};
use report::number::{self, COUNT, CYCLES, NANOS, Scale, Units};
use report::phrase::{self, shortened};

/// Maximum number of jobs to show, so that the costs stay on the screen.
const SHOWN: usize = 16;

/// Rows of accounts on the one screen that is read first: of a single phase, and of each of two. More phases have none there.
const ROWS: [usize; 2] = [6, 3];

impl crate::Finding for RunFinding {
    fn document(&self) -> Document {
        let mut sections = Vec::new();
        for (index, phase) in self.phases.iter().enumerate() {
            let one = |block| Section::new("", vec![block]);
            sections.push(section(self, index, phase));
            sections.push(series::section(phase));
            sections.push(Section::new("", spent::blocks(phase, &suffix(self, phase), rows(self, phase))));
            sections.extend(functions(self, phase, &suffix(self, phase)));
            sections.extend(spent::events(self, phase, &suffix(self, phase)).map(Block::in_full).map(one));
            sections.push(one(meters::block(self, index, phase)));
            sections.extend(probes::of_phase(phase, &suffix(self, phase)).map(Section::in_full));
        }
        sections.extend(stored::of_run(self).map(|block| Section::new("", vec![block])));
        sections.extend(limits::section(&self.head.limits, "place"));
        sections.push(Section::new("", vec![each_job::block(self)]));
        sections.push(Section::new("", vec![each_job::latencies(self)]).in_full());
        Document {
            kind: if self.counted_by.is_some() { "iotoll cost" } else { "iotoll run" }.to_owned(),
            lead: "What one I/O cost, in cycles of the whole machine".to_owned(),
            workload: of_run(self),
            sections,
            provenance: provenance(self),
            ..Document::of(&self.head)
        }
    }

    fn own_run(&self) -> Option<&RunFinding> {
        Some(self).filter(|run| run.counted_by.is_none())
    }
}

/// Rows of accounts on one screen. Functions and a comparison, which the user asked for, take the room of some.
fn rows(finding: &RunFinding, phase: &PhaseFinding) -> usize {
    let [one, two] = ROWS;
    match finding.phases.len() {
        1 if phase.functions.profile.is_none() && finding.head.stored.is_none() && finding.head.limits.is_empty() => {
            one
        }
        1 | 2 => two,
        _ => 0,
    }
}

/// The suffix that distinguishes the tables of a phase.
fn suffix(finding: &RunFinding, phase: &PhaseFinding) -> String {
    if finding.phases.len() > 1 { format!(" ({})", phrase::phase_name(phase)) } else { String::new() }
}

fn provenance(finding: &RunFinding) -> Vec<Fact> {
    const AWAY: Audience = Audience::POST.or(Audience::PAGE);
    let mut facts = provenance::of_host(&finding.head.host, Audience::ALL);
    facts.push(Fact::new("Background", provenance::background(&finding.background)));
    facts.push(Fact::new("Cycles", cycles(finding)));
    facts.extend(provenance::services(&finding.head.services));
    facts.extend(placement_of(finding).map(|text| Fact::new("Placement", text)));
    let known = finding.phases.iter().filter(|phase| has_interval(phase));
    let intervals = distinct(known.map(|phase| phase.spread.interval_from.as_str()).filter(|text| !text.is_empty()));
    if !intervals.is_empty() {
        facts.push(Fact::of(AWAY, "Interval", format!("95 %, from {}", intervals.join("; "))));
    }
    facts.extend(finding.counted_by.iter().map(|counted_by| Fact::of(AWAY, "I/O count", counted_by)));
    facts.push(provenance::made_by(&finding.head));
    facts
}

/// Whether the cost of a phase has one.
fn has_interval(phase: &PhaseFinding) -> bool {
    [Metric::CyclesPerIo, Metric::Cycles].iter().any(|cost| phase.told(*cost).is_some_and(|cost| cost.low.is_some()))
}

/// What a cycle means on this machine, and the meter that counted it.
fn cycles(finding: &RunFinding) -> String {
    let meters = distinct(finding.phases.iter().filter_map(|phase| phase.headline_meter.as_deref()));
    let by_pmu = meters.contains(&model::record::Meter::Pmu.name());
    if finding.phases.iter().any(|phase| phase.others.known_by_name) {
        let which =
            if finding.phases.iter().all(|phase| phase.others.known_by_name) { "" } else { " where others are busy" };
        return format!("{}, of the load by its name{which}", provenance::cycles(&finding.head.host, false));
    }
    let meter = if meters.is_empty() { String::new() } else { format!(", by the {} meter", meters.join(" or ")) };
    format!("{}{meter}, net of the background", provenance::cycles(&finding.head.host, by_pmu))
}

/// Where threads ran in each phase.
fn placement_of(finding: &RunFinding) -> Option<String> {
    let several = finding.phases.len() > 1;
    let parts = finding.phases.iter().filter_map(|phase| {
        let text = placement::of_phase(finding, phase)?;
        Some(if several { format!("{}: {text}", phase.jobs.join(", ")) } else { text })
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| elided_list(&parts, "; "))
}

/// The jobs of a run. A foreign command says itself what it does.
fn of_run(finding: &RunFinding) -> Vec<Fact> {
    let jobs = finding.merged_jobs.iter().filter_map(|job| Some((job.name.as_str(), options(job.plan.as_ref()?))));
    listed("Job", jobs.map(|(name, options)| (name.to_owned(), options)).collect())
}

/// Regimes with a row each on one screen.
const FEW_REGIMES: usize = 3;

/// The headline of the phase at `index`.
fn section(finding: &RunFinding, index: usize, phase: &PhaseFinding) -> Section {
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

/// Rows on a screen and in a mail; a page has all that are larger than a thousandth.
const FUNCTIONS: usize = 16;
/// Rows on one screen.
const FEW: usize = 4;
const LEAST_SHARE: f64 = 0.001;
/// Where more samples are lost, what is left may be another part of the time.
const MANY_LOST: f64 = 0.05;

/// Nothing without a profile, but the reason where one was asked for.
fn functions(finding: &RunFinding, phase: &PhaseFinding, suffix: &str) -> Option<Section> {
    let Some(profile) = &phase.functions.profile else {
        return missing(finding).map(|block| Section::new("", vec![block]));
    };
    if phase.functions.symbols.is_empty() {
        let text = "No functions: there is no net cost above 0 to divide among the samples";
        let note = Note::new(Tone::Notice, text);
        let block = Block::new(format!("Functions{suffix}"), Body::Notes).with(vec![note]);
        return Some(Section::new("", vec![block]));
    }
    // Most functions are much smaller than the largest.
    let scale = Scale::of(CYCLES, phase.functions.symbols.first()?.cycles_per_io.value / 10.0);
    let large = || phase.functions.symbols.iter().filter(|symbol| symbol.share >= LEAST_SHARE);
    let block = |most| {
        let top = Body::Table(table(phase.functions.symbols.iter().take(most), scale));
        Block::new(format!("Functions{suffix}"), top).with(notes_of_profile(phase, profile))
    };
    let rest = Block {
        fold: Some(Fold { summary: "Smaller functions".to_owned(), open: false }),
        ..Block::new("", Body::Table(table(large().skip(FUNCTIONS), scale))).of(Audience::PAGE)
    };
    let calls = phase.functions.stacks.iter().map(|stack| Calls {
        calls: stack.calls.clone(),
        cost: stack.cycles_per_io,
        before: None,
    });
    let graph = FlameGraph {
        title: format!("Cycles per I/O by calls{suffix}"),
        subtitle: None,
        what: "cycles".to_owned(),
        calls: calls.collect(),
    };
    let blocks = vec![
        block(FUNCTIONS).in_full(),
        block(FEW).of(Audience::GLANCE),
        Block::new("Calls", Body::FlameGraph(graph)).of(Audience::PAGE),
        rest,
    ];
    Some(Section::new("", blocks))
}

fn table<'a>(symbols: impl Iterator<Item = &'a SymbolFinding>, scale: Scale) -> Table {
    let part = |symbol: &SymbolFinding| Part {
        name: name(symbol),
        of: symbol.module.clone(),
        also: symbol.account.clone(),
        tone: if symbol.interrupts_on { Tone::Faint } else { Tone::Notice },
        costs: vec![symbol.cycles_per_io],
        share: Some(symbol.share),
        ..Part::default()
    };
    let head = format!("{}/IO", scale.unit);
    let kind = Kind { what: "function", of: "in", also: "account", costs: &[&head], ..parts::ACCOUNTS };
    parts::table(Kind { scale: Some(scale), ..kind }, symbols.map(part).collect())
}

/// Where interrupts come on again, the caller says more than the function.
fn name(symbol: &SymbolFinding) -> String {
    let own = shortened(&symbol.symbol);
    match &symbol.caller {
        Some(caller) if symbol.interrupts_on => format!("{own}*, from {}", shortened(caller)),
        _ if symbol.interrupts_on => format!("{own}*"),
        _ => own,
    }
}

fn notes_of_profile(phase: &PhaseFinding, profile: &ProfileFinding) -> Vec<Note> {
    let mut notes = Vec::new();
    let named = |symbol: &&SymbolFinding| symbol.interrupts_on;
    if phase.functions.symbols.iter().take(FUNCTIONS).any(|symbol| named(&symbol)) {
        let text = "* Interrupts come on again here: the time before, with interrupts off, is counted here too.";
        notes.push(Note::remark(text));
    }
    if !profile.kernel_named {
        let text = "The kernel hides its addresses from this user, so its functions have no names: run as root, or with CAP_SYSLOG, or set \
                    `sysctl kernel.kptr_restrict=0`.";
        notes.push(Note::new(Tone::Notice, text));
    }
    if !profile.refused.is_empty() {
        let text = format!("Files that were not read, or not in full: {}.", profile.refused.join("; "));
        notes.push(Note::new(Tone::Notice, text));
    }
    let mut text = format!("{} samples", number::count(profile.samples));
    if profile.lost > 0 {
        text += &format!(", {} lost", number::count(profile.lost));
    }
    if let Some(whole) = profile.whole_stacks_fraction {
        text += &format!("; {} of the workload's stacks are whole", number::percent(whole));
    }
    if let Some(seen) = profile.seen_fraction.filter(|seen| *seen < 0.99) {
        text += &format!(
            "; the functions are of {} of the cost, the rest is in accounts without samples: interrupts, and idle entry and exit, run with \
             interrupts off",
            number::percent(seen)
        );
    }
    let many = profile.lost as f64 > MANY_LOST * (profile.samples as f64 + profile.lost as f64);
    notes.push(Note::new(if many { Tone::Notice } else { Tone::Faint }, text));
    notes
}

/// Why a profile that was asked for is missing.
fn missing(finding: &RunFinding) -> Option<Block> {
    let sampler = finding.meters.iter().find(|meter| meter.name == Meter::Sampler.name())?;
    let asked = finding.head.command_line.iter().any(|word| word == "--profile");
    let reason = sampler.reason.as_deref().or_else(|| {
        asked.then_some("no window of samples lies in the time of I/O, which takes some 0.6 s; run longer")
    });
    let reason = reason.filter(|_| asked)?;
    let note = Note::new(Tone::Notice, format!("No functions: {reason}"));
    Some(Block::new("Functions", Body::Notes).with(vec![note]))
}
