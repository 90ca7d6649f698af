//! A document as a self-contained HTML file: no network access, no font. Only a timeline has a script.
//!
//! Ordered by importance: the answer, the caveats, the numbers, the curves, the machine. One style sheet covers light, dark and
//! printed pages; every interval is both drawn and written.

mod axis;
mod chart;
mod table;
pub mod timeline;

use crate::document::{
    Audience, Block, Body, Calls, Chart, Document, Fact, Figure, FlameGraph, Fold, Note, PER, Section, Sentence, Tone,
    whole,
};
use crate::shell::is_hidden;
use inferno::flamegraph::{self, Options};
use model::origin::Input;

const READER: Audience = Audience::PAGE;

pub const STYLE: &str = include_str!("html/style.css");

pub fn html(document: &Document) -> String {
    let has = |wanted: fn(&Body) -> bool| {
        let mut blocks = document.sections.iter().flat_map(|section| section.seen_by(READER).1);
        blocks.any(|block| wanted(&block.body))
    };
    let timeline =
        if has(|body| matches!(body, Body::Timeline(_))) { timeline::Means::ALL } else { timeline::Means::default() };
    // A policy names each kind once.
    let policy = if has(|body| matches!(body, Body::FlameGraph(_))) { PICTURE_POLICY } else { timeline.policy };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'{}\">\n\
         <title>{}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n{}</body>\n</html>\n",
        policy,
        escape(&title(document)),
        timeline.style,
        contents(document),
        timeline.script,
    )
}

fn contents(document: &Document) -> String {
    let sections = document.sections.iter().map(|section| self::section(document, section));
    [head(document), caveats(document), sections.collect(), provenance(document)].concat()
}

fn title(document: &Document) -> String {
    let Document { title, kind, .. } = document;
    if title.is_empty() { kind.clone() } else { format!("{title} - {kind}") }
}

/// The answer, or the title if there is none, and the arms.
fn head(document: &Document) -> String {
    let Document { kind, title, began, headline, .. } = document;
    let named = if headline.is_empty() { None } else { Some(title) };
    let about = [Some(kind), named, began.as_ref()].into_iter().flatten().filter(|part| !part.is_empty());
    let about = about.cloned().collect::<Vec<_>>().join(" · ");
    let mut text = element("p", "about", &escape(&about)) + "\n";
    if headline.is_empty() {
        text += &element("h1", "", &escape(if title.is_empty() { kind } else { title }));
        text += &element("p", "answer", &escape(&document.lead));
    }
    let outcome = document.outcome.iter();
    text += &outcome
        .map(|note| element("p", &format!("outcome {}", class(note.tone)), &escape(&note.text)))
        .collect::<String>();
    for (place, sentence) in headline.iter().enumerate() {
        let detail = sentence.detail.as_ref().map(|detail| escape(detail));
        text += &match (place, detail) {
            (0, detail) => {
                let detail = detail.map(|detail| element("p", "answer", &detail)).unwrap_or_default();
                element("h1", "", &self::sentence(sentence)) + &detail
            }
            (_, detail) => {
                let detail = detail.map(|detail| format!("; {detail}")).unwrap_or_default();
                element("p", "answer", &(self::sentence(sentence) + &detail))
            }
        };
        text.push('\n');
    }
    let subjects = document.subjects.iter().enumerate().map(|(index, Fact { label, text, .. })| {
        format!("<li>{}<b>{}</b> <code>{}</code></li>\n", swatch(index), escape(label), escape(text))
    });
    let workload = document.workload_for(READER);
    let workload =
        workload.map(|fact| format!("<li><b>{}</b> <code>{}</code></li>\n", escape(&fact.label), escape(&fact.text)));
    let subjects: String = workload.chain(subjects).collect();
    let subjects = if subjects.is_empty() { subjects } else { element("ul", "subjects", &subjects) };
    format!("<header>\n{text}{subjects}</header>\n")
}

/// The class of a subject's colour. There are six; further subjects repeat them.
fn subject(index: usize) -> String {
    format!("subject{}", index % 6)
}

fn swatch(index: usize) -> String {
    format!("<i class=\"swatch {}\"></i>", subject(index))
}

/// The text, and its verdict on a coloured background.
fn sentence(sentence: &Sentence) -> String {
    let text = escape(&sentence.text);
    match &sentence.verdict {
        Some(verdict) => format!("{text} {}", pill(verdict)),
        None => text,
    }
}

fn caveats(document: &Document) -> String {
    let lines = document.gravest_first().into_iter().map(|caveat| format!("<li>{}</li>\n", escape(&caveat.message)));
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("<aside>\n<h2>Caveats</h2>\n<ul>\n{lines}</ul>\n</aside>\n") }
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Own => "better",
        Tone::Bad => "worse",
        Tone::Notice => "unsure",
        Tone::Strong => "strong",
        Tone::Plain | Tone::Faint => "same",
    }
}

/// A word on a coloured background.
fn pill(note: &Note) -> String {
    element("span", &format!("pill {}", class(note.tone)), &escape(&note.text))
}

