//! The instructions of functions, with what each costs.

use crate::document::{Audience, Block, Body, Cell, Column, Document, Draw, Fold, Note, Raw, Section, Table, Tone};
use crate::format::Finding;
use crate::json;
use crate::number::{self, CYCLES, Scale};
use model::elided_list::elided_list;
use model::finding::{PhaseFinding, RunFinding};
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

fn block(function: &AnnotatedFinding, phase: &PhaseFinding) -> Block {
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

/// One function of a measurement.
#[derive(Clone, Debug)]
pub struct Annotation {
    finding: RunFinding,
    symbol: String,
}

impl Annotation {
    /// The function of this name, or the only one whose name contains it.
    ///
    /// # Errors
    /// When there is none, or more than one: which there are.
    pub fn of(finding: RunFinding, symbol: &str) -> Result<Self, String> {
        let mut names: Vec<String> =
            finding.phases.iter().flat_map(|phase| &phase.annotated).map(|it| it.symbol.clone()).collect();
        if names.is_empty() {
            return Err("the record has no instructions: measure with --profile, on x86-64, and long enough".to_owned());
        }
        names.dedup();
        let known: Vec<String> = names.iter().filter(|name| name.contains(symbol)).cloned().collect();
        let found = match known.as_slice() {
            _ if names.iter().any(|name| name == symbol) => symbol.to_owned(),
            [only] => only.clone(),
            [] => {
                let names = elided_list(&names, ", ");
                return Err(format!("'{symbol}' has too few samples, or is no function; there are {names}"));
            }
            several => return Err(format!("'{symbol}' is a part of several names: {}", elided_list(several, ", "))),
        };
        Ok(Self { finding, symbol: found })
    }
}

impl Finding for Annotation {
    fn document(&self) -> Document {
        let whole = self.finding.document();
        let functions = self.finding.phases.iter().flat_map(|phase| {
            let of_it = phase.annotated.iter().filter(|function| function.symbol == self.symbol);
            of_it.map(move |function| Section::new("", vec![block(function, phase)]))
        });
        Document { sections: functions.collect(), data: Table::default(), ..whole }
    }

    fn json(&self) -> String {
        let of_it = self.finding.phases.iter().flat_map(|phase| &phase.annotated);
        json::json(&of_it.filter(|function| function.symbol == self.symbol).collect::<Vec<_>>())
    }
}
