//! Finding of a recording of quanta → document: the answer, the series over time, periods, stalls, probes.

#[cfg(test)]
pub(crate) mod fixture;
mod plan;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;
mod words;

use crate::ftq::FtqFinding;
use crate::ftq::finding::{Level, PeriodChanges, Periodic};
use crate::pages::{limits, provenance};
use report::document::{Audience, Block, Body, Document, Fact, Figure, Section, Sentence, Tone, tied, units_tied};
use report::number::{self, MISSING};

/// Periods told in the answer; the others are in their table.
const TOLD: usize = 3;

impl crate::Finding for FtqFinding {
    fn document(&self) -> Document {
        let timeline = Block::new("", Body::Timeline(timeline::timeline(self)));
        let mut sections = vec![Section::new("", vec![Block::new("", Body::Figures(vec![figures(self)]))])];
        sections.extend(limits::section(&self.head.limits, "place"));
        sections.extend([
            Section::on_page("Quantum by quantum", vec![timeline]),
            Section::on_page("Periods", tables::periods(self)),
            Section::on_page("Stalls that no period explains", tables::stalls(self)).in_full(),
            Section::on_page("Probes", tables::probes(self)).in_full(),
            Section::on_page("Against the stored recording", tables::against(self)),
        ]);
        Document {
            kind: "iotoll ftq".to_owned(),
            lead: format!(
                "What a worker did in each quantum of {}, read by another thread, with the kernel's counters at the same times",
                tied(&number::seconds(self.quantum_seconds))
            ),
            headline: headline(self),
            sections,
            provenance: provenance(self),
            ..Document::of(&self.head)
        }
    }
}

/// The periods in words, or that there is none; what changed; how many readings were late. Empty without readings.
fn headline(finding: &FtqFinding) -> Vec<Sentence> {
    if finding.readings < 2 {
        return Vec::new();
    }
    let period = |periodic: &Periodic| Sentence {
        detail: Some(format!(
            "seen in {} of {} periods, false alarm {}",
            words::whole(periodic.seen),
            words::whole(periodic.of),
            words::probability(periodic.false_alarm)
        )),
        ..Sentence::plain(words::begun(&units_tied(&periodic.sentence)))
    };
    let mut sentences: Vec<Sentence> = finding.periodic.iter().take(TOLD).map(period).collect();
    match finding.periodic.len().saturating_sub(TOLD) {
        0 => {}
        1 => sentences.push(Sentence::plain("One more period is in the table")),
        more => sentences.push(Sentence::plain(format!("{more} more periods are in the table"))),
    }
    if finding.periodic.is_empty() {
        sentences.push(Sentence::plain(none(finding)));
    }
    sentences.extend(finding.against.as_ref().and_then(changed).map(Sentence::plain));
    sentences.extend(late(finding).map(Sentence::plain));
    sentences
}

/// "No period was found in 27.0 s; the longest stall is 183 ms".
fn none(finding: &FtqFinding) -> String {
    let seconds = tied(&number::seconds(finding.seconds));
    let stall = finding.noise.longest_stall_seconds.map(|stall| tied(&number::seconds(stall)));
    let stall = stall.map(|stall| format!("; the longest stall is {stall}")).unwrap_or_default();
    format!("No period was found in {seconds}{stall}")
}

/// "0.3 % of readings were late, the longest by 11 quanta"; nothing if none was.
fn late(finding: &FtqFinding) -> Option<String> {
    let part = tied(&number::percent(finding.late as f64 / finding.readings as f64));
    let by = finding.longest_span.saturating_sub(1);
    let quanta = if by == 1 { "quantum" } else { "quanta" };
    (finding.late > 0).then(|| format!("{part} of readings were late, the latest by {} {quanta}", number::count(by)))
}

