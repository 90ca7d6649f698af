//! A page of JSON keys: every object at every depth, with the type, unit and meaning of each key, from a JSON Schema.

use super::super::markdown::{Page, code, sentence};
use model::envelope::Kind;
use schemars::Schema;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

/// What null and costs mean.
const REASONS: &str = ", and a `reason` or a warning explains it. Costs are net of the machine's background unless the key ends in `_gross`";

/// Name and introduction of the page of a kind of records; without one, that of `history`.
fn introduced(kind: Option<Kind>) -> (&'static str, [String; 2]) {
    let (name, verb, more, meaning) = match kind {
        None => ("history", "history", "", REASONS),
        Some(Kind::Cost) => ("run", "run", "", REASONS),
        Some(Kind::Compare) => ("compare", "compare", "", REASONS),
        Some(Kind::Guest) => (
            "guest",
            "guest run",
            "",
            ". Instructions are those that an emulated CPU executes, neither cycles nor time",
        ),
        Some(Kind::Ftq) => {
            let more = " The series itself is in `series.csv` ([guide](../guide/ftq.md)).";
            ("ftq", "ftq", more, ". Amounts are in `unit`, bytes or steps")
        }
        Some(Kind::Blast) => {
            let meaning = ". Costs are net of the machine's background and per packet that the receiver counted";
            ("blast", "blast", "", meaning)
        }
    };
    let others = match kind {
        None => "",
        Some(Kind::Cost) => ", `iotoll cost --format json`, and `iotoll report --format json` of their records",
        Some(_) => ", and `iotoll report --format json` of its record",
    };
    let opening = format!(
        "`iotoll {verb} --format json`{others}. The JSON Schema is [{name}.schema.json]({name}.schema.json).{more}"
    );
    let rules = format!(
        "Keys are added, never renamed. `null` means unknown{meaning}. Numbers are JSON numbers in the unit of the column; a fraction of \
         0.031 is 3.1 %."
    );
    (name, [opening, rules])
}

/// A value of an enumeration.
pub struct Variant {
    /// Its JSON text.
    pub name: String,
    pub meaning: String,
}

/// An object or enumeration type, and the JSON paths at which it occurs.
struct Found<'a> {
    schema: &'a Value,
    places: Vec<String>,
}

/// The name of a page, also of its schema, and its text.
pub fn page(kind: Option<Kind>, schema: &Schema) -> (&'static str, String) {
    let document = Document { root: schema.as_value() };
    let (name, paragraphs) = introduced(kind);
    let also = if kind == Some(Kind::Cost) { " and cost" } else { "" };
    let mut page = Page::new(&format!("JSON of {name}{also}"));
    paragraphs.iter().for_each(|text| page.paragraph(text));
    page.section("The whole document");
    document.show_keys(&mut page, "", document.root);
    for (title, found) in document.types() {
        page.section(title);
        let meaning = text(found.schema, "description");
        page.paragraph(&sentence(meaning));
        page.paragraph(&format!("In {}.", places(&found.places)));
        if keys(found.schema).is_some() {
            document.show_keys(&mut page, title, found.schema);
        } else {
            let rows =
                variants(found.schema).into_iter().map(|variant| vec![code(&variant.name), sentence(&variant.meaning)]);
            page.table(&["Value", "Meaning"], rows);
        }
    }
    (name, page.finish())
}

/// The first few, and how many more.
fn places(places: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<_> = places.iter().take(SHOWN).map(|place| code(place)).collect();
    let more = places.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

/// The values of an enumeration: strings, and objects with one key.
pub fn variants(schema: &Value) -> Vec<Variant> {
    let named = |variant: &Value| {
        let meaning = text(variant, "description").to_owned();
        let name = match (variant.get("const"), keys(variant)) {
            (Some(word), _) => word.to_string(),
            (None, Some(keys)) => {
                let pairs: Vec<_> =
                    keys.iter().map(|(key, value)| format!("\"{key}\": {}", plain_type(value))).collect();
                format!("{{{}}}", pairs.join(", "))
            }
            (None, None) => plain_type(variant),
        };
        Variant { name, meaning }
    };
    let words = |variant: &Value| match all(variant, "enum") {
        Some(words) => words.iter().map(|word| Variant { name: word.to_string(), meaning: String::new() }).collect(),
        None => vec![named(variant)],
    };
    match all(schema, "oneOf").or_else(|| all(schema, "anyOf")) {
        Some(values) => values.iter().flat_map(words).collect(),
        None => words(schema),
    }
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn all<'a>(schema: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
    schema.get(key).and_then(Value::as_array)
}

fn keys(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The name of the type that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"))
}

/// The types of a schema that has `type`, without null.
fn kinds(schema: &Value) -> (Vec<&str>, bool) {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let null = kinds.contains(&"null");
    (kinds.into_iter().filter(|kind| *kind != "null").collect(), null)
}

/// A type in JSON notation, for a variant.
fn plain_type(schema: &Value) -> String {
    match (reference(schema), kinds(schema).0.as_slice()) {
        (Some(name), _) => name.to_owned(),
        (None, ["array"]) => format!("[{}]", schema.get("items").map_or_else(String::new, plain_type)),
        (None, kinds) => kinds.join(" or "),
    }
}

/// A root schema with its type definitions.
struct Document<'a> {
    root: &'a Value,
}

