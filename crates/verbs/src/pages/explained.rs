//! What explaining rounds found of two measurements: how the change of the cost divides into accounts and functions, and which events of
//! the kernel change with it. Of a comparison, and of a blast, whose points stand beside the first one.

use crate::pages::parts::{self, Kind, Part, interval, signed, with_unit};
use model::events::{SYSTEM_CALLS, meaning};
use model::explained::{
    AccountChange, EventChange, ExplainedFinding, Explanation, FamilyFinding, PartChange, SymbolChange,
};
use model::stats::Estimate;
use report::document::{Audience, Block, Body, Cell, Note, Table, Tone, tied};
use report::number::{self, COUNT, CYCLES, Scale, Units};
use report::phrase::shortened;

/// Maximum number of comparisons whose charts are expanded by default.
pub const FEW: usize = 3;

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
pub struct Pair<'a> {
    /// What names it in a table.
    pub names: Vec<Cell>,
    /// The same before a sentence, with a colon.
    pub place: String,
    pub explained: Option<ExplainedFinding>,
    pub accounts: &'a [AccountChange],
    pub symbols: &'a [SymbolChange],
    pub events: &'a [EventChange],
    /// Whether the cost rises or falls; `None` if neither is detected.
    pub rises: Option<bool>,
}

/// All pairs with one arm.
pub struct Pairs<'a> {
    pub all: Vec<Pair<'a>>,
    pub axes: Vec<&'a str>,
    pub arms: [&'a str; 2],
    /// What the cost is of: "I/O", "packet".
    pub per: &'a str,
    pub explanation: Explanation,
}

pub fn unexplained(why: Option<&String>) -> Block {
    let note = why.map(|why| Note::remark(format!("not divided into accounts: {why}")));
    Block::new("", Body::Notes).with(note.into_iter().collect())
}

impl<'a> Pairs<'a> {
    fn having(&self, holds: impl Fn(&Pair) -> bool) -> Vec<&Pair<'a>> {
        self.all.iter().filter(|pair| holds(pair)).collect()
    }

    fn most(&self, most: usize) -> usize {
        if self.axes.is_empty() { most } else { most.min(MOST_OF_EACH) }
    }

    /// Whose the change is; `rows` on one screen.
    pub fn accounts(&self, rows: usize) -> Vec<Block> {
        let pairs = self.having(|pair| pair.explained.is_some());
        let few = pairs.len() <= FEW;
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
    pub fn functions(&self, rows: usize) -> Vec<Block> {
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
    pub fn events(&self) -> Vec<Block> {
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
        let few = pairs.len() <= FEW;
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
    if all <= FEW {
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
