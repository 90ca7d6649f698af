//! What explaining rounds found of two measurements: how the change of the cost divides into accounts and functions, and which events of
//! the kernel change with it. Of a comparison, and of a blast, whose points stand beside the first one.

use crate::blast::BlastFinding;
use crate::blast::page::{name, short_name};
use crate::compare::CompareFinding;
use crate::compare::finding::CellFinding;
use crate::pages::contents;
use crate::pages::parts::{self, Kind, Part, interval, signed, with_unit};
use model::events::{SYSTEM_CALLS, meaning};
use model::experiment::Metric;
use model::explained::{
    AccountChange, EventChange, ExplainedFinding, Explanation, FamilyFinding, PartChange, SymbolChange,
};
use model::stats::Estimate;
use report::document::{Audience, Block, Body, Calls, Cell, FlameGraph, Note, Table, Tone};
use report::number::{self, COUNT, CYCLES, Scale, Units};
use report::phrase::{shortened, tied};

/// Most rows, and of each of several pairs.
const MOST: usize = 10;
const MOST_OF_EACH: usize = 3;
/// Where nothing changed, the largest functions show what was looked at.
const UNCHANGED: usize = 5;
/// Events with such a count per I/O are shown beside those that changed: that they did not is part of the answer.
const FREQUENT: f64 = 0.5;
/// Accounts and events named in a sentence, and how large a part of the largest change that of an event is at least.
const NAMED: usize = 4;
const NAMED_PART: f64 = 0.1;

/// Two measurements: of a cell, or of a point and the first one.
#[derive(Default)]
struct Pair<'a> {
    /// What names it in a table.
    names: Vec<Cell>,
    /// The same before a sentence, with a colon.
    place: String,
    explained: Option<ExplainedFinding>,
    accounts: &'a [AccountChange],
    symbols: &'a [SymbolChange],
    events: &'a [EventChange],
    /// Whether the cost rises or falls; `None` if neither is detected.
    rises: Option<bool>,
}

/// All pairs with one arm.
struct Pairs<'a> {
    all: Vec<Pair<'a>>,
    axes: Vec<&'a str>,
    arms: [&'a str; 2],
    /// What the cost is of: "I/O", "packet".
    per: &'a str,
    explanation: Explanation,
}

/// The blocks of all arms; empty without explaining rounds.
pub fn of_comparison(finding: &CompareFinding) -> Vec<Block> {
    let arms: Vec<Pairs> = contents::candidates(finding).into_iter().map(|arm| pairs(finding, arm)).collect();
    let rows = contents::rows(finding);
    let mut blocks: Vec<Block> = arms.iter().flat_map(|arm| arm.accounts(rows)).collect();
    for (arm, name) in arms.iter().zip(contents::candidates(finding)) {
        blocks.extend(arm.functions(rows));
        let cells = contents::cells(finding, name).into_iter().filter(|cell| !cell.cost.symbols.is_empty());
        blocks.extend(cells.take(contents::FEW).map(|cell| graph(finding, cell)));
    }
    blocks.extend(arms.iter().flat_map(Pairs::events).map(Block::in_full));
    blocks.push(unexplained(finding.explanation.unexplained.as_ref()));
    blocks
}

fn unexplained(why: Option<&String>) -> Block {
    let note = why.map(|why| Note::remark(format!("not divided into accounts: {why}")));
    Block::new("", Body::Notes).with(note.into_iter().collect())
}

fn pairs<'a>(finding: &'a CompareFinding, arm: &'a str) -> Pairs<'a> {
    let axes = contents::axes(finding);
    let pair = |cell: &'a CellFinding| {
        let place = contents::place(finding, cell);
        let cost = contents::metric(cell, Metric::CyclesPerIo).filter(|cost| cost.detected);
        Pair {
            names: contents::names(&axes, &cell.cell),
            place: if place.is_empty() { place } else { format!("{place}: ") },
            explained: cell.cost.explained,
            accounts: &cell.cost.accounts,
            symbols: &cell.cost.symbols,
            events: &cell.cost.events,
            rises: cost.and_then(|cost| cost.change).map(|change| change > 0.0),
        }
    };
    Pairs {
        all: contents::cells(finding, arm).into_iter().map(pair).collect(),
        arms: [contents::baseline(finding), arm],
        per: "I/O",
        explanation: finding.explanation.clone(),
        axes,
    }
}