/// "Against the stored recording, a period of 1.00 s appeared and one of 5.00 s went".
fn changed(changes: &PeriodChanges) -> Option<String> {
    let list = |periods: &[f64]| {
        let texts: Vec<String> = periods.iter().map(|period| tied(&number::seconds(*period))).collect();
        let noun = if texts.len() == 1 { "a period" } else { "periods" };
        (!texts.is_empty()).then(|| format!("{noun} of {}", texts.join(", ")))
    };
    let appeared = list(&changes.appeared).map(|periods| format!("{periods} appeared"));
    let went = list(&changes.went).map(|periods| format!("{periods} went"));
    let parts: Vec<String> = appeared.into_iter().chain(went).collect();
    let same = || (!changes.kept.is_empty()).then(|| "all periods stayed".to_owned());
    let parts = if parts.is_empty() { same() } else { Some(parts.join(", ")) };
    parts.map(|parts| format!("Against the stored recording, {parts}"))
}

fn figures(finding: &FtqFinding) -> Vec<Figure> {
    if finding.readings < 2 {
        return Vec::new();
    }
    let figure = |what: &str, value: String| Figure { what: what.to_owned(), ..Figure::new(Tone::Strong, value) };
    let level = |(place, level): (usize, &Level)| {
        let rate = words::rate(finding, level.amount_per_second);
        match place {
            0 => figure("Rate before the step", format!("{rate} at first")),
            _ => figure("Rate after the step", format!("{rate} from {}", tied(&words::moment(level.begin_seconds)))),
        }
    };
    let mut figures: Vec<Figure> = finding.levels.iter().enumerate().map(level).collect();
    if figures.is_empty() {
        figures.push(figure("Rate of the worker", words::rate(finding, finding.amount_per_second)));
    }
    let available = finding.noise.available_fraction.map(|part| format!("{} available", words::available(part)));
    figures.extend(available.map(|text| figure("Share of its undisturbed rate", text)));
    let stall = finding.noise.longest_stall_seconds.map(number::seconds);
    figures.extend(stall.map(|stall| figure("Longest stall", format!("{stall} longest stall"))));
    figures
}

fn provenance(finding: &FtqFinding) -> Vec<Fact> {
    let late = match finding.late {
        0 => "none late".to_owned(),
        late => format!("{} late, the longest spans {} quanta", words::whole(late), words::whole(finding.longest_span)),
    };
    let readings = match finding.readings {
        0 | 1 => "no two readings".to_owned(),
        count => format!(
            "{} for {}: {} readings, {late}",
            tied(&number::seconds(finding.quantum_seconds)),
            tied(&number::seconds(finding.seconds)),
            words::whole(count),
        ),
    };
    let host = provenance::of_host(&finding.head.host, Audience::POST.or(Audience::PAGE));
    let made_by = provenance::made_by(&finding.head);
    let facts = vec![
        Fact::new("Worker", finding.head.title.clone()),
        Fact::new("Counted", finding.counted_by.clone()),
        Fact::new("Quantum", readings),
        Fact::new("Noise", noise(finding)),
        Fact::new("Recorder", recorder(finding)),
    ];
    [facts, provenance::services(&finding.head.services).collect(), host, vec![made_by]].concat()
}

/// What the worker lost against its undisturbed quanta.
fn noise(finding: &FtqFinding) -> String {
    let undisturbed = words::value(&finding.unit, finding.noise.undisturbed_per_quantum);
    let lost = finding.noise.lost_seconds.map_or_else(|| MISSING.to_owned(), number::seconds);
    format!("{} lost against the 95th percentile of all quanta, {}", tied(&lost), tied(&undisturbed))
}

/// What the recorder itself cost.
fn recorder(finding: &FtqFinding) -> String {
    let cost = &finding.recorder;
    let busy = cost.cpu_nanos.seconds() / finding.seconds;
    let mut text = cost.cpu.map_or_else(|| "on no CPU of its own".to_owned(), |cpu| format!("on CPU {cpu}"));
    if cost.cpu_nanos.0 == 0 || !busy.is_finite() {
        return format!("{text}; its cost {MISSING} was not recorded");
    }
    text += &format!(", {} of a CPU", tied(&number::percent(busy)));
    if cost.reading_nanos.0 > 0 && finding.readings > 0 {
        let mean = tied(&number::seconds(cost.reading_nanos.seconds() / finding.readings as f64));
        let longest = tied(&number::seconds(cost.longest_reading_nanos.seconds()));
        text += &format!("; a reading takes {mean}, the longest took {longest}");
    }
    text
}
