//! The formats of a report, one row of the table each.

use crate::Finding;
use model::finding::RunFinding;
use model::fio_report::Bins;
use report::document::Document;
use report::text::Ink;
use report::{csv, fio, html, mail, markdown, text};

/// File name of the HTML report beside a record.
pub const PAGE: &str = "report.html";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text for a terminal.
    Table,
    /// All numbers, for scripts.
    Json,
    /// Plain text in 72 columns, to paste into a patch thread.
    Mail,
    /// GitHub-flavoured Markdown, for a pull request or an issue.
    Markdown,
    /// Each value of the JSON in a row, for a spreadsheet.
    Csv,
    /// One file for a browser, with charts and without network access.
    Html,
    /// A run in the structure of fio's JSON.
    FioJson,
    /// The same with the distribution of latencies.
    FioJsonPlus,
    /// A run as fio's lines of fields between semicolons.
    Terse,
}

enum Render {
    /// From its document. Only the terminal format uses ink and width.
    Document(fn(&Document, Ink, usize) -> String),
    /// From its JSON.
    Numbers(fn(String) -> String),
    /// In a format of fio, which only a run has.
    Fio(fn(&RunFinding) -> String),
}

struct Row {
    format: Format,
    name: &'static str,
    render: Render,
}

/// In the order in which help lists them.
static TABLE: [Row; 9] = [
    Row { format: Format::Table, name: "table", render: Render::Document(text::terminal) },
    Row { format: Format::Json, name: "json", render: Render::Numbers(|json| json) },
    Row { format: Format::Mail, name: "mail", render: Render::Document(|document, _, _| mail::mail(document)) },
    Row {
        format: Format::Markdown,
        name: "markdown",
        render: Render::Document(|document, _, _| markdown::markdown(document)),
    },
    Row { format: Format::Csv, name: "csv", render: Render::Numbers(|json| csv::csv(&json)) },
    Row { format: Format::Html, name: "html", render: Render::Document(|document, _, _| html::html(document)) },
    Row { format: Format::FioJson, name: "fio-json", render: Render::Fio(|run| fio::json(run, Bins::Without)) },
    Row { format: Format::FioJsonPlus, name: "fio-json+", render: Render::Fio(|run| fio::json(run, Bins::With)) },
    Row { format: Format::Terse, name: "terse", render: Render::Fio(fio::terse) },
];

