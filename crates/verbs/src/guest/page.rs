//! Finding of guests → document: the answer, the points, which path the I/O took, and what moved.

#[cfg(test)]
pub(crate) mod fixture;
mod moved;
mod plan;
#[cfg(test)]
mod tests;

use crate::guest::GuestFinding;
use crate::guest::finding::{ChangeFinding, PointFinding, axis};
use crate::guest::plan::Published;
use crate::pages::words::{self, Change, VERDICTS};
use crate::pages::{limits, provenance, stored};
use model::elided_list::distinct;
use model::stats::Estimate;
use report::document::{
    Audience, Block, Body, Cell, Column, Document, Draw, Fact, Note, Scale, Section, Sentence, Span, Table, Tone, tied,
};
use report::number::{self, MISSING, bare_percent, separated};

/// More changes than this are counted instead of told, and listed instead of shown one by one.
const MANY_CHANGES: usize = 4;
/// Most arms of a matrix.
const MOST_ARMS: usize = 8;

impl crate::Finding for GuestFinding {
    fn document(&self) -> Document {
        let mut sections = vec![Section::on_page("Instructions per I/O", points(self))];
        sections.extend(limits::section(&self.head.limits, "cell"));
        sections.extend(against_stored(self));
        let path = Section::on_page("The path that the I/O took", paths(self));
        sections
            .extend([moved::by_subsystem(self), moved::by_function(self), path, published(self)].map(Section::in_full));
        Document {
            kind: "iotoll guest run".to_owned(),
            lead: "Instructions that an emulated CPU executes for one I/O, whole guest; neither cycles nor time"
                .to_owned(),
            headline: headline(self),
            subjects: subjects(self),
            sections,
            provenance: provenance(self),
            ..Document::of(&self.head)
        }
    }
}

/// The change of each point since the stored measurement, and what moved.
fn against_stored(finding: &GuestFinding) -> Option<Section> {
    let stored = finding.head.stored.as_ref()?;
    let facts = finding.points.iter().filter_map(|point| {
        let (change, value) = (point.since_stored.as_ref()?, point.instructions_per_io?.value);
        let values = format!("({} → {})", instructions(value - change.difference), instructions(value));
        let moves = moved::moves(change).map(|moves| format!("; {moves}")).unwrap_or_default();
        let text = format!("{} {}{moves}", tied(&Change::from(change.change).whole()), tied(&values));
        Some(Fact::new(finding.name(point), text))
    });
    let caution = "instructions depend on no host, so the two differ by what their guests were made of";
    Some(Section::new("", vec![stored::block("measurement", stored, facts.collect(), caution, [])]))
}

/// A sentence for each change, or for each point if nothing is compared; a sum if there are many.
fn headline(finding: &GuestFinding) -> Vec<Sentence> {
    let changes = changes(finding);
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
    Some(Sentence::plain(format!("{name}: {} instructions per I/O", tied(&plus_minus(&value)))))
}

fn change_sentence(finding: &GuestFinding, point: &PointFinding, change: &ChangeFinding) -> Option<Sentence> {
    let value = point.instructions_per_io?.value;
    let baseline = value - change.difference;
    let values = tied(&format!("{} → {}", instructions(baseline), instructions(value)));
    let (name, arm) = (named(finding, point), finding.arm_name(&point.arm));
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
    let verdict = tied(&words::verdict_in_full(change.verdict, finding.margin));
    Some(Sentence { detail: moved::moves(change), ..Sentence::judged(text, words::tone(change.verdict), verdict) })
}

/// "debian:6.12 against debian:6.1, instructions per I/O in 10 points: 6 worse, 4 no difference; largest: …".
fn summary(finding: &GuestFinding, arm: &str, changes: &[(&PointFinding, &ChangeFinding)]) -> Option<Sentence> {
    let own: Vec<_> = changes.iter().filter(|(point, _)| point.arm == arm).collect();
    let counts = VERDICTS.iter().filter_map(|verdict| {
        let count = own.iter().filter(|(_, change)| change.verdict == *verdict).count();
        (count > 0).then(|| tied(&format!("{count} {}", words::verdict_in_full(*verdict, finding.margin))))
    });
    let text = format!(
        "{} against {}, instructions per I/O in {} points: {}",
        finding.arm_name(arm),
        finding.arms.first().map_or_else(String::new, |first| arm_head(finding, first)),
        own.len(),
        counts.collect::<Vec<_>>().join(", ")
    );
    let size = |change: &ChangeFinding| change.change.value.abs();
    let (point, change) = own.iter().max_by(|(_, one), (_, other)| size(one).total_cmp(&size(other)))?;
    let largest = format!("largest: {}, {}", named(finding, point), tied(&Change::from(change.change).whole()));
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

/// What was measured with several arms and is otherwise the same: what distinguishes it, and its points by number of the arm.
type Row<'a> = (String, Vec<Option<&'a PointFinding>>);

