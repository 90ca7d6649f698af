//! Where the cycles went: the accounts, what a per-process figure would miss, and the background's part of the gross
//! figure.

use crate::pages::parts::{self, Kind, Part};
use model::account::BUSY_OTHERS;
use model::experiment::Metric;
use model::finding::{AccountFinding, PhaseFinding, RunFinding};
use model::record::TaskOwner;
use model::stats::Estimate;
use report::document::{Audience, Block, Body, Note, Table, Tone, tied};
use report::number::{self, CYCLES, Scale};

/// Smaller relative differences of a per-process figure are not reported: this is the error of the better meters.
const NEAR: f64 = 0.05;
/// An account that is less below 0 is not mentioned.
const LEAST_SHARE: f64 = 0.01;

/// The accounts of a phase and their sum; on one screen the `most` largest.
pub fn blocks(phase: &PhaseFinding, suffix: &str, most: usize) -> Vec<Block> {
    let notes = [per_process(phase), idle_entry(phase), below_zero(phase), gross(phase)];
    let notes: Vec<Note> = notes.into_iter().flatten().collect();
    let block = |accounts: &[AccountFinding], notes: Vec<Note>| {
        Block::new(format!("Where it went{suffix}"), Body::Table(table(phase, accounts))).with(notes)
    };
    let all = block(&phase.accounts, notes.clone());
    match phase.accounts.split_at_checked(most) {
        // A row for one more takes no more room than a line that says so.
        Some((largest, smaller)) if smaller.len() > 1 => {
            let share = smaller.iter().map(|account| account.share).sum();
            let text = format!("and {} smaller accounts, together {}", smaller.len(), number::percent(share));
            let more = Note::new(Tone::Plain, text);
            let notes = std::iter::once(more).chain(notes).collect();
            let most = if most == 0 { Block::new("", Body::Notes) } else { block(largest, notes) };
            vec![most.of(Audience::GLANCE), all.in_full()]
        }
        _ => vec![all],
    }
}

fn table(phase: &PhaseFinding, accounts: &[AccountFinding]) -> Table {
    let scale = phase.cycles_per_io().map(|total| Scale::of(CYCLES, total));
    let head = scale.map(|scale| format!("{}/IO", scale.unit));
    let part = |account: &AccountFinding| Part {
        name: account.name.clone(),
        also: account.times_per_io.map_or_else(String::new, |times| number::significant(times.value)),
        tone: tone(account),
        costs: scale.map(|_| Estimate::bare(account.cycles_per_io)).into_iter().collect(),
        share: Some(account.share),
        ..Part::default()
    };
    let costs: Vec<&str> = head.iter().map(String::as_str).collect();
    parts::table(Kind { costs: &costs, scale, ..parts::ACCOUNTS }, accounts.iter().map(part).collect())
}

/// Smaller parts of the time that counting takes are not mentioned.
const NOTED: f64 = 0.001;

/// The events of a phase; nothing if none were counted.
pub fn events(finding: &RunFinding, phase: &PhaseFinding, suffix: &str) -> Option<Block> {
    let named = |name: &str| finding.events.iter().any(|event| event.named && event.name == name);
    let events = phase.counted.per_io.iter().map(|(name, count)| (name.as_str(), *count, named(name)));
    let mut block = parts::events("per I/O", format!("Events per I/O{suffix}"), events.collect())?;
    block.notes.extend(phase.counted.counting_fraction.filter(|part| *part >= NOTED).map(|part| {
        let part = tied(&number::percent(part));
        Note::remark(format!(
            "Exact counts of the whole machine, net of the background, in windows of their own, in which counting took up to {part} of one CPU."
        ))
    }));
    Some(block)
}

fn tone(account: &AccountFinding) -> Tone {
    match account.owner {
        Some(TaskOwner::Workload) => Tone::Own,
        Some(TaskOwner::Kernel | TaskOwner::Other | TaskOwner::Peer) | None => Tone::Notice,
        Some(TaskOwner::Iotoll) => Tone::Faint,
    }
}

fn per_process(phase: &PhaseFinding) -> Option<Note> {
    let (net, threads) = (phase.cycles_per_io()?, phase.value(Metric::ThreadCyclesPerIo)?);
    let ratio = threads / net;
    // A net cost below the cost of the own threads is caused by the background, and a caveat explains it.
    if !ratio.is_finite() || ratio <= 0.0 || ratio >= 1.0 - NEAR {
        return None;
    }
    let scale = Scale::of(CYCLES, net);
    let text = format!(
        "A per-process figure would show {}: {} of the machine's cost.",
        tied(&format!("{} {}/IO", scale.cell(threads), scale.unit)),
        tied(&number::percent(ratio))
    );
    Some(Note::new(Tone::Notice, text))
}

