//! Where the cycles went: the accounts, what a per-process figure would miss, and the background's part of the gross
//! figure.

use crate::document::{Block, Body, Cell, Column, Draw, Note, Raw, Table, Tone};
use crate::number::{self, CYCLES, Scale};
use crate::phrase::tied;
use model::finding::{AccountFinding, PhaseFinding};
use model::record::TaskOwner;

/// Smaller relative differences of a per-process figure are not reported: this is the error of the better meters.
const NEAR: f64 = 0.05;
/// Accounts with a smaller share are not named in the sentence on the per-process figure.
const LEAST_SHARE: f64 = 0.01;
/// Maximum number of accounts to name in that sentence.
const NAMED: usize = 3;

/// The accounts of a phase and their sum.
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
    // A net cost below the cost of the own threads is caused by the background, and a caveat explains it.
    if !ratio.is_finite() || ratio <= 0.0 || ratio >= 1.0 - NEAR {
        return None;
    }
    let scale = Scale::of(CYCLES, net);
    let say = |value: f64| tied(&format!("{} {}/IO", scale.cell(value), scale.unit));
    let mut text = format!(
        "A per-process figure would show {}: {} of the machine's cost.",
        say(threads),
        tied(&number::percent(ratio))
    );
    let elsewhere = phase.elsewhere_cycles_per_io.filter(|elsewhere| *elsewhere > 0.0);
    if let Some(elsewhere) = elsewhere {
        // The table contains all accounts, including small and negative ones (the background's error); the sentence
        // only names large ones.
        let others = phase.accounts.iter().filter(|account| account.owner != Some(TaskOwner::Workload));
        let others = others.filter(|account| account.share >= LEAST_SHARE);
        let others = others.take(NAMED).map(|other| format!("{}\u{a0}{}", other.name, scale.cell(other.cycles_per_io)));
        let others = others.collect::<Vec<_>>().join(", ");
        let colon = if others.is_empty() { "" } else { ": " };
        text += &format!(" Another {} were spent elsewhere{colon}{others}.", say(elsewhere));
    }
    Some(Note::new(Tone::Notice, text))
}

/// The fractions of samples in user and kernel mode.
fn modes(phase: &PhaseFinding) -> Option<Note> {
    let user = phase.sampled_user_fraction?;
    let text =
        format!("samples: {} in user mode, {} in kernel mode", number::percent(user), number::percent(1.0 - user));
    Some(Note::new(Tone::Faint, text))
}

fn gross(phase: &PhaseFinding) -> Option<Note> {
    let (net, gross, background) = (phase.cycles_per_io?, phase.cycles_per_io_gross?, phase.cycles_per_io_background?);
    let scale = Scale::of(CYCLES, gross);
    let text = format!(
        "gross {} = net {} + the machine's background {} {}/IO",
        scale.cell(gross),
        number::net(Some(net), |net| scale.cell(net)),
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
    fn a_misleading_per_process_figure_is_reported() {
        let text = spent(|_| {});
        let sentence = "would show 2.76 kcycles/IO: 40 % of the machine's cost. Another 4.15 kcycles/IO were spent";
        assert!(text.contains(sentence), "{text}");
        assert!(text.contains("ksoftirqd 2.35, iperf3 (another process) 1.52"), "{text}");
    }

    #[test]
    fn a_close_per_process_figure_is_not_reported() {
        let text = spent(|phase| phase.thread_cycles_per_io = Some(6800.0));
        assert!(!text.contains("per-process"), "{text}");
    }

    #[test]
    fn a_net_cost_that_noise_made_negative_is_about_0() {
        let text = spent(|phase| {
            phase.cycles_per_io = Some(-0.4);
            phase.cycles_per_io_gross = Some(2000.0);
            phase.cycles_per_io_background = Some(2000.4);
        });
        assert!(text.contains("gross 2.00 = net ≈ 0 + the machine's background 2.00 kcycles/IO"), "{text}");
    }

    #[test]
    fn a_net_cost_below_the_threads_is_left_to_the_caveat() {
        let text = spent(|phase| {
            phase.thread_cycles_per_io = Some(7600.0);
            phase.elsewhere_cycles_per_io = Some(-690.0);
        });
        assert!(!text.contains("per-process") && !text.contains("elsewhere"), "{text}");
    }
}