impl<'a> Document<'a> {
    fn defined(&self, name: &str) -> Option<&'a Value> {
        self.root.get("$defs").and_then(|types| types.get(name))
    }

    /// Whether a type has a section. Named numbers have none.
    fn has_section(&self, name: &str) -> bool {
        self.defined(name).is_some_and(|schema| {
            keys(schema).is_some() || !variants(schema).is_empty() && schema.get("oneOf").is_some()
        })
    }

    /// All types in use, in the order of their first occurrence, with all their paths.
    fn types(&self) -> Vec<(&'a str, Found<'a>)> {
        let mut order: Vec<&'a str> = Vec::new();
        let mut found: BTreeMap<&'a str, Found<'a>> = BTreeMap::new();
        let mut ahead: VecDeque<(String, &'a Value)> = VecDeque::from([(String::new(), self.root)]);
        while let Some((place, schema)) = ahead.pop_front() {
            let mut inner: Vec<(String, &'a Value)> = Vec::new();
            for (key, value) in keys(schema).into_iter().flatten() {
                inner.push((if place.is_empty() { key.clone() } else { format!("{place}.{key}") }, value));
            }
            inner.extend(within(&place, schema));
            for (place, value) in inner {
                let Some((name, defined)) = reference(value).and_then(|name| Some((name, self.defined(name)?))) else {
                    ahead.push_back((place, value));
                    continue;
                };
                if !self.has_section(name) {
                    continue;
                }
                let known = found.entry(name).or_insert_with(|| {
                    order.push(name);
                    Found { schema: defined, places: Vec::new() }
                });
                known.places.push(place.clone());
                ahead.push_back((place, defined));
            }
        }
        order.into_iter().filter_map(|name| Some((name, found.remove(name)?))).collect()
    }

    fn show_keys(&self, page: &mut Page, name: &str, schema: &Value) {
        let row = |(key, value): (&String, &Value)| {
            let is_required = all(schema, "required").into_iter().flatten().any(|name| name == key);
            let absent = if is_required { "" } else { "; absent when empty" };
            let mut meaning = text(value, "description");
            if meaning.is_empty() {
                let named = reference(value).and_then(|name| self.defined(name));
                meaning = named.map_or("", |schema| text(schema, "description"));
            }
            let unit = unit(name, key, &self.numeric(value)).unwrap_or_default().to_owned();
            vec![code(key), self.kind(value) + absent, unit, sentence(meaning)]
        };
        page.table(&["Key", "Type", "Unit", "Meaning"], keys(schema).into_iter().flatten().map(row));
    }

    /// The type of a value in words, with links to those that have a section.
    fn kind(&self, schema: &Value) -> String {
        if let Some(name) = reference(schema) {
            return match self.defined(name) {
                Some(_) if self.has_section(name) => format!("[{name}](#{})", name.to_lowercase()),
                Some(defined) => self.kind(defined),
                None => name.to_owned(),
            };
        }
        if let Some(any) = all(schema, "anyOf") {
            return any.iter().map(|one| self.kind(one)).collect::<Vec<_>>().join(" or ");
        }
        let (kinds, null) = kinds(schema);
        if let (Some(parts), false) = (all(schema, "prefixItems"), null) {
            return format!("[{}]", parts.iter().map(|one| self.kind(one)).collect::<Vec<_>>().join(", "));
        }
        let kinds = kinds.into_iter().map(|kind| match kind {
            "array" => match schema.get("items") {
                Some(items) => format!("list of {}", self.kind(items)),
                None => "list".to_owned(),
            },
            "object" => match value_of_map(schema) {
                Some(value) => format!("object, name to {}", self.kind(value)),
                None => "object".to_owned(),
            },
            "boolean" => "true or false".to_owned(),
            other => other.to_owned(),
        });
        let kinds: Vec<_> =
            kinds.chain((null || schema.get("type") == Some(&"null".into())).then(|| "null".to_owned())).collect();
        kinds.join(" or ")
    }

    /// The kind of number in a value: "number", "integer", or the name of a numeric type. Empty if there is none.
    fn numeric(&self, schema: &Value) -> String {
        if let Some(name) = reference(schema) {
            let number =
                self.defined(name).is_some_and(|defined| !self.numeric(defined).is_empty() && !self.has_section(name));
            // The key of an estimate names its unit.
            return if number || name == "Estimate" { name.to_owned() } else { String::new() };
        }
        if let Some(any) = all(schema, "anyOf") {
            return any.iter().map(|one| self.numeric(one)).find(|found| !found.is_empty()).unwrap_or_default();
        }
        match kinds(schema).0.first() {
            Some(kind @ (&"number" | &"integer")) => (*kind).to_owned(),
            Some(&"array") => schema.get("items").map_or_else(String::new, |items| self.numeric(items)),
            Some(&"object") => value_of_map(schema).map_or_else(String::new, |value| self.numeric(value)),
            _ => String::new(),
        }
    }
}

/// The schema of a map's values.
fn value_of_map(schema: &Value) -> Option<&Value> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let value = patterns.and_then(|patterns| patterns.values().next()).or_else(|| schema.get("additionalProperties"));
    value.filter(|value| value.is_object())
}