/// What the meter of the cost counts as idle although the kernel works.
fn idle_entry(phase: &PhaseFinding) -> Option<Note> {
    let found = phase.accounts.iter().find_map(|account| Some((account, account.in_all_cycles_per_io?)));
    let ((account, in_all), meter) =
        found.zip(phase.headline_meter.as_deref().filter(|_| !phase.others.known_by_name))?;
    let scale = Scale::of(CYCLES, phase.cycles_per_io()?);
    // Within the error of the better meters of the cost.
    let counted = (in_all - account.cycles_per_io).abs() < NEAR * phase.cycles_per_io()?;
    let text = format!(
        "Idle entry and exit took {} in all; {meter} counts {} of them as busy.",
        tied(&format!("{} {}/IO", scale.cell(in_all), scale.unit)),
        scale.cell(account.cycles_per_io)
    );
    (!counted).then(|| Note::new(Tone::Notice, text))
}

/// Accounts sum to the cost, so others exceed it where one is below 0.
fn below_zero(phase: &PhaseFinding) -> Option<Note> {
    let below = phase.accounts.iter().any(|account| account.share <= -LEAST_SHARE);
    let text = "The accounts sum to the cost. One below 0 is a task that did less than without the workload, or the error of the \
                others, which then sum to more than the cost.";
    below.then(|| Note::remark(text))
}

fn gross(phase: &PhaseFinding) -> Option<Note> {
    if phase.others.known_by_name {
        return by_name(phase);
    }
    let (net, gross) = (phase.cycles_per_io()?, phase.others.cycles_per_io_gross?);
    let scale = Scale::of(CYCLES, gross);
    let text = format!(
        "gross {} = net {} + the machine's background {} {}/IO",
        scale.cell(gross),
        number::net(Some(net), |net| scale.cell(net)),
        scale.cell(gross - net),
        scale.unit
    );
    Some(Note::remark(text))
}

/// What the cost leaves out, and what it would be otherwise.
fn by_name(phase: &PhaseFinding) -> Option<Note> {
    let (net, others) = (phase.cycles_per_io()?, phase.others.others_busy_fraction?);
    let scale = Scale::of(CYCLES, net);
    let before = phase.others.others_busy_fraction_before.filter(|before| *before > BUSY_OTHERS && *before > others);
    let before = before.map(|before| format!(", and {} before and after the load", number::percent(before)));
    let mut text = format!(
        "Other processes used {} of the machine{}; they are left out by their names.",
        number::percent(others),
        before.unwrap_or_default()
    );
    if let Some(level) = phase.others.cycles_per_io_by_level {
        let ends = level.ends().map(|(low, high)| format!(" [{}, {}]", scale.cell(low), scale.cell(high)));
        text += &format!(
            " With the whole background subtracted as a level: {}{} {}/IO.",
            scale.cell(level.value),
            ends.unwrap_or_default(),
            scale.unit
        );
    }
    // A caveat says it, too.
    Some(Note::remark(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::page::fixture;

    fn spent(change: impl Fn(&mut PhaseFinding)) -> String {
        let mut finding = fixture::named("udp_like");
        finding.phases.iter_mut().for_each(change);
        let notes = finding.phases.iter().flat_map(|phase| blocks(phase, "", usize::MAX)).flat_map(|block| block.notes);
        notes.map(|note| note.text.replace('\u{a0}', " ")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_misleading_per_process_figure_is_reported() {
        let text = spent(|_| {});
        assert!(text.contains("would show 2.76 kcycles/IO: 40 % of the machine's cost."), "{text}");
        assert!(!text.contains("below 0"), "{text}");
        let text = spent(|phase| phase.accounts[0].share = -0.2);
        assert!(text.contains("One below 0 is a task that did less"), "{text}");
    }

    #[test]
    fn a_close_per_process_figure_is_not_reported() {
        let text = spent(|phase| phase.figures.set(Metric::ThreadCyclesPerIo, Some(Estimate::bare(6800.0))));
        assert!(!text.contains("per-process"), "{text}");
    }

    #[test]
    fn a_net_cost_that_noise_made_negative_is_about_0() {
        let text = spent(|phase| {
            phase.figures.set(Metric::CyclesPerIo, Some(Estimate::bare(-0.4)));
            phase.others.cycles_per_io_gross = Some(2000.0);
        });
        assert!(text.contains("gross 2.00 = net ≈ 0 + the machine's background 2.00 kcycles/IO"), "{text}");
    }

    #[test]
    fn a_net_cost_below_the_threads_is_left_to_the_caveat() {
        let text = spent(|phase| phase.figures.set(Metric::ThreadCyclesPerIo, Some(Estimate::bare(7600.0))));
        assert!(!text.contains("per-process"), "{text}");
    }
}
