//! The functions in which the cycles went.

use crate::document::{
    Audience, Block, Body, Calls, Cell, Column, Draw, FlameGraph, Fold, Note, Raw, Section, Table, Tone,
};
use crate::number::{self, CYCLES, Scale};
use crate::parts::{self, Kind, Part};
use crate::phrase::shortened;
use crate::shell;
use model::finding::{PhaseFinding, RunFinding};
use model::profile::{AnnotatedFinding, LineFinding, ProfileFinding, SymbolFinding};
use model::record::Meter;

/// Rows on a screen and in a mail; a page has all that are larger than a thousandth.
const SHOWN: usize = 16;
/// Rows on one screen.
const FEW: usize = 4;
const LEAST_SHARE: f64 = 0.001;
/// Where more samples are lost, what is left may be another part of the time.
const MANY_LOST: f64 = 0.05;

/// Nothing without a profile, but the reason where one was asked for.
pub fn section(finding: &RunFinding, phase: &PhaseFinding, suffix: &str) -> Option<Section> {
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
        Block::new(format!("Functions{suffix}"), top).with(notes(phase, profile))
    };
    let rest = Block {
        fold: Some(Fold { summary: "Smaller functions".to_owned(), open: false }),
        ..Block::new("", Body::Table(table(large().skip(SHOWN), scale))).of(Audience::PAGE)
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
        block(SHOWN).in_full(),
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

fn notes(phase: &PhaseFinding, profile: &ProfileFinding) -> Vec<Note> {
    let mut notes = Vec::new();
    let named = |symbol: &&SymbolFinding| symbol.interrupts_on;
    if phase.functions.symbols.iter().take(SHOWN).any(|symbol| named(&symbol)) {
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
    if let Some(first) = phase.functions.annotated.first() {
        let text =
            format!("The instructions of a function: iotoll report FOLDER --annotate {}", shell::quoted(&first.symbol));
        notes.push(Note::remark(text));
    }
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

/// A line is shown if it has this part of its function, or stands this near to one that has.
const LEAST_LINE: f64 = 0.01;
const AROUND: usize = 3;

/// The instructions of a function.
pub(crate) fn listing(function: &AnnotatedFinding, phase: &PhaseFinding) -> Block {
    let scale = Scale::of(CYCLES, function.cycles_per_io / 10.0);
    let mut table = Table::new(vec![
        Column::number("offset"),
        Column::text("instruction"),
        Column::number(format!("{}/IO", scale.unit)),
        Column::number("share"),
        Column::drawing(Draw::Bar),
    ]);
    let share = |line: &LineFinding| {
        if function.cycles_per_io > 0.0 { line.cycles_per_io / function.cycles_per_io } else { 0.0 }
    };
    let large: Vec<usize> =
        (0..).zip(&function.lines).filter(|(_, it)| share(it) >= LEAST_LINE).map(|it| it.0).collect();
    let near = |place: usize| large.iter().any(|large| large.abs_diff(place) <= AROUND);
    let mut skipped = 0;
    for (place, line) in function.lines.iter().enumerate() {
        if !near(place) {
            skipped += 1;
            continue;
        }
        if std::mem::take(&mut skipped) > 0 {
            table.note(Cell::from("…"), "");
        }
        let cycles = if line.cycles_per_io > 0.0 { scale.cell(line.cycles_per_io) } else { String::new() };
        let part = if line.cycles_per_io > 0.0 { number::percent(share(line)) } else { String::new() };
        table.row(vec![
            Cell::from(format!("+{:#x}", line.offset)),
            Cell::from(&line.instruction),
            cycles.into(),
            part.into(),
            Cell::drawn(Tone::Notice, Raw::Number(share(line))),
        ]);
    }
    let of_cost = phase.cycles_per_io().filter(|cost| *cost > 0.0).map(|cost| function.cycles_per_io / cost);
    let text = format!(
        "{} in {}: {}/IO{}, {} samples. A sample belongs to the instruction before the one that it found; at the target of a jump, that may be \
         another one.",
        function.symbol,
        function.module,
        number::with_unit(CYCLES, function.cycles_per_io),
        of_cost.map_or_else(String::new, |part| format!(", {} of the cost", number::percent(part))),
        number::count(function.samples)
    );
    Block::new(function.symbol.clone(), Body::Table(table)).with(vec![Note::remark(text)])
}
