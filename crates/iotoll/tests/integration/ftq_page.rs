//! The page of a long recording in a browser: 61,000 readings of five series, drawn at once, zoomed, with tracks hidden.

use super::browser::{Browser, CHROMIUM};
use super::iotoll::{Folder, eventually};
use super::machine::{has, skip};
use model::envelope::{Envelope, Kind};
use model::ftq::record::{Chunk, End, FtqPlan, Header, QUANTUM};
use model::probe::{self, Descriptor, Scope};
use model::record::Host;
use model::unit::Nanos;
use serde_json::json;
use std::fmt::Write;

/// Readings of the record: 27 s of quanta of 440 µs.
const READINGS: u64 = 61_364;
/// Readings of a line of the record.
const CHUNK: usize = 1024;
/// From the start of the navigation until everything is drawn.
const DRAWN_WITHIN_MS: f64 = 1000.0;
/// CPU time of the page's thread for the same.
const WORK_SECONDS: f64 = 1.0;
/// Attempts to be fast on a machine that also does other things.
const ATTEMPTS: usize = 3;

/// A writer that stops for 180 ms every 5 s, with four probes.
fn record() -> String {
    let probe = |name: &str, unit: &str, kind| Descriptor {
        name: name.to_owned(),
        meaning: format!("a made-up {name}"),
        unit: unit.to_owned(),
        kind,
        scope: Scope::Machine,
    };
    let header = Header {
        plan: FtqPlan { quantum: QUANTUM, duration: Nanos(READINGS * QUANTUM.0), ..FtqPlan::default() },
        host: Host { cpus: 2, tsc_hertz: 2.6e9, ..Host::default() },
        worker: "a made-up writer".to_owned(),
        unit: "bytes".to_owned(),
        probes: vec![
            probe("dirty", "pages", probe::Kind::Gauge),
            probe("writeback", "pages", probe::Kind::Gauge),
            probe("sleeps", "sleeps", probe::Kind::Counter),
            probe("net.ib0.tx_bytes", "bytes", probe::Kind::Counter),
        ],
        ..Header::default()
    };
    let envelope = Envelope::new(Kind::Ftq, 1.7956e9, vec!["iotoll".to_owned(), "ftq".to_owned()]);
    let mut lines = format!("{}\n{}\n", json!({"envelope": envelope}), json!({"header": header}));
    let (mut amount, mut sleeps, mut sent) = (0, 0.0, 0.0);
    let mut chunk = Chunk { probes: vec![Vec::new(); 4], ..Chunk::default() };
    for reading in 0..READINGS {
        // Every 5 s, 11,363 quanta; the stall is 409 of them.
        let (place, noise) = (reading % 11_363, reading.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
        let stalled = place < 409;
        amount += if stalled { 0 } else { 262_144 - 4096 * (noise % 7) };
        sleeps += if stalled && noise % 5 == 0 { 1.0 } else { 0.0 };
        sent += if place < 1000 { 90_000.0 + (noise % 90_000) as f64 } else { 0.0 };
        chunk.at.push(Nanos(reading * QUANTUM.0 + noise % 900));
        chunk.amount.push(amount);
        let dirty = if place < 1000 { 41_000 - 40 * place } else { 1000 + place * 4 - 4000 };
        let values = [dirty as f64, if place < 1000 { 12_800.0 } else { 0.0 }, sleeps, sent];
        chunk.probes.iter_mut().zip(values).for_each(|(column, value)| column.push(Some(value)));
        if chunk.at.len() == CHUNK || reading + 1 == READINGS {
            let full = std::mem::replace(&mut chunk, Chunk { probes: vec![Vec::new(); 4], ..Chunk::default() });
            writeln!(lines, "{}", json!({"chunk": full})).unwrap();
        }
    }
    writeln!(lines, "{}", json!({"end": End::default()})).unwrap();
    lines
}

/// The page of the record, in a folder.
fn page() -> Folder {
    let folder = Folder::new();
    folder.write("record.jsonl", record());
    let ended = folder.iotoll("report record.jsonl --format html").run().done();
    folder.write("page.html", ended.stdout);
    folder
}

/// A browser, or `None` and a skip if none starts here. It is in the list of packages of `./check`.
fn browser() -> Option<Browser> {
    if !has(CHROMIUM) {
        skip("chromium is not installed");
        return None;
    }
    Browser::start().map_err(|reason| skip(&format!("chromium does not start here: {reason}"))).ok()
}

/// The picture on the canvas.
const PICTURE: &str = "document.querySelector('.timeline canvas').toDataURL()";
/// How many readings are in view, as the page says it.
const IN_VIEW: &str =
    "Number(document.querySelector('.timeline .hint').innerText.match(/([\\d,]+) readings in/)[1].replace(/,/g, ''))";
const ZOOMED: &str = "document.querySelector('.timeline').dataset.zoomed";

#[test]
fn a_page_of_a_long_recording_is_drawn_at_once() {
    let Some(mut browser) = browser() else { return };
    let folder = page();
    let mut told = Vec::new();
    let fast = (0..ATTEMPTS).any(|_| {
        browser.open(&folder.path("page.html"));
        let at = |browser: &mut Browser, name: &str| {
            browser.evaluate(&format!("performance.getEntriesByName('{name}')[0].startTime")).as_f64().unwrap()
        };
        let (painted, drawn) = (at(&mut browser, "first-contentful-paint"), at(&mut browser, "timelines drawn"));
        let work = browser.work_seconds();
        told.push(format!(
            "first paint after {painted:.0} ms, all drawn after {drawn:.0} ms, {:.0} ms of work",
            work * 1e3
        ));
        // On a busy machine the work is the measure: it does not grow with what runs beside it.
        painted.max(drawn) < DRAWN_WITHIN_MS || work < WORK_SECONDS
    });
    told.iter().for_each(|line| eprintln!("{READINGS} readings of five series: {line}"));
    assert!(fast, "{told:?}");
    assert_eq!(browser.complaints(), &[] as &[String]);
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn tracks_are_hidden_and_quanta_are_seen_one_by_one() {
        let Some(mut browser) = browser() else { return };
        let folder = page();
        browser.open(&folder.path("page.html"));
        let names =
            browser.evaluate("[...document.querySelectorAll('.u-series .u-label')].map(name => name.innerText)");
        assert_eq!(names, json!(["time", "worker", "dirty", "writeback", "sleeps", "net.ib0.tx_bytes"]));
        // A click on a name hides its track, another shows it again.
        for series in 1..=5 {
            let name = format!("document.querySelectorAll('.u-series th')[{series}]");
            let all = browser.evaluate(PICTURE);
            let place = browser.place(&name, (0.5, 0.5));
            browser.click(place, 1);
            assert!(eventually(|| browser.evaluate(PICTURE) != all), "series {series} cannot be hidden");
            assert_eq!(browser.evaluate(&format!("{name}.getAttribute('aria-pressed')")), "false");
            browser.click(place, 1);
            assert!(eventually(|| browser.evaluate(PICTURE) == all), "series {series} is not shown again");
        }
        // Dragging zooms in, down to single readings; a double click shows all.
        let all = browser.evaluate(IN_VIEW).as_u64().unwrap();
        assert!(all + 2 >= READINGS && browser.evaluate(ZOOMED) == "false", "{all} in view");
        let mut seen = all;
        for _ in 0..3 {
            let over = "document.querySelector('.u-over')";
            let (from, to) = (browser.place(over, (0.5, 0.4)), browser.place(over, (0.54, 0.6)));
            browser.drag(from, to);
            assert!(eventually(|| browser.evaluate(IN_VIEW).as_u64().unwrap() < seen / 10), "{seen} are still in view");
            seen = browser.evaluate(IN_VIEW).as_u64().unwrap();
        }
        assert!((1..12).contains(&seen) && browser.evaluate(ZOOMED) == "true", "{seen} in view");
        let close = browser.evaluate(PICTURE);
        browser.prefer("dark");
        assert!(eventually(|| browser.evaluate(PICTURE) != close), "the canvas stays light");
        let place = browser.place("document.querySelector('.u-over')", (0.3, 0.5));
        browser.click(place, 2);
        assert!(eventually(|| browser.evaluate(IN_VIEW).as_u64() == Some(all)), "a double click does not show all");
        assert_eq!(browser.evaluate(ZOOMED), "false");
        assert_eq!(browser.complaints(), &[] as &[String]);
    }
}
