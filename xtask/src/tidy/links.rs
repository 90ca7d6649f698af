//! Relative links in Markdown resolve: to a file or folder of the tree, and after `#` to one of its headings.
//!
//! Links to other sites are not followed, so that the check needs no network.

use super::Breach;
use super::tree::{File, Tree};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};

/// The book's folder, and its table of contents.
const BOOK: &str = "docs/";
const CONTENTS: &str = "docs/SUMMARY.md";

/// A link or an image: its line, and its destination.
struct Link {
    line: usize,
    to: String,
}

/// Links and anchors of one file.
struct Page {
    links: Vec<Link>,
    anchors: BTreeSet<String>,
}

/// One breach for each link that does not resolve, and for each page that is missing in the book.
pub fn resolve(tree: &Tree) -> Vec<Breach> {
    let pages: BTreeMap<&str, Page> = documents(tree).map(|file| (file.path.as_str(), read(&file.text))).collect();
    let mut breaches = Vec::new();
    let mut listed = BTreeSet::from([CONTENTS.to_owned()]);
    for (path, page) in &pages {
        for link in &page.links {
            match destination(path, &link.to) {
                None => {}
                Some((to, anchor)) => {
                    breaches.extend(
                        wrong(tree, &pages, path, &to, &anchor)
                            .map(|why| Breach::new(path, link.line, format!("the link to `{}` {why}", link.to))),
                    );
                    if *path == CONTENTS {
                        listed.insert(to);
                    }
                }
            }
        }
    }
    if tree.file(CONTENTS).is_some() {
        let left_out = pages.keys().filter(|path| path.starts_with(BOOK) && !listed.contains(**path));
        let message = format!("is missing in {CONTENTS}, so the book does not contain it: add it there");
        breaches.extend(left_out.map(|path| Breach::new(path, 1, message.clone())));
    }
    breaches
}

fn documents(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.path.ends_with(".md"))
}

/// The destination's path from the root, and the anchor. `None` for a link to another site.
fn destination(from: &str, to: &str) -> Option<(String, String)> {
    let scheme = to.split([':', '/', '#']).next().filter(|_| !to.starts_with(['/', '#', '.']));
    if scheme.is_some_and(|scheme| to.get(scheme.len()..).is_some_and(|rest| rest.starts_with(':'))) {
        return None;
    }
    let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
    if path.is_empty() {
        return Some((from.to_owned(), anchor.to_owned()));
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some((parts.join("/"), anchor.to_owned()))
}

/// The error of a link and its fix, if it does not resolve.
fn wrong(tree: &Tree, pages: &BTreeMap<&str, Page>, from: &str, to: &str, anchor: &str) -> Option<String> {
    if !to.is_empty() && !tree.paths.contains(to) {
        return Some(format!("does not resolve: there is no `{to}`"));
    }
    if from.starts_with(BOOK) && !to.starts_with(BOOK) {
        return Some(format!("leaves the book, where `{to}` is missing: name the file without a link"));
    }
    let page = pages.get(to);
    let missing = !anchor.is_empty() && page.is_none_or(|page| !page.anchors.contains(anchor));
    missing.then(|| format!("does not resolve: `{to}` has no heading with the anchor `{anchor}`"))
}

fn read(text: &str) -> Page {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut page = Page { links: Vec::new(), anchors: BTreeSet::new() };
    let mut heading: Option<String> = None;
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = 1 + text.get(..range.start).map_or(0, |before| before.matches('\n').count());
                page.links.push(Link { line, to: dest_url.into_string() });
            }
            Event::Start(Tag::Heading { id, .. }) => {
                page.anchors.extend(id.map(|id| id.into_string()));
                heading = Some(String::new());
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let before = used.entry(anchor.clone()).or_default();
                page.anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
                *before += 1;
            }
            Event::Html(html) | Event::InlineHtml(html) => page.anchors.extend(named(&html)),
            _ => {}
        }
    }
    page
}

/// The anchor that GitHub and mdBook generate for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|letter| match letter {
        '-' | '_' => Some(letter),
        letter if letter.is_whitespace() => Some('-'),
        letter => letter.is_alphanumeric().then_some(letter),
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// Anchors in HTML.
fn named(html: &str) -> impl Iterator<Item = String> {
    html.split("id=\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github_and_mdbook() {
        let page =
            read("# What I/O costs\n## `--fail-on` limits\n## Twice\n## Twice\n## Named {#own}\n<a id=\"html\"></a>\n");
        let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["--fail-on-limits", "html", "named", "own", "twice", "twice-1", "what-io-costs"]);
    }

    #[test]
    fn a_link_is_relative_to_its_page_unless_it_names_a_site() {
        let to = |link| destination("docs/guide/a.md", link).map(|(path, anchor)| format!("{path}#{anchor}"));
        assert_eq!(to("b.md#c").unwrap(), "docs/guide/b.md#c");
        assert_eq!(to("../x/./y.svg").unwrap(), "docs/x/y.svg#");
        assert_eq!(to("../../README.md").unwrap(), "README.md#");
        assert_eq!(to("../../../etc").unwrap(), "../etc#");
        assert_eq!(to("#here").unwrap(), "docs/guide/a.md#here");
        assert_eq!(to("https://example.org/a.md"), None);
        assert_eq!(to("mailto:a@example.org"), None);
    }

    #[test]
    fn what_stands_in_code_is_no_link() {
        assert!(read("```\n[a](b.md)\n```\n`[a](b.md)`\n").links.is_empty());
        assert_eq!(read("\n[a\nb]\n\n[a\nb]: c.md\n").links.iter().map(|link| link.line).collect::<Vec<_>>(), [2]);
    }
}