impl Format {
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.format)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// A finding in this format.
    pub fn render(self, finding: &dyn Finding, ink: Ink, columns: usize) -> String {
        match (&self.row().render, finding.own_run()) {
            (Render::Document(render), _) => render(&finding.document(), ink, columns),
            (Render::Fio(render), Some(run)) => render(run),
            (Render::Numbers(render), _) => render(finding.json()),
            // The binary refuses fio's formats of anything else.
            (Render::Fio(_), None) => finding.json(),
        }
    }

    /// Whether it is one of fio's, in which only a run of iotoll's own engines can be shown.
    pub fn is_of_fio(self) -> bool {
        matches!(self.row().render, Render::Fio(_))
    }

    fn row(self) -> &'static Row {
        // Unreachable fallback: a test checks that every format has a row.
        let [first, ..] = &TABLE;
        TABLE.iter().find(|row| row.format == self).unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::page::fixture;
    use crate::pages::tests::examples;
    use crate::pages::tests::fits_closely;
    use model::warning::{Code, Warning};
    use report::document::{Audience, Block, Body, Fact, Section, Sentence};
    use report::text::width;
    use std::collections::BTreeMap;

    #[test]
    fn every_format_has_its_row() {
        let own = [Format::Table, Format::Json, Format::Mail, Format::Markdown, Format::Csv, Format::Html];
        for format in own.into_iter().chain([Format::FioJson, Format::FioJsonPlus, Format::Terse]) {
            assert_eq!(format.row().format, format);
            assert_eq!(format.is_of_fio(), !own.contains(&format));
        }
        let names: Vec<&str> = Format::all().map(Format::name).collect();
        assert_eq!(names, ["table", "json", "mail", "markdown", "csv", "html", "fio-json", "fio-json+", "terse"]);
    }

    /// Formats, columns, and the findings whose texts are in `snapshots`, as they are read, mailed and posted.
    const SHOWN: [(&str, usize, &str); 6] = [
        ("glance", 100, "cost_udp_like cost_two_phases cost_profiled compare_explained compare_options"),
        (
            "table",
            80,
            "cost_udp_like compare_options compare_sweep compare_inconclusive compare_identical compare_unmeasured compare_three_arms \
             compare_probed compare_explained compare_stored compare_stored_sweep compare_empty guest_one \
             guest_two_kernels guest_ten_jobs guest_sweep guest_sizes guest_interrupted guest_single_replicate guest_empty \
             ftq_dirty_limit ftq_quiet ftq_compared ftq_interrupted ftq_cpu ftq_many_periods ftq_empty blast_one blast_lossy blast_empty",
        ),
        (
            "table",
            100,
            "cost_psync_4k cost_cost_without_ios cost_profiled cost_two_phases cost_meters_unavailable cost_failed cost_many_jobs \
             cost_no_interval cost_stored compare_explained_sweep blast_curve blast_explained doctor experiment",
        ),
        ("table", 120, "compare_options compare_sweep guest_ten_jobs ftq_dirty_limit blast_methods"),
        (
            "mail",
            72,
            "cost_udp_like compare_options compare_sweep compare_stored ftq_dirty_limit guest_two_kernels blast_lossy",
        ),
        ("markdown", 72, "cost_udp_like compare_options compare_sweep compare_stored ftq_dirty_limit"),
    ];

    #[test]
    fn findings_as_they_are_read() {
        let findings: BTreeMap<&str, &dyn Finding> =
            examples::all().iter().map(|(name, finding)| (name.as_str(), &**finding as _)).collect();
        for (format, columns, names) in SHOWN {
            for name in names.split(' ') {
                let text = match Format::all().find(|known| known.name() == format) {
                    Some(format) => format.render(findings[name], Ink::Plain, columns),
                    None => text::glance(&findings[name].document(), Ink::Plain, columns, "The rest: --full"),
                };
                insta::assert_snapshot!(format!("{name}_as_{format}_at_{columns}"), text);
            }
        }
    }

    #[test]
    fn one_screen_of_every_kind_is_shorter_and_says_where_the_rest_is() {
        for (name, finding) in examples::measured() {
            for columns in [60, 80, 200, 100] {
                let glance = text::glance(&finding.document(), Ink::Plain, columns, "The rest: --full");
                let all = Format::Table.render(&**finding, Ink::Plain, columns);
                assert_eq!(fits_closely(&glance, columns), Ok(()), "{name}");
                assert!(!glance.contains("\n\n\n"), "{name}: {glance}");
                assert!(glance.ends_with("The rest: --full\n") && !glance.contains("Made by"), "{name}: {glance}");
                assert!(glance.lines().count() < all.lines().count() && all.contains("Made by"), "{name}: {glance}");
            }
        }
    }

    #[test]
    fn every_kind_fits_every_page_and_colour_moves_nothing() {
        for (name, finding) in examples::all() {
            for columns in [60, 72, 80, 100, 120, 200] {
                let [plain, coloured] =
                    [Ink::Plain, Ink::Colour].map(|ink| Format::Table.render(&**finding, ink, columns));
                assert_eq!(fits_closely(&plain, columns), Ok(()), "{name}");
                let widths = |text: &str| text.lines().map(width).collect::<Vec<_>>();
                assert_eq!(widths(&plain), widths(&coloured), "{name}");
                assert!(!plain.contains('\u{1b}'), "{name}");
            }
        }
    }

    /// README says that they are read first.
    #[test]
    fn caveats_precede_the_figures_in_every_format_and_the_gravest_is_first() {
        for (name, finding) in examples::measured() {
            let mut document = finding.document();
            let figures = Body::Facts(vec![Fact::new("FIGURE", "1")]);
            document.sections.insert(0, Section::new("", vec![Block::new("", figures)]));
            document.caveats =
                vec![Warning::new(Code::StoredMethodDiffers, "MILDER"), Warning::new(Code::CommandFailed, "GRAVER")];
            for row in &TABLE {
                let Render::Document(render) = row.render else { continue };
                let text = render(&document, Ink::Plain, 100);
                let places = ["GRAVER", "MILDER", "FIGURE"].map(|word| text.find(word));
                assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{name} as {}: {text}", row.name);
            }
        }
    }

    /// Sentences of five words and more in what a reader sees.
    fn sentences(document: &Document, reader: Audience) -> Vec<String> {
        let mut texts: Vec<String> = document.headline.iter().map(Sentence::whole).collect();
        texts.extend(document.outcome.iter().map(|note| note.text.clone()));
        texts.extend(document.gravest_first().into_iter().map(|caveat| caveat.message.clone()));
        texts.extend(document.provenance_for(reader).map(|fact| fact.text.clone()));
        for block in document.sections.iter().flat_map(|section| section.seen_by(reader).1) {
            texts.extend(block.notes.iter().map(|note| note.text.clone()));
            if let Body::Facts(facts) = &block.body {
                texts.extend(facts.iter().map(|fact| fact.text.clone()));
            }
        }
        let texts = texts.iter().flat_map(|text| text.split(". ").flat_map(|text| text.split("; ")));
        let texts = texts.map(|text| text.trim_end_matches('.').to_lowercase());
        texts.filter(|text| text.split_whitespace().count() >= 5).collect()
    }

    /// Phases, points and boots of the fixtures have the same figures.
    #[test]
    fn no_sentence_is_twice_in_a_report() {
        let is_apart =
            |name: &str| !["two_phases", "hostile", "sweep", "points", "sizes"].iter().any(|of| name.contains(of));
        for (name, finding) in examples::measured().iter().filter(|(name, _)| is_apart(name)) {
            let document = finding.document();
            for reader in [Audience::GLANCE, Audience::SCREEN, Audience::POST, Audience::PAGE] {
                let mut all = sentences(&document, reader);
                all.sort();
                let twice: Vec<&String> =
                    all.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
                assert!(twice.is_empty(), "{name}: {twice:?}");
            }
        }
    }

    /// The numbers that a word of direction follows: "3.1" of "3.1 % [2.6, 3.7] more".
    fn directed(text: &str) -> Vec<String> {
        const WORDS: [&str; 6] = [" more ", " fewer ", " less ", " faster ", " slower ", " longer "];
        let text = text.replace(['\u{a0}', '\n'], " ");
        let before = |place: usize| {
            let number = text.get(..place)?.trim_end();
            let number = if number.ends_with(']') { number.rsplit_once('[')?.0.trim_end() } else { number };
            number.strip_suffix('%')?.trim_end().rsplit(' ').next().map(str::to_owned)
        };
        WORDS.iter().flat_map(|word| text.match_indices(word)).filter_map(|(place, _)| before(place)).collect()
    }

    #[test]
    fn every_format_renders_every_kind_and_no_sentence_has_both_a_sign_and_a_direction() {
        assert_eq!(directed("it is -75.2 % faster and 3.1 % [2.6, 3.7] more work"), ["3.1", "-75.2"]);
        let mut found = 0;
        let mut check = |name: &str, text: &str| {
            for number in directed(text) {
                found += 1;
                // A missing number is a dash.
                let signed =
                    number.starts_with(['+', '-', '−']) && number.contains(|letter: char| letter.is_ascii_digit());
                assert!(!signed, "{name}: {number} in\n{text}");
            }
        };
        for (_, mut finding) in fixture::all().into_iter().filter(|(name, _)| !name.starts_with("hostile")) {
            // Also a verdict whose interval is on both sides of 0.
            for metric in finding.cells.iter_mut().flat_map(|cell| cell.metrics.values_mut()) {
                metric.verdict = model::stats::Verdict::BetterMaybeSmall;
                (metric.change, metric.low, metric.high) = (Some(-0.031), Some(-0.065), Some(0.003));
            }
            // Of a comparison, fio's formats are its JSON again.
            let formats = Format::all().filter(|format| !format.is_of_fio());
            formats.for_each(|format| check(format.name(), &format.render(&finding, Ink::Plain, 200)));
        }
        for (name, finding) in examples::all() {
            for format in Format::all() {
                let text = format.render(&**finding, Ink::Plain, 200);
                // A line for each job.
                let no_line = format == Format::Terse && finding.own_run().is_some_and(|run| run.jobs.is_empty());
                assert!(no_line || text.ends_with('\n') && text.len() > 1, "{name} as {}", format.name());
                if !["cost", "ftq", "doctor", "experiment", "history"].iter().any(|kind| name.starts_with(kind)) {
                    check(name, &text);
                }
            }
        }
        assert!(found > 0);
    }
}