/// A section with its title or, if it has none, that of its first block. Figures have no card around them.
fn section(document: &Document, section: &Section) -> String {
    let (title, blocks) = section.seen_by(READER);
    let Some(first) = blocks.first() else { return String::new() };
    let title = if title.is_empty() && first.fold.is_none() { &first.title } else { title };
    let mut inside = String::new();
    for group in blocks.chunk_by(|one, other| one.fold == other.fold) {
        let blocks: String = group.iter().map(|block| self::block(document, block, title)).collect();
        inside += &match group.first().and_then(|block| block.fold.as_ref()) {
            Some(fold) => folded(fold, &blocks),
            None => blocks,
        };
    }
    let bare = blocks.iter().any(|block| matches!(block.body, Body::Figures(_)));
    part(if bare { " class=\"bare\"" } else { "" }, title, &inside)
}

/// A part of the page with its heading; empty without contents.
fn part(class: &str, heading: &str, inside: &str) -> String {
    let heading = if heading.is_empty() { String::new() } else { element("h2", "", &escape(heading)) };
    if inside.is_empty() { String::new() } else { format!("<section{class}>\n{heading}{inside}\n</section>\n") }
}

/// Contents that the reader can expand.
fn folded(Fold { summary, open }: &Fold, inside: &str) -> String {
    let open = if *open { " open" } else { "" };
    if inside.is_empty() {
        return String::new();
    }
    format!("<details{open}>\n<summary>{}</summary>\n{inside}\n</details>\n", escape(summary))
}

/// A block. Its title is omitted if it is the section's heading.
fn block(document: &Document, block: &Block, heading: &str) -> String {
    let title = if block.title == heading { "" } else { block.title.as_str() };
    let body = match &block.body {
        Body::Notes => String::new(),
        Body::Figures(lines) => lines.iter().map(|line| figures(line)).collect(),
        Body::Facts(facts) => self::facts(title, facts),
        Body::Table(table) => table::table(title, table),
        Body::Charts(charts) => self::charts(document, charts),
        Body::Timeline(timeline) => timeline::timeline(timeline),
        Body::FlameGraph(graph) => flame_graph(graph),
    };
    let notes =
        block.notes.iter().map(|note| element("p", &format!("note {}", class(note.tone)), &escape(&note.text)) + "\n");
    body + &notes.collect::<String>()
}

/// Charts below the names of their subjects, in their colours.
fn charts(document: &Document, charts: &[Chart]) -> String {
    let figures: String = charts.iter().map(chart::figure).collect();
    if figures.is_empty() {
        return figures;
    }
    let drawn = |subject| charts.iter().flat_map(|chart| &chart.series).any(|series| series.subject == subject);
    let names = document.subjects.iter().enumerate().filter(|(index, _)| drawn(*index));
    let names: String =
        names.map(|(index, fact)| format!("<span>{}{}</span>", swatch(index), escape(&fact.label))).collect();
    let legend = if names.is_empty() { names } else { element("p", "legend", &names) + "\n" };
    legend + &element("div", "charts", &figures) + "\n"
}

/// An addition to the content security policy, which the picture of a flame graph inherits. Everything in it is of iotoll or inferno, or escaped.
const PICTURE_POLICY: &str = "; frame-src data:; script-src 'unsafe-inline'";

fn flame_graph(graph: &FlameGraph) -> String {
    let Some(svg) = svg(graph) else { return String::new() };
    // inferno leaves out calls that are too narrow to be seen, so only it knows the height.
    let height = svg.split_once("height=\"").and_then(|(_, rest)| rest.split('"').next()?.parse::<f64>().ok());
    let frame = format!(
        "<iframe class=\"flame\" title=\"{}\" style=\"height:{}px\" src=\"data:image/svg+xml,{}\"></iframe>",
        escape(&graph.title),
        height.unwrap_or(600.0),
        in_address(&svg)
    );
    element("div", "flame", &frame) + "\n"
}

/// The graph as an SVG file that can be searched and zoomed without a network; `None` if nothing can be drawn.
fn svg(graph: &FlameGraph) -> Option<String> {
    let line = |Calls { calls, cost, before }: &Calls| match before {
        Some(before) => format!("{calls} {} {}", whole(*before), whole(*cost)),
        None => format!("{calls} {}", whole(*cost)),
    };
    let lines: Vec<String> = graph.calls.iter().map(line).collect();
    let mut options = Options::default();
    options.title = graph.title.clone();
    options.subtitle = graph.subtitle.clone();
    options.count_name = format!("{} per {PER:.0} I/Os", graph.what);
    options.deterministic = true;
    options.no_sort = false;
    // As wide as there is room.
    options.image_width = None;
    let mut text = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut text).ok()?;
    String::from_utf8(text).ok()
}

/// Text as a part of an address: what ends an attribute or begins a fragment is written in hexadecimal digits.
fn in_address(text: &str) -> String {
    let mut address = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        match byte {
            b'%' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'&' | b'\\' | 0..=b' ' | 127.. => {
                address += &format!("%{byte:02X}");
            }
            _ => address.push(char::from(byte)),
        }
    }
    address
}

