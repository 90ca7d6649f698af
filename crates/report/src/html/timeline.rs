//! A timeline as a drawing that stands still, and as data for a script that draws it anew: to zoom in, to hide tracks.
//!
//! Without JavaScript and in a mail reader the still drawing remains. The script is the plotting library uPlot, as it was
//! published, and `timeline.js`.

use super::markup::{element, escape};
use crate::document::{NOTHING, Timeline, Trace, Track};
use crate::number;
use serde_json::{Value, json};
use std::fmt::Write;

/// Most readings in a page: about 6 bytes each for every track. A script draws this many in a tenth of a second.
const MOST_READINGS: usize = 200_000;

/// What a page with a timeline needs besides the timeline.
#[derive(Clone, Copy, Default)]
pub struct Means {
    /// An addition to the content security policy. Everything in the page is of iotoll, or escaped.
    pub policy: &'static str,
    /// An addition to the style sheet.
    pub style: &'static str,
    /// The scripts, at the end of the page, so that the text is shown first.
    pub script: &'static str,
}

impl Means {
    /// What is in every page with a timeline.
    pub const ALL: Self = Self {
        policy: "; script-src 'unsafe-inline'",
        style: concat!(include_str!("../../assets/uplot/uPlot.min.css"), "\n", include_str!("timeline.css")),
        script: concat!(
            "<script>",
            include_str!("../../assets/uplot/uPlot.iife.min.js"),
            "</script>\n<script>\n",
            include_str!("timeline.js"),
            "</script>\n"
        ),
    };
}

/// The timeline; empty if nothing can be drawn.
pub fn timeline(timeline: &Timeline) -> String {
    if timeline.is_empty() {
        return String::new();
    }
    let names = timeline.tracks.iter().map(|track| {
        let hue = track.hue.name();
        format!("<span><i class=\"swatch hue-{hue}\"></i>{}</span>", escape(&timeline.name(track)))
    });
    let marked = match timeline.marks.is_empty() {
        true => String::new(),
        false => format!("<span><i class=\"swatch mark\"></i>{}</span>", escape(&timeline.marked)),
    };
    let (thin, group) = timeline.thinned(MOST_READINGS);
    let note = match group {
        1 => String::new(),
        _ => element("p", "note", &format!("Drawn: the least and the greatest of every {group} readings.")) + "\n",
    };
    format!(
        "<div class=\"timeline\">\n<div class=\"still\">{}{}</div>\n\
         <script type=\"application/json\">{}</script>\n</div>\n{note}",
        drawing(timeline),
        element("p", "legend", &names.chain([marked]).collect::<String>()),
        inert(&data(&thin).to_string()),
    )
}

/// What the script reads. Times are the lengths of readings: a small number keeps all its digits.
fn data(timeline: &Timeline) -> Value {
    let before = std::iter::once(&timeline.began).chain(&timeline.seconds);
    let lengths = timeline.seconds.iter().zip(before).map(|(at, before)| at - before);
    let scales = timeline.scales.iter().map(|scale| json!({"units": scale.units}));
    let tracks = timeline.tracks.iter().map(|track| {
        json!({
            "name": track.name,
            "title": timeline.name(track),
            "hue": track.hue.name(),
            "trace": track.trace.name(),
            "scale": track.scale,
            "values": packed(track.values.iter().copied()),
        })
    });
    json!({
        "began": timeline.began,
        "lengths": packed(lengths),
        "scales": scales.collect::<Vec<_>>(),
        "tracks": tracks.collect::<Vec<_>>(),
        "marks": timeline.marks,
        "marked": timeline.marked,
    })
}

