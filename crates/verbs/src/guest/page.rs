//! Finding of guests → document: the answer, the table of points, what moved, by function, and which path the I/O took.

#[cfg(test)]
pub(crate) mod fixture;
mod plan;
mod tables;
#[cfg(test)]
mod tests;

use crate::guest::GuestFinding;
use crate::guest::finding::{ChangeFinding, PointFinding};
use crate::guest::plan::Published;
use crate::pages::words::{self as compare, Change, VERDICTS};
use crate::pages::{limits, provenance, stored};
use report::document::{Audience, Block, Body, Document, Fact, Fold, Section, Sentence};
use report::number::{self, bare_percent};
use report::phrase::tied;

crate::format::shown!(GuestFinding, document);

/// Functions shown for a point: on a terminal, and on a page.
const FEW_FUNCTIONS: usize = 8;
const MANY_FUNCTIONS: usize = 40;
/// Subsystems shown for a change: alone, and among others.
const MANY_MOVES: usize = 10;
const FEW_MOVES: usize = 3;
/// More changes than this are counted instead of told, and listed instead of shown one by one.
const MANY_CHANGES: usize = 4;
/// More points than this show no functions on a terminal.
const MANY_POINTS: usize = 2;

/// The reader of all on a terminal, of a mail or an issue.
const TEXT: Audience = Audience::SCREEN.or(Audience::POST);

pub fn document(finding: &GuestFinding) -> Document {
    Document {
        kind: "iotoll guest run".to_owned(),
        lead: "Instructions that an emulated CPU executes for one I/O, whole guest; neither cycles nor time".to_owned(),
        headline: headline(finding),
        subjects: subjects(finding),
        sections: sections(finding),
        provenance: provenance(finding),
        ..Document::of(&finding.head)
    }
}

fn sections(finding: &GuestFinding) -> Vec<Section> {
    let mut sections = vec![Section::on_page("Instructions per I/O", tables::points(finding))];
    sections.extend(limits::section(&finding.head.limits, "cell"));
    sections.extend(against_stored(finding));
    let path = Section::on_page("The path that the I/O took", tables::paths(finding));
    sections.extend([moved(finding), functions(finding), path, published(finding)].map(Section::in_full));
    sections
}

/// The change of each point since the stored measurement, and what moved.
fn against_stored(finding: &GuestFinding) -> Option<Section> {
    let stored = finding.head.stored.as_ref()?;
    let facts = finding.points.iter().filter_map(|point| {
        let (change, value) = (point.since_stored.as_ref()?, point.instructions_per_io?.value);
        let values = format!("({} → {})", tables::instructions(value - change.difference), tables::instructions(value));
        let moves = moves(change).map(|moves| format!("; {moves}")).unwrap_or_default();
        let text = format!("{} {}{moves}", tied(&Change::from(change.change).whole()), tied(&values));
        Some(Fact::new(finding.name(point), text))
    });
    let caution = "instructions depend on no host, so the two differ by what their guests were made of";
    Some(Section::new("", vec![stored::block("measurement", stored, facts.collect(), caution, [])]))
}

/// A sentence for each change, or for each point if nothing is compared; a sum if there are many.
fn headline(finding: &GuestFinding) -> Vec<Sentence> {
    let changes = tables::changes(finding);
    if changes.is_empty() {
        let values: Vec<_> = finding.points.iter().filter_map(|point| value_sentence(finding, point)).collect();
        return if values.len() > MANY_CHANGES { Vec::new() } else { values };
    }
    if changes.len() > MANY_CHANGES {
        return finding.arms.iter().skip(1).filter_map(|arm| summary(finding, arm, &changes)).collect();
    }
    changes.into_iter().filter_map(|(point, change)| change_sentence(finding, point, change)).collect()
}

fn value_sentence(finding: &GuestFinding, point: &PointFinding) -> Option<Sentence> {
    let value = point.instructions_per_io?;
    let name = finding.name(point);
    Some(Sentence::plain(format!("{name}: {} instructions per I/O", tied(&tables::plus_minus(&value)))))
}

