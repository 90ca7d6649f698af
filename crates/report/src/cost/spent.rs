//! Where the cycles went: the accounts, what a per-process figure would have missed, and how much of
//! the gross figure was the machine's background.

use crate::document::{Block, Body, Cell, Column, Draw, Note, Raw, Table, Tone};
use crate::number::{self, CYCLES, Scale};
use crate::phrase::tied;
use model::finding::{AccountFinding, PhaseFinding};
use model::record::TaskOwner;

/// Below this relative difference a per-process figure is near enough to say nothing about it: it is
/// the error of the better meters.
const NEAR: f64 = 0.05;
/// Accounts below this share of the cost are not named in the sentence on the per-process figure.
const LEAST_SHARE: f64 = 0.01;
/// Accounts named in that sentence.
const NAMED: usize = 3;

/// The accounts of a phase and what they add up to.
pub fn block(phase: &PhaseFinding, suffix: &str) -> Block {
    let notes = [per_process(phase), modes(phase), gross(phase)];
    let accounts = Body::Table(accounts(phase));
    Block::new(format!("Where it went{suffix}"), accounts).with(notes.into_iter().flatten().collect())
}

fn accounts(phase: &PhaseFinding) -> Table {
    let scale = phase.cycles_per_io.map(|total| Scale::of(CYCLES, total));
    let mut columns = vec![Column::rows("account")];
    columns.extend(scale.map(|scale| Column::number(format!("{}/IO", scale.unit))));
    columns.extend([Column::number("share"), Column::drawing(Draw::Bar)]);
    let mut table = Table::new(columns);
    for account in &phase.accounts {
        let mut cells = vec![Cell::from(&account.name)];
        cells.extend(scale.map(|scale| Cell::from(scale.cell(account.cycles_per_io))));
        cells.push(number::percent(account.share).into());
        cells.push(Cell::drawn(tone(account), Raw::Number(account.share)));
        table.row(cells);
    }
    table
}

fn tone(account: &AccountFinding) -> Tone {
    match account.owner {
        Some(TaskOwner::Workload) => Tone::Own,
        Some(TaskOwner::Kernel | TaskOwner::Other) | None => Tone::Notice,
        Some(TaskOwner::Iotoll) => Tone::Faint,
    }
}

fn per_process(phase: &PhaseFinding) -> Option<Note> {
    let (net, threads) = (phase.cycles_per_io?, phase.thread_cycles_per_io?);
    let ratio = threads / net;
    // A net figure below the threads' own is a matter of the background, and a warning says so.
    if !ratio.is_finite() || ratio <= 0.0 || ratio >= 1.0 - NEAR {
        return None;
    }
    let scale = Scale::of(CYCLES, net);
    let say = |value: f64| tied(&format!("{} {}/IO", scale.cell(value), scale.unit));
    let mut text = format!(
        "A per-process figure would say {}: {} of what the machine paid.",
        say(threads),
        tied(&number::percent(ratio))
    );
    let elsewhere = phase.elsewhere_cycles_per_io.filter(|elsewhere| *elsewhere > 0.0);
    if let Some(elsewhere) = elsewhere {
        // What is small or negative (the background's error) is in the table; a sentence is for the rest.
        let others = phase.accounts.iter().filter(|account| account.owner != Some(TaskOwner::Workload));
        let others = others.filter(|account| account.share >= LEAST_SHARE);
        let others = others.take(NAMED).map(|other| format!("{}\u{a0}{}", other.name, scale.cell(other.cycles_per_io)));
        let others = others.collect::<Vec<_>>().join(", ");
        let colon = if others.is_empty() { "" } else { ": " };
        text += &format!(" {} more were spent elsewhere for it{colon}{others}.", say(elsewhere));
    }
    Some(Note::new(Tone::Notice, text))
}

/// What the sampler saw of the two modes.
fn modes(phase: &PhaseFinding) -> Option<Note> {
    let user = phase.sampled_user_fraction?;
    let text =
        format!("samples: {} in user mode, {} in the kernel", number::percent(user), number::percent(1.0 - user));
    Some(Note::new(Tone::Faint, text))
}

fn gross(phase: &PhaseFinding) -> Option<Note> {
    let (net, gross, background) = (phase.cycles_per_io?, phase.cycles_per_io_gross?, phase.cycles_per_io_background?);
    let scale = Scale::of(CYCLES, gross);
    let text = format!(
        "gross {} = net {} + the machine's background {} {}/IO",
        scale.cell(gross),
        scale.cell(net),
        scale.cell(background),
        scale.unit
    );
    Some(Note::new(Tone::Faint, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::fixture;

    fn spent(change: impl Fn(&mut PhaseFinding)) -> String {
        let mut finding = fixture::udp_like();
        finding.phases.iter_mut().for_each(change);
        let notes = finding.phases.iter().flat_map(|phase| block(phase, "").notes);
        notes.map(|note| note.text.replace('\u{a0}', " ")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_per_process_figure_that_misses_much_is_named() {
        let text = spent(|_| {});
        let sentence = "would say 2.76 kcycles/IO: 40 % of what the machine paid. 4.15 kcycles/IO more were spent";
        assert!(text.contains(sentence), "{text}");
        assert!(text.contains("ksoftirqd 2.35, iperf3 (another process) 1.52"), "{text}");
    }

    #[test]
    fn a_per_process_figure_that_is_near_is_not() {
        let text = spent(|phase| phase.thread_cycles_per_io = Some(6800.0));
        assert!(!text.contains("per-process"), "{text}");
    }

    #[test]
    fn threads_above_the_net_cost_are_left_to_a_warning() {
        let text = spent(|phase| {
            phase.thread_cycles_per_io = Some(7600.0);
            phase.elsewhere_cycles_per_io = Some(-690.0);
        });
        assert!(!text.contains("per-process") && !text.contains("elsewhere"), "{text}");
    }
}