/// Labels with their texts.
fn facts<'a>(title: &str, facts: impl IntoIterator<Item = &'a Fact>) -> String {
    let row = |fact: &Fact| {
        let mark = fact.mark.zip(fact.letter());
        let mark = mark.map(|(tone, mark)| element("b", &format!("mark {}", class(tone)), &escape(&mark.to_string())));
        format!("<dt>{}{}</dt><dd>{}</dd>\n", mark.unwrap_or_default(), escape(&fact.label), escape(&fact.text))
    };
    let rows: String = facts.into_iter().map(row).collect();
    let title = if title.is_empty() { String::new() } else { element("h3", "", &escape(title)) };
    if rows.is_empty() { rows } else { format!("{title}<dl>\n{rows}</dl>\n") }
}

/// A tile for each figure with an answer; the others form a line of text.
fn figures(line: &[Figure]) -> String {
    let (others, answers): (Vec<&Figure>, Vec<&Figure>) = line.iter().partition(|figure| figure.tone == Tone::Plain);
    let tiles: String = answers.into_iter().map(tile).collect();
    let others: String = others.into_iter().map(|figure| element("span", "", &escape(&figure.value))).collect();
    let all = [("div", "tiles", tiles), ("p", "beside", others)].into_iter().filter(|(.., inside)| !inside.is_empty());
    all.map(|(tag, class, inside)| element(tag, class, &inside) + "\n").collect()
}

/// A longer value, such as a range, has smaller letters.
const LONG_VALUE: usize = 10;

/// A value in large letters, with a long unit in small ones.
fn big(value: &str) -> String {
    let class = if value.chars().count() > LONG_VALUE { "big long" } else { "big" };
    let value = match value.split_once(' ') {
        Some((number, unit)) if unit.chars().count() > 2 => escape(number) + " " + &element("small", "", &escape(unit)),
        _ => escape(value),
    };
    if value.is_empty() { value } else { element("p", class, &value) }
}

fn tile(figure: &Figure) -> String {
    let text = |class: &str, text: String| if text.is_empty() { text } else { element("p", class, &escape(&text)) };
    let interval = figure.interval.as_ref().map(|interval| format!("95 % {interval}")).unwrap_or_default();
    let inside = text("what", figure.what.clone()) + &big(&figure.value) + &text("ends", interval);
    element("div", &format!("tile {}", class(figure.tone)), &inside)
}

fn provenance(document: &Document) -> String {
    let mut text = facts("", document.provenance_for(READER));
    if !document.command.is_empty() {
        text += &element("pre", "", &escape(&document.command.line()));
    }
    text += &document.command.inputs.iter().map(file).collect::<String>();
    part("", "How it was measured", &text)
}

/// Files with more lines are folded.
const LONG_FILE: usize = 40;

/// A file that the command refers to.
fn file(input: &Input) -> String {
    let Some(text) = &input.text else {
        return element("p", "note", &escape(&format!("{}: too long to be kept", input.name)));
    };
    let fold = Fold { summary: input.name.clone(), open: text.lines().count() <= LONG_FILE };
    // Line by line, because a line end is a control character, too.
    let lines: Vec<String> = text.lines().map(escape).collect();
    folded(&fold, &element("pre", "", &lines.join("\n")))
}

/// `text` without markup, on one line.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ if letter.is_control() || is_hidden(letter) => escaped.push(' '),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// An element with a class around markup.
pub fn element(tag: &str, class: &str, inside: &str) -> String {
    if class.trim().is_empty() {
        format!("<{tag}>{inside}</{tag}>")
    } else {
        format!("<{tag} class=\"{class}\">{inside}</{tag}>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            escape("<a href=\"x\" onclick='y'>&\u{1b}\n\u{202e}"),
            "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;   "
        );
    }

    fn graph(calls: &str) -> FlameGraph {
        let calls = vec![Calls { calls: calls.to_owned(), cost: 5.0, before: None }];
        FlameGraph { title: "<b>".to_owned(), subtitle: None, what: "cycles".to_owned(), calls }
    }

    #[test]
    fn names_cannot_leave_the_picture() {
        let drawn = flame_graph(&graph("a;\"><script>x</script>"));
        assert!(drawn.contains("title=\"&lt;b&gt;\""), "{drawn}");
        assert!(!drawn.contains("<script") && !drawn.contains("\"><script"), "{drawn}");
        assert_eq!(drawn.matches('"').count(), 10, "{drawn}");
        assert_eq!(in_address("a b<'\u{e9}#"), "a%20b%3C%27%C3%A9%23");
    }

    #[test]
    fn without_calls_nothing_is_drawn_and_costs_whose_sum_would_not_fit_are() {
        assert_eq!(flame_graph(&FlameGraph::default()), "");
        let large = |calls: &str| Calls { calls: calls.to_owned(), cost: 1.1e16, before: None };
        assert_ne!(flame_graph(&FlameGraph { calls: ["a", "b"].map(large).to_vec(), ..FlameGraph::default() }), "");
    }
}