fn change_sentence(finding: &GuestFinding, point: &PointFinding, change: &ChangeFinding) -> Option<Sentence> {
    let value = point.instructions_per_io?.value;
    let baseline = value - change.difference;
    let values = tied(&format!("{} → {}", tables::instructions(baseline), tables::instructions(value)));
    let (name, arm) = (tables::named(finding, point), finding.arm_name(&point.arm));
    let first = finding.arms.first().map_or_else(|| "the baseline".to_owned(), |arm| finding.arm_name(arm));
    // An interval on both sides of 0 has no direction.
    let text = if change.change.contains(0.0) == Some(true) {
        let change = tied(&Change::from(change.change).whole());
        format!("{name}: {arm} against {first}: {change} instructions per I/O ({values})")
    } else {
        let more = if change.difference >= 0.0 { "more" } else { "fewer" };
        let size = tied(&Change::from(change.change).size());
        format!("{name}: {arm} executes {size} {more} instructions per I/O than {first} ({values})")
    };
    let verdict = tied(&compare::verdict_in_full(change.verdict, finding.margin));
    Some(Sentence { detail: moves(change), ..Sentence::judged(text, compare::tone(change.verdict), verdict) })
}

/// "network +9,310, scheduler +1,204": the largest moves.
fn moves(change: &ChangeFinding) -> Option<String> {
    let large = change.moved.iter().filter(|moved| moved.difference().abs() >= tables::LEAST_MOVE).take(FEW_MOVES);
    let texts: Vec<_> = large.map(|moved| format!("{} {}", moved.name, tables::signed(moved.difference()))).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// "debian:6.12 against debian:6.1, instructions per I/O in 10 points: 6 worse, 4 no difference; largest: …".
fn summary(finding: &GuestFinding, arm: &str, changes: &[(&PointFinding, &ChangeFinding)]) -> Option<Sentence> {
    let own: Vec<_> = changes.iter().filter(|(point, _)| point.arm == arm).collect();
    let counts = VERDICTS.iter().filter_map(|verdict| {
        let count = own.iter().filter(|(_, change)| change.verdict == *verdict).count();
        (count > 0).then(|| tied(&format!("{count} {}", compare::verdict_in_full(*verdict, finding.margin))))
    });
    let text = format!(
        "{} against {}, instructions per I/O in {} points: {}",
        finding.arm_name(arm),
        finding.arms.first().map_or_else(String::new, |first| tables::arm_head(finding, first)),
        own.len(),
        counts.collect::<Vec<_>>().join(", ")
    );
    let size = |change: &ChangeFinding| change.change.value.abs();
    let (point, change) = own.iter().max_by(|(_, one), (_, other)| size(one).total_cmp(&size(other)))?;
    let largest = format!("largest: {}, {}", tables::named(finding, point), tied(&Change::from(change.change).whole()));
    Some(Sentence { detail: Some(largest), ..Sentence::plain(text) })
}

/// The arms: the releases of the kernels where those are compared.
fn subjects(finding: &GuestFinding) -> Vec<Fact> {
    let Some(compared) = &finding.compared else { return Vec::new() };
    let subject = |arm: &String| {
        let release = finding.kernels.get(arm).filter(|_| compared == "kernel").map(|kernel| kernel.release.as_str());
        // Texts name the arms in their tables; a page also needs their colours.
        let audience = if release.is_some() { Audience::ALL } else { Audience::PAGE };
        Fact::of(audience, finding.arm_name(arm), release.unwrap_or_default())
    };
    finding.arms.iter().map(subject).collect()
}

/// A table for each change, or one line for each if there are many.
fn moved(finding: &GuestFinding) -> Section {
    let changes: Vec<_> = tables::changes(finding).into_iter().filter(|(_, change)| !change.moved.is_empty()).collect();
    let few = changes.len() <= MANY_POINTS;
    let mut blocks: Vec<Block> = Vec::new();
    for (point, change) in &changes {
        let name = finding.name(point);
        let table = Body::Table(tables::moved(finding, point, change, MANY_MOVES));
        blocks.push(match few {
            true => Block::new(format!("Changes by subsystem: {name}"), table),
            false => {
                let fold = Some(Fold { summary: name, open: false });
                Block { fold, ..Block::new("", table).of(Audience::PAGE) }
            }
        });
    }
    if !few {
        let facts = changes.iter().filter_map(|(point, change)| {
            let name = if finding.arms.len() > 2 { finding.name(point) } else { tables::row(finding, point) };
            Some(Fact::new(name, format!("{}: {}", tables::signed(change.difference), moves(change)?)))
        });
        blocks.push(Block::new("Changes by subsystem", Body::Facts(facts.collect())).of(TEXT));
    }
    Section::on_page("Changes by subsystem", blocks)
}

/// The functions of each point: those that changed most, or those with most instructions.
fn functions(finding: &GuestFinding) -> Section {
    let counted: Vec<_> = finding.points.iter().filter(|point| !point.functions.is_empty()).collect();
    let mut blocks = Vec::new();
    for point in &counted {
        let name = finding.name(point);
        let title = if point.change.is_some() { "Largest changes" } else { "Most instructions" };
        let table = |most| Body::Table(tables::functions(finding, point, most));
        let fold = Fold { summary: name.clone(), open: finding.points.len() == 1 };
        let page = Block::new(title, table(MANY_FUNCTIONS)).of(Audience::PAGE);
        blocks.push(Block { fold: Some(fold), ..page });
        if counted.len() <= MANY_POINTS && (point.change.is_some() || finding.compared.is_none()) {
            blocks.push(Block::new(format!("{title}: {name}"), table(FEW_FUNCTIONS)).of(TEXT));
        }
    }
    Section::on_page("By function", blocks)
}

fn published(finding: &GuestFinding) -> Section {
    let fact = |published: &Published| Fact::new("Published", format!("{} ({})", published.what, published.source));
    Section::on_page("Published", vec![Block::new("", Body::Facts(finding.published.iter().map(fact).collect()))])
}

fn provenance(finding: &GuestFinding) -> Vec<Fact> {
    let replicates = finding.points.iter().map(|point| point.replicates).max().unwrap_or(0);
    let mut facts = vec![
        Fact::new(
            "Counted",
            "every instruction that the guest executes between two marks: kernel, programs, interrupts. A string instruction \
             counts one for each repetition. Not counted: caches, DMA, waiting, contention; soft RoCE does the card's work.",
        ),
        Fact::new(
            "Emulator",
            format!("{}, TCG with icount, one CPU ({}), {} MiB", finding.emulator, finding.cpu, finding.memory_mib),
        ),
    ];
    let mut stacks: Vec<&str> = finding.points.iter().map(|point| point.place.stack.as_str()).collect();
    stacks.sort_unstable();
    stacks.dedup();
    if let [stack] = stacks.as_slice() {
        facts.push(Fact::new("Stack", *stack));
    }
    for (name, kernel) in &finding.kernels {
        let hash = kernel.hash.get(..12).unwrap_or(&kernel.hash);
        facts.push(Fact::new("Kernel", format!("{name}: {} (image {hash})", kernel.release)));
    }
    let seconds = finding.seconds.map_or_else(String::new, |seconds| format!(" in {}", number::seconds(seconds)));
    let margin = bare_percent(finding.margin);
    facts.push(Fact::new(
        "Measured",
        format!(
            "{}, {} each{seconds}; margin ±{margin}",
            counted(finding.points.len(), "point"),
            counted(replicates, "replicate")
        ),
    ));
    let away = Audience::POST.or(Audience::PAGE);
    let machine = provenance::machine(&finding.head.host);
    facts.push(Fact::of(away, "Emulated on", format!("{machine}; no count depends on it")));
    facts.push(provenance::made_by(&finding.head));
    facts
}

/// "1 point", "5 points".
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