/// All of them, in the order of the points.
fn rows(finding: &GuestFinding) -> Vec<Row<'_>> {
    let arms = finding.arms.len().max(1);
    let mut rows: Vec<(Vec<(&str, &str)>, Row)> = Vec::new();
    for point in &finding.points {
        let arm = finding.arms.iter().position(|arm| *arm == point.arm).unwrap_or(0);
        let key = point.place.parts(finding.compared.as_deref());
        let free = rows
            .iter_mut()
            .filter(|(of, _)| *of == key)
            .find_map(|(_, (_, points))| points.get_mut(arm).filter(|it| it.is_none()));
        if let Some(place) = free {
            *place = Some(point);
            continue;
        }
        let points = (0..arms).map(|place| (place == arm).then_some(point)).collect();
        rows.push((key, (row(finding, point), points)));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The points that are compared with their baseline, each with its change.
fn changes(finding: &GuestFinding) -> Vec<(&PointFinding, &ChangeFinding)> {
    finding.points.iter().filter_map(|point| Some((point, point.change.as_ref()?))).collect()
}

/// The points: a row for each pair of two arms, matrices of several, otherwise a row for each point.
fn points(finding: &GuestFinding) -> Vec<Block> {
    const TITLE: &str = "Instructions per I/O";
    let notes: Vec<Note> = legend(finding).map(|text| Note::new(Tone::Faint, text)).into_iter().collect();
    let list = |table| vec![Block::new(TITLE, Body::Table(table)).with(notes.clone())];
    match (&finding.compared, finding.arms.len()) {
        (Some(_), 2) => list(pairs(finding)),
        (Some(by), 3..=MOST_ARMS) => {
            let title = format!("{TITLE} by {}", axis(by));
            let values = Block::new(title, Body::Table(matrix(finding, &value_cell))).with(notes);
            let first = finding.arms.first().map_or_else(String::new, |arm| arm_head(finding, arm));
            let changed = |point: Option<&PointFinding>| match point.and_then(|point| point.change.as_ref()) {
                Some(change) => Cell::new(words::tone(change.verdict), Change::from(change.change).percent()),
                None => Cell::new(Tone::Faint, "·"),
            };
            vec![values, Block::new(format!("Change against {first}"), Body::Table(matrix(finding, &changed)))]
        }
        _ => list(each(finding)),
    }
}

/// A row for each job and cell, a column for each arm.
fn matrix(finding: &GuestFinding, cell: &dyn Fn(Option<&PointFinding>) -> Cell) -> Table {
    let heads = finding.arms.iter().map(|arm| Column::number(arm_head(finding, arm)));
    let mut table = Table::new(std::iter::once(Column::rows("job")).chain(heads).collect());
    for (name, points) in rows(finding) {
        let name = std::iter::once(Cell::from(name));
        table.row(name.chain(points.iter().map(|point| cell(*point))).collect());
    }
    table
}

/// What the intervals are, and how wide at most, because a table may have no room for them.
fn legend(finding: &GuestFinding) -> Option<String> {
    const EXACT: &str = "Within a replicate the count is exact.";
    let replicates = finding.points.iter().map(|point| point.replicates).max().filter(|most| *most > 0)?;
    let part = |point: &PointFinding| {
        let value = point.instructions_per_io?;
        Some(value.half_width()? / value.value)
    };
    let parts = finding.points.iter().filter_map(part).filter(|part| (0.0..1e6).contains(part));
    Some(match parts.reduce(f64::max) {
        Some(widest) => format!(
            "95 % intervals: at most ±{:.2} % of a count, over {replicates} replicates that differ in memory layout and timing. {EXACT}",
            (widest * 1e4).ceil() / 1e2
        ),
        None => format!("One replicate gives no interval; use --replicates 5. {EXACT}"),
    })
}

/// A row for each point.
fn each(finding: &GuestFinding) -> Table {
    let compared = finding.compared.is_some();
    let by_size = differ_in_size(finding);
    let mut columns = vec![Column::rows("job")];
    columns.extend(compared.then(|| Column::text("arm")));
    columns.extend([Column::number("instr/IO"), Column::number("±")]);
    columns.extend(by_size.then(|| Column::number("instr/KiB").spare(2)));
    if compared {
        columns.extend(change_columns(finding));
    } else {
        let parts = [("kernel", 3), ("programs", 2), ("string reps", 1), ("locked", 1)];
        columns.extend(parts.map(|(head, spare)| Column::number(head).spare(spare)));
    }
    let known = |value: Option<f64>| Cell::from(value.map_or_else(|| MISSING.to_owned(), instructions));
    let mut table = Table { keys: 1 + usize::from(compared), ..Table::new(columns) };
    for point in &finding.points {
        let mut cells = vec![Cell::from(row(finding, point))];
        cells.extend(compared.then(|| Cell::from(finding.arm_name(&point.arm))));
        cells.push(value_cell(Some(point)));
        cells.push(known(point.instructions_per_io.and_then(|value| value.half_width())));
        // Instructions per I/O do not compare where I/Os have several sizes.
        cells.extend(by_size.then(|| known(point.instructions_per_byte.map(|value| value * 1024.0))));
        if compared {
            cells.extend(change_cells(finding, Some(point)));
        } else {
            let parts = [
                point.kernel_instructions_per_io,
                point.program_instructions_per_io,
                point.string_repetitions_per_io,
                point.locked_instructions_per_io,
            ];
            cells.extend(parts.map(|part| known(part.map(|part| part.0))));
        }
        table.row(cells);
    }
    table
}

/// A row for each pair of baseline and candidate.
fn pairs(finding: &GuestFinding) -> Table {
    let mut columns = vec![Column::rows("job")];
    columns.extend(finding.arms.iter().map(|arm| Column::number(arm_head(finding, arm))));
    columns.push(Column::number("difference").spare(2));
    columns.extend(change_columns(finding));
    let mut table = Table::new(columns);
    for (name, points) in rows(finding) {
        let mut cells = vec![Cell::from(name)];
        cells.extend(points.iter().map(|point| value_cell(*point)));
        let candidate = points.get(1).copied().flatten();
        let change = candidate.and_then(|point| point.change.as_ref());
        cells.push(change.map_or_else(Cell::default, |change| Cell::from(signed(change.difference))));
        cells.extend(change_cells(finding, candidate));
        table.row(cells);
    }
    table
}

/// "5,830", in full "5,830 ± 12".
fn value_cell(point: Option<&PointFinding>) -> Cell {
    let Some(value) = point.and_then(|point| point.instructions_per_io) else { return Cell::new(Tone::Faint, MISSING) };
    Cell::new(Tone::Strong, instructions(value.value)).in_full(plus_minus(&value))
}

/// Whether the points have I/Os of several sizes, so that instructions per I/O do not compare.
fn differ_in_size(finding: &GuestFinding) -> bool {
    distinct(finding.points.iter().filter(|point| point.ios > 0).map(|point| point.bytes / point.ios)).len() > 1
}

fn change_columns(finding: &GuestFinding) -> [Column; 4] {
    [
        Column::number("change"),
        Column::number("95 %").spare(1),
        Column::verdict("verdict"),
        Column::drawing(Draw::Interval(scale(finding))),
    ]
}

fn change_cells(finding: &GuestFinding, point: Option<&PointFinding>) -> [Cell; 4] {
    let Some(change) = point.and_then(|point| point.change.as_ref()) else { return Default::default() };
    let tone = words::tone(change.verdict);
    let in_full = words::verdict_in_full(change.verdict, finding.margin);
    let found = Change::from(change.change);
    [
        Cell::new(tone, found.percent()),
        Cell::from(found.interval()),
        Cell::new(tone, words::verdict(change.verdict)).in_full(in_full),
        Cell::drawn(tone, found.drawn()),
    ]
}

/// All changes and the margin, and some room.
fn scale(finding: &GuestFinding) -> Scale {
    let changes = finding.points.iter().filter_map(|point| point.change.as_ref()).map(|change| change.change);
    let ends = changes.flat_map(|change| [change.value, change.low.unwrap_or(0.0), change.high.unwrap_or(0.0)]);
    let (mut low, mut high) = (-2.0 * finding.margin - 0.001, 2.0 * finding.margin + 0.001);
    for end in ends.filter(|end| end.is_finite()) {
        (low, high) = (low.min(end), high.max(end));
    }
    Scale { span: Span::new(low, high), margin: Some(finding.margin) }
}

/// Which path the I/O took, by kernel counters: a fact for each stack if all its points have the same, otherwise one for each point, or a
/// matrix for each counter that differs between several arms.
fn paths(finding: &GuestFinding) -> Vec<Block> {
    let points: Vec<&PointFinding> = finding.points.iter().filter(|point| !point.path_proof.is_empty()).collect();
    let value = |point: &PointFinding, name: &str| {
        point.path_proof.get(name).map_or_else(|| MISSING.to_owned(), |value| whole(*value))
    };
    let is_matrix = (3..=MOST_ARMS).contains(&finding.arms.len());
    let names = distinct(points.iter().flat_map(|point| point.path_proof.keys()));
    let varies = |name: &&&String| distinct(points.iter().map(|point| value(point, name))).len() > 1;
    let varying: Vec<&String> = names.iter().filter(|name| is_matrix && varies(name)).copied().collect();
    let counters = |point: &PointFinding| {
        let same = point.path_proof.keys().filter(|name| !varying.contains(name));
        let counters: Vec<String> = same.map(|name| format!("{name} {}", value(point, name))).collect();
        format!("{} I/Os: {}", whole(i64::try_from(point.ios).unwrap_or(i64::MAX)), counters.join(", "))
    };
    let mut facts = Vec::new();
    for stack in distinct(points.iter().map(|point| point.place.stack.as_str())) {
        let own: Vec<&PointFinding> = points.iter().copied().filter(|point| point.place.stack == stack).collect();
        match distinct(own.iter().map(|point| counters(point))).as_slice() {
            [text] => facts.push(Fact::new(stack, text)),
            _ => facts.extend(own.iter().map(|point| Fact::new(finding.name(point), counters(point)))),
        }
    }
    let matrix = |name: &&String| {
        let cell =
            |point: Option<&PointFinding>| Cell::from(point.map_or_else(String::new, |point| value(point, name)));
        Block::new(format!("Path: {name}"), Body::Table(matrix(finding, &cell)))
    };
    let facts = Block::new("Path, by kernel counters", Body::Facts(facts));
    varying.iter().map(matrix).chain([facts]).collect()
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

/// From here on fractions of an instruction do not matter.
const WHOLE: f64 = 100.0;

/// From here on digits say nothing.
const ABSURD: f64 = 1e15;

/// "5,830" or "17.3".
fn instructions(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => MISSING.to_owned(),
        0.0 => "0".to_owned(),
        size if size < WHOLE => format!("{value:.1}"),
        size if size < ABSURD => whole(value.round_ties_even() as i64),
        _ => format!("{value:.2e}"),
    }
}

/// "+1,240" or "−3.1".
fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", instructions(value.abs()))
}