/// JSON that neither ends its element nor has characters that [`escape`] removes. They occur in strings only.
fn inert(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut inert, letter| {
        if letter == '<' || (!letter.is_ascii_graphic() && letter != ' ') {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                inert += &format!("\\u{unit:04x}");
            }
        } else {
            inert.push(letter);
        }
        inert
    })
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text. A number keeps about seven digits.
pub fn packed(numbers: impl Iterator<Item = f64>) -> String {
    let bytes: Vec<u8> = numbers.flat_map(|number| (number as f32).to_le_bytes()).collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            let letter = LETTERS.get(((bits >> (18 - 6 * place)) & 63) as usize).copied().unwrap_or(b'A');
            text.push(if place > group.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

/// Width of the drawing in units, and the part of it that has the tracks.
const WIDTH: f64 = 1100.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 1088.0;
/// Heights: of the first lane, of each other one, of the title above a lane, and of the numbers of the time axis.
const FIRST: f64 = 150.0;
const OTHER: f64 = 70.0;
const TITLE: f64 = 20.0;
const BELOW: f64 = 30.0;
/// Columns of the drawing: one for each unit.
const COLUMNS: usize = (RIGHT - LEFT) as usize;
/// Numbers on the time axis, and on the scale of the first track.
const TIMES: u32 = 5;
const LEVELS: u32 = 2;

/// The vertical place of a lane.
#[derive(Clone, Copy)]
struct Lane {
    top: f64,
    foot: f64,
}

/// The drawing. Its colours are in the style sheet.
pub fn drawing(timeline: &Timeline) -> String {
    let mut foot = 0.0;
    let lanes: Vec<Lane> = (0..timeline.tracks.len())
        .map(|place| {
            let top = foot + TITLE;
            foot = top + if place == 0 { FIRST } else { OTHER };
            Lane { top, foot }
        })
        .collect();
    let height = foot + BELOW;
    let mut svg = format!("<svg role=\"img\" aria-label=\"timeline\" viewBox=\"0 0 {WIDTH} {height}\">\n");
    let length = timeline.end() - timeline.began;
    let across = |time: f64| LEFT + ((time - timeline.began) / length).clamp(0.0, 1.0) * (RIGHT - LEFT);
    for (from, to) in &timeline.marks {
        let (from, to) = (across(*from), across(*to));
        let _ = writeln!(
            svg,
            "<rect class=\"mark\" x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"{foot}\"/>",
            (to - from).max(1.0),
        );
    }
    for step in 0..=TIMES {
        let part = f64::from(step) / f64::from(TIMES);
        let x = LEFT + part * (RIGHT - LEFT);
        let anchor = if step == TIMES { "end" } else { "middle" };
        let text = escape(&number::seconds(timeline.began + part * length));
        let _ = writeln!(svg, "<text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{text}</text>", foot + 20.0);
    }
    for (place, (track, lane)) in timeline.tracks.iter().zip(lanes).enumerate() {
        ground(&mut svg, timeline, track, lane, if place == 0 { LEVELS } else { 1 });
        let _ = writeln!(svg, "<path class=\"hue-{}\" d=\"{}\"/>", track.hue.name(), path(timeline, track, lane));
    }
    svg + "</svg>\n"
}

/// The title of a lane, and lines with numbers from 0 to the greatest value.
fn ground(svg: &mut String, timeline: &Timeline, track: &Track, lane: Lane, levels: u32) {
    let title = escape(&timeline.name(track));
    let _ = writeln!(svg, "<text x=\"{:.0}\" y=\"{:.0}\">{title}</text>", LEFT + 2.0, lane.top - 6.0);
    let Some(scale) = timeline.scales.get(track.scale) else { return };
    let is_all_zero = track.greatest() <= NOTHING;
    for step in 0..=levels {
        let part = f64::from(step) / f64::from(levels);
        let y = lane.foot - part * (lane.foot - lane.top);
        let text = match step {
            0 => "0".to_owned(),
            _ if is_all_zero => String::new(),
            _ => escape(&number::with_unit(scale.units, part * track.greatest())),
        };
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT},{y:.0}H{RIGHT}\"/><text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{text}</text>",
            LEFT - 8.0,
            y + 4.0
        );
    }
}

