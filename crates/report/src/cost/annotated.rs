//! The instructions of functions, with what each costs.

use crate::document::{Audience, Block, Body, Cell, Column, Draw, Fold, Note, Raw, Table, Tone};
use crate::number::{self, CYCLES, Scale};
use model::finding::PhaseFinding;
use model::profile::{AnnotatedFinding, LineFinding};

/// Functions on a page.
const SHOWN: usize = 8;
/// A line is shown if it has this part of its function, or stands this near to one that has.
const LEAST_SHARE: f64 = 0.01;
const AROUND: usize = 3;

/// The instructions of the largest functions, for a page.
pub fn blocks(phase: &PhaseFinding) -> Vec<Block> {
    let block = |function: &AnnotatedFinding| Block {
        fold: Some(Fold { summary: format!("Instructions of {}", function.symbol), open: false }),
        ..block(function, phase).of(Audience::PAGE)
    };
    phase.annotated.iter().take(SHOWN).map(block).collect()
}

pub(crate) fn block(function: &AnnotatedFinding, phase: &PhaseFinding) -> Block {
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
        (0..).zip(&function.lines).filter(|(_, it)| share(it) >= LEAST_SHARE).map(|it| it.0).collect();
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
    let of_cost = phase.cycles_per_io.filter(|cost| *cost > 0.0).map(|cost| function.cycles_per_io / cost);
    let text = format!(
        "{} in {}: {}/IO{}, {} samples. A sample belongs to the instruction before the one that it found; at the target of a jump, that may be \
         another one.",
        function.symbol,
        function.module,
        number::with_unit(CYCLES, function.cycles_per_io),
        of_cost.map_or_else(String::new, |part| format!(", {} of the cost", number::percent(part))),
        number::count(function.samples)
    );
    Block::new(function.symbol.clone(), Body::Table(table)).with(vec![Note::new(Tone::Faint, text)])
}