/// Schemas inside a schema that have no key: list items, map values, variants.
fn within<'a>(place: &str, schema: &'a Value) -> Vec<(String, &'a Value)> {
    let mut inner = Vec::new();
    inner.extend(schema.get("items").map(|items| (format!("{place}[]"), items)));
    inner.extend(value_of_map(schema).map(|value| (format!("{place}.NAME"), value)));
    for variants in ["oneOf", "anyOf", "prefixItems"] {
        inner.extend(all(schema, variants).into_iter().flatten().map(|one| (place.to_owned(), one)));
    }
    inner
}

/// Types with one unit for all keys, by the unit.
const TYPES: &str = "\
instructions per I/O: MoveFinding
cycles per I/O: SymbolChange StackChange
events per I/O: EventChange
ns: LatencyFinding Injected
I/Os or bytes per s: Rates
correlation coefficient: EventCorrelation
unit of the metric, or percent: SteadyState
percent: uint8PerDirection
bytes: PathSend PathReceive PathSegment
unit of the metric: MetricFinding AgainstStored Published
unit of the probe: ProbeFinding ProbeComparison BothArms
unit of the axis: CrossoverFinding
unit of its key: Estimate
unit of its series: Expected";

/// Parts of keys, by the unit. The first match determines the unit.
const PARTS: &str = "\
ratio: _ratio
events per I/O: events_per_io
ns: nanos_per_count _nanos _ns
packets per s: sent_per_second delivered_per_second errors_per_second
cycles per packet: cycles_per_packet
switches per packet: switches_per_packet
unit of the probe per packet: probes_per_packet
instructions per I/O: instructions_per_io repetitions_per_io
calls per I/O: calls_per_io
MiB: memory_mib
s since 1970: unix_seconds
s: seconds_needed _seconds seconds
GB/s: gigabytes_per_second
bytes per s: bytes_per_second
per s: switches_per_second
fraction: iops_change cycles_change per_io_change
Hz: hertz
cycles per byte: cycles_per_byte per_byte
cycles per I/O: cycles_per_io by_meter
switches per I/O: switches_per_io
I/Os per system call: per_crossing
I/Os per s: iops alone
TSC ticks: spin_cycles
cycles: cycles
percent, ns: percentiles
percent: percent
fraction: fraction share misfit mde80 half_width margin precision change contention coherency
0 to 1: p_value
bytes: bytes path_max_payload
CPUs: busy_cpus
CPU numbers: cpus_allowed
CPUs: cpus
I/Os: ios complete_m in_flight submit
submitters: peak oversubscribed
cycles per I/O: per_io
process ID: process";

/// Exceptions, as TYPE.KEY, by the unit.
const KEYS: &str = "\
fraction: DeviceZones.reset_frequency DeviceZones.reset_threshold Shape.center CarryingUnit.part
fraction: LatencyFinding.bucket_error_fraction MetricFinding.change MetricFinding.low MetricFinding.high
fraction: MetricFinding.mde80 Published.change UnpairedChange.low UnpairedChange.high Interval.low Interval.high
fraction: PlacementFinding.cpus PeerPlacement.cpus Periodic.depth Periodic.phase BothArms.change
bytes: RequestPlan.skip
its distribution's: Shape.parameter
unit of its series: Level.value Point.value
its `unit`: LimitFinding.found
count: CarryingUnit.number CarryingUnit.of FamilyFinding.comparisons MetricFinding.units
0 to 1: FamilyFinding.confidence MetricFinding.confidence MetricFinding.correlation MetricFinding.p_value
0 to 1: Periodic.false_alarm Label.false_alarm
0 to 0.9: PhaseFinding.correlation
packets: PointFinding.delivered
instructions per I/O: PointFinding.lowest PointFinding.highest FunctionFinding.change ChangeFinding.difference
percent, ns: LatencyFinding.percentiles
cycles per I/O: AccountFinding.low AccountFinding.high AccountChange.baseline AccountChange.candidate
cycles per I/O: ExplainedFinding.baseline ExplainedFinding.candidate
s: MetricFinding.seconds_to_decide ProbeFinding.lost_at_seconds PeriodChanges.appeared PeriodChanges.went
unit: FtqFinding.amount Noise.undisturbed_per_quantum
unit per s: FtqFinding.amount_per_second Level.amount_per_second
unit of the probe: Cause.count Label.during Label.elsewhere
ratio: Label.times_chance";