impl<'a> Pairs<'a> {
    fn having(&self, holds: impl Fn(&Pair) -> bool) -> Vec<&Pair<'a>> {
        self.all.iter().filter(|pair| holds(pair)).collect()
    }

    fn most(&self, most: usize) -> usize {
        if self.axes.is_empty() { most } else { most.min(MOST_OF_EACH) }
    }

    /// Whose the change is; `rows` on one screen.
    fn accounts(&self, rows: usize) -> Vec<Block> {
        let pairs = self.having(|pair| pair.explained.is_some());
        let few = pairs.len() <= contents::FEW;
        let sentences = pairs.iter().filter(|_| few).filter_map(|pair| self.sentence(pair));
        let mut blocks = vec![Block::new("", Body::Notes).with(sentences.collect()).in_full()];
        let block = |most| {
            let rows = pairs
                .iter()
                .flat_map(|pair| self.shown_accounts(pair, most).map(|it| row(pair, it.name.clone(), "", &it.per_io)));
            let table = self.table("account", "", CYCLES, rows.collect());
            Block::new("Where the change is", Body::Table(table)).with(self.account_notes(&pairs))
        };
        // The functions, which the user asked for, say it more exactly.
        if let [pair] = pairs.as_slice()
            && pair.symbols.is_empty()
            && self.shown_accounts(pair, MOST).next().is_some()
        {
            blocks.push(block(rows).of(Audience::GLANCE));
        }
        let has_changed = |pair: &Pair| pair.accounts.iter().any(|account| account.per_io.detected);
        blocks.extend(on_page_if_many("Accounts", &pairs, has_changed, block(MOST).in_full()));
        blocks
    }

    /// Those that changed, and beside them the large ones that did not.
    fn shown_accounts(&self, pair: &Pair<'a>, most: usize) -> impl Iterator<Item = &'a AccountChange> + use<'a> {
        let any = pair.accounts.iter().any(|account| account.per_io.detected);
        let most = if any { self.most(most) } else { 0 };
        pair.accounts.iter().filter(|account| account.per_io.detected || account.large).take(most)
    }

    /// "candidate: Of +182 [170, 194] cycles per I/O: +160 [150, 170] the workload's own threads, +9 [5, 13] softirq net_rx."
    fn sentence(&self, pair: &Pair) -> Option<Note> {
        let explained = pair.explained?;
        let mut detected: Vec<&AccountChange> =
            pair.accounts.iter().filter(|account| account.per_io.detected).collect();
        let size = |account: &AccountChange| account.per_io.change.value.abs();
        detected.sort_by(|one, other| size(other).total_cmp(&size(one)));
        if detected.is_empty() {
            let rounds = explained.rounds;
            let text = format!("{}No account's change is detected in {rounds} rounds that kept accounts.", pair.place);
            return Some(Note::remark(text));
        }
        let largest = detected.first().map_or(0.0, |account| size(account)).max(explained.change.value.abs());
        let scale = Scale::of(CYCLES, largest);
        let named = detected.iter().take(NAMED);
        let named = named.map(|account| format!("{} {}", whole(scale, &account.per_io.change), account.name));
        let more = detected.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let (whole, named) = (whole(scale, &explained.change), named.collect::<Vec<_>>().join(", "));
        let text = format!("{}Of {whole} {} per {}: {named}{more}.", pair.place, scale.unit, self.per);
        Some(Note::new(Tone::Strong, text))
    }

    /// What the accounts come from, and whether they explain the change of the answer.
    fn account_notes(&self, pairs: &[&Pair<'a>]) -> Vec<Note> {
        let Some(first) = pairs.first().and_then(|pair| pair.explained) else { return Vec::new() };
        let mut notes: Vec<Note> = pairs.iter().filter_map(|pair| self.disagreement(pair)).collect();
        if pairs.iter().any(|pair| pair.explained.is_some_and(|explained| explained.known_by_name)) {
            let text = "Other programs used much of the machine; they are left out by their names.";
            notes.push(Note::new(Tone::Notice, text));
        }
        if pairs.iter().any(|pair| self.shown_accounts(pair, MOST).next().is_some()) {
            notes.push(Note::remark(origin(
                first.rounds,
                "kept accounts",
                self.explanation.account_family,
                "accounts",
            )));
        }
        notes
    }

    /// Keeping accounts may disturb one arm more than the other.
    fn disagreement(&self, pair: &Pair) -> Option<Note> {
        let explained = pair.explained.filter(|explained| explained.differs)?;
        let undisturbed = explained.undisturbed_change?;
        let scale = parts::scale(CYCLES, &explained.change);
        let why = match explained.known_by_name {
            true => "what other programs did is in one of them",
            false => "keeping them disturbs the arms unequally",
        };
        let text = format!(
            "{}The accounts divide a change of {}, but without accounts it is {} {} per {}: {why}.",
            pair.place,
            whole(scale, &explained.change),
            whole(scale, &undisturbed),
            scale.unit,
            self.per
        );
        Some(Note::new(Tone::Notice, text))
    }

    /// The functions that changed; empty without sampled rounds. `rows` on one screen.
    fn functions(&self, rows: usize) -> Vec<Block> {
        let pairs = self.having(|pair| !pair.symbols.is_empty());
        if pairs.is_empty() {
            return Vec::new();
        }
        let block = |most| {
            let row = |pair: &Pair, it: &SymbolChange| row(pair, shortened(&it.symbol), &it.module, &it.per_io);
            let rows =
                pairs.iter().flat_map(|pair| self.shown_functions(pair, most).into_iter().map(|it| row(pair, it)));
            Block::new("Functions", Body::Table(self.table("function", "in", CYCLES, rows.collect())))
        };
        let found = pairs.iter().flat_map(|pair| pair.symbols).any(|symbol| symbol.per_io.detected);
        let none = if found { "" } else { "No function's change is detected; these are the largest. " };
        let note = none.to_owned()
            + &origin(self.explanation.sampled_rounds, "sampled stacks", self.explanation.function_family, "functions");
        vec![block(MOST).with(vec![Note::remark(note)]).in_full(), block(rows).of(Audience::GLANCE)]
    }

    fn shown_functions(&self, pair: &Pair<'a>, most: usize) -> Vec<&'a SymbolChange> {
        let most = self.most(most);
        let changed: Vec<&SymbolChange> =
            pair.symbols.iter().filter(|symbol| symbol.per_io.detected).take(most).collect();
        if !changed.is_empty() {
            return changed;
        }
        let mut largest: Vec<&SymbolChange> = pair.symbols.iter().filter(|symbol| !symbol.module.is_empty()).collect();
        largest.sort_by(|one, other| other.per_io.baseline.value.total_cmp(&one.per_io.baseline.value));
        largest.truncate(if self.axes.is_empty() { most.min(UNCHANGED) } else { 1 });
        largest
    }

    /// What happens more or less often; empty without rounds that counted.
    fn events(&self) -> Vec<Block> {
        let pairs = self.having(|pair| !pair.events.is_empty());
        let rounds = self.explanation.counted_rounds;
        if pairs.is_empty() {
            return Vec::new();
        }
        if !pairs.iter().flat_map(|pair| pair.events).any(|event| event.per_io.detected || event.named) {
            let text = format!(
                "No change of what happens for an {} is detected in {rounds} rounds that counted it.",
                self.per
            );
            return vec![Block::new("", Body::Notes).with(vec![Note::remark(text)])];
        }
        let few = pairs.len() <= contents::FEW;
        let sentences = pairs.iter().filter(|_| few).filter_map(|pair| self.goes_along(pair)).collect();
        let row = |pair: &Pair, it: &EventChange| row(pair, it.name.clone(), meaning(&it.name), &it.per_io);
        let rows: Vec<Part> =
            pairs.iter().flat_map(|pair| self.shown_events(pair).map(|event| row(pair, event))).collect();
        let left = pairs.iter().map(|pair| pair.events.len()).sum::<usize>().saturating_sub(rows.len());
        let left = if left > 0 { format!("{left} more changed less or not detectably. ") } else { String::new() };
        let text = format!(
            "{left}Exact counts of the whole machine, net of the background. {} What goes along with the cost need not be its cause.",
            origin(rounds, "counted events", self.explanation.event_family, "events")
        );
        let title = format!("Events per {}", self.per);
        let table = self.table("event", "", COUNT, rows);
        let block = Block::new(title.clone(), Body::Table(table)).with(vec![Note::remark(text)]);
        let has_changed = |pair: &Pair| pair.events.iter().any(|event| event.per_io.detected);
        let sentences = Block::new("", Body::Notes).with(sentences);
        [vec![sentences], on_page_if_many(&title, &pairs, has_changed, block)].concat()
    }

    /// Those that changed, the largest change first, and beside them what the user named and what is frequent.
    fn shown_events(&self, pair: &Pair<'a>) -> impl Iterator<Item = &'a EventChange> + use<'a> {
        let frequent = |event: &EventChange| event.per_io.baseline.value.max(event.per_io.candidate.value) >= FREQUENT;
        let told = move |event: &&EventChange| event.per_io.detected || event.named || frequent(event);
        let named = pair.events.iter().filter(|event| event.named).count();
        pair.events.iter().filter(told).take(self.most(MOST).max(named))
    }

    /// "Cycles per I/O rise together with sched_switch +1.00 [0.98, 1.02] per I/O": both are detected, and neither need cause the other.
    fn goes_along(&self, pair: &Pair) -> Option<Note> {
        let rises = pair.rises?;
        let detected = pair.events.iter().filter(|event| event.per_io.detected);
        let (along, against): (Vec<&EventChange>, Vec<&EventChange>) =
            detected.partition(|event| (event.per_io.change.value > 0.0) == rises);
        let verb = if rises { "rise" } else { "fall" };
        let (told, how) = match along.is_empty() {
            true => (against, "while the other way goes"),
            false => (along, "together with"),
        };
        let size = |event: &EventChange| event.per_io.change.value.abs();
        let largest = size(told.first()?);
        let named = told.iter().filter(|event| size(event) >= NAMED_PART * largest).take(NAMED - 1).map(|event| {
            let scale = parts::scale(COUNT, &event.per_io.change);
            format!("{} {}", tied(&short(&event.name)), with_unit(scale, |scale| whole(scale, &event.per_io.change)))
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let text = format!("{}Cycles per {} {verb} {how} {named} per {}.", pair.place, self.per, self.per);
        Some(Note::new(Tone::Strong, text))
    }

    fn table(&self, what: &str, of: &str, units: Units, rows: Vec<Part>) -> Table {
        let (axes, costs, is_cost) = (self.axes.as_slice(), &self.arms, units == CYCLES);
        parts::table(Kind { axes, what, of, also: "", costs, units, scale: None, is_cost }, rows)
    }
}

fn row(pair: &Pair, name: String, of: &str, it: &PartChange) -> Part {
    let (place, of, change) = (pair.names.clone(), of.to_owned(), Some((it.change, it.detected)));
    Part { place, name, of, costs: vec![it.baseline, it.candidate], change, ..Part::default() }
}

/// "+160 [150, 170]".
fn whole(scale: Scale, change: &Estimate) -> String {
    tied(&format!("{} {}", signed(scale, change.value), interval(scale, change)))
}

/// "From 14 rounds that kept accounts, …": what figures come from, and which of their intervals hold together.
fn origin(rounds: usize, did: &str, family: Option<FamilyFinding>, what: &str) -> String {
    let together = family.map_or_else(String::new, |it| {
        let each = tied(&number::confidence(it.confidence));
        format!("; the intervals of the changes of all {} {what} hold together ({each} each)", it.comparisons)
    });
    format!("From {rounds} rounds that {did}, none of which is in the answer{together}.")
}

/// A block about pairs. Of many, only a page has it; elsewhere a note says in how many of them `what` it is about changed.
fn on_page_if_many(what: &str, pairs: &[&Pair], has_changed: impl Fn(&Pair) -> bool, block: Block) -> Vec<Block> {
    let (changed, all) = (pairs.iter().filter(|pair| has_changed(pair)).count(), pairs.len());
    if all <= contents::FEW {
        return vec![block];
    }
    let text = format!("{what} changed in {changed} of {all} cells; the page (report.html), JSON and CSV have them.");
    let elsewhere = Block::new("", Body::Notes).with(vec![Note::remark(text)]);
    vec![elsewhere.of(Audience::SCREEN.or(Audience::POST)), block.of(Audience::PAGE)]
}

/// "sched_switch", "system call pread64".
fn short(name: &str) -> String {
    match name.split_once(':') {
        Some((SYSTEM_CALLS, call)) => format!("system call {call}"),
        Some((_, tracepoint)) => tracepoint.to_owned(),
        None => name.to_owned(),
    }
}

/// Width is the arm's cost, colour the change.
fn graph(finding: &CompareFinding, cell: &CellFinding) -> Block {
    let calls = cell.cost.stacks.iter().map(|stack| Calls {
        calls: stack.calls.clone(),
        cost: stack.candidate,
        before: Some(stack.baseline),
    });
    let point = contents::point(finding, &cell.cell);
    let point = if point.is_empty() { point } else { format!(", {point}") };
    let graph = FlameGraph {
        title: format!("Cycles per I/O of {} by calls{point}", cell.arm),
        subtitle: Some(format!("red: more than {}, blue: less", contents::baseline(finding))),
        what: "cycles".to_owned(),
        calls: calls.collect(),
    };
    Block::new("Calls", Body::FlameGraph(graph)).of(Audience::PAGE)
}

/// Where the cycles of a packet go, and what the kernel does for it: of one point, or of each point beside the first one.
pub fn of_packets(finding: &BlastFinding) -> Vec<Block> {
    let Some((first, others)) = finding.points.split_first() else { return Vec::new() };
    let why = finding.explanation.events_reason.as_ref();
    let why = why.map(|why| Note::remark(format!("events per packet were not counted: {why}")));
    let why = Block::new("", Body::Notes).with(why.into_iter().collect());
    let ends = [unexplained(finding.explanation.unexplained.as_ref()), why];
    if others.is_empty() {
        let whole = first.cost.explained.map_or(f64::NAN, |explained| explained.candidate.value);
        let scale = Scale::of(CYCLES, whole);
        let row = |account: &AccountChange| Part {
            name: account.name.clone(),
            tone: Tone::Notice,
            costs: vec![account.per_io.candidate],
            share: Some(account.per_io.candidate.value / whole),
            ..Part::default()
        };
        let head = format!("{}/packet", scale.unit);
        let kind = Kind { costs: &[&head], ..parts::ACCOUNTS };
        let table = parts::table(Kind { scale: Some(scale), ..kind }, first.cost.accounts.iter().map(row).collect());
        let accounts = Block::new("Where the cycles of a packet go", Body::Table(table));
        let events = first.cost.events.iter().map(|event| (event.name.as_str(), event.per_io.candidate, event.named));
        let events = parts::events("per packet", "Events per packet".to_owned(), events.collect());
        return std::iter::once(accounts).chain(events).chain(ends).collect();
    }
    let first_name = short_name(first);
    let all = others.iter().map(|point| Pair {
        names: vec![Cell::from(short_name(point))],
        place: format!("{}, against {}: ", name(point), name(first)),
        explained: point.cost.explained,
        accounts: &point.cost.accounts,
        symbols: &[],
        events: &point.cost.events,
        rises: None,
    });
    let pairs = Pairs {
        all: all.collect(),
        axes: vec!["packets of"],
        arms: [&first_name, "here"],
        per: "packet",
        explanation: Explanation { account_family: None, event_family: None, ..finding.explanation.clone() },
    };
    [pairs.accounts(0), pairs.events(), ends.to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::blast::page::fixture as packets;
    use crate::compare::page::fixture as comparisons;
    use crate::cost::page::fixture as runs;
    use report::Ink;

    fn text(finding: &CompareFinding) -> String {
        Format::Table.render(finding, Ink::Plain, 120).replace('\u{a0}', " ")
    }

    #[test]
    fn what_did_not_change_is_one_line_unless_the_user_named_it() {
        let mut finding = comparisons::named("explained");
        finding.cells[0].cost.events.iter_mut().for_each(|event| event.per_io.detected = false);
        assert!(text(&finding).contains("\n  kmem:kmalloc "), "the user named it");
        finding.cells[0].cost.events.iter_mut().for_each(|event| event.named = false);
        let told = text(&finding);
        assert!(told.contains("No change of what happens for an I/O is detected in 13 rounds"), "{told}");
        assert!(!told.contains("Events per I/O") && !told.contains("together with"), "{told}");
    }

    /// Only where both are detected.
    #[test]
    fn the_cost_goes_along_with_events_that_change_in_its_direction() {
        let mut finding = comparisons::named("explained");
        assert!(
            text(&finding).contains("Cycles per I/O rise together with sched_switch +1.00 [0.98, 1.02], hrtimer_start")
        );
        for event in finding.cells[0].cost.events.iter_mut().take(2) {
            event.per_io.change = event.per_io.change.scaled(-1.0);
        }
        let against = text(&finding);
        assert!(against.contains("Cycles per I/O rise while the other way goes sched_switch -1.00"), "{against}");
        finding.cells[0].metrics.get_mut("cycles_per_io").unwrap().detected = false;
        assert!(!text(&finding).contains("Cycles per I/O rise"));
    }

    #[test]
    fn the_most_frequent_events_are_rows_and_noise_is_one_line() {
        let text = Format::Table.render(&runs::named("beside_a_compiler"), Ink::Plain, 100);
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
        let row: Vec<&str> = line("syscalls:pread64").split_whitespace().collect();
        assert_eq!(row, ["syscalls:pread64", "1.00", "[1.00,", "1.00]", "system", "call"]);
        assert!(line("net:net_dev_xmit").contains("≈ 0"), "the user named it");
        assert!(text.find("syscalls:pread64") < text.find("sched:sched_switch"), "the most frequent is first");
        assert!(!text.contains("timer:timer_start"), "noise");
        assert!(text.contains("not shown: 1 below 0.001 or not different from 0"), "{text}");
        assert!(text.contains("counting took up to 1.2 % of one CPU"), "{text}");
        let none = Format::Table.render(&runs::named("psync_4k"), Ink::Plain, 100);
        assert!(!none.contains("Events per I/O"), "{none}");
    }

    #[test]
    fn points_of_a_blast_stand_beside_the_first() {
        let mut finding = packets::named("explained");
        let text = |finding: &BlastFinding| Format::Table.render(finding, Ink::Plain, 120).replace('\u{a0}', " ");
        let several = text(&finding);
        let words: Vec<&str> =
            several.lines().find(|line| line.contains("syscalls:sendto")).unwrap().split_whitespace().collect();
        assert!(words.windows(3).any(|words| words == ["1.00", "0", "-1.00"]), "{several}");
        let words = several.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("From 5 rounds that counted events"), "{several}");
        finding.points.truncate(1);
        let one = text(&finding);
        assert!(one.contains("95 % interval") && one.contains("[0.98, 1.02]"), "{one}");
        finding.points[0].cost.events.clear();
        finding.explanation.events_reason = Some("no right".to_owned());
        assert!(text(&finding).contains("events per packet were not counted: no right"));
    }
}
