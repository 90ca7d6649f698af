//! The file as a browser parses it: balanced, escaped, and without external resources.

use crate::Finding;
use crate::compare::CompareFinding;
use crate::compare::page::fixture;
use crate::pages::tests::examples::{self, Example};
use report::html::{STYLE, timeline};
use std::sync::LazyLock;

/// The pages of all examples.
fn pages() -> &'static [(&'static str, String)] {
    static PAGES: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
        let page = |(name, finding): &'static Example| (name.as_str(), report::html::html(&finding.document()));
        examples::all().iter().map(page).collect()
    });
    &PAGES
}

fn html(finding: &CompareFinding) -> String {
    report::html::html(&finding.document())
}

/// Void elements.
const VOID: [&str; 1] = ["meta"];

/// The tags of a page in order: name, attributes, whether it is an end tag, whether it is empty. The scripts of a timeline
/// are the same in every page, and no tags.
fn tags(page: &str) -> Vec<(String, String, bool, bool)> {
    let body = page.replace(STYLE, "").replace(timeline::Means::ALL.style, "").replace(timeline::Means::ALL.script, "");
    let tags = body.split('<').skip(1).filter(|tag| !tag.starts_with('!'));
    tags.map(|tag| {
        let inside = tag.split('>').next().unwrap();
        let (ends, closed) = (inside.starts_with('/'), inside.ends_with('/'));
        let (name, attributes) = inside.trim_matches('/').split_once(' ').unwrap_or((inside.trim_matches('/'), ""));
        (name.to_owned(), attributes.to_owned(), ends, closed)
    })
    .collect()
}

/// The open elements at the first tag that does not match; `None` if balanced.
pub fn unbalanced(page: &str) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for (name, _, ends, closed) in tags(page) {
        if ends {
            match open.pop() {
                Some(last) if last == name => {}
                last => return Some(format!("</{name}> within {last:?}")),
            }
        } else if !closed && !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    (!open.is_empty()).then(|| format!("never closed: {open:?}"))
}

#[test]
fn every_page_is_balanced() {
    for (name, page) in pages() {
        assert_eq!(unbalanced(page), None, "{name}");
        assert!(page.ends_with("</html>\n"), "{name}");
    }
}

#[test]
fn nothing_is_fetched() {
    let fetching = ["src", "href", "data", "action", "srcset", "poster", "xlink:href", "background"];
    for (name, page) in pages() {
        for (tag, attributes, ends, _) in tags(page) {
            // A flame graph is a picture in the page itself.
            let picture = attributes.split(" src=\"").nth(1).is_some_and(|it| it.starts_with("data:image/svg+xml,"));
            if tag == "iframe" && (ends || (picture && attributes.starts_with("class=\"flame\""))) {
                assert!(attributes.matches("src").count() <= 1 && page.contains("frame-src data:;"), "{name}");
                continue;
            }
            let asked = attributes.split([' ', '"']).filter_map(|part| part.split_once('=').map(|(name, _)| name));
            let found: Vec<&str> = asked.filter(|asked| fetching.contains(asked) || asked.starts_with("on")).collect();
            assert_eq!(found, Vec::<&str>::new(), "{name}: <{tag} {attributes}>");
            let banned = ["script", "link", "iframe", "object", "embed", "img", "base"];
            // The data of a timeline are not run.
            let data = tag == "script" && attributes == "type=\"application/json\"";
            assert!(ends || data || !banned.contains(&tag.as_str()), "{name}: {tag}");
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
        assert!(page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn the_answer_is_the_first_heading() {
    let page = html(&fixture::named("options"));
    let heading = page.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap();
    assert!(heading.starts_with("candidate (bs=8k) costs 3.1\u{a0}%"), "{heading}");
    assert!(heading.ends_with("<span class=\"pill worse\">worse</span>"), "{heading}");
}

#[test]
fn charts_and_intervals_are_drawn() {
    let page = html(&fixture::named("options"));
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 2, "cycles, I/Os");
    let page = html(&fixture::named("sweep"));
    assert_eq!(
        page.split("Along the sweep").nth(1).unwrap().split("</section>").next().unwrap().matches("<svg").count(),
        4
    );
    assert_eq!(page.matches("<svg class=\"interval\"").count(), 54, "18 cells in three tables");
}

#[test]
fn a_run_is_drawn_over_time_with_its_regimes() {
    let drawn = |name| report::html::html(&crate::cost::page::fixture::named(name).document());
    let page = drawn("stepped");
    let part = page.split("<h2>Over time</h2>").nth(1).unwrap().split("</section>").next().unwrap();
    assert_eq!(part.matches("<svg class=\"chart\"").count(), 2, "I/Os per second, cycles per I/O");
    assert_eq!(part.matches("class=\"s zero\"").count(), 2, "where the rate stepped, in each");
    assert!(part.contains("another regime began") && page.contains("Two regimes, no single mean"), "{part}");
    assert!(!drawn("empty").contains("Over time"));
}

#[test]
fn a_stored_record_has_its_part() {
    let page = html(&fixture::named("stored"));
    let part = page.split("<h2>Against the stored baseline of 2025-05-03</h2>").nth(1).unwrap();
    let part = part.split("</section>").next().unwrap();
    assert!(part.contains("<dt>cycles/IO</dt>") && part.contains("environment</dd>"), "{part}");
    assert!(part.contains("kernel 6.9.1 → 6.18.44"), "{part}");
    assert!(!html(&fixture::named("options")).contains("Against the stored"));
}

#[test]
fn pages_stay_small() {
    for (name, page) in pages() {
        let size = page.len();
        // A timeline is some 60,000 readings of five series.
        let most = if page.contains("class=\"timeline\"") { 2_600_000 } else { 400_000 };
        assert!(size < most, "{name}: {size} bytes");
    }
}

#[test]
fn without_numbers_there_are_no_empty_parts() {
    let page = html(&fixture::named("empty"));
    assert!(!page.contains("Changes</h2>") && !page.contains("<svg") && !page.contains("Along the sweep"), "{page}");
    let page = html(&fixture::named("unmeasured"));
    assert!(page.contains("not compared: ") && page.contains("not enough samples"), "{page}");
}