/// A whole number with separators.
fn whole(value: i64) -> String {
    let sign = if value < 0 { "−" } else { "" };
    format!("{sign}{}", separated(&value.unsigned_abs().to_string()))
}

/// "5,830 ± 12".
fn plus_minus(value: &Estimate) -> String {
    match value.half_width() {
        Some(half) => format!("{} ± {}", instructions(value.value), instructions(half)),
        None => instructions(value.value),
    }
}

/// The name of an arm below the name of what is compared: "1024" of "rdma_max_inline_write=1024".
fn arm_head(finding: &GuestFinding, name: &str) -> String {
    let swept = finding.compared.as_deref().and_then(|compared| name.strip_prefix(axis(compared))?.strip_prefix('='));
    swept.map_or_else(|| finding.arm_name(name), str::to_owned)
}

/// "1k write, bs=1k": what distinguishes a point from others of its arm; its job if nothing does.
fn row(finding: &GuestFinding, point: &PointFinding) -> String {
    let parts = finding.parts(point, false);
    if parts.is_empty() { point.place.job.clone() } else { parts.join(", ") }
}

/// The same with its job in any case.
fn named(finding: &GuestFinding, point: &PointFinding) -> String {
    finding.parts(point, true).join(", ")
}

/// "1 point", "5 points".
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
