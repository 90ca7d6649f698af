//! The functions in which the cycles went.

use crate::pages::parts::{self, Kind, Part};
use model::finding::{PhaseFinding, RunFinding};
use model::profile::{ProfileFinding, SymbolFinding};
use model::record::Meter;
use report::document::{Audience, Block, Body, Calls, FlameGraph, Fold, Note, Section, Table, Tone};
use report::number::{self, CYCLES, Scale};
use report::phrase::shortened;

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