/// Identifiers and indices, which have no unit.
const NUMBERS: [&str; 8] = [
    "method_version",
    "seed",
    "round",
    "first_round",
    "last_round",
    "first_execution",
    "last_execution",
    "after_round",
];

/// The unit of the number at `key` in an object of type `name`. `kind` is the kind of number; an integer without a rule is a
/// count. `None` if there is no number, or no rule for it.
pub fn unit(name: &str, key: &str, kind: &str) -> Option<&'static str> {
    match kind {
        "" => return None,
        "Bytes" => return Some("bytes"),
        "Nanos" => return Some("ns"),
        _ if NUMBERS.contains(&key) => return Some(""),
        _ => {}
    }
    let exception = format!("{name}.{key}");
    let found = named(KEYS, |known| known == exception).or_else(|| named(TYPES, |known| known == name));
    found.or_else(|| named(PARTS, |part| key.contains(part))).or_else(|| (kind == "integer").then_some("count"))
}

/// The unit of the first line with a word that `is` it.
fn named(table: &'static str, is: impl Fn(&str) -> bool) -> Option<&'static str> {
    let lines = table.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(_, words)| words.split(' ').any(&is)).map(|(unit, _)| unit).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{KINDS, schema};
    use model::finding::RunFinding;

    fn every_key(schema: &Schema, check: impl Fn(&Document, &str, &str, &Value)) -> usize {
        let document = Document { root: schema.as_value() };
        let types = document.types();
        let all = std::iter::once((text(document.root, "title"), document.root))
            .chain(types.iter().map(|(name, found)| (*name, found.schema)));
        let mut count = 0;
        for (name, object) in all {
            for (key, value) in keys(object).into_iter().flatten() {
                check(&document, name, key, value);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn every_key_says_what_it_means_and_every_number_its_unit() {
        let (mut count, without) = (0, std::cell::RefCell::new(std::collections::BTreeSet::new()));
        let of_kinds = KINDS.iter().map(|row| (row.schema)());
        for schema in of_kinds.chain([schema::<model::history::HistoryFinding>()]) {
            count += every_key(&schema, |document, name, key, value| {
                let named = reference(value).and_then(|name| document.defined(name));
                let meaning =
                    text(value, "description").len() + named.map_or(0, |named| text(named, "description").len());
                assert!(meaning > 0, "{name} {key} has no comment");
                assert!(!document.kind(value).is_empty(), "{name} {key} has no type");
                let number = document.numeric(value);
                if !number.is_empty() && unit(name, key, &number).is_none() {
                    without.borrow_mut().insert(format!("{name} {key}"));
                }
            });
        }
        assert!(without.borrow().is_empty(), "without a unit: {without:?}");
        assert!(count > 300, "{count}");
    }

    #[test]
    fn a_page_has_the_keys_at_every_depth() {
        let page = page(Some(Kind::Cost), &schema::<RunFinding>()).1;
        assert!(page.contains("| `phases` | list of [PhaseFinding](#phasefinding) |"), "{page}");
        assert!(page.contains("| `cycles_per_io` | number or null | cycles per I/O |"), "{page}");
        assert!(
            page.contains("In `jobs[].latency_ns`, `merged_jobs[].latency_ns`, `jobs[].read.latency_ns`"),
            "{page}"
        );
        assert!(page.contains("| `p99` | number or null | ns |"), "{page}");
        assert!(page.contains("| `by_meter` | object, name to number or null | cycles per I/O |"), "{page}");
        assert!(page.contains("| `\"command_failed\"` |"), "{page}");
    }

    #[test]
    fn a_key_ends_in_its_unit_unless_its_type_has_one() {
        assert_eq!(unit("PhaseFinding", "cycles_per_io_low", "number"), Some("cycles per I/O"));
        assert_eq!(unit("LatencyFinding", "p50", "number"), Some("ns"));
        assert_eq!(unit("MetricFinding", "low", "number"), Some("fraction"));
        assert_eq!(unit("MetricFinding", "baseline", "number"), Some("unit of the metric"));
        assert_eq!(unit("JobFinding", "copies", "integer"), Some("count"));
        assert_eq!(unit("JobFinding", "name", ""), None);
        assert_eq!(unit("JobFinding", "weight", "number"), None);
    }
}