/// An upright stroke in each column. A line is joined to the column before.
fn path(timeline: &Timeline, track: &Track, Lane { top, foot }: Lane) -> String {
    let greatest = track.greatest();
    let down = |value: f64| (foot - value / greatest * (foot - top)).round();
    let mut path = String::new();
    let mut before: Option<f64> = None;
    for (column, reach) in timeline.parts(track, COLUMNS).into_iter().enumerate() {
        let Some(reach) = reach else {
            before = None;
            continue;
        };
        if track.trace == Trace::Events && reach.greatest == 0.0 {
            continue;
        }
        let (mut low, mut high) = (down(reach.least), down(reach.greatest));
        if let Some(before) = before.filter(|_| track.trace == Trace::Line) {
            (low, high) = (low.max(before), high.min(before));
        }
        before = Some(down(reach.mean));
        let x = LEFT + column as f64 + 0.5;
        // A stroke of zero length is not drawn.
        let _ = write!(path, "M{x},{}V{high}", low + 1.0);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Hue, TimelineScale};
    use crate::number::COUNT;

    #[test]
    fn a_name_cannot_end_the_data() {
        assert_eq!(inert(r#"{"a":"</script>読𝄞"}"#), r#"{"a":"\u003c/script>\u8aad\ud834\udd1e"}"#);
        let value: Value = serde_json::from_str(&inert(&json!({"a": "</script>\u{202e}読𝄞"}).to_string())).unwrap();
        assert_eq!(value["a"], "</script>\u{202e}読𝄞");
    }

    #[test]
    fn the_library_is_the_one_that_its_readme_names() {
        assert!(Means::ALL.script.contains("(v1.6.32)"), "another version than assets/uplot/README.md says");
        assert_eq!(Means::ALL.script.matches("</script").count(), 2, "neither script ends early");
    }

    #[test]
    fn numbers_are_those_that_a_browser_unpacks() {
        // python3 -c 'import base64,struct; print(base64.b64encode(struct.pack("<3f", 1, -2.5, 4096)).decode())'
        assert_eq!(packed([1.0, -2.5, 4096.0].into_iter()), "AACAPwAAIMAAAIBF");
        assert_eq!(packed([1.0].into_iter()), "AACAPw==");
        assert_eq!(packed([1.0, 2.0].into_iter()), "AACAPwAAAEA=");
        assert_eq!(packed(std::iter::empty()), "");
    }

    #[test]
    fn lanes_are_above_one_another_and_the_first_is_at_the_top() {
        let track = |name: &str, hue, values: [f64; 2]| Track {
            name: name.to_owned(),
            hue,
            trace: Trace::Line,
            scale: 0,
            is_important: true,
            values: values.to_vec(),
        };
        let timeline = Timeline {
            seconds: vec![1.0, 2.0],
            scales: vec![TimelineScale { name: "steps".to_owned(), units: COUNT }],
            tracks: vec![track("worker", Hue::Red, [0.0, 1e6]), track("probe<", Hue::Blue, [0.0, 3.0])],
            ..Timeline::default()
        };
        let svg = drawing(&timeline);
        let reach = |hue: &str| {
            let path = svg.split(&format!("<path class=\"hue-{hue}\" d=\"")).nth(1).unwrap().split('"').next().unwrap();
            let places = path.split(['M', 'V']).filter_map(|part| part.split(',').next_back()?.parse::<f64>().ok());
            places.fold((f64::INFINITY, 0.0f64), |(least, most), place| (least.min(place), most.max(place)))
        };
        let (worker, probe) = (reach("red"), reach("blue"));
        assert!(worker.1 <= TITLE + FIRST + 1.0 && probe.0 >= worker.1 + TITLE - 2.0, "{worker:?} {probe:?}");
        assert!((worker.0 - TITLE).abs() < 1.0, "each track uses its whole lane: {worker:?}");
        assert!((probe.0 - (2.0 * TITLE + FIRST)).abs() < 1.0, "each track uses its whole lane: {probe:?}");
        assert!(svg.contains(">1.00 M<") && svg.contains(">3.00<") && svg.contains("probe&lt;, steps"), "{svg}");
    }
}
